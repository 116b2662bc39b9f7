"""Readers of sentences whose antecedents are known: our own and WinoBias'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.text.tokens import tokenize

__all__ = ["gold_sentences", "winobias"]


def gold_sentences(path: Path) -> Iterator[tuple[list[str], int, str | None]]:
    """Tokens, the place of the pronoun, and the antecedent if it is in the sentence."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            tokens, starts = tokenize(re.sub(r"[][*]", "", line))
            index = starts.index(len(re.sub(r"[][*]", "", line[: line.index("*")])))
            result = re.search(r"\[(.+?)\]", line)
            yield tokens, index, result[1] if result else None


def winobias(path: Path) -> Iterator[tuple[list[str], int, tuple[int, int]]]:
    """Tokens, the place of the pronoun, and the span of its antecedent, from a CoNLL file."""
    for part in path.read_text(encoding="utf-8").split("#begin document")[1:]:
        rows = [line.split() for line in part.splitlines() if line.startswith("nw/")]
        tokens = [row[3] for row in rows]
        begins = [k for k, row in enumerate(rows) if row[-1].startswith("(")]
        ends = [k + 1 for k, row in enumerate(rows) if row[-1].endswith(")")]
        spans = list(zip(begins, ends, strict=True))
        positions = [s for s, e in spans if e - s == 1 and tokens[s].lower() in PRONOUNS]
        others = [span for span in spans if span[0] not in positions]
        if len(positions) == len(others) == 1:
            yield tokens, positions[0], others[0]
