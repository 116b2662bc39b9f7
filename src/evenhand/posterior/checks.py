"""Assessing fits: predictive checks, sensitivity to the prior, criteria and diagnostics.

The statistics of the predictive checks are the spread of all distances, the mean of every
connection class, and two intra-class correlations of the residuals from words and connection
classes: by attribute, and by class and attribute. Models without attribute effects fail the former:
their rows are independent, real rows are not. crossed-no-interaction fails the latter where the
words of a class share what they have in common with a stereotype.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Result, ResultList
from evenhand.errors import InputError
from evenhand.files import document, replace_file, save_csv, save_json
from evenhand.instruments import judge_result
from evenhand.judging import Outcome, excludes
from evenhand.posterior.criteria import (
    Criteria,
    ModelDifference,
    compare_models,
    compute_criteria,
)
from evenhand.posterior.crossed import (
    CROSSED,
    CrossedData,
    CrossedPrior,
    EffectDraws,
    build_crossed_fit,
)
from evenhand.posterior.fits import (
    DELTA,
    Diagnostics,
    Fit,
    in_chains,
    measure_contrasts,
    measure_levels,
)
from evenhand.posterior.models import Fitted, Priors, fit
from evenhand.posterior.tables import CONNECTIONS, Source, Table, read_table
from evenhand.posterior.thesis import NAIVE, THESIS, build_design, build_thesis_fit
from evenhand.results import Measurement
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import hdi

INTRA_CLASS = "intra-class correlation by attribute"


@dataclass(frozen=True, slots=True, repr=False)
class Check(Result):
    """A statistic of the data and of tables simulated from the model.

    `p` is twice the smaller share of simulated tables at or above, or below, the data: near 0
    where the model cannot produce such data. `passed`: the data lie in the interval.
    """

    statistic: str
    observed: float
    mean: float
    low: float
    high: float
    p: float

    @property
    def passed(self) -> bool:
        return not excludes(self.low, self.high, self.observed)

    def to_dict(self) -> dict[str, object]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "passed": self.passed}

    def _headline(self) -> str:
        return (
            f"{self.statistic}: {self.observed:.3f}, replicated [{self.low:.3f}, {self.high:.3f}]"
        )

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"statistic": self.statistic, "value": self.mean, "low": self.low, "high": self.high}
            | {
                "ideal": self.observed,
                "observed": self.observed,
                "p": self.p,
                "passed": self.passed,
            }
        ]


def check_posterior(
    fit: Fit, *, replicates: int = 400, prob: float = 0.99, seed: int = 0
) -> ResultList[Check]:
    """Compare the table with tables simulated from the posterior."""
    rng = np.random.default_rng(seed)
    selected = rng.choice(fit.size, size=min(replicates, fit.size), replace=False)
    return _checks(fit.table, fit.predictor.replicate(selected, rng), prob)


def check_prior(
    model: str,
    table: Table,
    priors: Priors | None = None,
    *,
    replicates: int = 400,
    prob: float = 0.99,
    seed: int = 0,
) -> ResultList[Check]:
    """Compare the table with tables simulated from the prior.

    The last statistic is the share of simulated distances outside [0, 2], which no cosine distance
    can take.
    """
    rng = np.random.default_rng(seed)
    prior_fit = _draw_prior(model, table, priors or Priors(), replicates, rng)
    tables = prior_fit.predictor.replicate(np.arange(replicates), rng)
    outside = np.mean((tables < 0) | (tables > 2), axis=1)
    return ResultList(
        [*_checks(table, tables, prob), _check("share outside 0 to 2", 0.0, outside, prob)]
    )


def compute_statistics(table: Table, y: Floats) -> dict[str, Floats]:
    """Compute the statistics of tables (tables × rows) with the cells of `table`."""
    values = {"sd": y.std(axis=1, ddof=1)}
    for level in table.levels:
        rows = table.connection == CONNECTIONS.index(level)
        values[f"mean {level}"] = y[:, rows].mean(axis=1)
    word_class = CrossedData.of(table).word_class
    if word_class is not None:
        correlation = interaction_correlation(table, y, word_class)
        values["intra-class correlation by class and attribute"] = correlation
    values[INTRA_CLASS] = intra_class_correlation(table, y)
    return values


def intra_class_correlation(table: Table, y: Floats) -> Floats:
    """Compute the one-way intra-class correlation by attribute of the word × class residuals."""
    return _correlation(_residuals(table, y), table.attribute)


def interaction_correlation(table: Table, y: Floats, word_class: NDArray[np.int64]) -> Floats:
    """Compute the intra-class correlation by class and attribute, of stereotypes.

    The residuals are those from words, connection classes and attributes.
    """
    rows = table.group[table.attribute] == 0
    attributes, attribute = np.unique(table.attribute[rows], return_inverse=True)
    residual = _residuals(table, y)[:, rows]
    means = _sums(residual, attribute, attributes.size) / np.bincount(attribute)
    cell = attribute * (int(word_class.max()) + 1) + word_class[table.word[rows]]
    return _correlation(residual - means[:, attribute], np.unique(cell, return_inverse=True)[1])


def _residuals(table: Table, y: Floats) -> Floats:
    cells, cell = np.unique(table.word * 4 + table.connection, return_inverse=True)
    return np.asarray(y - (_sums(y, cell, cells.size) / np.bincount(cell))[:, cell])


def _correlation(residual: Floats, index: NDArray[np.int64]) -> Floats:
    count = np.bincount(index)
    n, groups = residual.shape[1], count.size
    total = _sums(residual, index, groups)
    grand = residual.mean(axis=1)
    between = np.sum(total**2 / count, axis=1) - n * grand**2
    within = np.sum(residual**2, axis=1) - np.sum(total**2 / count, axis=1)
    mean_between, mean_within = between / (groups - 1), within / max(n - groups, 1)
    size = (n - np.sum(count**2) / n) / (groups - 1)
    return np.asarray((mean_between - mean_within) / (mean_between + (size - 1) * mean_within))


def _sums(y: Floats, index: NDArray[np.int64], size: int) -> Floats:
    """Sum the columns of equal index."""
    member = np.zeros((index.size, size))
    member[np.arange(index.size), index] = 1.0
    return np.asarray(y @ member)


def _checks(table: Table, replicated: Floats, prob: float) -> ResultList[Check]:
    observed = compute_statistics(table, table.distance[None])
    simulated = compute_statistics(table, replicated)
    return ResultList(
        _check(name, float(observed[name][0]), simulated[name], prob) for name in observed
    )


def _check(name: str, observed: float, simulated: Floats, prob: float) -> Check:
    low, high = hdi(simulated, prob)
    above = float(np.mean(simulated >= observed))
    return Check(name, observed, float(simulated.mean()), low, high, 2 * min(above, 1 - above))


def _draw_prior(
    model: str, table: Table, priors: Priors, size: int, rng: np.random.Generator
) -> Fit:
    """Build a fit whose draws come from the prior."""
    size = -(-size // 4) * 4
    if model in THESIS:
        design, prior = build_design(model, table), priors.thesis
        draws: dict[str, Floats] = {}
        for name, entries in zip(design.names, design.entries, strict=True):
            mean, sd = prior.of(name)
            draws[name] = in_chains(mean + sd * rng.standard_normal((size, len(entries))))
        draws["sigma"] = in_chains(prior.error_scale * np.abs(rng.standard_cauchy(size)))
        return build_thesis_fit(model, table, design, draws)
    if model not in CROSSED:
        expected = ", ".join((*THESIS, *CROSSED))
        raise InputError(f"prior check: expected one of {expected}, got {model}")
    interaction = model == "crossed"
    data = CrossedData.of(table, interaction=interaction)
    hyper = priors.crossed.for_model(interaction=interaction)
    scales = np.abs(hyper.effect_scale * rng.standard_normal((size, len(data.scales))))
    shape = (size, int(data.is_spread.sum()))
    spread = np.where(rng.random(shape) < 0.5, hyper.spread_scale, hyper.negligible_scale)
    scales[:, data.is_spread] = np.abs(spread * rng.standard_normal(shape))
    scales[:, 0] = hyper.error_scale * np.abs(rng.standard_cauchy(size))
    groups = len(data.present)
    gamma = hyper.level_mean + hyper.level_sd * rng.standard_normal((size, groups))
    delta = hyper.delta_sd * rng.standard_normal((size, 1))
    order = (groups + 2, groups + 1, *range(groups + 3, 2 * groups + 2))
    effects = [scales[:, [k]] * rng.standard_normal((size, data.words)) for k in order]
    group_index = np.searchsorted(data.present, data.group)
    theta = gamma[:, group_index] + scales[:, 1 + group_index] * rng.standard_normal(
        (size, group_index.size)
    )
    beta = np.concatenate([gamma, delta, *effects], axis=1)
    spread = scales[:, -groups:][:, group_index] if data.word_class is not None else 0 * theta
    eta = spread[:, :, None] * rng.standard_normal((*theta.shape, data.classes))
    return build_crossed_fit(table, data, in_chains(scales), EffectDraws(beta, theta, eta))


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Contrasts of the crossed model under one prior."""

    name: str
    prior: CrossedPrior
    contrasts: Mapping[str, Measurement]

    @property
    def outcome(self) -> Outcome:
        """What the judge says of associated-different; few draws are no matter of the prior."""
        delta = self.contrasts[DELTA]
        exact = replace(delta, details={**delta.details, "interval_error": None})
        return judge_result(exact).outcome

    def to_dict(self) -> dict[str, object]:
        return {
            "prior": self.name,
            "outcome": self.outcome,
            "measurements": list(self.contrasts.values()),
        }


