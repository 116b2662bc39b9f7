"""What a rewriting changed: a list of edits from which the input can be had back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evenhand.errors import InputError

__all__ = ["Edit", "apply", "invert", "undo"]


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
