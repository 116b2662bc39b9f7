"""Charts of the phrase WEAT: effect sizes, and each phrase's association against its pronoun."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from evenhand.errors import InputError
from evenhand.masked.metrics.phrases import CORRELATION
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, PALE, Chart, rows
from evenhand.report.charts_saving import ChartSet
from evenhand.report.wording import percent
from evenhand.results import Measurement

__all__ = ["forest", "phrase_charts", "scatter"]

WIDTH, HEIGHT = 440, 340
LOOKS = ((BLUE, "circle"), (ORANGE, "triangle-up"), (GREY, "cross"))
"""Of the first sides of the sets, the second sides, and neutral phrases."""


def phrase_charts(results: Sequence[Measurement]) -> ChartSet:
    """The forest of effect sizes and a scatter for each way of embedding, model and centring."""
    made = ChartSet()
    made.add("effect-sizes", lambda: forest([m for m in results if m.metric != CORRELATION]))
    for m in results:
        if m.metric != CORRELATION:
            continue
        for part in (m.part("raw", "embedding"), m):
            kind = "centred" if part.details["centred"] else "raw"
            model = m.details["pronouns"]
            by = "" if model == m.subject else f"-{_plain(model)}"
            made.add(f"pronouns-{_plain(m.subject)}{by}-{kind}", lambda of=part: scatter(of))  # type: ignore[misc]
    return made


def forest(results: Sequence[Measurement]) -> Chart:
    """Effect sizes with intervals, one row per set, raw and centred beside each other."""
    import altair as alt

    if not results:
        raise InputError("effect sizes: expected measurements, got none")
    measured = [
        replace(part, query=m.query) for m in results for part in (m.part("raw", "embedding"), m)
    ]
    by_source: dict[str, list[Measurement]] = {}
    for m in measured:
        by_source.setdefault(m.subject, []).append(m)
    ends = [end for m in measured for end in (m.low, m.high) if math.isfinite(end)]
    domain = [min([0.0, *ends]), max([0.0, *ends])]
    panels = [_panel(source, part, domain) for source, part in by_source.items()]
    prob = measured[0].prob
    return alt.vconcat(*panels, spacing=14).properties(
        title={
            "text": "Phrase WEAT: do phrases lean to words for one gender?",
            "subtitle": f"lines: {percent(prob)} intervals over phrases",
            "subtitleColor": GREY,
        }
    )


def _panel(source: str, part: Sequence[Measurement], domain: list[float]) -> Chart:
    import altair as alt

    kinds = {False: "raw", True: "centred on control phrases"}
    data = rows(
        [
            {
                "set": m.query, "kind": kinds[m.details["centred"]], "d": m.value,
                "low": m.low, "high": m.high, "n": m.n, "p": m.p_value,
            }
            for m in part
            if math.isfinite(m.low) and math.isfinite(m.high)
        ]
    )  # fmt: skip
    base = alt.Chart(data).encode(
        y=alt.Y("set:N", sort=list(dict.fromkeys(m.query for m in part)), title=None),
        yOffset=alt.YOffset("kind:N", sort=list(kinds.values())),
        color=alt.Color(
            "kind:N", title=None,
            scale=alt.Scale(domain=list(kinds.values()), range=[GREY, BLUE]),
        ),
    )  # fmt: skip
    told = [
        "set:N", "kind:N", *(alt.Tooltip(f"{x}:Q", format=".2f") for x in ("d", "low", "high")),
        alt.Tooltip("p:Q", format=".2g"), "n:Q",
    ]  # fmt: skip
    title = "effect size d; above 0: the first side leans to the first attributes"
    x = alt.X("low:Q", title=title, scale=alt.Scale(domain=domain))
    zero = alt.Chart(rows([{"x": 0}])).mark_rule(color=INK, strokeDash=[3, 3]).encode(x="x:Q")
    lines = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x="d:Q", tooltip=told)
    return alt.layer(zero, lines, dots).properties(width=WIDTH, height={"step": 17}, title=source)


def scatter(found: Measurement) -> Chart:
    """Each phrase's association against its mean log odds of the male pronoun."""
    import altair as alt

    if not found.select("phrases"):
        raise InputError("scatter: expected at least 4 phrases, got fewer")
    present = set(found.items["kind"])
    looks = {
        kind: look
        for kind, look in zip((*found.details["kinds"], "neutral"), LOOKS, strict=True)
        if kind in present
    }
    colours, shapes = zip(*looks.values(), strict=True)
    data = rows(list(found.items))
    how = "centred on control phrases" if found.details["centred"] else "raw"
    points = alt.Chart(data).mark_point(filled=True, size=46, opacity=0.8).encode(
        x=alt.X(
            "association:Q", scale=alt.Scale(zero=False),
            title=f"association s(w, A, B) by {found.subject}, {how}",
        ),
        y=alt.Y("log_odds:Q", title=f"log odds of the male pronoun, {found.details['pronouns']}"),
        color=alt.Color(
            "kind:N", title=None, scale=alt.Scale(domain=list(looks), range=list(colours))
        ),
        shape=alt.Shape(
            "kind:N", title=None, scale=alt.Scale(domain=list(looks), range=list(shapes))
        ),
        tooltip=[
            "phrase:N", "set:N", "side:N", alt.Tooltip("association:Q", format=".4f"),
            alt.Tooltip("log_odds:Q", format=".2f"), alt.Tooltip("bias:Q", format=".2f"),
        ],
    )  # fmt: skip
    fit = alt.Chart(data).transform_regression("association", "log_odds")
    fit = fit.mark_line(color=INK, strokeWidth=1).encode(x="association:Q", y="log_odds:Q")
    level = alt.Chart(rows([{"y": 0}])).mark_rule(color=PALE).encode(y="y:Q")
    return alt.layer(level, fit, points).properties(
        width=WIDTH, height=HEIGHT,
        title={
            "text": "Do a phrase's embedding and its pronoun agree?",
            "subtitle": [_line(found, name) for name in ("all phrases", "within groups")],
            "subtitleColor": GREY,
        },
    )  # fmt: skip


def _line(found: Measurement, name: str) -> str:
    r = found.part(name, "phrases")
    p = "–" if r.p_value is None else f"{r.p_value:.2g}"
    return (
        f"{name}: r = {r.value:.2f} [{r.low:.2f}, {r.high:.2f}] ({percent(r.prob)}), "
        f"p = {p}, n = {r.n}"
    )


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")
