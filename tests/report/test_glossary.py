"""The glossary of the page is the one of the docs."""

from __future__ import annotations

import re
from html import unescape
from importlib import resources
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "glossary.md"
PAGE = resources.files("evenhand.report") / "templates" / "glossary.html"


def test_the_page_and_the_docs_explain_the_same_words_alike() -> None:
    written = " ".join(DOCS.read_text(encoding="utf-8").split())
    in_docs = re.findall(r"\*\*(.+?)\.?\*\* (.+?)(?= \*\*|$)", written)
    shown = re.findall(r"<dt id=[^>]*>(.+?)</dt><dd>(.+?)</dd>", PAGE.read_text(encoding="utf-8"))
    marked = [(name, re.sub(r"</?em>", "*", unescape(text))) for name, text in shown]
    assert len(marked) > 25
    assert marked == in_docs


def test_no_word_leads_to_two_places() -> None:
    found = re.findall(r'data-words="([^"]+)"', PAGE.read_text(encoding="utf-8"))
    words = [word.lower() for one in found for word in one.split("|")]
    assert sorted(words) == sorted(set(words))
