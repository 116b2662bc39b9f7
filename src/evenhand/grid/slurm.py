"""Grids on Slurm: the cells are arrays of jobs, submitted through submitit.

Each job computes a share of the cells and is requeued when its time is over.
"""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import FrameType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.grid.run import (
    EARLY_DEATHS,
    RESUME,
    CellWorker,
    Engine,
    MissingCells,
    compute_cell,
    environment,
    thread_variables,
)
from evenhand.grid.spec import Cell
from evenhand.grid.store import Store

POLL_FOLDER = 0.5
"""Seconds between looks at the grid's folder."""
POLL_QUEUE = 10.0
"""Seconds between calls of squeue."""
END_SECONDS = 20.0
"""Seconds that jobs have to end by themselves when all cells are settled."""
SHARES_PER_WORKER, MAX_SHARES = 4, 1000
"""Jobs of an array: several per worker, so that slow cells do not hold up the rest."""
IDLE_RUNS = 10
"""Runs of a job up to its time limit in succession in which none of its cells was settled."""
REQUEUES = 1000
WARNING = 90
"""Seconds before its time limit at which a job receives a signal."""


class SlurmOptions(BaseModel):
    """Resources that each job requests from the cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    cluster: Literal["slurm", "local", "auto"] = Field(
        "slurm", description="local: the same jobs as processes here; auto: what is available."
    )
    partition: str | None = None
    account: str | None = None
    time: int = Field(60, ge=1, description="Minutes until a job ends and is requeued.")
    memory_gb: float | None = Field(None, gt=0)
    cpus: int | None = Field(None, ge=1, description="By default as many as threads.")
    gpus: int = Field(0, ge=0)
    requeue: bool = Field(
        True, description="false: the launcher submits a new job when the time of one is over."
    )
    setup: str | tuple[str, ...] = Field(
        (), description="Lines of the batch script before the worker, such as `module load cuda`."
    )

    @property
    def setup_lines(self) -> list[str]:
        return [self.setup] if isinstance(self.setup, str) else list(self.setup)


def _run_slurm(work: MissingCells, options: SlurmOptions) -> None:
    """Submit the cells as an array of jobs, and those that are left when a job ends again.

    Ctrl-C cancels the jobs. A killed launcher leaves them: they end when their cells are settled,
    or with their present cell once another launcher holds the folder.
    """
    jobs = _Jobs(work, options, _slurm_executor(work, options))
    shares = work.workers
    if jobs.executor.cluster != "local":
        shares = min(len(work.cells), MAX_SHARES, work.workers * SHARES_PER_WORKER)
    bounds = [len(work.cells) * number // shares for number in range(shares + 1)]
    try:
        jobs.submit([work.cells[first:last] for first, last in pairwise(bounds)])
        _watch(work, jobs)
        jobs.wait(END_SECONDS)
    finally:
        jobs.cancel()


def _watch(work: MissingCells, jobs: _Jobs) -> None:
    """Wait until all cells are settled; what a job leaves behind is submitted again."""
    left = list(work.cells)
    early_deaths = 0
    while True:
        ended = jobs.take_ended()  # looked at before the cells: jobs end when theirs are settled
        before = len(left)
        left = [cell for cell in left if not work.store.is_settled(cell.key)]
        work.show(len(work.cells) - len(left))
        if len(left) < before:
            early_deaths = 0
        again = []
        for job, cells in ended:
            if reason := _stop_reason(job):
                raise PartialFailure(f"{reason}; {RESUME}")
            open_cells = [cell for cell in cells if not work.store.is_settled(cell.key)]
            if not open_cells:
                continue
            begun = [cell for cell in open_cells if work.blame(cell)]
            early_deaths = 0 if begun else early_deaths + 1
            if early_deaths > EARLY_DEATHS * work.workers:
                raise PartialFailure(f"jobs end before they settle a cell: {_last_lines(job)}")
            again.append([cell for cell in open_cells if not work.store.is_settled(cell.key)])
        if again := [cells for cells in again if cells]:
            jobs.submit(again)
        elif not left:
            return
        time.sleep(POLL_FOLDER)


@dataclass
class _Jobs:
    """The submitted jobs, each with its share of the cells."""

    work: MissingCells
    options: SlurmOptions
    executor: Any
    active: list[tuple[Any, Sequence[Cell]]] = field(default_factory=list)
    submitted: int = 0
    asked: float = 0.0

    @property
    def name(self) -> str:
        return f"evenhand-{self.work.worker.launch}"

    def submit(self, shares: Sequence[Sequence[Cell]]) -> None:
        """Submit one array of jobs, one for each share."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        calls = []
        for cells in shares:
            worker = self.work.worker_of(self.submitted)
            calls.append(_Job(worker, tuple(cells), self.options))
            self.submitted += 1
        try:
            with environment(thread_variables(self.work.worker.threads)), self.executor.batch():
                jobs = [self.executor.submit(call) for call in calls]
        except (FailedJobError, FailedSubmissionError) as error:
            last = str(error).strip().splitlines()[-1]
            raise InputError(f"slurm: expected sbatch to take the jobs, it says: {last}") from None
        self.active += zip(jobs, shares, strict=True)
        self.asked = time.monotonic()

    def take_ended(self, every: float = POLL_QUEUE) -> list[tuple[Any, Sequence[Cell]]]:
        """Remove and return the jobs that have ended; Slurm is asked only now and then."""
        queued: set[str] | None = None
        if self.executor.cluster != "local" and time.monotonic() - self.asked >= every:
            self.asked = time.monotonic()
            queued = _queued_jobs(self.name)
        ended: list[tuple[Any, Sequence[Cell]]] = []
        active: list[tuple[Any, Sequence[Cell]]] = []
        for job, cells in self.active:
            if self.executor.cluster == "local":
                over = job.done()
            else:
                over = job.paths.result_pickle.exists() or (
                    queued is not None and job.job_id not in queued
                )
            (ended if over else active).append((job, cells))
        self.active = active
        return ended

    def wait(self, seconds: float) -> None:
        """Let the jobs end by themselves for some time."""
        end = time.monotonic() + seconds
        while self.active and time.monotonic() < end:
            self.take_ended(every=1)
            time.sleep(0.1)

    def cancel(self) -> None:
        """Cancel the jobs that have not ended."""
        if self.executor.cluster == "local":
            for job, _ in self.active:
                if not job.done():
                    job.cancel()
            self.wait(END_SECONDS)
        elif self.submitted:
            command = ["scancel", "--name", self.name, "--user", getpass.getuser()]
            subprocess.run(command, capture_output=True, timeout=60, check=False)


