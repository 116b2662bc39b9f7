"""The samplers' arithmetic against dense matrices and numerical integration on small tables."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import cauchy, expon, halfcauchy, multivariate_normal, norm

from evenhand.errors import InputError, UnknownNameError
from evenhand.posterior import tables
from evenhand.posterior.crossed import (
    CROSSED,
    CrossedData,
    CrossedPrior,
    Marginal,
    WeightedMarginal,
    check_identified,
    draw_effects,
    find_classes,
    fit_crossed,
)
from evenhand.posterior.models import MODELS, Priors, fit, fit_models
from evenhand.posterior.tables import simulate
from evenhand.posterior.thesis import (
    THESIS,
    PaperPrior,
    ThesisPrior,
    build_design,
    fit_paper,
    fit_thesis,
    sample_density,
    solve,
)

SMALL = {"words": (2, 2), "stereotypes": (2, 2), "human": 3, "neutral": 4}


def with_gaps(table, seed=0):
    """Remove a quarter of the cells of the table."""
    present = np.random.default_rng(seed).random(table.rows) > 0.25
    return table.select(present)


@pytest.fixture
def small():
    return with_gaps(simulate(delta=-0.1, seed=3, **SMALL))


@pytest.fixture
def linear():
    rng = np.random.default_rng(5)
    x = np.eye(3)[rng.integers(0, 3, 12)] + 0.1 * rng.standard_normal((12, 3))
    y = x @ [0.8, 1.1, 0.9] + 0.2 * rng.standard_normal(12)
    mean, sd = np.array([1.0, 0.9, 0.0]), np.array([0.5, 0.3, 2.0])
    return x, y, mean, sd


def evidence(x, y, mean, sd, sigma):
    covariance = sigma**2 * np.eye(len(y)) + (x * sd**2) @ x.T
    return multivariate_normal(x @ mean, covariance).logpdf(y)


def test_the_scale_of_a_linear_model_against_a_dense_normal(linear):
    x, y, mean, sd = linear
    posterior = solve(x.T @ x, x.T @ y, y, prior_mean=mean, prior_sd=sd, error_scale=1.0)
    total = quad(lambda s: np.exp(evidence(x, y, mean, sd, s)) / (1 + s**2), 0.01, 5)[0]
    assert posterior.log_evidence == pytest.approx(np.log(total), abs=1e-6)
    for sigma in (0.1, 0.2, 0.4):
        there = np.exp(np.interp(np.log(sigma), np.log(posterior.grid), posterior.log_density))
        exact = np.exp(evidence(x, y, mean, sd, sigma)) / (1 + sigma**2) * sigma / total
        assert there == pytest.approx(exact, rel=1e-4)


def test_the_coefficients_of_a_linear_model_against_integration(linear):
    x, y, mean, sd = linear
    posterior = solve(x.T @ x, x.T @ y, y, prior_mean=mean, prior_sd=sd, error_scale=1.0)
    drawn, sigma = posterior.draw(200_000, np.random.default_rng(0))

    def weight(s):
        return np.exp(evidence(x, y, mean, sd, s)) / (1 + s**2)

    def conditional(s):
        precision = x.T @ x / s**2 + np.diag(sd**-2)
        return np.linalg.solve(precision, x.T @ y / s**2 + mean / sd**2)

    total = quad(weight, 0.01, 5)[0]
    for k in range(3):
        exact = quad(lambda s, k=k: weight(s) * conditional(s)[k], 0.01, 5)[0] / total
        assert drawn[:, k].mean() == pytest.approx(exact, abs=4 * drawn[:, k].std() / 447)
    exact = quad(lambda s: weight(s) * s, 0.01, 5)[0] / total
    assert sigma.mean() == pytest.approx(exact, abs=4 * sigma.std() / 447)


def test_draws_from_a_density_on_a_grid():
    grid = np.linspace(-6, 6, 2001)
    drawn = sample_density(grid, norm.logpdf(grid), 100_000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(0, abs=0.013)
    assert drawn.std() == pytest.approx(1, abs=0.01)


def crossed_covariance(data, scales, prior):
    """The covariance of all rows, effect by effect, straight from the model's definition."""
    named = dict(zip(data.scales, scales, strict=True))
    n = data.y.size
    groups = ("stereotype", "human", "neutral")
    group = np.array([groups[g] for g in data.group])[data.attribute]
    total = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            word = data.word[a] == data.word[b]
            own = data.associated[a] and data.associated[b]
            same = group[a] == group[b]
            attribute = data.attribute[a] == data.attribute[b]
            one_class = (
                data.word_class is not None
                and data.word_class[data.word[a]] == data.word_class[data.word[b]]
            )
            total[a, b] = (
                (a == b) * named["error"] ** 2
                + attribute * named[group[a]] ** 2
                + (attribute and one_class) * named.get(f"interaction_{group[a]}", 0.0) ** 2
                + same * prior.level_sd**2
                + own * prior.delta_sd**2
                + word * named["word"] ** 2
                + (word and own) * named["delta"] ** 2
                + (word and same) * named.get(f"slope_{group[a]}", 0.0) ** 2
            )
    return total


