"""What an audit saves and a page is made of: stages, as documents and back again.

A document is a mapping with flat lists (`stages`, `measurements`, `mitigations`, `distances`,
`skipped`, `contents`) whose rows name their stage; a stage's own file and `results.json` have the
same form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import FileError
from evenhand.results import SCHEMA, Comparison, Measurement
from evenhand.vectors.distances import DistanceTable

if TYPE_CHECKING:
    from evenhand.vectors.mitigation import Mitigation

__all__ = ["Account", "StageResult", "read_json", "read_stages", "stage_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A mitigation as it is reported: what was done, before against after, and the cost."""

    method: str
    debias: Mapping[str, Any]
    measures: tuple[Comparison, ...]
    hiding: tuple[Comparison, ...]
    utility: tuple[Measurement, ...]

    @classmethod
    def of(cls, method: str, mitigation: Mitigation) -> Account:
        return cls(
            method=method,
            debias=mitigation.debiased.to_dict(),
            measures=mitigation.measures,
            hiding=mitigation.hiding,
            utility=mitigation.utility,
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "debias": dict(self.debias),
            "measures": [comparison.as_dict() for comparison in self.measures],
            "hiding": [comparison.as_dict() for comparison in self.hiding],
            "utility": [measurement.as_dict() for measurement in self.utility],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What one stage of an audit found; `failed` says why where it found nothing.

    `content` is what a stage has found beyond measurements, as plain JSON values.
    """

    name: str
    kind: str
    title: str
    topic: str | None = None
    measurements: tuple[Measurement, ...] = ()
    mitigations: tuple[Account, ...] = ()
    distances: DistanceTable | None = None
    skipped: tuple[Mapping[str, str], ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    failed: str = ""


def stage_rows(stages: Sequence[StageResult]) -> dict[str, Any]:
    """The stages as the flat lists of a document."""
    return {
        "stages": [
            {"name": s.name, "kind": s.kind, "title": s.title, "topic": s.topic, "failed": s.failed}
            for s in stages
        ],
        "contents": [{"stage": s.name, "content": s.content} for s in stages if s.content],
        "measurements": [
            {"stage": s.name, **m.as_dict(items=True)} for s in stages for m in s.measurements
        ],
        "mitigations": [
            {"stage": s.name, **account.as_dict()} for s in stages for account in s.mitigations
        ],
        "distances": [
            {"stage": s.name, **_table_row(s.distances)} for s in stages if s.distances is not None
        ],
        "skipped": [{"stage": s.name, **skip} for s in stages for skip in s.skipped],
    }


def read_stages(document: Mapping[str, Any]) -> tuple[StageResult, ...]:
    """The stages of a document."""

    def of(kind: str, stage: str) -> list[dict[str, Any]]:
        return [
            {key: value for key, value in row.items() if key != "stage"}
            for row in document[kind]
            if row["stage"] == stage
        ]

    return tuple(
        StageResult(
            **row,
            measurements=tuple(Measurement.from_dict(m) for m in of("measurements", row["name"])),
            mitigations=tuple(_account(a) for a in of("mitigations", row["name"])),
            distances=next((_table(t) for t in of("distances", row["name"])), None),
            skipped=tuple(of("skipped", row["name"])),
            content=next((one["content"] for one in of("contents", row["name"])), {}),
        )
        for row in document["stages"]
    )


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """One of our JSON documents; anything else is an error that says where and why."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(path, "no such file: expected what `evenhand audit` has written") from None
    except json.JSONDecodeError as error:
        raise FileError(path, f"expected JSON, got {error.msg}", line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"expected JSON in UTF-8, got {error.reason}") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        came = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise FileError(path, f"expected a document with the schema {SCHEMA}, got {came}")
    return value


def _account(row: Mapping[str, Any]) -> Account:
    return Account(
        method=row["method"],
        debias=row["debias"],
        measures=tuple(Comparison.from_dict(c) for c in row["measures"]),
        hiding=tuple(Comparison.from_dict(c) for c in row["hiding"]),
        utility=tuple(Measurement.from_dict(m) for m in row["utility"]),
    )


def _table_row(table: DistanceTable) -> dict[str, Any]:
    return {name: getattr(table, name) for name in table.__slots__}


def _table(row: Mapping[str, Any]) -> DistanceTable:
    lists = {name: tuple(value) for name, value in row.items() if isinstance(value, list)}
    return DistanceTable(**{**row, **lists, "distance": np.array(row["distance"], dtype=float)})
