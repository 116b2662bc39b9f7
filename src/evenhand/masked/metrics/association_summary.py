"""What a table of differences says: overall, by group, by profession, by template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from evenhand.intervals import Floats, fisher_z
from evenhand.lexicon.professions import GROUPS, Profession, Template
from evenhand.masked.metrics.association_spread import Mean, crossed, noise_of_one, pooled
from evenhand.results import Estimate, Measurement

__all__ = [
    "ProfessionRow",
    "Sensitivity",
    "TemplateRow",
    "by_profession",
    "by_template",
    "estimated",
    "groups",
    "overall",
    "sensitivity",
    "stereotype",
    "women",
]

TEST = "two-sided t test of no difference on the crossed table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfessionRow:
    """One profession's difference over templates and pairs, as it is and partially pooled."""

    profession: str
    group: str | None
    women: float | None
    difference: Estimate
    pooled: Estimate
    sign_changes: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "profession": self.profession, "group": self.group, "women": self.women,
            **self.difference.as_dict(), "pooled": self.pooled.as_dict(),
            "sign_changes": self.sign_changes,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    """One template's difference over professions and pairs, and how it sits with the others.

    `without` is the overall difference with this template left out; `sign_changes` the share of
    professions whose sign here is not that of their mean; `agreement` the correlation of its
    professions with the mean of the other templates.
    """

    template: str
    kind: str
    difference: Estimate
    without: float | None
    sign_changes: float
    agreement: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "template": self.template, "kind": self.kind, **self.difference.as_dict(),
            "without": self.without, "sign_changes": self.sign_changes,
            "agreement": self.agreement,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far the result hangs on the choice of templates.

    `low`, `high`: the overall difference with one template left out; `changing`: the share of
    professions whose sign is not the same in all templates; `sign_changes`: how often a template
    gives a profession another sign than its mean; `reliability`: the share of the professions'
    spread that is not noise of templates and pairs.
    """

    low: float | None
    high: float | None
    changing: float
    sign_changes: float
    reliability: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def overall(table: Floats, professions: Sequence[Profession], prob: float) -> Measurement:
    """The mean difference over everything; professions are one sample."""
    return _measured("male - female", crossed(table), table, professions, prob)


def groups(table: Floats, professions: Sequence[Profession], prob: float) -> dict[str, Measurement]:
    """The mean difference of each group of professions."""
    found = {}
    for group in GROUPS:
        chosen = [i for i, profession in enumerate(professions) if profession.group == group]
        if chosen:
            part = table[:, chosen, :]
            members = [professions[i] for i in chosen]
            found[group] = _measured(f"{group} professions", crossed(part), part, members, prob)
    return found


def stereotype(table: Floats, professions: Sequence[Profession], prob: float) -> Measurement | None:
    """Male-leaning less female-leaning professions: above 0, the model follows the labour force.

    A group of one profession is taken to spread as the other does; with one in each the interval
    has no bounds.
    """
    labels = [profession.group for profession in professions]
    counts = {group: labels.count(group) for group in ("male", "female")}
    if not all(counts.values()):
        return None
    chosen = [i for i, label in enumerate(labels) if label in counts]
    part, members = table[:, chosen, :], [professions[i] for i in chosen]
    sides = [str(member.group) for member in members]
    weights = [(1 if side == "male" else -1) / counts[side] for side in sides]
    mean = crossed(part, weights, sides)
    measured = _measured("male-leaning - female-leaning professions", mean, part, members, prob)
    several = [group for group, n in counts.items() if n > 1]
    if not several:
        words = "unbounded: one profession in each group tells nothing of their spread"
    elif len(several) == 1:
        words = measured.interval.replace(
            "professions", f"professions (spread of the {several[0]} ones taken for both groups)"
        )
    else:
        return measured
    return replace(measured, interval=words)


def by_profession(
    table: Floats, professions: Sequence[Profession], prob: float
) -> tuple[ProfessionRow, ...]:
    """Every profession, the most male first."""
    _, pulled = pooled(table)
    changes = _sign_changes(table).mean(axis=0)
    found = [
        ProfessionRow(
            profession=profession.name, group=profession.group, women=profession.women,
            difference=estimated(crossed(table[:, [i], :]), prob),
            pooled=estimated(pulled[i], prob),
            sign_changes=float(changes[i]),
        )
        for i, profession in enumerate(professions)
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda row: -row.pooled.value))


def by_template(
    table: Floats, templates: Sequence[Template], prob: float
) -> tuple[TemplateRow, ...]:
    """Every template, in the order given."""
    changes = _sign_changes(table).mean(axis=1)
    profiles = table.mean(axis=2)
    found = []
    for i, template in enumerate(templates):
        others = np.delete(profiles, i, axis=0)
        found.append(
            TemplateRow(
                template=template.text, kind=template.kind,
                difference=estimated(crossed(table[[i]]), prob),
                without=float(others.mean()) if len(others) else None,
                sign_changes=float(changes[i]),
                agreement=_correlation(profiles[i], others.mean(axis=0)) if len(others) else None,
            )
        )  # fmt: skip
    return tuple(found)


def sensitivity(table: Floats, rows: Sequence[TemplateRow]) -> Sensitivity:
    """The templates' part in the result, in five numbers."""
    without = [row.without for row in rows if row.without is not None]
    changes = _sign_changes(table)
    signs = np.sign(table.mean(axis=2))
    spread = float(table.mean(axis=(0, 2)).var(ddof=1)) if table.shape[1] > 1 else 0.0
    noise = noise_of_one(table)
    return Sensitivity(
        low=min(without) if without else None,
        high=max(without) if without else None,
        changing=float((signs != signs[0]).any(axis=0).mean()),
        sign_changes=float(changes.mean()),
        reliability=max(0.0, 1 - noise / spread) if spread and noise else None,
    )


