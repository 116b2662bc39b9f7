"""The output, the file of edits and the checkpoint of one run, which begin and end together."""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from evenhand.errors import InputError, PartialFailure
from evenhand.text.corpus.checkpoint import Checkpoint, State
from evenhand.text.corpus.feed import Position
from evenhand.text.corpus.sink import ReaderGone, Sink, open_sink

__all__ = ["INTERVAL", "Target"]

INTERVAL = 2.0  # seconds between two checkpoints
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Target:
    """What a run writes to, and `state`: how far it has come, at first where an earlier run was.

    Left by an error, it keeps what was written for the same run to go on, if that is possible
    (`key` tells which run it is; none, and it never is); a wrong input leaves nothing. That the
    reader of the output has gone is no error.
    """

    def __init__(self, output: str | Path, edits: str | Path | None, key: str | None) -> None:
        self._output = str(output)
        self._sinks: list[Sink] = []
        try:
            self._sinks.append(open_sink(output))
            if edits is not None:
                self._sinks.append(open_sink(edits))
        except BaseException:
            self._close(keep=True)
            raise
        self._checkpoint: Checkpoint | None = None
        if all(sink.resumable for sink in self._sinks):
            checkpoint = Checkpoint(output, key or "")
            if key is None:
                checkpoint.remove()
            else:
                self._checkpoint = checkpoint
        self.state = self._begin()
        self._saved = time.monotonic()

    def add(
        self, position: Position, output: bytes, edits: bytes, counts: Mapping[str, int]
    ) -> None:
        """Write what became of the input up to a position."""
        for sink, data in zip(self._sinks, (output, edits), strict=False):
            sink.write(data)
        total = Counter(self.state.counts)
        total.update(counts)
        done = [sink.done for sink in self._sinks]
        self.state = State(position=position, done=done, counts=total)
        if self._checkpoint is not None and time.monotonic() - self._saved >= INTERVAL:
            self._save()

    def finish(self) -> None:
        """The files are complete: let them appear, the output last."""
        while self._sinks:
            self._sinks[-1].commit()
            self._sinks.pop()
        if self._checkpoint is not None:
            self._checkpoint.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        if isinstance(error, InputError | ReaderGone):
            self._close(keep=False)
            if self._checkpoint is not None:
                self._checkpoint.remove()
            return isinstance(error, ReaderGone)
        kept = self._keep()
        self._close(keep=kept)
        hint = "; the same command goes on from there" if kept else ""
        if isinstance(error, PartialFailure):
            raise PartialFailure(f"{error}{hint}") from error
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise PartialFailure(f"{self._output}: {error.strerror}{hint}") from error
        return False

    def _begin(self) -> State:
        saved = self._checkpoint.load() if self._checkpoint is not None else None
        if saved is not None and all(
            sink.rewind(done) for sink, done in zip(self._sinks, saved.done, strict=True)
        ):
            return saved
        for sink in self._sinks:
            sink.rewind(0)
        return State()

    def _save(self) -> None:
        assert self._checkpoint is not None  # noqa: S101
        for sink in self._sinks:
            sink.settle()
        self._checkpoint.save(self.state)
        self._saved = time.monotonic()

    def _keep(self) -> bool:
        """Note how far the run came; whether there is something to go on from."""
        if self._checkpoint is None:
            return False
        try:
            if self.state.done:
                self._save()
        except OSError:  # no room for that either: the checkpoint before still holds
            pass
        return self._checkpoint.load() is not None

    def _close(self, *, keep: bool) -> None:
        for sink in self._sinks:
            sink.close(keep=keep)
        self._sinks.clear()
