r"""Phrase WEAT: do phrases of what people do lean to the words for one gender?

$s(w, A, B) = \operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)$

for a phrase w, and the effect size d of Caliskan, Bryson & Narayanan (2017) for two sets X and Y of
phrases that state no gender but are told of one (Ye et al. 2021, §2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, LexiconError, UnknownNameError
from evenhand.instruments import compare
from evenhand.intervals import Floats, effect_size
from evenhand.lexicon.phrases import Phrases
from evenhand.masked.metrics.phrases_correlation import (
    NOTES,
    Agreement,
    Coefficient,
    PhraseCorrelation,
    correlation,
)
from evenhand.masked.metrics.phrases_embedding import (
    Embed,
    Embedded,
    WordMean,
    associations,
    embedded,
    moved,
)
from evenhand.masked.metrics.phrases_pronouns import PhrasePronouns, pronouns
from evenhand.masked.model import MaskedLM, Model
from evenhand.masked.words import MASKS
from evenhand.permutation import Alternative, two_sample
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.masked.scoring import Progress

__all__ = [
    "Agreement", "Coefficient", "Embed", "Embedded", "PhraseCorrelation", "PhrasePronouns",
    "PhraseReport", "WordMean", "associations", "correlation", "embedded", "measure", "pronouns",
    "refuse_masks", "weat",
]  # fmt: skip

MOST_FLIPS = 16
"""Up to so many pairs of attributes every exchange is counted."""


def weat(
    of: Embedded,
    name: str,
    *,
    centred: bool = False,
    prob: float = 0.95,
    permutations: int = 100_000,
    alternative: Alternative = "two-sided",
    seed: int = 0,
) -> Measurement:
    """The effect size of one of the sets: its first side against its second.

    The p-value is exact over all partitions of up to 40 phrases; `p_attributes` in `details` is
    the same question over the attributes, the phrases fixed: paired attributes change places.
    The interval is over phrases, the attributes held fixed. `mean_cosine` is that of the set's
    phrases with each other.

    >>> from evenhand.lexicon.phrases import phrases
    >>> from evenhand.masked import load
    >>> of = embedded(load("mini").embed, phrases().select(["neutral"]), source="mini")
    >>> weat(of, "neutral").details["partitions"]
    9075135300
    """
    if name not in of.lists.sets:
        raise UnknownNameError("phrase set", name, of.lists.sets)
    chosen = of.of(name)
    scores, side = associations(of, centred=centred)[chosen], of.side[chosen]
    x, y = scores[side == 0], scores[side == 1]
    value, low, high = effect_size(x, y, prob)
    test = two_sample(x, y, alternative=alternative, permutations=permutations, seed=seed)
    every, one, two = moved(of, centred=centred)
    words = every[chosen]
    gap = words[side == 0].mean(axis=0) - words[side == 1].mean(axis=0)
    cosines = words @ words.T
    n = len(words)
    names = list(of.lists.sets[name].targets)
    phrases = [phrase for phrase, hit in zip(of.phrases, chosen, strict=True) if hit]
    return Measurement(
        metric="phrase-weat-centred" if centred else "phrase-weat",
        query=name,
        value=value,
        low=low,
        high=high,
        prob=prob,
        n=n,
        ideal=0.0,
        worse="away",
        interval="noncentral t or jackknife, the wider, over phrases; attributes held fixed",
        p_value=test.p_value,
        test=test.words.replace("words", "phrases"),
        items=tuple(
            {"word": phrase, "group": names[k], "score": float(score), "without": without}
            for phrase, k, score, without in zip(
                phrases, side, scores, _without_each(scores, side), strict=True
            )
        ),
        left_out=of.left_out,
        seed=seed,
        details={
            "source": of.source,
            "centred": centred,
            "mean_difference": float(x.mean() - y.mean()),
            **{
                f"mean {label}": float(part.mean())
                for label, part in zip(names, (x, y), strict=True)
            },
            "p_attributes": _p_attributes(one @ gap, two @ gap, permutations, seed),
            "exact": test.exact,
            "partitions": test.partitions,
            "mean_cosine": float((cosines.sum() - n) / (n * (n - 1))),
        },
    )


def _p_attributes(one: Floats, two: Floats, permutations: int, seed: int) -> float:
    """Two-sided: the two attributes of each pair change places, or any if they are not paired."""
    if len(one) != len(two):
        return two_sample(one, two, permutations=permutations, seed=seed).p_value
    gaps = one - two
    if len(gaps) <= MOST_FLIPS:
        flips = np.arange(1 << len(gaps))[:, None] >> np.arange(len(gaps)) & 1
        sums = np.abs((1 - 2 * flips) @ gaps)
        return float((sums >= sums[0] * (1 - 1e-12)).mean())
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(permutations, len(gaps)))
    count = int((np.abs(signs @ gaps) >= abs(gaps.sum()) * (1 - 1e-12)).sum())
    return (count + 1) / (permutations + 1)


def _without_each(scores: Floats, side: NDArray[np.int64]) -> list[float]:
    """The effect size with each phrase left out; nan where a side would have none."""
    result = []
    for k in range(scores.size):
        rest = np.arange(scores.size) != k
        s, labels = scores[rest], side[rest]
        if len(set(labels)) < 2:
            result.append(float("nan"))
            continue
        gap = s[labels == 0].mean() - s[labels == 1].mean()
        spread = s.std(ddof=1)
        result.append(float(gap / spread) if spread else float("nan"))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseReport:
    """Everything the phrases tell of some models: what `evenhand masked phrases` shows."""

    measurements: tuple[Measurement, ...]
    correlations: tuple[PhraseCorrelation, ...]
    comparisons: tuple[Comparison, ...]
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self, *, items: bool = False) -> dict[str, Any]:
        return {
            "measurements": [m.as_dict(items=items) for m in self.measurements],
            "correlations": [c.as_dict(items=items) for c in self.correlations],
            "comparisons": [c.as_dict() for c in self.comparisons],
            "left_out": {name: list(words) for name, words in self.left_out.items()},
            "notes": list(self.notes),
        }


def refuse_masks(lists: Phrases, models: Iterable[MaskedLM], file: str | None = None) -> None:
    """Refuse phrases with a mask in them: the only one is the carrier's, for the pronoun.

    `file` is where the lists come from, to be named in the error.
    """
    marks = dict.fromkeys((*MASKS, *(str(model.tokenizer.mask_token) for model in models)))
    listed = {
        f"sets.{name}.targets.{side}": words
        for name, one in lists.sets.items()
        for side, words in one.targets.items()
    }
    listed |= {f"attributes.{name}": words for name, words in lists.attributes.items()}
    for key, words in (listed | {"control": lists.control}).items():
        for phrase in words:
            if any(mark in phrase for mark in marks):
                problem = f"{key}: expected a phrase without a mask, got '{phrase}'"
                raise LexiconError(file, problem) if file else InputError(problem)


def measure(
    models: Mapping[str, Model],
    lists: Phrases,
    *,
    embeds: Mapping[str, Embed] | None = None,
    prob: float = 0.95,
    seed: int = 0,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> PhraseReport:
    """The phrase WEAT of every set, raw and centred, and its correlation with the pronoun score.

    `models` are given by the names they are to have; `embeds` are further ways of embedding, such
    as `WordMean` on word vectors, which are correlated with every model's pronouns. With several
    models each effect size is compared with the first model's, paired by phrase.
    """
    if not models:
        raise InputError("phrases: expected at least one model, got none")
    refuse_masks(lists, models.values())
    every = [phrase for one in lists.sets.values() for phrase in one.phrases]
    told = {
        name: pronouns(model, every, lists.carriers, cache=cache, progress=progress)
        for name, model in models.items()
    }
    ways: dict[str, Embed] = {name: model.embed for name, model in models.items()}
    ways |= embeds or {}
    spaces = {name: embedded(embed, lists, source=name) for name, embed in ways.items()}
    options: Mapping[str, Any] = {"prob": prob, "seed": seed}
    found = {
        (source, name, centred): weat(of, name, centred=centred, **options)
        for source, of in spaces.items()
        for centred in (False, True)
        for name in lists.sets
    }
    return PhraseReport(
        measurements=tuple(found.values()),
        correlations=tuple(
            correlation(of, told[name], centred=centred, name=name, **options)
            for source, of in spaces.items()
            for name in ([source] if source in models else models)
            for centred in (False, True)
        ),
        comparisons=_compared(found, list(models)),
        left_out={
            source: (*of.left_out, *sorted(_missing(ways[source])))
            for source, of in spaces.items()
            if of.left_out or _missing(ways[source])
        },
        notes=(*_anisotropy(found.values()), *NOTES),
    )


def _compared(
    found: Mapping[tuple[str, str, bool], Measurement], models: Sequence[str]
) -> tuple[Comparison, ...]:
    return tuple(
        compare(found[models[0], name, centred], found[other, name, centred])
        for other in models[1:]
        for source, name, centred in found
        if source == other
    )


def _missing(embed: Embed) -> set[str]:
    return embed.missing if isinstance(embed, WordMean) else set()


def _anisotropy(measurements: Iterable[Measurement]) -> list[str]:
    """A warning for each source whose raw embeddings all point one way."""
    by_source: dict[str, list[float]] = {}
    for m in measurements:
        if not m.details["centred"]:
            by_source.setdefault(m.details["source"], []).append(m.details["mean_cosine"])
    return [
        f"{source}: two phrases have a cosine of {np.mean(cosines):.2f} on average before "
        "centring: the embeddings all point much the same way (anisotropy), so raw associations "
        "are differences of cosines near that; centring takes the mean of control phrases away."
        for source, cosines in by_source.items()
        if np.mean(cosines) > 0.5
    ]
