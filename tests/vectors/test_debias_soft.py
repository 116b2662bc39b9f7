"""Soft debiasing: the minimum against an independent solver, and what λ does."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.vectors.debias import soft
from evenhand.vectors.debias.soft import objective, slope, solve
from evenhand.vectors.store import Vectors

Array = NDArray[np.float64]
SETS = [["w0", "w1"], ["w2", "w3"], ["w4", "w5"]]


def cloud(n: int, dim: int, seed: int = 0) -> Vectors:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n, dim)) * np.exp(0.5 * rng.standard_normal(dim)) + 0.3
    return Vectors.from_arrays([f"w{i}" for i in range(n)], matrix)


def printed(words: Array, neutral: Array, basis: Array, lam: float, transform: Array) -> float:
    """The objective as it is printed, word by word: columns are words."""
    moved = transform @ words
    bias = (transform @ neutral).T @ (transform @ basis.T)
    return float(((moved.T @ moved - words.T @ words) ** 2).sum() + lam * (bias**2).sum())


def descended(words: Array, neutral: Array, basis: Array, lam: float) -> tuple[float, Array]:
    """L-BFGS on T itself from T = I, with the printed objective's own gradient."""
    dim = len(words)
    fixed = words.T @ words

    def both(flat: Array) -> tuple[float, Array]:
        transform = flat.reshape(dim, dim)
        moved, others, axes = transform @ words, transform @ neutral, transform @ basis.T
        apart, bias = moved.T @ moved - fixed, others.T @ axes
        gradient = 4 * moved @ apart @ words.T
        gradient += 2 * lam * (axes @ bias.T @ neutral.T + others @ bias @ basis)
        return float((apart**2).sum() + lam * (bias**2).sum()), gradient.ravel()

    found = minimize(
        both,
        np.eye(dim).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100_000, "maxfun": 200_000, "ftol": 0, "gtol": 1e-11, "maxcor": 50},
    )
    return float(found.fun), found.x.reshape(dim, dim)


def problem(n: int, some: int, k: int, seed: int, dim: int = 8) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((dim, n)) * np.exp(0.7 * rng.standard_normal((dim, 1)))
    words /= np.linalg.norm(words, axis=0)
    basis = np.linalg.qr(words @ rng.standard_normal((n, k)))[0].T
    return words, words[:, :some], basis


@pytest.mark.parametrize(
    ("n", "some", "k", "lam"),
    [(60, 60, 1, 0.2), (60, 60, 2, 50.0), (40, 9, 1, 5.0), (30, 12, 3, 1.0), (5, 3, 2, 0.7)],
)
def test_same_minimum_as_descent_on_t(n: int, some: int, k: int, lam: float) -> None:
    words, neutral, basis = problem(n, some, k, seed=n + k)
    found = solve(words @ words.T, neutral @ neutral.T, basis, lam)
    value, transform = descended(words, neutral, basis, lam)
    assert found.objective_after == pytest.approx(value, rel=1e-8)
    assert found.gradient_relative < 1e-10
    assert found.objective_before == pytest.approx(printed(words, neutral, basis, lam, np.eye(8)))
    assert printed(words, neutral, basis, lam, found.transform) == pytest.approx(value, rel=1e-8)
    np.testing.assert_allclose(
        found.transform @ found.transform, transform.T @ transform, atol=2e-6
    )
    np.testing.assert_allclose(found.transform, found.transform.T, atol=1e-12)


def indefinite() -> tuple[Array, Array, Array, float]:
    """Few neutral words and a strong λ: without the cone, M would have a negative eigenvalue."""
    for seed in range(200):
        words, neutral, basis = problem(12, 2, 1, seed, dim=4)
        found = solve(words @ words.T, neutral @ neutral.T, basis, 20.0)
        if found.solver == "projected gradient":
            return words, neutral, basis, 20.0
    raise AssertionError("no such problem among 200")


def test_on_the_cone_where_the_linear_equations_leave_it() -> None:
    words, neutral, basis, lam = indefinite()
    whole, common = words @ words.T, neutral @ neutral.T
    found = solve(whole, common, basis, lam)
    assert found.converged
    assert found.steps > 0
    assert found.smallest_eigenvalue > -1e-9
    assert found.gradient_relative < 1e-6
    # optimal on the cone: the gradient has no negative part, and none along M
    inner = found.transform @ found.transform
    gradient = slope(whole, common, basis, lam, inner)
    scale = np.linalg.norm(slope(whole, common, basis, lam, np.eye(4)))
    assert np.linalg.eigvalsh(gradient)[0] > -1e-7 * scale
    value, _ = descended(words, neutral, basis, lam)
    assert found.objective_after == pytest.approx(value, rel=1e-6)
    assert found.objective_after <= value * (1 + 1e-8)


def test_running_out_of_steps_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    words, neutral, basis, lam = indefinite()
    monkeypatch.setattr(sys.modules[solve.__module__], "_MOST_STEPS", 1)
    assert not solve(words @ words.T, neutral @ neutral.T, basis, lam).converged
    v = Vectors.from_arrays([f"w{i}" for i in range(12)], words.T)
    tried = [
        soft(v, [[f"w{a}", f"w{b}"]], lam=lam * 10, neutral=["w0", "w1"])
        for a in range(2, 12)
        for b in range(2, a)
    ]
    stopped = [result for result in tried if result.report["solver"] == "projected gradient"]
    assert stopped
    for result in stopped:
        assert result.report["converged"] is bool(not result.notes)
    assert any("not converged" in note for result in stopped for note in result.notes)


