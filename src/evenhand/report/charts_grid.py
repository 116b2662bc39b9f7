"""Heat maps of a few-shot grid: networks by tasks, for accuracy, bias and what mitigations change.

A box has its value; pointing at it tells the interval. Boxes keep their colours on dark paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import Chart
from evenhand.report.charts_fewshot_bias import MEASURES
from evenhand.report.charts_fewshot_parts import finite
from evenhand.report.charts_grid_boxes import AWAY, BACK, RISING, boxes
from evenhand.report.charts_posterior_parts import titled
from evenhand.report.charts_saving import ChartSet
from evenhand.report.tables import slug
from evenhand.report.wording import interval, number, p_value, percent

__all__ = ["accuracy_map", "bias_maps", "change_maps", "grid_charts"]

SHARES = ("epsilon", "skew", "stereotype")
"""Differences of shares, which can be held against each other."""
Rows = Sequence[Mapping[str, Any]]


def grid_charts(report: Mapping[str, Any]) -> ChartSet:
    """All maps of the document of `grid report`; one set for each setting beside the tasks'."""
    made = ChartSet()
    prob = float(report.get("prob") or 0.95)
    for setting, results in _by_setting(report.get("results") or ()).items():
        best = _by_setting(report.get("best") or ()).get(setting, [])
        changes = _by_setting(report.get("effects") or ()).get(setting, [])
        end = f"-{slug(setting)}" if setting else ""
        for name in dict.fromkeys(row["mitigation"] for row in results):
            part = [row for row in results if row["mitigation"] == name]
            first = [row for row in best if row["mitigation"] == name]
            own = f"-{slug(name)}{end}"
            made.add(f"accuracy{own}", _map(accuracy_map, part, setting, prob, best=first))
            made.add(f"bias{own}", _map(bias_maps, part, setting, prob))
        for name in dict.fromkeys(row["mitigation"] for row in changes):
            part = [row for row in changes if row["mitigation"] == name]
            made.add(f"change-{slug(name)}{end}", _map(change_maps, part, setting, prob))
    return made


def accuracy_map(results: Rows, *, setting: str = "", prob: float = 0.95, best: Rows = ()) -> Chart:
    """Accuracy; the best network of a task has a dot, filled where the second is clearly worse."""
    first = {(row["ways"], row["shots"]): row for row in best}
    values = []
    for row in results:
        top = first.get((row["ways"], row["shots"]), {})
        ahead = top.get("ahead") or {}
        is_best = top.get("best") == row["network"]
        words = (
            f"{number(ahead.get('value'))} {_ends(ahead)} before {top.get('second')}, "
            f"p {p_value(top.get('p_holm'))}"
        )
        values.append(
            _box(
                row, row["accuracy"], mark=_mark(is_best, bool(top.get("clear"))),
                chance=number(finite(row.get("chance"))),
                baseline=f"{number(finite(row['baseline'].get('value')))} {_ends(row['baseline'])}",
                more=words if is_best else "–",
            )
        )  # fmt: skip
    tips = {
        "value": "accuracy", "interval": _level(prob), "chance": "chance",
        "baseline": "counting words", "more": "best by",
    }  # fmt: skip
    below = [f"pointing at a box tells its {_level(prob)}"]
    if best:
        below.append(
            "dot: the best of its column; filled: the second is clearly worse "
            f"(p < {1 - prob:.2g} after Holm)"
        )
    return boxes(values, "", tips, RISING).properties(
        title=titled(_title("Accuracy", results, setting), *below)
    )


def bias_maps(results: Rows, *, setting: str = "", prob: float = 0.95) -> Chart:
    """A map a bias measure, with its sign."""
    tips = {"value": "value", "interval": _level(prob), "p": "p", "p_holm": "p after Holm"}
    panels = {
        measure: [
            _box(row, row[measure], mark=_clear(row[measure], prob), **_tests(row[measure]))
            for row in results
            if measure in row
        ]
        for measure in MEASURES
    }
    return _stacked(panels, tips, lambda _: AWAY).properties(
        title=titled(
            _title("Gender bias", results, setting), "0 is no bias; above: for stereotypes",
            *_dots(prob),
        )
    )  # fmt: skip


