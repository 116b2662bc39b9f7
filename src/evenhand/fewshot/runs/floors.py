"""The word vectors of the floor, made once for a data set and kept beside the features."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.data_set import Dataset
from evenhand.fewshot.floor import word_vectors
from evenhand.fewshot.runs.arrays import key_of, read_array, save_array
from evenhand.folders import versions

__all__ = ["kept_word_vectors"]


def kept_word_vectors(
    dataset: Dataset, cache: str | os.PathLike[str] | None
) -> NDArray[np.float32]:
    """The vectors of all texts, from the cache where it has them."""
    if cache is None:
        return word_vectors(dataset.texts)
    key = key_of(dataset.digest, versions("scikit-learn"))
    path = Path(cache) / "floor" / f"{key}.npz"
    if (found := read_array(path)) is not None:
        return found
    made = word_vectors(dataset.texts)
    with suppress(OSError):  # they can be made again: no reason to lose a run at its end
        save_array(path, made)
    return made
