"""Files: atomic writes, JSON documents, CSV tables, run folders, how input is read.

Everything is written under a temporary name and renamed, so that a killed process leaves either
the complete file or none. Input has an encoding and limits, which `reading` changes.
"""

from __future__ import annotations

import codecs
import csv
import errno
import hashlib
import io
import json
import math
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import IO, Any, ClassVar, Self, TypeAlias, TypeVar

from evenhand import threads
from evenhand.errors import EntryWarning, FileError, InputError, PartialFailure, parameter

__all__ = ["Reading", "open_rows", "reading"]

T = TypeVar("T")


class Entries(list[T]):
    """Entries read from a file, and the lines that were left out, each with the reason."""

    def __init__(self, entries: Iterable[T], left_out: Iterable[str] = ()) -> None:
        super().__init__(entries)
        self.left_out = tuple(left_out)


SCHEMA = "evenhand/2"

PARTIAL = ".partial."
"""Prefix of incomplete folders; what a killed process left under it is removed."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
RESUMES = "results saved so far are complete, and the same command resumes from there"


def document(**content: object) -> dict[str, Any]:
    """A JSON document of Evenhand: the schema first, then the content."""
    return {"schema": SCHEMA, **content}


def plain(value: object) -> Any:
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
        items = list(value)
        kinds = set(map(type, items))
        if kinds <= {str, int, bool, NoneType}:
            return items
        if kinds == {float}:
            return [item if math.isfinite(item) else None for item in items]
        return [plain(item) for item in items]
    return value


def to_json(value: object, *, indent: int | None = 2) -> str:
    """Strict JSON (numbers that are not finite become null), stable and readable.

    >>> to_json({"a": float("nan"), "b": (1, 2)}, indent=None)
    '{"a": null, "b": [1, 2]}'
    """
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return encodable_name(text)


def encodable_name(name: str) -> str:
    r"""The name of a file with � for bytes that are not UTF-8, so that it can be written.

    >>> encodable_name("b\udcff.csv")
    'b�.csv'
    """
    return name if name.isascii() else _SURROGATE.sub("\ufffd", name)


_SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST_INTEGER = 308
"""Digits of a whole number that is read; a floating-point number has no more."""


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)


def parse_number(cell: object) -> float:
    """A cell as a number, as JSON and CSV write it; anything else is a ValueError.

    Python's `float` also takes 1_000, digits of other scripts, and whole numbers that it cannot
    represent.

    >>> parse_number(" 1e3 "), parse_number(True)
    (1000.0, 1.0)
    """
    if isinstance(cell, str) and (not cell.isascii() or "_" in cell):
        raise ValueError(f"expected a number, got {cell!r}")
    try:
        return float(cell)  # type: ignore[arg-type]
    except (OverflowError, TypeError) as error:
        raise ValueError(str(error)) from None


def parse_json(content: bytes | str, path: str | os.PathLike[str]) -> Any:
    """The value of a JSON text; anything else is an error that says where and why."""
    try:
        value = json.loads(content, parse_int=_integer)
        if (b"\\u" if isinstance(content, bytes) else "\\u") in content:  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        raise FileError(path, "expected text, got half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise FileError(path, f"not valid JSON: {error.msg}", line=error.lineno) from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"not valid JSON: expected UTF-8, got {error.reason}") from None
    except RecursionError:
        raise FileError(path, "not valid JSON: nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise FileError(path, f"not valid JSON: {error}") from None


def parse_json_line(line: str | bytes, path: str | os.PathLike[str], number: int) -> Any:
    """The value of one line of a file of JSON lines; the error names the line."""
    try:
        return json.loads(line, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise FileError(path, f"not valid JSON: {error}", line=number) from None


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON document of Evenhand; anything else is an error that says where and why."""
    try:
        value = parse_json(Path(path).read_bytes(), path)
    except FileNotFoundError:
        raise FileError(path, "no such file: expected a result that evenhand has written") from None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        received = value.get("schema") if isinstance(value, dict) else type(value).__name__
        raise FileError(path, f"expected a document with the schema {SCHEMA}, got {received}")
    return value


def save_json(
    path: str | os.PathLike[str],
    value: object,
    *,
    indent: int = 2,
    entry: bool = False,
    private: bool = False,
) -> None:
    """Write `value` as JSON, atomically; no path of this machine is written (see `public`)."""
    with replace_file(path, entry=entry, private=private) as file:
        file.write((to_json(public(value), indent=indent) + "\n").encode())


