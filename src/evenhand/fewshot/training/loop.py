"""The training loop: AdamW over batches of episodes, the weights of the best validation kept.

A run that was broken off goes on from its checkpoint and, on a CPU with the same number of
threads, ends with the same numbers bit for bit as one that was not.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from evenhand.errors import FileError, InputError
from evenhand.fewshot.encoders.tuned import Tuned
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.training.evaluation import scores
from evenhand.fewshot.training.files import read_tensors, save_tensors
from evenhand.fewshot.training.settings import Settings
from evenhand.fewshot.training.sources import (
    Scaling,
    Source,
    as_source,
    gathered,
    places_of,
    rows_of,
    targets,
)
from evenhand.fewshot.training.trained import FILE, Point, Trained, network_of
from evenhand.folders import RunFolder

__all__ = ["INTERVAL", "Progress", "train"]

INTERVAL = 30.0
"""Seconds from one checkpoint to the next, at least."""
SHARE = 0.05
"""Share of the time that checkpoints may take, where they are large and the disk is slow."""
CHECKPOINT = "checkpoint.safetensors"
MOMENTS = ("exp_avg", "exp_avg_sq")

Progress = Callable[[str, int, int, str], None]
"""Told as the work goes on: what is being done, how much of it, of how much, and more in words."""


def train(
    settings: Settings,
    source: NDArray[np.float32] | Source,
    training: Episodes,
    validation: Episodes,
    folder: str | os.PathLike[str] | None = None,
    *,
    restart: bool = False,
    progress: Progress | None = None,
) -> Trained:
    """Train a network on the training episodes, each of which is used once.

    `source` has the features (n, dim) of the texts that the episodes' rows are of, or is a `Tuned`
    encoder of these texts, which is trained along and ends with the best weights. The folder gets
    `trained.safetensors` and `curve.csv`, and a checkpoint while training goes on: a call that was
    broken off goes on when it is made again, one that is done gives its result again. A folder of
    another training is refused, unless `restart` clears it.
    """
    ready = as_source(source)
    _check_apart(training, validation)
    identity = {
        "settings": settings.as_dict(), "features": ready.digest,
        "training": training.digest, "validation": validation.digest,
    }  # fmt: skip
    if folder is None:
        return _Run(settings, ready, training, validation, identity, None, progress).go()
    with RunFolder.working(folder) as place:
        path = place.path
        if restart:
            for name in (FILE, CHECKPOINT, "curve.csv"):
                (path / name).unlink(missing_ok=True)
        if (path / FILE).is_file():
            trained = Trained.load(path)
            _check_same(path, trained.identity, identity)
            trained.ready(ready)
        else:
            run = _Run(settings, ready, training, validation, identity, path, progress)
            trained = run.go()
            _save(place, trained)
        (path / CHECKPOINT).unlink(missing_ok=True)
    return trained


@dataclass(slots=True)
class _State:
    """How far a training is; with the weights and the optimiser's moments, all it needs."""

    step: int = 0
    episodes: int = 0
    loss: float = 0.0
    right: int = 0
    asked: int = 0
    """Sums since the last validation: losses times queries, queries that were right, queries."""
    waited: int = 0
    best: int = 0
    """The number of the best point."""
    ended: str = ""
    points: list[Point] = field(default_factory=list)


