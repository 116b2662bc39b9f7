"""What a report shows of word vectors: topics, published tests, mitigations, dimension."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenhand import lexicon
from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Chart,
    curves,
    data,
    densities,
    forest,
    forests,
    heading,
    look,
    panel_heading,
    panels,
    row_of,
    scatter,
)
from evenhand.lexicon import Topic
from evenhand.report.blocks import (
    Block,
    Cell,
    P,
    Prose,
    Section,
    Table,
    Text,
    cell,
    change_columns,
    n_column,
    not_measured,
    p_cell,
    result_table,
    share,
    span,
    value_columns,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of, scale_of
from evenhand.results import Comparison, Item, Measurement
from evenhand.vectors.distances import DistanceTable
from evenhand.wording import interval, number, slug

prose = Prose("vectors")

CONNECTIONS = {
    "associated": "stereotype of the word's own class",
    "different": "stereotype of another class",
    "human": "word about people",
    "none": "neutral word",
}
COLOURS = dict(zip(CONNECTIONS, (ORANGE, BLUE, PURPLE, GREEN), strict=True))
DASHES = dict(zip(CONNECTIONS, ([1, 0], [7, 3], [2, 2], [8, 2, 2, 2]), strict=True))
CURVES = {kind: (COLOURS[kind], DASHES[kind]) for kind in CONNECTIONS}

ARROWS = {"higher": "above", "lower": "below", "away": "either side"}
HIDING = ("cluster_purity", "recovery_linear", "recovery_rbf", "neighbour_bias")
"""The tests for bias that is hidden after a mitigation."""
LEFT_OUT, HALVES = "leave_one_out(weat)", "split_half(weat)"
"""What the audit measures of each WEAT beside it: how much it depends on single words."""
LEAD = "association"
"""The measure that the verdict on a topic depends on."""
DRAWN = (LEAD, "weat", "direct_bias", "same", "mac", "ect", "rnsb", "projections")
"""The measures drawn before and after; RND and RIPA by list are in the table."""


# ------------------------------------------------------------------------------------- figures


def topic_forest(measurements: Sequence[Measurement], topic: str) -> Chart:
    """One row per measure: value, interval and what random words read; a panel for each scale."""
    parts = (
        (scale_of(m.metric) or label_of(m.metric), _measure_row(m, topic)) for m in measurements
    )
    return forests(parts, width=420, step=24, tips={"random_words": "random words"})


def _measure_row(m: Measurement, topic: str) -> dict[str, Any]:
    low, high = m.details.get("null_low"), m.details.get("null_high")
    return row_of(
        m,
        label_of(m, topic),
        ideal=m.ideal,
        band_low=low,
        band_high=high,
        random_words=None if low is None else interval(low, high),
    )


def distance_densities(table: DistanceTable) -> Chart:
    """The distribution of cosine distances for each kind of connection."""
    connection = table.connection()
    groups = {CONNECTIONS[kind]: table.distance[connection == kind] for kind in CONNECTIONS}
    looks = {CONNECTIONS[kind]: look for kind, look in CURVES.items()}
    groups = {name: values for name, values in groups.items() if values.size}
    return densities(groups, looks, x_title="cosine distance")


def occupations(m: Measurement) -> Chart:
    """Each occupation between the two words at the ends, nearest the first end on top."""
    first, second = [
        key for key in m.items[0] if key not in ("word", "group", "score", "without", "axis")
    ]
    items = sorted(m.items, key=lambda item: -item["score"])
    groups = list(dict.fromkeys(f"associated with {item['group']}" for item in m.items))
    looks = dict(zip(groups, ((ORANGE, "circle"), (BLUE, "square")), strict=False))
    return forest(
        [
            {
                "label": item["word"],
                "value": item["score"],
                "series": f"associated with {item['group']}",
            }
            for item in items
        ],
        looks=looks,
        references=[{"value": 0}],
        x=f"← nearer {second}  ·  cosine with {first} − {second}  ·  nearer {first} →",
        width=560,
        step=15,
    )


def occupation_axes(m: Measurement) -> Chart:
    """Each occupation by its cosine with either end; on the line it is as near to one as to other.

    Dobrzeniecka (2021, §2.3) has this figure. Names with an asterisk are means of their words.
    """
    import altair as alt

    first, second = [
        key for key in m.items[0] if key not in ("word", "group", "score", "without", "axis")
    ]
    averaged = m.details.get("averaged", ())
    rows = [
        {
            "x": item[first],
            "y": item[second],
            "word": item["word"] + ("*" if item["word"] in averaged else ""),
            "group": f"associated with {item['group']}",
            "side": "right" if item["score"] > 0 else "left",
        }
        for item in m.items
    ]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    looks = dict(zip(groups, ((ORANGE, "circle"), (BLUE, "square")), strict=False))
    values = [row[axis] for row in rows for axis in "xy"]
    ends = [min(values) - 0.08, max(values) + 0.08]
    span = ends[1] - ends[0]
    for side in ("left", "right"):  # labels of near dots are moved a little upwards
        placed: list[dict[str, Any]] = []
        for row in sorted((r for r in rows if r["side"] == side), key=lambda row: row["y"]):
            near = [o["text_y"] for o in placed if abs(o["x"] - row["x"]) < 0.1 * span]
            lowest = max((y + 0.018 * span for y in near), default=row["y"])
            row["text_y"] = min(max(row["y"], lowest), row["y"] + 0.02 * span)
            placed.append(row)
    scale = alt.Scale(domain=ends, nice=False)
    base = alt.Chart(data(rows)).encode(
        x=alt.X("x:Q", title=f"cosine with {first}", scale=scale),
        y=alt.Y("y:Q", title=f"cosine with {second}", scale=scale),
    )
    colour, shape = look("group", looks)
    line = alt.Chart(data([{"x": end, "y": end} for end in ends])).encode(
        x=alt.X("x:Q"), y=alt.Y("y:Q")
    )
    names = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(
            align="left" if side == "right" else "right",
            dx=6 if side == "right" else -6,
            fontSize=10,
            color=INK,
        )
        .encode(y=alt.Y("text_y:Q"), text=alt.Text("word:N"))
        for side in ("right", "left")
    ]
    return alt.layer(
        line.mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1),
        base.mark_point(filled=True, size=46, opacity=0.9).encode(
            color=colour,
            shape=shape,
            tooltip=[
                alt.Tooltip("word:N"),
                alt.Tooltip("x:Q", format=".3f", title=first),
                alt.Tooltip("y:Q", format=".3f", title=second),
            ],
        ),
        *names,
        width=560,
        height=560,
        title=heading(
            f"Occupations between {first} and {second}",
            f"above the line: nearer {second}; below it: nearer {first}"
            + ("; *: mean of the words of the name" if averaged else ""),
        ),
    )


def _weat_tests(measurements: Sequence[Measurement]) -> list[Measurement]:
    return [m for m in measurements if m.metric not in (LEFT_OUT, HALVES)]


def _weat_title(m: Measurement, titles: Mapping[str, str]) -> str:
    return f"{m.query.removeprefix('weat-')}. {titles.get(m.query, m.query)}"


def weat_forest(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> Chart:
    """One row per test: effect size with interval, and the range with any one word left out."""
    left_out = {m.query: m for m in measurements if m.metric == LEFT_OUT}
    rows = []
    for m in _weat_tests(measurements):
        row = row_of(m, _weat_title(m, titles), ideal=0)
        if out := left_out.get(m.query):
            text = interval(out.low, out.high, 2)
            row |= {"band_low": out.low, "band_high": out.high, "left_out": text}
        rows.append(row)
    return forest(
        rows,
        x="effect size d (standard deviations); 0: no difference",
        tips={"value": "d", "left_out": "one word left out"},
        digits=2,
        width=420,
        step=38,
        line=52,
    )


def wefat_scatter(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> Chart:
    """A panel for each word list: the fact about each word, and its association with women."""
    charts = []
    for m in measurements:
        named = _labelled(m.items)
        rows = [
            {
                "word": item["word"],
                "fact": item["fact"],
                "score": item["score"],
                "left": item["word"] if item["word"] in named and item["fact"] <= 60 else "",
                "right": item["word"] if item["word"] in named and item["fact"] > 60 else "",
            }
            for item in m.items
        ]
        text = f"r = {number(m.value, 2)}, interval {interval(m.low, m.high, 2)}"
        charts.append(
            scatter(
                rows,
                x="fact",
                y="score",
                x_title="percent women",
                y_title="nearer men's words  ←  →  women's",
                x_scale={"domain": [0, 100]},
                tips={"word": "", "fact": "percent women", "score": "score"},
                title=panel_heading(titles.get(m.query, m.query), text, width=44),
                width=320,
                height=250,
            )
        )
    return panels(charts, columns=2)


def _labelled(items: Sequence[Item]) -> set[str]:
    """The words of the strongest scores whose labels overlap no other label and no other dot."""
    half = 0.05 * max(abs(item["score"]) for item in items)
    taken: list[tuple[float, float, float]] = []
    named: set[str] = set()
    for item in sorted(items, key=lambda item: -abs(item["score"])):
        length = 3 + 2.0 * len(item["word"])
        start = item["fact"] + 1 if item["fact"] <= 60 else item["fact"] - 1 - length
        free = not any(
            start < other["fact"] < start + length and abs(other["score"] - item["score"]) < half
            for other in items
            if other["word"] != item["word"]
        ) and not any(
            start < end and begin < start + length and abs(y - item["score"]) < 2 * half
            for begin, end, y in taken
        )
        if free and len(named) < 14:
            taken.append((start, start + length, item["score"]))
            named.add(item["word"])
    return named


def dimension_curves(m: Measurement, dim: int) -> Chart:
    """The spread of random cosines against dimension; `dim` is that of the audited vectors."""
    kinds = {
        "sd_normal": "normal coordinates",
        "sd_uniform": "coordinates uniform on [0, 1]",
        "theory_normal": "theory for normal: 1/√d",
    }
    rows = [
        {"dimension": item["dimension"], "sd": item[key], "series": kind}
        for item in m.items
        for key, kind in kinds.items()
        if item[key] and math.isfinite(item[key])
    ]
    looks = {
        kinds["sd_normal"]: (BLUE, ()),
        kinds["sd_uniform"]: (ORANGE, ()),
        kinds["theory_normal"]: (GREY, (5, 4)),
    }
    return curves(
        rows,
        looks,
        x="dimension",
        y="sd",
        x_title="dimension",
        y_title="standard deviation of the cosine",
        points=True,
        marks=[{"dimension": dim, "text": f"these vectors: {dim}"}],
        x_scale={"type": "log"},
        y_scale={"type": "log"},
        x_axis={"values": [2, 5, 10, 25, 50, 100, 200, 500, 1000]},
        y_axis={"values": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5], "format": "~g"},
        width=540,
        height=280,
        columns=3,
    )


def mitigation_forests(
    stages: Sequence[StageResult], chosen: Callable[[Comparison], str], columns: int = 3
) -> Chart:
    """A panel for each measure, a row for each method: hollow before, filled after.

    `chosen` is the title of the panel of a comparison, or nothing where it is not drawn.
    """
    return forests(
        (
            (
                title,
                row_of(
                    c.after, stage.details["method"], before=c.before.value, ideal=c.before.ideal
                ),
            )
            for stage in stages
            for c in stage.comparisons
            if (title := chosen(c))
        ),
        columns=columns,
        width=530 // columns,
        ticks=3,
        tips={"value": "after", "interval": "interval after"},
    )


def utility_forests(stages: Sequence[StageResult]) -> Chart:
    """What is left of the vectors' geometry, a panel for each measure, a row for each method."""
    return forests(
        (
            (label_of(m.metric), row_of(m, stage.details["method"], text=number(m.value)))
            for stage in stages
            for m in stage.measurements
        ),
        columns=3,
        width=150,
        domain=[0, 1.04],
        ticks=[0, 0.5, 1],
        text="text",
        references=[{"value": 1}],
        tips={"value": "preserved"},
    )


