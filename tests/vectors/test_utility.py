"""What a mitigation costs, on vectors changed by a known amount."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from evenhand.errors import InputError
from evenhand.results import Measurement
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import (
    cosine_rank_correlation,
    neighbour_overlap,
    neighbour_rank_correlation,
)

MEASURES = [neighbour_overlap, neighbour_rank_correlation, cosine_rank_correlation]


def cloud(n: int = 400, dim: int = 10, seed: int = 0) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((n, dim))
    return Vectors.from_arrays([f"w{i}" for i in range(n)], matrix)


def shaken(v: Vectors, amount: float) -> Vectors:
    noise = np.random.default_rng(9).standard_normal(v.matrix.shape)
    return v.with_matrix(v.matrix + amount * noise, name="shaken")


def read(measure: object, before: Vectors, after: Vectors, **options: int) -> Measurement:
    return measure(before, after, **options)  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_is_lost_by_turning_or_stretching(measure: object) -> None:
    v = cloud()
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((10, 10)))[0]
    stretch = np.random.default_rng(2).uniform(0.5, 2, (400, 1))
    found = read(measure, v, v.with_matrix(v.matrix @ turn * stretch, name="turned"))
    assert found.value > 0.9999
    assert found.value <= found.high <= 1
    assert (found.ideal, found.worse) == (1, "lower")


@pytest.mark.parametrize("measure", MEASURES)
def test_loss_grows_with_the_disturbance(measure: object) -> None:
    v = cloud()
    values = [read(measure, v, shaken(v, amount)).value for amount in (0.01, 0.2, 0.6, 2)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.95
    assert values[-1] < 0.6


def test_unrelated_vectors_read_chance() -> None:
    v, other = cloud(1000, 30), cloud(1000, 30, seed=1)
    overlap = neighbour_overlap(v, other, k=10)
    assert overlap.low <= 10 / 999 <= overlap.high
    for measure in (neighbour_rank_correlation, cosine_rank_correlation):
        found = read(measure, v, other)
        assert found.low <= 0.02
        assert abs(found.value) < 0.1


def test_neighbours_by_brute_force() -> None:
    v = cloud(120)
    after = shaken(v, 0.5)
    overlap = neighbour_overlap(v, after, n_words=30, k=8, seed=4)
    ranks = neighbour_rank_correlation(v, after, n_words=30, k=8, seed=4)
    cosines = []
    for side in (v, after):
        unit = side.unit(np.arange(120))
        table = unit @ unit.T
        np.fill_diagonal(table, -2)
        cosines.append(table)
    assert overlap.n == ranks.n == len({item["word"] for item in overlap.items}) == 30
    for kept, order in zip(overlap.items, ranks.items, strict=True):
        row = int(kept["word"][1:])
        near, later = (set(np.argsort(-table[row])[:8].tolist()) for table in cosines)
        assert kept["score"] == pytest.approx(len(near & later) / 8)
        own = sorted(near)
        expected = spearmanr(cosines[0][row, own], cosines[1][row, own]).statistic
        assert order["word"] == kept["word"]
        assert order["score"] == pytest.approx(expected)
    assert overlap.value == pytest.approx(np.mean([item["score"] for item in overlap.items]))


def test_pairs_have_no_word_in_common_and_give_spearman() -> None:
    v = cloud()
    after = shaken(v, 0.7)
    found = cosine_rank_correlation(v, after, seed=1)
    used = [word for item in found.items for word in (item["word"], item["other"])]
    assert found.n == 200
    assert len(used) == len(set(used)) == 400
    before_after = [(item["before"], item["after"]) for item in found.items]
    assert found.value == pytest.approx(spearmanr(before_after).statistic)
    first = found.items[0]
    a, b = v.unit(v.find([first["word"], first["other"]]).rows)
    assert first["before"] == pytest.approx(a @ b, abs=1e-6)
    assert first["score"] == pytest.approx(first["after"] - first["before"])
    assert cosine_rank_correlation(v, after, pairs=50).n == 50


def test_interval_covers_the_value_of_the_vocabulary() -> None:
    v = cloud(500)
    after = shaken(v, 0.5)
    truth = neighbour_overlap(v, after, n_words=500).value
    covered = [
        m.low <= truth <= m.high
        for m in (neighbour_overlap(v, after, n_words=60, seed=seed) for seed in range(100))
    ]
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize("measure", MEASURES)
def test_seed_and_limit(measure: object) -> None:
    v = cloud()
    after = shaken(v, 0.5)
    options = {"limit": 150, "seed": 3}
    found = read(measure, v, after, **options)
    assert read(measure, v, after, **options) == found
    assert all(int(item["word"][1:]) < 150 for item in found.items)


@pytest.mark.parametrize("measure", MEASURES)
def test_zero_vectors_take_no_part(measure: object) -> None:
    v = cloud()
    matrix = v.matrix.copy()
    matrix[:250] = 0
    found = read(measure, v, v.with_matrix(matrix, name="holes"))
    assert all(int(item["word"][1:]) >= 250 for item in found.items)


@pytest.mark.parametrize("measure", MEASURES)
def test_other_words_are_refused(measure: object) -> None:
    v = cloud()
    other = Vectors.from_arrays([f"x{i}" for i in range(400)], v.matrix, name="other")
    with pytest.raises(InputError, match="same words in both, got memory and other"):
        read(measure, v, other)


def test_too_few_words() -> None:
    v = cloud(6)
    with pytest.raises(InputError, match="4 or more pairs, got 3"):
        cosine_rank_correlation(v, v)
    with pytest.raises(InputError, match="n_words: expected 2 or more, got 1"):
        neighbour_overlap(v, v, n_words=1)
    with pytest.raises(InputError, match="neighbours: expected 1 to 5, got 10"):
        neighbour_overlap(v, v)
    with pytest.raises(InputError, match="k: expected 3 or more"):
        neighbour_rank_correlation(v, v, k=2)
