"""Launch a grid: compute the missing cells on an existing engine and report failures together.

The engines schedule: a `ProcessPoolExecutor` per worker on this machine, the job arrays of Slurm
through submitit, or actors of Ray. The launcher holds the lock of the grid's folder and hands out
the cells without a result; `compute_cell` is the same on every engine.
"""

from __future__ import annotations

import getpass
import logging
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import (
    EvenhandError,
    FileError,
    InputError,
    MissingExtraError,
    PartialFailure,
    UnknownNameError,
)
from evenhand.files import DISK_FULL
from evenhand.grid.spec import Cell, Grid, cell_key
from evenhand.grid.store import DamagedError, Store
from evenhand.grid.task import Workspace, load_task

__all__ = ["Launch", "run"]

ATTEMPTS = 3
"""Workers that may die while computing a cell before the cell counts as failed."""
EARLY_DEATHS = 3
"""Deaths per worker in succession before a cell is begun, after which the launch ends."""
SHOWN_REASONS = 5
RESUME = "finished cells are saved, and the same command resumes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launch found: the number of cells, those already present, and damaged results."""

    cells: int
    present: int
    damaged: tuple[str, ...]


def run(
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    on: str = "local",
    workers: int | None = None,
    devices: Sequence[str] = ("auto",),
    threads: int = 1,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Launch:
    """Compute all cells of a grid that have no result in the folder yet.

    Parameters
    ----------
    grid
        The grid, from `read_grid` or `make_grid`.
    out
        The folder of the grid. Several grids may share it, one after another.
    on
        The engine: `local` processes, `slurm` jobs or `ray` actors.
    workers
        Cells computed at the same time; by default one per core.
    devices
        Torch devices, assigned to the workers in turn.
    threads
        Threads of each worker.
    options
        Options of the engine, as in `SlurmOptions` and `RayOptions`.
    progress
        Called with the number of settled cells, their total, and further text.
    notify
        Called with a line of text for each damaged result that is computed again.

    Returns
    -------
    Launch
        What was in the folder before.

    Raises
    ------
    FileError
        Where another launcher is at work in the folder.
    PartialFailure
        Where cells failed, or the disk is full. What was computed is saved; the next launch tries
        the rest again.
    """
    count = workers or len(os.sched_getaffinity(0))
    if count < 1 or threads < 1 or not devices:
        raise InputError(f"workers and threads: expected 1 or more, got {count} and {threads}")
    if on not in _ENGINES:
        raise UnknownNameError("engine", on, _ENGINES)
    start, model = _ENGINES[on]
    checked = check_options(model, on, options or {})
    store = Store(Path(out).resolve())
    launch = uuid.uuid4().hex[:12]
    try:
        with store.lock_folder(launch):
            store.save_grid(grid.to_dict())
            store.remove_partial()
            found = _inspect(store, grid, notify)
            store.clear_failures([cell.key for cell in grid.cells])
            missing = [cell for cell in grid.cells if not store.has(cell.key)]
            work = _Work(
                store=store,
                cells=sorted(missing, key=lambda cell: cell.group),
                total=len(grid.cells),
                workers=min(count, len(missing)),
                devices=tuple(devices),
                worker=Worker(
                    folder=str(store.path),
                    source=str(Path.cwd()),
                    task=grid.task_name,
                    launch=launch,
                    threads=threads,
                ),
                progress=progress,
            )
            work.show(0)
            if missing:
                start(work, checked)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        raise PartialFailure(
            f"{error.filename or store.path}: {error.strerror}; {RESUME}"
        ) from error
    _raise_failures(store, grid.cells)
    return found


def _inspect(store: Store, grid: Grid, notify: Callable[[str], None] | None) -> Launch:
    """Count the results; remove those that are damaged or whose files are no longer intact."""
    present, damaged = 0, []
    is_intact = getattr(grid.task, "intact", None)
    for cell, settings in zip(grid.cells, grid.settings, strict=True):
        try:
            result = store.result(cell.key)
            if result is None:
                continue
            if is_intact is None or is_intact(settings, result):
                present += 1
                continue
            problem = f"{cell.name}: the files it had written are missing or changed"
        except DamagedError as error:
            problem = str(error)
        damaged.append(cell.key)
        store.remove(cell.key)
        if notify is not None:
            notify(f"{problem}: computed again")
    return Launch(cells=len(grid.cells), present=present, damaged=tuple(damaged))


def _raise_failures(store: Store, cells: Sequence[Cell]) -> None:
    failed = [(cell, why) for cell in cells if (why := store.failure(cell.key)) is not None]
    if not failed:
        return
    reasons = Counter(reason for _, reason in failed)
    lines = []
    for reason, count in reasons.most_common(SHOWN_REASONS):
        first = next(cell.name for cell, why in failed if why == reason)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"{first}{more}: {reason}")
    if len(reasons) > SHOWN_REASONS:
        lines.append(f"{len(reasons) - SHOWN_REASONS} more reasons in {store.path / 'failed'}")
    raise PartialFailure(
        f"{len(failed)} of {len(cells)} cells failed, the others are saved: " + "; ".join(lines)
    )


