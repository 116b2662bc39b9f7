"""Validation loss on held-out documents, with the same tokens to predict every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from .masking import CAUSAL_MARKS, IGNORED, MARKS, gather, hide, next_tokens
from .model import Batch, Model
from .packing import Rows, batches, pack
from .prepared import Text

RATE = 0.15
LIMIT = 128
_TOKENS = 16_384


@dataclass(frozen=True)
class Task:
    """Tokens to predict: the batch, their places or those before them, what they are."""

    batch: Batch
    places: Tensor
    labels: Tensor
    full: bool
    """Whether the rows are filled up; if not, they are ends of documents."""


@dataclass(frozen=True)
class Losses:
    """Mean loss in nats over the tokens to predict, by where they are."""

    full: float
    """On rows that ended because the next sentence did not fit."""
    every: float
    """On all rows, ends of documents included."""
    tokens: int
    """Tokens that `every` is the mean of."""


def validation_tasks(
    text: Text,
    vocabulary: int,
    longest: int,
    *,
    draws: int = 1,
    only_mask: bool = False,
    causal: bool = False,
) -> list[Task]:
    """Rows of whole sentences, filled up to 128 tokens, with 15 % of the tokens chosen.

    The standard scheme hides 80 % of the chosen by `[MASK]` and 10 % by a random piece and leaves
    10 % as they are; with `only_mask` all are hidden by `[MASK]`. The loss is over all the chosen.
    `draws` repeats it with other tokens. Made on the CPU: the masks do not depend on the device.
    With `causal`, rows are filled up to the longest row and all tokens are predicted.
    """
    limit = longest if causal else min(LIMIT, longest)
    rows = pack(text, {limit: 1.0}, np.ones(len(text.lengths), dtype=bool), limit, 0)
    tokens = torch.from_numpy(text.tokens.astype(np.int16))
    tasks = []
    for full in (True, False):
        laid = _laid(tokens, rows, rows.full == full, limit, CAUSAL_MARKS if causal else MARKS)
        for number, (batch, content) in enumerate(laid):
            if causal:
                labels = next_tokens(batch)
                places = torch.nonzero(labels != IGNORED)[:, 0]
                tasks.append(Task(batch, places, labels[places], full))
                continue
            for draw in range(draws):
                generator = torch.Generator().manual_seed(1_000_003 * draw + number)
                count = max(1, round(RATE * content))
                hidden = hide(batch, count, vocabulary, generator, only_mask=only_mask)
                tasks.append(Task(*hidden, full))
    return tasks


def _laid(
    tokens: Tensor,
    rows: Rows,
    chosen: NDArray[np.bool_],
    limit: int,
    marks: tuple[int, int, int],
) -> Iterator[tuple[Batch, int]]:
    """The chosen rows in batches, each with the number of its ordinary tokens."""
    some = Rows(rows.starts[chosen], rows.sizes[chosen], rows.full[chosen])
    if not len(some.starts):
        return
    order = np.arange(len(some.starts))
    average = int(_TOKENS / np.mean(some.sizes + 2))
    laid = batches(some, _TOKENS, average, limit, order)
    for starts, bounds in zip(laid.starts, laid.bounds, strict=True):
        content = int((np.diff(bounds) - 2)[starts >= 0].sum())
        limits = torch.from_numpy(bounds).to(torch.int32)
        yield gather(tokens, torch.from_numpy(starts), limits, _TOKENS, limit, marks), content


@torch.no_grad()
def losses(model: Model, tasks: list[Task]) -> Losses:
    """The mean loss of a model on validation tasks."""
    totals, counts = {True: 0.0, False: 0.0}, {True: 0, False: 0}
    for task in tasks:
        batch, places = model.here(task.batch), task.places.to(model.device)
        labels = task.labels.to(model.device)
        scores = model.logits(batch, places)
        totals[task.full] += float(functional.cross_entropy(scores, labels, reduction="sum"))
        counts[task.full] += len(labels)
    count = sum(counts.values())
    return Losses(totals[True] / max(counts[True], 1), sum(totals.values()) / max(count, 1), count)
