"""A user's own task: it squares, sleeps, fails or dies."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from evenhand.errors import InputError
from evenhand.files import replace_file
from evenhand.grid.spec import digest
from evenhand.grid.task import Task, Workspace


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
    exits: list[int] = []
    prints: str = ""
    notes_process: bool = False
    file: str | None = None


class _Squares(Task[Squares]):
    name, settings = "squares", Squares

    def check(self, settings: Squares) -> None:
        if settings.number < 0:
            raise InputError(f"number: expected 0 or more, got {settings.number}")

    def identity(self, settings: Squares) -> dict[str, Any]:
        ignored = {"seconds", "spin", "fails", "dies", "exits", "file", "prints", "notes_process"}
        identity = settings.model_dump(exclude=ignored)
        if settings.file is not None:
            identity["file"] = digest(Path(settings.file).read_text())
        return identity

    def group(self, settings: Squares) -> str:
        return f"{settings.number % 3}"

    def compute(self, settings: Squares, workspace: Workspace) -> dict[str, Any]:
        with (workspace.work / "begun").open("a") as file:
            file.write("x")
        shared = workspace.cache / f"shared-{settings.number % 3}"
        if not shared.exists():
            with workspace.lock(shared.name):
                if not shared.exists():
                    workspace.cache.mkdir(exist_ok=True)
                    with (workspace.cache / f"made-{shared.name}").open("a") as file:
                        file.write("x")
                    time.sleep(0.05)
                    with replace_file(shared) as file:
                        file.write(b"1")
        if settings.prints:
            print(settings.prints)  # noqa: T201
        if settings.notes_process:
            process = {
                "device": workspace.device,
                "threads": workspace.threads,
                "omp": os.environ["OMP_NUM_THREADS"],
                "interrupt": getattr(signal.getsignal(signal.SIGINT), "name", "other"),
            }
            (workspace.cache / f"process-{os.getpid()}").write_text(json.dumps(process))
        if settings.number in settings.exits:
            raise SystemExit("enough")
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
