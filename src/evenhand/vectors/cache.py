"""Vectors read once stay beside their file in a form that is mapped, not read: `X.evenhand-cache`.

One file: a magic, the length of a JSON header, the header, the words, the ranks if any, and the
float32 matrix, each part aligned to 64 bytes. It is used only when the source still has the
size, time and ends it had; anything else is rebuilt. Where the folder cannot be written, the
user's cache folder ($XDG_CACHE_HOME/evenhand) takes its place, and failing that nothing does.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.folders import user_cache
from evenhand.results import replace_file
from evenhand.vectors.formats.input import Table

__all__ = ["Key", "key_of", "read_cache", "write_cache"]

MAGIC = b"EVENHAND"
VERSION = 1
ALIGN = 64
SUFFIX = ".evenhand-cache"
_START = struct.Struct("<8sII")
_ENDS = 4096

Key = dict[str, int]


def key_of(path: Path) -> Key:
    """What tells one state of a file from another, without reading it whole."""
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


def read_cache(path: Path, key: Key) -> Table | None:
    """The vectors of a file in the state `key`, mapped into memory; None where there are none."""
    if sys.byteorder != "little":
        return None
    for place in _places(path):
        try:
            with place.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            continue
        try:
            return _parse(data, key)
        except (ValueError, KeyError, TypeError, struct.error):
            continue
    return None


def write_cache(path: Path, key: Key, table: Table) -> None:
    """Keep what was read, if a place can be written and the file is still what was read."""
    try:
        if sys.byteorder != "little" or key_of(path) != key:
            return
    except OSError:
        return
    for place in _places(path):
        try:
            if place.parent != path.parent:
                place.parent.mkdir(parents=True, exist_ok=True)
            _write(place, key, table)
        except OSError:
            continue
        return


def _places(path: Path) -> Iterator[Path]:
    yield path.with_name(path.name + SUFFIX)
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    yield user_cache(f"{path.name}-{digest}{SUFFIX}")


def _write(place: Path, key: Key, table: Table) -> None:
    ranks = b"" if table.ranks is None else table.ranks.astype("<u4").tobytes()
    header = {
        "key": key,
        "shape": table.matrix.shape,
        "words": [len(table.words), zlib.crc32(table.words)],
        "ranks": [len(ranks), zlib.crc32(ranks)],
        "duplicates": table.duplicates,
        "notes": table.notes,
    }
    content = json.dumps(header).encode()
    with replace_file(place) as file:
        file.write(_START.pack(MAGIC, len(content), zlib.crc32(content)))
        for part in (content, table.words, ranks):
            file.write(part)
            file.write(bytes(-file.tell() % ALIGN))
        file.write(np.ascontiguousarray(table.matrix).data)


def _parse(data: mmap.mmap, key: Key) -> Table:
    """The parts of a cache file; a ValueError of some kind when it is stale or damaged."""
    magic, length, checksum = _START.unpack_from(data)
    content = data[_START.size : _START.size + length]
    if magic != MAGIC or zlib.crc32(content) != checksum:
        raise ValueError("damaged header")
    header: dict[str, Any] = json.loads(content)
    if header["key"] != key:
        raise ValueError("stale")
    view = memoryview(data)
    at = _aligned(_START.size + length)
    parts = []
    for size, expected in (header["words"], header["ranks"]):
        part = view[at : at + size]
        if zlib.crc32(part) != expected:
            raise ValueError("damaged words")
        parts.append(part)
        at = _aligned(at + size)
    rows, width = header["shape"]
    if len(data) != at + 4 * rows * width:
        raise ValueError("cut short")
    return Table(
        words=parts[0],
        matrix=np.frombuffer(data, dtype="<f4", offset=at).reshape(rows, width),
        ranks=np.frombuffer(parts[1], dtype="<u4") if len(parts[1]) else None,
        duplicates=header["duplicates"],
        notes=tuple(header["notes"]),
    )


def _aligned(at: int) -> int:
    return at + -at % ALIGN
