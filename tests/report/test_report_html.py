from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from evenhand.report import write_report
from evenhand.report.findings import Findings

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


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {(a.get("href") or "")[1:] for _, a in page.all("a")}
    assert targets <= set(ids)


def test_table_headers_have_a_scope(page: Page) -> None:
    assert page.all("th")
    assert {attributes.get("scope") for _, attributes in page.all("th")} == {"col", "row"}


def test_every_figure_has_words(text: str, page: Page) -> None:
    figures = len(page.all("figure"))
    assert figures >= 5
    assert len(page.all("figcaption")) == figures
    labels = [a["aria-label"] for tag, a in page.all("svg") if a.get("role") == "img"]
    assert len(labels) == figures
    assert all(label and len(label) > 20 for label in labels)
    assert text.count("How to read it:") == figures


def test_names_are_escaped(text: str) -> None:
    assert "<b>small" not in text
    assert "Bias audit of &lt;b&gt;small &amp; biased" in text


def test_the_verdict_and_its_numbers_are_there(text: str, findings: Findings) -> None:
    (verdict,) = findings.verdicts
    assert verdict.level == "strong evidence"
    assert "Simulated: strong evidence" in text
    assert verdict.association is not None
    assert f"{verdict.association.value:.3f}".replace("-", "−") in text


def test_rules_words_and_versions_are_there(text: str, findings: Findings) -> None:
    for words in (
        "None found: neither.", "male-stereotype-0", "female-protected-7", "Version of numpy",
        findings.vectors["content_sha256"], "Holm",
    ):  # fmt: skip
        assert words in text


def test_the_page_is_the_same_when_made_again(audited: Path, text: str) -> None:
    page, *figures = write_report(audited)
    assert page.read_text(encoding="utf-8") == text
    assert {path.suffix for path in figures} == {".svg"}


def test_numbers_have_few_decimals(text: str) -> None:
    shown = re.sub(r"<(script|style|svg).*?</\1>", "", text, flags=re.S)
    shown = re.sub(r"<[^>]*>", " ", shown)
    assert not re.search(r"\d\.\d{5,}", shown)
