"""Masked language models: load one, ask it for words at a mask, embed sentences.

What is measured with them is in `masked.metrics` (pronouns, association, phrases, crows,
likelihood); `masked.generate` searches for sentences, `masked.finetune` trains.
"""

from __future__ import annotations

from evenhand.masked.model import MaskedLM, Model, load
from evenhand.masked.scoring import Answers, Place, Top, ask, log_probs, target_log_probs, top_k

__all__ = [
    "Answers",
    "MaskedLM",
    "Model",
    "Place",
    "Top",
    "ask",
    "load",
    "log_probs",
    "target_log_probs",
    "top_k",
]
