"""Text rewritten as it is read: the files stay as they are, and every epoch may draw anew."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from evenhand.text.rewrite import Rewriter, rewrite_all

__all__ = ["derived_seed", "rewriter_of", "rewritten"]

PIECE = 2000
"""Documents rewritten together."""


def derived_seed(seed: int, *names: object) -> int:
    """A seed of its own for each use of one seed (63 bits, the same on every machine).

    >>> derived_seed(0, "mask", 1) != derived_seed(0, "mask", 2)
    True
    """
    told = ":".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest(), "big") >> 1


def rewriter_of(rewrite: str, seed: int, epoch: int | str) -> Rewriter | None:
    """The rewriting of an epoch: substitution draws its documents, and names, from the epoch."""
    if rewrite == "swap":
        from evenhand.text.rewrite.swap import Swap

        return Swap()
    if rewrite == "substitute":
        from evenhand.text.rewrite.swap import build_substitution

        return build_substitution(seed=derived_seed(seed, "substitute", epoch))
    if rewrite == "neutralize":
        from evenhand.text.rewrite.neutralize import Neutralize

        return Neutralize()
    return None


def rewritten(texts: Sequence[str], rewrite: str, seed: int, epoch: int | str) -> list[str]:
    """The texts as an epoch reads them.

    >>> rewritten(["She sings."], "swap", 0, 1)
    ['He sings.']
    """
    rewriter = rewriter_of(rewrite, seed, epoch)
    if rewriter is None:
        return list(texts)
    made: list[str] = []
    for first in range(0, len(texts), PIECE):
        part = texts[first : first + PIECE]
        made.extend(done.text for done in rewrite_all(part, rewriter, first=first))
    return made
