"""Which charts a fit or a comparison has, the one to read first in front."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.posterior.checks import check_posterior
from evenhand.report import charts_posterior as forests
from evenhand.report import charts_posterior_data as pictures
from evenhand.report.charts_posterior_parts import name_of
from evenhand.report.charts_saving import ChartSet

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.models import Priors
    from evenhand.posterior.tables import Table

__all__ = ["change_charts", "fit_charts", "telling_words"]


def fit_charts(
    report: Assessment, priors: Priors, *, words: Iterable[str] = (), seed: int = 0
) -> ChartSet:
    """The charts of a report's models; radial pictures are of these or of two telling words.

    Without crossed, levels and word means are those of separate, paper or coefficients.
    """
    fits, table, prob = report.fitted.fits, report.fitted.table, report.prob
    crossed, naive = fits.get("crossed"), fits.get("coefficients")
    order = ("crossed", "separate", "paper", "coefficients")
    chosen = next((fits[name] for name in order if name in fits), None)
    made = ChartSet()
    if crossed:
        made.add("contrasts", partial(forests.contrasts, crossed, naive, prob))
        made.add("word-deltas", partial(forests.word_deltas, crossed, prob))
    if chosen:
        named = {f"{name_of(table)}, {chosen.model}": chosen}
        made.add("levels", partial(forests.levels, named, prob))
        made.add("word-means", partial(forests.word_means, named, prob))
    if naive and naive is not chosen:
        made.add("coefficients", partial(forests.levels, {name_of(table): naive}, prob))
    made.add("densities", partial(pictures.densities, table))
    for word in words or telling_words(table):
        name = "radial-" + re.sub(r"\W+", "-", word)
        while name in made.charts:
            name += "-"
        made.add(name, partial(pictures.radial, table, word, seed=seed))
    for fit in (crossed, naive):
        if fit:
            made.add(f"priors-{fit.model}", partial(pictures.priors, fit, priors))
    found = report.checks or {name: check_posterior(fit, seed=seed) for name, fit in fits.items()}
    made.add("check", partial(forests.checks, found))
    return made


def change_charts(change: Change, prob: float = 0.89) -> ChartSet:
    """The charts of before against after."""
    times = {"before": change.before, "after": change.after}
    made = ChartSet()
    made.add("changes", partial(forests.changes, change, prob))
    made.add("levels", partial(forests.levels, times, prob))
    made.add("word-means", partial(forests.word_means, times, prob))
    return made


def telling_words(table: Table) -> tuple[str, ...]:
    """The protected words whose own stereotypes are nearest and farthest, beside those of others.

    By the plain difference of the two mean distances; the first word where none has both kinds.
    """
    gaps: dict[str, float] = {}
    for i, word in enumerate(table.words):
        own, other = (
            table.distance[(table.word == i) & (table.connection == k)] for k in (0, 1)
        )  # fmt: skip
        if own.size and other.size:
            gaps[word] = float(np.mean(own) - np.mean(other))
    if not gaps:
        return table.words[:1]
    return tuple(dict.fromkeys((min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__))))
