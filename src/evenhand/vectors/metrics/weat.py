r"""WEAT: do two sets of target words differ in their tie to two sets of attribute words?

$s(w, A, B) = \operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)$

$d = \dfrac{\operatorname{mean}_{x \in X} s(x) - \operatorname{mean}_{y \in Y} s(y)}
{\operatorname{std}_{w \in X \cup Y} s(w)}$

Caliskan, Bryson & Narayanan (2017), with n - 1 in the standard deviation as in their own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats, effect_size
from evenhand.permutation import Alternative, two_sample
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known, known_groups, refuse_shared
from evenhand.vectors.metrics.reading import (
    Labels,
    Options,
    Settings,
    Tested,
    read,
    unit,
)
from evenhand.vectors.store import Vectors

__all__ = ["Weat", "association", "weat"]


def association(words: Floats, a: Floats, b: Floats) -> Floats:
    """s(w, A, B) of each row of `words`; all three are arrays of unit vectors.

    >>> association(np.eye(2), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    array([ 1., -1.])
    """
    return np.asarray(words @ (a.mean(axis=0) - b.mean(axis=0)))


@dataclass(frozen=True, slots=True)
class Weat:
    """WEAT with its attribute words fixed; the target words are the probes."""

    a: Floats
    b: Floats
    name: str = "weat"
    ideal: float | None = 0.0
    worse: Worse = "away"

    def scores(self, vectors: Floats) -> Floats:
        return association(unit(vectors), self.a, self.b)[:, None]

    def value(self, scores: Floats, labels: Labels) -> Floats:
        s = scores[..., 0]
        difference = s[..., labels == 0].mean(axis=-1) - s[..., labels == 1].mean(axis=-1)
        return np.asarray(difference / s.std(axis=-1, ddof=1))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        s = scores[:, 0]
        _, low, high = effect_size(s[labels == 0], s[labels == 1], prob)
        return (
            low,
            high,
            "noncentral t or jackknife, the wider, over target words; attribute words held fixed",
        )


def weat(
    v: Vectors,
    X: Sequence[str],
    Y: Sequence[str],
    A: Sequence[str],
    B: Sequence[str],
    *,
    names: tuple[str, str, str, str] = ("X", "Y", "A", "B"),
    query: str = "",
    alternative: Alternative = "two-sided",
    **settings: Unpack[Settings],
) -> Measurement:
    """The WEAT effect size of target words X against Y, for attributes A against B.

    The p-value is exact over all partitions of up to 40 target words, otherwise from
    `permutations` random ones; two-sided unless asked otherwise (both are in `details`).
    It is about the target words alone: put the words whose bias is in question into X and Y.
    `p_attributes` in `details` is the same test over the attribute words, the targets fixed; a
    finding that only one of the two supports may hang on the choice of the other words. With
    `permutations=0` the targets are judged against random words of like frequency instead.

    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = weat(v, ["rose", "tulip", "lily"], ["ant", "wasp", "flea"], ["love"], ["pain"])
    >>> m.value > 1, m.p_value, m.details["partitions"]
    (True, 0.1, 20)
    """
    options = Options(**settings)
    what = f"weat '{query}'" if query else "weat"
    targets = known_groups(
        v, {names[0]: X, names[1]: Y}, f"{what}: target set", at_least=2, disjoint=True
    )
    first = known(v, A, f"{what}: attribute set '{names[2]}'")
    second = known(v, B, f"{what}: attribute set '{names[3]}'")
    refuse_shared(first, second, f"{what}: attribute sets '{names[2]}' and '{names[3]}'")
    a, b = v.unit(first.rows), v.unit(second.rows)
    words, labels = v.unit(targets.rows), targets.labels
    x, y = (association(words[labels == label], a, b) for label in (0, 1))
    if max(np.abs(x).max(), np.abs(y).max()) < 1e-12:
        raise InputError(f"{what}: the two attribute sets have the same mean, so nothing differs")
    return read(
        v, Weat(a, b), targets,
        query=query or f"{names[0]}/{names[1]} {names[2]}/{names[3]}", options=options,
        fixed=np.concatenate([first.rows, second.rows]),
        left_out=[*first.missing, *second.missing],
        tested=_test(words, labels, (a, b), alternative, options),
        details={
            "statistic": float(x.sum() - y.sum()),
            "mean_difference": float(x.mean() - y.mean()),
            f"mean_{names[0]}": float(x.mean()),
            f"mean_{names[1]}": float(y.mean()),
            "alternative": alternative,
        },
    )  # fmt: skip


def _test(
    words: Floats,
    labels: Labels,
    attributes: tuple[Floats, Floats],
    alternative: Alternative,
    options: Options,
) -> Tested | None:
    if not options.permutations:
        return None
    x, y = words[labels == 0], words[labels == 1]
    targets, others = (
        two_sample(
            association(one, *against), association(two, *against),
            alternative=alternative, permutations=options.permutations, seed=options.seed,
        )
        for one, two, against in ((x, y, attributes), (*attributes, (x, y)))
    )  # fmt: skip
    return Tested(
        targets.p_value,
        targets.words,
        {
            "p_greater": targets.p_greater,
            "p_less": targets.p_less,
            "p_attributes": others.p_value,
            "exact": targets.exact,
            "partitions": targets.partitions,
        },
    )
