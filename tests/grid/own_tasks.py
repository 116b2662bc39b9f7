"""A task of one's own, as a user would write it: it squares, sleeps, fails or dies."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from evenhand.errors import InputError
from evenhand.grid.cells import digest_of
from evenhand.grid.tasks import Place
from evenhand.results import replace_file


class Squares(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    power: int = 2
    seed: int = 0
    seconds: float = 0.0
    spin: float = 0.0
    size: int = 10
    fails: list[int] = []
    dies: list[int] = []
    file: str | None = None


class _Squares:
    name, version, settings = "squares", 1, Squares

    def check(self, settings: Squares) -> None:
        if settings.number < 0:
            raise InputError(f"number: expected 0 or more, got {settings.number}")

    def identity(self, settings: Squares) -> dict[str, Any]:
        told = settings.model_dump(exclude={"seconds", "spin", "fails", "dies", "file"})
        if settings.file is not None:
            told["file"] = digest_of(Path(settings.file).read_text())
        return told

    def group(self, settings: Squares) -> str:
        return f"{settings.number % 3}"

    def compute(self, settings: Squares, place: Place) -> dict[str, Any]:
        with (place.work / "begun").open("a") as file:
            file.write("x")
        shared = place.cache / f"shared-{settings.number % 3}"
        if not shared.exists():
            with place.alone(shared.name):
                if not shared.exists():
                    place.cache.mkdir(exist_ok=True)
                    with (place.cache / f"made-{shared.name}").open("a") as file:
                        file.write("x")
                    time.sleep(0.05)
                    with replace_file(shared) as file:
                        file.write(b"1")
        if settings.number in settings.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if settings.number in settings.fails:
            raise ZeroDivisionError(f"cannot do {settings.number}\nmore of it")
        time.sleep(settings.seconds)
        end = time.process_time() + settings.spin
        while time.process_time() < end:
            pass
        draws = random.Random(f"{settings.seed} {settings.number}")  # noqa: S311
        return {
            "value": settings.number**settings.power,
            "draws": [draws.random() for _ in range(settings.size)],
        }

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return {"value": result["value"]}


TASK = _Squares()
