"""Episodes: small classification tasks of C classes with K support and Q query texts each.

They are integer arrays of rows of the data set, drawn by a generator of their own, so that they
can be replayed, hashed, and shared by every network and mitigation. Queries are drawn before
supports: with the same seed, calibrated episodes have the classes and queries of uniform ones.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.fewshot.data_set import FEMALE, MALE, Dataset
from evenhand.results import replace_file, to_json

__all__ = ["Episodes", "sample"]

Rows = NDArray[np.int32]
Places = NDArray[np.int64]
ARRAYS = {"classes": 2, "support": 3, "query": 3, "unlabelled": 2}


@dataclass(frozen=True, eq=False)
class Episodes:
    """E episodes: `classes` (E, C) as places in the data set's classes, and rows of its texts in
    `support` (E, C, K), `query` (E, C, Q) and `unlabelled` (E, U), which may be missing.

    `dataset` is the digest of the data set the rows are of.
    """

    classes: Rows = field(repr=False)
    support: Rows = field(repr=False)
    query: Rows = field(repr=False)
    unlabelled: Rows | None = field(default=None, repr=False)
    dataset: str = ""
    seed: int | None = None
    purpose: str = ""
    calibrated: bool = False

    def __post_init__(self) -> None:
        shape = np.shape(self.classes)
        starts = {"classes": shape, "support": shape, "query": shape, "unlabelled": shape[:1]}
        for name, dimensions in ARRAYS.items():
            if name == "unlabelled" and self.unlabelled is None:
                continue
            array = np.array(getattr(self, name), dtype=np.int32)
            fits = array.shape[: len(starts[name])] == starts[name] and array.size
            if array.ndim != dimensions or not fits:
                raise InputError(f"episodes: {name} does not fit, it has the shape {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def ways(self) -> int:
        return int(self.classes.shape[1])

    @property
    def shots(self) -> int:
        return int(self.support.shape[2])

    @property
    def queries(self) -> int:
        return int(self.query.shape[2])

    @cached_property
    def digest(self) -> str:
        """A hash of all rows and of the data set they are of."""
        made = blake2b(self.dataset.encode(), digest_size=16)
        for array in (self.classes, self.support, self.query, self.unlabelled):
            made.update(repr(None if array is None else array.shape).encode())
            made.update(b"" if array is None else array.astype("<i4").tobytes())
        return made.hexdigest()

    def check(self, dataset: Dataset) -> None:
        """Raise an error where these are episodes of another data set."""
        if self.dataset != dataset.digest:
            raise InputError(
                f"episodes: expected some of the data set '{dataset.name}' ({dataset.digest}), "
                f"got some of another ({self.dataset or 'unknown'})"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file, whole or not at all; the same episodes give the same bytes."""
        about = {"dataset": self.dataset, "seed": self.seed, "purpose": self.purpose,
                 "calibrated": self.calibrated, "digest": self.digest}  # fmt: skip
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        with replace_file(path) as file:
            np.savez(file, about=np.array(to_json(about, indent=None)), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Episodes:
        """Read what `save` wrote; a file that is damaged or of something else is an error."""
        content = io.BytesIO(Path(path).read_bytes())
        try:
            with np.load(content, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                digest = about.pop("digest")
                made = cls(**{name: file[name] for name in ARRAYS if name in file}, **about)
        except (ValueError, LookupError, TypeError, AttributeError, OSError, EOFError,
                RuntimeError, zlib.error, zipfile.BadZipFile) as error:  # fmt: skip
            raise FileError(path, f"expected episodes saved by Evenhand: {error}") from None
        if made.digest != digest:
            raise FileError(path, "damaged: the episodes are not those that were saved")
        return made


def sample(
    dataset: Dataset,
    classes: Iterable[str],
    *,
    ways: int,
    shots: int,
    queries: int,
    episodes: int,
    calibrated: bool = False,
    balanced_queries: bool = False,
    unlabelled: int = 0,
    seed: int = 0,
    purpose: str = "test",
) -> Episodes:
    """Draw episodes over the named classes, uniformly over classes and over their texts.

    `calibrated` takes K/2 supports of each gender in each class (D0 §4.2.3), men before women;
    `balanced_queries` does the same to the queries, which are else uniform over the class (over
    the sets of queries that leave enough of both genders, where a class has few of one).
    `unlabelled` is a number of texts a class, given without their class (Ren et al. 2018). No text
    is twice in an episode. The draws depend on `seed` and `purpose`, such as train, valid, test.

    >>> made = Dataset.of("abcdef", "xxxyyy", name="tiny")
    >>> drawn = sample(made, ["x", "y"], ways=2, shots=1, queries=2, episodes=3)
    >>> drawn.support.shape, drawn.query.shape
    ((3, 2, 1), (3, 2, 2))
    """
    places = np.array(dataset.places(classes))
    _check_numbers(shots=shots, queries=queries, episodes=episodes)
    _check_numbers(0, unlabelled=unlabelled, seed=seed)
    if not isinstance(ways, Integral) or not 2 <= ways <= len(places):
        raise InputError(f"ways: expected 2 to {len(places)}, the classes to draw from, got {ways}")
    support_each = _half("shots", shots) if calibrated else 0
    query_each = _half("queries", queries) if balanced_queries else 0
    _check_classes(dataset, places, shots + queries + unlabelled, support_each + query_each)

    entropy = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())])
    of_classes, of_queries, of_supports, of_others, again = (
        np.random.Generator(np.random.PCG64(child)) for child in entropy.spawn(5)
    )
    whole = np.zeros(episodes, dtype=np.int64), np.full(episodes, len(places))
    drawn = places[_Draws().draw(of_classes.random((episodes, ways)), *whole)]
    ranges = _Ranges(dataset, drawn.ravel())
    count = episodes * ways
    asked = ranges.draw(_Draws(), of_queries.random((count, queries)), balanced_queries)
    while calibrated and (short := ranges.lacking(asked, support_each)).any():
        new = again.random((int(short.sum()), queries))
        asked[short] = ranges.at(short).draw(_Draws(), new, balanced_queries)
    draws = _Draws(asked)
    given = ranges.draw(draws, of_supports.random((count, shots)), calibrated)
    extra = ranges.draw(draws, of_others.random((count, unlabelled)), False)
    shape = (episodes, ways, -1)
    return Episodes(
        classes=drawn.astype(np.int32),
        support=ranges.rows(given).reshape(shape),
        query=ranges.rows(asked).reshape(shape),
        unlabelled=ranges.rows(extra).reshape(episodes, -1) if unlabelled else None,
        dataset=dataset.digest,
        seed=int(seed),
        purpose=purpose,
        calibrated=calibrated,
    )


