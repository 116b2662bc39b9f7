from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest

from evenhand import charts
from evenhand.report import write_report
from evenhand.report.blocks import Figure, PageTable, Section, lay_out
from evenhand.report.findings import Findings
from evenhand.report.page import render
from evenhand.report.verdicts import Level, Number, Subject, Verdict
from evenhand.wording import interval, number

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Page(HTMLParser):
    """The tags of a page, with a complaint for each that is closed out of turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def all(self, *names: str) -> list[tuple[str, dict[str, str | None]]]:
        return [(tag, attributes) for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def text(audited: Path) -> str:
    return (audited / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_tag_is_closed_in_turn(page: Page) -> None:
    assert page.wrong == []
    assert page.open == []


def test_nothing_comes_from_elsewhere(text: str, page: Page) -> None:
    assert not re.search(r"https?://", text)
    assert "url(http" not in text
    assert "@import" not in text
    for tag, attributes in page.all("script", "link", "img", "iframe", "use", "image"):
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), tag


def test_it_is_small(audited: Path) -> None:
    assert (audited / "report.html").stat().st_size < 3_000_000


def test_headings_go_down_one_level_at_a_time(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_ids_are_unique_and_links_lead_somewhere(page: Page, audited: Path) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {a.get("href") or "" for _, a in page.all("a")}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert all((audited / link).is_file() for link in links if not link.startswith("#"))


def test_table_headers_have_a_scope(page: Page) -> None:
    assert page.all("th")
    assert {attributes.get("scope") for _, attributes in page.all("th")} == {"col", "row"}


def test_every_figure_has_words(text: str, page: Page) -> None:
    figures = len(page.all("figure"))
    assert figures >= 5
    assert len(page.all("figcaption")) == figures
    labels = [a["aria-label"] for tag, a in page.all("svg") if a.get("role") == "group"]
    assert len(labels) == 2 * figures, "each is drawn for wide and for narrow screens"
    assert all(label and len(label) > 20 for label in labels)
    assert text.count("How to read it:") == figures


def test_an_explanation_is_given_once() -> None:
    first, second, third = lay_out(
        [
            Section(name, name, [Figure(name, "", caption, "Words: 1")])
            for name, caption in {
                "a": "How to read it: the dot is the value. Lines are intervals.",
                "b": "How to read it: the dot is the value. Squares are others.",
                "c": "How to read it: the dot is the value. Lines are intervals.",
            }.items()
        ]
    )
    figures = [section.blocks[0] for section in (first, second, third)]
    assert [figure.caption for figure in figures if isinstance(figure, Figure)] == [
        "How to read it: the dot is the value. Lines are intervals.",
        "Squares are others.",
        "",
    ]
    assert [figure.like for figure in figures if isinstance(figure, Figure)] == ["", "a", "a"]


def test_the_first_figure_of_a_section_is_open_and_tables_have_names_of_their_own() -> None:
    table = PageTable.of("Words (all)", ("Word",), [("a",)])
    blocks = [Figure(name, "", "Read.", "Words: 1") for name in "ab"]
    (section,) = lay_out([Section("s", "S", [*blocks, table, table])])
    folded = [block.folded for block in section.blocks if isinstance(block, Figure)]
    assert folded == [False, True]
    names = [block.name for block in section.blocks if isinstance(block, PageTable)]
    assert names == ["words-all", "words-all-2"]


def test_every_table_has_a_caption(page: Page) -> None:
    assert page.all("table")
    assert len(page.all("caption")) == len(page.all("table"))


def test_the_policy_allows_nothing_from_elsewhere(page: Page) -> None:
    (policy,) = [
        attributes["content"]
        for _, attributes in page.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(maxsplit=1) for rule in (policy or "").split("; "))
    assert rules.pop("default-src") == "'none'"
    assert {source for rule in rules.values() for source in rule.split()} == {
        "'none'",
        "'unsafe-inline'",
        "data:",
    }


def test_every_colour_of_a_figure_has_one_for_dark_paper(page: Page) -> None:
    templates = resources.files("evenhand.report") / "templates"
    style = (templates / "colours.css").read_text(encoding="utf-8")
    known = set(re.findall(r'\.chart \[((?:fill|stroke)="[^"]+")\]', style))
    code = (resources.files("evenhand") / "charts.py").read_text(encoding="utf-8")
    before, _, after = code.partition("RISING = ")  # heat maps keep their colours on dark paper
    code = before + after.partition("def style")[2]
    named = set(re.findall(r"#[0-9a-fA-F]{6}", code))
    assert len(named) > 8
    assert {f'stroke="{colour}"' for colour in named} <= known
    drawn = {
        f'{name}="{attributes[name]}"'
        for _, attributes in page.tags
        for name in ("fill", "stroke")
        if attributes.get(name) not in (None, "none", "transparent", "currentColor")
    }
    assert len(drawn) > 4
    assert drawn <= known


def test_names_are_escaped(text: str) -> None:
    assert "<b>small" not in text
    assert "Bias audit of &lt;b&gt;small &amp; biased" in text


def test_the_verdict_and_its_numbers_are_there(text: str, findings: Findings) -> None:
    (verdict,) = findings.verdicts
    assert verdict.level == "strong evidence"
    (card,) = cards(text)
    assert "Simulated" in card
    assert "strong evidence" in card
    assert verdict.sentence in unescape(card)
    (contrast,) = verdict.numbers
    assert f"{number(contrast.value)} {interval(contrast.low, contrast.high)}" in plain(card)
    for test in verdict.tests:
        assert test.label in card


def cards(text: str) -> list[str]:
    return re.findall(r"<article class=\"card .*?</article>", text, flags=re.S)


def plain(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", "", text).split())


def judged(level: Level, subject: Subject = "masked", **more: str) -> Verdict:
    return Verdict(
        subject=subject,
        name="tiny",
        topic="gender",
        level=level,
        sentence=f"Said: {level}.",
        numbers=(Number(label="Odds", value=2, low=1.5, high=math.inf, p_value=0.03, ideal=1),),
        **more,
    )


def drawn_with(findings: Findings, *given: Verdict) -> tuple[str, Page]:
    text = render(replace(findings, verdicts=given), [])
    return text, Page(text)


def test_a_level_is_a_word_and_a_shape_not_a_colour_alone(findings: Findings) -> None:
    levels: list[Level] = ["strong evidence", "some evidence", "none found", "not measured"]
    text, page = drawn_with(findings, *map(judged, levels))
    assert page.wrong == page.open == []
    shown = cards(text)
    assert len(shown) == len(levels)
    for level, card in zip(levels, shown, strict=True):
        assert level in plain(card)
        assert "Odds (ideal 1) 2.000 [1.500, ∞] p = 0.030" in plain(card).replace("\xa0", " ")
    icons = [re.search(r"<svg.*?</svg>", card, flags=re.S) for card in shown]
    assert len({icon[0] for icon in icons if icon}) == len(levels)
    assert "4 verdicts: 1 × strong evidence 1 × some evidence" in plain(text)


def test_verdicts_stand_by_subject_in_the_order_of_reading(findings: Findings) -> None:
    given = [judged("some evidence", subject) for subject in ("fewshot", "masked", "corpus")]
    text, _ = drawn_with(findings, *given)
    heads = re.findall(r'<h2>([^<]*)</h2>\s*<div class="cards">', text)
    assert heads == ["The data", "Masked language model", "Few-shot classifiers"]


def test_what_none_found_cannot_mean_is_said_where_none_was_found(findings: Findings) -> None:
    none, strong = "none found", "strong evidence"
    text, _ = drawn_with(findings, judged(strong, cannot_mean="Not fair."))
    assert "Not fair." not in text
    same = [judged(none, cannot_mean="Not fair.") for _ in range(3)]
    text, _ = drawn_with(findings, *same)
    assert text.count("Not fair.") == 1
    text, _ = drawn_with(findings, *same, judged(none, cannot_mean="Nor good."))
    assert "Nor good." in cards(text)[3]
    assert all("Not fair." in card for card in cards(text)[:3])


def test_a_failed_part_is_named(findings: Findings) -> None:
    first, *rest = findings.stages
    lost = replace(first, failed="no <memory> left")
    text, _ = drawn_with(replace(findings, stages=(lost, *rest)))
    assert f"{first.title} failed" in text
    assert "no &lt;memory&gt; left" in text


def test_rules_words_and_versions_are_there(text: str, findings: Findings) -> None:
    for words in (
        "None found: the interval of every deciding test",
        "male-stereotype-0",
        "female-protected-7",
        "Version of numpy",
        findings.vectors["content_sha256"],
        "Holm",
    ):
        assert words in text


def test_the_page_is_the_same_when_made_again(audited: Path, text: str) -> None:
    page, *figures = write_report(audited)
    assert page.read_text(encoding="utf-8") == text
    assert {path.suffix for path in figures} == {".svg"}


def test_numbers_have_few_decimals(text: str) -> None:
    shown = re.sub(r"<(script|style|svg).*?</\1>", "", text, flags=re.S)
    shown = re.sub(r"<[^>]*>", " ", shown)
    assert not re.search(r"\d\.\d{5,}", shown)


def test_every_chart_of_the_page_is_valid(
    audited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are written without this check of Altair."""
    checked, specification = [], charts._specification

    def check(chart: charts.Chart) -> dict[str, object]:
        checked.append(chart.configure(**charts.STYLE).to_dict(validate=True))
        return specification(chart)

    monkeypatch.setattr(charts, "_specification", check)
    write_report(Path(shutil.copytree(audited, tmp_path / "copy")))
    assert checked
