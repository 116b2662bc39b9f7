"""Arrays that were dear to make, kept on disk with a check sum, for one process to make for all."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from evenhand.results import replace_file

__all__ = ["Alone", "key_of", "locked", "read_array", "save_array"]

Alone = Callable[[str], AbstractContextManager[None]]
"""Waits until no other process holds a name, and holds it."""


def key_of(*parts: object) -> str:
    """A name for what depends on these alone.

    >>> key_of("texts", 1) == key_of("texts", 1), len(key_of("texts", 2))
    (True, 32)
    """
    return blake2b("\n".join(map(repr, parts)).encode(), digest_size=16).hexdigest()


def read_array(path: Path) -> NDArray[Any] | None:
    """What is kept there; None without it, or where it is damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            if file.zip.testzip() is None:
                found: NDArray[Any] = file["array"]
                return found
    except (OSError, ValueError, LookupError, EOFError, RuntimeError, BadZipFile):
        pass
    return None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        np.savez(file, array=array)


def locked(folder: Path) -> Alone:
    """By locks on files in a folder: for processes of one machine."""

    @contextmanager
    def alone(name: str) -> Iterator[None]:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    return alone
