"""Files of any size through a function: blocks, processes, order, and a safe end."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from evenhand.errors import FileError, InputError
from evenhand.text.corpus.checkpoint import run_key
from evenhand.text.corpus.feed import Chunk, chunks, total_size
from evenhand.text.corpus.opening import STDIN, Codec, member_codec, pack
from evenhand.text.corpus.pool import ordered
from evenhand.text.corpus.records import Form, Lines
from evenhand.text.corpus.sink import STDOUT
from evenhand.text.corpus.target import Target
from evenhand.text.corpus.work import RewriteWork, Work

__all__ = ["Progress", "check", "encode", "stream"]

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
"""What the `repr` of an object that tells nothing of itself ends in: no ground to go on from."""
UNWRITABLE = re.compile("[\ud800-\udc7f\udd00-\udfff]")

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far, as they are on disk, and how many there are, if known."""


def stream(
    sources: Sequence[str | Path],
    output: str | Path,
    work: Work | RewriteWork,
    *,
    form: Form = Lines(),  # noqa: B008
    edits: str | Path | None = None,
    jobs: int = 1,
    resume: bool = True,
    block_size: int = 1 << 20,
    progress: Progress | None = None,
    fingerprint: str | None = None,
) -> Counter[str]:
    """Read the sources one after the other, do the work on each block, write the results in order.

    `-` is stdin or stdout. Compressed input is known by its first bytes, compressed output by its
    name (.gz, .bz2, .zst). The output file, and the file of edits, appear when they are complete.
    A run that was broken off goes on where its last checkpoint was when the same is asked for
    again: the same files, unchanged, and the same `fingerprint`, which must tell all that the
    output depends on (by default the `repr` of the work). Input from stdin starts anew.

    The output does not depend on `jobs` or `block_size`. In other processes (`jobs` > 1) the work
    is imported afresh: call this from a module, under `if __name__ == "__main__":` in a script.

    Returns the counts of the work, summed. If the reader of stdout goes away, the rest is not
    worked on and the counts are of what was written.
    """
    names = [str(source) for source in sources]
    check(names, output, edits)
    if jobs < 1 or block_size < 1:
        raise InputError(
            f"expected at least one job and a block of one byte, got {jobs}, {block_size}"
        )
    known = all(name != STDIN and Path(name).is_file() for name in names)
    key = None
    told = repr(work) if fingerprint is None else fingerprint
    if resume and known and not ADDRESS.search(told):
        made_by = version("evenhand")
        key = run_key(names, work=told, form=repr(form), edits=str(edits), version=made_by)
    task = _Task(work, member_codec(output), member_codec(edits or ""), edits is not None)
    total = total_size(names) if known else None
    with Target(output, edits, key) as target:
        pieces = chunks(
            names,
            form,
            size=block_size,
            start=target.state.position,
            same_columns=isinstance(work, RewriteWork),
            prompt=names == [STDIN] and str(output) == STDOUT,
        )
        with closing(ordered(task, pieces, jobs)) as results:
            for chunk, result in results:
                target.add(chunk.after, *result)
                if progress is not None:
                    progress(chunk.done, total)
        target.finish()
    return Counter(target.state.counts)


class _Result(NamedTuple):
    """What a worker gives back for a chunk, ready to be written."""

    output: bytes
    edits: bytes
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Task:
    """All that is done to a chunk where the work is done: decode, work, encode, compress."""

    work: Work | RewriteWork
    codec: Codec
    edits_codec: Codec
    log: bool

    def __call__(self, chunk: Chunk) -> _Result:
        records = chunk.layout.parse(chunk.data.decode("utf-8", "surrogateescape"), chunk.place)
        prefix = b""
        if isinstance(self.work, RewriteWork):
            prefix = chunk.prefix
            done = self.work.rewrite(records, chunk.layout, log=self.log)
        elif len(records.block):
            done = self.work(records.block)
        else:
            return _Result(b"", b"", {})
        return _Result(
            pack(prefix + encode(done.output), self.codec),
            pack(encode(done.edits), self.edits_codec) if self.log else b"",
            dict(done.counts),
        )


def encode(text: str) -> bytes:
    """UTF-8, with the bytes that were not UTF-8 in the input as they were.

    Half of a surrogate pair, which only an escape in JSON can bring, becomes such an escape again.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        escaped = UNWRITABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
        return escaped.encode("utf-8", "surrogateescape")


def check(sources: Sequence[str], output: str | Path, edits: str | Path | None = None) -> None:
    """That the inputs can be read, and that nothing is written over them or over each other."""
    if not sources:
        raise InputError("no input: expected at least one file, or - for stdin")
    targets = [str(path) for path in (output, edits) if path is not None and str(path) != STDOUT]
    if edits is not None and Path(output).resolve() == Path(edits).resolve():
        raise InputError(f"{edits}: is the output already: expected a file of its own")
    for source in sources:
        if source == STDIN:
            continue
        if Path(source).is_dir():
            raise FileError(source, "is a folder: expected a file")
        stat = Path(source).stat()
        for target in targets:
            if Path(target).is_file() and os.path.samestat(stat, Path(target).stat()):
                raise FileError(target, "is an input and cannot be the output at the same time")
