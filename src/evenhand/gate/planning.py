"""The operating curve of a gate: what does it say of a model that is as good as before?"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from evenhand.arguments import checked
from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.gate.checking import (
    RuleRow,
    RuleTarget,
    describe_rule,
    distance_from_ideal,
    fold,
    select,
)
from evenhand.gate.policy import Policy, Rule, read_policy
from evenhand.gate.reading import Results, Source, read_results
from evenhand.judging import place_many, simultaneous
from evenhand.results import Estimate
from evenhand.statistics.intervals import Floats
from evenhand.statistics.power import POWER, quantile

STEPS = (1.0, 2.0, 3.0, 4.0, 5.0)
"""The worsenings of the curve by default, in standard errors."""
DRAWS = 20_000
UNPAIRED = (
    "no baseline: the standard error is that of two measurements on other items, the upper bound "
    "of the paired one"
)
IDENTICAL = "the baseline has the same answers: " + UNPAIRED.removeprefix("no baseline: ")


@dataclass(frozen=True, slots=True)
class PlanPoint:
    """What a rule says of a model that is worse by `worsening`: shares of measurements."""

    worsening: float
    met: float
    inconclusive: float
    not_met: float
    fails: float
    """Not met or, if "possibly outside" fails, inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RulePlan(RuleRow):
    """What one rule does to one measurement, measured again and again on other items.

    Parameters
    ----------
    standard_error : float
        Of what is limited; of a ratio, on the logarithm.
    truth : float
        Its true value in a model that has not changed: the value of today, or no change.
    unchanged : PlanPoint
        How often the rule is met, not met and inconclusive, and how often it fails, for a model
        that has not changed.
    false_alarms_by_value : float
        How often a rule that looks at the value alone, and not at its interval, fails it.
    curve : tuple of PlanPoint
        The same for models that are worse, on the scale of the measure.
    detected : float
        The worsening that fails with a probability of 80 %; infinite where none does.
    margin : float
        How far from `truth` a limit has to be, in the direction that is worse, so that a model that
        has not changed meets it with a probability of 80 %; of a ratio, a factor.
    note : str

    """

    standard_error: float
    truth: float
    unchanged: PlanPoint
    false_alarms_by_value: float
    curve: tuple[PlanPoint, ...]
    detected: float
    margin: float
    note: str = ""

    @property
    def false_alarms(self) -> float:
        """How often the rule fails a model that has not changed."""
        return self.unchanged.fails

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "false_alarms": self.false_alarms}

    def _headline(self) -> str:
        return f"{self.rule}: fails {self.false_alarms:.1%} of models that have not changed"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"rule": self.rule, "metric": self.metric, "query": self.query, "n": self.n}
            | {"worsening": point.worsening, "value": point.fails, "met": point.met}
            | {"inconclusive": point.inconclusive, "not_met": point.not_met}
            for point in (self.unchanged, *self.curve)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GatePlan(Result):
    """The operating curves of a policy's rules, and its false alarms as a whole.

    Parameters
    ----------
    rows : tuple of RulePlan
    met : float
        How often a model that has not changed meets all rules, for rules whose errors are
        independent; where rules share items it is more, but at most that of the worst rule.
    false_alarms, false_alarms_by_value : float
        How often at least one rule fails a model that has not changed, for rules whose errors are
        independent; where rules share items it is less, but at least that of the worst rule.
    unplanned : tuple of (str, str)
        Rules that cannot be planned, and why.
    draws, seed : int

    """

    rows: tuple[RulePlan, ...] = field(repr=False)
    met: float
    false_alarms: float
    false_alarms_by_value: float
    unplanned: tuple[tuple[str, str], ...] = ()
    draws: int = DRAWS
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__ if name != "rows"}
        row["unplanned"] = [{"rule": rule, "reason": reason} for rule, reason in self.unplanned]
        return {**row, "rules": [each.to_dict() for each in self.rows]}

    def _headline(self) -> str:
        share = f"{self.false_alarms:.1%} of models that have not changed"
        return f"of {len(self.rows)} rules: fails {share}; {self.met:.1%} meet it"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row for each in self.rows for row in each._rows()]


