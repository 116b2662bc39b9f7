"""Accuracy and F1 of a few-shot classifier, with the interval that is valid for new classes beside
the usual one, and the difference of two classifiers on the same episodes.

- accuracy: the share of all queries that are right, which is the mean over episodes;
- f1: of each class over all episodes, 2 TP / (asked + predicted), and the mean over classes;
- f1_episode: the same within each episode, and the mean over episodes, as the field has it.

Answers of several class splits and seeds are first `joined` (statistics_joined).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.fewshot.statistics_joined import JoinedReplicates, joined, joined_replicates
from evenhand.fewshot.statistics_replicates import Floats, Ints, Replicates, Statistic

if TYPE_CHECKING:
    from evenhand.fewshot.data_set import Dataset
    from evenhand.fewshot.episodes import Episodes

__all__ = ["Answers", "Counted", "Score", "compare", "joined", "macro_f1", "scores"]

LOWEST = 1e-12
"""A probability below this counts as this: a network may say 0, and its logarithm has no end."""

CLASS_LEVEL = "new classes: jackknife over the test classes and episodes, Student t"
ALL_IN_EACH = "queries of new classes against the same opponents: every episode has all classes"
TRAINING = "; and new training runs: the spread of splits and seeds"


class Counted:
    """Counts by episode and class, of some `splits` and `repeats`, as `Answers` has them, with the
    `classes` (E, C) of each episode as places in `names`.
    """

    classes: Ints
    names: tuple[str, ...]
    splits: int
    repeats: int

    @abstractmethod
    def tally(self) -> Floats:
        """Asked, right and predicted of each class of each episode, (E, C, 3)."""

    @abstractmethod
    def same_episodes(self, other: Any) -> bool:
        """Whether the other's queries are these, in the same order, of as many splits and seeds."""

    @cached_property
    def tested(self) -> Ints:
        """The classes there are, as places in `names`."""
        return np.unique(self.classes)

    @cached_property
    def local(self) -> Ints:
        """The classes of each episode as places in `tested`."""
        return np.searchsorted(self.tested, self.classes)

    def replicates(self, statistic: Statistic, counts: Floats) -> Replicates:
        """A statistic of counts (E, C, F) by episode and class, with its replicates."""
        return joined_replicates(statistic, counts, self.local, self.splits, self.repeats)

    @cached_property
    def scored(self) -> Mapping[str, Replicates]:
        """Accuracy, F1 over all episodes and F1 by episode, with their replicates."""
        counts = self.tally()
        asked, right, said = np.moveaxis(counts, 2, 0)
        within = np.stack([asked > 0, 2 * right / np.maximum(asked + said, 1)], axis=2)
        return {
            "accuracy": self.replicates(_share, counts),
            "f1": self.replicates(macro_f1, counts),
            "f1_episode": self.replicates(_share, within),
        }


@dataclass(frozen=True, eq=False)
class Answers(Counted):
    """What a classifier said to the M queries of each of E episodes of C classes.

    `log_probs` (E, M, C); for each query the `rows` of its text, the `truth` as a place among the
    episode's classes and the `genders` (0 male, 1 female, -1 unknown), all (E, M); `classes` (E, C)
    as places in `names`. Of several runs the arrays hold the same episodes `repeats` times one
    after the other, a block a seed, and in each block those of `splits` splits one after the other,
    as many of each.
    """

    log_probs: Floats = field(repr=False)
    rows: Ints = field(repr=False)
    truth: Ints = field(repr=False)
    classes: Ints = field(repr=False)
    genders: Ints = field(default=None, repr=False)  # type: ignore[arg-type]
    names: tuple[str, ...] = ()
    splits: int = 1
    repeats: int = 1

    def __post_init__(self) -> None:
        log_probs = np.asarray(self.log_probs, dtype=np.float64)
        if log_probs.ndim != 3 or not log_probs.size:
            raise InputError(f"log_probs: expected episodes × queries × classes, got the shape "
                             f"{log_probs.shape}")  # fmt: skip
        if np.isnan(log_probs).any():
            where = np.argwhere(np.isnan(log_probs))[0]
            raise InputError(f"log_probs: episode {where[0]}, query {where[1]}: not a number")
        object.__setattr__(self, "log_probs", np.maximum(log_probs, np.log(LOWEST)))
        episodes, queries, ways = log_probs.shape
        genders = np.full((episodes, queries), -1) if self.genders is None else self.genders
        given = (("rows", self.rows, queries), ("truth", self.truth, queries),
                 ("classes", self.classes, ways), ("genders", genders, queries))  # fmt: skip
        for name, values, width in given:
            array = np.asarray(values).astype(np.int64)
            if array.shape != (episodes, width):
                raise InputError(f"{name}: expected {episodes} × {width}, got {array.shape}")
            object.__setattr__(self, name, array)
        if self.truth.min() < 0 or self.truth.max() >= ways:
            raise InputError(f"truth: expected 0 to {ways - 1}, places among an episode's classes")
        names = self.names or tuple(str(place) for place in range(int(self.classes.max()) + 1))
        if self.classes.min() < 0 or self.classes.max() >= len(names):
            raise InputError(f"classes: expected 0 to {len(names) - 1}, places in `names`")
        object.__setattr__(self, "names", names)
        self._check_blocks()

    def _check_blocks(self) -> None:
        count = len(self.log_probs)
        if min(self.splits, self.repeats) < 1 or count % (self.splits * self.repeats):
            raise InputError(
                f"repeats: expected {count} episodes to be as many in each of {self.splits} splits "
                f"and {self.repeats} repeats"
            )
        for name in ("rows", "truth", "classes", "genders"):
            blocks = np.split(getattr(self, name), self.repeats)
            for number, block in enumerate(blocks[1:], 2):
                if not np.array_equal(block, blocks[0]):
                    raise InputError(f"{name}: expected the same in every repeat, got others in "
                                     f"repeat {number}")  # fmt: skip

    @classmethod
    def of(cls, log_probs: ArrayLike, episodes: Episodes, dataset: Dataset) -> Answers:
        """The answers to the queries of some episodes, class by class as they stand there."""
        count = len(episodes)
        rows = episodes.query.reshape(count, -1)
        truth = np.repeat(np.arange(episodes.ways), episodes.queries)
        return cls(
            log_probs=np.asarray(log_probs, dtype=np.float64),
            rows=rows.astype(np.int64),
            truth=np.tile(truth, (count, 1)),
            classes=episodes.classes.astype(np.int64),
            genders=dataset.genders[rows].astype(np.int64),
            names=dataset.classes,
        )

    def same_episodes(self, other: Answers) -> bool:
        """Whether the other's queries are these, in the same order, of as many splits and seeds."""
        return (self.splits, self.repeats) == (other.splits, other.repeats) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("rows", "truth", "classes")
        )

    @cached_property
    def predicted(self) -> Ints:
        """The likeliest class of each query; the first of them where several are alike."""
        found: Ints = self.log_probs.argmax(axis=2)
        return found

    @cached_property
    def true_log_probs(self) -> Floats:
        """The logarithm of the probability given to the true class, (E, M)."""
        return np.take_along_axis(self.log_probs, self.truth[:, :, None], axis=2)[:, :, 0]

    def tally(self, mask: NDArray[np.bool_] | None = None) -> Floats:
        """How often each class of each episode was asked, was right and was predicted, (E, C, 3).

        `mask` (E, M) takes some of the queries alone.
        """
        return tally(self.truth, self.predicted, self.classes.shape[1], mask)


