"""Predictions of a few-shot classifier, counterfactual ones, and their tallies.

`FewShotPredictions` has a log-probability for every query and class, `Counterfactuals` the same for
every query with its gender swapped. `Tallies` are counts by episode and class: all that accuracy,
F1, the bias measures and paired comparisons of two runs need, some 25 KB per class split and seed.
"""

from __future__ import annotations

import base64
import io
import lzma
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import FileError, InputError, parameter
from evenhand.fewshot.data import NEITHER
from evenhand.fewshot.episodes import NPZ_ERRORS
from evenhand.files import replace_file
from evenhand.results import Comparison, Items, Measurement
from evenhand.statistics.jackknife import (
    Floats,
    Ints,
    JoinedReplicates,
    Replicates,
    Statistic,
    joined_replicates,
)

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.episodes import Episodes

LOWEST = 1e-12
"""Lower bound of probabilities: a network may give 0, which has no logarithm."""
LEANINGS = {0: "male", 1: "female", -1: ""}
ARRAYS = ("log_probs", "rows", "truth", "classes", "genders")
"""The arrays of `FewShotPredictions`."""
PACKING = [{"id": lzma.FILTER_LZMA2, "preset": 9}]
ASSOCIATION = 1  # its index among the counterfactual counts; the others are whole numbers


class ClassCounts:
    """Counts by episode and class over `splits` class splits and `repeats` training seeds.

    `classes` (E, C) has the classes of each episode as indices of `names`. The episodes go seed by
    seed, with the same episodes for each seed, and within a seed split by split.
    """

    classes: Ints
    names: tuple[str, ...]
    splits: int
    repeats: int

    @abstractmethod
    def tally(self) -> Floats:
        """Queries, correct and predicted of each class of each episode, (E, C, 3)."""

    @property
    @abstractmethod
    def queries_digest(self) -> str:
        """A hash of the test queries."""

    def same_queries(self, other: ClassCounts) -> bool:
        """Whether both have the same queries in the same order, for as many splits and seeds."""
        mine, theirs = ((c.queries_digest, c.splits, c.repeats) for c in (self, other))
        return mine == theirs

    @cached_property
    def computed(self) -> dict[str, Replicates]:
        """Replicates that the instruments have computed, by name."""
        return {}

    @cached_property
    def tested(self) -> Ints:
        """The classes that occur, as indices of `names`."""
        return np.unique(self.classes)

    @cached_property
    def local(self) -> Ints:
        """The classes of each episode as indices of `tested`."""
        return np.searchsorted(self.tested, self.classes)

    def replicates(self, statistic: Statistic, counts: Floats) -> Replicates:
        """A statistic of counts (E, C, F) by episode and class, with its replicates."""
        return joined_replicates(statistic, counts, self.local, self.splits, self.repeats)


