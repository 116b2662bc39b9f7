"""The options of the engines that run on clusters, checked before anything is begun."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import InputError, UnknownNameError

__all__ = ["RayOptions", "SlurmOptions", "checked", "environment", "threads_of"]


class SlurmOptions(BaseModel):
    """What each job asks the cluster for."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    cluster: Literal["slurm", "local", "auto"] = Field(
        "slurm", description="local: the same jobs as processes here; auto: by what there is."
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
    """Which Ray, and what each actor asks it for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str | None = Field(
        None, description="auto, HOST:PORT or ray://HOST:PORT; without it a Ray of our own."
    )
    cpus_per_worker: float | None = Field(None, ge=0, description="By default as threads.")
    gpus_per_worker: float = Field(0, ge=0)


Options = TypeVar("Options", bound=BaseModel)


def checked(model: type[Options], engine: str, given: Mapping[str, Any]) -> Options:
    """The options of an engine.

    >>> checked(SlurmOptions, "slurm", {"partion": "gpu"})
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown option of slurm 'partion': did you mean ...
    >>> checked(SlurmOptions, "slurm", {"time": "soon"})
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
        what = first["msg"].replace("Input should be ", "expected ")
        raise InputError(f"{engine}: {first['loc'][0]}: {what}, got {first['input']!r}") from None


def threads_of(threads: int) -> dict[str, str]:
    """The environment in which libraries take so many threads, read when they are imported."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


@contextmanager
def environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Change the environment for a while; whatever else changes in it meanwhile is undone too."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)