def test_gradient_is_that_of_the_objective() -> None:
    words, neutral, basis = problem(20, 7, 2, seed=1, dim=4)
    whole, common = words @ words.T, neutral @ neutral.T
    rng = np.random.default_rng(0)
    inner, step = rng.standard_normal((2, 4, 4))
    inner, step = inner @ inner.T, step + step.T
    there, back = (
        objective(whole, common, basis, 3.0, inner + sign * 1e-5 * step) for sign in (1, -1)
    )
    expected = (slope(whole, common, basis, 3.0, inner) * step).sum()
    assert (there - back) / 2e-5 == pytest.approx(expected, rel=1e-6)


def test_nothing_changes_at_lambda_zero() -> None:
    v = cloud(100, 10)
    result = soft(v, SETS, lam=0)
    np.testing.assert_allclose(result.transform, np.eye(10), atol=1e-10)
    np.testing.assert_allclose(result.vectors.matrix, v.unit(np.arange(100)), atol=1e-6)
    assert result.report["removed"] == pytest.approx(0, abs=1e-6)
    assert result.report["gradient_relative"] == 0


def test_bias_falls_with_lambda_and_vanishes_in_the_limit() -> None:
    v = cloud(300, 10)
    removed = [
        soft(v, SETS, lam=lam, scale="mean", k=2).report["removed"] for lam in (0.01, 0.2, 5, 1e6)
    ]
    assert removed == sorted(removed)
    assert removed[-1] > 0.999


def test_as_printed_lambda_does_little_on_a_large_vocabulary() -> None:
    """Evenly spread words lose λd/2V of their bias: the docstring's claim, and its remedy.

    Making Tw unit length again gives back 3/(d+2) of it, the mean of cos⁴ over that of cos².
    """
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((20_000, 20))
    v = Vectors.from_arrays([f"w{i}" for i in range(20_000)], matrix)
    printed = soft(v, SETS, scale="sum")
    printed_scale = printed.report
    expected = 0.2 * 20 / (2 * 20_000) * (1 - 3 / 22)
    assert printed_scale["removed"] == pytest.approx(expected, rel=0.03)
    assert any("of the bias was removed" in note for note in printed.notes)
    result = soft(v, SETS)
    mean_scale = result.report
    assert result.settings["scale"] == "mean", "the default works"
    assert not result.notes
    assert mean_scale["weight"] == pytest.approx(0.2 * 20_000**2 / (20_000 - 6))
    assert 0.3 < mean_scale["removed"] < 0.9
    assert mean_scale["gradient_relative"] < 1e-9


def test_vectors_are_transformed_and_normalised() -> None:
    v = cloud(200, 10)
    result = soft(v, SETS, lam=1, scale="mean", keep=["w9"], neutral="all")
    assert result.transform is not None
    exact = v.unit(np.arange(200)) @ result.transform.T
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(result.vectors.matrix, exact, atol=1e-6)
    assert result.report["neutral"] == 200 - 7
    assert result.report["objective_after"] < result.report["objective_before"]
    neutral = [i for i in range(200) if i > 5 and i != 9]
    basis = np.linalg.svd(
        np.concatenate([v.unit([a, a + 1]) - v.unit([a, a + 1]).mean(axis=0) for a in (0, 2, 4)])
    )[2][:1]
    before = np.sqrt(((v.unit(neutral) @ basis.T) ** 2).mean())
    after = np.sqrt(((exact[neutral] @ basis.T) ** 2).mean())
    assert result.report["removed"] == pytest.approx(1 - after / before, abs=1e-5)


def test_fewer_words_than_dimensions() -> None:
    v = cloud(12, 30)
    result = soft(v, SETS, lam=1, scale="mean")
    assert result.report["gradient_relative"] < 1e-8
    assert result.transform is not None
    unseen = np.linalg.svd(v.unit(np.arange(12)))[2][12:]
    np.testing.assert_allclose(unseen @ result.transform, unseen, atol=1e-8)
    assert 0 < result.report["removed"] < 1


def test_zero_rows_stay_zero_and_do_not_count() -> None:
    v = cloud(80, 6)
    matrix = v.matrix.copy()
    matrix[50] = 0
    result = soft(v.with_matrix(matrix, name="holes"), SETS, lam=3)
    assert not result.vectors.matrix[50].any()
    assert np.isfinite(result.vectors.matrix).all()


def test_bad_settings() -> None:
    v = cloud(20, 6)
    for lam in (-1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="lam: expected a number of 0 or more"):
            soft(v, SETS, lam=lam)
    with pytest.raises(UnknownNameError, match="did you mean 'mean'"):
        soft(v, SETS, scale="meen")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="neutral: expected 'all'"):
        soft(v, SETS, neutral="some")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="neutral: also in keep: w9"):
        soft(v, SETS, neutral=["w9", "w8"], keep=["w9"])
    with pytest.raises(VocabularyError, match="none of the words"):
        soft(v, SETS, neutral=["nope"])
    assert soft(v, SETS, neutral=["nope", "w7"]).left_out == ("nope",)
