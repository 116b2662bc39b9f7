"""Sentences and their edits: seeds, replaceable words, and the scores of drafts.

Nouns, adjectives, verbs and adverbs in lower case can be replaced; function words, names, numbers,
the pronoun and the head of its antecedent stay. A replacement is a known English word that states
no gender, is not a name and has the same form (number of a noun, form of a verb). The tags of the
sentence must not change, which preserves the parts of speech and the link to the pronoun.

All drafts of a step are queried together, and no query is repeated.
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
from typing import Literal, NamedTuple

import numpy as np

from evenhand.cache import Cache, Progress
from evenhand.errors import FileError, InputError
from evenhand.lexicon.first_names import counted_words
from evenhand.lexicon.gendered import neutral_forms, pairs, sex_indicators
from evenhand.lexicon.phrases import phrases
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.lexicon.pronouns import PRONOUNS, SLOTS
from evenhand.models.gender_words import Probabilities, bias, mask_query, probabilities, query_masks
from evenhand.models.masked import MaskedLM
from evenhand.models.masked_scoring import MaskedPosition, top_k
from evenhand.models.metrics.behaviours import behaviour
from evenhand.models.metrics.phrases import (
    Embed,
    EmbeddedPhrases,
    EmbedsTexts,
    embed_phrases,
)
from evenhand.models.words import WordQuery, cloze, row, rows, single_pieces, word_log_probs
from evenhand.statistics.association import association, unit
from evenhand.statistics.intervals import Floats
from evenhand.text.corpus.compression import SURROGATE, open_content, source_name, text_lines
from evenhand.text.people import COMMON, DERIVED, GIVEN, PROPER, kinds
from evenhand.text.rewrite.neutralize import article_edit
from evenhand.text.structural import Accepted, Filter, stated_sex
from evenhand.text.tagger import FUNCTION_WORDS, form_of_verb, tag
from evenhand.text.tokens import sentences, tokenize
from evenhand.text.vocabulary import nouns, verb_forms, word_set

OPEN = frozenset("WVEGB")
"""Tags of nouns and adjectives, verbs, participles and adverbs."""
MIN_LENGTH = 3
MORE_PEOPLE = word_set(
    "ally comrade creator creature devil enemy exile fellow foe ghost monster spirit"
)
"""Nouns that a pronoun can refer to, besides those that the resolver knows."""
NOT_PLURAL = ("ss", "us", "is", "ous")


@memoize
def _gendered_words() -> frozenset[str]:
    """Every single word that the lexicon lists as gendered, both sides of its pairs included."""
    words = set(PRONOUNS) | set(sex_indicators())
    for pair in pairs():
        words.update((pair.female, pair.male))
    words.update(form.gendered for form in neutral_forms())
    return frozenset(word for word in words if word.isalpha())


@memoize
def _known_words() -> frozenset[str]:
    people = nouns()
    return counted_words("common_words") | people.person | people.animal | verb_forms().keys()


def states_gender(word: str) -> bool:
    """Whether a word in lower case is gendered, or a first name when capitalized.

    >>> [states_gender(word) for word in ("aunt", "actor", "mary", "crewman", "spoon")]
    [True, True, True, True, False]
    """
    name = word.capitalize()
    return word in _gendered_words() or bool(kinds(name) & GIVEN or stated_sex([word, name]))


@lru_cache(maxsize=1 << 16)
def can_insert(word: str) -> bool:
    """Whether a word in lower case may be inserted into a sentence.

    >>> [can_insert(word) for word in ("spoon", "explan", "the", "girl", "london")]
    [True, False, False, False, False]
    """
    if len(word) < MIN_LENGTH or not (word.isascii() and word.isalpha() and word.islower()):
        return False
    if word in FUNCTION_WORDS or states_gender(word):
        return False
    flags = kinds(word.capitalize())
    if flags & PROPER:
        return False
    return word in _known_words() or (
        len(word) > 6 and flags == COMMON and bool(DERIVED.search(word))
    )


def can_replace(word: str, tag: str) -> bool:
    """Whether an edit may replace a word with this tag."""
    return (
        tag in OPEN
        and len(word) >= MIN_LENGTH
        and word.isalpha()
        and word.islower()
        and word not in FUNCTION_WORDS
    )


def same_form(old: str, new: str, tag: str) -> bool:
    """Whether two words of one tag have the same form and the same kind (person, animal, thing).

    >>> same_form("spoon", "cups", "W"), same_form("drops", "drop", "V")
    (False, False)
    >>> same_form("spoon", "nurse", "W"), same_form("doctor", "nurse", "W")
    (False, True)
    """
    if old == new:
        return False
    if tag in "VEG":
        return form_of_verb(old) == form_of_verb(new)
    if tag == "W":
        return _is_plural(old) == _is_plural(new) and _animacy(old) == _animacy(new)
    return True


def _animacy(word: str) -> str:
    known = nouns()
    single = known.singular(word) or word
    if known.is_person(single) or word in MORE_PEOPLE:
        return "person"
    return "animal" if single in known.animal else "none"


def share_stem(word: str, other: str) -> bool:
    """Whether two words look like forms of the same word, as "blow" and "blows" do.

    >>> share_stem("blow", "blows"), share_stem("stage", "staff"), share_stem("hand", "handle")
    (True, False, True)
    """
    shorter, longer = sorted((word, other), key=len)
    stem = shorter[:-1] if shorter.endswith("e") else shorter
    return len(stem) >= MIN_LENGTH and longer.startswith(stem) and len(longer) - len(stem) <= 4


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(NOT_PLURAL)


def fills(model: MaskedLM) -> dict[int, str]:
    """The tokens of a model that are, after a space, a word that may be inserted: id -> word.

    >>> from evenhand.models import load
    >>> words = set(fills(load("mini")).values())
    >>> "table" in words, "woman" in words, "mary" in words
    (True, False, False)
    """
    tokenizer = model.tokenizer
    ids = sorted(set(tokenizer.get_vocab().values()) - set(tokenizer.all_special_ids))
    decoded = tokenizer.batch_decode([[i] for i in ids])
    written = {i: text.strip() for i, text in zip(ids, decoded, strict=True)}
    words = sorted({word for word in written.values() if can_insert(word)})
    # A cased model has a token for the capitalised word too, which counts as another word.
    tokens = single_pieces(model, "a [MASK] a", words)
    return {i: word for i, word in tokens.items() if written.get(i) == word}


class DraftCandidate(NamedTuple):
    """A sentence that may become a seed, with its line and source."""

    sentence: str
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A sentence with structural bias, with its line and source."""

    accepted: Accepted
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds, the number of sentences read, and why the others were left out."""

    seeds: tuple[Seed, ...]
    read: int
    left_out: dict[str, int]


def seeds_of(
    candidates: Iterable[DraftCandidate],
    *,
    filter: Filter = Filter(),  # noqa: A002, B008
    limit: int | None = None,
) -> Seeds:
    """Select the distinct sentences that the filter accepts, at most `limit`.

    Sentences left out are counted by the reasons of the filter, or as "repeated".

    >>> texts = ["The cook dropped her spoon.", "A cook sings."]
    >>> candidates = [DraftCandidate(text) for text in texts]
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
        result = filter.sentence(sentence)
        if not isinstance(result, Accepted):
            left_out[result.reason] += 1
        elif result.masked in seeds:
            left_out["repeated"] += 1
        else:
            seeds[result.masked] = Seed(result, line, source)
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
    """Read seeds from a file: JSON lines of the filter, or one sentence per line; "-" is stdin.

    In both cases the filter is applied here, since the edited sentences must pass it too. `split`
    splits lines of text into sentences.
    """
    name = source_name(os.fspath(path))
    with closing(open_content(os.fspath(path))) as file:
        lines = text_lines(name, file, held=limit is None)
        first = next((line for line in lines if line[1].strip()), None)
        if first is None:
            raise FileError(name, "the file is empty: expected sentences, one per line")
        rest = chain([first], lines)
        records = first[1].lstrip().startswith("{")
        candidates = _records(name, rest) if records else _texts(name, rest, split)
        return seeds_of(candidates, filter=filter, limit=limit)


