"""What came of a few-shot grid: accuracy and bias of every setting, and what follows from them.

Cells that differ in their seed alone are one result; class splits are inside a cell. Tables:

- `results`: each network, task and mitigation, with intervals for new classes;
- `best`: the best network of each task;
- `effects`: what each mitigation changed in each setting, paired on the same queries;
- `networks`, `mitigations`: the same over all tasks as one.

Bias measures are told with their signs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.fewshot.bias.measures import MEASURES
from evenhand.fewshot.runs.tallies import accuracy, bias_values
from evenhand.grid.summary import Found, Row, Summary
from evenhand.grid.summary_best import best_networks
from evenhand.grid.summary_effects import effects, mitigations
from evenhand.grid.summary_groups import Group, groups_of, signed, with_holm
from evenhand.grid.summary_networks import networks
from evenhand.grid.tasks import Progress

__all__ = ["fewshot_summary"]

PLAIN = {
    "score": ("value", "low", "high", "naive_low", "naive_high", "p_value", "p_holm"),
    "change": ("before", "after", "change", "low", "high", "p_value", "p_holm", "direction"),
    "apart": ("value", "low", "high", "p_value", "p_holm"),
}
"""What a table has of each kind of figure, in this order."""


def fewshot_summary(found: Found, prob: float, progress: Progress | None = None) -> Summary:
    """All tables of a few-shot grid."""
    notes: list[str] = []
    groups = groups_of(found, notes)
    content: dict[str, Any] = {"prob": prob}
    for done, (name, make) in enumerate(TABLES.items()):
        if progress is not None:
            progress(f"table: {name}", done, len(TABLES), "")
        content[name] = make(groups, prob, notes)
    tables = {
        name: [_flat(row) for row in rows]
        for name, rows in content.items()
        if isinstance(rows, list) and rows
    }
    return Summary(found=found, tables=tables, content=content, notes=tuple(dict.fromkeys(notes)))


def _results(groups: Sequence[Group], prob: float, notes: list[str]) -> list[Row]:  # noqa: ARG001
    return with_holm([_result(group, prob) for group in groups], MEASURES)


def _result(group: Group, prob: float) -> Row:
    made = group.tallies
    return {
        **group.as_dict(), "seeds": list(group.seeds), "missing_seeds": list(group.lacking),
        "splits": made.splits, "runs": made.splits * made.repeats, "chance": group.chance,
        "floor": dict(group.floor), "accuracy": accuracy(made, prob=prob).as_dict(),
        **{name: signed(one) for name, one in bias_values(made, prob=prob).items()},
    }  # fmt: skip


def _flat(row: Mapping[str, Any]) -> Row:
    """A row as columns: `accuracy`, `accuracy_low` and so on.

    >>> _flat({"others": {"data": "a"}, "ways": 2, "seeds": [1, 2],
    ...        "accuracy": {"value": 0.5, "low": 0.4, "interval": "words"}})
    {'data': 'a', 'ways': 2, 'seeds': '1 2', 'accuracy': 0.5, 'accuracy_low': 0.4}
    """
    made: Row = {}
    for name, value in row.items():
        if name == "others":
            made |= value
        elif isinstance(value, Mapping):
            made |= _columns(name, value)
        elif isinstance(value, list):
            made[name] = " ".join(map(str, value))
        else:
            made[name] = value
    return made


def _columns(name: str, figure: Mapping[str, Any]) -> Row:
    kind = "change" if "change" in figure else "score"
    made = {
        name if key in ("value", "change") else f"{name}_{key}": figure[key]
        for key in PLAIN[kind]
        if figure.get(key) is not None
    }
    if "apart" in figure:
        apart = figure["apart"]
        made |= {
            f"{name}_apart{'' if key == 'value' else '_' + key}": apart[key]
            for key in PLAIN["apart"]
        }
    return made


TABLES: dict[str, Callable[[Sequence[Group], float, list[str]], list[Row]]] = {
    "results": _results, "best": best_networks, "effects": effects, "networks": networks,
    "mitigations": mitigations,
}  # fmt: skip
