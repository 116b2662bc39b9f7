"""Contrasts, changes and checks: what is concluded from the fits."""

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.posterior.checks import (
    check_posterior,
    check_prior,
    check_sensitivity,
    intra_class_correlation,
)
from evenhand.posterior.contrasts import (
    class_contrasts,
    compare_tables,
    connection_contrasts,
    equalised,
    word_contrasts,
    word_levels,
)
from evenhand.posterior.models import fit
from evenhand.posterior.tables import simulate

DESIGN = {"words": (3, 3), "stereotypes": (4, 4), "human": 6, "neutral": 10}


def test_contrasts_are_differences_within_each_draw(fitted):
    crossed = fitted.fits["crossed"]
    found = connection_contrasts(crossed)
    assert list(found) == [
        "associated-different", "associated-human", "associated-none", "human-none",
    ]  # fmt: skip
    assert found["associated-different"].mean == pytest.approx(crossed.draws["delta"].mean())
    assert found["associated-different"].low < -0.2 < found["associated-different"].high
    gamma = crossed.draws["gamma"]
    human_none = gamma[..., 1] - gamma[..., 2]
    assert found["human-none"].sd == pytest.approx(human_none.std(ddof=1))
    assert found["human-none"].p_below_zero == pytest.approx((human_none < 0).mean())


def test_a_wider_probability_is_a_wider_interval(fitted):
    narrow = connection_contrasts(fitted.fits["crossed"], 0.5)["associated-different"]
    wide = connection_contrasts(fitted.fits["crossed"], 0.95)["associated-different"]
    assert wide.low < narrow.low < narrow.high < wide.high


def test_by_word_and_by_class(fitted):
    crossed = fitted.fits["crossed"]
    words, classes = word_contrasts(crossed), class_contrasts(crossed)
    assert [row.word for row in words] == list(crossed.table.words)
    assert [row.group for row in classes] == ["class1", "class2"]
    mean = np.mean([row.summary.mean for row in words if row.group == "class1"])
    assert classes[0].summary.mean == pytest.approx(mean)
    with pytest.raises(InputError, match="come from the model crossed"):
        word_contrasts(fitted.fits["separate"])


@pytest.mark.parametrize("model", ["coefficients", "separate", "paper", "crossed"])
def test_word_levels_are_near_the_means_of_the_cells(fitted, model):
    table = fitted.table
    rows = word_levels(fitted.fits[model])
    assert len(rows) == len(table.words) * 4
    levels = ("associated", "different", "human", "none")
    for row in rows:
        cell = (table.word == table.words.index(row.word)) & (
            table.connection == levels.index(row.of)
        )
        gap = row.summary.mean - table.distance[cell].mean()
        assert abs(gap) < 4 * row.summary.sd + 0.02, row
    with pytest.raises(InputError, match="baseline has no connection classes"):
        word_levels(fitted.fits["baseline"])


def test_a_planted_change_is_found_and_is_paired():
    before = simulate(delta=-0.2, seed=5, **DESIGN)
    rng = np.random.default_rng(0)
    moved = before.distance + 0.15 * (before.connection == 0) + 0.01 * rng.standard_normal(
        before.rows
    )  # fmt: skip
    change = compare_tables(before, before.with_distance(moved, "after"), draws=800)
    found = change.contrasts()["associated-different"]
    assert found["change"].low < 0.15 < found["change"].high
    assert found["change"].sd < found["before"].sd / 3
    assert change.levels()["associated"]["change"].mean == pytest.approx(0.15, abs=0.03)
    assert change.levels()["none"]["change"].mean == pytest.approx(0.0, abs=0.03)
    by_word = [row for row in change.words() if row.of == "associated-different"]
    assert all(0.1 < row.summary.mean < 0.2 for row in by_word)
    assert "hard debiasing makes associated-different zero" in change.notes[0]
    assert change.equalised == ()


def test_equalised_words_are_named():
    before = simulate(delta=-0.2, seed=5, **DESIGN)
    wide = before.distance.reshape(6, -1).copy()
    wide[3, :8] = wide[0, :8]  # a pair of words made equal to every stereotype
    after = before.with_distance(wide.ravel(), "after")
    assert equalised(after) == ("word1", "word4")
    change = compare_tables(before, after, draws=160)
    assert change.equalised == ("word1", "word4")
    assert "word1, word4" in change.notes[1]


def test_no_change_is_told():
    table = simulate(seed=5, **DESIGN)
    with pytest.raises(InputError, match="there is no change to estimate"):
        compare_tables(table, table)
    shifted = table.with_distance(table.distance + 0.1 * (table.connection == 0), "shifted")
    with pytest.raises(InputError, match="explain every number exactly"):
        compare_tables(table, shifted, draws=160)


def test_only_crossed_makes_attributes_that_recur(fitted):
    passed = {}
    for name, result in fitted.fits.items():
        for check in check_posterior(result, replicates=200):
            passed[name, check.statistic] = check.passed
    name = "intra-class correlation by attribute"
    assert [model for model in fitted.fits if passed[model, name]] == ["crossed"]
    assert passed["crossed", "sd"]
    assert passed["crossed", "mean associated"]


def test_the_intra_class_correlation_is_that_of_the_simulation():
    scales = dict.fromkeys(
        ("delta", "word", "slope_stereotype", "slope_human"), 0.0
    )  # fmt: skip
    scales |= dict.fromkeys(("stereotype", "human", "neutral"), 0.2) | {"error": 0.1}
    table = simulate(words=(8, 8), stereotypes=(30, 30), human=60, neutral=300, scales=scales)
    found = intra_class_correlation(table, table.distance[None])[0]
    assert found == pytest.approx(0.04 / (0.04 + 0.01), abs=0.04)


@pytest.mark.parametrize("model", ["baseline", "coefficients", "separate", "crossed"])
def test_prior_predictive_tables(model):
    found = {c.statistic: c for c in check_prior(model, simulate(**DESIGN), replicates=200)}
    assert found["mean none"].low < 0 < 2 < found["mean none"].high
    assert 0.2 < found["share outside 0 to 2"].mean < 0.7
    with pytest.raises(InputError, match="got paper"):
        check_prior("paper", simulate(**DESIGN))


def test_delta_hardly_depends_on_the_prior():
    found = check_sensitivity(simulate(delta=-0.2, seed=1, **DESIGN), draws=320)
    means = {row.name: row.contrasts["associated-different"].mean for row in found}
    assert means["as given"] == pytest.approx(means["levels twice as wide"], abs=0.02)
    assert abs(means["δ ten times narrower"]) < abs(means["as given"])


def test_student_errors():
    table = simulate(delta=-0.2, seed=2, **DESIGN)
    rng = np.random.default_rng(0)
    heavy = table.with_distance(table.distance + 0.15 * rng.standard_t(2, table.rows), "heavy")
    result = fit(heavy, errors="student", draws=160)
    assert result.draws["freedom"].mean() < 6
    assert result.draws["freedom"].shape == (8, 20)
    assert "Student-t errors" in result.notes[0]
    normal = fit(table, errors="student", draws=320)
    assert normal.draws["freedom"].mean() > 10
    gap = normal.draws["delta"].mean() - fit(table, draws=320).draws["delta"].mean()
    assert abs(gap) < 0.02
