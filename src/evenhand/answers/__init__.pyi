from .collecting import Collection, collect, open_writer, prepare
from .gold import Gold, read_gold
from .metrics.agreement import StatementAgreement
from .metrics.decisions import Decisions
from .metrics.difference import Difference
from .metrics.refusals import Refusals
from .metrics.representation import Representation
from .metrics.words import DistinctiveWords
from .prompts import Prompt, read_prompts
from .table import Answers, read_answers

__all__ = [
    "Answers",
    "Collection",
    "Decisions",
    "Difference",
    "DistinctiveWords",
    "Gold",
    "Prompt",
    "Refusals",
    "Representation",
    "StatementAgreement",
    "collect",
    "open_writer",
    "prepare",
    "read_answers",
    "read_gold",
    "read_prompts",
]
