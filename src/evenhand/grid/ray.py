"""Grids on Ray: workers are actors, on a cluster or on a Ray of our own."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import InputError, MissingExtraError
from evenhand.grid.run import (
    CellWorker,
    Engine,
    MissingCells,
    compute_cell,
    environment,
    hand_out,
    thread_variables,
)
from evenhand.grid.spec import Cell

OBJECT_STORE_BYTES = 80 * 2**20
"""Ray's minimum: the object store is not used."""
CONNECT_SECONDS = 10.0
MAX_SOCKET_FOLDER = 30
"""Characters of the temporary folder's name; the names of the sockets in it are limited."""


class RayOptions(BaseModel):
    """The Ray cluster, and what each actor requests from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str | None = Field(
        None, description="auto, HOST:PORT or ray://HOST:PORT; by default a Ray of our own."
    )
    cpus_per_worker: float | None = Field(None, ge=0, description="By default as threads.")
    gpus_per_worker: float = Field(0, ge=0)


def _run_ray(work: MissingCells, options: RayOptions) -> None:
    cpus = work.worker.threads if options.cpus_per_worker is None else options.cpus_per_worker
    variables = thread_variables(work.worker.threads)
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
        hand_out(work, [_ActorSlot(ray, actor_class, work.worker_of(n)) for n in numbers])


class _Actor:
    """A worker in a process of Ray; it computes many cells and can hold a model for them."""

    def compute(self, worker: CellWorker, cell: Cell) -> str:
        return compute_cell(worker, cell)


@dataclass
class _ActorSlot:
    ray: ModuleType
    actor_class: Any
    worker: CellWorker
    actor: Any = field(default=None, init=False)

    def submit(self, cell: Cell) -> Future[str]:
        if self.actor is None:
            self.actor = self.actor_class.remote()
        future: Future[str] = self.actor.compute.remote(self.worker, cell).future()
        return future

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
    with environment({"RAY_USAGE_STATS_ENABLED": "0"}), _keep_sigterm_handler():
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
def _join_ray(ray: ModuleType, options: RayOptions) -> Iterator[None]:
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
    """Fail early if the address does not answer; Ray itself would try for minutes."""
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
def _own_ray(ray: ModuleType, options: RayOptions, cpus: float) -> Iterator[None]:
    base = tempfile.gettempdir()
    short = base if len(base) <= MAX_SOCKET_FOLDER else "/tmp"  # noqa: S108
    folder = tempfile.mkdtemp(prefix="ray-", dir=short)
    authenticated = any(name.startswith("RAY_AUTH_") for name in os.environ)
    try:
        with environment({} if authenticated else {"RAY_AUTH_TOKEN": _ray_token()}):
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


ENGINE = Engine(_run_ray, RayOptions)
