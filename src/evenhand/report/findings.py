"""A finished audit, read back from its folder: all that a page needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import FileError
from evenhand.lexicon import Topic
from evenhand.report.saved import StageResult, read_json, read_stages
from evenhand.results import Measurement

__all__ = ["Findings", "read_findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The stages of an audit with the topics, the vectors and the run they belong to."""

    subjects: Mapping[str, Mapping[str, Any]]
    """What was audited: `vectors`, `model`, `data`, each with a `name` and more; those not asked
    for are not there."""
    settings: Mapping[str, Any]
    topics: tuple[Topic, ...] = field(repr=False)
    stages: tuple[StageResult, ...] = field(repr=False)
    run: Mapping[str, Any]

    @property
    def vectors(self) -> Mapping[str, Any] | None:
        """The vectors audited, if any."""
        return self.subjects.get("vectors")

    @property
    def name(self) -> str:
        """What was audited, in a few words."""
        return ", ".join(dict.fromkeys(str(each["name"]) for each in self.subjects.values()))

    def of(self, kind: str, topic: str | None = None) -> list[StageResult]:
        """The stages of a kind, on request of one topic."""
        return [s for s in self.stages if s.kind == kind and topic in (None, s.topic)]

    def measured(self, kind: str, topic: str | None = None) -> list[Measurement]:
        """The measurements of the stages of a kind."""
        return [m for stage in self.of(kind, topic) for m in stage.measurements]

    def contents(self, kind: str) -> list[tuple[StageResult, Mapping[str, Any]]]:
        """The stages of a kind that found something, each with its content."""
        return [(stage, stage.content) for stage in self.of(kind) if stage.content]

    def content(self, kind: str) -> Mapping[str, Any] | None:
        """The content of the first stage of a kind that found something."""
        return next((content for _, content in self.contents(kind)), None)

    @property
    def failed(self) -> list[StageResult]:
        """The stages that did not end."""
        return [stage for stage in self.stages if stage.failed]


def read_findings(folder: str | os.PathLike[str]) -> Findings:
    """What `evenhand audit` left in a folder."""
    path = Path(folder) / "results.json"
    saved, run = read_json(path), read_json(Path(folder) / "run.json")
    try:
        return Findings(
            subjects=saved["subjects"],
            settings=saved["settings"],
            topics=tuple(_topic(row) for row in saved["topics"]),
            stages=read_stages(saved),
            run=run,
        )
    except (KeyError, TypeError) as error:
        raise FileError(path, f"expected the results of an audit, got none for {error}") from None


def _topic(row: Mapping[str, Any]) -> Topic:
    return Topic(**{name: _frozen(value) for name, value in row.items()})


def _frozen(value: Any) -> Any:
    """Lists as tuples, at any depth."""
    if isinstance(value, list):
        return tuple(_frozen(one) for one in value)
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return value
