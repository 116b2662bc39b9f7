"""Which of two words a pronoun stands for: her (him, his), his (her, hers), 's (is, has).

The embedded judge is a log-linear model of the words around the pronoun, trained without labels:
plain text shows by "him" and "his" which of the two "her" would stand in their place. The
neighbours are read straight out of the text with one pattern to the right and one, on a reversed
slice, to the left. Nothing past a line break is read and no word past the end of the sentence, so
that a decision never depends on a neighbouring document. `tools/train_grammar.py` trains the
model; assets/grammar.md describes its data and its accuracy.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from evenhand.errors import UnknownNameError
from evenhand.text.external import load_pipeline
from evenhand.text.tagger import ADJECTIVES, FUNCTION_WORDS, read_word
from evenhand.text.vocabulary import (
    LISTS,
    TIMES,
    inflections,
    nouns,
    shape,
    verb_forms,
    verb_table,
    word_set,
)

Kind = tuple[str, str, str]
"""A word's fine class, its coarse class, and how often it stands without a determiner."""


Right = tuple[str, str, str, str, bool]
"""Four tokens after a word, and whether the first word is capitalised."""

Left = tuple[str, str, str]
"""Three tokens before a word, nearest first."""


class PronounContext(NamedTuple):
    """The tokens around a word: lower-case words or marks, "" past the end of the sentence."""

    right: Right
    left: Left
    subject: str  # as the function of that name returns it


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


@lru_cache(maxsize=1 << 12)
def mark(gap: str) -> str:
    """The first mark of punctuation between two words that bears on the grammar, or "".

    Brackets and quotes that open count as not there; a quote right behind a word closes.

    >>> mark(" "), mark(", "), mark(" ["), mark('" '), mark(' "'), mark("... ")
    ('', ',', '', '"', '', '…')
    """
    match = _MARK(gap)
    name = "" if match is None else _NAMES.get(match[0], match[0])
    if match and name == '"' and gap[: match.start()].endswith((" ", "\t")):
        return ""
    return name


def following(text: str, start: int, end: int) -> Right:
    """What follows text[start:end].

    >>> following("He saw [her] old car.", 8, 11)
    ('old', 'car', '.', '', False)
    >>> following("I know her. She sings", 7, 10)
    ('.', '', '', '', False)
    """
    match = _RIGHT(text, end, end + REACH)
    assert match is not None  # noqa: S101 - every part of the pattern may be empty
    gap, word1, gap2, word2, gap3, word3, gap4, word4 = match.groups()
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
    match = _NEXT(text, end, end + REACH)
    if match is None:
        return None
    first, gap, second = match.groups()
    then = second if gap == " " else mark(gap) or second
    return first.lower(), then.lower() or ".", first[0].isupper()


