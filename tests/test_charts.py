"""What the marks of a chart say, read from the SVG that a page is given."""

from __future__ import annotations

import re
from html import unescape

import altair as alt
import pytest

from evenhand import charts
from evenhand.charts import (
    BLUE,
    Chart,
    curves,
    data,
    forest,
    forests,
    heatmap,
    histogram,
    inline,
    save_charts,
    scatter,
    to_svg,
    to_svgs,
)

DATA = data(
    [
        {"word": 'nurse & "b"', "score": -0.12345, "low": -0.2, "high": 0.1, "kind": "one"},
        {"word": "boss\nof all", "score": 1234.4, "low": None, "high": None, "kind": ""},
    ]
)
BASE = alt.Chart(DATA).encode(y="word:N")
DOTS = BASE.mark_point().encode(x="score:Q")
TOOLTIPS = [
    alt.Tooltip("word:N", title="Word"),
    alt.Tooltip("score:Q", title="Score", format=".2f"),
    alt.Tooltip("low:Q"),
    alt.Tooltip("kind:N", title=" "),
]


def said(chart: Chart, *, reached: bool = True) -> list[str]:
    """What the marks say: those that the keyboard reaches, or the pointer only."""
    words = r'role="img" aria-label' if reached else "data-tip"
    tips = re.findall(rf'class="tip" {words}="([^"]*)"', inline(to_svg(chart), "f", "words"))
    return [unescape(tip) for tip in tips]


