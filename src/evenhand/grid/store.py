"""The folder of a grid: a file a result, whose presence is all the state there is.

- `grid.json`: the grid that was launched last; `grids/`: each that ever was, by its content;
- `cells/ab/KEY.json`: the results; `failed/KEY.json`: why there is none;
- `claims/`: who works on what; `work/KEY/`: what a cell has made so far;
- `cache/`: what cells share; `log/`: what each worker did and how long it took.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evenhand.errors import FileError
from evenhand.grid.cells import Cell, digest_of, key_of
from evenhand.results import document, replace_file, save_json, to_json

__all__ = ["DamagedError", "Store"]

COMMAND = "grid run"
LEFT = (".grid.json.*", "grids/.*", "cells/*/.*", "failed/.*", "claims/.*")
OLD = 3600.0


class DamagedError(FileError):
    """A result's file is not as it was written."""


class Store:
    """The files of a grid's folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def claims(self) -> Path:
        return self.path / "claims"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def log(self) -> Path:
        return self.path / "log"

    def work(self, key: str) -> Path:
        """The folder in which a cell is computed."""
        return self.path / "work" / key

    def file(self, key: str) -> Path:
        """Where the result of a cell is, or would be."""
        return self.path / "cells" / key[:2] / f"{key}.json"

    def has(self, key: str) -> bool:
        return self.file(key).is_file()

    def settled(self, key: str) -> bool:
        """Whether a cell has a result, or failed in this launch."""
        return self.has(key) or self._failed(key).is_file()

    def save(
        self, task: str, version: int, identity: Mapping[str, Any], result: Mapping[str, Any]
    ) -> None:
        """Write a result, whole or not at all; what the cell had made so far is cleared away.

        With it goes all that determines it, and nothing else: the same result is the same bytes.
        """
        key = key_of(task, version, identity)
        told = document(task=task, version=version, key=key, identity=identity, result=result)
        content = json.loads(to_json(told))
        content["digest"] = digest_of(content)
        target = self.file(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(target) as file:
            file.write((to_json(content, indent=1) + "\n").encode())
        self._failed(key).unlink(missing_ok=True)
        shutil.rmtree(self.work(key), ignore_errors=True)

    def result(self, key: str) -> dict[str, Any] | None:
        """What was saved for a cell; None without it, an error where it is not as it was saved."""
        path = self.file(key)
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            raise DamagedError(path, "expected a result, got no JSON") from None
        if not isinstance(content, dict):
            raise DamagedError(path, "expected a result, got other JSON")
        digest = content.pop("digest", None)
        if digest != digest_of(content) or content.get("key") != key:
            raise DamagedError(path, "expected a result, its check sum is wrong")
        found: dict[str, Any] = content["result"]
        return found

    def remove(self, key: str) -> None:
        """Take a result away, so that it is computed anew."""
        self.file(key).unlink(missing_ok=True)

    def fail(self, cell: Cell, reason: str, trace: str = "") -> None:
        """Say why a cell has no result."""
        path = self._failed(cell.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_json(path, document(key=cell.key, axes=cell.axes, reason=reason, trace=trace))

    def failure(self, key: str) -> str | None:
        """Why a cell failed; None where it did not."""
        try:
            told = json.loads(self._failed(key).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            return "it is not known why: the record of it is damaged"
        return str(told["reason"])

    def forgive(self, keys: Sequence[str]) -> None:
        """Forget failures, so that the cells are tried again."""
        for key in keys:
            self._failed(key).unlink(missing_ok=True)

    def save_grid(self, content: Mapping[str, Any]) -> str:
        """Write down a grid, and give the name it is found again by."""
        whole = document(command=COMMAND, **content)
        name = digest_of(whole)
        for path in (self.path / "grids" / f"{name}.json", self.path / "grid.json"):
            path.parent.mkdir(parents=True, exist_ok=True)
            save_json(path, whole)
        return name

    def sweep(self) -> None:
        """Remove what kills left of files half-written, an hour ago or more.

        By the clock of the disk alone, on which `grid.json` was just written.
        """
        now = (self.path / "grid.json").stat().st_mtime
        for pattern in LEFT:
            for path in self.path.glob(pattern):
                with suppress(FileNotFoundError):  # another launch sweeps too
                    if now - path.stat().st_mtime > OLD:
                        path.unlink()

    def grid(self, name: str | None = None) -> dict[str, Any]:
        """A grid by its name, or the one launched last."""
        path = self.path / "grid.json" if name is None else self.path / "grids" / f"{name}.json"
        try:
            told = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise FileError(
                self.path, f"expected the folder of a grid, it has no {path.name}"
            ) from None
        except ValueError as error:
            raise FileError(path, f"not valid JSON: {error}; repeat `grid run`") from None
        if not isinstance(told, dict) or told.get("command") != COMMAND:
            raise FileError(path, f"expected the record of '{COMMAND}', got another one")
        return told

    def cells(self, name: str | None = None) -> tuple[Cell, ...]:
        """The cells of a grid by its name, or of the one launched last."""
        return tuple(Cell(**cell) for cell in self.grid(name)["cells"])

    def results(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Each cell of the grid launched last that has a result, with it."""
        for cell in self.cells():
            found = self.result(cell.key)
            if found is not None:
                yield cell, found

    def note(self, name: str, **told: Any) -> None:
        """Add a line to a worker's log; a full disk is no reason to stop."""
        with suppress(OSError):
            self.log.mkdir(parents=True, exist_ok=True)
            with (self.log / f"{name}.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(told) + "\n")

    def times(self) -> dict[str, float]:
        """How many seconds each cell took, from the logs."""
        found: dict[str, float] = {}
        for path in sorted(self.log.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line)
                    found[told["key"]] = float(told["seconds"])
        return found

    def _failed(self, key: str) -> Path:
        return self.path / "failed" / f"{key}.json"
