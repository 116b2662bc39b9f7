"""What a run works on: the class splits, their episodes, and every text as the classifier reads it.

The texts of the pool come first, then the twins of the test queries: the same texts with their
gendered words and names those of the other gender (D0 §4.1.2), read through the mitigation too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.fewshot.data_set import Dataset
from evenhand.fewshot.episodes import Episodes, sample
from evenhand.fewshot.mitigation import Mitigated, apply, swapped
from evenhand.fewshot.runs.settings import RunSettings
from evenhand.fewshot.splits import Split, make_splits

if TYPE_CHECKING:
    from evenhand.fewshot.runs.library import Library

__all__ = ["Material", "Part", "parts_of", "prepared"]

WORDS = {"train": "training", "valid": "validation", "test": "test"}


@dataclass(frozen=True, eq=False)
class Part:
    """A class split with its episodes as rows of the data set."""

    number: int
    split: Split
    valid: Episodes = field(repr=False)
    test: Episodes = field(repr=False)

    def training(self, dataset: Dataset, settings: RunSettings, seed: int) -> Episodes:
        """The training episodes of a seed."""
        return _sampled(dataset, self.split.train, settings, "train", seed, self.number)


@dataclass(frozen=True, eq=False)
class Material:
    """`texts` are the pool's and then the twins'; `twin_of` says where a row's twin is, or -1."""

    dataset: Dataset
    settings: RunSettings
    parts: tuple[Part, ...]
    mitigated: Mitigated
    texts: tuple[str, ...] = field(repr=False)
    twin_of: NDArray[np.int64] = field(repr=False)

    @property
    def has_twins(self) -> bool:
        return bool((self.twin_of >= 0).any())

    def training(self, part: Part, number: int) -> Episodes:
        """The training episodes of the seed of that number, as rows of the texts."""
        seed = self.settings.seeded(number).seed
        drawn = part.training(self.dataset, self.settings, seed)
        return self.mitigated.rows(drawn, training=True, seed=seed)

    def validation(self, part: Part) -> Episodes:
        return self.mitigated.rows(part.valid)

    def test(self, part: Part) -> Episodes:
        return self.mitigated.rows(part.test)

    def twins(self, part: Part) -> Episodes:
        """The test episodes with every query its twin."""
        rows: NDArray[np.int64] = self.twin_of[part.test.query]
        return replace(self.test(part), query=rows.astype(np.int32))


def parts_of(
    dataset: Dataset,
    settings: RunSettings,
    splits: Sequence[Split] | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
) -> tuple[Part, ...]:
    """The splits, drawn or given, each with its episodes; errors name the classes that fall short.

    The first training episodes are drawn here too, so that all of the data is known to suffice.
    """
    if splits is None:
        made = make_splits(
            dataset, settings.splits, seed=settings.split_seed, shares=shares,
            both_leanings=both_leanings,
        )  # fmt: skip
    elif len(splits) < settings.splits:
        raise InputError(f"splits: expected {settings.splits} in what was given, got {len(splits)}")
    else:
        made = tuple(splits[: settings.splits])
    found = []
    for number, split in enumerate(made):
        try:
            split.check(dataset)
        except InputError as error:
            raise InputError(f"splits: split {number}: {error}") from None
        valid, test = (
            _sampled(dataset, classes, settings, purpose, settings.split_seed, number)
            for classes, purpose in ((split.valid, "valid"), (split.test, "test"))
        )
        part = Part(number, split, valid, test)
        part.training(dataset, settings, settings.training.seed)
        found.append(part)
    return tuple(found)


def prepared(
    dataset: Dataset,
    settings: RunSettings,
    parts: Sequence[Part],
    *,
    jobs: int = 1,
    library: Library | None = None,
) -> Material:
    """The texts rewritten as the mitigation asks, and the twins of the test queries.

    There are no twins where the gender of no query is known. A library has all of them ready, and
    a twin for every text.
    """
    asked = np.unique(np.concatenate([part.test.query.ravel() for part in parts]))
    known = bool((dataset.genders[asked] >= 0).any())
    twin_of = np.full(len(dataset), -1)
    twins: tuple[str, ...] = ()
    if library is not None:
        mitigated = library.mitigated(settings.mitigation)
        twins = library.twins(settings.mitigation)
        if known:
            twin_of[asked] = len(mitigated.pool) + asked
    else:
        mitigated = apply(dataset, settings.mitigation, jobs=jobs)
        if known:
            plain = swapped([dataset.texts[row] for row in asked], names="fixed", jobs=jobs)
            twins = settings.mitigation.reads(plain, jobs=jobs)
            twin_of[asked] = len(mitigated.pool) + np.arange(len(asked))
    return Material(
        dataset, settings, tuple(parts), mitigated, (*mitigated.pool.texts, *twins), twin_of
    )


def _sampled(
    dataset: Dataset, classes: Sequence[str], settings: RunSettings, purpose: str, seed: int,
    number: int,
) -> Episodes:  # fmt: skip
    try:
        return _drawn(
            dataset, tuple(classes), settings.ways, settings.shots, settings.queries,
            getattr(settings.episodes, purpose), settings.mitigation.calibrate,
            settings.unlabelled or 0, seed, f"{purpose} {number}",
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{WORDS[purpose]} classes of split {number}: {error}") from None


@lru_cache(maxsize=32)
def _drawn(
    dataset: Dataset, classes: tuple[str, ...], ways: int, shots: int, queries: int, episodes: int,
    calibrated: bool, unlabelled: int, seed: int, purpose: str,
) -> Episodes:  # fmt: skip
    """`sample`, the last few of them held: runs of other networks draw the same episodes."""
    return sample(
        dataset, classes, ways=ways, shots=shots, queries=queries, episodes=episodes,
        calibrated=calibrated, unlabelled=unlabelled, seed=seed, purpose=purpose,
    )  # fmt: skip
