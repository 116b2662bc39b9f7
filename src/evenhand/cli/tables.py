"""How a table is laid out: so that it fits a width, and no number is cut or wrapped.

A table is tried in four forms, and the first that is readable is used:

1. one line per row, long texts wrapped within their columns;
2. the longest texts as paragraphs below their rows;
3. the names of a row on a line of their own, its numbers below;
4. several blocks one after the other, each with the names and some of the columns.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

PROSE = 44
"""A text that is longer is prose: in a column it gets at least `PROSE_WIDTH`, or a paragraph."""
PROSE_WIDTH = 40
SENTENCES = 100
"""Texts that are longer are paragraphs where the terminal has fewer columns than `NARROW`."""
NARROW = 110
NAME_WIDTH = 18
"""The narrowest column of a text that is wrapped."""
LONGEST_NAME = 90
LONGEST_WORD = 32
"""Longer words, such as paths, may be broken."""
MOST_LINES = 3
"""A cell that is not prose takes no more lines than this."""
LONGEST_CELL = 2000
"""Characters of a cell that are shown; the whole text is in the files that a command writes."""
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table, and whether it is a heading."""

    text: str
    heading: bool = False


def lay_out(headers: Sequence[str], rows: Iterable[Sequence[str]], limit: int) -> list[Line]:
    """The lines of a table, none longer than `limit`.

    A column is aligned to the right where all its cells are numbers, intervals or empty. Only a
    number that is itself longer than the limit makes a line longer. Cells of more than
    `LONGEST_CELL` characters are shortened.
    """
    cells = [[_shortened(cell) for cell in row] for row in rows]
    columns = [
        _Column(header, [row[i] for row in cells], first=i == 0) for i, header in enumerate(headers)
    ]
    names = _names(columns)
    texts = [column for column in columns if not column.numeric and column not in names]
    prose = [column for column in texts if column.prose]
    long = limit < NARROW and any(column.widest > SENTENCES for column in prose)
    lines = [] if long else _side_by_side(columns, [], [], limit)
    for below in (prose, texts):
        above = names if len(names) < len(columns) - len(below) else []
        lines = lines or _side_by_side(columns, below, [], limit)
        lines = lines or _side_by_side(columns, below, above, limit)
    return lines or _blocks(columns, names, limit)


def _shortened(cell: str) -> str:
    return cell if len(cell) <= LONGEST_CELL else f"{cell[:LONGEST_CELL]}…"


