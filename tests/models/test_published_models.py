"""The study of models: what its page says is what its script prints from the published numbers."""

from __future__ import annotations

import math
import runpy
from argparse import Namespace
from itertools import combinations
from pathlib import Path

import pytest

from evenhand.statistics.intervals import jackknife

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "models"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "model_study.py"))


def test_every_replicate_of_the_mean_agreement_has_the_same_pairs(script):
    """Without the family "big" the measures b and c have two models in common, and count."""
    family = {f"big{i}": "big" for i in range(4)} | {"one": "one", "two": "two", "three": "three"}
    models = list(family)
    numbers = {
        "a": [1, 2, 3, 4, 5, 6, 7],
        "b": [2, 1, 4, 3, 6, 5, None],
        "c": [3, 4, 1, 2, 6, 7, None],
    }
    value = {
        (model, measure): float(x)
        for measure, xs in numbers.items()
        for model, x in zip(models, xs, strict=True)
        if x is not None
    }
    pairs = list(combinations(numbers, 2))
    tau, low, high = script["mean_agreement"](value, family, pairs)
    # τ of (a, b), (a, c), (b, c): 9/15, 7/15 and 1/15; of one and two alone -1, 1, -1
    assert tau == pytest.approx((9 + 7 + 1) / 45)
    without = [-1 / 3, (6 + 2 - 2) / 30, (6 + 2 - 2) / 30, tau]
    assert (low, high) == pytest.approx(jackknife(tau, without))
    del value["two", "c"]
    assert not any(map(math.isfinite, script["mean_agreement"](value, family, pairs)[1:]))


def test_the_page_has_the_tables_that_are_printed(script, capsys):
    page = (ROOT / "docs" / "results-models.md").read_text(encoding="utf-8")
    page = page.replace("\N{MINUS SIGN}", "-")
    script["tables"](Namespace(folder=RESULTS))
    printed = capsys.readouterr().out.splitlines()
    models = {row["model"] for row in script["read_rows"](RESULTS / "values.csv.gz")}
    rows = [line for line in printed if line.startswith("| ") and line.split(" | ")[0][2:]]
    checked = 0
    for line in rows:
        first, _, numbers = line[2:].partition(" | ")
        if first in models:
            assert numbers in page, line
        elif "[" in line or first in ("crows", "gest", "stereoset"):
            assert line in page
        else:
            continue
        checked += 1
    assert checked == 17 + 16 + 78 + 3 + 6


def test_the_page_counts_the_controls_that_scores_survive(script):
    page = " ".join((ROOT / "docs" / "results-models.md").read_text(encoding="utf-8").split())
    with_effect = [
        row
        for row in script["read_rows"](RESULTS / "controls.csv.gz")
        if row["outcome"] != "no effect"
    ]
    negated = [row["outcome"] == "survives" for row in with_effect if row["control"] == "negate"]
    others = [row["outcome"] == "survives" for row in with_effect if row["control"] != "negate"]
    assert (sum(negated), len(negated), sum(others), len(others)) == (30, 33, 7, 20)
    assert "in 30 of 33" in page
    assert "in 7 of 20" in page
