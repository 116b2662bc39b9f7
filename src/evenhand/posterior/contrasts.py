"""Contrasts between connection classes from the joint posterior, and their change.

associated - different is δ, the difference of the same attribute between its own class and the
others. Dobrzeniecka (2021) computes no contrasts; those of her models with the control words have
intervals that are too short, because the models treat the rows of an attribute as independent.

The difference of two crossed models is a crossed model, and so it is with the other models. Fitted
to the differences of the common cells of two tables, a model gives intervals of the change, in
which everything that the tables share cancels out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.files import document, save_csv, save_json
from evenhand.posterior.crossed import CROSSED
from evenhand.posterior.fits import (
    INTERVAL,
    Fit,
    measure_all_words,
    measure_contrasts,
    measure_levels,
)
from evenhand.posterior.models import Priors, fit
from evenhand.posterior.tables import (
    Duplicates,
    Source,
    Table,
    pair_tables,
    read_table,
)
from evenhand.posterior.thesis import NAIVE
from evenhand.results import Comparison, Measurement

SAME = 1e-4
"""Distances that differ by less are equal up to rounding in single precision."""

HARD = (
    "hard debiasing makes associated-different zero by construction, because equalised words "
    "have the same distance to every stereotype: evaluate it with attributes that it did not touch "
    "and with the tests for hidden bias, not with this contrast"
)


@dataclass(frozen=True, slots=True, repr=False)
class Change(Result):
    """Fits of the table before, after, and of the differences, on the cells that both have.

    Attributes
    ----------
    before, after, change : Fit
    dropped : mapping
        Dropped rows of both tables by reason.
    unpaired : mapping of str to int
        Number of rows that only one of the tables has.
    equalised : tuple of str
        Protected words that after, but not before, have the same distance to every stereotype as
        another word.
    """

    before: Fit
    after: Fit
    change: Fit
    dropped: Mapping[str, Mapping[str, int]]
    unpaired: Mapping[str, int]
    equalised: tuple[str, ...]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.change.model

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats."""
        notes = [HARD]
        if self.equalised:
            names = ", ".join(self.equalised)
            notes.append(f"after, these have the distances of another word: {names}")
        notes += self.before.notes
        if self.model not in CROSSED:
            notes.append(NAIVE)
        return tuple(notes)

    def contrasts(self, prob: float = 0.95) -> dict[str, Comparison]:
        """Compare every contrast before and after, with parts by class and by word."""
        return self._compare(measure_contrasts, prob)

    def levels(self, prob: float = 0.95) -> dict[str, Comparison]:
        """Compare the mean distance to every connection class, with parts by word.

        baseline has no connection classes: its one level, all, is the mean of its words.
        """
        measure = measure_all_words if self.model == "baseline" else measure_levels
        return self._compare(measure, prob)

    def _compare(
        self, measure: Callable[[Fit, float], dict[str, Measurement]], prob: float
    ) -> dict[str, Comparison]:
        before, after = measure(self.before, prob), measure(self.after, prob)
        notes = self.notes if measure is measure_contrasts else ()
        return {
            name: replace(_compare(before[name], after[name], change), notes=notes)
            for name, change in measure(self.change, prob).items()
        }

    def to_dict(self, prob: float = 0.95) -> dict[str, object]:
        """Return the comparisons and what was left out."""
        return {
            "comparisons": [*self.levels(prob).values(), *self.contrasts(prob).values()],
            "model": self.model,
            "rows": self.change.table.rows,
            "dropped": self.dropped,
            "unpaired": self.unpaired,
            "prob": prob,
            "equalised": self.equalised,
            "notes": self.notes,
        }

    def save(self, folder: str | os.PathLike[str], prob: float = 0.95) -> None:
        """Write results.json and words.csv, the change by protected word, into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        results = self.levels(prob) | self.contrasts(prob)
        rows = [
            {
                "word": part.query,
                "class": part.details.get("class", ""),
                "quantity": name,
                "before": part.before.value,
                "after": part.after.value,
                "change": part.change.value,
                "sd": part.details["sd"],
                "low": part.change.low,
                "high": part.change.high,
                "p_below_zero": part.details["p_below_zero"],
            }
            for name, comparison in results.items()
            for part in comparison.parts
            if part.before.by == "word"
        ]
        save_csv(path / "words.csv", rows)
        save_json(path / "results.json", document(**self.to_dict(prob)))

    def _headline(self) -> str:
        return f"{self.model}: {self.before.table.source} → {self.after.table.source}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        compared = {**self.contrasts(), **self.levels()}
        return [comparison._rows()[0] for comparison in compared.values()]


def _compare(before: Measurement, after: Measurement, change: Measurement) -> Comparison:
    """Compare two posterior quantities by the posterior of their paired difference."""
    return Comparison(
        before=before,
        after=after,
        change=change.estimate,
        interval=INTERVAL + " of the paired differences",
        paired=change.n,
        parts=tuple(
            _compare(*parts) for parts in zip(before.parts, after.parts, change.parts, strict=True)
        ),
        details=change.details,
    )


def compare_tables(
    before: Source,
    after: Source,
    model: str = "crossed",
    *,
    duplicates: Duplicates = "drop",
    priors: Priors | None = None,
    draws: int = 4000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Change:
    """Compare two tables of the same words, such as before and after debiasing.

    Parameters
    ----------
    before, after : path, DataFrame, DistanceTable or Table
        Paired by protected word and attribute.
    model : str, default "crossed"
        Any model of `fit`. Those without attribute effects are for reproduction.
    duplicates : {"drop", "keep"}
        As for `read_table`.
    priors : Priors, optional
    draws : int, default 4000
    seed : int, default 0
    progress : callable, optional
        Called after every fit with the number of fits and their total.

    Returns
    -------
    Change
        Fits of the model to both tables and to the differences; for the differences the prior of
        the levels is centred at 0.
    """
    table_before, table_after = (read_table(t, duplicates=duplicates) for t in (before, after))
    first, second, unpaired = pair_tables(table_before, table_after)
    difference = second.distance - first.distance
    if float(np.ptp(difference)) < 1e-9:
        raise InputError(
            f"{table_before.source} and {table_after.source}: every distance is the same or moved "
            f"by the same {difference.mean():g}: there is no change to estimate"
        )
    priors = priors or Priors()
    centred = Priors(
        thesis=replace(priors.thesis, mean=0.0),
        paper=replace(priors.paper, mean=0.0),
        crossed=replace(priors.crossed, level_mean=0.0),
    )
    moved = first.with_distance(difference, f"{table_after.source} less {table_before.source}")
    tasks = {"before": (first, priors), "after": (second, priors), "change": (moved, centred)}
    fits = {}
    for name, (table, prior) in tasks.items():
        fits[name] = fit(table, model, priors=prior, draws=draws, seed=seed)
        if progress is not None:
            progress(len(fits), len(tasks))
    return Change(
        **fits,
        dropped={"before": table_before.dropped, "after": table_after.dropped},
        unpaired=unpaired,
        equalised=tuple(sorted(set(find_equalised(second)) - set(find_equalised(first)))),
    )


def find_equalised(table: Table) -> tuple[str, ...]:
    """Find protected words with the distances of another word to all stereotypes (at least two)."""
    wide = np.full((len(table.words), len(table.attributes)), np.nan)
    wide[table.word, table.attribute] = table.distance
    wide = wide[:, table.group == 0]
    gap = np.abs(wide[:, None] - wide[None])
    same = np.all(np.isnan(gap) | (gap < SAME), axis=2) & (np.sum(~np.isnan(gap), axis=2) > 1)
    np.fill_diagonal(same, False)
    return tuple(table.words[i] for i in np.flatnonzero(same.any(axis=1)))
