"""Masked language models: load one by name, ask it for words at a mask, embed sentences."""

from __future__ import annotations

from evenhand.masked.model import MaskedLM, Model, load

__all__ = ["MaskedLM", "Model", "load"]
