"""The structural-bias filter: sentences whose one gendered pronoun stands for a neutral word.

After Ye et al. (2021), "Adversarial Examples Generation for Reducing Implicit Gender Bias in
Pre-trained Models", §2.1 and §3.2, in four steps: exactly one gendered pronoun; no other sex
indicator; a coreference group of two expressions, the pronoun and one that is not "someone"; the
pronoun masked. What is left links a gendered pronoun to a gender-neutral term in a context free of
gender, so that whoever fills the mask makes an assumption.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand.instruments import check_options, documented, option
from evenhand.lexicon.first_names import names
from evenhand.lexicon.gendered import sex_indicators
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.text.block import Block, Done
from evenhand.text.coreference import THRESHOLD, Link, Resolver, kind_of, resolver
from evenhand.text.corpus.compression import SURROGATE
from evenhand.text.people import find_people
from evenhand.text.tokens import WordIndex, Words, protected, sentences, tokenize
from evenhand.text.vocabulary import LISTS

MAN = re.compile(r"[a-z]{2,}-?(?:wo)?m[ae]n")
NOT_MAN = LISTS["not_man"]
TELLING = LISTS["telling"]


@cache
def indicator_index() -> WordIndex:
    """The listed words that state a sex, pronouns left out, each a single word."""
    return WordIndex(
        word
        for word in sex_indicators()
        if word.isascii() and word.isalnum() and word not in PRONOUNS
    )


def stated_sex(tokens: Sequence[str]) -> str:
    """The first word that states a sex without being listed: "crewman", "bearded", "Martina".

    >>> stated_sex("The crewman lifts his hat .".split()), stated_sex("The human sits .".split())
    ('crewman', '')
    """
    known = names()
    listed = sex_indicators()
    for token in tokens:
        low = token.lower()
        if low in PRONOUNS:
            continue
        if low in TELLING or low in listed or (MAN.fullmatch(low) and low not in NOT_MAN):
            return token
        if token[:1].isupper() and token not in known.ambiguous and known.gender(token):
            return token
    return ""


STEPS = ("read", "one_pronoun", "no_other_indicator", "linked", "accepted")
"""The funnel: what is left after each step."""

RULES = {
    "no_pronoun": {"step": "read", "text": "no gendered pronoun"},
    "several_pronouns": {"step": "read", "text": "more than one gendered pronoun"},
    "other_indicator": {"step": "one_pronoun", "text": "another word states a sex"},
    "unresolved": {
        "step": "no_other_indicator",
        "text": "no antecedent in the sentence that the resolver is sure of",
    },
    "group_size": {
        "step": "no_other_indicator",
        "text": "the coreference group has more than two expressions",
    },
    "someone": {"step": "linked", "text": "the antecedent is someone or similar"},
    "name": {"step": "linked", "text": "the antecedent is a person's name"},
}
"""Why a sentence is rejected: of each reason the step that it leaves, and its words."""
REASONS = {name: rule["text"] for name, rule in RULES.items()}
STEP_OF = {name: rule["step"] for name, rule in RULES.items()}

Spans = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A sentence with structural bias, and its pronoun masked."""

    sentence: str
    masked: str
    pronoun: str
    offset: int
    antecedent: str
    confidence: float | None
    resolver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A sentence that was left out, why (a key of `REASONS`), and the word at fault, if any."""

    sentence: str
    reason: str
    word: str = ""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The structural filter with its settings, called on blocks of documents or on one sentence.

    With `log` the rejected sentences are written too. Without `split` a document is a sentence.

    Examples
    --------
    >>> Filter().sentence("The drummer sits at the back of the stage tapping her foot.").masked
    'The drummer sits at the back of the stage tapping [MASK] foot.'
    >>> Filter().sentence("A girl took her kite to the beach.").reason
    'other_indicator'

    """

    resolver: str = option(
        "rules",
        metavar="NAME",
        help="What finds the antecedent: rules, fastcoref[:MODEL], coreferee:MODEL or spacy:MODEL.",
    )
    someone: bool = option(
        False, flag="--keep-someone", help='Accept antecedents such as "someone".'
    )
    names: bool = option(
        False, flag="--keep-names", help="Accept antecedents that are a person's name."
    )
    min_confidence: float = option(
        THRESHOLD, minimum=0, maximum=1, help="Links with less confidence are rejected."
    )
    mask: str = option("[MASK]", help="What the pronoun becomes.")
    split: bool = option(
        False, flag="--split-sentences", help="Cut each document into its sentences."
    )
    log: bool = False

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, block: Block) -> Done:
        """The accepted and, with `log`, the rejected sentences, one JSON line each, and counts."""
        spans, owner = self._sentences(block)
        block_words = Words(block.text)
        starts, _ = _pronouns().find(block_words)
        owners = np.searchsorted(spans[:, 0], starts, side="right") - 1
        number = np.bincount(owners, minlength=len(spans))
        first = np.zeros(len(spans), dtype=np.int64)
        first[owners] = np.arange(len(owners))
        indicator_owners = (
            np.searchsorted(spans[:, 0], indicator_index().find(block_words)[0], side="right") - 1
        )
        other = np.bincount(indicator_owners, minlength=len(spans)) > 0
        counts = Counter(read=len(spans))
        counts["reason:no_pronoun"] = int((number == 0).sum())
        counts["reason:several_pronouns"] = int((number > 1).sum())
        counts["reason:other_indicator"] = int(((number == 1) & other).sum())
        out: list[str] = []
        rejected: list[str] = []
        chosen = range(len(spans)) if self.log else np.flatnonzero((number == 1) & ~other).tolist()
        for k in chosen:
            begin, end = spans[k].tolist()
            sentence = block.text[begin:end]
            where = {"line": block.line(int(owner[k])), "source": block.source}
            result: Accepted | Rejected
            if number[k] == 1 and not other[k]:
                result = self._judge(sentence, int(starts[first[k]]) - begin)
                if isinstance(result, Rejected):
                    counts["reason:" + result.reason] += 1
            else:
                result = self.sentence(sentence)
            (out if isinstance(result, Accepted) else rejected).append(_line(where, result))
        counts.update(_funnel(counts))
        return Done("".join(out), "".join(rejected) if self.log else "", counts)

    def sentence(self, sentence: str) -> Accepted | Rejected:
        """The decision on one sentence."""
        sentence_words = Words(sentence)
        starts, _ = _pronouns().find(sentence_words)
        if len(starts) != 1:
            reason = "several_pronouns" if len(starts) else "no_pronoun"
            return Rejected(sentence=sentence, reason=reason)
        indicators, ends = indicator_index().find(sentence_words)
        if len(indicators):
            word = sentence[indicators[0] : ends[0]]
            return Rejected(sentence=sentence, reason="other_indicator", word=word)
        return self._judge(sentence, int(starts[0]))

    def _sentences(self, block: Block) -> tuple[Spans, Spans]:
        """The spans of the sentences, blank ones left out, and the document of each."""
        spans: list[tuple[int, int]] = []
        owner: list[int] = []
        for index in range(len(block)):
            begin, end = block.span(index)
            document = block.text[begin:end]
            if self.split:
                pieces = [(begin + s, begin + e) for s, e in sentences(document)]
            else:
                pieces = [(begin, end)] if document.strip() else []
            spans.extend(pieces)
            owner.extend([index] * len(pieces))
        return np.array(spans, dtype=np.int64).reshape(-1, 2), np.array(owner, dtype=np.int64)

    def _judge(self, sentence: str, offset: int) -> Accepted | Rejected:
        """Steps two to four for a sentence with one pronoun and none of the listed indicators."""
        tokens, starts = tokenize(sentence)
        word = stated_sex(tokens)
        if word:
            return Rejected(sentence=sentence, reason="other_indicator", word=word)
        if offset not in starts or tokens[starts.index(offset)].lower() not in PRONOUNS:
            return Rejected(sentence=sentence, reason="no_pronoun")
        i = starts.index(offset)
        if protected(sentence, offset, offset + len(tokens[i])):
            return Rejected(sentence=sentence, reason="no_pronoun")
        link = _resolver(self.resolver)(tokens, i)
        reason = self._reason(link, tokens)
        if link is None or reason:
            antecedent = link.text if link is not None else ""
            return Rejected(sentence=sentence, reason=reason or "unresolved", word=antecedent)
        end = offset + len(tokens[i])
        last = link.end - 1
        span = starts[link.start], starts[last] + len(tokens[last])
        named = _named_before(sentence, offset, span) if self.resolver == "rules" else ""
        if named:
            return Rejected(sentence=sentence, reason="unresolved", word=named)
        return Accepted(
            sentence=sentence,
            masked=sentence[:offset] + self.mask + sentence[end:],
            pronoun=tokens[i],
            offset=offset,
            antecedent=sentence[slice(*span)],
            confidence=link.confidence,
            resolver=self.resolver,
        )

    def _reason(self, link: Link | None, tokens: list[str]) -> str:
        """Why a link is rejected, or nothing."""
        if link is None or (link.confidence is not None and link.confidence < self.min_confidence):
            return "unresolved"
        if link.size != 2:
            return "group_size"
        kind = kind_of(tokens[link.start : link.end])
        if kind == "someone" and not self.someone:
            return "someone"
        return "name" if kind == "name" and not self.names else ""


