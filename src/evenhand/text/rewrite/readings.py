"""When a word that is written like a gendered noun is none: part of a name, or a verb.

Swapping and neutral rewriting ask the same questions: "Governor Huntsman" and "Jane Alderman" are
named so, "Spider-Man" and "the Beach Boys" are names, and in "we groom our ponies" and "man the
pumps" nobody is spoken of.
"""

from __future__ import annotations

import re

from evenhand.text.grammar import following, preceding
from evenhand.text.people import (
    COMMON,
    GIVEN,
    INITIAL,
    PROPER,
    RANK,
    SURNAME,
    TITLE,
    kinds,
)
from evenhand.text.tagger import ADJECTIVES, read_word
from evenhand.text.vocabulary import LISTS, verb_table, word_set

GUARDED = frozenset({"animal", "body", "family", "fiction", "person"})
BEFORE_CAPITALS = frozenset({"animal", "body", "fiction", "person"})
PREVIOUS = re.compile(r"(?:([A-Za-z'’.]+)[ -])?([A-Za-z'’]+)[ -]$")
NEXT = re.compile(r"(?:['’]s?)?[ -][A-Z]")
BRIDGES = frozenset({"A", "a", "and", "for", "My", "of", "Our", "The", "the", "to"})
NOT_NAMES = frozenset({"A", "An", "I", "My", "Our", "The"})
SPORTS = frozenset({"Ladies", "Men", "Women"})
ENDS = frozenset(".!?:;")
LOOK_BACK = 40


def inside_name(text: str, start: int, end: int, kind: str) -> bool:
    """Whether the capitalised noun at text[start:end] is next to a capital and so part of a name.

    Titles, roles and nationalities stand beside names without being part of them; "Women's" is in
    the names of events that have a dual.

    >>> text = "He saw Spider-Man. Man is mortal. The Women's Cup."
    >>> [inside_name(text, s, e, "person") for s, e in ((14, 17), (19, 22), (38, 43))]
    [True, False, False]
    """
    word = text[start:end]
    if kind not in GUARDED or word.isupper():
        return False
    if word in SPORTS and text[end : end + 1] in ("'", "’"):
        return False
    near = PREVIOUS.search(text, max(0, start - LOOK_BACK), start)
    if near is not None:
        before, previous = near.groups()
        joined = text[start - 1] == "-" or not _opens(text, near.start(2))
        if previous[0].isupper() and previous not in NOT_NAMES and joined:
            return True
        if (
            previous in BRIDGES
            and before
            and before[0].isupper()
            and before not in NOT_NAMES
            and not _opens(text, near.start(1))
        ):
            return True
    nationality = word.endswith(("man", "men", "woman", "women")) and len(word) > 5
    return kind in BEFORE_CAPITALS and not nationality and NEXT.match(text, end) is not None


def _opens(text: str, position: int) -> bool:
    """Whether a sentence begins at the position, where a capital says nothing."""
    before = text[max(0, position - 8) : position].rstrip(" \"“'‘(-—–*")
    return not before or before[-1] in ENDS or before[-1] == "\n"


BEFORE_SURNAME = re.compile(r"(?<![\w.'’-])([^\W\d_][\w'’-]*\.?)[ \u00a0]$")
ATTRIBUTIVE = frozenset({"chief", "elder", "general", "major", "private"})
"""Ranks that also qualify a role: "Chief Spokesman Hill", "Elder Statesman"."""
COUNTRY = re.compile(r"\bU\. ?[SK]\. $")


