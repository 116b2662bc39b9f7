"""The report: what an audit saved in, one self-contained HTML page, its figures and cards out."""

from evenhand.report.page import write_report
from evenhand.report.verdicts import Verdict

__all__ = ["Verdict", "write_report"]
