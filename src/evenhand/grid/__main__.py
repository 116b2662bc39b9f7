"""A worker as a process of its own, as the local engine starts it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

from evenhand.grid.claims import PATIENCE
from evenhand.grid.worker import FULL, Worker, work

__all__ = ["main"]

GRACE = 1.0


class Stopped(BaseException):
    """The worker was asked to stop: what it holds is given back, and nothing is recorded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Work until all is done; a worker ends with the launcher that holds its standard input."""
    parser = argparse.ArgumentParser(prog="python -m evenhand.grid", description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--grid", required=True)
    parser.add_argument("--launch", default="")
    parser.add_argument("--number", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--patience", type=float, default=PATIENCE)
    chosen = vars(parser.parse_args(arguments))
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher hears it and stops us
    threading.Thread(target=_until_closed, args=(sys.stdin.fileno(),), daemon=True).start()
    try:
        work(Worker(**chosen))
    except Stopped:
        return 0
    except OSError as error:
        print(f"{error.filename or chosen['folder']}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return FULL
    return 0


def _stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise Stopped


def _until_closed(descriptor: int) -> None:
    """Wait until the launcher is gone, then stop; a worker that is done ends by itself."""
    while os.read(descriptor, 1):
        pass
    time.sleep(GRACE)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
