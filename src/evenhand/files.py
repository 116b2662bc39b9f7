"""Files: atomic writes, JSON documents, CSV tables, run folders.

Everything is written under a temporary name and renamed, so that a killed process leaves either
the complete file or none.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Self, TypeAlias

from evenhand.errors import FileError, InputError, PartialFailure

__all__ = [
    "RESUMES",
    "SCHEMA",
    "RunFolder",
    "check_row_format",
    "document",
    "lock_folder",
    "open_rows",
    "plain",
    "read_document",
    "replace_file",
    "save_csv",
    "save_json",
    "to_json",
    "user_cache",
    "versions",
]

SCHEMA = "evenhand/2"

PARTIAL = ".partial."
"""Prefix of incomplete folders; what a killed process left under it is removed."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
RESUMES = "results saved so far are complete, and the same command resumes from there"


def document(**content: Any) -> dict[str, Any]:
    """A JSON document of Evenhand: the schema first, then the content."""
    return {"schema": SCHEMA, **content}


def plain(value: Any) -> Any:
    """Arrays, tuples, mappings, results and dataclasses as plain JSON values; not finite: None.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    return value


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Strict JSON (numbers that are not finite become null), stable and readable.

    >>> to_json({"a": float("nan"), "b": (1, 2)}, indent=None)
    '{"a": null, "b": [1, 2]}'
    """
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON document of Evenhand; anything else is an error that says where and why."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(path, "no such file: expected a result that evenhand has written") from None
    except json.JSONDecodeError as error:
        raise FileError(path, f"expected JSON, got {error.msg}", line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"expected JSON in UTF-8, got {error.reason}") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        received = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise FileError(path, f"expected a document with the schema {SCHEMA}, got {received}")
    return value


def save_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as JSON, atomically."""
    with replace_file(path) as file:
        file.write((to_json(value) + "\n").encode())


def save_csv(
    path: str | os.PathLike[str],
    rows: Iterable[Mapping[str, Any]],
    columns: Iterable[str] | None = None,
) -> None:
    """Write rows as CSV, atomically; the default columns are all those that any row has."""
    listed = list(rows)
    names = list(columns or dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    with replace_file(path) as file:
        file.write(text.getvalue().encode())


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name beside `path`; it replaces `path` when complete.

    A link is followed: its target is replaced. The mode of the file is that of a new file.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder: expected a file to write", str(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe: there is nothing to replace
            yield file
        return
    temporary = _temporary_name(target)
    try:
        # opened with mode 0666, so that the kernel applies the umask: reading the umask in Python
        # would change it for the whole process for a moment
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _temporary_name(target: Path) -> str:
    candidates = tempfile._get_candidate_names()  # type: ignore[attr-defined]
    return str(target.parent / f".{target.name}.{next(candidates)}")


@contextmanager
def lock_folder(folder: Path, busy: str = "") -> Iterator[None]:
    """Hold the lock of a folder, `.lock`.

    Where another process holds it: with `busy`, an error that says so; without, wait for it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=0 if busy else -1)
    try:
        with suppress(OSError, NotImplementedError):  # some clusters have disks without locks
            try:
                lock.acquire()
            except Timeout:
                raise FileError(folder, busy) from None
        yield
    finally:
        if busy and lock.is_locked:  # removed while held: nobody else waits for it
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


