"""Cells: one setting of a grid each, found again by what determines its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from evenhand.results import to_json

__all__ = ["Cell", "digest_of", "key_of"]


@dataclass(frozen=True, slots=True)
class Cell:
    """`settings` are all of the cell's, as plain values; `axes` those that vary in the grid."""

    key: str
    settings: Mapping[str, Any] = field(repr=False)
    axes: Mapping[str, Any]
    group: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The cell in words: what sets it apart from the others.

        >>> Cell("0f", {}, {"network": "maml", "shots": 2}).name
        'network maml, shots 2'
        """
        return ", ".join(f"{name} {told(value)}" for name, value in self.axes.items()) or "the cell"

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def told(value: Any) -> str:
    """A setting's value in a few words."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def key_of(task: str, version: int, identity: Mapping[str, Any]) -> str:
    """The name of a cell's result: a hash of all that determines it."""
    return digest_of({"task": task, "version": version, "identity": identity})


def digest_of(value: Any) -> str:
    """A hash of a JSON value, whatever the order of its keys."""
    plain = json.loads(to_json(value, indent=None))
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