# ------------------------------------------------------------------------------------ sections


def topic_sections(findings: Findings) -> Section:
    """A part for each topic: its measures, distances, occupations and words."""
    parts = (_topic(findings, topic) for topic in findings.topics)
    title = "What was measured"
    return Section.of("topics", title, parts, [prose.text("topics")])


def _topic(findings: Findings, topic: Topic) -> Section:
    measured = findings.measured("measures", topic.name)
    name = slug(topic.name)
    blocks: list[Block] = []
    if measured:
        blocks += [
            prose.figure(
                f"forest-{name}",
                lambda: topic_forest(measured, topic.name),
                "forest",
                topic=topic,
                measured=[(label_of(m, topic.name), m) for m in measured],
            ),
            _measures_table(measured, topic),
        ]
    contrast = lead(measured)
    means = contrast.details if contrast else {}
    for stage in findings.of("measures", topic.name):
        table = stage.distances
        if table is not None:
            blocks.append(
                prose.figure(
                    f"distances-{name}",
                    partial(distance_densities, table),
                    "distances",
                    topic=topic,
                    means={text: means.get(f"mean_{kind}") for kind, text in CONNECTIONS.items()},
                )
            )
        blocks += not_measured(
            stage.skipped, lambda skip: f"{label_of(skip['metric'])}, {skip['query']}"
        )
    for m in measured:
        if m.metric == "projections":
            ordered = [item["word"] for item in sorted(m.items, key=lambda item: item["score"])]
            blocks.append(
                prose.figure(
                    f"occupations-{name}",
                    partial(occupations, m),
                    "occupations",
                    m=m,
                    lowest=ordered[:5],
                    highest=ordered[:-6:-1],
                )
            )
    if measured:
        blocks.append(_words(measured, topic))
    return Section(f"topic-{name}", topic.title, blocks)


