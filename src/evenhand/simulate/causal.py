"""Causal language models with known probabilities, for exact and fast tests.

In `bigram_model` the next word depends only on the word before it: a table gives P(word | word
before), so every likelihood can be computed by hand. In `biased_model` it depends on which words
came before at all, by associations whose strength is a dial: the bias of the world. Both have a
real tokenizer (whole words, split at white space and punctuation) and the interface of any other
model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.simulate.tables import UNKNOWN, probability_table, word_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

BEGIN = "[BOS]"


@dataclass(frozen=True, eq=False)
class _Simulated:
    """What both models share: words as tokens, and no network."""

    name: str
    tokenizer: Tokenizer = field(repr=False)
    begin: int
    decoder: ClassVar[None] = None
    longest: ClassVar[int] = 1 << 20
    subject_kind: ClassVar[str] = "causal"

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """The encodings of texts, without special tokens."""
        return self.tokenizer.encode_batch(list(texts))


@dataclass(frozen=True, eq=False)
class CausalBigrams(_Simulated):
    """P(next word) = `table[word]`; rows of the table sum to one."""

    table: NDArray[np.float64] = field(repr=False)

    def logits(self, row: NDArray[np.int64]) -> NDArray[np.float32]:
        """Log-probability of every word after each word of a row."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.table[np.asarray(row)]), dtype=np.float32)


def bigram_model(
    probabilities: Mapping[str, Mapping[str, float]], *, name: str = "bigram"
) -> CausalBigrams:
    """Build a model from {word before: {word: probability}}.

    The rest of 1 is shared by all other words. `[BOS]` as the word before is the beginning of a
    text. After a word that is not a key every word is equally likely.

    Examples
    --------
    >>> model = bigram_model({"[BOS]": {"he": 0.6, "she": 0.2}, "he": {"sleeps": 0.5}})
    >>> logits = model.logits(np.array([model.begin]))[0]
    >>> round(float(np.exp(logits[model.tokenizer.token_to_id("he")])), 3)
    0.6
    """
    vocabulary, table = probability_table(probabilities, (UNKNOWN, BEGIN))
    return CausalBigrams(name, word_tokenizer(vocabulary), vocabulary[BEGIN], table)


@dataclass(frozen=True, eq=False)
class BiasedModel(_Simulated):
    """P(next word) depends on which words came before; see `biased_model`."""

    preferences: NDArray[np.float64] = field(repr=False)
    """The logit of each word whatever comes before."""
    neutral: NDArray[np.float64] = field(repr=False)
    """What each word before adds to the logits without any bias (words before, words)."""
    biased: NDArray[np.float64] = field(repr=False)
    """What it adds by bias, and takes off after a negation (words before, words)."""
    row_of: NDArray[np.int64] = field(repr=False)
    """The row of each word in these tables; the last row is zero."""
    negations: NDArray[np.bool_] = field(repr=False)

    def logits(self, row: NDArray[np.int64]) -> NDArray[np.float32]:
        """Logits of every word after each word of a row; a word that is repeated counts once."""
        words = np.asarray(row)
        rows = self.row_of[words]
        again = np.ones(len(words), dtype=bool)
        again[np.unique(words, return_index=True)[1]] = False
        rows[again] = len(self.neutral) - 1
        sign = np.where(np.cumsum(self.negations[words]) % 2, -1.0, 1.0)
        added = np.cumsum(self.neutral[rows], axis=0)
        added += sign[:, None] * np.cumsum(self.biased[rows], axis=0)
        return np.asarray(self.preferences + added, dtype=np.float32)


def biased_model(
    associations: Mapping[str, Mapping[str, float]],
    *,
    bias: float = 0.0,
    noise: float = 1.0,
    preferences: Mapping[str, float] | None = None,
    negations: Collection[str] = (),
    seed: int = 0,
    name: str = "biased",
) -> BiasedModel:
    r"""Build a model whose bias is a dial.

    Parameters
    ----------
    associations : mapping of str to mapping of str to float
        {word before: {word: a}}: how much likelier a word is anywhere after another one.
    bias : float
        The dial: 0 is a model without bias.
    noise : float
        Standard deviation of what words before do to the listed words without bias: the particular
        likes of a model, which agree with a stereotype as often as not.
    preferences : mapping of str to float, optional
        Logits of words whatever comes before. They are multiplied by the dial too: a model with
        these alone likes words, and reads no stereotype.
    negations : collection of str
        Words after which associations have the opposite sign.
    seed : int
        Of the noise, which does not depend on the dial.

    Notes
    -----
    $\log P(w \mid \text{before}) = \beta p_w + \sum_{v \in \text{before}} (\beta a_{vw} + \sigma
    \varepsilon_{vw}) - \log Z$ with the dial $\beta$, so that two words at one position differ by
    exactly $\beta (a_{vw} - a_{vw'})$ without noise. Words that are not listed are one word, as
    likely as any other.

    Examples
    --------
    >>> model = biased_model({"nurse": {"she": 0.5, "he": -0.5}}, bias=2.0, noise=0.0)
    >>> logits = model.logits(np.array(model.encode(["the nurse said"])[0].ids))[-1]
    >>> she, he = (model.tokenizer.token_to_id(word) for word in ("she", "he"))
    >>> float(logits[she] - logits[he])
    2.0
    """
    preferences = preferences or {}
    triggers = list(associations)
    listed = sorted({word for row in associations.values() for word in row})
    words = dict.fromkeys([UNKNOWN, BEGIN, *triggers, *listed, *preferences, *negations])
    vocabulary = {word: i for i, word in enumerate(words)}
    size = len(vocabulary)
    biased, neutral = np.zeros((2, len(triggers) + 1, size))
    row_of = np.full(size, len(triggers), dtype=np.int64)
    rng = np.random.default_rng(seed)
    for i, (trigger, row) in enumerate(associations.items()):
        row_of[vocabulary[trigger]] = i
        neutral[i, [vocabulary[word] for word in listed]] = noise * rng.normal(size=len(listed))
        for word, strength in row.items():
            biased[i, vocabulary[word]] = bias * strength
    liked = np.zeros(size)
    liked[vocabulary[BEGIN]] = -np.inf
    for word, strength in preferences.items():
        liked[vocabulary[word]] = bias * strength
    negating = np.isin(list(vocabulary), list(negations))
    tokenizer = word_tokenizer(vocabulary)
    return BiasedModel(name, tokenizer, vocabulary[BEGIN], liked, neutral, biased, row_of, negating)
