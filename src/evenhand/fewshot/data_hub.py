"""Data sets of the hub by `hf:NAME`, through the package datasets where it is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from evenhand.errors import FileError, InputError, MissingExtraError
from evenhand.text.tables import Row, Table, as_cell

__all__ = ["HUB", "open_hub"]

HUB = "hf:"


def open_hub(source: str) -> Table:
    """All parts (train, test …) of a data set of the hub as one table.

    Columns whose values the hub keeps as numbers with names are given by name.
    """
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise MissingExtraError("datasets", f"data '{source}'", "evenhand[hub]") from None
    try:
        loaded = datasets.load_dataset(source.removeprefix(HUB))
    except Exception as error:  # the package raises of every kind, network errors among them
        told = str(error).strip().partition("\n")[0] or "no reason given"
        raise InputError(
            f"{source}: expected a data set of the hub and a network to fetch it by, "
            f"got {type(error).__name__}: {told}"
        ) from error
    parts = list(loaded.values())
    columns = tuple(parts[0].column_names) if parts else ()
    for part in parts:
        if set(part.column_names) != set(columns):
            raise FileError(source, "expected the same columns in all its parts, got others")

    def read(names: Sequence[str]) -> Iterator[Row]:
        number = 0
        for part in parts:
            told = [getattr(part.features.get(name), "names", None) for name in names]
            for values in zip(*(part[name] for name in names), strict=True):
                number += 1
                yield _cells(source, number, values, told)

    return Table(source, columns, read)


def _cells(source: str, number: int, values: Sequence[Any], told: Sequence[Any]) -> Row:
    """One row as text; a number that has a name by its name, a missing one (-1) as missing."""
    cells = []
    for value, names in zip(values, told, strict=True):
        if names is not None and isinstance(value, int):
            cells.append(names[value] if 0 <= value < len(names) else None)
            continue
        try:
            cells.append(as_cell(value))
        except TypeError as error:
            raise FileError(source, f"row {number}: {error}") from None
    return tuple(cells)
