"""What the marks of a chart say when they are pointed at or reached by keyboard.

A chart on a page is a still picture. The words of its tooltips become the description of each
mark, which the page's script shows and a screen reader reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["SEPARATOR", "described"]

SEPARATOR = " · "
"""Stands between the parts of a description; the page's script breaks the line there."""

JOINED = ("line", "area", "trail")
"""Marks that many rows share: they can only say which series they are."""

SERIES = ("color", "detail", "strokeDash", "shape", "opacity")
PLACES = ("y", "x", *SERIES)


def described(spec: dict[str, Any]) -> dict[str, Any]:
    """The Vega-Lite chart with a description for each mark that has something to say.

    A mark says what its tooltip says. Where no mark of the chart has a tooltip, one with a name
    says where it stands; an interval is silent then, for nothing tells what it is an interval of.
    A text says nothing: it can be read. In a chart of several panels a mark names its own.
    """
    units = list(_units(spec, {}))
    chosen = any(_tooltip(encoding) for _, encoding, _ in units)
    for unit, encoding, panel in units:
        kind = unit["mark"] if isinstance(unit["mark"], str) else unit["mark"]["type"]
        if kind == "text":
            continue
        if kind in JOINED:
            parts = _names(encoding, SERIES) if _tooltip(encoding) or not chosen else []
        elif chosen:
            parts = _told(_tooltip(encoding))
        elif (names := _names(encoding, PLACES)) and not {"x2", "y2"} & set(encoding):
            parts = [*names, *_numbers(encoding)]
        else:
            continue
        if parts:
            look = {} if isinstance(unit["mark"], str) else unit["mark"]
            unit["mark"] = {"type": kind, **look, "aria": True}
            where = [json.dumps(SEPARATOR + panel, ensure_ascii=False)] if panel else []
            said = f"slice({' + '.join([*parts, *where])}, {len(SEPARATOR)})"
            unit.setdefault("encoding", {})["description"] = {"value": {"expr": said}}
    return spec


def _units(
    spec: dict[str, Any], inherited: Mapping[str, Any], panel: str = ""
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any], str]]:
    """The parts of a chart that draw marks, each with its whole encoding and its panel's title."""
    encoding = {**inherited, **spec.get("encoding", {})}
    if "mark" in spec:
        yield spec, encoding, panel
    for part in spec.get("layer", ()):
        yield from _units(part, encoding, panel)
    for key in ("concat", "hconcat", "vconcat"):
        for part in spec.get(key, ()):
            yield from _units(part, encoding, _heading(part) or panel)
    if "spec" in spec:
        yield from _units(spec["spec"], encoding, panel)


def _heading(spec: Mapping[str, Any]) -> str:
    title = spec.get("title") or ""
    text = title.get("text", "") if isinstance(title, dict) else title
    return text if isinstance(text, str) else " ".join(text)


def _tooltip(encoding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = encoding.get("tooltip", [])
    return [one for one in (given if isinstance(given, list) else [given]) if "field" in one]


def _told(tooltip: list[Mapping[str, Any]]) -> list[str]:
    """The parts of a tooltip; a name at the head goes without its title."""
    return [
        _part(one["field"], _text(one), _title(one, bare=i == 0 and not _is_number(one)))
        for i, one in enumerate(tooltip)
    ]


def _names(encoding: Mapping[str, Any], channels: tuple[str, ...]) -> list[str]:
    fields = {
        one["field"]: one
        for one in (encoding.get(channel, {}) for channel in channels)
        if "field" in one and not _is_number(one)
    }
    return [_part(field, _text(one), "") for field, one in fields.items()]


def _numbers(encoding: Mapping[str, Any]) -> list[str]:
    return [
        _part(one["field"], _text(one), _title({"field": one["field"]}, bare=False))
        for one in (encoding.get(channel, {}) for channel in ("x", "y"))
        if "field" in one and _is_number(one)
    ]


def _is_number(one: Mapping[str, Any]) -> bool:
    return one.get("type") == "quantitative"


def _title(one: Mapping[str, Any], *, bare: bool) -> str:
    """What stands before a value; a tooltip with a blank title wants nothing there."""
    title = str(one.get("title") or one["field"].replace("_", " "))
    return f"{title}: " if title.strip() and not bare else ""


def _text(one: Mapping[str, Any]) -> str:
    """The expression of a field's value as text."""
    value = f"datum[{json.dumps(one['field'])}]"
    if not _is_number(one):
        return f'replace(toString({value}), /\\n/g, " ")'
    if "format" in one:
        return f"format({value}, {json.dumps(one['format'])})"
    return f'(abs({value}) < 1000 ? format({value}, ".3~g") : format({value}, ",.0f"))'


def _part(field: str, text: str, title: str) -> str:
    """The expression of a part with its separator, empty where the row has no value."""
    value = f"datum[{json.dumps(field)}]"
    head = json.dumps(SEPARATOR + title, ensure_ascii=False)
    return f'(isValid({value}) && {value} !== "" ? {head} + {text} : "")'
