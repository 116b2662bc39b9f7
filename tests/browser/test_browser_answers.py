"""The page of measured answers in a real browser: answers that try to be code, phones, axe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from devtools import Browser, Page

from evenhand.answers import Refusals
from evenhand.answers.examples import example_answers
from evenhand.report.answers import write_answers

Open = Callable[..., Page]
HOSTILE = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose answers are hostile, or words that are too long for a phone."""
    answers = example_answers()
    texts = tuple(f"{text} {HOSTILE} {'long' * 40}" for text in answers.texts)
    hostile = replace(answers, texts=texts, name=HOSTILE)
    file = tmp_path_factory.mktemp("answers") / "page.html"
    return write_answers(hostile, Refusals().measure(hostile), file)


@pytest.mark.parametrize(
    ("width", "dark"), [(360, True), pytest.param(1280, False, marks=pytest.mark.slow)]
)
def test_answers_are_text_that_fits(
    browser: Browser, axe: str, page_file: Path, width: int, dark: bool
) -> None:
    page = browser.open(page_file, width=width, dark=dark)
    try:
        assert page.run("document.documentElement.scrollWidth") == width
        assert HOSTILE in page.run("document.getElementById('examples').textContent")
        assert page.run("window.pwned") is None
        assert page.run("document.querySelectorAll('img').length") == 0
        page.run(axe + ";0")
        violations = page.run("axe.run().then(found => found.violations)")
        assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in violations] == []
        assert page.complaints() == []
    finally:
        page.close()
