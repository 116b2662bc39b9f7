"""The judge: every "found", "differs", "first" and "met" comes from here.

A test has a value, an interval, an ideal and usually a p-value. Tests that a reader sees together
are a family, and their p-values are corrected for it. The outcome follows from the corrected
p-value and the interval by the rules of this module, and from nothing else: no other module
compares a p-value or an interval with a threshold. Nothing is worded here; terminals, pages, cards,
gates and notebooks word what the judge says.

The rates at which these rules raise false alarms are simulated through whole commands; they are the
first table of docs/concepts/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.errors import InputError
from evenhand.statistics.power import quantile
from evenhand.statistics.sequential import is_clearly_below
from evenhand.statistics.sizes import SIZES, SizeKind, to_size
from evenhand.statistics.tests import holm

STRONG, SOME = 0.01, 0.05
"""The levels of strong and of some evidence, after the correction."""
NEGLIGIBLE = SIZES["small"]
"""Nothing is found where the whole interval is nearer to no bias than this, on the scale of d."""

Outcome: TypeAlias = Literal["found", "undecided", "none found", "not judged", "not measured"]
"""Of a test. "Not judged" is a value that no rule compares with an ideal."""
Level: TypeAlias = Literal[
    "strong evidence", "some evidence", "undecided", "none found", "not measured"
]
"""Of all tests of a subject together."""
Placement: TypeAlias = Literal["met", "not met", "inconclusive"]
"""Of an interval and the range that a rule allows."""


# --------------------------------------------------------------------------- intervals and limits


def excludes(low: float, high: float, value: float) -> bool:
    """Whether an interval excludes a value.

    >>> excludes(0.1, 0.3, 0.0), excludes(-0.1, 0.3, 0.0), excludes(0.0, 0.3, 0.0)
    (True, False, False)
    """
    return not low <= value <= high


def place(low: float, high: float, minimum: float, maximum: float) -> Placement:
    """Where an interval lies: inside the allowed range, outside of it, or across a limit.

    >>> place(0.1, 0.2, 0.0, 0.3), place(0.4, 0.5, 0.0, 0.3), place(0.2, 0.5, 0.0, 0.3)
    ('met', 'not met', 'inconclusive')
    """
    if any(map(math.isnan, (low, high, minimum, maximum))):
        raise InputError(
            f"limits: expected numbers, got the interval [{low}, {high}] and the range "
            f"{minimum} to {maximum}"
        )
    if minimum <= low and high <= maximum:
        return "met"
    return "not met" if high < minimum or low > maximum else "inconclusive"


def widen(
    interval: tuple[float, float, float],
    prob: float,
    to: float,
    *,
    df: float | None = None,
    ratio: bool = False,
) -> tuple[float, float, float]:
    """An interval (value, low, high) of probability `prob`, at another probability.

    Both arms are stretched by the quotient of the quantiles of Student's distribution with `df`
    degrees of freedom, or of the normal distribution; of a ratio, on the logarithmic scale. This
    is exact for intervals by Student's t or by normal errors, and an approximation for others.

    >>> value, low, high = widen((0.0, -1.96, 1.96), 0.95, 0.99)
    >>> round(low, 2), round(high, 2)
    (-2.58, 2.58)
    """
    value, low, high = interval
    if math.isclose(prob, to) or math.isnan(value):
        return interval
    stretch = quantile((1 + to) / 2, df) / quantile((1 + prob) / 2, df)
    if not ratio:
        return value, value + stretch * (low - value), value + stretch * (high - value)
    if value <= 0:
        return value, 0.0, math.inf
    return (
        value,
        0.0 if low <= 0 else value * (low / value) ** stretch,
        value * (high / value) ** stretch,
    )


def simultaneous(prob: float, family: int) -> float:
    """The probability of each of `family` intervals that all hold together with `prob`.

    >>> round(simultaneous(0.95, 5), 3)
    0.99
    """
    return 1 - (1 - prob) / max(family, 1)


# -------------------------------------------------------------------------------------- the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """The interval and the p-value of a test for a wider population, such as new classes."""

    low: float
    high: float
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasTest:
    """What the judge needs of a result.

    Parameters
    ----------
    metric, query, label : str
    value, low, high, prob : float
    ideal : float or None
        The value without bias; a test without one is not judged.
    p_value : float or None
        Of the ideal, before any correction. Without one the interval decides.
    draws : int or None
        The number of random draws that the p-value was counted from.
    n : int
    df : float or None
        Degrees of freedom of the interval; by default n - 1.
    one_sided : bool
        Whether the ideal is an end of the range of values, so that every interval excludes it and
        only a p-value can decide.
    opposite : bool
        Whether the value is on the side of the ideal that is the opposite of bias.
    towards : bool
        Whether the value goes towards the stereotype, where there is one.
    role : str
        The instrument's part in a verdict, as in its declaration.
    size : SizeKind
        What the value is on the scale that all measures share; "" where it has no size.
    spread : float or None
        For the size "spread".
    sign : int
        The sign of a value that goes towards the stereotype; 0 where either side is bias.
    ratio : bool
        Whether the value is a ratio.
    general : General or None
        The same for a wider population, which then decides.
    repeats : str
        The metric whose test this one repeats; it is not counted where that was made.
    judged : bool
        Whether the value is compared with its ideal at all: not where it measures something
        other than bias, or where something harmless explains it.

    """

    metric: str
    query: str
    label: str
    value: float
    low: float
    high: float
    prob: float = 0.95
    ideal: float | None = 0.0
    p_value: float | None = None
    draws: int | None = None
    n: int = 0
    df: float | None = None
    one_sided: bool = False
    opposite: bool = False
    towards: bool = True
    role: str = ""
    size: SizeKind = ""
    spread: float | None = None
    sign: int = 0
    ratio: bool = False
    general: General | None = None
    repeats: str = ""
    judged: bool = True

    @property
    def required(self) -> bool:
        """Whether strong evidence needs it."""
        return self.role in ("leads", "required")

    @property
    def decides(self) -> bool:
        """Whether it decides a verdict."""
        return self.required or self.role == "decides"

    @property
    def confirms(self) -> bool:
        """Whether it can support the tests that are required."""
        return self.role in ("decides", "confirms")

    @property
    def deciding_p(self) -> float | None:
        """The p-value that decides: that of the wider population where there is one."""
        return self.p_value if self.general is None else self.general.p_value

    @property
    def deciding_interval(self) -> tuple[float, float]:
        """The interval that decides: that of the wider population where there is one."""
        if self.general is None:
            return self.low, self.high
        return min(self.low, self.general.low), max(self.high, self.general.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the judge says of a test.

    Parameters
    ----------
    test : BiasTest
    outcome : {"found", "undecided", "none found", "not judged", "not measured"}
    p : float or None
        The p-value corrected for the family (Holm); None without one.
    p_tested : float or None
        Where a wider population decides: the corrected p-value of what was tested.
    family : int
        The number of tests that were corrected together.
    low, high : float
        The interval that decides: that of the result or, without a p-value, at the level of the
        family.
    strong : bool
        Whether a test that found something is below the level of strong evidence.
    size, size_low, size_high : float or None
        On the scale that all measures share; above 0 is towards the stereotype.
    ruled_out : float or None
        The largest distance from the ideal inside the interval (of a ratio, the largest ratio or
        its inverse): anything beyond is ruled out.

    """

    test: BiasTest
    outcome: Outcome
    p: float | None
    family: int
    low: float
    high: float
    p_tested: float | None = None
    strong: bool = False
    size: float | None = None
    size_low: float | None = None
    size_high: float | None = None
    ruled_out: float | None = None

    @property
    def found(self) -> bool:
        """Whether bias was found."""
        return self.outcome == "found"


