from .fewshot import write_run
from .page import write_report
from .scores import write_scores
from .verdicts import Verdict

__all__ = ["Verdict", "write_report", "write_run", "write_scores"]
