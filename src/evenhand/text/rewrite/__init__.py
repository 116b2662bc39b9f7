"""Rewriting: every rule reads a block of documents and returns the list of its edits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

from evenhand.arguments import checked
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


Function = TypeVar("Function", bound=Callable[..., object])


def takes_options(
    cls: type, *, without: Collection[str] = (), **defaults: object
) -> Callable[[Function], Function]:
    """Make the options of a dataclass the parameters of a function that passes them on.

    `without` are options that the function does not have; some can have other defaults.
    """

    def decorate(function: Function) -> Function:
        own = inspect.signature(function)
        shown = [each for each in own.parameters.values() if each.kind != each.VAR_KEYWORD]
        shown += [
            each.replace(default=defaults.get(name, each.default))
            for name, each in inspect.signature(cls).parameters.items()
            if name not in without
        ]
        signature = own.replace(parameters=shown)

        @wraps(function)
        def call(*args: object, **options: object) -> object:
            bound = signature.bind(*args, **options)
            bound.apply_defaults()
            return function(*bound.args, **bound.kwargs)

        setattr(call, "__signature__", signature)  # noqa: B010
        return cast("Function", call)

    return decorate


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

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"offset": e.offset, "rule": e.rule, "before": e.before, "after": e.after}
            for e in self.edits
        ]


@checked
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
    edits = dict(block.by_document(rewriter(block)))
    changes = [tuple(edits.get(index, ())) for index in range(len(documents))]
    return [Rewritten(apply(text, own), own) for text, own in zip(documents, changes, strict=True)]