def _texts(name: str, lines: Iterable[tuple[int, str]], split: bool) -> Iterator[DraftCandidate]:
    for number, line in lines:
        text = line.strip()
        spans = sentences(text) if split else [(0, len(text))]
        for begin, end in spans:
            if text[begin:end].strip():
                yield DraftCandidate(text[begin:end], number, name)


def _records(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[DraftCandidate]:
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
        yield DraftCandidate(
            sentence,
            at if isinstance(at, int) else number,
            source if isinstance(source, str) else name,
        )


Span = tuple[int, int]
CHUNK = re.compile(r"\S+")
PARTICLES = frozenset({"away", "back", "down", "off", "out", "over", "up"})
"""Words that form an expression with the word before: "make up", "shows off"."""
CLOSED = re.compile(r"[.!?…][\"'”’)]*$")
BEHIND = re.compile(r"[,.;:!?]?(?:\s(?![-–—/])|$)")
BEFORE = re.compile(r"(?<![-–—/]) $")


@dataclass(frozen=True, slots=True)
class DraftEdit:
    """A replaced word of the seed, its offset there, and its replacement."""

    offset: int
    old: str
    new: str


@dataclass(frozen=True, eq=False)
class SeedContext:
    """The tokens and tags of a seed, and which of its words may be replaced."""

    seed: Seed
    antecedent: bool = False
    """Whether the head of the antecedent may be replaced too."""

    @cached_property
    def _tokenized(self) -> tuple[list[str], list[int]]:
        return tokenize(self.seed.accepted.sentence)

    @property
    def tokens(self) -> list[str]:
        return self._tokenized[0]

    @property
    def starts(self) -> list[int]:
        """The offset of each token in the seed."""
        return self._tokenized[1]

    @cached_property
    def tags(self) -> list[str]:
        return tag(self.tokens)

    @cached_property
    def link(self) -> Span:
        """The tokens of the antecedent: the nearest before the pronoun, else the first after it."""
        accepted = self.seed.accepted
        begin = accepted.sentence.rfind(accepted.antecedent, 0, accepted.offset)
        if begin < 0:
            begin = accepted.sentence.index(accepted.antecedent)
        end = begin + len(accepted.antecedent)
        inside = [i for i, start in enumerate(self.starts) if begin <= start < end]
        return inside[0], inside[-1] + 1

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The tokens that may be replaced: words after a space that are not part of another."""
        text, head = self.seed.accepted.sentence, self.tokens[self.link[1] - 1].lower()
        return tuple(
            i
            for i, (word, start, mark) in enumerate(
                zip(self.tokens, self.starts, self.tags, strict=True)
            )
            if can_replace(word, mark)
            and (self.antecedent or word.lower() != head)
            and BEFORE.search(text, 0, start)
            and BEHIND.match(text, start + len(word))
            and "".join(self.tokens[i + 1 : i + 2]).lower() not in PARTICLES
        )


@dataclass(frozen=True)
class Draft:
    """A seed with some tokens replaced; `changes` has their positions, in order, and new words."""

    context: SeedContext
    changes: tuple[tuple[int, str], ...] = ()

    @cached_property
    def text(self) -> str:
        """The sentence with the pronoun of the seed."""
        return self.with_words({})

    def with_words(self, words: Mapping[int, str], pronoun: str | None = None) -> str:
        """The sentence with more tokens replaced and, if given, another pronoun."""
        context, accepted = self.context, self.context.seed.accepted
        text, end = [], 0
        replacements = {**dict(self.changes), **words}
        if pronoun is not None:
            replacements[context.starts.index(accepted.offset)] = pronoun
        for position in sorted(replacements):
            text += [accepted.sentence[end : context.starts[position]], replacements[position]]
            end = context.starts[position] + len(context.tokens[position])
        return "".join([*text, accepted.sentence[end:]])

    @property
    def phrase(self) -> str:
        """The clause around the pronoun, without its gender and without the antecedent."""
        accepted, (first, end) = self.context.seed.accepted, self.context.link
        begin, last = self._starts[first], end - 1
        antecedent = self.text[begin : self._starts[last] + len(self._tokens[last])]
        return behaviour(self.text, accepted.pronoun, self.offset, antecedent)[0]

    @property
    def offset(self) -> int:
        """The offset of the pronoun in the text."""
        before = [
            len(word) - len(self.context.tokens[position])
            for position, word in self.changes
            if self.context.starts[position] < self.context.seed.accepted.offset
        ]
        return self.context.seed.accepted.offset + sum(before)

    def masked(self, mask: str = "[MASK]") -> str:
        """The sentence with the pronoun masked."""
        return self.with_words({}, mask)

    @property
    def open_positions(self) -> tuple[int, ...]:
        """The tokens that may still be replaced."""
        done = dict(self.changes)
        return tuple(position for position in self.context.positions if position not in done)

    @property
    def edits(self) -> tuple[DraftEdit, ...]:
        context = self.context
        return tuple(
            DraftEdit(context.starts[i], context.tokens[i], word) for i, word in self.changes
        )

    @cached_property
    def chunks(self) -> tuple[list[Span], int]:
        """The spans between spaces, and the index of the span with the pronoun."""
        spans = [match.span() for match in CHUNK.finditer(self.text)]
        at = self.offset
        return spans, next(i for i, (start, end) in enumerate(spans) if start <= at < end)

    def near_chunks(self, reach: int) -> list[int]:
        """The chunks at most `reach` away from a chunk with a replaced token."""
        starts = [self._starts[position] for position, _ in self.changes]
        spans, _ = self.chunks
        hit = [i for i, (begin, end) in enumerate(spans) if any(begin <= s < end for s in starts)]
        return [i for i in range(len(spans)) if any(abs(i - k) <= reach for k in hit)]

    def fits(self, position: int, word: str) -> bool:
        """Whether a word may replace a token, judged by the words alone.

        It must have the form of the old word, be new to the sentence, and leave "a" or "an"
        before it unchanged.
        """
        old = self.context.tokens[position]
        if not can_insert(word) or not same_form(old, word, self.context.tags[position]):
            return False
        others = (t.lower() for i, t in enumerate(self._tokens) if i != position)
        if any(share_stem(word, other) for other in others):
            return False
        start = self._starts[position]
        return article_edit(self.text, start, old, word) is None

    def edited(self, position: int, word: str) -> Draft:
        """A draft with one more token replaced."""
        return Draft(self.context, tuple(sorted((*self.changes, (position, word)))))

    @property
    def same_tags(self) -> bool:
        """Whether every token has the same tag as in the seed."""
        return tag(self._tokens) == self.context.tags

    def check(self, filter: Filter) -> Accepted | None:  # noqa: A002
        """The result of the structural filter if it links the pronoun as in the seed, else None."""
        result = filter.sentence(self.text)
        first, end = self.context.link
        begin, last = self._starts[first], end - 1
        antecedent = self.text[begin : self._starts[last] + len(self._tokens[last])]
        if not isinstance(result, Accepted) or result.antecedent != antecedent:
            return None
        return result if result.offset == self.offset else None

    @property
    def _tokens(self) -> list[str]:
        tokens = list(self.context.tokens)
        for position, word in self.changes:
            tokens[position] = word
        return tokens

    @cached_property
    def _starts(self) -> list[int]:
        starts, moved = [], 0
        changes = dict(self.changes)
        for position, start in enumerate(self.context.starts):
            starts.append(start + moved)
            if position in changes:
                moved += len(changes[position]) - len(self.context.tokens[position])
        return starts


DIGITS = 6
"""Decimals of the results: further decimals depend on the batch."""
NEAR = 1
"""Largest distance in words from a replaced word that counts as near."""
QUERY_FACTOR = 5
MIN_QUERIED = 100
"""Tokens queried per position: a multiple of the fills, since most do not fit, or this many."""


@dataclass(frozen=True, slots=True)
class DraftSlot:
    """The scores of the model at the pronoun of a sentence."""

    bias: float
    likeliest: float
    """The probability of the likeliest gender word there."""
    bias_top: float
    """The bias by the top k alone, nan where no gender word is among them."""
    name: str
    """subject, object, possessive or reflexive"""


NO_PHRASE = DraftSlot(0.5, 1.0, float("nan"), "")


@dataclass(frozen=True, slots=True)
class DraftProposal:
    """A word for a position, and its expected effect.

    `effect` is the change of the log odds of male to female, `loss` the decrease of the log
    probability of the word at that position (0 if it increases).
    """

    position: int
    word: str
    effect: float
    loss: float


class Fluency(NamedTuple):
    r"""Two factors by which a draft is less likely than its seed, per word except the pronoun.

    With $\ell(w)$ the log probability of a word given all others except the pronoun: `loss` is
    $\exp\frac1n\sum_w\max(0, \ell_{seed}(w) - \ell_{draft}(w))$, at least 1, where words that
    become likelier do not compensate for others (a rare word that becomes common would otherwise
    offset nonsense elsewhere); `ratio` is the same without the maximum: the pseudo-perplexity
    relative to that of the seed.
    """

    loss: float
    ratio: float


Guide = Literal["pronouns", "phrases"]
"""What a search maximises: the pronoun score, or the association of the behaviour phrase."""


@dataclass
class DraftScorer:
    """Scores drafts with a model and caches the scores."""

    model: MaskedLM
    fills: int = 20
    likely: float = 0.1
    top_k: int = 10
    guide: Guide = "pronouns"
    cache: Cache | None = None
    progress: Progress | None = None
    _phrases: dict[str, DraftSlot] = field(default_factory=dict)
    _slots: dict[str, DraftSlot] = field(default_factory=dict)
    _continued: dict[str, DraftSlot | None] = field(default_factory=dict)
    _words: dict[str, dict[int, float]] = field(default_factory=dict)
    _proposals: dict[str, list[DraftProposal]] = field(default_factory=dict)
    _queried: int = 0

    def can_read(self, draft: Draft) -> bool:
        """Whether the model can score a sentence: not too long, without unknown words."""
        try:
            mask_query(self.model, draft.masked())
            rows(self.model, [(draft.text, draft.chunks[0])])
        except InputError:
            return False
        return True

    def slots(self, drafts: Iterable[Draft]) -> list[DraftSlot]:
        """Score the masked pronoun of each draft."""
        texts = [draft.masked() for draft in drafts]
        new = [text for text in dict.fromkeys(texts) if text not in self._slots]
        if new:
            p = probabilities(
                self.model,
                new,
                top_k=self.top_k,
                cache=self.cache,
                progress=self._shifted_progress(),
            )
            for text, name, scores in zip(new, p.slots(), _scores(p).round(DIGITS), strict=True):
                full, best, top = scores.tolist()
                self._slots[text] = DraftSlot(full, best, top, str(name))
        return [self._slots[text] for text in texts]

    def guided(self, drafts: Iterable[Draft]) -> list[DraftSlot]:
        """Score drafts by what the search maximises."""
        return self.phrases(drafts) if self.guide == "phrases" else self.slots(drafts)

    def phrases(self, drafts: Iterable[Draft]) -> list[DraftSlot]:
        r"""Score the behaviour phrase of each draft: its association with words for men and women.

        $1 / (1 + \exp(-s / \sigma))$, s the association of the centred embedding (Ye et al. 2021)
        and sigma its standard deviation over the built-in phrases. A draft without a phrase has .5.
        """
        texts = [draft.phrase for draft in drafts]
        new = [text for text in dict.fromkeys(texts) if text and text not in self._phrases]
        if new:
            embed, space, scale = self._phrase_space
            vectors = unit(np.array(embed(new), dtype=float) - space.control.mean(axis=0))
            scores = association(vectors, *space.unit_vectors(centred=True)[1:]) / scale
            for text, score in zip(new, (1 / (1 + np.exp(-scores))).round(DIGITS), strict=True):
                self._phrases[text] = DraftSlot(float(score), 1.0, float("nan"), "")
        return [self._phrases.get(text, NO_PHRASE) for text in texts]

    @cached_property
    def _phrase_space(self) -> tuple[Embed, EmbeddedPhrases, float]:
        """How texts are embedded, the built-in phrases, and the sd of their associations."""
        if not isinstance(self.model, EmbedsTexts):
            raise InputError(f"guide: expected a model that embeds texts, got '{self.model.name}'")
        space = embed_phrases(self.model.embed, phrases(), source=self.model.name)
        return self.model.embed, space, float(space.associations(centred=True).std(ddof=1))

    def continued(self, drafts: Iterable[Draft]) -> list[DraftSlot | None]:
        """Score the masked pronouns of the built-in continuations of each draft: their means.

        The pronoun of the draft is masked too, so that only its other words can tell the gender of
        the person. The search scores no continuation. None where the model cannot score one.
        """
        listed = list(drafts)
        new = {d.masked(): d for d in listed if d.masked() not in self._continued}
        continuations = pronoun_sentences().continuations
        queries: dict[str, list[tuple[str, MaskedPosition]]] = {}
        for masked, draft in new.items():
            try:
                queries[masked] = [self._continuation(draft, text) for text in continuations]
            except InputError:
                self._continued[masked] = None
        asked = [query for several in queries.values() for query in several]
        if asked:
            p = query_masks(
                self.model,
                [text for text, _ in asked],
                [position for _, position in asked],
                top_k=self.top_k,
                cache=self.cache,
                progress=self._shifted_progress(),
            )
            table = _scores(p).reshape(len(queries), len(continuations), 3)
            for masked, scores in zip(queries, table, strict=True):
                full, best, top = map(_known_mean, scores.T)
                self._continued[masked] = DraftSlot(full, best, top, "")
        return [self._continued[draft.masked()] for draft in listed]

    def _continuation(self, draft: Draft, text: str) -> tuple[str, MaskedPosition]:
        """A draft with a continuation, and the position of its mask, both pronouns masked."""
        sentence = draft.text.rstrip()
        whole = f"{sentence}{'' if CLOSED.search(sentence) else '.'} {text}"
        position = mask_query(self.model, whole)
        begin = draft.offset
        own = row(self.model, sentence, [(begin, begin + len(draft.context.seed.accepted.pronoun))])
        start, stop = own.spans[0]
        if position.ids[start:stop] != own.pieces(0):
            raise InputError(f"'{whole[:60]}': expected the pieces of the sentence alone")
        mask = int(self.model.tokenizer.mask_token_id)
        ids = (*position.ids[:start], mask, *position.ids[stop:])
        return whole, MaskedPosition(ids, position.position - (stop - start - 1))

    def fluency(self, drafts: Sequence[Draft], limit: float) -> list[Fluency | None]:
        """Compute how much less likely each draft is than its seed; None above the limit.

        The words near a replaced word are queried first: losses only add up, so a draft whose near
        words already exceed the limit needs no further queries.
        """
        pairs = [(draft, Draft(draft.context)) for draft in drafts]
        near = [draft.near_chunks(NEAR) for draft in drafts]
        self._query_words(
            [(draft, n) for pair, n in zip(pairs, near, strict=True) for draft in pair]
        )
        bounds = [_others(draft) * np.log(limit) + 1e-9 for draft in drafts]
        promising = [
            i
            for i, pair in enumerate(pairs)
            if np.maximum(self._word_losses(*pair, near[i]), 0).sum() <= bounds[i]
        ]
        self._query_words(
            [(draft, range(len(draft.chunks[0]))) for i in promising for draft in pairs[i]]
        )
        result: list[Fluency | None] = [None] * len(pairs)
        for i in promising:
            losses = self._word_losses(*pairs[i], range(len(drafts[i].chunks[0])))
            means = np.maximum(losses, 0).sum(), losses.sum()
            if means[0] <= bounds[i]:
                n = _others(drafts[i])
                result[i] = Fluency(*(round(float(np.exp(mean / n)), DIGITS) for mean in means))
        return result

    def _word_losses(self, draft: Draft, seed: Draft, chunks: Sequence[int]) -> Floats:
        before, after = self._words[seed.text], self._words[draft.text]
        return np.array([before[i] - after[i] for i in chunks])

    def _query_words(self, requests: Sequence[tuple[Draft, Sequence[int]]]) -> None:
        r"""Query $\ell(w) = \log P(w \mid s_{\setminus w, pronoun})$ of words between spaces.

        A word of several pieces is read from left to right (Salazar et al. 2020, Kauf & Ivanova
        2023). The pronoun is always masked and counts 0: a draft is not less fluent because its
        bias is against the pronoun of the seed.
        """
        drafts = {draft.text: draft for draft, _ in requests}
        for text, draft in drafts.items():
            self._words.setdefault(text, {draft.chunks[1]: 0.0})
        requested = ((draft.text, i) for draft, chunks in requests for i in chunks)
        queries = [
            query for query in dict.fromkeys(requested) if query[1] not in self._words[query[0]]
        ]
        texts = list(dict.fromkeys(text for text, _ in queries))
        token_rows = rows(self.model, [(text, drafts[text].chunks[0]) for text in texts])
        row_of = dict(zip(texts, token_rows, strict=True))
        word_queries = [
            WordQuery(row_of[text], i, (drafts[text].chunks[1],)) for text, i in queries
        ]
        if word_queries:
            values = word_log_probs(
                self.model, word_queries, cache=self.cache, progress=self._shifted_progress()
            )
            for (text, i), value in zip(queries, values, strict=True):
                self._words[text][i] = float(value)

    def proposals(self, drafts: Iterable[Draft]) -> list[list[DraftProposal]]:
        r"""Find the likeliest fitting words for each open position of each draft.

        Words are ranked by the mean of $P(w \mid he)$ and $P(w \mid she)$, with either pronoun in
        the sentence. The same two queries give the effect of all words at once, since by Bayes'
        rule the log odds of *he* to *she* at the pronoun change by
        $\log\frac{P(w\mid he)}{P(w\mid she)} - \log\frac{P(w_0\mid he)}{P(w_0\mid she)}$ when w
        replaces $w_0$. (The conditionals of a masked model need not be consistent: the effect
        selects candidates and is never reported.)
        """
        listed = list(drafts)
        new = {d.text: d for d in listed if d.text not in self._proposals}
        slots = self.slots(new.values())
        queries: list[MaskedPosition] = []
        for draft, slot in zip(new.values(), slots, strict=True):
            pair = SLOTS[slot.name or "possessive"]
            for position in draft.open_positions:
                hidden = {position: "[MASK]"}
                queries += [cloze(self.model, draft.with_words(hidden, word)) for word in pair]
        k = min(max(QUERY_FACTOR * self.fills, MIN_QUERIED), len(self.model.tokenizer))
        answers: Iterator[dict[int, float]] = iter(())
        if queries:
            top = top_k(self.model, queries, k, cache=self.cache, progress=self._shifted_progress())
            found = zip(top.ids.tolist(), top.log_probs.tolist(), strict=True)
            answers = (dict(zip(ids, log_probs, strict=True)) for ids, log_probs in found)
        for text, draft in new.items():
            self._proposals[text] = [
                proposal
                for position in draft.open_positions
                for proposal in self._fitting(draft, position, next(answers), next(answers))
            ]
        return [self._proposals[draft.text] for draft in listed]

    @cached_property
    def _insertable(self) -> dict[int, str]:
        return fills(self.model)

    def _fitting(
        self, draft: Draft, position: int, male: dict[int, float], female: dict[int, float]
    ) -> list[DraftProposal]:
        """The likeliest words that fit; a token outside the top k counts as the last of them."""
        words = self._insertable
        lowest = min(male.values()), min(female.values())

        def both(token: int) -> tuple[float, float]:
            return male.get(token, lowest[0]), female.get(token, lowest[1])

        old = draft.context.tokens[position]
        before = next((both(t) for t in (*male, *female) if words.get(t) == old), None)
        known = {t for t in (*male, *female) if t in words}
        likely = sorted(known, key=lambda t: (-float(np.logaddexp(*both(t))), words[t]))
        proposals: list[DraftProposal] = []
        best = -np.inf if before is None else float(np.logaddexp(*before))
        for token in likely:
            mean = float(np.logaddexp(*both(token)))
            if len(proposals) == self.fills or np.exp(mean - best) < self.likely:
                break
            if not draft.fits(position, words[token]):
                continue
            best = max(best, mean)
            male_log_prob, female_log_prob = both(token)
            effect, loss = male_log_prob - female_log_prob, 0.0
            if before is not None:
                effect -= before[0] - before[1]
                loss = max(0.0, float(np.logaddexp(*before)) - mean)
            proposals.append(DraftProposal(position, words[token], round(effect, DIGITS), loss))
        return proposals

    def _shifted_progress(self) -> Progress | None:
        """Progress over all queries so far, so that it never decreases."""
        if self.progress is None:
            return None
        progress, before = self.progress, self._queried

        def shifted(done: int, total: int) -> None:
            self._queried = before + total
            progress(before + done, before + total)

        return shifted


def _scores(p: Probabilities) -> Floats:
    """Bias, probability of the likeliest gender word, and bias by the top k, of each query."""
    full, top = bias(p.p_male, p.p_female), bias(p.p_male_top, p.p_female_top)
    return np.column_stack([full, np.maximum(p.p_male, p.p_female), top])


def _known_mean(values: Floats) -> float:
    """The mean of the values that are known, nan if none is."""
    known = values[np.isfinite(values)]
    return round(float(known.mean()), DIGITS) if known.size else float("nan")


def _others(draft: Draft) -> int:
    """The number of words besides the pronoun."""
    return max(len(draft.chunks[0]) - 1, 1)
