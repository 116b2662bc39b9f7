"""A causal language model with known probabilities, for exact and fast tests.

The next word depends only on the word before it: a table gives P(word | word before), so a bias of
any size can be set and every likelihood computed by hand. It has a real tokenizer (whole words,
split at white space and punctuation) and the interface of any other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.simulate.tables import probability_table

__all__ = ["BEGIN", "BigramModel", "bigram_model"]

UNKNOWN, BEGIN = "[UNK]", "[BOS]"


@dataclass(frozen=True, eq=False)
class BigramModel:
    """P(next word) = `table[word]`; rows of the table sum to one."""

    name: str
    tokenizer: Any = field(repr=False)
    table: NDArray[np.float64] = field(repr=False)
    begin: int
    decoder: ClassVar[None] = None
    longest: ClassVar[int] = 1 << 20
    subject_kind: ClassVar[str] = "causal"

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """The encodings of texts, without special tokens."""
        encoded: list[Any] = self.tokenizer.encode_batch(list(texts))
        return encoded

    def logits(self, row: NDArray[Any]) -> NDArray[np.float32]:
        """Log-probability of every word after each word of a row."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.table[np.asarray(row)]), dtype=np.float32)


def bigram_model(
    probabilities: Mapping[str, Mapping[str, float]], *, name: str = "bigram"
) -> BigramModel:
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
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary, table = probability_table(probabilities, (UNKNOWN, BEGIN))
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return BigramModel(name, tokenizer, table, vocabulary[BEGIN])
