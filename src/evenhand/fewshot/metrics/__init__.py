"""Instruments that measure few-shot classifiers: one file declares one measure."""