def vary_prior(prior: CrossedPrior) -> dict[str, CrossedPrior]:
    """Return the prior and its alternatives by name."""
    return {
        "as given": prior,
        "δ half as wide": replace(prior, delta_sd=prior.delta_sd / 2),
        "δ ten times narrower": replace(prior, delta_sd=prior.delta_sd / 10),
        "levels twice as wide": replace(prior, level_sd=prior.level_sd * 2),
        "effects' scales half as wide": replace(prior, effect_scale=prior.effect_scale / 2),
        "effects' scales four times as wide": replace(prior, effect_scale=prior.effect_scale * 4),
        "spreads of δ and η never negligible": replace(prior, negligible_scale=prior.spread_scale),
        "spreads of δ and η like the other scales": prior.without_interaction(),
    }


def summarize_sensitivity(rows: Sequence[Sensitivity]) -> str:
    """Say whether the judgement of associated-different is the same under every prior."""
    given, *others = rows
    about = f"Monte Carlo error aside, {DELTA}"  # which may leave undecided what is found here
    changed = [row for row in others if row.outcome != given.outcome]
    if not changed:
        return f"{about} is {given.outcome} under all {len(rows)} priors"

    def shown(row: Sensitivity) -> str:
        m = row.contrasts[DELTA]
        return f"“{row.name}” ({m.value:.4f} [{m.low:.4f}, {m.high:.4f}])"

    outcomes = sorted({row.outcome for row in changed})
    cases = "; ".join(
        f"{outcome} under {', '.join(shown(row) for row in changed if row.outcome == outcome)}"
        for outcome in outcomes
    )
    return f"{about} depends on the prior: {given.outcome} under {shown(given)}; {cases}"


