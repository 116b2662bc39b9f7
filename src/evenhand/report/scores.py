"""The page of models compared by item scores."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.charts import BLUE, ORANGE, forest
from evenhand.report.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    Text,
    cell,
    count,
    p_cell,
    result_table,
    span,
    value_columns,
    write_results,
)
from evenhand.scores import ScoreAnalysis
from evenhand.scores.analysis import needed_text

SERIES = {"": "for other templates", "scope": "for these templates"}
LOOKS = {SERIES[""]: (BLUE, "circle"), SERIES["scope"]: (ORANGE, "square")}


def write_scores(analysis: ScoreAnalysis, path: str | os.PathLike[str]) -> Path:
    """Write the page of an analysis; its path."""
    return write_results(
        path,
        "Models compared by item scores",
        [analysis.sentence],
        score_sections(analysis),
        "Intervals are for other items of the same kind, and say nothing about items of another "
        "kind.",
    )


def score_sections(analysis: ScoreAnalysis) -> list[Section]:
    """The page's sections, in the order of reading."""
    return [_means(analysis), _ranks(analysis), _differences(analysis), _agreement(analysis)]


def _means(analysis: ScoreAnalysis) -> Section:
    order = {m.query: place for place, m in enumerate(analysis.ranking)}
    measured = sorted(analysis.measurements, key=lambda m: order[m.query])
    prob = measured[0].prob
    scoped = any(m.select("scope") for m in measured)
    rows = [
        {
            "label": m.query,
            "value": part.value,
            "low": part.low,
            "high": part.high,
            **({"series": SERIES[part.by]} if scoped else {}),
        }
        for m in measured
        for part in (m, *m.select("scope"))
    ]
    chart = forest(rows, x="mean score", looks=LOOKS if scoped else None, beside=scoped)
    about = f"Mean scores with {100 * prob:g}% intervals: {measured[0].interval}."
    listed = [
        (m.query, "" if part is m else part.query, part) for m in measured for part in (m, *m.parts)
    ]
    columns = {**value_columns(prob), "Scores": lambda m: count(m.n)}
    words = "A row for each model with its mean score and interval; the table has the numbers."
    return Section(
        "means",
        "Means",
        [
            Figure.of("means-forest", chart, about, words),
            result_table("Means", ("Model", "Part"), listed, columns, words=True),
            *(Text(note, "warning") for note in analysis.notes),
        ],
    )


def _ranks(analysis: ScoreAnalysis) -> Section:
    if len(analysis.ranking) < 2:
        return Section("ranks", "Ranks")
    rows = [
        (m.query, cell(m.value, 0), Cell(f"{m.low:g} to {m.high:g}"), cell(m.details["mean"]))
        for m in analysis.ranking
    ]
    text = (
        "A model's lowest possible rank is one more than the number of models that are clearly "
        "better, its highest the number of models less those that are clearly worse; clearly after "
        "correcting for all pairs (Holm), so that all ranks together are right with the stated "
        "probability."
    )
    return Section(
        "ranks",
        "Ranks",
        [Text(text), Table.of("Ranks", ("Model", "Rank", "Could be", "Mean"), rows)],
    )


def _differences(analysis: ScoreAnalysis) -> Section:
    rows = [
        (
            c.after.query,
            c.before.query,
            cell(c.change.value),
            span(c.change.low, c.change.high),
            p_cell(c.details.get("p_holm")),
            count(c.paired),
            Cell(needed_text(c)),
        )
        for c in analysis.comparisons
    ]
    if not rows:
        return Section("differences", "Differences")
    headers = ("Model", "Less", "Difference", "Interval", "p (Holm)", "Paired", "Needed")
    blocks: list[Block] = [
        Text(
            "Each pair on the scores that both have. Needed: what would find a difference as large "
            "as that observed with a power of 80%, that pair alone."
        ),
        Table.of("Differences of all pairs", headers, rows, words=True),
    ]
    notes = dict.fromkeys(note for c in analysis.comparisons for note in c.notes)
    return Section("differences", "Differences", [*blocks, *(Text(note) for note in notes)])


def _agreement(analysis: ScoreAnalysis) -> Section:
    rows = [(f"{m.by} {m.query}", m) for m in analysis.agreement]
    if not rows:
        return Section("agreement", "Agreement of ranks")
    columns = {**value_columns(analysis.agreement[0].prob, "τ"), "Models": lambda m: count(m.n)}
    text = "Kendall's τ of the models' means: 1 where both rank the models alike, 0 if unrelated."
    return Section(
        "agreement",
        "Agreement of ranks",
        [Text(text), result_table("Agreement of ranks", ("Between",), rows, columns)],
    )
