"""The common case of an instrument: its value is the plain mean of the words' scores."""

from __future__ import annotations

import numpy as np

from evenhand.intervals import Floats, t_mean
from evenhand.vectors.metrics.reading import Labels

__all__ = ["MeanOverWords"]


class MeanOverWords:
    """Value and interval for instruments whose value is the mean score over the probe words."""

    __slots__ = ()

    def value(self, scores: Floats, labels: Labels) -> Floats:  # noqa: ARG002
        return np.asarray(scores[..., 0].mean(axis=-1))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:  # noqa: ARG002
        _, low, high = t_mean(scores[:, 0], prob)
        return low, high, "Student t over the probe words, the identity words held fixed"
