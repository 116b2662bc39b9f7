"""Which words of a sentence may be replaced, and which words may take their place.

Replaced are nouns, adjectives, verbs and adverbs in small letters; function words, names, numbers,
the pronoun and the head of its antecedent stay. What enters is a known English word that tells no
sex and is nobody's name, in the same form (number of a noun, form of a verb), and the tags of the
whole sentence stay as they are, so that the parts of speech and the link to the pronoun do.
"""

from __future__ import annotations

from functools import cache, lru_cache
from weakref import WeakKeyDictionary

from evenhand.lexicon.gendered import neutral_forms, pairs, sex_indicators
from evenhand.lexicon.names import counted_words
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.masked.model import MaskedLM
from evenhand.masked.words import single_pieces
from evenhand.text.people import COMMON, DERIVED, GIVEN, PROPER, kinds
from evenhand.text.structural import stated_sex
from evenhand.text.tagger import FUNCTION_WORDS
from evenhand.text.vocabulary import nouns, verb_forms, word_set

__all__ = ["akin", "fills", "may_enter", "may_leave", "same_form", "tells_sex"]

OPEN = frozenset("WVEGB")
"""Tags of nouns and adjectives, verbs, participles and adverbs."""
SHORTEST = 3
MORE_PEOPLE = word_set(
    "ally comrade creator creature devil enemy exile fellow foe ghost monster spirit"
)
"""Whom a pronoun can mean, besides the nouns that the resolver knows."""
NOT_PLURAL = ("ss", "us", "is", "ous")


@cache
def _gendered() -> frozenset[str]:
    """Every single word that a list of the lexicon calls gendered, either side of its pairs too."""
    found = set(PRONOUNS) | set(sex_indicators())
    for pair in pairs():
        found.update((pair.female, pair.male))
    found.update(form.gendered for form in neutral_forms())
    return frozenset(word for word in found if word.isalpha())


@cache
def _known() -> frozenset[str]:
    people = nouns()
    return counted_words("common_words") | people.person | people.animal | verb_forms().keys()


def tells_sex(word: str) -> bool:
    """Whether a word in lower case is gendered, or a first name where it is written as one.

    >>> [tells_sex(word) for word in ("aunt", "actor", "mary", "crewman", "spoon")]
    [True, True, True, True, False]
    """
    name = word.capitalize()
    return word in _gendered() or bool(kinds(name) & GIVEN or stated_sex([word, name]))


@lru_cache(maxsize=1 << 16)
def may_enter(word: str) -> bool:
    """Whether a word in lower case may be written into a sentence at all.

    >>> [may_enter(word) for word in ("spoon", "explan", "the", "girl", "london")]
    [True, False, False, False, False]
    """
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    if word in FUNCTION_WORDS or tells_sex(word):
        return False
    flags = kinds(word.capitalize())
    if flags & PROPER:
        return False
    return word in _known() or (len(word) > 6 and flags == COMMON and bool(DERIVED.search(word)))


def may_leave(word: str, tag: str) -> bool:
    """Whether a word with that tag is one that an edit may replace."""
    return (
        tag in OPEN
        and len(word) >= SHORTEST
        and word.isalpha()
        and word.islower()
        and word not in FUNCTION_WORDS
    )


def same_form(old: str, new: str, tag: str) -> bool:
    """Whether two words of one tag have the same form, and both or none is a person or an animal.

    >>> same_form("spoon", "cups", "W"), same_form("drops", "drop", "V")
    (False, False)
    >>> same_form("spoon", "nurse", "W"), same_form("doctor", "nurse", "W")
    (False, True)
    """
    if old == new:
        return False
    if tag in "VEG":
        return _verb_form(old) == _verb_form(new)
    if tag == "W":
        return _plural(old) == _plural(new) and _life(old) == _life(new)
    return True


def _life(word: str) -> str:
    known = nouns()
    single = known.singular(word) or word
    if known.is_person(single) or word in MORE_PEOPLE:
        return "person"
    return "animal" if single in known.animal else "none"


def akin(word: str, other: str) -> bool:
    """Whether two words look like forms of one: "blow" and "blows", "run" and "running".

    >>> akin("blow", "blows"), akin("stage", "staff"), akin("hand", "handle")
    (True, False, True)
    """
    shorter, longer = sorted((word, other), key=len)
    stem = shorter[:-1] if shorter.endswith("e") else shorter
    return len(stem) >= SHORTEST and longer.startswith(stem) and len(longer) - len(stem) <= 4


def _verb_form(word: str) -> str:
    ending = "ing" if word.endswith("ing") else "past" if word.endswith("ed") else "s"
    return verb_forms().get(word, ending)


def _plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(NOT_PLURAL)


_fills: WeakKeyDictionary[MaskedLM, dict[int, str]] = WeakKeyDictionary()


def fills(model: MaskedLM) -> dict[int, str]:
    """The tokens of a model that are, behind a space, a whole word that may enter: id -> word.

    >>> from evenhand.masked import load
    >>> words = set(fills(load("mini")).values())
    >>> "table" in words, "woman" in words, "mary" in words
    (True, False, False)
    """
    if model not in _fills:
        _fills[model] = _found(model)
    return _fills[model]


def _found(model: MaskedLM) -> dict[int, str]:
    tokenizer = model.tokenizer
    ids = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
    written = {i: text.strip() for i, text in zip(ids, _decoded(model, ids), strict=True)}
    wanted = sorted({word for word in written.values() if may_enter(word)})
    # A cased model has a token for the capitalised word too, which is another word to us.
    whole = single_pieces(model, "a [MASK] a", wanted)
    return {i: word for i, word in whole.items() if written.get(i) == word}


def _decoded(model: MaskedLM, ids: list[int]) -> list[str]:
    texts: list[str] = model.tokenizer.batch_decode([[i] for i in ids])
    return texts
