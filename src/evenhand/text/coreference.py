"""Which noun phrase a pronoun stands for: links with a confidence, by rules or by another model.

A resolver is called with the tokens of one sentence and the index of a pronoun, and returns a
`Link` or, where it is not sure, None. `resolver(name)` makes one: `rules` is built in;
`fastcoref`, `coreferee:MODEL` and `spacy:MODEL` use those packages where they are installed.
Nothing is downloaded unless a model was named that the package itself fetches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenhand.errors import InputError
from evenhand.lexicon.first_names import counted_words, names
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS, SLOTS
from evenhand.registry import Registry
from evenhand.text.external import import_package, load_model
from evenhand.text.tagger import FUNCTION_WORDS, tag
from evenhand.text.vocabulary import GRAMMAR, LISTS, nouns, word_set

PLACES = {
    "coreferee": "evenhand.text.coreference:Coreferee",
    "fastcoref": "evenhand.text.coreference:FastCoref",
    "rules": "evenhand.text.coreference:Rules",
    "spacy": "evenhand.text.coreference:Spacy",
}
THRESHOLD = 0.7
"""The confidence below which the built-in resolver abstains by default."""

RESOLVERS = Registry("resolver", PLACES, group="evenhand.resolvers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A pronoun's antecedent: tokens[start:end], and how sure that is, from 0 to 1.

    `size` counts the expressions of the group, the pronoun among them: 2 where the antecedent is
    the only other one. `rule` says how it was found. A model that gives no confidence has None.
    """

    start: int
    end: int
    text: str
    confidence: float | None
    size: int = 2
    rule: str = ""


