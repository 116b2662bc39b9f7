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
from collections.abc import Callable, Iterable, Mapping, Sequence
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

MONTE_CARLO = 3.09
"""The margin of an end, in its Monte Carlo errors: chance exceeds it with a probability of .001."""

Outcome: TypeAlias = Literal[
    "found", "opposite", "undecided", "none found", "not judged", "not measured"
]
"""Of a test. "Opposite" is a finding on the side of the ideal that is no bias, "not judged" a value
that no rule compares with an ideal."""
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


def side(low: float, high: float, value: float) -> int:
    """The side of a value that an interval lies on: 1 above it, -1 below it, 0 on neither.

    >>> side(0.1, 0.3, 0.0), side(-0.3, -0.1, 0.0), side(-0.1, 0.3, 0.0)
    (1, -1, 0)
    """
    return int(low > value) - int(high < value)


def holds(p: float | None, low: float, high: float, value: float, prob: float) -> bool:
    """Whether a corrected p-value is below 1 - `prob` and the interval excludes the value.

    >>> holds(0.01, 0.1, 0.3, 0.0, 0.95), holds(0.2, 0.1, 0.3, 0.0, 0.95)
    (True, False)
    """
    return p is not None and p < 1 - prob and excludes(low, high, value)


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


# ----------------------------------------------------------------------- one sentence and its model

LEAST_SHARE = 0.01
"""A model that gives pronouns a smaller share of the probability than this expects none."""


def lean_limits(neutral: Sequence[float]) -> tuple[float, float]:
    """Limits of the log ratio of two pronouns: no preference, and all that neutral sentences give.

    Of n neutral sentences and another one like them, that one is outside their range with the
    probability 2 / (n + 1), whatever their distribution: .049 for 40 sentences.

    >>> lean_limits([0.5, 2.0, 1.0]), lean_limits([-1.0, 0.5])
    ((0.0, 2.0), (-1.0, 0.5))
    """
    return min(0.0, *neutral), max(0.0, *neutral)


def lean(
    log_ratios: Sequence[float],
    limits: tuple[float, float],
    share: float,
) -> Outcome:
    """Whether a model leans to one of two pronouns in a sentence.

    The interval is the range of the log ratios. That of six wordings has the median of all such
    wordings inside with the probability 1 - 2 / 2**6 = .97, whatever their distribution.

    - *Found*: the interval is outside the limits.
    - *None found*: the interval is within the limits.
    - *Undecided*: the interval has a limit inside.
    - *Not measured*: the share is below `LEAST_SHARE`.

    Parameters
    ----------
    log_ratios : sequence of float
        One per wording of the sentence.
    limits : tuple of float
        As `lean_limits` gives them.
    share : float
        Of the probability, of all pronouns that are compared.

    Examples
    --------
    >>> [lean([low, 3.0], (-1.0, 2.0), 0.4) for low in (2.1, 1.9)], lean([1.9], (-1, 2), 0.4)
    (['found', 'undecided'], 'none found')
    >>> lean([2.1, 3.0], (-1.0, 2.0), 0.009)
    'not measured'
    """
    if share < LEAST_SHARE:
        return "not measured"
    placement = place(min(log_ratios), max(log_ratios), *limits)
    outcomes: Mapping[Placement, Outcome] = {
        "met": "none found",
        "not met": "found",
        "inconclusive": "undecided",
    }
    return outcomes[placement]


# -------------------------------------------------------------------------------------- the tests


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """The interval and the p-value of a test for a wider population, such as new classes."""

    low: float
    high: float
    p_value: float | None


