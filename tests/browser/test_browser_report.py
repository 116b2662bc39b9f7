"""The page in a real browser: it opens without a complaint, and what it promises works."""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from devtools import Page

from evenhand.charts import BLUE, GREEN, GREY, INK, ORANGE, PURPLE

Open = Callable[..., Page]

TABLE = "document.querySelector('table.words')"
BUTTON = f"{TABLE}.querySelectorAll('thead button')"
VALUES = f"Array.from({TABLE}.tBodies[0].rows, row => row.cells[2].dataset.value)"
SORT = f"{TABLE}.querySelectorAll('thead th')[2].getAttribute('aria-sort')"
VISIBLE = f"{TABLE}.querySelectorAll('tbody tr:not([hidden])').length"
FOUND = "document.getElementById('found').textContent"
TIP = (
    "(() => { const t = document.getElementById('tip'); return t.hidden ? null : t.innerText; })()"
)
FOCUS = "document.activeElement"
FOREST = "figure-vectors-measures-simulated-forest"
MARK = f"document.querySelector('#{FOREST} svg:not(.narrow) .tip[role=img]')"
SHOWN = "document.querySelector('main > .on').id"


def changed(report: Path, target: Path, **replaced: str) -> Path:
    text = report.read_text(encoding="utf-8")
    for old, new in replaced.items():
        text = text.replace(f"</{old}>", f"{new}</{old}>", 1)
    target.write_text(text, encoding="utf-8")
    return target


@pytest.fixture
def show_words(show: Open) -> Page:
    """The page at its table of words, on its tab and in its fold."""
    return show(at=show().run(f"{TABLE}.closest('details').id"))


def open_all(page: Page) -> None:
    """Show each tab once, so that it is prepared, and open every fold."""
    page.run("document.querySelectorAll('[role=tab]').forEach(tab => tab.click())")
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.run("new Promise(done => setTimeout(done, 100))")


def test_it_opens_without_a_complaint_and_asks_for_nothing(show: Open, report: Path) -> None:
    page = show()
    assert page.complaints() == []
    assert page.requests() == [report.as_uri()]
    assert page.run("document.title") == "Bias audit of small"


def test_a_complaint_would_be_seen(show: Open, report: Path, tmp_path: Path) -> None:
    broken = changed(report, tmp_path / "broken.html", body="<script>nothing.here()</script>")
    assert show(broken).complaints()


def test_the_policy_stops_requests(show: Open, report: Path, tmp_path: Path) -> None:
    picture = "<img alt='' src='http://127.0.0.1:9/x.png'>"
    calling = changed(report, tmp_path / "calling.html", body=picture)
    page = show(calling)
    page.run("new Promise(done => setTimeout(done, 300))")
    assert any("Content Security Policy" in said for said in page.complaints())
    text = calling.read_text(encoding="utf-8").replace("Content-Security-Policy", "x-none")
    open_one = tmp_path / "open.html"
    open_one.write_text(text, encoding="utf-8")
    assert "http://127.0.0.1:9/x.png" in show(open_one).requests()


def test_a_click_sorts_and_a_second_turns_round(show_words: Page) -> None:
    page = show_words
    page.click(f"{BUTTON}[2]")
    values = [float(value) for value in page.run(VALUES)]
    assert len(values) > 10
    assert values == sorted(values)
    assert page.run(SORT) == "ascending"
    page.click(f"{BUTTON}[2]")
    assert [float(value) for value in page.run(VALUES)] == sorted(values, reverse=True)
    assert page.run(SORT) == "descending"


@pytest.mark.parametrize("key", ["Enter", " "])
def test_the_keyboard_sorts(show_words: Page, key: str) -> None:
    page = show_words
    page.run(f"{BUTTON}[1].focus()")
    page.press("Tab", key)
    values = [float(value) for value in page.run(VALUES)]
    assert values == sorted(values)
    assert page.run(SORT) == "ascending"
    assert page.run(f"{TABLE}.querySelectorAll('[aria-sort]').length") == 1


def test_what_has_no_number_stays_at_the_end(show_words: Page) -> None:
    page = show_words
    page.run(f"delete {TABLE}.tBodies[0].rows[3].cells[2].dataset.value")
    page.run(f"{TABLE}.tBodies[0].rows[3].cells[2].textContent = '–'")
    for _ in range(2):
        page.click(f"{BUTTON}[2]")
        values = page.run(f"{VALUES}.map(value => value === undefined)")
        assert values.count(True) == 1
        assert values[-1] is True


