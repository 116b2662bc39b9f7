"""Measures of corpora, one file each."""
