from .checks import (
    Assessment,
    Check,
    assess,
    check_posterior,
    check_prior,
    check_sensitivity,
)
from .contrasts import Change, compare_tables
from .criteria import Criteria, compare_models, compute_criteria
from .crossed import CrossedPrior
from .description import Description, describe_table
from .fits import Fit, measure_contrasts, measure_levels
from .models import MODELS, Fitted, Priors, fit, fit_models
from .planning import Plan, calibrate, plan
from .tables import Table, read_table, simulate
from .thesis import PaperPrior, ThesisPrior

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
