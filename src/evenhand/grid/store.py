"""The folder of a grid: one atomic file per result, whose presence is the state.

- `grid.json`: the grid launched last;
- `cells/ab/KEY.json`: the results; `failed/KEY.json`: why a cell has none;
- `.lock`, `launcher.json`: the lock of the folder, and who holds it;
- `work/KEY/`: what a cell under way has written, locked by `work/KEY.lock`;
- `cache/`: what cells share; `log/`: what each worker printed and how long its cells took.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from filelock import FileLock

from evenhand.errors import FileError
from evenhand.files import (
    document,
    lock_folder,
    own_entries,
    parse_json,
    replace_file,
    save_json,
    to_json,
)
from evenhand.grid.spec import Cell, cell_key, digest

COMMAND = "grid run"
PARTIAL = (".grid.json.*", ".launcher.json.*", "cells/*/.*", "failed/.*")
"""Patterns of half-written files that a kill may leave."""
PARTIAL_AGE = 3600.0
"""Seconds after which a half-written file is removed."""


class DamagedError(FileError):
    """A result file is not as it was written."""


class Store:
    """The files of a grid's folder.

    Parameters
    ----------
    path
        The folder. It need not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def log(self) -> Path:
        return self.path / "log"

    def work(self, key: str) -> Path:
        """Return the folder in which a cell is computed."""
        return self.path / "work" / key

    def file(self, key: str) -> Path:
        """Return the path of a cell's result."""
        return self.path / "cells" / key[:2] / f"{key}.json"

    def has(self, key: str) -> bool:
        return self.file(key).is_file() and not self.file(key).is_symlink()

    def is_settled(self, key: str) -> bool:
        """Whether a cell has a result or failed."""
        return self.has(key) or self._failure_file(key).is_file()

    # the grid

    def save_grid(self, content: Mapping[str, Any]) -> None:
        """Write the grid that is being launched."""
        self.path.mkdir(parents=True, exist_ok=True)
        save_json(self.path / "grid.json", document(command=COMMAND, **content), entry=True)

    def grid(self) -> dict[str, Any]:
        """Return the grid launched last."""
        path = self.path / "grid.json"
        try:
            content = parse_json(path.read_bytes(), path)
        except FileNotFoundError:
            raise FileError(
                self.path, f"expected the folder of a grid, it has no {path.name}"
            ) from None
        if not isinstance(content, dict) or content.get("command") != COMMAND:
            raise FileError(path, f"expected the record of '{COMMAND}', got another one")
        return dict(content)

    def cells(self) -> tuple[Cell, ...]:
        """Return the cells of the grid launched last."""
        return tuple(Cell(**cell) for cell in self.grid()["cells"])

    # results

    def save(
        self, task: str, version: int, identity: Mapping[str, Any], result: Mapping[str, Any]
    ) -> None:
        """Write a result atomically and remove the cell's work folder.

        The file contains what determines the result and nothing else, so that the same result
        is the same bytes.
        """
        key = cell_key(task, version, identity)
        content = json.loads(
            to_json(document(task=task, version=version, key=key, identity=identity, result=result))
        )
        content["digest"] = digest(content)
        target = self.file(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(target, entry=True) as file:
            file.write((to_json(content, indent=1) + "\n").encode())
        self._failure_file(key).unlink(missing_ok=True)
        shutil.rmtree(self.work(key), ignore_errors=True)

    def result(self, key: str) -> dict[str, Any] | None:
        """Return the result of a cell, None without one.

        Raises
        ------
        DamagedError
            Where the file is not as it was written.
        """
        path = self.file(key)
        if not own_entries([path]):
            return None
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            raise DamagedError(path, "expected a result, got no JSON") from None
        if not isinstance(content, dict):
            raise DamagedError(path, "expected a result, got other JSON")
        checksum = content.pop("digest", None)
        if checksum != digest(content) or content.get("key") != key:
            raise DamagedError(path, "expected a result, its checksum is wrong")
        result: dict[str, Any] = content["result"]
        return result

    def results(self) -> Iterator[tuple[Cell, dict[str, Any]]]:
        """Yield the cells of the grid launched last that have a result, with the result."""
        for cell in self.cells():
            result = self.result(cell.key)
            if result is not None:
                yield cell, result

    def remove(self, key: str) -> None:
        """Remove a result, so that it is computed again."""
        self.file(key).unlink(missing_ok=True)

    def clear(self, keys: Sequence[str]) -> int:
        """Remove the results of cells and their unfinished work; returns the number of results."""
        removed = 0
        for key in keys:
            removed += self.has(key)
            self.remove(key)
            if self.running(key) is None:
                shutil.rmtree(self.work(key), ignore_errors=True)
        return removed

    # failures

    def fail(self, cell: Cell, reason: str, trace: str = "") -> None:
        """Record why a cell has no result."""
        path = self._failure_file(cell.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        save_json(
            path, document(key=cell.key, axes=cell.axes, reason=reason, trace=trace), entry=True
        )
        self._cell_lock(cell.key).unlink(missing_ok=True)

    def failure(self, key: str) -> str | None:
        """Return why a cell failed, None where it did not."""
        try:
            content = json.loads(self._failure_file(key).read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            return "the reason is unknown: its record is damaged"
        return str(content["reason"])

    def clear_failures(self, keys: Sequence[str]) -> None:
        """Remove the records of failures, so that the cells are tried again."""
        for key in keys:
            self._failure_file(key).unlink(missing_ok=True)

    def _failure_file(self, key: str) -> Path:
        return self.path / "failed" / f"{key}.json"

    # locks

    @contextmanager
    def lock_folder(self, launch: str) -> Iterator[None]:
        """Hold the folder for one launcher; the kernel releases the lock of a killed one.

        Raises
        ------
        FileError
            Where another launcher holds it: its host, process and start.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        record = self.path / "launcher.json"
        with lock_folder(self.path, busy=self._describe_holder()):
            since = datetime.now(UTC).isoformat(timespec="seconds")
            about = document(launch=launch, **_this_process(), since=since)
            save_json(record, about, entry=True)
            try:
                yield
            finally:
                record.unlink(missing_ok=True)

    def current_launch(self) -> str | None:
        """Return the launch that holds the folder, or held it until it was killed."""
        launch = _read_record(self.path / "launcher.json").get("launch")
        return launch if isinstance(launch, str) else None

    def _describe_holder(self) -> str:
        problem = "expected a folder without a launcher at work, another one holds it"
        if not (holder := _read_record(self.path / "launcher.json")):
            return problem
        process = f"process {holder.get('pid')} on {holder.get('host')}"
        return f"{problem}: {process}, since {holder.get('since')}"

    @contextmanager
    def lock_cell(self, key: str) -> Iterator[None]:
        """Hold a cell while it is computed.

        Launchers do not compute a cell twice. The jobs of a cluster, however, may outlive their
        launcher: another one waits here until the cell is done.
        """
        path = self._cell_lock(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def _cell_lock(self, key: str) -> Path:
        return self.path / "work" / f"{key}.lock"

    def mark_begun(self, key: str) -> None:
        """Record which process computes a cell."""
        self.work(key).mkdir(parents=True, exist_ok=True)
        with replace_file(self.work(key) / ".worker.json", entry=True) as file:
            file.write(json.dumps(_this_process()).encode())

    def unmark_begun(self, key: str) -> bool:
        """Remove the record of the process that computes a cell; says whether there was one."""
        try:
            (self.work(key) / ".worker.json").unlink()
        except FileNotFoundError:
            return False
        return True

    def running(self, key: str) -> dict[str, Any] | None:
        """Return the process that computes a cell now, None without one."""
        try:
            handle = os.open(self._cell_lock(key), os.O_RDWR)
        except FileNotFoundError:
            return None
        except PermissionError:  # of another user: whether it is held cannot be known
            handle = None
        if handle is not None and _is_free(handle):
            return None
        path = self.work(key) / ".worker.json"
        if not (process := _read_record(path)):  # about to begin, or just done
            return {}
        with suppress(OSError):
            process["seconds"] = max(0.0, time.time() - path.stat().st_mtime)
        return process

    def lock_cache(self, name: str) -> AbstractContextManager[Any]:
        """Hold a name of the cache, so that only one worker computes it."""
        self.cache.mkdir(parents=True, exist_ok=True)
        return FileLock(self.cache / f".{name}.lock")

    # times and leftovers

    def note_time(self, key: str, seconds: float) -> None:
        """Append a cell's time to the log of this process; a full disk is ignored."""
        process = _this_process()
        with suppress(OSError):
            self.log.mkdir(parents=True, exist_ok=True)
            path = self.log / f"{process['host']}-{process['pid']}.jsonl"
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "seconds": seconds}) + "\n")

    def times(self) -> dict[str, float]:
        """Return the seconds that each cell took, from the logs."""
        times: dict[str, float] = {}
        for path in own_entries(sorted(self.log.glob("*.jsonl"))):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    entry = json.loads(line)
                    times[entry["key"]] = float(entry["seconds"])
        return times

    def remove_partial(self) -> None:
        """Remove half-written files that are an hour old or more, and what finished cells left.

        Only the clock of the disk counts, on which `grid.json` was just written. A worker that is
        killed between its result and the end leaves its lock and its work folder behind.
        """
        now = (self.path / "grid.json").stat().st_mtime
        for pattern in PARTIAL:
            for path in self.path.glob(pattern):
                with suppress(FileNotFoundError):
                    if now - path.stat().st_mtime > PARTIAL_AGE:
                        path.unlink()
        for path in (self.path / "work").glob("*"):
            if self.file(path.stem).exists() and self.running(path.stem) is None:
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def _is_free(handle: int) -> bool:
    """Whether the lock of an open file is free; closes the file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _read_record(path: Path) -> dict[str, Any]:
    """The content of a small file about a process, empty where it is gone or half-written."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _this_process() -> dict[str, Any]:
    return {"host": platform.node(), "pid": os.getpid()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A cell that is being computed; `seconds` by the clock of the machine that asks."""

    cell: str
    key: str
    host: str
    pid: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Cells that failed for the same reason."""

    reason: str
    cells: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"reason": self.reason, "count": len(self.cells), "cells": list(self.cells)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The progress of a grid; each cell is counted once.

    `work_left` is the time that one worker needs for the rest, by the mean of the cells of each
    group, and `time_left` the time that the `workers` at work need. Both are None where no cell
    is done yet.
    """

    task: str
    cells: int
    done: int
    running: tuple[Running, ...]
    failed: tuple[Failed, ...]
    waiting: int
    workers: int
    work_left: float | None
    time_left: float | None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "failed": [failed.to_dict() for failed in self.failed]}


def status(folder: str | os.PathLike[str]) -> Status:
    """Return the progress of the grid that was launched last in a folder.

    Only files are looked at and nothing is changed, so it may be called at any time and from any
    machine that sees the folder.
    """
    store = Store(folder)
    content = store.grid()
    return status_of_cells(store, content["task"], [Cell(**cell) for cell in content["cells"]])


def status_of_cells(store: Store, task: str, cells: Sequence[Cell]) -> Status:
    """Return the progress of these cells."""
    done = 0
    waiting: list[Cell] = []
    running: dict[str, Running] = {}
    failed: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        if store.has(cell.key):
            done += 1
        elif (reason := store.failure(cell.key)) is not None:
            failed[reason].append(cell.name)
        elif (process := store.running(cell.key)) is not None:
            about = {"host": "unknown", "pid": None, "seconds": 0.0, **process}
            running[cell.key] = Running(cell=cell.name, key=cell.key, **about)
        elif store.has(cell.key):  # finished since the first look
            done += 1
        else:
            waiting.append(cell)
    work_left, time_left = _estimate_time(store.times(), cells, waiting, running)
    reasons = sorted(failed.items(), key=lambda item: -len(item[1]))
    return Status(
        task=task,
        cells=len(cells),
        done=done,
        running=tuple(running.values()),
        failed=tuple(Failed(reason=reason, cells=tuple(names)) for reason, names in reasons),
        waiting=len(waiting),
        workers=len(running),
        work_left=work_left,
        time_left=time_left,
    )


def _estimate_time(
    times: Mapping[str, float],
    cells: Sequence[Cell],
    waiting: Sequence[Cell],
    running: Mapping[str, Running],
) -> tuple[float | None, float | None]:
    """Return the seconds of work that are left, and how long they take the workers."""
    if not waiting and not running:
        return 0.0, 0.0
    by_group: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.key in times:
            by_group[cell.group].append(times[cell.key])
    if not by_group:
        return None, None
    overall = fmean([seconds for group in by_group.values() for seconds in group])
    means = {group: fmean(seconds) for group, seconds in by_group.items()}
    begun = [
        max(0.0, means.get(cell.group, overall) - running[cell.key].seconds)
        for cell in cells
        if cell.key in running
    ]
    work = sum(means.get(cell.group, overall) for cell in waiting) + sum(begun)
    return work, max([work / len(running), *begun]) if running else None
