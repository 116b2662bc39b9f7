"""What chance gives: the measures when the two versions of each text change places at random.

Without bias a text and its twin are alike to the classifier, up to chance, so which of them counts
as pro-stereotypical is a coin's toss. A text has one coin for all episodes it is asked in, in all
splits and seeds. Classes stay what they are: the test is of these classes, the intervals are for
new ones.
"""

from __future__ import annotations

import numpy as np

from evenhand.fewshot.bias.formulas import formulas
from evenhand.fewshot.bias.twins import Twins
from evenhand.fewshot.statistics_replicates import Floats

__all__ = ["tossed"]

CHUNK = 1 << 22  # coins tossed at once


def tossed(twins: Twins, tosses: int, seed: int) -> Floats:
    """The values of `formulas.NAMES` under each of many tosses of all coins, (tosses, 13)."""
    answers, used = twins.original, twins.used
    n = len(answers.tested)
    _, text = np.unique(answers.rows[used], return_inverse=True)
    texts = int(text.max()) + 1
    label = np.take_along_axis(answers.local, answers.truth, axis=1)[used]

    def by_text(classes: np.ndarray, weights: np.ndarray | None = None) -> Floats:
        flat = np.bincount(text * n + classes, weights, texts * n).astype(np.float64)
        return flat.reshape(texts, n)

    asked = by_text(label).sum(axis=0)
    association = by_text(label, twins.association[used])
    sides = []
    for said in twins.predicted:
        place = np.take_along_axis(answers.local, said, axis=1)[used]
        right = by_text(label, (said == answers.truth)[used].astype(np.float64))
        sides.append(np.stack([right, by_text(place)]))
    half, gap = (sides[0] + sides[1]).sum(axis=1) / 2, (sides[0] - sides[1]) / 2
    flips = np.concatenate([association[None], gap]).transpose(1, 0, 2).reshape(texts, 3 * n)
    flips = flips[np.any(flips != 0, axis=1)]

    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // max(1, len(flips)))
    values = []
    for first in range(0, tosses, step):
        count = min(step, tosses - first)
        coins = 2.0 * rng.integers(0, 2, (count, len(flips))) - 1
        moved = (coins @ flips).reshape(count, 3, n)
        sums = np.empty((count, n, 6))
        sums[..., 0], sums[..., 1] = asked, moved[:, 0]
        for part in range(2):  # right, predicted
            sums[..., 2 + part] = half[part] + moved[:, 1 + part]
            sums[..., 4 + part] = half[part] - moved[:, 1 + part]
        values.append(formulas(twins.strata)(sums))
    return np.concatenate(values)
