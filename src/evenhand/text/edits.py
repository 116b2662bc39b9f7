"""The changes of a rewriting: a list of edits that can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from evenhand.errors import InputError


class Edit(NamedTuple):
    """`before` at `offset` (in characters of the input) became `after`, by the rule named."""

    offset: int
    rule: str
    before: str
    after: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits made; they must be in order and must fit the text.

    >>> apply("He left.", [Edit(0, "pronoun", "He", "She")])
    'She left.'
    """
    pieces: list[str] = []
    done = 0
    for edit in edits:
        end = edit.offset + len(edit.before)
        if edit.offset < done or text[edit.offset : end] != edit.before:
            actual = text[edit.offset : end]
            raise InputError(
                f"edit at {edit.offset}: expected {edit.before!r} after {done}, found {actual!r}"
            )
        pieces.append(text[done : edit.offset])
        pieces.append(edit.after)
        done = end
    pieces.append(text[done:])
    return "".join(pieces)


def in_order(edits: Iterable[Edit]) -> list[Edit]:
    """The edits by offset; where two would change the same word, the first of them does.

    >>> [e.after for e in in_order([Edit(3, "a", "to", "b"), Edit(0, "c", "go", "d")])]
    ['d', 'b']
    """
    ordered: list[Edit] = []
    done = 0
    for edit in sorted(edits, key=attrgetter("offset")):
        if edit.offset >= done:
            ordered.append(edit)
            done = edit.offset + len(edit.before)
    return ordered


def invert(edits: Sequence[Edit]) -> list[Edit]:
    """The edits that lead back, with offsets in the rewritten text.

    >>> invert([Edit(0, "pronoun", "He", "She"), Edit(8, "pronoun", "his", "her")])[1].offset
    9
    """
    back: list[Edit] = []
    shift = 0
    for edit in edits:
        back.append(Edit(edit.offset + shift, edit.rule, edit.after, edit.before))
        shift += len(edit.after) - len(edit.before)
    return back


def undo(text: str, edits: Sequence[Edit]) -> str:
    """The input, from the rewritten text and the edits that were made.

    >>> edits = [Edit(0, "pronoun", "He", "She")]
    >>> undo(apply("He left.", edits), edits)
    'He left.'
    """
    return apply(text, invert(edits))
