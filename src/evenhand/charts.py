"""The kinds of chart that results are drawn with: rows in, an Altair chart out.

`forest` (dot and interval), `curves`, `scatter`, `histogram` and `heatmap`. A row is
a mapping with the fields that its kind of chart names. Colours can be distinguished by most
colour-blind readers, and shapes repeat what colours say. Every mark has a description, which a
page shows to a pointer and reads to a screen reader.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand import files
from evenhand.errors import DrawingError, InputError, UnknownNameError
from evenhand.files import map_texts, replace_file, signed
from evenhand.rendering import render
from evenhand.wording import interval, visible

if TYPE_CHECKING:
    import altair as alt

Chart: TypeAlias = Any
"""An Altair chart; its many kinds have no common type that fits."""
Row: TypeAlias = Mapping[str, Any]
Looks: TypeAlias = Mapping[str, tuple[str, str]]
"""The colour and the shape of each series."""

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY, PALE = "#222222", "#6b6b6b", "#d5dae0"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
FORMATS = ("svg", "pdf", "html")
CUT = "dashed line: the interval extends beyond the plot, or has no end"


# ---------------------------------------------------------------------------------------- parts


def finite(value: float | None) -> float | None:
    """The number, or None where there is none: NaN, infinite, or null.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def data(rows: Sequence[Row]) -> alt.Data:
    """Rows as the data of a chart; numbers that are not finite become missing."""
    import altair as alt

    return alt.Data(  # type: ignore[no-untyped-call]
        values=tuple(  # which Altair does not copy with every change of a chart, as it does lists
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in rows
        )
    )


def layer(values: object = None) -> Chart:
    """A chart of these data, or of those of the chart that it becomes a layer of.

    Altair copies a layer with all that is in it several times while it is put into a chart, which
    takes longer than everything else. Copies of this one share their marks and encodings.
    """
    import altair as alt

    return _layer_class()(alt.Undefined if values is None else values)


@cache
def _layer_class() -> Any:
    import altair as alt

    class Layer(alt.Chart):
        def copy(self, deep: bool | Iterable[Any] = True, ignore: list[str] | None = None) -> Chart:
            return super().copy(deep=False if deep is True else deep, ignore=ignore)

        def __deepcopy__(self, _: object) -> Chart:
            return self.copy()

    return Layer


def wrap(text: str, width: int) -> str:
    """The text in lines of at most `width` characters."""
    return "\n".join(textwrap.wrap(text, width))


def heading(text: str, *lines: str) -> alt.TitleParams:
    """The title of a chart, with lines in smaller type below it."""
    import altair as alt

    return alt.TitleParams(text, subtitle=list(lines), subtitleColor=INK, subtitleFontSize=11)


def panel_heading(text: str, *lines: str, width: int = 60) -> alt.TitleParams:
    """The title of one panel of several, above its plot."""
    import altair as alt

    titled = wrap(text, width).split("\n")
    return alt.TitleParams(
        titled if len(titled) > 1 else text,
        fontSize=12,
        frame="group",
        offset=4,
        subtitle=list(lines) or alt.Undefined,
        subtitleColor=INK,
        subtitleFontSize=11,
    )


def panels(
    parts: Sequence[Chart], *, columns: int = 1, title: str = "", subtitle: Sequence[str] = ()
) -> Chart:
    """Several charts beside and below each other, with one title."""
    import altair as alt

    chart = alt.concat(*parts, columns=columns, spacing=18)
    chart = chart.resolve_scale(color="shared", shape="shared")
    return chart.properties(title=heading(title, *subtitle)) if title else chart


def rule(value: float, *, colour: str = GREY) -> Chart:
    """A dashed line across the plot."""
    return layer(data([{"at": value}])).mark_rule(color=colour, strokeDash=[4, 3]).encode(x="at:Q")


def look(
    field_name: str, looks: Looks, *, title: str = "", shown: Iterable[str] | None = None
) -> tuple[Any, Any]:
    """Colour and shape by a field; the legend has these series, if they are several."""
    import altair as alt

    legend = None
    named = list(looks if shown is None else shown)
    if len(named) > 1:
        legend = alt.Legend(
            title=title or None, symbolOpacity=1, columns=min(4, len(named)), values=named
        )
    colours, shapes = (
        alt.Scale(domain=list(looks), range=list(values))
        for values in zip(*looks.values(), strict=True)
    )
    return (
        alt.Color(f"{field_name}:N", scale=colours, legend=legend),
        alt.Shape(f"{field_name}:N", scale=shapes, legend=legend),
    )


def _plot(layers: Sequence[Chart], width: int, height: int, title: object, **more: object) -> Chart:
    """The layers as one chart of this size."""
    import altair as alt

    chart = alt.layer(*layers, **more).properties(width=width, height=height)
    return chart if title is None else chart.properties(title=title)


def tooltips(
    names: Mapping[str, str | None], rows: Sequence[Row], formats: Mapping[str, str] | None = None
) -> list[Any]:
    """What a mark says: fields by their title, by default their name.

    Numbers have three significant digits unless `formats` says otherwise.
    """
    import altair as alt

    tips = []
    for name, title in names.items():
        values = [row[name] for row in rows if row.get(name) is not None]
        numbers = bool(values) and all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        )
        about: dict[str, Any] = {} if title is None else {"title": title or " "}
        if formats and name in formats:
            about["format"] = formats[name]
        tips.append(alt.Tooltip(f"{name}:{'Q' if numbers else 'N'}", **about))
    return tips


# --------------------------------------------------------------------------------------- forest


