import numpy as np
import pandas as pd
import pytest

from by_lists import association_contrast
from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.vectors import DistanceTable, distance_table


def test_the_table_has_six_columns(glove, tmp_path):
    table = distance_table(glove, lexicon.topic("religion"))
    path = tmp_path / "religion.csv"
    table.save(path)
    frame = pd.read_csv(path)
    assert list(frame.columns) == [
        "protectedWord",
        "wordToCompare",
        "wordClass",
        "cosineDistance",
        "cosineSimilarity",
        "connection",
    ]
    assert len(frame) == len(table.protected) * len(table.attributes)
    assert set(frame["connection"]) == {"associated", "different", "human", "none"}
    assert np.allclose(frame["cosineDistance"] + frame["cosineSimilarity"], 1)
    row = frame[(frame["protectedWord"] == "imam") & (frame["wordToCompare"] == "violent")].iloc[0]
    a, b = glove["imam"].astype(float), glove["violent"].astype(float)
    assert row["cosineSimilarity"] == pytest.approx(
        a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-7
    )
    assert row["connection"] == "associated"
    other = frame[(frame["protectedWord"] == "rabbi") & (frame["wordToCompare"] == "violent")]
    assert other.iloc[0]["connection"] == "different"


def published_table(path):
    """A CSV of Dobrzeniecka (2021) without duplicates, classes from the associated rows."""
    rows = pd.read_csv(path).drop_duplicates(["protected_word", "word_to_compare"])
    rows["word_class"] = rows["word_class"].str.removesuffix("_stereotype")
    own = rows[rows["connection"] == "associated"].groupby("protected_word")["word_class"].first()
    classes = rows.groupby("word_to_compare")["word_class"].first()
    wide = rows.pivot_table("cosine_distance", "protected_word", "word_to_compare").loc[own.index]
    return DistanceTable(
        "published",
        tuple(own.index),
        tuple(own),
        tuple(wide),
        tuple(classes[wide.columns]),
        wide.to_numpy(),
    )


@pytest.mark.parametrize(
    ("file", "delta"),
    [("religionReddit", -0.054), ("genderReddit", -0.015), ("raceReddit", -0.038)],
)
def test_contrast_reproduces_the_crossed_model(shared, file, delta):
    m = association_contrast(published_table(shared / "data" / "cosine" / f"{file}.csv"))
    assert m.value == pytest.approx(delta, abs=0.003)
    assert m.low < delta < m.high


def test_contrast_on_religion_is_as_significant_as_published(shared):
    """METHODS.md: permuting the attributes' classes gives p = .0024."""
    m = association_contrast(published_table(shared / "data" / "cosine" / "religionReddit.csv"))
    assert m.p_value == pytest.approx(0.0027, abs=0.0008)


def made_table(y, rows="aabb", columns="aaabb"):
    return DistanceTable(
        "made",
        tuple(f"p{i}" for i in range(len(rows))),
        tuple(rows),
        tuple(f"w{i}" for i in range(len(columns))),
        tuple(columns),
        np.asarray(y, dtype=float),
    )


def test_contrast_equals_least_squares():
    rng = np.random.default_rng(8)
    y = rng.normal(size=(4, 5))
    rows, columns = "aabb", "aaabb"
    design = [
        [float(i == r) for i in range(4)]
        + [float(j == c) for j in range(5)]
        + [float(rows[r] == columns[c])]
        for r in range(4)
        for c in range(5)
    ]
    solution = np.linalg.lstsq(np.array(design), y.ravel(), rcond=None)[0]
    assert association_contrast(made_table(y)).value == pytest.approx(solution[-1])


def test_contrast_ignores_row_and_column_effects():
    rng = np.random.default_rng(9)
    y = rng.normal(size=(4, 5))
    shifted = y + rng.normal(size=(4, 1)) * 5 + rng.normal(size=(1, 5)) * 5
    one, two = association_contrast(made_table(y)), association_contrast(made_table(shifted))
    assert two.value == pytest.approx(one.value)
    assert two.p_value == one.p_value


def test_permutation_p_equals_enumeration():
    from itertools import permutations

    rng = np.random.default_rng(10)
    y = rng.normal(size=(4, 5))
    observed = association_contrast(made_table(y), permutations=0).value
    values = [
        association_contrast(made_table(y, columns="".join(p)), permutations=0).value
        for p in set(permutations("aaabb"))
    ]
    exact = np.mean(np.abs(values) >= abs(observed) - 1e-12)
    m = association_contrast(made_table(y), permutations=100_000)
    assert m.p_value == pytest.approx(exact, abs=0.01)


def coverage_of_the_contrast(tau, repeats, seed):
    """Tables with true δ = -.05, words and attributes with effects, slopes that vary by word."""
    rng = np.random.default_rng(seed)
    rows, columns = "a" * 5 + "b" * 5 + "c" * 5, "aaaabbbccccc"
    own = np.array(list(rows))[:, None] == np.array(list(columns))[None, :]
    hits = 0
    for _ in range(repeats):
        slopes = rng.normal(-0.05, tau, (15, 1))
        y = 0.9 + rng.normal(0, 0.1, (15, 1)) + rng.normal(0, 0.1, (1, 12)) + own * slopes
        m = association_contrast(
            made_table(y + rng.normal(0, 0.08, (15, 12)), rows, columns), permutations=0
        )
        hits += m.low <= -0.05 <= m.high
    return hits / repeats


@pytest.mark.parametrize("tau", [0.0, 0.05])
def test_contrast_interval_covers(tau):
    """Nominal 95 %; with few words the jackknife errs to the wide side."""
    assert 0.93 <= coverage_of_the_contrast(tau, 300, seed=12) <= 0.995


def test_too_small_a_table_is_an_error():
    with pytest.raises(InputError, match="two classes and three stereotype words"):
        association_contrast(made_table(np.ones((2, 2)), "aa", "aa"))
