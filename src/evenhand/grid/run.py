"""Launch a grid: compute the missing cells on an existing engine and report failures together.

The engines schedule: a `ProcessPoolExecutor` per worker on this machine, the job arrays of Slurm
through submitit, or actors of Ray. The launcher holds the lock of the grid's folder and hands out
the cells without a result; `compute_cell` is the same on every engine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from evenhand.errors import EvenhandError, FileError, InputError, PartialFailure, UnknownNameError
from evenhand.files import DISK_FULL, real_path
from evenhand.grid.spec import Cell, Grid, cell_key
from evenhand.grid.store import DamagedError, Store
from evenhand.grid.task import Workspace, load_task
from evenhand.registry import Registry
from evenhand.text.corpus.pool import end_with_parent

ATTEMPTS = 3
"""Workers that may die while computing a cell before the cell counts as failed."""
EARLY_DEATHS = 3
"""Consecutive deaths per worker before its first cell after which the launch ends."""
SHOWN_REASONS = 5
RESUME = "finished cells are saved, and the same command resumes"


class Engine(NamedTuple):
    """The function that computes the cells, and the model of its options."""

    start: Callable[[MissingCells, Any], None]
    options: type[BaseModel]


ENGINES = Registry(
    "engine",
    {
        "local": "evenhand.grid.run:LOCAL",
        "ray": "evenhand.grid.ray:ENGINE",
        "slurm": "evenhand.grid.slurm:ENGINE",
    },
)


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
    restart: bool = False,
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
    restart
        Whether the results of the grid's cells in the folder are removed first, and all cells
        computed again. Results of other grids and the caches stay.
    progress
        Called with the number of settled cells, their total, and further text.
    notify
        Called with a line of text for each damaged result that is computed again, and for what
        `restart` removes.

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
    engine: Engine = ENGINES[on]
    checked = check_options(engine.options, on, options or {})
    store = Store(real_path(out))
    launch = uuid.uuid4().hex[:12]
    try:
        with store.lock_folder(launch):
            store.save_grid(grid.to_dict())
            store.remove_partial()
            if restart:
                removed = store.clear([cell.key for cell in grid.cells])
                if notify is not None:
                    notify(f"restart: removed {removed} of {len(grid.cells)} results in {out}")
            found = _inspect(store, grid, notify)
            store.clear_failures([cell.key for cell in grid.cells])
            missing = [cell for cell in grid.cells if not store.has(cell.key)]
            work = MissingCells(
                store=store,
                cells=sorted(missing, key=lambda cell: cell.group),
                total=len(grid.cells),
                workers=min(count, len(missing)),
                devices=tuple(devices),
                worker=CellWorker(
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
                engine.start(work, checked)
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
    for cell, settings in zip(grid.cells, grid.settings, strict=True):
        try:
            result = store.result(cell.key)
            if result is None:
                continue
            if grid.task.intact(settings, result):
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


Options = TypeVar("Options", bound=BaseModel)


def check_options(model: type[Options], engine: str, given: Mapping[str, Any]) -> Options:
    """Return the validated options of an engine.

    >>> from evenhand.grid.slurm import SlurmOptions
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


# ---- what every worker does


@dataclass(frozen=True, kw_only=True)
class CellWorker:
    """Settings of a worker, as plain values that every engine can send."""

    folder: str
    source: str
    task: str
    launch: str
    device: str = "auto"
    threads: int = 1


def compute_cell(worker: CellWorker, cell: Cell) -> str:
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


def _compute(worker: CellWorker, store: Store, cell: Cell) -> None:
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


def _prepare_process(worker: CellWorker) -> None:
    """Set the folder that file names are relative to, and the number of threads."""
    try:
        os.chdir(worker.source)
    except FileNotFoundError:
        raise FileError(
            worker.source, "expected the folder the grid was launched from, it is not there"
        ) from None
    os.environ.update(thread_variables(worker.threads))
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


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that numeric libraries read when they are imported."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment for a while; other changes made meanwhile are undone too."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


# ---- handing out cells to workers that the launcher holds


@dataclass(kw_only=True)
class MissingCells:
    """The missing cells of a launch, in the order in which they are handed out."""

    store: Store
    cells: list[Cell]
    total: int
    workers: int
    devices: tuple[str, ...]
    worker: CellWorker
    progress: Callable[[int, int, str], None] | None
    deaths: Counter[str] = field(default_factory=Counter)

    def worker_of(self, number: int) -> CellWorker:
        return replace(self.worker, device=self.devices[number % len(self.devices)])

    def show(self, settled: int) -> None:
        """Report how many of the missing cells are settled."""
        if self.progress is not None:
            self.progress(self.total - len(self.cells) + settled, self.total, "")

    def blame(self, cell: Cell) -> bool:
        """Count the death of a worker as a failure of its cell; returns whether it had one."""
        if not self.store.unmark_begun(cell.key):
            return False
        self.deaths[cell.key] += 1
        if (count := self.deaths[cell.key]) >= ATTEMPTS:
            self.store.fail(cell, f"{count} workers died while computing it (out of memory?)")
        return True


class WorkerSlot(Protocol):
    """One worker, which computes one cell at a time and can be replaced."""

    def submit(self, cell: Cell) -> Future[str]: ...
    def last_words(self, error: BaseException) -> str:
        """Return what is known of the worker's end."""

    def abort(self) -> None:
        """End the worker now; another cell starts a new one."""

    def close(self) -> None:
        """End the worker once it is idle."""


def hand_out(work: MissingCells, slots: Sequence[WorkerSlot]) -> None:
    """Compute all cells; a worker that dies is replaced and its cell tried again."""
    waiting, idle = deque(work.cells), deque(slots)
    running: dict[Future[str], tuple[WorkerSlot, Cell]] = {}
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
                    slot.abort()
                    slot.close()
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


def _run_local(work: MissingCells, options: BaseModel) -> None:  # noqa: ARG001
    work.store.log.mkdir(parents=True, exist_ok=True)
    slots = []
    for number in range(work.workers):
        log = work.store.log / f"{work.worker.launch}-{number}.log"
        slots.append(_Process(work.worker_of(number), log))
    hand_out(work, slots)


@dataclass
class _Process:
    """A worker process: a pool of one, so that its death is the death of one known cell."""

    worker: CellWorker
    log: Path
    pool: ProcessPoolExecutor | None = field(default=None, init=False)
    lifeline: Connection | None = field(default=None, init=False)

    def submit(self, cell: Cell) -> Future[str]:
        try:
            return self._started().submit(compute_cell, self.worker, cell)
        except BrokenProcessPool:  # it was killed while it was idle
            self.close()
            return self._started().submit(compute_cell, self.worker, cell)

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
        with environment(thread_variables(threads)):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        vars(main).update(hidden)


def _begin_process(lifeline: Connection, log: str) -> None:
    """Prepare a worker process: its signals, its log, and its end when the launcher ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the launcher, which stops us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
    threading.Thread(target=end_with_parent, args=(lifeline,), daemon=True).start()


class _NoOptions(BaseModel):
    """Local processes have no options."""


LOCAL = Engine(_run_local, _NoOptions)
