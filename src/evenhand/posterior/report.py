"""Everything that is said of the models of one table: criteria, levels, contrasts, warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.posterior.checks import Check, posterior_check
from evenhand.posterior.comparison import Criteria, Difference, compare_models, criteria
from evenhand.posterior.contrasts import (
    Named,
    class_contrasts,
    connection_contrasts,
    word_contrasts,
    word_levels,
)
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.fits import Diagnostics
from evenhand.posterior.models import Fitted
from evenhand.posterior.sensitivity import Sensitivity, prior_sensitivity

__all__ = ["Report", "summary_of"]

NAIVE = (
    "the thesis' and the paper's models take the rows of an attribute for independent: conclude "
    "from crossed; their intervals for contrasts with human and none words are far too short"
)
CROSSED = "Contrasts by crossed, the ones to conclude from"
NAIVE_TITLE = "Contrasts by the thesis' coefficients, which know of no attribute effects"


@dataclass(frozen=True, slots=True)
class Report:
    """The fits of a table with their criteria, diagnostics, and checks where asked for."""

    fitted: Fitted
    prob: float
    scores: Mapping[str, Criteria]
    diagnostics: Mapping[str, Diagnostics]
    checks: Mapping[str, list[Check]] = field(default_factory=dict)
    sensitivity: tuple[Sensitivity, ...] = ()

    @property
    def differences(self) -> list[Difference]:
        """The models beside the best one, the best first."""
        return compare_models(self.scores)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must know: what is not identified, not mixed, not to be trusted."""
        notes = [note for fit in self.fitted.fits.values() for note in fit.notes]
        if "coefficients" in self.fitted.fits:
            notes.append(NAIVE)
        for name, found in self.diagnostics.items():
            if found.rhat_max > 1.01 or found.ess_min < min(400, self.fitted.fits[name].size / 4):
                notes.append(
                    f"{name}: R-hat {found.rhat_max:.3f} and effective sample size "
                    f"{found.ess_min:.0f} ({found.worst}): take more draws"
                )
        notes += [
            f"{name}: Pareto's k is above .7 for {score.high_k} rows, where LOO cannot be trusted"
            for name, score in self.scores.items()
            if score.high_k
        ]
        return tuple(notes)

    def with_sensitivity(self, prior: CrossedPrior, *, draws: int, seed: int) -> Report:
        """The same with the contrasts under other priors."""
        found = prior_sensitivity(self.fitted.table, prior, prob=self.prob, draws=draws, seed=seed)
        return replace(self, sensitivity=tuple(found))

    def contrast_tables(self) -> dict[str, list[Named]]:
        """The contrasts of crossed, by protected word, by class, and the thesis' naive ones."""
        tables: dict[str, list[Named]] = {}
        fits = self.fitted.fits
        if "crossed" in fits:
            crossed = fits["crossed"]
            tables[CROSSED] = _named(connection_contrasts(crossed, self.prob))
            tables["associated-different by class"] = class_contrasts(crossed, self.prob)
            tables["associated-different by word"] = word_contrasts(crossed, self.prob)
        if "coefficients" in fits:
            naive = _named(connection_contrasts(fits["coefficients"], self.prob))
            tables[NAIVE_TITLE] = naive
        return {title: rows for title, rows in tables.items() if rows}

    def all_contrasts(self) -> list[Named]:
        """The rows of all contrast tables, the model of each in its name."""
        crossed = [
            row for title, rows in self.contrast_tables().items() if title != NAIVE_TITLE
            for row in rows
        ]  # fmt: skip
        naive = [
            replace(row, of=f"{name}: {row.of}")
            for name, fit in self.fitted.fits.items() if name != "crossed"
            for row in _named(connection_contrasts(fit, self.prob))
        ]  # fmt: skip
        return [*(replace(row, of=f"crossed: {row.of}") for row in crossed), *naive]

    def all_levels(self) -> list[Named]:
        """The mean distance of each word to each connection, by every model that has one."""
        return [
            replace(row, of=f"{name}: {row.of}")
            for name, fit in self.fitted.fits.items() if name != "baseline"
            for row in word_levels(fit, self.prob)
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        fits = self.fitted.fits
        crossed, naive = fits.get("crossed"), fits.get("coefficients")
        content: dict[str, Any] = {
            "rows": self.fitted.table.rows,
            "dropped": dict(self.fitted.table.dropped),
            "prob": self.prob,
            "models": {name: self._model(name) for name in fits},
            "contrasts": connection_contrasts(crossed, self.prob) if crossed else {},
            "naive_contrasts": connection_contrasts(naive, self.prob) if naive else {},
            "words": word_contrasts(crossed, self.prob) if crossed else [],
            "classes": class_contrasts(crossed, self.prob) if crossed else [],
            "differences": self.differences,
            "skipped": dict(self.fitted.skipped),
            "notes": self.notes,
        }
        if self.checks:
            content["checks"] = self.checks
        if self.sensitivity:
            content["sensitivity"] = self.sensitivity
        return content

    def _model(self, name: str) -> dict[str, Any]:
        fit, found = self.fitted.fits[name], self.diagnostics[name]
        return {
            **self.scores[name].as_dict(),
            "rhat_max": found.rhat_max,
            "ess_min": found.ess_min,
            "sampler": fit.sampler,
            "coefficients": {
                level: {"mean": s.mean, "sd": s.sd, "low": s.low, "high": s.high}
                for level, s in fit.coefficients(self.prob).items()
            },
        }


def summary_of(
    fitted: Fitted, *, prob: float = 0.89, checks: bool = False, seed: int = 0
) -> Report:
    """Score, diagnose and, where asked, check the fits of one table."""
    fits = fitted.fits
    return Report(
        fitted=fitted,
        prob=prob,
        scores={name: criteria(fit) for name, fit in fits.items()},
        diagnostics={name: fit.diagnostics() for name, fit in fits.items()},
        checks={name: posterior_check(f, seed=seed) for name, f in fits.items()} if checks else {},
    )


def _named(summaries: Mapping[str, Any]) -> list[Named]:
    return [Named("", "", name, summary) for name, summary in summaries.items()]
