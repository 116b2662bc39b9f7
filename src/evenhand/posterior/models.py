"""The models by name: the thesis' three, the 2024 paper's, and crossed, our default.

>>> from evenhand.posterior.simulation import simulate
>>> result = fit(simulate(delta=-0.2, seed=1), "coefficients", draws=400)
>>> sorted(result.coefficients())
['associated', 'different', 'human', 'none']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.errors import InputError, UnknownNameError
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.crossed_fit import CHAINS, fit_crossed
from evenhand.posterior.fits import Fit
from evenhand.posterior.paper import PaperPrior, fit_paper
from evenhand.posterior.tables import Table, read_table
from evenhand.posterior.thesis import THESIS, ThesisPrior, fit_thesis

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = ["MODELS", "Errors", "Fitted", "Priors", "Sampler", "fit", "fit_models"]

MODELS = (*THESIS, "paper", "crossed")
Sampler = Literal["exact", "nuts"]
Errors = Literal["normal", "student"]
FEWEST = 10 * CHAINS


@dataclass(frozen=True, slots=True)
class Priors:
    """The prior of each family of models."""

    thesis: ThesisPrior = field(default_factory=ThesisPrior)
    paper: PaperPrior = field(default_factory=PaperPrior)
    crossed: CrossedPrior = field(default_factory=CrossedPrior)

    def changed(self, changes: Iterable[str]) -> Priors:
        """The priors with changes written as FAMILY.NAME=VALUE.

        >>> Priors().changed(["crossed.delta_sd=0.1"]).crossed.delta_sd
        0.1
        """
        result = self
        for change in changes:
            name, _, value = change.partition("=")
            family, _, key = name.strip().partition(".")
            known = {
                f"{f.name}.{k.name}" for f in fields(self) for k in fields(getattr(self, f.name))
            }
            if f"{family}.{key}" not in known:
                raise UnknownNameError("prior", name.strip(), known)
            try:
                number = float(value)
            except ValueError:
                number = float("nan")
            if not np.isfinite(number) or (number <= 0 and not key.endswith("mean")):
                raise InputError(f"prior {name}: expected a positive number, got '{value}'")
            part = replace(getattr(result, family), **{key: number})
            result = replace(result, **{family: part})
        return result


def fit(
    source: Source,
    model: str = "crossed",
    *,
    priors: Priors | None = None,
    draws: int = 4000,
    seed: int = 0,
    sampler: Sampler = "exact",
    errors: Errors = "normal",
) -> Fit:
    """Fit one model to a distance table; `errors` applies to crossed alone."""
    for kind, name, known in (
        ("model", model, MODELS), ("sampler", sampler, get_args(Sampler)),
        ("errors", errors, get_args(Errors)),
    ):  # fmt: skip
        if name not in known:
            raise UnknownNameError(kind, name, known)
    if draws < FEWEST:
        raise InputError(f"draws: expected at least {FEWEST}, got {draws}")
    table, priors = read_table(source), priors or Priors()
    _check_spread(table)
    draws = -(-draws // CHAINS) * CHAINS
    if sampler == "nuts":
        if errors != "normal" and model == "crossed":
            raise InputError(f"errors: expected normal with the sampler nuts, got {errors}")
        from evenhand.posterior.nuts import fit_nuts

        return fit_nuts(model, table, priors, draws=draws, seed=seed)
    with threadpool_limits(
        1, "blas"
    ):  # many small matrices: threads would only wait for each other
        return _fit_exactly(model, table, priors, draws, seed, errors)


def _fit_exactly(
    model: str, table: Table, priors: Priors, draws: int, seed: int, errors: Errors
) -> Fit:
    if model == "paper":
        return fit_paper(table, priors.paper, draws=draws, seed=seed)
    if model in THESIS:
        return fit_thesis(model, table, priors.thesis, draws=draws, seed=seed)
    if errors == "student":
        from evenhand.posterior.student import fit_student

        return fit_student(table, priors.crossed, draws=draws, seed=seed)
    return fit_crossed(table, priors.crossed, draws=draws, seed=seed)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Several models of one table, and those that it does not allow, with the reason."""

    table: Table
    fits: Mapping[str, Fit]
    skipped: Mapping[str, str]


def fit_models(
    source: Source,
    models: Iterable[str] = MODELS,
    *,
    strict: bool = False,
    priors: Priors | None = None,
    draws: int = 4000,
    seed: int = 0,
    sampler: Sampler = "exact",
    errors: Errors = "normal",
) -> Fitted:
    """Fit several models; one that the table does not allow is skipped, or `strict`ly refused."""
    table = read_table(source)
    fits: dict[str, Fit] = {}
    skipped: dict[str, str] = {}
    for model in models:
        try:
            fits[model] = fit(
                table, model, priors=priors, draws=draws, seed=seed, sampler=sampler, errors=errors
            )
        except UnknownNameError:
            raise
        except InputError as error:
            if strict:
                raise
            skipped[model] = str(error)
    if not fits:
        raise InputError(next(iter(skipped.values()), "no model was asked for"))
    return Fitted(table, fits, skipped)


def _check_spread(table: Table) -> None:
    if float(np.ptp(table.distance)) < 1e-9:
        raise InputError(
            f"{table.source}: expected distances that differ, got {table.rows} times "
            f"{table.distance[0]:g}"
        )
