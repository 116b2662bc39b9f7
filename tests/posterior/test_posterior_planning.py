"""Planning: the approximation against simulation, the curve, seeds, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from evenhand import lexicon
from evenhand.cli import run
from evenhand.errors import InputError, UnknownNameError
from evenhand.posterior import (
    CrossedPrior,
    calibrate,
    fit,
    measure_contrasts,
    plan,
    simulate,
    tables,
)
from evenhand.posterior.crossed import CrossedData, Marginal, draw_effects, fit_crossed
from evenhand.posterior.planning import (
    MAX_ATTRIBUTES,
    RELIGION,
    SCALES,
    PlanLayout,
    Precision,
    sample_delta,
    simulate_data,
)

pytestmark = pytest.mark.slow

LAYOUT = PlanLayout.of_classes([3, 2])
TRUE = np.array([0.12, 0.2, 0.03, 0.14, 0.05])
PRIOR = CrossedPrior()


@pytest.fixture(scope="module")
def religion():
    return plan("religion", effect=0.1, sets=16, seed=4)


def test_known_scales_give_the_posterior_of_delta():
    """The approximation's sd is that of exact draws of δ given the scales, on that very design."""
    rng = np.random.default_rng(0)
    data = simulate_data(LAYOUT, 6, 0.05, TRUE, rng)
    marginal = Marginal(data, PRIOR)
    draws = draw_effects(marginal, np.tile(TRUE, (20_000, 1)), rng).beta[:, 1]
    assert float(Precision(LAYOUT, TRUE, PRIOR).sd(6)) == pytest.approx(draws.std(), rel=0.02)


def test_approximation_is_the_error_of_the_estimate():
    """Over simulated tables the posterior mean given the scales misses δ by the sd it claims."""
    rng = np.random.default_rng(1)
    misses = []
    for _ in range(600):
        marginal = Marginal(simulate_data(LAYOUT, 8, 0.05, TRUE, rng), PRIOR)
        lower = marginal.factor(TRUE[None])[0][0]
        mean = np.linalg.solve(lower[:-1, :-1].T, lower[-1, :-1])
        misses.append(PRIOR.delta_sd * mean[1] - 0.05)
    claimed = float(Precision(LAYOUT, TRUE, PRIOR).sd(8))
    assert np.std(misses) == pytest.approx(claimed, rel=0.1)
    assert abs(np.mean(misses)) < 4 * claimed / np.sqrt(600)


def test_precision_falls_to_the_spread_of_the_words():
    sd = Precision(LAYOUT, TRUE, PRIOR).sd(np.array([1, 2, 5, 10, 100, 1e9]))
    assert np.all(np.diff(sd) < 0)
    assert sd[-1] == pytest.approx(0.03 / np.sqrt(5), rel=0.01)


