"""The scoring core: log probabilities of tokens at places of token rows, for everything else here.

Rows that are the same are computed once, rows of one length share a batch without padding, and the
head is asked at the places in question only. Whatever the batch, the numbers are those of a plain
call of the model (to rounding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.masked.forward import hidden_of, logits_of
from evenhand.masked.model import MaskedLM, Model

if TYPE_CHECKING:
    import torch

__all__ = ["Place", "Top", "log_probs", "target_log_probs", "top_k"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]

BATCH_TOKENS = 8192
"""Tokens of a batch: more save little time and cost memory."""
HEAD_ROWS = 512
"""Places whose logits over the whole vocabulary are held at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a row of token ids, special tokens included."""

    ids: tuple[int, ...]
    place: int


@dataclass(frozen=True, slots=True)
class Top:
    """The k likeliest tokens of each place: ids and log probabilities (n, k), best first."""

    ids: Ints
    log_probs: Floats


def log_probs(
    model: MaskedLM,
    places: Sequence[Place],
    tokens: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Floats:
    """The log probability of each of the tokens at each place (n, tokens)."""
    import torch

    columns = torch.as_tensor(list(tokens), dtype=torch.long)
    result = np.empty((len(places), len(tokens)))
    for chosen, logits in _logits(model, places, batch_tokens, progress):
        wanted = logits[:, columns.to(logits.device)].double()
        result[chosen] = (wanted - _normaliser(logits)[:, None]).cpu().numpy()
    return result


def target_log_probs(
    model: MaskedLM,
    places: Sequence[Place],
    targets: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Floats:
    """The log probability of one token of its own at each place (n,)."""
    import torch

    if len(places) != len(targets):
        raise InputError(f"targets: expected one a place, got {len(targets)} for {len(places)}")
    wanted = torch.as_tensor(list(targets), dtype=torch.long)
    result = np.empty(len(places))
    for chosen, logits in _logits(model, places, batch_tokens, progress):
        column = wanted[torch.as_tensor(chosen)].to(logits.device)
        own = logits.gather(1, column[:, None])[:, 0].double()
        result[chosen] = (own - _normaliser(logits)).cpu().numpy()
    return result


def top_k(
    model: MaskedLM,
    places: Sequence[Place],
    k: int,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
) -> Top:
    """The k likeliest tokens at each place."""
    ids = np.empty((len(places), k), dtype=np.int64)
    values = np.empty((len(places), k))
    for chosen, logits in _logits(model, places, batch_tokens, progress):
        if not 1 <= k <= logits.shape[1]:
            raise InputError(f"k: expected 1 to {logits.shape[1]}, got {k}")
        best = logits.topk(k, dim=1)
        ids[chosen] = best.indices.cpu().numpy()
        values[chosen] = (best.values.double() - _normaliser(logits)[:, None]).cpu().numpy()
    return Top(ids, values)


def _normaliser(logits: torch.Tensor) -> torch.Tensor:
    return logits.logsumexp(dim=1).double()


def _logits(
    model: MaskedLM, places: Sequence[Place], batch_tokens: int, progress: Progress | None
) -> Iterator[tuple[list[int], torch.Tensor]]:
    """Questions (by their index) and their logits, in pieces; each is answered once."""
    import torch

    done = 0
    with torch.inference_mode():
        for rows, questions in _batches(places, batch_tokens):
            for chosen, logits in _answered(model, places, rows, questions):
                yield chosen, logits
                done += len(chosen)
                if progress is not None:
                    progress(done, len(places))


def _answered(
    model: MaskedLM,
    places: Sequence[Place],
    rows: Sequence[tuple[int, ...]],
    questions: Sequence[tuple[int, int]],
) -> Iterator[tuple[list[int], torch.Tensor]]:
    """The logits of the questions (row of the batch, index) on one batch of rows."""
    import torch

    if not isinstance(model, Model):
        for start in range(0, len(questions), HEAD_ROWS):
            part = questions[start : start + HEAD_ROWS]
            asked = [places[index] for _, index in part]
            answer = model.logits([q.ids for q in asked], [q.place for q in asked])
            yield [index for _, index in part], torch.as_tensor(answer)
        return
    hidden = hidden_of(model.network, torch.tensor(rows, dtype=torch.long, device=model.device))
    for start in range(0, len(questions), HEAD_ROWS):
        part = questions[start : start + HEAD_ROWS]
        at = torch.tensor([row for row, _ in part], device=model.device)
        where = torch.tensor([places[index].place for _, index in part], device=model.device)
        logits = logits_of(model.network, hidden(at, where))
        yield [index for _, index in part], logits.float()


def _batches(
    places: Sequence[Place], batch_tokens: int
) -> Iterator[tuple[list[tuple[int, ...]], list[tuple[int, int]]]]:
    """Distinct rows of one length that fit together, and the questions about them."""
    by_row: dict[tuple[int, ...], list[int]] = {}
    for index, question in enumerate(places):
        if not 0 <= question.place < len(question.ids):
            raise InputError(f"place: expected 0 to {len(question.ids) - 1}, got {question.place}")
        by_row.setdefault(question.ids, []).append(index)
    ordered = sorted(by_row, key=len)
    start = 0
    while start < len(ordered):
        length = len(ordered[start])
        stop = start
        while (
            stop < len(ordered)
            and len(ordered[stop]) == length
            and (stop - start + 1) * length <= max(batch_tokens, length)
        ):
            stop += 1
        rows = ordered[start:stop]
        yield rows, [(row, index) for row, ids in enumerate(rows) for index in by_row[ids]]
        start = stop
