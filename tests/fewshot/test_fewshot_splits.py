from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evenhand.errors import FileError, InputError, SmallDataError, UnknownNameError
from evenhand.fewshot.data import Dataset, read
from evenhand.fewshot.splits import (
    Split,
    fit_to_data,
    load_splits,
    make_splits,
    read_splits,
    save_splits,
)


def classes(women: int, men: int, even: int = 0, unknown: int = 0) -> Dataset:
    """Two texts a class, with the genders that make it lean as asked."""
    kinds = ["FF"] * women + ["MM"] * men + ["FM"] * even + ["xx"] * unknown
    rows = [
        (f"text {k} {i}", f"class {k:02}", g)
        for k, gs in enumerate(kinds)
        for i, g in enumerate(gs)
    ]
    texts, labels, genders = zip(*rows, strict=True)
    return Dataset.of(texts, labels, genders, name="made", leaning_by="share")


def leanings(dataset: Dataset, names: tuple[str, ...]) -> list[str]:
    side = dict(zip(dataset.classes, dataset.leaning, strict=True))
    return [side[name] for name in names]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(3, 12),
    st.integers(3, 12),
    st.integers(0, 3),
    st.integers(0, 3),
    st.tuples(st.floats(0.2, 1), st.floats(0.2, 1), st.floats(0.2, 1)),
    st.integers(0, 9),
)
def test_every_part_has_both_leanings(
    women: int, men: int, even: int, unknown: int, weights: tuple[float, ...], seed: int
) -> None:
    shares = [weight / sum(weights) for weight in weights]
    dataset = classes(women, men, even, unknown)
    assume(min(shares) * len(dataset.classes) > 2.5)
    split = make_splits(dataset, shares=shares, seed=seed)[0]
    parts = (split.train, split.valid, split.test)
    assert sorted(name for part in parts for name in part) == list(dataset.classes)
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - share * len(dataset.classes)) <= 1
        sides = leanings(dataset, part)
        assert "female" in sides
        assert "male" in sides
        expected = women * len(part) / len(dataset.classes)
        assert abs(sides.count("female") - expected) < 1.6  # as near as whole classes allow


def test_seeds() -> None:
    dataset = classes(9, 9)
    made = make_splits(dataset, 4, seed=7)
    assert [split.seed for split in made] == [7, 8, 9, 10]
    assert len({split.train for split in made}) == 4
    assert make_splits(dataset, 4, seed=7) == made
    assert make_splits(dataset, seed=9)[0] == made[2]


def test_every_class_is_tested_as_often_as_the_others() -> None:
    dataset = classes(4, 8)
    made = make_splits(dataset, 600)
    times = [sum(name in split.test for split in made) for name in dataset.classes]
    # 150 expected of each: one test place of four among women, two of eight among men; SD 10.6
    assert all(abs(count - 150) < 50 for count in times), times


def test_sizes_and_shares() -> None:
    dataset = classes(14, 14)
    split = make_splits(dataset)[0]
    assert [len(part) for part in (split.train, split.valid, split.test)] == [14, 7, 7]
    split = make_splits(dataset, sizes=(20, 2, 6))[0]
    assert [len(part) for part in (split.train, split.valid, split.test)] == [20, 2, 6]
    assert sorted(leanings(dataset, split.valid)) == ["female", "male"]
    with pytest.raises(InputError, match=r"sizes: .* add up to 28, got \(20, 2, 5\)"):
        make_splits(dataset, sizes=(20, 2, 5))
    with pytest.raises(InputError, match="shares: expected three positive"):
        make_splits(dataset, shares=(0.5, 0.5, 0.5))
    with pytest.raises(InputError, match="n: expected at least one split, got 0"):
        make_splits(dataset, 0)
    with pytest.raises(InputError, match=r"seed: expected .*, got -1"):
        make_splits(dataset, seed=-1)


def test_three_of_a_leaning_are_one_for_each_part() -> None:
    for women, men in ((3, 17), (17, 3)):
        dataset = classes(women, men)
        split = make_splits(dataset, sizes=(16, 2, 2))[0]
        for part in (split.train, split.valid, split.test):
            assert leanings(dataset, part).count("female" if women == 3 else "male") == 1


def test_too_few_of_a_leaning() -> None:
    dataset = classes(2, 8)
    with pytest.raises(InputError, match=r"lean female, .* got 2: 'class 00', 'class 01' \(.*both"):
        make_splits(dataset)
    with pytest.raises(InputError, match=r"lean male, one for each part, got 0 \(.*both"):
        make_splits(classes(8, 0))
    with pytest.raises(InputError, match=r"at least two classes in each part.*got 8, 1, 1"):
        make_splits(classes(5, 5), sizes=(8, 1, 1))
    split = make_splits(dataset, both_leanings=False)[0]
    assert len(split.train) + len(split.valid) + len(split.test) == 10
    with pytest.raises(InputError, match="at least three classes to divide, got 2"):
        make_splits(classes(0, 0, unknown=2))


def test_no_genders_no_leanings() -> None:
    split = make_splits(classes(0, 0, unknown=8))[0]
    assert [len(part) for part in (split.train, split.valid, split.test)] == [4, 2, 2]