class Resolver(Protocol):
    """Finds the antecedent of a pronoun within its sentence, or abstains."""

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of the pronoun tokens[i], None where it is not sure of one."""
        ...


def resolver(name: str = "rules", *, threshold: float | None = None) -> Resolver:
    """Load a resolver by name.

    Parameters
    ----------
    name : str
        "rules", or the name of another resolver, a colon, and the name or folder of its model.
    threshold : float, optional
        The confidence below which `rules` abstains; the others have none.

    Examples
    --------
    >>> resolver("rules")("The nurse is looking after her patients .".split(), 5).text
    'The nurse'

    """
    kind, colon, model = name.partition(":")
    if kind == "rules":
        if colon:
            raise InputError(f"resolver {name}: expected rules, which has no model to name")
        keywords = {} if threshold is None else {"threshold": threshold}
        rules: Resolver = RESOLVERS[kind](**keywords)
        return rules
    model_resolver: Resolver = RESOLVERS[kind](model)
    return model_resolver


INSIDE = frozenset("DNWZEK")
PRONOMINAL = word_set("one another other others first second last latter former")
PEOPLE_PRONOUNS = word_set("someone somebody anyone anybody everyone everybody nobody")
ADJECTIVAL = LISTS["adjectival"]
LOCATIVE = word_set("in at from to near into outside across around through of")
ORDINALS = (["first"], ["second"], ["third"])  # of grammar: "told in the first person"
LINKING = word_set("is are was were be been being am become becomes became as like")


@dataclass(slots=True)
class NounPhrase:
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
    phrases: list[NounPhrase]
    subjects: dict[int, NounPhrase | None] = field(default_factory=dict)

    def at(self, index: int) -> NounPhrase | None:
        """The phrase that holds a token."""
        return next((p for p in self.phrases if p.start <= index < p.end), None)

    def ending(self, end: int) -> NounPhrase | None:
        """The phrase that ends before a token."""
        return next((p for p in self.phrases if p.end == end), None)

    def opening(self, phrase: NounPhrase) -> int:
        """Where a phrase begins with the genitives before it: "the car's driver"."""
        start = phrase.start
        while start and self.tags[start - 1] == "K":
            owner = self.ending(start - 1)
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
    parsed = Parse(tokens, lower, tags, [])
    parsed.phrases = _chunks(parsed)
    _roles(parsed)
    _subjects(parsed)
    return parsed


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


def _chunks(parsed: Parse) -> list[NounPhrase]:
    """Maximal runs of determiners, adjectives, nouns and names; a genitive ends a phrase."""
    phrases: list[NounPhrase] = []
    tags = parsed.tags
    k = 0
    while k < len(tags):
        if tags[k] == "O":
            phrases.append(NounPhrase(k, k + 1, k, "pronoun"))
            k += 1
            continue
        opens = tags[k] in INSIDE and not (tags[k] == "E" and tags[k + 1 : k + 2] != ["W"])
        if not opens and not _possessive(parsed, k):
            k += 1
            continue
        begin = k
        k += 1
        while k < len(tags) and (_goes_on(parsed, k)):
            if tags[k] == "K":
                _add(phrases, parsed, begin, k, role="possessor")
                begin = k
            k += 1
        _add(phrases, parsed, begin, k)
    return phrases


def _goes_on(parsed: Parse, k: int) -> bool:
    """Whether a token belongs to the phrase that the token before it belongs to."""
    tags = parsed.tags
    if tags[k] == "D":
        return tags[k - 1] in "DN"
    if tags[k] == "X" and parsed.tokens[k] in "-–" and k + 1 < len(tags):
        return tags[k + 1] in "WE"
    return tags[k] in INSIDE


def _possessive(parsed: Parse, k: int) -> bool:
    return (
        parsed.lower[k] in ("his", "her")
        and k + 1 < len(parsed.tags)
        and parsed.tags[k + 1] in "WZNE"
    )


def _add(
    phrases: list[NounPhrase], parsed: Parse, begin: int, end: int, role: str = "other"
) -> None:
    while end > begin and parsed.tags[end - 1] in "EXD" and end - begin > 1:
        end -= 1
    start = begin + 1 if parsed.tags[begin] == "K" and end > begin + 1 else begin
    words = [
        parsed.tokens[k] if parsed.tags[k] == "Z" else parsed.lower[k] for k in range(start, end)
    ]
    kind = kind_of(words)
    if begin == 0 and end == 1 and kind == "thing" and "".join(parsed.tags[1:2]) in "VAMKB,":
        known = parsed.lower[0] in counted_words("common_words")
        kind = "name" if parsed.tokens[0].istitle() and not known else kind
    if kind == "name" and parsed.tags[start - 1 : start] == ["K"]:
        kind = "thing"
    determined = parsed.tags[start] in "DNKH" or begin != start or start == 0
    if kind == "person" and not determined and parsed.tags[start] != "Z":
        kind = "thing"
    locative = start and parsed.lower[start - 1] in LOCATIVE and parsed.tokens[start] not in names()
    if (kind == "name" and locative) or (
        parsed.lower[end : end + 1] == ["of"] and kind == "unclear"
    ):
        kind = "thing"
    if parsed.lower[start] in ("these", "those", "both", "several", "many", "few", "all") or (
        parsed.tags[start] == "N" and parsed.lower[start] not in SINGULAR and kind == "person"
    ):
        kind = "people" if kind in ("person", "people") else kind
    phrases.append(NounPhrase(start, end, end - 1, kind, role))


SINGULAR = word_set("one first second third last next other same own only")


def _roles(parsed: Parse) -> None:
    """The role of each phrase that is not a subject, by the word before it; coordination."""
    for number, phrase in enumerate(parsed.phrases):
        before = phrase.start - 1
        if phrase.role == "possessor":
            continue
        if parsed.tags[before] == "K" and number:
            before = parsed.phrases[number - 1].start - 1
        while before >= 0 and parsed.tags[before] == "B":
            before -= 1
        if before < 0:
            continue
        mark = parsed.tags[before]
        if _renames(parsed, number, before):
            phrase.kind = "thing"
        if parsed.lower[before] in LINKING:
            phrase.role = "predicate"
        elif mark in "PT":
            phrase.role = "prepositional"
        elif mark in "VGEAH":
            phrase.role = "object"
        if mark == "C" and parsed.lower[before] == "and" and number:
            left = parsed.phrases[number - 1]
            if left.end == before and left.role != "possessor":
                phrase.role = left.role
                left.joined = phrase.joined = True


def _renames(parsed: Parse, number: int, before: int) -> bool:
    """Whether a phrase between commas only renames the one before: "the coach, a teacher, …"."""
    end = parsed.phrases[number].end
    if parsed.lower[end : end + 1] == ["of"]:
        end = next((p.end for p in parsed.phrases if p.start == end + 1), end)
    closed = parsed.tags[end : end + 1] == [","]
    if not (closed and number and parsed.tags[before] == ","):
        return False
    last = number - 1
    while last and parsed.phrases[last].role == "prepositional":
        last -= 1
    return parsed.phrases[number - 1].end == before and parsed.phrases[last].kind in (
        "person",
        "name",
    )


def _subjects(parsed: Parse) -> None:
    """Give every verb the phrase it is said of; after "and" it is that of the verb before."""
    last: NounPhrase | None = None
    for k, mark in enumerate(parsed.tags):
        if mark not in "VAMGTE":
            continue
        if mark in "VAM":
            last = parsed.subjects[k] = _finite(parsed, k, last)
        elif mark in "EG":
            parsed.subjects[k] = _said_of(parsed, k, last)
        elif parsed.tags[k + 1 : k + 2] == ["V"]:
            parsed.subjects[k] = last


def _finite(parsed: Parse, k: int, last: NounPhrase | None) -> NounPhrase | None:
    """The subject of a finite verb: what stands before it, past adverbs, prepositional phrases."""
    before = k - 1
    while before >= 0 and parsed.tags[before] in "BMA":
        before -= 1
    if before < 0:
        return None
    mark = parsed.tags[before]
    if mark in "CT":
        return last
    if mark == "R":
        return next((p for p in reversed(parsed.phrases) if p.end in (before, before - 1)), last)
    if mark == "H":
        return NounPhrase(before, before + 1, before, "gendered", "subject", k)
    comma = mark in ",X"
    number = max((n for n, p in enumerate(parsed.phrases) if p.end <= before + 1), default=-1)
    if number < 0 or mark == "S" or (comma and parsed.phrases[number].role != "prepositional"):
        aside = _aside(parsed, before) if comma else None
        return aside or last
    phrase = parsed.phrases[number]
    if phrase.end < before and not comma and mark not in "PGEV":
        return last
    while phrase.role in ("prepositional", "object", "possessor") and number > 0:
        number -= 1
        phrase = parsed.phrases[number]
        if phrase.role == "subject":
            break
    if phrase.role != "possessor":
        phrase.role = "subject"
        phrase.verb = k if phrase.verb is None else phrase.verb
    return phrase


def _aside(parsed: Parse, comma: int) -> NounPhrase | None:
    """The phrase before an aside between commas: "the coach, a tall person, raises …"."""
    before = comma - 1
    while before >= 0 and parsed.tags[before] != ",":
        if parsed.tags[before] == "X":
            return None
        before -= 1
    phrase = parsed.ending(before)
    if phrase is not None and phrase.role in ("other", "subject"):
        phrase.role = "subject"
        return phrase
    return None


def _said_of(parsed: Parse, k: int, last: NounPhrase | None) -> NounPhrase | None:
    """The referent of a participle: the person just before it, else the subject of the clause."""
    near = parsed.ending(k)
    if near is not None and (
        near.kind in ("person", "name", "someone", "animal", "people") or last is None
    ):
        return near
    return last


PEOPLE = frozenset(("person", "name", "someone"))
RIVALS = PEOPLE | {"animal", "animals", "unclear"}
EVERYONE = frozenset(("everyone", "everybody", "anyone", "anybody", "nobody"))
QUOTES = frozenset('"“”„«»`')
CASES = {form: slot for slot, forms in SLOTS.items() for form in forms} | {"hers": "possessive"}
"""The case of each gendered pronoun; `her` is an object or a possessive, by what follows."""

CONFIDENCE: Mapping[str, float] = GRAMMAR["confidence"]
"""The share of right links of each rule in running text."""

Choice = tuple[NounPhrase, str] | None
LONGEST = 400
"""Tokens of a sentence above which the rules abstain: what is longer is no sentence."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Finds antecedents by rules; links with less confidence than `threshold` are not returned.

    With `agreement`, what states the other sex ("the queen" for "his") is no candidate.
    """

    threshold: float = THRESHOLD
    agreement: bool = True

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of the pronoun tokens[i], None where no rule is sure of one.

        >>> link = Rules()("The dancer waves and shakes her hips .".split(), 5)
        >>> link.text, link.rule
        ('The dancer', 'own subject')
        >>> Rules()("A clerk hands him a ticket .".split(), 3)
        """
        if not 0 <= i < len(tokens) or tokens[i].lower() not in PRONOUNS:
            actual = repr(tokens[i]) if 0 <= i < len(tokens) else f"no token of {len(tokens)}"
            raise InputError(f"token {i}: expected one of {', '.join(PRONOUNS)}, got {actual}")
        if len(tokens) > LONGEST:
            return None
        parsed = parse(tokens)
        case = _Case(parsed, i, _disagreeing(parsed, i) if self.agreement else [])
        phrase, rule = case.decide() or case.guess() or (None, "guess")
        if phrase is None or CONFIDENCE[rule] < self.threshold:
            return None
        start = parsed.opening(phrase)
        return Link(
            start=start,
            end=phrase.end,
            text=" ".join(tokens[start : phrase.end]),
            confidence=CONFIDENCE[rule],
            rule=rule,
        )


