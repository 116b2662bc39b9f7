"""Markdown for reading and pasting: escaped text, tables, lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["bullets", "escaped", "paragraphs", "table"]

_SPECIAL = re.compile(r"([\\`*_\[\]|~]|<(?=[A-Za-z/!?])|&(?=#?\w+;))")


def escaped(text: str) -> str:
    r"""The text as it stands, whatever signs it has, on one line.

    >>> print(escaped("<b>a|b_c, 2 < 3 & 4"))
    \<b>a\|b\_c, 2 < 3 & 4
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table of plain texts, which are escaped here; nothing where there are no rows.

    >>> print(table(("a", "b"), [("x", "1|2")]))
    | a | b |
    | --- | --- |
    | x | 1\|2 |
    """
    lines = [[escaped(cell) for cell in row] for row in rows]
    if not lines:
        return ""
    ruled = [[escaped(header) for header in headers], ["---"] * len(headers), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in ruled)


def bullets(lines: Iterable[str]) -> str:
    """A list of texts that are Markdown already."""
    return "\n".join(f"- {line}" for line in lines)


def paragraphs(parts: Iterable[str]) -> str:
    """The parts that say something, an empty line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"
