"""Where the output goes: a file that appears only when it is complete, or a stream.

gzip and bzip2 files are one member after the other, so they can be cut between two members and
continued. A zstd file is a single frame, since common readers stop at the end of the first one;
to continue it, what was written is compressed anew.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path
from typing import Any, Protocol

from evenhand.errors import FileError
from evenhand.text.corpus.opening import Codec, Reader, codec_of, compress

__all__ = ["STDOUT", "ReaderGone", "Sink", "open_sink"]

STDOUT = "-"
COPY = 1 << 20


class ReaderGone(Exception):  # noqa: N818
    """Nobody reads the output any more: the other end of the pipe is closed."""


class Sink(Protocol):
    """What output is written to."""

    resumable: bool
    done: int  # bytes written, as `rewind` takes them

    def write(self, data: bytes) -> None: ...
    def settle(self) -> None:
        """Have everything written so far safely on disk."""
        ...

    def rewind(self, done: int) -> bool:
        """Go back to a place that was settled; False where that cannot be done."""
        ...

    def commit(self) -> None: ...
    def close(self, *, keep: bool) -> None:
        """Stop without completing; what was written stays, under its temporary name, if wanted."""
        ...


def open_sink(path: str | Path) -> Sink:
    """The sink for a path, or for `-`; a device or a pipe is written to directly."""
    if str(path) == STDOUT:
        return _Stream(None)
    given = Path(path)
    if given.is_dir():
        raise FileError(path, "is a folder: expected a file to write")
    if given.exists() and not given.is_file():
        if codec_of(path) == "zst":
            raise FileError(path, "zstd can be written to a file only, not to a pipe")
        return _Stream(given)
    target = given.resolve()
    if not target.parent.is_dir():
        raise FileError(path, "cannot be written: its folder does not exist")
    return _Partial(target, codec_of(target))


class _Stream:
    """stdout, a device or a named pipe: nothing there that could be replaced or continued."""

    resumable = False

    def __init__(self, path: Path | None) -> None:
        self._file = sys.stdout.buffer if path is None else path.open("wb")
        self._own = path is not None
        self.done = 0

    def write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except BrokenPipeError:
            self._silence()
            raise ReaderGone from None

    def settle(self) -> None:
        """Nothing to do: whatever is written is gone."""

    def rewind(self, done: int) -> bool:
        return not done

    def commit(self) -> None:
        self.close(keep=True)

    def close(self, *, keep: bool) -> None:  # noqa: ARG002
        if self._own:
            self._file.close()

    def _silence(self) -> None:
        """Let nothing complain of the closed pipe when the process ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._file.fileno())
        os.close(nowhere)


class _Partial:
    """A file written under a temporary name beside its own; locked, so that two runs cannot mix."""

    resumable = True

    def __init__(self, target: Path, codec: Codec) -> None:
        self._target = target
        self._codec = codec
        self._path = target.with_name(f".{target.name}.partial")
        self._handle = self._locked(self._path)
        self._packer: Any = _packer() if codec == "zst" else None
        self._torn = False  # a write was broken off
        self.done = 0

    def write(self, data: bytes) -> None:
        self._torn = True
        self._put(data if self._packer is None else self._packer.compress(data))
        self.done += len(data)
        self._torn = False

    def settle(self) -> None:
        if self._packer is not None:
            import zstandard

            if self._torn:
                raise OSError(errno.EIO, "a frame with a gap cannot be continued")
            self._torn = True
            self._put(self._packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
            self._torn = False
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
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def _locked(self, path: Path) -> int:
        """The open file; the lock must be on the file that now has the name, not on an old one."""
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
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
        """Compress the first `done` bytes of what was written anew, in a frame to be continued."""
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)
        old, self._handle = self._handle, self._locked(new)
        try:
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
