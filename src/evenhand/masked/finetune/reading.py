"""Documents out of files, packed or not, as the text commands cut them; and what the files are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.errors import FileError, InputError
from evenhand.text.corpus.compression import STDIN
from evenhand.text.corpus.formats import Form
from evenhand.text.corpus.reading import chunks

__all__ = ["input_hashes", "read_documents"]


def read_documents(sources: Sequence[str], form: Form) -> Iterator[str]:
    """The documents of the files, one file after the other; `-` is stdin."""
    if not sources:
        raise InputError("no input: expected at least one file, or - for stdin")
    for source in sources:
        if source != STDIN and Path(source).is_dir():
            raise FileError(source, "is a folder: expected a file")
    for chunk in chunks(sources, form, same_columns=False):
        text = chunk.data.decode("utf-8", "surrogateescape")
        block = chunk.layout.parse(text, chunk.location).block
        for index in range(len(block)):
            yield block.document(index)


def input_hashes(sources: Sequence[str]) -> dict[str, str | None]:
    """The SHA-256 of each file as it is on disk; none for stdin or a pipe, which give it once."""
    found: dict[str, str | None] = {}
    for source in sources:
        found[source] = None
        path = Path(source)
        if source != STDIN and (path.is_file() or not path.exists()):
            with path.open("rb") as file:
                found[source] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
