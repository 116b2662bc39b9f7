"""Anonymizing: numbers consistent in a document, the input restored, blocks of no influence."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import UnknownNameError
from evenhand.lexicon.first_names import names
from evenhand.text.block import Block
from evenhand.text.edits import apply, undo
from evenhand.text.rewrite.names import Anonymize, anonymize

NAMES = ["Barack", "Obama", "Mary", "Smith", "James", "O'Brien", "Anna", "Obama's", "MARY", "José"]
OTHERS = ["said", "met", "the", "and", "was", "He", "in", "zoë", "London's", "Will", "E1", "E3"]
MARKS = ["Mr.", "Dr.", "J.", "van", ".", ","]
WORDS = st.sampled_from([*NAMES, *OTHERS, *MARKS])
DOCUMENTS = st.lists(st.lists(WORDS, max_size=14).map(" ".join), max_size=6)


def anonymized(text: str) -> str:
    return apply(text, Anonymize()(Block.of_documents([text])))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Marie Curie spoke. Curie was thanked.", "E1 E2 spoke. E2 was thanked."),
        ("Michelle Obama's book, and Barack Obama's.", "E1 E2's book, and E3 E2's."),
        ("BARACK OBAMA WINS. Barack Obama won.", "E1 E2 WINS. E1 E2 won."),
        ("Mr. Smith met Queen Elizabeth II.", "Mr. E1 met Queen E2 II."),
        ("J. K. Rowling wrote it.", "E1 E2 E3 wrote it."),
        ("Route E1 and E3: Mary Smith met Tom.", "Route E1 and E3: E2 E4 met E5."),
        ("Nobody is here.", "Nobody is here."),
    ],
)
def test_examples(before: str, after: str) -> None:
    assert anonymized(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Marie Curie spoke. Curie was thanked.", "Casey Jackie spoke. Jackie was thanked."),
        ("Michelle Obama's book, and Barack Obama's.", "Casey Jackie's book, and Jaime Jackie's."),
        ("BARACK OBAMA WINS. Barack Obama won.", "CASEY JACKIE WINS. Casey Jackie won."),
        ("James Reed took James' hat.", "Casey Jackie took Casey's hat."),
        ("Mary Smith met Casey Tom.", "Jackie Jaime met Peyton Kerry."),
    ],
)
def test_gender_free_names(before: str, after: str) -> None:
    block = Block.of_documents([before])
    edits = Anonymize(become="names")(block)
    assert apply(before, edits) == after
    assert undo(after, edits) == before


def test_after_the_last_name_come_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(names(), table={name: names().table[name] for name in ("Casey", "Jackie")})
    monkeypatch.setattr("evenhand.text.rewrite.names.names", lambda: few)
    text = "Marie Curie met E1. Mary Smith left."
    assert anonymize(text, become="names").text == "Casey Jackie met E1. E2 E3 left."


def test_gender_free_names_are_by_the_rule() -> None:
    known = names()
    for name in known.gender_free:
        entry = known.table[name]
        assert 0.4 <= entry.female / (entry.female + entry.male) <= 0.6
        assert name not in known.ambiguous
        assert known.gender(name) is None
    counts = [known.count(name) for name in known.gender_free]
    assert counts == sorted(counts, reverse=True)
    assert len(known.gender_free) > 200


def test_numbers_restart_in_each_document() -> None:
    block = Block.of_lines("Mary Smith left.\nTom Jones stayed.\n")
    assert apply(block.text, Anonymize()(block)) == "E1 E2 left.\nE1 E2 stayed.\n"


def test_every_edit_has_the_rule_and_fits() -> None:
    block = Block.of_lines("Mary Smith met Tom.")
    for edit in Anonymize()(block):
        assert edit.rule == "name"
        assert block.text[edit.offset :].startswith(edit.before)
        assert re.fullmatch(r"E\d+", edit.after)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_undo_gives_the_input(documents: list[str]) -> None:
    block = Block.of_documents(documents)
    named = Anonymize(become="names")(block)
    assert undo(apply(block.text, named), named) == block.text
    edits = Anonymize()(block)
    assert undo(apply(block.text, edits), edits) == block.text


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_one_number_for_one_word(documents: list[str]) -> None:
    for document in documents:
        edits = Anonymize()(Block.of_documents([document]))
        numbers: dict[str, str] = {}
        for edit in edits:
            assert numbers.setdefault(edit.before.casefold(), edit.after) == edit.after
        assert len(set(numbers.values())) == len(numbers)
        accepted = set(re.findall(r"(?<!\w)E\d+(?!\w)", document))
        assert not accepted & set(numbers.values())


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(0, 6))
def test_blocks_do_not_matter(documents: list[str], cut: int) -> None:
    complete = Block.of_documents(documents)
    pieces = [documents[:cut], documents[cut:]]
    rewritten = "".join(
        apply(block.text, Anonymize()(block))
        for block in (
            Block.of_documents(pieces[0]),
            Block.of_documents(pieces[1], first=len(pieces[0])),
        )
    )
    assert rewritten == apply(complete.text, Anonymize()(complete))


def test_it_crosses_processes_and_refuses_an_unknown_finder() -> None:
    rewriter = pickle.loads(pickle.dumps(Anonymize()))  # noqa: S301
    assert rewriter == Anonymize()
    with pytest.raises(UnknownNameError):
        Anonymize("spacyy")(Block.of_lines("Mary left."))
