"""Do the embeddings and the predicted pronouns of a phrase say the same?

Ye et al. (2021) leave that open. The association s(w, A, B) of each phrase is held against its mean
log odds of a male pronoun. Over all phrases both tell the sides of the sets apart, and that alone
makes them correlate; `within groups` (each side of each set centred on its own mean) asks whether
they also agree on which phrase of a side leans more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats, fisher_z
from evenhand.masked.metrics.phrases_embedding import Embedded, terms
from evenhand.masked.metrics.phrases_pronouns import PhrasePronouns
from evenhand.results import Estimate, Item

__all__ = ["NOTES", "Agreement", "Coefficient", "PhraseCorrelation", "correlation", "split_half"]

RELIABLE = 0.5
"""Below this reliability of either side no correlation is corrected for it."""
MOST_SPLITS = 200
ROUNDING = 1e-13

NOTES = (
    "The sides of the sets were chosen to differ, which alone makes the two scores correlate over "
    "all phrases; 'within groups' takes each side of each set at its own mean.",
    "Intervals of r: Fisher's or the bootstrap's, at each end the one further out, since Fisher's "
    "alone is too short where one side of a set varies much more than the others.",
    "Intervals and p-values are over phrases, with these carriers and attributes held fixed; "
    "reliability (all split halves of carriers, of attribute pairs, by Spearman and Brown) tells "
    "how much those matter. The corrected correlation divides by it where both are at least .5.",
)

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A correlation with Fisher's interval, a bootstrap interval over phrases, a permutation p.

    All are nan, with bounds of -1 and 1, where one of the scores is the same for every phrase.
    """

    fisher: Estimate
    bootstrap: Estimate
    p_value: float

    @property
    def estimate(self) -> Estimate:
        """The correlation with the interval to quote: each end the one further out.

        Fisher's counts every phrase alike, and is far too short where one group varies much more
        than the others; the bootstrap's is too short where phrases are few.
        """
        both = self.fisher, self.bootstrap
        return replace(
            self.fisher, low=min(one.low for one in both), high=max(one.high for one in both)
        )

    def as_dict(self) -> dict[str, Any]:
        parts = {
            name: {"low": one.low, "high": one.high}
            for name, one in (("fisher", self.fisher), ("bootstrap", self.bootstrap))
        }
        return {**self.estimate.as_dict(), **parts, "p_value": self.p_value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How two scores of the same phrases agree.

    `reliability` is that of the association and of the pronoun score; `corrected` is Pearson's r
    for both measured without error, None where that cannot be told.
    """

    of: str
    n: int
    groups: int
    pearson: Coefficient
    spearman: Coefficient
    reliability: tuple[float, float]
    corrected: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "of": self.of,
            "n": self.n,
            "groups": self.groups,
            "pearson": self.pearson.as_dict(),
            "spearman": self.spearman.as_dict(),
            "reliability": dict(zip(("association", "pronoun"), self.reliability, strict=True)),
            "corrected": self.corrected,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseCorrelation:
    """Association against pronoun score, overall, within groups and on each kind of side.

    `kinds` are the names of the kinds that sides of sets have: told of the first or the second.
    """

    source: str
    centred: bool
    model: str
    kinds: tuple[str, str]
    parts: Mapping[str, Agreement]
    items: tuple[Item, ...] = field(repr=False)
    notes: tuple[str, ...] = NOTES

    def as_dict(self, *, items: bool = False) -> dict[str, Any]:
        rows = {"items": [dict(item) for item in self.items]} if items else {}
        return {
            "association": self.source,
            "centred": self.centred,
            "pronouns": self.model,
            "parts": {name: part.as_dict() for name, part in self.parts.items()},
            **rows,
        }


def correlation(
    of: Embedded,
    told: PhrasePronouns,
    *,
    centred: bool = False,
    name: str = "",
    prob: float = 0.95,
    draws: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
) -> PhraseCorrelation:
    """Correlate the phrases' associations with the pronouns that a model puts beside them.

    `name` is what the model is to be called, if not by its own name.
    """
    row = {phrase: i for i, phrase in enumerate(told.phrases)}
    if missing := [phrase for phrase in of.phrases if phrase not in row]:
        raise InputError(
            f"correlation: expected pronoun scores of all phrases, got none of {missing[0]!r}"
        )
    every = terms(of, centred=centred)
    rows = [row[phrase] for phrase in of.phrases]
    odds, leaning = told.log_odds[rows], told.bias[rows]
    names = list(dict.fromkeys(zip(of.sets, of.side.tolist(), strict=True)))
    groups = np.array([names.index(key) for key in zip(of.sets, of.side.tolist(), strict=True)])
    told_of = [f"stereotyped {name}" for name in of.lists.attributes]
    kinds = [
        "neutral" if of.lists.sets[of_set].neutral else told_of[side]
        for of_set, side in zip(of.sets, of.side.tolist(), strict=True)
    ]
    chosen = {
        "all phrases": (np.ones(len(groups), dtype=bool), False),
        "within groups": (np.ones(len(groups), dtype=bool), True),
    } | {kind: (np.array([k == kind for k in kinds]), True) for kind in (*told_of, "neutral")}
    scores = every.mean(axis=1)
    return PhraseCorrelation(
        source=of.source,
        centred=centred,
        model=name or told.model,
        kinds=(told_of[0], told_of[1]),
        parts={
            part: _agreement(
                part, every[hit], odds[hit], groups[hit], within, prob, draws, permutations, seed
            )
            for part, (hit, within) in chosen.items()
            if hit.sum() >= 4
        },
        items=tuple(
            {
                "phrase": phrase,
                "set": of_set,
                "side": list(of.lists.sets[of_set].targets)[side],
                "kind": kinds[i],
                "association": float(scores[i]),
                "log_odds": float(odds[i].mean()),
                "bias": float(leaning[i].mean()),
            }
            for i, (phrase, of_set, side) in enumerate(
                zip(of.phrases, of.sets, of.side.tolist(), strict=True)
            )
        ),
    )


def _agreement(
    name: str,
    first: Floats,
    second: Floats,
    groups: Labels,
    within: bool,
    prob: float,
    draws: int,
    permutations: int,
    seed: int,
) -> Agreement:
    x, y = first.mean(axis=1), second.mean(axis=1)
    own = groups if within else np.zeros_like(groups)
    reliability = (
        split_half(_centred(first.T, own).T, seed),
        split_half(_centred(second.T, own).T, seed),
    )
    free = len(x) - (len(set(own.tolist())) - 1)
    rng = np.random.default_rng(seed)
    drawn = _resampled(groups, draws, rng)
    moved = _permuted(own, permutations, rng)
    residuals = _centred(x[None], own)[0], _centred(y[None], own)[0]
    found = {}
    for kind in ("pearson", "spearman"):
        one, two = (_ranked(v[None])[0] if kind == "spearman" else v for v in residuals)
        r = float(_rowwise(one[None], two[None])[0])
        low, high = fisher_z(r, free, prob, spearman=kind == "spearman")
        boot = [_centred(v[drawn], own) for v in (x, y)]
        if kind == "spearman":
            boot = [_ranked(v) for v in boot]
        replicates = _rowwise(*boot)
        known = replicates[~np.isnan(replicates)]
        ends = np.quantile(known, [(1 - prob) / 2, (1 + prob) / 2]) if known.size else (-1.0, 1.0)
        null = np.abs(_rowwise(np.broadcast_to(one, moved.shape), two[moved]))
        found[kind] = Coefficient(
            fisher=Estimate(value=r, low=low, high=high, prob=prob),
            bootstrap=Estimate(value=r, low=float(ends[0]), high=float(ends[1]), prob=prob),
            p_value=(
                math.nan
                if math.isnan(r)
                else float((1 + (null >= abs(r) - 1e-12).sum()) / (1 + len(moved)))
            ),
        )
    return Agreement(
        of=name,
        n=len(x),
        groups=len(set(groups.tolist())),
        reliability=reliability,
        corrected=_corrected(found["pearson"].fisher.value, reliability),
        **found,
    )


def split_half(table: Floats, seed: int = 0) -> float:
    r"""The reliability of the mean over the columns of a table, from halves of the columns.

    The correlation $r$ of the means of two halves of the columns, averaged over all ways of
    halving (or 200 drawn ones), and $2r / (1 + r)$ for the whole length (Spearman; Brown 1910).

    >>> round(split_half(np.array([[1.0, 1.0], [2.0, 2.1], [3.0, 3.0], [4.0, 3.9]])), 2)
    1.0
    """
    columns = table.shape[1]
    if columns < 2:
        return math.nan
    gaps = table - table.mean(axis=0)
    products = gaps.T @ gaps
    found = []
    for half in _halves(columns, seed):
        one = np.zeros(columns)
        one[list(half)] = 1
        two = 1 - one
        spread = (one @ products @ one) * (two @ products @ two)
        found.append(one @ products @ two / math.sqrt(spread) if spread > 0 else math.nan)
    r = float(np.mean(found))
    return 2 * r / (1 + r) if r > -1 else math.nan


def _halves(columns: int, seed: int) -> list[tuple[int, ...]]:
    size = columns // 2
    if math.comb(columns, size) <= 2 * MOST_SPLITS:
        every = list(combinations(range(columns), size))
        return [half for half in every if columns % 2 or 0 in half]
    rng = np.random.default_rng(seed)
    return [tuple(rng.permutation(columns)[:size].tolist()) for _ in range(MOST_SPLITS)]


def _corrected(r: float, reliability: Sequence[float]) -> float | None:
    """Spearman's (1904) correction for attenuation, where it is sound."""
    if not min(reliability) >= RELIABLE:
        return None
    value = r / math.sqrt(reliability[0] * reliability[1])
    return value if abs(value) <= 1 else None


def _centred(rows: Floats, groups: Labels) -> Floats:
    """Each row with the mean of every group taken away; what is left of rounding alone is 0."""
    result = np.array(rows, dtype=float)
    rounding = ROUNDING * np.abs(result).max(axis=1, keepdims=True)
    for group in np.unique(groups):
        hit = groups == group
        result[:, hit] -= result[:, hit].mean(axis=1, keepdims=True)
    result[np.abs(result) <= rounding] = 0
    return result


def _resampled(groups: Labels, draws: int, rng: np.random.Generator) -> Labels:
    """Draws of phrases (draws, n): as many of each group as there are, in the group's places."""
    result = np.empty((draws, len(groups)), dtype=np.int64)
    for group in np.unique(groups):
        places = np.flatnonzero(groups == group)
        result[:, places] = places[rng.integers(len(places), size=(draws, len(places)))]
    return result


def _permuted(groups: Labels, draws: int, rng: np.random.Generator) -> Labels:
    """Orders of the phrases (draws, n), each group shuffled within itself."""
    result = np.tile(np.arange(len(groups)), (draws, 1))
    for group in np.unique(groups):
        places = np.flatnonzero(groups == group)
        result[:, places] = rng.permuted(np.tile(places, (draws, 1)), axis=1)
    return result


def _ranked(rows: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(rows, axis=1), dtype=float)


def _rowwise(one: Floats, two: Floats) -> Floats:
    """Pearson's r of each row of one table with the same row of the other."""
    a = one - one.mean(axis=1, keepdims=True)
    b = two - two.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1)))