def test_a_mark_says_its_tooltip_without_what_is_missing() -> None:
    assert said(DOTS.encode(tooltip=TOOLTIPS)) == [
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
    assert len(said(alt.layer(DOTS, DOTS.encode(tooltip=TOOLTIPS)))) == 2


def test_a_dot_and_its_interval_are_one_stop() -> None:
    base = BASE.encode(tooltip=TOOLTIPS)
    line = base.mark_rule().encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(color=BLUE).encode(x="score:Q")
    both = alt.layer(line, dots)
    assert len(said(both)) == 2
    assert set(said(both, reached=False)) <= set(said(both))
    last = inline(to_svg(both), "f", "words").rindex('role="img" aria-label="nurse')
    assert last > inline(to_svg(both), "f", "words").rindex("data-tip=")


def test_a_line_says_its_series_and_never_one_point() -> None:
    line = alt.Chart(DATA).mark_line().encode(x="score:Q", y="low:Q", tooltip=TOOLTIPS)
    assert said(line) == []
    series = line.encode(color="kind:N")
    assert said(series) == ["one"]
    assert len(said(alt.layer(DOTS, series))) == 1
    ring = series.encode(tooltip=alt.value(None))
    assert said(ring) == ["one"]
    assert len(said(alt.layer(ring, DOTS.encode(tooltip=TOOLTIPS)))) == 2


def test_a_text_says_nothing_and_is_hidden_from_screen_readers() -> None:
    text = BASE.mark_text().encode(x="score:Q", text="word:N", tooltip=TOOLTIPS)
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


def drawn(chart: Chart) -> str:
    svg = to_svg(chart)
    assert "NaN" not in svg
    assert "undefined" not in svg
    return svg


def test_a_forest_has_lanes_ticks_and_references() -> None:
    rows = [
        {"label": label, "series": series, "value": 0.5, "low": 0.2, "high": high, "ideal": ideal}
        for label, ideal in (("score", 0.5), ("distance", 0.0))
        for series, high in (("before", 0.7), ("after", float("inf")))
    ]
    looks = {"before": (BLUE, "circle"), "after": ("#D55E00", "square")}
    chart = forest(
        rows,
        title="Both",
        looks=looks,
        beside=True,
        references=[{"value": 0.4, "low": 0.3, "high": 0.5, "text": "chance"}],
        text="interval",
    )
    svg = drawn(chart)
    for text in ("score", "distance", "before", "after", "chance", "[0.200, ∞]"):
        assert f">{text}</text>" in svg
    assert "extends beyond the plot" in svg
    assert said(chart) == [
        "score · before · value: 0.500 · interval: [0.200, 0.700]",
        "score · after · value: 0.500 · interval: [0.200, ∞]",
        "distance · before · value: 0.500 · interval: [0.200, 0.700]",
        "distance · after · value: 0.500 · interval: [0.200, ∞]",
    ]


def test_panels_of_one_scale_share_it() -> None:
    parts = {
        name: [{"label": "a", "value": value, "low": value - 1, "high": value + 1}]
        for name, value in (("one", 0.0), ("two", 5.0), ("other", 90.0))
    }
    chart = forests(parts, columns=3, scale=lambda name: "other" if name == "other" else "same")
    domains = []
    for panel in chart.to_dict()["concat"]:
        (line,) = (part for part in panel["layer"] if "x2" in part["encoding"])
        domains.append(line["encoding"]["x"]["scale"]["domain"])
    assert domains[0] == domains[1] != domains[2]
    drawn(chart)


def test_the_other_kinds_are_drawn() -> None:
    points = [{"x": x, "y": x * x, "series": "squares", "chosen": x == 2} for x in range(4)]
    chart = curves(points, {"squares": (BLUE, (1, 0))}, x="x", y="y", points=True)
    assert any("squares" in words for words in said(chart))
    dots = [{"word": "nurse", "x": 1.0, "y": 2.0}, {"word": "boss", "x": 2.0, "y": 1.0}]
    chart = scatter(dots, x="x", y="y", x_title="x", y_title="y", tips={"word": "", "x": "x"})
    assert said(chart)[-2:] == ["nurse · x: 1", "boss · x: 2"]
    bars = [{"low": i / 4, "high": (i + 1) / 4, "n": i, "full": 2} for i in range(4)]
    mean = {"value": 0.6, "low": 0.5, "high": 0.7, "shown": "0.600 [0.500, 0.700]"}
    chart = histogram(bars, outline="full", band=(0.4, 0.6), middle=0.5, mean=mean)
    assert "mean · 0.600 [0.500, 0.700]" in said(chart)
    boxes = [{"across": "a", "down": "b", "value": 0.5, "shown": "0.5", "mark": ""}]
    chart = heatmap(boxes, across=["a", "c"], down=["b"])
    assert "b · a · value: 0.5" in said(chart)
    drawn(chart)


HOSTILE = "</script><script>window.pwned=1</script>\x1b[31m\x00\u202eder"


@pytest.mark.parametrize("kind", ["svg", "html", "pdf"])
def test_labels_that_try_to_be_code_are_drawn_as_they_are(tmp_path, kind):
    rows = [{"label": HOSTILE, "value": 0.1, "low": 0.0, "high": 0.2, "ideal": 0.0}]
    (path,) = save_charts({"hostile": forests({HOSTILE: rows})}, tmp_path, [kind])
    content = path.read_bytes()
    assert b"<script>window.pwned" not in content
    if kind != "pdf":
        assert b"\x1b" not in content
        assert b"x1b[31m" in content


@pytest.mark.parametrize("columns", [1, 3])
def test_a_narrow_chart_has_the_same_marks_in_a_third_of_the_width(columns: int) -> None:
    parts = {
        name: [
            {
                "label": f"{name} {number} with a label that is far too long for a phone",
                "value": number,
                "low": number - 1,
                "high": number + 1,
            }
            for number in range(4)
        ]
        for name in ("first", "second", "third")
    }
    chart = forests(parts, columns=columns, width=300, title="A title " * 20, text="label")
    wide, narrow = to_svgs(chart)
    sizes = [
        float(re.search(r'width="([\d.]+)"', svg)[1])  # type: ignore[index]
        for svg in (wide, narrow)
    ]
    assert sizes[1] < 360 < sizes[0]
    assert marks(narrow) == marks(wide)
    assert len(marks(wide)) == 12


def marks(svg: str) -> set[str]:
    """What the marks say, in one line each."""
    labels = re.findall(r'class="tip" role="img" aria-label="([^"]*)"', inline(svg, "f", "words"))
    return {" ".join(label.split()) for label in labels}


def test_layers_that_share_their_parts_make_the_same_chart(monkeypatch) -> None:
    rows = [
        {"label": "a", "value": 0.2, "low": 0.1, "high": 0.4},
        {"label": "b", "value": 1.0, "low": 0.5, "high": 1.5},
    ]

    def draw():
        parts = [
            charts.forest(rows[:n], title="T", references=[{"value": 0.5, "text": "half"}])
            for n in (1, 2)
        ]
        return charts.panels(parts, title="All").to_dict()

    shared = draw()
    monkeypatch.setattr(charts, "_layer_class", lambda: alt.Chart)
    assert shared == draw()