def _disagreeing(parsed: Parse, i: int) -> list[NounPhrase]:
    """The phrases that state the sex that the pronoun does not have."""
    other = "male" if parsed.lower[i] in FEMALE else "female"

    def stated(phrase: NounPhrase) -> set[str | None]:
        sexes = {nouns().sex.get(word) for word in parsed.lower[phrase.start : phrase.end]}
        first = parsed.tokens[phrase.start]
        if phrase.kind == "name" and first not in names().ambiguous:
            sexes.add(names().gender(first))
        return sexes - {None}

    return [p for p in parsed.phrases if p.kind in RIVALS and stated(p) == {other}]


class _Case:
    """One pronoun of one sentence: the persons named before it and the verb it belongs to."""

    def __init__(self, parsed: Parse, i: int, barred: list[NounPhrase]) -> None:
        self.parse = parsed
        self.i = i
        self.own = parsed.at(i)
        people = [p for p in parsed.phrases if p.kind in RIVALS and p not in barred]
        before = [p for p in people if p.end <= i]
        named = [p for p in before if parsed.lower[p.head] not in EVERYONE]
        self.before = named or before
        self.verb = max((v for v in parsed.subjects if v < i), default=None)
        self.subject = parsed.subjects[self.verb] if self.verb is not None else None
        self.barred = barred
        case = CASES[parsed.lower[i]]
        if parsed.lower[i] == "her":
            case = "possessive" if _possessive(parsed, i) else "object"
        self.case = case

    def decide(self) -> Choice:
        """The antecedent by rule, if it is one person."""
        if self.subject is not None and (
            self.subject.kind == "gendered" or self.subject in self.barred
        ):
            return None
        chosen: Choice = getattr(self, "_" + self.case)()
        if chosen is None or not self._fit(chosen[0]):
            return None
        low, high = sorted((chosen[0].end, self.i))
        return None if QUOTES.intersection(self.parse.tokens[low:high]) else chosen

    def guess(self) -> Choice:
        """The likeliest person where no rule is sure: the last subject, or the first one named."""
        fit = [p for p in self.before if self._fit(p)]
        if self.case == "object":
            fit = [p for p in fit if p is not self.subject]
        subjects = [p for p in fit if p.role == "subject"]
        chosen = next(iter(subjects[-1:] or fit[:1]), None)
        return (chosen, "guess") if chosen is not None else None

    def _fit(self, phrase: NounPhrase) -> bool:
        return phrase.kind in PEOPLE and not phrase.joined

    def _reflexive(self) -> Choice:
        if self.subject is None:
            return None
        rivals = any(p.end > self.subject.end for p in self.before)
        return self.subject, "reflexive, others near" if rivals else "reflexive"

    def _possessive(self) -> Choice:
        if self.own is not None and self.own.role == "subject" and self.own.verb is not None:
            return self._earlier()
        if self.subject is not None and self.subject.kind in PEOPLE:
            participle = self.verb is not None and self.parse.tags[self.verb] in "GE"
            rivals = [p for p in self.before if p is not self.subject]
            unsure = participle or self.subject.role == "predicate"
            if any(unsure or p.end > self.subject.end or p.role == "possessor" for p in rivals):
                return self.subject, "own subject, others near"
            if rivals:
                return self.subject, "own subject, others before"
            return self.subject, "participle" if participle else "own subject"
        return self._earlier() if self.before else self._follows()

    def _earlier(self) -> Choice:
        """The only person named before, by its role."""
        if len(self.before) != 1:
            return None
        phrase = self.before[0]
        if phrase.role == "predicate":
            return None
        if phrase.role == "subject" and (phrase.verb or 0) > self.i:
            return (phrase, "with") if self.parse.lower[phrase.end] == "with" else None
        if phrase.role == "subject":
            return phrase, "earlier subject"
        return phrase, "possessor" if phrase.role == "possessor" else "lone object"

    def _follows(self) -> Choice:
        """The subject after an opening phrase: "In his tent, the soldier wakes"."""
        tags = self.parse.tags
        if "V" in tags[: self.i] or tags[0] not in "PGE":
            return None
        comma = next((k for k in range(self.i, len(tags)) if tags[k] == ","), None)
        if comma is None:
            return None
        phrase = next((p for p in self.parse.phrases if p.start > comma), None)
        if phrase is None or phrase.role != "subject" or phrase.start > comma + 2:
            return None
        return phrase, "follows"

    def _subject(self) -> Choice:
        if len(self.before) != 1:
            return None
        phrase = self.before[0]
        k = self.i - 1
        while k >= 0 and self.parse.tags[k] == "B":
            k -= 1
        if k < 0 or phrase.role in ("possessor", "predicate"):
            return None
        mark = self.parse.tags[k]
        if mark in "SRV" or (mark in "WZ" and phrase.end <= k):
            return phrase, "embedded"
        if mark == "C":
            return phrase, "coordinated"
        if mark == "," and self.parse.tags[0] in "SPG":
            return phrase, "after clause"
        return None

    def _object(self) -> Choice:
        others = [p for p in self.before if p is not self.subject]
        if self.subject is None or len(others) != 1:
            return None
        phrase = others[0]
        if self.subject.kind in PEOPLE:
            later = phrase.end > self.subject.end and phrase.role in ("object", "prepositional")
            return (phrase, "not the subject") if later else None
        if phrase.role in ("predicate", "possessor"):
            return None
        return phrase, "object of earlier subject" if phrase.role == "subject" else "lone object"


