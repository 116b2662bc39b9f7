from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.grid import Grid, make_grid

HERE = Path(__file__).parent


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Grid]:
    """Grids of a user's own task, which workers can import too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(HERE))

    def make(numbers: int | list[int] = 6, **fixed: Any) -> Grid:
        chosen = list(range(numbers)) if isinstance(numbers, int) else numbers
        return make_grid({"task": "own_tasks:TASK", "fixed": fixed, "axes": {"number": chosen}})

    return make


@pytest.fixture
def files() -> Callable[[Path], dict[str, bytes]]:
    """The bytes of all results of a grid's folder."""
    return lambda folder: {
        path.name: path.read_bytes() for path in sorted(folder.glob("cells/*/*.json"))
    }


@pytest.fixture
def workers() -> Callable[[Path], list[int]]:
    """The processes that compute a cell now."""

    def read(folder: Path) -> list[int]:
        pids = []
        for path in (folder / "work").glob("*/.worker.json"):
            try:
                pids.append(json.loads(path.read_bytes())["pid"])
            except (OSError, ValueError):  # being written, or removed
                continue
        return pids

    return read
