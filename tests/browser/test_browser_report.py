"""The page in a real browser: it opens without a complaint, and what it promises works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from devtools import Page

from evenhand.charts import BLUE, GREEN, GREY, INK, ORANGE, PURPLE

Open = Callable[..., Page]

TABLE = "document.querySelector('table.words')"
BUTTON = f"{TABLE}.querySelectorAll('thead button')"
VALUES = f"Array.from({TABLE}.tBodies[0].rows, row => row.cells[2].dataset.value)"
SORT = f"{TABLE}.querySelectorAll('thead th')[2].getAttribute('aria-sort')"
VISIBLE = "document.querySelectorAll('table.words tbody tr:not([hidden])').length"
FOUND = "document.getElementById('found').textContent"
TIP = (
    "(() => { const t = document.getElementById('tip'); return t.hidden ? null : t.innerText; })()"
)
FOCUS = "document.activeElement"
MARK = "document.querySelector('#figure-forest-simulated .tip[role=img]')"


def changed(report: Path, target: Path, **replaced: str) -> Path:
    text = report.read_text(encoding="utf-8")
    for old, new in replaced.items():
        text = text.replace(f"</{old}>", f"{new}</{old}>", 1)
    target.write_text(text, encoding="utf-8")
    return target


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


def test_a_click_sorts_and_a_second_turns_round(show: Open) -> None:
    page = show()
    page.click(f"{BUTTON}[2]")
    values = [float(value) for value in page.run(VALUES)]
    assert len(values) > 10
    assert values == sorted(values)
    assert page.run(SORT) == "ascending"
    page.click(f"{BUTTON}[2]")
    assert [float(value) for value in page.run(VALUES)] == sorted(values, reverse=True)
    assert page.run(SORT) == "descending"


@pytest.mark.parametrize("key", ["Enter", " "])
def test_the_keyboard_sorts(show: Open, key: str) -> None:
    page = show()
    page.run(f"{BUTTON}[1].focus()")
    page.press("Tab", key)
    values = [float(value) for value in page.run(VALUES)]
    assert values == sorted(values)
    assert page.run(SORT) == "ascending"
    assert page.run(f"{TABLE}.querySelectorAll('[aria-sort]').length") == 1


def test_what_has_no_number_stays_at_the_end(show: Open) -> None:
    page = show()
    page.run(f"delete {TABLE}.tBodies[0].rows[3].cells[2].dataset.value")
    page.run(f"{TABLE}.tBodies[0].rows[3].cells[2].textContent = '–'")
    for _ in range(2):
        page.click(f"{BUTTON}[2]")
        values = page.run(f"{VALUES}.map(value => value === undefined)")
        assert values.count(True) == 1
        assert values[-1] is True


def test_numbers_within_names_are_sorted_as_numbers(show: Open) -> None:
    page = show()
    page.click(f"{BUTTON}[0]")
    names = page.run(f"Array.from({TABLE}.tBodies[0].rows, row => row.cells[0].textContent)")
    own = [name for name in names if name.startswith("female-stereotype-")]
    assert [int(name.rsplit("-", 1)[1]) for name in own] == sorted(range(len(own)))


def test_search_leaves_only_matching_rows(show: Open) -> None:
    page = show()
    every = page.run(VISIBLE)
    page.run("document.getElementById('find').focus()")
    page.write("female-stereotype-3")
    assert page.run(VISIBLE) == 1
    assert page.run(FOUND) == "1 row"
    page.press("Escape")
    assert page.run(VISIBLE) == every
    assert page.run(FOUND) == ""


def test_search_says_when_nothing_is_found(show: Open) -> None:
    page = show()
    page.run("document.getElementById('find').focus()")
    page.write("no such word")
    assert page.run(VISIBLE) == 0
    assert page.run(FOUND) == "nothing found"
    assert page.run("document.getElementById('after').disabled")


def test_words_of_the_trade_lead_to_the_glossary(show: Open) -> None:
    page = show()
    links = page.run(
        "Array.from(document.querySelectorAll('main a.term'), a => ["
        "a.closest('section[id]').id, a.hash, a.textContent, a.title])"
    )
    assert {"stereotypes", "WEAT"} <= {text for _, _, text, _ in links}
    assert len({(part, to) for part, to, _, _ in links}) == len(links), "once in each part"
    for _, to, _, title in links:
        said = f"document.querySelector('#glossary {to}').nextElementSibling.textContent"
        assert page.run(said) == title


def test_search_goes_from_match_to_match(show: Open) -> None:
    page = show()
    in_view = (
        "(() => { const b = document.querySelector('tr.current').getBoundingClientRect();"
        " return b.top > 50 && b.bottom < innerHeight; })()"
    )
    page.run("document.getElementById('find').focus()")
    page.write("female-stereotype")
    many = page.run(VISIBLE)
    assert many > 3
    page.press("Enter")
    assert page.run(FOUND) == f"1 of {many}"
    assert page.run(in_view)
    page.press("Enter")
    assert page.run(FOUND) == f"2 of {many}"
    page.press("Enter", shift=True)
    page.press("Enter", shift=True)
    assert page.run(FOUND) == f"{many} of {many}"
    assert page.run(in_view)
    page.click("document.getElementById('after')")
    assert page.run(FOUND) == f"1 of {many}"


def test_search_opens_what_is_folded_and_folds_it_again(show: Open) -> None:
    page = show()
    fold = "document.querySelector('details.fold:has(table.words)')"
    page.run(
        "(() => { const d = document.createElement('details'); d.className = 'fold';"
        f" {TABLE}.parentNode.before(d); d.append({TABLE}.parentNode); }})()"
    )
    word = page.run(f"{fold}.querySelector('tbody th').textContent")
    assert not page.run(f"{fold}.open")
    page.run("document.getElementById('find').focus()")
    page.write(word)
    assert page.run(f"{fold}.open")
    page.press("Escape")
    assert not page.run(f"{fold}.open")


def test_a_pointer_over_a_mark_tells_what_it_is(show: Open) -> None:
    page = show()
    assert page.run(TIP) is None
    label = page.run(f"{MARK}.getAttribute('aria-label')")
    page.point(MARK)
    assert page.run(TIP).splitlines() == label.split(" · ")
    page.point(MARK, by=(0, 7))
    assert page.run(TIP).splitlines() == label.split(" · "), "a near miss counts"
    page.point("document.querySelector('h1')")
    assert page.run(TIP) is None


def test_the_keyboard_walks_over_the_marks(show: Open) -> None:
    page = show()
    assert page.run(f"{MARK}.closest('figure').querySelectorAll('[tabindex=\"0\"]').length") == 1
    page.run(f"{MARK}.closest('section').querySelector('h3').setAttribute('tabindex', -1)")
    page.run(f"{MARK}.closest('section').querySelector('h3').focus()")
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
    assert page.run(f"{FOCUS}.closest('figure').id") == "figure-forest-simulated"
    page.press("Escape")
    assert page.run(TIP) is None
    page.press("Tab")
    assert not page.run(f"{FOCUS}.closest('#figure-forest-simulated')"), "one stop for a figure"


def test_every_figure_has_marks_that_say_something(show: Open) -> None:
    silent = show().run(
        "Array.from(document.querySelectorAll('figure')).filter("
        "f => !f.querySelector('.tip[role=img][aria-label]')).map(f => f.id)"
    )
    assert silent == []


BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_follow_the_system_and_the_switch(show: Open, dark: bool) -> None:
    page = show(dark=dark)
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
    page = show(dark=dark)
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
    page = show(width=680, media="print", dark=True)
    assert page.run(BACKGROUND) == "rgb(255, 255, 255)"
    for gone in ("nav", ".bar", ".skip", ".usage"):
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
    table = "document.querySelector('#topic-simulated table.words')"
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


def test_a_phone_has_nothing_to_scroll_sideways_but_in_boxes(show: Open) -> None:
    page = show(width=390, height=844)
    assert page.run("document.documentElement.scrollWidth") == 390
    assert not page.run("document.querySelector('nav details').open")
    boxes: list[dict[str, Any]] = page.run(
        "Array.from(document.querySelectorAll('.scroll'), b => ({"
        " over: b.scrollWidth > b.clientWidth + 1, hint: !b.nextElementSibling.hidden,"
        " reached: b.tabIndex === 0 || !!b.querySelector('[tabindex=\"0\"]')}))"
    )
    assert any(box["over"] for box in boxes)
    assert all(box["hint"] == box["over"] for box in boxes)
    assert all(box["reached"] for box in boxes if box["over"])


def test_the_contents_stay_in_view_on_a_wide_screen(show: Open) -> None:
    page = show(width=1280)
    top = "document.querySelector('nav').getBoundingClientRect().top"
    page.run("document.getElementById('appendix').scrollIntoView()")
    assert 0 < page.run(top) < 200
    page.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    current = page.run("document.querySelector('nav [aria-current]').hash")
    assert current in ("#appendix", "#methods")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_axe_finds_no_serious_problem(show: Open, axe: str, width: int, dark: bool) -> None:
    page = show(width=width, dark=dark)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.run(axe + ";0")
    violations: list[dict[str, Any]] = page.run("axe.run().then(found => found.violations)")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_axe_would_find_one(show: Open, axe: str, report: Path, tmp_path: Path) -> None:
    faint = "<p style='color: #dddddd; background: #ffffff'>hard to read</p><img src='data:,'>"
    page = show(changed(report, tmp_path / "faint.html", main=faint))
    page.run(axe + ";0")
    found = page.run("axe.run().then(found => found.violations.map(one => one.id))")
    assert {"color-contrast", "image-alt"} <= set(found)
