from . import networks
from .answers import Answers, Classifier, Counterfactuals
from .data import Dataset, read
from .encoders import TunedEncoder, encode
from .episodes import Episodes, sample
from .metrics.accuracy import accuracy
from .metrics.bias import bias
from .runs import FewShotRun, RunResults, read_run, run, summarise
from .settings import EpisodeCounts, RunSettings, TrainingSettings
from .splits import Split, make_splits
from .training import evaluate, train

__all__ = [
    "Answers",
    "Classifier",
    "Counterfactuals",
    "Dataset",
    "EpisodeCounts",
    "Episodes",
    "FewShotRun",
    "RunResults",
    "RunSettings",
    "Split",
    "TrainingSettings",
    "TunedEncoder",
    "accuracy",
    "bias",
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
