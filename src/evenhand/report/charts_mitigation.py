"""Charts of mitigations: the measures before and after, where bias hides, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.report.charts import BLUE, GREY, ORANGE, Chart, rows, wrapped
from evenhand.report.methods import label, row_label
from evenhand.report.saved import Account
from evenhand.report.wording import interval, number
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    import altair as alt

__all__ = ["hiding", "measures", "utility"]

SHOWN = ("association", "weat", "direct_bias", "same", "mac", "ect", "rnsb", "projections")
"""The measures drawn; RND and RIPA by list are in the table."""


def measures(accounts: Sequence[Account], topic: str) -> Chart:
    """A panel a measure, a row a method: hollow before, filled after with its interval."""
    return _paired(
        accounts,
        lambda account: [c for c in account.measures if c.before.metric in SHOWN],
        lambda m: row_label(m, topic),
    )


def hiding(accounts: Sequence[Account]) -> Chart:
    """The hiding tests in the same form; the dashed line is what chance reads."""
    return _paired(accounts, lambda account: account.hiding, lambda m: label(m.metric), columns=2)


def _paired(
    accounts: Sequence[Account],
    comparisons: Callable[[Account], Sequence[Comparison]],
    name: Callable[[Measurement], str],
    columns: int = 3,
) -> Chart:
    by_measure: dict[str, list[dict[str, Any]]] = {}
    for account in accounts:
        for c in comparisons(account):
            by_measure.setdefault(name(c.before), []).append(
                {
                    "method": account.method, "before": c.before.value, "after": c.after.value,
                    "low": c.after.low, "high": c.after.high, "ideal": c.before.ideal,
                    "interval": interval(c.after.low, c.after.high),
                }
            )  # fmt: skip
    return _panels({title: _pair(values) for title, values in by_measure.items()}, columns)


def utility(accounts: Sequence[Account]) -> Chart:
    """What is left of the vectors' geometry, a panel a measure, a row a method."""
    import altair as alt

    by_measure: dict[str, list[dict[str, Any]]] = {}
    for account in accounts:
        for m in account.utility:
            by_measure.setdefault(label(m.metric), []).append(
                {
                    "method": account.method, "value": m.value, "low": m.low, "high": m.high,
                    "text": number(m.value), "interval": interval(m.low, m.high),
                }
            )  # fmt: skip

    def panel(values: list[dict[str, Any]]) -> Chart:
        base = alt.Chart(rows(values)).encode(
            y=_methods(),
            tooltip=[
                alt.Tooltip("method:N"), alt.Tooltip("value:Q", title="kept", format=".3f"),
                alt.Tooltip("interval:N"),
            ],
        )  # fmt: skip
        bar = base.mark_bar(color=BLUE, height=14, opacity=0.85).encode(
            x=alt.X("value:Q", title=None, scale=alt.Scale(domain=[0, 1.18]),
                    axis=alt.Axis(values=[0, 0.5, 1]))
        )  # fmt: skip
        line = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
        text = base.mark_text(align="left", dx=6, fontSize=11).encode(x="high:Q", text="text:N")
        return alt.layer(bar, line, text)

    return _panels({title: panel(values) for title, values in by_measure.items()})


def _methods() -> alt.Y:
    import altair as alt

    return alt.Y(
        "method:N", sort=None, title=None,
        axis=alt.Axis(ticks=False, domain=False, minExtent=92, grid=True),
    )  # fmt: skip


def _pair(values: list[dict[str, Any]]) -> Chart:
    import altair as alt

    base = alt.Chart(rows(values)).encode(
        y=_methods(),
        tooltip=[
            alt.Tooltip("method:N"), alt.Tooltip("before:Q", format=".3f"),
            alt.Tooltip("after:Q", format=".3f"), alt.Tooltip("interval:N", title="interval after"),
        ],
    )  # fmt: skip
    scale = alt.Scale(zero=False, nice=False, padding=9)
    ideal = alt.Chart(rows(values[:1])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ideal:Q")
    link = base.mark_rule(color="#b5b5b5", strokeWidth=1).encode(
        x=alt.X("before:Q", title=None, scale=scale, axis=alt.Axis(tickCount=3)), x2="after:Q"
    )
    line = base.mark_rule(color=BLUE, strokeWidth=2.2).encode(x="low:Q", x2="high:Q")
    before = base.mark_point(color=ORANGE, size=60, strokeWidth=2, opacity=1).encode(x="before:Q")
    after = base.mark_point(color=BLUE, filled=True, size=60, opacity=1).encode(x="after:Q")
    return alt.layer(ideal, link, line, before, after)


def _panels(panels: dict[str, Chart], columns: int = 3) -> Chart:
    import altair as alt

    return alt.concat(
        *(
            panel.properties(
                title=alt.TitleParams(wrapped(title, 28).split("\n"), fontSize=12),
                width=530 // columns, height={"step": 24},
            )
            for title, panel in panels.items()
        ),
        columns=columns, spacing=22,
    )  # fmt: skip
