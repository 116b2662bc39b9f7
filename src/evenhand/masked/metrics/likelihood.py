r"""How likely a text is to a masked language model: every token hidden once, the rest shown.

$\mathrm{PLL}(W) = \sum_t \log P(w_t \mid W_{\setminus t})$ and, over texts with N tokens in all,
$\mathrm{PPPL} = \exp(-\tfrac1N \sum_W \mathrm{PLL}(W))$; Salazar, Liang, Nguyen & Kirchhoff (2020).
Special tokens are shown and not counted. A token is a piece of the model's own tokenizer, so only
models with the same tokenizer can be compared; and the later pieces of a word are easy to tell
from its earlier ones, so words of several pieces look likelier than they are (Kauf & Ivanova 2023).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.masked.model import MaskedLM, Model
from evenhand.masked.scoring import BATCH_TOKENS, Place, Progress, target_log_probs
from evenhand.results import Estimate

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = [
    "Likelihoods",
    "PseudoPerplexity",
    "Tokens",
    "hidden_one_by_one",
    "perplexity",
    "perplexity_ratio",
    "pseudo_log_likelihood",
    "pseudo_perplexity",
    "tokens_of",
]

HELD = 1 << 21
"""So many token ids of hidden rows are held at once."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as the model reads it, and the places of its own tokens, special ones apart."""

    ids: tuple[int, ...]
    own: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """The sum of log probabilities of each text (nan where left out) and how many they are."""

    log_probs: Floats
    tokens: NDArray[np.int64]
    left_out: tuple[int, ...] = ()
    """The numbers, from 0, of texts that are longer than the model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoPerplexity:
    """Pseudo-perplexity with its interval over texts, and what it was made of."""

    perplexity: Estimate
    likelihoods: Likelihoods

    def as_dict(self) -> dict[str, Any]:
        return {
            "perplexity": self.perplexity.as_dict(),
            "texts": int((self.likelihoods.tokens > 0).sum()),
            "tokens": int(self.likelihoods.tokens.sum()),
            "left_out": len(self.likelihoods.left_out),
        }


def tokens_of(model: MaskedLM, text: str) -> Tokens | None:
    """The tokens of a text; None where it is longer than the model takes."""
    coded = model.tokenizer(text, return_special_tokens_mask=True, verbose=False)
    ids: list[int] = coded["input_ids"]
    if model.tokenizer.mask_token_id in ids:
        raise InputError(f"expected a text without a mask, got {text!r}")
    longest = model.longest if isinstance(model, Model) else model.tokenizer.model_max_length
    if len(ids) > longest:
        return None
    special: list[int] = coded["special_tokens_mask"]
    return Tokens(tuple(ids), tuple(i for i, added in enumerate(special) if not added))


def hidden_one_by_one(
    model: MaskedLM,
    rows: Sequence[Sequence[int]],
    places: Sequence[Sequence[int]],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Floats]:
    """The log probability of the token at each of a row's places, hidden alone, row by row."""
    mask = model.tokenizer.mask_token_id
    asked = [len(of) for of in places]
    total, done = sum(asked), 0
    answers: list[Floats] = []
    for part in _parts([len(row) * n for row, n in zip(rows, asked, strict=True)]):
        questions, targets = [], []
        for k in part:
            row = tuple(rows[k])
            for place in places[k]:
                questions.append(Place((*row[:place], mask, *row[place + 1 :]), place))
                targets.append(row[place])
        before = done
        flat = target_log_probs(
            model, questions, targets, batch_tokens=batch_tokens, cache=cache,
            progress=None if progress is None else _shifted(progress, before, total),
        )  # fmt: skip
        done += len(questions)
        ends = np.cumsum([asked[k] for k in part])[:-1]
        answers += [np.asarray(of, dtype=float) for of in np.split(flat, ends)]
    return answers


