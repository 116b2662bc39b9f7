"""WAIC and PSIS-LOO: by hand, by exact leave-one-out, and against arviz."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, t

from evenhand.posterior import criteria, fit, simulate
from evenhand.posterior.criteria import compare_models, compute_criteria, row_criteria
from evenhand.posterior.fits import Predictor, Term
from evenhand.posterior.tables import Table
from posterior_rows import psis


def log_likelihoods(rows=40, draws=1000, seed=0):
    """Of a normal mean, with one row far out."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(rows)
    y[0] = 6.0
    mean = y.mean() + rng.standard_normal(draws) / np.sqrt(rows)
    return y, norm.logpdf(y[:, None], mean, 1.0)


def test_waic_by_hand():
    ll = np.log(np.array([[0.1, 0.3], [0.5, 0.5]]))
    lppd, p, _, _ = row_criteria([ll])
    assert lppd == pytest.approx(np.log([0.2, 0.5]))
    assert p == pytest.approx([np.log(3) ** 2 / 4, 0.0])


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_arviz(arviz):
    _, ll = log_likelihoods()
    data = arviz.from_dict(
        posterior={"m": ll[:1].reshape(4, 250)},
        log_likelihood={"y": ll.T.reshape(4, 250, 40)},
    )
    waic = arviz.waic(data, pointwise=True, scale="deviance")
    loo = arviz.loo(data, pointwise=True, scale="deviance", reff=0.8)
    lppd, p, elpd, k = row_criteria([ll[:7], ll[7:]], 0.8)
    assert -2 * (lppd - p) == pytest.approx(waic.waic_i.to_numpy(), abs=1e-8)
    assert p.sum() == pytest.approx(float(waic.p_waic), abs=1e-8)
    assert -2 * elpd == pytest.approx(loo.loo_i.to_numpy(), abs=1e-6)
    assert k == pytest.approx(loo.pareto_k.to_numpy(), abs=1e-6)


def test_loo_is_what_leaving_out_gives():
    """For a normal mean with a flat prior the density of a left-out row is known."""
    y, ll = log_likelihoods(draws=20_000)
    _, _, elpd, k = row_criteria([ll])
    n = y.size
    rest = (y.sum() - y) / (n - 1)
    exact = norm.logpdf(y, rest, np.sqrt(1 + 1 / (n - 1)))
    assert np.abs(elpd - exact).max() < 0.05
    assert k[0] > k[1:].mean()


def test_chunks_make_no_difference(fitted, monkeypatch):
    fit = fitted.fits["crossed"]
    reference = compute_criteria(fit)
    monkeypatch.setattr(criteria, "CHUNK", 17)
    monkeypatch.setattr(criteria, "BLOCK", 7 * fit.size)
    assert compute_criteria(fit).waic_i == pytest.approx(reference.waic_i, abs=1e-10)
    assert compute_criteria(fit).loo_i == pytest.approx(reference.loo_i, abs=1e-10)


def dense_log_likelihood(predictor, y):
    """Log likelihoods of all rows (rows × draws), one row at a time."""

    def value(term, row):
        entry = term.index[row]
        return term.values[entry] if entry >= 0 else np.zeros(term.values.shape[1])

    rows = []
    for row, distance in enumerate(y):
        mean = sum(value(term, row) for term in predictor.terms)
        scale = value(predictor.scale, row)
        if predictor.freedom is None:
            rows.append(norm.logpdf(distance, mean, scale))
        else:
            rows.append(t.logpdf(distance, predictor.freedom, mean, scale))
    return np.array(rows)


def repeat_rows(table: Table) -> Table:
    """The table with every third row three times, some of them with another distance."""
    rows = np.repeat(np.arange(table.rows), np.where(np.arange(table.rows) % 3, 1, 3))
    result = table.select(rows)
    result.distance[::5] += 0.01
    return result


@pytest.mark.parametrize(
    ("model", "errors", "draws"),
    [
        ("baseline", "normal", 4000),
        ("coefficients", "normal", 1200),
        ("separate", "normal", 400),
        ("paper", "normal", 4000),
        ("crossed-no-interaction", "normal", 800),
        pytest.param("crossed", "normal", 4000, marks=pytest.mark.slow),
        ("crossed", "student", 400),
    ],
)
def test_criteria_against_a_plain_computation(model, errors, draws):
    table = simulate(delta=-0.2, seed=1, words=(2, 2), stereotypes=(2, 2), human=3, neutral=3)
    if "crossed" not in model:
        table = repeat_rows(table)
    result = fit(table, model, errors=errors, draws=draws)
    dense = dense_log_likelihood(result.predictor, table.distance)
    np.testing.assert_allclose(result.log_likelihood(0, table.rows), dense, rtol=1e-9, atol=1e-12)
    criteria = compute_criteria(result)
    lppd = logsumexp(dense, axis=1) - np.log(result.size)
    weights, k = psis(-dense, result.relative_efficiency())
    assert criteria.lppd_i == pytest.approx(lppd, rel=1e-9)
    assert criteria.p_waic_i == pytest.approx(dense.var(axis=1), rel=1e-9)
    assert criteria.elpd_loo_i == pytest.approx(logsumexp(weights + dense, axis=1), rel=1e-9)
    assert criteria.pareto_k == pytest.approx(k, rel=1e-7, abs=1e-9)


