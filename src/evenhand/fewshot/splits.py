"""Classes divided into those to train on, to validate on and to test on, none in two of them.

Each part has classes that lean male and classes that lean female (D0 §5.2) where genders are known.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.fewshot.data_set import Dataset
from evenhand.results import document, save_json

__all__ = ["Split", "load_splits", "make_splits", "read_splits", "save_splits"]

PARTS = ("train", "valid", "test")
PURPOSE = 0x5B11  # keeps these draws apart from others of the same seed
LABEL_FILE = re.compile(r"labels\.(\w+)\.(train|valid|test)\.txt")

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """The names of the classes of each part; `seed` is what they were drawn by, None if given."""

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
        """Raise an error that names the first class the data set does not have."""
        for part in PARTS:
            dataset.places(getattr(self, part))

    def as_dict(self) -> dict[str, Any]:
        return {part: list(getattr(self, part)) for part in PARTS} | {"seed": self.seed}


def make_splits(
    dataset: Dataset,
    n: int = 1,
    *,
    seed: int = 0,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    sizes: Sequence[int] | None = None,
    both_leanings: bool = True,
) -> tuple[Split, ...]:
    """`n` splits of all classes, drawn by the seeds `seed`, `seed` + 1 …

    The parts have the given `shares` of the classes, or exactly the `sizes`. Classes that lean male
    and classes that lean female are dealt out apart, in proportion to the parts' sizes and at least
    one of each to each part; `both_leanings=False` deals all classes out alike.

    >>> made = Dataset.of("abcdefghijkl", "abcdefghijkl", "MMMMMMFFFFFF", name="tiny")
    >>> split = make_splits(made)[0]
    >>> len(split.train), len(split.valid), len(split.test)
    (6, 3, 3)
    >>> sorted(name < "g" for name in split.train)
    [False, False, False, True, True, True]
    """
    if n < 1:
        raise InputError(f"n: expected at least one split, got {n}")
    if seed < 0:
        raise InputError(f"seed: expected a whole number from 0 up, got {seed}")
    counts = _sizes(len(dataset.classes), shares, sizes)
    leaning = np.array(dataset.leaning)
    female, male = (np.flatnonzero(leaning == side) for side in ("female", "male"))
    rest = np.flatnonzero((leaning != "female") & (leaning != "male"))
    if both_leanings and len(female) + len(male):
        _check_leanings(dataset, {"female": female, "male": male}, counts)
        women = _apportioned(len(female), counts, [1] * 3, [count - 1 for count in counts])
        room = [count - taken for count, taken in zip(counts, women, strict=True)]
        men = _apportioned(len(male), counts, [1] * 3, room)
        others = [free - taken for free, taken in zip(room, men, strict=True)]
        strata = [(female, women), (male, men), (rest, others)]
    else:
        strata = [(np.arange(len(leaning)), counts)]
    return tuple(_dealt(dataset.classes, strata, seed + number) for number in range(n))


def save_splits(path: str | os.PathLike[str], splits: Iterable[Split]) -> None:
    """Write splits as one JSON document."""
    save_json(path, document(splits=[split.as_dict() for split in splits]))


def load_splits(path: str | os.PathLike[str]) -> tuple[Split, ...]:
    """Read what `save_splits` wrote."""
    try:
        content = json.loads(Path(path).read_bytes())
    except ValueError as error:
        raise FileError(path, f"not valid JSON: {error}") from None
    rows = content.get("splits") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        raise FileError(path, "splits: expected a list of splits, found none")
    return tuple(_loaded(path, number, row) for number, row in enumerate(rows, 1))


def read_splits(folder: str | os.PathLike[str]) -> tuple[Split, ...]:
    """The splits given by files such as `labels.01.train.txt`, a class a line."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for path in sorted(Path(folder).iterdir()):
        if match := LABEL_FILE.fullmatch(path.name):
            lines = path.read_text(encoding="utf-8").splitlines()
            names = tuple(line.strip() for line in lines if line.strip())
            found.setdefault(match[1], {})[match[2]] = names
    if not found:
        raise FileError(folder, "expected files named as labels.01.train.txt, found none")
    splits = []
    for number, parts in found.items():
        if missing := [part for part in PARTS if part not in parts]:
            raise FileError(folder, f"expected labels.{number}.{missing[0]}.txt, found none")
        try:
            splits.append(Split(*(parts[part] for part in PARTS)))
        except InputError as error:
            raise FileError(folder, f"labels.{number}: {error}") from None
    return tuple(splits)


