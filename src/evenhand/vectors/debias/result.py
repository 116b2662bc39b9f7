"""What every debiasing method returns: the new vectors and an account of how they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.intervals import Floats
from evenhand.vectors.store import Vectors

__all__ = ["Debiased"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Debiased:
    """Debiased vectors with the settings, the numbers and the words behind them.

    `removed` is an orthonormal basis (r, d) of what was projected out, `transform` the matrix T
    of a method that transforms instead. `fitted_on` are the words the method learned from: a
    test on other words is the fairer judge.
    """

    vectors: Vectors = field(repr=False)
    method: str
    settings: Mapping[str, Any]
    report: Mapping[str, Any]
    removed: Floats | None = field(default=None, repr=False)
    transform: Floats | None = field(default=None, repr=False)
    fitted_on: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON view: everything but the matrices and the long word lists."""
        return {
            "method": self.method,
            "vectors": self.vectors.name,
            "words": len(self.vectors),
            "dim": self.vectors.dim,
            "settings": dict(self.settings),
            "removed_dimensions": None if self.removed is None else len(self.removed),
            "fitted_on": len(self.fitted_on),
            "report": dict(self.report),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "seed": self.seed,
        }
