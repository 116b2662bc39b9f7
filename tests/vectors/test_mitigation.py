import numpy as np
import pytest

from evenhand.errors import InputError, UnknownNameError
from evenhand.simulate import world
from evenhand.vectors import Vectors
from evenhand.vectors.debias.groups import leaning_by_class
from evenhand.vectors.mitigation import mitigate


@pytest.fixture(scope="module")
def biased():
    made = world(bias=0.6, dim=40, vocabulary=3000, seed=2)
    return made, Vectors.from_arrays(made.words, made.matrix, name="simulated")


@pytest.mark.parametrize("method", ["hard", "soft", "inlp", "leace"])
def test_measures_hiding_and_utility_come_with_every_method(biased, method):
    made, v = biased
    options = {"scale": "mean", "lam": 5.0} if method == "soft" else {}
    done = mitigate(v, made.topic, method, n=60, **options)
    change = {c.before.metric: c for c in done.measures}
    assert abs(change["association"].after.value) < abs(change["association"].before.value) / 2
    assert change["direct_bias"].after.value < change["direct_bias"].before.value
    assert {c.before.metric for c in done.hiding} == {
        "cluster_purity",
        "recovery_linear",
        "recovery_rbf",
        "neighbour_bias",
    }
    assert all(0 < m.value <= 1 for m in done.utility)
    assert set(done.to_dict()) == {"debias", "measures", "hiding", "utility"}


@pytest.mark.parametrize("method", ["inlp", "leace"])
def test_a_fitted_method_is_tested_on_words_it_never_saw(biased, method):
    made, v = biased
    done = mitigate(v, made.topic, method, n=60)
    tested = {item["word"] for item in done.hiding[0].before.items}
    assert tested.isdisjoint(done.debiased.fitted_on)


def test_leaning_words_lean_to_their_class(biased):
    made, v = biased
    groups = leaning_by_class(v, made.topic.protected, 50)
    for i, name in enumerate(made.topic.classes):
        scores = [v[word] @ made.directions[i] for word in groups[name]]
        assert np.mean(scores) > 0.3
    assert not set(groups["male"]) & set(groups["female"])
    protected = {word for words in made.topic.protected.values() for word in words}
    assert not protected & {word for words in groups.values() for word in words}


def lopsided(made, v, count):
    """The vectors without most of the words that lean to men."""
    groups = leaning_by_class(v, made.topic.protected, 10_000)
    removed = set(leaning_by_class(v, made.topic.protected, len(groups["male"]))["male"][count:])
    words = [word for word in v.words if word not in removed]
    return Vectors.from_arrays(words, v.matrix[v.find(words).rows], name="lopsided")


@pytest.mark.parametrize("method", ["hard", "inlp"])
def test_hiding_tests_take_the_words_there_are_and_say_so(biased, method):
    made, v = biased
    done = mitigate(lopsided(made, v, 240), made.topic, method, n=60)
    tested = done.hiding[0].before
    assert tested.n < 120
    assert tested.details["clusters"] == 2
    note = f"hiding tests: {tested.n // 2} words per class, not 60"
    assert any(note in text for text in done.debiased.notes)
    assert len(done.hiding) == 4


def test_vectors_of_few_words_are_debiased_without_the_tests(biased):
    made, v = biased
    words = [*made.topic.words(), "one", "two"]
    found = v.find(words)
    small = Vectors.from_arrays(found.words, v.matrix[found.rows], name="small")
    done = mitigate(small, made.topic, "hard")
    assert done.hiding == ()
    assert any("hiding tests left out: " in note for note in done.debiased.notes)
    assert done.measures


def test_bad_choices_are_named(biased):
    made, v = biased
    with pytest.raises(UnknownNameError, match="did you mean 'hard'"):
        mitigate(v, made.topic, "hrad")
    with pytest.raises(InputError, match="lam: not an option of hard"):
        mitigate(v, made.topic, "hard", lam=1.0)
    with pytest.raises(InputError, match="neutralize"):
        mitigate(v, made.topic, "hard", neutralize="some")


def test_measures_are_compared_at_equal_length(biased):
    """Where debiasing changes nothing but the length, no measure changes."""
    made, v = biased
    long = v.with_matrix(
        v.matrix * np.linspace(1, 5, len(v), dtype=np.float32)[:, None], name="long"
    )
    done = mitigate(long, made.topic, "soft", lam=0.0, n=60)
    assert "ripa" in {change.metric for change in done.measures}
    for change in done.measures:
        assert change.change.value == pytest.approx(0, abs=1e-5), change
