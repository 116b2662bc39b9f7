r"""The likelihood of a text, of its end, and of a word in it, for masked and causal models.

Of a causal model it is the log-likelihood $\sum_t \log P(w_t \mid w_{<t})$; of a masked model the
pseudo-log-likelihood $\sum_t \log P(w_t \mid W_{\setminus t})$ (Salazar et al. 2020). The two are
not on one scale: compare texts within a model, not models by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache
from evenhand.errors import InputError
from evenhand.instruments import LANGUAGE, Instrument, Progress
from evenhand.models.causal import CausalLM
from evenhand.models.causal_scoring import continuation_log_likelihoods, sentence_log_likelihoods
from evenhand.models.masked import MaskedLM
from evenhand.models.masked_scoring import coded_tokens, encode, hidden_log_probs
from evenhand.models.words import WordQuery, row, word_log_probs
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    from typing_extensions import TypeIs

LanguageModel: TypeAlias = MaskedLM | CausalLM
Likelihoods: TypeAlias = tuple[Floats, NDArray[np.int64]]
"""Sums of log probabilities, and the tokens that count in each."""
T = TypeVar("T")


class Benchmark(Instrument):
    """Base of the measures of masked and causal models that need the texts of a publication."""

    shared: ClassVar[Mapping[str, Any]] = {"subjects": ("masked", "causal")}
    requires_material: ClassVar[bool] = True

    def given(self, material: T | None) -> T:
        """The material, of which there has to be some."""
        if not material:
            about = self.declaration
            raise InputError(f"{about.name}: expected {about.material}, got none")
        return material


def is_causal(model: object) -> TypeIs[CausalLM]:
    """Whether the model predicts the next token; otherwise it fills in a masked one.

    Anything else, such as a sentence encoder, has no likelihoods and is an error.
    """
    kind = getattr(model, "subject_kind", "masked")
    if kind not in ("masked", "causal"):
        what = LANGUAGE.get(kind, kind)
        name = getattr(model, "name", "")
        raise InputError(f"expected a masked or causal language model, got a {what}: {name}")
    return str(kind) == "causal"


def likelihoods(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Likelihoods:
    """Compute the log-likelihood of each text, and its tokens.

    Parameters
    ----------
    model : MaskedLM or CausalLM
    texts : sequence of str
    cache, progress
        As for `Run`.

    Examples
    --------
    >>> from evenhand.simulate.causal import bigram_model
    >>> model = bigram_model({"[BOS]": {"she": 0.5, "he": 0.5}})
    >>> values, tokens = likelihoods(model, ["she"])
    >>> round(float(np.exp(values[0])), 3), int(tokens[0])
    (0.5, 1)
    """
    if is_causal(model):
        return sentence_log_likelihoods(model, texts, cache=cache, progress=progress)
    return end_likelihoods(model, [""] * len(texts), texts, cache=cache, progress=progress)


def end_likelihoods(
    model: LanguageModel,
    contexts: Sequence[str],
    ends: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Likelihoods:
    """Compute the log-likelihood of the end of each text after its context, and its tokens."""
    if is_causal(model):
        return continuation_log_likelihoods(model, contexts, ends, cache=cache, progress=progress)
    rows, positions = [], []
    texts = [f"{context}{end}" for context, end in zip(contexts, ends, strict=True)]
    for text, context, coded in zip(texts, contexts, encode(model, texts), strict=True):
        tokens = coded_tokens(model, text, coded)
        if tokens is None:
            raise InputError(f"'{text[:60]}': longer than model '{model.name}' takes")
        start = len(context.rstrip())
        rows.append(tokens.ids)
        positions.append([i for i in tokens.own if coded.offsets[i][1] > start])
    answers = hidden_log_probs(model, rows, positions, cache=cache, progress=progress)
    counts = np.array([len(chosen) for chosen in positions], dtype=np.int64)
    return np.array([answer.sum() for answer in answers]), counts


def word_likelihoods(
    model: LanguageModel,
    texts: Sequence[tuple[str, str, str]],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Likelihoods:
    """Compute the log-likelihood of a word within each text, given as (before, word, after).

    A masked model sees what is before and after; a word of several pieces is read from left to
    right. A causal model cannot see what follows: its likelihood is that of the word and all after
    it, given what is before.
    """
    if is_causal(model):
        before = [text[0] for text in texts]
        ends = [f"{word}{after}" for _, word, after in texts]
        return continuation_log_likelihoods(model, before, ends, cache=cache, progress=progress)
    queries = [
        WordQuery(row(model, f"{before}{word}{after}", [(len(before), len(before) + len(word))]), 0)
        for before, word, after in texts
    ]
    counts = [len(query.row.pieces(0)) for query in queries]
    values = word_log_probs(model, queries, cache=cache, progress=progress)
    return values, np.array(counts, dtype=np.int64)
