"""Check results against a policy: one row per rule and measurement, and what CI systems read."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand.display import Result, html_of
from evenhand.errors import InputError, UnknownNameError, parameter
from evenhand.files import document, save_json
from evenhand.gate.policy import NO_ITEMS, FailsIf, Missing, Policy, Rule, is_ratio, read_policy
from evenhand.gate.reading import Results, Source, read_results
from evenhand.instruments import all_declarations, compare, find, paired_jackknife
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.statistics.power import quantile
from evenhand.wording import visible

if TYPE_CHECKING:
    pass

Outcome = Literal["passed", "failed", "warning", "ignored"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RuleResult(Result):
    """How one measurement did by one rule.

    Parameters
    ----------
    rule : str
        The label of the rule.
    metric, query, subject : str
        The measurement; `query` names its part too.
    limits : {"value", "change", "worsening"}
        What is limited.
    estimate : Estimate or None
        Its value and interval; None where it was not measured.
    min, max : float
        The allowed range; infinite where there is no limit.
    fails_if : {"clearly outside", "possibly outside"}
    n : int
        The number of items, of a change those that are paired.
    outcome : {"passed", "failed", "warning", "ignored"}
        The last two only for what was not measured.
    reason : str

    """

    rule: str
    metric: str
    query: str
    subject: str
    limits: str
    estimate: Estimate | None
    min: float
    max: float
    fails_if: FailsIf
    n: int
    outcome: Outcome
    reason: str

    @property
    def limit_text(self) -> str:
        """The allowed range.

        >>> row = RuleResult(rule="r", metric="m", query="q", subject="", limits="value", n=9,
        ...     estimate=None, min=-1.0, max=1.0, fails_if="clearly outside", outcome="failed",
        ...     reason="not measured")
        >>> row.limit_text
        'value -1 to 1'
        """
        if math.isinf(self.min):
            return f"{self.limits} ≤ {self.max:g}"
        if math.isinf(self.max):
            return f"{self.limits} ≥ {self.min:g}"
        return f"{self.limits} {self.min:g} to {self.max:g}"

    @property
    def label(self) -> str:
        """The rule, and the measurement where the rule's own name does not say it."""
        words = [word for word in (self.subject, self.metric, self.query) if word]
        left = [word for word in words if word not in self.rule]
        return f"{self.rule} ({' '.join(left)})" if left else self.rule

    @property
    def value_text(self) -> str:
        return "–" if self.estimate is None else _number(self.estimate.value)

    @property
    def interval_text(self) -> str:
        e = self.estimate
        return "–" if e is None else f"[{_number(e.low)}, {_number(e.high)}]"

    def to_dict(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__}
        row["estimate"] = None if self.estimate is None else self.estimate.to_dict()
        return row

    def _headline(self) -> str:
        number = f"{self.value_text} {self.interval_text}"
        return f"{self.outcome}: {self.label}: {number}, {self.limit_text}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        plain = self.to_dict()
        ends = plain.pop("estimate") or dict.fromkeys(("value", "low", "high", "prob"))
        return [{**plain, **ends}]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult(Result):
    """What a gate says: `met`, and a row per rule and measurement."""

    rows: tuple[RuleResult, ...] = field(repr=False)
    title: str = ""

    @property
    def met(self) -> bool:
        """No rule failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        return tuple(row for row in self.rows if row.outcome == "failed")

    @property
    def summary(self) -> str:
        """One line."""
        counts = {
            word: sum(row.outcome == outcome for row in self.rows)
            for outcome, word in (
                ("passed", "passed"),
                ("failed", "failed"),
                ("warning", "not measured (warning)"),
                ("ignored", "not measured (ignored)"),
            )
        }
        listed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"gate {'met' if self.met else 'not met'}: {listed}"

    def __str__(self) -> str:
        lines = [
            f"{row.outcome}: {row.label}: {row.value_text} {row.interval_text}, "
            f"{row.limit_text}: {row.reason}"
            for row in self.rows
        ]
        return "\n".join([*lines, self.summary])

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "met": self.met,
            "summary": self.summary,
            "rules": [row.to_dict() for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as one JSON document."""
        save_json(path, document(gate=self.to_dict()))

    def to_markdown(self) -> str:
        """A summary for a pull request: the verdict, and a table, what failed first."""
        marks = {"failed": "❌ failed", "warning": "⚠️ warning", "passed": "✅ passed"}
        order = ("failed", "warning", "ignored", "passed")
        title = self.title or "Bias gate"
        lines = [f"### {_escape(title)}: {'met' if self.met else 'not met'}", ""]
        lines += [_escape(self.summary) + ".", ""]
        lines.append("| " + " | ".join(COLUMNS) + " |")
        lines.append("| --- | ---: | --- | --- | --- | --- |")
        for row in sorted(self.rows, key=lambda row: order.index(row.outcome)):
            texts = cells(row)
            texts[4] = marks.get(row.outcome, row.outcome)
            lines.append("| " + " | ".join(map(_escape, texts)) + " |")
        return "\n".join(lines) + "\n"

    def to_junit(self) -> str:
        """JUnit XML, one test case per rule and measurement.

        What was not measured and does not fail is a skipped test. There are no times: the same
        results give the same file.
        """
        from xml.etree.ElementTree import Element, SubElement, indent, tostring

        skipped = sum(row.outcome in ("warning", "ignored") for row in self.rows)
        counts = {
            "tests": str(len(self.rows)),
            "failures": str(len(self.failed)),
            "errors": "0",
            "skipped": str(skipped),
            "time": "0",
        }
        root = Element("testsuites", {"name": "evenhand gate", **counts})
        name = visible(self.title) or "evenhand gate"
        suite = SubElement(root, "testsuite", {"name": name, **counts})
        names: dict[str, int] = {}
        for row in self.rows:
            name = visible(f"{row.label}: {row.limit_text}")
            names[name] = names.get(name, 0) + 1
            case = SubElement(
                suite,
                "testcase",
                classname=visible(f"evenhand.{row.metric}"),
                name=name if names[name] == 1 else f"{name} #{names[name]}",
                time="0",
            )
            text = f"{row.value_text} {row.interval_text}, {row.limit_text}; n = {row.n}"
            if row.outcome == "failed":
                failure = SubElement(case, "failure", message=visible(row.reason), type="gate")
                failure.text = visible(text)
            elif row.outcome != "passed":
                SubElement(case, "skipped", message=visible(row.reason))
            else:
                SubElement(case, "system-out").text = visible(f"{text}: {row.reason}")
        indent(root)
        return tostring(root, encoding="unicode", xml_declaration=True) + "\n"

    def _headline(self) -> str:
        return self.summary

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row for result in self.rows for row in result._rows()]

    def _repr_html_(self) -> str:
        listed = [dict(zip(COLUMNS, cells(row), strict=True)) for row in self.rows]
        return html_of(self.summary, listed)


