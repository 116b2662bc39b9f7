"""The scored sentences on disk: CSV, JSON lines or Parquet, written as they come."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from evenhand.errors import InputError
from evenhand.results import replace_file, to_json

__all__ = ["ENDINGS", "Write", "check_ending", "open_items"]

ENDINGS = (".csv", ".jsonl", ".parquet")

Write = Callable[[Mapping[str, Sequence[Any]]], None]
"""Takes some rows, a column a name."""


def check_ending(path: str | os.PathLike[str]) -> str:
    """The ending of the file, which says its form."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{os.fspath(path)}: expected a file that ends in {', '.join(ENDINGS)}, "
            f"got '{ending or 'no ending'}'"
        )
    return ending


@contextmanager
def open_items(path: str | os.PathLike[str]) -> Iterator[Write]:
    """A file of items that takes its place only when complete.

    >>> import tempfile
    >>> name = Path(tempfile.mkdtemp()) / "items.csv"
    >>> with open_items(name) as write:
    ...     write({"masked": ["[MASK] nods"], "bias": [math.nan]})
    >>> name.read_text().splitlines()
    ['masked,bias', '[MASK] nods,']
    """
    made = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[check_ending(path)]
    with replace_file(path) as file, made(file) as write:
        yield write


@contextmanager
def _csv(file: IO[bytes]) -> Iterator[Write]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    begun = False

    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        nonlocal begun
        if not begun:
            writer.writerow(columns)
            begun = True
        writer.writerows(map(_cells, zip(*columns.values(), strict=True)))

    try:
        yield write
    finally:
        text.detach()


def _cells(row: Sequence[Any]) -> list[Any]:
    return ["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[Write]:
    def write(columns: Mapping[str, Sequence[Any]]) -> None:
        for row in zip(*columns.values(), strict=True):
            line = to_json(dict(zip(columns, row, strict=True)), indent=None)
            file.write(f"{line}\n".encode())

    yield write


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Write]:
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