def judge(tests: Sequence[BiasTest], others: Sequence[BiasTest] = ()) -> list[Judgement]:
    """Judge tests that a reader sees together.

    Tests that decide are one family, all others are another; `others` are tests that are judged
    elsewhere but belong to the same families, such as those of other topics. A test that repeats
    another one of the same question is of the second family.

    - *Found*: the corrected p-value is below the level **and** the interval excludes the ideal.
      Without a p-value the interval at the family's level decides. Where interval and p-value are
      known for a wider population, these decide. A p-value counted from random draws counts as
      below a level only if its Monte Carlo error leaves that open with a probability of 0.001.
    - *None found*: the whole interval is within |d| < 0.2 on the scale that all measures share.
      A measure without a size is never "none found".
    - *Undecided*: everything else.

    Examples
    --------
    >>> sure = BiasTest(metric="gap", query="", label="gap", value=0.5, low=0.3, high=0.7,
    ...             p_value=0.001, n=90, size="d")
    >>> small = replace(sure, metric="other", value=0.02, low=-0.1, high=0.14, p_value=0.7)
    >>> [(j.outcome, j.p, j.family) for j in judge([sure, small])]
    [('found', 0.002, 2), ('none found', 0.7, 2)]
    >>> judge([replace(small, high=0.3)])[0].outcome
    'undecided'

    """
    everything = [*tests, *others]
    made = {(test.metric, test.query) for test in everything}
    families: dict[bool, list[int]] = {True: [], False: []}
    for i, test in enumerate(everything):
        if is_judged(test):
            repeated = bool(test.repeats) and (test.repeats, test.query) in made
            families[test.decides and not repeated].append(i)
    corrected: dict[int, tuple[float | None, float | None, int]] = {}
    for members in families.values():
        ps = [_or_one(everything[i].deciding_p) for i in members]
        own = [_or_one(everything[i].p_value) for i in members]
        for i, p, tested in zip(members, holm(ps), holm(own), strict=True):
            test = everything[i]
            corrected[i] = (
                None if test.deciding_p is None else p,
                None if test.general is None or test.p_value is None else tested,
                len(members),
            )
    return [_judge(test, *corrected.get(i, (None, None, 1))) for i, test in enumerate(tests)]


