r"""Perplexity: how likely texts are to a language model.

Of a masked model it is the pseudo-perplexity.
$\mathrm{PLL}(W) = \sum_t \log P(w_t \mid W_{\setminus t})$ and, over texts with N tokens in all,
$\mathrm{PPPL} = \exp(-\tfrac1N \sum_W \mathrm{PLL}(W))$; Salazar, Liang, Nguyen & Kirchhoff (2020).
Special tokens are shown and not counted. A token is a piece of the model's own tokenizer, so only
models with the same tokenizer can be compared; and the later pieces of a word are easy to predict
from its earlier ones, so words of several pieces look likelier than they are (Kauf & Ivanova 2023).

Of a causal model it is $\exp(-\tfrac1N \sum_W \sum_t \log P(w_t \mid w_{<t}))$. The two are not on
one scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Querying
from evenhand.errors import InputError
from evenhand.instruments import Instrument, Run, instrument, option
from evenhand.models.causal import CausalLM
from evenhand.models.causal_scoring import sentence_log_likelihoods
from evenhand.models.likelihood import LanguageModel, Likelihoods, is_causal
from evenhand.models.masked import MaskedLM
from evenhand.models.masked_scoring import coded_tokens, encode, hidden_log_probs
from evenhand.models.sentences import read_texts
from evenhand.results import Comparison, Items, Measurement
from evenhand.statistics.intervals import Floats
from evenhand.text.tables import Source

COMMON = {
    "name": "perplexity",
    "bias": False,
    "ideal": None,
    "worse": "higher",
    "stereotype": 0,
    "material": "texts (one per line)",
    "reading": "Lower is better. It measures usefulness, not bias: whether a mitigation cost the "
    "model its knowledge of the language.",
}
"""The common declaration of the perplexities of both kinds of models."""
PIECES = (
    "A token is a piece of the model's own tokenizer: only models with the same tokenizer can be "
    "compared."
)


@instrument(
    subjects=("masked",),
    label="Pseudo-perplexity",
    question="How hard is it for the model to predict texts, one hidden token at a time?",
    formula="exp(-1/N · sum over texts W and tokens t of log P(w_t | W without t))",
    source="Salazar, Liang, Nguyen & Kirchhoff (2020)",
    caveats=(
        PIECES,
        "Later pieces of a word are easy to predict from its earlier ones, so words of several "
        "pieces look likelier than they are (Kauf & Ivanova 2023).",
    ),
    **COMMON,
)
class Perplexity(Instrument):
    r"""Pseudo-perplexity of a masked model on texts.

    The material is texts. One that is longer than the model accepts is left out and listed.

    Returns
    -------
    Measurement
        Items: `text`, `log_prob` (NaN where left out) and `tokens` of each text.

    Notes
    -----
    $\mathrm{PPPL} = \exp(-\tfrac1N \sum_W \sum_t \log P(w_t \mid W_{\setminus t}))$, Salazar et al.
    (2020). Texts are resampled.

    Examples
    --------
    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.5}, "he": {"sings": 0.125}})
    >>> round(Perplexity()(model, ["he sings"]).value, 3)
    4.0
    """

    requires_material: ClassVar[bool] = True

    resamples: int = option(2000, minimum=1, help="Bootstrap resamples.")

    def read(self, path: Source) -> list[str]:
        """The texts of a file, one per line, or of a DataFrame; blank lines are skipped."""
        return read_texts(path, "texts, one per line")

    def measure(
        self, subject: LanguageModel, material: Sequence[str] | None = None, run: Run = Run()
    ) -> Measurement:
        if material is None:
            raise InputError("perplexity: expected texts, got none")
        texts = list(material)
        score: Callable[..., Likelihoods] = (
            sentence_log_likelihoods if is_causal(subject) else pseudo_log_likelihoods
        )
        log_probs, tokens = score(subject, texts, **run.querying)
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
        """The perplexity of texts whose likelihoods are known; texts are resampled."""
        left_out = np.flatnonzero(np.isnan(log_probs))
        used = tokens > 0
        if not used.any():
            raise InputError(
                f"perplexity: expected texts that the model takes, got none of {used.size} "
                f"({left_out.size} too long)"
            )
        return self.declaration.result(
            run,
            "texts",
            _perplexity(log_probs[used], tokens[used], self.resamples, run.seed, run.prob),
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
        resamples, seed = before.details["resamples"], before.seed or 0
        return Comparison.of(
            before,
            after,
            _perplexity(losses, tokens[used], resamples, seed, before.prob),
            interval="percentile bootstrap over texts, paired",
            paired=int(used.sum()),
            kind="ratio",
        )


@instrument(
    subjects=("causal",),
    label="Perplexity",
    question="How hard is it for the model to predict texts, token by token?",
    formula="exp(-1/N · sum over texts W and tokens t of log P(w_t | w_1 … w_(t-1)))",
    source="Jelinek et al. (1977)",
    caveats=(PIECES,),
    **COMMON,
)
class CausalPerplexity(Perplexity):
    """The instrument `perplexity` of causal models."""

    @classmethod
    def example(cls) -> tuple[CausalLM, list[str]]:  # type: ignore[override]
        """A small model and texts."""
        from evenhand.simulate.causal import bigram_model

        model = bigram_model({"[BOS]": {"he": 0.5, "she": 0.2}, "he": {"sings": 0.25}, "she": {}})
        return model, ["he sings", "she sings", "he he sings"]


def pseudo_log_likelihoods(
    model: MaskedLM,
    texts: Sequence[str],
    **how: Unpack[Querying],
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
        **how,
    )
    sums, counts = np.full(len(coded), np.nan), np.zeros(len(coded), dtype=np.int64)
    for (k, tokens), answer in zip(accepted, answers, strict=True):
        sums[k], counts[k] = answer.sum(), len(tokens.own)
    return sums, counts


def _perplexity(
    sums: Floats, counts: NDArray[np.int64], resamples: int, seed: int, prob: float
) -> tuple[float, float, float]:
    """The exponential of the mean loss per token; of one text nothing is known of others."""
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    for k in range(resamples):
        chosen = rng.integers(sums.size, size=sums.size)
        means[k] = -sums[chosen].sum() / counts[chosen].sum()
    ends = np.array([-np.inf, np.inf])
    if sums.size > 1:
        ends = np.quantile(means, [(1 - prob) / 2, (1 + prob) / 2])
    value, low, high = (float(np.exp(x)) for x in (-sums.sum() / counts.sum(), *ends))
    return value, low, high
