r"""The perplexity of a causal model: how hard it is for the model to predict texts.

$\exp(-\tfrac1N \sum_W \sum_t \log P(w_t \mid w_{<t}))$ over N tokens. That of a masked model is
`evenhand.masked.metrics.perplexity`; the two are not on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from evenhand.causal.model import CausalLM
from evenhand.causal.scoring import sentence_log_likelihoods
from evenhand.errors import InputError
from evenhand.instruments import Declaration, Run, instrument
from evenhand.masked.metrics import perplexity
from evenhand.results import Measurement

__all__ = ["CausalPerplexity"]


@instrument(
    name="perplexity",
    subject="causal",
    label="Perplexity",
    question="How hard is it for the model to predict texts, token by token?",
    bias=False,
    formula="exp(-1/N · sum over texts W and tokens t of log P(w_t | w_1 … w_(t-1)))",
    source="Jelinek et al. (1977)",
    ideal=None,
    worse="higher",
    stereotype=0,
    material="texts (one per line)",
    reading="Lower is better. It measures usefulness, not bias: whether a mitigation cost the "
    "model its knowledge of the language.",
    caveats=(
        "A token is a piece of the model's own tokenizer: only models with the same tokenizer can "
        "be compared.",
    ),
)
@dataclass(frozen=True, kw_only=True)
class CausalPerplexity(perplexity.Perplexity):
    """The instrument `perplexity` of causal models."""

    declaration: ClassVar[Declaration]

    def measure(
        self, subject: Any, material: Sequence[str] | None = None, run: Run = Run()
    ) -> Measurement:
        if material is None:
            raise InputError("perplexity: expected texts, got none")
        texts = list(material)
        log_probs, tokens = sentence_log_likelihoods(
            subject, texts, cache=run.cache, progress=run.progress
        )
        return self.summarise(texts, log_probs, tokens, subject=subject.name, run=run)

    @classmethod
    def example(cls) -> tuple[CausalLM, list[str]]:  # type: ignore[override]
        """A small model and texts."""
        from evenhand.simulate.causal import bigram_model

        model = bigram_model({"[BOS]": {"he": 0.5, "she": 0.2}, "he": {"sings": 0.25}, "she": {}})
        return model, ["he sings", "she sings", "he he sings"]
