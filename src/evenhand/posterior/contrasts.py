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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.files import document, save_csv, save_json
from evenhand.posterior.crossed import CROSSED
from evenhand.posterior.fits import Fit
from evenhand.posterior.models import Priors, fit
from evenhand.posterior.tables import (
    CONNECTIONS,
    CONTRASTS,
    GROUP_OF,
    Duplicates,
    Table,
    pair_tables,
    read_table,
)
from evenhand.results import Comparison, Measurement
from evenhand.statistics.mcmc import sorted_hdi

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = [
    "Change",
    "compare_tables",
    "contrast_draws",
    "measure_contrasts",
    "measure_levels",
]

Floats = NDArray[np.float64]

DELTA = "associated-different"
INTERVAL = "highest-density interval of the posterior"


def contrast_draws(fit: Fit) -> dict[str, Floats]:
    """Return the draws of every contrast whose two classes the fit has."""
    return {
        f"{first}-{second}": fit.levels[first] - fit.levels[second]
        for first, second in CONTRASTS
        if first in fit.levels and second in fit.levels
    }


def measure_contrasts(fit: Fit, prob: float = 0.95) -> dict[str, Measurement]:
    """Measure the contrasts between connection classes.

    Parameters
    ----------
    fit : Fit
        Draw conclusions from the model crossed; the contrasts of the other models have intervals
        that are too short.
    prob : float, default 0.95
        Probability of the highest-density intervals.

    Returns
    -------
    dict of str to Measurement
        By contrast, such as "associated-different". The value is the posterior mean; `details` has
        the standard deviation `sd`, the 50 % interval `inner_low` and `inner_high`, and
        `p_below_zero`, the probability that the contrast is negative. With crossed,
        associated-different has one part per class and one per protected word.

    Notes
    -----
    Only associated-different compares the same attributes and has the ideal value 0; below 0,
    stereotypes are closer to their own class. The others compare different attributes, which may
    differ for reasons other than bias. So does associated-different in a table of one class, in
    which no attribute is associated with one word and different for another.

    Examples
    --------
    >>> from evenhand.posterior import fit, simulate
    >>> result = fit(simulate(delta=-0.2, seed=1), draws=400)
    >>> delta = measure_contrasts(result)["associated-different"]
    >>> delta.high < 0, [part.query for part in delta.select("class")]
    (True, ['class1', 'class2', 'class3'])
    """
    contrasts = {}
    for name, draws in contrast_draws(fit).items():
        is_delta = name == DELTA
        contrasts[name] = _measure(
            fit,
            draws,
            prob,
            metric="posterior_contrast",
            query=name,
            n=int(np.isin(fit.table.connection, _connections(name)).sum()),
            ideal=0.0 if is_delta and fit.table.shared_attributes else None,
            worse="lower" if name.startswith("associated") else "away",
            parts=tuple(_delta_parts(fit, prob)) if is_delta else (),
        )
    return contrasts


def measure_levels(fit: Fit, prob: float = 0.95) -> dict[str, Measurement]:
    """Measure the mean distance to every connection class.

    Parameters
    ----------
    fit : Fit
    prob : float, default 0.95
        Probability of the highest-density intervals.

    Returns
    -------
    dict of str to Measurement
        By connection class, with one part per protected word; `details` as in `measure_contrasts`.
        Empty for baseline, which has no connection classes. The levels of coefficients are its
        coefficients, of which only differences are identified; those of its words are m + co.
    """
    words: dict[str, list[Measurement]] = {level: [] for level in fit.levels}
    if fit.levels:
        rows = np.bincount(fit.table.word * 4 + fit.table.connection)
        for i, k, draws in _word_level_draws(fit):
            words[CONNECTIONS[k]].append(
                _measure(
                    fit,
                    draws,
                    prob,
                    metric="posterior_level",
                    query=fit.table.words[i],
                    by="word",
                    n=int(rows[i * 4 + k]),
                    group=fit.table.word_class[i],
                )
            )
    return {
        level: _measure(
            fit,
            draws,
            prob,
            metric="posterior_level",
            query=level,
            n=int((fit.table.connection == CONNECTIONS.index(level)).sum()),
            parts=tuple(words[level]),
        )
        for level, draws in fit.levels.items()
    }


def _measure_words(fit: Fit, prob: float) -> dict[str, Measurement]:
    """Measure the mean of all words of baseline, with one part per word."""
    table, means = fit.table, fit.draws["m"]
    fields: dict[str, Any] = {"metric": "posterior_level"}
    words = tuple(
        _measure(
            fit,
            means[..., i],
            prob,
            query=word,
            by="word",
            n=int((table.word == i).sum()),
            group=table.word_class[i],
            **fields,
        )
        for i, word in enumerate(table.words)
    )
    mean = means.mean(axis=-1)
    return {"all": _measure(fit, mean, prob, query="all", n=table.rows, parts=words, **fields)}