# ---- what every worker does


@dataclass(frozen=True, kw_only=True)
class Worker:
    """What a worker needs to know, as plain values that every engine can send."""

    folder: str
    source: str
    task: str
    launch: str
    device: str = "auto"
    threads: int = 1


def compute_cell(worker: Worker, cell: Cell) -> str:
    """Compute a cell and save its result, or why it has none.

    Returns the reason for which the launch has to end, the full disk; an empty text otherwise.
    """
    store = Store(worker.folder)
    try:
        with store.lock_cell(cell.key):
            if not store.is_settled(cell.key):
                _compute(worker, store, cell)
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        return f"{error.filename or worker.folder}: {error.strerror}"
    return ""


def _compute(worker: Worker, store: Store, cell: Cell) -> None:
    began = time.monotonic()
    store.mark_begun(cell.key)
    try:
        _prepare_process(worker)
        task = load_task(worker.task)
        settings = task.settings(**cell.settings)
        identity = task.identity(settings)
        if cell_key(worker.task, task.version, identity) != cell.key:
            raise InputError("expected the files as they were at the launch, got others")
        workspace = Workspace(
            work=store.work(cell.key),
            cache=store.cache,
            device=worker.device,
            threads=worker.threads,
            lock=store.lock_cache,
        )
        result = task.compute(settings, workspace)
        store.note_time(cell.key, time.monotonic() - began)
        store.save(worker.task, task.version, identity, result)
    except (Exception, SystemExit) as error:
        if (full := _find_full_disk(error)) is not None:
            raise full from None
        reason = str(error) if isinstance(error, EvenhandError) else _describe(error)
        store.fail(cell, reason, traceback.format_exc())
    finally:
        store.unmark_begun(cell.key)


