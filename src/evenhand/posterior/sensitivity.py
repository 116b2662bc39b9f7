"""How much of the answer is the prior's: δ under priors half and twice as wide, and far wider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.posterior.contrasts import connection_contrasts
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.diagnostics import Summary
from evenhand.posterior.models import Priors, fit
from evenhand.posterior.tables import read_table

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = ["Sensitivity", "alternatives", "prior_sensitivity"]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The contrasts of the crossed model under one prior."""

    name: str
    prior: CrossedPrior
    contrasts: Mapping[str, Summary]

    def as_dict(self) -> dict[str, Any]:
        return {"prior": self.name, "contrasts": self.contrasts}


def alternatives(prior: CrossedPrior) -> dict[str, CrossedPrior]:
    """The prior itself and those that are tried against it."""
    return {
        "as given": prior,
        "δ half as wide": replace(prior, delta_sd=prior.delta_sd / 2),
        "δ ten times narrower": replace(prior, delta_sd=prior.delta_sd / 10),
        "levels twice as wide": replace(prior, level_sd=prior.level_sd * 2),
        "effects' scales half as wide": replace(prior, effect_scale=prior.effect_scale / 2),
        "effects' scales four times as wide": replace(prior, effect_scale=prior.effect_scale * 4),
    }


def prior_sensitivity(
    source: Source,
    prior: CrossedPrior | None = None,
    *,
    prob: float = 0.89,
    draws: int = 2000,
    seed: int = 0,
) -> list[Sensitivity]:
    """Refit crossed under each of the alternatives."""
    table = read_table(source)
    found = []
    for name, chosen in alternatives(prior or CrossedPrior()).items():
        result = fit(table, priors=Priors(crossed=chosen), draws=draws, seed=seed)
        found.append(Sensitivity(name, chosen, connection_contrasts(result, prob)))
    return found
