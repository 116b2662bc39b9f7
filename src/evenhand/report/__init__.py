"""The report page: saved results in, one self-contained HTML file and its figures out."""

from evenhand.report.html import write_report
from evenhand.report.verdicts import Verdict, judge

__all__ = ["Verdict", "judge", "write_report"]
