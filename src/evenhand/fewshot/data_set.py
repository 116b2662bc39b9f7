"""A data set: texts with a class each and, where known, the gender of the person told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, UnknownNameError

__all__ = ["FEMALE", "MALE", "UNKNOWN", "Dataset", "Leaning", "gender_code"]

MALE, FEMALE, UNKNOWN = 0, 1, -1
Leaning = Literal["male", "female", "even", "unknown"]

_MALE = frozenset({"m", "male", "man"})
_FEMALE = frozenset({"f", "female", "woman"})
_UNKNOWN = frozenset({"", "unknown", "other", "nonbinary", "non-binary", "nb", "x"})


@dataclass(frozen=True, eq=False)
class Dataset:
    """Texts, the class of each as a place in `classes`, and its gender: 0 male, 1 female, -1 none.

    `rows` says which row of what it was made of each text is, counted from 0; `left_out` counts by
    reason the rows that were not taken. Two data sets are the same where their digests are.
    """

    texts: tuple[str, ...] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    genders: NDArray[np.int8] = field(repr=False)
    classes: tuple[str, ...]
    name: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default=None, repr=False)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        count = len(self.texts)
        rows = np.arange(count) if self.rows is None else self.rows
        arrays = (("labels", self.labels, np.int64), ("genders", self.genders, np.int8),
                  ("rows", rows, np.int64))  # fmt: skip
        for name, values, dtype in arrays:
            array = np.array(values, dtype=dtype)
            if array.shape != (count,):
                raise InputError(f"{name}: expected {count}, one a text, got shape {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if len(set(self.classes)) < len(self.classes):
            raise InputError("classes: expected each name once")
        if count and not (self.labels.min() >= 0 and self.labels.max() < len(self.classes)):
            raise InputError(f"labels: expected 0 to {len(self.classes) - 1}, places in `classes`")
        if not np.isin(self.genders, (MALE, FEMALE, UNKNOWN)).all():
            raise InputError("genders: expected 0 (male), 1 (female) or -1 (unknown)")

    @classmethod
    def of(
        cls,
        texts: Iterable[str | None],
        labels: Iterable[str | None],
        genders: Iterable[object] | None = None,
        *,
        name: str,
    ) -> Dataset:
        """A data set of texts with the names of their classes, cleaned.

        Left out and counted: texts that are empty, texts without a class, all but the first of
        texts that are the same, and every copy of a text that stands under several classes, since
        none of them can be trusted. Copies with both genders have the gender unknown.

        >>> made = Dataset.of(["a", "b", "b", " "], ["x", "y", "y", "x"], "MFFM", name="tiny")
        >>> made.classes, made.labels.tolist(), made.genders.tolist(), dict(made.left_out)
        (('x', 'y'), [0, 1], [0, 1], {'duplicate text': 1, 'empty text': 1})
        """
        columns = [list(texts), list(labels)]
        told_genders = [None] * len(columns[0]) if genders is None else list(genders)
        if not len(columns[0]) == len(columns[1]) == len(told_genders):
            counts = ", ".join(str(len(column)) for column in (*columns, told_genders))
            raise InputError(f"{name}: expected as many texts, labels and genders, got {counts}")
        left: Counter[str] = Counter()
        copies: dict[str, list[tuple[int, str, int]]] = {}
        for row, (text, label, gender) in enumerate(zip(*columns, told_genders, strict=True)):
            text, label = (text or "").strip(), (label or "").strip()
            if text and label:
                try:
                    copies.setdefault(text, []).append((row, label, gender_code(gender)))
                except InputError as error:
                    raise InputError(f"{name}, row {row + 1}: {error}") from None
            else:
                left["no class" if text else "empty text"] += 1
        kept: list[tuple[str, int, str, int]] = []
        for text, same in copies.items():
            row, label, _ = same[0]
            if any(other != label for _, other, _ in same):
                left["text under several classes"] += len(same)
                continue
            if len(same) > 1:
                left["duplicate text"] += len(same) - 1
            told = {gender for _, _, gender in same} - {UNKNOWN}
            kept.append((text, row, label, told.pop() if len(told) == 1 else UNKNOWN))
        if not kept:
            raise InputError(f"{name}: no text with a class is left ({_counts(left) or 'no rows'})")
        classes = tuple(sorted({label for _, _, label, _ in kept}))
        places = {label: place for place, label in enumerate(classes)}
        return cls(
            texts=tuple(text for text, _, _, _ in kept),
            labels=np.array([places[label] for _, _, label, _ in kept]),
            genders=np.array([gender for _, _, _, gender in kept]),
            classes=classes,
            name=name,
            left_out=dict(sorted(left.items())),
            rows=np.array([row for _, row, _, _ in kept]),
        )

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many texts each class has."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @cached_property
    def gender_sizes(self) -> NDArray[np.int64]:
        """How many texts of men and of women each class has, (classes, 2)."""
        return np.stack(
            [
                np.bincount(self.labels[self.genders == gender], minlength=len(self.classes))
                for gender in (MALE, FEMALE)
            ],
            axis=1,
        )

    @property
    def share_of_women(self) -> NDArray[np.float64]:
        """The share of women in each class among the texts of known gender, NaN without any."""
        known = self.gender_sizes.sum(axis=1)
        return np.where(known, self.gender_sizes[:, FEMALE] / np.maximum(known, 1), np.nan)

    @property
    def leaning(self) -> tuple[Leaning, ...]:
        """Which gender each class has more of: male, female, even, or unknown."""
        every: list[Leaning] = []
        for men, women in self.gender_sizes.tolist():
            if men == women:
                every.append("even" if men else "unknown")
            else:
                every.append("female" if women > men else "male")
        return tuple(every)

    @cached_property
    def digest(self) -> str:
        """A hash of the texts, their classes and genders; the name does not enter."""
        lengths = np.array([len(text) for text in self.texts], dtype="<i8")
        made = blake2b(digest_size=16)
        for part in (
            "\n".join(self.classes).encode(),
            lengths.tobytes(),
            "".join(self.texts).encode("utf-8", "surrogatepass"),
            self.labels.astype("<i8").tobytes(),
            self.genders.tobytes(),
        ):
            made.update(len(part).to_bytes(8, "little"))
            made.update(part)
        return made.hexdigest()

    def subset(self, classes: Iterable[str]) -> Dataset:
        """The texts of these classes alone, in the order they stand here."""
        places = set(self.places(classes))
        return self._keep([place for place in range(len(self.classes)) if place in places])

    def at_least(self, count: int, *, each_gender: int = 0) -> Dataset:
        """Without the classes of fewer than `count` texts, or fewer than so many of each gender.

        >>> made = Dataset.of(["a", "b", "c"], ["x", "x", "y"], name="tiny").at_least(2)
        >>> made.classes, dict(made.left_out)
        (('x',), {"class 'y': fewer than 2 texts": 1})
        """
        left = dict(self.left_out)
        kept = []
        for place, name in enumerate(self.classes):
            size, fewest = int(self.sizes[place]), int(self.gender_sizes[place].min())
            if size < count:
                left[f"class '{name}': fewer than {count} texts"] = size
            elif fewest < each_gender:
                left[f"class '{name}': fewer than {each_gender} texts of one gender"] = size
            else:
                kept.append(place)
        if not kept:
            gender = f", {each_gender} of each gender," if each_gender else ""
            raise InputError(f"{self.name}: no class has {count} texts{gender} or more")
        return self._keep(kept, left)

    def places(self, classes: Iterable[str]) -> list[int]:
        """Where the named classes stand in `classes`; each may be named once."""
        if isinstance(classes, str):
            raise InputError(f"classes: expected a list of names, got the text {classes!r}")
        every = {name: place for place, name in enumerate(self.classes)}
        found: list[int] = []
        for name in classes:
            if name not in every:
                raise UnknownNameError("class", name, self.classes)
            if every[name] in found:
                raise InputError(f"classes: expected each once, got '{name}' twice")
            found.append(every[name])
        return found

    def as_dict(self) -> dict[str, Any]:
        """What a run writes down of its data."""
        return {
            "name": self.name, "texts": len(self), "digest": self.digest,
            "left_out": dict(self.left_out),
            "classes": {
                name: {"texts": int(size), "men": int(men), "women": int(women)}
                for name, size, (men, women) in zip(
                    self.classes, self.sizes, self.gender_sizes, strict=True
                )
            },
        }  # fmt: skip

    def _keep(self, places: list[int], left_out: Mapping[str, int] | None = None) -> Dataset:
        new = np.full(len(self.classes), -1)
        new[places] = np.arange(len(places))
        rows = np.flatnonzero(new[self.labels] >= 0)
        return Dataset(
            texts=tuple(self.texts[row] for row in rows),
            labels=new[self.labels[rows]],
            genders=self.genders[rows],
            classes=tuple(self.classes[place] for place in places),
            name=self.name,
            left_out=self.left_out if left_out is None else left_out,
            rows=self.rows[rows],
        )


def gender_code(value: object, male: str | None = None, female: str | None = None) -> int:
    """0 for a man, 1 for a woman, -1 where unknown; `male` and `female` name other codes.

    Numbers are taken as they are (0, 1, -1); as text they must be named, since files differ.

    >>> gender_code("F"), gender_code("Male"), gender_code(None), gender_code("2", female="2")
    (1, 0, -1, 1)
    """
    if isinstance(value, str):
        if value in (male, female):
            return MALE if value == male else FEMALE
        word = value.strip().lower()
        for code, words in ((MALE, _MALE), (FEMALE, _FEMALE), (UNKNOWN, _UNKNOWN)):
            if word in words:
                return code
    elif value is None:
        return UNKNOWN
    elif not isinstance(value, bool) and value in (MALE, FEMALE, UNKNOWN):
        return int(value)
    raise InputError(
        f"gender: expected M or F, male or female (other codes are named with male= and female=), "
        f"got {value!r}"
    )


def _counts(left: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in left.items())
