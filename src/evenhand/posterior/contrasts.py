"""Differences between connection classes from the joint posterior: what the intervals answer.

associated - different is δ, the same attribute seen from its own class and from the others. The
thesis never computes contrasts, and those of its models with the control words claim too much,
since they take the rows of an attribute for independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.diagnostics import Summary, summarise
from evenhand.posterior.fits import Fit
from evenhand.posterior.tables import CONNECTIONS, GROUP_OF

__all__ = [
    "CONTRASTS",
    "Named",
    "class_contrasts",
    "connection_contrasts",
    "contrast_draws",
    "word_contrasts",
    "word_levels",
]

Floats = NDArray[np.float64]

CONTRASTS = (
    ("associated", "different"),
    ("associated", "human"),
    ("associated", "none"),
    ("human", "none"),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A summary and what it is of: a word or a class, on a level or a contrast."""

    word: str
    group: str
    of: str
    summary: Summary

    def as_dict(self) -> dict[str, Any]:
        return {"word": self.word, "class": self.group, "of": self.of, **self.summary.as_dict()}


def contrast_draws(fit: Fit) -> dict[str, Floats]:
    """The draws of every contrast whose two classes the fit has."""
    return {
        f"{one}-{two}": fit.levels[one] - fit.levels[two]
        for one, two in CONTRASTS
        if one in fit.levels and two in fit.levels
    }


def connection_contrasts(fit: Fit, prob: float = 0.89) -> dict[str, Summary]:
    """Every contrast with its highest-density interval and P(< 0).

    From crossed these are the ones to conclude from; from the thesis' models they are what a
    reader of the thesis would have computed.
    """
    return {name: summarise(draws, prob) for name, draws in contrast_draws(fit).items()}


def word_contrasts(fit: Fit, prob: float = 0.89) -> list[Named]:
    """δ_i: associated - different of each protected word that has both, by the crossed model."""
    drawn = _delta(fit)
    rows = fit.table.connection == 0
    own = np.bincount(fit.table.word[rows], minlength=len(fit.table.words)) > 0
    return [
        Named(word, label, "associated-different", summarise(drawn[..., i], prob))
        for i, (word, label) in enumerate(zip(fit.table.words, fit.table.word_class, strict=True))
        if own[i]
    ]


def class_contrasts(fit: Fit, prob: float = 0.89) -> list[Named]:
    """The mean δ_i over the protected words of each class."""
    drawn = _delta(fit)
    labels = np.array(fit.table.word_class)
    return [
        Named("", label, "associated-different",
              summarise(drawn[..., labels == label].mean(axis=-1), prob))
        for label in dict.fromkeys(fit.table.word_class) if label
    ]  # fmt: skip


def word_levels(fit: Fit, prob: float = 0.89) -> list[Named]:
    """The mean distance of each protected word to each connection class that it has rows in."""
    return [
        Named(fit.table.words[i], fit.table.word_class[i], CONNECTIONS[k], summarise(draws, prob))
        for i, k, draws in _word_level_draws(fit)
    ]


def _word_level_draws(fit: Fit) -> Iterator[tuple[int, int, Floats]]:
    """Word, level and the draws of their mean: a sum of effects, or the model's own c."""
    cells = np.unique(fit.table.word * 4 + fit.table.connection)
    if "c" in fit.draws:
        place = {name: k for k, name in enumerate(fit.entries["c"])}
        for i, k in zip(*np.divmod(cells, 4), strict=True):
            column = place[f"{fit.table.words[i]}, {CONNECTIONS[k]}"]
            yield int(i), int(k), fit.draws["c"][..., column]
        return
    if fit.model == "baseline":
        raise InputError("baseline has no connection classes: expected another model")
    for i, k in zip(*np.divmod(cells, 4), strict=True):
        level = CONNECTIONS[k]
        if fit.model == "coefficients":
            column = fit.entries["co"].index(level)
            yield int(i), int(k), fit.draws["m"][..., i] + fit.draws["co"][..., column]
            continue
        name = GROUP_OF[level]
        total = fit.draws["gamma"][..., fit.entries["gamma"].index(name)]
        total = total + fit.draws["word"][..., i]
        if f"slope_{name}" in fit.draws:
            total = total + fit.draws[f"slope_{name}"][..., i]
        if level == "associated":
            total = total + fit.draws["delta_word"][..., i]
        yield int(i), int(k), total


def _delta(fit: Fit) -> Floats:
    if "delta_word" not in fit.draws:
        raise InputError(f"contrasts by word come from the model crossed, got {fit.model}")
    return fit.draws["delta_word"]
