r"""The odds ratio of a two-by-two table, its intervals and its test.

The table counts rows by gender and class: $a$ men in the class and $b$ outside it, $c$ women in
it and $d$ outside. Its odds ratio is $(a/b) / (c/d)$. A table with an empty row or column says
nothing: the value is NaN and the intervals are all that is possible.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

import numpy as np

from evenhand.errors import UnknownNameError
from evenhand.statistics.intervals import Floats

LeaningRule: TypeAlias = Literal["odds", "point", "share"]
"""How a class leans: by the interval of its odds ratio against the other classes, by the odds ratio
alone (El Zein 2021, §4.1.1), or by which gender has more texts in it."""
Leaning: TypeAlias = Literal["male", "female", "even", "unknown"]

_BLOCK = 2048
_NEGLIGIBLE = 50.0
"""Terms this far below the largest, in logarithms, add nothing to a sum of doubles."""


def odds_ratio(a: int, b: int, c: int, d: int, prob: float = 0.95) -> tuple[float, float, float]:
    r"""The odds ratio with an interval that is normal on the logarithm.

    Parameters
    ----------
    a, b, c, d : int
        The cells of the table, row by row.
    prob : float
        The probability of the interval.

    Returns
    -------
    tuple of float
        Value, low and high.

    Notes
    -----
    $\log(ad/bc) \pm z \sqrt{1/a + 1/b + 1/c + 1/d}$ (Woolf 1955). Where a cell is 0, one half is
    added to all four (Haldane 1956; Anscombe 1956).

    Examples
    --------
    >>> [round(x, 3) for x in odds_ratio(30, 70, 10, 90)]
    [3.857, 1.767, 8.422]

    """
    from scipy.special import ndtri

    if 0 in (a + b, c + d, a + c, b + d):
        return math.nan, 0.0, math.inf
    value, error = _sample_odds(a, b, c, d)
    half = float(ndtri((1 + prob) / 2)) * error
    return value, value * math.exp(-half), value * math.exp(half)


def class_odds_ratios(men: Sequence[int], women: Sequence[int], prob: float = 0.95) -> Floats:
    """The odds ratio of each class against the other classes, (classes, 3): value, low, high.

    (m_j / Σ m_i) / (f_j / Σ f_i) over i ≠ j, from the texts of men and of women in each class (El
    Zein 2021, eq. 18).

    >>> class_odds_ratios([30, 60], [20, 5])[:, 0].round(3).tolist()
    [0.125, 8.0]
    """
    all_men, all_women = sum(men), sum(women)
    rows = [
        odds_ratio(m, all_men - m, f, all_women - f, prob) for m, f in zip(men, women, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def class_leanings(
    men: Sequence[int], women: Sequence[int], by: LeaningRule = "odds", prob: float = 0.95
) -> tuple[Leaning, ...]:
    """The gender that each class leans to, from its texts of men and of women.

    Parameters
    ----------
    men, women : sequence of int
    by : {"odds", "point", "share"}
        By "odds" a class leans male where the interval of its odds ratio lies above 1, female where
        it lies below, and is even where it includes 1; by "point" the odds ratio itself decides;
        by "share" which gender has more texts in the class.
    prob : float
        The probability of the interval.

    Returns
    -------
    tuple of str
        Unknown are classes without any text of known gender and, by the odds, those of data that
        have one gender or one class only.

    Examples
    --------
    >>> class_leanings([30, 60], [20, 5]), class_leanings([30, 60], [20, 5], "share")
    (('female', 'male'), ('male', 'male'))

    """
    if by not in get_args(LeaningRule):
        raise UnknownNameError("leaning", by, get_args(LeaningRule))
    m, f = np.asarray(men), np.asarray(women)
    known = m + f > 0
    if by == "share":
        male, female = m > f, f > m
    else:
        values, lows, highs = class_odds_ratios(men, women, prob).T
        known &= ~np.isnan(values)
        ends = (values, values) if by == "point" else (lows, highs)
        male, female = ends[0] > 1, ends[1] < 1
    names = np.select([~known, male, female], ["unknown", "male", "female"], "even")
    return tuple(names.tolist())


@lru_cache(maxsize=4096)
def fisher_test(a: int, b: int, c: int, d: int) -> float:
    """The two-sided p-value of Fisher's exact test.

    A p-value too small for a double reads as the smallest one, never as 0.
    """
    from scipy.stats import fisher_exact

    if 0 in (a + b, c + d, a + c, b + d):
        return 1.0
    return max(float(fisher_exact(np.array([[a, b], [c, d]])).pvalue), sys.float_info.min)


@lru_cache(maxsize=4096)
def conditional_interval(a: int, b: int, c: int, d: int, prob: float = 0.95) -> tuple[float, float]:
    r"""The exact interval of the odds ratio given the margins (Fisher 1935; Cornfield 1956).

    Given its margins the table's first cell is noncentral hypergeometric, $P(x) \propto
    \binom{a+b}{x} \binom{c+d}{a+c-x} \psi^x$. The limits are the $\psi$ at which the tail from the
    observed $a$ on, upward and downward, has probability $(1 - prob)/2$.

    >>> [round(x, 3) for x in conditional_interval(7, 100, 2, 120)]
    [0.772, 42.079]
    """
    if 0 in (a + b, c + d, a + c, b + d):
        return 0.0, math.inf
    tail = (1 - prob) / 2
    above = _lower_limit(b, a, d, c, tail)
    return _lower_limit(a, b, c, d, tail), 1 / above if above > 0 else math.inf


def _sample_odds(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The odds ratio and the standard error of its log, one half added where a cell is 0."""
    if 0 in (a, b, c, d):
        a, b, c, d = a + 0.5, b + 0.5, c + 0.5, d + 0.5
    return a * d / (b * c), math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)