class _Run:
    def __init__(
        self,
        settings: Settings,
        source: Source,
        training: Episodes,
        validation: Episodes,
        identity: Mapping[str, Any],
        folder: Path | None,
        progress: Progress | None,
    ) -> None:
        self.settings, self.source = settings, source
        self.training, self.validation = training, validation
        self.identity, self.folder, self.progress = dict(identity), folder, progress
        self.network = network_of(settings, source.dim, tuned=bool(source.weights()))
        self.network.to(source.device)
        source.reset()
        self.weights: dict[str, nn.Parameter] = {
            **{f"network.{name}": weight for name, weight in self.network.named_parameters()},
            **{f"encoder.{name}": weight for name, weight in source.weights().items()},
        }
        self.optimizer = _optimizer(self.weights, settings)
        self.targets = torch.from_numpy(targets(training)).to(source.device)
        self.state = _State()
        self.best: dict[str, Tensor] = {}
        self.scaling: Scaling | None = None
        if folder is not None and (folder / CHECKPOINT).is_file():
            self.restore(folder / CHECKPOINT)
        elif settings.standardise:
            self.scaling = Scaling.fit(source, training)
        self.began = self.saved = time.monotonic()
        self.began_at, self.pause = self.state.episodes, INTERVAL

    def go(self) -> Trained:
        """Step by step until the end; the network and the encoder then have the best weights."""
        state = self.state
        if not state.points:
            self.validate()
        while not state.ended:
            self.learn()
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(self.best[name])
        tuned = self.source if isinstance(self.source, Tuned) else None
        return Trained(
            settings=self.settings, network=self.network.eval(), scaling=self.scaling,
            points=tuple(state.points), best=state.points[state.best], ended=state.ended,
            encoder={} if tuned is None else tuned.state(),
            origin="" if tuned is None else tuned.origin, identity=self.identity,
        )  # fmt: skip

    def learn(self) -> None:
        """One step, and what is due after it: validation, checkpoint, end."""
        state, total = self.state, len(self.training)
        begin, end = state.episodes, min(state.episodes + self.settings.batch, total)
        share = _share((begin + end) / 2 / total, self.settings.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = share * group["full"]
        loss, right, asked = self.step(slice(begin, end))
        if not math.isfinite(loss):
            raise InputError(
                f"step {state.step}: the loss is {loss}: expected smaller learning rates than "
                f"{self.settings.learning_rate:g} and {self.settings.encoder_learning_rate:g}"
            )
        state.step, state.episodes = state.step + 1, end
        state.loss, state.right = state.loss + loss * asked, state.right + right
        state.asked += asked
        every = self.settings.validate_every
        if end == total:
            state.ended = "episodes"
        if end // every > begin // every or state.ended:
            self.validate()
        if self.progress is not None:
            self.progress("training", end, total, self.words(loss))
        if self.folder is not None and (state.ended or time.monotonic() - self.saved > self.pause):
            self.save(self.folder / CHECKPOINT)

    def step(self, part: slice) -> tuple[float, int, int]:
        """Learn from some episodes: the loss, how many queries were right, and of how many."""
        self.network.train()
        points, places = self.source.points(rows_of(self.training, part))
        scaled = points if self.scaling is None else self.scaling(points)
        support, query, unlabelled = places_of(self.training, places, part)
        used = unlabelled if self.network.uses_unlabelled else None
        made = self.network(
            gathered(scaled, support),
            gathered(scaled, query),
            None if used is None else gathered(scaled, used),
        )
        wanted = self.targets.expand(len(support), -1)
        loss = self.network.loss(made, wanted, self.settings.loss)
        torch.autograd.backward(loss)
        self.source.backward()
        torch.nn.utils.clip_grad_norm_(self.weights.values(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        right = int((made.detach().argmax(dim=-1) == wanted).sum())
        return loss.item(), right, wanted.numel()

    def validate(self) -> None:
        """Add a point to the curves; keep the weights if it is the best, end if none was lately."""
        state = self.state
        wanted = torch.from_numpy(targets(self.validation)).to(self.source.device)
        loss, right, asked = 0.0, 0, 0
        for made in scores(self.network, self.scaling, self.source, self.validation):
            known = wanted.expand(len(made), -1)
            loss += self.network.loss(made, known, self.settings.loss).item() * known.numel()
            right += int((made.argmax(dim=-1) == known).sum())
            asked += known.numel()
        so_far = state.asked
        state.points.append(
            Point(
                state.episodes,
                state.loss / so_far if so_far else None,
                state.right / so_far if so_far else None,
                loss / asked,
                right / asked,
            )
        )
        state.loss, state.right, state.asked = 0.0, 0, 0
        best = state.points[state.best].validation_accuracy
        if len(state.points) == 1 or state.points[-1].validation_accuracy > best:
            state.best, state.waited = len(state.points) - 1, 0
            self.best = {name: w.detach().cpu().clone() for name, w in self.weights.items()}
            return
        state.waited += 1
        if state.waited >= self.settings.patience and not state.ended:
            state.ended = "patience"

    def save(self, path: Path) -> None:
        began = time.monotonic()
        tensors = {f"best.{name}": weight for name, weight in self.best.items()}
        if self.scaling is not None:
            tensors |= {"mean": self.scaling.mean, "deviation": self.scaling.deviation}
        for name, weight in self.weights.items():
            tensors[f"weight.{name}"] = weight
            known = self.optimizer.state.get(weight, {})
            tensors |= {f"{m}.{name}": known[m] for m in MOMENTS if m in known}
        save_tensors(path, tensors, {"state": asdict(self.state), "identity": self.identity})
        self.saved = time.monotonic()
        self.pause = max(INTERVAL, (self.saved - began) / SHARE)

    def restore(self, path: Path) -> None:
        """Put weights, moments and all the rest back to where they were."""
        tensors, told = read_tensors(path)
        _check_same(path.parent, told["identity"], self.identity)
        points = [Point(**point) for point in told["state"].pop("points")]
        self.state = _State(**told["state"], points=points)
        device = self.source.device
        if "mean" in tensors:
            self.scaling = Scaling(tensors["mean"].to(device), tensors["deviation"].to(device))
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(tensors[f"weight.{name}"])
                self.best[name] = tensors[f"best.{name}"]
                if f"{MOMENTS[0]}.{name}" in tensors:
                    self.optimizer.state[weight] = {
                        "step": torch.tensor(float(self.state.step), device=device),
                        **{m: tensors[f"{m}.{name}"].to(device) for m in MOMENTS},
                    }

    def words(self, loss: float) -> str:
        done = self.state.episodes - self.began_at
        rate = done / max(time.monotonic() - self.began, 1e-9)
        left = round((len(self.training) - self.state.episodes) / rate)
        best = self.state.points[self.state.best].validation_accuracy
        return (
            f"{rate:,.0f} episodes/s, {left // 60}:{left % 60:02} left, loss {loss:.3f}, "
            f"best validation {best:.1%}"
        )


def _optimizer(weights: Mapping[str, nn.Parameter], settings: Settings) -> torch.optim.Optimizer:
    """AdamW; matrices decay, but for word embeddings, of which most are not in a batch."""
    groups = []
    for owner, rate in (
        ("network.", settings.learning_rate),
        ("encoder.", settings.encoder_learning_rate),
    ):
        own = {name: weight for name, weight in weights.items() if name.startswith(owner)}
        for decays in (True, False):
            chosen = [w for n, w in own.items() if (w.ndim > 1 and "embeddings" not in n) == decays]
            decay = settings.weight_decay if decays else 0.0
            groups.append({"params": chosen, "full": rate, "weight_decay": decay})
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, fused=True)


def _share(done: float, warmup: float) -> float:
    """The share of a learning rate: up in a line over the warm-up, then down in a line to 0.

    >>> [round(_share(done, 0.1), 2) for done in (0, 0.05, 0.1, 0.55, 1)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)


def _check_apart(training: Episodes, validation: Episodes) -> None:
    if training.dataset != validation.dataset:
        raise InputError("episodes: expected training and validation of one data set, got two")
    shared = np.intersect1d(training.classes, validation.classes)
    if len(shared):
        raise InputError(
            f"episodes: expected validation classes apart from those of training, got class "
            f"{shared[0]} in both"
        )


def _check_same(folder: Path, there: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    known = json.loads(json.dumps(now))
    other = [name for name in known if there.get(name) != known[name]]
    if other:
        raise FileError(
            folder,
            f"has another training (other {', '.join(other)}): give another folder, or restart to "
            "begin anew here",
        )


def _save(place: RunFolder, trained: Trained) -> None:
    place.save_table([asdict(point) for point in trained.points], "curve.csv")
    trained.save(place.path)
