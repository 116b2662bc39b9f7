"""What came of a run, and how runs differ: accuracy against the floor, tables, bias, spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import InputError
from evenhand.fewshot.bias import AssociationRow, Bias, Change, Twins, associations, change, measure
from evenhand.fewshot.bias.twins import joined_twins
from evenhand.fewshot.runs.folder import SavedRun
from evenhand.fewshot.statistics import Answers, Counted, Score, compare, scores
from evenhand.fewshot.statistics_joined import joined
from evenhand.fewshot.statistics_tables import ClassRow, by_class, by_gender
from evenhand.fewshot.statistics_variance import Component, variance_split

__all__ = [
    "BiasSummary", "RunSummary", "answers_of", "bias_of", "changes", "check_same", "summary",
    "twins_of",
]  # fmt: skip

LEANINGS = {0: "male", 1: "female", -1: ""}


@dataclass(frozen=True, kw_only=True)
class BiasSummary:
    """The bias measures of one run, and its associations by class and gender.

    `data` is the digest of the data it was measured on.
    """

    name: str
    data: str
    bias: Bias
    associations: tuple[AssociationRow, ...]

    def as_dict(self) -> dict[str, Any]:
        """The measures first, as D0 names them, each with value, low and high."""
        return {
            "name": self.name,
            **self.bias.as_dict(),
            "associations": [row.as_dict() for row in self.associations],
        }


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run in figures; `beyond_floor` is how much better than counting words, paired."""

    name: str
    run: SavedRun
    chance: float
    floor: Mapping[str, Score]
    scores: Mapping[str, Score]
    beyond_floor: Mapping[str, Score]
    by_class: tuple[ClassRow, ...]
    by_gender: Mapping[str, Score]
    leaning: Mapping[str, str]
    variance: tuple[Component, ...]
    bias: BiasSummary | None

    def as_dict(self) -> dict[str, Any]:
        told = self.run.about
        return {
            "name": self.name,
            "settings": self.run.settings.as_dict(),
            "data": told.get("data"),
            "encoder": told.get("encoder"),
            "chance": self.chance,
            "floor": {name: each.as_dict() for name, each in self.floor.items()},
            **{name: each.as_dict() for name, each in self.scores.items()},
            "beyond_floor": {name: each.as_dict() for name, each in self.beyond_floor.items()},
            "by_class": [
                {**row.as_dict(), "leaning": self.leaning[row.name]} for row in self.by_class
            ],
            "by_gender": {name: each.as_dict() for name, each in self.by_gender.items()},
            "variance": [each.as_dict() for each in self.variance],
            "bias": None if self.bias is None else self.bias.bias.as_dict(),
            "associations": []
            if self.bias is None
            else [row.as_dict() for row in self.bias.associations],
            "curves": dict(self.run.curves),
        }


def summary(
    run: SavedRun, *, prob: float = 0.95, margin: float = 0.05, tosses: int = 2000
) -> RunSummary:
    """Everything of one run; `margin` is the ε of ε-robustness, `tosses` the coins of the null."""
    every = [[kept.answers for kept in split] for split in run.kept]
    said = joined(every)
    counted = joined([[kept.answers] * run.settings.seeds for kept in run.floor])
    names = said.names
    return RunSummary(
        name=run.name,
        run=run,
        chance=1 / run.settings.ways,
        floor=scores(joined([[kept.answers] for kept in run.floor]), prob=prob),
        scores=scores(said, prob=prob),
        beyond_floor=compare(counted, said, prob=prob),
        by_class=by_class(said, prob=prob),
        by_gender=by_gender(said, prob=prob),
        leaning=dict(zip(names, map(LEANINGS.__getitem__, run.leaning.tolist()), strict=True)),
        variance=variance_split(every, prob=prob),
        bias=_bias(run, prob, margin, tosses),
    )


def bias_of(
    run: SavedRun, *, prob: float = 0.95, margin: float = 0.05, tosses: int = 2000
) -> BiasSummary:
    """The bias of a run; an error where its data tell no genders."""
    found = _bias(run, prob, margin, tosses)
    if found is None:
        raise InputError(
            f"{run.folder}: expected test queries of known gender in classes that lean male or "
            "female, its data have none: no bias can be measured"
        )
    return found


def changes(before: BiasSummary, others: Sequence[BiasSummary]) -> tuple[tuple[str, Change], ...]:
    """How each of the others differs from the first, paired on the same test queries."""
    found = []
    for after in others:
        try:
            _check_pair(before, after)
            found.append((after.name, change(before.bias, after.bias)))
        except InputError as error:
            raise InputError(f"{before.name} and {after.name}: {error}") from None
    return tuple(found)


def _check_pair(before: BiasSummary, after: BiasSummary) -> None:
    """Say what keeps two runs from being compared text by text."""
    if before.data != after.data:
        raise InputError("expected runs on the same data, got other texts")
    check_same(before.bias.twins.original, after.bias.twins.original)


def check_same(first: Counted, second: Counted) -> None:
    """Raise an error that says why two runs have other test queries, where they have."""
    sizes = [f"{each.splits} splits x {each.repeats} seeds" for each in (first, second)]
    if sizes[0] != sizes[1]:
        raise InputError(f"expected as many splits and seeds in both, got {' and '.join(sizes)}")
    if not first.same_episodes(second):
        raise InputError(
            "expected the same test queries, got other ones: both need the same ways, queries, "
            "number of test episodes and class splits; and calibrate asks for other queries where "
            "a class has fewer than shots / 2 + queries texts of one gender (each_gender leaves "
            "such classes out)"
        )


def answers_of(run: SavedRun) -> Answers:
    """All answers of a run as one."""
    return joined([[kept.answers for kept in split] for split in run.kept])


def twins_of(run: SavedRun) -> Twins | None:
    """All twins of a run as one; None where no bias can be measured."""
    every: list[list[Twins]] = []
    for split in run.kept:
        twins = [kept.twins for kept in split]
        every.append([each for each in twins if each is not None])
    return joined_twins(every) if all(every) else None


def _bias(run: SavedRun, prob: float, margin: float, tosses: int) -> BiasSummary | None:
    both = twins_of(run)
    if both is None:
        return None
    return BiasSummary(
        name=run.name,
        data=run.data,
        bias=measure(both, prob=prob, margin=margin, tosses=tosses),
        associations=associations(both, prob=prob),
    )
