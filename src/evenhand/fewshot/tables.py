"""Tables of many few-shot runs, in which those that differ only in their seed are one result.

- `results`: each network, task and mitigation, with intervals for new classes;
- `best`: the best network of each task;
- `effects`: what each mitigation changed in each setting, paired on the same queries;
- `networks`, `mitigations`: the means over all tasks.

Bias measures have their signs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import InputError
from evenhand.fewshot.answers import Tallies, check_same_queries, paired
from evenhand.fewshot.groups import NO_MITIGATION, CellGroup, common_tallies, largest_comparable
from evenhand.fewshot.means import mean
from evenhand.fewshot.metrics.accuracy import scores, share
from evenhand.fewshot.metrics.bias import (
    MEASURES,
    VALUES,
    bias_replicates,
    measure_strata,
    read_measure,
    read_originals,
)
from evenhand.fewshot.settings import StepProgress
from evenhand.instruments import Run
from evenhand.judging import is_below
from evenhand.results import Measurement
from evenhand.statistics.jackknife import Ints, Replicates
from evenhand.statistics.tests import holm

Row = dict[str, Any]
FIGURES = ("accuracy", *MEASURES)
"""The figures of a result, of a change and of a network."""
ALL = "all"
"""The mean over networks, in place of a network."""


def make_tables(
    groups: Sequence[CellGroup],
    notes: list[str],
    *,
    prob: float = 0.95,
    progress: StepProgress | None = None,
) -> dict[str, list[Row]]:
    """Make all tables of the groups; `notes` receives what could not be compared, and why."""
    makers = {
        "results": _tabulate_results,
        "best": _tabulate_best,
        "effects": _tabulate_effects,
        "networks": _tabulate_networks,
        "mitigations": _tabulate_mitigations,
    }
    tables = {}
    for done, (name, tabulate) in enumerate(makers.items()):
        if progress is not None:
            progress(f"table: {name}", done, len(makers), "")
        tables[name] = tabulate(groups, Run(prob=prob), notes)
    return tables


# ---- the figures of a setting, or of a mean over settings


@dataclass(frozen=True, eq=False)
class SettingScores:
    """Accuracy and bias with their replicates; `bias` is None where none can be measured."""

    accuracy: Replicates
    bias: Replicates | None
    strata: Ints

    @classmethod
    def of(cls, tallies: Tallies) -> SettingScores:
        return cls(scores(tallies)["accuracy"], bias_replicates(tallies), tallies.strata)

    @classmethod
    def mean(cls, settings: Sequence[SettingScores]) -> SettingScores:
        """Average over settings with the same test classes."""
        known = [setting.bias for setting in settings if setting.bias is not None]
        bias = mean(known) if len(known) == len(settings) else None
        return cls(mean([setting.accuracy for setting in settings]), bias, settings[0].strata)

    def __sub__(self, other: SettingScores) -> SettingScores:
        known = self.bias is not None and other.bias is not None
        bias = self.bias - other.bias if known else None  # type: ignore[operator]
        return SettingScores(self.accuracy - other.accuracy, bias, self.strata)

    def columns(self) -> Iterator[tuple[str, Replicates, Ints | None]]:
        """Yield each figure with its replicates and the strata of its interval."""
        yield "accuracy", self.accuracy, None
        if self.bias is not None:
            for name, value in MEASURES.items():
                column = self.bias.at(VALUES.index(value))
                yield name, column, measure_strata(name, self.strata)

    def measure(self, run: Run) -> dict[str, Measurement]:
        """Measure each figure."""
        measured = {"accuracy": share(self.accuracy, run, "")}
        if self.bias is not None:
            measured |= {name: read_measure(name, self.bias, self.strata, run) for name in MEASURES}
        return measured

    def gaps(self, run: Run) -> dict[str, Row]:
        """Return each figure of a difference of scores, tested against 0."""
        rows = {}
        for name, column, strata in self.columns():
            low, high = column.interval(run.prob, strata)
            p = column.p_value(strata)
            rows[name] = {"value": float(column.value), "low": low, "high": high, "p_value": p}
        return rows

    def changes(self, before: SettingScores, run: Run) -> dict[str, Row]:
        """Return each figure before, after, and its change with interval and p-value."""
        old, new = before.measure(run), self.measure(run)
        rows = {}
        for name, column, strata in (self - before).columns():
            change = paired(old[name], new[name], column, strata)
            rows[name] = {
                "before": change.before.value,
                "after": change.after.value,
                "change": change.change.value,
                "low": change.change.low,
                "high": change.change.high,
                "p_value": math.nan if change.p_value is None else change.p_value,
                **({} if name == "accuracy" else {"effect": change.effect}),
            }
        return rows


def _figures(measured: Mapping[str, Measurement]) -> dict[str, Row]:
    return {
        name: _accuracy_row(m) if name == "accuracy" else {**_row(m), "classes": m.n}
        for name, m in measured.items()
    }


def _accuracy_row(m: Measurement) -> Row:
    return {**_row(m), "interval": m.interval, "prob": m.prob, **m.details}


def _row(m: Measurement) -> Row:
    p = math.nan if m.p_value is None else m.p_value
    return {"value": m.value, "low": m.low, "high": m.high, "p_value": p}


def _holm(p_values: Sequence[float]) -> list[float]:
    """Apply Holm's correction to the p-values that are known.

    >>> _holm([0.01, float("nan"), 0.04])
    [0.02, nan, 0.04]
    """
    known = iter(holm([p for p in p_values if not math.isnan(p)]))
    return [math.nan if math.isnan(p) else next(known) for p in p_values]


def _adjust(rows: list[Row], figures: Iterable[str] = FIGURES, part: str = "") -> list[Row]:
    """Add `p_holm` to each figure, corrected over all rows that have it.

    `part` is the part of a figure that has the p-value, where it is not the figure itself.
    """
    for figure in figures:
        tested = [row[figure][part] if part else row[figure] for row in rows if figure in row]
        for entry, p in zip(tested, _holm([e["p_value"] for e in tested]), strict=True):
            entry["p_holm"] = p
    return rows


# ---- the tables


def _tabulate_results(groups: Sequence[CellGroup], run: Run, _: list[str]) -> list[Row]:
    rows = []
    for group in groups:
        tallies = group.tallies
        own = SettingScores.of(tallies)
        originals = [] if own.bias is None else read_originals(own.bias, own.strata, run)
        rows.append(
            {
                **group.to_dict(),
                "seeds": list(group.by_seed),
                "missing_seeds": list(group.missing_seeds),
                "splits": tallies.splits,
                "runs": tallies.splits * tallies.repeats,
                "chance": group.chance,
                "baseline": dict(group.baseline),
                **_figures(own.measure(run)),
                **{
                    m.query: {"value": m.value, "low": m.low, "high": m.high, "classes": m.n}
                    for m in originals
                },
            }
        )
    return _adjust(rows, MEASURES)


def _tabulate_best(groups: Sequence[CellGroup], run: Run, notes: list[str]) -> list[Row]:
    """Make one row per task and mitigation with several networks.

    Notes
    -----
    The best network is chosen by the same answers in which the difference is measured, so that
    the difference from the second is too large by selection. Its p-value is Holm's over all pairs
    of networks of the task, and then over all tasks of the table.
    """
    by_setting: dict[tuple[str, str], dict[Any, list[CellGroup]]] = {}
    for group in groups:
        tasks = by_setting.setdefault((group.setting, group.mitigation), {})
        tasks.setdefault(group.task, []).append(group)
    rows = []
    for competing in (c for tasks in by_setting.values() for _, c in sorted(tasks.items())):
        if len(competing) < 2:
            continue
        try:
            rows.append(_compare_best(competing, run))
        except InputError as error:
            names = ", ".join(group.network for group in competing)
            notes.append(f"{competing[0].name}: networks not compared ({names}): {error}")
    for row, p in zip(rows, _holm([row["p_pairs"] for row in rows]), strict=True):
        row["p_holm"] = p
        row["clear"] = is_below(p, 1 - run.prob)
    return rows


def _compare_best(groups: Sequence[CellGroup], run: Run) -> Row:
    tallies = common_tallies(groups)
    accuracies = [scores(tally)["accuracy"] for tally in tallies]
    order = sorted(range(len(groups)), key=lambda index: -float(accuracies[index].value))
    pairs = {}
    for worse, better in itertools.combinations(reversed(order), 2):
        if not tallies[worse].same_queries(tallies[better]):
            raise InputError("expected the same test queries, got other ones")
        gap = accuracies[better] - accuracies[worse]
        pairs[worse, better] = _accuracy_row(share(gap, run, "", gap=True))
    first, second = order[:2]
    adjusted = dict(zip(pairs, _holm([pair["p_value"] for pair in pairs.values()]), strict=True))
    row = groups[first].to_dict()
    row.pop("network")
    return {
        **row,
        "networks": len(groups),
        "best": groups[first].network,
        "accuracy": _accuracy_row(share(accuracies[first], run, "")),
        "second": groups[second].network,
        "second_accuracy": _accuracy_row(share(accuracies[second], run, "")),
        "ahead": pairs[second, first],
        "p_pairs": adjusted[second, first],
    }


Pair = tuple[CellGroup, Tallies, Tallies]


def _tabulate_effects(groups: Sequence[CellGroup], run: Run, notes: list[str]) -> list[Row]:
    """Compare each mitigation with none, for each network and task, on the same queries."""
    return _adjust(
        [
            {
                **group.to_dict(),
                "seeds": before.repeats,
                **SettingScores.of(after).changes(SettingScores.of(before), run),
            }
            for group, before, after in _pair_with_none(groups, notes)
        ]
    )


def _tabulate_mitigations(groups: Sequence[CellGroup], run: Run, notes: list[str]) -> list[Row]:
    """Average the effect of each mitigation over all settings, then over the tasks of a network.

    p-values are Holm's within each figure: over the mitigations, and over all rows of networks.
    """
    sets: dict[tuple[str, str, str], list[Pair]] = {}
    for pair in _pair_with_none(groups, []):  # `_tabulate_effects` has noted what is missing
        group = pair[0]
        for network in (ALL, group.network):
            sets.setdefault((group.setting, group.mitigation, network), []).append(pair)
    rows: list[Row] = []
    for (_, mitigation, network), pairs in sets.items():
        chosen = [pairs[index] for index in largest_comparable([pair[1] for pair in pairs])]
        if len(chosen) < len(pairs):
            notes.append(
                f"{mitigation}, network {network}: averaged over {len(chosen)} of {len(pairs)} "
                "settings: the others have other test classes or seeds"
            )
        before, after = (
            SettingScores.mean([SettingScores.of(tallies) for tallies in side])
            for side in zip(*(pair[1:] for pair in chosen), strict=True)
        )
        rows.append(
            {
                "others": dict(pairs[0][0].others),
                "mitigation": mitigation,
                "network": network,
                "settings": len(chosen),
                "of": len(pairs),
                **after.changes(before, run),
            }
        )
    return [
        *_adjust([row for row in rows if row["network"] == ALL]),
        *_adjust([row for row in rows if row["network"] != ALL]),
    ]


def _pair_with_none(groups: Sequence[CellGroup], notes: list[str]) -> Iterator[Pair]:
    """Yield each group with a mitigation, the tallies without it, and those with it."""
    without = {
        (group.setting, group.network, group.task): group
        for group in groups
        if group.mitigation == NO_MITIGATION
    }
    for group in groups:
        if group.mitigation == NO_MITIGATION:
            continue
        other = without.get((group.setting, group.network, group.task))
        try:
            if other is None:
                raise InputError("that has no result")
            before, after = common_tallies([other, group])
            check_same_queries(before, after)
            yield group, before, after
        except InputError as error:
            notes.append(f"{group.name}: not compared with {NO_MITIGATION}: {error}")


def _tabulate_networks(groups: Sequence[CellGroup], run: Run, notes: list[str]) -> list[Row]:
    """Average the accuracy and bias of each network over the tasks that all networks have.

    `difference` is from the mean of all networks on the same queries; p-values are Holm's within
    each figure, over the networks of a mitigation.
    """
    sets: dict[tuple[str, str], list[CellGroup]] = {}
    for group in groups:
        sets.setdefault((group.setting, group.mitigation), []).append(group)
    rows: list[Row] = []
    for members in sets.values():
        names = list(dict.fromkeys(group.network for group in members))
        if len(names) > 1:
            rows += _compare_networks(members, names, run, notes)
    return rows


def _compare_networks(
    groups: Sequence[CellGroup], names: Sequence[str], run: Run, notes: list[str]
) -> list[Row]:
    tasks = list(dict.fromkeys(group.task for group in groups))
    by_task = [_tallies_by_network([g for g in groups if g.task == t], names) for t in tasks]
    complete = [tallies for tallies in by_task if tallies is not None]
    chosen = largest_comparable([tallies[names[0]] for tallies in complete])
    first = groups[0]
    if len(chosen) < len(tasks):
        setting = f", {first.setting}" if first.setting else ""
        notes.append(
            f"mitigation {first.mitigation}{setting}: networks are averaged over {len(chosen)} of "
            f"{len(tasks)} tasks: the others lack a network, or have other test classes or seeds"
        )
    if not chosen:
        return []
    by_network = {
        name: SettingScores.mean([SettingScores.of(complete[index][name]) for index in chosen])
        for name in names
    }
    centre = SettingScores.mean(list(by_network.values()))
    rows: list[Row] = []
    for name, own in by_network.items():
        figures, gaps = _figures(own.measure(run)), (own - centre).gaps(run)
        rows.append(
            {
                "others": dict(first.others),
                "mitigation": first.mitigation,
                "network": name,
                "tasks": len(chosen),
                **{figure: {**figures[figure], "difference": gap} for figure, gap in gaps.items()},
            }
        )
    return _adjust(rows, part="difference")


def _tallies_by_network(
    groups: Sequence[CellGroup], names: Sequence[str]
) -> dict[str, Tallies] | None:
    """Return the tallies of all networks in one task, on the same queries and seeds."""
    if len(groups) < len(names):
        return None
    try:
        tallies = common_tallies(groups)
    except InputError:
        return None
    if not all(tallies[0].same_queries(tally) for tally in tallies):
        return None
    return {group.network: tally for group, tally in zip(groups, tallies, strict=True)}


# ---- columns

KEYS = ("value", "before", "after", "change", "low", "high", "naive_low", "naive_high")
COLUMNS = (*KEYS, "p_value", "p_holm", "effect")
"""The entries of a figure that become columns, in this order."""


def flatten(row: Mapping[str, Any]) -> Row:
    """Write a row as columns: `accuracy`, `accuracy_low` and so on.

    >>> flatten({"others": {"data": "a"}, "ways": 2, "seeds": [1, 2],
    ...          "accuracy": {"value": 0.5, "low": 0.4, "interval": "text"}})
    {'data': 'a', 'ways': 2, 'seeds': '1 2', 'accuracy': 0.5, 'accuracy_low': 0.4}
    """
    columns: Row = {}
    for name, value in row.items():
        if name == "others":
            columns |= value
        elif isinstance(value, Mapping):
            columns |= _figure_columns(name, value)
        elif isinstance(value, list):
            columns[name] = " ".join(map(str, value))
        else:
            columns[name] = value
    return columns


def _figure_columns(name: str, figure: Mapping[str, Any]) -> Row:
    columns = {
        name if key in ("value", "change") else f"{name}_{key}": figure[key]
        for key in COLUMNS
        if figure.get(key) is not None
    }
    if "difference" in figure:
        columns |= _figure_columns(f"{name}_difference", figure["difference"])
    return columns
