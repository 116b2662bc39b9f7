from . import networks
from .answers import Classifier, Counterfactuals, FewShotPredictions
from .data import Dataset, read
from .encoders import TunedEncoder, encode
from .episodes import Episodes, sample
from .metrics.accuracy import Accuracy
from .metrics.bias import Bias
from .runs import FewShotRun, RunResults, read_run, run, summarise
from .settings import EpisodeCounts, RunSettings, TrainingSettings
from .splits import Split, make_splits
from .training import evaluate, train

__all__ = [
    "Accuracy",
    "Bias",
    "Classifier",
    "Counterfactuals",
    "Dataset",
    "EpisodeCounts",
    "Episodes",
    "FewShotPredictions",
    "FewShotRun",
    "RunResults",
    "RunSettings",
    "Split",
    "TrainingSettings",
    "TunedEncoder",
    "encode",
    "evaluate",
    "make_splits",
    "networks",
    "read",
    "read_run",
    "run",
    "sample",
    "summarise",
    "train",
]
