"""The tab *Run*: from the verdicts of an audit to their items, and a classifier's errors."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.classifier.predictions import Predictions, read_predictions
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import plain, spreadsheet_cell
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of
from evenhand.report.verdicts import SUBJECTS, VerdictTest
from evenhand.results import Comparison, Measurement
from evenhand.text.rewrite.counterfactuals import ORIGINAL, counterfactuals
from evenhand.text.tables import open_table, text_column
from evenhand.wording import p_value

Row = Mapping[str, Any]
PAGE = 50
"""Rows of a page."""
CHOICES = 12
"""A column with so many different texts, or fewer, can be filtered by them."""
NUMBERS = ("value", "low", "high", "p", "family", "n", "ideal")
"""Of a result; p is corrected for its family, as the shell prints it."""


@dataclass(frozen=True)
class Listing:
    """A table that can be looked at.

    Parameters
    ----------
    title : str
    kind : {"items", "parts", "results", "changes"}
        The items or parts of one measurement, or all measurements or comparisons of a stage.
    stage : StageResult
    source : sequence of Mapping
        Its rows, as they were saved.
    measurement : Measurement, optional

    """

    title: str
    kind: str
    stage: StageResult
    source: Sequence[Row] = field(repr=False)
    measurement: Measurement | None = None

    @cached_property
    def rows(self) -> list[Row]:
        """The rows with one value in each cell."""
        return [{name: _cell(value) for name, value in row.items()} for row in self.source]


def listings(findings: Findings) -> list[Listing]:
    """Every table of an audit, in the order of its stages."""
    tables = []
    for stage in findings.stages:
        if stage.measurements:
            rows = [_summary(m) for m in stage.measurements]
            tables.append(Listing("All results", "results", stage, rows))
        if stage.comparisons:
            rows = [_change(c) for c in stage.comparisons]
            tables.append(Listing("Before and after", "changes", stage, rows))
        for m in stage.measurements:
            title = ", ".join(dict.fromkeys(filter(None, (label_of(m.metric), m.query))))
            if len(m.items):
                tables.append(Listing(title, "items", stage, m.items, m))
            if m.parts:
                parts = [_summary(part) for part in m.parts]
                tables.append(Listing(title, "parts", stage, parts, m))
    return tables


def _summary(m: Measurement) -> dict[str, Any]:
    known = {"measure": label_of(m), "by": m.by, "of": m.query}
    return {**known, **{name: getattr(m, name) for name in NUMBERS}}


def _change(c: Comparison) -> dict[str, Any]:
    return {
        "measure": label_of(c.metric),
        "of": c.query,
        "before": c.before.value,
        "after": c.after.value,
        "change": c.change.value,
        "low": c.change.low,
        "high": c.change.high,
    }


def _cell(value: object) -> object:
    """A value as one cell of a table."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_cell(item)}" for key, item in value.items())
    if isinstance(value, Iterable):
        return ", ".join(str(_cell(item)) for item in value)
    return _cell(plain(value)) if isinstance(value, np.generic) else str(value)


def read_run(findings: Findings, tables: Sequence[Listing]) -> dict[str, Any]:
    """The verdicts, each with the tables behind its tests, and the names of all tables."""
    return {
        "name": findings.name,
        "time": findings.run.get("time", ""),
        "subjects": {kind: about.get("name", "") for kind, about in findings.subjects.items()},
        "verdicts": [
            {
                **plain(verdict.to_dict()),
                "subject_title": SUBJECTS.get(verdict.subject, verdict.subject),
                "evidence": [
                    {
                        **plain(test.to_dict()),
                        "p_text": p_value(test.p, test.draws),
                        "table": _table_of(test, verdict.subject, tables),
                    }
                    for test in verdict.tests
                ],
            }
            for verdict in findings.verdicts
        ],
        "tables": [
            {
                "title": table.title,
                "kind": table.kind,
                "stage": table.stage.title,
                "rows": len(table.source),
                "measurement": None if table.measurement is None else _summary(table.measurement),
            }
            for table in tables
        ],
    }


def _table_of(test: VerdictTest, subject: str, tables: Sequence[Listing]) -> int | None:
    """The table that a test of a verdict was computed from, the nearest there is."""

    def fit(table: Listing) -> int:
        if table.stage.subject != subject:
            return 0
        m = table.measurement
        if m is None:
            own = {(o.metric, o.query) for o in table.stage.measurements}
            return 2 * (table.kind == "results" and (test.metric, test.query) in own)
        if m.metric != test.metric:
            return 0
        if m.query == test.query:
            return 5 if table.kind == "items" else 4
        return 3 if any(part.query == test.query for part in m.parts) else 1

    scores = [fit(table) for table in tables]
    best = max(scores, default=0)
    return scores.index(best) if best else None


# -------------------------------------------------------------------------------- one table


