"""Output that appears only when it is complete, with a checkpoint to resume from.

gzip and bzip2 files are one member after the other, so they can be cut between two members and
continued. A zstd file is a single frame, since common readers stop at the end of the first one;
to continue it, what was written is compressed again: the content is then the same as without an
interruption, the compressed bytes may not be.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evenhand.errors import FileError, InputError, PartialFailure
from evenhand.files import (
    DISK_FULL,
    LENIENT,
    own_entries,
    plain,
    reading,
    real_path,
    replace_file,
    to_json,
)
from evenhand.text.corpus.compression import Codec, Reader, codec_of, compress
from evenhand.text.corpus.reading import CorpusPosition


@dataclass(frozen=True, slots=True)
class RunState:
    """The position in the input, with what was written to each file and counted up to it."""

    position: CorpusPosition = field(default_factory=CorpusPosition)
    done: Sequence[int] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def run_key(sources: Sequence[str], **settings: str) -> str:
    """The identity of a run: the files as they are now, and all settings."""
    files = []
    for source in sources:
        stat = Path(source).stat()
        files.append([str(real_path(source)), source, stat.st_size, stat.st_mtime_ns])
    identity = json.dumps([files, settings], sort_keys=True)
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()


STDOUT = "-"
COPY = 1 << 20


class ReaderGone(Exception):  # noqa: N818
    """The reader of the output has closed its end of the pipe."""


def open_sink(path: str | Path) -> Sink:
    """The sink for a path, or for `-`; a device or a pipe is written to directly."""
    if str(path) == STDOUT:
        return Sink(None)
    given = Path(path)
    if given.is_dir():
        raise FileError(path, "is a folder: expected a file to write")
    if given.exists() and not given.is_file():
        if codec_of(path) == "zst":
            raise FileError(path, "zstd can be written to a file only, not to a pipe")
        return Sink(given)
    target = real_path(given)
    if not target.parent.is_dir():
        raise FileError(path, "cannot be written: its folder does not exist")
    return _Partial(target, codec_of(target))


class Sink:
    """What output is written to; by itself stdout, a device or a named pipe.

    There is nothing there that could be replaced or resumed; `_Partial` is a file. `done` counts
    the bytes written, as `rewind` takes them.
    """

    resumable = False
    done = 0

    def __init__(self, path: Path | None) -> None:
        self._file = sys.stdout.buffer if path is None else path.open("wb")
        self._own = path is not None

    def write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)  # no complaint when the process ends
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
            raise ReaderGone from None

    def settle(self) -> None:
        """Have everything written so far safely on disk."""

    def rewind(self, done: int) -> bool:
        """Go back to a settled position; False where that cannot be done."""
        return not done

    def commit(self) -> None:
        """Complete the output."""
        self.close(keep=True)

    def close(self, *, keep: bool) -> None:
        """Stop; what was written stays if wanted, under its temporary name."""
        if self._own:
            with nullcontext() if keep else suppress(OSError):  # what could not be written before
                self._file.close()


class _Partial(Sink):
    """A file written under a temporary name beside its own; locked, so that two runs cannot mix."""

    resumable = True

    def __init__(self, target: Path, codec: Codec) -> None:
        self._target = target
        self._codec = codec
        self._path = target.with_name(f".{target.name}.partial")
        self._handle = self._locked(self._path)
        self._packer: Any = _packer() if codec == "zst" else None
        self._torn = False  # a write was broken off

    def write(self, data: bytes) -> None:
        self._put(data if self._packer is None else self._packer.compress(data))
        self.done += len(data)

    def settle(self) -> None:
        if self._packer is not None:
            import zstandard

            if self._torn:
                raise OSError(errno.EIO, "a frame with a gap cannot be continued")
            self._put(self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        os.fsync(self._handle)

    def rewind(self, done: int) -> bool:
        if self._packer is not None and done:
            return self._repack(done)
        if os.fstat(self._handle).st_size < done:
            return False
        os.ftruncate(self._handle, done)
        os.lseek(self._handle, done, os.SEEK_SET)
        self.done = done
        return True

    def commit(self) -> None:
        if self._packer is not None:
            self._put(self._packer.flush())
        elif not self.done:
            self._put(compress(b"", self._codec))
        os.fsync(self._handle)
        os.replace(self._path, self._target)
        os.close(self._handle)

    def close(self, *, keep: bool) -> None:
        if not (keep and os.fstat(self._handle).st_size):
            self._path.unlink(missing_ok=True)
        os.close(self._handle)

    def _put(self, data: bytes) -> None:
        self._torn = True
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]
        self._torn = False

    def _locked(self, path: Path) -> int:
        """The open file; the lock must be on the file that now has the name, not on an old one."""
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            handle = os.open(path, flags, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                    os.close(handle)
                    problem = "is being written by another run: wait for it or stop it"
                    raise FileError(self._target, problem) from None
                return handle  # a file system without locks
            try:
                if os.stat(path).st_ino == os.fstat(handle).st_ino:  # noqa: PTH116
                    return handle
            except FileNotFoundError:
                pass
            os.close(handle)

    def _repack(self, done: int) -> bool:
        """Compress the first `done` bytes of the output again, in a frame that can be continued."""
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)
        old, self._handle = self._handle, self._locked(new)
        try:
            with reading(encoding=LENIENT, max_bytes=1 << 62):  # our own output, whatever it holds
                reader = Reader(str(self._path))
            try:
                while self.done < done:
                    data = reader.read(min(COPY, done - self.done))
                    if not data:
                        break
                    self.write(data)
            finally:
                reader.close()
        except FileError:
            self.done = 0
        if self.done < done:
            os.close(self._handle)
            new.unlink()
            self._handle, self._packer, self.done = old, _packer(), 0
            return False
        os.replace(new, self._path)
        os.close(old)
        return True


def _packer() -> Any:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).compressobj()


INTERVAL = 2.0  # seconds between two checkpoints


class OutputTarget:
    """What a run writes to, and `state`: how far it has come, at first where an earlier run was.

    After an error, what was written stays so that the same run can resume, if that is possible
    (`key` identifies the run; without it nothing is resumed); a wrong input leaves nothing. It is
    no error that the reader of the output has closed it.
    """

    def __init__(self, output: str | Path, edits: str | Path | None, key: str | None) -> None:
        self._output = str(output)
        self._names = [str(output), *([] if edits is None else [str(edits)])]
        self._sinks: list[Sink] = []
        try:
            for name in self._names:
                self._sinks.append(open_sink(name))
        except BaseException:
            self._close(keep=True)
            raise
        self._key = key
        self._checkpoint: Path | None = None
        if all(sink.resumable for sink in self._sinks):
            target = real_path(output)
            self._checkpoint = target.with_name(f".{target.name}.progress.json")
            if key is None:
                self._forget()
                self._checkpoint = None
        self.state = self._begin()
        self._saved = time.monotonic()

    def add(
        self, position: CorpusPosition, output: bytes, edits: bytes, counts: Mapping[str, int]
    ) -> None:
        """Write what became of the input up to a position."""
        writes = zip(self._sinks, self._names, (output, edits), strict=False)
        for sink, name, data in reversed(list(writes)):  # no output without its edits
            try:
                sink.write(data)
            except OSError as error:
                error.filename = error.filename or name
                raise
        total = Counter(self.state.counts)
        total.update(counts)
        done = [sink.done for sink in self._sinks]
        self.state = RunState(position=position, done=done, counts=total)
        if self._checkpoint is not None and time.monotonic() - self._saved >= INTERVAL:
            self._save()

    def finish(self) -> None:
        """The files are complete: let them appear, the output last."""
        while self._sinks:
            self._sinks[-1].commit()
            self._sinks.pop()
        self._forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if isinstance(error, InputError | ReaderGone):
            self._close(keep=False)
            self._forget()
            return isinstance(error, ReaderGone)
        resumable = self._keep()
        self._close(keep=resumable)
        hint = "; the same command resumes from there" if resumable else ""
        if isinstance(error, PartialFailure):
            raise PartialFailure(f"{error}{hint}") from error
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            name = error.filename or self._output
            raise PartialFailure(f"{name}: {error.strerror}{hint}") from error
        return False

    def _begin(self) -> RunState:
        saved = self._saved_state()
        if saved is not None and all(
            sink.rewind(done) for sink, done in zip(self._sinks, saved.done, strict=True)
        ):
            return saved
        for sink in self._sinks:
            sink.rewind(0)
        return RunState()

    def _saved_state(self) -> RunState | None:
        """The state of an earlier run of the same command, if one was broken off."""
        if self._checkpoint is None or not own_entries([self._checkpoint]):
            return None
        try:
            saved = json.loads(self._checkpoint.read_bytes())
            if saved["key"] != self._key:
                return None
            return RunState(CorpusPosition(**saved["position"]), saved["done"], saved["counts"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _save(self) -> None:
        """Record the progress of the run; everything written is on disk by then."""
        for sink in self._sinks:
            sink.settle()
        if self._checkpoint is not None:
            with replace_file(self._checkpoint, entry=True) as file:
                file.write(to_json({"key": self._key, **plain(self.state)}).encode())
        self._saved = time.monotonic()

    def _forget(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.unlink(missing_ok=True)

    def _keep(self) -> bool:
        """Record the progress of the run; returns whether there is something to resume from."""
        with suppress(OSError):  # no room for that either: the checkpoint before still holds
            if self._checkpoint is not None and self.state.done:
                self._save()
        return self._saved_state() is not None

    def _close(self, *, keep: bool) -> None:
        for sink in self._sinks:
            sink.close(keep=keep)
        self._sinks.clear()
