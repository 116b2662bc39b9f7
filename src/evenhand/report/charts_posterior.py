"""Charts of posteriors: contrasts, levels, words, before against after, predictive checks.

In every forest a dot is the posterior mean, the thick line the 50 % and the thin line the wide
highest-density interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import InputError
from evenhand.posterior.checks import Check
from evenhand.posterior.contrasts import measure_contrasts, measure_levels
from evenhand.posterior.tables import CONNECTIONS
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows
from evenhand.report.charts_posterior_parts import (
    KINDS,
    LOOKS,
    WIDE,
    forest,
    interval_row,
    label_axis,
    lines,
    name_of,
    panel_title,
    span,
    titled,
)
from evenhand.report.wording import interval, number, percent

if TYPE_CHECKING:
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.fits import Fit

__all__ = [
    "CROSSED", "MEAN_OF", "NAIVE", "WORD", "change_forest", "changes", "checks", "contrast_forest",
    "contrasts", "delta_forest", "levels", "minus", "word_deltas", "word_means",
]  # fmt: skip

CROSSED, NAIVE = "our model", "published model"
WORD, MEAN_OF = "protected word", "mean of its class"
TIMES = {"before": (ORANGE, "circle"), "after": (BLUE, "square")}


def contrasts(crossed: Fit, naive: Fit | None = None, prob: float = 0.89) -> Chart:
    """Read first: a line left of 0 and clear of it says that the first kind stands nearer.

    Grey beside it is what the published model would have claimed.
    """
    values = []
    for fit, model in ((crossed, CROSSED), (naive, NAIVE)):
        if fit is not None:
            values += [
                interval_row(m, label=minus(name), series=model)
                for name, m in measure_contrasts(fit, prob).items()
            ]
    return contrast_forest(values, name_of(crossed.table), prob)


def contrast_forest(values: Sequence[Mapping[str, Any]], name: str, prob: float) -> Chart:
    """The same from interval rows, whose series are the models."""
    looks = {CROSSED: (BLUE, "circle"), NAIVE: (GREY, "square")}
    drawn = {row["series"] for row in values}
    return forest(
        values, {model: look for model, look in looks.items() if model in drawn}, prob,
        p_below_zero=True, x_title="difference of mean cosine distances",
    ).properties(
        title=titled(
            f"Which words stand nearer? Contrasts, {name}",
            "below 0: the first kind of attribute stands nearer the protected words;", *KINDS,
            lines(prob),
        )
    )  # fmt: skip


def changes(change: Change, prob: float = 0.89) -> Chart:
    """Before, after, and the paired change of each contrast: the change is clear of 0 or not."""
    return change_forest(
        [
            interval_row(result, label=minus(name), series=when)
            for name, c in change.contrasts(prob).items()
            for when, result in (("before", c.before), ("after", c.after), ("change", c))
        ],
        prob,
    )


def change_forest(values: Sequence[Mapping[str, Any]], prob: float) -> Chart:
    """The same from interval rows, whose series are before, after and change."""
    return forest(
        values, {**TIMES, "change": (INK, "diamond")}, prob, p_below_zero=True,
        x_title="difference of mean cosine distances, and its change",
    ).properties(
        title=titled(
            "Contrasts before and after debiasing",
            "change = after − before, paired by protected word and attribute;",
            "hard debiasing makes associated − different 0 by construction, which is no success",
            lines(prob),
        )
    )  # fmt: skip


def levels(fits: Mapping[str, Fit], prob: float = 0.89) -> Chart:
    """Each connection class's mean by topic: compare the classes within one panel.

    Those of the thesis' coefficients are offsets of which only the differences are identified.
    """
    import altair as alt

    models = {fit.model for fit in fits.values()}
    if len(models) != 1 or models == {"baseline"}:
        names = ", ".join(sorted(models)) or "none"
        raise InputError(f"levels: expected fits of one model with levels, got {names}")
    offsets = models == {"coefficients"}
    values = {
        topic: [
            interval_row(m, label=level, series=level)
            for level, m in measure_levels(fit, prob).items()
        ]
        for topic, fit in fits.items()
    }
    every = [row for part in values.values() for row in part]
    panels = [
        forest(
            part, LOOKS, prob, domain=span(every, zero=offsets), offset=False, legend=False,
            zero=0 if offsets else None,
            x_title=None if topic != list(values)[-1] else
            "offset from the protected word's mean" if offsets else "mean cosine distance",
        ).properties(title=panel_title(topic))
        for topic, part in values.items()
    ]  # fmt: skip
    warning = ("their common shift is the prior's: only differences between them mean anything;",)
    return alt.vconcat(*panels, spacing=6).properties(
        title=titled(
            "Coefficients of the thesis' model by kind of attribute" if offsets
            else "Mean distance to each kind of attribute",
            *(warning if offsets else ()), *KINDS, lines(prob),
        )
    )  # fmt: skip


def word_deltas(crossed: Fit, prob: float = 0.89) -> Chart:
    """δ of each protected word by class, lowest first: left of 0, its own stereotypes are nearer.

    The diamond is the mean of the class's words.
    """
    delta = measure_contrasts(crossed, prob)["associated-different"]
    words = [
        interval_row(m, label=m.query, group=m.details.get("class", ""), series=WORD)
        for m in delta.select("word")
    ]
    if not words:
        raise InputError(f"{crossed.table.source}: no protected word has associated attributes")
    classes = [
        interval_row(m, label="all of them", group=m.query, series=MEAN_OF)
        for m in delta.select("class")
    ]
    return delta_forest(words, classes, name_of(crossed.table), prob)


def delta_forest(
    words: Sequence[Mapping[str, Any]],
    classes: Sequence[Mapping[str, Any]],
    name: str,
    prob: float,
) -> Chart:
    """The same from interval rows of the words and of the means of their classes."""
    import altair as alt

    looks = {WORD: (BLUE, "circle")} | ({MEAN_OF: (INK, "diamond")} if classes else {})
    by_class: dict[str, list[Mapping[str, Any]]] = {}
    for row in words:
        by_class.setdefault(row["group"], []).append(row)

    def mean(label: str) -> float:
        return float(np.mean([row["mean"] for row in by_class[label]]))

    parts = {
        label: [row for row in classes if row["group"] == label]
        + sorted(by_class[label], key=lambda row: float(row["mean"]))
        for label in sorted(by_class, key=mean)
    }
    every = [row for part in parts.values() for row in part]
    panels = [
        forest(
            part, looks, prob, domain=span(every, zero=True), offset=False, legend=k == 0,
            x_title="associated − different, in cosine distance" if k == len(parts) - 1 else None,
        ).properties(title=panel_title(label or "class not told"))
        for k, (label, part) in enumerate(parts.items())
    ]  # fmt: skip
    return alt.vconcat(*panels, spacing=6).properties(
        title=titled(
            f"How much nearer each word's own stereotypes stand, {name}",
            "below 0: nearer than they are to the words of other classes", lines(prob),
        )
    )  # fmt: skip


def word_means(fits: Mapping[str, Fit], prob: float = 0.89) -> Chart:
    """A panel a kind of attribute, a row a protected word: further left is nearer.

    With two fits, before and after, the row has both.
    """
    import altair as alt

    paired = len(fits) > 1
    if paired and tuple(fits) != tuple(TIMES):
        raise InputError(f"word means: expected one fit or before and after, got {', '.join(fits)}")
    by_level: dict[str, list[dict[str, Any]]] = {level: [] for level in CONNECTIONS}
    for when, fit in fits.items():
        for level, m in measure_levels(fit, prob).items():
            by_level[level] += [
                interval_row(
                    part,
                    label=part.query,
                    group=part.details.get("class", ""),
                    series=when if paired else level,
                )
                for part in m.parts
            ]
    parts = {level: part for level, part in by_level.items() if part}
    every = [row for part in parts.values() for row in part]
    order = sorted(dict.fromkeys((row["group"], row["label"]) for row in every))
    panels = [
        forest(
            part, TIMES if paired else LOOKS, prob, domain=span(every), zero=None,
            order=[word for _, word in order], x_title=None, axis=k == 0,
            offset=paired, legend=paired and k == 0, width=96, step=11,
        ).properties(title=panel_title(level))
        for k, (level, part) in enumerate(parts.items())
    ]  # fmt: skip
    first, classes = next(iter(fits.values())), dict.fromkeys(group for group, _ in order if group)
    return alt.hconcat(*panels, spacing=10).properties(
        title=titled(
            "Mean distance of each word to each kind of attribute"
            + (", before and after debiasing" if paired else f", {name_of(first.table)}"),
            f"cosine distance; rows by class: {', '.join(classes)}" if any(classes)
            else "cosine distance", *KINDS, lines(prob),
        )
    )  # fmt: skip


def checks(found: Mapping[str, Sequence[Check]], prob: float = 0.99) -> Chart:
    """A row a model: where its line misses the dashed one, the model cannot have made the data."""
    import altair as alt

    statistic = "intra-class correlation by attribute"
    values: list[dict[str, Any]] = [
        {
            "label": model, "mean": c.mean, "low": c.low, "high": c.high, "observed": c.observed,
            "interval": interval(c.low, c.high), "passed": "yes" if c.passed else "no",
        }
        for model, parts in found.items()
        for c in parts
        if c.statistic == statistic and np.isfinite([c.observed, c.low, c.high]).all()
    ]  # fmt: skip
    if not values:
        raise InputError("predictive check: no attribute recurs, so none correlates with itself")
    observed = float(values[0]["observed"])
    tooltip = [
        alt.Tooltip("label:N", title="model"), alt.Tooltip("observed:Q", format=".3f"),
        alt.Tooltip("mean:Q", title="made by the model", format=".3f"),
        alt.Tooltip("interval:N"), alt.Tooltip("passed:N", title="data inside"),
    ]  # fmt: skip
    answers = ["yes", "no"]
    shown = alt.Legend(title="makes tables like the data:", titleFontWeight=400)
    base = alt.Chart(rows(values)).encode(
        y=label_axis([v["label"] for v in values]), tooltip=tooltip
    )
    colour = alt.Color(
        "passed:N", scale=alt.Scale(domain=answers, range=[BLUE, ORANGE]),
        legend=shown,
    )  # fmt: skip
    shape = alt.Shape("passed:N", scale=alt.Scale(domain=answers, range=["circle", "triangle-up"]),
                      legend=shown)  # fmt: skip
    x = alt.X("low:Q", title="correlation of an attribute's distances to different words",
              scale=alt.Scale(domain=span(values, zero=True, also=observed),
                              nice=False))  # fmt: skip
    data = alt.Chart(rows(values[:1])).encode(x="observed:Q")
    text = f"data: {number(observed)}"
    return alt.layer(
        data.mark_rule(color=INK, strokeDash=[4, 3]),
        base.mark_rule(strokeWidth=2.5).encode(x=x, x2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x="mean:Q", color=colour, shape=shape
        ),
        data.mark_text(y=-7, fontSize=11, color=INK, text=text),
    ).properties(
        width=WIDE, height={"step": 22},
        title=titled(
            "Do the distances of one word hang together?",
            f"tables made by each model ({percent(prob)} of them) beside the data",
        ),
    )  # fmt: skip


def minus(contrast: str) -> str:
    """A contrast's name for reading.

    >>> minus("associated-different")
    'associated − different'
    """
    return contrast.replace("-", " − ")
