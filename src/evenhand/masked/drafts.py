"""Sentences and their edits: seeds, words that may be replaced, and what a model says of drafts.

Replaced are nouns, adjectives, verbs and adverbs in lower case; function words, names, numbers, the
pronoun and the head of its antecedent stay. What enters is a known English word that states no
gender and is nobody's name, in the same form (number of a noun, form of a verb), and the tags of
the sentence stay as they are, so that the parts of speech and the link to the pronoun do.

All drafts of a step are queried together, and nothing is queried twice.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache as memoize
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError
from evenhand.lexicon.gendered import neutral_forms, pairs, sex_indicators
from evenhand.lexicon.names import counted_words
from evenhand.lexicon.pronouns import PRONOUNS, SLOTS
from evenhand.masked.gender_words import mask_query, probabilities
from evenhand.masked.metrics.pronouns import bias
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Place, Progress, top_k
from evenhand.masked.words import Question, cloze, rows, single_pieces, word_log_probs
from evenhand.statistics.intervals import Floats
from evenhand.text.corpus.compression import SURROGATE, open_content, source_name, text_lines
from evenhand.text.people import COMMON, DERIVED, GIVEN, PROPER, kinds
from evenhand.text.rewrite.neutralize import article_edit
from evenhand.text.structural import Accepted, Filter, stated_sex
from evenhand.text.tagger import FUNCTION_WORDS, tag
from evenhand.text.tokens import sentences, tokenize
from evenhand.text.vocabulary import nouns, verb_forms, word_set

OPEN = frozenset("WVEGB")
"""Tags of nouns and adjectives, verbs, participles and adverbs."""
SHORTEST = 3
MORE_PEOPLE = word_set(
    "ally comrade creator creature devil enemy exile fellow foe ghost monster spirit"
)
"""Whom a pronoun can mean, besides the nouns that the resolver knows."""
NOT_PLURAL = ("ss", "us", "is", "ous")


@memoize
def _gendered() -> frozenset[str]:
    """Every single word that a list of the lexicon calls gendered, either side of its pairs too."""
    found = set(PRONOUNS) | set(sex_indicators())
    for pair in pairs():
        found.update((pair.female, pair.male))
    found.update(form.gendered for form in neutral_forms())
    return frozenset(word for word in found if word.isalpha())


@memoize
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


class Candidate(NamedTuple):
    """A sentence that may become a seed, and where it stands."""

    sentence: str
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A sentence with structural bias, and where it comes from."""

    found: Accepted
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds, how many sentences were read, and why the others are none of them."""

    seeds: tuple[Seed, ...]
    read: int
    left_out: dict[str, int]


def seeds_of(
    candidates: Iterable[Candidate],
    *,
    filter: Filter = Filter(),  # noqa: A002, B008
    limit: int | None = None,
) -> Seeds:
    """The sentences that the filter keeps, each once; reading ends after `limit` of them.

    What is left out is counted by the filter's reasons, and as "repeated".

    >>> candidates = [Candidate("The cook dropped her spoon."), Candidate("A cook sings.")]
    >>> seeds_of(candidates).left_out
    {'no_pronoun': 1}
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit: expected at least 1, got {limit}")
    seeds: dict[str, Seed] = {}
    left_out: Counter[str] = Counter()
    read = 0
    for sentence, line, source in candidates:
        read += 1
        found = filter.sentence(sentence)
        if not isinstance(found, Accepted):
            left_out[found.reason] += 1
        elif found.masked in seeds:
            left_out["repeated"] += 1
        else:
            seeds[found.masked] = Seed(found, line, source)
        if len(seeds) == limit:
            break
    return Seeds(tuple(seeds.values()), read, dict(sorted(left_out.items())))


def read_seeds(
    path: str | os.PathLike[str],
    *,
    filter: Filter = Filter(),  # noqa: A002, B008
    split: bool = False,
    limit: int | None = None,
) -> Seeds:
    """The seeds of a file: the filter's JSON lines, or text, one sentence per line; "-" is stdin.

    Either way the sentences pass the filter here, since what is made of them must pass it too.
    `split` cuts lines of text into their sentences.
    """
    name = source_name(os.fspath(path))
    with closing(open_content(os.fspath(path))) as file:
        lines = text_lines(name, file)
        first = next((line for line in lines if line[1].strip()), None)
        if first is None:
            raise FileError(name, "the file is empty: expected sentences, one per line")
        rest = chain([first], lines)
        records = first[1].lstrip().startswith("{")
        candidates = _records(name, rest) if records else _texts(name, rest, split)
        return seeds_of(candidates, filter=filter, limit=limit)


