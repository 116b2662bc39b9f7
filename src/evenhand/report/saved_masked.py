"""What the masked stages saved, as the charts take it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.masked.metrics.association_summary import ProfessionRow, TemplateRow
from evenhand.masked.metrics.phrases import Agreement, Coefficient, PhraseCorrelation
from evenhand.results import Estimate, Measurement

__all__ = ["SavedAssociation", "association", "correlation", "estimate"]


@dataclass(frozen=True, slots=True)
class SavedAssociation:
    """An association test without the single answers."""

    model: str
    overall: Measurement
    professions: tuple[ProfessionRow, ...] = field(repr=False)
    templates: tuple[TemplateRow, ...] = field(repr=False)


def estimate(row: Mapping[str, Any]) -> Estimate:
    """A value with its interval; null, which stands for no number, becomes nan."""
    values = {name: _number(row[name]) for name in ("value", "low", "high")}
    return Estimate(**values, prob=row["prob"])


def association(row: Mapping[str, Any], overall: Measurement) -> SavedAssociation:
    """An association test as `Association.as_dict` told of it."""
    return SavedAssociation(
        model=row["model"],
        overall=overall,
        professions=tuple(
            ProfessionRow(
                profession=one["profession"], group=one["group"], women=one["women"],
                difference=estimate(one), pooled=estimate(one["pooled"]),
                sign_changes=one["sign_changes"],
            )
            for one in row["professions"]
        ),
        templates=tuple(
            TemplateRow(
                template=one["template"], kind=one["kind"], difference=estimate(one),
                without=one["without"], sign_changes=one["sign_changes"],
                agreement=one["agreement"],
            )
            for one in row["templates"]
        ),
    )  # fmt: skip


def correlation(row: Mapping[str, Any]) -> PhraseCorrelation:
    """Association against pronoun score of phrases, as the stage saved it, items included."""
    return PhraseCorrelation(
        source=row["association"],
        centred=row["centred"],
        model=row["pronouns"],
        kinds=tuple(row["kinds"]),
        parts={
            name: Agreement(
                of=part["of"], n=part["n"], groups=part["groups"],
                pearson=_coefficient(part["pearson"]), spearman=_coefficient(part["spearman"]),
                reliability=(
                    _number(part["reliability"]["association"]),
                    _number(part["reliability"]["pronoun"]),
                ),
                corrected=part["corrected"],
            )
            for name, part in row["parts"].items()
        },
        items=tuple(row["items"]),
    )  # fmt: skip


def _coefficient(row: Mapping[str, Any]) -> Coefficient:
    return Coefficient(
        fisher=estimate({**row, **row["fisher"]}),
        bootstrap=estimate({**row, **row["bootstrap"]}),
        p_value=_number(row["p_value"]),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else value
