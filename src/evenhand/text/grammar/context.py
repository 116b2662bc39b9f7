"""What stands around a pronoun, as the features of a log-linear model.

The neighbours are read straight out of the text with one pattern to the right and one, on a
reversed slice, to the left. Nothing beyond a line break is looked at and no word beyond the end
of the sentence, so that a decision never depends on a neighbouring document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "Kind",
    "Neighbours",
    "far_features",
    "following",
    "kind_of",
    "mark",
    "near_features",
    "next_two",
    "preceding",
    "subject",
    "word_before",
]

Kind = tuple[str, str, str]
"""A word's fine class, its coarse class, and how often it stands without a determiner."""


Right = tuple[str, str, str, str, bool]
"""Four tokens behind a word, and whether the first word is capitalised."""

Left = tuple[str, str, str]
"""Three tokens before a word, nearest first."""


class Neighbours(NamedTuple):
    """The tokens around a word: lower-case words or marks, "" past the end of the sentence."""

    right: Right
    left: Left
    subject: str  # as the function of that name tells it


REACH = 60
"""Characters read on either side."""

_RIGHT = re.compile(r"([^\w\n]*)(\w*(?:-\w+)*)([^\w\n]*)(\w*)([^\w\n]*)(\w*)([^\w\n]*)(\w*)").match
_NEXT = re.compile(r" (\w+)(?![\w-])([^\w\n]*)(\w*)").match
_LEFT = re.compile(r"([^\w\n]*)(\w*)([^\w\n]*)(\w*)([^\w\n]*)(\w*)").match
_SUBJECT = re.compile(r"\b(?:eh|ehs|i|yeht|ew|uoy|ohw)\b", re.IGNORECASE).search  # read backwards
_STOP = re.compile(r"[.!?\n]").search
_MARK = re.compile(r"\.\.|[.!?…,;:)\"”/&%$£€+=–—-]").search
_NAMES = {"..": "…", "”": '"', "–": "-", "—": "-"}
_ENDS = frozenset(".!?")
_CLOSING = {"[": "]", "(": ")", '"': '"', "“": "”", "'": "'", "‘": "’", "*": "*", "_": "_"}

_marks: dict[str, str] = {}


def mark(gap: str) -> str:
    """The first mark of punctuation between two words that tells something of the grammar, or "".

    Brackets and quotes that open count as not there; a quote right behind a word closes.

    >>> mark(" "), mark(", "), mark(" ["), mark('" '), mark(' "'), mark("... ")
    ('', ',', '', '"', '', '…')
    """
    known = _marks.get(gap)
    if known is not None:
        return known
    found = _MARK(gap)
    name = "" if found is None else _NAMES.get(found[0], found[0])
    if found and name == '"' and gap[: found.start()].endswith((" ", "\t")):
        name = ""
    if len(gap) < 4 and len(_marks) < 4096:
        _marks[gap] = name
    return name


def following(text: str, start: int, end: int) -> Right:
    """What follows text[start:end].

    >>> following("He saw [her] old car.", 8, 11)
    ('old', 'car', '.', '', False)
    >>> following("I know her. She sings", 7, 10)
    ('.', '', '', '', False)
    """
    found = _RIGHT(text, end, end + REACH)
    assert found is not None  # noqa: S101 - every part of the pattern may be empty
    gap, word1, gap2, word2, gap3, word3, gap4, word4 = found.groups()
    if gap == gap2 == gap3 == gap4 == " ":
        capital = word1[:1].isupper()
        return word1.lower(), word2.lower(), word3.lower(), word4.lower(), capital
    at = start - 1
    while gap and at >= 0 and _CLOSING.get(text[at]) == gap[0]:
        gap, at = gap[1:], at - 1
    tokens: list[str] = []
    for space, word in ((gap, word1), (gap2, word2), (gap3, word3), (gap4, word4)):
        name = mark(space) or ("" if word else ".")  # a line may end without a full stop
        if name:
            tokens.append(name)
        if name in _ENDS or not word:
            break
        tokens.append(word.lower())
    tokens += ["", "", "", ""]
    capital = word1[:1].isupper() and tokens[0] not in _ENDS
    return tokens[0], tokens[1], tokens[2], tokens[3], capital


def next_two(text: str, end: int) -> tuple[str, str, bool] | None:
    """The first two tokens of `following` and the capital, where a blank and a word follow.

    Most places are decided by these, and reading no more takes half of the time; None where it
    takes a closer look.

    >>> next_two("her old car.", 3), next_two("her car. He", 3), next_two("her, he", 3)
    (('old', 'car', False), ('car', '.', False), None)
    """
    found = _NEXT(text, end, end + REACH)
    if found is None:
        return None
    first, gap, second = found.groups()
    then = second if gap == " " else mark(gap) or second
    return first.lower(), then.lower() or ".", first[0].isupper()


