"""One file a metric, named after it, with its formula and its source."""

from evenhand.vectors.metrics.analogies import accuracy, analogies, analogy
from evenhand.vectors.metrics.direct_bias import direct_bias
from evenhand.vectors.metrics.ect import ect
from evenhand.vectors.metrics.mac import mac
from evenhand.vectors.metrics.projections import projections
from evenhand.vectors.metrics.ripa import ripa
from evenhand.vectors.metrics.rnd import rnd
from evenhand.vectors.metrics.rnsb import rnsb
from evenhand.vectors.metrics.same import same
from evenhand.vectors.metrics.weat import weat
from evenhand.vectors.metrics.wefat import wefat

__all__ = [
    "accuracy",
    "analogies",
    "analogy",
    "direct_bias",
    "ect",
    "mac",
    "projections",
    "ripa",
    "rnd",
    "rnsb",
    "same",
    "weat",
    "wefat",
]