def save_csv(
    path: str | os.PathLike[str],
    rows: Iterable[Mapping[str, object]],
    columns: Iterable[str] | None = None,
) -> None:
    """Write rows as CSV, atomically; the default columns are all those that any row has."""
    listed = list(rows)
    names = list(columns or dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: spreadsheet_cell(cell) for name, cell in row.items()} for row in listed)
    with replace_file(path) as file:
        file.write(text.getvalue().encode())


# ------------------------------------------------------------------- names of files in results

HUB = "hf:"


def public_name(source: str | os.PathLike[str]) -> str:
    """The name of a source in results that may be published: of a path its last part.

    >>> public_name("/home/anna/clients/letters.csv"), public_name("glove"), public_name("hf:a/b")
    ('letters.csv', 'glove', 'hf:a/b')
    """
    return public_names([source])[os.fspath(source)]


def public_names(sources: Iterable[str | os.PathLike[str]]) -> dict[str, str]:
    """The public names of several sources, each with as many of its folders as tell it apart.

    >>> public_names(["/data/a/model", "/data/b/model", "/data/a/words.vec"])
    {'/data/a/model': 'a/model', '/data/b/model': 'b/model', '/data/a/words.vec': 'words.vec'}
    """
    parts: dict[str, tuple[str, ...]] = {}
    for given in sources:
        source = os.fspath(given)
        path = Path(source)
        if source.startswith(HUB) or (path.name == source and source != ".."):
            parts[source] = (source,)
        elif path.name in ("", ".."):
            parts[source] = path.resolve().parts[1:] or (source,)
        else:
            parts[source] = tuple(part for part in path.parts if part not in (path.anchor, ".."))
    names: dict[str, str] = {}
    for source, own in parts.items():
        others = [other for other in parts.values() if other != own]
        length = next(
            (n for n in range(1, len(own)) if all(other[-n:] != own[-n:] for other in others)),
            len(own),
        )
        names[source] = encodable_name("/".join(own[-length:]))
    return names


def public(value: object, *sources: str | os.PathLike[str]) -> Any:
    """The value as plain JSON in which no text has a path of this machine.

    Paths that are given or that stand alone as a text, and every path below the home folder, the
    current folder or the installed packages, are replaced by their public names.

    >>> public({"file": "/data/x.csv", "problem": "/data/x.csv, line 3: empty"}, "/data/x.csv")
    {'file': 'x.csv', 'problem': 'x.csv, line 3: empty'}
    """
    content = plain(value)
    known = {os.fspath(source) for source in sources}
    known |= {os.path.abspath(source) for source in known if not source.startswith(HUB)}  # noqa: PTH100
    known |= {text for text in _texts(content) if text.startswith(os.sep) and path_exists(text)}
    names = dict.fromkeys(_private_folders(), "…") | public_names(sorted(known))
    names = {path: name for path, name in names.items() if path != name}
    listed = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    paths = re.compile(rf"(?<![\w/.-])(?:{listed})(?:/[^\s'\"`<>|:;,()\[\]]*|(?![\w-]))")

    def name_of(match: re.Match[str]) -> str:
        return names.get(match[0]) or public_name(match[0].rstrip("/"))

    def shorten(text: str) -> str:
        return paths.sub(name_of, text) if os.sep in text and names else text

    return map_texts(content, shorten)


def public_arguments(arguments: Iterable[str]) -> list[str]:
    """A command line with the public names of the files that it names.

    >>> public_arguments(["audit", "--data=/data/x.csv", "--shares", "60/20/20", "--model=hf:a/b"])
    ['audit', '--data=x.csv', '--shares', '60/20/20', '--model=hf:a/b']
    """

    def shorten(text: str) -> str:
        is_path = text.startswith((os.sep, f"~{os.sep}", f".{os.sep}", f"..{os.sep}"))
        return public_name(text) if is_path or (os.sep in text and path_exists(text)) else text

    listed = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if not (option.startswith("-") and equals):
            option, equals, value = "", "", argument
        listed.append(option + equals + ",".join(map(shorten, value.split(","))))
    return listed