def test_numbers_within_names_are_sorted_as_numbers(show_words: Page) -> None:
    page = show_words
    page.click(f"{BUTTON}[0]")
    names = page.run(f"Array.from({TABLE}.tBodies[0].rows, row => row.cells[0].textContent)")
    own = [name for name in names if name.startswith("female-stereotype-")]
    assert [int(name.rsplit("-", 1)[1]) for name in own] == sorted(range(len(own)))


FILTER = f"{TABLE}.closest('details').querySelector('.tools input')"


def test_a_filter_leaves_only_matching_rows(show_words: Page) -> None:
    page = show_words
    every = page.run(VISIBLE)
    page.run(f"{FILTER}.focus()")
    page.write("female-stereotype-3")
    assert page.run(VISIBLE) == 1
    assert page.run(f"{FILTER}.nextElementSibling.textContent") == f"1 of {every} rows"
    page.run(f"{FILTER}.value = ''; {FILTER}.dispatchEvent(new Event('input'))")
    assert page.run(VISIBLE) == every


def test_search_says_when_nothing_is_found(show: Open) -> None:
    page = show()
    page.run("document.getElementById('find').focus()")
    page.write("no such word")
    assert page.run(FOUND) == "nothing found"
    assert page.run("document.getElementById('after').disabled")


def test_technical_words_lead_to_the_glossary(show: Open) -> None:
    page = show()
    open_all(page)
    links = page.run(
        "Array.from(document.querySelectorAll('main a.term'), a => ["
        "a.closest('section[id]').id, a.hash, a.textContent, a.title])"
    )
    assert {"stereotypes", "WEAT"} <= {text for _, _, text, _ in links}
    assert len({(part, to) for part, to, _, _ in links}) == len(links), "once in each part"
    for _, to, _, title in links:
        said = f"document.querySelector('#glossary {to}').nextElementSibling.textContent"
        assert page.run(said) == title


def test_search_goes_from_match_to_match_and_opens_tab_and_fold(show: Open) -> None:
    page = show()
    in_view = (
        "(() => { const b = document.querySelector('.current').getBoundingClientRect();"
        " return b.height > 0 && b.top > 50 && b.bottom < innerHeight; })()"
    )
    assert page.run(SHOWN) == "start"
    page.run("document.getElementById('find').focus()")
    page.write("female-stereotype-1")
    many = int(page.run(FOUND).split()[0])
    assert many > 3
    page.press("Enter")
    assert page.run(FOUND).startswith(f"1 of {many}: ")
    seen = set()
    for _ in range(many):
        page.press("Enter")
        assert page.run(in_view)
        seen.add(page.run("document.querySelector('.current').closest('main > section').id"))
    assert {"vectors", "appendix"} <= seen
    assert page.run(FOUND).startswith(f"1 of {many}: ")
    page.press("Enter", shift=True)
    assert page.run(FOUND).startswith(f"{many} of {many}: ")
    page.click("document.getElementById('after')")
    assert page.run(FOUND).startswith(f"1 of {many}: ")
    page.run("document.getElementById('find').focus()")
    page.press("Escape")
    assert page.run("document.querySelectorAll('.current').length") == 0


def test_search_finds_what_only_a_mark_says(show: Open) -> None:
    page = show()
    label = page.run(f"{MARK}.getAttribute('aria-label')")
    page.run("document.getElementById('find').focus()")
    page.write(label)
    page.press("Enter")
    assert page.run(SHOWN) == "vectors"
    assert page.run(TIP).splitlines() == label.split(" · ")


TAB = "document.querySelector('[role=tab][aria-selected=true]')"


