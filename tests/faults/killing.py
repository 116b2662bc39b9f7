"""Processes that tell how far they are, a line at a time, and are killed on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    """`run.py` of the folder with some arguments, on one core, as its results may depend on it."""
    return subprocess.Popen(
        [sys.executable, "run.py", *arguments], cwd=place, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finished(place: Path, *arguments: str) -> list[str]:
    """Run to the end; the lines of progress."""
    with start(place, *arguments) as process:
        lines, errors = process.communicate()
    assert process.returncode == 0, errors
    return lines.splitlines()


def killed(place: Path, *arguments: str, lines: int, wait: float) -> None:
    """Kill a run some time after so many lines of progress."""
    with start(place, *arguments) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        time.sleep(wait)
        process.kill()
    assert process.returncode == -signal.SIGKILL
