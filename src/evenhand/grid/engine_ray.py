"""Workers as actors of Ray, on a cluster or on a Ray of our own that ends with the launch.

An actor lives for many cells: it holds the model, and shard after shard goes through it.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.folders import NO_ROOM
from evenhand.grid.engine_options import RayOptions, checked, environment, threads_of
from evenhand.grid.worker import Worker, work

__all__ = ["run_ray"]

LOOKING = 0.2
"""Seconds between looks at the actors."""
ENDING = 20.0
"""Seconds that actors may take to end by themselves when all is done."""
IDLE_DEATHS = 3
"""Actors of each worker that may die in a row without any cell having been settled."""
STORE_BYTES = 80 * 2**20
"""The least Ray takes: nothing goes through its object store."""
REACHED = 10.0
"""Seconds in which a cluster must answer."""
SHORT = 30
"""Characters of the temporary folder's name; the names of sockets in it may not be long."""


def run_ray(
    worker: Worker, devices: Sequence[str], left: Callable[[], int], log: Path, **options: Any
) -> None:
    """Keep `worker.workers` actors at work until no cell is left; options as in RayOptions."""
    chosen = checked(RayOptions, "ray", options)
    cpus = worker.threads if chosen.cpus_per_worker is None else chosen.cpus_per_worker
    log.mkdir(parents=True, exist_ok=True)
    with _ray(chosen, cpus * worker.workers) as ray:
        made = ray.remote(_Actor).options(
            num_cpus=cpus, num_gpus=chosen.gpus_per_worker, max_restarts=0, max_task_retries=0,
            runtime_env={"env_vars": _variables(worker)},
        )  # fmt: skip
        every = [
            _Running(made, replace(worker, number=number, device=devices[number % len(devices)]))
            for number in range(worker.workers)
        ]
        try:
            for each in every:
                each.start()
            _wait(ray, every, left)
            ray.wait([each.task for each in every], num_returns=len(every), timeout=ENDING)
        finally:
            for each in every:
                if each.actor is not None:
                    ray.kill(each.actor)


def _wait(ray: Any, every: Sequence[_Running], left: Callable[[], int]) -> None:
    """Until no cell is left; actors that died before are begun anew."""
    deaths, before = 0, left()
    while True:
        ended = [each for each in every if ray.wait([each.task], timeout=0)[0]]
        if (count := left()) == 0:  # looked at after the actors: they end when all is done
            return
        if count < before:
            deaths, before = 0, count
        for each in ended:
            forbids, words = each.told(ray)
            if forbids:
                raise PartialFailure(f"{words}; the same command goes on from here")
            deaths += 1
            if deaths > IDLE_DEATHS * len(every):
                raise PartialFailure(f"actors die at once: {words}")
            each.start()
        time.sleep(LOOKING)


class _Actor:
    """A worker in a process of Ray's."""

    def work(self, worker: Worker) -> str:
        """Work until all is done; gives why it must not be begun anew, if that is so."""
        try:
            work(worker)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return f"{error.filename or worker.folder}: {error.strerror}"
        return ""


@dataclass
class _Running:
    made: Any
    worker: Worker
    actor: Any = None
    task: Any = None

    def start(self) -> None:
        """Begin, or begin anew."""
        self.actor = self.made.remote()
        self.task = self.actor.work.remote(self.worker)

    def told(self, ray: Any) -> tuple[bool, str]:
        """Whether it must not be begun anew, and what it said at its end."""
        try:
            words = str(ray.get(self.task))
        except ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines()
            return False, lines[-1].strip() if lines else type(error).__name__
        return bool(words), words or "it said nothing"


@contextmanager
def _ray(options: RayOptions, cpus: float) -> Iterator[Any]:
    """Ray, connected: to the cluster asked for, or to one of our own, which ends with us."""
    with environment({"RAY_USAGE_STATS_ENABLED": "0"}), _same_handler():
        try:
            import ray
        except ImportError:
            raise MissingExtraError("ray", "the engine ray", "evenhand[ray]") from None
        with _quiet():
            if ray.is_initialized():  # the user's own: not ours to end
                yield ray
                return
            with _joined(ray, options) if options.address else _own(ray, options, cpus):
                yield ray


@contextmanager
def _quiet() -> Iterator[None]:
    """Errors alone; asked for after the import of Ray, which sets what it says."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _joined(ray: Any, options: RayOptions) -> Iterator[None]:
    _check_reachable(str(options.address))
    try:
        ray.init(
            options.address, log_to_driver=False, configure_logging=False, ignore_reinit_error=True
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        words = str(error).strip().partition("\n")[0]
        raise InputError(
            f"address: expected a Ray cluster that answers, got '{options.address}' ({words})"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes where nobody answers."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():  # auto, or a form of Ray's own
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"address: expected a Ray cluster that answers, got '{address}' ({error})"
        ) from None


@contextmanager
def _own(ray: Any, options: RayOptions, cpus: float) -> Iterator[None]:
    base = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="ray-", dir=base if len(base) <= SHORT else "/tmp")  # noqa: S108
    try:
        with environment(_secret()):
            ray.init(
                "local", num_cpus=max(1, round(cpus)), include_dashboard=False,
                num_gpus=None if options.gpus_per_worker else 0,
                object_store_memory=STORE_BYTES, log_to_driver=False, configure_logging=False,
                _temp_dir=folder,
            )  # fmt: skip
            try:
                yield
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _secret() -> dict[str, str]:
    """What keeps others out of our own Ray; else it would leave a token in the home folder."""
    if any(name.startswith("RAY_AUTH_") for name in os.environ):
        return {}
    return {"RAY_AUTH_TOKEN": _token()}


@lru_cache(maxsize=1)
def _token() -> str:
    return secrets.token_hex(32)  # one a process: Ray remembers the first it has seen


@contextmanager
def _same_handler() -> Iterator[None]:
    """Ray takes the signal SIGTERM for itself and keeps it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _variables(worker: Worker) -> dict[str, str]:
    """The environment of the actors."""
    path = os.environ.get("PYTHONPATH")
    return {**threads_of(worker.threads), **({"PYTHONPATH": path} if path else {})}
