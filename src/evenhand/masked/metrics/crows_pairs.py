"""The sentence pairs of CrowS-Pairs, read from its own file or any CSV with its columns."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from evenhand.errors import FileError
from evenhand.text.corpus.compression import open_content

__all__ = ["Direction", "Pair", "read_pairs"]

Direction = Literal["stereo", "antistereo"]
DIRECTIONS = ("stereo", "antistereo")
COLUMNS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
WRITER = "anon_writer"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sentences that differ in whom they are about.

    `more` is the more stereotypical one in either direction: for `stereo` it states a stereotype of
    a disadvantaged group and `less` says the same of an advantaged one; for `antistereo` `less`
    goes against a stereotype of a disadvantaged group and `more` says the same of an advantaged
    one. `line` is where it stands in its `file`, `writer` who wrote it, empty where not told.
    """

    more: str
    less: str
    direction: Direction
    category: str
    writer: str = ""
    line: int = 0
    file: str = field(default="", compare=False, repr=False)


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """The pairs of a file in the layout of `crows_pairs_anonymized.csv`, plain or packed.

    The columns sent_more, sent_less, stereo_antistereo and bias_type are needed, anon_writer is
    used where it is there, others are passed over. `-` is the standard input.
    """
    name = os.fspath(path)
    with open_content(name) as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise FileError(name, "not UTF-8 text", line=line) from None
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    pairs, ended = [], 0
    try:
        for cells in lines:
            line, ended = ended + 1, lines.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _header(name, line, cells)
            else:
                pairs.append(_pair(name, line, header, cells))
    except csv.Error as problem:
        raise FileError(name, f"not CSV: {problem}", line=ended + 1) from None
    if not pairs:
        expected = f"expected a header with {', '.join(COLUMNS)} and a pair a row"
        raise FileError(name, f"{expected}, got {'no row' if header else 'an empty file'}")
    return pairs


def _header(name: str, line: int, cells: Sequence[str]) -> list[str]:
    header = [cell.strip() for cell in cells]
    for column in COLUMNS:
        if header.count(column) != 1:
            got = "twice" if column in header else ", ".join(cell for cell in header if cell)
            raise FileError(name, f"expected the column '{column}' once, got {got}", line=line)
    return header


def _pair(name: str, line: int, header: Sequence[str], cells: Sequence[str]) -> Pair:
    if len(cells) != len(header):
        raise FileError(name, f"expected {len(header)} cells, got {len(cells)}", line=line)
    row = {column: cell.strip() for column, cell in zip(header, cells, strict=True)}
    for column in COLUMNS:
        if not row[column]:
            raise FileError(name, f"column '{column}': expected a text, got none", line=line)
    direction = row["stereo_antistereo"]
    if direction not in DIRECTIONS:
        raise FileError(
            name,
            f"column 'stereo_antistereo': expected stereo or antistereo, got '{direction}'",
            line=line,
        )
    return Pair(
        row["sent_more"], row["sent_less"], cast("Direction", direction), row["bias_type"],
        row.get(WRITER, ""), line, name,
    )  # fmt: skip
