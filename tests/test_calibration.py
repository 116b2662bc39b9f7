"""Short versions of the rows of benchmarks/calibration.py, and the table that is published.

A row passes where its alarms are within the upper 99 % limit of 5 %: a rate of 12 % is noticed in
81 % of all seeds with 150 worlds, in 89 % with 200. The seeds are fixed.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binom

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import calibration as c  # noqa: E402

ROWS = {
    "vectors: an interval over four words that is too narrow": (c.Words(4, 4).draw, 150),
    "vectors: unequal classes that look like bias": (c.Words(unequal=True).draw, 150),
    "masked: two templates taken for many": (c.Sentences(20, 20, 0.7, 2, 8, 2).masked, 150),
    "masked: scores near 0 and 1": (c.Sentences(spread=5.0).masked, 150),
    "causal: sentences as independent": (c.Sentences(templates=2, pairs=2).causal, 200),
    "crows: pairs of a writer as independent": (partial(c.crows, 5, 20, 0.3), 150),
    "stereoset: items as independent": (partial(c.stereoset, 6, 20, 0.5), 200),
    "bbq: questions as independent": (partial(c.bbq, 6, 20, 0.5, 0.3), 200),
    "classifier: one of two tests not corrected": (
        c.Texts(200, 1, classes=4, share=0.9).draw,
        150,
    ),
    "classifier: texts of a person as independent": (
        c.Texts(10, 20, alike=0.5, mixed=False).draw,
        150,
    ),
    "posterior describe: cells as independent": (c.Tables(0.056).describe, 150),
}
"""Each is named by what it notices. Few-shot verdicts, scores and gates have such tests with
their own."""


@pytest.mark.slow
@pytest.mark.parametrize("notices", ROWS)
def test_false_alarms_are_at_most_nominal(notices):
    draw, worlds = ROWS[notices]
    alarms = sum(draw(5_000_000 + seed, 0.0).found for seed in range(worlds))
    assert alarms <= binom.ppf(0.99, worlds, 0.05)


@pytest.mark.slow
def test_a_large_effect_is_found():
    """A judge that is always undecided raises no false alarm either."""
    draws = [
        c.Words().draw,
        c.Sentences().masked,
        c.Texts(200, 1).draw,
        partial(c.stereoset, 79, 10, 0.3),
    ]
    for draw in draws:
        assert sum(draw(seed, 2.0).found for seed in range(10)) >= 8


def test_the_page_has_the_published_table():
    """docs/concepts/simulation.md shows docs/results/calibration.csv."""
    page = (ROOT / "docs/concepts/simulation.md").read_text()
    assert c.markdown(pd.read_csv(c.CSV)) in page


def test_readme_has_the_trust_table():
    assert c.trust(pd.read_csv(c.CSV)) in c.README.read_text(encoding="utf-8")


def test_the_trust_table_is_of_all_worlds_of_a_room():
    rows = pd.DataFrame({"room": ["vectors"] * 3, "worlds": [10, 10, 20]})
    rows = rows.assign(coverage=[0.95, 0.9, 0.99], rate=[0.04, 0.5, 0.05], naive=[0.2, 1.0, None])
    line = "| word vectors | 40 of 3 kinds | .95 (.90) | .05 (.50) | .60 (1.00) |"
    assert line in c.trust(rows).splitlines()


def test_every_row_that_does_not_hold_is_marked():
    table = c.worst(pd.read_csv(c.CSV))
    assert c.markdown(table).count("| **") == int((table.low > table.nominal).sum())


def test_a_room_that_is_run_again_replaces_its_own_rows_only(tmp_path):
    row = dict.fromkeys(c.COLUMNS, 0.5) | {"command": "a", "world": "b", "worlds": 9}
    path = tmp_path / "calibration.csv"
    c.merge("gate", [row, row], path)
    c.merge("vectors", [row], path)
    assert list(c.merge("gate", [row], path).room) == ["vectors", "gate"]
