"""Which stages of an audit speak of which subject, and what its numbers are called."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evenhand.report.verdicts import Subject

__all__ = ["KINDS", "SUBJECT_OF", "bare"]

KINDS: Mapping[Subject, tuple[str, ...]] = {
    "data": ("odds", "filter"),
    "vectors": ("measures", "weat", "wefat", "analogies", "mitigation", "posterior"),
    "model": ("pronouns", "profession", "phrases", "finetune"),
    "classifier": ("fewshot",),
}
"""The stages that each verdict rests on or stands beside."""

SUBJECT_OF: Mapping[str, Subject] = {
    kind: subject for subject, kinds in KINDS.items() for kind in kinds
}


def bare(label: str) -> str:
    """A number's label without the aside at its end, which may itself be a finding.

    >>> bare("Bayesian contrast (probability: 0.98)")
    'Bayesian contrast'
    """
    return re.sub(r"\s*\([^()]*\)$", "", label)
