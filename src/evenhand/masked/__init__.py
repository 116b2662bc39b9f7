"""Masked language models: load one by name, ask it for words at a mask, embed sentences."""

from __future__ import annotations

from evenhand.masked.model import MaskedLM, Model, load
from evenhand.masked.scoring import Place, Top, log_probs, target_log_probs, top_k

__all__ = [
    "MaskedLM",
    "Model",
    "Place",
    "Top",
    "load",
    "log_probs",
    "target_log_probs",
    "top_k",
]
