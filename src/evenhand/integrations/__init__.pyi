from .estimators import BiasScorer, HardDebias, InlpDebias, LeaceDebias, bias_scorer
from .trainer import BiasCallback, log_bias

__all__ = [
    "BiasCallback",
    "BiasScorer",
    "HardDebias",
    "InlpDebias",
    "LeaceDebias",
    "bias_scorer",
    "log_bias",
]
