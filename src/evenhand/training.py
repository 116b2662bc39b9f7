"""The training loop: schedule, checkpoints that resume, the best weights, patience, Ctrl-C.

A training owns its weights, its optimizer and a state (plain JSON values). Draws
come from seeds made of the position, so that there are no states of random generators to store: a
training that was killed resumes from its checkpoint and, on a CPU with the same number of threads,
ends with the same weights bit for bit.
"""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError, InputError, parameter
from evenhand.files import replace_file

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

INTERVAL = 30.0
"""Seconds from one checkpoint to the next, at least."""
SHARE = 0.05
"""Share of the time that checkpoints may take, where they are large and the disk is slow."""
MOMENTS = ("exp_avg", "exp_avg_sq")
"""The state of AdamW besides the number of steps."""


def rate_share(done: float, warmup: float) -> float:
    """The share of the learning rate: rises linearly over the warm-up, then falls linearly to 0.

    >>> [round(rate_share(done, 0.1), 2) for done in (0, 0.05, 0.1, 0.55, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return max(0.0, done / warmup if done < warmup else (1 - done) / (1 - warmup))


@dataclass
class TrainingCheckpoint:
    """The file of a training under way: weights, moments of the optimizer, best weights, record.

    It is replaced as a whole, so that a kill leaves the one before.
    """

    path: Path
    saved: float = field(default_factory=time.monotonic)
    pause: float = field(default_factory=lambda: INTERVAL)

    @property
    def due(self) -> bool:
        """Whether enough time has passed since the last one."""
        return time.monotonic() - self.saved > self.pause

    def save(
        self,
        record: Mapping[str, Any],
        weights: Mapping[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
        best: Mapping[str, torch.Tensor],
        others: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        """Write the file; where there is no room for it, the one before stays."""
        began = time.monotonic()
        tensors = {f"best.{name}": weight for name, weight in best.items()}
        tensors |= {f"other.{name}": tensor for name, tensor in (others or {}).items()}
        for name, weight in weights.items():
            tensors[f"weight.{name}"] = weight
            moments = optimizer.state.get(weight, {})
            tensors |= {f"{m}.{name}": moments[m] for m in MOMENTS if m in moments}
        save_tensors(self.path, tensors, record)
        self.saved = time.monotonic()
        self.pause = max(INTERVAL, (self.saved - began) / SHARE)

    def restore(
        self,
        weights: Mapping[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
        check: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> tuple[dict[str, Any], Tensors, Tensors]:
        """Restore weights and optimizer; the record, the best weights and other tensors.

        `check` refuses the record of another training before anything is restored.
        """
        import torch

        tensors, record = read_tensors(self.path, "checkpoint")
        check(record)
        count = float(record["step"])
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(tensors[f"weight.{name}"])
                if f"{MOMENTS[0]}.{name}" in tensors:
                    optimizer.state[weight] = {
                        "step": torch.tensor(count, device=weight.device),
                        **{m: tensors[f"{m}.{name}"].to(weight.device) for m in MOMENTS},
                    }
        return record, select("best.", tensors), select("other.", tensors)


class Loop:
    """Steps of AdamW, and what is due after each; a subclass has the loss and the evaluation.

    Its `settings` have `clip`, `warmup` and `patience`; its `state` is a dataclass with `step`,
    `points` (of the curve), `best` (the number of the best point), `waited` and `ended`.
    """

    settings: Any
    state: Any

    def __init__(
        self,
        weights: Mapping[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
        checkpoint: Path | None,
        interrupt: threading.Event | None = None,
    ) -> None:
        self.weights, self.optimizer = weights, optimizer
        self.checkpoint = None if checkpoint is None else TrainingCheckpoint(checkpoint)
        self.interrupt = interrupt or threading.Event()
        self.best: Tensors = {}

    def record(self) -> tuple[Mapping[str, Any], Tensors]:
        """The record and the tensors, besides weights, that a checkpoint holds."""
        raise NotImplementedError

    def set_rate(self, done: float) -> None:
        """Set the learning rates of a step from the share of the training that is done."""
        share = rate_share(done, self.settings.warmup)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], float):
                group["lr"] = share * group["full"]
            else:
                group["lr"].fill_(share * group["full"])

    def update(self) -> None:
        """Move the weights by their gradients."""
        import torch

        torch.nn.utils.clip_grad_norm_(self.weights.values(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def check_loss(self, loss: float, step: int, expected: str) -> None:
        """Refuse a loss that is not finite."""
        if not math.isfinite(loss):
            raise InputError(f"step {step}: the loss is {loss}: expected {expected}")

    def use_last(self) -> None:
        """The weights as they are, those of the last point, are the best."""
        state = self.state
        state.best, state.waited = len(state.points) - 1, 0
        self.best = copy_weights(self.weights)

    def compare(self, *, better: bool) -> None:
        """Copy the weights if the last point is the best; end after `patience` others."""
        state = self.state
        if better:
            self.use_last()
            return
        state.waited += 1
        if state.waited >= self.settings.patience and not state.ended:
            state.ended = "patience"

    def finish_step(self) -> None:
        """Save a checkpoint if due, and stop on Ctrl-C."""
        ended, pressed = bool(self.state.ended), self.interrupt.is_set()
        if self.checkpoint is not None and (ended or pressed or self.checkpoint.due):
            record, others = self.record()
            self.checkpoint.save(record, self.weights, self.optimizer, self.best, others)
        if pressed and not ended:
            raise KeyboardInterrupt


def make_optimizer(
    weights: Mapping[str, torch.nn.Parameter],
    rates: Mapping[str, float],
    decay: float,
    *,
    embeddings: bool = True,
    captured: bool = False,
) -> torch.optim.Optimizer:
    """AdamW; matrices decay, biases and layer norms do not.

    `rates` are the highest learning rates by the prefix of the weights' names. Without
    `embeddings` those of words do not decay. For steps that are captured, rates are tensors.
    """
    import torch

    groups = []
    for prefix, rate in rates.items():
        own = {n: w for n, w in weights.items() if n.startswith(prefix) and w.requires_grad}
        for decays in (True, False):
            chosen = [
                w
                for n, w in own.items()
                if (w.ndim > 1 and (embeddings or "embeddings" not in n)) == decays
            ]
            if chosen:
                group = {"params": chosen, "full": rate, "weight_decay": decay if decays else 0.0}
                if captured:
                    group["lr"] = torch.zeros((), device=chosen[0].device)
                groups.append(group)
    return torch.optim.AdamW(groups, lr=0.0, fused=True, capturable=captured)


def copy_weights(weights: Mapping[str, torch.Tensor]) -> Tensors:
    """A copy of the weights on the CPU."""
    return {name: weight.detach().cpu().clone() for name, weight in weights.items()}


def load_weights(weights: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor]) -> None:
    """Write the values into the weights."""
    import torch

    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(values[name])


def save_tensors(
    path: Path, tensors: Mapping[str, torch.Tensor], record: Mapping[str, Any]
) -> None:
    """Write tensors and a record as one safetensors file, atomically."""
    from safetensors.torch import save

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replace_file(path) as file:
        content = {"digest": _tensor_digest(contiguous, record), "record": record}
        # one entry: safetensors writes several in any order, and the same run has the same bytes
        file.write(save(contiguous, metadata={"record": json.dumps(content)}))


def _tensor_digest(tensors: Mapping[str, torch.Tensor], record: Mapping[str, Any]) -> str:
    """A hash of everything in a file of tensors."""
    import torch

    digest = blake2b(json.dumps(record).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_tensors(path: Path, kind: str) -> tuple[Tensors, dict[str, Any]]:
    """The tensors and the record of a file; an error calls it a `kind`."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            content = json.loads(file.metadata()["record"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _tensor_digest(tensors, content["record"]) != content["digest"]:
            raise ValueError("damaged, its checksum is wrong")
        return tensors, content["record"]
    except FileNotFoundError:
        raise FileError(path, f"expected a {kind}, got no such file") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileError(
            path, f"not a {kind}: {error}; {parameter('restart', True)} starts over"
        ) from error


def select(prefix: str, tensors: Mapping[str, torch.Tensor]) -> Tensors:
    """The tensors whose names have the prefix, without it."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


@contextmanager
def defer_interrupt() -> Iterator[threading.Event]:
    """Let Ctrl-C finish the step, so that it can be resumed from; a second one does not wait."""
    pressed = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if main else None
    if before is not signal.default_int_handler:
        yield pressed
        return

    def note(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            signal.default_int_handler(number, frame)
        pressed.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
