"""The measurements before and after, and their changes paired item by item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.intervals import Floats
from evenhand.masked.finetune.held_out import HeldOut
from evenhand.masked.finetune.result import Change
from evenhand.masked.finetune.settings import Settings
from evenhand.masked.metrics.crows import Crows, crows
from evenhand.masked.metrics.perplexity import Perplexity, perplexity
from evenhand.masked.metrics.pronouns import pronouns
from evenhand.masked.model import Model
from evenhand.results import Estimate, Measurement
from evenhand.statistics.intervals import bootstrap_mean, paired_shares, wilson

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = ["Measured", "changes", "crows_change", "distance_change", "items", "measure"]

Stage = Callable[[str], Callable[[int, int], None] | None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One model on the held-out sentences."""

    scores: Measurement
    plain: Measurement
    pairs: Measurement | None


def measure(
    model: Model, held: HeldOut, settings: Settings, *, stage: Stage, cache: Cache | None
) -> Measured:
    """Pronoun scores, pseudo-likelihoods of plain text and, where there are pairs, CrowS."""
    prob, seed = settings.prob, settings.seed
    return Measured(
        pronouns(
            model, held.sentences, top_k=settings.top_k, prob=prob, seed=seed, cache=cache,
            progress=stage("pronouns"),
        ),
        perplexity(
            model, held.plain, prob=prob, seed=seed, cache=cache, progress=stage("perplexity")
        ),
        crows(
            model, held.pairs, prob=prob, seed=seed, cache=cache, progress=stage("CrowS")
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
        _perplexity(before, after),
    ]
    if before.pairs is not None and after.pairs is not None:
        made.append(_crows(before.pairs, after.pairs))
    return tuple(made)


def items(measured: Mapping[str, Measured]) -> dict[str, list[Any]]:
    """The held-out sentences with each model's two scores, a column a name."""
    first = next(iter(measured.values())).scores.items
    columns: dict[str, list[Any]] = {name: list(first[name]) for name in ("masked", "pronoun")}
    for name, one in measured.items():
        columns[f"bias_{name}"] = one.scores.items["full_bias"].tolist()
        columns[f"bias_top_{name}"] = one.scores.items["bias"].tolist()
    return columns


def crows_change(before: Measured, after: Measured) -> dict[str, Any] | None:
    """CrowS before and after by category, where it was measured."""
    if before.pairs is None or after.pairs is None:
        return None
    return Crows.compare(before.pairs, after.pairs).to_dict(items=False)


def _paired(before: Measured, after: Measured, name: str) -> tuple[Floats, Floats]:
    """The scores of both on the sentences that both could score."""
    one, two = before.scores.items[name], after.scores.items[name]
    both = np.isfinite(one) & np.isfinite(two)
    return one[both], two[both]


def _distances(scores: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    one, two = scores
    return abs(one - 0.5), abs(two - 0.5)


def _mean(
    name: str, one: Floats, two: Floats, settings: Settings, *, ideal: float, most: float = 1.0
) -> Change:
    def mean(x: Floats, least: float) -> Estimate:
        bounds = (least, most)
        interval = bootstrap_mean(x, prob=settings.prob, seed=settings.seed, bounds=bounds)
        return Estimate.of(interval, settings.prob)

    change = mean(two - one, -most)
    return Change(
        measure=name, n=one.size, ideal=ideal, before=mean(one, 0.0), after=mean(two, 0.0),
        change=change,
        # nothing lies below an ideal of 0: there the change is that of the distance
        distance=distance_change(change, mean(one + two - 2 * ideal, -1.0)) if ideal else change,
    )  # fmt: skip


def distance_change(change: Estimate, total: Estimate) -> Estimate:
    r"""The change of the distance from the ideal, of the paired difference and the paired sum.

    With $a$ and $b$ the gaps after and before, $d = a - b$ and $s = a + b$,
    $|a| - |b| = \mathrm{sign}(sd) \min(|s|, |d|)$. The interval is what this gives over those of
    $d$ and $s$; it lies below 0 only where both are clear of 0, with opposite signs: an
    intersection-union test (Berger 1982), which keeps its level without a correction. (The
    bootstrap of a difference of absolute values fails near the ideal, where they have a kink.)

    >>> change = Estimate(value=-.095, low=-.12, high=-.07)
    >>> told = distance_change(change, Estimate(value=.005, low=-.03, high=.04))
    >>> told.value, told.low, told.high
    (-0.005, -0.04, 0.03)
    """

    def gap(d: float, s: float) -> float:
        return math.copysign(min(abs(d), abs(s)), d * s)

    ends = [gap(d, s) for d in (change.low, change.high) for s in (total.low, total.high)]
    return Estimate(
        value=gap(change.value, total.value), low=min(ends), high=max(ends), prob=change.prob
    )


def _perplexity(before: Measured, after: Measured) -> Change:
    ratio = Perplexity.compare(before.plain, after.plain)
    return Change(
        measure="pseudo-perplexity", n=ratio.paired, kind="ratio",
        before=before.plain.estimate, after=after.plain.estimate, change=ratio.change,
    )  # fmt: skip


def _crows(before: Measurement, after: Measurement) -> Change:
    """The shares of both over the pairs that are a tie for neither, as the change is."""
    shift = Crows.compare(before, after)
    n, prob, counts = shift.paired, shift.change.prob, shift.details
    first, second = (round(counts[when] * n) if n else 0 for when in ("before", "after"))
    both = first - counts["to_less"]
    neither = n - both - counts["to_less"] - counts["to_more"]
    # after + before - 1 is after - (1 - before): the same with the sides of the first exchanged
    total = paired_shares(counts["to_more"], neither, both, counts["to_less"], prob=prob)
    return Change(
        measure="CrowS stereotype share", n=n, ideal=0.5,
        before=Estimate.of(wilson(first, n, prob), prob),
        after=Estimate.of(wilson(second, n, prob), prob),
        change=shift.change,
        distance=distance_change(shift.change, Estimate.of(total, prob)),
    )  # fmt: skip
