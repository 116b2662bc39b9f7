"""Policies: which measures a model must meet, and what it takes to fail."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainValidator

from evenhand.arguments import checked
from evenhand.errors import InputError, LexiconError, UnknownNameError
from evenhand.gate.reading import Source, read_results
from evenhand.instruments import compare, find, is_ratio
from evenhand.lexicon.schema import STRICT, Rows, Text, fail, read_toml, validate
from evenhand.results import Measurement, Worse

FailsIf: TypeAlias = Literal["clearly outside", "possibly outside"]
Missing: TypeAlias = Literal["fail", "warn", "ignore"]

LIMITS = {
    "value": ("min", "max"),
    "change": ("min_change", "max_change"),
    "worsening": ("max_worsening",),
}
"""What a rule can limit, and the keys of these limits."""


def _check_number(value: object) -> float:
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with suppress(OverflowError):  # a whole number of 400 digits
            number = float(value)
    if not math.isfinite(number):
        raise fail(f"expected a number, got {value!r:.60}")
    return number


def _check_prob(value: object) -> float:
    number = _check_number(value)
    if not 0 < number < 1:
        raise fail(f"expected a number between 0 and 1, got {value}")
    return number


Number = Annotated[float | None, PlainValidator(_check_number)]
Prob = Annotated[float | None, PlainValidator(_check_prob)]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One requirement: a limit on one measure, or on each of those that it selects.

    Parameters
    ----------
    metric : str
        The measure.
    query, subject : str, optional
        The question and what was measured; without them, every one.
    part, by : str, optional
        A part of the measurement by its query, and what it is a part by, such as "category". With
        `by` alone, every part by it.
    name : str
        What the rule is called; by default the measure and the query.
    min, max : float, optional
        The range of the value.
    min_change, max_change : float, optional
        The range of the change from the baseline: a difference, or for measures that are compared
        as a ratio a factor.
    max_worsening : float, optional
        How much worse than the baseline: the change in the direction that is worse, or in the
        distance from the ideal where both sides of it are.
    against : str, optional
        Of item scores: the query (model) that the stored comparison is with, in place of a
        baseline.
    fails_if : {"possibly outside", "clearly outside"}, optional
        Whether the rule fails unless it is met (the interval is inside the range), or only if it is
        not met (the interval is outside). They differ for a rule that is inconclusive: the interval
        crosses a limit.
    prob : float, optional
        Probability of the interval; by default that of the results.
    missing : {"fail", "warn", "ignore"}, optional
        What it means that something was not measured.

    """

    __pydantic_config__ = STRICT

    metric: Text
    query: Text | None = None
    subject: Text | None = None
    part: Text | None = None
    by: Text | None = None
    name: Text = ""
    min: Number = None
    max: Number = None
    min_change: Number = None
    max_change: Number = None
    max_worsening: Number = None
    against: Text | None = None
    fails_if: FailsIf | None = None
    prob: Prob = None
    missing: Missing | None = None

    @property
    def limits(self) -> str:
        """What is limited: "value", "change" or "worsening"."""
        return next(kind for kind, keys in LIMITS.items() if any(map(self._has, keys)))

    @property
    def range(self) -> tuple[float, float]:
        """The allowed range."""
        low, high = {
            "value": (self.min, self.max),
            "change": (self.min_change, self.max_change),
            "worsening": (None, self.max_worsening),
        }[self.limits]
        return (-math.inf if low is None else low), (math.inf if high is None else high)

    @property
    def label(self) -> str:
        """Its name, or what it selects."""
        part = ": ".join(filter(None, (self.by, self.part)))
        return self.name or " ".join(filter(None, (self.subject, self.metric, self.query, part)))

    def _has(self, key: str) -> bool:
        return getattr(self, key) is not None

    @property
    def problem(self) -> str:
        """What is wrong with its keys taken together; empty where nothing is."""
        kinds = [kind for kind, keys in LIMITS.items() if any(map(self._has, keys))]
        known = ", ".join(key for keys in LIMITS.values() for key in keys)
        if not kinds:
            return f"expected a limit ({known}), got none"
        if len(kinds) > 1:
            return f"expected limits of one kind in a rule, got {' and '.join(kinds)}"
        low, high = self.range
        if low > high:
            first, second = LIMITS[self.limits]
            return f"expected {first} of {second} or less, got {low:g} and {high:g}"
        if self.against is not None and self.limits == "value":
            return "against is for limits of the change or worsening"
        cls = find(self.metric)
        if cls is None or self.part is not None or self.by is not None:
            return ""
        about = cls.declaration
        return self.one_sided_problem(about.ideal, about.worse, ratio=about.compared == "ratio")

    def one_sided_problem(self, ideal: float | None, worse: Worse, *, ratio: bool) -> str:
        """What to write where a measure with bias on both sides of its ideal has one limit alone.

        >>> print(Rule(metric="weat", max=0.5).one_sided_problem(0.0, "away", ratio=False))
        weat can lie on either side of 0: expected min and max, got max alone: write min = -0.5 and max = 0.5
        """  # noqa: E501
        low, high = self.range
        if worse != "away" or ideal is None or self.limits == "worsening":
            return ""
        keys = LIMITS[self.limits]
        given = [key for key in keys if self._has(key)]
        if len(given) == 2:
            return ""
        problem = (
            f"{self.metric} can lie on either side of {ideal:g}: expected {' and '.join(keys)}, "
            f"got {given[0]} alone"
        )
        centre = ideal if self.limits == "value" else float(ratio)
        if not low < centre < high:
            return problem
        limit = low if math.isinf(high) else high
        ends = sorted((limit, centre**2 / limit if ratio and limit > 0 else 2 * centre - limit))
        lines = [f"{key} = {end:.4g}" for key, end in zip(keys, ends, strict=True)]
        worsening = f", or max_worsening = {ends[1]:.4g}" if self.limits == "change" else ""
        return f"{problem}: write {' and '.join(lines)}{worsening}"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules, and what holds for those that do not say it themselves.

    Parameters
    ----------
    rules : tuple of Rule
    title : str
    fails_if : {"possibly outside", "clearly outside"}
        By default a rule fails unless it is met, so that fewer items never pass more easily.
    missing : {"fail", "warn", "ignore"}
    prob : float, optional

    """

    __pydantic_config__ = STRICT

    rules: Rows[Rule]
    title: Text = ""
    fails_if: FailsIf = "possibly outside"
    missing: Missing = "fail"
    prob: Prob = None


@checked
def read_policy(source: str | os.PathLike[str] | Policy | Rule | Mapping[str, Any]) -> Policy:
    """Read a policy (TOML).

    Parameters
    ----------
    source : path, Policy, Rule or mapping
        A mapping has the keys of one rule.

    Returns
    -------
    Policy

    Examples
    --------
    >>> read_policy({"metric": "gap", "max": 0.1}).rules[0].range
    (-inf, 0.1)

    """
    path = ""
    if isinstance(source, Policy):
        rules = [_given(rule) if isinstance(rule, Rule) else rule for rule in source.rules]
        policy = validate("policy", Policy, {**_given(source), "rules": rules})
    elif isinstance(source, Rule):
        policy = Policy(rules=(validate("rule", Rule, _given(source)),))
    elif isinstance(source, Mapping):
        keys = [field.name for field in fields(Rule)]
        for key in source:
            if key not in keys:
                raise UnknownNameError("key of a rule", key, keys)
        if "metric" not in source:
            raise InputError("rule: the key 'metric' is missing")
        given = {key: value for key, value in source.items() if value is not None}
        policy = Policy(rules=(validate("rule", Rule, given),))
    else:
        path = os.fspath(source)
        policy = read_toml(Path(path), Policy)
    for number, rule in enumerate(policy.rules, 1):
        if problem := rule.problem:
            if path:
                raise LexiconError(path, f"rules #{number}: {problem}")
            raise InputError(f"rule '{rule.label}': {problem}")
    return policy


def _given(settings: Rule | Policy) -> dict[str, Any]:
    """The fields that differ from their defaults."""
    defaults = {field.name: field.default for field in fields(settings)}
    return {name: value for name, value in vars(settings).items() if value != defaults[name]}


# ------------------------------------------------------------------------------ a first policy


HEADER = """\
# What a model must meet: `evenhand gate POLICY RESULTS`. The limits are numbers of today, a start:
# set those that you can defend. `evenhand gate POLICY RESULTS --plan` shows what they would catch.