@pytest.mark.parametrize("attributes", [4, 12])
def test_importance_sampling_agrees_with_the_chains(attributes):
    """δ with the scales integrated out: the weighted normals against the sampler of crossed."""
    table = simulate(
        delta=0.1, words=(3, 3), stereotypes=(attributes // 2,) * 2, human=0, neutral=0, seed=3
    )
    chains = fit_crossed(table, draws=8000, seed=1)
    summary = measure_contrasts(chains)["associated-different"]
    data = CrossedData.of(table)
    with threadpool_limits(1, "blas"):  # the masses of single samples differ by up to .03
        mixtures = [sample_delta(data, PRIOR, TRUE, np.random.default_rng(i)) for i in range(5, 9)]
    for mean, sd in (mixture.moments() for mixture in mixtures):
        assert mean == pytest.approx(summary.value, abs=0.15 * summary.details["sd"])
        assert sd == pytest.approx(summary.details["sd"], rel=0.12)
    for end in (summary.low, summary.high):
        masses = [mixture.mass_denser_than(end) for mixture in mixtures]
        assert np.mean(masses) == pytest.approx(0.95, abs=0.03)


def test_controls_hardly_help():
    """Leaving the controls out, as planning does, costs δ next to nothing."""
    table = simulate(delta=0.05, words=(3, 3), stereotypes=(4, 4), seed=2)
    full = Marginal(CrossedData.of(table), PRIOR)
    scales = np.array([tables.SCALES[name] for name in full.data.scales])
    lower = full.factor(scales[None])[0][0][:-1, :-1]
    column = len(full.data.present)
    with_controls = PRIOR.delta_sd * np.linalg.norm(
        np.linalg.solve(lower, np.eye(len(lower))[column])
    )
    reduced = np.array([0.12, 0.19, 0.03, np.hypot(0.035, 0.14), 0.01])
    without = float(Precision(PlanLayout.of_table(table), reduced, PRIOR).sd(8))
    assert without == pytest.approx(with_controls, rel=0.02)


def test_a_plan_for_a_topic(religion):
    assert (religion.words, religion.classes, religion.available) == (15, 3, 11)
    assert religion.scales == RELIGION
    assert religion.low <= religion.needed <= religion.high
    assert 3 <= religion.needed <= 10
    assert religion.per_class == -(-religion.needed // 3)
    assert religion.scales_range is None
    assert any("Reddit" in note for note in religion.notes)
    numbers = [point.details["attributes"] for point in religion.curve]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 3
    for point in religion.curve:
        assert point.value == point.details["detected"] / point.n
        assert point.low <= point.value <= point.high
    fitted = [point.details["fitted"] for point in religion.curve]
    assert fitted == sorted(fitted)
    assert religion.power_available.value > religion.power
    assert religion.limit >= fitted[-1]
    assert plan(lexicon.topic("religion"), effect=-0.1, sets=16, seed=4) == religion


def test_seeds(religion):
    other = plan("religion", effect=0.1, sets=16, seed=5)
    assert other.curve != religion.curve


def test_smaller_effects_and_more_power_need_more(religion):
    assert plan("religion", effect=0.06, sets=10).needed > religion.needed
    assert plan("religion", effect=0.1, power=0.97, sets=10).needed > religion.needed
    assert plan("religion", effect=0.1, prob=0.999, sets=10).needed > religion.needed


def test_an_effect_that_no_number_of_attributes_detects():
    result = plan("race", effect=0.01, sets=10)
    assert result.needed is None
    assert result.per_class is None
    assert result.power_available.value < result.limit < 0.8
    assert str(MAX_ATTRIBUTES) in result.notes[0].replace(",", "")
    assert "more protected words" in result.notes[0]


def test_a_plan_from_a_table_takes_its_scales():
    table = simulate(delta=-0.1, words=(4, 4), stereotypes=(6, 6), human=8, neutral=20, seed=1)
    result = plan(table, effect=0.1, sets=10)
    assert (result.words, result.classes, result.available) == (8, 2, 12)
    assert tuple(result.scales) == SCALES
    assert result.scales["error"] == pytest.approx(0.12, abs=0.02)
    assert result.scales["word"] == pytest.approx(np.hypot(0.035, 0.14), rel=0.7)
    low, high = result.scales_range
    assert low <= result.needed
    assert high is None or high >= result.needed
    noisy = table.with_distance(
        table.distance + np.random.default_rng(0).normal(0, 0.3, table.rows), "noisy"
    )
    assert plan(noisy, effect=0.1, sets=10).approximate > result.approximate


def test_layout_of_a_table_with_holes():
    table = simulate(words=(2, 2), stereotypes=(2, 2), human=3, neutral=3, seed=1)
    rows = np.ones(table.rows, dtype=bool)
    rows[0] = False
    layout = PlanLayout.of_table(table.select(rows))
    assert layout.present.sum() == 4 * 4 - 1
    assert layout.associated.sum() == 8 - 1
    holed = Precision(layout, TRUE, PRIOR).sd(8)
    assert holed > Precision(PlanLayout.of_table(table), TRUE, PRIOR).sd(8)
    data = layout.draw(8, np.random.default_rng(0))
    assert data.y.size == 2 * 15


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"effect": 0.0}, "effect: expected a difference of distances, not 0, got 0"),
        ({"effect": float("nan")}, "effect: expected"),
        ({"effect": 3.0}, "effect: expected"),
        ({"power": 1.0}, "power: expected more than 0.05"),
        ({"power": 0.05}, "power: expected more than 0.05"),
        ({"power": 0.1, "prob": 0.89}, "power: expected more than 0.11"),
        ({"prob": 1.0}, "prob: expected a number between 0 and 1, got 1"),
        ({"sets": 1}, "sets: expected at least 10, got 1"),
    ],
)
def test_refused(changes, words):
    with pytest.raises(InputError, match=words):
        plan("religion", **changes)


def test_unknown_topics_and_tables(tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'religion'"):
        plan("relgion")
    with pytest.raises(OSError, match=r"none\.csv"):
        plan(tmp_path / "none.csv")
    table = simulate(words=(2, 2), stereotypes=(2, 2))
    with pytest.raises(InputError, match="different for another"):
        plan(replace(table, connection=np.maximum(table.connection, 1)))


def test_calibration_detects_a_difference_only_where_there_is_one():
    table = simulate(words=(4, 4), stereotypes=(5, 5), human=5, neutral=5, seed=2)
    fitted = fit(table, draws=640)
    steps: list[tuple[int, int]] = []

    def calibrated(effect):
        return calibrate(
            fitted, effect=effect, sets=12, prob=0.95, seed=4, progress=lambda *s: steps.append(s)
        )

    results = calibrated(-0.5)
    assert steps == [(k, 24) for k in range(1, 25)]
    coverage, false_positives, coverage_large, power = results
    assert [m.metric for m in results] == ["coverage", "false_positives", "coverage", "power"]
    assert [m.ideal for m in results] == [0.95, pytest.approx(0.05), 0.95, None]
    assert [m.details["truth"] for m in results] == [0.0, 0.0, -0.5, -0.5]
    assert false_positives.value <= 2 / 12
    assert coverage.value == pytest.approx(1 - false_positives.value)
    assert power.value == 1
    assert coverage_large.value >= 9 / 12
    assert coverage_large.low < coverage_large.value <= coverage_large.high
    assert calibrated(-0.5) == results
    assert calibrated(-0.01)[3].value < 0.5
    with pytest.raises(InputError, match="expected a fit of crossed, got baseline"):
        calibrate(fit(table, "baseline", draws=160))


def test_the_command(capsys):
    arguments = ("plan", "gender", "--effect", "0.15", "--simulations", "10")
    assert run([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["schema"] == "evenhand/2"
    assert result["words"] == 14
    assert result["needed"] >= 2
    assert set(result["curve"][0]["details"]) >= {"attributes", "sd", "approximate", "fitted"}
    assert run(arguments) == 0
    text = capsys.readouterr().out
    needed = f"with a power of 0.8, {result['needed']} stereotypes are needed"
    assert needed in " ".join(text.split())
    assert text.splitlines()[-1] == result["sentence"]
    assert "note: the scales are those of religion" in text
    for wrong in (("--effect", "0"), ("--power", "1"), ("--power", "many")):
        assert run(["plan", "religion", *wrong]) == 2
        assert capsys.readouterr().err.startswith("error: ")
    assert run(["plan", "nosuch"]) == 2
    assert "unknown topic 'nosuch'" in capsys.readouterr().err
