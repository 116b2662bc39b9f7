"""The number of threads of numeric libraries, whose idle threads do not spin.

Threads of one product wait for one another. Where another program occupies a core, all wait for the
one that has to share it, and by default OpenMP and OpenBLAS wait in a loop, which occupies the
other cores too. So threads sleep while they wait, and there are no more of them than free cores.

The libraries read the environment when they are loaded. `configure` sets it at the start of the
command line, and leaves alone what the user has set; in Python it has to be called before NumPy and
torch are imported, or is not needed: `OMP_NUM_THREADS` and `torch.set_num_threads` apply.
"""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SLEEP = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "KMP_BLOCKTIME": "0",
    "OPENBLAS_THREAD_TIMEOUT": "4",
}
"""Variables by which idle threads of GNU's and Intel's OpenMP and of OpenBLAS sleep at once."""
COUNT = "OMP_NUM_THREADS"
SAMPLES, PAUSE = 5, 0.003
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
LOAD = Path("/proc/loadavg")


@dataclass(frozen=True, slots=True)
class Choice:
    """Number of threads, the cores that this process may use, and who chose."""

    threads: int
    cores: int
    chosen_by: str

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def available_cores() -> int:
    """Count the cores that this process may use, by affinity and the limit of its cgroup."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    try:
        quota, period = CPU_MAX.read_text().split()[:2]
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no limit
        return cores


def count_busy() -> int:
    """Count the tasks of other programs that are running now; 0 where it is not known."""
    running = []
    try:
        for sample in range(SAMPLES):
            if sample:
                time.sleep(PAUSE)
            running.append(int(LOAD.read_text().split()[3].partition("/")[0]) - 1)
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, sorted(running)[SAMPLES // 2])


@lru_cache(maxsize=1)
def choose() -> Choice:
    """Choose the number of threads: as the environment says, or one for every free core."""
    cores = available_cores()
    given = os.environ.get(COUNT, "").split(",")[0]
    if given.isdecimal() and int(given) > 0:
        return Choice(int(given), cores, COUNT)
    free = min(cores, (os.cpu_count() or cores) - count_busy())
    return Choice(max(1, free), cores, "free cores")


_configured = False


def configure(threads: int | None = None) -> Choice:
    """Set the number of threads and how they wait, for libraries that are loaded from now on.

    Parameters
    ----------
    threads : int, optional
        By default `OMP_NUM_THREADS` or, without it, the number of free cores.

    Returns
    -------
    Choice
    """
    global _configured
    for name, value in SLEEP.items():
        os.environ.setdefault(name, value)
    if threads is not None:
        os.environ[COUNT] = str(threads)
        choose.cache_clear()
    choice = choose()
    os.environ[COUNT] = str(choice.threads)
    _configured = True
    return choice


def record() -> dict[str, object]:
    """The choice for the record of a run, with the number of threads that torch has now."""
    choice = choose() if _configured else Choice(0, available_cores(), "the caller")
    torch = sys.modules.get("torch")
    threads = choice.threads if torch is None else torch.get_num_threads()
    return {**choice.to_dict(), "threads": threads}


def resume(recorded: object) -> None:
    """Go on with the threads of a recorded run: the last bits of sums depend on their number.

    A number of threads that the user states is not changed.
    """
    threads = recorded.get("threads") if isinstance(recorded, dict) else None
    if not _configured or choose().chosen_by == COUNT:
        return
    if type(threads) is not int or threads < 1:
        return
    os.environ[COUNT] = str(threads)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