@checked
def plan(
    policy: str | os.PathLike[str] | Policy | Rule | Mapping[str, Any],
    results: Source,
    baseline: Source | None = None,
    *,
    worsenings: Sequence[float] = (),
    draws: int = DRAWS,
    seed: int = 0,
) -> GatePlan:
    r"""Simulate what a policy does to a model that has not changed, and to one that is worse.

    Parameters
    ----------
    policy, results, baseline
        As for `check`. The standard errors come from the intervals of the results; those of
        changes from the comparison with the baseline or, without one, as if the two measurements
        were independent, which is an upper bound.
    worsenings : sequence of float
        The worsenings of the curve, on the scale of each measure (for measures compared as a ratio,
        factors); by default 1 to 5 standard errors of each.
    draws : int
        Simulated measurements for each point.
    seed : int

    Returns
    -------
    GatePlan

    Notes
    -----
    A measurement is drawn as $\hat\theta = \theta + \sigma z$ with the interval
    $\hat\theta \pm t \sigma \sqrt{\chi^2_\nu / \nu}$, z standard normal, $\nu = n - 1$ and t the
    quantile of Student's distribution; $\sigma$ is what makes the interval of today as long as it
    is. Each is placed by the function that places results; "not met" takes the interval at the
    level of all rules together, as in `check`. A model that has not changed has
    $\theta$ = the value of today, or no change; the values of all rules are drawn independently.
    A worsening away from an ideal is that of the drawn change (`checking.fold`): near the ideal a
    change in either direction is one, and false alarms are twice as many.

    Examples
    --------
    >>> from evenhand.results import Measurement
    >>> m = Measurement(metric="gap", query="test", value=0.2, low=0.1, high=0.3, n=50, ideal=0.0,
    ...                 worse="higher", interval="t")
    >>> at_limit = plan({"metric": "gap", "max": 0.2}, m).rows[0].unchanged
    >>> at_limit.met < 0.03 and at_limit.not_met < 0.03 and at_limit.inconclusive > 0.94
    True

    """
    if draws < 100:
        raise InputError(f"draws: expected 100 or more, got {draws}")
    if any(not math.isfinite(size) or size <= 0 for size in worsenings):
        raise InputError("worsening: expected numbers above 0")
    read, after = read_policy(policy), read_results(results)
    before = None if baseline is None else read_results(baseline)
    rows: list[RulePlan] = []
    unplanned: list[tuple[str, str]] = []
    selected = [(rule, _targets(read, rule, after, before)) for rule in read.rules]
    family = sum(target.estimate is not None for _, each in selected for target, _ in each)
    for rule, targets in selected:
        if not targets:
            unplanned.append((rule.label, "not measured"))
        for target, note in targets:
            if target.estimate is None:
                unplanned.append((rule.label, target.problem))
                continue
            rng = np.random.default_rng([seed, len(rows)])
            rows.append(_plan_target(read, rule, target, note, worsenings, draws, rng, family))
    if not rows:
        reasons = "; ".join(f"{rule}: {reason}" for rule, reason in unplanned)
        raise InputError(f"gate: expected a rule that can be planned, got none ({reasons})")
    return GatePlan(
        rows=tuple(rows),
        met=math.prod(row.unchanged.met for row in rows),
        false_alarms=1 - math.prod(1 - row.false_alarms for row in rows),
        false_alarms_by_value=1 - math.prod(1 - row.false_alarms_by_value for row in rows),
        unplanned=tuple(unplanned),
        draws=draws,
        seed=seed,
    )


def _targets(
    policy: Policy, rule: Rule, after: Results, before: Results | None
) -> list[tuple[RuleTarget, str]]:
    """What the rule judges; changes that are not known as differences of independent values."""
    if rule.limits == "value":
        return [(target, "") for target in select(policy, rule, after, before)]
    if before is not None or rule.against is not None:
        listed = list(select(policy, rule, after, before))
        known = [t for t in listed if t.estimate is None or t.estimate.high > t.estimate.low]
        if known or not listed:
            return [(target, "") for target in known]
    as_value = replace(rule, min=0.0, max=0.0, min_change=None, max_change=None, max_worsening=None)
    note = UNPAIRED if before is None else IDENTICAL
    return [(_independent(target), note) for target in select(policy, as_value, after, None)]