def pseudo_log_likelihood(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Likelihoods:
    """The pseudo-log-likelihood of each text and its number of tokens.

    >>> from evenhand.simulate.masked import bigram_model
    >>> fake = bigram_model({"[CLS]": {"he": 0.5}, "he": {"sings": 0.25}})
    >>> known = pseudo_log_likelihood(fake, ["he sings"])
    >>> round(float(np.exp(known.log_probs[0])), 4), known.tokens
    (0.125, array([2]))
    """
    coded = [tokens_of(model, text) for text in texts]
    whole = [(k, tokens) for k, tokens in enumerate(coded) if tokens is not None]
    answers = hidden_one_by_one(
        model, [tokens.ids for _, tokens in whole], [tokens.own for _, tokens in whole],
        batch_tokens=batch_tokens, progress=progress, cache=cache,
    )  # fmt: skip
    sums, counts = np.full(len(coded), np.nan), np.zeros(len(coded), dtype=np.int64)
    for (k, tokens), answer in zip(whole, answers, strict=True):
        sums[k], counts[k] = answer.sum(), len(tokens.own)
    return Likelihoods(sums, counts, tuple(k for k, of in enumerate(coded) if of is None))


def pseudo_perplexity(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    prob: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> PseudoPerplexity:
    """The pseudo-perplexity of a model on texts, with a bootstrap interval over the texts."""
    known = pseudo_log_likelihood(
        model, texts, batch_tokens=batch_tokens, progress=progress, cache=cache
    )
    return perplexity(known, prob=prob, draws=draws, seed=seed)


def perplexity(
    known: Likelihoods, *, prob: float = 0.95, draws: int = 2000, seed: int = 0
) -> PseudoPerplexity:
    """The pseudo-perplexity of texts whose likelihoods are known; texts are resampled whole."""
    sums, counts = _used(known, known.tokens > 0)
    mean, drawn = _mean_loss(sums, counts, draws, seed)
    return PseudoPerplexity(perplexity=_bounded(mean, drawn, prob), likelihoods=known)


def perplexity_ratio(
    before: Likelihoods,
    after: Likelihoods,
    *,
    prob: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Pseudo-perplexity after over before, on the same texts: 1 is no change, more is worse.

    The same texts are drawn for both, so that what is easy or hard for both cancels.
    """
    if not np.array_equal(before.tokens, after.tokens):
        raise InputError("perplexity: expected the same texts in the same tokens twice")
    used = before.tokens > 0
    first, counts = _used(before, used)
    second, _ = _used(after, used)
    mean, drawn = _mean_loss(second - first, counts, draws, seed)
    return _bounded(mean, drawn, prob)


def _used(known: Likelihoods, used: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.int64]]:
    if not used.any():
        raise InputError(
            f"perplexity: expected texts that the model takes, got none of {used.size} "
            f"({len(known.left_out)} too long)"
        )
    return known.log_probs[used], known.tokens[used]


def _mean_loss(
    sums: Floats, counts: NDArray[np.int64], draws: int, seed: int
) -> tuple[float, Floats]:
    """The mean loss a token, and the same of texts drawn anew."""
    rng = np.random.default_rng(seed)
    drawn = np.empty(draws)
    for k in range(draws):
        chosen = rng.integers(sums.size, size=sums.size)
        drawn[k] = -sums[chosen].sum() / counts[chosen].sum()
    return float(-sums.sum() / counts.sum()), drawn


def _bounded(mean: float, drawn: Floats, prob: float) -> Estimate:
    low, high = np.quantile(drawn, [(1 - prob) / 2, (1 + prob) / 2]) if drawn.size else (0, np.inf)
    value, low, high = (float(np.exp(x)) for x in (mean, low, high))
    return Estimate(value=value, low=min(low, value), high=max(high, value), prob=prob)


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


def _parts(sizes: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of the rows, in parts that are not too large to hold."""
    part: list[int] = []
    held = 0
    for k, size in enumerate(sizes):
        if part and held + size > HELD:
            yield part
            part, held = [], 0
        part.append(k)
        held += size
    if part:
        yield part
