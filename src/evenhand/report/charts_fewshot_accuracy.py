"""Figures of few-shot accuracy: runs with both intervals, and each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREEN, GREY, INK, PALE, Chart, rows, wrapped
from evenhand.report.charts_fewshot_parts import (
    LINE,
    LOOKS,
    across,
    classes_axis,
    domain_of,
    dots,
    finite,
    looks,
    once,
    placed,
    row,
    rule,
    runs_axis,
    runs_height,
    told,
    whiskers,
)
from evenhand.report.charts_posterior_parts import titled
from evenhand.report.wording import interval, number, percent

__all__ = ["accuracies", "by_class"]

WIDTH = 340


def accuracies(
    runs: Sequence[Mapping[str, Any]],
    *,
    chance: float | None = None,
    floor: Mapping[str, Any] | None = None,
) -> Chart:
    """A row a run: the accuracy, a thick line for new classes, and inside it the naive interval.

    The thick line is what a claim about other classes needs; the thin line in it only says how
    far other episodes of the same classes would go. `chance` is 1 / ways; `floor` is what counting
    words reaches, with its interval for new classes as a grey band.
    """
    import altair as alt

    once((run["name"] for run in runs), "runs")
    values = [
        row(
            wrapped(run["name"], LINE), run.get("value"), run.get("low"), run.get("high"),
            run=run["name"],
            naive_low=finite(run.get("naive_low")), naive_high=finite(run.get("naive_high")),
            naive=interval(finite(run.get("naive_low")), finite(run.get("naive_high"))),
            classes=run.get("classes"), episodes=run.get("episodes"), meant=run.get("interval"),
        )
        for run in runs
    ]  # fmt: skip
    below = row("", *((floor or {}).get(key) for key in ("value", "low", "high")))
    level = finite(chance)
    naive = [one[end] for one in values for end in ("naive_low", "naive_high")]
    domain = domain_of([*values, below], level, *naive)
    values = placed(values, domain)
    prob = percent(next((run["prob"] for run in runs if "prob" in run), 0.95))
    base = alt.Chart(rows(values)).encode(
        y=runs_axis([run["name"] for run in runs]),
        tooltip=[
            alt.Tooltip("run:N"), alt.Tooltip("value:Q", title="accuracy", format=".3f"),
            alt.Tooltip("interval:N", title=f"{prob}, new classes"),
            alt.Tooltip("naive:N", title=f"{prob}, naive"),
            alt.Tooltip("meant:N", title="meant for"),
            alt.Tooltip("classes:Q"), alt.Tooltip("episodes:Q", format=",d"),
        ],
    )  # fmt: skip
    x = across("accuracy", domain, 6)
    layers = [
        *_levels(level, placed([below], domain)[0]),
        whiskers(base, x, 9, color=alt.value(BLUE), opacity=alt.value(0.35)),
        base.mark_rule(strokeWidth=3, color=BLUE).encode(x="naive_low:Q", x2="naive_high:Q"),
        *dots(base, color=alt.value(INK)),
        base.mark_text(align="left", fontSize=11, color=INK).encode(
            x=alt.value(WIDTH + 8), text="shown:N"
        ),
    ]
    lines = [f"thick: {prob} interval for new classes; thin line in it: naive, over episodes alone"]
    if below["value"] is not None:
        lines.append(f"floor: counting words (TF-IDF, nearest centroid), {below['shown']}")
    return alt.layer(
        *layers, width=WIDTH, height=runs_height([run["name"] for run in runs])
    ).properties(title=titled("Accuracy on classes never trained on", *lines, *told(values)))


def _levels(chance: float | None, floor: Mapping[str, Any]) -> list[Chart]:
    """What chance and what counting words reach, named above the plot on either side."""
    import altair as alt

    layers: list[Chart] = []
    if floor["value"] is not None:
        band = alt.Chart(rows([floor]))
        layers += [
            band.mark_rect(color=PALE, opacity=0.6).encode(x="begin:Q", x2="end:Q"),
            band.mark_rule(color=GREEN, strokeWidth=1.5).encode(x="value:Q"),
        ]
    if chance is not None:
        layers.append(rule(chance))
    points = sorted(
        (at, name, colour)
        for at, name, colour in ((chance, "chance", GREY), (floor["value"], "floor", GREEN))
        if at is not None
    )
    for place, (at, name, colour) in enumerate(points):
        label = alt.Chart(rows([{"x": at, "text": f"{name} {number(at, 2)}"}]))
        look: Any = {"align": "left", "dx": 3} if place else {"align": "right", "dx": -3}
        layers.append(
            label.mark_text(fontSize=11, color=colour, **look).encode(
                x="x:Q", y=alt.value(-7), text="text:N"
            )
        )
    return layers


def by_class(
    classes: Sequence[Mapping[str, Any]],
    *,
    chance: float | None = None,
    prob: float | None = None,
) -> Chart:
    """A row a class, the easiest first: the share of its queries that are right, with its interval.

    The interval is for new texts of the class against new opponents. The colour is the gender the
    class has more texts of (neither: as many, or not told); pointing at a class tells what it is
    most often taken for.
    """
    import altair as alt

    once((one["name"] for one in classes), "classes")
    values = [
        row(
            one["name"], one["accuracy"], one["accuracy_low"], one["accuracy_high"],
            leaning=leaning if (leaning := one.get("leaning")) in LOOKS else "neither",
            taken_for=one.get("taken_for") or "–", texts=one["texts"], queries=one["queries"],
            f1=number(finite(one.get("f1"))),
            f1_interval=interval(finite(one.get("f1_low")), finite(one.get("f1_high"))),
        )
        for one in classes
    ]  # fmt: skip
    if not any(one["value"] is not None for one in values):
        raise InputError("classes: expected at least one with an accuracy, got none")
    values.sort(key=lambda one: (one["value"] is None, -(one["value"] or 0.0), one["label"]))
    values = placed(values, [0, 1])
    groups = {
        name: look for name, look in LOOKS.items() if any(r["leaning"] == name for r in values)
    }
    colour, shape = looks("leaning", groups, title="leans")
    base = alt.Chart(rows(values)).encode(
        y=classes_axis([one["label"] for one in values]), color=colour,
        tooltip=[
            alt.Tooltip("label:N", title="class"), alt.Tooltip("leaning:N"),
            alt.Tooltip("value:Q", title="accuracy", format=".3f"), alt.Tooltip("interval:N"),
            alt.Tooltip("taken_for:N", title="most often taken for"),
            alt.Tooltip("f1:N", title="F1"), alt.Tooltip("f1_interval:N", title="interval of F1"),
            alt.Tooltip("texts:Q"), alt.Tooltip("queries:Q", format=",d"),
        ],
    )  # fmt: skip
    x = across("accuracy", [0, 1], 10)
    layers = [whiskers(base, x, 1.6), *dots(base, shape=shape)]
    level = finite(chance)
    lines = [f"line: {percent(prob) + ' ' if prob else ''}interval for new texts and new opponents"]
    if level is not None:
        layers.insert(0, rule(level))
        lines[0] += f"; dashed: chance, {number(level, 2)}"
    return alt.layer(*layers, width=WIDTH, height={"step": 16}).properties(
        title=titled("Accuracy by class", *lines, *told(values))
    )
