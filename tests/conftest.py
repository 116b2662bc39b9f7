"""What several test files need: the shared real data, the embedded vectors and model."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# Tests run side by side, a core each: threads of their own would only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from evenhand.vectors import Vectors, load

# The same examples every time where a failure must not depend on luck; new ones at every other run.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

SHARED = Path(__file__).resolve().parents[2] / "shared"


# Imports and results make millions of objects that stay; looking for cycles among them after every
# 700 new ones takes 4 % of the time of the tests.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish() -> None:
    """What importing and collecting made stays: garbage collection does not visit it again."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project; tests that need it skip where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip("needs ../shared/data, the real data that is not part of the project")
    return SHARED


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is not wrapped, whatever the width of the terminal that runs the tests."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def same_arithmetic() -> Iterator[None]:
    """Half precision may switch a library off for the process; later tests must not notice."""
    yield
    forward = sys.modules.get("evenhand.models.forward")
    if forward is not None and forward.guard_half.cache_info().currsize:
        forward.guard_half.cache_clear()
        sys.modules["torch"].backends.mkldnn.set_flags(_enabled=True)


@pytest.fixture(scope="session")
def glove() -> Vectors:
    return load("glove")


@pytest.fixture(scope="module")
def mini() -> Any:
    """The embedded masked model, new in each file: some tests change its state."""
    import evenhand.models

    return evenhand.models.load("mini")


@pytest.fixture(scope="module")
def facts(mini: Any) -> dict[str, Any]:
    """The embedded model as a page has it."""
    from evenhand.report.interactive import embed
    from interactive_world import ROOM

    return embed(mini, ROOM)


@pytest.fixture(scope="session")
def arviz() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: ModuleType = pytest.importorskip("arviz", reason="needs arviz, of the extra dev")
        return module


@pytest.fixture(scope="session", params=("bert", "distilbert", "roberta", "albert", "electra"))
def family(request, tmp_path_factory):
    """The folder of a small random masked model; tests that take it run on all five families."""
    from small_models import made

    folder = tmp_path_factory.mktemp(request.param)
    tokenizer, network = made(request.param)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