def _measure(
    fit: Fit, draws: Floats, prob: float, *, group: str = "", **fields: Any
) -> Measurement:
    """Summarise the draws of one quantity; `group` is the class of a word."""
    ordered = np.sort(draws, axis=None)
    low, high = sorted_hdi(ordered, prob)
    inner_low, inner_high = sorted_hdi(ordered, 0.5)
    details = {
        "model": fit.model,
        "sd": float(np.std(draws, ddof=1)),
        "inner_low": inner_low,
        "inner_high": inner_high,
        "p_below_zero": float(np.mean(draws < 0)),
    }
    return Measurement(
        value=float(np.mean(draws)),
        low=low,
        high=high,
        prob=prob,
        interval=INTERVAL,
        subject=fit.table.source,
        seed=fit.seed,
        notes=fit.notes,
        details={**details, "class": group} if group else details,
        **{"ideal": None, "worse": "away", **fields},
    )


def _connections(contrast: str) -> list[int]:
    return [CONNECTIONS.index(level) for level in contrast.split("-")]


def _delta_parts(fit: Fit, prob: float) -> Iterator[Measurement]:
    """Mean δ_i of every class, then δ_i of every protected word with associated attributes."""
    if "delta_word" not in fit.draws:
        return
    table, deltas = fit.table, fit.draws["delta_word"]
    rows = table.group[table.attribute] == 0
    counts = np.bincount(table.word[rows], minlength=len(table.words))
    associated = np.bincount(table.word[table.connection == 0], minlength=len(table.words)) > 0
    labels = np.array(table.word_class)
    ideal = 0.0 if table.shared_attributes else None
    fields: dict[str, Any] = {"metric": "posterior_contrast", "ideal": ideal, "worse": "lower"}
    for label in dict.fromkeys(table.word_class):
        if label:
            members = labels == label
            draws = deltas[..., members].mean(axis=-1)
            n = int(counts[members].sum())
            yield _measure(fit, draws, prob, query=label, by="class", n=n, **fields)
    for i in np.flatnonzero(associated):
        yield _measure(
            fit,
            deltas[..., i],
            prob,
            query=table.words[i],
            by="word",
            n=int(counts[i]),
            group=table.word_class[i],
            **fields,
        )


def _word_level_draws(fit: Fit) -> Iterator[tuple[int, int, Floats]]:
    """Word, level and the draws of their mean: a sum of effects, or the model's own c."""
    cells = np.unique(fit.table.word * 4 + fit.table.connection)
    pairs = [(int(i), int(k)) for i, k in zip(*np.divmod(cells, 4), strict=True)]
    if "c" in fit.draws:
        columns = {name: k for k, name in enumerate(fit.entries["c"])}
        for i, k in pairs:
            column = columns[f"{fit.table.words[i]}, {CONNECTIONS[k]}"]
            yield i, k, fit.draws["c"][..., column]
        return
    for i, k in pairs:
        level = CONNECTIONS[k]
        if fit.model == "coefficients":
            column = fit.entries["co"].index(level)
            yield i, k, fit.draws["m"][..., i] + fit.draws["co"][..., column]
            continue
        name = GROUP_OF[level]
        total = fit.draws["gamma"][..., fit.entries["gamma"].index(name)]
        total = total + fit.draws["word"][..., i]
        if f"slope_{name}" in fit.draws:
            total = total + fit.draws[f"slope_{name}"][..., i]
        if level == "associated":
            total = total + fit.draws["delta_word"][..., i]
        yield i, k, total


SAME = 1e-4
"""Distances that differ by less are equal up to rounding in single precision."""

NAIVE = (
    "the models of Dobrzeniecka (2021) and of the 2024 paper treat the rows of an attribute as "
    "independent: their intervals for contrasts with human and none words are far too short; draw "
    "conclusions from crossed"
)

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
        return self._compare(_measure_words if self.model == "baseline" else measure_levels, prob)

    def _compare(
        self, measure: Callable[[Fit, float], dict[str, Measurement]], prob: float
    ) -> dict[str, Comparison]:
        before, after = measure(self.before, prob), measure(self.after, prob)
        notes = self.notes if measure is measure_contrasts else ()
        return {
            name: replace(_compare(before[name], after[name], change), notes=notes)
            for name, change in measure(self.change, prob).items()
        }

    def to_dict(self, prob: float = 0.95) -> dict[str, Any]:
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

    def _rows(self) -> Sequence[Mapping[str, Any]]:
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
