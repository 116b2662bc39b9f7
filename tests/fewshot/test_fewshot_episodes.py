from __future__ import annotations

import io
import itertools
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.data import Dataset, read
from evenhand.fewshot.episodes import Episodes, sample


def made(*sizes: tuple[int, int, int]) -> Dataset:
    """A class for each triple: so many men, women and unknown, the rows in mixed order."""
    rows = [
        (f"{k} {g} {i}", f"class {k}", g)
        for k, size in enumerate(sizes)
        for g, count in zip((0, 1, -1), size, strict=True)
        for i in range(count)
    ]
    order = np.random.default_rng(1).permutation(len(rows))
    texts, labels, genders = zip(*(rows[i] for i in order), strict=True)
    return Dataset.of(texts, labels, genders, name="made")


def draw(dataset: Dataset, **options: Any) -> Episodes:
    usual = {"ways": 2, "shots": 2, "queries": 2, "episodes": 50}
    return sample(dataset, dataset.classes, **(usual | options))


class TestShapes:
    @settings(max_examples=80, deadline=None)
    @given(
        st.integers(2, 5),
        st.integers(1, 6),
        st.integers(1, 6),
        st.integers(0, 4),
        st.booleans(),
        st.booleans(),
        st.integers(0, 50),
    )
    def test_disjoint_and_of_their_classes(
        self,
        ways: int,
        shots: int,
        queries: int,
        unlabelled: int,
        calibrated: bool,
        balanced: bool,
        seed: int,
    ) -> None:
        shots += shots % 2 * calibrated
        queries += queries % 2 * balanced
        dataset = made((6, 9, 1), (20, 6, 0), (6, 6, 9), (40, 7, 3), (8, 30, 0), (9, 9, 0))
        drawn = sample(
            dataset,
            dataset.classes,
            ways=ways,
            shots=shots,
            queries=queries,
            episodes=12,
            unlabelled=unlabelled,
            calibrated=calibrated,
            balanced_queries=balanced,
            seed=seed,
        )
        assert drawn.classes.shape == (12, ways)
        assert drawn.support.shape == (12, ways, shots)
        assert drawn.query.shape == (12, ways, queries)
        parts = [drawn.support.reshape(12, -1), drawn.query.reshape(12, -1)]
        assert (dataset.labels[drawn.support] == drawn.classes[:, :, None]).all()
        assert (dataset.labels[drawn.query] == drawn.classes[:, :, None]).all()
        if unlabelled:
            assert drawn.unlabelled is not None
            assert drawn.unlabelled.shape == (12, ways * unlabelled)
            counts = Counter(dataset.labels[drawn.unlabelled[0]].tolist())
            assert counts == dict.fromkeys(drawn.classes[0].tolist(), unlabelled)
            parts.append(drawn.unlabelled)
        else:
            assert drawn.unlabelled is None
        for episode in np.hstack(parts):
            assert len(set(episode.tolist())) == len(episode)
        for episode in drawn.classes:
            assert len(set(episode.tolist())) == ways
        for rows, even in ((drawn.support, calibrated), (drawn.query, balanced)):
            if even:
                half = rows.shape[2] // 2
                assert (dataset.genders[rows[:, :, :half]] == 0).all()
                assert (dataset.genders[rows[:, :, half:]] == 1).all()

    def test_only_the_named_classes(self) -> None:
        dataset = made((5, 5, 0), (5, 5, 0), (5, 5, 0), (5, 5, 0))
        drawn = sample(dataset, ["class 3", "class 1"], ways=2, shots=1, queries=1, episodes=40)
        assert set(drawn.classes.ravel().tolist()) == {1, 3}

    def test_exactly_enough(self) -> None:
        dataset = made((2, 2, 0), (3, 1, 0))
        drawn = draw(dataset, episodes=20)
        rows = np.concatenate([drawn.support, drawn.query], axis=2)
        assert (np.sort(rows.reshape(20, -1)) == np.arange(8)).all()


def chi_square(counts: list[int]) -> float:
    return float(stats.chisquare(counts).pvalue)


