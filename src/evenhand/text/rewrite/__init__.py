"""Rewriting: every rule reads a block of documents and returns the list of its edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.display import Shown
from evenhand.instruments import option
from evenhand.text.block import Block
from evenhand.text.edits import Edit, apply, undo


def judge_option() -> Any:
    """The option of what distinguishes the two meanings of "her"."""
    return option(
        "embedded",
        flag="--tagger",
        metavar="NAME",
        help="What distinguishes her (him) from her (his): embedded, or spacy:MODEL.",
    )


class Rewriter(Protocol):
    """What a rewriting is: from a block to edits in order, which do not overlap.

    What it decides for a document depends on the document, its number and the seed alone, so that
    the same corpus cut into other blocks, or spread over processes, is rewritten the same way.
    """

    def __call__(self, block: Block) -> list[Edit]: ...


@dataclass(frozen=True, slots=True, repr=False)
class Rewritten(Shown):
    """A rewritten document and what was changed in it."""

    text: str
    edits: tuple[Edit, ...]

    def undo(self) -> str:
        """The document as it was."""
        return undo(self.text, self.edits)

    def __str__(self) -> str:
        return self.text

    def _headline(self) -> str:
        return f"{self.text!r}, {len(self.edits)} edits"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"offset": e.offset, "rule": e.rule, "before": e.before, "after": e.after}
            for e in self.edits
        ]


def rewrite_all(documents: Sequence[str], rewriter: Rewriter, *, first: int = 0) -> list[Rewritten]:
    """Rewrite every document.

    Parameters
    ----------
    documents : sequence of str
    rewriter : Rewriter
        Such as `Swap()`, `Neutralize()` or `Anonymize()`.
    first : int
        The number of the first document; random draws depend on the document's number.

    Returns
    -------
    list of Rewritten

    Examples
    --------
    >>> from evenhand.text.rewrite.swap import Swap
    >>> [str(r) for r in rewrite_all(["She sings.", "It rains."], Swap())]
    ['He sings.', 'It rains.']

    """
    block = Block.of_documents(documents, first=first)
    edits: list[list[Edit]] = [[] for _ in documents]
    index = 0
    for edit in rewriter(block):
        while index + 1 < len(block) and edit.offset >= block.starts[index + 1]:
            index += 1
        offset = edit.offset - int(block.starts[index])
        edits[index].append(Edit(offset, edit.rule, edit.before, edit.after))
    return [
        Rewritten(apply(text, document_edits), tuple(document_edits))
        for text, document_edits in zip(documents, edits, strict=True)
    ]