COLUMNS = ("rule", "value", "interval", "limit", "outcome", "reason")


def cells(row: RuleResult) -> list[str]:
    """A row as texts, in the order of `COLUMNS`."""
    texts = [row.label, row.value_text, row.interval_text, row.limit_text]
    return [*texts, row.outcome, row.reason]


def _number(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}"  # never -0.000


def _escape(text: str) -> str:
    """A text as a cell of Markdown."""
    escaped = html.escape(visible(" ".join(text.split())), quote=False)
    return re.sub(r"([\\|`*_])", r"\\\1", escaped)


# ------------------------------------------------------------------------------------- checking


def check(
    policy: str | os.PathLike[str] | Policy | Rule | Mapping[str, Any],
    results: Source,
    baseline: Source | None = None,
) -> GateResult:
    """Check results against a policy.

    Parameters
    ----------
    policy : path, Policy, Rule or mapping
        As for `read_policy`.
    results, baseline : path, Measurement, Measurements, or a list of these
        As for `read_results`. Rules on the change or the worsening compare both on the same items
        (`evenhand.compare`), and need the items: those of an audit's folder, of `save` and of
        `-o FILE.json`, not of `--json`.

    Returns
    -------
    GateResult

    Examples
    --------
    >>> m = Measurement(metric="gap", query="test", value=0.2, low=0.1, high=0.3, n=50, ideal=0.0,
    ...                 worse="away", interval="t")
    >>> check({"metric": "gap", "max": 0.15}, m).met  # the value is above, its interval not clearly
    True
    >>> print(check({"metric": "gap", "max": 0.05}, m).rows[0].reason)
    the whole interval is above the limit

    """
    read = read_policy(policy)
    after = read_results(results)
    before = None if baseline is None else read_results(baseline)
    rows = [row for rule in read.rules for row in _check_rule(read, rule, after, before)]
    return GateResult(rows=tuple(rows), title=read.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a rule judges: a measurement, and the estimate that it limits or why there is none."""

    measurement: Measurement
    query: str
    estimate: Estimate | None
    n: int
    problem: str = ""
    note: str = ""
    ratio: bool = False
    change: Estimate | None = None
    """The change behind a worsening that is a change of the distance from the ideal."""
    start: float | None = None
    """There, the baseline's distance from the ideal with its sign; of a ratio, its logarithm."""


def _check_rule(
    policy: Policy, rule: Rule, after: Results, before: Results | None
) -> Iterator[RuleResult]:
    low, high = rule.range
    fails_if = rule.fails_if or policy.fails_if
    missing: Missing = rule.missing or policy.missing
    common: dict[str, Any] = {
        "rule": rule.label,
        "metric": rule.metric,
        "limits": rule.limits,
        "min": low,
        "max": high,
        "fails_if": fails_if,
    }
    unmeasured: dict[Missing, Outcome] = {"fail": "failed", "warn": "warning", "ignore": "ignored"}
    targets = list(select(policy, rule, after, before))
    if not targets:
        yield RuleResult(
            **common,
            query=rule.query or "",
            subject=rule.subject or "",
            estimate=None,
            n=0,
            outcome=unmeasured[missing],
            reason=_why_missing(rule, after),
        )
    for target in targets:
        if target.estimate is None:
            reason, outcome = f"not measured: {target.problem}", unmeasured[missing]
        else:
            e = target.estimate
            failed = is_failure(e.low, e.high, low, high, fails_if)
            outcome = "failed" if failed else "passed"
            reason = _reason(e, low, high, fails_if) + (f"; {target.note}" if target.note else "")
        yield RuleResult(
            **common,
            query=target.query,
            subject=target.measurement.subject,
            estimate=target.estimate,
            n=target.n,
            outcome=outcome,
            reason=reason,
        )


def is_failure(low: Any, high: Any, minimum: float, maximum: float, fails_if: FailsIf) -> Any:
    """Whether intervals from `low` to `high`, numbers or arrays, fail a range.

    >>> is_failure(0.1, 0.3, -1.0, 0.2, "clearly outside")
    False
    >>> is_failure(0.1, 0.3, -1.0, 0.2, "possibly outside")
    True
    """
    if fails_if == "clearly outside":
        return (low > maximum) | (high < minimum)
    return (low < minimum) | (high > maximum)


def _reason(e: Estimate, low: float, high: float, fails_if: FailsIf) -> str:
    side = "above" if e.high > high else "below"
    if e.low > high or e.high < low:
        return f"the whole interval is {side} the limit"
    if low <= e.low and e.high <= high:
        return "the whole interval is inside the limits"
    inside = low <= e.value <= high
    if fails_if == "possibly outside":
        return f"the interval is partly {side} the limit"
    if inside:
        return "the value is inside the limits"
    return "the value is outside, but not clearly: the interval includes the limit"


def _why_missing(rule: Rule, results: Results) -> str:
    of_metric = [m for m in results.measurements if m.metric == rule.metric]
    for skip in results.skipped:
        if skip["metric"] == rule.metric and rule.query in (None, skip.get("query")):
            return f"not measured: {skip.get('reason', 'left out')}"
    if not of_metric:
        return f"not measured: the results have no {rule.metric}"
    for key, name in (("query", rule.query), ("subject", rule.subject)):
        known = list(dict.fromkeys(getattr(m, key) for m in of_metric))
        if name is not None and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            return f"not measured: {rule.metric} has no {key} '{name}'{hint}"
    parts = {part.query for m in of_metric for part in _parts(m) if rule.by in (None, part.by)}
    near = get_close_matches(rule.part or "", parts, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    asked = ": ".join(filter(None, (rule.by, rule.part)))
    return f"not measured: {rule.metric} has no part '{asked}'{hint}"


# ---------------------------------------------------------------------------- what a rule judges


def select(policy: Policy, rule: Rule, after: Results, before: Results | None) -> Iterator[Target]:
    """What the rule judges, in the order of the results."""
    _check_metric(rule, after)
    if rule.limits != "value" and before is None:
        yield from _stored(policy, rule, after)
        return
    for m in after.measurements:
        if not _matches(rule, m):
            continue
        baseline = None if before is None else _baseline_of(m, before)
        for part in [m] if rule.part is None and rule.by is None else _selected_parts(rule, m):
            query = m.query if part is m else f"{m.query}, {part.by}: {part.query}".lstrip(", ")
            if rule.limits == "value":
                if not math.isfinite(part.value) or math.isinf(part.low) or math.isinf(part.high):
                    yield _unmeasured(part, query, "it has no value with an interval")
                else:
                    prob, ratio = _prob(policy, rule, part.prob), is_ratio(part.metric)
                    estimate = with_prob(part.estimate, prob, part.n, ratio=ratio)
                    yield Target(
                        measurement=part, query=query, estimate=estimate, n=part.n, ratio=ratio
                    )
                continue
            compared = _compare(m, part, baseline)
            if isinstance(compared, str):
                yield _unmeasured(part, query, compared)
            else:
                yield _change_target(policy, rule, compared, query)


def _check_metric(rule: Rule, results: Results) -> None:
    """An unknown name is an error; a known measure that was not run is not measured."""
    measured = [*results.metrics, *(skip["metric"] for skip in results.skipped)]
    if rule.metric not in measured and find(rule.metric) is None:
        known = {*measured, *(declared.name for declared in all_declarations())}
        raise UnknownNameError("metric", rule.metric, known)


def _matches(rule: Rule, m: Measurement) -> bool:
    return (
        m.metric == rule.metric
        and rule.query in (None, m.query)
        and rule.subject in (None, m.subject)
    )


def _parts(m: Measurement) -> Iterator[Measurement]:
    for part in m.parts:
        yield part
        yield from _parts(part)


def _selected_parts(rule: Rule, m: Measurement) -> Iterator[Measurement]:
    for part in _parts(m):
        if rule.by in (None, part.by) and rule.part in (None, part.query, part.metric):
            yield part


def _unmeasured(m: Measurement, query: str, problem: str) -> Target:
    return Target(measurement=m, query=query, estimate=None, n=m.n, problem=problem)


def with_prob(e: Estimate, prob: float, n: int, *, ratio: bool = False) -> Estimate:
    """The estimate with an interval of another probability.

    Both arms are stretched by the quotient of the quantiles of Student's distribution with n - 1
    degrees of freedom; those of a ratio on the logarithm.

    >>> e = with_prob(Estimate(value=0.0, low=-1.96, high=1.96), 0.99, 10_000)
    >>> round(e.high, 2)
    2.58
    """
    if prob == e.prob:
        return e
    df = max(n - 1, 1)
    stretch = quantile((1 + prob) / 2, df) / quantile((1 + e.prob) / 2, df)
    ends = [e.value, e.low, e.high]
    if ratio and min(ends) > 0:
        value, low, high = map(math.log, ends)
        moved = [math.exp(value + stretch * (end - value)) for end in (low, high)]
    else:
        moved = [e.value + stretch * (end - e.value) for end in (e.low, e.high)]
    return Estimate(value=e.value, low=moved[0], high=moved[1], prob=prob)


def _baseline_of(m: Measurement, before: Results) -> Measurement | None:
    """The measurement of the baseline by the same metric and query, of the same subject first."""
    same = [b for b in before.measurements if (b.metric, b.query) == (m.metric, m.query)]
    return next((b for b in same if b.subject == m.subject), same[0] if len(same) == 1 else None)


def _compare(m: Measurement, part: Measurement, baseline: Measurement | None) -> Comparison | str:
    """The change from the baseline, of a part where it is one; or why there is none."""
    if baseline is None:
        return "the baseline does not have it"
    try:
        compared = compare(baseline, m)
        if part is not m:
            key = (part.metric, part.query, part.by)
            stored = (c for c in compared.parts if (c.metric, c.query, c.after.by) == key)
            earlier = (b for b in _parts(baseline) if (b.metric, b.query, b.by) == key)
            again = next(earlier, None)
            if again is None:
                return "the baseline does not have this part"
            compared = next(stored, None) or paired_jackknife(again, part)
    except (InputError, KeyError) as error:
        return f"the change could not be computed: {' '.join(str(error).split())}"
    if not len(m.items) or not len(baseline.items):
        where = "results" if not len(m.items) else "baseline"
        return (f"the {where} were saved without items, so nothing is paired ({NO_ITEMS})").replace(
            "the baseline were", "the baseline was"
        )
    if not math.isfinite(compared.change.value):
        return "one of the two has no value"
    if math.isinf(compared.change.low) or math.isinf(compared.change.high):
        return "no items are paired"
    return compared


def _stored(policy: Policy, rule: Rule, results: Results) -> Iterator[Target]:
    """Comparisons that the results have already: of a mitigation, or of two models' scores."""
    found = False
    for c in results.comparisons:
        if rule.against is not None and c.after.query == rule.against != c.before.query:
            c = _reversed(c)
        if not _matches(rule, c.after):
            continue
        if rule.against is not None and c.before.query != rule.against:
            continue
        if rule.against is None and c.before.query != c.after.query:
            continue
        found = True
        if math.isinf(c.change.low) or math.isinf(c.change.high):
            yield _unmeasured(c.after, c.after.query, "its change has no interval")
        else:
            yield _change_target(policy, rule, c, c.after.query)
    if not found and rule.against is None:
        raise InputError(
            f"rule '{rule.label}': expected a baseline ({parameter('baseline')}) for a limit on "
            f"the {rule.limits}, got none"
        )


def _reversed(c: Comparison) -> Comparison:
    """The comparison in the other direction."""
    change = _negative(c.change, ratio=c.kind == "ratio")
    return replace(c, before=c.after, after=c.before, change=change, parts=(), details={})


def _prob(policy: Policy, rule: Rule, prob: float) -> float:
    return rule.prob or policy.prob or prob


def _change_target(policy: Policy, rule: Rule, c: Comparison, query: str) -> Target:
    total = max(len(c.before.items), len(c.after.items))
    ratio = c.kind == "ratio"
    prob = _prob(policy, rule, c.change.prob)
    change = with_prob(c.change, prob, c.paired, ratio=ratio)
    target = Target(
        measurement=c.after,
        query=query,
        estimate=change,
        n=c.paired,
        note=f"{c.paired} of {total} items are paired" if c.paired < total else "",
        ratio=ratio,
    )
    if rule.limits == "change" or c.before.worse == "higher":
        return target
    if c.before.worse == "lower":
        return replace(target, estimate=_negative(change, ratio=ratio))
    if c.before.ideal is None:
        raise InputError(
            f"rule '{rule.label}': {c.metric} has no value without bias, so no change is a "
            "worsening: use min_change and max_change"
        )
    distance = c.details.get("distance")
    if distance is not None:
        own = with_prob(Estimate.from_dict(distance), prob, c.paired)
        return replace(target, estimate=own)
    start = distance_from_ideal(c.before, ratio=ratio)
    ends = [change.value, change.low, change.high]
    if ratio:
        ends = [math.log(x) if x > 0 else -math.inf for x in ends]
    low, high = fold(start, ends[1], ends[2])
    value = abs(start + ends[0]) - abs(start)
    worse = [float(math.exp(x)) if ratio else float(x) for x in (value, low, high)]
    estimate = Estimate(value=worse[0], low=worse[1], high=worse[2], prob=prob)
    return replace(target, estimate=estimate, change=change, start=start)


def _negative(e: Estimate, *, ratio: bool) -> Estimate:
    """The same change in the other direction."""
    value, low, high = (1 / x if x else math.inf for x in (e.value, e.high, e.low))
    if not ratio:
        value, low, high = -e.value, -e.high, -e.low
    return Estimate(value=value, low=low, high=high, prob=e.prob)


def distance_from_ideal(m: Measurement, *, ratio: bool) -> float:
    """With its sign; of a measure that is compared as a ratio, on the logarithm."""
    ideal = 0.0 if m.ideal is None else m.ideal
    if ratio and min(m.value, ideal) > 0:
        return math.log(m.value / ideal)
    return m.value - ideal


def fold(start: float, low: Any, high: Any) -> tuple[Any, Any]:
    r"""The interval of the change of the distance from the ideal, from that of the change.

    $|b + \Delta| - |b|$ with b the baseline's distance from the ideal with its sign: the image of
    the interval of $\Delta$ under this function. Takes numbers or arrays.

    >>> [float(x) for x in fold(1.0, -0.5, 0.5)], [float(x) for x in fold(0.25, -1.0, 0.5)]
    ([-0.5, 0.5], [-0.25, 0.5])
    """
    ends = np.abs(start + low) - abs(start), np.abs(start + high) - abs(start)
    crosses = (low <= -start) & (-start <= high)
    return np.where(crosses, -abs(start), np.minimum(*ends)), np.maximum(*ends)
