"""What a report shows of word vectors: topics, published tests, mitigations, dimension."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand import lexicon
from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    Chart,
    curves,
    densities,
    forest,
    forests,
    panel_heading,
    panels,
    scatter,
)
from evenhand.lexicon import Topic
from evenhand.report.blocks import Block, Cell, Prose, Section, Table, Text, cell, p_cell, span
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of, scale_of
from evenhand.results import Comparison, Item, Measurement
from evenhand.vectors.distances import DistanceTable
from evenhand.wording import interval, number, percent, slug

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
DRAWN = ("association", "weat", "direct_bias", "same", "mac", "ect", "rnsb", "projections")
"""The measures drawn before and after; RND and RIPA by list are in the table."""


# ------------------------------------------------------------------------------------- figures


def topic_forest(measurements: Sequence[Measurement], topic: str) -> Chart:
    """One row per measure: value, interval and what random words read; a panel for each scale."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for m in measurements:
        parts.setdefault(scale_of(m.metric) or label_of(m.metric), []).append(
            _measure_row(m, topic)
        )
    return forests(parts, width=420, step=24, tips={"random_words": "random words"})


def _measure_row(m: Measurement, topic: str) -> dict[str, Any]:
    low, high = m.details.get("null_low"), m.details.get("null_high")
    return {
        "label": label_of(m, topic),
        "value": m.value,
        "low": m.low,
        "high": m.high,
        "ideal": m.ideal,
        "band_low": low,
        "band_high": high,
        "random_words": None if low is None else interval(low, high),
    }


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