def lead(measured: Sequence[Measurement]) -> Measurement | None:
    """The measure that the verdict on a topic depends on."""
    return next((m for m in measured if m.metric == LEAD), None)


def _measures_table(measured: Sequence[Measurement], topic: Topic) -> Table:
    return result_table(
        f"Measures of {topic.title}",
        ("Measure",),
        ((label_of(m, topic.name), m) for m in measured),
        {
            **value_columns(measured[0].prob),
            **P,
            "p is against": lambda m: m.null or "–",
            "Random words give": _null,
            "Ideal": lambda m: cell(m.ideal, 0),
            "More bias lies": lambda m: ARROWS[m.worse],
            **n_column("Words"),
            "Left out": lambda m: ", ".join(m.left_out) or "none",
        },
    )


def _null(m: Measurement) -> Cell:
    if m.details.get("null_median") is None:
        return Cell("–")
    median = m.details["null_median"]
    band = interval(m.details["null_low"], m.details["null_high"])
    return Cell(f"{number(median)} {band}", median)


def _words(measured: Sequence[Measurement], topic: Topic) -> Table:
    shown = (LEAD, "direct_bias", "same")
    scores: dict[str, dict[str, float]] = {}
    for m in measured:
        if m.metric in shown:
            for item in m.items:
                if item.get("axis") != "protected":
                    scores.setdefault(item["word"], {})[m.metric] = item["score"]
    classes = {word: name for name in topic.classes for word in topic.attributes(name)}
    return Table.of(
        prose.table_words(),
        ("Word", "Associated with", *map(label_of, shown)),
        (
            (word, classes.get(word, ""), *(cell(own.get(metric)) for metric in shown))
            for word, own in sorted(scores.items())
        ),
        words=True,
    )


