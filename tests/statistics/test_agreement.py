"""Agreement of annotators against published values and brute force."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.statistics.agreement import (
    count_verdicts,
    fleiss_kappa,
    krippendorff_alpha,
    observed_agreement,
)

FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def units(*coders):
    """Coders' rows of values, a dot where there is none, as units."""
    rows = [[None if value == "." else value for value in coder.split()] for coder in coders]
    return list(zip(*rows, strict=True))


def test_fleiss_of_the_textbook_table():
    """Ten subjects, fourteen raters, five categories: P̄ = 0.378, P̄e = 0.213, κ = 0.210."""
    value, low, high = fleiss_kappa(FLEISS)
    assert observed_agreement(FLEISS) == pytest.approx(0.378, abs=5e-4)
    assert value == pytest.approx(0.210, abs=5e-4)
    assert low < 0.210 < high


def test_fleiss_by_hand():
    """Three units, two raters: P̄ = 2/3, shares ½ and ½, so κ = (2/3 - 1/2) / (1/2) = 1/3."""
    assert fleiss_kappa([[2, 0], [0, 2], [1, 1]])[0] == pytest.approx(1 / 3)


def test_alpha_of_three_coders_with_gaps():
    """Published as 0.691 (nominal)."""
    ratings = units(
        ". . . . . 3 4 1 2 1 1 3 3 . 3",
        "1 . 2 1 3 3 4 3 . . . . . . .",
        ". . 2 1 3 4 4 . 2 1 1 3 3 . 4",
    )
    value, _, _ = krippendorff_alpha(count_verdicts(ratings)[1])
    assert value == pytest.approx(0.691, abs=5e-4)


def test_alpha_of_four_observers_with_gaps():
    """Krippendorff (2011): nominal alpha 0.743."""
    ratings = units(
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )
    value, _, _ = krippendorff_alpha(count_verdicts(ratings)[1])
    assert value == pytest.approx(0.743, abs=5e-4)


def brute_force_alpha(ratings):
    """1 - observed / expected disagreement, pair of values by pair of values."""
    judged = [[v for v in unit if v is not None] for unit in ratings]
    judged = [unit for unit in judged if len(unit) > 1]
    values = [value for unit in judged for value in unit]
    observed = sum(
        2 * sum(a != b for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in judged
    ) / len(values)
    pairs = list(combinations(values, 2))
    expected = sum(a != b for a, b in pairs) / len(pairs)
    return 1 - observed / expected if expected else math.nan


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=4, max_size=4), min_size=2)
)
def test_alpha_is_the_definition(ratings):
    if not any(sum(v is not None for v in unit) > 1 for unit in ratings):
        return
    value, low, high = krippendorff_alpha(count_verdicts(ratings)[1])
    assert value == pytest.approx(brute_force_alpha(ratings), nan_ok=True)
    assert -1 <= low <= high <= 1
    if not math.isnan(value):
        assert low <= value <= high


def test_agreement_intervals_cover_the_truth():
    """Verdicts from a beta-binomial: the true coefficient is its intraclass correlation."""
    rng = np.random.default_rng(8)
    for mean, truth in ((0.9, 0.3), (0.6, 0.6)):
        a, b = mean * (1 / truth - 1), (1 - mean) * (1 / truth - 1)
        covered = 0
        for _ in range(300):
            yes = rng.binomial(4, rng.beta(a, b, 120))
            _, low, high = fleiss_kappa(np.stack([yes, 4 - yes], axis=1))
            covered += low <= truth <= high
        assert covered / 300 >= 0.93


def test_agreement_that_is_perfect_or_undefined():
    value, low, high = fleiss_kappa([[4, 0]] * 20 + [[0, 4]] * 5)
    assert value == high == 1
    assert 0.3 < low < 0.95
    value, *ends = fleiss_kappa([[4, 0]] * 20)
    assert math.isnan(value)
    assert ends == [-1, 1]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[4, 0], [3, 0]], "as many verdicts on every unit"),
        ([[1, 0], [0, 1]], "two or more"),
        ([[1, -1]], "whole numbers"),
        ([1, 2], "units × categories"),
    ],
)
def test_counts_that_make_no_sense(counts, message):
    with pytest.raises(InputError, match=message):
        fleiss_kappa(counts)
    with pytest.raises(InputError, match="two verdicts or more, got none"):
        krippendorff_alpha([[1, 0], [0, 1]])
