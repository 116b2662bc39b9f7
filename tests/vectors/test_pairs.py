"""Pairs analogous to a given pair, against a full search."""

import numpy as np
import pytest

from evenhand.errors import InputError, VocabularyError
from evenhand.vectors import Vectors, pair_analogies


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(3)
    return Vectors.from_arrays([f"w{i}" for i in range(60)], rng.standard_normal((60, 4)))


def full_search(v, first, second, threshold):
    """Every ordered pair by its definition; the best partner of each first word."""
    unit = v.matrix.astype(float) / np.linalg.norm(v.matrix.astype(float), axis=1, keepdims=True)
    given = unit[v.words.index(first)] - unit[v.words.index(second)]
    best = {}
    for i, x in enumerate(v.words):
        for j, y in enumerate(v.words):
            if i == j or {x, y} & {first, second}:
                continue
            gap = unit[i] - unit[j]
            length = np.linalg.norm(gap)
            score = gap @ given / length / np.linalg.norm(given)
            if length <= threshold and score > best.get(x, (0.0, ""))[0]:
                best[x] = (score, y)
    ordered = sorted(best.items(), key=lambda item: -item[1][0])
    return [(x, y, score) for x, (score, y) in ordered]


@pytest.mark.parametrize("threshold", [0.5, 1.0])
def test_equals_a_full_search(cloud, threshold, monkeypatch):
    monkeypatch.setattr("evenhand.vectors.pairs.BLOCK", 60 * 7)
    found = pair_analogies(cloud, "w0", "w1", threshold=threshold, n=10)
    expected = full_search(cloud, "w0", "w1", threshold)[:10]
    assert [(p.first, p.second) for p in found.pairs] == [(x, y) for x, y, _ in expected]
    assert [p.score for p in found.pairs] == pytest.approx([s for _, _, s in expected])
    assert all(p.length <= threshold + 1e-9 for p in found.pairs)
    assert found.words == 58


def test_sensitivity_counts_what_two_lists_share(cloud):
    found = pair_analogies(cloud, "w0", "w1", n=10, thresholds=(0.5, 1.9))
    by_threshold = {effect.threshold: effect for effect in found.sensitivity}
    assert list(by_threshold) == [0.5, 1.0, 1.9]
    assert by_threshold[1.0].shared == by_threshold[1.0].pairs == 10
    chosen = {(p.first, p.second) for p in found.pairs}
    other = {
        (p.first, p.second) for p in pair_analogies(cloud, "w0", "w1", threshold=0.5, n=10).pairs
    }
    assert by_threshold[0.5].shared == len(chosen & other)
    counts = [effect.candidates for effect in found.sensitivity]
    assert counts == sorted(counts)
    assert found.to_dict()["pairs"][0]["first"] == found.pairs[0].first


def test_errors(cloud):
    with pytest.raises(InputError, match="threshold: expected a length above 0 and below 2"):
        pair_analogies(cloud, "w0", "w1", threshold=2.5)
    with pytest.raises(VocabularyError, match="pair"):
        pair_analogies(cloud, "w0", "zzz")
    with pytest.raises(InputError, match="n: expected a whole number from 1 up"):
        pair_analogies(cloud, "w0", "w1", n=0)