Span = tuple[int, int]


class FastCoref:
    """F-coref (Otmazgin et al. 2022): `fastcoref`, or `fastcoref:MODEL` for a name or a folder."""

    def __init__(self, model: str = "") -> None:
        package = import_package("fastcoref", "the resolver fastcoref", "fastcoref")
        tokenizer = import_package("spacy", "the resolver fastcoref", "fastcoref").blank("en")
        keywords = {"model_name_or_path": model} if model else {}

        def load() -> Any:
            models = sys.modules.get("transformers.dynamic_module_utils")
            if models is not None:  # refuse code of the hub instead of asking on stdin
                models.TIME_OUT_REMOTE_CODE = 0  # type: ignore[attr-defined]
            return package.FCoref(
                device="cpu", nlp=tokenizer, enable_progress_bar=False, **keywords
            )

        self._model = load_model(load, "fastcoref", model or "the default model")

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i]; the confidence is the logistic of the model's score."""
        text, starts = _joined(tokens)
        prediction = self._model.predict(texts=[text])[0]
        clusters = [
            [_token_span(span, starts, tokens) for span in cluster]
            for cluster in prediction.get_clusters(as_strings=False)
        ]

        def confidence(span: Span) -> float | None:
            pronoun = (starts[i], starts[i] + len(tokens[i]))
            mention = (starts[span[0]], starts[span[1] - 1] + len(tokens[span[1] - 1]))
            first, second = sorted((mention, pronoun))
            try:
                score = float(prediction.get_logit(span_i=second, span_j=first))
            except (KeyError, ValueError):
                return None
            return 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))

        return _link(clusters, tokens, i, "fastcoref", confidence)


