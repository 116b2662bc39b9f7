"""The rows of a distance table as they stand in a file or a DataFrame, found by their headers."""

from __future__ import annotations

import csv
import gzip
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from evenhand.errors import FileError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Row", "frame_rows", "read_rows"]

HEADERS = {
    "word": ("protectedword", "protected", "targetword", "target"),
    "attribute": ("wordtocompare", "attributeword", "attribute", "comparedword", "compareword"),
    "word_class": ("wordclass", "attributeclass", "class"),
    "distance": ("cosinedistance", "cosdistance", "distance"),
    "similarity": ("cosinesimilarity", "cossimilarity", "similarity", "cosine"),
    "connection": ("connection", "connectiontype", "con"),
}
"""For each role the headers it goes by, in lower case and without spaces, dots and underscores."""

EXPECTED = "protectedWord, wordToCompare, connection and cosineDistance or cosineSimilarity"
NOTHING = frozenset({"", "na", "nan", "null", "none", "n/a", "."})


@dataclass(frozen=True, slots=True)
class Row:
    """One row as read: words and labels stripped, numbers None where the cell is empty."""

    line: int
    word: str
    attribute: str
    word_class: str
    distance: float | None
    similarity: float | None
    connection: str
    connection_column: str


def read_rows(path: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of a CSV file; what is wrong with the file is told with its line."""
    with _open(path) as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise FileError(path, f"expected the columns {EXPECTED}, got an empty file")
            places = _places(path, header)
            for cells in reader:
                if not cells:
                    continue
                shift = len(cells) - len(header)
                if shift not in (0, 1) or (shift == 1 and header[0] == ""):
                    raise FileError(
                        path, f"expected {len(header)} cells, got {len(cells)}",
                        line=reader.line_num,
                    )  # fmt: skip
                yield _row(path, reader.line_num, cells[shift:], header, places)
        except csv.Error as error:
            raise FileError(path, f"expected CSV, got {error}", line=reader.line_num) from None
        except UnicodeDecodeError:
            raise FileError(path, "expected text in UTF-8", line=reader.line_num + 1) from None
        except gzip.BadGzipFile:
            raise FileError(path, "expected a gzip file, as its name says") from None


def frame_rows(source: str, frame: pd.DataFrame) -> Iterator[Row]:
    """The rows of a DataFrame, counted from 1."""
    header = [str(name) for name in frame.columns]
    places = _places(source, header)
    missing = frame.isna().to_numpy()
    for line, (cells, gone) in enumerate(zip(frame.to_numpy(object), missing, strict=True), 1):
        text = ["" if empty else str(cell) for cell, empty in zip(cells, gone, strict=True)]
        yield _row(source, line, text, header, places)


def _open(path: str | os.PathLike[str]) -> IO[str]:
    if Path(path).suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return Path(path).open(encoding="utf-8-sig", newline="")


def _places(path: str | os.PathLike[str], header: Sequence[str]) -> Mapping[str, int]:
    """Which column has which role; headers that belong to none are left alone."""
    plain = [re.sub(r"[\W_]+", "", name).lower() for name in header]
    places: dict[str, int] = {}
    for role, names in HEADERS.items():
        found = [k for name in names for k, header_name in enumerate(plain) if header_name == name]
        if len(found) > 1 and plain[found[0]] == plain[found[1]]:
            raise FileError(path, f"two columns named '{header[found[1]]}'", line=1)
        if found:
            places[role] = found[0]
    for role, name in (("word", "protectedWord"), ("attribute", "wordToCompare"),
                       ("connection", "connection")):  # fmt: skip
        if role not in places:
            _lacks(path, name, header)
    if "distance" not in places and "similarity" not in places:
        _lacks(path, "cosineDistance", header)
    return places


def _lacks(path: str | os.PathLike[str], name: str, header: Sequence[str]) -> None:
    shown = ", ".join(cell for cell in header if cell) or "none"
    raise FileError(path, f"no column {name}: expected {EXPECTED}, got {shown[:200]}", line=1)


def _row(
    path: str | os.PathLike[str],
    line: int,
    cells: Sequence[str],
    header: Sequence[str],
    places: Mapping[str, int],
) -> Row:
    def text(role: str) -> str:
        if role not in places:
            return ""
        cell = cells[places[role]].strip()
        return "" if cell == "NA" else cell

    def number(role: str) -> float | None:
        cell = text(role)
        if cell.lower() in NOTHING:
            return None
        try:
            value = float(cell)
        except ValueError:
            raise FileError(
                path, f"column {header[places[role]]}: expected a number, got '{cell[:40]}'",
                line=line,
            ) from None  # fmt: skip
        return None if math.isnan(value) else value

    return Row(
        line, text("word"), text("attribute"), text("word_class"), number("distance"),
        number("similarity"), text("connection"), header[places["connection"]],
    )  # fmt: skip