def test_tabs_show_one_section_and_are_reached_by_keyboard(show: Open) -> None:
    page = show()
    panels = page.run("Array.from(document.querySelectorAll('[role=tabpanel]'), p => p.id)")
    assert panels[0] == "start"
    assert {"vectors", "appendix", "glossary"} <= set(panels)
    visible = (
        "Array.from(document.querySelectorAll('main > section'))"
        ".filter(s => s.offsetHeight).map(s => s.id)"
    )
    assert page.run(visible) == ["start"]
    page.run(f"{TAB}.focus()")
    page.press("ArrowRight")
    assert page.run(visible) == [panels[1]]
    assert page.run(f"{FOCUS} === {TAB}")
    assert page.run("document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1
    page.press("End")
    assert page.run(visible) == [panels[-1]]
    page.press("ArrowRight")
    assert page.run(visible) == ["start"]
    controlled = page.run(f"{TAB}.getAttribute('aria-controls')")
    assert controlled == "start"
    assert page.run("document.getElementById('start').getAttribute('aria-labelledby')") == page.run(
        f"{TAB}.id"
    )


@pytest.mark.parametrize(
    ("at", "becomes"),
    [
        ("vectors", "#vectors"),
        ("vectors-measures-simulated", "#vectors/vectors-measures-simulated"),
        ("vectors/vectors-measures-simulated", "#vectors/vectors-measures-simulated"),
        (
            "figure-vectors-measures-simulated-distances",
            "#vectors/figure-vectors-measures-simulated-distances",
        ),
        ("term-ideal", "#glossary/term-ideal"),
    ],
)
def test_a_permalink_opens_tab_and_fold(show: Open, at: str, becomes: str) -> None:
    page = show(at=at)
    assert page.run("location.hash") == becomes
    assert page.run(SHOWN) == becomes[1:].split("/")[0]
    target = f"document.getElementById('{becomes[1:].split('/')[-1]}')"
    assert page.run(f"{target}.checkVisibility()")
    assert 0 <= page.run(f"{target}.getBoundingClientRect().top") < 800


def test_a_link_to_nowhere_changes_nothing(show: Open) -> None:
    page = show(at="vectors/no%22such<place")
    assert page.complaints() == []
    assert page.run(SHOWN) == "start"


def test_going_back_returns_to_the_tab(show: Open) -> None:
    page = show()
    page.click("document.querySelector('a[role=tab][href=\"#vectors\"]')")
    page.click("document.querySelector('a[href=\"#vectors-mitigation\"]')")
    page.run("new Promise(done => setTimeout(done, 50))")
    assert page.run("location.hash") == "#vectors/vectors-mitigation"
    page.click("document.querySelector('a[role=tab][href=\"#appendix\"]')")
    assert page.run(SHOWN) == "appendix"
    page.run("new Promise(done => { addEventListener('hashchange', done); history.back(); })")
    assert page.run("location.hash") == "#vectors/vectors-mitigation"
    assert page.run(SHOWN) == "vectors"


CATCH = """(() => { window.saved = [];
  HTMLAnchorElement.prototype.click = function () { this.download && saved.push([this.download,
    fetchBlob]); };
  let fetchBlob; const make = URL.createObjectURL;
  URL.createObjectURL = blob => { fetchBlob = blob; return make.call(URL, blob); }; })()"""


def saved(page: Page, press: str) -> tuple[str, str]:
    """The name and the content of the file that a button saves."""
    page.run(CATCH)
    page.run(f"{press}.click()")
    page.run(
        "new Promise(done => { const wait = () => saved.length ? done() : setTimeout(wait, 20);"
        " wait(); })"
    )
    name: str = page.run("saved[0][0]")
    text: str = page.run(
        "saved[0][1].arrayBuffer().then(b => Array.from(new Uint8Array(b), c =>"
        " String.fromCharCode(c)).join(''))"
    )
    return name, text


def test_the_csv_is_the_table(show_words: Page) -> None:
    page = show_words
    press = f"{TABLE}.closest('details').querySelector('.tools button')"
    name, text = saved(page, press)
    assert name == page.run(f"{TABLE}.closest('details').id") + ".csv"
    head, *rows = csv.reader(io.StringIO(text.encode("latin-1").decode()))
    assert head == page.run(f"Array.from({TABLE}.tHead.rows[0].cells, c => c.textContent)")
    cells = page.run(
        f"Array.from({TABLE}.tBodies[0].rows, r => Array.from(r.cells, c =>"
        " [c.textContent, c.dataset.value ?? null]))"
    )
    assert len(rows) == len(cells) > 10
    for row, shown in zip(rows, cells, strict=True):
        for field, (words, value) in zip(row, shown, strict=True):
            if value is None or " " in words:
                assert field == words
            else:
                assert float(field) == float(value)
                assert float(field) == pytest.approx(float(words.replace("−", "-")), abs=1e-3)


def test_the_csv_of_a_filtered_table_has_the_rows_shown(show_words: Page) -> None:
    page = show_words
    page.run(f"{TABLE}.tBodies[0].rows[2].cells[0].textContent = '=1+1,\"x\"'")
    page.run(f"{FILTER}.value = '=1+1'; {FILTER}.dispatchEvent(new Event('input'))")
    _, text = saved(page, f"{TABLE}.closest('details').querySelector('.tools button')")
    _, row = csv.reader(io.StringIO(text.encode("latin-1").decode()))
    assert row[0] == '=1+1,"x"'


@pytest.mark.parametrize("width", [1280, 360])
def test_a_chart_is_saved_as_svg_and_png(show: Open, width: int) -> None:
    page = show(width=width, at="figure-vectors-measures-simulated-forest")
    buttons = "document.querySelectorAll('#figure-vectors-measures-simulated-forest .tools button')"
    name, svg = saved(page, f"{buttons}[0]")
    assert name == "vectors-measures-simulated-forest.svg"
    tree = ElementTree.fromstring(svg.encode("latin-1"))  # noqa: S314 (our own)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    size = [float(part) for part in tree.attrib["viewBox"].split()[2:]]
    assert (size[0] < 360) == (width == 360)
    name, png = saved(page, f"{buttons}[1]")
    assert name == "vectors-measures-simulated-forest.png"
    data = png.encode("latin-1")
    assert data.startswith(b"\x89PNG")
    drawn = struct.unpack(">II", data[16:24])
    assert drawn == tuple(int(2 * side) for side in size)
    assert len(data) > 5000, "something is drawn"
    assert page.complaints() == []


def test_every_table_and_chart_can_be_saved_and_linked(show: Open) -> None:
    page = show()
    open_all(page)
    assert page.run(
        "Array.from(document.querySelectorAll('table')).every(table => {"
        " const box = table.closest('.scroll') || table, next = box.nextElementSibling;"
        " return [box.previousElementSibling, next, next?.nextElementSibling].some("
        "bar => bar?.className === 'tools' && bar.textContent.endsWith('CSVLink')); })"
    )
    assert page.run(
        "Array.from(document.querySelectorAll('figure .tools')).every("
        "t => t.textContent === 'SVGPNGLink')"
    )
    links = page.run("Array.from(document.querySelectorAll('.tools a'), a => a.hash)")
    assert len(set(links)) == len(links) > 10


def test_without_a_script_the_page_is_plain_sections(
    show: Open, report: Path, tmp_path: Path
) -> None:
    text = report.read_text(encoding="utf-8")
    plain = tmp_path / "plain.html"
    plain.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.S), encoding="utf-8")
    page = show(plain)
    assert page.run(
        "Array.from(document.querySelectorAll('main > section')).every(s => s.offsetHeight > 0)"
    )
    links = page.run("Array.from(document.querySelectorAll('nav a'), a => a.hash)")
    assert len(links) > 3
    assert page.run(f"{links}.every(hash => document.querySelector(hash))")


