"""Instruments that measure corpora: one file declares one measure."""
