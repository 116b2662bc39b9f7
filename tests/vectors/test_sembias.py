"""SemBias: by hand, by a plain computation, and in worlds whose stereotypes are a dial."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import FileError, InputError
from evenhand.instruments import compare
from evenhand.vectors import Vectors
from evenhand.vectors.metrics.sembias import SemBias, SemBiasItem, built_in_items, read_sembias

ITEM = SemBiasItem(("king", "queen"), ("doctor", "nurse"), (("cup", "lid"), ("dog", "cat")))


def vectors(**words):
    return Vectors.from_arrays(list(words), np.array(list(words.values()), dtype=float))


def world(stereotype, definition=0.8, seed=0):
    """Random words; pairs differ along one direction by the dial of their kind."""
    rng = np.random.default_rng(seed)
    direction = np.zeros(50)
    direction[0] = 1
    table = {"he": direction + rng.normal(size=50), "she": -direction + rng.normal(size=50)}
    for item in built_in_items():
        for pair, dial in zip(item.pairs, (definition, stereotype, 0.0, 0.0), strict=True):
            for word, sign in zip(pair, (1, -1), strict=True):
                if word not in table:
                    table[word] = 3 * sign * dial * direction + rng.normal(size=50)
    table["he"], table["she"] = (table[w] + s * 5 * direction for w, s in (("he", 1), ("she", -1)))
    return vectors(**table)


def test_by_hand():
    table = {"he": [1, 0, 0], "she": [-1, 0, 0], "king": [1, 1, 0], "queen": [-1, 1, 0]}
    table |= {"doctor": [1, 0, 3], "nurse": [0, 0, 3], "cup": [0, 1, 0], "lid": [0, 0, 1]}
    table |= {"dog": [0, 1, 1], "cat": [0, 2, 1]}
    m = SemBias()(vectors(**table), [ITEM])
    assert m.items[0]["definition"] == pytest.approx(1.0)
    assert [m.part(name).value for name in ("stereotype", "definition", "other")] == [0, 1, 0]
    table["queen"] = [1, -1, 0]
    m = SemBias()(vectors(**table), [ITEM])
    assert (m.value, m.part("stereotype").value) == (1, 1)


def test_the_shares_are_those_of_a_plain_computation(glove):
    m = SemBias()(glove)
    chosen = []
    for item in built_in_items():
        unit = {
            w: glove[w].astype(float) / np.linalg.norm(glove[w])
            for w in {"he", "she", *(x for pair in item.pairs for x in pair)}
        }
        axis = unit["he"] - unit["she"]
        cosines = [
            (unit[a] - unit[b]) @ axis / np.linalg.norm(unit[a] - unit[b]) for a, b in item.pairs
        ]
        chosen.append(int(np.argmax(cosines)))
    assert m.n == 440 == len(chosen)
    chosen = np.array(chosen)
    assert m.part("stereotype").value == np.mean(chosen == 1)
    assert m.value == pytest.approx(np.mean(chosen == 1) - np.mean(chosen > 1) / 2)
    assert m.part("definition").value == np.mean(chosen == 0)


def test_the_share_rises_with_the_stereotypes_and_is_tested():
    read = {d: [SemBias()(world(d, seed=s)) for s in range(5)] for d in (0.0, 0.5, 1.0)}
    means = [np.mean([m.value for m in measured]) for measured in read.values()]
    assert means == sorted(means)
    assert means[0] < means[2]
    assert max(m.p_value for m in read[1.0]) < 0.05


def test_false_alarms_without_stereotypes():
    """Neither definitions nor stereotypes carry gender: every pair is chosen alike."""
    p = [SemBias(permutations=200)(world(0.0, 0.0, seed)).p_value for seed in range(100)]
    assert np.mean(np.array(p) < 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_two_vectors_are_compared_item_by_item():
    change = compare(SemBias()(world(1.0)), SemBias()(world(0.0)))
    assert change.paired == 20
    assert change.change.high < 0


def test_unknown_words_leave_items_out():
    v = world(0.5)
    known = [w for w in v.words if w != "doctor"]
    smaller = Vectors.from_arrays(known, np.array([v[w] for w in known]))
    m = SemBias()(smaller)
    assert (m.n, m.left_out, m.details["items_left_out"]) == (418, ("doctor",), 22)
    with pytest.raises(InputError, match="expected a vector of 'him', got none"):
        SemBias(first="him")(v)


def test_files_and_their_errors(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(
        "definition,stereotype,none 1,none 2\nking:queen,doctor:nurse,cup:lid,dog:cat\n"
    )
    assert read_sembias(path) == [ITEM]
    path.write_text("definition,stereotype,none 1,none 2\nking:queen,doctor,cup:lid,dog:cat\n")
    with pytest.raises(FileError, match="row 1: expected a pair of words a:b, got 'doctor'"):
        read_sembias(path)
    path.write_text("definition,stereotype\na:b,c:d\n")
    with pytest.raises(FileError, match="none 1"):
        read_sembias(path)