def map_texts(content: object, function: Callable[[str], str]) -> Any:
    """A JSON value with a function applied to each of its texts, keys included.

    >>> map_texts({"a": ["b", 1]}, str.upper)
    {'A': ['B', 1]}
    """
    if isinstance(content, str):
        return function(content)
    if isinstance(content, dict):
        return {
            map_texts(key, function): map_texts(inner, function) for key, inner in content.items()
        }
    return (
        [map_texts(inner, function) for inner in content] if isinstance(content, list) else content
    )


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield from content
        for inner in content.values():
            yield from _texts(inner)
    elif isinstance(content, list):
        for inner in content:
            yield from _texts(inner)


def path_exists(text: str) -> bool:
    """Whether a text is the path of something that exists."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long for a path, or with characters that no path has
        return False


def _private_folders() -> list[str]:
    """Folders whose paths tell about the machine."""
    folders = {Path(sys.prefix), Path(__file__).parents[1]}
    with suppress(RuntimeError):
        folders.add(Path.home())
    with suppress(FileNotFoundError):
        folders.add(Path.cwd())
    names = {str(path) for folder in folders for path in (folder, folder.resolve())}
    return sorted(name for name in names if len(Path(name).parts) > 1)


@contextmanager
def replace_file(
    path: str | os.PathLike[str],
    *,
    durable: bool = True,
    entry: bool = False,
    private: bool = False,
) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name beside `path`; it replaces `path` when complete.

    A link is followed: its target is replaced. An `entry` of a cache, which others may be able to
    write into, is replaced itself, whatever has its name: a link, a pipe, a device. The mode of
    the file is that of a new file; only this user can read a `private` one. A file that is not
    durable may be damaged when the power fails just after it was written: its reader must notice.
    """
    target = real_path(Path(path).parent) / Path(path).name if entry else real_path(path)
    if target.is_dir() and not (entry and target.is_symlink()):
        raise IsADirectoryError(errno.EISDIR, "is a folder: expected a file to write", str(path))
    if not entry and target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe: there is nothing to replace
            yield file
        return
    remove_stale(target.parent)
    temporary = _temporary_name(target)
    try:
        # opened with mode 0666, so that the kernel applies the umask: reading the umask in Python
        # would change it for the whole process for a moment
        mode = 0o600 if private else 0o666
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError) and (
            error.filename == temporary or (error.filename is None and error.errno in DISK_FULL)
        ):
            error.filename = os.fspath(path)
        raise


MARK = "written by Evenhand"
"""What files say that can say so in a comment."""
_OWN_JSON = re.compile(rb'\s*\{\s*"schema":\s*"evenhand/')


def signed(text: str) -> bytes:
    """A page, a figure or a summary with a last line that says who wrote it (see `is_ours`)."""
    return f"{text.rstrip()}\n<!-- {MARK} -->\n".encode()


