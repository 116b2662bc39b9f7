from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.grid import Grid, make_grid

HERE = Path(__file__).parent


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Grid]:
    """Grids of a task of one's own, which workers can import too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(HERE))

    def made(numbers: int | list[int] = 6, **fixed: Any) -> Grid:
        chosen = list(range(numbers)) if isinstance(numbers, int) else numbers
        return make_grid({"task": "own_tasks:TASK", "fixed": fixed, "axes": {"number": chosen}})

    return made


@pytest.fixture
def files() -> Callable[[Path], dict[str, bytes]]:
    """The bytes of all results of a grid's folder."""
    return lambda folder: {
        path.name: path.read_bytes() for path in sorted(folder.glob("cells/*/*.json"))
    }
