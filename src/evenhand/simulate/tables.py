"""What simulated models share: tables of P(word | word before), and a tokenizer of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, require_models

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN = "[UNK]"


def probability_table(
    probabilities: Mapping[str, Mapping[str, float]], special: Sequence[str]
) -> tuple[dict[str, int], NDArray[np.float64]]:
    """The vocabulary, special tokens first, and P(word | word before) (words, words).

    The rest of 1 is shared by all other words that are not special. After a word that is not a key
    every word is equally likely.
    """
    words = dict.fromkeys([*special, *probabilities])
    for row in probabilities.values():
        words.update(dict.fromkeys(row))
    vocabulary = {word: i for i, word in enumerate(words)}
    plain = np.array([word not in special for word in vocabulary])
    table = np.tile(plain / plain.sum(), (len(vocabulary), 1))
    for before, row in probabilities.items():
        given = np.zeros(len(vocabulary))
        for word, probability in row.items():
            given[vocabulary[word]] = probability
        rest = plain & (given == 0)
        left = 1 - given.sum()
        if given.min() < 0 or left < -1e-12 or (left > 1e-12 and not rest.any()):
            raise InputError(
                f"after '{before}': expected probabilities that sum to at most 1, got {dict(row)}"
            )
        table[vocabulary[before]] = given + (
            max(left, 0.0) * rest / rest.sum() if rest.any() else 0
        )
    return vocabulary, table


def word_tokenizer(vocabulary: Mapping[str, int]) -> Tokenizer:
    """A tokenizer of whole words in lower case, split at white space and punctuation."""
    require_models("a simulated language model")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel(dict(vocabulary), unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
