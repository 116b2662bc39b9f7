"""Results in, self-contained HTML pages, figures and cards out."""

from evenhand.report.fewshot import write_run
from evenhand.report.page import write_report
from evenhand.report.scores import write_scores
from evenhand.report.verdicts import Verdict

__all__ = ["Verdict", "write_report", "write_run", "write_scores"]
