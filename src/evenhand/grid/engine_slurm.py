"""Workers as jobs of a Slurm cluster, through submitit: an array, requeued when its time is over.

The jobs need nothing of the launcher but the folder: when it is killed they go on, and another
launcher shares the work with them.
"""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.folders import NO_ROOM
from evenhand.grid.engine_options import SlurmOptions, checked, environment, threads_of
from evenhand.grid.store import Store
from evenhand.grid.worker import Worker, work

__all__ = ["run_slurm"]

LOOKING = 0.5
"""Seconds between looks at the grid's folder."""
ASKING = 10.0
"""Seconds between questions to Slurm."""
ENDING = 20.0
"""Seconds that jobs may take to end by themselves when all is done."""
IDLE_DEATHS = 3
"""Jobs of each worker that may end in a row without any cell having been settled."""
IDLE_RUNS = 10
"""Runs of a job up to its time limit in a row in which no cell was settled."""
REQUEUES = 1000
WARNING = 90
"""Seconds before its time is over at which a job is told so."""


def run_slurm(
    worker: Worker, devices: Sequence[str], left: Callable[[], int], log: Path, **options: Any
) -> None:
    """Keep `worker.workers` jobs at work until no cell is left; options as in SlurmOptions.

    Stopped by Ctrl-C it cancels its jobs; killed it leaves them to their work.
    """
    chosen = checked(SlurmOptions, "slurm", options)
    every = [
        replace(worker, number=number, device=devices[number % len(devices)])
        for number in range(worker.workers)
    ]
    jobs = _Jobs(_executor(worker, chosen, log / "submitit"), f"evenhand-{worker.launch}", chosen)
    try:
        jobs.submit(every)
        _wait(jobs, left)
        jobs.wait(ENDING)
    finally:
        jobs.cancel()


def _wait(jobs: _Jobs, left: Callable[[], int]) -> None:
    """Until no cell is left; jobs that ended before are submitted anew."""
    deaths, before = 0, left()
    while True:
        ended = jobs.ended()
        if (count := left()) == 0:  # looked at after the jobs: they end when all is done
            return
        if count < before:
            deaths, before = 0, count
        for one in ended:
            if why := _forbids(jobs.every[one]):
                raise PartialFailure(f"{why}; the same command goes on from here")
            deaths += 1
            if deaths > IDLE_DEATHS * len(jobs.every):
                raise PartialFailure(f"jobs end at once: {_last_words(jobs.every[one])}")
        if ended:
            jobs.submit([jobs.workers[one] for one in ended])
        time.sleep(LOOKING)


