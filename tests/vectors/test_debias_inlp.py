"""INLP: a fresh linear probe is at chance afterwards, and what is not linear stays."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.errors import InputError, VocabularyError
from evenhand.files import to_json
from evenhand.statistics.intervals import wilson
from evenhand.vectors.debias import debias, inlp, most_biased
from evenhand.vectors.debias.inlp import extended
from evenhand.vectors.store import Vectors

Groups = dict[str, list[str]]


def planted(classes: int = 2, size: int = 400, dim: int = 30, seed: int = 0) -> Vectors:
    """Isotropic noise; class c lies further along axis c. Words `c<class>x<number>`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(classes * size) % classes
    matrix = rng.standard_normal((labels.size, dim))
    matrix[np.arange(labels.size), labels] += 3
    words = [f"c{label}x{i // classes}" for i, label in enumerate(labels)]
    return Vectors.from_arrays(words, matrix, name="planted")


def xor(size: int = 300, dim: int = 10, seed: int = 0) -> Vectors:
    """The class is the sign of the product of two coordinates: no line tells it."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((2 * size, dim))
    matrix[:, :2] = 3 * rng.choice([-1, 1], (2 * size, 2)) + 0.3 * rng.standard_normal(
        (2 * size, 2)
    )
    labels = (matrix[:, 0] * matrix[:, 1] > 0).astype(int)
    return Vectors.from_arrays([f"c{label}x{i}" for i, label in enumerate(labels)], matrix)


def groups_of(v: Vectors, start: int = 0, stop: int | None = None) -> Groups:
    groups: Groups = {}
    for word in v.words:
        groups.setdefault(word.split("x")[0], []).append(word)
    return {name: words[start:stop] for name, words in groups.items()}


def fresh_probe(v: Vectors, train: Groups, test: Groups) -> tuple[float, float, float]:
    """Accuracy of another probe (stronger, unit variance) on words that INLP never saw."""
    x, y = (
        (
            np.concatenate([v.raw(v.find(words).rows) for words in part.values()]),
            np.repeat(range(len(part)), [len(words) for words in part.values()]),
        )
        for part in (train, test)
    )
    probe = LogisticRegression(C=10, max_iter=10_000).fit(x[0] * 5, x[1])
    return wilson(int((probe.predict(y[0] * 5) == y[1]).sum()), len(y[1]))


@pytest.mark.parametrize("classes", [2, 3])
def test_fresh_linear_probe_on_unseen_words_is_at_chance(classes: int) -> None:
    v = planted(classes, size=2400, dim=10)
    seen, fit, test = (groups_of(v, a, b) for a, b in ((0, 2000), (2000, 2200), (2200, 2400)))
    assert fresh_probe(v, fit, test)[1] > 0.9
    result = inlp(v, seen, seed=1)
    _, low, high = fresh_probe(result.vectors, fit, test)
    assert low <= 1 / classes <= high
    held_out = result.report["fresh"]
    assert held_out["accuracy"] < 1 / classes + 0.06
    rounds = result.report["rounds"]
    assert rounds[0]["accuracy"] > 0.75
    assert rounds[-1]["low"] <= result.report["chance"] < rounds[-2]["low"]
    assert result.removed is not None
    assert (classes - 1) * (len(rounds) - 1) <= len(result.removed) <= classes * (len(rounds) - 1)
    assert result.report["chance"] == pytest.approx(1 / classes, abs=0.01)


def test_rbf_still_finds_what_is_not_linear() -> None:
    v = xor()
    groups = groups_of(v)
    result = inlp(v, groups, seed=0)
    assert result.report["rounds"][-1]["low"] <= result.report["chance"]
    assert result.report["rbf_after"]["low"] > 0.9
    assert any("from the start" in note for note in result.notes)


def test_rbf_finds_nothing_where_nothing_is() -> None:
    rng = np.random.default_rng(0)
    v = Vectors.from_arrays([f"c{i % 2}x{i}" for i in range(600)], rng.standard_normal((600, 20)))
    result = inlp(v, groups_of(v))
    for when in ("rbf_before", "rbf_after"):
        assert result.report[when]["low"] <= 0.5 <= result.report[when]["high"]
    np.testing.assert_allclose(result.vectors.matrix, v.unit(np.arange(600)), atol=1e-6)


def test_result_is_the_projection_of_the_unit_vectors_and_idempotent() -> None:
    v = planted()
    result = inlp(v, groups_of(v, 0, 200))
    basis = result.removed
    assert basis is not None
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-10)
    unit = v.unit(np.arange(len(v)))
    projector = np.eye(v.dim) - basis.T @ basis
    np.testing.assert_allclose(result.vectors.matrix, unit @ projector, atol=1e-6)
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-10)
    assert result.report["largest_left"] <= 1e-6


def test_extended_takes_the_row_space_once() -> None:
    basis = extended(np.zeros((0, 4)), np.array([[2.0, 0, 0, 0], [0, 0, 0, 0]]))
    np.testing.assert_allclose(np.abs(basis), [[1, 0, 0, 0]])
    again = extended(basis, np.array([[5.0, 0, 0, 0]]))
    assert again.shape == (1, 4)
    both = extended(basis, np.array([[5.0, 1, 0, 0], [1, 2, 0, 0]]))
    np.testing.assert_allclose(np.abs(both), [[1, 0, 0, 0], [0, 1, 0, 0]], atol=1e-12)


def test_same_seed_same_bytes() -> None:
    v = planted()
    one, two, other = (inlp(v, groups_of(v), seed=seed) for seed in (3, 3, 4))
    assert one.vectors.matrix.tobytes() == two.vectors.matrix.tobytes()
    assert one.report == two.report
    assert one.fitted_on == two.fitted_on != other.fitted_on
    assert one.seed == 3


def test_stopping_early_is_reported() -> None:
    """Few words in many dimensions: one direction is not all that tells the groups apart."""
    v = planted(size=200, dim=60)
    result = inlp(v, groups_of(v), max_rounds=1)
    assert len(result.report["rounds"]) == 2
    assert result.report["rounds"][-1]["low"] > result.report["chance"]
    assert result.removed is not None
    assert len(result.removed) == 1
    assert any("after 1 rounds" in note for note in result.notes)


def test_defining_sets_stand_for_the_most_biased_words() -> None:
    rng = np.random.default_rng(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"w{a}{b}" for a in letters for b in letters][:600]
    v = Vectors.from_arrays(words, rng.standard_normal((600, 10)))
    sets = [[words[0], words[1]], [words[2], words[3]]]
    result = debias(v, "inlp", sets, options={"n": 60, "seed": 2})
    chosen = most_biased(v, sets, 60)
    assert set(result.fitted_on) <= set(chosen["positive"]) | set(chosen["negative"])
    assert len(result.fitted_on) == result.report["train"] == 84
    assert result.settings["groups"] == {"positive": 60, "negative": 60}


def test_unknown_words_are_left_out_and_named() -> None:
    v = planted()
    groups = groups_of(v)
    groups["c0"] = [*groups["c0"], "nowhere"]
    assert inlp(v, groups).left_out == ("nowhere",)


def test_small_and_wrong_groups() -> None:
    v = planted()
    words = groups_of(v)["c0"]
    with pytest.raises(VocabularyError, match="group 'b': expected at least 5 words"):
        inlp(v, {"a": words[:20], "b": words[20:23]})
    with pytest.raises(InputError, match="in one group only, got in several: c0x3"):
        inlp(v, {"a": words[:20], "b": [*words[20:40], words[3]]})
    with pytest.raises(InputError, match="groups: expected two or more, got 1"):
        inlp(v, {"a": words})
    for option in ({"held_out": 0.0}, {"held_out": 1.0}, {"max_rounds": 0}):
        with pytest.raises(InputError, match=next(iter(option))):
            inlp(v, groups_of(v), **option)  # type: ignore[arg-type]
    smallest = inlp(v, {"a": words[:5], "b": words[5:10]})
    assert smallest.report["test"] >= 2
    assert smallest.report["fresh"] is None


def test_view_is_plain_json() -> None:
    v = planted()
    view = json.loads(to_json(inlp(v, groups_of(v)).to_dict()))
    assert view["method"] == "inlp"
    assert view["fitted_on"] == view["report"]["train"]
    assert {"accuracy", "low", "high"} == set(view["report"]["rounds"][0])
