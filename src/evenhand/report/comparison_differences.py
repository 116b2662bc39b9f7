"""The difference of one measure between two audits, with an interval where one can be had."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from evenhand.instruments import compare, paired_jackknife
from evenhand.results import Measurement

__all__ = ["Difference", "difference", "none", "unpaired_interval"]

RATIOS = ("odds_ratio",)
"""Measures that are compared as a ratio, on the logarithm."""

MEANS = ("pronouns",)
"""Measures that are the mean of their items' scores, so that leaving one out is arithmetic."""

PAIRED = "paired, over {count} words or items that both audits measured"
UNPAIRED = (
    "unpaired: the two estimates are taken as independent, the interval is made of their two; it "
    "is too wide where both were measured on the same words"
)
SAME = "the same input gave the same value: there is nothing to compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What the second audit reads above the first, or as a `ratio` how many times as much.

    `how` says what the interval rests on, or for `kind` none why there is no difference to tell.
    """

    kind: Literal["paired", "unpaired", "same", "none"]
    how: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    prob: float = 0.95
    items: int = 0
    ratio: bool = False

    @property
    def clear(self) -> bool:
        """The interval leaves out what no difference would read."""
        even = 1.0 if self.ratio else 0.0
        return self.low > even or self.high < even

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def none(why: str) -> Difference:
    """No difference, and the reason."""
    return Difference(kind="none", how=why)


def difference(first: Measurement, second: Measurement, *, same_input: bool = False) -> Difference:
    """The second less the first: paired where both have the same items, else unpaired.

    Pairing needs the value with each item left out (`evenhand.instruments.compare`); where the
    items are not all the same, the two values are about other words and are not paired.
    """
    if not (math.isfinite(first.value) and math.isfinite(second.value)):
        return none("one of the two has no value")
    if same_input and first.value == second.value:
        return Difference(kind="same", how=SAME, value=0.0, low=0.0, high=0.0, prob=first.prob)
    one, two = _with_replicates(first), _with_replicates(second)
    if one.items and _keys(one) and _keys(one) == _keys(two):
        made = (paired_jackknife if one.metric in MEANS else compare)(one, two)
        if math.isfinite(made.change.low) and math.isfinite(made.change.high):
            return Difference(
                kind="paired", how=PAIRED.format(count=made.paired), value=made.change.value,
                low=made.change.low, high=made.change.high, prob=made.change.prob,
                items=made.paired,
            )  # fmt: skip
    ratio = first.metric in RATIOS
    value, low, high = unpaired_interval(first, second, ratio=ratio)
    if not (math.isfinite(low) and math.isfinite(high)):
        return none("one of the two has no interval")
    return Difference(
        kind="unpaired", how=UNPAIRED, value=value, low=low, high=high, prob=first.prob, ratio=ratio
    )


def unpaired_interval(
    first: Measurement, second: Measurement, *, ratio: bool = False
) -> tuple[float, float, float]:
    r"""The difference of two independent estimates, its interval recovered from their two.

    $d - \sqrt{(v_2 - l_2)^2 + (u_1 - v_1)^2}$ to $d + \sqrt{(u_2 - v_2)^2 + (v_1 - l_1)^2}$ for
    estimates v with intervals from l to u (Newcombe 1998; Zou & Donner 2008). With symmetric
    intervals it is the usual normal one, with others it keeps their skew. Intervals of another
    level are first brought to the first one's by normal quantiles. A `ratio` is taken on the
    logarithm.

    >>> a = Measurement(metric="m", query="", value=1, low=0, high=2, n=9, ideal=0, worse="away",
    ...                 interval="")
    >>> [round(x, 3) for x in unpaired_interval(a, replace(a, value=5, low=4, high=6))]
    [4, 2.586, 5.414]
    """
    (v1, down1, up1), (v2, down2, up2) = (_arms(m, ratio=ratio) for m in (first, second))
    if first.prob != second.prob:
        stretch = _quantile(first.prob) / _quantile(second.prob)
        down2, up2 = down2 * stretch, up2 * stretch
    gap = v2 - v1
    found = (gap, gap - math.hypot(down2, up1), gap + math.hypot(up2, down1))
    return tuple(math.exp(x) for x in found) if ratio else found  # type: ignore[return-value]


def _arms(m: Measurement, *, ratio: bool) -> tuple[float, float, float]:
    """The value and how far the interval goes below and above it; evenly if it is not inside."""
    value, low, high = m.value, m.low, m.high
    if ratio:
        value, low, high = (math.log(x) if x > 0 else math.nan for x in (value, low, high))
    if not low <= value <= high:
        half = (high - low) / 2
        return value, half, half
    return value, value - low, high - value


def _quantile(prob: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + prob) / 2))


def _keys(m: Measurement) -> set[tuple[str, str, str]]:
    """The items by what they are, none where the value without an item is not known for all."""
    keys = {(item.get("axis", ""), item["word"], item.get("group", "")) for item in m.items}
    told = all(math.isfinite(item["without"]) for item in m.items)
    return keys if told and len(keys) == len(m.items) else set()


def _with_replicates(m: Measurement) -> Measurement:
    """The measurement with the value without each item as a number, not known ones as nan."""
    if m.metric in MEANS:
        return replace(m, items=_mean_replicates(m))
    return replace(
        m, items=tuple({**item, "without": _number(item.get("without"))} for item in m.items)
    )


def _mean_replicates(m: Measurement) -> tuple[dict[str, Any], ...]:
    """The mean without each item; one that does not count changes nothing when it is left out."""
    rows = [{"word": i.get("masked"), "score": i.get("full_bias"), **i} for i in m.items]
    scores = [
        math.nan if item.get("full_verdict") == "undecided" else _number(item.get("score"))
        for item in rows
    ]
    counted = [score for score in scores if math.isfinite(score)]
    n, total = len(counted), math.fsum(counted)
    mean = n > 1 and math.isclose(total / n, m.value, rel_tol=1e-9, abs_tol=1e-9)
    return tuple(
        {
            **item,
            "without": (
                math.nan if not mean
                else (total - score) / (n - 1) if math.isfinite(score)
                else m.value
            ),
        }
        for item, score in zip(rows, scores, strict=True)
    )  # fmt: skip


def _number(value: float | None) -> float:
    """Saved results have null where there is no number."""
    return math.nan if value is None else value