def test_a_pointer_over_a_mark_shows_what_it_is(show: Open) -> None:
    page = show(at="figure-vectors-measures-simulated-forest")
    assert page.run(TIP) is None
    label = page.run(f"{MARK}.getAttribute('aria-label')")
    page.point(MARK)
    assert page.run(TIP).splitlines() == label.split(" · ")
    page.point(MARK, by=(0, 7))
    assert page.run(TIP).splitlines() == label.split(" · "), "a near miss counts"
    page.point("document.querySelector('#vectors h2')")
    assert page.run(TIP) is None


def test_the_keyboard_walks_over_the_marks(show: Open) -> None:
    page = show(at="vectors-measures-simulated")
    assert page.run(f"{MARK}.closest('svg').querySelectorAll('[tabindex=\"0\"]').length") == 1
    page.run(f"{MARK}.closest('section').querySelector('h4').setAttribute('tabindex', -1)")
    page.run(f"{MARK}.closest('section').querySelector('h4').focus()")
    page.press("Tab")
    label = f"{FOCUS}.getAttribute('aria-label')"
    first = page.run(label)
    assert page.run(f"{FOCUS} === {MARK}")
    assert page.run(TIP).splitlines() == first.split(" · ")
    page.press("ArrowRight")
    second = page.run(label)
    assert second != first
    assert page.run(TIP).splitlines() == second.split(" · ")
    page.press("ArrowLeft")
    assert page.run(label) == first
    page.press("End", "ArrowRight")
    assert page.run(f"{FOCUS}.closest('figure').id") == "figure-vectors-measures-simulated-forest"
    page.press("Escape")
    assert page.run(TIP) is None
    page.press("Tab")
    assert not page.run(f"{FOCUS}.closest('svg')"), "one stop for a figure"


