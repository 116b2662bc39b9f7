"""Measures of masked and causal language models."""