def _prepare_process(worker: Worker) -> None:
    """Set the folder that file names are relative to, and the number of threads."""
    try:
        os.chdir(worker.source)
    except FileNotFoundError:
        raise FileError(
            worker.source, "expected the folder the grid was launched from, it is not there"
        ) from None
    os.environ.update(_thread_variables(worker.threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if (torch := sys.modules.get("torch")) is not None:  # otherwise it reads the environment
        torch.set_num_threads(worker.threads)


def _find_full_disk(error: BaseException | None) -> OSError | None:
    """Return the full disk that caused an error: every other cell would fail like it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_FULL:
            return error
        error = error.__cause__ or error.__context__
    return None


def _describe(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that numeric libraries read when they are imported."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment for a while; other changes made meanwhile are undone too."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


class _Stopped(BaseException):
    """The worker has to stop: the cell is neither computed nor failed."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signum)


# ---- handing out cells to workers that the launcher holds


@dataclass(kw_only=True)
class _Work:
    """The missing cells of a launch, in the order in which they are handed out."""

    store: Store
    cells: list[Cell]
    total: int
    workers: int
    devices: tuple[str, ...]
    worker: Worker
    progress: Callable[[int, int, str], None] | None
    deaths: Counter[str] = field(default_factory=Counter)

    def worker_of(self, number: int) -> Worker:
        return replace(self.worker, device=self.devices[number % len(self.devices)])

    def show(self, settled: int) -> None:
        """Report how many of the missing cells are settled."""
        if self.progress is not None:
            self.progress(self.total - len(self.cells) + settled, self.total, "")

    def blame(self, cell: Cell) -> bool:
        """Count the death of a worker against the cell it had begun; says whether it had one."""
        if not self.store.unmark_begun(cell.key):
            return False
        self.deaths[cell.key] += 1
        if (count := self.deaths[cell.key]) >= ATTEMPTS:
            self.store.fail(cell, f"{count} workers died while computing it (out of memory?)")
        return True


class _Slot(Protocol):
    """One worker, which computes one cell at a time and can be replaced."""

    def submit(self, cell: Cell) -> Future[str]: ...
    def restart(self) -> None: ...
    def last_words(self, error: BaseException) -> str:
        """Return what is known of the worker's end."""

    def abort(self) -> None:
        """End the worker now."""

    def close(self) -> None:
        """End the worker once it is idle."""


def _hand_out(work: _Work, slots: Sequence[_Slot]) -> None:
    """Compute all cells; a worker that dies is replaced and its cell tried again."""
    waiting, idle = deque(work.cells), deque(slots)
    running: dict[Future[str], tuple[_Slot, Cell]] = {}
    settled = early_deaths = 0
    try:
        while waiting or running:
            while waiting and idle:
                slot, cell = idle.popleft(), waiting.popleft()
                work.store.unmark_begun(cell.key)
                running[slot.submit(cell)] = slot, cell
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                slot, cell = running.pop(future)
                idle.append(slot)
                error = future.exception()
                if error is None and (reason := future.result()):
                    raise PartialFailure(f"{reason}; {RESUME}")
                if error is not None:
                    early_deaths = 0 if work.blame(cell) else early_deaths + 1
                    if early_deaths > EARLY_DEATHS * len(slots):
                        raise PartialFailure(
                            f"workers die before they begin a cell: {slot.last_words(error)}"
                        )
                    slot.restart()
                    if not work.store.is_settled(cell.key):
                        waiting.appendleft(cell)
                        continue
                settled += 1
                work.show(settled)
    except BaseException:
        for slot in slots:
            slot.abort()
        raise
    finally:
        for slot in slots:
            slot.close()


# ---- local processes

GRACE = 5.0
"""Seconds that a worker process has to stop by itself."""


def _run_local(work: _Work, options: BaseModel) -> None:  # noqa: ARG001
    work.store.log.mkdir(parents=True, exist_ok=True)
    slots = []
    for number in range(work.workers):
        log = work.store.log / f"{work.worker.launch}-{number}.log"
        slots.append(_Process(work.worker_of(number), log))
    _hand_out(work, slots)


@dataclass
class _Process:
    """A worker process: a pool of one, so that its death is the death of one known cell."""

    worker: Worker
    log: Path
    pool: ProcessPoolExecutor | None = field(default=None, init=False)
    lifeline: Connection | None = field(default=None, init=False)

    def submit(self, cell: Cell) -> Future[str]:
        try:
            return self._started().submit(compute_cell, self.worker, cell)
        except BrokenProcessPool:  # it was killed while it was idle
            self.restart()
            return self._started().submit(compute_cell, self.worker, cell)

    def restart(self) -> None:
        self.abort()
        self.close()

    def last_words(self, error: BaseException) -> str:
        lines: list[str] = []
        with suppress(OSError):
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else _describe(error)}; see {self.log}"

    def abort(self) -> None:
        if self.lifeline is not None:
            self.lifeline.close()

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
        self.abort()
        self.pool = self.lifeline = None

    def _started(self) -> ProcessPoolExecutor:
        if self.pool is None:
            context = multiprocessing.get_context("spawn")
            receiver, self.lifeline = context.Pipe(duplex=False)
            self.pool = ProcessPoolExecutor(
                1,
                mp_context=context,
                initializer=_begin_process,
                initargs=(receiver, str(self.log)),
            )
            with _spawning(self.worker.threads):
                self.pool.submit(os.getpid)
            receiver.close()
        return self.pool


@contextmanager
def _spawning(threads: int) -> Iterator[None]:
    """Start processes that have their number of threads, and neither `__main__` nor Ctrl-C.

    A spawned process would import the launcher's main module, which cells do not need, and which
    a script without `if __name__ == "__main__"` does not survive.
    """
    main = sys.modules["__main__"]
    names: tuple[str, ...] = ("__file__", "__spec__")
    hidden = {name: vars(main).pop(name) for name in names if name in vars(main)}
    main.__spec__ = None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _environment(_thread_variables(threads)):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        vars(main).update(hidden)


def _begin_process(lifeline: Connection, log: str) -> None:
    """Prepare a worker process: its signals, its log, and its end when the launcher ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launcher, which stops us
    signal.signal(signal.SIGTERM, _raise_stopped)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    threading.Thread(target=_end_with_launcher, args=(lifeline,), daemon=True).start()


def _end_with_launcher(lifeline: Connection) -> None:
    """Wait until the launcher closes the connection or ends, then end this process."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def _raise_stopped(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    signal.signal(signum, signal.SIG_IGN)
    raise _Stopped(signum)


# ---- options of the clusters


class _NoOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SlurmOptions(BaseModel):
    """What each job requests from the cluster."""

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


class RayOptions(BaseModel):
    """Which Ray cluster, and what each actor requests from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str | None = Field(
        None, description="auto, HOST:PORT or ray://HOST:PORT; by default a Ray of our own."
    )
    cpus_per_worker: float | None = Field(None, ge=0, description="By default as threads.")
    gpus_per_worker: float = Field(0, ge=0)


Options = TypeVar("Options", bound=BaseModel)


def check_options(model: type[Options], engine: str, given: Mapping[str, Any]) -> Options:
    """Return the validated options of an engine.

    >>> check_options(SlurmOptions, "slurm", {"partion": "gpu"})
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown option of slurm 'partion': did you mean ...
    >>> check_options(SlurmOptions, "slurm", {"time": "soon"})
    Traceback (most recent call last):
    evenhand.errors.InputError: slurm: time: expected a valid integer, ..., got 'soon'
    """
    for name in given:
        if name not in model.model_fields:
            raise UnknownNameError(f"option of {engine}", name, model.model_fields)
    try:
        return model(**given)
    except ValidationError as error:
        first = error.errors()[0]
        problem = first["msg"].replace("Input should be ", "expected ")
        raise InputError(
            f"{engine}: {first['loc'][0]}: {problem}, got {first['input']!r}"
        ) from None


# ---- Ray

OBJECT_STORE_BYTES = 80 * 2**20
"""The minimum of Ray: nothing goes through its object store."""
CONNECT_SECONDS = 10.0
MAX_SOCKET_FOLDER = 30
"""Characters of the temporary folder's name; the names of the sockets in it are limited."""


def _run_ray(work: _Work, options: RayOptions) -> None:
    cpus = work.worker.threads if options.cpus_per_worker is None else options.cpus_per_worker
    variables = _thread_variables(work.worker.threads)
    if path := os.environ.get("PYTHONPATH"):
        variables["PYTHONPATH"] = path
    with _connect_ray(options, cpus * work.workers) as ray:
        actor_class = ray.remote(_Actor).options(
            num_cpus=cpus,
            num_gpus=options.gpus_per_worker,
            max_restarts=0,
            max_task_retries=0,
            runtime_env={"env_vars": variables},
        )
        numbers = range(work.workers)
        _hand_out(work, [_ActorSlot(ray, actor_class, work.worker_of(n)) for n in numbers])


class _Actor:
    """A worker in a process of Ray; it computes many cells and can hold a model for them."""

    def compute(self, worker: Worker, cell: Cell) -> str:
        return compute_cell(worker, cell)


@dataclass
class _ActorSlot:
    ray: Any
    actor_class: Any
    worker: Worker
    actor: Any = field(default=None, init=False)

    def submit(self, cell: Cell) -> Future[str]:
        if self.actor is None:
            self.actor = self.actor_class.remote()
        future: Future[str] = self.actor.compute.remote(self.worker, cell).future()
        return future

    def restart(self) -> None:
        self.abort()

    def last_words(self, error: BaseException) -> str:
        lines = str(error).strip().splitlines()
        return lines[-1].strip() if lines else type(error).__name__

    def abort(self) -> None:
        if self.actor is not None:
            self.ray.kill(self.actor)
            self.actor = None

    def close(self) -> None:
        self.abort()


@contextmanager
def _connect_ray(options: RayOptions, cpus: float) -> Iterator[Any]:
    """Connect to the cluster of the options, or to a Ray of our own that ends with the launch."""
    with _environment({"RAY_USAGE_STATS_ENABLED": "0"}), _keep_sigterm_handler():
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "the engine ray", "evenhand[ray]") from None
        with _quiet_ray():
            if ray.is_initialized():  # by the user: it stays as it is
                yield ray
                return
            with _join_ray(ray, options) if options.address else _own_ray(ray, options, cpus):
                yield ray


