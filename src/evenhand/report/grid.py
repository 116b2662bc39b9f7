"""The page of a grid, and heat maps of a few-shot one: networks by tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from evenhand.report.blocks import Figure, Section, Table, write_results
from evenhand.report.fewshot import ACCURACY, MEASURES
from evenhand.wording import interval, number, p_value, percent, slug

SHARES = ("epsilon", "skew", "stereotype")
"""Differences of shares, which are on one scale."""
Rows = Sequence[Mapping[str, Any]]


def grid_charts(report: Mapping[str, Any]) -> ChartSet:
    """All maps of the document of `grid report`; one set for each setting beside the tasks'."""
    figures = ChartSet()
    prob = float(report.get("prob") or 0.95)
    for setting, results in _by_setting(report.get("results") or ()).items():
        best = _by_setting(report.get("best") or ()).get(setting, [])
        changes = _by_setting(report.get("effects") or ()).get(setting, [])
        end = f"-{slug(setting)}" if setting else ""
        given: dict[str, Any] = {"setting": setting, "prob": prob}
        for name in dict.fromkeys(row["mitigation"] for row in results):
            part = [row for row in results if row["mitigation"] == name]
            first = [row for row in best if row["mitigation"] == name]
            own = f"-{slug(name)}{end}"
            figures.add(f"{ACCURACY}{own}", partial(accuracy_map, part, best=first, **given))
            figures.add(f"bias{own}", partial(bias_maps, part, **given))
        for name in dict.fromkeys(row["mitigation"] for row in changes):
            part = [row for row in changes if row["mitigation"] == name]
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
    maps = [
        Figure.of(
            name, chart, caption, f"{chart_title(chart) or name}. The tables have all numbers."
        )
        for name, chart in (charts.charts if charts else {}).items()
    ]
    listed = [Table.of(title, headers, rows) for title, headers, rows in tables if rows]
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
    tips = {"value": "value", "interval": _level(prob), "p": "p", "p_holm": "p after Holm"}
    maps = {
        measure: [
            _box(row, row[measure], mark=_clear(row[measure], prob), **_tests(row[measure]))
            for row in results
            if measure in row
        ]
        for measure in MEASURES
    }
    return _stacked(maps, tips, lambda _: AWAY).properties(
        title=heading(
            _title("Gender bias", results, setting),
            "0 is no bias; above: towards the stereotype",
            _dots(prob),
        )
    )


def change_maps(changes: Rows, *, setting: str = "", prob: float = 0.95) -> Chart:
    """What a mitigation changed: the accuracy, then each measure."""
    tips = {
        "before": "before",
        "after": "after",
        "value": "change",
        "interval": _level(prob),
        "p": "p",
        "p_holm": "p after Holm",
        "effect": "effect",
    }
    maps = {
        figure: [
            _box(
                row,
                {**row[figure], "value": row[figure]["change"]},
                mark=_clear(row[figure], prob),
                before=number(finite(row[figure]["before"])),
                after=number(finite(row[figure]["after"])),
                effect=row[figure].get("effect") or "–",
                **_tests(row[figure]),
            )
            for row in changes
            if figure in row
        ]
        for figure in (ACCURACY, *MEASURES)
    }
    return _stacked(maps, tips, lambda figure: BACK if figure == ACCURACY else AWAY).properties(
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


def _stacked(
    maps: Mapping[str, Rows], tips: Mapping[str, str], colours: Callable[[str], tuple[str, ...]]
) -> Chart:
    import altair as alt

    drawn = {
        name: rows for name, rows in maps.items() if any(row["value"] is not None for row in rows)
    }
    if not drawn:
        raise InputError("measures: expected at least one with a value, got none")
    charts = [
        _map(
            rows,
            title=_heading(name),
            tips=tips,
            colours=colours(name),
            labels=name == list(drawn)[-1],
            alike=[row for like in SHARES if name in SHARES for row in drawn.get(like, ())],
        )
        for name, rows in drawn.items()
    ]
    return alt.vconcat(*charts, spacing=14).resolve_scale(fill="independent")


def _task(ways: int, shots: int) -> str:
    return f"{ways} ways, {shots} shots"


def _heading(figure: str) -> str:
    return "Accuracy" if figure == ACCURACY else ": ".join(MEASURES[figure])


def _box(row: Mapping[str, Any], result: Mapping[str, Any], **more: Any) -> dict[str, Any]:
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


def _tests(result: Mapping[str, Any]) -> dict[str, str]:
    return {"p": p_value(result.get("p_value")), "p_holm": p_value(result.get("p_holm"))}


def _clear(result: Mapping[str, Any], prob: float) -> str:
    """Whether the value is clearly not 0: by its interval, and after Holm's correction."""
    low, high = finite(result.get("low")), finite(result.get("high"))
    if low is None or high is None:
        return ""
    holm = holds(finite(result.get("p_holm")), low, high, 0.0, prob)
    return _mark(excludes(low, high, 0.0), holm)


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


def _by_setting(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by what varies in the grid beside network, task, mitigation and seed."""
    by_setting: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = ", ".join(f"{axis} {value}" for axis, value in (row.get("others") or {}).items())
        by_setting.setdefault(name, []).append(row)
    return by_setting
