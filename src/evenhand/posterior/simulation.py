"""Distance tables with a known truth, drawn from the crossed model, to check instruments on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.tables import Table

__all__ = ["SCALES", "simulate"]

Floats = NDArray[np.float64]

SCALES = {
    "error": 0.12, "stereotype": 0.19, "human": 0.12, "neutral": 0.14, "delta": 0.03,
    "word": 0.035, "slope_stereotype": 0.14, "slope_human": 0.07,
}  # fmt: skip
"""About those of the thesis' religion table."""


def simulate(
    *,
    delta: float = 0.0,
    words: Sequence[int] = (5, 5, 5),
    stereotypes: Sequence[int] = (4, 4, 3),
    human: int = 27,
    neutral: int = 60,
    levels: tuple[float, float, float] = (0.9, 0.9, 0.95),
    scales: Mapping[str, float] = SCALES,
    seed: int = 0,
) -> Table:
    """A table whose true δ is given: `words` and `stereotypes` for each class, and controls.

    `levels` are γ of stereotype, human and neutral; `delta` in `scales` is the spread of δ_i.

    >>> table = simulate(delta=-0.1, neutral=10)
    >>> table.rows, table.levels
    (720, ('associated', 'different', 'human', 'none'))
    """
    rng = np.random.default_rng(seed)
    word_class = np.repeat(np.arange(len(words)), words)
    told_of = np.repeat(np.arange(len(stereotypes)), stereotypes)
    group = np.repeat([0, 1, 2], [told_of.size, human, neutral])
    own = np.full((word_class.size, group.size), False)
    own[:, : told_of.size] = word_class[:, None] == told_of
    spread = np.array([scales["stereotype"], scales["human"], scales["neutral"]])
    theta = np.array(levels)[group] + spread[group] * rng.standard_normal(group.size)

    def by_word(name: str) -> Floats:
        return np.asarray(scales[name] * rng.standard_normal((word_class.size, 1)))

    mean = theta + by_word("word") + own * (delta + by_word("delta"))
    mean = mean + by_word("slope_stereotype") * (group == 0) + by_word("slope_human") * (group == 1)
    y = mean + scales["error"] * rng.standard_normal(mean.shape)
    word, attribute = np.indices(y.shape).reshape(2, -1)
    connection = np.where(group == 0, np.where(own, 0, 1), group + 1)
    names = [f"class{k + 1}" for k in range(len(words))]
    classes = [*(names[k] for k in told_of), *["human"] * human, *["neutral"] * neutral]
    return Table(
        source="simulated",
        distance=y.ravel(),
        word=word,
        attribute=attribute,
        connection=connection.ravel(),
        words=tuple(f"word{i + 1}" for i in range(word_class.size)),
        attributes=tuple(f"attribute{j + 1}" for j in range(group.size)),
        group=group,
        word_class=tuple(names[k] for k in word_class),
        attribute_class=tuple(classes),
        dropped=dict.fromkeys(("sentinel", "missing", "duplicate"), 0),
    )