def word_before(text: str, start: int) -> str | None:
    """The first token of `preceding`, where it is a plain word between blanks."""
    begin = text.rfind(" ", max(start - 24, 0), start - 1) + 1
    word = text[begin : start - 1]
    if not begin or text[start - 1] != " " or not word.isalpha():
        return None
    return word.lower()


def preceding(text: str, start: int) -> Left:
    """What stands before `start`.

    >>> preceding("She wept. With all [her", 19)
    ('all', 'with', '.')
    """
    found = _LEFT(text[max(start - REACH, 0) : start][::-1])
    assert found is not None  # noqa: S101 - every part of the pattern may be empty
    gap, word1, gap2, word2, gap3, word3 = found.groups()
    if gap == gap2 == gap3 == " ":
        return word1[::-1].lower(), word2[::-1].lower(), word3[::-1].lower()
    tokens: list[str] = []
    for space, word in ((gap, word1), (gap2, word2), (gap3, word3)):
        name = mark(space)
        if name:
            tokens.append(name)
        if name in _ENDS or not word:
            break
        tokens.append(word[::-1].lower())
    tokens += ["", "", ""]
    return tokens[0], tokens[1], tokens[2]


def subject(text: str, start: int, own: str) -> str:
    """The nearest pronoun before `start` that can be a subject: "same" person, "other" or "none".

    `own` is the subject form of the pronoun that is asked about: "she gave her money" and "he gave
    her money" part here.

    >>> subject("She saw that he took her", 21, "she"), subject("She wept. In her", 13, "she")
    ('other', 'none')
    """
    line = text[max(start - REACH, 0) : start][::-1]
    found = _SUBJECT(line)
    if found is None or _STOP(line, 0, found.start()):
        return "none"
    return "same" if found[0][::-1].lower() == own else "other"


def kind_of(word: str, kinds: Mapping[str, Kind]) -> Kind:
    """The classes of a word; one that is not in the table is classed by its form.

    >>> [kind_of(word, {})[0] for word in ("gloffing", "gloffs", "42", ",", "well-known")]
    ['~ing', '~s', '~0', ',', '~-']
    """
    known = kinds.get(word)
    if known is not None:
        return known
    if not word[:1].isalnum():
        form = word
    elif word[0].isdigit():
        form = "~0"
    elif "-" in word:
        form = "~-"
    else:
        endings = ("ing", "ed", "ly", "ness", "ion", "s", "")
        form = "~" + next(ending for ending in endings if word.endswith(ending))
    return form, form, ""


def near_features(right: Right, left: Left, kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """The nearest tokens, alone and in pairs: most places are decided by these."""
    n1, n2, _, _, capital = right
    p1 = left[0]
    k1 = (kinds.get(n1) or kind_of(n1, kinds))[0]
    return (
        "a" + n1,
        "b" + p1,
        f"c{n1} {n2}",
        f"d{p1} {n1}",
        f"f{p1} {k1}",
        f"g{k1}" if capital else f"h{k1}",
    )


def far_features(
    around: Neighbours, kinds: Mapping[str, Kind], verbs: Mapping[str, tuple[str, str]]
) -> list[str]:
    """More tokens, word classes in a row, and the subject.

    `verbs` gives the base form and the group of verbs with two objects, of perceiving and
    causing, and of naming ("gave her money", "saw her leave", "called her names").
    """
    (n1, n2, n3, n4, _), (p1, p2, p3), who = around
    k1, c1, b1 = kinds.get(n1) or kind_of(n1, kinds)
    k2, c2, b2 = kinds.get(n2) or kind_of(n2, kinds)
    c3 = (kinds.get(n3) or kind_of(n3, kinds))[1]
    c4 = (kinds.get(n4) or kind_of(n4, kinds))[1]
    q1, e1, _ = kinds.get(p1) or kind_of(p1, kinds)
    e2 = (kinds.get(p2) or kind_of(p2, kinds))[1]
    e3 = (kinds.get(p3) or kind_of(p3, kinds))[1]
    ahead = f"{c1} {c2} {c3}"
    listed = [
        f"e{p2} {p1}",
        f"i{k1} {k2}",
        f"j{q1} {k1}",
        f"k{k1} {n2}",
        f"l{q1} {b1} {b2}",
        "m" + who,
        f"n{who} {p1}",
        f"o{who} {q1} {b1}",
        "p" + ahead,
        f"q{e1} {ahead}",
        f"r{ahead} {c4}",
        f"s{p1} {ahead}",
        f"A{e3} {e2} {p1}",
        f"B{e3} {e2} {p1} {c1}",
    ]
    verb = verbs.get(p1)
    if verb is not None:
        base, group = verb
        listed += (
            f"t{base} {b1} {b2}",
            f"u{base} {k1}",
            f"v{base} {k1} {k2}",
            f"w{base} {n1}",
            f"x{base} {ahead}",
            f"y{base} {who} {b1} {b2}",
            f"z{group} {b1} {b2}",
        )
    return listed
