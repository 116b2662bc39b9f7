"""One function over many pieces in several processes, the results in the order of the pieces.

Each worker has a pipe of its own to the parent and reads nothing else: when the parent is gone,
killed even, the pipe ends and so does the worker.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from evenhand.errors import EvenhandError, FileError, InputError, PartialFailure, in_shell, is_shell

__all__ = ["AHEAD", "ordered"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")

AHEAD = 2  # pieces in progress in addition to one per worker


def ordered(
    task: Callable[[Piece], Result], pieces: Iterator[Piece], workers: int
) -> Generator[tuple[Piece, Result], None, None]:
    """Each piece with the task's result, in order; never more than `workers` + 2 pieces are held.

    With one worker, or where there is but one piece, the work is done in this process.
    """
    ahead = list(islice(pieces, 2)) if workers > 1 else []
    pieces = chain(ahead, pieces)
    if len(ahead) < 2:
        for piece in pieces:
            yield piece, task(piece)
        return
    pool = [_Worker(task) for _ in range(workers)]
    try:
        yield from _spread(pool, pieces)
        for worker in pool:
            worker.finish()
    finally:
        for worker in pool:
            worker.stop()


def _spread(workers: list[_Worker], pieces: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    idle = list(workers)
    busy: dict[Connection, tuple[int, _Worker]] = {}
    held: dict[int, Any] = {}
    results: dict[int, Any] = {}
    sent = given = 0
    more = True
    while more or held:
        while more and idle and sent - given < len(workers) + AHEAD:
            piece = next(pieces, None)
            if piece is None:
                more = False
                break
            worker = idle.pop()
            worker.send(piece)
            busy[worker.connection] = sent, worker
            held[sent] = piece
            sent += 1
        if given in results:
            yield held.pop(given), results.pop(given)
            given += 1
            continue
        for connection in wait(list(busy)):
            number, worker = busy.pop(connection)  # type: ignore[call-overload]
            results[number] = worker.receive()
            idle.append(worker)


class _Worker:
    """A process that waits for pieces at its pipe. Ctrl-C reaches the parent alone."""

    def __init__(self, task: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, task, is_shell()), daemon=True)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            theirs.close()

    def send(self, piece: Any) -> None:
        try:
            self.connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            raise self._died() from None

    def receive(self) -> Any:
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._died() from None
        if isinstance(answer, _Failure):
            raise answer.error()
        return answer

    def finish(self) -> None:
        """Let the worker end by itself."""
        self.connection.close()
        self._process.join(timeout=10)

    def stop(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.join()
        self._process.close()

    def _died(self) -> PartialFailure:
        self._process.join(timeout=10)
        code = self._process.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = f"killed by {signal.Signals(-code).name}; is there enough memory?"
        return PartialFailure(f"a worker process ended before its work was done ({how})")


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a worker, in a form that crosses processes whatever the exception is."""

    kind: str
    message: str
    trace: str
    location: tuple[str, str, int | None] | None
    family: type[EvenhandError] | None

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        location = (error.path, error.problem, error.line) if isinstance(error, FileError) else None
        family = next(
            (k for k in (InputError, PartialFailure, EvenhandError) if isinstance(error, k)), None
        )
        trace = traceback.format_exc()
        return cls(type(error).__name__, str(error), trace, location, family)

    def error(self) -> Exception:
        if self.location is not None:
            path, problem, line = self.location
            return FileError(path, problem, line=line)
        if self.family is not None:
            return self.family(self.message)
        error = RuntimeError(f"{self.kind}: {self.message}")
        error.add_note(self.trace)
        return error


def _serve(connection: Connection, task: Callable[[Any], Any], shell: bool) -> None:
    """The life of a worker: a piece in, a result out, until the parent closes or is gone."""
    try:
        while True:
            piece = connection.recv()
            try:
                with in_shell(shell):
                    answer = task(piece)
            except Exception as error:
                answer = _Failure.of(error)
            connection.send(answer)
    except (EOFError, OSError):  # the parent is gone, perhaps in the middle of a piece
        return
