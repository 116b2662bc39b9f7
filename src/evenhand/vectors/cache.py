"""A cache of parsed vectors beside their file, `X.evenhand-cache`, mapped into memory.

One file of NumPy arrays in sequence: the matrix first, which `np.load` maps, then the words, the
ranks, what else the table has (JSON), and checksums of all these. It is used only while the source
has the size, time and first and last bytes that it had; anything else is rebuilt. Where the folder
cannot be written the cache is in the user's cache folder, or there is none.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.files import own_entries, replace_file, user_cache
from evenhand.vectors.formats.input import VectorTable

VERSION = 3
SUFFIX = ".evenhand-cache"
_ENDS = 4096

Key = dict[str, int]


def key_of(path: Path) -> Key:
    """What distinguishes one state of a file from another, without reading all of it."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        ends = file.read(_ENDS)
        file.seek(max(0, stat.st_size - _ENDS))
        ends += file.read(_ENDS)
    return {
        "version": VERSION,
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "ends": zlib.crc32(ends),
    }


def read_cache(path: Path, key: Key) -> VectorTable | None:
    """The vectors of a file in the state `key`, mapped into memory; None without a cache."""
    for location in own_entries(_locations(path)):
        try:
            with warnings.catch_warnings(action="error"):
                return _read(location, key)
        except Exception:  # noqa: S112  # a damaged file can raise almost anything: it is rebuilt
            continue
    return None


def write_cache(path: Path, key: Key, table: VectorTable) -> None:
    """Save what was read where that is possible, if the file is still what was read."""
    try:
        if key_of(path) != key:
            return
    except OSError:
        return
    for location in _locations(path):
        try:
            if location.parent != path.parent:
                location.parent.mkdir(parents=True, exist_ok=True)
            _write(location, key, table)
        except OSError:
            continue
        return


def _locations(path: Path) -> Iterator[Path]:
    yield path.with_name(path.name + SUFFIX)
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    yield user_cache(f"{path.name}-{digest}{SUFFIX}")


def _write(location: Path, key: Key, table: VectorTable) -> None:
    about = {
        "key": key,
        "shape": table.matrix.shape,
        "ranks": table.ranks is not None,
        "duplicates": table.duplicates,
        "notes": table.notes,
    }
    ranks = np.zeros(0, dtype="<u4") if table.ranks is None else table.ranks.astype("<u4")
    parts = [
        np.frombuffer(bytes(table.words), dtype=np.uint8),
        ranks,
        np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
    ]
    matrix = np.ascontiguousarray(table.matrix, dtype="<f4")
    sums = [zlib.crc32(part.tobytes()) for part in parts]
    checksums = np.array([*sums, *_checksums(matrix)], dtype="<u8")
    with replace_file(location, entry=True) as file:
        for array in (matrix, *parts, checksums):
            np.save(file, np.ascontiguousarray(array), allow_pickle=False)


def _checksums(matrix: NDArray[np.float32]) -> tuple[int, int]:
    """Checksums of a matrix, as fast as its bytes can be read."""
    content = matrix.reshape(-1).view("<u4")
    half = content[: content.size // 2 * 2].view("<u8")
    last = int(content[-1]) if content.size % 2 else 0
    total = int(np.add.reduce(half, dtype=np.uint64)) if half.size else 0
    return total, int(np.bitwise_xor.reduce(half, initial=np.uint64(0))) ^ last


def _read(location: Path, key: Key) -> VectorTable:
    """Read a cache; an exception of some kind where it is outdated or damaged."""
    matrix = np.load(location, mmap_mode="r")
    with location.open("rb") as file:
        file.seek(matrix.offset + matrix.nbytes)
        words, ranks, about, checksums = (np.load(file) for _ in range(4))
    sums = [zlib.crc32(part) for part in (words, ranks, about)]
    if [*sums, *_checksums(matrix)] != checksums.tolist():
        raise ValueError("damaged")
    table = json.loads(about.tobytes())
    if table["key"] != key or table["shape"] != list(matrix.shape) or matrix.dtype != "<f4":
        raise ValueError("outdated")
    return VectorTable(
        words=words.tobytes(),
        matrix=np.asarray(matrix),
        ranks=ranks if table["ranks"] else None,
        duplicates=table["duplicates"],
        notes=tuple(table["notes"]),
    )
