"""Affine erasure: guarded to rounding, smallest change, and the definition computed another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import pinv, sqrtm
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from evenhand.errors import InputError
from evenhand.statistics.erasure import (
    AffineMap,
    leace,
    one_hot,
    project_difference,
    steer_difference,
)


def planted(n=600, d=12, k=1, rank=None, seed=0):
    """Correlated vectors with a concept of k columns in them, of full or lower rank."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, k)) if k > 1 else rng.integers(0, 2, (n, 1)).astype(float)
    x = rng.standard_normal((n, rank or d)) @ rng.standard_normal((rank or d, rank or d))
    x += z @ rng.standard_normal((k, rank or d)) * 2
    if rank:
        x = x @ rng.standard_normal((rank, d))
    return x + rng.standard_normal(d) * 5, z


def covariance(x, z):
    z = z.reshape(len(z), -1)
    return (x - x.mean(axis=0)).T @ (z - z.mean(axis=0)) / len(x)


CASES = {
    "one column": {},
    "three columns": {"k": 3},
    "rank 5 of 12": {"rank": 5},
    "fewer vectors than dimensions": {"n": 20, "d": 40},
    "rank 5, three columns": {"rank": 5, "k": 3},
}


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_covariance_with_the_concept_is_zero(case, shrinkage):
    x, z = planted(**case)
    assert np.abs(covariance(x, z)).max() > 0.1
    erase = leace(x, z, shrinkage=shrinkage)
    assert np.abs(covariance(erase(x), z)).max() < 1e-8
    assert erase.rank == z.shape[1]


def test_badly_scaled_dimensions_are_guarded_as_well():
    x, z = planted()
    scaled = x * np.logspace(-4, 4, x.shape[1])
    erased = leace(scaled, z)(scaled)
    left = np.abs(covariance(erased, z)[:, 0]) / scaled.std(axis=0)
    assert left.max() < 1e-8


def definition(x, z):
    """Belrose et al. (2023), theorem 4.3, by matrix functions."""
    n, mean = len(x), x.mean(axis=0)
    sigma, cross = np.cov(x.T, bias=True), covariance(x, z)
    root = np.real(sqrtm(sigma))
    whiten = pinv(root, rtol=1e-6)
    inner = whiten @ cross
    projection = inner @ pinv(inner, rtol=1e-6)
    assert n == len(z)
    return x - (x - mean) @ (pinv(whiten, rtol=1e-6) @ projection @ whiten).T


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_the_definition_computed_another_way(case):
    x, z = planted(**case)
    np.testing.assert_allclose(leace(x, z)(x), definition(x, z), atol=1e-5)


def test_the_concept_may_be_classes_in_one_hot_columns():
    rng = np.random.default_rng(1)
    labels = np.array(["a", "b", "c"])[rng.integers(0, 3, 900)]
    z = one_hot(labels)
    x = rng.standard_normal((900, 8)) + 3 * z @ rng.standard_normal((3, 8))
    erase = leace(x, z)
    assert erase.rank == 2  # the third column follows from the two others
    means = np.array([erase(x)[labels == name].mean(axis=0) for name in "abc"])
    assert np.abs(means - means[0]).max() < 1e-8
    np.testing.assert_allclose(erase(x), leace(x, z[:, :2])(x), atol=1e-9)


def test_a_fresh_linear_probe_is_at_chance_and_a_curved_one_need_not_be():
    rng = np.random.default_rng(2)
    z = np.arange(4000) % 2
    x = rng.standard_normal((4000, 10))
    x[:, 0] += 3 * z
    x[z == 1, 1] *= 4  # a difference of variances, which no affine map of rank one removes
    fit, train, test = slice(0, 2000), slice(2000, 3000), slice(3000, 4000)
    erase = leace(x[fit], z[fit])
    own = LogisticRegression(max_iter=1000, C=1e6).fit(erase(x[fit]), z[fit])
    assert np.abs(own.coef_).max() < 1e-3
    probe = LogisticRegression(max_iter=1000)
    assert probe.fit(x[train], z[train]).score(x[test], z[test]) > 0.85
    assert 0.4 < probe.fit(erase(x[train]), z[train]).score(erase(x[test]), z[test]) < 0.6
    assert SVC().fit(erase(x[train]), z[train]).score(erase(x[test]), z[test]) > 0.7


def sal(x, z):
    """Spectral attribute removal: project out the left singular vectors of the cross-covariance."""
    u, _, _ = np.linalg.svd(covariance(x, z), full_matrices=False)
    return x - (x - x.mean(axis=0)) @ u @ u.T


