"""What mitigations changed in few-shot classifiers: bias before and after, and the accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows, wrapped
from evenhand.report.charts_fewshot_bias import MEASURES, WIDTH, none_of, of_one_scale, values_prob
from evenhand.report.charts_fewshot_parts import (
    LINE,
    across,
    domain_of,
    dots,
    finite,
    looks,
    placed,
    row,
    rule,
    runs_axis,
    runs_height,
    told,
    whiskers,
)
from evenhand.report.charts_posterior_parts import panel_title, titled
from evenhand.report.wording import interval, number, p_value

__all__ = ["bias_changes"]

UNCLEAR = "no clear change"
WAYS = {
    "less bias": (BLUE, "circle"), UNCLEAR: (GREY, "square"), "more bias": (ORANGE, "triangle-up"),
}  # fmt: skip


def bias_changes(changes: Mapping[str, Mapping[str, Any]]) -> Chart:
    """A panel a measure, a row a mitigation: hollow before, filled after; then what it cost.

    The line is the interval of the change, laid around the dot after: the change is clear where it
    does not reach the dot before. That is less bias only where the measure was clearly off 0
    before, and more only where it is clearly off 0 after: those are coloured, all else is grey.
    The last panel is the change of the accuracy.
    """
    import altair as alt

    names = list(changes)
    values = {
        measure: [_moved(name, change.get(measure) or {}) for name, change in changes.items()]
        for measure in MEASURES
    }
    cost = [_cost(name, change.get("accuracy") or {}) for name, change in changes.items()]
    parts = {m: part for m, part in values.items() if any(r["value"] is not None for r in part)}
    if not parts:
        raise InputError("changes: expected at least one measure with a value, got none")
    panels: list[Chart] = []
    drawn: list[dict[str, Any]] = []
    for measure, part in parts.items():
        alike = of_one_scale(measure, parts)
        domain = domain_of(alike, 0, *(r["before"] for r in alike))
        lines = placed(part, domain)
        drawn += lines
        panels.append(_panel(measure, lines, domain, names, left=len(panels) % 2 == 0))
    gone = none_of(set(MEASURES) - set(parts))
    if any(r["value"] is not None for r in cost):
        domain = domain_of(cost, 0)
        lines = placed(cost, domain)
        drawn += lines
        panels.append(_cost_panel(lines, domain, names, left=len(panels) % 2 == 0))
    else:
        gone.append("no value at all: accuracy")
    prob = values_prob(changes)
    return (
        alt.concat(*panels, columns=2, spacing=18)
        .resolve_scale(color="shared", shape="shared")
        .properties(
            title=titled(
                "Bias before and after, on the same texts",
                f"hollow: before; filled: after; line: {prob} interval of the change, around "
                "after;",
                "coloured: the line does not reach the hollow dot, and the bias (for less: before, "
                "for more: after) is clearly off 0",
                *told(drawn), *gone,
            )
        )
    )  # fmt: skip


def _moved(name: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a measure: the interval of the change is moved to where the dot before is 0."""
    before, after, by = (finite(change.get(key)) for key in ("before", "after", "change"))
    low, high = (finite(change.get(key)) for key in ("low", "high"))
    known = before is not None and after is not None
    ends = [None if before is None or end is None else before + end for end in (low, high)]
    return row(
        wrapped(name, LINE), after if known else None, *ends, run=name,
        before=before if known else None,
        direction=change.get("direction") or UNCLEAR,
        change=f"{number(by)} {interval(low, high)}", p=p_value(change.get("p_value")),
    )  # fmt: skip


def _cost(name: str, score: Mapping[str, Any]) -> dict[str, Any]:
    low, high = (finite(score.get(key)) for key in ("naive_low", "naive_high"))
    return row(
        wrapped(name, LINE), score.get("value"), score.get("low"), score.get("high"), run=name,
        naive=interval(low, high), p=p_value(score.get("p_value")),
    )  # fmt: skip


def _panel(
    measure: str,
    values: Sequence[Mapping[str, Any]],
    domain: list[float],
    names: Sequence[str],
    *,
    left: bool,
) -> Chart:
    import altair as alt

    title, unit = MEASURES[measure]
    colour, shape = looks("direction", WAYS)
    base = alt.Chart(rows(values)).encode(
        y=runs_axis(names, labels=left),
        tooltip=[
            alt.Tooltip("run:N", title="mitigation"), alt.Tooltip("before:Q", format=".3f"),
            alt.Tooltip("value:Q", title="after", format=".3f"), alt.Tooltip("change:N"),
            alt.Tooltip("p:N"), alt.Tooltip("direction:N", title=" "),
        ],
    )  # fmt: skip
    x = across(unit, domain, 4)
    return alt.layer(
        rule(0),
        base.mark_rule(color="#b5b5b5", strokeWidth=1).encode(x="before:Q", x2="value:Q"),
        whiskers(base, x, 2.2, color=colour),
        base.mark_point(color=INK, size=60, strokeWidth=1.6, opacity=1).encode(x="before:Q"),
        *dots(base, color=colour, shape=shape),
        width=WIDTH, height=runs_height(names), title=panel_title(title),
    )  # fmt: skip


def _cost_panel(
    values: Sequence[Mapping[str, Any]], domain: list[float], names: Sequence[str], *, left: bool
) -> Chart:
    import altair as alt

    base = alt.Chart(rows(values)).encode(
        y=runs_axis(names, labels=left),
        tooltip=[
            alt.Tooltip("run:N", title="mitigation"),
            alt.Tooltip("value:Q", title="change of accuracy", format="+.3f"),
            alt.Tooltip("interval:N", title="interval, new classes"),
            alt.Tooltip("naive:N", title="interval, naive"), alt.Tooltip("p:N"),
        ],
    )  # fmt: skip
    x = across("after less before; left of 0: it cost accuracy", domain, 4)
    return alt.layer(
        rule(0),
        whiskers(base, x, 2.2, color=alt.value(INK)),
        *dots(base, color=alt.value(INK)),
        width=WIDTH, height=runs_height(names), title=panel_title("Accuracy, its change"),
    )  # fmt: skip
