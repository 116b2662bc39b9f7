r"""Agreement of annotators above chance, from how often each unit was put in each category.

With $n_{uc}$ verdicts of category c on unit u, $m_u$ on u, $n_c$ in category c and n in all, the
disagreement of a unit is $d_u = (m_u^2 - \sum_c n_{uc}^2) / (m_u - 1)$, and both coefficients are
$1 - \sum_u d_u (n - s) / (n^2 - \sum_c n_c^2)$: Fleiss' kappa (1971) with s = 0, Krippendorff's
nominal alpha (2004) with s = 1, the correction for small samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats, jackknife


def count_verdicts(ratings: Sequence[Sequence[str | None]]) -> tuple[tuple[str, ...], Floats]:
    """The categories, and how often each unit (a row of verdicts) was put in each.

    >>> names, counts = count_verdicts([["yes", "yes", None], ["no", "yes", "no"]])
    >>> names, counts.tolist()
    (('no', 'yes'), [[0.0, 2.0], [2.0, 1.0]])
    """
    names = tuple(sorted({verdict for unit in ratings for verdict in unit if verdict is not None}))
    counts = [[sum(verdict == name for verdict in unit) for name in names] for unit in ratings]
    return names, np.array(counts, dtype=float).reshape(len(counts), len(names))


def fleiss_kappa(counts: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    """Fleiss' kappa of units × categories counts, every unit judged by as many annotators.

    Returns
    -------
    tuple of float
        Value, low and high: the jackknife over units, with room for one more unit.

    Examples
    --------
    >>> value, low, high = fleiss_kappa([[4, 0], [4, 0], [3, 1], [0, 4], [1, 3], [4, 0]])
    >>> round(value, 3)
    0.625

    """
    table = _check_counts(counts)
    judged = np.unique(table.sum(axis=1))
    if judged.size != 1 or judged[0] < 2:
        raise InputError(
            "fleiss_kappa: expected as many verdicts on every unit, two or more, got "
            + " and ".join(f"{n:g}" for n in judged[:3])
        )
    return _measure(table, 0, prob)


def krippendorff_alpha(counts: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    """Krippendorff's nominal alpha of units × categories counts; verdicts may be missing.

    Units with fewer than two verdicts cannot agree or disagree: they are left out. Value, low and
    high are as those of `fleiss_kappa`.

    Examples
    --------
    >>> value, low, high = krippendorff_alpha([[4, 0], [3, 0], [2, 1], [0, 4], [1, 0]])
    >>> round(value, 3)
    0.711

    """
    table = _check_counts(counts)
    pairable = table[table.sum(axis=1) >= 2]
    if not len(pairable):
        raise InputError("krippendorff_alpha: expected units with two verdicts or more, got none")
    return _measure(pairable, 1, prob)


def observed_agreement(counts: ArrayLike) -> float:
    """The share of pairs of verdicts that agree, over units with two verdicts or more."""
    table = _check_counts(counts)
    pairable = table[table.sum(axis=1) >= 2]
    return float(1 - _disagreement(pairable).sum() / pairable.sum())


def _check_counts(counts: ArrayLike) -> Floats:
    table = np.asarray(counts, dtype=float)
    if table.ndim != 2 or not table.size:
        raise InputError(f"counts: expected units × categories, got the shape {table.shape}")
    if not (np.isfinite(table).all() and (table >= 0).all() and (table == table.round()).all()):
        raise InputError("counts: expected whole numbers, 0 or more")
    return table


def _measure(table: Floats, correction: int, prob: float) -> tuple[float, float, float]:
    """The coefficient and the jackknife's interval, widened to those that one more unit could give.

    Where one category is rare the sample often holds too few units of it: in simulations of 30
    units the jackknife alone covered as little as 37 percent where 95 was requested. Adding a unit
    that all put in the rarest category, or one that the annotators split evenly over the two most
    common, makes up for those not seen; the interval then errs on the wide side.
    """
    totals, judged = table.sum(axis=0), int(table.sum(axis=1).max())
    value = float(_coefficient(_disagreement(table).sum(), totals, correction))
    if math.isnan(value):
        return value, -1.0, 1.0
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0]
    rare, split = np.zeros((2, 1, totals.size))
    rare[0, order[-1]] = judged
    split[0, order[:2]] = judged - judged // 2, judged // 2
    tables = (table, np.concatenate([table, rare]), np.concatenate([table, split]))
    ends = [_jackknife(each, correction, prob) for each in tables]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return value, max(low, -1.0), min(high, 1.0)


def _jackknife(table: Floats, correction: int, prob: float) -> tuple[float, float]:
    disagreement, totals = _disagreement(table), table.sum(axis=0)
    without = _coefficient(disagreement.sum() - disagreement, totals - table, correction)
    value = float(_coefficient(disagreement.sum(), totals, correction))
    return jackknife(value, without, prob)


def _disagreement(table: Floats) -> Floats:
    """The disagreement of each unit."""
    judged = table.sum(axis=1)
    disagreement: Floats = (judged**2 - (table**2).sum(axis=1)) / (judged - 1)
    return disagreement


def _coefficient(
    disagreement: float | Floats, totals: Floats, correction: int
) -> NDArray[np.float64] | np.float64:
    """1 - observed / expected disagreement; NaN where all verdicts are of one category."""
    n = totals.sum(axis=-1)
    pairs = n**2 - (totals**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pairs > 0, 1 - disagreement * (n - correction) / pairs, np.nan)
