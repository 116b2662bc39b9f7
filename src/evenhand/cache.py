"""A folder that remembers what was computed: model answers, text embeddings.

An entry is an array of numbers, found by a key: 128 bits of everything that its numbers depend on.
Entries are written batch by batch as `.npy` files named by the hash of their content. A file
appears only when it is complete, so a killed process loses the batch that it was writing and no
other; a damaged file is ignored. Several processes may share a folder.
"""

from __future__ import annotations

import io
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import FileError
from evenhand.files import lock_folder, own_entries, replace_file

__all__ = ["Cache", "content_key", "content_keys"]

MARKER = "evenhand-cache"
VERSION = "evenhand cache 2"
KEY_BYTES = 16
MAPPED = 1 << 22
"""Files of this many bytes or more stay on disk, memory-mapped; smaller ones are read."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of items done and of all items."""


class Querying(TypedDict, total=False):
    """How a model is queried: keywords that functions take and pass on.

    Answers are read from the cache and stored there; `progress` is called with the queries done,
    cached ones included, and all queries.
    """

    cache: Cache | None
    progress: Progress | None


def content_key(context: str, *numbers: int, text: str = "") -> bytes:
    """The key of an entry that depends on a context (model, settings), on numbers and on a text.

    Parameters
    ----------
    context : str
        What many entries share, such as the fingerprint of a model. It is hashed once.
    *numbers : int
        Such as token ids.
    text : str

    Examples
    --------
    >>> content_key("model", 1, 2) == content_key("model", 1, 2) != content_key("model", 2, 1)
    True

    """
    content = array("q", (len(numbers), *numbers)).tobytes() + text.encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=KEY_BYTES, key=_context_hash(context)).digest()


def content_keys(context: str, contents: Iterable[bytes]) -> list[bytes]:
    """The keys of entries that depend on a context and on some bytes each."""
    start = blake2b(digest_size=KEY_BYTES, key=_context_hash(context))
    keys = []
    for content in contents:
        hashed = start.copy()
        hashed.update(content)
        keys.append(hashed.digest())
    return keys


@lru_cache
def _context_hash(context: str) -> bytes:
    return blake2b(context.encode()).digest()


class Cache:
    """A cache in a folder, which is created if needed; a folder of something else is refused.

    Parameters
    ----------
    folder : path
    private : bool
        Whether only this user can read the folder, if it is created, and what is stored.
    optional : bool
        Whether what cannot be written, to a full or read-only disk, is held in memory alone: for
        a cache that the user did not name.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> key = content_key("some model", 2, 4, 3)
    >>> Cache(folder).store([key], np.array([[-0.5, -1.5]]))
    >>> Cache(folder).get([key, content_key("another model", 2, 4, 3)])
    [array([-0.5, -1.5]), None]

    """

    @checked
    def __init__(
        self, folder: str | os.PathLike[str], *, private: bool = False, optional: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.private, self.optional = private, optional
        with self._writing():
            _claim(self.folder, private)
        self._batches: list[NDArray[Any]] = []
        self._rows: dict[bytes, int] = {}
        self._names: set[str] = set()
        self.refresh()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def refresh(self) -> None:
        """Read what other processes have stored since."""
        found = [path for path in self.folder.glob("*.npy") if path.stem not in self._names]
        self._names.update(path.stem for path in found)
        for path in own_entries(sorted(found)):
            batch = _read(path)
            if batch is not None:
                self._add(batch)

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """The positions of the keys that have no entry; of equal keys, the first position."""
        first = {key: position for position, key in reversed(list(enumerate(keys)))}
        return sorted(position for key, position in first.items() if key not in self._rows)

    def get(self, keys: Sequence[bytes]) -> list[NDArray[Any] | None]:
        """The entry of each key, None where there is none."""
        return [self._entry(key) if key in self._rows else None for key in keys]

    def stack(self, keys: Sequence[bytes]) -> NDArray[Any]:
        """The entries (n, width) of keys that all have one, of one width."""
        entries = [self._entry(key) for key in keys]
        return np.stack(entries) if entries else np.empty((0, 0))

    def store(self, keys: Sequence[bytes], entries: NDArray[Any]) -> None:
        """Write the entries (n, width) of a batch, all or none."""
        values = np.ascontiguousarray(entries)
        layout = [
            ("key", f"V{KEY_BYTES}"),
            ("values", values.dtype.newbyteorder("<"), values.shape[1:]),
        ]
        batch = np.empty(len(keys), dtype=layout)
        batch["key"] = np.frombuffer(b"".join(keys), dtype=f"V{KEY_BYTES}")
        batch["values"] = values
        content = io.BytesIO()
        np.save(content, batch, allow_pickle=False)
        name = _digest(content.getbuffer())
        # the name is the digest of the content: a damaged file is not read but computed again
        target = self.folder / f"{name}.npy"
        with (
            self._writing(),
            replace_file(target, durable=False, entry=True, private=self.private) as file,
        ):
            file.write(content.getbuffer())
        self._names.add(name)
        self._add(batch)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Wait until no other process computes for this cache, then read what it has stored."""
        with lock_folder(self.folder):
            self.refresh()
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            if not self.optional:
                raise

    def _entry(self, key: bytes) -> NDArray[Any]:
        batch, row = divmod(self._rows[key], 1 << 32)
        entry: NDArray[Any] = self._batches[batch]["values"][row]
        return entry

    def _add(self, batch: NDArray[Any]) -> None:
        first = len(self._batches) << 32
        self._batches.append(batch)
        keys = batch["key"].astype(object).tolist()
        self._rows.update(zip(keys, range(first, first + len(keys)), strict=True))


def _claim(folder: Path, private: bool) -> None:
    """Make the folder a cache, or see that it is one."""
    marker = folder / MARKER
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "expected a folder for a cache, got a file")
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise FileError(folder, "expected a folder for a cache, got a file") from None
    if marker.is_symlink() or (marker.exists() and not marker.is_file()):
        raise FileError(marker, "expected a plain file, got something else: use another folder")
    if marker.is_file():
        with marker.open("rb") as file:
            version = file.read(100).decode("utf-8", "replace").strip()
        if version != VERSION:
            raise FileError(marker, f"expected '{VERSION}', got '{version}': use another folder")
        return
    others = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if others and not marker.is_file():  # another process may have created it just now
        raise FileError(
            folder, f"expected an empty folder or a cache, got a folder with '{others[0]}'"
        )
    with replace_file(marker, entry=True, private=private) as file:
        file.write(f"{VERSION}\n".encode())


def _read(path: Path) -> NDArray[Any] | None:
    """The entries of a file, None where it is damaged."""
    try:
        if path.stat().st_size < MAPPED:
            content = path.read_bytes()
            intact = _digest(content) == path.stem
            batch = np.load(io.BytesIO(content), allow_pickle=False) if intact else None
        else:
            mapped = np.memmap(path, dtype=np.uint8, mode="r")
            intact = _digest(mapped) == path.stem
            batch = np.load(path, mmap_mode="r", allow_pickle=False) if intact else None
    except (OSError, ValueError, EOFError):
        return None
    names = None if batch is None else batch.dtype.names
    return batch if names == ("key", "values") else None


def _digest(content: Any) -> str:
    return blake2b(content, digest_size=16).hexdigest()
