r"""Whom a text is about: women, men, people of no stated gender, or several of different genders.

Evidence is what the text says outside of quotations: pronouns, first names, titles and nouns that
state a gender. A relative ("her husband", "the man's wife") is another person than the one written
about, and "he or she" is nobody's gender. Each gender has a score, in which the subject of a
sentence counts twice; the larger one is that of the text. Two genders of nearly the same score,
each with a subject or a name, are several people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from evenhand.lexicon.first_names import names
from evenhand.lexicon.gendered import pairs, sex_indicators
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS
from evenhand.text.people import find_people

Whom: TypeAlias = Literal["women", "men", "neutral", "several"]
WHOM: tuple[Whom, ...] = ("women", "men", "neutral", "several")
ACCURACY = 0.92
"""The share of hand-made texts, none of which the rules were made with, that are read rightly."""

TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|'s\b|[^\w\s]")
QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"")
QUOTES = re.compile(r"[“”\"]")
EITHER = re.compile(
    r"\b(?:s?he|her|his|him|hers|himself|herself)(?:/| or | and )(?:s?he|hers?|his|him|himself"
    r"|herself)\b|\bs/he\b|\(s\)he\b",
    re.IGNORECASE,
)
STATED: Mapping[str, int] = {"female": 1, "pregnant": 1, "male": -1, "bearded": -1, "lady": 1}
OWNERS = frozenset({"his", "her", "my", "our", "your", "their", "its", "whose", "'s"})
COPULAS = frozenset(
    (
        *("is", "was", "be", "been", "being", "am", "are", "were", "as", "become", "became"),
        *("imagine", "picture"),
    )
)
SAYING = frozenset(
    (
        "said",
        "says",
        "asked",
        "asks",
        "replied",
        "answered",
        "told",
        "shouted",
        "whispered",
        "added",
    )
)
STOPS = frozenset(".!?:;")
SEVERAL = 0.6
"""The smaller score over the larger, from which on a text is about several people."""


class GenderEvidence(NamedTuple):
    """Something that states a gender: 1 of women, -1 of men."""

    sex: int
    weight: float
    acts: bool
    start: int


@cache
def _stated() -> Mapping[str, int]:
    """Nouns and adjectives that state a gender."""
    listed, known = sex_indicators(), dict(STATED)
    for pair in pairs():
        for word, sex in ((pair.female, 1), (pair.male, -1)):
            if word in listed and word not in PRONOUNS:
                known.setdefault(word, sex)
    return known


def whom(text: str) -> Whom:
    """Whom a text is about.

    >>> whom("The judge took off her glasses."), whom("The clerk said that they were late.")
    ('women', 'neutral')
    >>> whom("His wife is a doctor. He is a cook."), whom("She bakes, he sells.")
    ('men', 'several')
    """
    plain = EITHER.sub("they", text.replace("’", "'"))
    found = _evidence(QUOTED.sub(' " ', plain)) or _evidence(QUOTES.sub(" ", plain))
    scores = {sex: sum(each.weight for each in found if each.sex == sex) for sex in (1, -1)}
    larger = max(scores, key=lambda sex: scores[sex])
    if not scores[larger]:
        return "neutral"
    acting = {each.sex for each in found if each.acts}
    if min(scores.values()) >= SEVERAL * scores[larger] and len(acting) > 1:
        return "several"
    if scores[1] == scores[-1]:
        larger = min(found, key=lambda each: each.start).sex
    return "women" if larger == 1 else "men"


def _evidence(text: str) -> list[GenderEvidence]:
    """What states the gender of those whom the text is about, in order."""
    named: dict[int, int] = {}
    for person in find_people(text):
        for part in person.parts:
            stated = names().gender(text[part.start : part.end]) if part.kind == "given" else None
            if stated is not None:
                named[part.start] = 1 if stated == "female" else -1
    tokens = list(TOKEN.finditer(text))
    words = [token.group().lower() for token in tokens]
    found: list[GenderEvidence] = []
    seen: set[str] = set()
    others: set[int] = set()  # the genders of further persons, who were mentioned first
    for place, word in enumerate(words):
        start = tokens[place].start()
        before, after = words[max(0, place - 3) : place], words[place + 1 : place + 2]
        sentence = before[max((i + 1 for i, w in enumerate(before) if w in STOPS), default=0) :]
        if start in named:
            sex, first = named[start], word not in seen
            seen.add(word)
            if OWNERS.isdisjoint(sentence) or not found or found[0].sex == sex:
                found.append(GenderEvidence(sex, 2.0 if first else 1.0, True, start))
            else:
                others.add(sex)
        elif word in PRONOUNS:
            sex = 1 if word in FEMALE else -1
            if sex in others:
                continue
            tag = before[-1:] == ['"'] and not SAYING.isdisjoint(after)
            subject = word in ("he", "she")
            found.append(GenderEvidence(sex, 2.0 if subject and not tag else 1.0, subject, start))
        elif sex := _stated().get(word, 0):
            known = {each.sex for each in found}
            indefinite = sentence[-1:] in (["a"], ["an"]) and len(sentence) > 1
            further = indefinite and sentence[-2] not in (*COPULAS, "and") and known == {-sex}
            if further or not OWNERS.isdisjoint(sentence):
                if sex not in known:
                    others.add(sex)
                continue
            joined = "and" in sentence or "and" in after
            opens = len(sentence) < 2
            found.append(
                GenderEvidence(sex, 2.0 if opens or joined else 1.0, opens or joined, start)
            )
    return found