@dataclass
class _Jobs:
    """The job of each worker, by its number."""

    executor: Any
    name: str
    options: SlurmOptions
    every: dict[int, Any] = field(default_factory=dict)
    workers: dict[int, Worker] = field(default_factory=dict)
    asked: float = 0.0

    def submit(self, workers: Sequence[Worker]) -> None:
        """One array of jobs, one for each of the workers."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        try:
            with environment(threads_of(workers[0].threads)), self.executor.batch():
                jobs = [self.executor.submit(_Job(each, self.options)) for each in workers]
        except (FailedJobError, FailedSubmissionError) as error:
            words = str(error).strip().splitlines()[-1]
            raise InputError(f"slurm: expected sbatch to take the jobs, it says: {words}") from None
        for each, job in zip(workers, jobs, strict=True):
            self.workers[each.number], self.every[each.number] = each, job
        self.asked = time.monotonic()

    def ended(self, every: float = ASKING) -> list[int]:
        """The workers whose jobs have ended; Slurm is asked only now and then."""
        if self.executor.cluster == "local":
            return [number for number, job in self.every.items() if job.done()]
        over = [n for n, job in self.every.items() if job.paths.result_pickle.exists()]
        if time.monotonic() - self.asked >= every:
            self.asked = time.monotonic()
            known = _queued(self.name)
            if known is not None:
                over += [
                    number for number, job in self.every.items()
                    if job.job_id not in known and number not in over
                ]  # fmt: skip
        return over

    def wait(self, seconds: float) -> None:
        """Let the jobs end by themselves, though not for long."""
        end = time.monotonic() + seconds
        while len(self.ended(every=1)) < len(self.every) and time.monotonic() < end:
            time.sleep(0.1)

    def cancel(self) -> None:
        """End what has not ended."""
        if self.executor.cluster == "local":
            for job in self.every.values():
                if not job.done():
                    job.cancel()
            self.wait(ENDING)
        else:
            told = ["scancel", "--name", self.name, "--user", getpass.getuser()]
            subprocess.run(told, capture_output=True, timeout=60, check=False)


@dataclass
class _Job:
    """A worker as submitit runs it; `idle` runs before this one have settled nothing."""

    worker: Worker
    options: SlurmOptions
    idle: int = 0
    before: int = field(default=-1, init=False)

    def __call__(self) -> str:
        """Work until all is done; gives why it must not be begun anew, if that is so."""
        self.before = self._settled()
        told = _preempting()
        requeue = signal.getsignal(told)  # submitit's own: it saves what `checkpoint` gives
        for signum in (told, signal.SIGTERM):
            signal.signal(signum, _stop)
        try:
            work(self.worker)
        except _Stopped as stopped:  # by now all claims are released
            if stopped.signum != told or not self.options.requeue:
                return ""
            if self._idle() >= IDLE_RUNS:
                return (
                    f"no cell was computed in {IDLE_RUNS} jobs of {self.options.time} minutes each,"
                    " one after the other: expected a longer time"
                )
            if callable(requeue):
                requeue(told, None)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return f"{error.filename or self.worker.folder}: {error.strerror}"
        return ""

    def checkpoint(self) -> Any:
        """What the job does when it is requeued: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(replace(self, idle=self._idle()))

    def _idle(self) -> int:
        return self.idle + 1 if self._settled() == self.before else 0

    def _settled(self) -> int:
        store = Store(self.worker.folder)
        return sum(store.settled(cell.key) for cell in store.cells(self.worker.grid))


class _Stopped(BaseException):
    """The job's time is over, or it was cancelled: nothing is recorded."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signum)


def _stop(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    for each in (_preempting(), signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # once is enough
    raise _Stopped(signum)


def _preempting() -> signal.Signals:
    """The signal by which submitit tells a job that its time is over."""
    return signal.Signals["SIG" + os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")]


def _executor(worker: Worker, options: SlurmOptions, folder: Path) -> Any:
    try:
        import submitit
    except ImportError:
        raise MissingExtraError("submitit", "the engine slurm", "evenhand[slurm]") from None
    cluster = None if options.cluster == "auto" else options.cluster
    try:
        executor = submitit.AutoExecutor(folder, cluster, slurm_max_num_timeout=REQUEUES)
    except RuntimeError:
        raise InputError(
            "cluster: expected a machine with Slurm's commands, there is no srun here; 'local' "
            "runs the jobs without Slurm"
        ) from None
    cpus = options.cpus or worker.threads
    asked = {
        "name": f"evenhand-{worker.launch}", "timeout_min": options.time, "cpus_per_task": cpus,
        "gpus_per_node": options.gpus or None, "mem_gb": options.memory_gb,
        "slurm_partition": options.partition, "slurm_account": options.account,
        "slurm_setup": options.setup_lines or None,
        "slurm_signal_delay_s": min(WARNING, options.time * 30),
        "slurm_srun_args": [f"--cpus-per-task={cpus}"],  # not passed on by sbatch since 22.05
        "slurm_additional_parameters": {"requeue" if options.requeue else "no-requeue": True},
    }  # fmt: skip
    executor.update_parameters(**{name: value for name, value in asked.items() if value})
    return executor


def _queued(name: str) -> set[str] | None:
    """The jobs of a name that have not ended; None where Slurm does not answer."""
    told = ["squeue", "--noheader", "--array", "--format=%i", "--name", name]
    try:
        found = subprocess.run(told, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(found.stdout.split())


def _forbids(job: Any) -> str:
    """Why a job that ended must not be begun anew; nothing where it may."""
    if not job.paths.result_pickle.exists() or job.exception() is not None:
        return ""
    return str(job.result())


def _last_words(job: Any) -> str:
    """The last lines a job wrote, and where."""
    for path in (job.paths.stderr, job.paths.stdout):
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            if lines:
                return f"{' | '.join(lines[-2:])}; see {path}"
    return f"it said nothing; see {job.paths.folder}"