@dataclass(frozen=True, kw_only=True)
class View:
    """Which rows of a table are shown, in which order.

    Parameters
    ----------
    find : str
        A text that some cell of the row has, whatever its case.
    where : Mapping of str to str
        Columns and the text that their cell is.
    sort : str
        A column; cells without a value come last.
    descending : bool
    first : int
        The number of the first row of the page.

    """

    find: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    sort: str = ""
    descending: bool = False
    first: int = 0

    def select(self, rows: Sequence[Row]) -> list[Row]:
        """All rows that are shown, in order."""
        columns = columns_of(rows)
        for column in (*self.where, *([self.sort] if self.sort else [])):
            if column not in columns:
                raise UnknownNameError("column", column, columns)
        wanted = self.find.strip().lower()
        chosen = [
            row
            for row in rows
            if all(_text(row.get(column)) == value for column, value in self.where.items())
            and (not wanted or any(wanted in _text(cell).lower() for cell in row.values()))
        ]
        if not self.sort:
            return chosen
        known = [row for row in chosen if row.get(self.sort) is not None]
        rest = [row for row in chosen if row.get(self.sort) is None]
        numbers = all(isinstance(row[self.sort], int | float) for row in known)
        known.sort(
            key=lambda row: row[self.sort] if numbers else _text(row[self.sort]).lower(),
            reverse=self.descending,
        )
        return known + rest


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns that any row has."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def read_page(rows: Sequence[Row], view: View) -> dict[str, Any]:
    """One page of a table, its columns that are not empty and what they can be filtered by."""
    chosen = view.select(rows)
    columns = [name for name in columns_of(rows) if any(row.get(name) is not None for row in rows)]
    choices = {}
    for column in columns:
        values = {_text(row.get(column)) for row in rows}
        texts = any(isinstance(row.get(column), str | bool) for row in rows)
        if texts and 1 < len(values) <= CHOICES:
            choices[column] = sorted(values)
    return {
        "columns": columns,
        "choices": choices,
        "total": len(rows),
        "selected": len(chosen),
        "first": view.first,
        "page": PAGE,
        "rows": [
            [row.get(column) for column in columns]
            for row in chosen[view.first : view.first + PAGE]
        ],
    }


def as_csv(rows: Sequence[Row], view: View) -> str:
    """All selected rows as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: spreadsheet_cell(cell) for name, cell in row.items()} for row in view.select(rows)
    )
    return text.getvalue()


# ------------------------------------------------------------------------- a classifier's errors


@dataclass(frozen=True)
class PredictionTable:
    """The predictions of a classifier with their texts, which may be empty."""

    predictions: Predictions
    texts: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def _by_item(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = {}
        for row, item in enumerate(self.predictions.items):
            found.setdefault(item, []).append(row)
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """The originals: item, text, groups, true and predicted class, error, and flips."""
        p = self.predictions
        rows: list[Row] = []
        for i in range(len(p)):
            if p.versions and p.versions[i] != ORIGINAL:
                continue
            row: dict[str, Any] = {"item": p.items[i] if p.items else str(i + 1)}
            if self.texts:
                row["text"] = self.texts[i]
            row |= {name: labels[i] for name, labels in p.groups.items()}
            if p.true:
                row |= {"true": p.true[i]}
            row |= {"predicted": p.pred[i]}
            if p.true:
                row |= {"error": "yes" if p.pred[i] != p.true[i] else "no"}
            if p.versions:
                others = [p.pred[j] for j in self._by_item[p.items[i]] if j != i]
                row["flips"] = "yes" if any(other != p.pred[i] for other in others) else "no"
            rows.append(row)
        return rows

    def counts(self) -> dict[str, int | None]:
        """How many texts there are, how many errors, and how many flip with the gender."""
        p = self.predictions
        known = {"errors": ("error", bool(p.true)), "flips": ("flips", bool(p.versions))}
        counts = {
            name: sum(row[column] == "yes" for row in self.rows) if there else None
            for name, (column, there) in known.items()
        }
        return {"texts": len(self.rows), **counts}

    def versions(self, item: str) -> list[dict[str, Any]]:
        """The versions of a text: those of the file, or else by our rewriting, unpredicted."""
        p = self.predictions
        if p.versions:
            return [
                {
                    "version": p.versions[i],
                    "text": self.texts[i] if self.texts else "",
                    "predicted": p.pred[i],
                }
                for i in self._by_item.get(item, [])
            ]
        row = next((row for row in self.rows if row["item"] == item), None)
        if row is None or not self.texts:
            return []
        [rewritten] = counterfactuals([row["text"]])
        return [
            {
                "version": version,
                "text": text,
                "predicted": row["predicted"] if version == ORIGINAL else None,
            }
            for version, text in rewritten.items()
        ]


def read_prediction_table(
    source: str,
    *,
    true: str | None = None,
    pred: str | None = None,
    group: Sequence[str] = (),
    text: str | None = None,
) -> PredictionTable:
    """Read a classifier's predictions with their texts.

    Parameters
    ----------
    source : str
        A table as for `evenhand.classifier.read_predictions`.
    true, pred, group
        As for `read_predictions`.
    text : str, optional
        The column of the texts; by default the only one that looks like text, if there is one.

    """
    predictions = read_predictions(source, true=true, pred=pred, group=group)
    if text is None:
        try:
            text = text_column(source)
        except InputError:
            return PredictionTable(predictions)
    with open_table(source) as table:
        texts = tuple(cell or "" for (cell,) in table.rows(text))
    return PredictionTable(predictions, texts)
