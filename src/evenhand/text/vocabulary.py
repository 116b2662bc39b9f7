"""Word lists of the tagger: function words, verbs and nouns for people."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from evenhand.lexicon.gendered import pairs
from evenhand.lexicon.schema import built_in, data


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())


GRAMMAR = built_in("grammar.toml")
LISTS: Mapping[str, frozenset[str]] = {
    name: word_set(words) for name, words in GRAMMAR["sets"].items()
}
"""The lists of `grammar.toml`, which says what each is."""

AGREEING = {
    singular + end: plural + end
    for singular, plural in (("is", "are"), ("was", "were"), ("has", "have"), ("does", "do"))
    for end in ("", "n't", "nt", "n")
}
"""Auxiliaries in the third person singular, and what they are after `they`; the last four are what
tokenisers leave of isn't and its like before " 't".
"""

UNCLEAR_PASTS = LISTS["unclear_pasts"]
"""Irregular forms that are past tense or participle, or past tense or infinitive."""

FRONTED = LISTS["fronted"]
"""Words that, at the head of a clause, put the verb before its subject."""

EXISTENTIAL = word_set("there here there's here's theres")

TIMES = LISTS["times"]
"""Nouns that make an adverb of the determiner before them: every day, this time."""

ADVERBIALS: dict[str, list[tuple[int, list[str]]]] = {}
for _words in map(str.split, GRAMMAR["adverbials"]):
    _longest = max(_words, key=len)
    ADVERBIALS.setdefault(_longest, []).append((_words.index(_longest), _words))
"""Phrases that stand for an adverb: by their longest word, its place in them and their words."""


ADVERBS_IN_S = LISTS["adverbs_in_s"]
"""Words in -s that are neither a verb nor a plural."""


EXCEPTIONS: Mapping[str, str] = GRAMMAR["plain_forms"]
"""Verbs in -s whose plain form does not follow from the spelling."""

SPOKEN_ODDS = {"spoken": 2.0, "spoken_too": -0.5}


ENDINGS = ("ing", "ed", "ly", "ness", "ion", "s")


def shape(word: str) -> str:
    """The class of a word that is not in the tables, by its form.

    >>> shape("Paris"), shape("gloffing"), shape("7")
    ('~A', '~ing', '~0')
    """
    if not word[0].isalnum():
        return word
    if word[0].isupper():
        return "~A"
    if word[0].isdigit():
        return "~0"
    return next((f"~{ending}" for ending in ENDINGS if word.endswith(ending)), "~")


def stems(form: str) -> tuple[str, ...]:
    """The words an -s form may come from, the likeliest by spelling first.

    >>> stems("tries"), stems("dies"), stems("quizzes")
    (('try', 'trie'), ('die', 'dy'), ('quiz',))
    """
    if form in EXCEPTIONS:
        return (EXCEPTIONS[form],)
    if form.endswith("ies"):
        long, short = form[:-3] + "y", form[:-1]
        return (long, short) if len(form) > 4 else (short, long)
    if form.endswith(("sses", "zzes")):
        return form[:-2], form[:-3], form[:-1]
    if form.endswith(("shes", "ches", "xes", "oes")):
        return form[:-2], form[:-1]
    if form.endswith("ses"):
        return form[:-1], form[:-2]
    return (form[:-1],)


class VerbTable:
    """The tables of verb forms and of their contexts."""

    def __init__(self) -> None:
        rows = _rows("verbs.csv")
        self.verbs = {form: verb for form, verb, _ in rows}
        self.odds = {form: float(odds) for form, _, odds in rows}
        for spoken, odds in SPOKEN_ODDS.items():
            for form in LISTS[spoken] - self.odds.keys():
                self.verbs[form], self.odds[form] = stems(form)[0], odds
        self.plain = frozenset(self.verbs.values())
        contexts = _rows("verb_contexts.csv")
        self.before = {word: float(odds) for word, odds, _ in contexts}
        self.after = {word: float(odds) for word, _, odds in contexts}


def _rows(name: str) -> list[list[str]]:
    """The rows of a table of the lexicon, without its header."""
    return list(csv.reader(data(name).read_text("utf-8").splitlines()))[1:]


@cache
def verb_table() -> VerbTable:
    """The tables, read once."""
    return VerbTable()


def plain_form(form: str) -> str:
    """The verb without its -s, in lower case.

    >>> [plain_form(form) for form in ("goes", "tries", "dies", "loses", "focuses", "yeets")]
    ['go', 'try', 'die', 'lose', 'focus', 'yeet']
    """
    return verb_table().verbs.get(form) or stems(form)[0]


IRREGULAR_PLURALS: Mapping[str, str] = GRAMMAR["plurals"]


@dataclass(frozen=True, slots=True)
class Nouns:
    """Nouns by what they denote, and the sex of those that state one."""

    person: frozenset[str]
    endings: tuple[str, ...]
    animal: frozenset[str]
    group: frozenset[str]
    sex: dict[str, str]

    def is_person(self, word: str) -> bool:
        """Whether a singular noun in lower case denotes a person.

        >>> nouns().is_person("gymnast"), nouns().is_person("shoemaker"), nouns().is_person("box")
        (True, True, False)
        """
        if word in self.person:
            return True
        tail = word.rpartition("-")[2]
        return (
            tail in self.person
            or word.endswith("-year-old")
            or (len(word) > 7 and tail.endswith(self.endings) and word not in self.group)
        )

    def is_alive(self, word: str) -> bool:
        """Whether a noun, singular or plural, denotes a person or an animal."""
        return self.is_person(word) or word in self.animal or self.singular(word) is not None

    def singular(self, word: str) -> str | None:
        """The singular of a plural noun that is known here, else None."""
        if word in IRREGULAR_PLURALS:
            return IRREGULAR_PLURALS[word]
        for end, put in (("ies", "y"), ("es", ""), ("s", "")):
            if word.endswith(end) and len(word) > len(end) + 2:
                stem = word[: -len(end)] + put
                if self.is_person(stem) or stem in self.animal:
                    return stem
        return None


@cache
def nouns() -> Nouns:
    """The nouns of `human_nouns.toml` and those of the gendered pairs that denote persons."""
    lists = built_in("human_nouns.toml")
    animal = set(lists["animal"])
    sex: dict[str, str] = {}
    people = set(lists["person"])
    for pair in pairs():
        for word, side in ((pair.female, "female"), (pair.male, "male")):
            if pair.pos in ("noun", "title") and " " not in word:
                sex.setdefault(word, side)
                if pair.kind == "animal":
                    animal.add(word)
                elif pair.kind != "body" and pair.number != "plural" and pair.safe:
                    people.add(word)
    # What is said of both sexes states none: an "actor" may be a woman.
    for pair in pairs():
        if pair.direction != "both":
            sex.pop(pair.male if pair.direction == "female-to-male" else pair.female, None)
    return Nouns(
        person=frozenset(people - animal),
        endings=tuple(lists["endings"]),
        animal=frozenset(animal),
        group=frozenset(lists["group"]),
        sex=sex,
    )


@cache
def past_bases() -> Mapping[str, str]:
    """The irregular past forms, and the base form of each."""
    past: dict[str, str] = built_in("verb_bases.toml")["past"]
    return past


@cache
def verb_forms() -> dict[str, str]:
    """Forms of the known verbs: "base", "s", "past" (or participle) or "ing".

    >>> [verb_forms()[word] for word in ("waves", "waved", "waving", "ran")]
    ['s', 'past', 'ing', 'past']
    """
    lists = built_in("verb_bases.toml")
    forms: dict[str, str] = {}
    for base in lists["base"]:
        forms.setdefault(base, "base")
        forms.update(inflections(base))
    forms.update(dict.fromkeys(lists["participle"], "past"))
    forms.update(dict.fromkeys(lists["past"], "past"))
    return forms


def inflections(base: str) -> Iterable[tuple[str, str]]:
    """The regular forms of a verb, with the last consonant doubled and not."""
    consonant_y = base.endswith("y") and base[-2:-1] not in "aeiou"
    if consonant_y:
        yield base[:-1] + "ies", "s"
        yield base[:-1] + "ied", "past"
    elif base.endswith(("s", "sh", "ch", "x", "z", "o")):
        yield base + "es", "s"
    else:
        yield base + "s", "s"
    stem = base[:-1] if base.endswith("e") and not base.endswith("ee") else base
    stems = {stem}
    if len(base) > 2 and base[-1] in "bdgklmnprtvz" and base[-2] in "aeiou":
        stems.add(base + base[-1])
    for stem_form in stems:
        yield stem_form + "ing", "ing"
        if not consonant_y:
            yield stem_form + "ed", "past"
