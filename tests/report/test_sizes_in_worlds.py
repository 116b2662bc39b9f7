"""The quick version of benchmarks/sizes.py: sizes on simulated worlds of a known bias."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "sizes.py"


@pytest.fixture(scope="module")
def sizes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_sizes", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_odds_of_simulated_classes_have_their_size(sizes: ModuleType) -> None:
    clean = sizes.run("corpus", 0.0, 20)
    assert clean["found"] <= 0.2
    for d in (0.35, 0.65, 1.2):
        shares = sizes.run("corpus", d, 8)
        assert shares["found"] == shares["near"] == 1
        assert shares["median"] == pytest.approx(d, abs=0.06)


@pytest.mark.slow
def test_the_pronouns_of_simulated_models_have_their_size(sizes: ModuleType) -> None:
    pytest.importorskip("transformers")
    assert sizes.run("masked", 0.0, 6)["found"] <= 0.34
    shares = sizes.run("masked", 0.65, 4)
    assert shares["found"] == shares["near"] == 1
    assert shares["median"] == pytest.approx(0.65, abs=0.15)
