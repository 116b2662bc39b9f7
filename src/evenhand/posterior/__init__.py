"""Bayesian models of cosine distances, sampled exactly where possible.

>>> from evenhand import lexicon, posterior, vectors
>>> table = vectors.distance_table(vectors.load("glove"), lexicon.topic("gender"))
>>> result = posterior.fit(table, "crossed", draws=800)
>>> posterior.measure_contrasts(result)["associated-different"].high < 0
True
"""

from evenhand.posterior.checks import (
    Assessment,
    Check,
    assess,
    check_posterior,
    check_prior,
    check_sensitivity,
)
from evenhand.posterior.contrasts import (
    Change,
    compare_tables,
    measure_contrasts,
    measure_levels,
)
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.description import Description, describe_table
from evenhand.posterior.fits import Criteria, Fit, compare_models, compute_criteria
from evenhand.posterior.models import MODELS, Fitted, Priors, fit, fit_models
from evenhand.posterior.planning import Plan, calibrate, plan
from evenhand.posterior.tables import Table, read_table, simulate
from evenhand.posterior.thesis import PaperPrior, ThesisPrior

__all__ = [
    "MODELS",
    "Assessment",
    "Change",
    "Check",
    "Criteria",
    "CrossedPrior",
    "Description",
    "Fit",
    "Fitted",
    "PaperPrior",
    "Plan",
    "Priors",
    "Table",
    "ThesisPrior",
    "assess",
    "calibrate",
    "check_posterior",
    "check_prior",
    "check_sensitivity",
    "compare_models",
    "compare_tables",
    "compute_criteria",
    "describe_table",
    "fit",
    "fit_models",
    "measure_contrasts",
    "measure_levels",
    "plan",
    "read_table",
    "simulate",
]
