"""Swapping first names: where, consistently, and back again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.lexicon.first_names import names
from evenhand.text.block import Block
from evenhand.text.edits import apply, undo
from evenhand.text.people import kinds
from evenhand.text.rewrite.names import NameSwap
from evenhand.text.tokens import Words


def swapped(text: str, swap: NameSwap | None = None, first: int = 0) -> str:
    return apply(text, (swap or NameSwap())(Block.of_documents([text], first=first)))


def changed(text: str) -> list[str]:
    return [edit.before for edit in NameSwap()(Block.of_documents([text]))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("James' hat and James’ dog", "Mary's hat and Mary’s dog"),
        ("JAMES' HAT", "MARY'S HAT"),
        ("It was James', said Mary.", "It was Mary', said James."),
        ("‘I saw James’ he said.", "‘I saw Mary’ he said."),
        ("It rains.\n'I saw James' he said.", "It rains.\n'I saw Mary' he said."),
        ("James's hat", "Mary's hat"),
    ],
)
def test_possessives_of_names_in_s(text: str, expected: str) -> None:
    edits = NameSwap()(Block.of_documents([text]))
    assert apply(text, edits) == expected
    assert undo(expected, edits) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("James saw Mary.", ["James", "Mary"]),
        ("Michael Johnson met Elton John and Mr. James.", ["Michael", "Elton"]),
        ("Mr. James Smith spoke.", ["James"]),
        ("Queen Elizabeth and Prince Philip met Dr. Thomas.", ["Elizabeth", "Philip"]),
        ("Then James said: Mary's hat!", ["James", "Mary"]),
        ("JAMES IS HERE", ["JAMES"]),
        ("Mary Anne Smith sang.", ["Mary", "Anne"]),
        ('James "Jim" Thomas sang.', ["James", "Jim"]),
        ("Will you come in May? Will laughed.", ["Will"]),
        ("#Mary @James www.mary.com/James mary james", []),
        ("Jean-Paul and O'James at James Street and Mary Washington University", []),
        ("the James brothers and Lake Elizabeth", []),
        ("Low Earth orbit (LEO)", []),
        ("Will was late. Will Smith laughed, and will you?", ["Will", "Will"]),
        ("Don't.", []),
    ],
)
def test_where_names_are_swapped(text: str, expected: list[str]) -> None:
    assert changed(text) == expected


def test_case_and_possessive_stay() -> None:
    mary, james = names().partner("Mary"), names().partner("James")
    assert mary == "James"
    assert swapped("MARY SMITH: Mary's hat, James’ hat") == (
        f"{mary.upper()} SMITH: {mary}'s hat, {james}’s hat"
    )


CLEAR = [
    name
    for name in (*names().female[:400], *names().male[:400])
    if (partner := names().partner(name))
    and not {name, partner} & names().ambiguous
    and kinds(name) == kinds(partner)
]
FILLERS = ["saw", "met", ".", ",", "and", "Mr.", "the", "He's", "old"]
SENTENCES = st.lists(st.sampled_from(CLEAR) | st.sampled_from(FILLERS), max_size=16).map(" ".join)
DOCUMENTS = st.lists(SENTENCES, max_size=6)


@settings(max_examples=150, deadline=None)
@given(SENTENCES)
def test_fixed_swap_twice_gives_the_input(text: str) -> None:
    assert swapped(swapped(text)) == text


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.sampled_from(["fixed", "random"]), st.sampled_from(["both", "female-to-male"]))
def test_undo_gives_the_input(documents: list[str], mode: str, direction: str) -> None:
    block = Block.of_documents(documents)
    edits = NameSwap(mode, 3, direction)(block)
    assert undo(apply(block.text, edits), edits) == block.text


@settings(max_examples=150, deadline=None)
@given(SENTENCES, st.sampled_from(["fixed", "random"]), st.sampled_from(["both", "male-to-female"]))
def test_one_new_name_for_each_name(text: str, mode: str, direction: str) -> None:
    known = names()
    edits = NameSwap(mode, 5, direction)(Block.of_documents([text]))
    become: dict[str, str] = {}
    for edit in edits:
        assert become.setdefault(edit.before, edit.after) == edit.after
        if direction != "both":
            assert known.gender(edit.before) == "male"
        assert known.gender(edit.before) != known.gender(edit.after)
    assert len(set(become.values())) == len(become)
    if mode == "random" or direction != "both":
        assert not set(become.values()) & set(text.split())


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(0, 6))
def test_blocks_do_not_matter(documents: list[str], cut: int) -> None:
    swap = NameSwap("random", 11)
    complete = Block.of_documents(documents)
    first = Block.of_documents(documents[:cut])
    two = Block.of_documents(documents[cut:], first=len(documents[:cut]))
    pieces = apply(first.text, swap(first)) + apply(two.text, swap(two))
    assert pieces == apply(complete.text, swap(complete))


def test_only_chosen_documents_change() -> None:
    block = Block.of_lines("Mary left.\nMary stayed.\n")
    chosen = np.array([False, True])
    text = apply(block.text, NameSwap()(block, chosen, Words(block.text)))
    assert text == "Mary left.\nJames stayed.\n"


def test_random_names_follow_their_frequency_and_the_seed() -> None:
    block = Block.of_lines("Mary left.\n" * 4000)
    first = [edit.after for edit in NameSwap("random", 1)(block)]
    assert first == [edit.after for edit in NameSwap("random", 1)(block)]
    assert first != [edit.after for edit in NameSwap("random", 2)(block)]
    known = names()
    clear = [name for name in known.male if name not in known.ambiguous]
    share = known.count("John") / sum(known.count(name) for name in clear)
    # four standard errors of a share of 4,000 draws
    assert abs(Counter(first)["John"] / 4000 - share) < 4 * (share * (1 - share) / 4000) ** 0.5


def test_names_without_a_clear_gender_are_left() -> None:
    casey = "Casey met Mary Smith."
    assert names().gender("Casey") is None
    edits = NameSwap("random")(Block.of_lines(casey))
    assert [edit.before for edit in edits] == ["Mary"]


def test_wrong_settings() -> None:
    with pytest.raises(InputError, match="names: expected one of fixed, random, got 'fix'"):
        NameSwap("fix")
    with pytest.raises(InputError, match="direction: expected one of"):
        NameSwap(direction="up")
