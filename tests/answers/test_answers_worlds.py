"""Short versions of the rows of benchmarks/calibration_answers.py, each named by what it notices.

A row passes where its alarms are within the upper 99 % limit of 5 %: a rate of 12 % is noticed in
81 % of all seeds with 150 worlds, in 89 % with 200. The seeds are fixed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy.stats import binom

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import calibration_answers as c  # noqa: E402

ROWS = {
    "samples of a prompt as independent": ("difference", "8 prompts, 25 samples", 150),
    "normal quantiles for three prompts": ("difference", "3 prompts, 25 samples", 150),
    "prompts of a topic as independent": (
        "difference",
        "8 topics of 5 prompts that suit one group",
        200,
    ),
    "wordings as fixed": ("difference", "20 prompts in 6 wordings that suit one group", 150),
    "scores near a bound": ("difference", "20 prompts, shares near 0", 150),
    "groups of unequal size as alike": (
        "difference",
        "40 prompts of one group each, 8 and 32",
        150,
    ),
    "intersections not corrected": ("difference", "20 prompts, 4 intersections", 150),
    "refusals of a prompt as independent": ("refusals", "8 prompts, 25 samples", 200),
    "rare refusals": ("refusals", "20 prompts, 1 in 100 refused", 150),
    "yes or no to a prompt as independent": ("decisions", "8 prompts, 25 samples", 200),
    "shares near a bound": ("decisions", "20 prompts, 97 % yes", 150),
    "a judge who errs by group": (
        "decisions",
        "20 prompts, judge errs by group, 50 labels a group",
        150,
    ),
    "labels as exact": ("decisions", "8 prompts, judge errs by group, 100 labels a group", 150),
    "statements of a topic as independent": ("agreement", "16 topics of 10 statements", 150),
    "texts of an occupation as independent": ("representation", "8 prompts, 25 samples", 150),
    "few women": ("representation", "20 prompts, 5 % women", 150),
    "words of an item as independent": ("words", "8 prompts, 25 samples", 150),
    "words of a wording as the groups'": (
        "words",
        "20 prompts in 6 wordings that suit one gender",
        150,
    ),
    "distances of a wording as the groups'": (
        "difference: distance",
        "20 prompts in 6 wordings that suit one group",
        200,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("notices", ROWS)
def test_false_alarms_are_at_most_nominal(notices):
    metric, world, worlds = ROWS[notices]
    draw = c.all_worlds()[f"answers measure ({metric})", world].draw
    alarms = sum(draw(5_000_000 + seed, 0.0).found for seed in range(worlds))
    assert alarms <= binom.ppf(0.99, worlds, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric", ["difference", "refusals", "decisions", "representation", "words"]
)
def test_a_large_effect_is_found(metric):
    """A judge that is always undecided raises no false alarm either."""
    draw = c.all_worlds()[f"answers measure ({metric})", "20 prompts, 25 samples"].draw
    assert sum(draw(seed, 2.0).found for seed in range(10)) >= 8


@pytest.mark.slow
def test_a_judge_who_errs_by_group_makes_a_difference():
    """So that the labels of the rows above have something to correct."""
    world = "20 prompts, judge errs by group, no labels"
    draw = c.all_worlds()["answers measure (decisions)", world].draw
    assert sum(draw(seed, 0.0).found for seed in range(20)) >= 5


def test_the_row_of_a_world_is_taken_from_its_file(tmp_path):
    """A run goes on where one has ended."""
    name = "answers measure (difference): 3 prompts, 1 sample"
    first = c.rows(4, 0, only=name, save=tmp_path / "rows.jsonl")
    assert c.rows(9, 0, only=name, save=tmp_path / "rows.jsonl") == first
    assert [(each["worlds"], each["nominal"]) for each in first] == [(4, 0.05)]
