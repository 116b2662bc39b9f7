"""Analogies a : b :: c : ?, with and without the input words allowed as answers.

The answer maximises cos(x, b - a + c), all vectors at length one (3CosAdd, Mikolov et al. 2013).
Most implementations never return a, b or c, so "man : doctor :: woman : ?" cannot be answered
"doctor" and looks biased by construction (Nissim, van Noord & van der Goot 2019). Both answers
side by side make the artefact visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, VocabularyError
from evenhand.intervals import Floats, crossed_mean, wilson
from evenhand.results import Measurement
from evenhand.vectors.debias.projection import row_lengths
from evenhand.vectors.metrics.reading import Options, Settings
from evenhand.vectors.store import Vectors

__all__ = ["Answer", "Answers", "accuracy", "analogies", "analogy"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate and its cosine with b - a + c."""

    word: str
    score: float
    row: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The best answers to one analogy: all words allowed, and the three inputs barred."""

    question: tuple[str, str, str]
    allowed: tuple[Answer, ...]
    barred: tuple[Answer, ...]


def analogy(v: Vectors, a: str, b: str, c: str, *, n: int = 10) -> Answers:
    """The n best answers to a : b :: c : ?, with the inputs allowed and barred.

    >>> import evenhand as eh
    >>> answers = analogy(eh.vectors.load("glove"), "man", "king", "woman")
    >>> answers.allowed[0].word, answers.barred[0].word
    ('king', 'queen')
    """
    return _answers(v, [(a, b, c)], v.find((a, b, c)).missing, n)[0]


def analogies(
    v: Vectors,
    pairs: Sequence[tuple[str, str]],
    words: Sequence[str],
    *,
    n: int = 5,
    query: str = "analogies",
    **settings: Unpack[Settings],
) -> Measurement:
    """For each pair a, c and each word w: a : w :: c : ?.

    The value is the share of questions whose freely chosen answer is w itself: what a barred
    search can never return, and what a vector space without bias in these words returns always.
    """
    options = Options(**settings)
    pairs, words = [(a, c) for a, c in pairs], list(words)
    ends = [word for pair in pairs for word in pair]
    missing = v.find([*ends, *words]).missing
    questions = [
        (a, word, c) for a, c in pairs for word in words if not {a, word, c} & set(missing)
    ]
    if not questions:
        raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
    answers = _answers(v, questions, missing, n)
    same = [_is(v, answer.allowed, answer.question[1]) for answer in answers]
    share, low, high = _crossed_share(
        np.array(same).reshape(-1, len({word for _, word, _ in questions})), options.prob
    )
    items = tuple(
        {
            "word": answer.question[1],
            "group": f"{answer.question[0]}→{answer.question[2]}",
            "score": float(kept),
            "allowed": answer.allowed[0].word,
            "barred": answer.barred[0].word,
            "top_allowed": [candidate.word for candidate in answer.allowed],
            "top_barred": [candidate.word for candidate in answer.barred],
        }
        for answer, kept in zip(answers, same, strict=True)
    )
    return Measurement(
        metric="analogies", query=query, value=share, low=low, high=high, prob=options.prob,
        n=len(same), ideal=1.0, worse="lower", items=items, left_out=missing, seed=options.seed,
        interval="two-way random effects over pairs and words",
        notes=("an answer other than the word itself need not be a stereotype: read the items",),
    )  # fmt: skip


def accuracy(
    v: Vectors,
    questions: Sequence[tuple[str, str, str, str]],
    *,
    query: str = "factual analogies",
    **settings: Unpack[Settings],
) -> Measurement:
    """The share of analogies with a known answer that the barred search gets right: a control
    that shows how good the vectors are at all.
    """
    options = Options(**settings)
    missing = v.find([word for question in questions for word in question]).missing
    kept = [question for question in questions if not set(question) & set(missing)]
    if not kept:
        raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
    answers = _answers(v, [question[:3] for question in kept], missing, 1)
    right = [
        _is(v, answer.barred, question[3]) for answer, question in zip(answers, kept, strict=True)
    ]
    share, low, high = wilson(sum(right), len(right), options.prob)
    items = tuple(
        {
            "word": question[1], "group": f"{question[0]}→{question[2]}", "score": float(ok),
            "expected": question[3], "barred": answer.barred[0].word,
            "allowed": answer.allowed[0].word,
        }
        for question, answer, ok in zip(kept, answers, right, strict=True)
    )  # fmt: skip
    return Measurement(
        metric="analogy_accuracy", query=query, value=share, low=low, high=high,
        prob=options.prob, n=len(right), ideal=1.0, worse="lower", items=items, left_out=missing,
        seed=options.seed,
        interval="Wilson score over the questions, though questions of one kind share words",
    )  # fmt: skip


def _is(v: Vectors, answers: Sequence[Answer], word: str) -> bool:
    """Is the best answer this word, however it is spelt in the vectors?"""
    return bool(answers) and answers[0].row == v.find([word]).rows[0]


def _crossed_share(same: NDArray[np.bool_], prob: float) -> tuple[float, float, float]:
    """The share of a table of pairs × words, whose cells are not independent.

    Where all answers agree the cells' spread says nothing: then it is Wilson's for the words.
    """
    rows, words = same.shape
    if same.all() or not same.any() or rows == 1:
        share, low, high = wilson(int(same.mean(axis=0).round().sum()), words, prob)
        return float(same.mean()), low, high
    share, low, high = crossed_mean(same.astype(float), prob=prob)
    return share, max(0.0, low), min(1.0, high)


def _answers(
    v: Vectors, questions: Sequence[tuple[str, str, str]], missing: Sequence[str], n: int
) -> list[Answers]:
    if n < 1:
        raise InputError(f"n: expected at least 1 answer, got {n}")
    if missing and any(set(question) & set(missing) for question in questions):
        raise VocabularyError(f"analogy: not in {v.name}: {', '.join(missing)}")
    if len(v) < 4:
        raise VocabularyError(f"analogy: expected at least 4 words in {v.name}, got {len(v)}")
    rows = np.stack([[v.find([word]).rows[0] for word in question] for question in questions])
    a, b, c = (v.unit(rows[:, i]) for i in range(3))
    targets = (b - a + c).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    norms = row_lengths(v.matrix)
    take = min(n + 3, len(v))
    result = []
    for i, question in enumerate(questions):
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.nan_to_num((v.matrix @ targets[i]) / norms, nan=-2.0)
        best = np.argpartition(-scores, take - 1)[:take]
        best = best[np.argsort(-scores[best], kind="stable")]
        result.append(
            Answers(
                question=question,
                allowed=_candidates(v, best[:n], scores),
                barred=_candidates(v, best[~np.isin(best, rows[i])][:n], scores),
            )
        )
    return result


def _candidates(v: Vectors, rows: NDArray[np.intp], scores: Floats) -> tuple[Answer, ...]:
    return tuple(Answer(v.words[row], float(scores[row]), int(row)) for row in rows)