def tally(truth: Ints, predicted: Ints, ways: int, mask: NDArray[np.bool_] | None = None) -> Floats:
    """Asked, right and predicted of each class of each episode, (E, C, 3)."""
    places = np.arange(ways)
    asked = truth[:, :, None] == places
    said = predicted[:, :, None] == places
    if mask is not None:
        asked, said = asked & mask[:, :, None], said & mask[:, :, None]
    parts = [asked.sum(1), (asked & said).sum(1), said.sum(1)]
    return np.stack(parts, axis=2).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A value with its interval for new classes (`low`, `high`) and the naive one beside it.

    `episodes` are counted once, however many seeds answered them.
    """

    metric: str
    value: float
    low: float
    high: float
    naive_low: float
    naive_high: float
    classes: int
    episodes: int
    interval: str
    p_value: float | None = None
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (
            f"{self.metric}: {self.value:.3f} [{self.low:.3f}, {self.high:.3f}] for new classes, "
            f"[{self.naive_low:.3f}, {self.naive_high:.3f}] over episodes alone "
            f"({self.prob:.0%}, {self.classes} classes, {self.episodes} episodes)"
        )


def scores(answers: Counted, *, prob: float = 0.95) -> Mapping[str, Score]:
    """Accuracy, F1 over all episodes and F1 by episode."""
    return {
        metric: score(metric, made, bounded=True, prob=prob)
        for metric, made in answers.scored.items()
    }


def compare(before: Counted, after: Counted, *, prob: float = 0.95) -> Mapping[str, Score]:
    """How much better `after` is than `before` on the same episodes, with p-values.

    What both share, easy and hard classes and texts, cancels in every replicate.
    """
    if not before.same_episodes(after):
        raise InputError("compare: expected answers to the same queries, got other ones")
    first, second = before.scored, after.scored
    return {
        metric: score(metric, second[metric] - first[metric], test=True, prob=prob)
        for metric in first
    }


def score(
    metric: str, made: Replicates, *, bounded: bool = False, test: bool = False, prob: float = 0.95
) -> Score:
    """The replicates of one value as a Score; `bounded` keeps intervals within 0 to 1."""
    ends = [*made.interval(prob), *made.naive(prob)]
    if bounded:
        ends = [min(1.0, max(0.0, end)) for end in ends]
    return Score(
        metric=metric, value=float(made.value), low=ends[0], high=ends[1], naive_low=ends[2],
        naive_high=ends[3], classes=len(made.classes), episodes=len(made.episodes),
        interval=(CLASS_LEVEL if made.opponents else ALL_IN_EACH)
        + TRAINING * isinstance(made, JoinedReplicates),
        p_value=made.p_value() if test else None, prob=prob,
    )  # fmt: skip


def macro_f1(sums: Floats) -> Floats:
    """The mean F1 of the classes that were asked, from sums (…, N, 3) of asked, right, predicted.

    >>> macro_f1(np.array([[10.0, 8.0, 10.0], [10.0, 6.0, 8.0], [0.0, 0.0, 0.0]])).round(4)
    np.float64(0.7333)
    """
    asked = sums[..., 0] > 0
    f1 = 2 * sums[..., 1] / np.where(asked, sums[..., 0] + sums[..., 2], 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(asked, f1, 0).sum(-1) / asked.sum(-1)
    return mean


def _share(sums: Floats) -> Floats:
    share: Floats = sums[..., 1].sum(-1) / sums[..., 0].sum(-1)
    return share
