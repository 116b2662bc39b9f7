"""What an audit found: its stages, verdicts and run, saved in a folder and read back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.arguments import check_fields
from evenhand.errors import FileError, InputError
from evenhand.files import document, read_document, save_json
from evenhand.instruments import LANGUAGE
from evenhand.lexicon import Topic
from evenhand.report.verdicts import Verdict
from evenhand.results import (
    ITEMS,
    Comparison,
    Items,
    ItemTables,
    Measurement,
    read_with_items,
)
from evenhand.vectors.distances import DistanceTable

if TYPE_CHECKING:
    from evenhand.report.answer import AuditAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What one stage of an audit found; `failed` says why where it found nothing.

    `subject` is what it is about, `measures` whether it measures that as it was given. `details`
    has what is neither a measurement nor a comparison, as plain JSON values.
    """

    name: str
    kind: str
    title: str
    subject: str = ""
    measures: bool = True
    topic: str | None = None
    measurements: tuple[Measurement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    distances: DistanceTable | None = None
    skipped: tuple[Mapping[str, str], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    failed: str = ""

    @property
    def empty(self) -> bool:
        """Nothing was found."""
        return not (self.measurements or self.comparisons or self.details)

    def to_dict(self, *, items: bool | Callable[[Items], Any] = True) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__}
        row["measurements"] = [m.to_dict(items=items) for m in self.measurements]
        row["comparisons"] = [c.to_dict(items=False) for c in self.comparisons]
        row["distances"] = None if self.distances is None else _table_row(self.distances)
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> StageResult:
        fields = dict(row)
        fields["measurements"] = tuple(map(Measurement.from_dict, row["measurements"]))
        fields["comparisons"] = tuple(map(Comparison.from_dict, row["comparisons"]))
        fields["distances"] = None if row["distances"] is None else _table(row["distances"])
        fields["skipped"] = tuple(row["skipped"])
        stage = cls(**fields)
        check_fields(stage)
        return stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The stages of an audit, its verdicts, and what was audited and how."""

    subjects: Mapping[str, Mapping[str, Any]]
    """What was audited: `vectors`, `model`, `data`, each with a `name` and more."""
    settings: Mapping[str, Any]
    topics: tuple[Topic, ...] = field(repr=False)
    stages: tuple[StageResult, ...] = field(repr=False)
    verdicts: tuple[Verdict, ...] = field(default=(), repr=False)
    run: Mapping[str, Any]

    @property
    def vectors(self) -> Mapping[str, Any] | None:
        """The vectors audited, if any."""
        return self.subjects.get("vectors")

    @property
    def model(self) -> Mapping[str, Any]:
        """The facts of the language model, of whichever kind, if there is one."""
        return next((self.subjects[kind] for kind in LANGUAGE if kind in self.subjects), {})

    @property
    def name(self) -> str:
        """The audited subjects in a few words."""
        return ", ".join(dict.fromkeys(str(each["name"]) for each in self.subjects.values()))

    def of(self, kind: str, topic: str | None = None) -> list[StageResult]:
        """The stages of a kind; with `topic`, those of this topic."""
        return [s for s in self.stages if s.kind == kind and topic in (None, s.topic)]

    def measured(self, kind: str, topic: str | None = None) -> list[Measurement]:
        """The measurements of the stages of a kind."""
        return [m for stage in self.of(kind, topic) for m in stage.measurements]

    def by_metric(self) -> dict[str, list[Measurement]]:
        """All measurements by metric, also those after a mitigation."""
        by_metric: dict[str, list[Measurement]] = {}
        for stage in self.stages:
            for m in (*stage.measurements, *(c.after for c in stage.comparisons)):
                by_metric.setdefault(m.metric, []).append(m)
        return by_metric

    def details(self, kind: str, topic: str | None = None) -> Mapping[str, Any] | None:
        """The details of the first stage of a kind that has some."""
        return next((stage.details for stage in self.of(kind, topic) if stage.details), None)

    def skipped(self, kind: str, topic: str | None = None) -> list[Mapping[str, str]]:
        """The measurements that the stages of a kind skipped, with the reasons."""
        return [skip for stage in self.of(kind, topic) for skip in stage.skipped]

    @property
    def failed(self) -> list[StageResult]:
        """The stages that failed."""
        return [stage for stage in self.stages if stage.failed]

    @property
    def answer(self) -> AuditAnswer:
        """What was found, how large and how sure, what helped and what to do."""
        from evenhand.report.answer import build_answer

        return build_answer(self)

    def save(self, folder: Path) -> None:
        """Write `results.json`, and the items of its measurements as `items.parquet`."""
        tables = ItemTables()
        content = self.to_dict(items=tables.add)
        content["items"] = tables.save(folder / ITEMS)
        save_json(folder / "results.json", content, indent=1)

    def to_dict(self, *, items: bool | Callable[[Items], Any] = True) -> dict[str, Any]:
        """The JSON view; `items` as for `Measurement.to_dict`."""
        return document(
            subjects=self.subjects,
            settings=self.settings,
            answer=self.answer.to_dict(),
            verdicts=[verdict.to_dict() for verdict in self.verdicts],
            topics=[asdict(topic) for topic in self.topics],
            stages=[stage.to_dict(items=items) for stage in self.stages],
        )


def read_findings(folder: str | os.PathLike[str]) -> Findings:
    """What `evenhand audit` saved in a folder."""
    path = Path(folder) / "results.json"
    if not path.is_file():
        raise FileError(path, "no such file: expected what `evenhand audit` has written")
    saved, run = read_with_items(path), read_document(Path(folder) / "run.json")
    try:
        found = Findings(
            subjects=saved["subjects"],
            settings=saved["settings"],
            topics=tuple(Topic(**_frozen(row)) for row in saved["topics"]),
            stages=tuple(map(StageResult.from_dict, saved["stages"])),
            verdicts=tuple(map(Verdict.from_dict, saved["verdicts"])),
            run=run,
        )
        check_fields(found)
    except InputError as error:
        raise FileError(path, str(error)) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(path, f"expected the results of an audit, got none for {error}") from None
    return found


def _frozen(value: object) -> Any:
    """Lists as tuples, at any depth."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value


def _table_row(table: DistanceTable) -> dict[str, Any]:
    return {name: getattr(table, name) for name in table.__slots__}


def _table(row: Mapping[str, Any]) -> DistanceTable:
    lists: dict[str, Sequence[str]] = {
        name: tuple(value) for name, value in row.items() if isinstance(value, list)
    }
    return DistanceTable(**{**row, **lists, "distance": np.array(row["distance"], dtype=float)})
