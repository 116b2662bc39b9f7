from .main import DEFAULT_TOPICS, Audit, audit
from .mitigation import METHODS
from .stages import Progress, Stage

__all__ = ["DEFAULT_TOPICS", "METHODS", "Audit", "Progress", "Stage", "audit"]
