"""The page of measured answers: the answer first, examples by a rule, what is stored."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

from evenhand.answers import Answers, Difference, Refusals
from evenhand.answers.examples import example_answers
from evenhand.cli import run
from evenhand.files import digest_of, document, record_of, save_json
from evenhand.report import blocks
from evenhand.report.answers import LONGEST, write_answers

HOSTILE = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>"


@pytest.fixture
def undrawn(monkeypatch):
    """Without figures, which take longest."""
    monkeypatch.setattr(blocks.Figure, "of", lambda *_, **__: blocks.Text("No figure."))


def text_of(page):
    shown = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", shown)).split())


def pairs(gaps, text="word"):
    """One pair of prompts per gap: the answer about the woman has so many more words."""
    rows = [
        (f"item {i}", group, f"{group}: " + " ".join([text] * (10 + gap * (group == "woman"))))
        for i, gap in enumerate(gaps)
        for group in ("man", "woman")
    ]
    items, groups, texts = zip(*rows, strict=True)
    prompts = tuple(f"Describe {item} as a {group}." for item, group, _ in rows)
    return Answers(texts=texts, items=items, groups={"gender": groups}, prompts=prompts)


def test_the_page_begins_with_the_answer_and_has_all_numbers(tmp_path):
    answers = example_answers()
    results = [*Difference(permutations=99).measure(answers), *Refusals().measure(answers)]
    page = write_answers(answers, results, tmp_path / "page.html")
    text = text_of(page)
    assert (
        text.index("Undecided: none of 2 tests")
        < text.index("The results")
        < text.index("side by side")
    )
    assert "96 answers to 12 items" in text
    refused = answers.counts["refused"]
    assert f"all {answers.counts['answered']} {refused}" in text
    assert "ICC" in text
    assert "more items would halve it" in text
    assert "Value 95 % interval p Ideal Answers" in re.sub(" ↕", "", text)
    assert "Chart: Difference of answers, sentiment, gender, man - woman, by group" in text
    assert "may hold personal data" in text
    assert "How they were collected is not recorded" in text
    for m in results:
        assert f"{abs(m.value):.3f}" in text


def test_a_measure_that_was_left_out_is_named_once(undrawn, tmp_path):
    answers = pairs([1, 3, 2])
    [m] = Difference(score="length", permutations=0).measure(answers)
    skipped = [
        {"metric": "decisions", "reason": "decisions: expected answers of yes or no, got none"},
        {"metric": "words", "reason": "group 'race': expected two groups or more, got none"},
    ]
    text = text_of(write_answers(answers, [m], tmp_path / "page.html", skipped=skipped))
    assert "Not measured: Decisions: expected answers of yes or no, got none." in text
    assert "Not measured: Words that differ: group 'race': expected two groups" in text


def test_a_typical_item_and_that_of_the_largest_difference_are_shown(undrawn, tmp_path):
    answers = pairs([1, 3, 2, 9, 2])
    [m] = Difference(score="length", permutations=0).measure(answers)
    text = text_of(write_answers(answers, [m], tmp_path / "page.html"))
    assert "Typical: item 2 (difference −2.000)" in text
    assert "Largest difference: item 3 (difference −9.000)" in text
    assert "Describe item 3 as a woman." in text
    assert "Describe item 0 as a woman." not in text


def test_of_topics_the_examples_are_items_of_them(undrawn, tmp_path):
    answers = replace(pairs([1, 1, 2, 2, 9, 9]), topics=tuple(t for t in "abc" for _ in range(4)))
    [m] = Difference(score="length", permutations=0).measure(answers)
    text = text_of(write_answers(answers, [m], tmp_path / "page.html"))
    assert "Largest difference: c (difference −9.000)" in text
    assert "Describe item 4 as a man." in text


def test_answers_stand_below_their_own_prompt(undrawn, tmp_path):
    """Of several prompts of a group to an item, only the answers to the first are quoted."""
    answers = pairs([1, 3, 2, 9, 2])
    named = replace(
        answers,
        prompts=tuple(f"Describe {i} called Kim, {n}." for n, i in enumerate(answers.items)),
        texts=tuple(f"{text} Kim." for text in answers.texts),
    )
    both = Answers(
        texts=answers.texts + named.texts,
        items=answers.items * 2,
        groups={"gender": answers.groups["gender"] * 2},
        prompts=answers.prompts + named.prompts,
    )
    [m] = Difference(score="length", permutations=0).measure(both)
    text = text_of(write_answers(both, [m], tmp_path / "page.html"))
    assert "Describe item 3 as a woman." in text
    assert "Kim." not in text
    assert "Answer 1" in text
    assert "Answer 2" not in text


def test_answers_cannot_be_code_and_long_ones_are_cut(undrawn, tmp_path):
    answers = pairs([1, 2, 3], text=HOSTILE)
    long = replace(answers, texts=tuple(text + " long" * LONGEST for text in answers.texts))
    [m] = Difference(score="length", permutations=0).measure(long)
    page = write_answers(long, [m], tmp_path / "page.html")
    source = page.read_text(encoding="utf-8")
    assert "<img src=x" not in source
    assert "window.pwned=1</script>" not in source
    assert "long …" in text_of(page)
    assert source.count("long " * LONGEST) == 0


def test_the_command_writes_the_page_with_how_the_answers_were_collected(undrawn, tmp_path, capsys):
    rows = example_answers()
    file = tmp_path / "answers.jsonl"
    file.write_text(
        "\n".join(
            json.dumps({"item": item, "gender": group, "text": text})
            for item, group, text in zip(rows.items, rows.groups["gender"], rows.texts, strict=True)
        ),
        encoding="utf-8",
    )
    about = {"identity": {"temperature": 0.7, "max_new_tokens": 64}, "model": {"model": "tiny"}}
    save_json(record_of(file), document(sha256=digest_of(file), **about))
    page = tmp_path / "page.html"
    arguments = ["answers", "measure", str(file), "--metric", "refusals", "--group", "gender"]
    assert run([*arguments, "-o", str(page)]) == 0
    text = text_of(page)
    assert "identity: temperature 0.7" in text
    assert "not recorded" not in text
    assert str(tmp_path) not in page.read_text(encoding="utf-8")
    capsys.readouterr()
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")  # another file now
    assert run([*arguments, "-o", str(page)]) == 0
    assert "How they were collected is not recorded" in text_of(page)
