"""The training loop: fixed shapes, everything on the device, a stop before the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from evenhand.errors import EvenhandError, InputError

from . import checkpoints
from .attention import choose
from .checkpoints import Checkpoint
from .decoder import build
from .evaluation import Task, losses, validation_tasks
from .masking import CAUSAL_MARKS, MARKS, gather, hide, next_tokens
from .model import Batch, Model, Weights, fresh_weights
from .optimizers import Optimizer
from .packing import Packer, pack, sentence_ends
from .prepared import Prepared, Text
from .recipe import Recipe
from .tokenizer import BETWEEN

FINAL = frozenset(".!?")
CLOSING = "\"')]"
"""Marks that end a sentence, and those that may follow them."""
_SETTLE, _TIMED, _NO_END = 10, 30, 10**9


@dataclass(frozen=True)
class Data:
    """What a run learns from and is judged by."""

    training: Text
    validation: list[Task]
    pieces: list[str]
    """The vocabulary, in the order of the ids."""

    @classmethod
    def of(cls, prepared: Prepared, pieces: list[str], recipe: Recipe) -> Data:
        held, causal = prepared.validation(), recipe.kind == "causal"
        tasks = (
            validation_tasks(held, len(pieces), recipe.max_positions, causal=causal)
            if len(held.tokens)
            else []
        )
        return cls(prepared.training(), tasks, pieces)

    def packer(self, recipe: Recipe) -> Packer:
        """The maker of batches for a recipe."""
        number = {piece: token for token, piece in enumerate(self.pieces)}
        final = [i for i, piece in enumerate(self.pieces) if piece.rstrip(CLOSING)[-1:] in FINAL]
        closing = [number[mark] for mark in (*CLOSING, BETWEEN) if mark in number]
        ends = sentence_ends(self.training, np.array(final), np.array(closing))
        mixture, longest = recipe.mixture(), recipe.max_positions
        sizes = pack(self.training, mixture, ends, longest, recipe.seed).sizes
        rows = int(recipe.batch_tokens / float(np.mean(sizes + 2)))
        sentences = replace(self.training, tokens=self.training.tokens[:0])
        return Packer(sentences, ends, mixture, recipe.batch_tokens, longest, rows, recipe.seed)


@dataclass(frozen=True)
class Limits:
    """When to stop: after `steps`, or at the `deadline`; with no steps, as many as fit."""

    steps: int | None = None
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.steps is None and self.deadline is None:
            raise InputError("expected a number of steps or of minutes, got neither")


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    model: Model
    step: int
    steps: int
    loss: float
    """Mean training loss of the last reported steps."""
    speed: float
    """Tokens a second, compilation left out."""

    @property
    def finished(self) -> bool:
        return self.step >= self.steps


class Run:
    """One model in training."""

    def __init__(
        self,
        data: Data,
        recipe: Recipe,
        *,
        device: torch.device,
        compiled: bool,
        say: Callable[[str], None] = print,
    ) -> None:
        self.data, self.recipe, self.device, self.say = data, recipe, device, say
        self.causal = recipe.kind == "causal"
        attention, why = choose(device, causal=self.causal)
        say(f"attention: {why}")
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.model = build(
            recipe,
            fresh_weights(recipe, device),
            attention=attention,
            dtype=dtype,
            compiled=compiled,
        )
        self.optimizer = Optimizer(recipe, self.weights)
        self.step = self.epoch = self.batch = 0
        self.packer = data.packer(recipe)
        self.tokens = torch.from_numpy(data.training.tokens.astype(np.int16)).to(device)
        continuing = [piece.startswith("##") for piece in data.pieces]
        self.continues = torch.tensor(continuing, device=device) if recipe.whole_words else None

    @property
    def weights(self) -> Weights:
        return self.model.weights

    def resume(self, folder: Path) -> None:
        """Go on from a checkpoint of the same recipe."""
        kept = checkpoints.load(folder)
        if kept.recipe != self.recipe:
            raise InputError(f"{folder}: expected the recipe {self.recipe}, got {kept.recipe}")
        if not kept.optimizer:
            raise InputError(f"{folder}: expected a full or compact checkpoint, got only weights")
        with torch.no_grad():
            for name, weight in self.weights.items():
                weight.copy_(kept.weights[name])
        self.optimizer.restore(kept.optimizer)
        self.step, self.epoch, self.batch = kept.step, kept.epoch, kept.batch

    def checkpoint(self) -> Checkpoint:
        """Where the run stands."""
        return Checkpoint(
            self.recipe, self.step, self.epoch, self.batch, self.weights, self.optimizer.state()
        )

    def train(
        self,
        limits: Limits,
        *,
        folder: Path | None = None,
        report: int = 500,
        check: int = 2500,
        snapshots: Collection[int] = (),
    ) -> Outcome:
        """Train until the limits; report, and validate and write a checkpoint, every so often.

        The weights after the steps in `snapshots` are written to `folder` with the step's number.
        """
        clock = _Clock(limits, self)
        stream = self._batches(ahead=self.device.type == "cuda")
        recent = torch.zeros((), device=self.device)
        count, mean = 0, float("nan")
        while self.step < clock.steps and not clock.over():
            late = self.recipe.late(self.step, clock.steps)
            batch = next(stream)
            recent += self._learn(batch, late, self.recipe.learning_rate(self.step, clock.steps))
            self.step += 1
            count += 1
            clock.tick(late)
            if folder and self.step in snapshots:
                target = folder.with_name(f"{folder.name}-{self.step}")
                checkpoints.save(self.checkpoint(), target, "weights")
            if self.step % report == 0 or self.step == clock.steps:
                mean, count = float(recent) / count, 0
                recent.zero_()
                self._report(clock, mean, check=self.step % check == 0)
                if folder and self.step % check == 0:
                    checkpoints.save(self.checkpoint(), folder)
        stream.close()
        mean = float(recent) / count if count else mean
        if folder:
            checkpoints.save(self.checkpoint(), folder)
        return Outcome(self.model, self.step, clock.steps, mean, clock.speed())

    def rehearse(self) -> None:
        """Compile the work of both masking rates, and learn nothing."""
        stream = self._batches(ahead=False)
        batch = next(stream)
        self.batch -= 1
        for late in (True, False):
            torch.autograd.backward(self._loss(batch, late))
            for weight in self.weights.values():
                weight.grad = None

    def _learn(self, batch: Batch, late: bool, factor: float) -> Tensor:
        loss = self._loss(batch, late)
        torch.autograd.backward(loss)
        self.optimizer.step(factor)
        return loss.detach()

    def _loss(self, batch: Batch, late: bool) -> Tensor:
        recipe = self.recipe
        if self.causal:
            every = torch.arange(recipe.batch_tokens, device=self.device)
            return self.model.loss(batch, every, next_tokens(batch))
        rate = recipe.late_mask if late else recipe.mask
        count = int(rate * (recipe.batch_tokens - 2 * self.packer.rows)) // 8 * 8
        generator = torch.Generator(self.device).manual_seed(recipe.seed * 1_000_003 + self.step)
        hidden = hide(batch, count, recipe.vocabulary, generator, continues=self.continues)
        return self.model.loss(*hidden)

    def _batches(self, *, ahead: bool) -> Generator[Batch, None, None]:
        """Batches without end, from where the run stands."""
        epochs = self.packer.epochs(self.epoch, ahead=ahead)
        for made in epochs:
            starts = torch.from_numpy(made.starts).to(self.device)
            bounds = torch.from_numpy(made.bounds).to(self.device, torch.int32)
            while self.batch < len(starts):
                place = self.batch
                self.batch += 1
                yield gather(
                    self.tokens,
                    starts[place],
                    bounds[place],
                    self.recipe.batch_tokens,
                    self.recipe.max_positions,
                    CAUSAL_MARKS if self.causal else MARKS,
                )
            self.epoch, self.batch = self.epoch + 1, 0

    def _report(self, clock: _Clock, mean: float, *, check: bool) -> None:
        line = (
            f"step {self.step:,}/{clock.steps:,}  epoch {self.epoch}  loss {mean:.4f}  "
            f"{clock.speed() / 1e6:.2f} M tokens/s  {clock.elapsed():.0f} s"
        )
        if check and self.data.validation:
            quick = replace(self.model, compiled=False)
            line += f"  validation {losses(quick, self.data.validation).full:.4f}"
        self.say(line)
        if not np.isfinite(mean):
            raise EvenhandError(f"step {self.step}: the loss is {mean}; try a lower learning rate")


class _Clock:
    """Counts steps and time, and fits the number of steps to the time there is."""

    def __init__(self, limits: Limits, run: Run) -> None:
        self.limits, self.run = limits, run
        self.started = self.mark = time.time()
        self.first = self.marked = run.step
        self.steps = _NO_END if limits.steps is None else limits.steps

    def over(self) -> bool:
        """Whether the time is up."""
        return self.limits.deadline is not None and time.time() > self.limits.deadline

    def tick(self, late: bool) -> None:
        """Note a step; set the mark once the first steps are done, and fit while it still can."""
        done = self.run.step - self.first
        if done == _SETTLE:
            self.mark, self.marked = time.time(), self.run.step
        fits = self.limits.steps is None and not late and done >= _SETTLE + _TIMED
        if fits and done % _TIMED == 0 and self.limits.deadline is not None:
            left = max(0.0, self.limits.deadline - time.time())
            self.steps = self.run.step + max(1, int(0.995 * left * self._rate()))

    def _rate(self) -> float:
        """Steps a second since the mark."""
        return (self.run.step - self.marked) / max(time.time() - self.mark, 1e-9)

    def speed(self) -> float:
        """Tokens a second since the mark."""
        return self._rate() * self.run.recipe.batch_tokens

    def elapsed(self) -> float:
        return time.time() - self.started
