"""The notebooks of the documentation run from beginning to end and print what is stored in them."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from number_checker import NUMBER, with_documented_numbers

ROOT = Path(__file__).resolve().parents[1]
MONTE_CARLO = {"thesis-repeated": 0.015}
"""Tolerance of numbers from 2,000 draws of a Markov chain, which are others on another processor:
the ends of an interval have an error of some thousandths."""
FOLDER = ROOT / "docs" / "notebooks"
NAMES = (
    "audit-a-model",
    "few-shot-and-mitigation",
    "own-words-and-vectors",
    "thesis-repeated",
)


def outputs(cells):
    """The text of every code cell: what was printed and the short form of the result."""
    shown = (cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    return ["\n".join(map(text, cell)) for cell in shown]


def text(output):
    return "".join(output.get("text", output.get("data", {}).get("text/plain", "")))


def test_the_notebooks_are_these():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_small_and_of_no_machine(name):
    path = FOLDER / f"{name}.ipynb"
    stored = path.read_text(encoding="utf-8")
    assert path.stat().st_size < 100_000
    assert not re.search(r"/(tmp|home|root|work)/|https?://(?!www.w3.org)|<script", stored)
    cells = json.loads(stored)["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert not any("execution" in cell["metadata"] for cell in cells)
    assert all(outputs(cells))
    kinds = {kind for c in cells for o in c.get("outputs", ()) for kind in o.get("data", ())}
    assert "text/html" in kinds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_notebooks_print_what_is_stored(name, tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    path = FOLDER / f"{name}.ipynb"
    executed = importlib.import_module("run_notebooks").execute(path)
    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    for want, got in zip(outputs(stored), outputs(executed.cells), strict=True):
        assert_same(want, got, MONTE_CARLO.get(name, 0.0))


def assert_same(want: str, got: str, absolute: float) -> None:
    """The same words; numbers within the tolerance of documented ones, or within five per cent.

    Trained networks differ by more than the last digit on another processor.
    """
    shown = with_documented_numbers(want, got)
    words = [NUMBER.sub("#", text).split() for text in (want, shown)]
    assert words[0] == words[1], f"stored:\n{want}\nprinted:\n{got}"
    for one, other in zip(NUMBER.findall(want), NUMBER.findall(shown), strict=True):
        expected, actual = (float(text.replace(",", "")) for text in (one, other))
        assert actual == pytest.approx(expected, rel=0.05, abs=absolute), (
            f"stored:\n{want}\nprinted:\n{got}"
        )
