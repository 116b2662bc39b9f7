"""Many few-shot runs, as cells of a grid: those that differ only in their seed are one group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.answers import Tallies

ROLES = ("network", "ways", "shots", "mitigation", "mitigate", "seed")
NO_MITIGATION = "none"


class GridCell(Protocol):
    """A cell of a grid: all its settings, and those that vary."""

    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def axes(self) -> Mapping[str, Any]: ...
    @property
    def name(self) -> str: ...


class Episode(NamedTuple):
    """C-way K-shot."""

    ways: int
    shots: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CellGroup:
    """Runs that differ only in their seed.

    `others` are the axes of the grid other than network, ways, shots, mitigation and seed;
    `missing_seeds` have no result.
    """

    others: Mapping[str, Any]
    network: str
    task: Episode
    mitigation: str
    by_seed: Mapping[int, Tallies] = field(repr=False)
    missing_seeds: tuple[int, ...]
    chance: float
    baseline: Mapping[str, Any] = field(repr=False)
    _joined: dict[tuple[int, ...], Tallies] = field(default_factory=dict, repr=False)

    @property
    def tallies(self) -> Tallies:
        """The tallies of all seeds."""
        return self.tallies_of(tuple(self.by_seed))

    def tallies_of(self, seeds: Sequence[int]) -> Tallies:
        """Join the tallies of some seeds, once."""
        key = tuple(seeds)
        if key not in self._joined:
            self._joined[key] = Tallies.join([self.by_seed[seed] for seed in key])
        return self._joined[key]

    @cached_property
    def setting(self) -> str:
        """The other axes as text; only groups with the same ones are compared."""
        return _text(self.others)

    @property
    def name(self) -> str:
        """The values of the axes as text."""
        own = self.to_dict()
        return _text({**own.pop("others"), **own})

    def to_dict(self) -> dict[str, Any]:
        return {
            "others": dict(self.others),
            "network": self.network,
            **self.task._asdict(),
            "mitigation": self.mitigation,
        }


def _text(axes: Mapping[str, Any]) -> str:
    shown = {k: v if isinstance(v, str) else json.dumps(v) for k, v in axes.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def group_cells(
    results: Iterable[tuple[GridCell, Mapping[str, Any]]],
    missing: Iterable[tuple[GridCell, str]],
    notes: list[str],
) -> list[CellGroup]:
    """Group the cells that differ only in their seed, in the order of the grid.

    A cell with several trainings starts with its seed and counts up. Where two cells share a
    training, the second one is left out and noted, since the training would count twice.
    """
    by_setting: dict[str, list[tuple[GridCell, Mapping[str, Any]]]] = {}
    for cell, result in results:
        by_setting.setdefault(_without_seed(cell), []).append((cell, result))
    lacking: dict[str, list[int]] = {}
    for cell, _ in missing:
        lacking.setdefault(_without_seed(cell), []).append(cell.settings["seed"])
    groups = []
    for key, cells in by_setting.items():
        by_seed: dict[int, Tallies] = {}
        next_seed = -1
        for cell, result in sorted(cells, key=lambda item: int(item[0].settings["seed"])):
            seed = int(cell.settings["seed"])
            if seed < next_seed:
                notes.append(f"{cell.name}: left out: it shares trainings with the seed before it")
                continue
            by_seed[seed] = Tallies.unpack(result["tallies"])
            next_seed = seed + int(cell.settings.get("seeds") or by_seed[seed].repeats)
        cell, result = cells[0]
        groups.append(
            CellGroup(
                others={name: v for name, v in cell.axes.items() if name not in ROLES},
                network=cell.settings["network"],
                task=Episode(cell.settings["ways"], cell.settings["shots"]),
                mitigation=_mitigation_name(cell),
                by_seed=by_seed,
                missing_seeds=tuple(sorted(lacking.get(key, ()))),
                chance=result["chance"],
                baseline=result["baseline"],
            )
        )
    return groups


def _mitigation_name(cell: GridCell) -> str:
    """The mitigation, with its scope where that is an axis of the grid."""
    name = str(cell.settings["mitigation"])
    scope = "" if name == NO_MITIGATION else cell.axes.get("mitigate", "")
    return f"{name} ({scope})" if scope else name


def _without_seed(cell: GridCell) -> str:
    settings = {name: value for name, value in cell.settings.items() if name != "seed"}
    return json.dumps(settings, sort_keys=True)


def common_tallies(groups: Sequence[CellGroup]) -> list[Tallies]:
    """Return the tallies of groups to be compared, of the seeds that all of them have."""
    common = [seed for seed in groups[0].by_seed if all(seed in g.by_seed for g in groups)]
    if not common:
        raise InputError("expected a seed that all of them have, got none")
    return [group.tallies_of(common) for group in groups]


def largest_comparable(tallies: Sequence[Tallies]) -> list[int]:
    """Return the indices of the largest set with the same test classes, splits and seeds."""
    sets: dict[tuple[Any, ...], list[int]] = {}
    for index, tally in enumerate(tallies):
        block = tally.classes[: len(tally.classes) // tally.repeats]
        tested = tuple(np.unique(part).tobytes() for part in np.split(block, tally.splits))
        without = tally.counterfactual is None
        shape = (tally.splits, tally.repeats, without)
        sets.setdefault((tally.names, tally.leaning.tobytes(), tested, shape), []).append(index)
    return max(sets.values(), key=len, default=[])