class HasRole:
    """The meaning of a role in a verdict: of a test, and of its instrument."""

    __slots__ = ()
    role: str

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasTest(HasRole):
    """What the judge needs of a result.

    Parameters
    ----------
    metric, query, label : str
    subject : str
        What was measured, where a reader sees several.
    value, low, high, prob : float
    ideal : float or None
        The value without bias; a test without one is not judged.
    p_value : float or None
        Of the ideal, before any correction. Without one the interval decides.
    draws : int or None
        The number of random draws that the p-value was counted from.
    error : float or None
        The Monte Carlo standard error of the ends of the interval, where it is of random draws.
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
        The metric whose test this one repeats; it does not count where that was made.
    corrected : (float, int) or None
        The corrected p-value and the family that the result has already: a test is never
        corrected for fewer tests than it was seen with.
    judged : bool
        Whether the value is compared with its ideal at all: not where it measures something
        other than bias, or where something harmless explains it.

    """

    metric: str
    query: str
    label: str
    subject: str = ""
    value: float
    low: float
    high: float
    prob: float = 0.95
    ideal: float | None = 0.0
    p_value: float | None = None
    draws: int | None = None
    error: float | None = None
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
    corrected: tuple[float, int] | None = None
    judged: bool = True

    @property
    def name(self) -> tuple[str, str, str]:
        """What tells it from other tests: subject, metric and query."""
        return self.subject, self.metric, self.query

    @property
    def kind(self) -> Literal["deciding", "confirming", "other"]:
        """The family that it belongs to."""
        if self.decides:
            return "deciding"
        return "confirming" if self.role == "confirms" else "other"

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
    outcome : {"found", "opposite", "undecided", "none found", "not judged", "not measured"}
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
    in_tested : bool
        Where a wider population decides: whether it would be found in what was tested.
    size, size_low, size_high : float or None
        On the scale that all measures share; above 0 is towards the stereotype.
    settled : bool
        Whether the ideal is on one side of the end of the interval, Monte Carlo error included.
    ruled_out : float or None
        The largest distance from the ideal inside the interval (of a ratio, the largest ratio or
        its inverse): anything beyond is ruled out. None where the interval reaches an end of the
        possible values.

    """

    test: BiasTest
    outcome: Outcome
    p: float | None
    family: int
    low: float
    high: float
    p_tested: float | None = None
    strong: bool = False
    in_tested: bool = False
    size: float | None = None
    size_low: float | None = None
    size_high: float | None = None
    settled: bool = True
    ruled_out: float | None = None

    @property
    def found(self) -> bool:
        """Whether bias was found."""
        return self.outcome == "found"

    @property
    def draws(self) -> float | None:
        """The number of random draws that has the error of the corrected p-value."""
        draws, p = self.test.draws, self.test.deciding_p
        return draws * p / self.p if draws and p and self.p else draws


def judge(tests: Sequence[BiasTest], others: Sequence[BiasTest] = ()) -> list[Judgement]:
    """Judge tests that a reader sees together.

    Tests that decide are one family, those that only confirm another, all others a third; `others`
    are tests that are judged elsewhere but belong to the same families, such as those of other
    topics. A test that repeats another one of the same question has the corrected p-value of that,
    and no role: no family, sentence or level counts it.

    - *Found*: the corrected p-value is below the level **and** the interval excludes the ideal.
      Without a p-value the interval at the family's level decides, with a margin of three Monte
      Carlo errors where its ends have one. Where interval and p-value are
      known for a wider population, these decide. A p-value counted from random draws counts as
      below a level only if its Monte Carlo error leaves that open with a probability of 0.001.
    - *None found*: the whole interval is within |d| < 0.2 on the scale that all measures share, and
      no p-value is below the level. A measure without a size is never "none found".
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
    judged = [i for i, test in enumerate(everything) if is_judged(test)]
    named = {everything[i].name: i for i in judged}
    repeated: dict[int, int] = {}
    families: dict[str, list[int]] = {}
    for i in judged:
        test = everything[i]
        original = named.get((test.subject, test.repeats, test.query))
        if original is None:
            families.setdefault(test.kind, []).append(i)
        else:
            repeated[i] = original
            everything[i] = replace(test, role="")
    corrected: dict[int, tuple[float | None, float | None, int]] = {}
    for members in families.values():
        ps = [_or_one(everything[i].deciding_p) for i in members]
        own = [_or_one(everything[i].p_value) for i in members]
        for i, p, tested in zip(members, holm(ps), holm(own), strict=True):
            test, family = everything[i], len(members)
            if test.corrected is not None and test.corrected[1] > family:
                p, family = test.corrected
            corrected[i] = (
                None if test.deciding_p is None else p,
                None if test.general is None or test.p_value is None else tested,
                family,
            )
    return [
        _judge(test, *corrected.get(repeated.get(i, i), (None, None, 1)))
        for i, test in enumerate(everything[: len(tests)])
    ]


