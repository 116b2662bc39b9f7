from .block import Block
from .edits import Edit
from .metrics.annotation import Annotation, read_sheets, save_verdicts
from .metrics.odds import Odds, leaning
from .people import find_people
from .rewrite import Rewritten, rewrite_all
from .rewrite.counterfactuals import counterfactuals
from .rewrite.names import anonymize
from .rewrite.negate import negate
from .rewrite.neutralize import neutralize
from .rewrite.stereotype import stereotype
from .rewrite.swap import substitute, swap
from .sheets import write_sheet
from .structural import Accepted, Filter, Rejected
from .tables import Corpus

__all__ = [
    "Accepted",
    "Annotation",
    "Block",
    "Corpus",
    "Edit",
    "Filter",
    "Odds",
    "Rejected",
    "Rewritten",
    "anonymize",
    "counterfactuals",
    "find_people",
    "leaning",
    "negate",
    "neutralize",
    "read_sheets",
    "rewrite_all",
    "save_verdicts",
    "stereotype",
    "substitute",
    "swap",
    "write_sheet",
]
