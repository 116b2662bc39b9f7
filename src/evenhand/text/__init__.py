"""Text: exact rewriting, person names, the structural-bias filter, odds ratios, annotation."""

from evenhand.text.annotation import read_sheets, write_sheet
from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.entities import people
from evenhand.text.gender_odds import odds
from evenhand.text.rewriting import (
    Rewritten,
    anonymize,
    neutralize,
    rewrite_all,
    substitute,
    swap,
)
from evenhand.text.structural import Filter, Kept, Rejected

__all__ = [
    "Block",
    "Edit",
    "Filter",
    "Kept",
    "Rejected",
    "Rewritten",
    "anonymize",
    "neutralize",
    "odds",
    "people",
    "read_sheets",
    "rewrite_all",
    "substitute",
    "swap",
    "write_sheet",
]