def test_every_figure_has_marks_that_say_something(show: Open) -> None:
    silent = show().run(
        "Array.from(document.querySelectorAll('figure svg')).filter("
        "f => !f.querySelector('.tip[role=img][aria-label]')).map(f => f.closest('figure').id)"
    )
    assert silent == []


BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_follow_the_system_and_the_switch(show: Open, dark: bool) -> None:
    page = show(dark=dark, at="vectors")
    colours = {False: "rgb(255, 255, 255)", True: "rgb(22, 24, 27)"}
    pressed = "document.getElementById('theme').getAttribute('aria-pressed')"
    paper = "getComputedStyle(document.querySelector('.chart svg > rect')).fill"
    assert page.run(BACKGROUND) == page.run(paper) == colours[dark]
    assert page.run(pressed) == str(dark).lower()
    page.click("document.getElementById('theme')")
    assert page.run(BACKGROUND) == page.run(paper) == colours[not dark]
    assert page.run(pressed) == str(not dark).lower()
    page.run("try { localStorage.clear() } catch {}")


@pytest.mark.parametrize("dark", [False, True])
def test_the_colours_of_figures_stand_out(show: Open, dark: bool) -> None:
    """As the standard asks: 4.5 to 1 for text, 3 to 1 for what a figure draws."""
    page = show(dark=dark, at="vectors")
    drawn = page.run(
        "Array.from(document.querySelectorAll('.chart text'), t => getComputedStyle(t).fill)"
    )
    paper = page.run("getComputedStyle(document.querySelector('.chart svg > rect')).fill")
    assert min(contrast(colour, paper) for colour in drawn) >= 4.5
    for colour in (INK, GREY, BLUE, ORANGE, GREEN, PURPLE):
        shown = page.run(
            "(() => { const e = document.querySelector('.chart text').cloneNode();"
            f" e.setAttribute('fill', '{colour}'); document.querySelector('.chart svg').append(e);"
            " return getComputedStyle(e).fill; })()"
        )
        assert contrast(shown, paper) >= (4.5 if colour in (INK, GREY) else 3), colour


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[4:-1].split(",")]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_on_paper_there_is_no_navigation_and_all_is_open(show: Open) -> None:
    page = show(width=680, media="print", dark=True, at="vectors")
    assert page.run(BACKGROUND) == "rgb(255, 255, 255)"
    for gone in ("nav", ".bar", ".skip", ".usage", ".tools", ".chart .narrow"):
        assert page.run(f"getComputedStyle(document.querySelector('{gone}')).display") == "none"
    heights = page.run(
        "Array.from(document.querySelectorAll('main details:not(.aside) :is(table, li, dl)'),"
        " e => e.checkVisibility({contentVisibilityAuto: true}) && e.offsetHeight)"
    )
    assert heights
    assert all(heights)
    wide = page.run(
        "Array.from(document.querySelectorAll('table, .chart svg, .card, .limits'))"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
    )
    assert wide == 0


def test_on_paper_long_tables_are_cut_and_say_so(show: Open) -> None:
    page = show(width=680, media="print")
    rows = (
        "Array.from({}.querySelectorAll('tbody tr')).filter("
        "row => getComputedStyle(row).display !== 'none').length"
    )
    table = "document.querySelector('#vectors-measures-simulated table.words')"
    every = page.run(f"{table}.tBodies[0].rows.length")
    assert every > 18
    assert page.run(rows.format(table)) == 15
    more = page.run(f"{table}.nextElementSibling.innerText")
    assert more == f"… and {every - 15} more rows, which the page shows on a screen."
    methods = "document.querySelector('#methods table')"
    assert page.run(rows.format(methods)) == page.run(f"{methods}.tBodies[0].rows.length")


@pytest.mark.parametrize("paper", [(8.27, 11.69), (8.5, 11)], ids=["A4", "Letter"])
def test_it_prints(show: Open, paper: tuple[float, float]) -> None:
    page = show()
    closed = "document.querySelectorAll('main details:not([open])').length"
    before = page.run(closed)
    assert before > 0
    page.run(f"addEventListener('beforeprint', () => {{ window.left = {closed}; }})")
    printed = page.printed(paper)
    assert printed.startswith(b"%PDF")
    pages = printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ")
    assert 3 <= pages <= 40
    assert page.run("window.left") == 0
    assert page.run(closed) == before


