"""What paired comparisons between runs need of their answers: counts by episode and class.

A run keeps a log-probability for every query and class; its tallies are some 25 KB a class split
and seed. Accuracy, F1, the bias measures and the differences of two runs on the same test queries
come out of them as of the answers, by the same code.
"""

from __future__ import annotations

import base64
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.fewshot.bias.change import Change, changed
from evenhand.fewshot.bias.formulas import formulas
from evenhand.fewshot.bias.measures import MEASURES, Reading, reading
from evenhand.fewshot.runs.folder import SavedRun
from evenhand.fewshot.runs.summaries import answers_of, check_same, twins_of
from evenhand.fewshot.statistics import Answers, Counted, Score, compare, scores
from evenhand.fewshot.statistics_replicates import Floats, Ints, Replicates

__all__ = ["Tallies", "accuracy", "bias_values", "difference", "joined"]

ASSOCIATION = 1  # its place among the counts of twins; the others are whole numbers
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9}]


@dataclass(frozen=True, eq=False)
class Tallies(Counted):
    """`counts` (E, C, 3) are those of `Answers.tally`, `twins` (E, C, 6) of `Twins.counts`, or
    None; the rest is as in `Answers`. `leaning` is that of each class (0 male, 1 female, -1
    neither); two runs have the same test queries where `queries`, a digest of them, is the same.
    """

    counts: Floats = field(repr=False)
    twins: Floats | None = field(repr=False)
    classes: Ints = field(repr=False)
    names: tuple[str, ...]
    leaning: Ints = field(repr=False)
    queries: str
    splits: int = 1
    repeats: int = 1

    @classmethod
    def of(cls, run: SavedRun) -> Tallies:
        """Those of a finished run."""
        said, twins = answers_of(run), twins_of(run)
        return cls(
            said.tally(), None if twins is None else twins.counts(), said.classes, said.names,
            run.leaning, _digest(said), said.splits, said.repeats,
        )  # fmt: skip

    def tally(self) -> Floats:
        """Asked, right and predicted of each class of each episode, (E, C, 3)."""
        return self.counts

    def same_episodes(self, other: Tallies) -> bool:
        """Whether the other's queries are these, in the same order, of as many splits and seeds."""
        mine, theirs = ((each.queries, each.splits, each.repeats) for each in (self, other))
        return mine == theirs

    @cached_property
    def strata(self) -> Ints:
        """The leaning of each tested class."""
        found: Ints = self.leaning[self.tested]
        return found

    @cached_property
    def bias(self) -> Replicates | None:
        """The replicates of all bias measures; None where none can be measured."""
        return None if self.twins is None else self.replicates(formulas(self.strata), self.twins)

    def packed(self) -> dict[str, Any]:
        """The same as JSON; Σ association is rounded to single precision."""
        block = len(self.classes) // self.repeats
        told: dict[str, Any] = {
            "names": list(self.names), "leaning": self.leaning.tolist(), "queries": self.queries,
            "splits": self.splits, "repeats": self.repeats,
            "classes": _packed(self.classes[:block]), "counts": _packed(self.counts),
            "twins": None, "association": None,
        }  # fmt: skip
        if self.twins is not None:
            told["twins"] = _packed(np.delete(self.twins, ASSOCIATION, axis=2))
            told["association"] = _packed(self.twins[..., ASSOCIATION].astype(np.float32))
        return told

    @classmethod
    def unpacked(cls, told: Mapping[str, Any]) -> Tallies:
        """What `packed` gave."""
        try:
            repeats = int(told["repeats"])
            twins = None
            if told["twins"] is not None:
                whole = _unpacked(told["twins"]).astype(np.float64)
                sums = _unpacked(told["association"]).astype(np.float64)
                twins = np.insert(whole, ASSOCIATION, sums, axis=2)
            classes = np.tile(_unpacked(told["classes"]).astype(np.int64), (repeats, 1))
            return cls(
                _unpacked(told["counts"]).astype(np.float64), twins, classes, tuple(told["names"]),
                np.array(told["leaning"], dtype=np.int64), str(told["queries"]),
                int(told["splits"]), repeats,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, lzma.LZMAError) as error:
            raise InputError(f"tallies: expected those of a few-shot run: {error}") from None


def joined(runs: Sequence[Tallies]) -> Tallies:
    """The tallies of runs that differ in their seeds alone as those of one run.

    A single one is given back as it is.
    """
    if not runs:
        raise InputError("tallies: expected some to join, got none")
    first = runs[0]
    for number, run in enumerate(runs[1:], 2):
        if (run.queries, run.splits) != (first.queries, first.splits):
            raise InputError(f"tallies: run {number}: expected the test queries of the first")
        if (run.twins is None) != (first.twins is None):
            raise InputError(f"tallies: run {number}: expected twins in all runs or in none")
    if len(runs) == 1:
        return first
    twins = [run.twins for run in runs if run.twins is not None]
    return replace(
        first,
        counts=np.concatenate([run.counts for run in runs]),
        twins=np.concatenate(twins) if twins else None,
        classes=np.concatenate([run.classes for run in runs]),
        repeats=sum(run.repeats for run in runs),
    )


def accuracy(run: Tallies, *, prob: float = 0.95) -> Score:
    """The share of queries that are right."""
    return scores(run, prob=prob)["accuracy"]


def bias_values(run: Tallies, *, prob: float = 0.95) -> dict[str, Reading]:
    """Each bias measure with its interval; none where no bias can be measured."""
    made = run.bias
    if made is None:
        return {}
    return {name: reading(name, made, run.strata, prob) for name in MEASURES}


def difference(before: Tallies, after: Tallies, *, prob: float = 0.95) -> Change:
    """How much more accurate and how much less biased `after` is, paired on the same queries.

    There are no measures where no bias can be measured.
    """
    check_same(before, after)
    gained = compare(before, after, prob=prob)["accuracy"]
    one, two = before.bias, after.bias
    if one is None or two is None:
        return Change(accuracy=gained, measures={})
    return Change(accuracy=gained, measures=changed(one, two, before.strata, prob))


def _digest(said: Answers) -> str:
    """A hash of the test queries, those of one seed: all have the same."""
    block = len(said.rows) // said.repeats
    made = blake2b(digest_size=16)
    for array in (said.rows, said.truth, said.classes):
        made.update(repr(array[:block].shape).encode())
        made.update(array[:block].astype("<i8").tobytes())
    return made.hexdigest()


def _packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array as text: whole numbers in as few bytes as will do, like bytes beside each other."""
    if array.dtype != np.float32:
        array = array.astype(np.min_scalar_type(int(array.max(initial=0))))
    kind = array.dtype.newbyteorder("<")
    last = np.ascontiguousarray(np.moveaxis(array, -1, 0), dtype=kind)
    planes = last.reshape(-1).view(np.uint8).reshape(-1, kind.itemsize).T
    data = lzma.compress(planes.tobytes(), lzma.FORMAT_RAW, filters=FILTERS)
    return {"type": kind.str, "shape": list(array.shape),
            "data": base64.b85encode(data).decode("ascii")}  # fmt: skip


def _unpacked(told: Mapping[str, Any]) -> NDArray[Any]:
    kind, shape = np.dtype(told["type"]), tuple(told["shape"])
    data = lzma.decompress(base64.b85decode(told["data"]), lzma.FORMAT_RAW, filters=FILTERS)
    content = np.frombuffer(data, dtype=np.uint8)
    flat = np.ascontiguousarray(content.reshape(kind.itemsize, -1).T).reshape(-1).view(kind)
    return np.moveaxis(flat.reshape(shape[-1], *shape[:-1]), 0, -1)
