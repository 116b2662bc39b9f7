"""Noun phrases of a sentence: who is named, in what role, and which subject a verb has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evenhand.lexicon.names import names
from evenhand.lexicon.persons import counted_words
from evenhand.text.coreference.tagging import tag
from evenhand.text.coreference.vocabulary import nouns, word_set

__all__ = ["Parse", "Phrase", "kind_of", "parse"]

INSIDE = frozenset("DNWZEK")
PRONOMINAL = word_set("one another other others first second last latter former")
PEOPLE_PRONOUNS = word_set("someone somebody anyone anybody everyone everybody nobody")
ADJECTIVAL = word_set(
    "local native professional individual general patient senior junior elder official executive "
    "private noble human liberal conservative communist socialist minor adult teen teenage amateur "
    "expert model star celebrity mortal chief deputy principal agent independent veteran novice"
)
LOCATIVE = word_set("in at from to near into outside across around through of")
ORDINALS = (["first"], ["second"], ["third"])  # of grammar: "told in the first person"
LINKING = word_set("is are was were be been being am become becomes became as like")


@dataclass(slots=True)
class Phrase:
    """A noun phrase: tokens[start:end], the head its last word, and what it denotes.

    `kind` is "person", "someone" (an indefinite pronoun), "name", "animal", "people" (more than
    one), "unclear" ("another", "the clerk money") or "thing". `role` is "subject",
    "object", "predicate", "prepositional", "possessor" or "other"; `verb` is the one of a subject.
    """

    start: int
    end: int
    head: int
    kind: str
    role: str = "other"
    verb: int | None = None
    joined: bool = False


@dataclass(slots=True)
class Parse:
    """The tags, phrases and verbs of a sentence; `subjects` maps a verb to its phrase."""

    tokens: Sequence[str]
    lower: list[str]
    tags: list[str]
    phrases: list[Phrase]
    subjects: dict[int, Phrase | None] = field(default_factory=dict)

    def at(self, place: int) -> Phrase | None:
        """The phrase that holds a token."""
        return next((p for p in self.phrases if p.start <= place < p.end), None)

    def opening(self, phrase: Phrase) -> int:
        """Where a phrase begins with the genitives before it: "the car's driver"."""
        start = phrase.start
        while start and self.tags[start - 1] == "K":
            owner = next((p for p in self.phrases if p.end == start - 1), None)
            if owner is None:
                break
            start = owner.start
        return start


def parse(tokens: Sequence[str]) -> Parse:
    """Tags, then phrases, then the subject of each verb.

    >>> made = parse("The coach of the team raises her arm .".split())
    >>> [(made.lower[p.head], p.kind, p.role) for p in made.phrases[:2]]
    [('coach', 'person', 'subject'), ('team', 'people', 'prepositional')]
    """
    tags = tag(tokens)
    lower = [word.lower().replace("’", "'") for word in tokens]
    made = Parse(tokens, lower, tags, [])
    made.phrases = _chunks(made)
    _roles(made)
    _subjects(made)
    return made


def kind_of(words: Sequence[str]) -> str:
    """What a phrase given by its words denotes, judged by its head, the last word.

    >>> kind_of(["the", "bearded", "driver"]), kind_of(["Dr.", "Smith"]), kind_of(["Someone"])
    ('person', 'name', 'someone')
    """
    low = words[-1].lower()
    if low == "old" and [word.lower() for word in words[-4:-1]] == ["-", "year", "-"]:
        low = "year-old"
    known = nouns()
    if low in PEOPLE_PRONOUNS:
        return "someone"
    capital = words[-1][:1].isupper()
    if capital and not (len(words) > 1 and words[0].lower() in ("a", "an", "the")):
        return "name"
    if low in known.group or known.singular(low) is not None:
        return "people" if known.singular(low) not in known.animal else "animals"
    if capital and any(known.is_person(word) for word in words[:-1]):
        return "name"
    if known.is_person(low):
        return "thing" if low == "person" and words[-2:-1] in ORDINALS else "person"
    if low in known.animal:
        return "animal"
    inner = [word for word in words[1:-1] if word not in ADJECTIVAL]
    if low in PRONOMINAL or any(known.is_alive(word) for word in inner):
        return "unclear"
    return "thing"


def _chunks(made: Parse) -> list[Phrase]:
    """Maximal runs of determiners, adjectives, nouns and names; a genitive ends a phrase."""
    found: list[Phrase] = []
    tags = made.tags
    k = 0
    while k < len(tags):
        if tags[k] == "O":
            found.append(Phrase(k, k + 1, k, "pronoun"))
            k += 1
            continue
        opens = tags[k] in INSIDE and not (tags[k] == "E" and tags[k + 1 : k + 2] != ["W"])
        if not opens and not _possessive(made, k):
            k += 1
            continue
        begin = k
        k += 1
        while k < len(tags) and (_goes_on(made, k)):
            if tags[k] == "K":
                _add(found, made, begin, k, role="possessor")
                begin = k
            k += 1
        _add(found, made, begin, k)
    return found


def _goes_on(made: Parse, k: int) -> bool:
    """Whether a token belongs to the phrase that the token before it belongs to."""
    tags = made.tags
    if tags[k] == "D":
        return tags[k - 1] in "DN"
    if tags[k] == "X" and made.tokens[k] in "-–" and k + 1 < len(tags):
        return tags[k + 1] in "WE"
    return tags[k] in INSIDE


def _possessive(made: Parse, k: int) -> bool:
    return made.lower[k] in ("his", "her") and k + 1 < len(made.tags) and made.tags[k + 1] in "WZNE"


def _add(found: list[Phrase], made: Parse, begin: int, end: int, role: str = "other") -> None:
    while end > begin and made.tags[end - 1] in "EXD" and end - begin > 1:
        end -= 1
    start = begin + 1 if made.tags[begin] == "K" and end > begin + 1 else begin
    words = [made.tokens[k] if made.tags[k] == "Z" else made.lower[k] for k in range(start, end)]
    kind = kind_of(words)
    if begin == 0 and end == 1 and kind == "thing" and "".join(made.tags[1:2]) in "VAMKB,":
        known = made.lower[0] in counted_words("common_words")
        kind = "name" if made.tokens[0].istitle() and not known else kind
    if kind == "name" and made.tags[start - 1 : start] == ["K"]:
        kind = "thing"
    determined = made.tags[start] in "DNKH" or begin != start or start == 0
    if kind == "person" and not determined and made.tags[start] != "Z":
        kind = "thing"
    place = start and made.lower[start - 1] in LOCATIVE and made.tokens[start] not in names()
    if (kind == "name" and place) or (made.lower[end : end + 1] == ["of"] and kind == "unclear"):
        kind = "thing"
    if made.lower[start] in ("these", "those", "both", "several", "many", "few", "all") or (
        made.tags[start] == "N" and made.lower[start] not in SINGULAR and kind == "person"
    ):
        kind = "people" if kind in ("person", "people") else kind
    found.append(Phrase(start, end, end - 1, kind, role))


SINGULAR = word_set("one first second third last next other same own only")


def _roles(made: Parse) -> None:
    """The role of each phrase that is not a subject, by the word before it; coordination."""
    for number, phrase in enumerate(made.phrases):
        before = phrase.start - 1
        if phrase.role == "possessor":
            continue
        if made.tags[before] == "K" and number:
            before = made.phrases[number - 1].start - 1
        while before >= 0 and made.tags[before] == "B":
            before -= 1
        if before < 0:
            continue
        mark = made.tags[before]
        if _renames(made, number, before):
            phrase.kind = "thing"
        if made.lower[before] in LINKING:
            phrase.role = "predicate"
        elif mark in "PT":
            phrase.role = "prepositional"
        elif mark in "VGEAH":
            phrase.role = "object"
        if mark == "C" and made.lower[before] == "and" and number:
            left = made.phrases[number - 1]
            if left.end == before and left.role != "possessor":
                phrase.role = left.role
                left.joined = phrase.joined = True


def _renames(made: Parse, number: int, before: int) -> bool:
    """Whether a phrase between commas only renames the one before: "the coach, a teacher, …"."""
    end = made.phrases[number].end
    if made.lower[end : end + 1] == ["of"]:
        end = next((p.end for p in made.phrases if p.start == end + 1), end)
    closed = made.tags[end : end + 1] == [","]
    if not (closed and number and made.tags[before] == ","):
        return False
    last = number - 1
    while last and made.phrases[last].role == "prepositional":
        last -= 1
    return made.phrases[number - 1].end == before and made.phrases[last].kind in ("person", "name")


def _subjects(made: Parse) -> None:
    """Give every verb the phrase it is said of; after "and" it is that of the verb before."""
    last: Phrase | None = None
    for k, mark in enumerate(made.tags):
        if mark not in "VAMGTE":
            continue
        if mark in "VAM":
            last = made.subjects[k] = _finite(made, k, last)
        elif mark == "E":
            made.subjects[k] = _said_of(made, k, last)
        elif mark == "T":
            if made.tags[k + 1 : k + 2] == ["V"]:
                made.subjects[k] = last
        else:
            made.subjects[k] = _said_of(made, k, last)


def _finite(made: Parse, k: int, last: Phrase | None) -> Phrase | None:
    """The subject of a finite verb: what stands before it, past adverbs, prepositional phrases."""
    place = k - 1
    while place >= 0 and made.tags[place] in "BMA":
        place -= 1
    if place < 0:
        return None
    mark = made.tags[place]
    if mark in "CT":
        return last
    if mark == "R":
        return next((p for p in reversed(made.phrases) if p.end in (place, place - 1)), last)
    if mark == "H":
        return Phrase(place, place + 1, place, "gendered", "subject", k)
    comma = mark in ",X"
    number = max((n for n, p in enumerate(made.phrases) if p.end <= place + 1), default=-1)
    if number < 0 or mark == "S" or (comma and made.phrases[number].role != "prepositional"):
        aside = _aside(made, place) if comma else None
        return aside or last
    phrase = made.phrases[number]
    if phrase.end < place and not comma and mark not in "PGEV":
        return last
    while phrase.role in ("prepositional", "object", "possessor") and number > 0:
        number -= 1
        phrase = made.phrases[number]
        if phrase.role == "subject":
            break
    if phrase.role != "possessor":
        phrase.role = "subject"
        phrase.verb = k if phrase.verb is None else phrase.verb
    return phrase


def _aside(made: Parse, place: int) -> Phrase | None:
    """The phrase before an aside between commas: "the coach, a tall person, raises …"."""
    before = place - 1
    while before >= 0 and made.tags[before] != ",":
        if made.tags[before] in "VAM" and made.tags[before] == "X":
            return None
        before -= 1
    found = next((p for p in made.phrases if p.end == before), None)
    if found is not None and found.role in ("other", "subject"):
        found.role = "subject"
        return found
    return None


def _said_of(made: Parse, k: int, last: Phrase | None) -> Phrase | None:
    """What a participle is said of: the person just before it, else the subject of the clause."""
    near = next((p for p in made.phrases if p.end == k), None)
    if near is not None and (
        near.kind in ("person", "name", "someone", "animal", "people") or last is None
    ):
        return near
    return last
