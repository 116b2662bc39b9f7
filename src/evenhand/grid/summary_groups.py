"""The results of a few-shot grid, joined over seeds, and which of them go together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.bias.measures import MEASURES, Reading
from evenhand.fewshot.runs.tallies import Tallies, joined
from evenhand.grid.cells import Cell, digest_of, told
from evenhand.grid.summary import Found
from evenhand.intervals import holm

__all__ = [
    "FIGURES", "Group", "Task", "corrected", "groups_of", "largest_world", "same_seeds", "signed",
    "with_holm",
]  # fmt: skip

FIGURES = ("accuracy", *MEASURES)
"""What is told of a result, of a change and of a network."""
ROLES = ("network", "ways", "shots", "mitigation", "seed")


class Task(NamedTuple):
    """C-way K-shot."""

    ways: int
    shots: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Group:
    """Cells that differ in their seed alone.

    `others` are the grid's axes beside network, ways, shots, mitigation and seed; `lacking` the
    seeds without a result.
    """

    others: Mapping[str, Any]
    network: str
    task: Task
    mitigation: str
    by_seed: Mapping[int, Tallies] = field(repr=False)
    lacking: tuple[int, ...]
    chance: float
    floor: Mapping[str, Any] = field(repr=False)
    _joined: dict[tuple[int, ...], Tallies] = field(default_factory=dict, repr=False)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.by_seed)

    @property
    def tallies(self) -> Tallies:
        """Those of all seeds."""
        return self.of(self.seeds)

    def of(self, seeds: Sequence[int]) -> Tallies:
        """Those of some seeds."""
        key = tuple(seeds)
        if key not in self._joined:
            self._joined[key] = joined([self.by_seed[seed] for seed in key])
        return self._joined[key]

    @cached_property
    def setting(self) -> str:
        """The others in words; groups with the same ones may be compared."""
        return ", ".join(f"{name} {told(value)}" for name, value in self.others.items())

    @property
    def name(self) -> str:
        """What sets the group apart from the others, in words."""
        axes = {**self.others, "network": self.network, **self.task._asdict(),
                "mitigation": self.mitigation}  # fmt: skip
        return Cell("", {}, axes).name

    def as_dict(self) -> dict[str, Any]:
        return {
            "others": dict(self.others), "network": self.network, **self.task._asdict(),
            "mitigation": self.mitigation,
        }  # fmt: skip


def groups_of(found: Found, notes: list[str]) -> list[Group]:
    """All groups that have a result, in the order of the grid.

    A cell of several trainings begins with its seed and counts up; where two cells have a
    training in common, the second one is left out and named, for it would count twice.
    """
    every: dict[str, list[tuple[Cell, Mapping[str, Any]]]] = {}
    for cell, result in found.results:
        every.setdefault(_without_seed(cell), []).append((cell, result))
    lacking: dict[str, list[int]] = {}
    for cell, _ in found.missing:
        lacking.setdefault(_without_seed(cell), []).append(cell.settings["seed"])
    groups = []
    for key, cells in every.items():
        by_seed: dict[int, Tallies] = {}
        free = -1
        for cell, result in sorted(cells, key=lambda one: int(one[0].settings["seed"])):
            seed = int(cell.settings["seed"])
            if seed < free:
                notes.append(f"{cell.name}: left out: it shares trainings with the seed before it")
                continue
            free = seed + int(cell.settings.get("seeds", 1))
            by_seed[seed] = Tallies.unpacked(result["tallies"])
        settings, result = cells[0][0].settings, cells[0][1]
        groups.append(
            Group(
                others={n: v for n, v in cells[0][0].axes.items() if n not in ROLES},
                network=settings["network"], task=Task(settings["ways"], settings["shots"]),
                mitigation=settings["mitigation"], by_seed=by_seed,
                lacking=tuple(sorted(lacking.get(key, ()))), chance=result["chance"],
                floor=result["floor"]["accuracy"],
            )
        )  # fmt: skip
    return groups


def same_seeds(groups: Iterable[Group]) -> list[Tallies]:
    """The tallies of groups to be compared, of the seeds that all of them have."""
    every = list(groups)
    common = [seed for seed in every[0].seeds if all(seed in each.by_seed for each in every)]
    if not common:
        raise InputError("expected a seed that all of them have, got none")
    return [each.of(common) for each in every]


def largest_world(tallies: Sequence[Tallies]) -> list[int]:
    """The places of those that may be averaged: most of them have these test classes and seeds."""
    worlds: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(tallies):
        block = each.classes[: len(each.classes) // each.repeats]
        tested = tuple(np.unique(part).tobytes() for part in np.split(block, each.splits))
        world = (each.names, each.leaning.tobytes(), tested, each.splits, each.repeats,
                 each.twins is None)  # fmt: skip
        worlds.setdefault(world, []).append(place)
    return max(worlds.values(), key=len)


def signed(one: Reading) -> dict[str, Any]:
    """A bias measure with its sign, for a table."""
    return {
        "value": one.signed, "low": one.signed_low, "high": one.signed_high,
        "p_value": one.p_value, "classes": one.classes,
    }  # fmt: skip


def corrected(p_values: Sequence[float]) -> list[float]:
    """Holm's correction over the p-values that there are.

    >>> corrected([0.01, float("nan"), 0.04])
    [0.02, nan, 0.04]
    """
    known = iter(holm([p for p in p_values if not math.isnan(p)]))
    return [math.nan if math.isnan(p) else next(known) for p in p_values]


def with_holm(
    rows: list[dict[str, Any]], figures: Iterable[str] = FIGURES, inside: str = ""
) -> list[dict[str, Any]]:
    """The rows, each figure with its p-value corrected over all rows that have it.

    `inside` is the part of a figure that has the p-value, if it is not the figure itself.
    """
    for figure in figures:
        parts = [row[figure][inside] if inside else row[figure] for row in rows if figure in row]
        for part, p in zip(parts, corrected([part["p_value"] for part in parts]), strict=True):
            part["p_holm"] = p
    return rows


def _without_seed(cell: Cell) -> str:
    return digest_of({name: value for name, value in cell.settings.items() if name != "seed"})
