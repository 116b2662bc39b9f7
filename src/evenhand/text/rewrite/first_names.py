"""Mentions of first names in a block, told from surnames, places and words by the words beside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.lexicon.names import names
from evenhand.lexicon.persons import persons
from evenhand.text.block import Block
from evenhand.text.entities.capitalised import (
    COMMON,
    GIVEN,
    HEAD,
    PREFIX,
    PROPER,
    RANK,
    SUFFIX,
    SURNAME,
    TITLE,
    kinds,
)
from evenhand.text.rewrite.neighbours import Codes, Neighbours, character_codes
from evenhand.text.tokens import WordIndex, Words, protected

__all__ = ["Mention", "first_names", "known_names"]

ARTICLES = frozenset({"the", "a", "an"})
THE = frozenset({"the ", "The "})
SAFE_BEFORE = np.array([c in ' \n\t"(' for c in map(chr, range(128))])
SAFE_AFTER = np.array([c in ' \n\t"),;!?' for c in map(chr, range(128))])


class Mention(NamedTuple):
    """A first name as written, where it begins in the block, and the name of the lexicon it is."""

    start: int
    written: str
    name: str


@cache
def known_names() -> frozenset[str]:
    """The first names of the lexicon that are looked for; the rest are words or places mostly."""
    return frozenset(name for name in names().table if kinds(name) & GIVEN)


@cache
def _index() -> WordIndex:
    return WordIndex(name.lower() for name in known_names())


def _first_name(words: Neighbours, k: int, doubtful: bool) -> bool | None:
    """Whether word k is a first name here, None where the rest of the document must tell."""
    capitals = words.capitals_behind(k)
    if any(kind & HEAD for kind in capitals):
        return False
    follows = bool(capitals) and not capitals[0] & SUFFIX
    leading = words.capital_before(k)
    if leading:
        verdict = _behind_capital(words, k, leading, follows)
        if verdict is not None:
            return verdict
    lists = persons()
    if words.after_nickname(k):
        return follows
    before, behind = words.before(k), words.behind(k)
    if before in ARTICLES or behind in lists.thing_nouns:
        return False
    if not doubtful:
        return True
    if follows:
        return True if not capitals[0] or capitals[0] & (SURNAME | GIVEN) else None
    if before in lists.kin or before in lists.greetings:
        return True
    kind = kinds(words.word(k))
    if kind & (SURNAME | PROPER) or not kind & COMMON:
        return None
    if not words.opening(k):
        return True
    if behind in lists.speech_verbs or behind in lists.person_verbs:
        return True
    # "Will you" is no name even where Will is one elsewhere in the document
    return None if not behind or behind in lists.plain_verbs else False


def _behind_capital(words: Neighbours, k: int, leading: str, follows: bool) -> bool | None:
    """The verdict by the capitalised word before, None where that word is as good as none."""
    kind = kinds(leading)
    if leading.lower() in persons().given_titles and not kind & PREFIX:
        return True
    if kind & (TITLE | RANK) or len(leading) == 1 or (kind & GIVEN and not kind & COMMON):
        return follows
    if kind & COMMON and not kind & (PREFIX | HEAD) and words.opening(k - 1):
        return None
    return False


class _Candidate(NamedTuple):
    owner: int
    k: int
    start: int
    end: int
    risky: bool  # the characters around it call for a closer look
    alone: bool  # no capitalised word before or behind


def _candidates(
    block: Block, words: Neighbours, found: Words, codes: Codes, chosen: NDArray[np.bool_] | None
) -> Iterator[_Candidate]:
    picked = _index().select(found)
    picked = picked[words.capital[picked]]
    owners = block.owner(found.starts[picked])
    if chosen is not None:
        keep = chosen[owners]
        picked, owners = picked[keep], owners[keep]
    starts, ends = found.starts[picked], found.ends[picked]
    behind = words.capital[picked + 1] & words.joined[picked + 1]
    alone = ~(words.capital[picked - 1] | behind)
    return map(
        _Candidate,
        owners.tolist(),
        picked.tolist(),
        starts.tolist(),
        ends.tolist(),
        _risky(codes, starts, ends).tolist(),
        alone.tolist(),
    )


def first_names(
    block: Block, chosen: NDArray[np.bool_] | None = None, words: Words | None = None
) -> Iterator[tuple[int, list[Mention], frozenset[str]]]:
    """For each chosen document with first names: its place in the block, the mentions in order, and
    all names of the lexicon that stand capitalised in it, first names or not.
    """
    found = Words(block.text) if words is None else words
    if not len(found):
        return
    codes = character_codes(block.text)
    near = Neighbours(found, codes)
    candidates = _candidates(block, near, found, codes, chosen)
    for number, group in groupby(candidates, key=attrgetter("owner")):
        mentions, present = _of_document(near, group)
        if mentions:
            yield number, mentions, present


def _risky(codes: Codes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the characters around a word call for a closer look (#Mary, Mary-Ann)."""
    behind = np.append(codes, np.array([ord(" ")], dtype=codes.dtype))[ends]
    before = np.where(starts > 0, codes[starts - 1], ord(" "))
    fine: NDArray[np.bool_] = (
        SAFE_BEFORE[np.minimum(before, 127)] & SAFE_AFTER[np.minimum(behind, 127)]
    )
    return ~fine


def _standing_alone(text: str, start: int, end: int) -> bool:
    """Whether a name is a word of its own, not a piece of a compound or of an address."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "-" or (after == "-" and text[end + 1 : end + 2].isalnum()):
        return False
    if before in ("'", "’") and text[start - 2 : start - 1].isalnum():
        return False
    if text[end : end + 2] in ("'t", "’t"):
        return False
    return not protected(text, start, end)


def _of_document(
    words: Neighbours, candidates: Iterable[_Candidate]
) -> tuple[list[Mention], frozenset[str]]:
    ambiguous = names().ambiguous
    things = persons().thing_nouns
    text = words.text
    mentions: list[Mention] = []
    open_questions: list[Mention] = []
    present: set[str] = set()
    for _, k, start, end, risky, alone in candidates:
        written = text[start:end]
        name = written.capitalize()
        present.add(name)
        if risky and not _standing_alone(text, start, end):
            continue
        if written.isupper() and not words.in_capitals(k):
            continue
        doubtful = name in ambiguous
        verdict: bool | None
        if alone and not doubtful:
            verdict = text[start - 4 : start] not in THE and words.behind(k) not in things
        else:
            verdict = _first_name(words, k, doubtful)
        if verdict:
            mentions.append(Mention(start, written, name))
        elif verdict is None:
            open_questions.append(Mention(start, written, name))
    if open_questions:
        sure = {mention.name for mention in mentions}
        late = [mention for mention in open_questions if mention.name in sure]
        if late:
            mentions = sorted(mentions + late)
    return mentions, frozenset(present)