@pytest.mark.parametrize("k", [1, 3])
def test_no_other_affine_eraser_changes_the_vectors_less(k):
    x, z = planted(k=k)
    change = ((leace(x, z)(x) - x) ** 2).sum(axis=1).mean()
    others = [sal(x, z), leace(x, z, shrinkage=0.5)(x)]
    if k == 1:
        others.append(project_difference(x, z[:, 0])(x))
    for other in others:
        assert np.abs(covariance(other, z)).max() < 1e-8
        assert change < ((other - x) ** 2).sum(axis=1).mean()
    rng = np.random.default_rng(3)
    erase = leace(x, z)
    for _ in range(20):  # all erasers whose range is that of LEACE plus something hidden from z
        extra = rng.standard_normal((12, 1)) @ rng.standard_normal((1, 12)) * 0.1
        extra -= extra @ covariance(x, z) @ pinv(covariance(x, z))
        other = erase(x) + (x - x.mean(axis=0)) @ extra.T
        assert np.abs(covariance(other, z)).max() < 1e-8
        assert change < ((other - x) ** 2).sum(axis=1).mean()


def test_erasing_twice_is_erasing_once():
    x, z = planted(k=2)
    erase = leace(x, z)
    np.testing.assert_allclose(erase(erase(x)), erase(x), atol=1e-9)
    np.testing.assert_allclose(erase.matrix @ erase.matrix, erase.matrix, atol=1e-9)
    again = leace(erase(x), z)
    assert again.rank == 0
    np.testing.assert_allclose(again(erase(x)), erase(x), atol=1e-12)
    np.testing.assert_allclose(erase(x).mean(axis=0), x.mean(axis=0), atol=1e-9)


def test_full_shrinkage_is_the_orthogonal_projection():
    x, z = planted()
    np.testing.assert_allclose(leace(x, z, shrinkage=1.0)(x), sal(x, z), atol=1e-9)
    removed = leace(x, z, shrinkage=1.0).matrix
    np.testing.assert_allclose(removed, removed.T, atol=1e-9)


def test_nothing_is_removed_where_nothing_is():
    rng = np.random.default_rng(4)
    half = rng.standard_normal((50, 6))
    x, z = np.concatenate([half, half]), np.repeat([0, 1], 50)
    assert leace(x, z).rank == 0
    assert leace(np.ones((10, 3)), np.arange(10) % 2).rank == 0


def test_strength_scales_the_change():
    x, z = planted()
    erase = leace(x, z)
    np.testing.assert_allclose(erase.scaled(0)(x), x)
    np.testing.assert_allclose(erase.scaled(0.25)(x) - x, 0.25 * (erase(x) - x), atol=1e-10)


def test_a_weight_counts_as_so_many_copies():
    x, z = planted(n=60, k=2)
    counts = np.random.default_rng(5).integers(1, 5, 60)
    copies = np.repeat(np.arange(60), counts)
    weighted, copied = leace(x, z, weights=counts), leace(x[copies], z[copies])
    np.testing.assert_allclose(weighted(x), copied(x), atol=1e-9)
    labels = (z[:, 0] > 0).astype(int)
    for fit in (project_difference, steer_difference):
        np.testing.assert_allclose(
            fit(x, labels, weights=counts)(x), fit(x[copies], labels[copies])(x), atol=1e-9
        )
    with pytest.raises(InputError, match="weights: expected 60 numbers above 0"):
        leace(x, z, weights=np.zeros(60))


def test_differences_of_means():
    x, z = planted()
    labels = z[:, 0]
    first, second = x[labels == 0].mean(axis=0), x[labels == 1].mean(axis=0)
    steer = steer_difference(x, labels)
    assert steer.rank == 0
    np.testing.assert_allclose(steer.scaled(-0.5)(x), x - (second - first) / 2, atol=1e-12)
    project = project_difference(x, labels)
    unit = (second - first) / np.linalg.norm(second - first)
    np.testing.assert_allclose(project(x) @ unit, np.full(len(x), (first + second) @ unit / 2))
    np.testing.assert_allclose(project((first + second)[None] / 2)[0], (first + second) / 2)


def test_bad_input_is_named():
    x, z = planted(n=30)
    for arguments, message in (
        ((x, np.zeros(30)), "z: expected two classes or more, got the same for all 30 vectors"),
        ((x, z[:-1]), "z: expected one row for each of the 30 vectors, got shape"),
        ((x[0], z), "x: expected two vectors or more as rows"),
        ((x * np.nan, z), "x: expected finite numbers"),
        ((x, z + np.inf), "z: expected finite numbers"),
    ):
        with pytest.raises(InputError, match=message):
            leace(*arguments)
    with pytest.raises(InputError, match="shrinkage: expected a number from 0 to 1, got 2"):
        leace(x, z, shrinkage=2)
    for function in (project_difference, steer_difference):
        with pytest.raises(InputError, match="labels: expected one of two classes"):
            function(x, np.arange(30) % 3)
    with pytest.raises(InputError, match="affine map: expected the shapes"):
        AffineMap(np.zeros((3, 1)), np.zeros((1, 2)), np.zeros(3))