def _spacy_reader(name: str, model: str) -> tuple[Any, Callable[[Sequence[str]], Any]]:
    """A spaCy pipeline for the resolver `name`, and what reads our tokens with it."""
    if not model:
        raise InputError(f"resolver {name}: expected {name}:MODEL, a spaCy pipeline")
    spacy = import_package("spacy", f"the resolver {name}", name)
    pipeline = load_model(lambda: spacy.load(model), name, model)
    return pipeline, lambda tokens: pipeline(spacy.tokens.Doc(pipeline.vocab, words=list(tokens)))


class Coreferee:
    """coreferee on a spaCy pipeline: `coreferee:en_core_web_lg`."""

    def __init__(self, model: str = "") -> None:
        pipeline, self._read = _spacy_reader("coreferee", model)
        import_package("coreferee", "the resolver coreferee", "coreferee")
        if "coreferee" not in pipeline.pipe_names:
            data = f"its data for {model}"
            load_model(lambda: pipeline.add_pipe("coreferee"), "coreferee", data)

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i]; a mention is a head with what stands before it."""
        doc = self._read(tokens)
        clusters = [
            [
                (doc[mention.token_indexes[0]].left_edge.i, mention.token_indexes[-1] + 1)
                for mention in chain.mentions
            ]
            for chain in doc._.coref_chains
        ]
        return _link(clusters, tokens, i, "coreferee")


class Spacy:
    """A spaCy pipeline with a coreference component: `spacy:en_coreference_web_trf`."""

    def __init__(self, model: str = "") -> None:
        pipeline, self._read = _spacy_reader("spacy", model)
        if not any("coref" in name for name in pipeline.pipe_names):
            pipes = ", ".join(pipeline.pipe_names) or "none"
            raise InputError(
                f"spaCy pipeline {model}: expected a coreference component (coref), got {pipes}"
            )

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i], from the span groups coref_clusters_1, coref_clusters_2 …"""
        clusters = [
            [(span.start, span.end) for span in group]
            for key, group in self._read(tokens).spans.items()
            if key.startswith("coref_clusters_")
        ]
        return _link(clusters, tokens, i, "spacy")


