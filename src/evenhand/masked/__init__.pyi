import evenhand.language

from .finetuning import finetune
from .generation import generate
from .metrics.context import context
from .metrics.disco import disco
from .metrics.perplexity import perplexity
from .metrics.phrases import phrases
from .metrics.pronouns import pronouns, pronouns_of_file
from .metrics.sss import sss
from .model import MaskedLM, Model, load
from .pairs import Pair, read_pairs
from .scoring import (
    MaskedPosition,
    TokenScores,
    TopTokens,
    log_probs,
    query_tokens,
    target_log_probs,
    top_k,
)
from .sentences import read_sentences

crows = evenhand.language.crows
professions = evenhand.language.professions

__all__ = [
    "MaskedLM",
    "MaskedPosition",
    "Model",
    "Pair",
    "TokenScores",
    "TopTokens",
    "context",
    "crows",
    "disco",
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
    "sss",
    "target_log_probs",
    "top_k",
]