def word_before(text: str, start: int) -> str | None:
    """The first token of `preceding`, where it is a plain word between blanks."""
    if not start:
        return None
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
    match = _LEFT(text[max(start - REACH, 0) : start][::-1])
    assert match is not None  # noqa: S101 - every part of the pattern may be empty
    gap, word1, gap2, word2, gap3, word3 = match.groups()
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

    `own` is the subject form of the pronoun in question: "she gave her money" and "he gave
    her money" part here.

    >>> subject("She saw that he took her", 21, "she"), subject("She wept. In her", 13, "she")
    ('other', 'none')
    """
    line = text[max(start - REACH, 0) : start][::-1]
    match = _SUBJECT(line)
    if match is None or _STOP(line, 0, match.start()):
        return "none"
    return "same" if match[0][::-1].lower() == own else "other"


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
    elif "-" in word and not word[0].isdigit():
        form = "~-"
    else:
        form = shape(word)
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
    around: PronounContext, kinds: Mapping[str, Kind], verbs: Mapping[str, tuple[str, str]]
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


TASKS = ("her", "his", "contraction")
STEP = 1 / 16
"""Weights are stored as integer multiples of this."""
CLEAR = 4.0
"""Log odds of the near features above which the far ones are not read."""


@dataclass(frozen=True, slots=True)
class PronounQuestion:
    """One question: the weights of its features, and what the next token alone settles."""

    bias: float
    weights: Mapping[str, float]
    settled: Mapping[str, bool]

    def sum(self, features: Iterable[str]) -> float:
        return sum(map(self.weights.get, features, repeat(0.0)))


@dataclass(frozen=True, slots=True)
class Model:
    """Word classes, the verbs that matter, and a classifier for each question."""

    kinds: Mapping[str, Kind]
    verbs: Mapping[str, tuple[str, str]]
    tasks: Mapping[str, PronounQuestion]

    def score(self, task: str, around: PronounContext) -> float:
        """The log odds that the answer is yes."""
        classifier = self.tasks[task]
        near = near_features(around.right, around.left, self.kinds)
        far = far_features(around, self.kinds, self.verbs)
        return classifier.bias + classifier.sum(near) + classifier.sum(far)

    def near(self, task: str, right: Right, left: Left) -> float:
        """The log odds by the nearest tokens alone; above `CLEAR` in size they decide."""
        classifier = self.tasks[task]
        return classifier.bias + classifier.sum(near_features(right, left, self.kinds))

    def yes(
        self, task: str, near: float, text: str, start: int, right: Right, left: Left, own: str
    ) -> bool:
        """The answer by `score`, from what the near features said already."""
        classifier = self.tasks[task]
        around = PronounContext(right, left, subject(text, start, own))
        return near + classifier.sum(far_features(around, self.kinds, self.verbs)) > 0


@cache
def embedded_model() -> Model:
    """The model that comes with the package, read on first use."""
    return read_model((resources.files("evenhand") / "assets" / "grammar.npz").read_bytes())


def read_model(data: bytes) -> Model:
    """The model in the bytes of a file that `tools/train_grammar.py` made."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:

        def lines(name: str) -> list[str]:
            text = arrays[name].tobytes().decode()
            return text.split("\n") if text else []

        written = lines("kinds")
        kinds = {line: tuple(line.split("\t")) for line in set(written)}
        verbs = (line.split("\t") for line in lines("verbs"))
        tasks = {
            task: PronounQuestion(
                bias=float(arrays[f"{task}_bias"][0]),
                weights=dict(
                    zip(
                        lines(f"{task}_keys"),
                        (arrays[f"{task}_weights"] * STEP).tolist(),
                        strict=True,
                    )
                ),
                settled={line[1:]: line[0] == "1" for line in lines(f"{task}_settled")},
            )
            for task in TASKS
        }
        return Model(
            kinds=dict(zip(lines("words"), map(kinds.__getitem__, written), strict=True)),  # type: ignore[arg-type]
            verbs={form: (base, group) for form, base, group in verbs},
            tasks=tasks,
        )


class Judge(Protocol):
    """The grammar of the pronoun at text[start:end] that rewriting needs."""

    def her_is_possessive(self, text: str, start: int, end: int) -> bool:
        """Whether this "her" is his (True) or him."""

    def his_is_determiner(self, text: str, start: int, end: int) -> bool:
        """Whether this "his" is her (True) or hers."""

    def contraction(self, text: str, start: int, end: int) -> Literal["is", "has"]:
        """What the 's after the pronoun at text[start:end] stands for."""


def her_is_possessive(text: str, start: int, end: int) -> bool:
    """Whether "her" at text[start:end] is his (True) or him.

    >>> text = "Her neighbour waved to her."
    >>> her_is_possessive(text, 0, 3), her_is_possessive(text, 23, 26)
    (True, False)
    """
    if text[end : end + 8].lower() == " and her":  # "her and her friends": she and they
        return False
    return _answer("her", "she", text, start, end, yes="his", no="him")


def his_is_determiner(text: str, start: int, end: int) -> bool:
    """Whether "his" at text[start:end] is her (True) or hers.

    >>> text = "His car is a friend of his."
    >>> his_is_determiner(text, 0, 3), his_is_determiner(text, 23, 26)
    (True, False)
    """
    return _answer("his", "he", text, start, end, yes="her", no="hers")


def contraction(text: str, start: int, end: int) -> Literal["is", "has"]:
    """What the 's after the pronoun at text[start:end] stands for.

    >>> contraction("She's a doctor.", 0, 3), contraction("She's been ill.", 0, 3)
    ('is', 'has')
    """
    yes = _answer("contraction", "", text, start, end + 2)
    return "is" if yes else "has"


@dataclass(frozen=True, slots=True)
class Embedded:
    """The embedded judge; it holds nothing, so it can cross to another process."""

    her_is_possessive = staticmethod(her_is_possessive)
    his_is_determiner = staticmethod(his_is_determiner)
    contraction = staticmethod(contraction)


def judge(name: str = "embedded") -> Judge:
    """A judge by name: `embedded`, or `spacy:MODEL` for an installed spaCy pipeline.

    >>> judge().her_is_possessive("We saw her car.", 7, 10)
    True
    """
    if name == "embedded":
        return Embedded()
    kind, _, model = name.partition(":")
    if kind == "spacy" and model:
        return SpacyJudge(model)
    raise UnknownNameError("judge", name, ["embedded", "spacy:MODEL"])