def is_ours(path: Path) -> bool:
    """Whether a file says that Evenhand wrote it: a document of ours, a signed text, or a file
    that is as the record beside it says.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "page.html"
    >>> _ = file.write_bytes(signed("<p>Bias</p>"))
    >>> is_ours(file)
    True
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(200)
            file.seek(-min(200, path.stat().st_size), os.SEEK_END)
            if _OWN_JSON.match(start) or MARK.encode() in file.read():
                return True
        return read_document(record_of(path)).get("sha256") == digest_of(path)
    except (OSError, FileError):
        return False


def record_of(path: str | os.PathLike[str]) -> Path:
    """The record of the run that wrote a table, beside it; it has the table's digest.

    >>> record_of("out/answers.jsonl").as_posix()
    'out/answers.run.json'
    """
    return Path(path).with_suffix(".run.json")


def digest_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def own_entries(paths: Iterable[Path]) -> list[Path]:
    """Those of the paths that are plain files of this user; a warning says which are not.

    Everything that is read from a cache passes here: a link may lead to any file, a pipe never
    ends, and what another user has written may say anything.
    """
    own: list[Path] = []
    others: list[Path] = []
    for path in paths:
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        plain_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        (own if plain_file else others).append(path)
    if others:
        more = f" ({len(others) - 1} more like it)" if len(others) > 1 else ""
        message = f"{others[0]}: ignored, expected a plain file of this user{more}"
        warnings.warn(message, EntryWarning, stacklevel=2)
    return own


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path with all links followed; links that form a loop are an error."""
    try:
        return Path(path).resolve()
    except (RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        raise FileError(path, "is a loop of symbolic links: expected a file or a folder") from None


def _temporary_name(target: Path) -> str:
    candidates = tempfile._get_candidate_names()  # type: ignore[attr-defined]
    name = f".{target.name[:200]}.{_host()}-{os.getpid()}.{next(candidates)}.tmp"
    return str(target.parent / name)


TEMPORARY = re.compile(r"\..+\.([0-9a-f]{6})-(\d+)\.[a-z0-9_]{8}\.tmp")
_LOOKED_AT: set[Path] = set()


def remove_stale(folder: Path) -> None:
    """Remove temporary files of processes of this machine that were killed, once per folder."""
    if folder in _LOOKED_AT:
        return
    _LOOKED_AT.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = TEMPORARY.fullmatch(entry.name)
            if match and match[1] == _host() and not _is_running(int(match[2])):
                Path(entry.path).unlink(missing_ok=True)


def _host() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"[:6]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def check_folder(path: str | os.PathLike[str]) -> Path:
    """The folder to write into, which need not be there yet."""
    folder = Path(path)
    there = next(part for part in (folder, *folder.absolute().parents) if part.exists())
    if not there.is_dir():
        what = "" if there == folder else f": {there} is one"
        raise FileError(folder, f"expected a folder to write into, got a file{what}")
    if not os.access(there, os.W_OK):
        raise FileError(
            folder, f"expected a folder to write into, got one without permission: {there}"
        )
    return folder


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

    def holds(self, identity: Mapping[str, object]) -> bool:
        """Whether the folder has this run; a folder with results of another run is refused."""
        record = self._record()
        if record is None:
            return False
        if not record:
            problem = f"damaged, not the record of a run: {parameter('restart', True)} starts over"
            raise FileError(self.path / "run.json", problem)
        differences = list(_differences(record["identity"], json.loads(json.dumps(identity))))
        if differences and self._started():
            raise FileError(
                self.path,
                f"has another run ({'; '.join(differences)}): give another folder, or "
                f"{parameter('restart', True)} to start over here",
            )
        if not differences:
            threads.resume(record.get("threads"))
        return not differences

    def claim(self, identity: Mapping[str, object], run: Mapping[str, object]) -> None:
        """Make the folder this run's; files of an earlier run are removed."""
        if self._record() is not None:
            self._remove(self.cleared)
        elif self._started():
            raise FileError(self.path, "has results of no run of this command: give another folder")
        file = self.path / "run.json"  # removed last of all: a kill leaves the folder a run's
        about = {"threads": threads.record(), **run}
        save_json(file, document(command=self.command, identity=identity, **about))

    def save_table(self, rows: Sequence[Mapping[str, object]], *parts: str) -> None:
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
        except (ValueError, RecursionError):
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


def _differences(there: object, now: object, name: str = "") -> Iterator[str]:
    """The differences of two identities, in words."""
    if isinstance(there, dict) and isinstance(now, dict):
        for part in sorted(there.keys() | now.keys()):
            yield from _differences(there.get(part), now.get(part), part)
    elif there != now:
        long = any(isinstance(value, str) and len(value) > 20 for value in (there, now))
        yield f"another {name}" if long else f"{name}: {there} there, {now} now"


ROW_FORMATS = (".csv", ".jsonl", ".parquet")

WriteRows: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Takes some rows by column, each a sequence or an array."""


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
def open_rows(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[WriteRows]:
    """A CSV, JSON lines or Parquet file, written chunk by chunk; it appears when complete.

    Only this user can read a `private` one.

    >>> import tempfile
    >>> name = Path(tempfile.mkdtemp()) / "items.csv"
    >>> with open_rows(name) as write:
    ...     write({"masked": ["[MASK] nods"], "bias": [math.nan]})
    >>> name.read_text().splitlines()
    ['masked,bias', '[MASK] nods,']
    """
    writer = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[check_row_format(path)]
    with replace_file(path, private=private) as file, writer(file) as write:
        yield write


@contextmanager
def _csv(file: IO[bytes]) -> Iterator[WriteRows]:
    rows: list[str] = []
    # a writer quotes the characters of its line end: those of "\r\n" are quoted, "\n" is written
    writer = csv.writer(SimpleNamespace(write=rows.append), lineterminator="\r\n")
    started = False

    def write(columns: Mapping[str, Any]) -> None:
        nonlocal started
        if not started:
            writer.writerow(columns)
            started = True
        writer.writerows(zip(*map(_csv_cells, columns.values()), strict=True))
        file.write("".join(f"{row[:-2]}\n" for row in rows).encode())
        rows.clear()

    yield write


def _csv_cells(column: object) -> list[Any]:
    """A column of a CSV file: a number that is none is empty."""
    return ["" if cell != cell else cell for cell in _listed(column)]


FORMULA = ("=", "+", "-", "@", "\t", "\r")


def spreadsheet_cell(cell: T) -> T | str:
    """A cell of a table of results; a text that a spreadsheet would run begins with '.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell(-1.5), spreadsheet_cell("she")
    ("'=1+1", -1.5, 'she')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[WriteRows]:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

    def write(columns: Mapping[str, Any]) -> None:
        cells = [plain(_listed(column)) for column in columns.values()]
        rows = (encode(dict(zip(columns, row, strict=True))) for row in zip(*cells, strict=True))
        file.write("".join(f"{row}\n" for row in rows).encode())

    yield write


def _listed(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[WriteRows]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None

    def write(columns: Mapping[str, Any]) -> None:
        nonlocal writer
        table = pa.table(
            {
                name: column if hasattr(column, "tolist") else list(column)
                for name, column in columns.items()
            }
        )
        if writer is None:
            writer = pq.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))

    yield write
    if writer is not None:
        writer.close()


