"""Features of texts kept on disk, found by the text and by everything else they depend on.

A folder of its own for each model, pooling and limit; in it a folder for each request, of files
with keys and vectors. While a request is worked on its folder ends in `.part`: what a killed run
leaves there is gone on with by the next run that lacks the very same texts, piece by piece as it
would have been, so that its numbers are the same bit for bit. When all is there the folder is
renamed. One process at a time works on a model's requests; another waits, and then finds them done.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError
from evenhand.results import replace_file

__all__ = ["Cache"]

MAGIC = b"EHV1"
KEY = 16
HEADER = struct.Struct("<4sIII")  # what it is, texts, numbers a text, check sum of all the rest
PART, SUFFIX = ".part", ".vectors"


class Cache:
    """The features of one model; `depends` is all they depend on besides the text.

    >>> import tempfile
    >>> cache = Cache(tempfile.mkdtemp(), {"model": "some", "pooling": "mean"}, dim=2)
    >>> keys = cache.keys(["one text", "another"])
    >>> with cache.writing(keys) as request:
    ...     request.store(0, keys, np.array([[1, 2], [3, 4]], dtype=np.float32))
    >>> cache.find(keys[1:])
    array([[3., 4.]], dtype=float32)
    """

    def __init__(
        self, folder: str | os.PathLike[str], depends: Mapping[str, object], dim: int
    ) -> None:
        told = "\n".join(f"{name}={value}" for name, value in sorted(depends.items()))
        self.folder = Path(folder) / blake2b(told.encode(), digest_size=KEY).hexdigest()
        self.dim = dim
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise FileError(folder, "expected a folder for kept features, got a file") from None
        self._read: set[Path] = set()
        self._places: dict[bytes, NDArray[np.float32]] = {}
        self.refresh()

    @staticmethod
    def keys(texts: Sequence[str]) -> list[bytes]:
        """What each text is found by: 128 bits of its content."""
        coded = (text.encode("utf-8", "surrogatepass") for text in texts)
        return [blake2b(each, digest_size=KEY).digest() for each in coded]

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Places of the keys without features, each key once."""
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        return sorted(place for key, place in first.items() if key not in self._places)

    def find(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """The features (n, dim) of keys that are all there."""
        found = np.empty((len(keys), self.dim), dtype=np.float32)
        for place, key in enumerate(keys):
            found[place] = self._places[key]
        return found

    def refresh(self) -> None:
        """Take in what came since; a file that is not whole is passed over."""
        for path in sorted(self.folder.glob(f"*/*{SUFFIX}")):
            if path.parent.suffix != PART and path not in self._read:
                self._read.add(path)
                self._places.update(_content(path, self.dim))

    @contextmanager
    def writing(self, keys: Sequence[bytes]) -> Iterator[_Request]:
        """Store the features of these keys, file by file; kept only when the block ends well."""
        name = blake2b(b"".join(keys), digest_size=KEY).hexdigest()
        part, whole = self.folder / f"{name}{PART}", self.folder / name
        number = 1
        while whole.exists():  # some of its files were damaged
            number += 1
            whole = self.folder / f"{name}-{number}"
        part.mkdir(exist_ok=True)
        yield _Request(part, self.dim)
        part.rename(whole)
        self.refresh()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process works on this model's requests."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.refresh()
            yield
        finally:
            os.close(handle)


class _Request:
    """The files of a request under way."""

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder, self._dim = folder, dim

    def has(self, number: int) -> bool:
        """Whether a run before this one stored the piece of this number."""
        path = self._path(number)
        return path.is_file() and bool(_content(path, self._dim))

    def store(self, number: int, keys: Sequence[bytes], features: NDArray[np.float32]) -> None:
        """Write a piece, whole or not at all."""
        content = b"".join(keys) + np.ascontiguousarray(features, dtype="<f4").tobytes()
        with replace_file(self._path(number)) as file:
            file.write(HEADER.pack(MAGIC, *features.shape, zlib.crc32(content)))
            file.write(content)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}{SUFFIX}"


def _content(path: Path, dim: int) -> dict[bytes, NDArray[np.float32]]:
    """Key and features of every text of a file, which stay on disk until they are used."""
    with path.open("rb") as file:
        header = file.read(HEADER.size)
        size = os.fstat(file.fileno()).st_size
        if len(header) < HEADER.size:
            return {}
        magic, count, width, expected = HEADER.unpack(header)
        whole = size == HEADER.size + count * (KEY + 4 * width)
        if magic != MAGIC or width != dim or not count or not whole:
            return {}
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))[HEADER.size :]
    if zlib.crc32(view) != expected:
        return {}
    vectors = np.frombuffer(view[count * KEY :], dtype="<f4").reshape(count, width)
    keys = bytes(view[: count * KEY])
    return {keys[i * KEY : (i + 1) * KEY]: vectors[i] for i in range(count)}