def check_sensitivity(
    source: Source,
    prior: CrossedPrior | None = None,
    *,
    prob: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> list[Sensitivity]:
    """Refit crossed under narrower and wider priors."""
    table = read_table(source)
    rows = []
    for name, variant in vary_prior(prior or CrossedPrior()).items():
        result = fit(table, priors=Priors(crossed=variant), draws=draws, seed=seed)
        rows.append(Sensitivity(name, variant, measure_contrasts(result, prob)))
    return rows


@dataclass(frozen=True, slots=True, repr=False)
class Assessment(Result):
    """The fits of a table with their contrasts, criteria, diagnostics and, on request, checks."""

    fitted: Fitted
    prob: float
    criteria: Mapping[str, Criteria]
    diagnostics: Mapping[str, Diagnostics]
    checks: Mapping[str, list[Check]] = field(default_factory=dict)
    sensitivity: tuple[Sensitivity, ...] = ()

    @property
    def differences(self) -> list[ModelDifference]:
        """Differences of the models from the best one, best first."""
        return compare_models(self.criteria)

    def contrasts(self) -> dict[str, dict[str, Measurement]]:
        """Measure the contrasts, by model; those of crossed are for conclusions."""
        return {name: measure_contrasts(f, self.prob) for name, f in self.fitted.fits.items()}

    def levels(self) -> dict[str, dict[str, Measurement]]:
        """Measure the mean distance to every connection class, by model."""
        return {name: measure_levels(f, self.prob) for name, f in self.fitted.fits.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: what is not identified, has not mixed or cannot be trusted."""
        notes = list(dict.fromkeys(n for fit in self.fitted.fits.values() for n in fit.notes))
        if "coefficients" in self.fitted.fits:
            notes.append(NAIVE)
        for name, d in self.diagnostics.items():
            if d.rhat_max > 1.01 or d.ess_min < min(400, self.fitted.fits[name].size / 4):
                notes.append(
                    f"{name}: R-hat {d.rhat_max:.3f} and effective sample size {d.ess_min:.0f} "
                    f"({d.worst}): increase the number of draws"
                )
        notes += [
            f"{name}: Pareto k > 0.7 for {score.high_k} rows, for which LOO cannot be trusted"
            for name, score in self.criteria.items()
            if score.high_k
        ]
        if self.sensitivity and DELTA in self.sensitivity[0].contrasts:
            notes.append(summarize_sensitivity(self.sensitivity))
        return tuple(notes)

    def with_sensitivity(self, prior: CrossedPrior, *, draws: int, seed: int) -> Assessment:
        """Add the contrasts under other priors."""
        rows = check_sensitivity(self.fitted.table, prior, prob=self.prob, draws=draws, seed=seed)
        return replace(self, sensitivity=tuple(rows))

    def to_dict(self) -> dict[str, object]:
        """Return contrasts and levels of all models, and everything that assesses them."""
        measured = [*self.contrasts().values(), *self.levels().values()]
        content: dict[str, Any] = {
            "measurements": [m for by_name in measured for m in by_name.values()],
            "rows": self.fitted.table.rows,
            "dropped": dict(self.fitted.table.dropped),
            "prob": self.prob,
            "models": {
                name: {
                    **self.criteria[name].to_dict(),
                    **asdict(self.diagnostics[name]),
                    "sampler": fit.sampler,
                }
                for name, fit in self.fitted.fits.items()
            },
            "differences": self.differences,
            "skipped": dict(self.fitted.skipped),
            "notes": self.notes,
        }
        if self.checks:
            content["checks"] = self.checks
        if self.sensitivity:
            content["sensitivity"] = [row.to_dict() for row in self.sensitivity]
        return content

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write results.json, contrasts.csv, levels.csv and the draws of every model."""
        path = Path(folder)
        (path / "draws").mkdir(parents=True, exist_ok=True)
        contrasts, levels = (
            [
                _row(model, name, measurement)
                for model, by_name in measured.items()
                for name, total in by_name.items()
                for measurement in (total, *total.parts)
            ]
            for measured in (self.contrasts(), self.levels())
        )
        save_csv(path / "contrasts.csv", contrasts)
        save_csv(path / "levels.csv", [row for row in levels if row["word"]])
        for name, model in self.fitted.fits.items():
            with replace_file(path / "draws" / f"{name}.csv") as file:
                model.to_frame().to_csv(file, index=False, float_format="%.7g")
        save_json(path / "results.json", document(**self.to_dict()))

    def _headline(self) -> str:
        return f"{', '.join(self.criteria)} on {self.fitted.table._headline()}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [row for criteria in self.criteria.values() for row in criteria._rows()]


def _row(model: str, quantity: str, m: Measurement) -> dict[str, Any]:
    group = m.query if m.by == "class" else m.details.get("class", "")
    return {
        "model": model,
        "quantity": quantity,
        "class": group,
        "word": m.query if m.by == "word" else "",
        "mean": m.value,
        "sd": m.details["sd"],
        "low": m.low,
        "high": m.high,
        "p_below_zero": m.details["p_below_zero"],
    }


def assess(
    fitted: Fitted, *, prob: float = 0.95, checks: bool = False, seed: int = 0
) -> Assessment:
    """Compute criteria, diagnostics and, on request, predictive checks of the fits of a table."""
    fits = fitted.fits
    return Assessment(
        fitted=fitted,
        prob=prob,
        criteria={name: compute_criteria(fit) for name, fit in fits.items()},
        diagnostics={name: fit.diagnostics() for name, fit in fits.items()},
        checks={name: check_posterior(f, seed=seed) for name, f in fits.items()} if checks else {},
    )
