"""What all charts share: colours that most colour-blind readers can tell apart, fonts, SVG."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "BLUE", "GREEN", "GREY", "INK", "ORANGE", "PALE", "PURPLE", "Chart", "inline", "rows", "styled",
    "to_svg", "wrapped",
]  # fmt: skip

Chart: TypeAlias = Any
"""An Altair chart; its many kinds have no common type that fits."""

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY, PALE = "#222222", "#6b6b6b", "#d5dae0"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def rows(values: Sequence[Mapping[str, Any]]) -> alt.Data:
    """Rows as the chart's data."""
    import altair as alt

    data: alt.Data = alt.Data(values=[dict(row) for row in values])  # type: ignore[no-untyped-call]
    return data


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most `width` characters, for an axis label."""
    return "\n".join(textwrap.wrap(text, width))


def styled(chart: Chart) -> Chart:
    """The chart with our fonts and colours."""
    return (
        chart.configure(font=FONT, background="#ffffff", aria=False, padding=8)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK, titleColor=INK, labelFontSize=12, titleFontSize=12, titleFontWeight=400,
            gridColor="#ececec", labelFlush=False,
            domainColor="#b5b5b5", tickColor="#b5b5b5", titlePadding=8,
        )
        .configure_title(color=INK, fontSize=13, fontWeight=600, anchor="start", offset=8)
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=12, titleFontSize=12, labelLimit=400,
            orient="top", direction="horizontal", symbolType="circle",
        )
    )  # fmt: skip


def to_svg(chart: Chart) -> str:
    """The chart as a stand-alone SVG file, made without a browser or network."""
    text = io.StringIO()
    styled(chart).save(text, format="svg")
    return text.getvalue()


def inline(svg: str, name: str, words: str) -> str:
    """The SVG as part of a page: ids made its own, scalable, with a text for screen readers.

    >>> inline('<svg xmlns="u" width="9" height="5"><g id="a"/></svg>', "f", "< 2")
    '<svg role="img" aria-label="&lt; 2" viewBox="0 0 9 5" width="9" height="5"><g id="f-a"/></svg>'
    """
    from html import escape

    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    size = dict(
        re.findall(r'\b(width|height)="([\d.]+)"', svg[: svg.index(">", svg.index("<svg"))])
    )
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')
    return (
        f'<svg role="img" aria-label="{escape(words)}" '
        f'viewBox="0 0 {size["width"]} {size["height"]}" '
        f'width="{size["width"]}" height="{size["height"]}">{body}'
    )
