"""The measurements before and after, and their changes paired item by item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.intervals import Floats
from evenhand.masked.finetune.held_out import HeldOut
from evenhand.masked.finetune.result import Change
from evenhand.masked.finetune.settings import Settings
from evenhand.masked.metrics import crows, likelihood, pronouns
from evenhand.masked.metrics.pronouns_interval import bootstrap_mean
from evenhand.masked.model import Model
from evenhand.results import Estimate

if TYPE_CHECKING:
    from evenhand.masked.kept import Kept

__all__ = ["Measured", "changes", "crows_change", "items", "measure"]

Stage = Callable[[str], Callable[[int, int], None] | None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One model on the held-out sentences."""

    scores: pronouns.PronounScores
    plain: likelihood.Likelihoods
    pairs: crows.CrowsResult | None


def measure(
    model: Model, held: HeldOut, settings: Settings, *, stage: Stage, kept: Kept | None
) -> Measured:
    """Pronoun scores, pseudo-likelihoods of plain text and, where there are pairs, CrowS."""
    prob, seed = settings.prob, settings.seed
    return Measured(
        pronouns.score(
            model, held.sentences, top_k=settings.top_k, prob=prob, seed=seed, kept=kept,
            progress=stage("pronouns"),
        ),
        likelihood.pseudo_log_likelihood(
            model, held.plain, kept=kept, progress=stage("perplexity")
        ),
        crows.score(
            model, held.pairs, prob=prob, seed=seed, kept=kept, progress=stage("CrowS")
        ) if held.pairs else None,
    )  # fmt: skip


def changes(before: Measured, after: Measured, settings: Settings) -> tuple[Change, ...]:
    """What changed from one model to the other, measure by measure."""
    full = _paired(before, after, "full_bias")
    top = _paired(before, after, "bias")
    k = settings.top_k
    made = [
        _mean("mean bias", *full, settings, ideal=0.5),
        _mean("mean |bias - .5|", *_distances(full), settings, ideal=0.0, most=0.5),
        _mean(f"mean bias, top {k}", *top, settings, ideal=0.5),
        _mean(f"mean |bias - .5|, top {k}", *_distances(top), settings, ideal=0.0, most=0.5),
        _perplexity(before, after, settings),
    ]
    if before.pairs is not None and after.pairs is not None:
        made.append(_crows(before.pairs, after.pairs))
    return tuple(made)


def items(measured: Mapping[str, Measured]) -> dict[str, list[Any]]:
    """The held-out sentences with each model's two scores, a column a name."""
    first = next(iter(measured.values())).scores
    told = first.sentences or ()
    columns: dict[str, list[Any]] = {
        "masked": [sentence.text for sentence in told],
        "pronoun": [sentence.pronoun for sentence in told],
    }
    for name, one in measured.items():
        columns[f"bias_{name}"] = one.scores.full_bias.tolist()
        columns[f"bias_top_{name}"] = one.scores.bias.tolist()
    return columns


def crows_change(before: Measured, after: Measured) -> dict[str, Any] | None:
    """CrowS before and after by category, where it was measured."""
    if before.pairs is None or after.pairs is None:
        return None
    told = crows.compare(before.pairs, after.pairs).as_dict()
    return {**told, "caveats": list(before.pairs.caveats)}


def _paired(before: Measured, after: Measured, name: str) -> tuple[Floats, Floats]:
    """The scores of both on the sentences that both could score."""
    one, two = getattr(before.scores, name), getattr(after.scores, name)
    both = np.isfinite(one) & np.isfinite(two)
    return one[both], two[both]


def _distances(scores: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    one, two = scores
    return abs(one - 0.5), abs(two - 0.5)


def _mean(
    name: str, one: Floats, two: Floats, settings: Settings, *, ideal: float, most: float = 1.0
) -> Change:
    def mean(x: Floats, least: float) -> Estimate:
        return bootstrap_mean(x, prob=settings.prob, seed=settings.seed, bounds=(least, most))

    return Change(
        measure=name, n=one.size, ideal=ideal,
        before=mean(one, 0.0), after=mean(two, 0.0), change=mean(two - one, -most),
    )  # fmt: skip


def _perplexity(before: Measured, after: Measured, settings: Settings) -> Change:
    options: dict[str, Any] = {"prob": settings.prob, "seed": settings.seed}
    return Change(
        measure="pseudo-perplexity", n=int((before.plain.tokens > 0).sum()), kind="ratio",
        before=likelihood.perplexity(before.plain, **options).perplexity,
        after=likelihood.perplexity(after.plain, **options).perplexity,
        change=likelihood.perplexity_ratio(before.plain, after.plain, **options),
    )  # fmt: skip


def _crows(before: crows.CrowsResult, after: crows.CrowsResult) -> Change:
    shift = crows.compare(before, after).overall
    return Change(
        measure="CrowS stereotype share", n=shift.n, ideal=0.5,
        before=before.overall.share, after=after.overall.share, change=shift.share,
    )  # fmt: skip
