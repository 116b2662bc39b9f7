"""Contrasts, changes and checks of fits."""

from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.posterior.checks import (
    Sensitivity,
    check_posterior,
    check_prior,
    check_sensitivity,
    intra_class_correlation,
    summarize_sensitivity,
)
from evenhand.posterior.contrasts import compare_tables, find_equalised
from evenhand.posterior.crossed import CROSSED, CrossedPrior
from evenhand.posterior.fits import measure_contrasts, measure_levels
from evenhand.posterior.models import MODELS, fit
from evenhand.posterior.tables import CONNECTIONS, SCALES, simulate
from evenhand.results import Comparison, Measurement, load

DESIGN = {"words": (3, 3), "stereotypes": (4, 4), "human": 6, "neutral": 10}


def test_contrasts_are_differences_within_each_draw(fitted):
    crossed = fitted.fits["crossed"]
    contrasts = measure_contrasts(crossed)
    assert list(contrasts) == [
        "associated-different",
        "associated-human",
        "associated-none",
        "human-none",
    ]
    delta = contrasts["associated-different"]
    assert delta.value == pytest.approx(crossed.draws["delta"].mean())
    assert delta.low < -0.2 < delta.high
    assert delta.low < delta.details["inner_low"] < delta.details["inner_high"] < delta.high
    gamma = crossed.draws["gamma"]
    human_none = gamma[..., 1] - gamma[..., 2]
    details = contrasts["human-none"].details
    assert details["sd"] == pytest.approx(human_none.std(ddof=1))
    assert details["p_below_zero"] == pytest.approx((human_none < 0).mean())


def test_contrasts_are_measurements(fitted, tmp_path):
    delta = measure_contrasts(fitted.fits["crossed"])["associated-different"]
    assert (delta.ideal, delta.worse, delta.subject) == (0.0, "lower", "simulated")
    assert delta.n == int((fitted.table.group[fitted.table.attribute] == 0).sum())
    assert Measurement.from_dict(delta.to_dict()) == delta
    delta.save(tmp_path / "delta.json")
    assert load(tmp_path / "delta.json") == delta
    assert len(delta.to_frame()) == 1 + len(delta.parts)
    assert "posterior_contrast" in delta._repr_html_()
    assert delta.plot().to_dict()


def test_a_wider_probability_is_a_wider_interval(fitted):
    narrow = measure_contrasts(fitted.fits["crossed"], 0.5)["associated-different"]
    wide = measure_contrasts(fitted.fits["crossed"], 0.95)["associated-different"]
    assert wide.low < narrow.low < narrow.high < wide.high
    assert (wide.details["inner_low"], wide.details["inner_high"]) == (narrow.low, narrow.high)


def test_by_word_and_by_class(fitted):
    crossed = fitted.fits["crossed"]
    delta = measure_contrasts(crossed)["associated-different"]
    words, classes = delta.select("word"), delta.select("class")
    assert [part.query for part in words] == list(crossed.table.words)
    assert [part.query for part in classes] == ["class1", "class2"]
    mean = np.mean([part.value for part in words if part.details["class"] == "class1"])
    assert classes[0].value == pytest.approx(mean)
    assert sum(part.n for part in classes) == delta.n
    assert measure_contrasts(fitted.fits["separate"])["associated-different"].parts == ()


@pytest.mark.parametrize("model", ["coefficients", "separate", "paper", *CROSSED])
def test_word_levels_are_near_the_means_of_the_cells(fitted, model):
    table = fitted.table
    levels = measure_levels(fitted.fits[model])
    assert list(levels) == list(CONNECTIONS)
    for name, level in levels.items():
        assert [part.query for part in level.parts] == list(table.words)
        for part in level.parts:
            cell = (table.word == table.words.index(part.query)) & (
                table.connection == CONNECTIONS.index(name)
            )
            difference = part.value - table.distance[cell].mean()
            assert abs(difference) < 4 * part.details["sd"] + 0.02, part
            assert part.n == int(cell.sum())
    assert measure_levels(fitted.fits["baseline"]) == {}


def test_a_planted_change_is_detected_and_is_paired():
    before = simulate(delta=-0.2, seed=5, **DESIGN)
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal(before.rows)
    moved = before.distance + 0.15 * (before.connection == 0) + noise
    change = compare_tables(before, before.with_distance(moved, "after"), draws=800)
    delta = change.contrasts()["associated-different"]
    assert delta.change.low < 0.15 < delta.change.high
    assert delta.details["sd"] < delta.before.details["sd"] / 3
    assert delta.paired == delta.before.n == delta.after.n
    assert change.levels()["associated"].change.value == pytest.approx(0.15, abs=0.03)
    assert change.levels()["none"].change.value == pytest.approx(0.0, abs=0.03)
    by_word = [part for part in delta.parts if part.before.by == "word"]
    assert len(by_word) == 6
    assert all(0.1 < part.change.value < 0.2 for part in by_word)
    assert "hard debiasing makes associated-different zero" in change.notes[0]
    assert delta.notes == change.notes
    assert change.equalised == ()
    assert Comparison.from_dict(delta.to_dict()) == delta


