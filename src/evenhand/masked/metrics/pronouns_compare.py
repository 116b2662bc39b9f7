"""Several models on the same sentences: their differences, paired sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats, holm
from evenhand.masked.metrics.pronouns_interval import bootstrap_mean, sign_test
from evenhand.masked.metrics.pronouns_scores import PronounScores
from evenhand.results import Estimate

__all__ = ["PairedDifference", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The bias of `second` minus that of `first` on the sentences both could score.

    `full_vocabulary` is over all n of them; `top_k` over the `decided["both"]` that both models
    decide by their k likeliest words, which may be a biased choice of sentences. The p-values are
    those of the sign test on the full-vocabulary differences, `p_corrected` for the number of
    pairs (Holm 1979).
    """

    first: str
    second: str
    n: int
    only_first: int
    only_second: int
    decided: dict[str, int]
    full_vocabulary: Estimate
    top_k: Estimate
    p_value: float
    p_corrected: float

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def compare(scores: Sequence[PronounScores]) -> tuple[PairedDifference, ...]:
    """The difference of every two models, paired over the same sentences.

    >>> from evenhand.masked.metrics.pronouns import score
    >>> from evenhand.simulate.masked import bigram_model
    >>> even = bigram_model({"a": {"he": 0.4, "she": 0.4}, "b": {"he": 0.4, "she": 0.4}})
    >>> odd = bigram_model({"a": {"he": 0.6, "she": 0.2}, "b": {"he": 0.4, "she": 0.4}})
    >>> told = compare([score(m, ["a [MASK] a", "b [MASK] b"]) for m in (even, odd)])
    >>> round(told[0].full_vocabulary.value, 3), told[0].decided["both"]
    (0.125, 2)
    """
    for other in scores[1:]:
        if other.rule != scores[0].rule:
            raise InputError("compare: expected scores by the same rule, got different ones")
    found = [_paired(first, second) for first, second in combinations(scores, 2)]
    corrected = holm([entry["p_value"] for entry in found])
    return tuple(
        PairedDifference(**entry, p_corrected=p) for entry, p in zip(found, corrected, strict=True)
    )


def _paired(first: PronounScores, second: PronounScores) -> dict[str, Any]:
    _, one, two = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    if not one.size:
        raise InputError(
            f"compare: expected sentences that both '{first.model}' and '{second.model}' scored, "
            "got none"
        )
    decided = first.verdict[one] > 0, second.verdict[two] > 0
    both = decided[0] & decided[1]
    full = second.full_bias[two] - first.full_bias[one]
    full = full[np.isfinite(full)]
    return {
        "first": first.model,
        "second": second.model,
        "n": one.size,
        "only_first": len(first) - one.size,
        "only_second": len(second) - one.size,
        "decided": {
            "both": int(both.sum()),
            "only_first": int((decided[0] & ~decided[1]).sum()),
            "only_second": int((~decided[0] & decided[1]).sum()),
            "neither": int((~decided[0] & ~decided[1]).sum()),
        },
        "full_vocabulary": _difference(full, first),
        "top_k": _difference((second.bias[two] - first.bias[one])[both], first),
        "p_value": sign_test(full),
    }


def _difference(x: Floats, scores: PronounScores) -> Estimate:
    rule = scores.rule
    return bootstrap_mean(x, prob=rule.prob, seed=rule.seed, bounds=(-1.0, 1.0))
