"""What all charts share: colours that most colour-blind readers can tell apart, fonts, SVG."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from evenhand.report.charts_words import described

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
MARK = re.compile(r'<(\w+) aria-label="([^"]+)" role="graphics-symbol" aria-role[a-z]+="[^"]*"')
SMALL, MIDDLE = 500, 660
"""On paper, charts up to the first width stand two in a row, to the second beside their words."""
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
    import altair as alt
    import vl_convert

    version = "_".join(alt.SCHEMA_VERSION.split(".")[:2])
    svg: str = vl_convert.vegalite_to_svg(described(styled(chart).to_dict()), vl_version=version)
    return svg


def inline(svg: str, name: str, words: str) -> str:
    r"""The SVG as part of a page: ids made its own, scalable, with words for screen readers.

    A mark with a description is a picture of its own that the page's script lets the keyboard
    reach. Of marks that say the same, such as a dot and its interval, only the last is.

    >>> mark = '<path aria-label="nurse" role="graphics-symbol" aria-roledescription="m" d=""/>'
    >>> svg = f'<svg xmlns="u" width="9" height="5"><g id="a">{mark}{mark}</g></svg>'
    >>> print(inline(svg, "f", "< 2").replace("><", ">\n<").replace(" viewBox", "\nviewBox"))
    <svg class="small" style="--wide: 9" role="group" aria-label="&lt; 2"
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
    body = _reachable(body)
    wide, high = float(size["width"]), float(size["height"])
    room = "small" if wide <= SMALL else "middle" if wide <= MIDDLE else "wide"
    shape = "tall" if high > 1.5 * wide else room
    return (
        f'<svg class="{shape}" style="--wide: {wide:g}" role="group" aria-label="{escape(words)}" '
        f'viewBox="0 0 {size["width"]} {size["height"]}" '
        f'width="{size["width"]}" height="{size["height"]}">{body}'
    )


def _reachable(body: str) -> str:
    """The SVG with roles for the marks that say something, and none for all else."""
    last = {found[2]: found.start() for found in MARK.finditer(body)}

    def marked(found: re.Match[str]) -> str:
        words = 'role="img" aria-label' if last[found[2]] == found.start() else "data-tip"
        return f'<{found[1]} class="tip" {words}="{found[2]}"'

    body = MARK.sub(marked, body)
    body = re.sub(r' role="graphics-[^>]*? aria-roledescription="[^"]*"', "", body)
    body = re.sub(r' aria-label="(Title text [^"]*)?"| aria-hidden="true"', "", body)
    return body.replace('<g class="mark-text ', '<g aria-hidden="true" class="mark-text ')
