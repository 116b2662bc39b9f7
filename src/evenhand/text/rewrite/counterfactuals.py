"""Counterfactual versions of texts: the same person with another gender, or with none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from evenhand.arguments import checked
from evenhand.errors import InputError, UnknownNameError
from evenhand.text.rewrite import Rewriter, rewrite_all
from evenhand.text.rewrite.names import NameSwap
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.tables import Cell, InputTable

ORIGINAL = "original"
VERSIONS: Mapping[str, Callable[[], Rewriter]] = {
    "swapped": lambda: Swap(names="fixed"),
    "words": Swap,
    "names": NameSwap,
    "neutral": Neutralize,
}
"""Gendered words and first names swapped, the words alone, the names alone, no gender stated."""
BLOCK = 1000


@checked
def counterfactuals(
    texts: Sequence[str], versions: Sequence[str] = tuple(VERSIONS)
) -> list[dict[str, str]]:
    """The versions of each text that differ from it, by their names, after the original.

    Parameters
    ----------
    texts : sequence of str
    versions : sequence of str
        Some of `VERSIONS`.

    Examples
    --------
    >>> [versions] = counterfactuals(["Mary said she had won."])
    >>> for name, text in versions.items():
    ...     print(f"{name}: {text}")
    original: Mary said she had won.
    swapped: James said he had won.
    words: Mary said he had won.
    names: James said she had won.
    neutral: Mary said they had won.
    """
    for name in versions:
        if name not in VERSIONS:
            raise UnknownNameError("version", name, VERSIONS)
    rows = [{ORIGINAL: text} for text in texts]
    for name in versions:
        for row, rewritten in zip(rows, rewrite_all(texts, VERSIONS[name]()), strict=True):
            if rewritten.edits:
                row[name] = rewritten.text
    return rows


def counterfactual_rows(
    table: InputTable,
    column: str,
    item: str | None = None,
    versions: Sequence[str] = tuple(VERSIONS),
) -> Iterator[dict[str, Any]]:
    """The rows of a table, each followed by its versions.

    Each has the columns of the table, the text of the version in the text's column, and `item` and
    `version`. Items are named by their number in the table unless a column names them.
    """
    columns = list(dict.fromkeys(table.columns))
    for name in ("item", "version"):
        if name in columns and name != item:
            raise InputError(f"{table.name}: column '{name}' is there already; rename it")
    rows = table.rows(*columns)
    position, names = columns.index(column), None if item is None else columns.index(item)
    done = 0
    while block := list(islice(rows, BLOCK)):
        texts = [row[position] or "" for row in block]
        for row, own in zip(block, counterfactuals(texts, versions), strict=True):
            done += 1
            label: Cell = str(done) if names is None else row[names]
            if label is None:
                raise InputError(f"{table.name}: row {done}: '{item}': expected a name, got none")
            for version, text in own.items():
                cells = dict(zip(columns, row, strict=True))
                yield {**cells, column: text, "item": label, "version": version}
