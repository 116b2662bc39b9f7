"""Class splits: the classes to train on, to validate on and to test on, with none in two parts.

Each part has classes that lean male and classes that lean female (El Zein 2021, §5.2) where
genders are known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError, SmallDataError, parameter
from evenhand.fewshot.data import Dataset
from evenhand.files import document, save_json
from evenhand.lexicon.schema import Rows, read_json

PARTS = ("train", "valid", "test")
PURPOSE = 0x5B11  # separates these draws from others of the same seed
LABEL_FILE = re.compile(r"labels\.(\w+)\.(train|valid|test)\.txt")

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """The names of the classes of each part, and the seed they were drawn with (None if given)."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    seed: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        part_of: dict[str, str] = {}
        for part in PARTS:
            names = getattr(self, part)
            if not names:
                raise InputError(f"{part}: expected at least one class, got none")
            for name in names:
                if name in part_of:
                    raise InputError(
                        f"class '{name}': expected in one part, got {part_of[name]} and {part}"
                    )
                part_of[name] = part

    def check(self, dataset: Dataset) -> None:
        """Raise an error that names the first class that the data set does not have."""
        for part in PARTS:
            dataset.indices(getattr(self, part))

    def to_dict(self) -> dict[str, Any]:
        return {part: list(getattr(self, part)) for part in PARTS} | {"seed": self.seed}


@dataclass(frozen=True, slots=True)
class _Splits:
    """A file of splits."""

    splits: Rows[Split]


@checked
def make_splits(
    dataset: Dataset,
    n: int = 1,
    *,
    seed: int = 0,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    sizes: Sequence[int] | None = None,
    both_leanings: bool = True,
) -> tuple[Split, ...]:
    """Draw splits of all classes.

    Parameters
    ----------
    dataset : Dataset
    n : int
        The number of splits, drawn with the seeds `seed`, `seed` + 1, …
    seed : int
    shares : sequence of float
        The shares of the classes to train, validate and test on. Where the data set says which
        classes are tested, the others are divided as the first two.
    sizes : sequence of int, optional
        The exact numbers of classes instead.
    both_leanings : bool
        Whether classes that lean male and classes that lean female are dealt separately, in
        proportion to the parts' sizes and at least one of each to each part.

    Returns
    -------
    tuple of Split

    Examples
    --------
    >>> data = Dataset.of("abcdefghijkl", "abcdefghijkl", "MMMMMMFFFFFF", name="tiny",
    ...                   leaning_by="share")
    >>> split = make_splits(data)[0]
    >>> len(split.train), len(split.valid), len(split.test)
    (6, 3, 3)
    >>> sorted(name < "g" for name in split.train)
    [False, False, False, True, True, True]

    """
    if n < 1:
        raise InputError(f"n: expected at least one split, got {n}")
    if seed < 0:
        raise InputError(f"seed: expected a whole number from 0 up, got {seed}")
    counts = _counts(dataset, dataset.classes, shares, sizes)
    leaning = np.array(dataset.leaning)
    drawn = ~np.isin(dataset.classes, dataset.tested)
    if dataset.tested:
        counts.pop()
    female, male = (np.flatnonzero(drawn & (leaning == side)) for side in ("female", "male"))
    rest = np.flatnonzero(drawn & (leaning != "female") & (leaning != "male"))
    if both_leanings and len(female) + len(male):
        _check_leanings(dataset, {"female": female, "male": male}, counts)
        least = [1] * len(counts)
        women = _apportion(len(female), counts, least, [count - 1 for count in counts])
        room = [count - taken for count, taken in zip(counts, women, strict=True)]
        men = _apportion(len(male), counts, least, room)
        others = [free - taken for free, taken in zip(room, men, strict=True)]
        strata = [(female, women), (male, men), (rest, others)]
    else:
        strata = [(np.flatnonzero(drawn), counts)]
    return tuple(_deal(dataset, strata, seed + number) for number in range(n))


