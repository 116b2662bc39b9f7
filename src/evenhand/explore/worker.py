"""One thread that does the work of models and vectors, one job after the other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

WAITING = 8
"""So many jobs may wait."""


class QueueFullError(Exception):
    """Too many jobs are waiting."""


class SupersededError(Exception):
    """A later job of the same view took the place of this one before it began."""


@dataclass
class _Job:
    view: str
    work: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


class Worker:
    """Runs jobs in their order, in a thread of its own; a job that has begun is finished.

    Parameters
    ----------
    limit : int
        How many jobs may wait.

    Examples
    --------
    >>> worker = Worker()
    >>> worker.submit("a view", lambda: 2 + 2).result()
    4
    """

    def __init__(self, limit: int = WAITING) -> None:
        self.limit = limit
        self._jobs: deque[_Job] = deque()
        self._ready = threading.Condition()
        self._thread: threading.Thread | None = None

    def submit(self, view: str, work: Callable[[], Any]) -> Future[Any]:
        """Append a job, which takes the place of one that waits for the same view."""
        job = _Job(view, work)
        with self._ready:
            for earlier in [each for each in self._jobs if each.view == view]:
                self._jobs.remove(earlier)
                earlier.future.set_exception(SupersededError())
            if len(self._jobs) >= self.limit:
                raise QueueFullError
            self._jobs.append(job)
            if self._thread is None:
                # a daemon, so that a long computation does not delay the end of the program
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._ready.notify()
        return job.future

    def _serve(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._jobs)
                job = self._jobs.popleft()
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                job.future.set_result(job.work())
            except BaseException as error:
                job.future.set_exception(error)