def judge_pairs(
    pairs: Sequence[tuple[float, float | None, Callable[[float], tuple[float, float]]]],
    prob: float = 0.95,
) -> list[Judgement]:
    """Judge the differences of all pairs of a list: "found" is that the two differ.

    Parameters
    ----------
    pairs : sequence of (value, p-value, interval)
        The p-value is that of no difference, before the correction, and None where there is none;
        the third is a function from a probability to the two ends of the interval.
    prob : float

    Returns
    -------
    list of Judgement
        p is corrected for all pairs (Holm). All intervals hold together with probability `prob`
        (Bonferroni). In its later steps Holm's correction finds differences whose interval at
        that level still reaches past 0: such an interval ends at 0, so that p-value and interval
        say the same.

    Examples
    --------
    >>> from evenhand.statistics.crossed import Mean
    >>> means = [Mean(0.5, 0.01, 30), Mean(0.2, 0.01, 30)]
    >>> found = judge_pairs([(m.value, m.p_value, m.interval) for m in means])
    >>> [(j.found, round(j.p, 3), round(j.low, 2)) for j in found]
    [(True, 0.0, 0.26), (False, 0.055, -0.04)]

    """
    each, corrected = simultaneous(prob, len(pairs)), holm([_or_one(p) for _, p, _ in pairs])
    tests = []
    for i, ((value, p, interval), p_holm) in enumerate(zip(pairs, corrected, strict=True)):
        low, high = interval(each)
        if p is not None and is_below(p_holm, 1 - prob) and low <= 0 <= high:
            low, high = (1e-9 * value, high) if value > 0 else (low, 1e-9 * value)
        tests.append(
            BiasTest(
                metric="difference",
                query=str(i),
                label="difference",
                value=value,
                low=low,
                high=high,
                prob=prob,
                p_value=p,
                role="decides",
            )
        )
    return judge(tests)


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
        ruled_out=_ruled_out(test, low, high, sizes),
    )
    if not is_judged(test):
        return judgement
    ideal = 0.0 if test.ideal is None else test.ideal
    outside = excludes(low, high, ideal) and test.value != ideal
    margin = 0.0 if p is not None or test.error is None else MONTE_CARLO * test.error
    settled = not outside or excludes(low - margin, high + margin, ideal)
    alpha = 1 - test.prob

    def below(level: float) -> bool:
        return p is None or is_below(p, level, draws=test.draws, factor=_factor(test, p))

    judgement = replace(
        judgement,
        settled=settled,
        in_tested=tested is not None and tested < alpha and excludes(test.low, test.high, ideal),
    )
    if outside and settled and below(alpha):
        outcome: Outcome = "opposite" if test.opposite else "found"
        return replace(judgement, outcome=outcome, strong=p is not None and below(STRONG))
    significant = judgement.in_tested or (p is not None and p < alpha)
    none = _negligible(sizes) and not significant
    return replace(judgement, outcome="none found" if none else "undecided")


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
    """The factor by which the correction multiplied the p-value."""
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


