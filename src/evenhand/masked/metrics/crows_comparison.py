"""Two models on the same sentence pairs: what changed, paired pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.errors import InputError
from evenhand.intervals import holm, t_mean, wilson
from evenhand.masked.metrics.crows_results import CrowsItem, CrowsResult, two_sided
from evenhand.results import Estimate

__all__ = ["CrowsChange", "Shift", "compare", "paired_shares"]

Both = tuple[CrowsItem, CrowsItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The change on some pairs: of the share (after - before) and of the mean difference.

    `share` is over the `n` pairs that are a tie for neither, with Newcombe's (1998) interval for
    paired shares; `p_value` is McNemar's exact test on the pairs that changed sides. `difference`
    is over all pairs scored twice, with Student's interval over pairs.
    """

    n: int
    before: float
    after: float
    share: Estimate
    difference: Estimate
    to_more: int
    to_less: int
    p_value: float
    p_holm: float | None = None

    def as_dict(self) -> dict[str, Any]:
        corrected = {} if self.p_holm is None else {"p_holm": self.p_holm}
        return {
            "n": self.n,
            "before": self.before,
            "after": self.after,
            "change": self.share.as_dict(),
            "p_value": self.p_value,
            **corrected,
            "to_more": self.to_more,
            "to_less": self.to_less,
            "difference": self.difference.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowsChange:
    """What changed from one model to the other, overall and by category."""

    before: str
    after: str
    overall: Shift
    categories: Mapping[str, Shift]
    unpaired: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "models": [self.before, self.after],
            **self.overall.as_dict(),
            "categories": {name: part.as_dict() for name, part in self.categories.items()},
            "unpaired": self.unpaired,
        }


def compare(before: CrowsResult, after: CrowsResult) -> CrowsChange:
    """The change from one model to another on the pairs that both have scored.

    Pairs that only one of them could take are counted in `unpaired`.
    """
    if before.method != after.method:
        raise InputError(
            f"crows: expected one method for both, got {before.method} and {after.method}"
        )
    first = {item.pair: item for item in before.items}
    second = {item.pair: item for item in after.items}
    both = [(first[pair], second[pair]) for pair in first if pair in second]
    if not both:
        raise InputError("crows: expected the same pairs twice, got none in common")
    prob = before.overall.share.prob
    by_category: dict[str, list[Both]] = {}
    for items in both:
        by_category.setdefault(items[0].pair.category, []).append(items)
    shifts = {name: _shift(part, prob) for name, part in sorted(by_category.items())}
    corrected = holm([shift.p_value for shift in shifts.values()])
    return CrowsChange(
        before=before.model,
        after=after.model,
        overall=_shift(both, prob),
        categories={
            name: replace(shift, p_holm=p)
            for (name, shift), p in zip(shifts.items(), corrected, strict=True)
        },
        unpaired=len(first.keys() ^ second.keys()),
    )


def _shift(both: Sequence[Both], prob: float) -> Shift:
    sides = [
        (one.difference > 0, two.difference > 0) for one, two in both if not one.tie and not two.tie
    ]
    counts = [sides.count(side) for side in _SIDES]
    value, low, high = paired_shares(*counts, prob=prob)
    mean = t_mean([two.difference - one.difference for one, two in both], prob)
    kept, to_less, to_more, _ = counts
    n = len(sides)
    return Shift(
        n=n,
        before=(kept + to_less) / n if n else math.nan,
        after=(kept + to_more) / n if n else math.nan,
        share=Estimate(value=value, low=low, high=high, prob=prob),
        difference=Estimate(value=mean[0], low=mean[1], high=mean[2], prob=prob),
        to_more=to_more,
        to_less=to_less,
        p_value=two_sided(to_more, to_more + to_less),
    )


_SIDES = ((True, True), (True, False), (False, True), (False, False))


def paired_shares(
    both: int, first: int, second: int, neither: int, *, prob: float = 0.95
) -> tuple[float, float, float]:
    r"""The second share minus the first, of the same things, with its interval.

    Newcombe (1998), method 10: the Wilson intervals of the two shares, put together with the
    correlation $\phi$ that the pairing gives them.

    >>> [round(x, 4) for x in paired_shares(36, 2, 12, 0)]
    [0.2, 0.0569, 0.3404]
    """
    n = both + first + second + neither
    if not n:
        return math.nan, -1.0, 1.0
    one, low_one, high_one = wilson(both + first, n, prob)
    two, low_two, high_two = wilson(both + second, n, prob)
    product = float(both * neither - first * second)
    if product > 0:
        product = max(product - n / 2, 0.0)
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    phi = product / math.sqrt(margins) if margins else 0.0

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(a * a - 2 * phi * a * b + b * b, 0.0))

    value = two - one
    low = value - reach(two - low_two, high_one - one)
    return value, low, value + reach(high_two - two, one - low_one)