@dataclass
class _Job:
    """A share of the cells as submitit runs it; `idle_runs` runs before settled none of them."""

    worker: CellWorker
    cells: tuple[Cell, ...]
    options: SlurmOptions
    idle_runs: int = 0
    settled_before: int = field(default=-1, init=False)

    def __call__(self) -> str:
        """Compute the cells; returns the reason for which the launch has to end, if any."""
        store = Store(self.worker.folder)
        self.settled_before = self._count_settled()
        preempt = _preempt_signal()
        requeue = signal.getsignal(preempt)  # of submitit: it saves what `checkpoint` returns
        for signum in (preempt, signal.SIGTERM):
            signal.signal(signum, _raise_stopped_once)
        try:
            for cell in self.cells:
                if store.current_launch() not in (None, self.worker.launch):
                    return ""  # another launcher took over
                if reason := compute_cell(self.worker, cell):
                    return reason
        except Stopped as stopped:
            if stopped.signum != preempt or not self.options.requeue:
                return ""
            if self._count_idle_runs() >= IDLE_RUNS:
                return (
                    f"no cell was computed in {IDLE_RUNS} jobs of {self.options.time} minutes each,"
                    " one after the other: expected a longer time"
                )
            if callable(requeue):
                requeue(preempt, None)
        return ""

    def checkpoint(self) -> object:
        """Return what the job does when it is requeued: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(replace(self, idle_runs=self._count_idle_runs()))

    def _count_idle_runs(self) -> int:
        return self.idle_runs + 1 if self._count_settled() == self.settled_before else 0

    def _count_settled(self) -> int:
        store = Store(self.worker.folder)
        return sum(store.is_settled(cell.key) for cell in self.cells)


class Stopped(BaseException):
    """The job has to stop: its cell is neither computed nor failed."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signum)


def _raise_stopped_once(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    for number in (_preempt_signal(), signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped(signum)


def _preempt_signal() -> signal.Signals:
    """Return the signal that submitit sends to a job whose time is over."""
    return signal.Signals["SIG" + os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")]


def _slurm_executor(work: MissingCells, options: SlurmOptions) -> Any:
    try:
        import submitit
    except ImportError:
        raise MissingExtraError("submitit", "the engine slurm", "evenhand[slurm]") from None
    cluster = None if options.cluster == "auto" else options.cluster
    folder = work.store.log / "submitit"
    try:
        executor = submitit.AutoExecutor(folder, cluster, slurm_max_num_timeout=REQUEUES)
    except RuntimeError:
        raise InputError(
            "cluster: expected a machine with Slurm's commands, there is no srun here; 'local' "
            "runs the jobs without Slurm"
        ) from None
    cpus = options.cpus or work.worker.threads
    parameters = {
        "name": f"evenhand-{work.worker.launch}",
        "timeout_min": options.time,
        "cpus_per_task": cpus,
        "gpus_per_node": options.gpus or None,
        "mem_gb": options.memory_gb,
        "slurm_array_parallelism": work.workers,
        "slurm_partition": options.partition,
        "slurm_account": options.account,
        "slurm_setup": options.setup_lines or None,
        "slurm_signal_delay_s": min(WARNING, options.time * 30),
        "slurm_srun_args": [f"--cpus-per-task={cpus}"],  # sbatch does not pass it on since 22.05
        "slurm_additional_parameters": {"requeue" if options.requeue else "no-requeue": True},
    }
    executor.update_parameters(**{name: value for name, value in parameters.items() if value})
    return executor


def _queued_jobs(name: str) -> set[str] | None:
    """Return the jobs of a name that have not ended, None where Slurm does not answer."""
    command = ["squeue", "--noheader", "--array", "--format=%i", "--name", name]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return set(process.stdout.split())


def _stop_reason(job: Any) -> str:
    """Return why the launch has to end after a job; empty where it may go on."""
    if not job.paths.result_pickle.exists() or job.exception() is not None:
        return ""
    return str(job.result())


def _last_lines(job: Any) -> str:
    """Return the last lines that a job printed, and their file."""
    for path in (job.paths.stderr, job.paths.stdout):
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            if lines:
                return f"{' | '.join(lines[-2:])}; see {path}"
    return f"it printed nothing; see {job.paths.folder}"


ENGINE = Engine(_run_slurm, SlurmOptions)
