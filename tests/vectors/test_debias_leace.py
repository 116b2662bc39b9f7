"""LEACE of word vectors: linear probes are at chance, by a smaller change than INLP makes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evenhand.errors import InputError, VocabularyError
from evenhand.files import to_json
from evenhand.vectors.debias import debias, inlp, leace, most_biased
from evenhand.vectors.store import Vectors

Groups = dict[str, list[str]]


def planted(classes: int = 2, size: int = 400, dim: int = 30, seed: int = 0) -> Vectors:
    """Noise of several sizes; class c lies further along axis c. Words `c<class>x<number>`."""
    rng = np.random.default_rng(seed)
    labels = np.arange(classes * size) % classes
    matrix = rng.standard_normal((labels.size, dim)) * np.linspace(1, 2, dim)
    matrix[np.arange(labels.size), labels] += 3
    words = [f"c{label}x{i // classes}" for i, label in enumerate(labels)]
    return Vectors.from_arrays(words, matrix, name="planted")


def groups_of(v: Vectors, start: int = 0, stop: int | None = None) -> Groups:
    groups: Groups = {}
    for word in v.words:
        groups.setdefault(word.split("x")[0], []).append(word)
    return {name: words[start:stop] for name, words in groups.items()}


def arrays(v: Vectors, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    rows = [v.raw(v.find(words).rows) for words in groups.values()]
    return np.concatenate(rows), np.repeat(range(len(groups)), [len(part) for part in rows])


@pytest.mark.parametrize("classes", [2, 3])
def test_fresh_linear_probe_on_unseen_words_is_at_chance(classes: int) -> None:
    v = planted(classes, size=2400, dim=10)
    seen, fit, test = (groups_of(v, a, b) for a, b in ((0, 2000), (2000, 2200), (2200, 2400)))
    result = leace(v, seen, seed=1)
    for vectors, above in ((v, True), (result.vectors, False)):
        (x, y), (x_test, y_test) = arrays(vectors, fit), arrays(vectors, test)
        probe = LogisticRegression(C=10, max_iter=10_000).fit(x * 5, y)
        accuracy = float((probe.predict(x_test * 5) == y_test).mean())
        assert accuracy > 0.9 if above else accuracy < 1 / classes + 0.08
    assert result.report["rank"] == classes - 1
    assert result.report["largest_left"] < 1e-8
    assert result.report["fresh"]["accuracy"] < 1 / classes + 0.06
    assert result.report["chance"] == pytest.approx(1 / classes, abs=0.01)


def test_the_vectors_are_the_map_of_the_unit_vectors() -> None:
    v = planted()
    result = leace(v, groups_of(v, 0, 200))
    assert result.transform is not None
    assert result.shift is not None
    unit = v.unit(np.arange(len(v)))
    mapped = unit @ result.transform.T + result.shift
    np.testing.assert_allclose(result.vectors.matrix, mapped, atol=1e-6)
    again = mapped @ result.transform.T + result.shift
    np.testing.assert_allclose(again, mapped, atol=1e-9)
    fitted = v.find(result.fitted_on)
    labels = np.array([word.startswith("c1") for word in fitted.words])
    erased = mapped[fitted.rows]
    centred = erased - erased.mean(axis=0)
    assert np.abs(centred.T @ (labels - labels.mean())).max() / len(labels) < 1e-8


def test_it_changes_the_vectors_less_than_inlp_does() -> None:
    v = planted(size=1000)
    groups = groups_of(v, 0, 800)
    unit = v.unit(np.arange(len(v)))
    changes = [
        float(((method(v, groups).vectors.matrix - unit) ** 2).sum(axis=1).mean())
        for method in (leace, inlp)
    ]
    assert changes[0] < changes[1]


def test_same_seed_same_bytes() -> None:
    v = planted()
    first, again, other = (leace(v, groups_of(v), seed=seed) for seed in (3, 3, 4))
    assert first.vectors.matrix.tobytes() == again.vectors.matrix.tobytes()
    assert first.fitted_on != other.fitted_on


def test_defining_sets_stand_for_the_most_biased_words() -> None:
    v = planted()
    sets = [["c0x0", "c1x0"], ["c0x1", "c1x1"]]
    result = debias(v, "leace", sets, options={"n": 60, "seed": 2})
    words = most_biased(v, sets, 60)
    assert set(result.fitted_on) <= {word for part in words.values() for word in part}
    assert any("fewer than five words per dimension" in note for note in result.notes)


def test_a_zero_vector_stays_zero_and_unknown_words_are_left_out() -> None:
    v = planted()
    matrix = v.matrix.copy()
    matrix[-1] = 0
    holed = v.with_matrix(matrix, name="holed")
    groups = groups_of(v, 0, 300)
    groups["c0"].append("nowhere")
    result = leace(holed, groups)
    assert not result.vectors.matrix[-1].any()
    assert result.left_out == ("nowhere",)


def test_bad_input_is_named() -> None:
    v = planted()
    words = list(v.words)
    with pytest.raises(VocabularyError, match="5"):
        leace(v, {"a": words[:20], "b": words[20:23]})
    with pytest.raises(InputError, match="in several: "):
        leace(v, {"a": words[:20], "b": [*words[20:40], words[3]]})
    with pytest.raises(InputError, match="groups: expected two or more, got 1"):
        leace(v, {"a": words})
    with pytest.raises(InputError, match="held_out"):
        leace(v, groups_of(v), held_out=1.0)


def test_the_json_view_has_the_report() -> None:
    v = planted()
    view = json.loads(to_json(leace(v, groups_of(v)).to_dict()))
    assert view["method"] == "leace"
    assert view["report"]["rank"] == 1