def _texts(name: str, lines: Iterable[tuple[int, str]], split: bool) -> Iterator[Candidate]:
    for number, line in lines:
        text = line.strip()
        spans = sentences(text) if split else [(0, len(text))]
        for begin, end in spans:
            if text[begin:end].strip():
                yield Candidate(text[begin:end], number, name)


def _records(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Candidate]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise FileError(name, "expected a JSON object, got text", line=number) from None
        sentence = record.get("sentence") if isinstance(record, dict) else None
        if not isinstance(sentence, str):
            problem = 'expected the filter\'s JSON with the sentence in "sentence", got none'
            raise FileError(name, problem, line=number)
        if SURROGATE.search(sentence):
            raise FileError(name, "expected text, got half of a surrogate pair", line=number)
        at, source = record.get("line"), record.get("source")
        yield Candidate(
            sentence,
            at if isinstance(at, int) else number,
            source if isinstance(source, str) else name,
        )


Span = tuple[int, int]
CHUNK = re.compile(r"\S+")
PARTICLES = frozenset({"away", "back", "down", "off", "out", "over", "up"})
"""What makes one expression of itself and the word before it: "make up", "shows off"."""
BEHIND = re.compile(r"[,.;:!?]?(?:\s(?![-–—/])|$)")
BEFORE = re.compile(r"(?<![-–—/]) $")


@dataclass(frozen=True, slots=True)
class Edit:
    """One word of the seed, where it stands there, and the word put in its place."""

    offset: int
    old: str
    new: str

    def to_dict(self) -> dict[str, int | str]:
        return {"offset": self.offset, "old": self.old, "new": self.new}