class _Draws:
    """Distinct numbers drawn in many ranges side by side, whatever the ranges' lengths.

    The next number is drawn from as many as are left, then moved past those taken before it. The
    work grows with the square of the draws a range and not at all with the length of a range.
    """

    def __init__(self, taken: Places | None = None) -> None:
        self._taken = [] if taken is None else list(np.sort(taken, axis=1).T.copy())

    def draw(self, uniform: NDArray[np.float64], low: Places, size: Places) -> Places:
        """As many new numbers from `low` up to `low` + `size` as `uniform` has columns."""
        left = size - sum((taken >= low) & (taken < low + size) for taken in self._taken)
        drawn = np.empty(uniform.shape, dtype=np.int64)
        for column in range(uniform.shape[1]):
            number = low + (uniform[:, column] * (left - column)).astype(np.int64)
            for taken in self._taken:
                number += (taken >= low) & (taken <= number)
            drawn[:, column] = number
            for place, taken in enumerate(self._taken):
                self._taken[place] = np.minimum(taken, number)
                number = np.maximum(taken, number)
            self._taken.append(number)
        return drawn


class _Ranges:
    """Where the texts of each drawn class lie, its men first, then its women, then the others."""

    def __init__(self, dataset: Dataset, classes: Places) -> None:
        self._order = np.lexsort((dataset.genders % 3, dataset.labels))  # unknown, -1, is the last
        self._starts = (np.cumsum(dataset.sizes) - dataset.sizes)[classes]
        self._size = dataset.sizes[classes]
        self._men, self._women = dataset.gender_sizes[classes].T

    def at(self, chosen: NDArray[np.bool_]) -> _Ranges:
        """The same for some of the classes."""
        part = object.__new__(_Ranges)
        part._order = self._order
        part._starts, part._size = self._starts[chosen], self._size[chosen]
        part._men, part._women = self._men[chosen], self._women[chosen]
        return part

    def draw(self, draws: _Draws, uniform: NDArray[np.float64], balanced: bool) -> Places:
        """Places within each class: of all its texts, or one half of men and one of women."""
        low = np.zeros_like(self._size)
        if not balanced:
            return draws.draw(uniform, low, self._size)
        men, women = np.hsplit(uniform, 2)
        return np.hstack(
            [draws.draw(men, low, self._men), draws.draw(women, self._men, self._women)]
        )

    def lacking(self, places: Places, each: int) -> NDArray[np.bool_]:
        """Where a class has fewer than `each` texts of a gender beside those at the places."""
        men = (places < self._men[:, None]).sum(axis=1)
        known = (places < (self._men + self._women)[:, None]).sum(axis=1)
        fewest: Places = np.minimum(self._men - men, self._women - (known - men))
        return fewest < each

    def rows(self, places: Places) -> Rows:
        """The rows of the data set at places within each class."""
        found: Rows = self._order[self._starts[:, None] + places].astype(np.int32)
        return found


def _check_numbers(least: int = 1, **numbers: object) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise InputError(f"{name}: expected a whole number from {least} up, got {value!r}")


def _half(name: str, number: int) -> int:
    if number % 2:
        raise InputError(
            f"{name}: expected an even number, one half of each gender, got {number} "
            "(D0 §4.2.3 calibrates with K/2 men and K/2 women)"
        )
    return number // 2


def _check_classes(dataset: Dataset, places: Places, texts: int, each: int) -> None:
    """Raise an error that names all classes that are too small."""
    small = [p for p in places.tolist() if dataset.sizes[p] < texts]
    if small:
        told = ", ".join(f"'{dataset.classes[p]}' ({dataset.sizes[p]})" for p in small)
        raise InputError(
            f"{dataset.name}: expected {texts} texts a class for an episode, fewer in {told}; "
            f"at_least({texts}) leaves such classes out"
        )
    few = [p for p in places.tolist() if dataset.gender_sizes[p].min() < each]
    if few:
        counts = [(dataset.classes[p], *dataset.gender_sizes[p, [MALE, FEMALE]]) for p in few]
        told = ", ".join(f"'{name}' ({men} men, {women} women)" for name, men, women in counts)
        raise InputError(
            f"{dataset.name}: expected {each} texts of each gender a class, fewer in {told}; "
            f"at_least({texts}, each_gender={each}) leaves such classes out"
        )
