"""The page of a grid, and heat maps of a few-shot one: networks by tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.charts import (
    AWAY,
    BACK,
    RISING,
    Chart,
    ChartSet,
    chart_title,
    finite,
    heading,
    heatmap,
)
from evenhand.errors import InputError
from evenhand.judging import excludes, holds
from evenhand.report.blocks import Figure, PageTable, Section, write_results
from evenhand.wording import interval, number, p_value, percent, slug

ACCURACY = "accuracy"
MEASURES = {
    "association": ("Association", "log(p pro / p anti)"),
    "epsilon": ("Accuracy gap (ε)", "accuracy, pro minus anti"),
    "skew": ("Skew", "F1, men's versions minus women's"),
    "stereotype": ("Stereotype", "F1, pro minus anti"),
}
"""The label of each bias measure, and what its axis says."""
SHARES = ("epsilon", "skew", "stereotype")
"""Differences of shares, which are on one scale."""
TABLES = "The tables have all numbers."
Rows = Sequence[Mapping[str, Any]]


def grid_charts(report: Mapping[str, Any]) -> ChartSet:
    """All maps of the document of `lab grid report`; one set for each setting beside the tasks'."""
    figures = ChartSet()
    every = {name: by_setting(report.get(name) or ()) for name in ("results", "best", "effects")}
    for setting, results in every["results"].items():
        best, changes = (
            _by_mitigation(every[name].get(setting, ())) for name in ("best", "effects")
        )
        end = f"-{slug(setting)}" if setting else ""
        given: dict[str, Any] = {"setting": setting, "prob": float(report.get("prob") or 0.95)}
        for name, part in _by_mitigation(results).items():
            own, first = f"-{slug(name)}{end}", best.get(name, ())
            figures.add(f"{ACCURACY}{own}", partial(accuracy_map, part, best=first, **given))
            figures.add(f"bias{own}", partial(bias_maps, part, **given))
        for name, part in changes.items():
            figures.add(f"change-{slug(name)}{end}", partial(change_maps, part, **given))
    return figures


def write_grid(
    path: str | os.PathLike[str],
    summary: Sequence[str],
    tables: Iterable[tuple[str, Sequence[str], Sequence[Sequence[str]]]],
    charts: ChartSet | None = None,
) -> Path:
    """Write the page of a grid: heat maps, and tables of (title, headers, rows); its path."""
    caption = (
        "How to read it: one row per network, one column per task (ways, shots); the text of a box "
        "is its value, and the box itself says its interval."
    )
    drawn = charts.charts if charts else {}
    words = {name: f"{chart_title(chart) or name}. {TABLES}" for name, chart in drawn.items()}
    maps = [Figure.of(name, chart, caption, words[name]) for name, chart in drawn.items()]
    listed = [PageTable.of(title, headers, rows) for title, headers, rows in tables if rows]
    sections = [Section("maps", "Heat maps", maps), Section("tables", "Tables", listed)]
    limits = "Intervals are for new classes of the same kind."
    return write_results(path, "Results of the grid", summary, sections, limits)


def accuracy_map(results: Rows, *, setting: str = "", prob: float = 0.95, best: Rows = ()) -> Chart:
    """Accuracy; the best network of a task has a dot, filled where the second is clearly worse."""
    first = {(row["ways"], row["shots"]): row for row in best}
    rows = []
    for row in results:
        top = first.get((row["ways"], row["shots"]), {})
        ahead = top.get("ahead") or {}
        is_best = top.get("best") == row["network"]
        text = (
            f"{number(ahead.get('value'))} {_ends(ahead)} ahead of {top.get('second')}, "
            f"p {p_value(top.get('p_holm'))}"
        )
        rows.append(
            _box(
                row,
                row[ACCURACY],
                mark=_mark(is_best, bool(top.get("clear"))),
                chance=number(finite(row.get("chance"))),
                baseline=f"{number(finite(row['baseline'].get('value')))} {_ends(row['baseline'])}",
                more=text if is_best else "–",
            )
        )
    tips = {
        "value": ACCURACY,
        "interval": _level(prob),
        "chance": "chance",
        "baseline": "counting words",
        "more": "best by",
    }
    lines = [f"point at a box for its {_level(prob)}"]
    if best:
        lines.append(
            "dot: the best of its column; filled: the second is clearly worse "
            f"(p < {1 - prob:.2g} after Holm)"
        )
    return _map(rows, tips=tips, colours=RISING).properties(
        title=heading(_title("Accuracy", results, setting), *lines)
    )


def bias_maps(results: Rows, *, setting: str = "", prob: float = 0.95) -> Chart:
    """One map per bias measure, with its sign."""
    maps = {name: [_tested(row, name, prob) for row in results if name in row] for name in MEASURES}
    return _stacked(maps, {"value": "value"}, prob).properties(
        title=heading(
            _title("Gender bias", results, setting),
            "0 is no bias; above: towards the stereotype",
            _dots(prob),
        )
    )


