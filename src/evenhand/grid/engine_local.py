"""Workers as processes of this machine, begun anew when one dies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from evenhand.errors import PartialFailure
from evenhand.grid.engine_options import threads_of
from evenhand.grid.worker import FULL, Worker

__all__ = ["run_local"]

LOOKING = 0.1
"""Seconds between looks at the workers."""
IDLE_DEATHS = 3
"""Workers in a row that may die without any cell having been settled."""


def run_local(
    worker: Worker,
    devices: Sequence[str],
    left: Callable[[], int],
    log: Path,
) -> None:
    """Keep `worker.workers` processes at work until no cell is left.

    `left` counts the cells that have neither result nor failure and is told to the user too.
    """
    log.mkdir(parents=True, exist_ok=True)
    every = [
        _Process(
            replace(worker, number=number, device=devices[number % len(devices)]),
            log / f"{worker.launch}-{number}.log",
        )
        for number in range(worker.workers)
    ]
    deaths, before = 0, left()
    try:
        while (count := left()) > 0:
            if count < before:
                deaths, before = 0, count
            for each in every:
                code = each.code()
                if code is None:
                    continue
                if code == FULL:
                    raise PartialFailure(f"{each.last_words()}; the same command goes on from here")
                deaths += 1
                if deaths > IDLE_DEATHS * len(every):
                    raise PartialFailure(
                        f"workers die at once ({_how(code)}): {each.last_words()}; see {each.log}"
                    )
                each.start()
            time.sleep(LOOKING)
    finally:
        for each in every:
            each.close()
        for each in every:
            each.end()


@dataclass
class _Process:
    worker: Worker
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin, or begin anew."""
        self.close()
        environment = {**os.environ, **threads_of(self.worker.threads)}
        with self.log.open("ab") as log:
            self.process = _started(self.worker.as_arguments(), environment, log)

    def code(self) -> int | None:
        """What it ended with; None while it works."""
        return None if self.process is None else self.process.poll()

    def close(self) -> None:
        """Ask it to stop."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def end(self) -> None:
        """Wait for it, though not for long."""
        if self.process is None:
            return
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self) -> str:
        """The last line it wrote."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def _started(
    arguments: Sequence[str], environment: dict[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "evenhand.grid", *arguments],
        stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment,
        start_new_session=True,  # Ctrl-C is for the launcher alone
    )  # fmt: skip


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"