@dataclass(frozen=True, eq=False)
class Ground:
    """What all drafts of a seed share: its tokens, tags, and the words that stay."""

    seed: Seed
    antecedent: bool = False
    """Whether the head of the antecedent may be replaced too."""

    @cached_property
    def _tokenized(self) -> tuple[list[str], list[int]]:
        return tokenize(self.seed.found.sentence)

    @property
    def tokens(self) -> list[str]:
        return self._tokenized[0]

    @property
    def starts(self) -> list[int]:
        """Where each token begins in the seed."""
        return self._tokenized[1]

    @cached_property
    def tags(self) -> list[str]:
        return tag(self.tokens)

    @cached_property
    def link(self) -> Span:
        """The tokens of the antecedent: those nearest before the pronoun, else the first behind."""
        found = self.seed.found
        place = found.sentence.rfind(found.antecedent, 0, found.offset)
        if place < 0:
            place = found.sentence.index(found.antecedent)
        end = place + len(found.antecedent)
        inside = [i for i, start in enumerate(self.starts) if place <= start < end]
        return inside[0], inside[-1] + 1

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The tokens that may be replaced: words behind a space that are not part of another."""
        text, head = self.seed.found.sentence, self.tokens[self.link[1] - 1].lower()
        return tuple(
            i
            for i, (word, start, mark) in enumerate(
                zip(self.tokens, self.starts, self.tags, strict=True)
            )
            if may_leave(word, mark)
            and (self.antecedent or word.lower() != head)
            and BEFORE.search(text, 0, start)
            and BEHIND.match(text, start + len(word))
            and "".join(self.tokens[i + 1 : i + 2]).lower() not in PARTICLES
        )


@dataclass(frozen=True)
class Draft:
    """A seed with some tokens replaced: `changes` maps their places, in order, to new words."""

    ground: Ground
    changes: tuple[tuple[int, str], ...] = ()

    @cached_property
    def text(self) -> str:
        """The sentence, the seed's pronoun in its place."""
        return self.with_words({})

    def with_words(self, words: Mapping[int, str], pronoun: str | None = None) -> str:
        """The sentence with further tokens replaced and, if given, another word as pronoun."""
        ground, found = self.ground, self.ground.seed.found
        text, at = [], 0
        wanted = {**dict(self.changes), **words}
        if pronoun is not None:
            wanted[ground.starts.index(found.offset)] = pronoun
        for place in sorted(wanted):
            text += [found.sentence[at : ground.starts[place]], wanted[place]]
            at = ground.starts[place] + len(ground.tokens[place])
        return "".join([*text, found.sentence[at:]])

    @property
    def offset(self) -> int:
        """Where the pronoun stands in the text."""
        before = [
            len(word) - len(self.ground.tokens[place])
            for place, word in self.changes
            if self.ground.starts[place] < self.ground.seed.found.offset
        ]
        return self.ground.seed.found.offset + sum(before)

    def masked(self, mask: str = "[MASK]") -> str:
        """The sentence with a mask for the pronoun."""
        return self.with_words({}, mask)

    @property
    def open_places(self) -> tuple[int, ...]:
        """The tokens that may still be replaced."""
        done = dict(self.changes)
        return tuple(place for place in self.ground.places if place not in done)

    @property
    def edits(self) -> tuple[Edit, ...]:
        ground = self.ground
        return tuple(Edit(ground.starts[i], ground.tokens[i], word) for i, word in self.changes)

    @cached_property
    def chunks(self) -> tuple[list[Span], int]:
        """What stands between spaces, and the number of the one that holds the pronoun."""
        spans = [match.span() for match in CHUNK.finditer(self.text)]
        at = self.offset
        return spans, next(i for i, (start, end) in enumerate(spans) if start <= at < end)

    def near_chunks(self, reach: int) -> list[int]:
        """The chunks at most so far from one that holds a replaced token, that one included."""
        starts = [self._starts[place] for place, _ in self.changes]
        spans, _ = self.chunks
        hit = [i for i, (begin, end) in enumerate(spans) if any(begin <= s < end for s in starts)]
        return [i for i in range(len(spans)) if any(abs(i - k) <= reach for k in hit)]

    def fits(self, place: int, word: str) -> bool:
        """Whether a word may take the place of a token, by the words alone.

        It is in the form of the old one, new to the sentence, and "a" or "an" before it stays.
        """
        old = self.ground.tokens[place]
        if not may_enter(word) or not same_form(old, word, self.ground.tags[place]):
            return False
        others = (t.lower() for i, t in enumerate(self._tokens) if i != place)
        if any(akin(word, other) for other in others):
            return False
        start = self._starts[place]
        return article_edit(self.text, start, old, word) is None

    def edited(self, place: int, word: str) -> Draft:
        """The draft with one more token replaced."""
        return Draft(self.ground, tuple(sorted((*self.changes, (place, word)))))

    @property
    def same_tags(self) -> bool:
        """Whether every token of the sentence is still tagged as in the seed."""
        return tag(self._tokens) == self.ground.tags

    def passed(self, filter: Filter) -> Accepted | None:  # noqa: A002
        """What the structural filter keeps of it, if it links the pronoun as it did in the seed."""
        found = filter.sentence(self.text)
        first, end = self.ground.link
        begin, last = self._starts[first], end - 1
        wanted = self.text[begin : self._starts[last] + len(self._tokens[last])]
        if not isinstance(found, Accepted) or found.antecedent != wanted:
            return None
        return found if found.offset == self.offset else None

    @property
    def _tokens(self) -> list[str]:
        tokens = list(self.ground.tokens)
        for place, word in self.changes:
            tokens[place] = word
        return tokens

    @cached_property
    def _starts(self) -> list[int]:
        starts, moved = [], 0
        changes = dict(self.changes)
        for place, start in enumerate(self.ground.starts):
            starts.append(start + moved)
            if place in changes:
                moved += len(changes[place]) - len(self.ground.tokens[place])
        return starts


DIGITS = 6
"""Decimals that count: beyond them a number depends on the batch it was computed in."""
NEAR = 1
"""Words at most so far from a replaced one are near it."""
WIDER = 5
LEAST_WIDE = 100
"""A place is asked for so many times the fills wanted, since most will not do."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What the model says at the pronoun's place of a sentence."""

    bias: float
    likeliest: float
    """The probability of the likeliest gender word there."""
    bias_top: float
    """The bias by the top k alone, nan where no gender word is among them."""
    name: str
    """subject, object, possessive or reflexive"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A word for a place, and what it should do there.

    `effect` is by how much it moves the log odds of male to female, `loss` by how much the log
    probability of the word at that place falls (0 where it rises).
    """

    place: int
    word: str
    effect: float
    loss: float