def _named_before(sentence: str, offset: int, antecedent: tuple[int, int]) -> str:
    """Somebody named before the pronoun, who may be meant where rules chose a noun: "Bingham
    lived with a nurse to look after her".
    """
    first, end = antecedent
    others = (p for p in find_people(sentence) if p.start < offset and not first <= p.start < end)
    return next((sentence[p.start : p.end] for p in others), "")


def _funnel(counts: Mapping[str, int]) -> dict[str, int]:
    """The number left after each step, from the number read and the reasons of rejection."""
    left = {}
    remaining = counts["read"]
    for step, following in pairwise(STEPS):
        remaining -= sum(counts.get("reason:" + r, 0) for r, at in STEP_OF.items() if at == step)
        left[following] = remaining
    return left


def _line(where: Mapping[str, object], result: Accepted | Rejected) -> str:
    """A JSON line; bytes that are not UTF-8 cannot be written as JSON and become U+FFFD."""
    fields = {name: getattr(result, name) for name in result.__slots__}
    return SURROGATE.sub("\ufffd", json.dumps({**where, **fields}, ensure_ascii=False)) + "\n"


@cache
def _pronouns() -> WordIndex:
    return WordIndex(PRONOUNS)


@cache
def _resolver(name: str) -> Resolver:
    return resolver(name, threshold=0.0)  # the filter has a threshold of its own