def _independent(target: RuleTarget) -> RuleTarget:
    """The change between two measurements like this one, on other items: none."""
    e = target.estimate
    if e is None:
        return target
    ratio = target.ratio and e.low > 0
    length = math.log(e.high / e.low) if ratio else e.high - e.low
    half = math.sqrt(2) * length / 2
    value, low, high = map(math.exp, (0, -half, half)) if ratio else (0.0, -half, half)
    change = Estimate(value=value, low=low, high=high, prob=e.prob)
    m = target.measurement
    start = distance_from_ideal(m, ratio=ratio) if m.worse == "away" else None
    return replace(target, estimate=change, ratio=ratio, change=change, start=start)


def _plan_target(
    policy: Policy,
    rule: Rule,
    target: RuleTarget,
    note: str,
    worsenings: Sequence[float],
    draws: int,
    rng: np.random.Generator,
    family: int,
) -> RulePlan:
    e, m, start = target.change or target.estimate, target.measurement, target.start
    assert e is not None  # noqa: S101
    folded = rule.limits == "worsening" and start is not None
    low, high = rule.range
    ends, truth = [e.low, e.high], e.value
    ratio = target.ratio and min(e.low, e.value) > 0
    if ratio:  # on the logarithm, in which a ratio is a difference
        low, high = (math.log(x) if x > 0 else -math.inf for x in (low, high))
        ends, truth = [math.log(e.low), math.log(e.high)], math.log(e.value)
        worsenings = [math.log(x) for x in worsenings]
    df = target.df
    t = quantile((1 + e.prob) / 2, df)
    error = (ends[1] - ends[0]) / 2 / t
    wider = quantile((1 + simultaneous(e.prob, family)) / 2, df) / t
    if rule.limits != "value":
        truth = 0.0
    direction = 1.0
    if folded:
        direction = -1.0 if (start or 0.0) < 0 else 1.0
    elif rule.limits != "worsening":
        direction = _direction(m.worse, m.ideal, m.value, high)
    described = describe_rule(policy, rule)
    noise = error * rng.standard_normal(draws)
    half = t * error * np.sqrt(rng.chisquare(df, draws) / df)

    def draw(size: float, half: Floats | float = half) -> tuple[Floats, Floats]:
        drawn = truth + direction * size + noise
        ends = drawn - half, drawn + half
        return fold(start or 0.0, *ends) if folded else ends

    def simulate(size: float, half: Floats | float = half) -> PlanPoint:
        met = float(np.mean(place_many(*draw(size, half), low, high) == 1))
        outside = float(np.mean(place_many(*draw(size, half * wider), low, high) == -1))
        crossing = 1 - met - outside
        fails = outside if described["fails_if"] == "clearly outside" else outside + crossing
        return PlanPoint(math.exp(size) if ratio else size, met, crossing, outside, fails)

    detected = _detected(lambda size: simulate(size).fails, error)
    worst = draw(0.0)[1] - truth if folded or direction > 0 else truth - draw(0.0)[0]
    margin = float(np.quantile(worst, POWER))
    return RulePlan(
        **described,
        query=target.query,
        subject=m.subject,
        n=target.n,
        standard_error=error,
        truth=math.exp(truth) if ratio else truth,
        unchanged=simulate(0.0),
        false_alarms_by_value=simulate(0.0, 0.0).fails,
        curve=tuple(map(simulate, worsenings or [step * error for step in STEPS])),
        detected=math.exp(detected) if ratio else detected,
        margin=math.exp(margin) if ratio else margin,
        note=note,
    )


def _direction(worse: str, ideal: float | None, value: float, high: float) -> float:
    """The sign of a worsening: away from the ideal, on the side where the value is."""
    if worse != "away":
        return 1.0 if worse == "higher" else -1.0
    if ideal is None or value == ideal:
        return 1.0 if math.isfinite(high) else -1.0
    return 1.0 if value > ideal else -1.0


def _detected(fails: Callable[[float], float], error: float) -> float:
    """The smallest worsening that fails with the usual power, by bisection."""
    if error == 0 or fails(0.0) >= POWER:
        return 0.0
    reach = error
    while fails(reach) < POWER:
        reach *= 2
        if reach > 1e6 * error:
            return math.inf
    low, high = 0.0, reach
    while high - low > 1e-3 * error:
        middle = (low + high) / 2
        low, high = (low, middle) if fails(middle) >= POWER else (middle, high)
    return high
