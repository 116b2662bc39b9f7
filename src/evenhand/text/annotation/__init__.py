"""Annotation: sheets out, several annotators' sheets in, the majority and how far they agree."""

from evenhand.text.annotation.agreement import fleiss_kappa, krippendorff_alpha
from evenhand.text.annotation.result import Annotation, Judged
from evenhand.text.annotation.sheets import read_sheets, write_sheet

__all__ = [
    "Annotation",
    "Judged",
    "fleiss_kappa",
    "krippendorff_alpha",
    "read_sheets",
    "write_sheet",
]
