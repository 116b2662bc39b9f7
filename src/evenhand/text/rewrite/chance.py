"""Chance by document: the same number for the same seed and document, however a corpus is cut."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from evenhand.text.block import Block

__all__ = ["chosen_documents"]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(seed: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood 2014) of the seed and each document's number."""
    base = np.array([seed % 2**64], dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
    z = (numbers + base + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return cast("NDArray[np.uint64]", z ^ (z >> np.uint64(31)))


def chosen_documents(block: Block, probability: float, seed: int) -> NDArray[np.bool_]:
    """Which documents of a block are drawn, each with the given probability."""
    numbers = np.arange(block.first, block.first + len(block), dtype=np.uint64)
    uniform = (_mixed(seed, numbers) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return uniform < probability
