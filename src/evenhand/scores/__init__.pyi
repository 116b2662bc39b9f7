from .analysis import ScoreAnalysis, analyze
from .reading import Scores, read

__all__ = ["ScoreAnalysis", "Scores", "analyze", "read"]
