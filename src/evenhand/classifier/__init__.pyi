from .metrics.calibration import CalibrationGap
from .metrics.counterfactual import CounterfactualChange, CounterfactualFlips
from .metrics.gaps import EqualizedOdds, FprGap, ParityGap, TprGap
from .metrics.subgroup_auc import BnspAuc, BpsnAuc, SubgroupAuc
from .predictions import Predictions, predict, read_predictions

__all__ = [
    "BnspAuc",
    "BpsnAuc",
    "CalibrationGap",
    "CounterfactualChange",
    "CounterfactualFlips",
    "EqualizedOdds",
    "FprGap",
    "ParityGap",
    "Predictions",
    "SubgroupAuc",
    "TprGap",
    "predict",
    "read_predictions",
]
