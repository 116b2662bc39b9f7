"""A stage of an audit: computed once, saved with a key of all it depends on, and taken up again."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from evenhand.errors import EvenhandError, FileError
from evenhand.lexicon import Topic
from evenhand.report.saved import StageResult, read_json, read_stages, stage_rows
from evenhand.report.tables import slug
from evenhand.results import document, replace_file, save_json, to_json

__all__ = ["Options", "Progress", "Silent", "Stage", "run_stage", "steps"]

T = TypeVar("T")


class Progress(Protocol):
    """What is told of how far an audit is."""

    def stage(self, title: str, number: int, of: int) -> None:
        """A stage begins."""

    def step(self, done: int, of: int) -> None:
        """So many of the stage's steps are done."""


class Silent:
    """Tells nobody."""

    def stage(self, title: str, number: int, of: int) -> None: ...

    def step(self, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an audit is run; `work` is a folder of the audit's own for caches and unfinished work."""

    quick: bool = False
    seed: int = 0
    prob: float = 0.95
    jobs: int = 1
    work: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of the work: what it is called, what it depends on, and how it is done.

    `compute` returns the fields of a `StageResult` that it fills.
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
    """The stage's result: the saved one if its key is the same, else computed and saved; and the
    seconds it took when it was computed.
    """
    path, trouble = folder / f"{stage.name}.json", folder / f"{stage.name}.error.txt"
    try:
        saved = read_json(path)
        if saved.get("key") == key:
            return read_stages(saved)[0], float(saved["seconds"])
    except (FileError, KeyError, TypeError):
        pass
    described = {
        "name": stage.name, "kind": stage.kind, "title": stage.title,
        "topic": None if stage.topic is None else stage.topic.name,
    }  # fmt: skip
    began = time.monotonic()
    try:
        result = StageResult(**described, **stage.compute(progress))  # type: ignore[arg-type]
    except Exception as error:
        reason = str(error) if isinstance(error, EvenhandError) else repr(error)
        with replace_file(trouble) as file:
            file.write(traceback.format_exc().encode())
        failed = StageResult(**described, failed=reason)  # type: ignore[arg-type]
        return failed, round(time.monotonic() - began, 1)
    seconds = round(time.monotonic() - began, 1)
    save_json(path, document(key=key, seconds=seconds, **stage_rows([result])))
    trouble.unlink(missing_ok=True)
    return read_stages(read_json(path))[0], seconds


def steps(items: Sequence[T], progress: Progress) -> Iterator[T]:
    """The items, telling how many are done."""
    for done, item in enumerate(items):
        progress.step(done, len(items))
        yield item
    progress.step(len(items), len(items))
