import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.simulate import world


def test_the_planted_tie_is_in_the_vectors():
    simulated = world(
        bias={("male", "female"): 0.7}, stereotypes=400, vocabulary=3000, dim=50, seed=1
    )
    row = {word: i for i, word in enumerate(simulated.words)}
    female = simulated.directions[simulated.topic.classes.index("female")]
    for name, expected in (("male", 0.7), ("female", 0.0)):
        words = simulated.matrix[[row[w] for w in simulated.topic.stereotypes[name]]]
        assert (words @ female).mean() == pytest.approx(expected, abs=0.03)


def test_directions_sum_to_zero_and_are_equally_far_apart():
    simulated = world(classes=("a", "b", "c", "d"), seed=2)
    assert np.allclose(simulated.directions.sum(axis=0), 0)
    cosines = simulated.directions @ simulated.directions.T
    assert np.allclose(cosines[~np.eye(4, dtype=bool)], -1 / 3)
    assert np.allclose(np.diag(cosines), 1)


def test_protected_words_carry_identity_and_what_all_share():
    simulated = world(protected=300, vocabulary=2000, identity=0.9, shared=0.6, seed=3)
    row = {word: i for i, word in enumerate(simulated.words)}
    means = {
        name: simulated.matrix[[row[w] for w in words]].mean(axis=0)
        for name, words in simulated.topic.protected.items()
    }
    difference = means["male"] - means["female"]
    assert np.linalg.norm(difference) == pytest.approx(1.8, abs=0.1)
    middle = (means["male"] + means["female"]) / 2
    assert np.linalg.norm(middle) == pytest.approx(0.6, abs=0.1)


def test_same_seed_same_world_and_every_size():
    first, second = world(seed=5, dim=7, vocabulary=150), world(seed=5, dim=7, vocabulary=150)
    assert first.words == second.words
    assert np.array_equal(first.matrix, second.matrix)
    assert first.matrix.shape == (150, 7)
    assert not np.array_equal(first.matrix, world(seed=6, dim=7, vocabulary=150).matrix)


def test_population_has_the_planted_mean():
    simulated = world(bias=0.4, dim=30, seed=8)
    drawn = simulated.population("female", 20_000, seed=1)
    female = simulated.directions[1]
    assert (drawn @ female).mean() == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": ("a",)}, "at least two classes"),
        ({"vocabulary": 30}, "vocabulary: expected at least 80"),
        ({"bias": {("male", "robot"): 1.0}}, "bias: expected pairs of the classes"),
    ],
)
def test_impossible_worlds_are_errors(options, message):
    with pytest.raises(InputError, match=message):
        world(**options)
