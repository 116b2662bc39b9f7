"""Simulated biographies by name: `simulated`, or `simulated:leak=0.8,per_class=300`."""

from __future__ import annotations

import inspect
from typing import Any

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.data_set import Dataset

__all__ = ["SIMULATED", "simulated"]

SIMULATED = "simulated"


def simulated(source: str = SIMULATED) -> Dataset:
    """The data set of `simulate.biographies`, with its dials after a colon.

    >>> made = simulated("simulated:leak=0.8,per_class=5")
    >>> made.name, len(made), len(made.classes)
    ('simulated:leak=0.8,per_class=5', 140, 28)
    """
    from evenhand.simulate.biographies import biographies

    made = biographies(**_dials(source, biographies))
    return Dataset.of(made.texts, made.occupations, made.genders, name=source)


def _dials(source: str, maker: Any) -> dict[str, Any]:
    """What stands after the colon, as the maker takes it."""
    known = {
        name: each.default
        for name, each in inspect.signature(maker).parameters.items()
        if isinstance(each.default, int | float)
    }
    given: dict[str, Any] = {}
    for part in source.partition(":")[2].split(","):
        if not part:
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known:
            raise UnknownNameError("dial of simulated data", name, known)
        if name in given:
            raise InputError(f"data '{source}': {name}: expected once, got it twice")
        kind = type(known[name])
        try:
            given[name] = kind(value)
        except ValueError:
            number = "whole number" if kind is int else "number"
            raise InputError(
                f"data '{source}': {name}: expected a {number} such as {name}={known[name]}, "
                f"got '{value if equals else part}'"
            ) from None
    return given
