"""Before against after debiasing, paired by protected word and attribute.

The difference of two crossed models is a crossed model: fitted to the differences of the common
cells, it gives intervals on the change itself, in which everything that the two tables share
cancels out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import InputError
from evenhand.posterior.contrasts import Named, connection_contrasts, word_contrasts, word_levels
from evenhand.posterior.diagnostics import Summary
from evenhand.posterior.fits import Fit
from evenhand.posterior.models import Priors, fit
from evenhand.posterior.tables import Table, pair, read_table

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = ["Change", "compare_tables", "equalised"]

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
    first, second, alone = pair(one, two)
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
        unpaired=alone,
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
