"""Runs that print how far they are, line by line, and are stopped on the way.

Each run is a process of its own. It is forked from a server that has already imported the large
libraries, which would take several seconds in every run.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "altair",
        "scipy.stats",
        "sklearn.linear_model",
        "torch._dynamo",
        "transformers.models.auto.modeling_auto",
        "transformers.models.auto.tokenization_auto",
        "transformers.models.bert.modeling_bert",
        "evenhand.cli.fewshot",
        "evenhand.cli.finetune",
        "evenhand.fewshot.runs",
        "evenhand.grid.fewshot",
        "evenhand.models.finetuning.training",
        "evenhand.report.page",
    ]
)


def _run(place: Path, arguments: tuple[str, ...], output: Connection) -> None:
    """`run.py` of the folder, as if it were started there."""
    errors = os.open(place / "errors.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output.fileno(), 1)
    os.dup2(errors, 2)
    os.chdir(place)
    sys.argv = ["run.py", *arguments]
    # a job in the background begins with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    runpy.run_path("run.py", run_name="__main__")


@contextmanager
def started(place: Path, *arguments: str) -> Iterator[tuple[ForkServerProcess, Iterator[str]]]:
    """A run on one core, as its results may depend on it, and the lines that it prints."""
    assert os.environ["OMP_NUM_THREADS"] == "1"
    reader, writer = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_run, args=(place, arguments, writer))
    process.start()
    writer.close()
    with reader, open(reader.fileno(), closefd=False) as lines:
        yield process, lines
    process.join()


def errors(place: Path) -> str:
    """What the last run in the folder wrote to stderr."""
    return (place / "errors.txt").read_text()


def finished(place: Path, *arguments: str) -> list[str]:
    """Run to the end; the lines that were printed."""
    with started(place, *arguments) as (process, output):
        lines = [line.removesuffix("\n") for line in output]
    assert process.exitcode == 0, errors(place)
    return lines


def stopped(
    place: Path, *arguments: str, lines: int, wait: float, how: signal.Signals = signal.SIGKILL
) -> int:
    """Stop a run some time after so many lines; its exit code, negative for a signal."""
    with started(place, *arguments) as (process, output):
        for _ in range(lines):
            assert next(output, None) is not None, errors(place)
        time.sleep(wait)
        assert process.pid is not None
        os.kill(process.pid, how)
        for _ in output:  # what it has to say until it ends
            pass
    assert process.exitcode is not None
    return process.exitcode


def killed(place: Path, *arguments: str, lines: int, wait: float) -> None:
    """Kill a run some time after so many lines."""
    assert stopped(place, *arguments, lines=lines, wait=wait) == -signal.SIGKILL