SCALES = {
    "error": 0.1,
    "stereotype": 0.2,
    "human": 0.15,
    "neutral": 0.12,
    "delta": 0.07,
    "word": 0.05,
    "slope_stereotype": 0.11,
    "slope_human": 0.06,
    "interaction_stereotype": 0.08,
    "interaction_human": 0.04,
    "interaction_neutral": 0.03,
}


def log_prior_of_scales(data, scales):
    """Scales of δ_i and η are negligible or not, with equal probability; others half-normal."""
    total = 0.0
    for name, scale in zip(data.scales[1:], scales[1:], strict=True):
        if name == "delta" or name.startswith("interaction"):
            total += np.log(norm.pdf(scale, scale=0.1) / 2 + norm.pdf(scale, scale=0.005) / 2)
        else:
            total += norm.logpdf(scale, scale=0.25)
    return total


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("interaction", [True, False])
@pytest.mark.parametrize("without", [(), ("human",), ("none",), ("human", "none")])
def test_the_marginal_of_crossed_against_a_dense_normal(small, without, interaction, pooled):
    lacking = [("associated", "different", "human", "none").index(name) for name in without]
    table = small.select(~np.isin(small.connection, lacking))
    data = CrossedData.of(table, interaction=interaction)
    assert any(name.startswith("interaction") for name in data.scales) == interaction
    prior = CrossedPrior(level_mean=0.9, delta_sd=0.4)
    marginal = Marginal(data, prior, pooled=pooled)
    scales = np.array([SCALES[name] for name in data.scales])
    several = np.stack([scales, 1.3 * scales])
    expected = [
        multivariate_normal(np.full(data.y.size, 0.9), crossed_covariance(data, s, prior)).logpdf(
            data.y
        )
        for s in several
    ]
    assert marginal.log_likelihood(several) == pytest.approx(expected, abs=1e-8)
    points = marginal.to_points(several)
    assert marginal.to_scales(points) == pytest.approx(several, abs=1e-12)
    step = 1e-6 * np.eye(points.shape[1])
    slopes = np.diagonal(marginal.to_scales(points[0] + step) - several[0]) / 1e-6
    assert marginal.log_jacobian(points)[0] == pytest.approx(np.log(slopes).sum(), abs=1e-2)
    density = marginal(points)
    log_prior = [
        halfcauchy.logpdf(s[0]) + log_prior_of_scales(data, s) + jacobian
        for s, jacobian in zip(several, marginal.log_jacobian(points), strict=True)
    ]
    assert np.diff(density) == pytest.approx(np.diff(np.add(expected, log_prior)), abs=1e-8)


@pytest.mark.parametrize("pooled", [False, True])
def test_the_effects_of_crossed_against_a_dense_normal(small, pooled):
    data, prior = CrossedData.of(small), CrossedPrior()
    dense, marginal = (Marginal(data, prior, pooled=p) for p in (False, pooled))
    scales = np.array([SCALES[name] for name in data.scales])
    drawn = draw_effects(marginal, np.repeat(scales[None], 40_000, 0), np.random.default_rng(0))
    x = data.design()
    sd = dense.effect_sd(scales)
    inverse = np.linalg.inv(crossed_covariance(data, scales, prior))
    gain = (sd**2)[:, None] * x.T @ inverse
    mean = dense.prior_mean + gain @ (data.y - x @ dense.prior_mean)
    variance = sd**2 - np.einsum("pn,np->p", gain, x * sd**2)
    error = np.sqrt(variance / 40_000)
    assert np.all(np.abs(drawn.beta.mean(axis=0) - mean) < 4.5 * error)
    assert drawn.beta.var(axis=0) == pytest.approx(variance, rel=0.05)
    member = np.eye(data.group.size)[data.attribute]
    tau = scales[1 + np.searchsorted(data.present, data.group)] ** 2
    level = np.eye(3)[data.group] * prior.level_sd**2
    covariance = tau[:, None] * member.T + level @ x[:, :3].T
    theta = 1.0 + covariance @ inverse @ (data.y - 1.0)
    spread = tau + prior.level_sd**2 - np.einsum("an,nb,ab->a", covariance, inverse, covariance)
    assert np.all(np.abs(drawn.theta.mean(axis=0) - theta) < 4.5 * np.sqrt(spread / 40_000))
    assert drawn.theta.var(axis=0) == pytest.approx(spread, rel=0.05)
    cells = np.eye(data.group.size * data.classes)[marginal.cell]
    tau = np.repeat(scales[-3 + data.group] ** 2, data.classes)
    gain = tau[:, None] * cells.T @ inverse
    eta = gain @ (data.y - 1.0)
    spread = tau - np.einsum("an,na->a", gain, cells * tau)
    drawn_eta = drawn.eta.reshape(40_000, -1)
    assert np.all(np.abs(drawn_eta.mean(axis=0) - eta) < 4.5 * np.sqrt(spread / 40_000))
    assert drawn_eta.var(axis=0) == pytest.approx(spread, rel=0.05)


