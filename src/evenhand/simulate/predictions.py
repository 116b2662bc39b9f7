"""Predictions of a classifier whose gaps between two groups are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def biased_predictions(
    n: int,
    *,
    gap: float = 0.0,
    classes: int = 4,
    accuracy: float = 0.7,
    shares: tuple[float, ...] = (),
    person: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Draw the predictions of a classifier that recognises one group less often.

    Parameters
    ----------
    n : int
        Persons.
    gap : float
        By how much the true-positive rate of women is below that of men, half of it each way;
        errors go to the other classes alike.
    classes : int
    accuracy : float
        The true-positive rate, on average.
    shares : tuple of float
        The share of women in each class; one half everywhere by default.
    person : int
        Texts per person; a person's texts are recognised together or not at all.
    seed : int

    Returns
    -------
    DataFrame
        One row per text: `person`, `gender`, `y_true`, `y_pred` and `score CLASS` for each class.

    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    women = np.array(shares or [0.5] * classes)
    true = rng.integers(classes, size=n)
    female = rng.random(n) < women[true]
    hit = rng.random(n) < accuracy + np.where(female, -gap, gap) / 2
    other = (true + rng.integers(1, classes, size=n)) % classes
    pred = np.where(hit, true, other)
    score = np.where(hit, 0.6, 0.2)[:, None] * np.eye(classes)[pred] + 0.1 * rng.random(
        (n, classes)
    )
    rows = np.repeat(np.arange(n), person)
    names = [f"class {i}" for i in range(classes)]
    content = {
        "person": rows,
        "gender": np.where(female, "woman", "man")[rows],
        "y_true": [names[i] for i in true[rows]],
        "y_pred": [names[i] for i in pred[rows]],
    }
    columns = {f"score {name}": score[rows, i] for i, name in enumerate(names)}
    return pd.DataFrame({**content, **columns})