def change_maps(changes: Rows, *, setting: str = "", prob: float = 0.95) -> Chart:
    """What a mitigation changed: the accuracy, then each measure."""
    tips = {
        "before": "before", "after": "after", "value": "change", "interval": _level(prob),
        "p": "p", "p_holm": "p after Holm", "direction": " ",
    }  # fmt: skip
    panels: dict[str, list[dict[str, Any]]] = {}
    for figure in ("accuracy", *MEASURES):
        panels[figure] = [
            _box(
                row, {**row[figure], "value": row[figure]["change"]},
                mark=_clear(row[figure], prob),
                before=number(finite(row[figure]["before"])),
                after=number(finite(row[figure]["after"])),
                direction=row[figure].get("direction") or " ", **_tests(row[figure]),
            )
            for row in changes
            if figure in row
        ]  # fmt: skip
    return _stacked(panels, tips, lambda figure: BACK if figure == "accuracy" else AWAY).properties(
        title=titled(
            _title("What {} changes", changes, setting),
            "with it less without it, on the same queries", *_dots(prob),
        )
    )  # fmt: skip


def _map(make: Callable[..., Chart], part: Rows, setting: str, prob: float, **more: Any) -> Any:
    """The making of a chart, for when it is asked for."""
    return lambda: make(part, setting=setting, prob=prob, **more)


def _stacked(
    panels: Mapping[str, Sequence[Mapping[str, Any]]],
    tips: Mapping[str, str],
    colours: Callable[[str], tuple[str, ...]],
) -> Chart:
    import altair as alt

    drawn = {
        name: values
        for name, values in panels.items()
        if any(one["value"] is not None for one in values)
    }
    if not drawn:
        raise InputError("measures: expected at least one with a value, got none")
    made = [
        boxes(
            values, _heading(name), tips, colours(name), last=name == list(drawn)[-1],
            alike=[one for like in SHARES if name in SHARES for one in drawn.get(like, ())],
        )
        for name, values in drawn.items()
    ]  # fmt: skip
    return alt.vconcat(*made, spacing=14).resolve_scale(fill="independent")


def _heading(figure: str) -> str:
    if figure == "accuracy":
        return "Accuracy"
    title, unit = MEASURES[figure]
    return f"{title}: {unit}"


def _box(row: Mapping[str, Any], one: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    value = finite(one.get("value"))
    return {
        "network": row["network"], "ways": row["ways"], "shots": row["shots"], "value": value,
        "shown": number(value), "interval": _ends(one), **more,
    }  # fmt: skip


def _tests(one: Mapping[str, Any]) -> dict[str, str]:
    return {"p": p_value(one.get("p_value")), "p_holm": p_value(one.get("p_holm"))}


def _clear(one: Mapping[str, Any], prob: float) -> str:
    """How clear it is that the value is not 0: by its interval, and after Holm's correction."""
    low, high = finite(one.get("low")), finite(one.get("high"))
    apart = low is not None and high is not None and (low > 0 or high < 0)
    p = finite(one.get("p_holm"))
    return _mark(apart, p is not None and p < 1 - prob)


def _mark(there: bool, filled: bool) -> str:
    return "" if not there else "●" if filled else "○"


def _dots(prob: float) -> list[str]:
    return [
        f"dot: the {_level(prob)} does not have 0 in it; filled: nor by chance among so many boxes "
        f"(p < {1 - prob:.2g} after Holm)"
    ]


def _level(prob: float) -> str:
    return f"{percent(prob)} interval"


def _ends(one: Mapping[str, Any]) -> str:
    return interval(finite(one.get("low")), finite(one.get("high")))


def _title(text: str, part: Rows, setting: str) -> str:
    """The text, with the mitigation in its place, and the setting."""
    name = part[0]["mitigation"]
    words = text.format(f"'{name}'") if "{}" in text else f"{text}, mitigation '{name}'"
    return f"{words} ({setting})" if setting else words


def _by_setting(every: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by what varies in the grid beside network, task, mitigation and seed."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in every:
        name = ", ".join(f"{axis} {value}" for axis, value in (row.get("others") or {}).items())
        found.setdefault(name, []).append(row)
    return found
