"""What the marks of a chart say, read from the SVG that a page is given."""

from __future__ import annotations

import re
from html import unescape

import altair as alt

from evenhand.charts import BLUE, Chart, data, inline, to_svg

DATA = data(
    [
        {"word": 'nurse & "b"', "score": -0.12345, "low": -0.2, "high": 0.1, "kind": "one"},
        {"word": "boss\nof all", "score": 1234.4, "low": None, "high": None, "kind": ""},
    ]
)
BASE = alt.Chart(DATA).encode(y="word:N")
DOTS = BASE.mark_point().encode(x="score:Q")
TOLD = [
    alt.Tooltip("word:N", title="Word"),
    alt.Tooltip("score:Q", title="Score", format=".2f"),
    alt.Tooltip("low:Q"),
    alt.Tooltip("kind:N", title=" "),
]


def said(chart: Chart, *, reached: bool = True) -> list[str]:
    """What the marks say: those that the keyboard reaches, or the pointer only."""
    words = r'role="img" aria-label' if reached else "data-tip"
    found = re.findall(rf'class="tip" {words}="([^"]*)"', inline(to_svg(chart), "f", "words"))
    return [unescape(one) for one in found]


def test_a_mark_says_its_tooltip_without_what_is_missing() -> None:
    assert said(DOTS.encode(tooltip=TOLD)) == [
        'nurse & "b" · Score: −0.12 · low: −0.2 · one',
        "boss of all · Score: 1234.40",
    ]


def test_without_any_tooltip_a_named_mark_says_where_it_stands() -> None:
    line = BASE.mark_rule().encode(x="low:Q", x2="high:Q")
    assert said(alt.layer(line, DOTS)) == [
        'nurse & "b" · score: −0.123',
        "boss of all · score: 1,234",
    ]
    assert said(alt.Chart(DATA).mark_point().encode(x="score:Q", y="low:Q")) == []


def test_where_some_have_tooltips_the_others_are_silent() -> None:
    assert len(said(alt.layer(DOTS, DOTS.encode(tooltip=TOLD)))) == 2


def test_a_dot_and_its_interval_are_one_stop() -> None:
    base = BASE.encode(tooltip=TOLD)
    line = base.mark_rule().encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(color=BLUE).encode(x="score:Q")
    both = alt.layer(line, dots)
    assert len(said(both)) == 2
    assert set(said(both, reached=False)) <= set(said(both))
    last = inline(to_svg(both), "f", "words").rindex('role="img" aria-label="nurse')
    assert last > inline(to_svg(both), "f", "words").rindex("data-tip=")


def test_a_line_says_its_series_and_never_one_point() -> None:
    line = alt.Chart(DATA).mark_line().encode(x="score:Q", y="low:Q", tooltip=TOLD)
    assert said(line) == []
    series = line.encode(color="kind:N")
    assert said(series) == ["one"]
    assert len(said(alt.layer(DOTS, series))) == 1
    ring = series.encode(tooltip=alt.value(None))
    assert said(ring) == ["one"]
    assert len(said(alt.layer(ring, DOTS.encode(tooltip=TOLD)))) == 2


def test_a_text_says_nothing_and_is_hidden_from_screen_readers() -> None:
    text = BASE.mark_text().encode(x="score:Q", text="word:N", tooltip=TOLD)
    assert said(text) == []
    svg = inline(to_svg(text.properties(title="Heading")), "f", "words")
    assert svg.count('aria-hidden="true"') == svg.count('<g aria-hidden="true" class="mark-text ')
    assert "graphics-" not in svg
    assert svg.count("aria-label") == 1


def test_a_panel_is_named() -> None:
    titled = [
        DOTS.properties(title=title) for title in ("Before", alt.TitleParams(["After", "it"]))
    ]
    assert said(alt.hconcat(*titled))[::2] == [
        'nurse & "b" · score: −0.123 · Before',
        'nurse & "b" · score: −0.123 · After it',
    ]
    assert said(titled[0])[0] == 'nurse & "b" · score: −0.123'
