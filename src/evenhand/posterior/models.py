"""The models by name, their priors, and fitting them to a distance table.

>>> from evenhand.posterior.tables import simulate
>>> result = fit(simulate(delta=-0.2, seed=1), "coefficients", draws=400)
>>> sorted(result.levels)
['associated', 'different', 'human', 'none']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.display import Result
from evenhand.errors import InputError, UnknownNameError
from evenhand.posterior.crossed import CHAINS, CROSSED, CrossedPrior, fit_crossed, fit_student
from evenhand.posterior.fits import Fit
from evenhand.posterior.tables import Source, Table, read_table
from evenhand.posterior.thesis import THESIS, PaperPrior, ThesisPrior, fit_paper, fit_thesis

MODELS = (*THESIS, "paper", *CROSSED)
Sampler = Literal["exact", "nuts"]
Errors = Literal["normal", "student"]
MIN_DRAWS = 10 * CHAINS


@dataclass(frozen=True, slots=True)
class Priors:
    """Priors by family of models."""

    thesis: ThesisPrior = field(default_factory=ThesisPrior)
    paper: PaperPrior = field(default_factory=PaperPrior)
    crossed: CrossedPrior = field(default_factory=CrossedPrior)

    def update(self, changes: Iterable[str]) -> Priors:
        """Return the priors with changes written as FAMILY.NAME=VALUE.

        >>> Priors().update(["crossed.delta_sd=0.1"]).crossed.delta_sd
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
    """Fit a model to a distance table.

    Parameters
    ----------
    source : path, DataFrame, DistanceTable or Table
    model : str, default "crossed"
        baseline, coefficients or separate of Dobrzeniecka (2021), paper, crossed, or
        crossed-no-interaction, which lacks the class × attribute effects and has intervals that
        are too short.
    priors : Priors, optional
    draws : int, default 4000
    seed : int, default 0
    sampler : {"exact", "nuts"}
        nuts is a check on the exact samplers and needs the extra `nuts`.
    errors : {"normal", "student"}
        Error distribution of crossed and crossed-no-interaction.

    Returns
    -------
    Fit
    """
    for kind, name, known in (
        ("model", model, MODELS),
        ("sampler", sampler, get_args(Sampler)),
        ("errors", errors, get_args(Errors)),
    ):
        if name not in known:
            raise UnknownNameError(kind, name, known)
    if draws < MIN_DRAWS:
        raise InputError(f"draws: expected at least {MIN_DRAWS}, got {draws}")
    table, priors = read_table(source), priors or Priors()
    if float(np.ptp(table.distance)) < 1e-9:
        raise InputError(
            f"{table.source}: expected distances that differ, got {table.rows} times "
            f"{table.distance[0]:g}"
        )
    draws = -(-draws // CHAINS) * CHAINS
    if sampler == "nuts":
        if errors != "normal" and model in CROSSED:
            raise InputError(f"errors: expected normal with the sampler nuts, got {errors}")
        from evenhand.posterior.nuts import fit_nuts

        return replace(fit_nuts(model, table, priors, draws=draws, seed=seed), seed=seed)
    try:
        with threadpool_limits(1, "blas"):  # threads do not help with many small matrices
            if model == "paper":
                result = fit_paper(table, priors.paper, draws=draws, seed=seed)
            elif model in THESIS:
                result = fit_thesis(model, table, priors.thesis, draws=draws, seed=seed)
            else:
                fit_model = fit_student if errors == "student" else fit_crossed
                interaction = model == "crossed"
                result = fit_model(
                    table, priors.crossed, interaction=interaction, draws=draws, seed=seed
                )
    except np.linalg.LinAlgError:
        raise InputError(
            f"{table.source}: {model}: expected distances that determine the model's scales, got "
            f"{table.rows} rows of {len(table.words)} words and {len(table.attributes)} attributes "
            "for which its curvature is singular"
        ) from None
    return replace(result, seed=seed)


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Result):
    """Several models of one table, and the reason of every model that the table does not allow."""

    table: Table
    fits: Mapping[str, Fit]
    skipped: Mapping[str, str]

    def _headline(self) -> str:
        return f"{', '.join(self.fits)} on {self.table._headline()}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [{"model": name, **row} for name, fit in self.fits.items() for row in fit._rows()]

    def _notes(self) -> Sequence[str]:
        return [f"{name}: {reason}" for name, reason in self.skipped.items()]


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
    """Fit several models; one that the table does not allow is skipped or, if `strict`, raises."""
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
        raise InputError(next(iter(skipped.values()), "models: expected at least one, got none"))
    return Fitted(table, fits, skipped)