def weat_forest(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> Chart:
    """One row per test: effect size with interval, and the range with any one word left out."""
    ranges = {m.query: m for m in measurements if m.metric == "leave_one_out(weat)"}
    rows = []
    for m in measurements:
        if m.metric == "weat":
            out = ranges.get(m.query)
            rows.append(
                {
                    "label": f"{m.query.removeprefix('weat-')}. {titles[m.query]}",
                    "value": m.value,
                    "low": m.low,
                    "high": m.high,
                    "ideal": 0,
                    "band_low": out and out.low,
                    "band_high": out and out.high,
                    "left_out": out and interval(out.low, out.high, 2),
                }
            )
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
    parts: dict[str, list[dict[str, Any]]] = {}
    for stage in stages:
        for c in stage.comparisons:
            if title := chosen(c):
                parts.setdefault(title, []).append(
                    {
                        "label": stage.details["method"],
                        "before": c.before.value,
                        "value": c.after.value,
                        "low": c.after.low,
                        "high": c.after.high,
                        "ideal": c.before.ideal,
                    }
                )
    return forests(
        parts,
        columns=columns,
        width=530 // columns,
        ticks=3,
        tips={"value": "after", "interval": "interval after"},
    )


def utility_forests(stages: Sequence[StageResult]) -> Chart:
    """What is left of the vectors' geometry, a panel for each measure, a row for each method."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for stage in stages:
        for m in stage.measurements:
            parts.setdefault(label_of(m.metric), []).append(
                {
                    "label": stage.details["method"],
                    "value": m.value,
                    "low": m.low,
                    "high": m.high,
                    "text": number(m.value),
                }
            )
    return forests(
        parts,
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
    parts = [_topic(findings, topic) for topic in findings.topics]
    shown = [part for part in parts if part.blocks]
    blocks = [prose.text("topics")] if shown else []
    return Section("topics", "Word vectors: what was measured", blocks, shown)


def _topic(findings: Findings, topic: Topic) -> Section:
    measured = findings.measured("measures", topic.name)
    name = slug(topic.name)
    blocks: list[Block] = []
    if measured:
        labels = [(label_of(m, topic.name), m) for m in measured]
        blocks += [
            prose.figure(
                f"forest-{name}",
                lambda: topic_forest(measured, topic.name),
                "forest",
                topic=topic,
                labels=labels,
            ),
            _measures_table(measured, topic),
        ]
    association = next((m.details for m in measured if m.metric == "association"), {})
    for stage in findings.of("measures", topic.name):
        table = stage.distances
        if table is not None:
            blocks.append(
                prose.figure(
                    f"distances-{name}",
                    lambda table=table: distance_densities(table),  # type: ignore[misc]
                    "distances",
                    topic=topic,
                    means={
                        text: association.get(f"mean_{kind}") for kind, text in CONNECTIONS.items()
                    },
                )
            )
        blocks += [
            Text(f"Not measured: {label_of(s['metric'])}, {s['query']}: {s['reason']}", "warning")
            for s in stage.skipped
        ]
    for m in measured:
        if m.metric == "projections":
            ordered = [item["word"] for item in sorted(m.items, key=lambda item: item["score"])]
            blocks.append(
                prose.figure(
                    f"occupations-{name}",
                    lambda m=m: occupations(m),  # type: ignore[misc]
                    "occupations",
                    m=m,
                    lowest=ordered[:5],
                    highest=ordered[:-6:-1],
                )
            )
    if measured:
        blocks.append(_words(measured, topic))
    return Section(f"topic-{name}", topic.title, blocks)


def _measures_table(measured: Sequence[Measurement], topic: Topic) -> Table:
    return Table.of(
        f"Measures of {topic.title}",
        (
            "Measure",
            "Value",
            f"{percent(measured[0].prob)} interval",
            "p",
            "Random words give",
            "Ideal",
            "More bias lies",
            "Words",
            "Left out",
        ),
        (
            (
                label_of(m, topic.name),
                cell(m.value),
                span(m.low, m.high),
                p_cell(m.p_value),
                _null(m),
                cell(m.ideal, 0),
                ARROWS[m.worse],
                cell(float(m.n), 0),
                ", ".join(m.left_out) or "none",
            )
            for m in measured
        ),
    )


def _null(m: Measurement) -> Cell:
    if m.details.get("null_median") is None:
        return Cell("–")
    median = m.details["null_median"]
    band = interval(m.details["null_low"], m.details["null_high"])
    return Cell(f"{number(median)} {band}", median)


def _words(measured: Sequence[Measurement], topic: Topic) -> Table:
    shown = ("association", "direct_bias", "same")
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
            (word, classes.get(word, ""), *(cell(found.get(metric)) for metric in shown))
            for word, found in sorted(scores.items())
        ),
        words=True,
    )


def published_tests(findings: Findings) -> Section:
    """WEAT, WEFAT and analogies."""
    parts = [section(findings) for section in dict.fromkeys(SECTIONS.values())]
    shown = [part for part in parts if part.blocks]
    return Section("published", "Word vectors: published tests", parts=shown)


def _skipped(findings: Findings, kind: str) -> list[Text]:
    return [
        Text(f"Not measured: {skip['query']}: {skip['reason']}", "warning")
        for skip in findings.skipped(kind)
    ]


def _weat(findings: Findings) -> Section:
    measured = findings.measured("weat")
    titles = {query.name: query.title for query in lexicon.weat_queries()}
    by = {(m.metric, m.query): m for m in measured}
    tests = [m for m in measured if m.metric == "weat"]
    blocks: list[Block] = []
    if tests:
        blocks += [
            prose.text("weat"),
            prose.figure("weat", lambda: weat_forest(measured, titles), tests=tests, titles=titles),
            Table.of(
                prose.table_weat(),
                (
                    "Test",
                    "d",
                    "Interval",
                    "p",
                    "p over attributes",
                    "One word left out",
                    "Random halves",
                    "Halves on the same side",
                    "Words",
                    "Left out",
                ),
                (
                    (
                        f"{m.query.removeprefix('weat-')}. {titles.get(m.query, m.query)}",
                        cell(m.value, 2),
                        span(m.low, m.high, 2),
                        p_cell(m.p_value),
                        p_cell(m.details.get("p_attributes")),
                        _range(by.get(("leave_one_out(weat)", m.query))),
                        _range(by.get(("split_half(weat)", m.query))),
                        _same_side(by.get(("split_half(weat)", m.query))),
                        cell(float(m.n), 0),
                        ", ".join(m.left_out) or "none",
                    )
                    for m in tests
                ),
            ),
        ]
    return Section("weat", prose.title_weat(), [*blocks, *_skipped(findings, "weat")])


def _range(m: Measurement | None) -> Cell:
    return Cell("–") if m is None else span(m.low, m.high, 2)


def _same_side(m: Measurement | None) -> Cell:
    value = None if m is None else m.details["same_side"]
    return Cell("–" if value is None else percent(value), value)


def _wefat(findings: Findings) -> Section:
    measured = findings.measured("wefat")
    titles = {query.name: query.title for query in lexicon.wefat_queries()}
    blocks: list[Block] = []
    if measured:
        blocks = [
            prose.figure(
                "wefat", lambda: wefat_scatter(measured, titles), measured=measured, titles=titles
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
    blocks: list[Block] = []
    if probes:
        blocks += [
            prose.text("analogies"),
            Table.of(
                "How often the word itself is the best answer if it is allowed",
                ("Pair", "Share", "Interval", "Questions"),
                (_share_row(m) for m in probes),
            ),
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
        blocks.append(
            Table.of(
                prose.table_controls(),
                ("Relation", "Share right", "Interval", "Questions"),
                (_share_row(m) for m in controls),
            )
        )
    skipped = [*_skipped(findings, "analogies"), *_skipped(findings, "analogy_accuracy")]
    return Section("analogies", "Analogies", [*blocks, *skipped])


def _share_row(m: Measurement) -> Sequence[Cell | str]:
    return m.query, cell(m.value, 2), span(m.low, m.high, 2), cell(float(m.n), 0)


def mitigations(findings: Findings) -> Section:
    """A part for each topic that was debiased."""
    parts = [_mitigated(findings, topic) for topic in findings.topics]
    shown = [part for part in parts if part.blocks]
    blocks = [prose.text("mitigations")] if shown else []
    return Section("mitigation", "Word vectors: what debiasing changes", blocks, shown)


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
                    (stage.details["method"], label_of(c.metric), c.after)
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
                    (stage.details["method"], label_of(m.metric), m)
                    for stage in stages
                    for m in stage.measurements
                ],
            ),
        ]
    blocks += [
        Text(f"Not done: {skip['metric']}: {skip['reason']}", "warning")
        for skip in findings.skipped("mitigation", topic.name)
    ]
    return Section(f"mitigation-{slug(topic.name)}", f"{topic.title}, debiased", blocks)


def _readable(note: str) -> str:
    """The note without its hint for programmers, such as (f with x=y)."""
    return re.sub(r"\s*\([^()]*[_=][^()]*\)", "", note)


def _changes(stages: Sequence[StageResult], topic: Topic) -> Table:
    return Table.of(
        f"Every measure and hiding test of {topic.title} before and after",
        ("Method", "Measure", "Before", "After", "Change", "Interval of the change", "Ideal"),
        (
            (
                stage.details["method"],
                label_of(c.before, topic.name),
                cell(c.before.value),
                cell(c.after.value),
                cell(c.change.value),
                span(c.change.low, c.change.high),
                cell(c.before.ideal, 2),
            )
            for stage in stages
            for c in stage.comparisons
        ),
        folded=True,
    )


def vector_geometry(findings: Findings) -> Section:
    """The dimension experiment: how to judge the size of a cosine."""
    blocks: list[Block] = [
        prose.figure(
            "dimension",
            lambda m=m: dimension_curves(m, int(findings.subjects["vectors"]["dim"])),  # type: ignore[misc]
            m=m,
        )
        for m in findings.measured("dimension")
    ]
    text = [prose.text("dimension")] if blocks else []
    return Section("dimension", "Word vectors: how large is a cosine?", [*text, *blocks])


SECTIONS = {
    "weat": _weat,
    "wefat": _wefat,
    "analogies": _analogies,
    "analogy_accuracy": _analogies,
}
"""The sections of published tests by the kind of their stage."""