def published_tests(findings: Findings) -> Section:
    """WEAT, WEFAT and analogies."""
    parts = [part(findings) for part in dict.fromkeys(SECTIONS.values())]
    return Section.of("published", "Published tests", parts)


def _skipped(findings: Findings, kind: str) -> list[Block]:
    return not_measured(findings.skipped(kind), lambda skip: skip["query"])


def _weat(findings: Findings) -> Section:
    measured = findings.measured("weat")
    titles = {query.name: query.title for query in lexicon.weat_queries()}
    by = {(m.metric, m.query): m for m in measured}
    tests = _weat_tests(measured)

    def ends(metric: str, m: Measurement) -> Cell:
        other = by.get((metric, m.query))
        return Cell("–") if other is None else span(other.low, other.high, 2)

    def same_side(m: Measurement) -> Cell:
        other = by.get((HALVES, m.query))
        return share(other.details["same_side"] if other else None)

    blocks: list[Block] = []
    if tests:
        blocks = [
            prose.text("weat"),
            prose.figure(
                "weat",
                lambda: weat_forest(measured, titles),
                tests=[(titles.get(m.query), m) for m in tests],
            ),
            result_table(
                prose.table_weat(),
                ("Test",),
                ((_weat_title(m, titles), m) for m in tests),
                {
                    **value_columns(value="d", digits=2),
                    **P,
                    "p over attributes": lambda m: p_cell(
                        m.details.get("p_attributes"), m.details.get("draws_attributes")
                    ),
                    "One word left out": lambda m: ends(LEFT_OUT, m),
                    "Random halves": lambda m: ends(HALVES, m),
                    "Halves on the same side": same_side,
                    **n_column("Words"),
                    "Left out": lambda m: ", ".join(m.left_out) or "none",
                },
            ),
        ]
    return Section("weat", prose.title_weat(), [*blocks, *_skipped(findings, "weat")])


def _wefat(findings: Findings) -> Section:
    measured = findings.measured("wefat")
    titles = {query.name: query.title for query in lexicon.wefat_queries()}
    blocks: list[Block] = []
    if measured:
        blocks = [
            prose.figure(
                "wefat",
                lambda: wefat_scatter(measured, titles),
                measured=[(f"{titles.get(m.query, m.query)}: r", m) for m in measured],
            ),
            Table.of(
                "Words and facts (score above 0: nearer to women's words)",
                ("Word", "List", "Percent women", "Score"),
                (
                    (
                        item["word"],
                        titles.get(m.query, m.query),
                        cell(item["fact"], 1),
                        cell(item["score"], 2),
                    )
                    for m in measured
                    for item in m.items
                ),
                words=True,
                folded=True,
            ),
        ]
    return Section("wefat", prose.title_wefat(), [*blocks, *_skipped(findings, "wefat")])


