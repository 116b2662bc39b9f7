"""The model that a page embeds: in the browser it answers as in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unicodedata import category, ucd_3_2_0

import numpy as np
import pytest
from devtools import Browser, Page, wait

from evenhand.judging import Outcome, lean
from evenhand.models.asking import WORDS, Answer, ask, pronoun_probabilities
from evenhand.models.masked import MaskedModel
from evenhand.models.masked_scoring import encode
from evenhand.report.findings import read_findings
from evenhand.report.page import render
from interactive_world import rounded, sentences

Open = Callable[..., Page]
MASK = "[MASK]"
PROBABILITIES = (
    "Promise.all({texts}.map(text => text.split('[MASK]')).map(([before, after]) =>"
    " interactive.probabilities(before, after)))"
)


pytestmark = pytest.mark.slow  # the weights of `mini` are rounded and decoded


@pytest.fixture(scope="module")
def embedding(report: Path, facts: dict[str, Any]) -> Path:
    """The page of the small audit with `mini` in it, under a name that tries to be code."""
    hostile = {**facts, "name": "</script><img src=x onerror=window.pwned=1>"}
    path = report.with_name("interactive.html")
    path.write_text(render(read_findings(report.parent), [], hostile), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def opened(browser: Browser, embedding: Path) -> Iterator[Page]:
    """One page for the tests that only compute."""
    page = browser.open(embedding)
    yield page
    page.close()


def compare(page: Page, mini: MaskedModel, facts: dict[str, Any], texts: list[str]) -> None:
    """The probabilities of all pronouns in the browser, those of Python, and of rounded weights."""
    answers: list[dict[str, float]] = []
    for start in range(0, len(texts), 50):  # the browser is asked again before it seems to be lost
        part = json.dumps(texts[start : start + 50])
        answers += page.run(PROBABILITIES.replace("{texts}", part))
    found = np.array([[answer[word] for word in WORDS] for answer in answers])
    same = pronoun_probabilities(rounded(mini, facts), texts)
    assert np.abs(found - same).max() < 1e-4, "the same arithmetic with the same weights"
    assert np.abs(found - pronoun_probabilities(mini, texts)).max() < 0.02


def test_probabilities_are_those_of_python(
    opened: Page, mini: MaskedModel, facts: dict[str, Any]
) -> None:
    texts = sentences(2)[::5]
    assert len(texts) > 120
    compare(opened, mini, facts, texts)


TRICKY = [
    "",
    "   ",
    "Élodie's café — naïve, façade; Ångström!",
    "İstanbul ΣΊΣΥΦΟΣ ς ẞ ﬁne ½ ②",
    "日本語 and 中文字 mixed漢字here",
    "한국어 Ελληνικά русский й",
    "emoji 😀👩‍🔬🏳️‍🌈 flags 🇩🇪",
    "tab\tline\nreturn\rnull\x00bell\x07zero\u200bwidth\ufeffsoft\u00adhyphen\u2028end",
    "no-break\u00a0space, thin\u2009space, ideographic\u3000space, next\u0085line",
    "$100 + 5% ^ `quoted` ~tilde <b>&amp;</b> a_b {c} |d| \\e",
    "“quotes” ‘single’ … – ‐ ‑ « » ¿ ¡ § ¶ † № € ™ ° ± ÷",
    "x" * 100 + " " + "y" * 101,
    "qwxzqv zzzzzzzz unaffable antidisestablishmentarianism",
    "[SEP] in the text [CLS][UNK] and [sep] [ MASK ] <mask>",
    "e\u0301 combining \u0301alone a\u0300\u0316\u035cb นิ้ हिन्दी",
    "\ufffd replacement \U00020000 \U0002b820 rare",
    "1,234.56 3rd 42nd a.m. U.S.A. don't can't he's o'clock",
    "\u0600\u061c\u202eright to left\u202c עברית العربية",
    "constructor __proto__ toString hasOwnProperty",
]


def test_texts_are_tokenized_as_in_python(opened: Page, mini: MaskedModel) -> None:
    texts = [*TRICKY, *sentences(1000)]
    expected = [coded.ids[1:-1] for coded in encode(mini, texts)]
    found = opened.run(f"{json.dumps(texts)}.map(interactive.tokenize)")
    assert dict(zip(texts, found, strict=True)) == dict(zip(texts, expected, strict=True))


def test_every_character_is_tokenized_as_in_python(opened: Page, mini: MaskedModel) -> None:
    # those of Unicode 3.2 whose category stayed: the two have tables of different versions
    letters = [
        letter
        for letter in map(chr, range(1, 0xD800))
        if "Cn" != ucd_3_2_0.category(letter) == category(letter)
    ]
    texts = [f"a{letter}b" for letter in letters]
    expected = [coded.ids[1:-1] for coded in encode(mini, texts)]
    found = opened.run(f"{json.dumps(texts)}.map(interactive.tokenize)")
    different = [
        f"U+{ord(letter):04X}"
        for letter, one, other in zip(letters, found, expected, strict=True)
        if one != other
    ]
    assert different == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[MASK] saw [MASK].", "Expected one [MASK], got 2."),
        ("he " * 9, "Expected at most 8 pronouns, got 9."),
        ("for[MASK] only", "Expected spaces or punctuation around [MASK]."),
        ("[MASK]ness", "Expected spaces or punctuation around [MASK]."),
        ("[MASK] " + "very " * 254, "Expected at most 256 tokens, which is what the model takes,"),
    ],
)
def test_what_cannot_be_answered_is_said(opened: Page, text: str, problem: str) -> None:
    said = opened.run(f"interactive.ask({json.dumps(text)}).then(() => '', e => e.message)")
    assert said.startswith(problem)


def test_the_longest_sentence_is_answered(
    opened: Page, mini: MaskedModel, facts: dict[str, Any]
) -> None:
    compare(opened, mini, facts, ["[MASK] is " + "very " * 250 + "late"])


def test_pronouns_are_asked_in_turn(opened: Page) -> None:
    text = "She told him that the éhe of Theresa was hers, not HIS."
    answers = opened.run(f"interactive.ask({json.dumps(text)})")
    assert [answer["shown"] for answer in answers] == ["She", "him", "HIS"]
    python = ask([text.replace("She", MASK), text.replace("him", MASK), text.replace("HIS", MASK)])
    for found, expected in zip(answers, python, strict=True):
        assert [row["word"] for row in found["words"]] == [word for word, _ in expected.words]
        assert found["bias"] == pytest.approx(expected.bias, abs=0.02)
        shares = [row["probability"] for row in found["words"]]
        assert shares == pytest.approx([p for _, p in expected.words], abs=0.02)
        assert abs(found["more_male"] - expected.more_male) <= 5
        ratios = [[row["ratio"] for row in found["wordings"]], [r for _, r in expected.wordings]]
        assert np.log(ratios[0]) == pytest.approx(np.log(ratios[1]), abs=0.2)


@pytest.mark.parametrize("outcome", ["found", "undecided", "none found", "not measured"])
@pytest.mark.parametrize(("ratio", "low", "high"), [(8.8, 5.13, 231.4), (0.121, 0.0034, 1.17)])
def test_an_answer_is_described_as_the_shell_does(
    opened: Page, ratio: float, low: float, high: float, outcome: Outcome
) -> None:
    answer = Answer(
        sentence="x",
        masked="x",
        model="mini",
        words=(("his", 0.264), ("her", 0.03), ("their", 0.004)),
        bias=0.5,
        ratio=ratio,
        wordings=(("x", ratio),) * 6,
        low=low,
        high=high,
        neutral_low=0.313,
        neutral_high=4.21,
        neutral=40,
        outcome=outcome,
        more_male=71,
        sentences=120,
    )
    described = opened.run(f"interactive.describe({json.dumps(answer.to_dict())})")
    assert described == str(answer).splitlines()[1:]


def test_the_outcome_is_that_of_the_judge(opened: Page, facts: dict[str, Any]) -> None:
    least, most = facts["limits"]
    worlds = [
        [least - 2, least - 1],
        [least - 1, least + 0.1],
        [least, most],
        [most - 0.1, most + 1],
        [most + 1, most + 2],
        [least - 1, most + 1],
    ]
    rows = [(ratios, share) for ratios in worlds for share in (0.5, facts["least"], 0.0099)]
    found = opened.run(f"{json.dumps(rows)}.map((row) => interactive.judge(...row))")
    assert found == [lean(ratios, (least, most), share) for ratios, share in rows]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_typing_shows_the_answer(
    show: Open, axe: str, embedding: Path, width: int, dark: bool
) -> None:
    page = show(embedding, width=width, dark=dark)
    assert page.run("document.getElementById('try-weights') !== null"), "decoded when it is needed"
    page.run("document.querySelector('a[href=\"#try\"]').click()")
    assert "his 26 %" in wait(page, "document.getElementById('try-status').textContent")
    assert page.run("document.getElementById('try-progress').parentNode.hidden")
    page.run("document.getElementById('try-text').select()")
    page.write("A <nurse> & said that she was late.")
    shown = "document.querySelector('#try-answers mark')?.textContent"
    wait(page, f"{shown} === 'she'")
    assert "over 6 wordings). " in page.run("document.getElementById('try-status').innerText")
    heading = page.run("document.querySelector('#try-answers h3').textContent")
    assert heading == "A <nurse> & said that she was late."
    assert page.run("document.documentElement.scrollWidth") == width
    page.run(axe + ";0")
    violations = page.run("axe.run('#try').then(found => found.violations)")
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in violations] == []
    page.run("document.getElementById('try-text').select()")
    page.write("Nobody is here.")
    status = "document.getElementById('try-status')"
    assert "No pronoun yet" in wait(
        page, f"!{status}.classList.contains('unseen') && {status}.innerText"
    )
    assert page.run("document.querySelectorAll('#try-answers *').length") == 0
    assert page.complaints() == [], "errors of the script, or of the content policy"
    assert page.requests() == [embedding.as_uri()]
    assert page.run("window.pwned") is None


def test_the_keyboard_is_enough(show: Open, embedding: Path) -> None:
    page = show(embedding, at="try")
    wait(page, "document.querySelector('#try-answers mark')")
    page.run("document.getElementById('tab-try').focus()")
    page.press("Tab")
    assert page.run("document.activeElement.id") == "try-text"
    page.press("Tab", "Tab")
    assert page.run("document.activeElement.textContent") == "The nurse said that she was late."
    page.press("Enter")
    wait(page, "document.querySelector('#try-answers mark')?.textContent === 'she'")


def test_a_page_without_a_model_has_no_such_tab(show: Open) -> None:
    page = show()
    assert page.run("document.getElementById('try')") is None
    assert page.run("typeof interactive") == "undefined"
