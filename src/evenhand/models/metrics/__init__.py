"""Measures of bias in masked language models: a module a measure, found by its name."""