def _ruled_out(
    test: BiasTest, low: float, high: float, sizes: Sequence[float | None]
) -> float | None:
    limits = (low, high, *(size for size in sizes if size is not None))
    if test.ideal is None or math.isnan(test.value) or any(map(math.isinf, limits)):
        return None
    if test.ratio:
        ends = [end / test.ideal for end in (low, high) if end > 0 and test.ideal > 0]
        return max((max(end, 1 / end) for end in ends), default=None) if len(ends) == 2 else None
    return max(abs(low - test.ideal), abs(high - test.ideal))


def _or_one(p: float | None) -> float:
    return 1.0 if p is None or math.isnan(p) else float(p)


# ---------------------------------------------------------------- the level of several judgements


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """When the evidence on a subject is strong; some evidence is one deciding test that found.

    Parameters
    ----------
    each_required : bool
        Every instrument that leads or is required has a strong test towards the stereotype.
    agreeing : int
        The number of strong tests towards the stereotype, among those that can confirm where
        `each_required`, otherwise among those that decide.
    needs_lead : bool
        There is no verdict without a test of an instrument that is required.

    """

    each_required: bool = False
    agreeing: int = 1
    needs_lead: bool = False


RULES: Mapping[str, VerdictRules] = {
    "corpus": VerdictRules(),
    "vectors": VerdictRules(each_required=True, needs_lead=True),
    "masked": VerdictRules(each_required=True, agreeing=0),
    "causal": VerdictRules(agreeing=2),
    "encoder": VerdictRules(agreeing=2),
    "answers": VerdictRules(),
    "predictions": VerdictRules(),
    "fewshot": VerdictRules(agreeing=2),
}
"""The rules of each subject of an audit."""


def find_level(
    rules: VerdictRules, judgements: Sequence[Judgement], required: Iterable[str] = ()
) -> Level:
    """The level of the evidence on a subject.

    Parameters
    ----------
    rules : VerdictRules
    judgements : sequence of Judgement
        Of all tests on the subject.
    required : iterable of str
        The metrics that strong evidence needs.

    """
    deciding = [j for j in judgements if j.test.decides]
    judged = [j for j in deciding if j.outcome not in ("not judged", "not measured")]
    if not judged or (rules.needs_lead and not any(j.test.required for j in judged)):
        return "not measured"
    found = [j for j in judged if j.found]
    if not found:
        outcomes = {j.outcome for j in judged}
        return "none found" if outcomes <= {"none found", "opposite"} else "undecided"
    strong = {j.test.metric for j in found if j.strong and j.test.towards}
    agreeing = [j for j in judgements if j.found and j.strong and j.test.towards]
    if rules.each_required:
        agreeing = [j for j in agreeing if j.test.confirms]
    else:
        agreeing = [j for j in agreeing if j.test.decides]
    met = not rules.each_required or all(metric in strong for metric in required)
    return "strong evidence" if met and len(agreeing) >= rules.agreeing else "some evidence"


# ------------------------------------------------------------------------------ controls and ranks


def judge_control(
    before: tuple[float, float],
    after: tuple[float, float],
    change: tuple[float, float],
    ideal: float,
) -> Literal["survives", "responds", "no effect", "undecided"]:
    """Whether a score survives its control, from the intervals before, after and of the change.

    >>> judge_control((0.6, 0.8), (0.55, 0.75), (-0.1, 0.0), 0.5)
    'survives'
    """
    first = side(*before, ideal)
    if not first:
        return "no effect"
    if side(*after, ideal) == first:
        return "survives"
    return "responds" if side(*change, 0.0) == -first else "undecided"


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


def place_many(low: object, high: object, minimum: float, maximum: float) -> Any:
    """As `place`, of arrays of intervals: 1 where met, -1 where not met, 0 where inconclusive."""
    low, high = np.asarray(low), np.asarray(high)
    inside = (minimum <= low) & (high <= maximum)
    outside = (high < minimum) | (low > maximum)
    return inside.astype(int) - outside.astype(int)
