"""A stage of an audit: computed once, saved with a key of all it depends on, and resumed."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from evenhand.errors import EvenhandError, FileError
from evenhand.files import document, public, read_document, replace_file, save_json, to_json
from evenhand.lexicon import Topic
from evenhand.report.findings import StageResult
from evenhand.wording import slug

T = TypeVar("T")


class Progress(Protocol):
    """Receives how far an audit is."""

    def stage(self, title: str, number: int, of: int) -> None:
        """A stage starts."""

    def step(self, done: int, of: int) -> None:
        """So many of the stage's steps are done."""


class Silent:
    """Ignores progress."""

    def stage(self, title: str, number: int, of: int) -> None: ...

    def step(self, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an audit is run; `work` is the audit's folder for caches and unfinished work."""

    quick: bool = False
    seed: int = 0
    prob: float = 0.95
    jobs: int = 1
    work: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of the work: its name, what it depends on, and how it is computed.

    `compute` returns the fields of a `StageResult` that it fills: measurements, comparisons,
    skipped, distances, details.
    """

    kind: str
    title: str
    topic: Topic | None = None
    depends: Mapping[str, Any] = field(default_factory=dict)
    compute: Callable[[Progress], dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of its file."""
        return slug(f"{self.kind} {self.title}")

    def key(self, common: Mapping[str, Any]) -> str:
        """A hash of everything the result depends on."""
        topic = None if self.topic is None else asdict(self.topic)
        depends = {"stage": self.name, "topic": topic, **self.depends, **common}
        return hashlib.sha256(to_json(depends, indent=None).encode()).hexdigest()


def run_stage(
    stage: Stage, folder: Path, key: str, progress: Progress
) -> tuple[StageResult, float]:
    """The result of a stage and the seconds it took: the saved one if its key is the same."""
    path, trouble = folder / f"{stage.name}.json", folder / f"{stage.name}.error.txt"
    try:
        saved = read_document(path)
        if saved.get("key") == key:
            return StageResult.from_dict(saved["stage"]), float(saved["seconds"])
    except (FileError, KeyError, TypeError):
        pass
    about: dict[str, Any] = {
        "name": stage.name,
        "kind": stage.kind,
        "title": stage.title,
        "topic": None if stage.topic is None else stage.topic.name,
    }
    began = time.monotonic()
    try:
        result = StageResult(**about, **stage.compute(progress))
    except Exception as error:
        reason = str(error) if isinstance(error, EvenhandError) else repr(error)
        with replace_file(trouble) as file:
            file.write(public(traceback.format_exc()).encode())
        return StageResult(**about, failed=reason), round(time.monotonic() - began, 1)
    seconds = round(time.monotonic() - began, 1)
    save_json(path, document(key=key, seconds=seconds, stage=result))
    trouble.unlink(missing_ok=True)
    return StageResult.from_dict(read_document(path)["stage"]), seconds


def steps(items: Sequence[T], progress: Progress) -> Iterator[T]:
    """The items, reporting how many are done."""
    for done, item in enumerate(items):
        progress.step(done, len(items))
        yield item
    progress.step(len(items), len(items))
