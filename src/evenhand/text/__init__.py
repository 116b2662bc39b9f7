"""Text: exact rewriting, person names, the structural-bias filter, odds ratios, annotation."""

from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.metrics.annotation import read_sheets, save_verdicts
from evenhand.text.metrics.odds import leaning, odds
from evenhand.text.people import find_people
from evenhand.text.rewrite import Rewritten, rewrite_all
from evenhand.text.rewrite.counterfactuals import counterfactuals
from evenhand.text.rewrite.names import anonymize
from evenhand.text.rewrite.negate import negate
from evenhand.text.rewrite.neutralize import neutralize
from evenhand.text.rewrite.stereotype import stereotype
from evenhand.text.rewrite.swap import substitute, swap
from evenhand.text.sheets import write_sheet
from evenhand.text.structural import Accepted, Filter, Rejected
from evenhand.text.tables import Corpus

__all__ = [
    "Accepted",
    "Block",
    "Corpus",
    "Edit",
    "Filter",
    "Rejected",
    "Rewritten",
    "anonymize",
    "counterfactuals",
    "find_people",
    "leaning",
    "negate",
    "neutralize",
    "odds",
    "read_sheets",
    "rewrite_all",
    "save_verdicts",
    "stereotype",
    "substitute",
    "swap",
    "write_sheet",
]
