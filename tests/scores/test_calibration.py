"""False alarms of `scores` in worlds of equal models, by the script that fills the tables."""

import pytest

from calibration_scores import MIXTURES, gest_rows, professions_rows, scores_rows


@pytest.mark.slow
@pytest.mark.parametrize(("templates", "models"), [(2, 10), (3, 5), (4, 10), (6, 2), (12, 2)])
def test_equal_models_differ_at_the_nominal_rate_at_most(templates, models):
    for row in scores_rows(500, 1, (templates,), (models,), MIXTURES):
        assert row["low"] <= 0.05, row
        assert row["rate"] <= 0.085, row
        assert row["coverage"] >= 0.92, row


@pytest.mark.slow
def test_a_difference_is_found_where_templates_are_many():
    alike, differ = scores_rows(200, 2, (12,), (5,), MIXTURES[:2])
    assert alike["power_08"] > 0.95
    assert differ["power_08"] > 0.9
    [two] = scores_rows(200, 2, (2,), (5,), MIXTURES[1:2])
    assert two["power_08"] < 0.05  # undecided, whatever the difference


@pytest.mark.slow
def test_measures_over_few_levels_raise_no_false_alarms():
    for row in (*professions_rows(400, 1), *gest_rows(400, 1)):
        assert row["rate"] <= 0.085, row
        assert row["coverage"] >= 0.92, row