def is_surname(text: str, start: int, end: int) -> bool:
    """Whether the noun at text[start:end] is the surname of the title or first name before it.

    A title before a rank is a form of address and no name: "Mr. Chairman".

    >>> text = "Governor Huntsman met Jane Alderman. Mr. Chairman, I object."
    >>> [is_surname(text, s, e) for s, e in ((9, 17), (27, 35), (41, 49))]
    [True, True, False]
    """
    word = text[start:end]
    if not word[0].isupper() or (len(word) > 1 and word.isupper()):
        return False
    near = BEFORE_SURNAME.search(text, max(0, start - LOOK_BACK), start)
    if near is None or not near[1][0].isupper():
        return False
    previous = near[1]
    kind, own = kinds(previous), kinds(word)
    named = bool(own & SURNAME)
    if kind & (TITLE | RANK):
        if previous.lower() in ATTRIBUTIVE:
            return named
        return named or not own & RANK
    if previous.endswith("."):
        initial = len(previous) == 2 and kind & INITIAL
        return bool(initial) and not COUNTRY.search(text, max(0, start - 8), start)
    if not kind & GIVEN or kind & PROPER:
        return False
    return named or not kind & COMMON or not _opens(text, near.start(1))


NAME_BEHIND = re.compile(r"[ \u00a0]([^\W\d_][\w'’-]*)")


def is_kin_title(text: str, start: int, end: int) -> bool:
    """Whether the family word at text[start:end] is the title of a name: "Father Brown".

    >>> is_kin_title("Father Brown", 0, 6), is_kin_title("Father knew", 0, 6)
    (True, False)
    """
    behind = NAME_BEHIND.match(text, end, end + LOOK_BACK)
    if not text[start].isupper() or behind is None or not behind[1][0].isupper():
        return False
    kind = kinds(behind[1])
    return not kind or bool(kind & (GIVEN | SURNAME))


VERBS = {"groom": "base", "man": "base", "husband": "base", "mother": "base"} | {
    "grooms": "s",
    "husbands": "s",
    "mothers": "s",
}
"""Gendered nouns that are verbs, too, and which form each would be."""
OBJECTS = LISTS["objects"]
"""Words besides determiners that an object may begin with."""
HELPERS = word_set("to ll t not do did does don didn let's")
SUBJECTS = word_set("i you we they")
SUBJECTS_OF_S = word_set("he she it who everyone nobody somebody someone")
PLURALS = word_set("people men women children")


def is_verb(text: str, start: int, end: int) -> bool:
    """Whether what may be a gendered noun at text[start:end] is a verb by the words around it.

    >>> texts = ("They groom the runs.", "The groom wept.", "We man the desk.", "A man, the one")
    >>> [is_verb(t, t.index("m") - (t[5:6] == "g") * 4, t.index("m") + 1) for t in texts[:2]]
    [True, False]
    >>> is_verb(texts[2], 3, 6), is_verb(texts[3], 2, 5)
    (True, False)
    """
    word = text[start:end].lower()
    form = VERBS.get(word)
    if form is None:
        return False
    right = following(text, start, end)
    left = preceding(text, start)
    takes_object = right[0] in OBJECTS or _role(right[0]) == "d"
    takes_object = takes_object or (word, right[0]) == ("man", "up")
    before = [token for token in left if token and _role(token) != "a"] or [""]
    if form == "s":
        return _is_s_form(before, right[:2], takes_object)
    if not (takes_object or word == "groom"):
        return False
    first = before[0]
    if first in HELPERS or first in SUBJECTS or _role(first) == "m":
        return True
    if not takes_object:
        return False
    if first in ("", ".", "!", "?", ":", ";", '"'):
        return word != "mother" and text[start].isupper()  # "Man the pumps!"
    if first in PLURALS or (_role(first) == "z" and len(first) > 3):
        return True
    joined = _role(first) == "c" and len(before) > 1 and before[1] in verb_table().plain
    return joined and (
        len(before) == 2 or before[2] in HELPERS | SUBJECTS or _role(before[2]) == "m"
    )


def _is_s_form(before: list[str], right: tuple[str, ...], takes_object: bool) -> bool:
    """The same for a form in -s after a singular subject."""
    if before[0] in SUBJECTS_OF_S:
        return True
    noun = _role(before[0]) == "x" and len(before) > 1 and _role(before[1]) in ("d", "x")
    things = _role(right[0]) == "z" or right[0] in ADJECTIVES
    return noun and (takes_object or (things and _role(right[1]) not in ("v", "l", "e", "m")))


def _role(token: str) -> str:
    return read_word(token).role if token else ""
