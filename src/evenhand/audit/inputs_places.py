"""Whether what was named is there at all, told before anything is read."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from evenhand.errors import FileError, InputError

__all__ = ["check_data", "check_model", "check_out", "check_vectors"]

HUB = "hf:"
MOST_NAMES = 1000
"""So many names of a folder are looked through for one that was meant."""


def check_vectors(given: str, embedded: Sequence[str]) -> None:
    """An embedded name, or a file that is there."""
    if given.startswith(HUB):
        known = ", ".join(embedded)
        raise InputError(f"vectors '{given}': expected a file or {known}, got a name of the hub")
    if given not in embedded:
        _check_file("vectors", given, embedded)


def check_model(given: str, embedded: Sequence[str]) -> None:
    """An embedded name, a name of the hub, or a folder that is there."""
    if given in embedded or given.startswith(HUB) or Path(given).is_dir():
        return
    if Path(given).exists():
        raise FileError(given, "expected the folder of a model (config.json, weights), got a file")
    more = "; a model of the hub is named hf:NAME"
    raise FileError(given, _missing("folder", "model", given, embedded) + more)


def check_data(given: str, embedded: Sequence[str]) -> None:
    """An embedded name with or without its dials, a name of the hub, or a file that is there."""
    if given.partition(":")[0] not in embedded and given != "-" and not given.startswith(HUB):
        _check_file("data", given, embedded)


def check_out(out: str | os.PathLike[str]) -> Path:
    """The folder to write into, which need not be there yet."""
    folder = Path(out)
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        what = "" if there == folder else f": {there} is one"
        raise FileError(folder, f"expected a folder to write into, got a file{what}")
    if not os.access(there, os.W_OK):
        raise FileError(folder, f"expected a folder to write into, got one without leave: {there}")
    return folder


def _check_file(kind: str, given: str, embedded: Sequence[str]) -> None:
    path = Path(given)
    if path.is_dir():
        raise FileError(given, f"is a folder: expected a file of {kind}{_inside(path)}")
    if not path.exists():
        raise FileError(given, _missing("file", kind, given, embedded))


def _missing(place: str, kind: str, given: str, embedded: Sequence[str]) -> str:
    """What to say of a name that is not there, with the nearest one that is."""
    path = Path(given)
    names = [*(embedded if path.name == given else ()), *_names(path.parent)]
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f": did you mean '{near[0]}'?" if near else ""
    if not path.parent.is_dir():
        hint = f", and no folder {path.parent}"
    return f"no such {place}{hint} (embedded {kind}: {', '.join(embedded)})"


def _inside(folder: Path) -> str:
    """A file of the folder that might have been meant, where it has only a few."""
    files = [name for name in _names(folder) if (folder / name).is_file()]
    return f", such as {folder / files[0]}" if 0 < len(files) <= 3 else ""


def _names(folder: Path) -> list[str]:
    try:
        return sorted(place.name for place in folder.iterdir())[:MOST_NAMES]
    except OSError:
        return []