def test_a_class_is_in_one_part_alone() -> None:
    with pytest.raises(InputError, match="class 'b': expected in one part, got train and test"):
        Split(("a", "b"), ("c",), ("b",))
    with pytest.raises(InputError, match="valid: expected at least one class, got none"):
        Split(("a",), (), ("b",))
    with pytest.raises(UnknownNameError, match="unknown class 'class 9': did you mean 'class 0"):
        Split(("class 00",), ("class 9",), ("class 01",)).check(classes(1, 1))


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = (*make_splits(classes(4, 4), 2), Split(("a",), ("b",), ("c",)))
    save_splits(tmp_path / "splits.json", made)
    assert load_splits(tmp_path / "splits.json") == made


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "expected a table"),
        ('{"splits": []}', "splits: the list is empty"),
        ('{"splits": [3]}', r"splits #1: expected a table, got a number"),
        ('{"splits": [{"train": ["a"], "valid": "b"}]}', r"splits #1.valid: expected a list"),
        ({"train": ["a"], "valid": ["b"], "test": [3]}, r"splits #1.test #1: expected a text"),
        ({"train": ["a"], "valid": ["a"], "test": ["b"]}, r"splits #1: class 'a'"),
        ({"train": ["a"], "valid": ["b"], "test": ["c"], "seed": "x"}, "seed: expected a whole"),
    ],
)
def test_damaged_files(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "splits.json"
    path.write_text(content if isinstance(content, str) else json.dumps({"splits": [content]}))
    with pytest.raises(FileError, match=rf"splits\.json[:,] .*{message}"):
        load_splits(path)


def test_given_label_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"expected files named as labels\.01\.train\.txt"):
        read_splits(tmp_path)
    for part, names in (("train", "a\nb\n"), ("valid", "c\n\n")):
        (tmp_path / f"labels.01.{part}.txt").write_text(names)
    with pytest.raises(FileError, match=r"expected labels\.01\.test\.txt, got none"):
        read_splits(tmp_path)
    (tmp_path / "labels.01.test.txt").write_text("d")
    assert read_splits(tmp_path) == (Split(("a", "b"), ("c",), ("d",)),)
    (tmp_path / "labels.01.test.txt").write_text("a")
    with pytest.raises(FileError, match=r"labels\.01: class 'a': expected in one part"):
        read_splits(tmp_path)


@pytest.mark.parametrize(("folder", "count"), [("BANKING77", 77), ("HWU64", 64)])
def test_the_splits_of_the_intents(shared: Path, folder: str, count: int) -> None:
    dataset = read(shared / f"data/intents/{folder}/full.jsonl")
    splits = read_splits(shared / "data/intents" / folder)
    assert len(splits) == 5
    for split in splits:
        split.check(dataset)
        assert len(split.train) + len(split.valid) + len(split.test) == count


def test_wikibios(shared: Path) -> None:
    dataset = read(shared / "data/bios/wikibios.csv.gz").at_least(100)
    assert dataset.leaning.count("female") == 13  # by the odds ratios; 3 have more women than men
    assert dataset.leaning.count("male") == 19
    for split in make_splits(dataset, 3):
        for part in (split.train, split.valid, split.test):
            assert {"female", "male"} <= set(leanings(dataset, part))


def small_data(*sizes: int) -> Dataset:
    """Classes of so many texts, leaning male and female by turns."""
    rows = [
        (f"{name} {n}", name, "MF"[(n % 3 == 0) == (number % 2 == 0)])
        for number, (name, size) in enumerate(zip("abcdefghijklmnop", sizes, strict=False))
        for n in range(size)
    ]
    return Dataset.of(*zip(*rows, strict=True), name="small", leaning_by="share")


def test_tasks_that_the_data_allow() -> None:
    usual = fit_to_data(small_data(*[12] * 16), shares=(0.3, 0.35, 0.35))
    assert (usual.ways, usual.shots, usual.queries, usual.splits) == (5, 5, 5, 1)
    few = fit_to_data(small_data(*[7] * 7))
    assert (few.ways, few.shots, few.queries, few.splits, few.both_leanings) == (2, 3, 3, 4, True)
    assert few.notes[0].startswith("chosen for these data: 2 ways, 3 shots, 3 queries, 4 splits")
    assert few.options == "--ways 2 --shots 3 --queries 3 --splits 4 --at-least 7"
    uneven = fit_to_data(small_data(*[4] * 8, 1, 1))
    assert uneven.dataset.classes == tuple("abcdefgh")
    assert "left out, with fewer than 4 texts: i, j" in uneven.notes
    calibrated = fit_to_data(small_data(*[9] * 9), calibrated=True)
    assert (calibrated.shots, calibrated.queries) == (4, 5)
    given = fit_to_data(small_data(*[7] * 9), ways=2, shots=1)
    assert (given.ways, given.shots, given.queries, given.splits) == (2, 1, 5, 1)
    women = Dataset.of(map(str, range(64)), "abcdefgh" * 8, "F" * 64, name="f", leaning_by="share")
    assert not fit_to_data(women).both_leanings


@pytest.mark.parametrize("sizes", [(9, 9, 9, 9, 9), (1,) * 12, (30, 30, 1, 1, 1, 1, 1)])
def test_data_that_allow_no_tasks_are_one_error(sizes: tuple[int, ...]) -> None:
    expected = "small: expected 2 classes each to train, to validate and to test on with 2 texts"
    with pytest.raises(SmallDataError, match=expected):
        fit_to_data(small_data(*sizes))
