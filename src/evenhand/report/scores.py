"""The page of models compared by item scores."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.charts import BLUE, ORANGE, forest
from evenhand.report.blocks import (
    Cell,
    Figure,
    P,
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
from evenhand.results import Comparison
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
    measured = analysis.by_rank()
    prob = measured[0].prob
    scoped = any(m.select("scope") for m in measured)
    rows = [
        {
            "label": m.query,
            "value": part.value,
            "low": part.low,
            "high": part.high,
            "ideal": m.ideal,
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
    if measured[0].ideal is not None:
        columns |= {**P, "Bias": lambda m: Cell(str(m.details.get("outcome", "")))}
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
        "A model's lowest possible rank is one more than the number of models that are better and "
        "differ from it, its highest the number of models less those that are worse and differ; "
        "pairs are corrected together, so that all ranks together are right with the stated "
        "probability."
    )
    return Section(
        "ranks",
        "Ranks",
        [Text(text), Table.of("Ranks", ("Model", "Rank", "Could be", "Mean"), rows)],
    )


def _differences(analysis: ScoreAnalysis) -> Section:
    if not analysis.comparisons:
        return Section("differences", "Differences")
    scoped = any(c.parts for c in analysis.comparisons)
    rows: list[list[Cell | str]] = [
        [
            c.after.query,
            c.before.query,
            cell(c.change.value),
            span(c.change.low, c.change.high),
            p_cell(c.p),
            Cell(str(c.details["outcome"])),
            *([_scope(c)] if scoped else []),
            count(c.paired),
            Cell(needed_text(c)),
        ]
        for c in analysis.comparisons
    ]
    headers = (
        *("Model", "Less", "Difference", "Interval", "p (Holm)", "Outcome"),
        *(("With these templates only",) if scoped else ()),
        *("Paired", "Needed"),
    )
    ideal = analysis.measurements[0].ideal
    text = "Each pair on the scores that both have."
    if ideal is not None:
        text += (
            f" Compared is the distance of the mean from {ideal:g}: below 0, the model is nearer."
        )
    text += (
        " Intervals and p are for all pairs together; two models differ if p is below the level "
        "and the interval excludes 0."
    )
    if scoped:
        text += " What these templates alone show describes them and decides nothing."
    text += (
        " Needed: what would find a difference as large as that observed with a power of 80%, that "
        "pair alone."
    )
    return Section(
        "differences",
        "Differences",
        [Text(text), Table.of("Differences of all pairs", headers, rows, words=True)],
    )


def _scope(c: Comparison) -> Cell:
    """The interval with these templates as the only ones of interest."""
    return span(c.parts[0].change.low, c.parts[0].change.high) if c.parts else Cell("–")


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
