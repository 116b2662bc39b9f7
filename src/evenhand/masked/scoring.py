"""The scoring core: log probabilities of tokens at places of token rows, for everything else here.

Rows that are the same are computed once, rows share a batch without padding, and the last layer
and the head are computed at the places in question only. Whatever the batch, the numbers are
those of a plain call of the model (to rounding).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache, content_key
from evenhand.errors import InputError
from evenhand.masked.forward import Pass, Stage, logits_of
from evenhand.masked.model import MaskedLM, Model

if TYPE_CHECKING:
    import torch

__all__ = ["Answers", "Place", "Top", "ask", "log_probs", "target_log_probs", "top_k"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]

BATCH_TOKENS = 8192
"""Tokens of a batch: more save little time and cost memory."""
HELD = 1 << 21
"""Token ids of rows with a hidden token that are held at once."""
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


@dataclass(frozen=True, slots=True)
class Answers:
    """Log probabilities of chosen tokens (n, tokens) and the likeliest tokens of each place."""

    log_probs: Floats
    top: Top


def ask(
    model: MaskedLM,
    places: Sequence[Place],
    *,
    tokens: Sequence[int],
    k: int,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Answers:
    """The log probability of each of the tokens and the k likeliest tokens, in one pass.

    With a `cache` only what it lacks is computed, and stored batch by batch. A model that has no
    `fingerprint` cannot be told from others and is never cached. `progress` is called with the
    number of places done, cached ones included, and of all places.
    """
    columns = np.broadcast_to(np.array(tokens, dtype=np.int64), (len(places), len(tokens)))
    found = _answers(model, places, columns, k, batch_tokens, progress, cache)
    values, best, ids = np.split(found, [len(tokens), len(tokens) + k], axis=1)
    return Answers(values, Top(ids.astype(np.int64), best))


def log_probs(
    model: MaskedLM,
    places: Sequence[Place],
    tokens: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Floats:
    """The log probability of each of the tokens at each place (n, tokens)."""
    columns = np.broadcast_to(np.array(tokens, dtype=np.int64), (len(places), len(tokens)))
    return _answers(model, places, columns, 0, batch_tokens, progress, cache)


def target_log_probs(
    model: MaskedLM,
    places: Sequence[Place],
    targets: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Floats:
    """The log probability of one token of its own at each place (n,)."""
    if len(places) != len(targets):
        raise InputError(f"targets: expected one a place, got {len(targets)} for {len(places)}")
    columns = np.array(targets, dtype=np.int64)[:, None]
    return _answers(model, places, columns, 0, batch_tokens, progress, cache)[:, 0]


def top_k(
    model: MaskedLM,
    places: Sequence[Place],
    k: int,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Top:
    """The k likeliest tokens at each place."""
    if k < 1:
        raise InputError(f"k: expected at least 1, got {k}")
    return ask(
        model, places, tokens=(), k=k, batch_tokens=batch_tokens, progress=progress, cache=cache
    ).top


def _answers(
    model: MaskedLM,
    places: Sequence[Place],
    columns: Ints,
    k: int,
    batch_tokens: int,
    progress: Progress | None,
    cache: Cache | None,
) -> Floats:
    """A row of numbers a question: log probabilities of its columns, of its k likeliest tokens,
    and the ids of these.
    """
    for question in places:
        if not 0 <= question.place < len(question.ids):
            raise InputError(f"place: expected 0 to {len(question.ids) - 1}, got {question.place}")
    result = np.empty((len(places), columns.shape[1] + 2 * k))
    missing: Sequence[int] = range(len(places))
    keys: list[bytes] = []
    fingerprint = None if cache is None else getattr(model, "fingerprint", None)
    if cache is not None and fingerprint is not None:
        keys = [
            content_key(fingerprint, q.place, k, len(q.ids), *q.ids, *wanted.tolist())
            for q, wanted in zip(places, columns, strict=True)
        ]
        missing = []
        for index, answer in enumerate(cache.get(keys)):
            if answer is None:
                missing.append(index)
            else:
                result[index] = answer
    done = len(places) - len(missing)
    if progress is not None and done:
        progress(done, len(places))
    for chosen, answers in _computed(model, places, missing, columns, k, batch_tokens):
        result[chosen] = answers
        if cache is not None and keys:
            cache.store([keys[index] for index in chosen], answers)
        done += len(chosen)
        if progress is not None:
            progress(done, len(places))
    return result


def _computed(
    model: MaskedLM,
    places: Sequence[Place],
    missing: Sequence[int],
    columns: Ints,
    k: int,
    batch_tokens: int,
) -> Iterator[tuple[list[int], Floats]]:
    """The missing questions, batch by batch, and their answers."""
    import torch

    stages = None
    for batch in _batches(places, missing, batch_tokens):
        chosen: list[int] = []
        answers: list[Floats] = []
        with torch.inference_mode():
            if isinstance(model, Model):
                stages = stages or model.stages()
                logits = _logits(model, batch, stages)
            else:
                logits = _logits_of_any(model, batch)
            for part, found in logits:
                repeats = [len(spot.questions) for spot in part]
                questions = [index for spot in part for index in spot.questions]
                chosen += questions
                answers.append(_read(found, repeats, columns[questions], k))
        yield chosen, np.concatenate(answers)


def _read(logits: torch.Tensor, repeats: Sequence[int], columns: Ints, k: int) -> Floats:
    """The answers out of logits (places, vocabulary), each place asked `repeats` questions."""
    import torch

    size = logits.shape[1]
    if k > size:
        raise InputError(f"k: expected 1 to {size}, got {k}")
    if columns.size and not 0 <= columns.min() <= columns.max() < size:
        wrong = columns.min() if columns.min() < 0 else columns.max()
        raise InputError(f"tokens: expected 0 to {size - 1}, got {wrong}")
    at = torch.arange(len(logits)).repeat_interleave(torch.tensor(repeats)).to(logits.device)
    wanted = torch.as_tensor(columns).to(logits.device)
    best = logits.topk(k, dim=1)
    own = torch.cat([logits[at[:, None], wanted], best.values[at]], dim=1).double()
    own -= logits.logsumexp(dim=1)[at, None]
    return np.asarray(torch.cat([own, best.indices[at]], dim=1).cpu().numpy())


@dataclass(slots=True)
class _Spot:
    """A place of a row of the batch, and the questions that are about it."""

    row: int
    place: int
    questions: list[int]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Distinct rows in order of their length, and the places of them that are asked about."""

    rows: list[tuple[int, ...]]
    spots: list[_Spot]

    @staticmethod
    def of(
        rows: list[tuple[int, ...]], asked: Mapping[tuple[int, ...], Mapping[int, list[int]]]
    ) -> _Batch:
        """The rows with the places and the questions that are asked about them."""
        return _Batch(
            rows,
            [
                _Spot(row, place, questions)
                for row, ids in enumerate(rows)
                for place, questions in asked[ids].items()
            ],
        )


