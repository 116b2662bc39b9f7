"""Episodes: small classification tasks of C classes with K support and Q query texts each.

They are integer arrays of rows of the data set, drawn with a generator of their own, so that they
can be replayed, hashed, and shared by all networks and mitigations. Queries are drawn before
supports: with the same seed, calibrated episodes have the classes and queries of uniform ones.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError, SmallDataError, check_whole, parameter
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.settings import half_of_each_gender
from evenhand.files import replace_file, to_json
from evenhand.instruments import MOST_DRAWN

Rows = NDArray[np.int32]
Positions = NDArray[np.int64]
NPZ_ERRORS = (
    *(ValueError, LookupError, TypeError, AttributeError, OSError, EOFError, RuntimeError),
    *(MemoryError, struct.error, zlib.error, zipfile.BadZipFile),
)
"""What reading a damaged .npz file may raise."""
ARRAYS = {"classes": 2, "support": 3, "query": 3, "unlabelled": 2}


@dataclass(frozen=True, eq=False)
class Episodes:
    """E episodes as arrays of rows of a data set.

    Parameters
    ----------
    classes : array (E, C)
        Indices of the data set's classes.
    support, query : array (E, C, K), array (E, C, Q)
        Rows of its texts.
    unlabelled : array (E, U), optional
    dataset : str
        The digest of the data set.
    seed, purpose, calibrated
        What they were drawn with.

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
        """A hash of all rows and of the data set."""
        digest = blake2b(self.dataset.encode(), digest_size=16)
        for array in (self.classes, self.support, self.query, self.unlabelled):
            digest.update(repr(None if array is None else array.shape).encode())
            digest.update(b"" if array is None else array.astype("<i4").tobytes())
        return digest.hexdigest()

    def check(self, dataset: Dataset) -> None:
        """Raise an error if these are episodes of another data set."""
        if self.dataset != dataset.digest:
            raise InputError(
                f"episodes: expected some of the data set '{dataset.name}' ({dataset.digest}), "
                f"got some of another ({self.dataset or 'unknown'})"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file, atomically; the same episodes give the same bytes."""
        about = {
            "dataset": self.dataset,
            "seed": self.seed,
            "purpose": self.purpose,
            "calibrated": self.calibrated,
            "digest": self.digest,
        }
        arrays = {name: getattr(self, name) for name in ARRAYS if getattr(self, name) is not None}
        with replace_file(path) as file:
            np.savez(file, about=np.array(to_json(about, indent=None)), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Episodes:
        """Read what `save` wrote; any other file, or a damaged one, is an error."""
        content = io.BytesIO(Path(path).read_bytes())
        try:
            with np.load(content, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                digest = about.pop("digest")
                episodes = cls(**{name: file[name] for name in ARRAYS if name in file}, **about)
        except NPZ_ERRORS as error:
            raise FileError(path, f"expected episodes saved by Evenhand: {error}") from None
        if episodes.digest != digest:
            raise FileError(path, "damaged: the episodes are not those that were saved")
        return episodes


@checked
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

    No text appears twice in an episode.

    Parameters
    ----------
    dataset : Dataset
    classes : iterable of str
        The classes to draw from.
    ways, shots, queries : int
        Classes per episode (C), supports (K) and queries (Q) per class.
    episodes : int
        The number of episodes.
    calibrated : bool
        Whether each class has K/2 supports of each gender (El Zein 2021, §4.2.3), men before
        women.
    balanced_queries : bool
        Whether the same holds for the queries. Otherwise they are uniform over the class (over the
        sets of queries that leave enough texts of both genders, where a class has few of one).
    unlabelled : int
        Texts per class that are given without their class (Ren et al. 2018).
    seed, purpose : int, str
        What the draws depend on; the purpose is a name such as "train", "valid" or "test".

    Returns
    -------
    Episodes

    Examples
    --------
    >>> data = Dataset.of("abcdef", "xxxyyy", name="tiny")
    >>> drawn = sample(data, ["x", "y"], ways=2, shots=1, queries=2, episodes=3)
    >>> drawn.support.shape, drawn.query.shape
    ((3, 2, 1), (3, 2, 2))

    """
    indices = np.array(dataset.indices(classes))
    check_whole(shots=shots, queries=queries, episodes=episodes)
    if episodes > MOST_DRAWN:
        raise InputError(f"episodes: expected at most {MOST_DRAWN:,}, got {episodes:,}")
    check_whole(0, unlabelled=unlabelled, seed=seed)
    if not isinstance(ways, Integral) or not 2 <= ways <= len(indices):
        raise SmallDataError(
            f"ways: expected 2 to {len(indices)}, the classes to draw from, got {ways}"
        )
    support_each = half_of_each_gender("shots", shots) if calibrated else 0
    query_each = half_of_each_gender("queries", queries) if balanced_queries else 0
    _check_classes(dataset, indices, shots + queries + unlabelled, support_each + query_each)

    entropy = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())])
    of_classes, of_queries, of_supports, of_others, again = (
        np.random.Generator(np.random.PCG64(child)) for child in entropy.spawn(5)
    )
    bounds = np.zeros(episodes, dtype=np.int64), np.full(episodes, len(indices))
    drawn = indices[_Draws().draw(of_classes.random((episodes, ways)), *bounds)]
    ranges = _Ranges(dataset, drawn.ravel())
    count = episodes * ways
    query = ranges.draw(_Draws(), of_queries.random((count, queries)), balanced_queries)
    while calibrated and (short := ranges.lacking(query, support_each)).any():
        new = again.random((int(short.sum()), queries))
        query[short] = ranges.at(short).draw(_Draws(), new, balanced_queries)
    draws = _Draws(query)
    support = ranges.draw(draws, of_supports.random((count, shots)), calibrated)
    extra = ranges.draw(draws, of_others.random((count, unlabelled)), False)
    shape = (episodes, ways, -1)
    return Episodes(
        classes=drawn.astype(np.int32),
        support=ranges.rows(support).reshape(shape),
        query=ranges.rows(query).reshape(shape),
        unlabelled=ranges.rows(extra).reshape(episodes, -1) if unlabelled else None,
        dataset=dataset.digest,
        seed=int(seed),
        purpose=purpose,
        calibrated=calibrated,
    )


