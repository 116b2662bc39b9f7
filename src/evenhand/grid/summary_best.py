"""The best network of each task, and whether the second is clearly worse.

Who is best is seen in the same answers that the difference is measured in, so that the difference
to the second is too large by selection. Its p-value is Holm's over all pairs of networks of the
task, whichever came out best, and then over all tasks of the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.fewshot.runs.tallies import Tallies, accuracy
from evenhand.fewshot.statistics import score
from evenhand.grid.summary_groups import Group, corrected, same_seeds

__all__ = ["best_networks"]


def best_networks(groups: Sequence[Group], prob: float, notes: list[str]) -> list[dict[str, Any]]:
    """A row a task and mitigation that has several networks."""
    tasks: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        tasks.setdefault((group.setting, group.mitigation, group.task), []).append(group)
    rows = []
    for _, every in sorted(tasks.items(), key=lambda one: _place(one[0], groups)):
        if len(every) < 2:
            continue
        try:
            rows.append(_best(every, same_seeds(every), prob))
        except InputError as error:
            names = ", ".join(each.network for each in every)
            notes.append(f"{every[0].name}: networks not compared ({names}): {error}")
    for row, p in zip(rows, corrected([row["p_pairs"] for row in rows]), strict=True):
        row["p_holm"] = p
        row["clear"] = p < 1 - prob
    return rows


def _best(every: Sequence[Group], tallies: Sequence[Tallies], prob: float) -> dict[str, Any]:
    scores = [accuracy(each, prob=prob) for each in tallies]
    order = sorted(range(len(every)), key=lambda i: -scores[i].value)
    pairs = {}
    for worse, better in itertools.combinations(reversed(order), 2):
        if not tallies[worse].same_episodes(tallies[better]):
            raise InputError("expected the same test queries, got other ones")
        gap = tallies[better].scored["accuracy"] - tallies[worse].scored["accuracy"]
        pairs[worse, better] = score("accuracy", gap, test=True, prob=prob)
    first, second = order[:2]
    adjusted = dict(zip(pairs, corrected([_p(one.p_value) for one in pairs.values()]), strict=True))
    told = every[first].as_dict()
    told.pop("network")
    return {
        **told, "networks": len(every), "best": every[first].network,
        "accuracy": scores[first].as_dict(), "second": every[second].network,
        "second_accuracy": scores[second].as_dict(), "ahead": pairs[second, first].as_dict(),
        "p_pairs": adjusted[second, first],
    }  # fmt: skip


def _place(key: tuple[Any, ...], groups: Sequence[Group]) -> tuple[Any, ...]:
    """Mitigations in the order of the grid, and the tasks of each together."""
    setting, mitigation, task = key
    order = list(dict.fromkeys((group.setting, group.mitigation) for group in groups))
    return order.index((setting, mitigation)), task


def _p(value: float | None) -> float:
    return float("nan") if value is None else value