def _sizes(total: int, shares: Sequence[float], sizes: Sequence[int] | None) -> list[int]:
    if sizes is not None:
        if len(sizes) != 3 or min(sizes) < 1 or sum(sizes) != total:
            raise InputError(
                f"sizes: expected three numbers of classes that add up to {total}, got {sizes}"
            )
        return list(sizes)
    if len(shares) != 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise InputError(f"shares: expected three positive numbers that add up to 1, got {shares}")
    if total < 3:
        raise InputError(f"expected at least three classes to divide, got {total}")
    return _apportioned(total, shares, [1] * 3, [total] * 3)


def _apportioned(
    total: int, weights: Sequence[float], least: Sequence[int], most: Sequence[int]
) -> list[int]:
    """`total` divided in proportion to the weights within bounds, each next one where most lacks.

    >>> _apportioned(28, (0.5, 0.25, 0.25), (1, 1, 1), (28, 28, 28))
    [14, 7, 7]
    """
    given = list(least)
    whole = sum(weights)
    for _ in range(total - sum(given)):
        open_parts = [part for part in range(len(given)) if given[part] < most[part]]
        lacking = max(open_parts, key=lambda part: total * weights[part] / whole - given[part])
        given[lacking] += 1
    return given


def _check_leanings(dataset: Dataset, strata: Mapping[str, Places], counts: Sequence[int]) -> None:
    for side, places in strata.items():
        if len(places) < len(PARTS):
            names = ", ".join(f"'{dataset.classes[place]}'" for place in places)
            raise InputError(
                f"{dataset.name}: expected at least three classes that lean {side}, one for each "
                f"part, got {len(places)}{': ' + names if names else ''} "
                "(both_leanings=False does without)"
            )
    if min(counts) < 2:
        raise InputError(
            f"expected at least two classes in each part, one that leans male and one that leans "
            f"female, got {', '.join(map(str, counts))} (both_leanings=False does without)"
        )


def _dealt(
    classes: Sequence[str], strata: Sequence[tuple[Places, Sequence[int]]], seed: int
) -> Split:
    """The classes of each stratum dealt out at random, so many to each part."""
    generator = np.random.Generator(np.random.PCG64([seed, PURPOSE]))
    parts: list[list[str]] = [[] for _ in PARTS]
    for places, numbers in strata:
        drawn = generator.permutation(places).tolist()
        for part, number in zip(parts, numbers, strict=True):
            part.extend(classes[drawn.pop()] for _ in range(number))
    return Split(*(tuple(sorted(part)) for part in parts), seed=seed)


def _loaded(path: str | os.PathLike[str], number: int, row: Any) -> Split:
    place = f"splits[{number}]"
    if not isinstance(row, dict):
        raise FileError(path, f"{place}: expected an object, got {type(row).__name__}")
    for part in PARTS:
        names = row.get(part)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise FileError(path, f"{place}.{part}: expected a list of names of classes")
    seed = row.get("seed")
    if seed is not None and not isinstance(seed, int):
        raise FileError(path, f"{place}.seed: expected a whole number or null, got {seed!r}")
    try:
        return Split(*(tuple(row[part]) for part in PARTS), seed=seed)
    except InputError as error:
        raise FileError(path, f"{place}: {error}") from None