def change_maps(changes: Rows, *, setting: str = "", prob: float = 0.95) -> Chart:
    """What a mitigation changed: the accuracy, then each measure."""
    maps = {
        name: [
            _tested(
                row,
                name,
                prob,
                before=number(finite(row[name]["before"])),
                after=number(finite(row[name]["after"])),
                effect=row[name].get("effect") or "–",
            )
            for row in changes
            if name in row
        ]
        for name in (ACCURACY, *MEASURES)
    }
    tips = {"before": "before", "after": "after", "value": "change"}
    return _stacked(maps, tips, prob, effect="effect").properties(
        title=heading(
            _title("What {} changes", changes, setting),
            "with it minus without it, on the same queries",
            _dots(prob),
        )
    )


def _map(rows: Rows, **options: Any) -> Chart:
    tasks = sorted({(row["ways"], row["shots"]) for row in rows})
    return heatmap(
        rows,
        across=[_task(ways, shots) for ways, shots in tasks],
        down=list(dict.fromkeys(row["down"] for row in rows)),
        **options,
    )


def _stacked(maps: Mapping[str, Rows], tips: Mapping[str, str], prob: float, **more: str) -> Chart:
    """Maps of tested values below each other; those of shares have one scale of colours."""
    import altair as alt

    drawn = {name: rows for name, rows in maps.items() if any(_known(row) for row in rows)}
    if not drawn:
        raise InputError("measures: expected at least one with a value, got none")
    tests = {"interval": _level(prob), "p": "p", "p_holm": "p after Holm"}
    charts = [
        _map(
            rows,
            title="Accuracy" if name == ACCURACY else ": ".join(MEASURES[name]),
            tips={**tips, **tests, **more},
            colours=BACK if name == ACCURACY else AWAY,
            labels=name == list(drawn)[-1],
            alike=[row for like in SHARES if name in SHARES for row in drawn.get(like, ())],
        )
        for name, rows in drawn.items()
    ]
    return alt.vconcat(*charts, spacing=14).resolve_scale(fill="independent")


def _known(row: Mapping[str, Any]) -> bool:
    return row["value"] is not None


def _task(ways: int, shots: int) -> str:
    return f"{ways} ways, {shots} shots"


def _box(row: Mapping[str, Any], result: Mapping[str, Any], **more: object) -> dict[str, Any]:
    value = finite(result.get("value"))
    return {
        "down": row["network"],
        "across": _task(row["ways"], row["shots"]),
        "ways": row["ways"],
        "shots": row["shots"],
        "value": value,
        "shown": number(value),
        "interval": _ends(result),
        **more,
    }


def _tested(row: Mapping[str, Any], name: str, prob: float, **more: object) -> dict[str, Any]:
    """The box of a value or change with its p-values, marked where it is clearly not 0."""
    result, mark = row[name], ""
    low, high = finite(result.get("low")), finite(result.get("high"))
    if low is not None and high is not None:
        holm = holds(finite(result.get("p_holm")), low, high, 0.0, prob)
        mark = _mark(excludes(low, high, 0.0), holm)
    tests = {"p": p_value(result.get("p_value")), "p_holm": p_value(result.get("p_holm"))}
    value = {"value": result.get("change", result.get("value"))}
    return _box(row, {**result, **value}, mark=mark, **more, **tests)


def _mark(there: bool, filled: bool) -> str:
    return "" if not there else "●" if filled else "○"


def _dots(prob: float) -> str:
    return (
        f"dot: the {_level(prob)} excludes 0; filled: also after correction for the number of "
        f"boxes (p < {1 - prob:.2g} after Holm)"
    )


def _level(prob: float) -> str:
    return f"{percent(prob)} interval"


def _ends(result: Mapping[str, Any]) -> str:
    return interval(finite(result.get("low")), finite(result.get("high")))


def _title(text: str, part: Rows, setting: str) -> str:
    name = part[0]["mitigation"]
    title = text.format(f"'{name}'") if "{}" in text else f"{text}, mitigation '{name}'"
    return f"{title} ({setting})" if setting else title


def by_setting(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by what varies in the grid beside network, task, mitigation and seed."""
    by_setting: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = ", ".join(f"{axis} {value}" for axis, value in (row.get("others") or {}).items())
        by_setting.setdefault(name, []).append(row)
    return by_setting


def _by_mitigation(rows: Rows) -> dict[str, Rows]:
    names = dict.fromkeys(row["mitigation"] for row in rows)
    return {name: [row for row in rows if row["mitigation"] == name] for name in names}