class TestUniform:
    def test_classes(self) -> None:
        dataset = made(*[(2, 2, 0)] * 5)
        drawn = draw(dataset, ways=3, shots=1, queries=1, episodes=12_000)
        tuples = Counter(map(tuple, drawn.classes.tolist()))
        assert set(tuples) == set(itertools.permutations(range(5), 3))
        assert chi_square(list(tuples.values())) > 1e-4

    def test_texts(self) -> None:
        """Every ordered choice of two supports and a query out of five is as likely."""
        dataset = made((3, 2, 0), (2, 2, 1))
        drawn = draw(dataset, shots=2, queries=1, episodes=9_000)
        chosen = np.concatenate([drawn.support, drawn.query], axis=2).reshape(-1, 3)
        for place in range(2):
            rows = np.flatnonzero(dataset.labels == place)
            here = Counter(map(tuple, chosen[np.isin(chosen[:, 0], rows)].tolist()))
            assert set(here) == set(itertools.permutations(rows.tolist(), 3))
            assert chi_square(list(here.values())) > 1e-4

    def test_large_classes(self) -> None:
        dataset = made((700, 300, 0), (100, 0, 0))
        drawn = draw(dataset, shots=8, queries=8, unlabelled=4, episodes=6_000)
        assert drawn.unlabelled is not None
        for rows in (drawn.support, drawn.query, drawn.unlabelled):
            counts = np.bincount(rows.ravel(), minlength=len(dataset))
            for place in range(2):
                assert chi_square(counts[dataset.labels == place].tolist()) > 1e-4

    def test_calibrated_within_each_gender(self) -> None:
        dataset = made((30, 8, 4), (9, 12, 0))
        drawn = draw(dataset, shots=4, queries=3, episodes=6_000, calibrated=True)
        counts = np.bincount(drawn.support.ravel(), minlength=len(dataset))
        for place, gender in itertools.product(range(2), (0, 1)):
            here = (dataset.labels == place) & (dataset.genders == gender)
            assert chi_square(counts[here].tolist()) > 1e-4
        assert counts[dataset.genders == -1].sum() == 0
        assert (dataset.genders[drawn.query] == -1).any()

    def test_scarce_gender(self) -> None:
        """Three men, two of them needed: a query set has at most one, each such set as likely."""
        dataset = made((3, 4, 0), (3, 4, 0))
        drawn = draw(dataset, shots=4, queries=2, episodes=4_000, calibrated=True)
        queries = np.sort(drawn.query.reshape(-1, 2))
        first = np.flatnonzero(dataset.labels == 0)
        men = set(np.flatnonzero(dataset.genders == 0).tolist())
        allowed = {
            pair
            for pair in itertools.combinations(first.tolist(), 2)
            if len(set(pair) & men) <= 1 and len(set(pair) - men) <= 2
        }
        here = Counter(map(tuple, queries[np.isin(queries[:, 0], first)].tolist()))
        assert set(here) == allowed
        assert chi_square(list(here.values())) > 1e-4


class TestReplay:
    dataset = made(*[(20, 20, 5)] * 6)

    def test_the_same_for_the_same_seed_and_purpose_alone(self) -> None:
        digests = {
            draw(self.dataset, seed=seed, purpose=purpose).digest
            for seed in (0, 1)
            for purpose in ("train", "valid", "test")
        }
        assert len(digests) == 6
        again = draw(self.dataset, seed=1, purpose="valid")
        assert again.digest in digests

    @pytest.mark.parametrize("calibrated", [False, True])
    def test_against_plain_loops(self, calibrated: bool) -> None:
        """The next text is the one at a random place among those of the class still left."""
        drawn = draw(
            self.dataset,
            ways=3,
            shots=4,
            queries=3,
            unlabelled=2,
            seed=5,
            purpose="valid",
            calibrated=calibrated,
        )
        root = np.random.SeedSequence([5, zlib.crc32(b"valid")])
        streams = [np.random.Generator(np.random.PCG64(child)) for child in root.spawn(5)]
        genders = self.dataset.genders

        def take(left: list[int], stream: int, count: int) -> list[int]:
            return [left.pop(int(streams[stream].random() * len(left))) for _ in range(count)]

        chosen = [take(list(range(6)), 0, 3) for _ in range(50)]
        assert drawn.classes.tolist() == chosen
        for (e, c), place in np.ndenumerate(np.array(chosen)):
            members = np.flatnonzero(self.dataset.labels == place).tolist()
            left = [row for gender in (0, 1, -1) for row in members if genders[row] == gender]
            assert drawn.query[e, c].tolist() == take(left, 1, 3)
            if calibrated:
                groups = [[row for row in left if genders[row] == gender] for gender in (0, 1)]
                support = [row for group in groups for row in take(group, 2, 2)]
                left = [row for row in left if row not in support]
            else:
                support = take(left, 2, 4)
            assert drawn.support[e, c].tolist() == support
            assert drawn.unlabelled is not None
            assert drawn.unlabelled[e, 2 * c : 2 * c + 2].tolist() == take(left, 3, 2)

    def test_more_episodes_begin_with_the_same(self) -> None:
        few, many = draw(self.dataset, episodes=10), draw(self.dataset, episodes=30)
        np.testing.assert_array_equal(few.support, many.support[:10])
        np.testing.assert_array_equal(few.query, many.query[:10])

    def test_calibration_keeps_classes_and_queries(self) -> None:
        plain, even = draw(self.dataset), draw(self.dataset, calibrated=True)
        np.testing.assert_array_equal(plain.classes, even.classes)
        np.testing.assert_array_equal(plain.query, even.query)
        assert not np.array_equal(plain.support, even.support)
        assert even.calibrated

    def test_more_shots_keep_classes_and_queries(self) -> None:
        one, five = draw(self.dataset, shots=1), draw(self.dataset, shots=5)
        np.testing.assert_array_equal(one.query, five.query)

    def test_of_one_dataset(self) -> None:
        drawn = draw(self.dataset)
        drawn.check(self.dataset)
        with pytest.raises(InputError, match=r"expected some of the data set 'made' .* of another"):
            drawn.check(made((5, 5, 0), (5, 5, 0)))

    @pytest.mark.parametrize("unlabelled", [0, 3])
    def test_saved_and_loaded(self, tmp_path: Path, unlabelled: int) -> None:
        drawn = draw(self.dataset, unlabelled=unlabelled, calibrated=True, seed=3, purpose="train")
        drawn.save(tmp_path / "a.npz")
        back = Episodes.load(tmp_path / "a.npz")
        assert back.digest == drawn.digest
        assert (back.seed, back.purpose, back.calibrated) == (3, "train", True)
        assert back.dataset == self.dataset.digest
        back.save(tmp_path / "b.npz")
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()

    def test_damaged_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        drawn = draw(self.dataset)
        drawn.save(path)
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", b"text", whole[:300] + whole[400:]):
            path.write_bytes(damaged)
            with pytest.raises(FileError, match=r"a\.npz: "):
                Episodes.load(path)
        with np.load(io.BytesIO(whole)) as file:
            arrays = dict(file)
        arrays["support"] = arrays["support"][:, :, ::-1]
        np.savez(path, **arrays)
        with pytest.raises(FileError, match="not those that were saved"):
            Episodes.load(path)
        np.savez(path, other=np.arange(3))
        with pytest.raises(FileError, match="expected episodes saved by Evenhand"):
            Episodes.load(path)

    def test_arrays_must_fit_each_other(self) -> None:
        drawn = draw(self.dataset)
        with pytest.raises(InputError, match="query does not fit"):
            Episodes(drawn.classes, drawn.support, drawn.query[:3])
        with pytest.raises(InputError, match="unlabelled does not fit"):
            Episodes(drawn.classes, drawn.support, drawn.query, drawn.query)
        with pytest.raises(ValueError, match="read-only"):
            drawn.support[0] = 0