def _lower_limit(a: int, b: int, c: int, d: int, tail: float) -> float:
    """The odds ratio at which a first cell of `a` or more has probability `tail`."""
    from scipy.optimize import brentq

    if a == 0 or d == 0:  # the smallest cell that the margins allow: every ratio down to 0 fits it
        return 0.0

    def excess(log_ratio: float) -> float:
        up = _log_sum(log_ratio, a, b, c, d)
        down = _log_sum(-log_ratio, b, a, d, c)
        # both sums hold the observed table's own term, 1
        rest = down + math.log(-math.expm1(-down)) if down > 0 else -math.inf
        return up - float(np.logaddexp(up, rest)) - math.log(tail)

    centre, error = _sample_odds(a, b, c, d)
    low = high = math.log(centre)
    step = error
    while excess(low) > 0:
        low -= step
        step *= 2
    step = error
    while excess(high) < 0:
        high += step
        step *= 2
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def _log_sum(log_ratio: float, a: int, b: int, c: int, d: int) -> float:
    r"""$\log \sum_{i \ge 0} P(a+i)/P(a)$, from the ratios of neighbouring terms.

    Adding one to the first cell multiplies the probability by $\psi bc / ((a+1)(d+1))$. The terms
    rise to one mode at most and fall ever faster after it, so the sum ends where they are
    negligible.
    """
    longest = min(b, c)
    parts: list[Floats] = [np.zeros(1)]
    largest = last = 0.0
    for start in range(0, longest, _BLOCK):
        i = np.arange(start, min(start + _BLOCK, longest), dtype=float)
        ratios = log_ratio + np.log((b - i) / (a + 1 + i)) + np.log((c - i) / (d + 1 + i))
        terms = last + np.cumsum(ratios)
        parts.append(terms)
        largest, last = max(largest, float(terms.max())), float(terms[-1])
        if last < largest - _NEGLIGIBLE:
            break
    log_terms = np.concatenate(parts)
    return largest + math.log(float(np.exp(log_terms - largest).sum()))
