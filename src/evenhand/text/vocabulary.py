"""Word lists of the tagger: function words, verbs and nouns for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from evenhand.lexicon.gendered import pairs
from evenhand.lexicon.schema import STRICT, Text, Words, data, read_csv, read_toml


def word_set(words: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(words.split())


AGREEING = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "isn't": "aren't",
    "wasn't": "weren't",
    "hasn't": "haven't",
    "doesn't": "don't",
    "isnt": "arent",
    "wasnt": "werent",
    "hasnt": "havent",
    "doesnt": "dont",
    "isn": "aren",
    "wasn": "weren",
    "hasn": "haven",
    "doesn": "don",
}
"""Auxiliaries in the third person singular, and what they are after `they`; the last four are what
tokenisers leave of isn't and its like before " 't".
"""

UNCLEAR_PASTS = word_set(
    "said made built told left found got lost bought brought kept thought felt held met paid read "
    "sat sent set slept sold spent stood taught heard put let cut hit hurt cost shut quit spread "
    "led fed fled won meant dealt dreamt burnt learnt spelt leapt lit fought caught sought ran "
    "come become run overcome been done gone seen taken given written eaten begun driven ridden "
    "spoken broken chosen fallen flown forgotten frozen grown hidden thrown worn torn shaken "
    "stolen sung drunk rung sunk drawn blown woken bitten sworn stuck struck swung hung dug spun "
    "bet bent lent laid lay lain swept wept crept shot slid split rid wed"
)
"""Irregular forms that are past tense or participle, or past tense or infinitive."""

FRONTED = word_set(
    "not only never so such nor neither seldom rarely hardly scarcely barely little no nowhere "
    "how why where when what who which whose whom than as"
)
"""Words that, at the head of a clause, put the verb before its subject."""

EXISTENTIAL = word_set("there here there's here's theres")

TIMES = word_set(
    "day night morning evening afternoon week weekend month year time summer winter spring "
    "hour minute second decade sunday monday tuesday wednesday thursday friday saturday moment"
)
"""Nouns that make an adverb of the determiner before them: every day, this time."""

_PHRASES = (
    "no longer, any longer, kind of, sort of, pretty much, at least, at most, at best, at worst, "
    "at times, at first, at last, at night, of course, in fact, in turn, in general, in "
    "particular, in theory, in return, in the end, in the meantime, as well, as usual, as always, "
    "by now, by contrast, by far, by chance, of all people, more or less, more often than not, "
    "all the time, all of a sudden, all day, all night, for some reason, for "
    "now, for example, for instance, for sure, for once, to be fair, to be honest, to this day, "
    "on the other hand, on occasion, once again, once in a while, a lot, low key, straight up, of "
    "late, so far, ever since, every time, each time, every day, every night, every morning, "
    "every week, every year, each day, one day, this time, these days, some days, damn well, "
    "hardly ever, rarely if ever, if anything, if ever, like never, like always, like totally, "
    "like literally, like really, like just, from time to time, now and then, day and night, over "
    "and over, again and again, one way or another, to my surprise, in a way, out of nowhere, god "
    "bless, for all i know, i think, i guess, i suppose, as a rule, as ever, by the way, without "
    "fail, with luck, in effect, in reality, in truth, as it happens, to some extent, all in all, "
    "first of all, after all, above all, most of the time, half the time, for good"
)


def _by_longest(phrases: str) -> dict[str, list[tuple[int, list[str]]]]:
    grouped: dict[str, list[tuple[int, list[str]]]] = {}
    for phrase in phrases.split(", "):
        words = phrase.split()
        longest = max(words, key=len)
        grouped.setdefault(longest, []).append((words.index(longest), words))
    return grouped


ADVERBIALS = _by_longest(_PHRASES)
"""Phrases that stand for an adverb: by their longest word, its place in them and their words."""


ADVERBS_IN_S = word_set(
    "always afterwards backwards besides downstairs downwards else's forwards indoors inwards "
    "nevertheless nonetheless nowadays onwards ours outdoors outwards overseas perhaps regardless "
    "sideways sometimes theirs themselves thus towards unawares unless upstairs upwards us "
    "whereas yourselves ourselves yes yours its his hers this as gas plus"
)
"""Words in -s that are neither a verb nor a plural."""


EXCEPTIONS = {
    "quizzes": "quiz",
    "gasses": "gas",
    "gases": "gas",
    "busses": "bus",
    "buses": "bus",
    "biases": "bias",
    "canvases": "canvas",
    "refocuses": "refocus",
    "choruses": "chorus",
    "axes": "axe",
    "caches": "cache",
    "psyches": "psych",
    "aches": "ache",
    "tiptoes": "tiptoe",
    "toes": "toe",
    "shoes": "shoe",
    "canoes": "canoe",
    "hoes": "hoe",
    "boogies": "boogie",
    "unties": "untie",
    "outlies": "outlie",
    "overlies": "overlie",
    "reties": "retie",
    "bellyaches": "bellyache",
    "zeroes": "zero",
}
"""Verbs in -s whose plain form does not follow from the spelling."""

FUNCTION_VERBS = word_set(
    "better cause damn down further last like long near out please right second still up well okay"
)
"""Function words that are verbs, too: "she likes it", "he ups the ante"."""


SPOKEN = word_set(
    "babysits barfs barges bickers binges blurts brags cackles chomps chortles chugs cringes "
    "cuddles cusses dozes drools facetimes flexes flinches flosses freaks gaslights gawks gobbles "
    "googles guffaws guzzles haggles jots lugs microwaves moseys munches nods nudges overreacts "
    "overshares oversleeps overthinks plops plunks procrastinates pukes redoes reheats reinstalls "
    "reloads retweets rinses scampers scoffs scowls scurries shrugs simps slouches slurps smirks "
    "snuggles splurges squints staggers stinks stomps stutters swerves tiptoes twerks unbuttons "
    "unfollows uninstalls unmatches unpacks unplugs unwraps unzips upvotes waddles winces yanks "
    "yeets zooms"
)
"""Verbs of talk and of jokes, which the books behind the tables lack."""
SPOKEN_TOO = word_set(
    "belches blinks burps farts flops gags gapes gasps giggles glares grunts hiccups hisses "
    "hollers honks jabs jogs limps meows moans nags panics peeks peers pees poops purrs rants "
    "roasts scrolls sips snarls sneezes snoozes snores snorts sobs sprawls sprints squeals swipes "
    "texts tugs vacuums vapes whacks whines yawns zips"
)
"""The same of forms that are plural nouns, too."""
SPOKEN_ODDS = {SPOKEN: 2.0, SPOKEN_TOO: -0.5}


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


@dataclass(frozen=True)
class _Verb:
    form: str
    verb: str
    log_odds: float


@dataclass(frozen=True)
class _VerbContext:
    word: str
    before: float
    after: float


@dataclass(frozen=True)
class _HumanNouns:
    __pydantic_config__ = STRICT
    provenance: Text
    person: Words
    endings: Words
    animal: Words
    group: Words


@dataclass(frozen=True)
class _VerbBases:
    __pydantic_config__ = STRICT
    provenance: Text
    base: Words
    past: Words
    participle: Words


class VerbTable:
    """The tables of verb forms and of their contexts."""

    def __init__(self) -> None:
        rows = [row for _, row in read_csv(data("verbs.csv"), _Verb)]
        self.verbs = {row.form: row.verb for row in rows}
        self.odds = {row.form: row.log_odds for row in rows}
        for spoken, odds in SPOKEN_ODDS.items():
            for form in spoken - self.odds.keys():
                self.verbs[form], self.odds[form] = stems(form)[0], odds
        self.plain = frozenset(self.verbs.values())
        contexts = [row for _, row in read_csv(data("verb_contexts.csv"), _VerbContext)]
        self.before = {row.word: row.before for row in contexts}
        self.after = {row.word: row.after for row in contexts}


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


IRREGULAR_PLURALS = {
    "children": "child",
    "thieves": "thief",
    "wives": "wife",
    "grandchildren": "grandchild",
    "schoolchildren": "schoolchild",
    "passersby": "passerby",
    "alumni": "alumnus",
    "heroes": "hero",
    "elves": "elf",
    "dwarves": "dwarf",
    "persons": "person",
    "men": "man",
    "women": "woman",
    "oxen": "ox",
    "mice": "mouse",
    "wolves": "wolf",
    "calves": "calf",
    "geese": "goose",
}


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
    lists = read_toml(data("human_nouns.toml"), _HumanNouns)
    animal = set(lists.animal)
    sex: dict[str, str] = {}
    people = set(lists.person)
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
        endings=lists.endings,
        animal=frozenset(animal),
        group=frozenset(lists.group),
        sex=sex,
    )


@cache
def verb_forms() -> dict[str, str]:
    """Forms of the known verbs: "base", "s", "past" (or participle) or "ing".

    >>> [verb_forms()[word] for word in ("waves", "waved", "waving", "ran")]
    ['s', 'past', 'ing', 'past']
    """
    lists = read_toml(data("verb_bases.toml"), _VerbBases)
    forms: dict[str, str] = {}
    for base in lists.base:
        forms.setdefault(base, "base")
        forms.update(inflections(base))
    forms.update(dict.fromkeys(lists.participle, "past"))
    forms.update(dict.fromkeys(lists.past, "past"))
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