def test_classes_are_those_of_the_table_or_follow_from_its_associations(small):
    stated = find_classes(small)
    assert stated.tolist() == [0, 0, 1, 1]
    unstated = replace(small, word_class=("",) * 4)
    assert np.array_equal(find_classes(unstated), stated)
    without = unstated.connection != 0  # words without associated attributes are one class
    assert find_classes(unstated.select(without)).tolist() == [0, 0, 0, 0]


def test_the_interaction_drops_out_where_it_is_not_identified(small):
    assert CrossedData.of(small).classes == 2
    one_word_each = small.select_words(["word1", "word3"])
    for table in (one_word_each, replace(small, word_class=("same",) * 4)):
        data = CrossedData.of(table)
        assert data.word_class is None
        assert not any(name.startswith("interaction") for name in data.scales)
    result = fit(one_word_each, draws=160)
    assert result.model == "crossed"
    assert "eta" not in result.draws


def test_words_of_a_class_are_not_independent_looks_at_an_attribute():
    """With η in the data, δ is less certain than the model without η believes."""
    scales = {**tables.SCALES, "interaction_stereotype": 0.15}
    table = simulate(seed=5, scales=scales, human=5, neutral=5)
    spread = {name: float(fit(table, name, draws=800).draws["delta"].std()) for name in CROSSED}
    assert spread["crossed"] > 1.25 * spread["crossed-no-interaction"]


def test_weights_of_one_are_the_normal_model(small):
    marginal = Marginal(CrossedData.of(small), CrossedPrior())
    weighted = WeightedMarginal(marginal)
    scales = np.array([[SCALES[name] for name in marginal.data.scales]] * 2)
    scales[1] *= 1.4
    weighted.set_weights(np.ones((2, small.rows)))
    points = marginal.to_points(scales)
    assert np.diff(weighted(points)) == pytest.approx(np.diff(marginal(points)))


def test_weighted_rows_against_a_dense_normal(small):
    data, prior = CrossedData.of(small), CrossedPrior()
    marginal = Marginal(data, prior)
    weighted = WeightedMarginal(marginal)
    weights = np.random.default_rng(1).gamma(2.0, 0.5, (1, small.rows))
    weighted.set_weights(weights)
    densities = []
    expected = []
    for factor in (1.0, 1.4):
        scales = factor * np.array([SCALES[name] for name in data.scales])
        covariance = crossed_covariance(data, scales, prior)
        covariance += np.diag(scales[0] ** 2 * (1 / weights[0] - 1))
        likelihood = multivariate_normal(np.ones(small.rows), covariance).logpdf(data.y)
        log_prior = cauchy.logpdf(scales[0]) + log_prior_of_scales(data, scales)
        points = marginal.to_points(scales[None])
        expected.append(likelihood + log_prior + marginal.log_jacobian(points)[0])
        densities.append(weighted(points)[0])
    assert densities[1] - densities[0] == pytest.approx(expected[1] - expected[0], abs=1e-8)


