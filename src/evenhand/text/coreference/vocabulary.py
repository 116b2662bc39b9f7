"""The words that the rules of coreference know: persons, verbs, function words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from evenhand.lexicon.gendered import pairs
from evenhand.lexicon.reading import data, read_toml

__all__ = ["FUNCTION_WORDS", "PRONOUNS", "Nouns", "nouns", "verb_forms", "word_set"]

PRONOUNS = {
    "he": "subject", "she": "subject", "him": "object", "his": "possessive", "hers": "possessive",
    "himself": "reflexive", "herself": "reflexive", "her": "her",
}  # fmt: skip
"""The gendered pronouns by their case; `her` is an object or a possessive, by what follows."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, blanks between them."""
    return frozenset(text.split())


def _tagged(**lists: str) -> dict[str, str]:
    return {word: tag for tag, words in lists.items() for word in words.split()}


FUNCTION_WORDS = _tagged(
    D="the a an this these those each every another some any no both several many few all either "
    "neither my your our its their whose such",
    N="one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty "
    "hundred dozen half first second third last next other same own only",
    P="of in on at by with from into onto over under above below behind beside besides between "
    "among amid through throughout across along around against toward towards about near beyond "
    "within without inside outside upon off up down out past during despite per via underneath "
    "beneath atop like unlike amongst alongside aboard for",
    S="because although though while when whenever if unless whether whereas where wherever what "
    "how why once till lest whilst as before after since until than",
    R="who whom which that",
    C="and or but nor yet then so plus",
    M="will would can could shall should may might must ca wo",
    A="is are was were be been being am has have had having do does did 's 're 've 'd 'll 'm isn "
    "aren wasn weren hasn haven hadn doesn don didn",
    T="to",
    O="i you it we they me us them myself yourself itself ourselves themselves mine yours ours "
    "theirs there here everything something nothing anything",
    B="not n't also never ever always often again away back just still even now soon too very "
    "quite almost once then forward backward forwards backwards together apart instead perhaps "
    "aside anywhere somewhere everywhere home "
    "maybe sometimes already later meanwhile nearby overhead onward upward downward however thus "
    "therefore moreover afterwards today yesterday tomorrow far further",
)  # fmt: skip
"""Closed-class words and their tags; a word named twice has the tag named last."""

IRREGULAR_PLURALS = {
    "children": "child", "thieves": "thief", "wives": "wife", "grandchildren": "grandchild",
    "schoolchildren": "schoolchild", "passersby": "passerby", "alumni": "alumnus",
    "heroes": "hero", "elves": "elf", "dwarves": "dwarf", "persons": "person",
    "men": "man", "women": "woman", "oxen": "ox", "mice": "mouse", "wolves": "wolf",
    "calves": "calf", "geese": "goose",
}  # fmt: skip


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
    keys = read_toml(data("human_nouns.toml")).table(
        ["provenance", "person", "endings", "animal", "group"]
    )
    animal = set(keys["animal"].words())
    sex: dict[str, str] = {}
    people = set(keys["person"].words())
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
        endings=tuple(keys["endings"].words()),
        animal=frozenset(animal),
        group=frozenset(keys["group"].words()),
        sex=sex,
    )


@cache
def verb_forms() -> dict[str, str]:
    """Forms of the known verbs: "base", "s", "past" (or participle) or "ing".

    >>> [verb_forms()[word] for word in ("waves", "waved", "waving", "ran")]
    ['s', 'past', 'ing', 'past']
    """
    keys = read_toml(data("verb_bases.toml")).table(["provenance", "base", "past", "participle"])
    forms: dict[str, str] = {}
    for base in keys["base"].words():
        forms.setdefault(base, "base")
        forms.update(_inflections(base))
    forms.update(dict.fromkeys(keys["participle"].words(), "past"))
    forms.update(dict.fromkeys(keys["past"].words(), "past"))
    return forms


def _inflections(base: str) -> Iterable[tuple[str, str]]:
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
    for each in stems:
        yield each + "ing", "ing"
        if not consonant_y:
            yield each + "ed", "past"
