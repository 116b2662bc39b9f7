r"""Pseudo-perplexity: how likely texts are to a masked language model.

$\mathrm{PLL}(W) = \sum_t \log P(w_t \mid W_{\setminus t})$ and, over texts with N tokens in all,
$\mathrm{PPPL} = \exp(-\tfrac1N \sum_W \mathrm{PLL}(W))$; Salazar, Liang, Nguyen & Kirchhoff (2020).
Special tokens are shown and not counted. A token is a piece of the model's own tokenizer, so only
models with the same tokenizer can be compared; and the later pieces of a word are easy to predict
from its earlier ones, so words of several pieces look likelier than they are (Kauf & Ivanova 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError
from evenhand.instruments import Declaration, Progress, Run, instrument, option
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import coded_tokens, encode, hidden_log_probs
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import Floats
from evenhand.text.tables import Source, lines_of, name_of

__all__ = ["Perplexity", "perplexity", "pseudo_log_likelihoods"]


@instrument(
    name="perplexity",
    subject="model",
    label="Pseudo-perplexity",
    question="How hard is it for the model to predict texts, one hidden token at a time?",
    bias=False,
    formula="exp(-1/N · sum over texts W and tokens t of log P(w_t | W without t))",
    source="Salazar, Liang, Nguyen & Kirchhoff (2020)",
    ideal=None,
    worse="higher",
    stereotype=0,
    material="texts (one per line)",
    reading="Lower is better. It measures usefulness, not bias: whether a mitigation cost the "
    "model its knowledge of the language.",
    caveats=(
        "A token is a piece of the model's own tokenizer: only models with the same tokenizer can "
        "be compared.",
        "Later pieces of a word are easy to predict from its earlier ones, so words of several "
        "pieces look likelier than they are (Kauf & Ivanova 2023).",
    ),
)
@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """The instrument `perplexity`; `perplexity()` is the function for direct use."""

    declaration: ClassVar[Declaration]
    requires_material: ClassVar[bool] = True

    resamples: int = option(2000, minimum=1, help="Bootstrap resamples.")

    def read(self, path: Source) -> list[str]:
        """The texts of a file, one per line, or of a DataFrame; blank lines are skipped."""
        name = name_of(path)
        texts = [line.strip() for _, line in lines_of(path) if line.strip()]
        if not texts:
            raise FileError(name, "expected texts, one per line, got none")
        return texts

    def measure(
        self, subject: MaskedLM, material: Sequence[str] | None = None, run: Run = Run()
    ) -> Measurement:
        if material is None:
            raise InputError("perplexity: expected texts, got none")
        texts = list(material)
        log_probs, tokens = pseudo_log_likelihoods(
            subject, texts, cache=run.cache, progress=run.progress
        )
        return self.summarise(texts, log_probs, tokens, subject=subject.name, run=run)

    def summarise(
        self,
        texts: Sequence[str],
        log_probs: Floats,
        tokens: NDArray[np.int64],
        *,
        subject: str = "",
        run: Run = Run(),
    ) -> Measurement:
        """The pseudo-perplexity of texts whose likelihoods are known; texts are resampled."""
        left_out = np.flatnonzero(np.isnan(log_probs))
        used = tokens > 0
        if not used.any():
            raise InputError(
                f"perplexity: expected texts that the model takes, got none of {used.size} "
                f"({left_out.size} too long)"
            )
        mean, means = _mean_loss(log_probs[used], tokens[used], self.resamples, run.seed)
        estimate = _exponential(mean, means, run.prob, int(used.sum()))
        return self.declaration.result(
            run,
            "texts",
            (estimate.value, estimate.low, estimate.high),
            n=int(used.sum()),
            interval="percentile bootstrap over texts",
            subject=subject,
            items=Items({"text": texts, "log_prob": log_probs, "tokens": tokens}),
            left_out=tuple(f"text {k + 1} (longer than the model takes)" for k in left_out),
            details={"tokens": int(tokens.sum()), "resamples": self.resamples},
        )

    @classmethod
    def example(cls) -> tuple[MaskedLM, list[str]]:
        """A small model and texts."""
        from evenhand.simulate.masked import bigram_model

        model = bigram_model({"[CLS]": {"he": 0.5, "she": 0.2}, "he": {"sings": 0.25}, "she": {}})
        return model, ["he sings", "she sings", "he he sings"]

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """Pseudo-perplexity after divided by before on the same texts: 1 is no change.

        The same texts are drawn for both, so that what is easy or hard for both cancels.
        """
        tokens = before.items["tokens"]
        if not np.array_equal(tokens, after.items["tokens"]):
            raise InputError("perplexity: expected the same texts in the same tokens twice")
        used = tokens > 0
        losses = (after.items["log_prob"] - before.items["log_prob"])[used]
        resamples = before.details["resamples"]
        mean, means = _mean_loss(losses, tokens[used], resamples, before.seed or 0)
        return Comparison(
            before=before,
            after=after,
            change=_exponential(mean, means, before.prob, int(used.sum())),
            interval="percentile bootstrap over texts, paired",
            paired=int(used.sum()),
            kind="ratio",
        )


def perplexity(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    resamples: int = 2000,
    seed: int = 0,
    prob: float = 0.95,
    cache: Any = None,
    progress: Progress | None = None,
) -> Measurement:
    r"""Measure the pseudo-perplexity of a model on texts.

    Parameters
    ----------
    model : MaskedLM
    texts : sequence of str
        A text that is longer than the model accepts is left out and listed.
    resamples : int
        Of the bootstrap over texts.
    seed, prob, cache, progress
        As for `Run`.

    Returns
    -------
    Measurement
        Items: `text`, `log_prob` (NaN where left out) and `tokens` of each text.

    Notes
    -----
    $\mathrm{PPPL} = \exp(-\tfrac1N \sum_W \sum_t \log P(w_t \mid W_{\setminus t}))$, Salazar et al.
    (2020).

    Examples
    --------
    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.5}, "he": {"sings": 0.125}})
    >>> round(perplexity(model, ["he sings"]).value, 3)
    4.0

    """
    return Perplexity(resamples=resamples).measure(
        model, texts, Run(seed=seed, prob=prob, cache=cache, progress=progress)
    )


def pseudo_log_likelihoods(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """The pseudo-log-likelihood of each text and its number of tokens.

    A text that is longer than the model accepts has NaN and 0 tokens.

    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.5}, "he": {"sings": 0.25}})
    >>> log_probs, tokens = pseudo_log_likelihoods(model, ["he sings"])
    >>> round(float(np.exp(log_probs[0])), 4), tokens
    (0.125, array([2]))
    """
    coded = [
        coded_tokens(model, text, encoding)
        for text, encoding in zip(texts, encode(model, texts), strict=True)
    ]
    accepted = [(k, tokens) for k, tokens in enumerate(coded) if tokens is not None]
    answers = hidden_log_probs(
        model,
        [tokens.ids for _, tokens in accepted],
        [tokens.own for _, tokens in accepted],
        progress=progress,
        cache=cache,
    )
    sums, counts = np.full(len(coded), np.nan), np.zeros(len(coded), dtype=np.int64)
    for (k, tokens), answer in zip(accepted, answers, strict=True):
        sums[k], counts[k] = answer.sum(), len(tokens.own)
    return sums, counts


def _mean_loss(
    sums: Floats, counts: NDArray[np.int64], resamples: int, seed: int
) -> tuple[float, Floats]:
    """The mean loss per token, and that of resampled texts."""
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for k in range(resamples):
        chosen = rng.integers(sums.size, size=sums.size)
        means[k] = -sums[chosen].sum() / counts[chosen].sum()
    return float(-sums.sum() / counts.sum()), means


def _exponential(mean: float, means: Floats, prob: float, texts: int) -> Estimate:
    """The exponential of a mean; of a single text nothing is known of others."""
    ends = np.array([-np.inf, np.inf])
    if texts > 1:
        ends = np.quantile(means, [(1 - prob) / 2, (1 + prob) / 2])
    value, low, high = (float(np.exp(x)) for x in (mean, *ends))
    return Estimate(value=value, low=low, high=high, prob=prob)
