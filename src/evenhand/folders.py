"""The folder of a run: whose it is, what is in it, and that only one process works there."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self

from evenhand.errors import FileError, PartialFailure
from evenhand.results import document, save_csv, save_json

__all__ = ["GOES_ON", "PARTIAL", "RunFolder", "user_cache", "versions"]

PARTIAL = ".partial."
"""How the names of folders begin that are not complete yet; what a kill left of them is removed."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
GOES_ON = "what was saved before is whole, and the same command goes on from there"


class RunFolder:
    """`run.json` says which run it is; `results.json`, that it is done.

    `made` are the names, or patterns, of what a run has worked for and what must not be lost;
    `cleared` are all the files and folders of a run, `temporary` what a kill may leave behind.
    """

    command: ClassVar[str] = ""
    made: ClassVar[tuple[str, ...]] = ("results.json",)
    cleared: ClassVar[tuple[str, ...]] = ("results.json",)
    temporary: ClassVar[tuple[str, ...]] = (f"{PARTIAL}*",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def working(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """The folder, made if need be, for this process alone; a full disk is told of as such."""
        place = Path(path)
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY)
        try:
            with suppress(OSError):  # a disk that knows no locks, as some clusters have
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise FileError(place, "another run is working in this folder") from None
            made = cls(place)
            made._take_away(cls.temporary)
            yield made
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise PartialFailure(
                f"{error.filename or place}: {error.strerror}; {GOES_ON}"
            ) from error
        finally:
            os.close(handle)

    def holds(self, identity: Mapping[str, Any]) -> bool:
        """Whether the folder has this run; one that another run has learned in is refused."""
        there = self._record()
        if there is None:
            return False
        if not there:
            problem = "damaged, not the record of a run: --restart begins anew"
            raise FileError(self.path / "run.json", problem)
        differing = list(_differing(there["identity"], json.loads(json.dumps(identity))))
        if differing and self._begun():
            raise FileError(
                self.path,
                f"has another run ({'; '.join(differing)}): give another folder, or --restart "
                "to begin anew here",
            )
        return not differing

    def claim(self, identity: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        """Make the folder this run's; what an earlier one left is cleared away."""
        if self._record() is not None:
            self._take_away(self.cleared)
        elif self._begun():
            raise FileError(self.path, "has results of no run of this command: give another folder")
        file = self.path / "run.json"  # it stays until now: a kill leaves the folder a run's
        save_json(file, document(command=self.command, identity=identity, **run))

    def save_table(self, rows: Sequence[Mapping[str, Any]], *parts: str) -> None:
        """Write rows as CSV, whole or not at all."""
        cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
        target = self.path.joinpath(*parts)
        target.parent.mkdir(exist_ok=True)
        save_csv(target, cells, rows[0])

    def _record(self) -> dict[str, Any] | None:
        """What `run.json` says: None without one, empty where it is damaged.

        The folder of another command, or of another program, is refused.
        """
        try:
            there = json.loads((self.path / "run.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        owner = there.get("command") if isinstance(there, dict) else None
        if owner != self.command:
            whose = f"'{owner}'" if isinstance(owner, str) else "something else"
            raise FileError(
                self.path,
                f"has the run.json of {whose}, not of '{self.command}': give another folder",
            )
        return there if "identity" in there else {}

    def _take_away(self, patterns: Sequence[str]) -> None:
        """Remove files and folders of a run; nothing else in the folder is touched."""
        for pattern in patterns:
            for path in list(self.path.glob(pattern)):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def _begun(self) -> bool:
        """Whether something was learned here, that must not be lost."""
        return any(next(self.path.glob(pattern), None) for pattern in self.made)


def user_cache(*parts: str) -> Path:
    """A place in the user's cache folder, $XDG_CACHE_HOME/evenhand or ~/.cache/evenhand."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(home, "evenhand", *parts)


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python, of Evenhand and of these packages, for the record of a run."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("evenhand", "numpy", *packages):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a source tree that is run as it lies there
            found[name] = "not installed"
    return found


def _cell(value: Any) -> Any:
    """What is no number is an empty cell."""
    return "" if isinstance(value, float) and math.isnan(value) else value


def _differing(there: Any, now: Any, name: str = "") -> Iterator[str]:
    """What of two identities is not the same, in words."""
    if isinstance(there, dict) and isinstance(now, dict):
        for part in sorted(there.keys() | now.keys()):
            yield from _differing(there.get(part), now.get(part), part)
    elif there != now:
        long = any(isinstance(value, str) and len(value) > 20 for value in (there, now))
        yield f"another {name}" if long else f"{name}: {there} there, {now} now"