class _Draws:
    """Distinct numbers drawn in many ranges side by side, whatever the ranges' lengths.

    The next number is drawn from those left, then moved past those taken before it. The work grows
    with the square of the draws per range and not at all with the length of a range.
    """

    def __init__(self, taken: Positions | None = None) -> None:
        self._taken = [] if taken is None else list(np.sort(taken, axis=1).T.copy())

    def draw(self, uniform: NDArray[np.float64], low: Positions, size: Positions) -> Positions:
        """New numbers from `low` to `low` + `size`, one per column of `uniform`."""
        left = size - sum((taken >= low) & (taken < low + size) for taken in self._taken)
        drawn = np.empty(uniform.shape, dtype=np.int64)
        for column in range(uniform.shape[1]):
            number = low + (uniform[:, column] * (left - column)).astype(np.int64)
            for taken in self._taken:
                number += (taken >= low) & (taken <= number)
            drawn[:, column] = number
            for rank, taken in enumerate(self._taken):
                self._taken[rank] = np.minimum(taken, number)
                number = np.maximum(taken, number)
            self._taken.append(number)
        return drawn


class _Ranges:
    """Where the texts of each drawn class lie, its men first, then its women, then the others."""

    def __init__(self, dataset: Dataset, classes: Positions) -> None:
        others_last = np.where(dataset.genders < 0, 2, dataset.genders)
        self._order = np.lexsort((others_last, dataset.labels))
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

    def draw(self, draws: _Draws, uniform: NDArray[np.float64], balanced: bool) -> Positions:
        """Positions within each class: of all its texts, or half of men and half of women."""
        low = np.zeros_like(self._size)
        if not balanced:
            return draws.draw(uniform, low, self._size)
        men, women = np.hsplit(uniform, 2)
        return np.hstack(
            [draws.draw(men, low, self._men), draws.draw(women, self._men, self._women)]
        )

    def lacking(self, positions: Positions, each: int) -> NDArray[np.bool_]:
        """Where a class has fewer than `each` texts of a gender besides those at the positions."""
        men = (positions < self._men[:, None]).sum(axis=1)
        known = (positions < (self._men + self._women)[:, None]).sum(axis=1)
        fewest: Positions = np.minimum(self._men - men, self._women - (known - men))
        return fewest < each

    def rows(self, positions: Positions) -> Rows:
        """The rows of the data set at positions within each class."""
        rows: Rows = self._order[self._starts[:, None] + positions].astype(np.int32)
        return rows


def _check_classes(dataset: Dataset, indices: Positions, texts: int, each: int) -> None:
    """Raise an error that names every class that is too small."""
    small = [i for i in indices.tolist() if dataset.sizes[i] < texts]
    if small:
        names = ", ".join(f"'{dataset.classes[i]}' ({dataset.sizes[i]})" for i in small)
        at_least = parameter("at_least", python=f"at_least({texts})", option=f"--at-least {texts}")
        raise SmallDataError(
            f"{dataset.name}: expected {texts} texts per class for an episode, fewer in {names}; "
            f"{at_least} leaves such classes out"
        )
    few = [i for i in indices.tolist() if dataset.gender_sizes[i].min() < each]
    if few:
        counts = [(dataset.classes[i], *dataset.gender_sizes[i]) for i in few]
        names = ", ".join(f"'{name}' ({men} men, {women} women)" for name, men, women in counts)
        at_least = parameter(
            "at_least",
            python=f"at_least({texts}, each_gender={each})",
            option=f"--at-least {texts} --each-gender {each}",
        )
        raise SmallDataError(
            f"{dataset.name}: expected {each} texts of each gender per class, fewer in {names}; "
            f"{at_least} leaves such classes out"
        )


def episode_rows(episodes: Episodes, part: slice = slice(None)) -> NDArray[np.int32]:
    """All rows of some of the episodes: support, query, unlabelled, concatenated."""
    arrays = (episodes.support, episodes.query, episodes.unlabelled)
    return np.concatenate([array[part].ravel() for array in arrays if array is not None])


def split_rows(
    episodes: Episodes, index: NDArray[Any], part: slice = slice(None)
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """`episode_rows` divided again: support (E, C, K), query (E, C * Q) and unlabelled (E, U)."""
    support, query = episodes.support[part], episodes.query[part]
    first, second = support.size, support.size + query.size
    rest = index[second:].reshape(len(support), -1)
    return (
        index[:first].reshape(support.shape),
        index[first:second].reshape(len(query), -1),
        None if episodes.unlabelled is None else rest,
    )
