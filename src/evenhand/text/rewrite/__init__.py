"""Rewriting: every rule reads a block of documents and gives the list of its edits."""

from __future__ import annotations

from typing import Protocol

from evenhand.text.block import Block
from evenhand.text.edits import Edit

__all__ = ["Rewriter"]


class Rewriter(Protocol):
    """What a rewriting is: from a block to edits in order, which do not overlap.

    What it decides for a document depends on the document, its number and the seed alone, so that
    the same corpus cut into other blocks, or spread over processes, is rewritten the same way.
    """

    def __call__(self, block: Block) -> list[Edit]: ...
