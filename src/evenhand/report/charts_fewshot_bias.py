"""Figures of the bias of few-shot classifiers: by class and gender, and by measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, PALE, Chart, rows, wrapped
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
from evenhand.report.charts_posterior_parts import panel_title, titled
from evenhand.report.wording import number, p_value, percent

__all__ = ["MEASURES", "associations", "bias_measures", "none_of", "of_one_scale", "values_prob"]

MEASURES = {
    "association": ("Association", "log(p pro / p anti)"),
    "epsilon": ("ε with its sign", "accuracy, pro less anti"),
    "skew": ("Skew", "F1, men's versions less women's"),
    "stereotype": ("Stereotype", "F1, pro less anti"),
}
"""The title of each measure's panel and that of its axis."""

WIDTH = 230


def associations(found: Sequence[Mapping[str, Any]]) -> Chart:
    """A row a class and gender: how much better texts fit their class than their swapped twins do.

    Right of 0 the text as it is helps its class. A stereotype has men's texts right of 0 in classes
    of men and women's in classes of women, and the others left. Classes go from the fewest women
    to the most where `share_of_women` is given, else from those that lean male to the others.
    """
    import altair as alt

    once((f"{one['name']}, {one['gender']}" for one in found), "associations")
    values = [
        row(
            _class_label(one), one["association"], one["low"], one["high"], name=one["name"],
            gender=one["gender"], leaning=one["leaning"], texts=one["texts"],
        )
        for one in sorted(found, key=_women)
    ]  # fmt: skip
    domain = domain_of(values, 0)
    values = placed(values, domain)
    genders = {name: LOOKS[name] for name in ("male", "female")}
    colour, shape = looks("gender", genders, title="gender of the texts")
    base = alt.Chart(rows(values)).encode(
        y=classes_axis(list(dict.fromkeys(one["label"] for one in values))),
        yOffset=alt.YOffset("gender:N", sort=list(genders)),
        color=colour,
        tooltip=[
            alt.Tooltip("name:N", title="class"), alt.Tooltip("leaning:N", title="leans"),
            alt.Tooltip("gender:N", title="gender of the texts"), alt.Tooltip("texts:Q"),
            alt.Tooltip("value:Q", title="association", format=".3f"), alt.Tooltip("interval:N"),
        ],
    )  # fmt: skip
    x = across("log(p of the class by the text / by its gender-swapped twin)", domain, 7)
    layers = [rule(0), whiskers(base, x, 1.5), *dots(base, 42, shape=shape)]
    height: Any = {"step": 9, "for": "offset"}
    return alt.layer(*layers, width=360, height=height).properties(
        title=titled(
            "Association of texts with their class, by class and gender",
            f"mean over texts with its {percent(found[0].get('prob', 0.95))} interval; right of 0: "
            "the text fits better than its twin", *told(values),
        )
    )  # fmt: skip


def bias_measures(runs: Mapping[str, Mapping[str, Any]]) -> Chart:
    """A panel a measure, a row a run: the signed value with its interval for new classes.

    The grey band is what chance gives in these classes, when which version of a text counts as
    pro-stereotypical is tossed. A value outside the band is more than chance gives in these
    classes; an interval without 0 is bias to be expected in new classes too.
    """
    import altair as alt

    every = {
        measure: [_measured(name, bias.get(measure) or {}) for name, bias in runs.items()]
        for measure in MEASURES
    }
    values = {m: part for m, part in every.items() if any(r["value"] is not None for r in part)}
    if not values:
        raise InputError("bias: expected at least one measure with a value, got none")
    panels: list[Chart] = []
    drawn: list[dict[str, Any]] = []
    for measure, part in values.items():
        alike = of_one_scale(measure, values)
        domain = domain_of(alike, 0, *(r[end] for r in alike for end in ("below", "band")))
        lines = placed(part, domain)
        drawn += lines
        panels.append(_panel(measure, lines, domain, list(runs), left=len(panels) % 2 == 0))
    return alt.concat(*panels, columns=2, spacing=18).properties(
        title=titled(
            "Gender bias by its measures",
            f"line: {values_prob(runs)} interval for new classes; grey band: what chance gives in "
            "these classes;",
            "right of 0: in favour of pro-stereotypical versions of texts, or (skew) of men's",
            *told(drawn), *none_of(set(MEASURES) - set(values)),
        )
    )  # fmt: skip


def none_of(measures: set[str]) -> list[str]:
    """The line below the title that names measures without any value."""
    names = [MEASURES[measure][0] for measure in MEASURES if measure in measures]
    return [f"no value at all: {', '.join(names)}"] if names else []


def of_one_scale(
    measure: str, values: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """The rows of all measures that share the axis of this one: all but logarithms are shares."""
    alike = [m for m in values if (m == "association") == (measure == "association")]
    return [r for m in alike for r in values[m]]


def values_prob(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The probability of the intervals of some bias measures or changes, in words."""
    found = [run[m]["prob"] for run in runs.values() for m in MEASURES if run.get(m)]
    return percent(found[0])


def _measured(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    band = finite(told.get("null_high"))
    return row(
        wrapped(name, LINE), told.get("signed"), told.get("signed_low"), told.get("signed_high"),
        run=name, band=band, below=None if band is None else -band, chance=f"± {number(band)}",
        p=p_value(told.get("p_value")), null_p=p_value(told.get("null_p")),
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
    base = alt.Chart(rows(values)).encode(
        y=runs_axis(names, labels=left),
        tooltip=[
            alt.Tooltip("run:N"), alt.Tooltip("value:Q", title=title, format=".3f"),
            alt.Tooltip("interval:N"), alt.Tooltip("p:N", title="p, new classes"),
            alt.Tooltip("chance:N", title="chance gives"),
            alt.Tooltip("null_p:N", title="p, these classes"),
        ],
    )  # fmt: skip
    x = across(unit, domain, 4)
    return alt.layer(
        base.mark_bar(color=PALE, height=15).encode(x="below:Q", x2="band:Q"),
        rule(0),
        whiskers(base, x, 2.2, color=alt.value(BLUE)),
        *dots(base, color=alt.value(BLUE)),
        width=WIDTH, height=runs_height(names), title=panel_title(title),
    )  # fmt: skip


def _women(one: Mapping[str, Any]) -> tuple[bool, float, bool]:
    share = finite(one.get("share_of_women"))
    return share is None, share or 0.0, one["leaning"] != "male"


def _class_label(one: Mapping[str, Any]) -> str:
    share = finite(one.get("share_of_women"))
    return str(one["name"]) if share is None else f"{one['name']} ({percent(share)} women)"
