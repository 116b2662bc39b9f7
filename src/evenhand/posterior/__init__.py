"""Bayesian uncertainty for cosine bias: exact where it can be, and a model of crossed effects.

>>> from evenhand import lexicon, posterior, vectors
>>> table = vectors.distance_table(vectors.load("glove"), lexicon.topic("religion"))
>>> result = posterior.fit(table, "crossed", draws=800)
>>> posterior.connection_contrasts(result)["associated-different"].high < 0
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.posterior.change import Change, compare_tables
    from evenhand.posterior.checks import Check, posterior_check, prior_check
    from evenhand.posterior.comparison import Criteria, compare_models, criteria
    from evenhand.posterior.contrasts import (
        class_contrasts,
        connection_contrasts,
        word_contrasts,
        word_levels,
    )
    from evenhand.posterior.crossed import CrossedPrior
    from evenhand.posterior.diagnostics import Summary, hdi, summarise
    from evenhand.posterior.fits import Fit
    from evenhand.posterior.models import MODELS, Fitted, Priors, fit, fit_models
    from evenhand.posterior.paper import PaperPrior
    from evenhand.posterior.planning import Plan, plan
    from evenhand.posterior.sensitivity import prior_sensitivity
    from evenhand.posterior.simulation import simulate
    from evenhand.posterior.tables import Table, read_table
    from evenhand.posterior.thesis import ThesisPrior

_PLACES = {
    "change": ("Change", "compare_tables"),
    "checks": ("Check", "posterior_check", "prior_check"),
    "comparison": ("Criteria", "compare_models", "criteria"),
    "contrasts": ("class_contrasts", "connection_contrasts", "word_contrasts", "word_levels"),
    "crossed": ("CrossedPrior",),
    "diagnostics": ("Summary", "hdi", "summarise"),
    "fits": ("Fit",),
    "models": ("MODELS", "Fitted", "Priors", "fit", "fit_models"),
    "paper": ("PaperPrior",),
    "planning": ("Plan", "plan"),
    "sensitivity": ("prior_sensitivity",),
    "simulation": ("simulate",),
    "tables": ("Table", "read_table"),
    "thesis": ("ThesisPrior",),
}

__all__ = [
    "MODELS",
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
    "class_contrasts",
    "compare_models",
    "compare_tables",
    "connection_contrasts",
    "criteria",
    "fit",
    "fit_models",
    "hdi",
    "plan",
    "posterior_check",
    "prior_check",
    "prior_sensitivity",
    "read_table",
    "simulate",
    "summarise",
    "word_contrasts",
    "word_levels",
]


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"evenhand.posterior.{module}"), name)
    raise AttributeError(f"module 'evenhand.posterior' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