@pytest.mark.parametrize("model", MODELS)
def test_every_model_compares(model):
    table = simulate(words=(2, 2), stereotypes=(3, 3), human=4, neutral=6, seed=5)
    moved = table.distance + 0.05 + 0.1 * (table.connection == 0)
    noise = 0.01 * np.random.default_rng(0).standard_normal(table.rows)
    change = compare_tables(table, table.with_distance(moved + noise, "b"), model, draws=400)
    levels, contrasts = change.levels(), change.contrasts()
    assert change.to_dict()["model"] == model
    if model == "baseline":
        assert contrasts == {}
        assert list(levels) == ["all"]
        assert levels["all"].change.value == pytest.approx(
            np.mean(moved - table.distance), abs=0.01
        )
        assert [part.query for part in levels["all"].parts] == list(table.words)
        return
    assert tuple(levels) == table.levels
    assert contrasts["associated-different"].change.value == pytest.approx(0.1, abs=0.02)
    assert any("draw conclusions from crossed" in n for n in change.notes) == (model not in CROSSED)


def test_equalised_words_are_named():
    before = simulate(delta=-0.2, seed=5, **DESIGN)
    wide = before.distance.reshape(6, -1).copy()
    wide[3, :8] = wide[0, :8]  # two words with equal distances to every stereotype
    after = before.with_distance(wide.ravel(), "after")
    assert find_equalised(after) == ("word1", "word4")
    change = compare_tables(before, after, draws=160)
    assert change.equalised == ("word1", "word4")
    assert "word1, word4" in change.notes[1]


def test_no_change_is_an_error():
    table = simulate(seed=5, **DESIGN)
    with pytest.raises(InputError, match="there is no change to estimate"):
        compare_tables(table, table)
    shifted = table.with_distance(table.distance + 0.1 * (table.connection == 0), "shifted")
    with pytest.raises(InputError, match="explain every number exactly"):
        compare_tables(table, shifted, draws=160)


def test_only_crossed_simulates_attributes_that_recur(fitted):
    passed = {}
    for name, result in fitted.fits.items():
        for check in check_posterior(result, replicates=200):
            passed[name, check.statistic] = check.passed
    name = "intra-class correlation by attribute"
    assert [model for model in fitted.fits if passed[model, name]] == list(CROSSED)
    assert passed["crossed", "sd"]
    assert passed["crossed", "mean associated"]


def test_only_the_interaction_simulates_classes_that_share_an_attribute():
    scales = {**SCALES, "interaction_stereotype": 0.15}
    table = simulate(seed=5, scales=scales, human=5, neutral=5)
    name = "intra-class correlation by class and attribute"
    p = {
        model: {c.statistic: c.p for c in check_posterior(fit(table, model, draws=800))}[name]
        for model in CROSSED
    }
    assert p["crossed"] > 0.1 > 0.02 > p["crossed-no-interaction"]


def test_the_intra_class_correlation_is_that_of_the_simulation():
    scales = dict.fromkeys(("delta", "word", "slope_stereotype", "slope_human"), 0.0)
    scales |= dict.fromkeys(("stereotype", "human", "neutral"), 0.2) | {"error": 0.1}
    table = simulate(words=(8, 8), stereotypes=(30, 30), human=60, neutral=300, scales=scales)
    correlation = intra_class_correlation(table, table.distance[None])[0]
    assert correlation == pytest.approx(0.04 / (0.04 + 0.01), abs=0.04)


@pytest.mark.parametrize("model", ["baseline", "coefficients", "separate", *CROSSED])
def test_prior_predictive_tables(model):
    checked = {c.statistic: c for c in check_prior(model, simulate(**DESIGN), replicates=200)}
    assert checked["mean none"].low < 0 < 2 < checked["mean none"].high
    assert 0.2 < checked["share outside 0 to 2"].mean < 0.7
    with pytest.raises(InputError, match="got paper"):
        check_prior("paper", simulate(**DESIGN))


@pytest.mark.slow
def test_delta_hardly_depends_on_the_prior():
    rows = check_sensitivity(simulate(delta=-0.2, seed=1, **DESIGN), draws=320)
    means = {row.name: row.contrasts["associated-different"].value for row in rows}
    assert means["as given"] == pytest.approx(means["levels twice as wide"], abs=0.02)
    assert abs(means["δ ten times narrower"]) < abs(means["as given"])
    assert summarize_sensitivity(rows) == (
        "Monte Carlo error aside, associated-different is found under all 8 priors"
    )


def test_whether_the_judgement_depends_on_the_prior_is_said():
    delta = measure_contrasts(fit(simulate(delta=-0.2, seed=1, **DESIGN), draws=160))
    name = "associated-different"
    clear, open_ = (
        {name: replace(delta[name], value=-0.03, low=-0.06, high=high)} for high in (-0.001, 0.002)
    )
    given = Sensitivity("as given", CrossedPrior(), clear)
    wider = Sensitivity("spreads never negligible", CrossedPrior(), open_)
    assert [row.outcome for row in (given, wider)] == ["found", "undecided"]
    assert wider.to_dict()["outcome"] == "undecided"
    assert summarize_sensitivity([given, wider]) == (
        "Monte Carlo error aside, associated-different depends on the prior: found under "
        "“as given” (-0.0300 [-0.0600, -0.0010]); undecided under “spreads never negligible” "
        "(-0.0300 [-0.0600, 0.0020])"
    )


@pytest.mark.slow
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