def width(text: str) -> int:
    """The columns that a text takes up in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


_INSEPARABLE = re.compile(
    r"(?<=\b[pn]) (?=[=<>])|(?<=[\d∞–]) (?=\[)|(?<=,) (?=[-−\d∞–][^\[\]]*\])|(?<=[<>=]) (?=[.\d])"
)


def wrap(text: str, limit: int, *, cut: bool = True) -> list[str]:
    """The text in lines; an interval stays whole, a line that is continued keeps its indent.

    A word that is longer than a line is cut, or with `cut=False` stays whole.

    >>> wrap("  a mean of 0.500 [0.400, 0.600] in all", 24)
    ['  a mean of', '    0.500 [0.400, 0.600]', '    in all']
    """
    if width(text) <= limit:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    if width(indent) + 12 > limit:
        indent = ""
    lines: list[str] = []
    line, further = indent, indent + ("  " if indent else "")
    empty = True
    for word in _words(text):
        if not empty and width(line) + 1 + width(word) > limit:
            lines.append(line)
            line, empty = further, True
        while cut and empty and width(line) + width(word) > limit and len(word) > 1:  # a long word
            end = max(1, _fitting(word, limit - width(line)))
            lines.append(line + word[:end])
            line, word = further, word[end:]
        line = line + word if empty else f"{line} {word}"
        empty = False
    lines.append(line)
    return [line.replace("\u00a0", " ") for line in lines]


def _words(text: str) -> list[str]:
    """The words of a text; what must not be separated is one of them."""
    return [word for word in _INSEPARABLE.sub("\u00a0", text).split(" ") if word]


def _fitting(word: str, limit: int) -> int:
    """The number of characters of a word that fit."""
    used = 0
    for count, character in enumerate(word):
        used += width(character)
        if used > limit:
            return count
    return len(word)


def is_numeric(cell: str) -> bool:
    """Whether a cell is a number, an interval or empty."""
    letters = cell.replace("inf", "").replace("e", "")
    return not any(map(str.isalpha, letters))


class _Column:
    """A column: its heading and cells, whether they are numbers or prose, and its widths."""

    def __init__(self, header: str, cells: Sequence[str], *, first: bool) -> None:
        self.header, self.cells = header, cells
        self.numeric = bool(cells) and all(map(is_numeric, cells))
        longest = max(map(width, cells), default=0)
        self.prose = not first and not self.numeric and longest > PROSE
        self.widest = max(longest, width(header))
        heading = max((width(word) for word in _words(header)), default=0)
        if self.numeric:
            self.narrowest = max(longest, heading)
        else:
            least = PROSE_WIDTH if self.prose else NAME_WIDTH
            word = max((width(word) for cell in cells for word in cell.split()), default=0)
            self.narrowest = max(min(longest, least), heading, min(word, LONGEST_WORD))

    def is_name(self) -> None:
        """Mark it as the name of its row, which is never a paragraph below it."""
        if self.prose:
            self.prose, self.narrowest = False, self.narrowest - PROSE_WIDTH + NAME_WIDTH


def _names(columns: Sequence[_Column]) -> list[_Column]:
    """The columns that name a row: texts before the first number; without numbers the first."""
    if not any(column.numeric for column in columns):
        return list(columns[:1])
    names = []
    for column in columns:
        if column.numeric or (column.prose and column.widest > LONGEST_NAME):
            break
        column.is_name()
        names.append(column)
    return names


def _fit(columns: Sequence[_Column], limit: int) -> tuple[list[int], str] | None:
    """The widths of columns side by side, and the gap between them; None if they do not fit."""
    for gap, shrink in (("   ", False), ("  ", False), ("   ", True), ("  ", True)):
        widths = [column.widest for column in columns]
        free = limit - 1 - len(gap) * (len(columns) - 1)
        while shrink and sum(widths) > free:
            able = [i for i, c in enumerate(columns) if widths[i] > c.narrowest]
            if not able:
                break
            # shrink headings first, then the widest text
            heads = [i for i in able if columns[i].numeric]
            widest = max(heads or able, key=widths.__getitem__)
            widths[widest] -= 1
        if sum(widths) <= free and all(map(_is_readable, columns, widths)):
            return widths, gap
    return None


def _is_readable(column: _Column, given: int) -> bool:
    """Whether no cell takes too many lines, which would be of one word each."""
    if column.prose:
        return True
    return all(len(wrap(cell, given)) <= MOST_LINES for cell in column.cells)


def _side_by_side(
    columns: Sequence[_Column], below: Sequence[_Column], above: Sequence[_Column], limit: int
) -> list[Line]:
    """The columns beside each other but for those that are lines above and paragraphs below.

    Nothing where that does not fit.
    """
    beside = [column for column in columns if column not in below and column not in above]
    fitted = _fit(beside, limit - (len(INDENT) - 1 if above else 0))
    return [] if fitted is None else _join(beside, *fitted, below=below, limit=limit, above=above)


def _blocks(columns: Sequence[_Column], names: Sequence[_Column], limit: int) -> list[Line]:
    """Several blocks, each with the names and as many further columns as fit."""
    name = _Column(
        "  ".join(filter(None, (c.header for c in names))),
        [_joined(cells) for cells in zip(*(c.cells for c in names), strict=True)],
        first=True,
    )
    name.narrowest = min(name.widest, max(NAME_WIDTH, limit // 3))
    rest = [c for c in columns if c not in names]
    lines: list[Line] = []
    while rest:
        count = len(rest)
        while count > 1 and _fit([name, *rest[:count]], limit) is None:
            count -= 1
        chosen = [*([name] if names else []), *rest[:count]]
        fitted = _fit(chosen, limit)
        if fitted is None:  # one column that is too wide, or names of many lines
            room = max(12, limit - 3 - rest[0].narrowest)
            widths = [*([min(name.widest, room)] if names else []), rest[0].narrowest]
            fitted = widths, "  "
        lines += [Line(""), *_join(chosen, *fitted)] if lines else _join(chosen, *fitted)
        rest = rest[count:]
    return lines or _join([name], [min(name.widest, limit - 1)], "")


def _joined(cells: Sequence[str]) -> str:
    """The names of a row as one text, with the indent of the last."""
    last = cells[-1]
    return last[: len(last) - len(last.lstrip())] + "  ".join(c.strip() for c in cells if c.strip())


def _join(
    columns: Sequence[_Column],
    widths: Sequence[int],
    gap: str,
    *,
    below: Sequence[_Column] = (),
    limit: int = 0,
    above: Sequence[_Column] = (),
) -> list[Line]:
    """The lines of columns side by side, with the names above them and paragraphs below."""
    indent = INDENT if above else " "
    right = [column.numeric for column in columns]
    lines = []
    if above and (names := "  ".join(filter(None, (c.header for c in above)))):
        lines += [Line(f" {text}", heading=True) for text in wrap(names, limit - 1)]
    heads = _row([c.header for c in columns], widths, right, gap, indent, bottom=True)
    lines += [Line(text, heading=True) for text in heads if text]
    total = sum(widths) + len(gap) * (len(widths) - 1)
    total = max(total + len(indent) - 1, *(width(line.text) - 1 for line in lines), 0)
    lines.append(Line(" " + "─" * (min(total, limit - 1) if limit else total)))
    several = False
    body: list[list[str]] = []
    count = len(columns[0].cells) if columns else 0
    for i in range(count):
        row = []
        if above:
            name = _joined([c.cells[i] for c in above])
            row += [f" {text}" for text in wrap(name, limit - 1)]
        row += _row([c.cells[i] for c in columns], widths, right, gap, indent)
        for column in below:
            text = column.cells[i].strip()
            if text and text != "–":
                named = column.header and not (column.prose and len(below) == 1)
                head = f"{column.header}: " if named else ""
                row += [INDENT + part for part in wrap(head + text, limit - len(INDENT))]
        several |= len(row) > 1 and not above
        body.append(row)
    for i, row in enumerate(body):
        if several and i:
            lines.append(Line(""))
        lines += [Line(text) for text in row]
    return lines


def _row(
    cells: Sequence[str],
    widths: Sequence[int],
    right: Sequence[bool],
    gap: str,
    indent: str,
    *,
    bottom: bool = False,
) -> list[str]:
    """The lines of cells beside each other, at the top of the row or at its bottom."""
    wrapped = [wrap(cell, given) for cell, given in zip(cells, widths, strict=True)]
    if bottom:
        most = max(map(len, wrapped), default=0)
        wrapped = [[""] * (most - len(parts)) + parts for parts in wrapped]
    lines = []
    for parts in zip_longest(*wrapped, fillvalue=""):
        spaces = [" " * (given - width(x)) for x, given in zip(parts, widths, strict=True)]
        padded = (
            space + part if end else part + space
            for part, space, end in zip(parts, spaces, right, strict=True)
        )
        lines.append((indent + gap.join(padded)).rstrip())
    return lines