@contextmanager
def _quiet_ray() -> Iterator[None]:
    """Log errors only; what Ray prints about dead actors goes to stderr."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        logger.setLevel(before)


@contextmanager
def _join_ray(ray: Any, options: RayOptions) -> Iterator[None]:
    _check_reachable(str(options.address))
    try:
        ray.init(
            options.address, log_to_driver=False, configure_logging=False, ignore_reinit_error=True
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        problem = str(error).strip().partition("\n")[0]
        raise InputError(
            f"address: expected a Ray cluster that answers, got '{options.address}' ({problem})"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Fail early where nobody answers: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():  # auto, or another form that Ray knows
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"address: expected a Ray cluster that answers, got '{address}' ({error})"
        ) from None


@contextmanager
def _own_ray(ray: Any, options: RayOptions, cpus: float) -> Iterator[None]:
    base = tempfile.gettempdir()
    short = base if len(base) <= MAX_SOCKET_FOLDER else "/tmp"  # noqa: S108
    folder = tempfile.mkdtemp(prefix="ray-", dir=short)
    authenticated = any(name.startswith("RAY_AUTH_") for name in os.environ)
    try:
        with _environment({} if authenticated else {"RAY_AUTH_TOKEN": _ray_token()}):
            ray.init(
                "local",
                num_cpus=max(1, round(cpus)),
                include_dashboard=False,
                num_gpus=None if options.gpus_per_worker else 0,
                object_store_memory=OBJECT_STORE_BYTES,
                log_to_driver=False,
                configure_logging=False,
                _temp_dir=folder,
            )
            try:
                yield
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache(maxsize=1)
def _ray_token() -> str:
    """Return what keeps others out of our own Ray: one per process, since Ray caches it."""
    return secrets.token_hex(32)


@contextmanager
def _keep_sigterm_handler() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


# ---- Slurm

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


def _run_slurm(work: _Work, options: SlurmOptions) -> None:
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


def _watch(work: _Work, jobs: _Jobs) -> None:
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

    work: _Work
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
            with _environment(_thread_variables(self.work.worker.threads)), self.executor.batch():
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

    worker: Worker
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
        except _Stopped as stopped:
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

    def checkpoint(self) -> Any:
        """Return what the job does when it is requeued: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(replace(self, idle_runs=self._count_idle_runs()))

    def _count_idle_runs(self) -> int:
        return self.idle_runs + 1 if self._count_settled() == self.settled_before else 0

    def _count_settled(self) -> int:
        store = Store(self.worker.folder)
        return sum(store.is_settled(cell.key) for cell in self.cells)


def _raise_stopped_once(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001
    for number in (_preempt_signal(), signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise _Stopped(signum)


def _preempt_signal() -> signal.Signals:
    """Return the signal by which submitit tells a job that its time is over."""
    return signal.Signals["SIG" + os.environ.get("SUBMITIT_PREEMPT_SIGNAL", "USR2")]


def _slurm_executor(work: _Work, options: SlurmOptions) -> Any:
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


_ENGINES: Mapping[str, tuple[Callable[[_Work, Any], None], type[BaseModel]]] = {
    "local": (_run_local, _NoOptions),
    "ray": (_run_ray, RayOptions),
    "slurm": (_run_slurm, SlurmOptions),
}
