"""How far a run has come, beside its output, so that the same command goes on after a kill."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from evenhand.results import to_json
from evenhand.text.corpus.feed import Position

__all__ = ["Checkpoint", "State", "run_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The place in the input; what was written to each file, and counted, when it was reached."""

    position: Position = field(default_factory=Position)
    done: Sequence[int] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def run_key(sources: Sequence[str], **settings: str) -> str:
    """What makes two runs the same one: the files as they are now, and all settings."""
    files = []
    for source in sources:
        stat = Path(source).stat()
        files.append([str(Path(source).resolve()), source, stat.st_size, stat.st_mtime_ns])
    told = json.dumps([files, settings], sort_keys=True)
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


class Checkpoint:
    """The file that holds the state of a run, replaced as a whole each time."""

    def __init__(self, output: str | Path, key: str) -> None:
        target = Path(output).resolve()
        self._path = target.with_name(f".{target.name}.progress.json")
        self._key = key

    def load(self) -> State | None:
        """The state of an earlier run of the same command, if one was broken off."""
        try:
            saved = json.loads(self._path.read_bytes())
            if saved["key"] != self._key:
                return None
            return State(
                position=Position(**saved["position"]),
                done=saved["done"],
                counts=saved["counts"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, state: State) -> None:
        content = to_json(
            {
                "key": self._key,
                "position": asdict(state.position),
                "done": state.done,
                "counts": state.counts,
            }
        )
        new = self._path.with_name(self._path.name + ".new")
        with new.open("w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)

    def remove(self) -> None:
        for path in (self._path, self._path.with_name(self._path.name + ".new")):
            path.unlink(missing_ok=True)
