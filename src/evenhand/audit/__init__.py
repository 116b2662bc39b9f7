"""The main job: measure, mitigate, measure again, and write one report.

An audit is a list of stages. Each is computed once and saved under `stages/` with a key of all
that it depends on, so that the same command resumes where it stopped; everything else in the
folder (`results.json`, tables, figures, the page) is written from the stages.
"""

from evenhand.audit.main import DEFAULT_TOPICS, Audit, audit
from evenhand.audit.mitigation import METHODS
from evenhand.audit.stages import Progress, Stage

__all__ = ["DEFAULT_TOPICS", "METHODS", "Audit", "Progress", "Stage", "audit"]
