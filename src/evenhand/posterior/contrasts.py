"""Contrasts between connection classes from the joint posterior, and their change.

associated - different is δ, the difference of the same attribute between its own class and the
others. Dobrzeniecka (2021) computes no contrasts; those of her models with the control words have
intervals that are too short, because the models treat the rows of an attribute as independent.

The difference of two crossed models is a crossed model. Fitted to the differences of the common
cells of two tables, it gives intervals of the change, in which everything that the tables share
cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.fits import Fit, Summary, summarise
from evenhand.posterior.models import Priors, fit
from evenhand.posterior.tables import CONNECTIONS, GROUP_OF, Table, pair_tables, read_table

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = [
    "CONTRASTS",
    "Change",
    "Named",
    "class_contrasts",
    "compare_tables",
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
        Named(
            "",
            label,
            "associated-different",
            summarise(drawn[..., labels == label].mean(axis=-1), prob),
        )
        for label in dict.fromkeys(fit.table.word_class)
        if label
    ]


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


SAME = 1e-4
"""Distances nearer than this are the same but for rounding in single precision."""

HARD = (
    "hard debiasing makes associated-different zero by construction, since equalised words become "
    "identical: do not score it with this contrast, but with attributes that it did not touch and "
    "with the tests for hidden bias"
)


@dataclass(frozen=True, slots=True)
class Change:
    """The model of the table before, after, and of the differences, on the cells both have.

    `unpaired` counts the rows that only one of the tables has; `equalised` names the protected
    words that after, and not before, are as far from every stereotype as another one is.
    """

    before: Fit
    after: Fit
    change: Fit
    dropped: Mapping[str, Mapping[str, int]]
    unpaired: Mapping[str, int]
    equalised: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must know."""
        if not self.equalised:
            return (HARD,)
        names = ", ".join(self.equalised)
        return (HARD, f"after, these are as far from every stereotype as another word: {names}")

    def levels(self, prob: float = 0.89) -> dict[str, dict[str, Summary]]:
        """Before, after and change of each connection class's mean distance."""
        return _side_by_side({k: v.coefficients(prob) for k, v in self._fits().items()})

    def contrasts(self, prob: float = 0.89) -> dict[str, dict[str, Summary]]:
        """Before, after and change of each contrast."""
        return _side_by_side({k: connection_contrasts(v, prob) for k, v in self._fits().items()})

    def words(self, prob: float = 0.89) -> list[Named]:
        """The change of each word's mean distance to each connection class, and of its δ_i."""
        return [*word_levels(self.change, prob), *word_contrasts(self.change, prob)]

    def _fits(self) -> dict[str, Fit]:
        return {"before": self.before, "after": self.after, "change": self.change}

    def as_dict(self, prob: float = 0.89) -> dict[str, Any]:
        return {
            "rows": self.change.table.rows,
            "dropped": self.dropped,
            "unpaired": self.unpaired,
            "prob": prob,
            "levels": self.levels(prob),
            "contrasts": self.contrasts(prob),
            "words": self.words(prob),
            "equalised": self.equalised,
            "notes": self.notes,
        }


def compare_tables(
    before: Source,
    after: Source,
    *,
    priors: Priors | None = None,
    draws: int = 4000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Change:
    """Fit crossed before, after, and to the differences; there the levels' prior is about 0.

    `progress` is told after each fit how many of them are done, of how many.
    """
    one, two = read_table(before), read_table(after)
    first, second, unpaired = pair_tables(one, two)
    gap = second.distance - first.distance
    if float(np.ptp(gap)) < 1e-9:
        raise InputError(
            f"{one.source} and {two.source}: every distance is the same or moved by the same "
            f"{gap.mean():g}: there is no change to estimate"
        )
    priors = priors or Priors()
    centred = replace(priors, crossed=replace(priors.crossed, level_mean=0.0))
    moved = first.with_distance(gap, f"{two.source} less {one.source}")
    asked = {"before": (first, priors), "after": (second, priors), "change": (moved, centred)}
    fits = {}
    for name, (table, prior) in asked.items():
        fits[name] = fit(table, priors=prior, draws=draws, seed=seed)
        if progress is not None:
            progress(len(fits), len(asked))
    return Change(
        **fits,
        dropped={"before": one.dropped, "after": two.dropped},
        unpaired=unpaired,
        equalised=tuple(sorted(set(equalised(second)) - set(equalised(first)))),
    )


def equalised(table: Table) -> tuple[str, ...]:
    """The protected words that are as far from every stereotype (two at least) as another one."""
    wide = np.full((len(table.words), len(table.attributes)), np.nan)
    wide[table.word, table.attribute] = table.distance
    wide = wide[:, table.group == 0]
    gap = np.abs(wide[:, None] - wide[None])
    same = np.all(np.isnan(gap) | (gap < SAME), axis=2) & (np.sum(~np.isnan(gap), axis=2) > 1)
    np.fill_diagonal(same, False)
    return tuple(table.words[i] for i in np.flatnonzero(same.any(axis=1)))


def _side_by_side(
    parts: Mapping[str, Mapping[str, Summary]],
) -> dict[str, dict[str, Summary]]:
    return {name: {when: part[name] for when, part in parts.items()} for name in parts["change"]}