@pytest.mark.parametrize("interaction", [True, False])
@pytest.mark.parametrize("without", [(), ("human",), ("none",), ("associated", "different")])
def test_the_factor_of_weighted_rows_against_the_dense_design(small, without, interaction):
    lacking = [("associated", "different", "human", "none").index(name) for name in without]
    table = small.select(~np.isin(small.connection, lacking))
    table = table.select(~((table.word == 1) & (table.attribute % 3 == 0)))
    data = CrossedData.of(table, interaction=interaction)
    marginal = Marginal(data, CrossedPrior())
    weighted = WeightedMarginal(marginal)
    weights = np.random.default_rng(1).gamma(2.0, 0.5, (2, table.rows))
    weighted.set_weights(weights)
    scales = np.array([1.0, 1.3])[:, None] * [SCALES[name] for name in data.scales]
    lower, log_sigma = weighted.factor(scales)
    for k, chain in enumerate(scales):
        of_scale = dict(zip(data.scales, chain, strict=True))
        names = [tables.GROUPS[g] for g in data.group[data.attribute]]
        same = data.attribute[:, None] == data.attribute
        sigma = np.diag(chain[0] ** 2 / weights[k])
        sigma += same * np.array([of_scale[name] for name in names]) ** 2
        if data.word_class is not None:
            word_class = data.word_class[data.word]
            spread = np.array([of_scale[f"interaction_{name}"] for name in names])
            sigma += (same & (word_class[:, None] == word_class)) * spread**2
        x = data.design() * marginal.effect_sd(chain)
        x = np.column_stack([x, data.y - marginal.prior.level_mean])
        expected = x.T @ np.linalg.solve(sigma, x)
        expected[:-1, :-1] += np.eye(x.shape[1] - 1)
        assert lower[k] @ lower[k].T == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert log_sigma[k] == pytest.approx(np.linalg.slogdet(sigma)[1], rel=1e-9)


def test_the_papers_model_against_integration():
    table = simulate(seed=4, words=(4,), stereotypes=(5,), human=2, neutral=2)
    table = table.select(table.connection == 0)
    drawn = fit_paper(table, PaperPrior(), draws=40_000, seed=1)
    y, word = table.distance, table.word
    same = word[:, None] == word[None, :]
    grid = np.exp(np.linspace(-7, 1, 60))
    total = moments = 0.0
    for sigma in grid:
        for spread in grid:
            covariance = sigma**2 * np.eye(y.size) + spread**2 * same + 0.3**2
            likelihood = np.exp(multivariate_normal(np.ones(y.size), covariance).logpdf(y))
            weight = likelihood * expon.pdf(sigma, scale=0.5) * expon.pdf(spread, scale=0.5)
            weight *= sigma * spread
            mean = 1 + 0.09 * np.linalg.solve(covariance, y - 1).sum()
            total += weight
            moments += weight * np.array([mean, sigma, spread])
    means = [float(drawn.draws[name].mean()) for name in ("mean", "sigma", "spread")]
    errors = [float(drawn.draws[name].std()) / 200 for name in ("mean", "sigma", "spread")]
    assert np.all(np.abs(np.array(means) - moments / total) < 4 * np.array(errors))


def indicators(design):
    """The columns of a design, one row per row of the table."""
    blocks = zip(design.entries, design.index, strict=True)
    return np.hstack([np.eye(len(entries))[index] for entries, index in blocks])


def test_the_thesis_models_have_the_columns_of_their_formulas():
    table = simulate(**SMALL)
    assert indicators(build_design("baseline", table)).shape == (table.rows, 4)
    both = indicators(build_design("coefficients", table))
    assert both.sum(axis=1).tolist() == [2.0] * table.rows
    separate = build_design("separate", table)
    assert indicators(separate).shape == (table.rows, 16)
    rows = [k for k, name in enumerate(separate.entries[0]) if name == "word1, associated"]
    own = (table.word == 0) & (table.connection == 0)
    assert np.array_equal(indicators(separate)[:, rows[0]] == 1, own)


@pytest.mark.parametrize("model", THESIS)
def test_products_of_the_columns_come_from_counts(model):
    table = simulate(**SMALL)
    design = build_design(model, table)
    x = indicators(design)
    gram, cross = design.products(table.distance)
    assert np.array_equal(gram, x.T @ x)
    assert cross == pytest.approx(x.T @ table.distance, rel=1e-12)


