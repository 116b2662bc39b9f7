"""Causal language models: loading and scoring."""