# A rule is met if the interval is inside its limits, not met if it is outside, and inconclusive if
# it crosses a limit.
# "possibly outside": what is not met or inconclusive fails; fewer items never pass more easily.
# "clearly outside": only what is not met fails.
fails_if = "possibly outside"

# What it means that something was not measured: fail, warn or ignore.
missing = "fail"
"""


NO_ITEMS = "results printed as JSON have no items; saved ones and those of an audit do"
MANY = 20
"""Of more measures than this only those that decide a verdict have a rule in a first policy."""


def draft_policy(*sources: Source, baseline: bool = False) -> str:
    """A first policy for some results, with the numbers of today, as TOML; they meet it.

    Parameters
    ----------
    *sources
        As for `read_results`. Of many measures, those that decide a verdict have a rule, the
        others are named in a comment.
    baseline : bool
        Whether rules limit the worsening against a baseline, in place of the value; for measures
        whose items are not paired they limit the value.

    Returns
    -------
    str

    """
    measured = read_results(*sources).measurements
    usable = [m for m in measured if all(map(math.isfinite, (m.value, m.low, m.high)))]
    known = {m.metric: find(m.metric) for m in usable}
    deciding = [m for m in usable if (cls := known[m.metric]) and cls.declaration.decides]
    chosen = deciding if deciding and len(usable) > MANY else usable
    if not chosen:
        raise InputError("gate: expected measurements with an interval, got none")
    paired = {id(m) for m in chosen if baseline and _pairs(m)}
    if baseline and not paired:
        raise InputError(
            f"gate: expected results with items that can be paired, got none ({NO_ITEMS})"
        )
    named = Counter((m.metric, m.query) for m in chosen)
    several = {key for key, count in named.items() if count > 1}
    blocks = [HEADER, *(_rule(m, id(m) in paired, (m.metric, m.query) in several) for m in chosen)]
    ids = {id(m) for m in chosen}
    if others := [m for m in measured if id(m) not in ids]:
        names = dict.fromkeys(f"{m.metric} ({m.query})" for m in others)
        blocks.append("# Measured as well, without a rule:\n" + "".join(map(_comment, names)))
    return "\n".join(blocks)


def _pairs(m: Measurement) -> bool:
    """Whether two of these have a paired change."""
    if not len(m.items):
        return False
    try:
        change = compare(m, m).change
    except (InputError, KeyError):
        return False
    return math.isfinite(change.low) and math.isfinite(change.high)


def _comment(text: str) -> str:
    return "# " + " ".join(text.split()) + "\n"


def _rule(m: Measurement, paired: bool, several: bool) -> str:
    """The rule of a measurement: the end of today's interval that is worse.

    Only where several subjects were measured does it name the subject, which may be renamed.
    """
    ideal = "" if m.ideal is None else f"; without bias {m.ideal:g}"
    lines = [
        _comment(f"today {m.value:.4g} [{m.low:.4g}, {m.high:.4g}], n = {m.n}{ideal}").rstrip(),
        "[[rules]]",
        f"metric = {_text(m.metric)}",
        *([f"query = {_text(m.query)}"] if m.query.strip() else []),
        *([f"subject = {_text(m.subject)}"] if m.subject and several else []),
    ]
    ratio = is_ratio(m.metric)
    low, high = _limits(m, ratio)
    judged = m.worse != "away" or m.ideal is not None
    worsening = f"max_worsening = {_above(_margin(m, low, high, ratio))}" if judged else ""
    if paired and judged:
        lines.append(worsening)
    else:
        lines += [f"min = {_below(low)}"] if low > -math.inf else []
        lines += [f"max = {_above(high)}"] if high < math.inf else []
        lines += [f"# with a baseline, in place of these: {worsening}"] if judged else []
    return "\n".join(lines) + "\n"


def _limits(m: Measurement, ratio: bool) -> tuple[float, float]:
    if m.worse == "higher":
        return -math.inf, m.high
    if m.worse == "lower":
        return m.low, math.inf
    if m.ideal is None:
        return m.low, m.high
    if ratio and min(m.low, m.ideal) > 0:
        factor = max(m.ideal / m.low, m.high / m.ideal)
        return m.ideal / factor, m.ideal * factor
    reach = max(m.ideal - m.low, m.high - m.ideal)
    return m.ideal - reach, m.ideal + reach


def _margin(m: Measurement, low: float, high: float, ratio: bool) -> float:
    """How far the limits of the value are from the value of today; of a ratio, a factor."""
    away = m.worse == "away" and m.ideal is not None and m.value < m.ideal
    end = low if m.worse == "lower" or away else high
    if not ratio:
        return abs(end - m.value)
    return max(end / m.value, m.value / end) if min(end, m.value) > 0 else 1.0


def _above(x: float) -> float:
    return 0.0 - _below(-x)


def _below(x: float) -> float:
    """The number with four digits that is next below, or the number itself."""
    if x == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(x))) - 3)
    return float(f"{math.floor(x / unit + 1e-9) * unit:.4g}") + 0.0


def _text(value: str) -> str:
    """A TOML string."""
    return json.dumps(value, ensure_ascii=False)