@dataclass(frozen=True, eq=False)
class FewShotPredictions(ClassCounts):
    """Log-probabilities of a classifier for the M queries of each of E episodes of C classes.

    Parameters
    ----------
    log_probs : array (E, M, C)
        Where the probabilities of a query add up to less than 1, the rest is that of no class.
    rows : array (E, M)
        The row of each query's text.
    truth : array (E, M)
        The class of each query as an index within the episode.
    classes : array (E, C)
        The classes of each episode as indices of `names`.
    genders : array (E, M), optional
        0 male, 1 female, -2 neither, -1 unknown.
    names : tuple of str
    splits, repeats : int
        Of several runs the arrays hold the same episodes `repeats` times, one block per seed, and
        each block has the episodes of `splits` splits, as many of each.

    """

    subject_kind: ClassVar[str] = "fewshot"
    name: ClassVar[str] = "classifier"
    leaning: ClassVar[None] = None
    data: ClassVar[str] = ""
    deterministic: ClassVar[bool] = False

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
            raise InputError(
                f"log_probs: expected episodes × queries × classes, got the shape {log_probs.shape}"
            )
        if np.isnan(log_probs).any():
            where = np.argwhere(np.isnan(log_probs))[0]
            raise InputError(f"log_probs: episode {where[0]}, query {where[1]}: not a number")
        object.__setattr__(self, "log_probs", np.maximum(log_probs, np.log(LOWEST)))
        episodes, queries, ways = log_probs.shape
        genders = np.full((episodes, queries), -1) if self.genders is None else self.genders
        for name, values, width in (
            ("rows", self.rows, queries),
            ("truth", self.truth, queries),
            ("classes", self.classes, ways),
            ("genders", genders, queries),
        ):
            array = np.asarray(values).astype(np.int64)
            if array.shape != (episodes, width):
                raise InputError(f"{name}: expected {episodes} × {width}, got {array.shape}")
            object.__setattr__(self, name, array)
        if self.truth.min() < 0 or self.truth.max() >= ways:
            raise InputError(f"truth: expected 0 to {ways - 1}, indices of an episode's classes")
        names = self.names or tuple(str(index) for index in range(int(self.classes.max()) + 1))
        if self.classes.min() < 0 or self.classes.max() >= len(names):
            raise InputError(f"classes: expected 0 to {len(names) - 1}, indices of `names`")
        object.__setattr__(self, "names", names)
        self._check_blocks()

    def _check_blocks(self) -> None:
        count = len(self.log_probs)
        if min(self.splits, self.repeats) < 1 or count % (self.splits * self.repeats):
            raise InputError(
                f"repeats: expected {count} episodes to be as many in each of {self.splits} splits "
                f"and {self.repeats} repeats"
            )
        for name in ARRAYS[1:]:
            blocks = np.split(getattr(self, name), self.repeats)
            for number, block in enumerate(blocks[1:], 2):
                if not np.array_equal(block, blocks[0]):
                    raise InputError(
                        f"{name}: expected the same in every repeat, got others in repeat {number}"
                    )

    @classmethod
    def of(cls, log_probs: ArrayLike, episodes: Episodes, dataset: Dataset) -> FewShotPredictions:
        """The answers to the queries of some episodes, in the order of the episodes' classes."""
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

    @property
    def answers(self) -> FewShotPredictions:
        return self

    @property
    def counterfactuals(self) -> Counterfactuals | None:
        return None

    @cached_property
    def queries_digest(self) -> str:
        """A hash of the test queries of one seed: all seeds have the same."""
        block = len(self.rows) // self.repeats
        digest = blake2b(digest_size=16)
        for array in (self.rows, self.truth, self.classes):
            digest.update(repr(array[:block].shape).encode())
            digest.update(array[:block].astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def predicted(self) -> Ints:
        """The most likely class of each query, the first of them in a tie; -1 where no class is
        likelier than each of them.
        """
        shares = np.exp(self.log_probs)
        none = 1 - shares.sum(axis=2) > shares.max(axis=2)
        predicted: Ints = np.where(none, -1, self.log_probs.argmax(axis=2))
        return predicted

    @cached_property
    def true_classes(self) -> Ints:
        """The true class of each query, (E, M)."""
        return np.take_along_axis(self.classes, self.truth, axis=1)

    @cached_property
    def true_log_probs(self) -> Floats:
        """The log-probability of the true class, (E, M)."""
        return np.take_along_axis(self.log_probs, self.truth[:, :, None], axis=2)[:, :, 0]

    def tally(self, mask: NDArray[np.bool_] | None = None) -> Floats:
        """Queries, correct and predicted of each class of each episode, (E, C, 3).

        `mask` (E, M) selects some of the queries.
        """
        return tally(self.truth, self.predicted, self.classes.shape[1], mask)


def tally(truth: Ints, predicted: Ints, ways: int, mask: NDArray[np.bool_] | None = None) -> Floats:
    """Queries, correct and predicted of each class of each episode, (E, C, 3)."""
    indices = np.arange(ways)
    queries = truth[:, :, None] == indices
    answers = predicted[:, :, None] == indices
    if mask is not None:
        queries, answers = queries & mask[:, :, None], answers & mask[:, :, None]
    counts = [queries.sum(1), (queries & answers).sum(1), answers.sum(1)]
    return np.stack(counts, axis=2).astype(np.float64)


def mean_over(x: Floats, present: NDArray[np.bool_]) -> Floats:
    """The mean along the last axis of what is present, NaN of nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(present, x, 0).sum(-1) / present.sum(-1)
    return mean


def join(runs: Sequence[Sequence[FewShotPredictions]]) -> FewShotPredictions:
    """The answers of runs[split][seed] as one, for everything that takes answers.

    A single run is returned as it is.
    """
    _check_runs(runs)
    if len(runs) == len(runs[0]) == 1:
        return runs[0][0]
    ordered = [run for same_seed in zip(*runs, strict=True) for run in same_seed]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(run, name) for run in ordered]) for name in ARRAYS
    }
    return replace(runs[0][0], splits=len(runs), repeats=len(runs[0]), **arrays)


def _check_runs(runs: Sequence[Sequence[FewShotPredictions]]) -> None:
    counts = [len(split) for split in runs]
    if len(set(counts)) != 1 or counts[0] == 0:
        raise InputError(f"runs: expected as many seeds in every split, got {counts}")
    first = runs[0][0]
    for number, split in enumerate(runs, 1):
        for run in split:
            if run.splits * run.repeats > 1:
                raise InputError(f"runs: split {number}: expected single runs, got joined ones")
            if run.names != first.names:
                raise InputError(f"runs: split {number}: expected the same names in every run")
        if not all(split[0].same_queries(other) for other in split[1:]):
            raise InputError(f"runs: split {number}: expected the same episodes for every seed")
    for axis, what in enumerate(("episodes", "queries per episode", "classes per episode")):
        sizes = [split[0].log_probs.shape[axis] for split in runs]
        if len(set(sizes)) > 1:
            raise InputError(f"runs: expected as many {what} in every split, got {sizes}")


def leaning_codes(names: Iterable[str]) -> Ints:
    """Leanings by name (male, female, anything else) as 0, 1 and -1.

    >>> leaning_codes(["male", "female", "even"]).tolist()
    [0, 1, -1]
    """
    codes = {name: code for code, name in LEANINGS.items()}
    return np.array([codes.get(name, -1) for name in names], dtype=np.int64)


def _check_leaning(leaning: Ints, answers: FewShotPredictions) -> None:
    if leaning.shape != (len(answers.names),):
        raise InputError(
            f"leaning: expected one for each of {len(answers.names)} classes, got the shape "
            f"{leaning.shape}"
        )


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Predictions for the test queries and for the same texts with their gender swapped.

    A text about a man in a class that leans male, or about a woman in one that leans female, is the
    pro-stereotypical version and its counterfactual the anti-stereotypical one; otherwise it is the
    other way round (El Zein 2021, §4.1.3, Table 1). So every query is in both sets, and the sets
    differ in gender only. Queries of unknown gender and of classes without a leaning have no such
    versions and are left out.

    Parameters
    ----------
    original, swapped : FewShotPredictions
        For the same queries with the same supports.
    leaning : array
        The gender that each class of `original.names` leans to: 0 male, 1 female, -1 neither.
    neutral : FewShotPredictions, optional
        For the same queries in their neutral version (they).

    """

    subject_kind: ClassVar[str] = "fewshot"
    name: ClassVar[str] = "classifier"
    data: ClassVar[str] = ""
    deterministic: ClassVar[bool] = False

    original: FewShotPredictions
    swapped: FewShotPredictions
    leaning: Ints = field(repr=False)
    neutral: FewShotPredictions | None = None

    def __post_init__(self) -> None:
        for other in (self.swapped, self.neutral):
            if other is not None and not self.original.same_queries(other):
                raise InputError("counterfactuals: expected answers to those of the same queries")
        leaning = np.asarray(self.leaning).astype(np.int64)
        _check_leaning(leaning, self.original)
        if not np.isin(leaning, (-1, 0, 1)).all():
            raise InputError("leaning: expected 0 (male), 1 (female) or -1 (neither)")
        object.__setattr__(self, "leaning", leaning)
        if not self.used.any():
            raise InputError(
                "counterfactuals: expected queries of known gender in classes that lean male or "
                "female, got none"
            )

    @classmethod
    def of(
        cls,
        original: FewShotPredictions,
        swapped: ArrayLike,
        leaning: Ints | Iterable[str],
        neutral: ArrayLike | None = None,
    ) -> Counterfactuals:
        """From the answers, the log-probabilities (E, M, C) of the swapped texts, leanings as codes
        or by name, and the log-probabilities of the neutral versions.
        """
        codes = leaning if isinstance(leaning, np.ndarray) else leaning_codes(leaning)

        def answers(log_probs: ArrayLike) -> FewShotPredictions:
            return replace(original, log_probs=np.asarray(log_probs, dtype=np.float64))

        return cls(original, answers(swapped), codes, None if neutral is None else answers(neutral))

    @classmethod
    def join(cls, runs: Sequence[Sequence[Counterfactuals]]) -> Counterfactuals:
        """Join `runs[split][seed]` into one, as `join` does with answers; leanings must agree."""
        original = join([[run.original for run in split] for split in runs])
        first = runs[0][0]
        for number, split in enumerate(runs, 1):
            if not all(np.array_equal(run.leaning, first.leaning) for run in split):
                raise InputError(f"runs: split {number}: expected the same leanings in every run")
        if original is first.original:
            return first
        swapped = join([[run.swapped for run in split] for split in runs])
        versions = [[run.neutral for run in split if run.neutral is not None] for split in runs]
        complete = all(len(own) == len(split) for own, split in zip(versions, runs, strict=True))
        return cls(original, swapped, first.leaning, join(versions) if complete else None)

    @classmethod
    def example(cls, bias: float = 0.5, seed: int = 0) -> Counterfactuals:
        """Simulate a small classifier that leans by `bias` to the stereotype."""
        rng = np.random.default_rng(seed)
        episodes, ways, queries, names = 40, 3, 2, tuple("abcdef")
        classes = np.stack([rng.permutation(len(names))[:ways] for _ in range(episodes)])
        truth = np.tile(np.repeat(np.arange(ways), queries), (episodes, 1))
        rows = np.take_along_axis(classes, truth, axis=1) * 20 + rng.integers(0, 20, truth.shape)
        genders, leaning = rows % 2, np.arange(len(names)) % 2
        logits = rng.normal(size=(episodes, ways * queries, ways))
        logits += 2 * (truth[..., None] == np.arange(ways))
        push = bias * np.where(leaning[classes][:, None] == genders[..., None], 1, -1)
        original, swapped = (
            values - np.log(np.exp(values).sum(-1, keepdims=True))
            for values in (logits + push, logits - push)
        )
        return cls.of(
            FewShotPredictions(original, rows, truth, classes, genders, names), swapped, leaning
        )

    @property
    def answers(self) -> FewShotPredictions:
        return self.original

    @property
    def counterfactuals(self) -> Counterfactuals:
        return self

    @cached_property
    def query_leaning(self) -> Ints:
        """The gender that the true class of each query leans to, (E, M)."""
        leaning: Ints = self.leaning[self.original.true_classes]
        return leaning

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """The queries that have a pro- and an anti-stereotypical version, (E, M)."""
        used: NDArray[np.bool_] = (self.query_leaning >= 0) & (self.original.genders >= 0)
        return used

    @cached_property
    def control(self) -> NDArray[np.bool_]:
        """The queries of known gender in classes without a leaning, (E, M)."""
        control: NDArray[np.bool_] = (self.query_leaning < 0) & (self.original.genders >= 0)
        return control

    @cached_property
    def pro(self) -> NDArray[np.bool_]:
        """Whether the text itself is the pro-stereotypical version, (E, M)."""
        pro: NDArray[np.bool_] = self.query_leaning == self.original.genders
        return pro

    @cached_property
    def association(self) -> Floats:
        """log(p_pro / p_anti) of the true class, (E, M); 0 for queries that are not used."""
        gap = self.original.true_log_probs - self.swapped.true_log_probs
        return np.where(self.used, np.where(self.pro, gap, -gap), 0.0)

    def versions(self) -> Floats:
        """By episode and class: queries, then the sums of log p(man's) - log p(neutral version) and
        of log p(woman's) - log p(neutral version) of the true class, (E, C, 3).
        """
        assert self.neutral is not None  # noqa: S101
        man = self.original.genders == 0
        own, other = self.original.true_log_probs, self.swapped.true_log_probs
        neutral = self.neutral.true_log_probs
        return self.sums(self.used, *(np.where(side, own, other) - neutral for side in (man, ~man)))

    @cached_property
    def man_woman(self) -> Floats:
        """Of the true class, log p(man's) - log p(woman's version), for known genders, (E, M)."""
        gap = self.original.true_log_probs - self.swapped.true_log_probs
        return np.where(self.original.genders == 0, gap, -gap)

    def sums(self, chosen: NDArray[np.bool_], *values: Floats) -> Floats:
        """By episode and class: chosen queries, then the sum of each of the values (E, M) over
        them, (E, C, 1 + values).
        """
        ways = self.original.classes.shape[1]
        truth = self.original.truth[:, :, None] == np.arange(ways)
        used = (truth & chosen[:, :, None]).astype(np.float64)
        return np.stack(
            [used.sum(axis=1), *(np.einsum("emc,em->ec", used, each) for each in values)], axis=2
        )

    @cached_property
    def predicted(self) -> tuple[Ints, Ints]:
        """The classes predicted for the pro- and for the anti-stereotypical versions."""
        first, second = self.original.predicted, self.swapped.predicted
        return np.where(self.pro, first, second), np.where(self.pro, second, first)

    @cached_property
    def left_out(self) -> dict[str, int]:
        """The number of queries that are left out, by reason, counted once for all seeds."""
        genders, seeds = self.original.genders, self.original.repeats
        neither = int((genders == NEITHER).sum()) // seeds
        return {
            "unknown gender": int((genders < 0).sum()) // seeds - neither,
            **({"neither man nor woman": neither} if neither else {}),
            "class without a leaning": int(self.control.sum()) // seeds,
        }

    @cached_property
    def strata(self) -> Ints:
        """The leaning of each tested class."""
        strata: Ints = self.leaning[self.original.tested]
        return strata

    def counts(self) -> Floats:
        """By episode and class: queries, Σ association, then correct and predicted of the pro-,
        correct and predicted of the anti-stereotypical versions, (E, C, 6).
        """
        ways = self.original.classes.shape[1]
        truth = self.original.truth
        pro, anti = (tally(truth, predicted, ways, self.used) for predicted in self.predicted)
        queries = truth[:, :, None] == np.arange(ways)
        sums = np.einsum("emc,em->ec", queries.astype(np.float64), self.association)
        return np.concatenate([pro[..., :1], sums[..., None], pro[..., 1:], anti[..., 1:]], axis=2)


class FewShotSubject(Protocol):
    """What the instruments of few-shot classifiers measure, such as a finished run."""

    @property
    def name(self) -> str: ...
    @property
    def answers(self) -> FewShotPredictions: ...
    @property
    def counterfactuals(self) -> Counterfactuals | None: ...
    @property
    def leaning(self) -> Ints | None: ...
    @property
    def data(self) -> str: ...
    @property
    def deterministic(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Classifier:
    """A classifier by its answers: what the instruments of few-shot classifiers measure.

    Parameters
    ----------
    name : str
    answers : FewShotPredictions
    counterfactuals : Counterfactuals, optional
        Without them no bias can be measured.
    leaning : array, optional
        The gender that each class leans to: 0 male, 1 female, -1 neither.
    data : str
        The digest of the data; only classifiers on the same data can be compared.
    deterministic : bool
        Whether there is no training, as in the baseline: it is compared with every seed of another.

    """

    subject_kind: ClassVar[str] = "fewshot"

    name: str
    answers: FewShotPredictions
    counterfactuals: Counterfactuals | None = None
    leaning: Ints | None = field(default=None, repr=False)
    data: str = ""
    deterministic: bool = False

    @classmethod
    def of(
        cls,
        answers: FewShotPredictions,
        leaning: Ints,
        swapped: ArrayLike | None = None,
        neutral: ArrayLike | None = None,
    ) -> Classifier:
        """With counterfactuals where some query is of known gender in a class that leans."""
        _check_leaning(leaning, answers)
        used = (answers.genders >= 0) & (leaning[answers.true_classes] >= 0)
        both = None
        if swapped is not None and used.any():
            both = Counterfactuals.of(answers, swapped, leaning, neutral)
        return cls(answers.name, answers, both, leaning)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file, atomically; log-probabilities are in single precision."""
        answers, both = self.answers, self.counterfactuals
        arrays = {
            **{name: getattr(answers, name) for name in ARRAYS},
            "names": np.array(answers.names),
            "leaning": self.leaning,
        }
        versions = {} if both is None else {"swapped": both.swapped, "neutral": both.neutral}
        arrays |= {name: own.log_probs for name, own in versions.items() if own is not None}
        for name in arrays.keys() & {"log_probs", *versions}:
            arrays[name] = arrays[name].astype(np.float32)
        with replace_file(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Classifier:
        """Read what `save` wrote; any other file, or a damaged one, is an error."""
        content = io.BytesIO(Path(path).read_bytes())
        try:
            with np.load(content, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
                others = {name: arrays.pop(name, None) for name in ("swapped", "neutral")}
                if file.zip.testzip() or arrays.keys() != {*ARRAYS, "names", "leaning"}:
                    raise InputError("damaged, its check sums or names are wrong")
            names, leaning = tuple(arrays.pop("names").tolist()), arrays.pop("leaning")
            return cls.of(FewShotPredictions(**arrays, names=names), leaning, **others)
        except NPZ_ERRORS as error:
            raise FileError(path, f"expected the answers of a few-shot run: {error}") from None


@dataclass(frozen=True, eq=False)
class Tallies(ClassCounts):
    """The counts of a run by episode and class.

    Parameters
    ----------
    counts : array (E, C, 3)
        Those of `FewShotPredictions.tally`.
    counterfactual : array (E, C, 6) or None
        Those of `Counterfactuals.counts`.
    classes, names, splits, repeats
        As for `FewShotPredictions`.
    leaning : array
        The gender that each class leans to: 0 male, 1 female, -1 neither.
    queries_digest : str
        Runs with the same digest have the same test queries.

    """

    counts: Floats = field(repr=False)
    counterfactual: Floats | None = field(repr=False)
    classes: Ints = field(repr=False)
    names: tuple[str, ...]
    leaning: Ints = field(repr=False)
    queries_digest: str = ""
    splits: int = 1
    repeats: int = 1

    @classmethod
    def of(cls, subject: FewShotSubject) -> Tallies:
        """Count the answers of a subject, such as a finished run."""
        answers, both = subject.answers, subject.counterfactuals
        leaning = subject.leaning if both is None else both.leaning
        return cls(
            counts=answers.tally(),
            counterfactual=None if both is None else both.counts(),
            classes=answers.classes,
            names=answers.names,
            leaning=np.full(len(answers.names), -1) if leaning is None else leaning,
            queries_digest=answers.queries_digest,
            splits=answers.splits,
            repeats=answers.repeats,
        )

    def tally(self) -> Floats:
        """Queries, correct and predicted of each class of each episode, (E, C, 3)."""
        return self.counts

    @cached_property
    def strata(self) -> Ints:
        """The leaning of each tested class."""
        strata: Ints = self.leaning[self.tested]
        return strata

    def repeat(self, seeds: int) -> Self:
        """The same answers for each of several seeds: those of a classifier without training."""
        return replace(
            self,
            counts=np.tile(self.counts, (seeds, 1, 1)),
            counterfactual=None
            if self.counterfactual is None
            else np.tile(self.counterfactual, (seeds, 1, 1)),
            classes=np.tile(self.classes, (seeds, 1)),
            repeats=self.repeats * seeds,
        )

    @classmethod
    def join(cls, runs: Sequence[Tallies]) -> Tallies:
        """The tallies of runs that differ in their seeds only as those of one run.

        A single one is returned as it is.
        """
        if not runs:
            raise InputError("tallies: expected some to join, got none")
        first = runs[0]
        for number, run in enumerate(runs[1:], 2):
            if (run.queries_digest, run.splits) != (first.queries_digest, first.splits):
                raise InputError(f"tallies: run {number}: expected the test queries of the first")
            if (run.counterfactual is None) != (first.counterfactual is None):
                raise InputError(
                    f"tallies: run {number}: expected counterfactuals in all runs or in none"
                )
        if len(runs) == 1:
            return first
        both = [run.counterfactual for run in runs if run.counterfactual is not None]
        return replace(
            first,
            counts=np.concatenate([run.counts for run in runs]),
            counterfactual=np.concatenate(both) if both else None,
            classes=np.concatenate([run.classes for run in runs]),
            repeats=sum(run.repeats for run in runs),
        )

    def items(self, columns: Sequence[str], counts: Floats) -> Items:
        """Counts (E, C, F) as the items of a measurement, one row per episode and class."""
        total, ways = self.classes.shape
        block = total // (self.repeats * self.splits)
        seed, split, episode, _ = np.indices((self.repeats, self.splits, block, ways))
        flat = counts.reshape(-1, len(columns)).T
        return Items(
            {
                "seed": seed.ravel(),
                "split": split.ravel(),
                "episode": episode.ravel(),
                "class": [self.names[index] for index in self.classes.ravel().tolist()],
                **{
                    name: column if name == "association" else column.astype(np.int64)
                    for name, column in zip(columns, flat, strict=True)
                },
            }
        )

    def record(self, subject: FewShotSubject) -> dict[str, Any]:
        """The details that a comparison needs besides the items."""
        return {
            "splits": self.splits,
            "seeds": self.repeats,
            "ways": self.classes.shape[1],
            "names": list(self.names),
            "leaning": [LEANINGS[code] for code in self.leaning.tolist()],
            "test_queries": self.queries_digest,
            "data": subject.data,
        }

    @classmethod
    def from_measurement(cls, measurement: Measurement, columns: Sequence[str]) -> Tallies:
        """From what `items` and `record` gave; the columns are both kinds of counts."""
        items, details = measurement.items, measurement.details
        if not {"class", *columns} <= set(items.columns):
            raise InputError(
                f"compare: {measurement.subject}: expected a few-shot measurement with its items, "
                "got none (the results.json of a run has them)"
            )
        names, ways = tuple(details["names"]), int(details["ways"])
        index = {name: number for number, name in enumerate(names)}
        classes = np.array([index[name] for name in items["class"]], dtype=np.int64)
        flat = [np.asarray(items[column], dtype=np.float64) for column in columns]
        counts = np.stack(flat, axis=-1).reshape(-1, ways, len(columns))
        return cls(
            counts=counts,
            counterfactual=counts,
            classes=classes.reshape(-1, ways),
            names=names,
            leaning=leaning_codes(details["leaning"]),
            queries_digest=str(details["test_queries"]),
            splits=int(details["splits"]),
            repeats=int(details["seeds"]),
        )

    def pack(self) -> dict[str, Any]:
        """The same as small JSON; Σ association is rounded to single precision."""
        block = len(self.classes) // self.repeats
        packed: dict[str, Any] = {
            "names": list(self.names),
            "leaning": self.leaning.tolist(),
            "queries": self.queries_digest,
            "splits": self.splits,
            "repeats": self.repeats,
            "classes": _pack(self.classes[:block]),
            "counts": _pack(self.counts),
            "counterfactuals": None,
            "association": None,
        }
        if self.counterfactual is not None:
            packed["counterfactuals"] = _pack(np.delete(self.counterfactual, ASSOCIATION, axis=2))
            sums = self.counterfactual[..., ASSOCIATION].astype(np.float32)
            packed["association"] = _pack(sums)
        return packed

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Tallies:
        """Read what `pack` gave."""
        try:
            repeats = int(packed["repeats"])
            whole_numbers = packed["counterfactuals"]
            counterfactual = None
            if whole_numbers is not None:
                sums = _unpack(packed["association"]).astype(np.float64)
                counts = _unpack(whole_numbers).astype(np.float64)
                counterfactual = np.insert(counts, ASSOCIATION, sums, axis=2)
            return cls(
                counts=_unpack(packed["counts"]).astype(np.float64),
                counterfactual=counterfactual,
                classes=np.tile(_unpack(packed["classes"]).astype(np.int64), (repeats, 1)),
                names=tuple(packed["names"]),
                leaning=np.array(packed["leaning"], dtype=np.int64),
                queries_digest=str(packed["queries"]),
                splits=int(packed["splits"]),
                repeats=repeats,
            )
        except (KeyError, TypeError, ValueError, lzma.LZMAError) as error:
            raise InputError(f"tallies: expected those of a few-shot run: {error}") from None


def check_same_queries(first: ClassCounts, second: ClassCounts) -> None:
    """Raise an error that says why two runs have other test queries, if they have."""
    sizes = [f"{counts.splits} splits x {counts.repeats} seeds" for counts in (first, second)]
    if sizes[0] != sizes[1]:
        raise InputError(f"expected as many splits and seeds in both, got {' and '.join(sizes)}")
    if not first.same_queries(second):
        raise InputError(
            "expected the same test queries, got other ones: both need the same ways, queries, "
            "number of test episodes and class splits; and calibrate needs other queries where "
            "a class has fewer than shots / 2 + queries texts of one gender "
            f"({parameter('each_gender')} leaves such classes out)"
        )


def _pack(array: NDArray[Any]) -> dict[str, Any]:
    """An array as text: whole numbers in the smallest type, bytes of equal weight together."""
    if array.dtype != np.float32:
        array = array.astype(np.min_scalar_type(int(array.max(initial=0))))
    kind = array.dtype.newbyteorder("<")
    last = np.ascontiguousarray(np.moveaxis(array, -1, 0), dtype=kind)
    planes = last.reshape(-1).view(np.uint8).reshape(-1, kind.itemsize).T
    data = lzma.compress(planes.tobytes(), lzma.FORMAT_RAW, filters=PACKING)
    return {
        "type": kind.str,
        "shape": list(array.shape),
        "data": base64.b85encode(data).decode("ascii"),
    }


def _unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    kind, shape = np.dtype(packed["type"]), tuple(packed["shape"])
    data = lzma.decompress(base64.b85decode(packed["data"]), lzma.FORMAT_RAW, filters=PACKING)
    content = np.frombuffer(data, dtype=np.uint8)
    flat = np.ascontiguousarray(content.reshape(kind.itemsize, -1).T).reshape(-1).view(kind)
    return np.moveaxis(flat.reshape(shape[-1], *shape[:-1]), 0, -1)


NEW_CLASSES = "new classes: jackknife over the test classes and episodes, Student t"
SAME_OPPONENTS = "queries of new classes against the same opponents: every episode has all classes"
TRAINING = "; and new training runs: the spread of splits and seeds"


def interval_text(values: Replicates) -> str:
    """The sources of variation that the interval of these replicates covers."""
    covers = NEW_CLASSES if values.opponents else SAME_OPPONENTS
    return covers + TRAINING * isinstance(values, JoinedReplicates)


def paired(
    before: Measurement, after: Measurement, change: Replicates, strata: Ints | None = None
) -> Comparison:
    """A comparison from the replicates of the change."""
    prob = before.prob
    low, high = change.interval(prob, strata)
    naive = change.naive(prob)
    return Comparison.of(
        replace(before, items=Items(), parts=()),
        replace(after, items=Items(), parts=()),
        (float(change.value), low, high),
        p_value=change.p_value(strata),
        interval=interval_text(change),
        test="Student t, as the interval",
        paired=len(change.episodes),
        details={
            "classes": len(change.classes),
            "freedom": change.error(strata)[1],
            "naive_low": naive[0],
            "naive_high": naive[1],
        },
    )


def comparable_tallies(
    before: Measurement, after: Measurement, columns: Sequence[str]
) -> tuple[Tallies, Tallies]:
    """The tallies of two measurements; an error says why they cannot be compared text by text.

    A classifier without training is compared with every seed of another.
    """
    first, second = (Tallies.from_measurement(m, columns) for m in (before, after))
    if before.details.get("deterministic"):
        first = first.repeat(second.repeats // first.repeats or 1)
    elif after.details.get("deterministic"):
        second = second.repeat(first.repeats // second.repeats or 1)
    try:
        if before.details["data"] != after.details["data"]:
            raise InputError("expected runs on the same data, got other texts")
        check_same_queries(first, second)
    except InputError as error:
        raise InputError(f"{before.subject} and {after.subject}: {error}") from None
    return first, second