class TestErrors:
    dataset = made((9, 9, 0), (9, 2, 0), (2, 3, 0), (9, 9, 0))

    def test_an_odd_k_is_never_shrunk(self) -> None:
        with pytest.raises(InputError, match=r"shots: expected an even number.*got 5"):
            draw(self.dataset, shots=5, calibrated=True)
        with pytest.raises(InputError, match=r"queries: expected an even number.*got 3"):
            draw(self.dataset, queries=3, balanced_queries=True)

    def test_small_classes_are_named(self) -> None:
        message = r"made: expected 8 texts per class .* fewer in 'class 2' \(5\); .*at_least\(8\)"
        with pytest.raises(InputError, match=message):
            draw(self.dataset, shots=5, queries=3)
        draw(self.dataset.at_least(8), shots=5, queries=3)

    def test_classes_with_few_of_a_gender_are_named(self) -> None:
        large = self.dataset.at_least(9)
        message = (
            r"expected 3 texts of each gender per class, fewer in 'class 1' \(9 men, 2 women\)"
        )
        with pytest.raises(InputError, match=message):
            draw(large, shots=6, queries=3, calibrated=True)
        draw(large.at_least(9, each_gender=3), shots=6, queries=3, calibrated=True)
        with pytest.raises(InputError, match="expected 3 texts of each gender"):
            draw(large, shots=4, queries=2, calibrated=True, balanced_queries=True)

    def test_other_numbers(self) -> None:
        for name, value in (("shots", 0), ("queries", 1.5), ("episodes", True), ("seed", -1)):
            with pytest.raises(InputError, match=f"{name}: expected a whole number"):
                draw(self.dataset, **{name: value})
        for ways in (1, 5):
            with pytest.raises(InputError, match=f"ways: expected 2 to 4, .* got {ways}"):
                draw(self.dataset, ways=ways)
        with pytest.raises(UnknownNameError, match="did you mean 'class"):
            sample(self.dataset, ["clas 0"], ways=2, shots=1, queries=1, episodes=1)


def test_wikibios_ten_thousand(shared: Path) -> None:
    dataset = read(shared / "data/bios/wikibios.csv.gz").at_least(100)
    drawn = draw(dataset, ways=5, shots=5, queries=5, episodes=10_000, purpose="train")
    rows = np.concatenate([drawn.support, drawn.query], axis=2)
    assert (np.diff(np.sort(rows.reshape(10_000, -1)), axis=1) > 0).all()
    assert (dataset.labels[rows] == drawn.classes[:, :, None]).all()