def _answer(
    task: str, own: str, text: str, start: int, end: int, *, yes: str = "", no: str = ""
) -> bool:
    """One decision; a partner such as "him or", "his/" beside the pronoun says it outright."""
    model = embedded_model()
    classifier = model.tasks[task]
    by_phrase = _PHRASES.get(task)
    plain = next_two(text, end)
    near = None
    if plain is not None:
        first, second, capital = plain
        settled = classifier.settled.get(first)
        if settled is not None:
            return settled
        before = word_before(text, start)
        if by_phrase is not None and (
            first in _TRIGGERS or before in _TRIGGERS_BEFORE or first.endswith("ly")
        ):
            decided = by_phrase(following(text, start, end), preceding(text, start))
            if decided is not None:
                return decided
        if before is not None and before not in _JOINS and first not in _JOINS:
            near = model.near(task, (first, second, "", "", capital), (before, "", ""))
            if not -CLEAR < near < CLEAR:
                return near > 0
    right = following(text, start, end)
    settled = classifier.settled.get(right[0])
    if settled is not None:
        return settled
    left = preceding(text, start)
    if by_phrase is not None and (decided := by_phrase(right, left)) is not None:
        return decided
    if left[0] in _JOINS and left[1] in (yes, no):
        return left[1] == yes
    if right[0] in _JOINS and right[1] in (yes, no):
        return right[1] == yes
    if near is None:
        near = model.near(task, right, left)
        if not -CLEAR < near < CLEAR:
            return near > 0
    return model.yes(task, near, text, start, right, left, own)


_JOINS = frozenset(("or", "/"))


_ENDING = frozenset(("", ".", ",", "!", "?", ";", ":", '"', "and", "or", "but", ")", "…"))
"""Tokens at which a noun phrase has ended."""
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_COUNTED = word_set("one two three four five six seven eight nine ten twelve several some many")
_QUANTIFIED = frozenset({"every", "each", "most"})
_COMPOUNDS = {"alone": {"time"}, "off": {"day", "days"}}
"""Compounds that begin with what is an adverb elsewhere: "her off days"."""
_MODIFYING = word_set("still once then now already ever always never almost half")


def _forms(bases: frozenset[str]) -> frozenset[str]:
    """The verbs and their regular forms."""
    return bases.union(form for base in bases for form, _ in inflections(base))


_BODY_VERBS = word_set("bent broke broken") | _forms(LISTS["body_verbs"])
"""Verbs whose object is a part of the body: "rubs her back", but "pulls her back"."""
_NAMING = _forms(word_set("elect appoint crown name vote declare proclaim"))
_RELATIONS = word_set("successor deputy heir assistant friend partner guardian agent replacement")
"""Persons who are somebody's: "named her successor", but "named her director"."""
_GIVING = LISTS["giving"]
_OTHERS = frozenset({"i", "we", "they", "you"})


def _her_by_phrase(right: Right, left: Left) -> bool | None:
    """Whether "her" is his by the phrase it opens or stands before, None where none decides.

    A stretch of time behind "her" is an adverbial ("see her every weekend"), unless it goes on as a
    noun phrase; an adverb is part of one where an adjective and a noun follow ("her still warm
    tea"). Every rule was measured on places of the training text where him or his stood.
    """
    n1, n2, n3, _, _ = right
    p1 = left[0]
    if n1 in _QUANTIFIED or n1 in _WEEKDAYS or n1 in _COUNTED:
        return _her_before_time(right, p1)
    if n1 == "back":
        return True if p1 in _BODY_VERBS or n2 in ("ache", "aches", "hurt", "hurts") else None
    if n1 in _COMPOUNDS:
        return True if n2 in _COMPOUNDS[n1] else None
    if n1 in ("as", "out"):
        unsold = (n1, n2) == ("as", "yet") and (_is_adjective(n3) or n3.startswith("un"))
        return True if unsold or (n1, n2, n3) == ("out", "of", "date") else None
    if p1 in _NAMING or p1 in _GIVING or p1 == "let":
        return _her_before_object(right, left)
    if n1 in _MODIFYING or (n1.endswith("ly") and n1 != "only" and read_word(n1).role == "a"):
        return True if _is_adjective(n2) and _is_noun(n3) else None
    return None


def _her_before_time(right: Right, before: str) -> bool | None:
    """The same before "every", a number or a weekday."""
    n1, n2, n3, _, _ = right
    lead = read_word(before).word_class if before else ""
    if n1 in _QUANTIFIED:
        if _is_time(n2):
            return False
        word = n1 == "every" and n2 not in ("now", "so", "other")  # "remember her every word"
        verb = lead in ("?", "V", "W", "E") and before not in embedded_model().verbs
        return True if word and verb else None
    if n1 in _WEEKDAYS:
        adverbial = n2 in _ENDING or n2 in ("in", "at", "after", "before", "for", "about")
        return False if adverbial and lead not in ("", "P", "X", "D") else None
    if _is_time(n2) and n3 in _ENDING:
        return None if lead in ("", "P", "X", "A", ",") else False
    return None


