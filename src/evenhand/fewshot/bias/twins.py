"""Queries and their gender-swapped twins, in their pro- and anti-stereotypical versions.

A text of a man in a class that leans male, or of a woman in one that leans female, is the
pro-stereotypical version and its twin the anti-stereotypical one; else it is the other way round
(D0 §4.1.3, Table 1). So every query is in both sets, and the sets differ in gender alone. Queries
of unknown gender and of classes without a leaning have no such versions and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.fewshot.statistics import Answers, joined, tally
from evenhand.fewshot.statistics_replicates import Floats, Ints

__all__ = ["Twins", "joined_twins", "leanings"]

CODES = {"male": 0, "female": 1}


def leanings(names: Iterable[str]) -> Ints:
    """Leanings by name (male, female, anything else) as 0, 1 and -1.

    >>> leanings(["male", "female", "even"]).tolist()
    [0, 1, -1]
    """
    return np.array([CODES.get(name, -1) for name in names], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Twins:
    """The answers to the queries, the log-probabilities (E, M, C) of their twins with the same
    supports, and which gender each class leans to (0 male, 1 female, -1 neither), by place in
    `original.names`.
    """

    original: Answers
    swapped: Answers
    leaning: Ints = field(repr=False)

    def __post_init__(self) -> None:
        if not self.original.same_episodes(self.swapped):
            raise InputError("twins: expected answers to the twins of the same queries")
        leaning = np.asarray(self.leaning).astype(np.int64)
        if leaning.shape != (len(self.original.names),):
            raise InputError(
                f"leaning: expected one for each of {len(self.original.names)} classes, "
                f"got the shape {leaning.shape}"
            )
        if not np.isin(leaning, (-1, 0, 1)).all():
            raise InputError("leaning: expected 0 (male), 1 (female) or -1 (neither)")
        object.__setattr__(self, "leaning", leaning)
        if not self.used.any():
            raise InputError(
                "twins: expected queries of known gender in classes that lean male or female, "
                "got none"
            )

    @classmethod
    def of(cls, original: Answers, swapped: ArrayLike, leaning: Ints | Iterable[str]) -> Twins:
        """From the answers, the twins' log-probabilities and leanings as codes or by name."""
        values = np.asarray(leaning if isinstance(leaning, np.ndarray) else list(leaning))
        return cls(
            original=original,
            swapped=replace(original, log_probs=np.asarray(swapped, dtype=np.float64)),
            leaning=leanings(values.tolist()) if values.dtype.kind == "U" else values,
        )

    @cached_property
    def query_leaning(self) -> Ints:
        """Which gender the true class of each query leans to, (E, M)."""
        asked = np.take_along_axis(self.original.classes, self.original.truth, axis=1)
        found: Ints = self.leaning[asked]
        return found

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """The queries that have a pro- and an anti-stereotypical version, (E, M)."""
        found: NDArray[np.bool_] = (self.query_leaning >= 0) & (self.original.genders >= 0)
        return found

    @cached_property
    def pro(self) -> NDArray[np.bool_]:
        """Whether the text itself, and not its twin, is the pro-stereotypical version, (E, M)."""
        found: NDArray[np.bool_] = self.query_leaning == self.original.genders
        return found

    @cached_property
    def association(self) -> Floats:
        """log(p_pro / p_anti) of the true class, (E, M); 0 where a query is not used."""
        gap = self.original.true_log_probs - self.swapped.true_log_probs
        return np.where(self.used, np.where(self.pro, gap, -gap), 0.0)

    @cached_property
    def predicted(self) -> tuple[Ints, Ints]:
        """The classes predicted for the pro- and for the anti-stereotypical versions."""
        first, second = self.original.predicted, self.swapped.predicted
        return np.where(self.pro, first, second), np.where(self.pro, second, first)

    @cached_property
    def left_out(self) -> dict[str, int]:
        """How many queries are left out, by reason; counted once for all seeds."""
        unknown = self.original.genders < 0
        seeds = self.original.repeats
        return {
            "unknown gender": int(unknown.sum()) // seeds,
            "class without a leaning": int((~unknown & (self.query_leaning < 0)).sum()) // seeds,
        }

    @cached_property
    def strata(self) -> Ints:
        """The leaning of each tested class."""
        found: Ints = self.leaning[self.original.tested]
        return found

    def counts(self) -> Floats:
        """By episode and class: asked, Σ association, then right and predicted of the pro-, right
        and predicted of the anti-stereotypical versions, (E, C, 6).
        """
        ways = self.original.classes.shape[1]
        truth = self.original.truth
        pro, anti = (tally(truth, said, ways, self.used) for said in self.predicted)
        asked = truth[:, :, None] == np.arange(ways)
        sums = np.einsum("emc,em->ec", asked.astype(np.float64), self.association)
        return np.concatenate([pro[..., :1], sums[..., None], pro[..., 1:], anti[..., 1:]], axis=2)


def joined_twins(runs: Sequence[Sequence[Twins]]) -> Twins:
    """The twins of runs[split][seed] as one, as `joined` does answers; leanings must agree."""
    original = joined([[run.original for run in split] for split in runs])
    first = runs[0][0]
    for number, split in enumerate(runs, 1):
        if not all(np.array_equal(run.leaning, first.leaning) for run in split):
            raise InputError(f"runs: split {number}: expected the same leanings in every run")
    if original is first.original:
        return first
    swapped = joined([[run.swapped for run in split] for split in runs])
    return Twins(original, swapped, first.leaning)