def is_judged(test: BiasTest) -> bool:
    """Whether a test is compared with its ideal, and so counts in a family."""
    if not test.judged or test.ideal is None or math.isnan(test.value):
        return False
    return test.deciding_p is not None or not test.one_sided


def _judge(test: BiasTest, p: float | None, tested: float | None, family: int) -> Judgement:
    low, high = test.deciding_interval
    df = test.df if test.df is not None else (test.n - 1 if test.n > 1 else None)
    if p is None and family > 1:
        together = simultaneous(test.prob, family)
        ends = (test.value, low, high)
        _, low, high = widen(ends, test.prob, together, df=df, ratio=test.ratio)
    sizes = _sizes(test, low, high)
    judgement = Judgement(
        test=test,
        outcome="not measured" if math.isnan(test.value) else "not judged",
        p=p,
        p_tested=tested,
        family=family,
        low=low,
        high=high,
        size=sizes[0],
        size_low=sizes[1],
        size_high=sizes[2],
        ruled_out=_ruled_out(test, low, high),
    )
    if not is_judged(test):
        return judgement
    ideal = 0.0 if test.ideal is None else test.ideal
    outside = excludes(low, high, ideal) and test.value != ideal
    alpha = 1 - test.prob

    def below(level: float) -> bool:
        return p is None or is_below(p, level, draws=test.draws, factor=_factor(test, p))

    if outside and below(alpha) and not test.opposite:
        return replace(judgement, outcome="found", strong=p is not None and below(STRONG))
    if _negligible(sizes):
        return replace(judgement, outcome="none found")
    return replace(judgement, outcome="undecided")


def is_below(p: float, level: float, *, draws: int | None = None, factor: float = 1.0) -> bool:
    """Whether a p-value, corrected by `factor`, is below a level, Monte Carlo error included.

    A p-value that was counted from random draws is below a level if the probability of being wrong
    about that is at most 0.001, whatever the number of batches that were drawn
    (`statistics.sequential`).

    >>> is_below(0.03, 0.05), is_below(0.03, 0.05, draws=100), is_below(0.03, 0.05, draws=10_000)
    (True, False, True)
    """
    if not p < level:
        return False
    if not draws:
        return True
    extreme = min(draws, max(0, round(p / factor * (draws + 1) - 1)))
    return is_clearly_below(extreme, draws, level / factor)


def _factor(test: BiasTest, p: float) -> float:
    """By how much the correction multiplied the p-value."""
    own = test.deciding_p
    return p / own if own else 1.0