Parts = Iterator[tuple[list[_Spot], "torch.Tensor"]]


def _logits(model: Model, batch: _Batch, stages: Sequence[Stage] | None) -> Parts:
    """The logits of the batch, so many places at once that they fit."""
    passed = Pass(model.network, batch.rows, stages)
    for start in range(0, len(batch.spots), HEAD_ROWS):
        part = batch.spots[start : start + HEAD_ROWS]
        hidden = passed.at([spot.row for spot in part], [spot.place for spot in part])
        yield part, logits_of(model.network, hidden).float()


def _logits_of_any(model: MaskedLM, batch: _Batch) -> Parts:
    """The logits of a model that is asked for rows of one length."""
    import torch

    for _, same in groupby(batch.spots, key=lambda spot: len(batch.rows[spot.row])):
        spots = list(same)
        for start in range(0, len(spots), HEAD_ROWS):
            part = spots[start : start + HEAD_ROWS]
            rows = [batch.rows[spot.row] for spot in part]
            yield part, torch.as_tensor(model.logits(rows, [spot.place for spot in part]))


def _batches(
    places: Sequence[Place], missing: Sequence[int], batch_tokens: int
) -> Iterator[_Batch]:
    """The missing questions by row and place, the rows in order of length, in batches.

    Without what the first batches of a run answered, the batches are the rest of that run's: a
    run that is taken up again computes the same numbers to the last bit.
    """
    by_row: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for index in missing:
        question = places[index]
        by_row.setdefault(question.ids, {}).setdefault(question.place, []).append(index)
    rows: list[tuple[int, ...]] = []
    tokens = 0
    for ids in sorted(by_row, key=len):
        if rows and tokens + len(ids) > batch_tokens:
            yield _Batch.of(rows, by_row)
            rows, tokens = [], 0
        rows.append(ids)
        tokens += len(ids)
    if rows:
        yield _Batch.of(rows, by_row)


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the model reads it, and the positions of its tokens that are not special."""

    ids: tuple[int, ...]
    own: tuple[int, ...]


def tokens_of(model: MaskedLM, text: str) -> Tokens | None:
    """The tokens of a text; None where it is longer than the model accepts."""
    coded = model.tokenizer(text, return_special_tokens_mask=True, verbose=False)
    ids: list[int] = coded["input_ids"]
    if model.tokenizer.mask_token_id in ids:
        raise InputError(f"expected a text without a mask, got {text!r}")
    longest = model.longest if isinstance(model, Model) else model.tokenizer.model_max_length
    if len(ids) > longest:
        return None
    special: list[int] = coded["special_tokens_mask"]
    return Tokens(tuple(ids), tuple(i for i, added in enumerate(special) if not added))


def hidden_log_probs(
    model: MaskedLM,
    rows: Sequence[Sequence[int]],
    places: Sequence[Sequence[int]],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Floats]:
    """The log probability of the token at each position of each row, only that token hidden."""
    mask = model.tokenizer.mask_token_id
    asked = [len(of) for of in places]
    total, done = sum(asked), 0
    answers: list[Floats] = []
    for part in _chunks([len(row) * n for row, n in zip(rows, asked, strict=True)]):
        questions, targets = [], []
        for k in part:
            row = tuple(rows[k])
            for place in places[k]:
                questions.append(Place((*row[:place], mask, *row[place + 1 :]), place))
                targets.append(row[place])
        before = done
        flat = target_log_probs(
            model,
            questions,
            targets,
            batch_tokens=batch_tokens,
            cache=cache,
            progress=None if progress is None else _shifted(progress, before, total),
        )
        done += len(questions)
        ends = np.cumsum([asked[k] for k in part])[:-1]
        answers += [np.asarray(of, dtype=float) for of in np.split(flat, ends)]
    return answers


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


def _chunks(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers, in chunks that are not too large to hold."""
    part: list[int] = []
    held = 0
    for k, size in enumerate(sizes):
        if part and held + size > HELD:
            yield part
            part, held = [], 0
        part.append(k)
        held += size
    if part:
        yield part
