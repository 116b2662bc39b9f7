"""The page on the shape of the pronoun score has the table of its published file."""

import sys
from pathlib import Path

import numpy as np
import pytest

from evenhand.simulate.masked import bigram_model

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import score_shape as study  # noqa: E402


def test_the_page_has_the_published_table():
    page = (ROOT / "docs" / "experiments" / "score-shape.md").read_text(encoding="utf-8")
    assert study.tables(study.RESULTS) in page


def test_scores_of_a_known_model():
    model = bigram_model({"c": {"he": 0.6, "she": 0.2}, "then": {"he": 0.3, "she": 0.1}})
    odds, top, roles = study.log_odds(model, ["c [MASK] .", "then [MASK] ."])
    assert study.sigmoid(odds) == pytest.approx([0.75, 0.75], abs=1e-6)
    assert top == pytest.approx([0.75, 0.75], abs=1e-6)
    assert roles == ["subject", "subject"]
    row = study.describe("s", "m", "full", np.array([0.5, 0.6, 0.7, 0.8, np.nan]))
    assert (row["n"], row["mean"], row["d50"], row["narrow"]) == ("4", "0.6500", "0.6500", "0.5000")
    assert float(row["mean_low"]) < 0.65 < float(row["mean_high"])
