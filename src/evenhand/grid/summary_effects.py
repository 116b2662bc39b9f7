"""What each mitigation changes against none: in each setting, and over all settings as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.fewshot.bias.change import Change, changed
from evenhand.fewshot.bias.measures import MEASURES
from evenhand.fewshot.runs.tallies import Tallies, difference
from evenhand.fewshot.statistics import score
from evenhand.grid.summary_groups import Group, largest_world, same_seeds, with_holm
from evenhand.grid.summary_pooled import mean

__all__ = ["ALL", "NONE", "effects", "mitigations"]

NONE, ALL = "none", "all"

Row = dict[str, Any]
Pair = tuple[Group, Tallies, Tallies]


def effects(groups: Sequence[Group], prob: float, notes: list[str]) -> list[Row]:
    """Each mitigation against none, for each network and task, paired on the same queries.

    p-values are Holm's within each figure, over all rows.
    """
    rows = []
    for group, before, after in _pairs(groups, notes):
        was, now = (float(each.scored["accuracy"].value) for each in (before, after))
        found = difference(before, after, prob=prob)
        rows.append({**group.as_dict(), "seeds": before.repeats, **_told(found, was, now)})
    return with_holm(rows)


def mitigations(groups: Sequence[Group], prob: float, notes: list[str]) -> list[Row]:
    """The mean effect of each mitigation over all settings, then over the tasks of each network.

    p-values are Holm's within each figure: over the mitigations, and over all rows of networks.
    """
    sets: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in _pairs(groups, []):  # what is amiss is told by `effects`
        group = pair[0]
        for network in (ALL, group.network):
            sets.setdefault((group.setting, group.mitigation, network), []).append(pair)
    rows = []
    for (_, mitigation, network), pairs in sets.items():
        chosen = [pairs[place] for place in largest_world([before for _, before, _ in pairs])]
        if len(chosen) < len(pairs):
            notes.append(
                f"{mitigation}, network {network}: averaged over {len(chosen)} of {len(pairs)} "
                "settings: the others have other test classes or seeds"
            )
        rows.append({
            "others": dict(pairs[0][0].others), "mitigation": mitigation, "network": network,
            "settings": len(chosen), "of": len(pairs),
            **_mean_effect([pair[1] for pair in chosen], [pair[2] for pair in chosen], prob),
        })  # fmt: skip
    return [
        *with_holm([row for row in rows if row["network"] == ALL]),
        *with_holm([row for row in rows if row["network"] != ALL]),
    ]


def _pairs(groups: Sequence[Group], notes: list[str]) -> Iterator[Pair]:
    """Each group with a mitigation, its tallies without one, and with it."""
    without = {
        (group.setting, group.network, group.task): group
        for group in groups
        if group.mitigation == NONE
    }
    for group in groups:
        if group.mitigation == NONE:
            continue
        before = without.get((group.setting, group.network, group.task))
        try:
            if before is None:
                raise InputError("that has no result")
            one, two = same_seeds([before, group])
            if not one.same_episodes(two):
                difference(one, two)  # says why
            yield group, one, two
        except InputError as error:
            notes.append(f"{group.name}: not compared with {NONE}: {error}")


def _mean_effect(before: Sequence[Tallies], after: Sequence[Tallies], prob: float) -> Row:
    was, now = (mean([each.scored["accuracy"] for each in side]) for side in (before, after))
    gained = score("accuracy", now - was, test=True, prob=prob)
    bias = [[made for each in side if (made := each.bias) is not None] for side in (before, after)]
    if any(len(side) < len(before) for side in bias):
        return _told(Change(accuracy=gained, measures={}), float(was.value), float(now.value))
    measures = changed(mean(bias[0]), mean(bias[1]), before[0].strata, prob)
    return _told(Change(accuracy=gained, measures=measures), float(was.value), float(now.value))


def _told(change: Change, before: float, after: float) -> Row:
    """A change of each figure: before, after, and the change with its interval and p-value."""
    gained = change.accuracy
    found: Row = {
        "accuracy": {
            "before": before, "after": after, "change": gained.value, "low": gained.low,
            "high": gained.high, "p_value": gained.p_value,
        }
    }  # fmt: skip
    for name in MEASURES:
        if name in change.measures:
            one = change[name].as_dict()
            found[name] = {key: one[key] for key in one if key not in ("metric", "prob")}
    return found
