"""Few-shot grids whose truth is known: tallies by design, and folders of cells that have them."""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from evenhand.fewshot.answers import Tallies
from evenhand.grid.spec import Cell, cell_key, digest
from evenhand.grid.store import Store

NAMES = tuple(f"class {letter}" for letter in "abcdefgh")
LEANING = np.array([0, 1] * 4)


def tallies(
    ways: int,
    queries: int,
    right: np.ndarray,
    favour: np.ndarray,
    *,
    seed: int = 0,
    draw: int = 0,
    episodes: int = 80,
    splits: int = 1,
) -> Tallies:
    """Answers of which class c's are right with probability `right[c]`; its pro-stereotypical
    versions by `favour[c]` more often than the others. `draw` is of classes, `seed` of answers.

    As in runs, the classes of the episodes depend on `draw` and the ways alone.
    """
    of_classes = np.random.default_rng([draw, ways])
    rng = np.random.default_rng([seed, draw, ways, queries])
    total = episodes * splits
    classes = np.argsort(of_classes.random((total, len(NAMES))), axis=1)[:, :ways]
    asked = np.full((total, ways), float(queries))
    versions = []
    for sign in (0.5, -0.5):
        chance = np.clip(right + sign * favour, 0.01, 0.99)[classes]
        hits = rng.binomial(queries, chance).astype(float)
        missed = asked - hits
        said = hits + (missed.sum(axis=1, keepdims=True) - missed) / (ways - 1)
        versions.append((hits, np.round(said)))
    pro, anti = versions
    association = (pro[0] - anti[0]) * 0.3
    counts = np.stack([asked, pro[0], pro[1]], axis=2)
    both = np.stack([asked, association, *pro, *anti], axis=2)
    name = f"{draw} {ways} {queries} {episodes} {splits}"
    return Tallies(counts, both, classes, NAMES, LEANING, name, splits, 1)


def effect(network: str, mitigation: str) -> tuple[float, float]:
    """How often networks are right, and how much they favour stereotypes."""
    right = {"proto": 0.8, "match": 0.7, "maml": 0.69}[network]
    return right, {"none": 0.2, "swap": 0.0, "idle": 0.2}[mitigation]


@patch("os.fsync", lambda _: None)  # these folders need be neither lasting nor small
@patch("evenhand.fewshot.answers.PACKING", [{"id": lzma.FILTER_LZMA2, "preset": 0}])
def folder(
    path: Path,
    *,
    networks: Sequence[str] = ("proto", "match"),
    tasks: Sequence[tuple[int, int]] = ((2, 4), (2, 8), (3, 4)),
    mitigations: Sequence[str] = ("none", "swap"),
    seeds: Sequence[int] = (1, 2),
    leave_out: Callable[[dict[str, Any]], bool] = lambda _: False,
    fails: Callable[[dict[str, Any]], bool] = lambda _: False,
    more: dict[str, Sequence[Any]] | None = None,
    counterfactuals: bool = True,
) -> Store:
    """A folder as `grid run` leaves it behind."""
    store, cells = Store(path), []
    others = {name: list(values) for name, values in (more or {}).items()}
    rng = np.random.default_rng(5)
    hard, lean = rng.normal(0, 0.05, len(NAMES)), rng.normal(0, 0.02, len(NAMES))
    product = itertools.product(networks, tasks, mitigations, seeds, *others.values())
    for network, (ways, shots), mitigation, seed, *rest in product:
        axes = {
            "network": network,
            "ways": ways,
            "shots": shots,
            "mitigation": mitigation,
            "seed": seed,
            **dict(zip(others, rest, strict=True)),
        }
        cell = Cell(cell_key("fewshot", 1, axes), {**axes, "seeds": 1, "splits": 2}, axes)
        cells.append(cell)
        if leave_out(axes):
            continue
        if fails(axes):
            store.fail(cell, "no luck")
            continue
        right, favour = effect(network, mitigation)
        made = tallies(
            ways,
            shots,
            right + hard,
            favour + lean * (favour > 0),
            splits=2,
            seed=int(digest(axes)[:6], 16),
        )
        if not counterfactuals:
            made = Tallies(
                made.counts, None, made.classes, NAMES, LEANING, made.queries_digest, 2, 1
            )
        store.save(
            "fewshot",
            1,
            axes,
            {
                "name": network,
                "chance": 1 / ways,
                "baseline": {"value": 0.5, "low": 0.4, "high": 0.6},
                "tallies": made.pack(),
            },
        )
    store.save_grid(
        {
            "task": "fewshot",
            "version": 1,
            "source": {},
            "cells": [cell.to_dict() for cell in cells],
        }
    )
    return store
