"""Check results against a policy: one row per rule and measurement, and what CI systems read."""

from __future__ import annotations

import html
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.arguments import checked
from evenhand.display import Result, html_of
from evenhand.errors import InputError, UnknownNameError, parameter
from evenhand.files import document, save_json
from evenhand.gate.policy import NO_ITEMS, FailsIf, Missing, Policy, Rule, read_policy
from evenhand.gate.reading import Results, Source, read_results
from evenhand.instruments import all_declarations, compare, find, is_ratio, paired_jackknife
from evenhand.judging import Placement, place, simultaneous, widen
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.wording import visible

Outcome: TypeAlias = Placement | Literal["warning", "ignored"]
"""Of a rule on a measurement; the last two only for what was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RuleRow(Result):
    """A rule and a measurement that it limits.

    Parameters
    ----------
    rule : str
        The label of the rule.
    metric, query, subject : str
        The measurement; `query` names its part too.
    limits : {"value", "change", "worsening"}
        What is limited.
    min, max : float
        The allowed range; infinite where there is no limit.
    fails_if : {"possibly outside", "clearly outside"}
    n : int
        The number of items, of a change those that are paired.

    """

    rule: str
    metric: str
    query: str
    subject: str
    limits: str
    min: float
    max: float
    fails_if: FailsIf
    n: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RuleResult(RuleRow):
    """How one measurement did by one rule.

    Parameters
    ----------
    estimate : Estimate or None
        Its value and interval; None where it was not measured.
    outcome : {"met", "not met", "inconclusive", "warning", "ignored"}
        Met: the interval is inside the range. Not met: it is outside, or nothing was measured.
        Inconclusive: it crosses a limit. The last two only for what was not measured.
    reason : str

    """

    estimate: Estimate | None
    outcome: Outcome
    reason: str

    @property
    def fails(self) -> bool:
        """Whether the gate fails by it: not met or, if "possibly outside" fails, inconclusive."""
        return self.outcome == "not met" or (
            self.outcome == "inconclusive" and self.fails_if == "possibly outside"
        )

    @property
    def limit_text(self) -> str:
        """The allowed range.

        >>> row = RuleResult(rule="r", metric="m", query="q", subject="", limits="value", n=9,
        ...     estimate=None, min=-1.0, max=1.0, fails_if="clearly outside", outcome="not met",
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
        return {**asdict(self), "fails": self.fails}

    def _headline(self) -> str:
        number = f"{self.value_text} {self.interval_text}"
        return f"{self.outcome}: {self.label}: {number}, {self.limit_text}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        plain = self.to_dict()
        ends = plain.pop("estimate") or dict.fromkeys(("value", "low", "high", "prob"))
        return [{**plain, **ends}]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult(Result):
    """What a gate says: its `state`, whether it fails, and a row per rule and measurement."""

    rows: tuple[RuleResult, ...] = field(repr=False)
    title: str = ""

    @property
    def state(self) -> Placement:
        """Met, not met (at least one rule is not met), or inconclusive.

        Rules on what was not measured count only where the policy says that they fail. A gate
        without a rule that is met is never met.
        """
        outcomes = {row.outcome for row in self.rows}
        if "not met" in outcomes:
            return "not met"
        return "inconclusive" if "inconclusive" in outcomes or "met" not in outcomes else "met"

    @property
    def met(self) -> bool:
        """Whether the state is "met"."""
        return self.state == "met"

    @property
    def failed(self) -> tuple[RuleResult, ...]:
        """The rows by which the gate fails: `evenhand gate` exits with 3 if there is one."""
        return tuple(row for row in self.rows if row.fails)

    @property
    def summary(self) -> str:
        """One line."""
        counts = Counter(row.outcome for row in self.rows)
        listed = ", ".join(
            f"{counts[outcome]} "
            + (f"not measured ({outcome})" if outcome in ("warning", "ignored") else outcome)
            for outcome in ("met", "not met", "inconclusive", "warning", "ignored")
            if counts[outcome]
        )
        fails = "fails" if self.failed else "does not fail"
        note = f", which {fails} by this policy" if self.state == "inconclusive" else ""
        return f"gate {self.state}{note}: {listed}"

    def __str__(self) -> str:
        return "\n".join([*(f"{row._headline()}: {row.reason}" for row in self.rows), self.summary])

    def to_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "state": self.state,
            "met": self.met,
            "fails": bool(self.failed),
            "summary": self.summary,
            "rules": [row.to_dict() for row in self.rows],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as one JSON document."""
        save_json(path, document(gate=self.to_dict()))

    def to_markdown(self) -> str:
        """A summary for a pull request: the state, and a table, what is not met first."""
        marks = {"not met": "❌", "inconclusive": "❔", "warning": "⚠️", "ignored": "", "met": "✅"}
        listed = [list(COLUMNS), ["---", "---:", *["---"] * 4]]
        for row in sorted(self.rows, key=lambda row: list(marks).index(row.outcome)):
            texts = cells(row)
            texts[4] = f"{marks[row.outcome]} {row.outcome}"
            listed.append([_escape(text) for text in texts])
        table = "\n".join(f"| {' | '.join(texts)} |" for texts in listed)
        title = f"### {_escape(self.title or 'Bias gate')}: {self.state}"
        return f"{title}\n\n{_escape(self.summary)}.\n\n{table}\n"

    def to_junit(self) -> str:
        """JUnit XML, one test case per rule and measurement.

        What fails is a failure of the type "not met" or "inconclusive". What is inconclusive or
        was not measured and does not fail is a skipped test. There are no times: the same results
        give the same file.
        """
        from xml.etree.ElementTree import Element, SubElement, indent, tostring

        skipped = sum(not row.fails and row.outcome != "met" for row in self.rows)
        counts = {"tests": len(self.rows), "failures": len(self.failed), "errors": 0}
        about = {name: str(count) for name, count in (counts | {"skipped": skipped}).items()}
        about["time"] = "0"
        root = Element("testsuites", {"name": "evenhand gate", **about})
        title = visible(self.title) or "evenhand gate"
        suite = SubElement(root, "testsuite", {"name": title, **about})
        names = Counter[str]()
        for row in self.rows:
            name = visible(f"{row.label}: {row.limit_text}")
            names[name] += 1
            name += f" #{names[name]}" if names[name] > 1 else ""
            metric = visible(f"evenhand.{row.metric}")
            case = SubElement(suite, "testcase", classname=metric, name=name, time="0")
            text = f"{row.value_text} {row.interval_text}, {row.limit_text}; n = {row.n}"
            message = visible(row.reason)
            if row.outcome == "inconclusive":
                message = f"inconclusive: {message}"
            if row.fails:
                failure = SubElement(case, "failure", message=message, type=row.outcome)
                failure.text = visible(text)
            elif row.outcome != "met":
                SubElement(case, "skipped", message=message)
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


@checked
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
    ...                 worse="higher", interval="t")
    >>> [check({"metric": "gap", "max": limit}, m).state for limit in (0.05, 0.25, 0.4)]
    ['not met', 'inconclusive', 'met']
    >>> print(check({"metric": "gap", "max": 0.05}, m).rows[0].reason)
    the interval is above the limit

    """
    read = read_policy(policy)
    after = read_results(results)
    before = None if baseline is None else read_results(baseline)
    selected = [(rule, list(select(read, rule, after, before))) for rule in read.rules]
    family = sum(target.estimate is not None for _, targets in selected for target in targets)
    rows = [
        row for rule, targets in selected for row in _check_rule(read, rule, targets, after, family)
    ]
    return GateResult(rows=tuple(rows), title=read.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """What a rule judges: a measurement, and the estimate that it limits or why there is none."""

    measurement: Measurement
    query: str
    estimate: Estimate | None
    n: int
    problem: str = ""
    note: str = ""
    ratio: bool = False
    df: float = 1.0
    """Degrees of freedom of the interval."""
    change: Estimate | None = None
    """The change behind a worsening that is a change of the distance from the ideal."""
    start: float | None = None
    """There, the baseline's distance from the ideal with its sign; of a ratio, its logarithm."""


def _check_rule(
    policy: Policy, rule: Rule, targets: Sequence[RuleTarget], after: Results, family: int
) -> Iterator[RuleResult]:
    """The outcomes of a rule.

    That all rules are met wrongly is no likelier with more of them. That one is not met is: so
    "not met" needs the interval at the level of all rules together to be outside.
    """
    low, high = rule.range
    missing: Missing = rule.missing or policy.missing
    common = describe_rule(policy, rule)
    unmeasured: dict[Missing, Outcome] = {"fail": "not met", "warn": "warning", "ignore": "ignored"}
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
            outcome = place(e.low, e.high, low, high)
            reason = _reason(e, low, high) + (f"; {target.note}" if target.note else "")
            wide = _at(e, simultaneous(e.prob, family), target.df, ratio=target.ratio)
            if outcome == "not met" and place(wide.low, wide.high, low, high) != "not met":
                outcome = "inconclusive"
                reason += f"; not at the level of all {family} rules together"
        yield RuleResult(
            **common,
            query=target.query,
            subject=target.measurement.subject,
            estimate=target.estimate,
            n=target.n,
            outcome=outcome,
            reason=reason,
        )


def describe_rule(policy: Policy, rule: Rule) -> dict[str, Any]:
    """The fields of a `RuleRow` that are the rule's."""
    low, high = rule.range
    return {
        "rule": rule.label,
        "metric": rule.metric,
        "limits": rule.limits,
        "min": low,
        "max": high,
        "fails_if": rule.fails_if or policy.fails_if,
    }


def _reason(e: Estimate, low: float, high: float) -> str:
    """Where the interval is, by each limit alone."""
    by_limit = {
        ("below", "lower"): place(e.low, e.high, low, math.inf),
        ("above", "upper"): place(e.low, e.high, -math.inf, high),
    }
    outside = [side for (side, _), placed in by_limit.items() if placed == "not met"]
    crossed = [limit for (_, limit), placed in by_limit.items() if placed == "inconclusive"]
    if outside:
        return f"the interval is {outside[0]} the limit"
    if not crossed:
        return "the interval is inside the limits"
    return f"the interval crosses the {' and the '.join(crossed)} limit"


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
            return f"not measured: {rule.metric} has no {key} '{name}'{_nearest(name, known)}"
    parts = {part.query for m in of_metric for part in _parts(m) if rule.by in (None, part.by)}
    asked = ": ".join(filter(None, (rule.by, rule.part)))
    hint = _nearest(rule.part or "", parts)
    return f"not measured: {rule.metric} has no part '{asked}'{hint}"


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


# ---------------------------------------------------------------------------- what a rule judges


def select(
    policy: Policy, rule: Rule, after: Results, before: Results | None
) -> Iterator[RuleTarget]:
    """What the rule judges, in the order of the results."""
    _check_metric(rule, after)
    for target in _select(policy, rule, after, before):
        m = target.measurement
        if problem := rule.one_sided_problem(m.ideal, m.worse, ratio=target.ratio):
            raise InputError(f"rule '{rule.label}': {problem}")
        yield target


def _select(
    policy: Policy, rule: Rule, after: Results, before: Results | None
) -> Iterator[RuleTarget]:
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
                    df = _df(part.details, part.n)
                    yield RuleTarget(
                        measurement=part,
                        query=query,
                        estimate=_at(part.estimate, prob, df, ratio=ratio),
                        n=part.n,
                        ratio=ratio,
                        df=df,
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


def _unmeasured(m: Measurement, query: str, problem: str) -> RuleTarget:
    return RuleTarget(measurement=m, query=query, estimate=None, n=m.n, problem=problem)


def _df(details: Mapping[str, Any], n: int) -> float:
    """Degrees of freedom of an interval: its own where it has them, otherwise n - 1."""
    return float(details.get("df") or max(n - 1, 1))


def _at(e: Estimate, prob: float, df: float, *, ratio: bool = False) -> Estimate:
    """The estimate with an interval of another probability."""
    return Estimate.of(widen((e.value, e.low, e.high), e.prob, prob, df=df, ratio=ratio), prob)


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
    for items, where in ((m.items, "results were"), (baseline.items, "baseline was")):
        if not len(items):
            return f"the {where} saved without items, so nothing is paired ({NO_ITEMS})"
    if not math.isfinite(compared.change.value):
        return "one of the two has no value"
    if math.isinf(compared.change.low) or math.isinf(compared.change.high):
        return "no items are paired"
    return compared


def _stored(policy: Policy, rule: Rule, results: Results) -> Iterator[RuleTarget]:
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


def _change_target(policy: Policy, rule: Rule, c: Comparison, query: str) -> RuleTarget:
    total = max(len(c.before.items), len(c.after.items))
    ratio = c.kind == "ratio"
    prob = _prob(policy, rule, c.change.prob)
    df = _df(c.details, c.paired)
    change = _at(c.change, prob, df, ratio=ratio)
    target = RuleTarget(
        measurement=c.after,
        query=query,
        estimate=change,
        n=c.paired,
        note=f"{c.paired} of {total} items are paired" if c.paired < total else "",
        ratio=ratio,
        df=df,
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
        return replace(target, estimate=_at(Estimate.from_dict(distance), prob, df))
    start = distance_from_ideal(c.before, ratio=ratio)
    ends = [change.value, change.low, change.high]
    if ratio:
        ends = [math.log(x) if x > 0 else -math.inf for x in ends]
    low, high = fold(start, ends[1], ends[2])
    value = abs(start + ends[0]) - abs(start)
    value, low, high = (float(math.exp(x) if ratio else x) for x in (value, low, high))
    estimate = Estimate(value=value, low=low, high=high, prob=prob)
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