def _her_before_object(right: Right, left: Left) -> bool | None:
    """The same after verbs of naming and giving, and after "let"."""
    n1, n2, n3, _, _ = right
    verb = left[0]
    bare = kind_of(n1, embedded_model().kinds)[2]
    if verb == "let":  # "let her work speak for itself"
        spoken = bare == "x" and n2 in verb_table().plain and n2 not in FUNCTION_WORDS
        return True if spoken else None
    if verb in _NAMING:
        known = nouns()
        office = known.is_person(n1) and n1 not in known.sex and n1 not in _RELATIONS
        closed = n2 in _ENDING or read_word(n2).word_class in "PSN"
        return False if office and closed else None
    if left[1] not in _OTHERS or bare != "z" or not _is_noun(n1):
        return None
    if n2 in _ENDING or n2 in ("of", "about", "every", "each"):
        return False
    if n2 == "to":  # "gave her time to think"
        return False if n3 in verb_table().plain and n3 not in FUNCTION_WORDS else None
    return True if n2 in ("a", "an", "the", "some", "any") else None


def _is_time(word: str) -> bool:
    return word in TIMES or (word[-1:] == "s" and word[:-1] in TIMES) or word in _WEEKDAYS


def _is_adjective(word: str) -> bool:
    return word not in FUNCTION_WORDS and (
        word in ADJECTIVES
        or (verb_forms().get(word) == "past" and read_word(word).role != "e")
        or (word.endswith(("ed", "ful", "ous", "less", "able", "ible", "ive")) and len(word) > 4)
    )


def _is_noun(word: str) -> bool:
    return word[:1].isalpha() and word not in FUNCTION_WORDS and not word.endswith("ly")


_CLAUSES = word_set("when until because if unless though although")


def _his_by_phrase(right: Right, left: Left) -> bool | None:
    """Whether "his" is her by the words around it, None where they do not decide."""
    n1, n2, n3, _, _ = right
    if n1 in _CLAUSES:
        return False
    if (n1, n2) == ("as", "yet"):
        return True
    if n1 == "and" and (n2 in ("my", "your", "our", "their", "her") or n3 == "s"):
        return True  # "his and my house", "his and Tom's plan"
    demonstrated = left[0] == "of" and left[2] in ("that", "this", "those", "these")
    verb = n2 in _ENDING and verb_table().odds.get(n1, -9.0) > 0
    return False if demonstrated and verb else None


_PHRASES = {"her": _her_by_phrase, "his": _his_by_phrase}
_TRIGGERS = (_QUANTIFIED | _WEEKDAYS | _COUNTED | _MODIFYING | _CLAUSES | _COMPOUNDS.keys()) | {
    "as",
    "and",
    "back",
    "out",
}
"""Words after a pronoun for which its phrase is read, besides adverbs in -ly."""
_TRIGGERS_BEFORE = _NAMING | _GIVING | {"let", "of"}
"""The same of words before it."""


_DOCUMENTS = 64
"""The number of analysed texts in the cache: a text is looked up for every pronoun in it."""


@dataclass
class SpacyJudge:
    """The tags of an installed pipeline; loaded at once, so that a missing one is an early error.

    A block of many documents is analysed line by line: a decision rests on its own line alone.
    """

    model: str
    _parse: Callable[[str], Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._parse = lru_cache(maxsize=_DOCUMENTS)(load_pipeline(self.model, "judge"))

    def __reduce__(self) -> tuple[type[SpacyJudge], tuple[str]]:
        return SpacyJudge, (self.model,)  # another process loads the pipeline itself

    def her_is_possessive(self, text: str, start: int, end: int) -> bool:
        token = self._token(text, start, end)
        return token is not None and token.tag_ == "PRP$"

    def his_is_determiner(self, text: str, start: int, end: int) -> bool:
        """Whether a noun follows that "his" belongs to: English tags give PRP$ to both."""
        token = self._token(text, start, end)
        return token is not None and token.dep_ == "poss"

    def contraction(self, text: str, start: int, end: int) -> Literal["is", "has"]:
        token = self._token(text, end, end + 2)
        return "has" if token is not None and token.lemma_ == "have" else "is"

    def _token(self, text: str, start: int, end: int) -> Any | None:
        """The token at text[start:end], or None where the pipeline cuts otherwise."""
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        line = text[first : len(text) if last < 0 else last]
        span = self._parse(line).char_span(start - first, end - first)
        return None if span is None else span[0]
