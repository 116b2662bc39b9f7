"""What the model under test says of drafts: their bias, their fluency, words for their places.

All drafts of a step are asked about together, and nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.lexicon.pronouns import SLOTS
from evenhand.masked.gender_words import mask_query, probabilities
from evenhand.masked.generate.drafts import Draft
from evenhand.masked.generate.words import fills
from evenhand.masked.metrics.pronouns import bias
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Place, Progress, top_k
from evenhand.masked.words import Question, cloze, rows, word_log_probs

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = ["Asker", "Fluency", "Proposal", "Slot"]

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
