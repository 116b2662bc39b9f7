"""Rows of tokens that begin alike, as trees: what they share is computed once.

The tokens of a tree are in one sequence, each with the position that it has in its row, and a token
sees those on the path from the root to it. A pair of sentences with different last words, or the
answers to one question, are one tree. The last token of a row is predicted and never read, so that
it is in no tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

SHARED = 0.25
"""Rows are in one tree if they share this part of the shorter one."""
LARGEST = 512
"""Tokens of a tree: attention grows with the square of their number."""
ROWS = 3
"""Or as many times the tokens of its first row, where that is more: a long beginning, such as the
examples of a prompt, is worth sharing."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Rows that begin alike.

    Parameters
    ----------
    tokens, depths, parents : array (nodes)
        Tokens with their positions and the nodes before them (-1 at the root).
    rows : list of int
        The numbers of the rows.
    paths : list of array
        The nodes of each row, without its last token.

    """

    tokens: Ints
    depths: Ints
    parents: Ints
    rows: list[int]
    paths: list[Ints]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_row(self) -> bool:
        """Whether every token follows the one before it."""
        return bool((self.parents == np.arange(len(self)) - 1).all())

    def mask(self) -> NDArray[np.bool_]:
        """The mask of visible nodes (nodes, nodes): each node sees itself and those on its path."""
        seen = np.eye(len(self), dtype=bool)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                seen[node] |= seen[parent]
        return seen


def grow(rows: Sequence[NDArray[Any]], largest: int = LARGEST) -> Iterator[Tree]:
    """The trees of rows of two tokens or more; rows that begin alike are neighbours when sorted."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].tolist())
    builder = _Builder()
    last: NDArray[Any] | None = None
    for i in order:
        inputs = rows[i][:-1]
        common = 0
        if last is not None:
            common = _common(last, inputs)
            few = common < max(2, SHARED * min(len(inputs), len(last)))
            most = max(largest, ROWS * len(builder.paths[0]))
            if few or builder.size + len(inputs) - common > most:
                yield builder.tree()
                builder, common = _Builder(), 0
        builder.add(i, inputs, common)
        last = inputs
    if builder.rows:
        yield builder.tree()


def _common(one: NDArray[Any], other: NDArray[Any]) -> int:
    size = min(len(one), len(other))
    different = np.flatnonzero(one[:size] != other[:size])
    return int(different[0]) if different.size else size


class _Builder:
    def __init__(self) -> None:
        self.rows: list[int] = []
        self.paths: list[Ints] = []
        self.tokens: list[Ints] = []
        self.depths: list[Ints] = []
        self.parents: list[Ints] = []
        self.size = 0

    def add(self, row: int, inputs: NDArray[Any], common: int) -> None:
        """Add a row that shares `common` tokens with the one before it."""
        new = np.arange(self.size, self.size + len(inputs) - common)
        shared = self.paths[-1][:common] if self.paths else np.empty(0, dtype=np.int64)
        path = np.concatenate([shared, new])
        self.tokens.append(np.asarray(inputs[common:], dtype=np.int64))
        self.depths.append(np.arange(common, len(inputs)))
        self.parents.append(np.concatenate([[-1], path])[common : len(inputs)])
        self.paths.append(path)
        self.rows.append(row)
        self.size += len(new)

    def tree(self) -> Tree:
        tokens, depths = np.concatenate(self.tokens), np.concatenate(self.depths)
        return Tree(tokens, depths, np.concatenate(self.parents), self.rows, self.paths)