def _analogies(findings: Findings) -> Section:
    probes, controls = findings.measured("analogies"), findings.measured("analogy_accuracy")

    def shares(caption: str, name: str, value: str, of: Sequence[Measurement]) -> Table:
        columns = {**value_columns(value=value, digits=2), **n_column("Questions")}
        return result_table(caption, (name,), ((m.query, m) for m in of), columns)

    blocks: list[Block] = []
    if probes:
        caption = "How often the word itself is the best answer if it is allowed"
        blocks += [
            prose.text("analogies"),
            shares(caption, "Pair", "Share", probes),
            Table.of(
                "All questions: a is to the word as c is to …",
                ("Word", "a → c", "Best answer, inputs allowed", "Best answer, inputs barred"),
                (
                    (item["word"], item["group"], item["allowed"], item["barred"])
                    for m in probes
                    for item in m.items
                ),
                words=True,
                folded=True,
            ),
        ]
    if controls:
        blocks.append(shares(prose.table_controls(), "Relation", "Share right", controls))
    skipped = [*_skipped(findings, "analogies"), *_skipped(findings, "analogy_accuracy")]
    return Section("analogies", "Analogies", [*blocks, *skipped])


def mitigations(findings: Findings) -> Section:
    """A part for each topic that was debiased."""
    parts = (_mitigated(findings, topic) for topic in findings.topics)
    title = "What debiasing changes"
    return Section.of("mitigation", title, parts, [prose.text("mitigations")])


def _mitigated(findings: Findings, topic: Topic) -> Section:
    stages = [s for s in findings.of("mitigation", topic.name) if s.comparisons]
    blocks: list[Block] = []
    if stages:
        name = slug(topic.name)
        notes = dict.fromkeys(
            f"Note on {stage.details['method']}: {_readable(note)}."
            for stage in stages
            for note in stage.details["debias"]["notes"]
        )
        blocks += [
            prose.figure(
                f"mitigation-{name}",
                lambda: mitigation_forests(
                    stages,
                    lambda c: label_of(c.before, topic.name) if c.metric in DRAWN else "",
                ),
                "mitigation",
                topic=topic,
                stages=stages,
            ),
            *map(Text, notes),
            _changes(stages, topic),
            prose.figure(
                f"hiding-{name}",
                lambda: mitigation_forests(
                    stages, lambda c: label_of(c.metric) if c.metric in HIDING else "", columns=2
                ),
                "hiding",
                hiding=[
                    (f"{stage.details['method']} {label_of(c.metric)}", c.after)
                    for stage in stages
                    for c in stage.comparisons
                    if c.metric in HIDING
                ],
            ),
            prose.figure(
                f"utility-{name}",
                lambda: utility_forests(stages),
                "utility",
                utility=[
                    (f"{stage.details['method']} {label_of(m.metric)}", m)
                    for stage in stages
                    for m in stage.measurements
                ],
            ),
        ]
    skipped = findings.skipped("mitigation", topic.name)
    blocks += not_measured(skipped, lambda skip: skip["metric"], "Not done")
    return Section(f"mitigation-{slug(topic.name)}", f"{topic.title}, debiased", blocks)


def _readable(note: str) -> str:
    """The note without its hint for programmers, such as (f with x=y)."""
    return re.sub(r"\s*\([^()]*[_=][^()]*\)", "", note)


def _changes(stages: Sequence[StageResult], topic: Topic) -> Table:
    return result_table(
        f"Every measure and hiding test of {topic.title} before and after",
        ("Method", "Measure"),
        (
            (stage.details["method"], label_of(c.before, topic.name), c)
            for stage in stages
            for c in stage.comparisons
        ),
        {**change_columns(), "Ideal": lambda c: cell(c.before.ideal, 2)},
        folded=True,
    )


def vector_geometry(findings: Findings) -> Section:
    """The dimension experiment: how to judge the size of a cosine."""
    blocks: list[Block] = [
        prose.figure(
            "dimension",
            partial(dimension_curves, m, int(findings.subjects["vectors"]["dim"])),
            m=m,
        )
        for m in findings.measured("dimension")
    ]
    text = [prose.text("dimension")] if blocks else []
    return Section("dimension", "How large is a cosine?", [*text, *blocks])


SECTIONS = {"weat": _weat, "wefat": _wefat, "analogies": _analogies, "analogy_accuracy": _analogies}
"""The sections by the kind of their stage."""