LENIENT = "utf-8-lenient"
"""UTF-8 in which bytes that are none stay as they are."""
LARGEST_RATIO = 200
"""Text that is compressed more than this, and is large, is no text that anybody wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How input files are read.

    Parameters
    ----------
    encoding : str
        The encoding of texts and tables, by any name that Python knows, or `utf-8-lenient`.
    max_bytes : int
        The most bytes, decompressed, of a file that is held in memory, or of one that is much
        smaller when compressed. A line, a record and a cell may have a 128th of that, and a table
        one row for each 128 bytes.

    """

    encoding: str = "utf-8"
    max_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        try:
            known = self.encoding == LENIENT or codecs.lookup(self.encoding)._is_text_encoding
            if known and self.encoding != LENIENT:
                "".encode(self.encoding)
        except (LookupError, ValueError, UnicodeError):
            known = False
        if not known:
            raise InputError(
                f"encoding: expected one such as utf-8, latin-1, cp1252, utf-16 or {LENIENT}, "
                f"got {self.encoding!r:.60}"
            )
        if self.max_bytes < 1 << 10:
            raise InputError(f"max_bytes: expected 1024 or more, got {self.max_bytes}")

    @property
    def is_utf8(self) -> bool:
        return self.encoding == LENIENT or codecs.lookup(self.encoding).name in (
            "utf-8",
            "utf-8-sig",
        )

    @property
    def errors(self) -> str:
        """What decoding does with bytes that are not UTF-8, as Python names it."""
        return "surrogateescape" if self.encoding == LENIENT else "strict"

    @property
    def max_record(self) -> int:
        """Bytes of a line, a record or a cell: texts are analysed as a whole, 1 MB in seconds."""
        return self.max_bytes >> 7

    @property
    def max_rows(self) -> int:
        return self.max_bytes >> 7

    def refuse(self, path: str | os.PathLike[str], what: str, line: int | None = None) -> FileError:
        """The error for a file that is beyond a limit."""
        return FileError(
            path,
            f"{what}, more than the limit for input of {show_size(self.max_bytes)} allows: "
            f"{parameter('max_size', python='evenhand.files.reading(max_bytes=)')} raises it",
            line=line,
        )

    def check_expanded(self, path: str | os.PathLike[str], expanded: int, packed: int) -> None:
        """Refuse a file that decompresses to far more than it holds, as a bomb does."""
        if expanded > max(self.max_bytes, LARGEST_RATIO * packed):
            raise self.refuse(path, f"decompresses from {packed:,} to over {expanded:,} bytes")


_READING: ContextVar[Reading] = ContextVar("reading", default=Reading())  # noqa: B039


def current_reading() -> Reading:
    """How input files are read here."""
    return _READING.get()


@contextmanager
def reading(*, encoding: str | None = None, max_bytes: int | None = None) -> Iterator[Reading]:
    """Within this context, input files are read with this encoding and this limit.

    Parameters
    ----------
    encoding : str, optional
    max_bytes : int, optional
        As for `Reading`.

    Examples
    --------
    >>> with reading(encoding="latin-1") as how:
    ...     how.encoding, how.max_bytes
    ('latin-1', 1073741824)

    """
    changes = {"encoding": encoding, "max_bytes": max_bytes}
    settings: Any = {name: value for name, value in changes.items() if value is not None}
    token = _READING.set(replace(_READING.get(), **settings))
    try:
        yield _READING.get()
    finally:
        _READING.reset(token)


