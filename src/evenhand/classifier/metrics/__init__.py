"""Measures of predictions, one per file."""
