"""Edits applied, inverted and undone; blocks cut into documents and put together again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.text.block import Block
from evenhand.text.edits import Edit, apply, invert, undo


@st.composite
def texts_with_edits(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(st.text(max_size=60))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=10)))
    edits = [
        Edit(a, "rule", text[a:b], draw(st.text(max_size=4)))
        for a, b in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    return text, edits


@given(texts_with_edits())
def test_undo_gives_the_input_back(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    rewritten = apply(text, edits)
    assert undo(rewritten, edits) == text
    assert invert(invert(edits)) == edits


def test_apply_refuses_an_edit_that_does_not_fit() -> None:
    with pytest.raises(InputError, match="edit at 3: expected 'she' after 0, found 'her'"):
        apply("to her", [Edit(3, "pronoun", "she", "he")])


def test_apply_refuses_edits_that_overlap() -> None:
    edits = [Edit(0, "pronoun", "she", "he"), Edit(1, "pronoun", "he", "she")]
    with pytest.raises(InputError, match="edit at 1"):
        apply("she", edits)


@given(st.lists(st.text(st.characters(blacklist_characters="\n"), max_size=8), max_size=8))
def test_lines_are_documents(lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    block = Block.of_lines(text, first=7, line=3)
    assert [block.document(i) for i in range(len(block))] == lines
    assert [block.line(i) for i in range(len(block))] == list(range(3, 3 + len(lines)))


@given(st.lists(st.text(max_size=8), max_size=8))
def test_documents_may_hold_newlines(documents: list[str]) -> None:
    block = Block.of_documents(documents)
    assert [block.document(i) for i in range(len(block))] == documents
    for index in range(len(block)):
        begin, end = block.span(index)
        assert block.owner(np.arange(begin, end + 1)).tolist() == [index] * (end - begin + 1)


def test_last_line_may_lack_its_newline() -> None:
    block = Block.of_lines("a\nb")
    assert [block.document(i) for i in range(len(block))] == ["a", "b"]
    assert block.owner(np.array([0, 1, 2])).tolist() == [0, 0, 1]