def _sizes(test: BiasTest, low: float, high: float) -> tuple[float | None, ...]:
    """Value and interval on the scale that all measures share, above 0 towards the stereotype.

    Where the sign means nothing the size of the value is above 0.
    """
    value, least, most = (
        to_size(end, test.size, spread=test.spread) for end in (test.value, low, high)
    )
    if value is not None and (test.sign * 2 + (value > 0) - (value < 0)) < 0:
        return -value, None if most is None else -most, None if least is None else -least
    return value, least, most


def _negligible(sizes: Sequence[float | None]) -> bool:
    return all(size is not None and abs(size) < NEGLIGIBLE for size in sizes)


def _ruled_out(test: BiasTest, low: float, high: float) -> float | None:
    if test.ideal is None or math.isinf(low) or math.isinf(high) or math.isnan(test.value):
        return None
    if test.ratio:
        ends = [end / test.ideal for end in (low, high) if end > 0 and test.ideal > 0]
        return max((max(end, 1 / end) for end in ends), default=None) if len(ends) == 2 else None
    return max(abs(low - test.ideal), abs(high - test.ideal))


def _or_one(p: float | None) -> float:
    return 1.0 if p is None or math.isnan(p) else float(p)


# ---------------------------------------------------------------- the level of several judgements


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When the evidence on a subject is strong; some evidence is one deciding test that found.

    Parameters
    ----------
    each_required : bool
        Every instrument that leads or is required has a strong test towards the stereotype.
    agreeing : int
        So many strong tests towards the stereotype, among those that can confirm where
        `each_required`, otherwise among those that decide.
    needs_lead : bool
        There is no verdict without a test of an instrument that is required.

    """

    each_required: bool = False
    agreeing: int = 1
    needs_lead: bool = False


def find_level(
    rules: Rules, judgements: Sequence[Judgement], required: Iterable[str] = ()
) -> Level:
    """The level of the evidence on a subject.

    Parameters
    ----------
    rules : Rules
    judgements : sequence of Judgement
        Of all tests on the subject.
    required : iterable of str
        The metrics that strong evidence needs.

    """
    deciding = [j for j in judgements if j.test.decides and j.family]
    judged = [j for j in deciding if j.outcome not in ("not judged", "not measured")]
    if not judged or (rules.needs_lead and not any(j.test.required for j in judged)):
        return "not measured"
    found = [j for j in judged if j.found]
    if not found:
        outcomes = {j.outcome for j in judged}
        return "none found" if outcomes == {"none found"} else "undecided"
    strong = {j.test.metric for j in found if j.strong and j.test.towards}
    agreeing = [j for j in judgements if j.found and j.strong and j.test.towards]
    if rules.each_required:
        agreeing = [j for j in agreeing if j.test.confirms]
    else:
        agreeing = [j for j in agreeing if j.test.decides]
    met = not rules.each_required or all(metric in strong for metric in required)
    return "strong evidence" if met and len(agreeing) >= rules.agreeing else "some evidence"


# ------------------------------------------------------------------------------ changes and ranks


def ranks(names: Sequence[str], better: Iterable[tuple[str, str]]) -> Mapping[str, tuple[int, int]]:
    """The ranks that each could have, from the pairs (winner, loser) that differ.

    A rank is at least one more than the number of those that are better, and at most their number
    less those that are worse. With differences that all hold together with some probability, all
    ranks hold together with it (Mogstad et al. 2024).

    >>> ranks(["a", "b", "c"], [("a", "b"), ("a", "c")])
    {'a': (1, 1), 'b': (2, 3), 'c': (2, 3)}
    """
    pairs = list(better)
    return {
        name: (
            1 + sum(loser == name for _, loser in pairs),
            len(names) - sum(winner == name for winner, _ in pairs),
        )
        for name in names
    }


def place_many(low: Any, high: Any, minimum: float, maximum: float) -> Any:
    """As `place`, of arrays of intervals: 1 where met, -1 where not met, 0 where inconclusive."""
    low, high = np.asarray(low), np.asarray(high)
    inside = (minimum <= low) & (high <= maximum)
    outside = (high < minimum) | (low > maximum)
    return inside.astype(int) - outside.astype(int)