def show_size(count: int) -> str:
    """A number of bytes for a message.

    >>> show_size(1 << 31), show_size(1 << 28), show_size(5000)
    ('2 GB', '256 MB', '5,000 bytes')
    """
    for unit, shift in (("GB", 30), ("MB", 20)):
        if count >> shift and not count % (1 << shift):
            return f"{count >> shift:,} {unit}"
    return f"{count:,} bytes"


def read_limited(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a small file, such as a list of words; a large or endless one is an error."""
    limit = current_reading().max_bytes >> 4
    with Path(path).open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise current_reading().refuse(path, f"has over {limit:,} bytes")
    return content


def decode(data: bytes, path: str | os.PathLike[str], *, line: int, mark: bool = False) -> str:
    """Text in UTF-8; other bytes are an error that names the line and what they look like.

    `mark` removes a byte order mark at the beginning.
    """
    how = current_reading()
    try:
        if b"\0" in data and how.errors == "strict" and (guess := guess_encoding(data)):
            raise FileError(path, f"expected UTF-8, got {guess}", line=line)
        return data.decode("utf-8-sig" if mark else "utf-8", how.errors)
    except UnicodeDecodeError as error:
        start = max(0, error.start - (1 << 12) & ~3)
        guess = guess_encoding(data[start : start + (1 << 16)], valid=False)
        raise FileError(
            path,
            f"expected UTF-8, got the byte 0x{data[error.start]:02x}: it looks like {guess}",
            line=line + data.count(b"\n", 0, error.start),
        ) from None


MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WIDE = {"utf-32-le": (2, 3), "utf-32-be": (0, 1), "utf-16-le": (1, 3), "utf-16-be": (0, 2)}
"""Which bytes of four are zero in most characters."""
CONTROLS = bytes({*range(9), *range(14, 27), *range(28, 32), 127})


def guess_encoding(data: bytes, *, valid: bool = True) -> str:
    """What bytes look like that are not UTF-8, in words; empty where they may be UTF-8.

    `valid` says that nothing in them contradicts UTF-8 so far.

    >>> guess_encoding("she reads.".encode("utf-16-le"))
    "UTF-16 without a byte order mark: evenhand.files.reading(encoding='utf-16-le')"
    >>> guess_encoding(b"she reads.")
    ''
    """
    sample = data[: 1 << 16]
    for mark, name in MARKS:
        if sample.startswith(mark):
            return f"{name.upper()}: {_to_read(name)}"
    if b"\0" in sample:
        for name, positions in WIDE.items():
            if _is_wide(sample, name, positions):
                width = name[:6].upper()
                return f"{width} without a byte order mark: {_to_read(name)}"
    controls = len(sample) - len(sample.translate(None, CONTROLS))
    if valid:
        return "binary data, not text" if controls * 4 > len(sample) else ""
    if controls * 20 > len(sample):
        return "binary data, not text"
    high = bytes(set(sample) - set(range(128)))
    if len(sample) - len(sample.translate(None, high)) > max(10, len(sample) / 4):
        return (
            f"another alphabet's encoding, such as gb18030, shift_jis or koi8-r: {_to_read('NAME')}"
        )
    windows = any(byte < 0xA0 for byte in high)
    return f"Windows-1252: {_to_read('cp1252')}" if windows else f"Latin-1: {_to_read('latin-1')}"


def _to_read(encoding: str) -> str:
    """What the user writes to read a file in this encoding."""
    given = f"evenhand.files.reading(encoding={encoding!r})"
    return parameter("encoding", encoding, python=given)


def _is_wide(sample: bytes, name: str, positions: tuple[int, int]) -> bool:
    """Whether bytes are text in UTF-16 or UTF-32, which has zeros in known places."""
    shares = [sample[i::4].count(0) / max(1, len(sample[i::4])) for i in range(4)]
    zeros = min(shares[i] for i in positions)
    others = max(share for i, share in enumerate(shares) if i not in positions)
    if name.startswith("utf-32"):
        if zeros < 0.9 or shares[3 if positions == (0, 1) else 0] > 0.1:
            return False
    elif zeros < 0.005 or others > zeros / 10:
        return False
    complete = sample[: len(sample) // 4 * 4] or sample
    text = complete.decode(name, "replace")
    odd = sum(1 for c in text if not (c.isprintable() or c in "\t\n\r\f\ufeff"))
    return odd * 20 <= len(text)
