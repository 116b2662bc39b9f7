"""Masked language models: load one, measure it, generate sentences, fine-tune it.

`pronouns`, `professions`, `phrases`, `crows` and `perplexity` measure a model; every one returns a
`Measurement`. `evenhand.measure(model, material, metrics)` calls them by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.masked.finetuning import finetune
    from evenhand.masked.generation import generate
    from evenhand.masked.metrics.crows import crows
    from evenhand.masked.metrics.perplexity import perplexity
    from evenhand.masked.metrics.phrases import phrases
    from evenhand.masked.metrics.professions import professions
    from evenhand.masked.metrics.pronouns import pronouns, pronouns_of_file
    from evenhand.masked.model import MaskedLM, Model, load
    from evenhand.masked.pairs import Pair, read_pairs
    from evenhand.masked.scoring import (
        MaskedPosition,
        TokenScores,
        TopTokens,
        log_probs,
        query_tokens,
        target_log_probs,
        top_k,
    )
    from evenhand.masked.sentences import read_sentences

_MODULES = {
    "Cache": "evenhand.cache",
    "Pair": "evenhand.masked.pairs",
    "read_pairs": "evenhand.masked.pairs",
    "crows": "evenhand.masked.metrics.crows",
    "finetune": "evenhand.masked.finetuning",
    "generate": "evenhand.masked.generation",
    "perplexity": "evenhand.masked.metrics.perplexity",
    "phrases": "evenhand.masked.metrics.phrases",
    "professions": "evenhand.masked.metrics.professions",
    "pronouns": "evenhand.masked.metrics.pronouns",
    "pronouns_of_file": "evenhand.masked.metrics.pronouns",
    "read_sentences": "evenhand.masked.sentences",
    "MaskedLM": "evenhand.masked.model",
    "Model": "evenhand.masked.model",
    "load": "evenhand.masked.model",
    "TokenScores": "evenhand.masked.scoring",
    "MaskedPosition": "evenhand.masked.scoring",
    "TopTokens": "evenhand.masked.scoring",
    "query_tokens": "evenhand.masked.scoring",
    "log_probs": "evenhand.masked.scoring",
    "target_log_probs": "evenhand.masked.scoring",
    "top_k": "evenhand.masked.scoring",
}

__all__ = [
    "Cache",
    "MaskedLM",
    "MaskedPosition",
    "Model",
    "Pair",
    "TokenScores",
    "TopTokens",
    "crows",
    "finetune",
    "generate",
    "load",
    "log_probs",
    "perplexity",
    "phrases",
    "professions",
    "pronouns",
    "pronouns_of_file",
    "query_tokens",
    "read_pairs",
    "read_sentences",
    "target_log_probs",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'evenhand.masked' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
