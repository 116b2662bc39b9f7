"""A masked language model with known probabilities, for exact and fast tests.

The word at the mask depends only on the word before it: a table gives P(word | word before), so a
bias of any size can be set and every score computed by hand. It has a real tokenizer (whole words,
split at white space and punctuation) and the interface of any other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.simulate.tables import probability_table, word_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass(frozen=True, eq=False)
class MaskedBigrams:
    """P(word at the mask) = `table[word before]`; rows of the table sum to one."""

    name: str
    tokenizer: PreTrainedTokenizerFast
    table: NDArray[np.float64] = field(repr=False)

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> NDArray[np.float32]:
        """Log-probability of every word at one position per row, given the token before."""
        before = [row[position - 1] for row, position in zip(rows, positions, strict=True)]
        with np.errstate(divide="ignore"):
            return np.log(self.table[before]).astype(np.float32)


def bigram_model(
    probabilities: Mapping[str, Mapping[str, float]], *, name: str = "bigram"
) -> MaskedBigrams:
    """Build a model from {word before: {word: probability}}.

    The rest of 1 is shared by all other words. `[CLS]` as the word before is the beginning of a
    sentence. After a word that is not a key every word is equally likely.

    Examples
    --------
    >>> model = bigram_model({"[CLS]": {"he": 0.6, "she": 0.2}, "doctor": {"he": 0.5}})
    >>> row = model.tokenizer("[MASK] sleeps")["input_ids"]
    >>> logits = model.logits([row], [1])[0]
    >>> round(float(np.exp(logits[model.tokenizer.convert_tokens_to_ids("he")])), 3)
    0.6
    """
    vocabulary, table = probability_table(probabilities, SPECIAL)
    return MaskedBigrams(name, _tokenizer(vocabulary), table)


def _tokenizer(vocabulary: Mapping[str, int]) -> PreTrainedTokenizerFast:
    core = word_tokenizer(vocabulary)
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
