r"""One scale for the sizes of all measures: the standardised difference d.

Measures have their own units: cosines, log odds, shares, odds ratios. Each is put on the scale of
Cohen's d by a formula that its declaration names (`Declaration.size`), so that the numbers behind
all verdicts can be drawn on one axis and called small, medium or large by one rule (`SIZES`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

SizeKind: TypeAlias = Literal["", "d", "spread", "log-odds", "odds", "share", "gap"]

SIZES = {"very small": 0.0, "small": 0.2, "medium": 0.5, "large": 0.8}
"""The name of a size, and the d from which it holds (Cohen 1988)."""

LOGISTIC = math.sqrt(3) / math.pi
"""The standard deviation of the logistic distribution is the inverse of it."""


def name_size(d: float) -> str:
    """The name of a size, whatever its direction.

    >>> name_size(-0.6), name_size(0.19)
    ('medium', 'very small')
    """
    return next(name for name, start in reversed(SIZES.items()) if abs(d) >= start)


def to_size(value: float, kind: SizeKind, *, spread: float | None = None) -> float | None:
    r"""A value on the scale of d; 0 is no bias.

    Parameters
    ----------
    value : float
    kind : {"d", "spread", "log-odds", "odds", "share", "gap"}
        What the value is: a standardised difference already; a difference whose items have the
        standard deviation `spread`; a log odds ratio; an odds ratio; a share whose ideal is one
        half; a difference of two shares.
    spread : float, optional
        The standard deviation of single items within their groups.

    Returns
    -------
    float or None
        None where it is not known: no kind, no spread, or no number.

    Notes
    -----
    :math:`d = \ln(OR) \sqrt 3 / \pi` (Hasselblad & Hedges 1995; Chinn 2000). A share s of two
    alternatives has the odds s / (1 - s). Two shares that differ by g and lie evenly around one
    half have the odds ratio :math:`((1 + g) / (1 - g))^2`: among all shares with that difference
    these have the smallest, so the size is not overstated.

    Examples
    --------
    >>> [round(to_size(v, kind), 2) for v, kind in ((2, "odds"), (0.75, "share"), (0.1, "gap"))]
    [0.38, 0.61, 0.22]
    >>> to_size(0.03, "spread", spread=0.06)
    0.5

    """
    if not kind or math.isnan(value):
        return None
    if kind == "d":
        return value
    if kind == "spread":
        return value / spread if spread else None
    if kind == "log-odds":
        return value * LOGISTIC
    if kind == "odds":
        return _log(value) * LOGISTIC
    if kind == "share":
        return (_log(value) - _log(1 - value)) * LOGISTIC
    return 2 * (_log(1 + value) - _log(1 - value)) * LOGISTIC


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def spread_within(scores: Sequence[float], groups: Sequence[str]) -> float | None:
    """The standard deviation of scores within their groups, pooled; None where it is not known.

    Examples
    --------
    >>> spread_within([1.0, 3.0, 11.0, 13.0], ["a", "a", "b", "b"]) == 2**0.5
    True

    """
    by_group: dict[str, list[float]] = {}
    for score, group in zip(scores, groups, strict=True):
        if math.isfinite(score):
            by_group.setdefault(group, []).append(score)
    means = {group: math.fsum(own) / len(own) for group, own in by_group.items()}
    freedom = sum(len(own) - 1 for own in by_group.values())
    squares = math.fsum((x - means[group]) ** 2 for group, own in by_group.items() for x in own)
    return math.sqrt(squares / freedom) if freedom > 0 and squares > 0 else None
