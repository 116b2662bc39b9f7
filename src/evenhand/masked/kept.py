"""Answers of a model kept on disk, so that work broken off or repeated computes what is missing.

An answer is found by its content: the model (its weights, configuration, tokenizer and the type it
computes in), the token row, the place in it and what was asked there. Answers are appended batch
by batch, each batch with a check sum: a run that is killed in the middle of a write loses that
batch alone. Every process writes a file of its own, so that several can share a folder.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError
from evenhand.results import replace_file

__all__ = ["Kept"]

MARKER = "evenhand-answers"
VERSION = "evenhand answers 1"
SUFFIX = ".answers"
KEY = 16
HEADER = struct.Struct("<4sIII")  # what it is, answers, numbers of an answer, check sum
MAGIC = b"EHA1"


class Kept:
    """A folder of answers. It is made where there is none; a folder of other things is refused.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> kept = Kept(folder)
    >>> key = kept.key("some model", [2, 4, 3], 1, [7, 8])
    >>> kept.store([key], np.array([[-0.5, -1.5]]))
    >>> Kept(folder).find([key, b"another"])
    [array([-0.5, -1.5]), None]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._file: Path | None = None
        self._owner = 0
        _claim(self.folder)
        self._answers: dict[bytes, bytes] = {}
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            self._answers.update(_answers_of(path))

    def __len__(self) -> int:
        return len(self._answers)

    @staticmethod
    def key(
        fingerprint: str, ids: Sequence[int], place: int, tokens: Sequence[int], k: int = 0
    ) -> bytes:
        """What an answer is found by: 128 bits of everything it depends on."""
        numbers = array("q", (place, k, len(ids), *ids, *tokens))
        return blake2b(numbers, digest_size=KEY, key=_salt(fingerprint)).digest()

    def find(self, keys: Sequence[bytes]) -> list[NDArray[np.float64] | None]:
        """The answer of each key, None where there is none."""
        found = map(self._answers.get, keys)
        return [None if answer is None else np.frombuffer(answer) for answer in found]

    def store(self, keys: Sequence[bytes], answers: NDArray[np.float64]) -> None:
        """Keep the answers (n, numbers) of a batch, at once and whole."""
        content = b"".join(keys) + np.ascontiguousarray(answers, dtype="<f8").tobytes()
        shape = (len(keys), answers.shape[1])
        record = HEADER.pack(MAGIC, *shape, zlib.crc32(struct.pack("<II", *shape) + content))
        if self._file is None or self._owner != os.getpid():  # at first, or in a process forked off
            self._owner = os.getpid()
            self._file = self.folder / f"{self._owner}-{secrets.token_hex(6)}{SUFFIX}"
        rest = memoryview(record + content)
        try:
            with self._file.open("ab", buffering=0) as file:
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError:
            self._file = None  # what was written in part ends its file; a later batch begins anew
            raise
        self._answers.update(_split(content, *shape))


@lru_cache
def _salt(fingerprint: str) -> bytes:
    return blake2b(fingerprint.encode()).digest()


def _claim(folder: Path) -> None:
    """Make the folder ours, or see that it is."""
    marker = folder / MARKER
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "expected a folder for the model's answers, got a file")
    folder.mkdir(parents=True, exist_ok=True)
    if marker.is_file():
        found = marker.read_bytes()[:100].decode("utf-8", "replace").strip()
        if found != VERSION:
            raise FileError(marker, f"expected '{VERSION}', got '{found}': use another folder")
        return
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others and not marker.is_file():  # it may have come from another process just now
        raise FileError(
            folder, f"expected an empty folder or one of kept answers, got one with '{others[0]}'"
        )
    with replace_file(marker) as file:
        file.write(f"{VERSION}\n".encode())


def _answers_of(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The answers of a file, batch by batch up to the first that is not whole."""
    with path.open("rb") as file:
        while len(header := file.read(HEADER.size)) == HEADER.size:
            magic, n, width, expected = HEADER.unpack(header)
            size = n * (KEY + 8 * width)
            if magic != MAGIC or size > os.fstat(file.fileno()).st_size:
                return
            content = file.read(size)
            if zlib.crc32(struct.pack("<II", n, width) + content) != expected:
                return
            yield from _split(content, n, width)


def _split(content: bytes, n: int, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and answer, one after the other, of a batch as it is on disk."""
    begin, size = n * KEY, 8 * width
    for i in range(n):
        yield content[i * KEY : (i + 1) * KEY], content[begin + i * size : begin + (i + 1) * size]