class Fluency(NamedTuple):
    r"""Two factors by which a draft is less expected than its seed, a word, the pronoun apart.

    With $\ell(w)$ the log probability of a word given all others but the pronoun: `loss` is
    $\exp\frac1n\sum_w\max(0, \ell_{seed}(w) - \ell_{draft}(w))$, at least 1, where what has become
    likelier earns no credit (a rare word made common would otherwise pay for nonsense elsewhere);
    `ratio` is the same without the maximum: the pseudo-perplexity over the seed's.
    """

    loss: float
    ratio: float


@dataclass
class Asker:
    """A model that is asked about drafts, and its answers so far."""

    model: MaskedLM
    fills: int = 20
    likely: float = 0.1
    top_k: int = 10
    cache: Cache | None = None
    progress: Progress | None = None
    _slots: dict[str, Slot] = field(default_factory=dict)
    _words: dict[str, dict[int, float]] = field(default_factory=dict)
    _proposals: dict[str, list[Proposal]] = field(default_factory=dict)
    _asked: int = 0

    def can_read(self, draft: Draft) -> bool:
        """Whether the model takes a sentence: no longer than it allows, nothing unknown in it."""
        try:
            mask_query(self.model, draft.masked())
            rows(self.model, [(draft.text, draft.chunks[0])])
        except InputError:
            return False
        return True

    def slots(self, drafts: Iterable[Draft]) -> list[Slot]:
        """The bias of each draft's sentence, the pronoun masked."""
        texts = [draft.masked() for draft in drafts]
        new = [text for text in dict.fromkeys(texts) if text not in self._slots]
        if new:
            self._ask_slots(new)
        return [self._slots[text] for text in texts]

    def _ask_slots(self, new: Sequence[str]) -> None:
        told = probabilities(
            self.model, new, top_k=self.top_k, cache=self.cache, progress=self._bar()
        )
        full = bias(told.p_male, told.p_female)
        top = bias(told.p_male_top, told.p_female_top)
        best = np.maximum(told.p_male, told.p_female)
        for i, name in enumerate(told.slots()):
            numbers = [round(float(values[i]), DIGITS) for values in (full, best, top)]
            self._slots[new[i]] = Slot(numbers[0], numbers[1], numbers[2], str(name))

    def fluency(self, drafts: Sequence[Draft], limit: float) -> list[Fluency | None]:
        """How much less the model expects each draft than its seed; None beyond the limit.

        The words near a replaced one are asked for first: losses only add up, so that a draft
        whose near words lose too much already needs no more.
        """
        pairs = [(draft, Draft(draft.ground)) for draft in drafts]
        near = [draft.near_chunks(NEAR) for draft in drafts]
        self._ask_words([(of, n) for pair, n in zip(pairs, near, strict=True) for of in pair])
        bounds = [_others(draft) * np.log(limit) + 1e-9 for draft in drafts]
        left = [
            i
            for i, pair in enumerate(pairs)
            if np.maximum(self._lost(*pair, near[i]), 0).sum() <= bounds[i]
        ]
        self._ask_words([(of, range(len(of.chunks[0]))) for i in left for of in pairs[i]])
        told: list[Fluency | None] = [None] * len(pairs)
        for i in left:
            lost = self._lost(*pairs[i], range(len(drafts[i].chunks[0])))
            means = np.maximum(lost, 0).sum(), lost.sum()
            if means[0] <= bounds[i]:
                n = _others(drafts[i])
                told[i] = Fluency(*(round(float(np.exp(mean / n)), DIGITS) for mean in means))
        return told

    def _lost(self, draft: Draft, seed: Draft, chunks: Sequence[int]) -> Floats:
        before, after = self._words[seed.text], self._words[draft.text]
        return np.array([before[i] - after[i] for i in chunks])

    def _ask_words(self, wanted: Sequence[tuple[Draft, Sequence[int]]]) -> None:
        r"""Have $\ell(w) = \log P(w \mid s_{\setminus w, pronoun})$ of words between spaces.

        A word of several pieces is read from left to right (Salazar et al. 2020, Kauf & Ivanova
        2023). The pronoun is hidden throughout and counts 0: a draft is no less fluent because
        its bias is against the pronoun that the seed happens to have.
        """
        drafts = {draft.text: draft for draft, _ in wanted}
        for text, draft in drafts.items():
            self._words.setdefault(text, {draft.chunks[1]: 0.0})
        asked = ((draft.text, i) for draft, chunks in wanted for i in chunks)
        places = [at for at in dict.fromkeys(asked) if at[1] not in self._words[at[0]]]
        texts = list(dict.fromkeys(text for text, _ in places))
        made = rows(self.model, [(text, drafts[text].chunks[0]) for text in texts])
        row_of = dict(zip(texts, made, strict=True))
        questions = [Question(row_of[text], i, (drafts[text].chunks[1],)) for text, i in places]
        if questions:
            told = word_log_probs(self.model, questions, cache=self.cache, progress=self._bar())
            for (text, i), value in zip(places, told, strict=True):
                self._words[text][i] = float(value)

    def proposals(self, drafts: Iterable[Draft]) -> list[list[Proposal]]:
        r"""For each draft, at each place still open, the likeliest fills that may stand there.

        Likely means likely whoever is meant: by the mean of $P(w \mid he)$ and $P(w \mid she)$,
        the pronoun's place filled with either. The same two answers tell the effect of all fills
        at once, since by Bayes' rule the log odds of *he* to *she* at the pronoun move by
        $\log\frac{P(w\mid he)}{P(w\mid she)} - \log\frac{P(w_0\mid he)}{P(w_0\mid she)}$ when w
        takes the place of $w_0$. (A masked model's conditionals need not agree with each other:
        the effect chooses what is tried, never what is reported.)
        """
        listed = list(drafts)
        new = {d.text: d for d in listed if d.text not in self._proposals}
        slots = self.slots(new.values())
        asked: list[Place] = []
        for draft, slot in zip(new.values(), slots, strict=True):
            pair = SLOTS[slot.name or "possessive"]
            for place in draft.open_places:
                hidden = {place: "[MASK]"}
                asked += [cloze(self.model, draft.with_words(hidden, word)) for word in pair]
        k = min(max(WIDER * self.fills, LEAST_WIDE), len(self.model.tokenizer))
        top = top_k(self.model, asked, k, cache=self.cache, progress=self._bar()) if asked else None
        at = 0
        for text, draft in new.items():
            found: list[Proposal] = []
            for place in draft.open_places:
                if top is not None:
                    pairs = [
                        dict(zip(top.ids[i].tolist(), top.log_probs[i].tolist(), strict=True))
                        for i in (at, at + 1)
                    ]
                    found += self._fitting(draft, place, *pairs)
                at += 2
            self._proposals[text] = found
        return [self._proposals[draft.text] for draft in listed]

    def _fitting(
        self, draft: Draft, place: int, male: dict[int, float], female: dict[int, float]
    ) -> list[Proposal]:
        """The likeliest words that fit; what is not in the top k counts as its last."""
        words = fills(self.model)
        floors = min(male.values()), min(female.values())

        def both(token: int) -> tuple[float, float]:
            return male.get(token, floors[0]), female.get(token, floors[1])

        old = draft.ground.tokens[place]
        before = next((both(t) for t in (*male, *female) if words.get(t) == old), None)
        known = {t for t in (*male, *female) if t in words}
        likely = sorted(known, key=lambda t: (-float(np.logaddexp(*both(t))), words[t]))
        found: list[Proposal] = []
        best = -np.inf if before is None else float(np.logaddexp(*before))
        for token in likely:
            mean = float(np.logaddexp(*both(token)))
            if len(found) == self.fills or np.exp(mean - best) < self.likely:
                break
            if not draft.fits(place, words[token]):
                continue
            best = max(best, mean)
            his, hers = both(token)
            effect, loss = his - hers, 0.0
            if before is not None:
                effect -= before[0] - before[1]
                loss = max(0.0, float(np.logaddexp(*before)) - mean)
            found.append(Proposal(place, words[token], round(effect, DIGITS), loss))
        return found

    def _bar(self) -> Progress | None:
        """Progress over all that has been asked so far: it never goes back."""
        if self.progress is None:
            return None
        told, before = self.progress, self._asked

        def shifted(done: int, total: int) -> None:
            self._asked = before + total
            told(before + done, before + total)

        return shifted


def _others(draft: Draft) -> int:
    """How many words it has besides the pronoun."""
    return max(len(draft.chunks[0]) - 1, 1)