def women(
    table: Floats, professions: Sequence[Profession], prob: float
) -> Mapping[str, Any] | None:
    """Spearman's correlation of the professions' differences with their shares of women.

    A model that follows the labour force reads below 0.
    """
    from scipy.stats import rankdata

    means = table.mean(axis=(0, 2))
    known = [
        (mean, profession.women)
        for mean, profession in zip(means, professions, strict=True)
        if profession.women is not None
    ]
    ranks = rankdata(np.array(known), axis=0) if len(known) > 3 else np.zeros((2, 2))
    r = _correlation(ranks[:, 0], ranks[:, 1])
    if r is None:
        return None
    low, high = fisher_z(r, len(known), prob, spearman=True)
    return {**Estimate(value=r, low=low, high=high, prob=prob).as_dict(), "n": len(known)}


def estimated(mean: Mean, prob: float) -> Estimate:
    """A mean with its interval."""
    low, high = mean.interval(prob)
    return Estimate(value=mean.value, low=low, high=high, prob=prob)


def _measured(
    query: str, mean: Mean, table: Floats, professions: Sequence[Profession], prob: float
) -> Measurement:
    low, high = mean.interval(prob)
    return Measurement(
        metric="association", query=query, value=mean.value, low=low, high=high, prob=prob,
        n=table.size, ideal=0.0, worse="away", p_value=mean.p_value, test=TEST,
        interval=f"Student's, over {', '.join(mean.over) or 'nothing'} (crossed random effects)",
        items=tuple(
            {"word": profession.name, "score": float(score)}
            for profession, score in zip(professions, table.mean(axis=(0, 2)), strict=True)
        ),
    )  # fmt: skip


def _sign_changes(table: Floats) -> Floats:
    """1 where a template gives a profession another sign than its mean (templates, professions)."""
    profiles = table.mean(axis=2)
    return np.asarray(np.sign(profiles) != np.sign(profiles.mean(axis=0)), dtype=float)


def _correlation(x: Floats, y: Floats) -> float | None:
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])