def test_criteria_of_likelihoods_that_underflow():
    """A row whose log likelihoods differ by more than the range of floating-point numbers."""
    ll = np.stack([np.linspace(-1000.0, 0.0, 400), np.full(400, -2.0)])
    lppd, p, elpd, _ = row_criteria([ll])
    assert lppd == pytest.approx(logsumexp(ll, axis=1) - np.log(400), rel=1e-12)
    assert p == pytest.approx(ll.var(axis=1), rel=1e-12)
    assert np.isfinite(elpd).all()


def test_the_model_that_simulated_the_data_is_best(fitted):
    scores = {name: compute_criteria(fit) for name, fit in fitted.fits.items()}
    differences = compare_models(scores)
    assert differences[0].model == "crossed"
    assert differences[0].weight == pytest.approx(1.0, abs=0.01)
    assert differences[-1].waic_difference > 2 * differences[-1].waic_difference_se > 0
    last = scores[differences[-1].model]
    gap = last.waic_i - scores["crossed"].waic_i
    assert differences[-1].waic_difference_se == pytest.approx(np.sqrt(gap.size) * gap.std())


def test_log_likelihoods_are_those_of_the_model(fitted):
    fit = fitted.fits["coefficients"]
    m, co, sigma = (fit.draws[name] for name in ("m", "co", "sigma"))
    row = 17
    mean = m[..., fit.table.word[row]] + co[..., fit.table.connection[row]]
    expected = norm.logpdf(fit.table.distance[row], mean, sigma).ravel()
    assert fit.log_likelihood(row, row + 1)[0] == pytest.approx(expected)
    crossed = fitted.fits["crossed"]
    d = crossed.draws
    rows = np.flatnonzero(crossed.table.connection == 0)
    row = int(rows[5])
    i, j = crossed.table.word[row], crossed.table.attribute[row]
    mean = d["theta"][..., j] + d["word"][..., i] + d["delta_word"][..., i]
    mean = mean + d["slope_stereotype"][..., i]
    cell = f"{crossed.table.word_class[i]}, {crossed.table.attributes[j]}"
    mean = mean + d["eta"][..., crossed.entries["eta"].index(cell)]
    expected = norm.logpdf(crossed.table.distance[row], mean, d["scale"][..., 0]).ravel()
    assert crossed.log_likelihood(row, row + 1)[0] == pytest.approx(expected)


def test_student_errors_have_students_density():
    index = np.zeros(2, dtype=np.int64)
    nu = np.array([3.0, 8.0])
    predictor = Predictor((Term(np.ones((1, 2)), index),), Term(np.full((1, 2), 0.5), index), nu)
    likelihood = predictor.log_likelihood(np.array([0.2, 1.4]), slice(None))
    expected = t.logpdf(np.array([[0.2], [1.4]]), nu, 1.0, 0.5)
    assert likelihood == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore")
def test_draws_go_to_arviz(arviz):
    result = fit(simulate(seed=1), "crossed", draws=400)
    data = result.to_arviz(log_likelihood=True)
    for name, draws in result.draws.items():
        assert data.posterior[name].to_numpy() == pytest.approx(draws)
    level = next(iter(result.levels))
    assert data.posterior["level"].sel(connection=level).to_numpy() == pytest.approx(
        result.levels[level]
    )
    rows = result.table.distance.size
    assert data.log_likelihood["distance"].shape[-1] == rows
    expected = result.log_likelihood(2, 3).reshape(data.posterior["level"].shape[:2])
    assert data.log_likelihood["distance"].to_numpy()[..., 2] == pytest.approx(expected)
    waic = arviz.waic(data, scale="deviance")
    assert float(waic.elpd_waic) == pytest.approx(compute_criteria(result).waic, rel=1e-6)
    assert "log_likelihood" not in result.to_arviz().groups()


def test_without_arviz_the_error_says_what_to_install(monkeypatch):
    import sys

    from evenhand.errors import MissingExtraError

    result = fit(simulate(seed=1), "crossed", draws=400)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(MissingExtraError, match=r"evenhand\[arviz\]"):
        result.to_arviz()
