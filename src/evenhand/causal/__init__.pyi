from .model import CausalLM, Model, load
from .scoring import (
    continuation_log_likelihoods,
    log_likelihoods,
    next_log_probs,
    sentence_log_likelihoods,
)

__all__ = [
    "CausalLM",
    "Model",
    "continuation_log_likelihoods",
    "load",
    "log_likelihoods",
    "next_log_probs",
    "sentence_log_likelihoods",
]