@pytest.mark.slow
def test_words_that_are_pooled_have_the_same_posterior():
    """More words than are factored densely, some of them without some attributes."""
    table = simulate(words=(18, 18), stereotypes=(3, 3), human=4, neutral=5, delta=-0.1, seed=2)
    table = table.select(~((table.word % 5 == 0) & (table.attribute % 4 == 1)))
    data = CrossedData.of(table)
    pooled, dense = (Marginal(data, CrossedPrior(), pooled=p) for p in (True, False))
    assert pooled.pool is not None
    assert pooled.pool.sizes.max() > 1
    assert Marginal(data, CrossedPrior()).pool is not None
    scales = np.array([SCALES[name] for name in data.scales])
    several = np.stack([scales, 1.3 * scales, 0.2 * scales])
    assert pooled.log_likelihood(several) == pytest.approx(dense.log_likelihood(several), abs=1e-7)
    drawn = [
        draw_effects(m, np.repeat(scales[None], 4000, 0), np.random.default_rng(0))
        for m in (pooled, dense)
    ]
    for name in ("beta", "theta", "eta"):
        one, two = (getattr(effects, name).reshape(4000, -1) for effects in drawn)
        error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 4000)
        assert np.all(np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5 * error + 1e-12)
        assert one.std(axis=0) == pytest.approx(two.std(axis=0), rel=0.1)


def test_a_changed_prior_changes_the_answer(small):
    tight = fit_thesis("coefficients", small, ThesisPrior(coefficient_sd=0.001), draws=400)
    assert np.abs(tight.draws["co"]).max() < 0.01
    priors = Priors().update(["crossed.delta_sd=0.0001", "thesis.mean=0.5"])
    assert priors.thesis.mean == 0.5
    assert abs(float(fit(small, priors=priors, draws=160).draws["delta"].mean())) < 0.001


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("crossed.dleta_sd=1", "did you mean 'crossed.delta_sd'"),
        ("paper.mean_sd=-1", "positive"),
        ("paper.mean_sd", "expected a positive number, got ''"),
    ],
)
def test_a_wrong_prior_is_an_error(change, message):
    with pytest.raises(InputError, match=message):
        Priors().update([change])


def test_every_model_runs_on_a_table_with_gaps_and_without_controls(small):
    without_controls = small.select(small.connection < 2)
    for table in (small, without_controls):
        fitted = fit_models(table, draws=160)
        assert tuple(fitted.fits) == MODELS
        for result in fitted.fits.values():
            assert np.isfinite(result.log_likelihood(0, table.rows)).all()
    assert set(fitted.fits["crossed"].levels) == {"associated", "different"}


def test_what_remains_without_a_shared_attribute(small):
    """A class by itself has contrasts between attributes; a single kind of attribute has none."""
    table = small.select_classes(["class1"])
    with pytest.raises(InputError, match="associated with one protected word and different"):
        check_identified(table)
    result = fit(table, "crossed", draws=160)
    assert tuple(result.levels) == table.levels
    assert "not the same ones" in result.notes[0]
    controls = fit(small.select(small.connection > 1), "crossed", draws=160)
    assert list(controls.levels) == ["human", "none"]
    assert (
        "no associated and no different attributes; remaining contrasts: human-none"
        in (controls.notes[0])
    )
    own = fit(table.select(table.connection != 1), "crossed", draws=160)
    assert list(own.levels) == ["associated", "human", "none"]
    with pytest.raises(InputError, match="expected two connection classes to compare"):
        fit(small.select(small.connection == 1), "crossed")


def test_delta_between_attributes_is_as_uncertain_as_attributes_differ():
    """In the words of one class the spread of the attributes does not cancel out."""
    scales = {"stereotype": 0.2, "error": 0.05, "word": 0.05, "human": 0.1, "neutral": 0.1}
    table = simulate(stereotypes=(6, 6), words=(4, 4), human=5, neutral=5, scales=scales, seed=2)
    both = fit(table, draws=800).draws["delta"].std()
    alone = fit(table.select_classes(["class1"]), draws=800).draws["delta"].std()
    assert alone > 2 * both
    assert alone == pytest.approx(0.2 * np.sqrt(2 / 6), rel=0.5)


def test_input_errors(small):
    with pytest.raises(UnknownNameError, match="did you mean 'crossed'"):
        fit(small, "crosed")
    with pytest.raises(UnknownNameError, match="unknown sampler 'nut'"):
        fit(small, sampler="nut")
    with pytest.raises(InputError, match="expected normal with the sampler nuts"):
        fit(small, sampler="nuts", errors="student")
    with pytest.raises(InputError, match="at least 160"):
        fit(small, draws=10)
    with pytest.raises(InputError, match="expected distances that differ"):
        fit(small.with_distance(np.ones(small.rows), "flat"), "baseline")


def test_same_seed_same_draws(small):
    first, second, other = (fit_crossed(small, draws=160, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.draws["delta"], second.draws["delta"])
    assert not np.array_equal(first.draws["delta"], other.draws["delta"])