def forest(
    rows: Sequence[Row],
    *,
    title: str = "",
    subtitle: Sequence[str] = (),
    x: str = "value",
    looks: Looks | None = None,
    beside: bool = False,
    references: Sequence[Row] = (),
    tips: Mapping[str, str] | None = None,
    text: str = "",
    text_title: str = "",
    legend: str = "",
    digits: int = 3,
    width: int = 380,
    step: int = 22,
    line: int = 48,
    extent: int = 0,
    domain: Sequence[float] | None = None,
    log: bool = False,
    ticks: int = 6,
    labels: bool = True,
    key: bool | Sequence[str] = True,
) -> Chart:
    """One row per label: a dot at `value` and a line from `low` to `high`.

    Parameters
    ----------
    rows : sequence of Mapping
        With `label`, `value`, `low`, `high`. Optional fields: `series` (colour and shape, see
        `looks`), `ideal` (a dashed line where all rows share it, else a tick in each row),
        `inner_low` and `inner_high` (a thick line inside the interval), `band_low` and `band_high`
        (a pale bar behind the row), `before` (a hollow dot linked with the value).
    title, subtitle, x : str
        The title, the lines below it, and the title of the value axis.
    looks : Mapping of str to (colour, shape), optional
        The series in order.
    beside : bool
        Whether series of one label lie in lanes of their own.
    references : sequence of Mapping
        Lines across all rows at `value`, with a band from `low` to `high`, a `text` above the
        plot and a `colour` where given.
    tips : Mapping of field to title, optional
        What a mark says beside its label, series, value and interval.
    text, text_title : str
        A field whose text is shown to the right of each row, and its heading.
    legend : str
        The title of the legend.
    digits, width, step, line, extent, domain, log, ticks, labels, key
        Digits of shown numbers, the plot's width, the height of a row, the longest line of a
        label, the minimum width of the labels, the range and kind of the value axis, its ticks,
        whether labels are shown, and the series of the legend (True: those that the rows have).

    Returns
    -------
    altair.LayerChart
        An interval that is far wider than the others, or unbounded, is cut and dashed.

    Examples
    --------
    >>> chart = forest([{"label": "weat", "value": 1.5, "low": 1.0, "high": 1.9, "ideal": 0}])
    >>> len(chart.layer)
    3

    """
    import altair as alt

    values = [_forest_row(row, digits, line) for row in rows]
    domain = _domain(values, references, log=log) if domain is None else domain
    values = [_placed(row, domain) for row in values]
    looks = looks or {}
    named = {row.get("series") for row in values}
    order = list(dict.fromkeys(row["label"] for row in values))
    base = layer().encode(
        y=_label_axis(order, labels=labels, extent=extent),
        tooltip=_forest_tips(values, tips or {}, series=bool(looks) and len(named) > 1, of=digits),
    )
    lines = max((label.count("\n") + 1 for label in order), default=1)
    height: Any = {"step": max(step, 14 * lines + 6)}
    if beside and len(looks) > 1:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=list(looks)))
        height = {"step": max(14, step // 2), "for": "offset"}
    colour: dict[str, Any] = {"color": alt.value(BLUE)}
    shape: dict[str, Any] = {}
    if looks:
        listed = [name for name in looks if name in named] if key is True else key or ()
        colour["color"], shape["shape"] = look("series", looks, title=legend, shown=listed)
    layers = [
        *_behind(base, values, references, domain, step),
        *_intervals(base, values, colour, _value_axis(x, domain, log=log, ticks=ticks)),
        base.mark_point(filled=True, size=64, opacity=1).encode(x="value:Q", **colour, **shape),
    ]
    aside = {"align": "left", "fontSize": 11, "color": INK}
    if any(row["value"] is None for row in values):
        none = base.transform_filter("!isValid(datum.value)")
        none = none.mark_text(align="right", dx=-4, fontSize=11, text="no value")
        layers.append(none.encode(x=alt.value("width"), color=alt.value(GREY)))
    if text:
        layers.append(base.mark_text(**aside).encode(x=alt.value(width + 8), text=f"{text}:N"))
    if text_title:
        head = layer(data([{}])).mark_text(**aside)
        at = {"x": alt.value(width + 8), "y": alt.value(-7)}
        layers.append(head.encode(**at, text=alt.value(text_title)))
    chart = alt.layer(*layers, data=data(values)).properties(width=width, height=height)
    cut = [CUT] if any(row["cut"] for row in values) else []
    if title or subtitle:
        return chart.properties(title=heading(title, *subtitle, *cut))
    return chart


def _behind(
    base: Chart,
    values: Sequence[Row],
    references: Sequence[Row],
    domain: Sequence[float],
    step: int,
) -> Iterator[Chart]:
    """The background of a forest: bands, references, values without bias."""
    if _has(values, "band_low"):
        yield base.mark_bar(color=PALE, height=13).encode(x="band_low:Q", x2="band_high:Q")
    yield from _references(references, domain)
    ideals = {row["ideal"] for row in values if row.get("ideal") is not None}
    if len(ideals) == 1:
        yield rule(ideals.pop())
    elif ideals:
        yield base.mark_tick(color=GREY, thickness=2, size=step - 6).encode(x="ideal:Q")
    if _has(values, "before"):
        link = base.mark_rule(color="#b5b5b5", strokeWidth=1)
        yield link.encode(x="before:Q", x2="value:Q")


def _intervals(
    base: Chart, values: Sequence[Row], colour: Mapping[str, Any], axis: object
) -> Iterator[Chart]:
    """The lines of a forest, and the hollow dots of what was before."""
    import altair as alt

    cut = alt.Scale(domain=[False, True], range=[[1, 0], [3, 3]])
    dash = alt.StrokeDash("cut:N", legend=None, scale=cut)
    inner = _has(values, "inner_low")
    outer = base.mark_rule(strokeWidth=1.4 if inner else 2.2)
    yield outer.encode(x=axis, x2="end:Q", strokeDash=dash, **colour)
    if inner:
        thick = base.mark_rule(strokeWidth=4.2)
        yield thick.encode(x="inner_low:Q", x2="inner_high:Q", **colour)
    if _has(values, "before"):
        hollow = base.mark_point(color=INK, size=60, strokeWidth=1.6, opacity=1)
        yield hollow.encode(x="before:Q")


def _has(rows: Sequence[Row], name: str) -> bool:
    return any(row.get(name) not in (None, "") for row in rows)


def forests(
    parts: Mapping[str, Sequence[Row]],
    *,
    columns: int = 1,
    title: str = "",
    subtitle: Sequence[str] = (),
    x: str = "",
    scale: Callable[[str], str] | None = None,
    width: int = 380,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    **every: Any,
) -> Chart:
    """A forest for each part, beside and below each other.

    Parameters
    ----------
    parts : Mapping of str to rows
        The rows of each panel by its title.
    columns : int
    title, subtitle : str
        Of the figure.
    x : str
        The title of the value axis.
    scale : callable, optional
        Panels for which it returns the same text share the range of their axis.
    width : int
        The width of one panel.
    options : Mapping, optional
        Options of `forest` for some of the panels.
    **every
        Options of `forest` for all panels.

    """
    every = {"digits": 3, "line": 48 if columns == 1 else 34, **every}
    alike = scale or str
    groups: dict[str, list[Row]] = {}
    for name, rows in parts.items():
        prepared = [_forest_row(row, every["digits"], every["line"]) for row in rows]
        groups.setdefault(alike(name), []).extend(prepared)
    listed = [row for rows in groups.values() for row in rows]
    longest = max((len(text) for row in listed for text in row["label"].split("\n")), default=0)
    series = {row.get("series") for row in listed}
    named = [look for look in every.get("looks") or () if look in series]
    single = columns == 1 and scale is not None
    charts = []
    for index, (name, rows) in enumerate(parts.items()):
        own = {**every, **(options or {}).get(name, {})}
        group = groups[alike(name)]
        own["domain"] = _domain(group, own.get("references", ()), log=bool(own.get("log")))
        first = index % columns == 0
        chart = forest(
            rows,
            x=x if not single or index >= len(parts) - columns else "",
            width=width,
            labels=first,
            extent=min(320, 14 + 6 * longest) if first else 0,
            key=named if index == 0 else False,
            **own,
        )
        charts.append(chart.properties(title=panel_heading(name, width=max(20, width // 6))))
    cut = any(row["cut"] for chart in charts for row in chart.data.values)
    return panels(charts, columns=columns, title=title, subtitle=[*subtitle, *([CUT] * cut)])


def row_of(result: Any, label: str, **more: Any) -> dict[str, Any]:
    """A row of a forest from anything with a value and the ends of its interval."""
    return {"label": label, "value": result.value, "low": result.low, "high": result.high, **more}


def _forest_row(row: Row, digits: int, line: int) -> dict[str, Any]:
    """The row with finite numbers, its label in lines, and its interval as text."""
    given = {name: finite(x) if isinstance(x, float) else x for name, x in row.items()}
    value = finite(row.get("value"))
    low, high = (row.get(end) if value is not None else None for end in ("low", "high"))
    return {
        **given,
        "label": wrap(str(row["label"]), line) or " ",
        "value": value,
        "low": finite(low),
        "high": finite(high),
        "bounded": "low" in row,
        "interval": interval(low, high, digits) if "low" in row else "",
    }


def _domain(values: Sequence[Row], references: Sequence[Row] = (), *, log: bool) -> list[float]:
    """A range for all that is drawn but intervals that are far wider than the others."""

    def scaled(row: Row, name: str) -> float | None:
        known = finite(row.get(name))
        if not log or known is None:
            return known
        return math.log(known) if known > 0 else None

    ends = ("value", "low", "high")
    bands = [row for row in references if all(finite(row.get(end)) is not None for end in ends)]
    rows = [{end: scaled(row, end) for end in ends} for row in (*values, *bands)]
    numbers = [row["value"] for row in rows if row["value"] is not None]
    if not numbers:
        raise InputError("values: expected at least one number, got none")
    names = ("ideal", "before", "band_low", "band_high", "inner_low", "inner_high")
    also = [scaled(row, name) for row in values for name in names]
    also += [scaled(row, "value") for row in references]
    numbers += [number for number in also if number is not None]
    low, high = min(numbers), max(numbers)
    limits = [(r["low"], r["high"]) for r in rows]
    widths = [end - start for start, end in limits if start is not None and end is not None]
    room = max((high - low) / 2, 2 * median(widths) if widths else 0.0)
    every = [end for pair in limits for end in pair if end is not None]
    low = max(low - room, min([low, *every]))
    high = min(high + room, max([high, *every]))
    margin = 0.04 * (high - low) or 0.05
    return [math.exp(end) if log else end for end in (low - margin, high + margin)]


def _placed(row: Row, domain: Sequence[float]) -> dict[str, Any]:
    """The row with where its line begins and ends in the plot, and whether it is cut there."""
    if row["value"] is None or not row["bounded"]:
        return {**row, "begin": None, "end": None, "cut": False}
    begin = domain[0] if row["low"] is None else max(row["low"], domain[0])
    end = domain[1] if row["high"] is None else min(row["high"], domain[1])
    return {**row, "begin": begin, "end": end, "cut": [begin, end] != [row["low"], row["high"]]}


def _value_axis(title: str, domain: Sequence[float], *, log: bool, ticks: int) -> alt.X:
    import altair as alt

    kind = {"type": "log"} if log else {"zero": False}
    scale = alt.Scale(domain=list(domain), nice=False, **kind)
    return alt.X("begin:Q", title=title or None, scale=scale, axis=alt.Axis(tickCount=ticks))


def _label_axis(order: Sequence[str], *, labels: bool, extent: int) -> alt.Y:
    """The rows in this order; a label of several lines is centred on its row."""
    import altair as alt

    lines = "length(split(datum.value, '\\n'))"
    offsets = [{"test": f"{lines} == {n}", "value": -6.5 * (n - 1)} for n in range(2, 12)]
    axis = alt.Axis(
        ticks=False,
        domain=False,
        grid=True,
        labels=labels,
        labelLimit=400,
        minExtent=extent or alt.Undefined,
        labelExpr="split(datum.label, '\\n')",
        labelOffset={"condition": offsets, "value": 0},
    )
    return alt.Y("label:N", title=None, sort=None, scale=alt.Scale(domain=list(order)), axis=axis)


def _forest_tips(
    values: Sequence[Row], more: Mapping[str, str], *, series: bool, of: int
) -> list[Any]:
    """The tooltips of a forest; fields without a value are left out."""
    always: dict[str, str | None] = {
        "label": None,
        **({"series": ""} if series else {}),
        **dict.fromkeys(("before", "value", "interval")),
    }
    names = {name: title for name, title in always.items() if name not in more} | dict(more)
    shown = {name: title for name, title in names.items() if _has(values, name)}
    return tooltips(shown, values, dict.fromkeys(("before", "value"), f".{of}f"))


def _references(references: Sequence[Row], domain: Sequence[float]) -> Iterator[Chart]:
    """Lines across all rows; texts of two lines stand on either side of them."""
    import altair as alt

    shown = [row for row in references if finite(row.get("value")) is not None]
    shown.sort(key=lambda row: float(row["value"]))
    for row in shown:
        colour = row.get("colour", GREY)
        low, high = finite(row.get("low")), finite(row.get("high"))
        if low is not None and high is not None:
            ends = {"low": max(low, domain[0]), "high": min(high, domain[1])}
            band = layer(data([ends])).mark_rect(color=colour, opacity=0.14)
            yield band.encode(x="low:Q", x2="high:Q")
        yield rule(row["value"], colour=colour)
    named = [row for row in shown if row.get("text")]
    for index, row in enumerate(named):
        left: Any = {"align": "right", "dx": -3}
        side: Any = {"align": "left", "dx": 3} if index or len(named) == 1 else left
        label = layer(data([{"at": row["value"], "text": row["text"]}]))
        label = label.mark_text(fontSize=11, color=row.get("colour", GREY), **side)
        yield label.encode(x="at:Q", y=alt.value(-7), text="text:N")


# ------------------------------------------------------------------ curves, densities, scatters


def curves(
    rows: Sequence[Row],
    looks: Mapping[str, tuple[str, Sequence[int]]],
    *,
    x: str,
    y: str,
    x_title: str | None = None,
    y_title: str | None = None,
    title: Any = None,
    points: bool = False,
    area: bool = False,
    marks: Sequence[Row] = (),
    tips: Mapping[str, str] | None = None,
    width: int = 440,
    height: int = 240,
    x_scale: Mapping[str, Any] | None = None,
    y_scale: Mapping[str, Any] | None = None,
    x_axis: Mapping[str, Any] | None = None,
    y_axis: Mapping[str, Any] | None = None,
    key: bool = True,
    columns: int = 2,
) -> Chart:
    """Lines of `y` over `x`, one per series; a line breaks where a value is missing.

    Parameters
    ----------
    rows : sequence of Mapping
        With the fields `x`, `y` and `series`.
    looks : Mapping of str to (colour, dash)
        The series in order. An empty dash means points without a line.
    x, y : str
        The fields.
    points, area : bool
        Whether to draw points on the lines, and a pale area below them.
    marks : sequence of Mapping
        Vertical dashed lines at `x` with a `text`.
    tips : Mapping of field to title, optional
        What a point says.
    x_title, y_title, title, width, height, x_scale, y_scale, x_axis, y_axis, key, columns
        As in Altair; `key` shows the legend, `columns` is its number of columns.

    """
    import altair as alt

    names = list(looks)
    colours, dashes = zip(*looks.values(), strict=True)
    legend = None
    if key and len(looks) > 1:
        strokes: dict[str, Any] = {} if points else {"symbolType": "stroke", "symbolSize": 300}
        legend = alt.Legend(title=None, columns=columns, symbolOpacity=1, **strokes)

    def by_series(channel: Any, given: Sequence[Any], legend: Any = legend) -> Any:
        scale = alt.Scale(domain=names, range=list(given))
        return channel("series:N", legend=legend, sort=names, scale=scale)

    across = alt.Scale(**{"nice": False, **(x_scale or {})})
    upwards = alt.Scale(**{"nice": False, **(y_scale or {})})
    axis = alt.Undefined if y_axis is None else alt.Axis(**y_axis)
    base = layer().encode(
        x=alt.X(f"{x}:Q", title=x_title, scale=across, axis=alt.Axis(**(x_axis or {}))),
        y=alt.Y(f"{y}:Q", title=y_title, stack=None, scale=upwards, axis=axis),
        color=by_series(alt.Color, colours),
        tooltip=tooltips({"series": " ", **(tips or {x: x, y: y})}, rows),
    )
    lines = [name for name, (_, dash) in looks.items() if dash]
    drawn = base.transform_filter(alt.FieldOneOfPredicate(field="series", oneOf=lines))
    layers: list[Chart] = []
    for mark in marks:
        at = layer(data([dict(mark)])).encode(x=f"{x}:Q")
        layers.append(at.mark_rule(color=GREY, strokeDash=[4, 3]))
        if mark.get("text"):
            words = at.mark_text(align="left", dx=5, y=10, color=INK, fontSize=11)
            layers.append(words.encode(text="text:N"))
    if area:
        layers.append(drawn.mark_area(opacity=0.1))
    dash = [list(each) or [1, 0] for each in dashes]
    stroke = by_series(alt.StrokeDash, dash, None if points else legend)
    layers.append(drawn.mark_line(strokeWidth=2).encode(strokeDash=stroke))
    if points:
        shape = by_series(alt.Shape, ["circle", "square", "diamond", "triangle-up"])
        layers.append(base.mark_point(filled=True, size=34, opacity=1).encode(shape=shape))
    return _plot(layers, width, height, title, data=data(rows))


def learning_curves(
    runs: Mapping[str, Sequence[Row]],
    *,
    x: str,
    measures: Mapping[str, Sequence[str]],
    chosen: Mapping[str, float] | None = None,
) -> Chart:
    """A panel for each run and measure: its lines over the time of the training.

    Parameters
    ----------
    runs : Mapping of str to points
        Points with the fields that `x` and `measures` name, by the name of their run.
    x : str
        The field of time, such as "step".
    measures : Mapping of str to fields
        What an axis is called, and the fields that have a line there.
    chosen : Mapping, optional
        The time of the weights that were saved, by run.

    """
    charts = []
    for name, points in runs.items():
        for measure, fields in measures.items():
            names = {each: each.replace("_", " ") for each in fields}
            rows = [
                {x: point[x], measure: finite(point[each]), "series": names[each]}
                for point in points
                for each in fields
            ]
            if all(row[measure] is None for row in rows):
                raise InputError("curves: expected points with numbers, got none")
            at = (chosen or {}).get(name)
            charts.append(
                curves(
                    rows,
                    dict(zip(names.values(), ((ORANGE, (1, 0)), (BLUE, (1, 0))), strict=True)),
                    x=x,
                    y=measure,
                    x_title=x,
                    y_title=measure,
                    title=panel_heading(f"{name}: {measure}" if name else measure),
                    points=True,
                    marks=[] if at is None else [{x: at, "text": "saved"}],
                    width=260 if len(measures) * len(runs) > 1 else 440,
                    height=160,
                    y_scale={"zero": False, "nice": True},
                    x_axis={"format": ",d", "tickCount": 4},
                )
            )
    chart = panels(charts, columns=2, title="Learning curves")
    return chart.properties(
        description="the loss should fall, and the accuracy rise. Where the training improves and "
        "the rest does not, only the training data are learnt. The dashed line marks the weights "
        "that were saved."
    )


def scatter(
    rows: Sequence[Row],
    *,
    x: str,
    y: str,
    x_title: str,
    y_title: str,
    looks: Looks | None = None,
    title: object = None,
    tips: Mapping[str, str] | None = None,
    level: float | None = None,
    diagonal: bool = False,
    width: int = 440,
    height: int = 320,
    x_scale: Mapping[str, Any] | None = None,
) -> Chart:
    """One dot per row, with a regression line or a diagonal.

    Parameters
    ----------
    rows : sequence of Mapping
        With the fields `x` and `y`; `series` where `looks` are given; `left` and `right` are
        labels at the right and at the left of a dot.
    x, y, x_title, y_title : str
        The fields and the titles of the axes.
    looks : Mapping of str to (colour, shape), optional
    tips : Mapping of field to title, optional
        What a dot says.
    level : float, optional
        A horizontal line.
    diagonal : bool
        Both axes have one range and a line where x is y, in place of the regression.
    title, width, height, x_scale
        As in Altair.

    """
    import altair as alt

    y_scale: Mapping[str, Any] = {}
    values = [row[name] for row in rows for name in (x, y)]
    ends = [min(values) - 0.08, max(values) + 0.08]
    if diagonal:
        x_scale = y_scale = {"domain": ends, "nice": False}
    base = layer(data(rows)).encode(
        x=alt.X(f"{x}:Q", title=x_title, scale=alt.Scale(**(x_scale or {"zero": False}))),
        y=alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(**y_scale)),
    )
    layers: list[Chart] = []
    if level is not None:
        layers.append(layer(data([{"at": level}])).mark_rule(color=PALE).encode(y="at:Q"))
    if diagonal:
        line = layer(data([{x: end, y: end} for end in ends])).encode(x=f"{x}:Q", y=f"{y}:Q")
        layers.append(line.mark_line(color=GREY, strokeDash=[5, 4], strokeWidth=1))
    else:
        line = base.transform_regression(x, y)
        layers.append(line.mark_line(color=INK if looks else ORANGE, strokeWidth=1.6))
    colour, shape = look("series", looks) if looks else (alt.value(BLUE), alt.Undefined)
    tooltip = tooltips(tips or {x: x_title, y: y_title}, rows)
    dots = base.mark_point(filled=True, size=42, opacity=0.8)
    layers.append(dots.encode(tooltip=tooltip, color=colour, shape=shape))
    for name, shift in (("left", 6), ("right", -6)):
        if _has(rows, name):
            words = base.mark_text(fontSize=11, color=INK, align=name, dx=shift)
            layers.append(words.encode(text=f"{name}:N"))
    return _plot(layers, width, height, title)


# ---------------------------------------------------------------------- histograms and heat maps


def histogram(
    bars: Sequence[Row],
    *,
    outline: str,
    band: tuple[float, float],
    middle: float,
    mean: Row,
    title: object = None,
    x: str = "",
    y: str = "",
    tips: Mapping[str, str] | None = None,
) -> Chart:
    """Bars from `low` to `high` of height `n`.

    Parameters
    ----------
    bars : sequence of Mapping
        With `low`, `high`, `n`, and the field that `outline` names.
    outline : str
        A second count, drawn as a dashed outline.
    band, middle : (float, float) and float
        A pale band and a dashed line.
    mean : Mapping
        `value`, `low`, `high`, `shown` (its text) and `n`: a dot and its interval above the bars.
    title, x, y, tips
        Titles, and what a bar says.

    """
    import altair as alt

    most = max(*(row[name] for row in bars for name in ("n", outline)), 1)
    axis = alt.Axis(tickCount=5, format=".2~f", grid=False)
    limits = alt.Scale(domain=[bars[0]["low"], bars[-1]["high"]])
    x_of = alt.X("low:Q", scale=limits, axis=axis, title=x or None)
    y_of = alt.Y(
        "n:Q",
        title=y or None,
        scale=alt.Scale(domain=[0, 1.22 * most], nice=False),
        axis=alt.Axis(tickCount=4, format="~s" if most > 9999 else "d"),
    )
    area = layer(data([{"low": band[0], "high": band[1]}])).mark_rect(color=PALE, opacity=0.6)
    drawn = layer(data(bars)).encode(tooltip=tooltips(tips or {"n": y or "n"}, bars))
    drawn = drawn.mark_rect(color=BLUE, opacity=0.85, stroke="#ffffff", strokeWidth=0.7)
    steps = [{"at": row["low"], "to": row[outline]} for row in bars]
    steps.append({"at": bars[-1]["high"], "to": bars[-1][outline]})
    line = layer(data(steps)).mark_line(
        interpolate="step-after", color=INK, strokeWidth=1.2, strokeDash=[2, 2]
    )
    row = {"label": "mean", **mean}
    tooltip = tooltips({"label": "", "shown": " ", "n": "items"}, [row])
    dot = layer(data([row])).encode(y=alt.value(8), color=alt.value(INK), tooltip=tooltip)
    layers = [
        area.encode(x=x_of, x2="high:Q"),
        drawn.encode(x=x_of, x2="high:Q", y=y_of, y2=alt.datum(0)),
        line.encode(x="at:Q", y="to:Q"),
        rule(middle),
        dot.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
        dot.mark_point(filled=True, size=60, opacity=1).encode(x="value:Q"),
    ]
    return _plot(layers, 420, 130, title)


RISING = ("#eef4f9", "#8fc1e0", "#0b5c94")
"""From low to high."""
AWAY = ("#1f6fa8", "#f5f4f1", "#c2560a")
"""Below 0, and above it, which is worse."""
BACK = AWAY[::-1]
"""Below 0, which is worse, and above it."""
SMALLEST = 0.1
"""The smallest difference that uses all of the rising colours."""


def heatmap(
    rows: Sequence[Row],
    *,
    across: Sequence[str],
    down: Sequence[str],
    colours: Sequence[str] = RISING,
    alike: Sequence[Row] = (),
    tips: Mapping[str, str] | None = None,
    title: str = "",
    labels: bool = True,
) -> Chart:
    """Boxes with a number in them, coloured by it.

    Parameters
    ----------
    rows : sequence of Mapping
        With `across`, `down`, `value`, `shown` (its text) and `mark` (a sign in the corner).
        Boxes without a row are grey.
    across, down : sequence of str
        The columns and rows in order; a comma breaks the label of a column.
    colours : sequence of str
        Three colours: `RISING`, or `AWAY` and `BACK` for values around 0.
    alike : sequence of Mapping
        Rows of other maps on the same scale of colours.
    tips : Mapping of field to title, optional
        What a box says.
    title : str
    labels : bool
        Whether the columns are named.

    """
    import altair as alt

    known = [row["value"] for row in (*rows, *alike) if row["value"] is not None]
    if not known:
        raise InputError("values: expected at least one number, got none")
    wide, high = 60, 27
    names = {"value": "value", **(tips or {})}
    domain = _colour_domain(known, around_zero=colours is not RISING)
    boxes = {(row["across"], row["down"]): row for row in rows}
    empty = {**dict.fromkeys(names, "–"), "value": None, "shown": "–", "mark": ""}
    for row in down:
        for column in across:
            nothing = {**empty, "across": column, "down": row, "interval": "no result"}
            boxes.setdefault((column, row), nothing)
    values = [{**row, "ink": _ink(row["value"], domain)} for row in boxes.values()]
    plain: dict[str, Any] = {"ticks": False, "domain": False, "labelPadding": 6}
    columns = alt.Axis(labels=labels, labelAngle=0, labelExpr="split(datum.label, ', ')", **plain)
    lines = alt.Axis(labelLimit=260, **plain)
    base = layer(data(values)).encode(
        *(
            channel(f"{name}:N", title=None, sort=None, scale=alt.Scale(domain=order), axis=axis)
            for channel, name, order, axis in (
                (alt.X, "across", list(across), columns),
                (alt.Y, "down", list(down), lines),
            )
        ),
        tooltip=tooltips({"down": "", "across": " ", **names}, values),
    )
    ink = alt.Color("ink:N", scale=None)
    scale = alt.Scale(domain=domain, range=list(colours), interpolate="lab", clamp=True)
    fill = alt.Fill("value:Q", legend=None, scale=scale)
    corner = {"dx": wide / 2 - 7, "dy": -high / 2 + 7}
    valid = "isValid(datum.value)"
    return alt.layer(
        base.transform_filter(f"!{valid}").mark_rect(color="#e9e9e7"),
        base.transform_filter(valid).mark_rect().encode(fill=fill),
        base.mark_text(fontSize=11).encode(text="shown:N", color=ink),
        base.transform_filter("datum.mark != ''")
        .mark_text(fontSize=11, **corner)
        .encode(text="mark:N", color=ink),
        width={"step": wide},
        height={"step": high},
        title=panel_heading(title) if title else alt.Undefined,
    )


def _colour_domain(values: Sequence[float], *, around_zero: bool) -> list[float]:
    """The values of the three colours; 0 is in the middle where it has a meaning."""
    if around_zero:
        most = max(abs(value) for value in values) or 1.0
        return [-most, 0.0, most]
    low, high = min(values), max(values)
    margin = max(0.0, SMALLEST - (high - low)) / 2  # small differences should look small
    return [low - margin, (low + high) / 2, high + margin]


def _ink(value: float | None, domain: Sequence[float]) -> str:
    """Light text on the strong ends of the colours, dark text elsewhere."""
    low, middle, high = domain
    if value is None:
        return "#1a1a1a"
    strong = (value - low) / (high - low) > 0.75 if middle else abs(value) > 0.75 * high
    return "#fdfdfd" if strong else "#1a1a1a"


# -------------------------------------------------------------------------- styling, SVG, saving


STYLE: dict[str, Any] = {
    "font": FONT,
    "background": "#ffffff",
    "aria": False,
    "padding": 8,
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 400,
        "gridColor": "#ececec",
        "labelFlush": False,
        "domainColor": "#b5b5b5",
        "tickColor": "#b5b5b5",
        "titlePadding": 8,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 8},
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 400,
        "orient": "top",
        "direction": "horizontal",
        "symbolType": "circle",
    },
}
"""The `config` of a Vega-Lite specification."""


def chart_title(chart: Chart) -> str:
    """The title of a chart, of a concatenation that of its first part if it has none itself."""
    spec = chart.to_dict(validate=False)
    parts = [
        spec,
        *(part for key in ("vconcat", "hconcat", "concat") for part in spec.get(key, ())),
    ]
    return next((text for text in map(_heading_text, parts) if text), "")


def to_svg(chart: Chart) -> str:
    """The chart as a stand-alone SVG file, without a browser or network."""
    return _draw(describe(_specification(chart)))


def to_svgs(chart: Chart) -> tuple[str, str]:
    """The SVG file of the chart, and that of the chart redrawn for a phone, 340 pixels wide."""
    spec = describe(_specification(chart))
    narrow = _narrow(spec, _longest_label(spec))
    narrow["config"] = {**spec["config"], **NARROW_STYLE}
    return _draw(spec), _draw(narrow)


def _draw(spec: dict[str, Any]) -> str:
    return render("svg", spec, _version()).decode()


def not_drawn(reason: object) -> str:
    """A small SVG shown instead of a chart that could not be drawn, with the reason."""
    lines = textwrap.wrap(visible(str(reason)), 60)
    rows = "".join(
        f'<text x="10" y="{20 + 18 * i}" font-size="13">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    height = 20 + 18 * len(lines)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" class="marks" width="460" '
        f'height="{height}" viewBox="0 0 460 {height}">{rows}</svg>'
    )


NARROW, NARROW_LABELS = 270, 24
"""The width of a plot on a phone, and the characters of a line of its labels."""
NARROW_STYLE: dict[str, Any] = {
    "padding": 2,
    "title": {**STYLE["title"], "frame": "bounds"},
    "legend": {**STYLE["legend"], "orient": "bottom", "direction": "vertical", "labelLimit": 300},
    "axisX": {"labelOverlap": "greedy"},
}


def _narrow(spec: dict[str, Any], longest: int) -> dict[str, Any]:
    """The specification with panels below each other, narrow plots, and texts in short lines.

    `longest` is the longest line of the labels of all panels, whose plots begin below each other.
    """
    spec = dict(spec)
    if "hconcat" in spec:
        spec["vconcat"] = spec.pop("hconcat")
    if "concat" in spec:
        spec["columns"] = 1
    rows = (spec.get("data") or {}).get("values", ())
    if any("label" in row for row in rows):
        spec["data"] = {"values": [_with_short_label(row) for row in rows]}
    encoding = {
        name: _narrow_channel(channel, longest)
        for name, channel in spec.get("encoding", {}).items()
    }
    if encoding:
        spec["encoding"] = encoding
    if "title" in spec:
        spec["title"] = _short_title(spec["title"])
    wide = spec.get("width")
    if isinstance(wide, int | float):
        if "layer" in spec:  # texts at the right of a plot have no room there
            spec["layer"] = [part for part in spec["layer"] if not _right_of(part, wide)]
        spec["width"] = min(wide, NARROW - (6 * longest if _labels(spec) else 0))
        if spec.get("height") == wide:
            spec["height"] = spec["width"]
        if isinstance(spec.get("height"), dict):
            spec["height"] = _row_height(spec)
    elif isinstance(wide, dict):
        spec["width"] = {"step": 46}
    if isinstance(spec.get("mark"), dict) and spec["mark"].get("dx", 0) > 16:
        spec["mark"] = {**spec["mark"], "dx": 16}  # in the corner of a narrow box
    for key in ("layer", "concat", "vconcat"):
        if key in spec:
            spec[key] = [_narrow(part, longest) for part in spec[key]]
    return spec


def _with_short_label(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "label": _short(str(row["label"]))} if "label" in row else dict(row)


def _short(label: str) -> str:
    return wrap(label.replace("\n", " "), NARROW_LABELS) or label


def _short_title(title: Any) -> Any:
    def lines(text: str | Sequence[str]) -> list[str]:
        joined = text if isinstance(text, str) else " ".join(text)
        return textwrap.wrap(joined, 46) or [joined]

    if not isinstance(title, dict):
        return lines(title)
    given = {**title, "text": lines(title["text"]), "frame": "bounds"}
    if title.get("subtitle"):
        given["subtitle"] = [line for text in title["subtitle"] for line in textwrap.wrap(text, 52)]
    return given


def _narrow_channel(channel: object, longest: int) -> Any:
    """A channel with short labels, few ticks, and one column in its legend."""
    if not isinstance(channel, dict):
        return channel
    channel = dict(channel)
    if channel.get("field") == "label" and "scale" in channel:
        domain = [_short(str(label)) for label in channel["scale"]["domain"]]
        channel["scale"] = {**channel["scale"], "domain": domain}
    if isinstance(channel.get("title"), str):
        channel["title"] = textwrap.wrap(channel["title"], 40) or channel["title"]
    if isinstance(axis := channel.get("axis"), dict):
        axis = dict(axis)
        if channel.get("field") == "label":
            axis |= {"labels": True, "minExtent": 6 * longest}
        if isinstance(axis.get("tickCount"), int):
            axis["tickCount"] = min(4, axis["tickCount"])
        if "labelExpr" not in axis and "labelLimit" in axis:
            axis["labelLimit"] = 6 * NARROW_LABELS
        channel["axis"] = axis
    if isinstance(channel.get("legend"), dict):
        channel["legend"] = {**channel["legend"], "columns": 1}
    return channel


def _right_of(spec: Mapping[str, Any], width: float) -> bool:
    at = spec.get("encoding", {}).get("x", {}).get("value")
    return isinstance(at, int | float) and at > width


def _labels(spec: Mapping[str, Any]) -> list[str]:
    """The labels of the rows of a forest, in short lines."""
    rows = (spec.get("data") or {}).get("values", ())
    return [_short(str(row["label"])) for row in rows if "label" in row]


def _longest_label(spec: Mapping[str, Any]) -> int:
    """The characters of the longest line of the labels of all panels."""
    parts = [part for key in ("hconcat", "vconcat", "concat") for part in spec.get(key, ())]
    own = [len(line) for label in _labels(spec) for line in label.split("\n")]
    return max([*own, *map(_longest_label, parts)], default=0)


def _row_height(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The height of a row with room for all lines of its label."""
    height = dict(spec["height"])
    labels = _labels(spec)
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    lanes = max((labels.count(label) for label in labels), default=1) if "for" in height else 1
    height["step"] = max(height["step"], (14 * lines + 6) // max(1, lanes))
    return height


def _version() -> str:
    import altair as alt

    return "_".join(alt.SCHEMA_VERSION.split(".")[:2])


def _specification(chart: Chart) -> dict[str, Any]:
    """The chart as JSON with our fonts and colours.

    All texts are visible: a control character would abort the conversion.
    """
    content: dict[str, Any] = map_texts(chart.to_dict(validate=False), visible)
    view = {**content["config"]["view"], **STYLE["view"]}
    return {**content, "config": {**content["config"], **STYLE, "view": view}}


@dataclass(frozen=True, slots=True)
class ChartSet:
    """Charts by name, in the order of reading, and those that the data do not allow, with why."""

    charts: dict[str, Chart] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, draw: Callable[[], Chart]) -> None:
        """Draw one chart, or record the reason why it cannot be drawn."""
        try:
            self.charts[name] = draw()
        except InputError as error:
            self.skipped[name] = str(error)


def save_charts(
    charts: Mapping[str, Chart],
    folder: Path,
    formats: Iterable[str] = ("svg",),
    skipped: dict[str, str] | None = None,
) -> list[Path]:
    """Write each chart in each format, atomically; an HTML file needs no network.

    Charts that cannot be drawn are recorded in `skipped`, if it is given, with the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts.items():
        for kind in formats:
            path = folder / f"{name}.{kind}"
            try:
                content = _content(chart, kind)
            except DrawingError as error:
                if skipped is None:
                    raise
                skipped[path.name] = str(error)
                continue
            with replace_file(path) as file:
                file.write(content)
            paths.append(path)
    return paths


def _content(chart: Chart, kind: str) -> bytes:
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    if kind == "svg":
        return signed(to_svg(chart))
    if kind == "pdf":
        drawn = render("pdf", _specification(chart), _version())
        return drawn + f"% {files.MARK}\n".encode()
    return signed(_to_html(chart))


LESS_THAN = "\ue000"


def _to_html(chart: Chart) -> str:
    """A page that draws the chart; no text of it can end the script that has it."""
    import altair as alt
    from altair.utils.html import spec_to_html

    page: str = spec_to_html(
        map_texts(_specification(chart), lambda text: text.replace("<", LESS_THAN)),
        mode="vega-lite",
        vega_version=alt.VEGA_VERSION,
        vegaembed_version=alt.VEGAEMBED_VERSION,
        vegalite_version=alt.VEGALITE_VERSION,
        template="inline",
    )
    return page.replace(ascii(LESS_THAN)[1:-1], "\\u003c")


# ------------------------------------------------------------------------ charts as part of pages

MARK = re.compile(r'<(\w+) aria-label="([^"]+)" role="graphics-symbol" aria-role[a-z]+="[^"]*"')
SMALL, MIDDLE = 500, 660
"""On paper, charts up to the first width stand two in a row, to the second beside their text."""


def inline(svg: str, name: str, words: str, room: str = "") -> str:
    r"""The SVG as part of a page: unique ids, scalable, with a text for screen readers.

    A mark with a description is a picture of its own that the page's script lets the keyboard
    reach. Of marks with the same description, such as a dot and its interval, only the last is.

    >>> mark = '<path aria-label="nurse" role="graphics-symbol" aria-roledescription="m" d=""/>'
    >>> svg = f'<svg xmlns="u" width="9" height="5"><g id="a">{mark}{mark}</g></svg>'
    >>> print(re.sub("(?<=>)(?=<)| (?=font|view)", "\\n", inline(svg, "f", "< 2")))
    <svg class="small" style="--wide: 9" role="group" aria-label="&lt; 2"
    font-family="Liberation Sans, Arial, Helvetica, sans-serif"
    viewBox="0 0 9 5" width="9" height="5">
    <g id="f-a">
    <path class="tip" data-tip="nurse" d=""/>
    <path class="tip" role="img" aria-label="nurse" d=""/>
    </g>
    </svg>
    """
    from html import escape

    start = svg.index(">", svg.index("<svg"))
    size = dict(re.findall(r'\b(width|height)="([\d.]+)"', svg[:start]))
    body = re.sub(r'\bid="', f'id="{name}-', svg[start + 1 :])
    body = body.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    body = _reachable(_slim(body))
    wide, high = float(size["width"]), float(size["height"])
    width = "small" if wide <= SMALL else "middle" if wide <= MIDDLE else "wide"
    shape = room or ("tall" if high > 1.5 * wide else width)
    return (
        f'<svg class="{shape}" style="--wide: {wide:g}" role="group" aria-label="{escape(words)}" '
        f'font-family="{FONT}" '
        f'viewBox="0 0 {size["width"]} {size["height"]}" '
        f'width="{size["width"]}" height="{size["height"]}">{body}'
    )


def _slim(body: str) -> str:
    """The SVG without what says nothing, and with coordinates to a hundredth of a pixel."""
    body = re.sub(
        rf' (?:font-family="{FONT}"|pointer-events="none"|opacity="1"|stroke-miterlimit="10")',
        "",
        body,
    )
    body = re.sub(r'<path class="foreground"[^>]* display="none"[^>]*(?:/>|></path>)', "", body)
    return re.sub(
        r' (?:d|transform|x|y|x1|x2|y1|y2)="[^"]*"',
        lambda match: re.sub(r"(\.\d\d)\d+(?!\d|e)", r"\1", match[0]),
        body,
    )


def _reachable(body: str) -> str:
    """The SVG with roles for the marks that have a description, and none for all others."""
    last = {match[2]: match.start() for match in MARK.finditer(body)}

    def marked(match: re.Match[str]) -> str:
        words = 'role="img" aria-label' if last[match[2]] == match.start() else "data-tip"
        return f'<{match[1]} class="tip" {words}="{match[2]}"'

    body = MARK.sub(marked, body)
    body = re.sub(r' role="graphics-[^>]*? aria-roledescription="[^"]*"', "", body)
    body = re.sub(r' aria-label="(Title text [^"]*)?"| aria-hidden="true"', "", body)
    return body.replace('<g class="mark-text ', '<g aria-hidden="true" class="mark-text ')


SEPARATOR = " · "
"""Stands between the parts of a description; the page's script breaks the line there."""
JOINED = ("line", "area", "trail")
"""Marks that many rows share: they can only name their series."""
SERIES = ("color", "detail", "strokeDash", "shape", "opacity")


def describe(spec: dict[str, Any]) -> dict[str, Any]:
    """The Vega-Lite chart with a description for each mark that has something to say.

    A mark says what its tooltip says. Where no mark of the chart has a tooltip, a mark with a name
    says its position; an interval is silent then, since nothing says what it is an interval of.
    A text is silent: it can be read. In a chart of several panels a mark names its own.
    """
    units = list(_units(spec, {}))
    chosen = any(_tooltip(encoding) for _, encoding, _ in units)
    for unit, encoding, panel in units:
        mark = {"type": unit["mark"]} if isinstance(unit["mark"], str) else unit["mark"]
        tips = _tooltip(encoding)
        if mark["type"] in JOINED:
            tips = _named(encoding, SERIES) if tips or not chosen else []
        elif not chosen and (names := _named(encoding, ("y", "x", *SERIES))):
            places = [encoding.get(name, {}) for name in ("x", "y")]
            numbers = [{**p, "title": ""} for p in places if _is_number(p)]
            tips = [] if {"x2", "y2"} & set(encoding) else [*names, *numbers]
        if tips and mark["type"] != "text":
            unit["mark"] = {**mark, "aria": True}
            parts = [_part(tip, first=i == 0) for i, tip in enumerate(tips)]
            where = [json.dumps(SEPARATOR + panel, ensure_ascii=False)] if panel else []
            text = f"slice({' + '.join([*parts, *where])}, {len(SEPARATOR)})"
            unit.setdefault("encoding", {})["description"] = {"value": {"expr": text}}
    return spec


def _tooltip(encoding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = encoding.get("tooltip", [])
    return [tip for tip in (given if isinstance(given, list) else [given]) if "field" in tip]


def _named(encoding: Mapping[str, Any], channels: Sequence[str]) -> list[Mapping[str, Any]]:
    """The names that a mark has in these channels, as parts of a tooltip."""
    given = [encoding[name] for name in channels if "field" in encoding.get(name, {})]
    fields = {each["field"]: each for each in given if not _is_number(each)}
    return [{**each, "title": " "} for each in fields.values()]


def _is_number(channel: Mapping[str, Any]) -> bool:
    return "field" in channel and channel.get("type") == "quantitative"


def _units(
    spec: dict[str, Any], inherited: Mapping[str, Any], panel: str = ""
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any], str]]:
    """The parts of a chart that draw marks, each with its full encoding and its panel's title."""
    encoding = {**inherited, **spec.get("encoding", {})}
    if "mark" in spec:
        yield spec, encoding, panel
    for part in spec.get("layer", ()):
        yield from _units(part, encoding, panel)
    for key in ("concat", "hconcat", "vconcat"):
        for part in spec.get(key, ()):
            yield from _units(part, encoding, _heading_text(part) or panel)
    if "spec" in spec:
        yield from _units(spec["spec"], encoding, panel)


def _heading_text(spec: Mapping[str, Any]) -> str:
    title = spec.get("title") or ""
    text = title.get("text", "") if isinstance(title, dict) else title
    return text if isinstance(text, str) else " ".join(text)


def _part(tip: Mapping[str, Any], *, first: bool) -> str:
    """The expression of a field with its title and separator, empty where a row has no value.

    A blank title is left out, and that of a name at the head.
    """
    value = f"datum[{json.dumps(tip['field'])}]"
    numeric = _is_number(tip)
    title = str(tip.get("title") or tip["field"].replace("_", " "))
    head = f"{title}: " if title.strip() and (numeric or not first) else ""
    if not numeric:
        text = f'replace(toString({value}), /\\n/g, " ")'
    elif "format" in tip:
        text = f"format({value}, {json.dumps(tip['format'])})"
    else:
        text = f'(abs({value}) < 1000 ? format({value}, ".3~g") : format({value}, ",.0f"))'
    start = json.dumps(SEPARATOR + head, ensure_ascii=False)
    return f'(isValid({value}) && {value} !== "" ? {start} + {text} : "")'