class RunFolder:
    """A folder that belongs to one run: `run.json` identifies it, `results.json` completes it.

    Class attributes: `products` are the names, or patterns, of what a run has computed and must
    not lose; `cleared` are all files and folders of a run; `temporary` what a killed process may
    leave behind.
    """

    command: ClassVar[str] = ""
    products: ClassVar[tuple[str, ...]] = ("results.json",)
    cleared: ClassVar[tuple[str, ...]] = ("results.json",)
    temporary: ClassVar[tuple[str, ...]] = (f"{PARTIAL}*",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def working(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """The folder, created if needed, locked for this process; reports a full disk as such."""
        place = Path(path)
        place.mkdir(parents=True, exist_ok=True)
        try:
            with lock_folder(place, busy="another run is working in this folder"):
                folder = cls(place)
                folder._remove(cls.temporary)
                yield folder
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise PartialFailure(
                f"{error.filename or place}: {error.strerror}; {RESUMES}"
            ) from error

    def holds(self, identity: Mapping[str, Any]) -> bool:
        """Whether the folder has this run; a folder with results of another run is refused."""
        record = self._record()
        if record is None:
            return False
        if not record:
            problem = "damaged, not the record of a run: --restart starts over"
            raise FileError(self.path / "run.json", problem)
        differences = list(_differences(record["identity"], json.loads(json.dumps(identity))))
        if differences and self._started():
            raise FileError(
                self.path,
                f"has another run ({'; '.join(differences)}): give another folder, or --restart "
                "to start over here",
            )
        return not differences

    def claim(self, identity: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        """Make the folder this run's; files of an earlier run are removed."""
        if self._record() is not None:
            self._remove(self.cleared)
        elif self._started():
            raise FileError(self.path, "has results of no run of this command: give another folder")
        file = self.path / "run.json"  # removed last of all: a kill leaves the folder a run's
        save_json(file, document(command=self.command, identity=identity, **run))

    def save_table(self, rows: Sequence[Mapping[str, Any]], *parts: str) -> None:
        """Write rows as CSV, atomically; NaN is an empty cell."""
        cells = [
            {
                name: "" if isinstance(value, float) and math.isnan(value) else value
                for name, value in row.items()
            }
            for row in rows
        ]
        target = self.path.joinpath(*parts)
        target.parent.mkdir(exist_ok=True)
        save_csv(target, cells, rows[0])

    def _record(self) -> dict[str, Any] | None:
        """The content of `run.json`: None without one, empty where it is damaged.

        The folder of another command, or of another program, is refused.
        """
        try:
            record = json.loads((self.path / "run.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        owner = record.get("command") if isinstance(record, dict) else None
        if owner != self.command:
            whose = f"'{owner}'" if isinstance(owner, str) else "something else"
            raise FileError(
                self.path,
                f"has the run.json of {whose}, not of '{self.command}': give another folder",
            )
        return record if "identity" in record else {}

    def _remove(self, patterns: Sequence[str]) -> None:
        """Remove files and folders of a run; nothing else in the folder is touched."""
        for pattern in patterns:
            for path in list(self.path.glob(pattern)):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    def _started(self) -> bool:
        """Whether the folder has something that must not be lost."""
        return any(next(self.path.glob(pattern), None) for pattern in self.products)


def user_cache(*parts: str) -> Path:
    """A path in the user's cache folder, $XDG_CACHE_HOME/evenhand or ~/.cache/evenhand."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    return Path(home, "evenhand", *parts)


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python, Evenhand and these packages, for the record of a run."""
    from importlib.metadata import PackageNotFoundError, version

    result = {"python": platform.python_version()}
    for name in ("evenhand", "numpy", *packages):
        try:
            result[name] = version(name)
        except PackageNotFoundError:  # a source tree that is not installed
            result[name] = "not installed"
    return result


def _differences(there: Any, now: Any, name: str = "") -> Iterator[str]:
    """The differences of two identities, in words."""
    if isinstance(there, dict) and isinstance(now, dict):
        for part in sorted(there.keys() | now.keys()):
            yield from _differences(there.get(part), now.get(part), part)
    elif there != now:
        long = any(isinstance(value, str) and len(value) > 20 for value in (there, now))
        yield f"another {name}" if long else f"{name}: {there} there, {now} now"


ROW_FORMATS = (".csv", ".jsonl", ".parquet")

WriteRows: TypeAlias = Callable[[Mapping[str, Sequence[Any]]], None]
"""Takes some rows by column."""


def check_row_format(path: str | os.PathLike[str]) -> str:
    """The ending of the file name, which decides the format; an unknown one is an error."""
    ending = Path(path).suffix.lower()
    if ending not in ROW_FORMATS:
        raise InputError(
            f"{os.fspath(path)}: expected a file that ends in {', '.join(ROW_FORMATS)}, "
            f"got '{ending or 'no ending'}'"
        )
    return ending


@contextmanager
def open_rows(path: str | os.PathLike[str]) -> Iterator[WriteRows]:
    """A CSV, JSON lines or Parquet file, written chunk by chunk; it appears when complete.

    >>> import tempfile
    >>> name = Path(tempfile.mkdtemp()) / "items.csv"
    >>> with open_rows(name) as write:
    ...     write({"masked": ["[MASK] nods"], "bias": [math.nan]})
    >>> name.read_text().splitlines()
    ['masked,bias', '[MASK] nods,']
    """
    writer = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[check_row_format(path)]
    with replace_file(path) as file, writer(file) as write:
        yield write


@contextmanager
def _csv(file: IO[bytes]) -> Iterator[WriteRows]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    started = False

    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        nonlocal started
        if not started:
            writer.writerow(columns)
            started = True
        writer.writerows(map(_cells, zip(*columns.values(), strict=True)))

    try:
        yield write
    finally:
        text.detach()


def _cells(row: Sequence[Any]) -> list[Any]:
    return ["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[WriteRows]:
    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        for row in zip(*columns.values(), strict=True):
            line = to_json(dict(zip(columns, row, strict=True)), indent=None)
            file.write(f"{line}\n".encode())

    yield write


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[WriteRows]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        nonlocal writer
        table = pa.table({name: list(column) for name, column in columns.items()})
        if writer is None:
            writer = pq.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    yield write
    if writer is not None:
        writer.close()
