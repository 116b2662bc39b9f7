"""One function over many pieces in several processes, the results in the order of the pieces."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import chain, islice
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from evenhand.errors import EvenhandError, PartialFailure, in_shell, is_shell

Piece = TypeVar("Piece")
Result = TypeVar("Result")

AHEAD = 2  # pieces in progress in addition to one per worker


def ordered(
    task: Callable[[Piece], Result], pieces: Iterator[Piece], workers: int
) -> Generator[tuple[Piece, Result], None, None]:
    """Yield each piece with the task's result, in order, holding at most `workers` + 2 pieces.

    With one worker, or with a single piece, the work is done in this process. Workers end at once
    when the generator is closed and when this process ends, even if it is killed.
    """
    ahead = list(islice(pieces, 2)) if workers > 1 else []
    pieces = chain(ahead, pieces)
    if len(ahead) < 2:
        for piece in pieces:
            yield piece, task(piece)
        return
    context = multiprocessing.get_context("spawn")
    receiver, lifeline = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, _begin, (receiver, task, is_shell()))
    running: deque[tuple[Piece, Future[Result]]] = deque()
    try:
        while True:
            for piece in islice(pieces, workers + AHEAD - len(running)):
                running.append((piece, _submit(pool, piece)))
            if not running:
                break
            piece, result = running.popleft()
            yield piece, result.result()
        pool.shutdown()
    except BrokenProcessPool:
        raise PartialFailure(
            "a worker process ended before its work was done: it was killed, perhaps for lack of "
            "memory"
        ) from None
    finally:
        lifeline.close()
        receiver.close()
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, piece: Piece) -> Future[Any]:
    """Submit a piece; a worker that is started for it does not receive Ctrl-C."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_work, piece)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


_task: Callable[..., object]
_shell: bool


def _begin(lifeline: Connection, task: Callable[..., object], shell: bool) -> None:
    """Prepare a worker, which gets the task once."""
    global _task, _shell
    _task, _shell = task, shell
    threading.Thread(target=end_with_parent, args=(lifeline,), daemon=True).start()


def end_with_parent(lifeline: Connection) -> None:
    """End this process when the parent closes the pipe or ends."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


def _work(piece: object) -> object:
    with in_shell(_shell):
        try:
            return _task(piece)
        except EvenhandError:
            raise
        except Exception as error:  # of any class, some of which cannot be pickled
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
