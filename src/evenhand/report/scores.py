"""The page of models compared by item scores."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.charts import BLUE, ORANGE, forest, row_of
from evenhand.report.blocks import (
    Block,
    Columns,
    Figure,
    P,
    PageTable,
    Prose,
    Section,
    TableCell,
    Text,
    cell,
    count,
    p_cell,
    result_table,
    span,
    value_columns,
    write_results,
)
from evenhand.results import Comparison
from evenhand.scores import ScoreAnalysis
from evenhand.scores.analysis import needed_text

prose = Prose("scores")

SERIES = {"": "for other templates", "scope": "for these templates"}
LOOKS = {SERIES[""]: (BLUE, "circle"), SERIES["scope"]: (ORANGE, "square")}


def write_scores(analysis: ScoreAnalysis, path: str | os.PathLike[str]) -> Path:
    """Write the page of an analysis; its path."""
    return write_results(
        path,
        "Models compared by item scores",
        [analysis.sentence],
        [_means(analysis), _ranks(analysis), _differences(analysis), _agreement(analysis)],
        prose.limits(),
    )


DRAWN = 40
"""Models in the chart, by rank; the table has all."""


def _means(analysis: ScoreAnalysis) -> Section:
    measured = analysis.by_rank()
    first = measured[0]
    scoped = any(m.select("scope") for m in measured)
    rows = [
        row_of(part, m.query, ideal=m.ideal, series=SERIES[part.by])
        for m in measured[:DRAWN]
        for part in (m, *m.select("scope"))
    ]
    chart = forest(rows, x="mean score", looks=LOOKS if scoped else None, beside=scoped)
    words = prose.words(drawn=DRAWN, of=len(measured))
    listed = [
        (m.query, "" if part is m else part.query, part) for m in measured for part in (m, *m.parts)
    ]
    columns = {**value_columns(first.prob), "Scores": lambda m: count(m.n)}
    if first.ideal is not None:
        columns |= {**P, "Bias": lambda m: TableCell(str(m.details.get("outcome", "")))}
    blocks: list[Block] = [
        Figure.of("means-forest", chart, prose.about(m=first), words),
        result_table("Means", ("Model", "Part"), listed, columns, words=True),
        *(Text(note, "warning") for note in analysis.notes),
    ]
    return Section("means", "Means", blocks)


def _ranks(analysis: ScoreAnalysis) -> Section:
    rows = [
        (m.query, cell(m.value, 0), TableCell(f"{m.low:g} to {m.high:g}"), cell(m.details["mean"]))
        for m in analysis.ranking
    ]
    table = PageTable.of("Ranks", ("Model", "Rank", "Could be", "Mean"), rows)
    return Section("ranks", "Ranks", [prose.text("ranks"), table] if len(rows) > 1 else [])


def _differences(analysis: ScoreAnalysis) -> Section:
    scoped = any(c.parts for c in analysis.comparisons)
    columns: Columns = {
        "Difference": lambda c: cell(c.change.value),
        "Interval": lambda c: span(c.change.low, c.change.high),
        "p (Holm)": lambda c: p_cell(c.p),
        "Outcome": lambda c: str(c.details["outcome"]),
        **({"With these templates only": _scope} if scoped else {}),
        "Paired": lambda c: count(c.paired),
        "Needed": needed_text,
    }
    rows = [(c.after.query, c.before.query, c) for c in analysis.comparisons]
    text = prose.text("differences", ideal=analysis.measurements[0].ideal, scoped=scoped)
    table = result_table("Differences of all pairs", ("Model", "Less"), rows, columns, words=True)
    return Section("differences", "Differences", [text, table] if rows else [])


def _scope(c: Comparison) -> TableCell:
    """The interval with these templates as the only ones of interest."""
    return span(c.parts[0].change.low, c.parts[0].change.high) if c.parts else TableCell("–")


def _agreement(analysis: ScoreAnalysis) -> Section:
    rows = [(f"{m.by} {m.query}", m) for m in analysis.agreement]
    title = "Agreement of ranks"
    if not rows:
        return Section("agreement", title)
    columns = {**value_columns(rows[0][1].prob, "τ"), "Models": lambda m: count(m.n)}
    table = result_table(title, ("Between",), rows, columns)
    return Section("agreement", title, [prose.text("agreement"), table])
