r"""The bias measures as functions of counts by class.

Let $P_c$ and $A_c$ be the F1 of class c on the pro- and on the anti-stereotypical versions of all
queries. Men's texts in the pro-stereotypical set are all of classes that lean male, women's of
classes that lean female. With $a$ the mean of $P_c - A_c$ over classes that lean male, $b$ the same
over those that lean female, and $D$ how much easier the first are (the gap between the means of
$(P_c + A_c)/2$), equations 20 and 21 of D0 come to

$$\mu_{skew} = \max(|a - b| / 2, |D|), \qquad \mu_{stereo} = \max(|a + b| / 2, |D|).$$

$D$ is no bias: it is there when gender has no effect at all. So *skew* here is $(a - b)/2$, how
much better the men's versions of texts do, and *stereotype* $(a + b)/2$, how much better the
pro-stereotypical versions do, each with its sign; D0's own figures stand beside them. All classes
of a leaning count alike, and both leanings do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.statistics_replicates import Floats, Ints, Statistic

__all__ = ["NAMES", "formulas"]

NAMES = (
    "association", "gap", "skew", "stereotype", "accuracy_pro", "accuracy_anti", "easier",
    "f1_pro_male", "f1_pro_female", "f1_anti_male", "f1_anti_female", "skew_d0", "stereotype_d0",
)  # fmt: skip


def formulas(strata: Ints) -> Statistic:
    """From sums (…, N, 6), as Twins.counts has them, to the values of NAMES, (…, 13)."""
    leans = [strata == 0, strata == 1]

    def values(sums: Floats) -> Floats:
        asked, association, right_pro, said_pro, right_anti, said_anti = np.moveaxis(sums, -1, 0)
        there = asked > 0
        each = np.where(there, asked, 1)
        f1_pro = 2 * right_pro / (each + said_pro)
        f1_anti = 2 * right_anti / (each + said_anti)
        every = [_mean(x / each, there) for x in (association, right_pro, right_anti)]
        (pro_m, anti_f), (pro_f, anti_m) = (
            [_mean(f1, there & lean) for f1 in (f1_pro, f1_anti)] for lean in leans
        )
        a, b = pro_m - anti_f, pro_f - anti_m
        return np.stack(
            [
                every[0], every[1] - every[2], (a - b) / 2, (a + b) / 2, every[1], every[2],
                (pro_m + anti_f - pro_f - anti_m) / 2,
                pro_m, pro_f, anti_m, anti_f,
                (abs(pro_m - pro_f) + abs(anti_m - anti_f)) / 2,
                (abs(pro_m - anti_m) + abs(pro_f - anti_f)) / 2,
            ],
            axis=-1,
        )  # fmt: skip

    return values


def _mean(x: Floats, there: NDArray[np.bool_]) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Floats = np.where(there, x, 0).sum(-1) / there.sum(-1)
    return mean
