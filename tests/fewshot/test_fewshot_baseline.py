from __future__ import annotations

import numpy as np
import pytest
from scored import scored

from evenhand.errors import InputError
from evenhand.fewshot import Dataset, read, sample
from evenhand.fewshot.baseline import nearest_centroid, predict_baseline, word_vectors
from evenhand.fewshot.splits import read_splits

DISHES = {
    "soup": ["broth", "ladle", "leek", "bowl", "simmer", "stock"],
    "bread": ["oven", "yeast", "crust", "flour", "knead", "loaf"],
    "salad": ["lettuce", "dressing", "crisp", "cucumber", "toss", "radish"],
}


@pytest.fixture(scope="module")
def dishes() -> Dataset:
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for dish, words in DISHES.items():
        for number in range(30):
            chosen = rng.choice(words, 3, replace=False)
            texts.append(f"Plate {number} has {' and '.join(chosen)} for guest {number % 7}.")
            labels.append(dish)
    return Dataset.of(texts, labels, name="dishes")


def test_counting_words_tells_dishes_apart(dishes):
    episodes = sample(dishes, dishes.classes, ways=3, shots=5, queries=5, episodes=40)
    made = predict_baseline(dishes, episodes)
    assert scored(made)["accuracy"].value > 0.9
    assert np.exp(made.log_probs).sum(axis=2) == pytest.approx(np.ones(made.rows.shape))


def test_the_same_as_plain_loops(dishes):
    vectors = word_vectors(dishes.texts, dimensions=10)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(dishes)), abs=1e-5)
    episodes = sample(dishes, dishes.classes, ways=3, shots=2, queries=4, episodes=5)
    made = nearest_centroid(vectors, episodes)
    for e in range(5):
        centres = [vectors[rows].mean(axis=0) for rows in episodes.support[e]]
        for m, row in enumerate(episodes.query[e].ravel()):
            cosine = [vectors[row] @ c / np.linalg.norm(c) for c in centres]
            expected = 10 * np.array(cosine)
            expected -= np.log(np.exp(expected).sum())
            assert made[e, m] == pytest.approx(expected, abs=1e-4)


def test_counterfactuals_change_the_queries_alone(dishes):
    both = word_vectors(dishes.texts, more=dishes.texts, dimensions=10)
    vectors, swapped_texts = both[: len(dishes)], both[len(dishes) :]
    assert swapped_texts == pytest.approx(vectors, abs=1e-4)
    episodes = sample(dishes, dishes.classes, ways=3, shots=2, queries=4, episodes=5)
    plain = predict_baseline(dishes, episodes, vectors=vectors)
    other = predict_baseline(
        dishes, episodes, vectors=vectors, counterfactuals=np.roll(vectors, 30, axis=0)
    )
    assert scored(other)["accuracy"].value < 0.2 < scored(plain)["accuracy"].value


def test_texts_without_words_are_an_error():
    with pytest.raises(InputError, match="expected words to count"):
        word_vectors(["?", "!"])


def test_episodes_of_other_data_are_an_error(dishes):
    episodes = sample(dishes, dishes.classes, ways=3, shots=2, queries=4, episodes=2)
    with pytest.raises(InputError, match="another"):
        predict_baseline(dishes.subset(["soup", "bread"]), episodes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "one", "five"), [("BANKING77", 0.657, 0.873), ("HWU64", 0.595, 0.815)]
)
def test_near_the_known_baselines(shared, name, one, five):
    folder = shared / "data" / "intents" / name
    data = read(folder / "full.jsonl", text="sentence", label="label")
    vectors = word_vectors(data.texts)
    found = []
    for shots in (1, 5):
        made = [
            predict_baseline(
                data,
                sample(data, split.test, ways=5, shots=shots, queries=5, episodes=300),
                vectors=vectors,
            )
            for split in read_splits(folder)
        ]
        found.append(np.mean([scored(each)["accuracy"].value for each in made]))
    assert one - 0.01 < found[0] < one + 0.05
    assert five - 0.01 < found[1] < five + 0.03