def _joined(tokens: Sequence[str]) -> tuple[str, list[int]]:
    """The tokens with blanks between them, and where each begins."""
    starts: list[int] = []
    position = 0
    for token in tokens:
        starts.append(position)
        position += len(token) + 1
    return " ".join(tokens), starts


def _token_span(span: Span, starts: list[int], tokens: Sequence[str]) -> Span:
    """The tokens that a span of characters touches."""
    touched = [
        k for k, start in enumerate(starts) if start < span[1] and start + len(tokens[k]) > span[0]
    ]
    return touched[0], touched[-1] + 1


def _link(
    clusters: Iterable[Sequence[Span]],
    tokens: Sequence[str],
    i: int,
    rule: str,
    confidence: Callable[[Span], float | None] = lambda _: None,
) -> Link | None:
    """The best mention of the cluster that has the pronoun for a mention of its own."""
    cluster = next((c for c in clusters if (i, i + 1) in c), None)
    if cluster is None:
        return None
    others = [span for span in cluster if span != (i, i + 1)]
    if not others:
        return None

    def rank(span: Span) -> tuple[bool, bool, int]:
        word = tokens[span[0]].lower()
        pronoun = span[1] - span[0] == 1 and FUNCTION_WORDS.get(word, "")[:1] in ("O", "H")
        return pronoun, span[0] > i, abs(i - span[0])

    start, end = best = min(others, key=rank)
    return Link(
        start=start,
        end=end,
        text=" ".join(tokens[start:end]),
        confidence=confidence(best),
        size=len(cluster),
        rule=rule,
    )
