"""Words by keys against a plain regular expression, and what counts as an address."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.tokens import WordIndex, Words, match_case, protected

LISTED = ("he", "she", "her", "grandmother", "counterrevolutionaries", "fiancée", "señora")
# fmt: off
PIECES = st.sampled_from([
    *LISTED, "HE", "She", "the", "é", "ñ", "-", "'", "’", " ", "\n", "_", "9", "“", "漢", "😀",
    "\udcff",
    "counterrevolutionarily", "shed", "fiancée", "FIANCÉE", "fiancèe", "señora", ".", "https://",
])
# fmt: on


def plain(text: str) -> list[tuple[int, int]]:
    """Maximal runs of word characters, lone surrogates and combining marks among them."""
    return [m.span() for m in re.finditer(r"(?:\w|[\ud800-\udfff])+", text)]


@given(st.lists(PIECES, max_size=40).map("".join))
def test_words_are_maximal_runs_of_word_characters(text: str) -> None:
    result = Words(text)
    assert list(zip(result.starts.tolist(), result.ends.tolist(), strict=True)) == plain(text)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_index_finds_what_a_loop_finds(text: str) -> None:
    starts, ends = WordIndex(LISTED).find(text)
    expected = [span for span in plain(text) if text[slice(*span)].lower() in LISTED]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected


@given(st.text(max_size=60))
def test_any_text_is_taken(text: str) -> None:
    starts, ends = WordIndex(LISTED).find(text)
    assert all(text[s:e].lower() in LISTED for s, e in zip(starts, ends, strict=True))


def test_words_longer_than_their_key_are_distinguished() -> None:
    index = WordIndex(["counterrevolutionaries"])
    assert len(index.find("counterrevolutionaries")[0]) == 1
    assert len(index.find("counterrevolutionarizz")[0]) == 0


def test_empty_index_and_empty_text() -> None:
    assert len(WordIndex([]).find("she")[0]) == 0
    assert len(WordIndex(["she"]).find("")[0]) == 0


def test_index_refuses_what_it_could_never_find() -> None:
    for bad in (["mother-in-law"], ["two words"], [""]):
        with pytest.raises(ValueError, match="single words"):
            WordIndex(bad)


def test_keys_of_frequent_words_do_not_collide(shared) -> None:
    import bz2

    with bz2.open(shared / "data/corpus/corpus-1.txt.bz2") as stream:
        text = stream.read(6_000_000).decode()
    result = Words(text)
    by_key: dict[int, str] = {}
    for start, end, key in zip(result.starts, result.ends, result.keys.tolist(), strict=True):
        word = text[start:end].lower()[:16] + str(end - start)
        assert by_key.setdefault(key, word) == word
    assert len(by_key) > 50_000
    assert np.all(result.starts < result.ends)


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("#HeForShe is on", "HeForShe", True),
        ("ask @her now", "her", True),
        ("ask @her.page now", "page", True),
        ("see http://a.org/her,he now", "he", True),
        ("www.she.com", "she", True),
        ("mail him@her.org now", "him", True),
        ("mail him@her.org now", "her", True),
        ("she.com", "she", True),
        ("open /letters/her/notes", "her", True),
        ("his.txt", "his", True),
        ("~/her/notes", "her", True),
        ("he/she", "she", False),
        ("she/her/hers", "her", False),
        ("ask (her).", "her", False),
        ("him.And then", "him", False),
        ("“her”—no", "her", False),
        ("ex-wife", "wife", False),
        ("her...", "her", False),
        ("[her] idea", "her", False),
        ("*her*", "her", False),
        ("her", "her", False),
        ("AT&T her", "her", False),
    ],
)
def test_protected(text: str, word: str, expected: bool) -> None:
    start = text.rindex(word) if word != "him" else text.index(word)
    assert protected(text, start, start + len(word)) is expected


def test_match_case() -> None:
    assert match_case("HER", "his") == "HIS"
    assert match_case("Her", "his") == "His"
    assert match_case("hEr", "his") == "his"
    assert match_case("I", "we") == "We"