USUAL = 5
"""Ways, shots and queries where the data allow them, and the fewest test classes of one split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFit:
    """Tasks and splits that a data set allows; `notes` say what is not as usual."""

    dataset: Dataset
    ways: int
    shots: int
    queries: int
    splits: int
    both_leanings: bool
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> str:
        """The options of the command line that choose the same."""
        return (
            f"--ways {self.ways} --shots {self.shots} --queries {self.queries} --splits "
            f"{self.splits} --at-least {self.dataset.sizes.min()}"
            + ("" if self.both_leanings else " --any-leaning")
        )


def fit_to_data(
    dataset: Dataset,
    *,
    ways: int | None = None,
    shots: int | None = None,
    queries: int | None = None,
    splits: int | None = None,
    both_leanings: bool | None = None,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    unlabelled: int = 0,
    calibrated: bool = False,
) -> SplitFit:
    """Choose the shape of tasks, and the splits, that the data allow.

    Parameters
    ----------
    dataset : Dataset
    ways, shots, queries, splits : int, optional
        What is None is chosen: 5 ways, shots and queries and one split, or what the data allow.
        Where fewer than 5 classes would be tested, as many splits as test most classes, 5 at most,
        unless `ways` is given.
    both_leanings : bool, optional
        Whether each part needs classes that lean male and female; by default where the data have
        three of each.
    shares : sequence of float
    unlabelled : int
        Texts per class without a label.
    calibrated : bool
        Whether half of the shots are of each gender.

    Returns
    -------
    SplitFit
        With the classes that are large enough.

    Examples
    --------
    >>> data = Dataset.of(map(str, range(24)), "abcdefgh" * 3, "MF" * 12, name="tiny")
    >>> fit = fit_to_data(data)
    >>> fit.ways, fit.shots, fit.queries, fit.splits, fit.both_leanings
    (2, 1, 1, 4, True)

    """
    best: tuple[tuple[int, ...], int, int, Dataset, list[int]] | None = None
    for usual in range(USUAL, 0, -1):
        chosen = shots or (usual - usual % 2 if calibrated else usual), queries or usual
        each_gender = chosen[0] // 2 if calibrated else 0
        if not chosen[0]:
            continue
        texts = sum(chosen) + unlabelled
        large = [
            name
            for name, size, genders in zip(
                dataset.classes, dataset.sizes, dataset.gender_sizes, strict=True
            )
            if size >= texts and genders.min() >= each_gender
        ]
        if len(large) < 3:
            continue
        subset = dataset if len(large) == len(dataset.classes) else dataset.subset(large)
        try:
            counts = _counts(dataset, large, shares, None)
        except SmallDataError:
            continue
        rank = (min(ways or USUAL, *counts), min(len(large), 3 * USUAL), usual)
        if min(counts) >= (ways or 2) and (best is None or rank > best[0]):
            best = rank, *chosen, subset, counts
    if best is None:
        parts = f"{ways or 2} classes each to train, to validate and to test on"
        texts = (shots or 1) + (queries or 1) + unlabelled
        sizes = sorted(dataset.sizes.tolist(), reverse=True)
        shown = ", ".join(map(str, sizes[:10])) + (" …" if len(sizes) > 10 else "")
        raise SmallDataError(
            f"{dataset.name}: expected {parts} with {texts} texts or more each, got "
            f"{len(sizes)} classes of {shown} texts"
        )
    _, own_shots, own_queries, subset, counts = best
    if both_leanings is None:
        drawn = [
            side
            for name, side in zip(subset.classes, subset.leaning, strict=True)
            if name not in subset.tested
        ]
        sides, least = [drawn.count("female"), drawn.count("male")], 2 if subset.tested else 3
        both_leanings = not any(sides) or (min(sides) >= least and min(counts[:least]) >= 2)
    few_tested = counts[2] < USUAL and not ways and not subset.tested
    shape = {
        "ways": ways or min(USUAL, *counts),
        "shots": own_shots,
        "queries": own_queries,
        "splits": splits or (min(USUAL, -(-len(subset.classes) // counts[2])) if few_tested else 1),
    }
    notes = []
    if [*shape.values()] != [ways or USUAL, shots or USUAL, queries or USUAL, splits or 1]:
        notes.append(
            f"chosen for these data: {', '.join(f'{n} {name}' for name, n in shape.items())} of "
            f"{len(subset.classes)} classes "
            f"({', '.join(map(str, counts))} to train, validate and test on)"
        )
    if len(subset.classes) < len(dataset.classes):
        left = sorted(set(dataset.classes) - set(subset.classes))
        more = f" and {len(left) - USUAL} more" if len(left) > USUAL else ""
        notes.append(
            f"left out, with fewer than {own_shots + own_queries + unlabelled} texts: "
            f"{', '.join(left[:USUAL])}{more}"
        )
    if not both_leanings:
        notes.append("parts may lack classes that lean male or female: too few of them")
    return SplitFit(dataset=subset, both_leanings=both_leanings, notes=tuple(notes), **shape)


def save_splits(path: str | os.PathLike[str], splits: Iterable[Split]) -> None:
    """Write splits as one JSON document."""
    save_json(path, document(splits=[split.to_dict() for split in splits]))


def load_splits(path: str | os.PathLike[str]) -> tuple[Split, ...]:
    """Read what `save_splits` wrote."""
    return read_json(Path(path), _Splits).splits


def read_splits(folder: str | os.PathLike[str]) -> tuple[Split, ...]:
    """The splits of a folder with files such as `labels.01.train.txt`, one class per line."""
    files: dict[str, dict[str, tuple[str, ...]]] = {}
    for path in sorted(Path(folder).iterdir()):
        if match := LABEL_FILE.fullmatch(path.name):
            lines = path.read_text(encoding="utf-8").splitlines()
            names = tuple(line.strip() for line in lines if line.strip())
            files.setdefault(match[1], {})[match[2]] = names
    if not files:
        raise FileError(folder, "expected files named as labels.01.train.txt, got none")
    splits = []
    for number, parts in files.items():
        if missing := [part for part in PARTS if part not in parts]:
            raise FileError(folder, f"expected labels.{number}.{missing[0]}.txt, got none")
        try:
            splits.append(Split(*(parts[part] for part in PARTS)))
        except InputError as error:
            raise FileError(folder, f"labels.{number}: {error}") from None
    return tuple(splits)


def _counts(
    dataset: Dataset, classes: Sequence[str], shares: Sequence[float], sizes: Sequence[int] | None
) -> list[int]:
    """How many of the classes are to train, to validate and to test on."""
    tested = sum(name in dataset.tested for name in classes)
    if not dataset.tested or sizes is not None:
        return _sizes(len(classes), shares, sizes)
    others = len(classes) - tested
    if others < 2 or not tested:
        raise SmallDataError(
            f"{dataset.name}: expected two classes or more to train and to validate on and one or "
            f"more to test on, got {others} and {tested}"
        )
    return [*_apportion(others, shares[:2], [1] * 2, [others] * 2), tested]


def _sizes(total: int, shares: Sequence[float], sizes: Sequence[int] | None) -> list[int]:
    if sizes is not None:
        if len(sizes) != 3 or min(sizes) < 1 or sum(sizes) != total:
            raise InputError(
                f"sizes: expected three numbers of classes that add up to {total}, got {sizes}"
            )
        return list(sizes)
    if len(shares) != 3 or not (min(shares) > 0 and abs(sum(shares) - 1) <= 1e-6):
        raise InputError(f"shares: expected three positive numbers that add up to 1, got {shares}")
    if total < 3:
        raise SmallDataError(f"expected at least three classes to divide, got {total}")
    return _apportion(total, shares, [1] * 3, [total] * 3)


def _apportion(
    total: int, weights: Sequence[float], minimum: Sequence[int], maximum: Sequence[int]
) -> list[int]:
    """`total` divided in proportion to the weights within bounds, by largest remaining deficit.

    >>> _apportion(28, (0.5, 0.25, 0.25), (1, 1, 1), (28, 28, 28))
    [14, 7, 7]
    """
    given = list(minimum)
    weight = sum(weights)
    for _ in range(total - sum(given)):
        open_parts = [part for part in range(len(given)) if given[part] < maximum[part]]
        lacking = max(open_parts, key=lambda part: total * weights[part] / weight - given[part])
        given[lacking] += 1
    return given


def _check_leanings(dataset: Dataset, strata: Mapping[str, Indices], counts: Sequence[int]) -> None:
    waived = parameter("both_leanings", python="both_leanings=False", option="--any-leaning")
    for side, indices in strata.items():
        if len(indices) < len(counts):
            names = ", ".join(f"'{dataset.classes[index]}'" for index in indices)
            least = "three" if len(counts) == len(PARTS) else "two"
            raise SmallDataError(
                f"{dataset.name}: expected at least {least} classes that lean {side}, one for each "
                f"part, got {len(indices)}{': ' + names if names else ''} "
                f"(not needed with {waived}; more classes lean by {parameter('leaning')} point or "
                "share)"
            )
    if min(counts) < 2:
        raise SmallDataError(
            f"expected at least two classes in each part, one that leans male and one that leans "
            f"female, got {', '.join(map(str, counts))} "
            f"(not needed with {waived})"
        )


def _deal(dataset: Dataset, strata: Sequence[tuple[Indices, Sequence[int]]], seed: int) -> Split:
    """Deal the classes of each stratum to the parts at random, the given number to each."""
    generator = np.random.Generator(np.random.PCG64([seed, PURPOSE]))
    parts: list[list[str]] = [[] for _ in strata[0][1]]
    for indices, numbers in strata:
        drawn = generator.permutation(indices).tolist()
        for part, number in zip(parts, numbers, strict=True):
            part.extend(dataset.classes[drawn.pop()] for _ in range(number))
    if dataset.tested:
        parts.append(list(dataset.tested))
    return Split(*(tuple(sorted(part)) for part in parts), seed=seed)
