"""Bayesian models of cosine distances, sampled exactly where possible.

>>> from evenhand import lexicon, posterior, vectors
>>> table = vectors.distance_table(vectors.load("glove"), lexicon.topic("religion"))
>>> result = posterior.fit(table, "crossed", draws=800)
>>> posterior.connection_contrasts(result)["associated-different"].high < 0
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
    class_contrasts,
    compare_tables,
    connection_contrasts,
    word_contrasts,
    word_levels,
)
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.fits import (
    Criteria,
    Fit,
    Summary,
    compare_models,
    compute_criteria,
    summarise,
)
from evenhand.posterior.models import MODELS, Fitted, Priors, fit, fit_models
from evenhand.posterior.planning import Plan, plan
from evenhand.posterior.tables import Table, read_table, simulate
from evenhand.posterior.thesis import PaperPrior, ThesisPrior

__all__ = [
    "MODELS",
    "Assessment",
    "Change",
    "Check",
    "Criteria",
    "CrossedPrior",
    "Fit",
    "Fitted",
    "PaperPrior",
    "Plan",
    "Priors",
    "Summary",
    "Table",
    "ThesisPrior",
    "assess",
    "check_posterior",
    "check_prior",
    "check_sensitivity",
    "class_contrasts",
    "compare_models",
    "compare_tables",
    "compute_criteria",
    "connection_contrasts",
    "fit",
    "fit_models",
    "plan",
    "read_table",
    "simulate",
    "summarise",
    "word_contrasts",
    "word_levels",
]
