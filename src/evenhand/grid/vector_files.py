"""Word vectors as cells need them: known by their content, held for the cells to come."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from evenhand.grid import files

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors
    from evenhand.vectors.vocabulary import Case

__all__ = ["vectors_digest", "vectors_of"]


def vectors_digest(source: str) -> str:
    """The hash of a file of vectors, or of the embedded ones."""
    from evenhand.vectors.store import EMBEDDED

    if source not in EMBEDDED:
        return files.file_digest(source)
    with resources.as_file(resources.files("evenhand.assets") / f"{source}.npz") as path:
        return files.file_digest(path)


def vectors_of(source: str, case: Case = "fallback", limit: int | None = None) -> Vectors:
    """The vectors; those asked for last are still there."""
    return _loaded(source, vectors_digest(source), case, limit)


@lru_cache(maxsize=2)
def _loaded(source: str, content: str, case: Case, limit: int | None) -> Vectors:  # noqa: ARG001
    from evenhand.vectors.store import load

    return load(source, case=case, limit=limit)
