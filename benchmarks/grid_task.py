"""Cells for `grid.py` beside it: they do nothing, or keep a core busy for a while."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from evenhand.grid.task import Task, Workspace


class BusySettings(BaseModel):
    """How long a cell keeps its core busy, in seconds of CPU time."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    busy: float = 0.0


class _Busy:
    name, version, settings = "busy", 1, BusySettings

    def check(self, settings: BusySettings) -> None:
        pass

    def identity(self, settings: BusySettings) -> dict[str, Any]:
        return settings.model_dump()

    def group(self, settings: BusySettings) -> str:
        return ""

    def compute(self, settings: BusySettings, workspace: Workspace) -> dict[str, Any]:
        end = time.process_time() + settings.busy
        while time.process_time() < end:
            pass
        return {"number": settings.number}

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return dict(result)


TASK: Task = _Busy()
