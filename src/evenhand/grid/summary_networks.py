"""How networks compare over all tasks as one: accuracy, bias, and how far each is from the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.fewshot.bias.formulas import NAMES
from evenhand.fewshot.bias.measures import MEASURES, classes_of, reading
from evenhand.fewshot.runs.tallies import Tallies
from evenhand.fewshot.statistics import score
from evenhand.fewshot.statistics_replicates import Ints, Replicates
from evenhand.grid.summary_groups import Group, largest_world, same_seeds, signed, with_holm
from evenhand.grid.summary_pooled import mean

__all__ = ["networks"]

Row = dict[str, Any]


def networks(groups: Sequence[Group], prob: float, notes: list[str]) -> list[Row]:
    """The mean accuracy and bias of each network over the tasks that all networks have.

    `apart` is how far it is from the mean of all networks on the same queries; p-values are
    Holm's within each figure, over the networks of a mitigation.
    """
    sets: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        sets.setdefault((group.setting, group.mitigation), []).append(group)
    rows: list[Row] = []
    for every in sets.values():
        names = list(dict.fromkeys(group.network for group in every))
        if len(names) > 1:
            rows += _compared(every, names, prob, notes)
    return rows


def _compared(
    every: Sequence[Group], names: Sequence[str], prob: float, notes: list[str]
) -> list[Row]:
    tasks = list(dict.fromkeys(group.task for group in every))
    found = [_alike([group for group in every if group.task == task], names) for task in tasks]
    whole = [each for each in found if each is not None]
    chosen = largest_world([each[names[0]] for each in whole]) if whole else []
    if len(chosen) < len(tasks):
        notes.append(
            f"mitigation {every[0].mitigation}{', ' * bool(every[0].setting)}{every[0].setting}: "
            f"networks are averaged over {len(chosen)} of {len(tasks)} tasks: the others lack a "
            "network, or have other test classes or seeds"
        )
    if not chosen:
        return []
    return _rows(every[0], names, [whole[place] for place in chosen], prob)


def _alike(groups: Sequence[Group], names: Sequence[str]) -> dict[str, Tallies] | None:
    """The tallies of all networks in one task, of the same queries and seeds."""
    if len(groups) < len(names):
        return None
    try:
        every = same_seeds(groups)
    except InputError:
        return None
    if not all(every[0].same_episodes(each) for each in every):
        return None
    return {group.network: each for group, each in zip(groups, every, strict=True)}


def _rows(
    example: Group, names: Sequence[str], tasks: Sequence[Mapping[str, Tallies]], prob: float
) -> list[Row]:
    strata = tasks[0][names[0]].strata
    right = {name: mean([task[name].scored["accuracy"] for task in tasks]) for name in names}
    bias: dict[str, Replicates] = {}
    for name in names:
        made = [each for task in tasks if (each := task[name].bias) is not None]
        if len(made) == len(tasks):
            bias[name] = mean(made)
    middle = mean(list(right.values()))
    leaning = mean(list(bias.values())) if len(bias) == len(names) else None
    rows: list[Row] = []
    for name in names:
        apart = score("accuracy", right[name] - middle, test=True, prob=prob)
        row: Row = {
            "others": dict(example.others), "mitigation": example.mitigation, "network": name,
            "tasks": len(tasks),
            "accuracy": {
                **score("accuracy", right[name], bounded=True, prob=prob).as_dict(),
                "apart": {
                    key: getattr(apart, key) for key in ("value", "low", "high", "p_value")
                },
            },
        }  # fmt: skip
        if leaning is not None:
            row |= {
                measure: {
                    **signed(reading(measure, bias[name], strata, prob)),
                    "apart": _apart(measure, bias[name] - leaning, strata, prob),
                }
                for measure in MEASURES
            }
        rows.append(row)
    return with_holm(rows, inside="apart")


def _apart(measure: str, gap: Replicates, strata: Ints, prob: float) -> dict[str, float]:
    one, inside = gap.at(NAMES.index(MEASURES[measure])), classes_of(measure, strata)
    low, high = one.interval(prob, inside)
    return {"value": float(one.value), "low": low, "high": high, "p_value": one.p_value(inside)}
