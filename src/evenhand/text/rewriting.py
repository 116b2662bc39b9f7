"""Rewriting from Python: a document in, the new text and its edits out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.text.block import Block
from evenhand.text.edits import Edit, apply, undo
from evenhand.text.rewrite import Rewriter

__all__ = ["Rewritten", "anonymize", "neutralize", "rewrite_all", "substitute", "swap"]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten document and what was changed in it."""

    text: str
    edits: tuple[Edit, ...]

    def undo(self) -> str:
        """The document as it was."""
        return undo(self.text, self.edits)

    def __str__(self) -> str:
        return self.text


def rewrite_all(documents: Sequence[str], rewriter: Rewriter, *, first: int = 0) -> list[Rewritten]:
    """Each document rewritten; what is drawn by chance depends on its number, from `first` on.

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
        Rewritten(apply(text, made), tuple(made))
        for text, made in zip(documents, edits, strict=True)
    ]


def swap(document: str, **options: Any) -> Rewritten:
    """Every gendered word to its dual; the options are those of `Swap`.

    >>> swap("“He’s her brother,” said the woman.").text
    '“She’s his sister,” said the man.'
    """
    from evenhand.text.rewrite.swap import Swap

    return _one(document, Swap(**options))


def substitute(documents: Iterable[str], **options: Any) -> list[Rewritten]:
    """Half of the documents swapped in place, first names too; the options are those of `Swap`."""
    from evenhand.text.rewrite.swap import substitute as rewriter

    return rewrite_all(list(documents), rewriter(**options))


def neutralize(document: str, **options: Any) -> Rewritten:
    """Singular they with its verbs, neutral titles and roles; the options are `Neutralize`'s.

    >>> neutralize("She runs and sings.").text
    'They run and sing.'
    """
    from evenhand.text.rewrite.neutralize import Neutralize

    return _one(document, Neutralize(**options))


def anonymize(document: str, **options: Any) -> Rewritten:
    """Person names to E1, E2 …, the same name to the same number; the options are `Anonymize`'s.

    >>> anonymize("Marie Curie spoke. Curie was thanked.").text
    'E1 E2 spoke. E2 was thanked.'
    """
    from evenhand.text.rewrite.anonymize import Anonymize

    return _one(document, Anonymize(**options))


def _one(document: str, rewriter: Rewriter) -> Rewritten:
    return rewrite_all([document], rewriter)[0]
