"""Published tables of results: compressed CSV files, and numbers as the pages have them."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DIGITS = 6


def save_rows(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, the first of names, with 6 digits; equal rows give equal bytes."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([list(map(_shorten, row)) for row in rows])
    path.write_bytes(gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0))


def _shorten(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    try:
        number = float(text)
    except ValueError:
        return text
    return text if text.isdigit() or not math.isfinite(number) else f"{number:.{DIGITS}g}"


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a published file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def drop_zero(text: str) -> str:
    """A number without the 0 before its point."""
    return re.sub(r"^([-−]?)0\.", r"\1.", text)


def replace_table(page: Path, table: str, begin: str, end: str) -> None:
    """Write a table between two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    text = f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"
    page.write_text(text, encoding="utf-8")