def test_a_phone_has_nothing_to_scroll_sideways_but_tables(show: Open) -> None:
    page = show(width=360, height=800)
    open_all(page)
    tabs = page.run("document.querySelectorAll('[role=tab]').length")
    over = 0
    for tab in range(tabs):
        page.run(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        page.run("new Promise(done => setTimeout(done, 50))")
        assert page.run("document.documentElement.scrollWidth") == 360
        boxes: list[dict[str, Any]] = page.run(
            "Array.from(document.querySelectorAll('main > .on .scroll'), b => ({"
            " over: b.scrollWidth > b.clientWidth + 1, chart: b.classList.contains('chart'),"
            " hint: b.nextElementSibling?.className === 'hint' && !b.nextElementSibling.hidden,"
            " reached: b.tabIndex === 0}))"
        )
        assert all(box["hint"] == box["over"] == box["reached"] for box in boxes)
        assert not any(box["over"] for box in boxes if box["chart"])
        over += sum(box["over"] for box in boxes)
    assert over > 0


def test_a_phone_has_charts_redrawn_for_it(show: Open) -> None:
    wide, narrow = (show(width=width, at="vectors") for width in (1280, 360))
    drawn = (
        "Array.from(document.querySelectorAll('main > .on figure:not(details *)'), f =>"
        " Array.from(f.querySelectorAll('svg')).filter(s => s.getBoundingClientRect().width)"
        ".map(s => [s.getAttribute('class'), s.getBoundingClientRect().width,"
        " +s.getAttribute('width')]))"
    )
    for figure in wide.run(drawn):
        ((kind, _, _),) = figure
        assert kind != "narrow"
    shown = narrow.run(drawn)
    assert shown
    for figure in shown:
        ((kind, width, natural),) = figure
        assert kind == "narrow"
        assert width <= 360
        assert natural <= 1.15 * width, "letters are nearly as large as they were drawn"


def test_the_tabs_stay_in_view(show: Open) -> None:
    page = show(at="vectors")
    page.run("scrollTo(0, 2000)")
    page.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert 0 <= page.run("document.querySelector('nav').getBoundingClientRect().top") < 100


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_no_serious_problem(show: Open, axe: str, width: int, dark: bool) -> None:
    page = show(width=width, dark=dark)
    open_all(page)
    page.run(axe + ";0")
    for tab in page.run("Array.from(document.querySelectorAll('[role=tab]'), t => t.hash)"):
        page.run(f"location.hash = '{tab}'; new Promise(done => setTimeout(done, 50))")
        violations: list[dict[str, Any]] = page.run("axe.run().then(found => found.violations)")
        serious = [
            (violation["id"], [node["html"][:200] for node in violation["nodes"]])
            for violation in violations
            if violation["impact"] in ("serious", "critical")
        ]
        assert serious == [], tab


def test_axe_would_find_one(show: Open, axe: str, report: Path, tmp_path: Path) -> None:
    faint = "<p style='color: #dddddd; background: #ffffff'>hard to read</p><img src='data:,'>"
    page = show(changed(report, tmp_path / "faint.html", main=faint))
    page.run(axe + ";0")
    found = page.run("axe.run().then(found => found.violations.map(one => one.id))")
    assert {"color-contrast", "image-alt"} <= set(found)


LABELS = (
    *("Summary", "The data", "Word vectors", "The masked language model", "Few-shot classifiers"),
    *("Methods", "Annex for auditors", "Try a sentence", "Words explained"),
)
"""The tabs of an audit of everything, with `--interactive`."""


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_all_tabs_fit_a_desktop_and_scroll_within_their_bar_below(show: Open, width: int) -> None:
    page = show(width=width)
    labels = "".join(f'<li><a href="#start">{label}</a></li>' for label in LABELS)
    page.run(f"document.querySelector('nav ul').innerHTML = '{labels}';0")
    assert page.run("document.documentElement.scrollWidth") == width
    wide, seen = page.run(
        "(nav => [nav.scrollWidth, nav.clientWidth])(document.querySelector('nav'))"
    )
    assert (wide > seen) == (width < 1280)
