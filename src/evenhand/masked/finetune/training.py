"""The training loop: masked-token loss, warm-up and linear fall, the best weights kept.

A run that was broken off goes on from its checkpoint and, on a CPU with the same number of
threads, ends with the same weights bit for bit as one that was not.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.masked.finetune.checkpoints import Point, State, restore, save
from evenhand.masked.finetune.masking import masked_loss
from evenhand.masked.finetune.material import Material
from evenhand.masked.finetune.rewriting import derived_seed
from evenhand.masked.model import Model

if TYPE_CHECKING:
    import torch

__all__ = ["INTERVAL", "Tell", "Trained", "train"]

INTERVAL = 30.0
"""Seconds from one checkpoint to the next, at least."""
SHARE = 0.05
"""Share of the time that checkpoints may take, where they are large and the disk is slow."""

Tell = Callable[[int, int, str], None]
"""Told after every step: tokens learned from, tokens planned, and the state in words."""


@dataclass(frozen=True, slots=True)
class Trained:
    """How a training went."""

    points: tuple[Point, ...]
    best: Point
    ended: str
    steps: int
    tokens: int
    planned: int
    epoch_tokens: int
    documents: int
    evaluation_documents: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "ended": self.ended, "steps": self.steps, "tokens": self.tokens,
            "planned_tokens": self.planned, "epoch_tokens": self.epoch_tokens,
            "epochs": self.points[-1].epoch, "documents": self.documents,
            "evaluation_documents": self.evaluation_documents,
            "kept": {"step": self.best.step, "epoch": self.best.epoch},
            "evaluation_loss": {
                "before": self.points[0].evaluation, "after": self.best.evaluation
            },
        }  # fmt: skip


def train(model: Model, material: Material, checkpoint: Path, tell: Tell | None = None) -> Trained:
    """Train the model in place, going on from the checkpoint if there is one.

    In the end it has the weights of the best evaluation, and the checkpoint says so.
    """
    import torch

    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), _deferred_interrupt() as interrupt:
        run = _Run(model, material, checkpoint, tell, interrupt)
        run.go()
        run.keep_best()
    state = run.state
    assert state.best is not None  # noqa: S101
    return Trained(
        points=tuple(state.points), best=state.points[state.best], ended=state.ended,
        steps=state.step, tokens=state.tokens, planned=material.planned,
        epoch_tokens=material.epoch_tokens, documents=len(material.training),
        evaluation_documents=len(material.evaluation_documents),
    )  # fmt: skip


class _Run:
    def __init__(
        self,
        model: Model,
        material: Material,
        checkpoint: Path,
        tell: Tell | None,
        interrupt: _Interrupt,
    ) -> None:
        self.model, self.material, self.checkpoint = model, material, checkpoint
        self.settings, self.tell, self.interrupt = material.settings, tell, interrupt
        self.network: Any = model.network
        self.optimizer = _optimizer(self.network, self.settings.weight_decay)
        self.state = State()
        self.best: dict[str, torch.Tensor] = {}
        if checkpoint.is_file():
            self.state, self.best = restore(checkpoint, self.network, self.optimizer)
        self.saved = time.monotonic()
        self.pause = INTERVAL

    def go(self) -> None:
        """Step by step until the end, or until Ctrl-C."""
        state = self.state
        if not state.points:
            self.evaluate()
        while not state.ended:
            plan = self.material.batches(state.epoch)
            while state.batch < len(plan) and not state.ended:
                self.learn(plan[state.batch], state.batch + 1 == len(plan))
            if not state.ended:
                state.epoch, state.batch = state.epoch + 1, 0

    def learn(self, chosen: list[int], last_of_epoch: bool) -> None:
        """One step, and what is due after it: evaluation, checkpoint, stop."""
        import torch

        state, planned = self.state, self.material.planned
        hidden, tokens = self.material.step(state.epoch, chosen, state.step)
        torch.manual_seed(derived_seed(self.settings.seed, "dropout", state.step))
        rate = self.settings.learning_rate * _factor(
            state.tokens + tokens / 2, planned, self.settings.warmup
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.network.train()
        with self.precision():
            loss = masked_loss(self.network, hidden.to(self.model.device))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        number = loss.item()
        if not math.isfinite(number):
            raise InputError(
                f"step {state.step}: the loss is {number}: expected a smaller learning_rate than "
                f"{self.settings.learning_rate:g}"
            )
        every = planned / self.settings.evaluations
        due = int((state.tokens + tokens) / every) > int(state.tokens / every)
        state.batch, state.step, state.tokens = (
            state.batch + 1,
            state.step + 1,
            state.tokens + tokens,
        )
        state.loss_sum, state.loss_count = state.loss_sum + number, state.loss_count + 1
        last = state.epoch + 1 == self.settings.epochs and last_of_epoch
        if state.tokens >= planned or last:
            state.ended = "epochs" if last else "max_tokens"
        if due or state.ended:
            self.evaluate()
        if self.tell is not None:
            self.tell(min(state.tokens, planned), planned, self.words(number))
        if state.ended or self.interrupt.asked or time.monotonic() - self.saved > self.pause:
            self.save()
        if self.interrupt.asked and not state.ended:
            raise KeyboardInterrupt

    def evaluate(self) -> None:
        """Add a point to the curve; keep the weights if it is the best, stop if none was lately."""
        import torch

        state = self.state
        total, count = 0.0, 0
        self.network.eval()
        with torch.inference_mode(), self.precision():
            for hidden in self.material.evaluation:
                loss = masked_loss(self.network, hidden.to(self.model.device))
                total += float(loss) * len(hidden.labels)
                count += len(hidden.labels)
        training = state.loss_sum / state.loss_count if state.loss_count else None
        state.loss_sum, state.loss_count = 0.0, 0
        epoch = state.tokens / self.material.epoch_tokens
        state.points.append(Point(state.step, epoch, state.tokens, training, total / count))
        if not state.step:
            return
        best = None if state.best is None else state.points[state.best].evaluation
        if best is None or state.points[-1].evaluation < best:
            state.best, state.waited = len(state.points) - 1, 0
            named = self.network.named_parameters()
            self.best = {name: weight.detach().cpu().clone() for name, weight in named}
            return
        state.waited += 1
        if state.waited >= self.settings.patience and not state.ended:
            state.ended = "patience"

    def save(self) -> None:
        began = time.monotonic()
        save(self.checkpoint, self.state, self.network, self.optimizer, self.best)
        self.saved = time.monotonic()
        self.pause = max(INTERVAL, (self.saved - began) / SHARE)

    def keep_best(self) -> None:
        """Put the best weights into the model."""
        import torch

        with torch.no_grad():
            for name, weight in self.network.named_parameters():
                weight.copy_(self.best[name])
        self.network.eval()

    def precision(self) -> Any:
        """bfloat16 for the products where it is asked for; weights and sums stay float32."""
        import torch

        kind = self.model.device.type
        dtype = self.settings.dtype
        if dtype == "bfloat16" or (dtype == "auto" and kind == "cuda"):
            return torch.autocast(kind, dtype=torch.bfloat16)
        return nullcontext()

    def words(self, loss: float) -> str:
        last = self.state.points[-1]
        return f"epoch {self.state.epoch + 1}, loss {loss:.3f}, evaluation {last.evaluation:.3f}"


def _optimizer(network: Any, decay: float) -> torch.optim.Optimizer:
    """AdamW; matrices decay, biases and layer norms do not."""
    import torch

    weights = [weight for weight in network.parameters() if weight.requires_grad]
    groups = [
        {"params": [w for w in weights if w.ndim > 1], "weight_decay": decay},
        {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, fused=True)


def _factor(done: float, planned: int, warmup: float) -> float:
    """The share of the learning rate: up in a line over the warm-up, then down in a line to 0.

    >>> [round(_factor(done, 100, .1), 2) for done in (0, 5, 10, 55, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    share = done / planned
    return max(0.0, share / warmup if share < warmup else (1 - share) / (1 - warmup))


@dataclass
class _Interrupt:
    asked: bool = False


@contextmanager
def _deferred_interrupt() -> Iterator[_Interrupt]:
    """Ctrl-C lets the step end, so that it can be gone on from; a second one does not wait."""
    state = _Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return

    def note(number: int, frame: Any) -> None:
        if state.asked:
            signal.default_int_handler(number, frame)
        state.asked = True

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield state
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)
