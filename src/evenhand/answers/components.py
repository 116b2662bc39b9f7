"""What spreads the numbers of answers: items, wordings, items by group, samples; and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from evenhand.answers.cells import Cells, GroupContrast, Ints
from evenhand.statistics.intervals import Floats
from evenhand.statistics.power import quantile
from evenhand.wording import percent

MOST = 1_000_000
"""More units than this are not advised."""


def components(cells: Cells) -> dict[str, float]:
    """The variances of single answers by their source, and the ICC of the samples of a prompt.

    By the method of moments from the cells that are complete; a source that these do not tell is
    left out. The ICC is that of one-way analysis of variance within groups.

    Returns
    -------
    dict
        "sample", "icc", "item", "item by group" and "wording", as far as known.

    """
    found: dict[str, float] = {}
    several = cells.sizes > 1
    if several.any():
        free = (cells.sizes[several] - 1).astype(float)
        squares = cells.noise[several] * cells.sizes[several]
        found["sample"] = float(free @ squares / free.sum())
        found["icc"] = _icc(cells, found["sample"])
    single = found.get("sample", 0.0)
    noise = np.where(np.isfinite(cells.noise), cells.noise, single / cells.sizes)
    groups = len(np.unique(cells.groups))
    table, own = _table(cells.items, cells.groups, cells.means, noise)
    complete = np.isfinite(table).all(axis=1)
    if groups > 1 and complete.sum() > 1:
        both = table[complete]
        within, between = _two_way(both)
        found["item by group"] = max(0.0, within - float(own[complete].mean()))
        found["item"] = max(0.0, (between - within) / groups)
    elif len(table) > groups:
        spread = np.nansum((table - np.nanmean(table, axis=0)) ** 2)
        free_items = float(np.isfinite(table).sum() - groups)
        found["item"] = max(0.0, float(spread) / free_items - float(np.nanmean(own)))
    table, _ = _table(cells.wordings, cells.items, cells.means, noise)
    table = table[:, np.isfinite(table).all(axis=0)]
    if min(table.shape) > 1 and "wording" in cells.factors:
        within, between = _two_way(table)
        found["wording"] = max(0.0, (between - within) / table.shape[1])
    return found


def _icc(cells: Cells, within: float) -> float:
    """Of the samples of a prompt, the groups' means taken out."""
    sizes, groups = cells.sizes.astype(float), np.unique(cells.groups, return_inverse=True)[1]
    means = np.bincount(groups, sizes * cells.means) / np.bincount(groups, sizes)
    free = len(sizes) - len(means)
    if free < 1:
        return math.nan
    between = float(sizes @ (cells.means - means[groups]) ** 2) / free
    usual = (sizes.sum() - float(sizes @ sizes) / sizes.sum()) / (len(sizes) - 1)
    total = between + (usual - 1) * within
    return max(0.0, (between - within) / total) if total > 0 else math.nan


def _table(rows: Ints, columns: Ints, means: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The means by two factors, NaN where there is none, and the variances of their noise."""
    (row_names, row), (column_names, column) = (
        np.unique(codes, return_inverse=True) for codes in (rows, columns)
    )
    shape = (len(row_names), len(column_names))
    place, size = row * shape[1] + column, shape[0] * shape[1]
    counts = np.bincount(place, minlength=size)
    with np.errstate(invalid="ignore"):
        table = np.bincount(place, means, size) / counts
        own = np.bincount(place, noise, size) / counts.astype(float) ** 2
    return table.reshape(shape), own.reshape(shape)


def _two_way(table: Floats) -> tuple[float, float]:
    """The mean squares of a complete table: of what neither factor explains, and of its rows."""
    rows, columns = table.shape
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    within = float((rest**2).sum()) / ((rows - 1) * (columns - 1))
    return within, columns * float(table.mean(axis=1).var(ddof=1))


def units_to_halve(units: int) -> int:
    """How many more units would halve an interval by Student's t over `units` units.

    >>> units_to_halve(10), units_to_halve(2)
    (23, 1)
    """
    half = quantile(0.975, units - 1) / math.sqrt(units) / 2
    more = 1
    while quantile(0.975, units + more - 1) / math.sqrt(units + more) > half and more < MOST:
        more += 1 + more // 100
    return more


def advice(contrast: GroupContrast) -> dict[str, float]:
    """By how much more samples could narrow the interval, and how many units would halve it."""
    known = {"narrower": 1 - math.sqrt(1 - contrast.sampling)}
    crossed = "wording" in contrast.without
    units = min(len(np.unique(side.units)) for side in contrast.sides)
    if units > 1 and not crossed and contrast.mean.variance > 0:
        known["units_to_halve"] = units_to_halve(units)
    return {key: value for key, value in known.items() if math.isfinite(value)} | {
        "units": float(units)
    }


def explain(
    unit: str, wordings: int, found: Mapping[str, float], known: Mapping[str, float]
) -> str:
    """The sources of the interval in one sentence."""
    clauses, interval = [], "the interval"
    if "icc" in found and math.isfinite(found["icc"]):
        clauses.append(f"answers to one prompt are alike by an ICC of {found['icc']:.2f}")
    if "narrower" in known:
        most = percent(known["narrower"])
        clauses.append(f"more samples of these prompts narrow {interval} by {most} at most")
        interval = "it"
    if "units_to_halve" in known:
        more = known["units_to_halve"]
        clauses.append(f"{more:,.0f} more {unit}{'s' * (more > 1)} would halve {interval}")
    elif wordings > 1:
        clauses.append(
            f"{interval} is over {wordings} wordings too: more {unit}s alone would not do"
        )
    return "; ".join(clauses)
