"""False alarms, coverage and power of `evenhand scores`, `professions` and `gest` in simulation.

    python benchmarks/calibration_scores.py [--worlds 2000] [--seed 0]

A world is a table of scores of equal models on 100 items that are all asked in the same templates.
Each model has effects of items (SD 1), of templates and of single scores (SD 1); an effect of items
that all models share makes them harder or easier. An alarm is any pair of models that "differs".
Power is how often a model that is d = .5 or .8 worse differs from another one, d in units of the
SD of the scores of a model in a template. Coverage is that of the 95 % interval of a model's mean.

Pairs are computed for all worlds at once, by the formulas of `statistics.crossed.clustered` for
complete tables; the first world of each row with up to five models is compared with
`evenhand.scores.analyze`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtr, stdtrit

from evenhand.models.metrics.gest import stereotype_interval
from evenhand.scores import analyze
from evenhand.statistics.crossed import crossed
from evenhand.statistics.intervals import wilson

TEMPLATES = (2, 3, 4, 6, 12)
MODELS = (2, 5, 10, 20)
ITEMS = 100
LEVEL = 0.05
AT_ONCE = 4_000_000
"""Numbers in memory."""


@dataclass(frozen=True)
class Mixture:
    """What templates do: the SD of their effects on a model, and what the scores are.

    `unequal` models differ in how much templates matter; 0/1 scores are 1 where the sum of all
    effects and `bound` is above 0.
    """

    name: str
    template: float
    unequal: bool = False
    bound: float | None = None


MIXTURES = (
    Mixture("templates alike", 0.0),
    Mixture("templates differ", 0.3),
    Mixture("templates dominate", 1.5),
    Mixture("templates matter more for some models", 0.3, unequal=True),
    Mixture("0/1 scores, 91 % correct", 0.3, bound=2.5),
)


def draw(
    rng: np.random.Generator, worlds: int, models: int, templates: int, mixture: Mixture, d: float
) -> np.ndarray:
    """Scores (worlds, models, items, templates); the first model is d worse."""
    size = mixture.template * np.ones((worlds, models, 1, 1))
    if mixture.unequal:
        size = size * np.exp(rng.normal(size=size.shape))
    own = rng.normal(size=(worlds, models, ITEMS, 1))
    hard = rng.normal(size=(worlds, 1, ITEMS, 1))
    y = own + hard + size * rng.normal(size=(worlds, models, 1, templates))
    y += rng.normal(size=(worlds, models, ITEMS, templates))
    y[:, 0] -= d * np.sqrt(2 if mixture.bound is None else 3)
    return y if mixture.bound is None else (y + mixture.bound > 0).astype(float)


def squares(table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The sums of squared differences of pairs of models (worlds, pairs)."""
    flat = table.reshape(*table.shape[:2], -1)
    products = flat @ flat.transpose(0, 2, 1)
    own = np.einsum("wmm->wm", products)
    return np.maximum(own[:, first] + own[:, second] - 2 * products[:, first, second], 0)


def variances(parts: list[np.ndarray], templates: int) -> tuple[np.ndarray, np.ndarray]:
    """Variance and degrees of freedom from the sums of squares of items, templates and rest."""
    free = (ITEMS - 1, templates - 1, (ITEMS - 1) * (templates - 1))
    sizes = (ITEMS, templates, ITEMS * templates)
    by_item, by_template, rest = (
        part / n / size for part, n, size in zip(parts, free, sizes, strict=True)
    )
    variance = np.maximum(by_item + by_template - rest, np.maximum(by_item, by_template))
    with np.errstate(invalid="ignore", divide="ignore"):
        df = variance**2 / (by_item**2 / free[0] + by_template**2 / free[1])
    return variance, np.clip(np.nan_to_num(df, nan=1.0), 1.0, min(free[:2]))


def pairs(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p-values (worlds, pairs) of no difference, and of all scores taken as independent."""
    _, models, items, templates = y.shape
    first, second = np.triu_indices(models, 1)
    by_item, by_template, means = y.mean(axis=3), y.mean(axis=2), y.mean(axis=(2, 3))
    centred = y - means[..., None, None]
    rest = y - by_item[..., None] - by_template[:, :, None, :] + means[..., None, None]
    parts = [
        squares(table, first, second)
        for table in (by_item - means[..., None], by_template - means[..., None], rest)
    ]
    variance, df = variances(parts, templates)
    gap = np.abs(means[:, first] - means[:, second])
    n = items * templates
    naive = squares(centred, first, second) / (n - 1) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(variance > 1e-20, 2 * stdtr(df, -gap / np.sqrt(variance)), 1.0)
        independent = np.where(naive > 1e-20, 2 * stdtr(n - 1, -gap / np.sqrt(naive)), 1.0)
    return p, independent


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's correction of each row."""
    count = p.shape[1]
    order = np.argsort(p, axis=1)
    ordered = np.take_along_axis(p, order, axis=1) * (count - np.arange(count))
    corrected = np.minimum(1, np.maximum.accumulate(ordered, axis=1))
    result = np.empty_like(p)
    np.put_along_axis(result, order, corrected, axis=1)
    return result


def covered(y: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Whether the interval of the last model's mean has the truth (worlds)."""
    table = y[:, -1]
    by_item, by_template, mean = table.mean(axis=2), table.mean(axis=1), table.mean(axis=(1, 2))
    rest = table - by_item[..., None] - by_template[:, None] + mean[:, None, None]
    parts = [
        (part**2).reshape(len(part), -1).sum(axis=1)
        for part in (by_item - mean[:, None], by_template - mean[:, None], rest)
    ]
    variance, df = variances(parts, table.shape[2])
    half = stdtrit(df, 1 - LEVEL / 2) * np.sqrt(variance)
    truth = 0.0
    if mixture.bound is not None:
        truth = float(ndtr(mixture.bound / np.sqrt(3 + mixture.template**2)))
        equal = variance < 1e-20  # the limit of a share that was never seen to differ
        half = np.where(equal, 1 - (LEVEL / 2) ** (1 / table.shape[2]), half)
    return np.abs(mean - truth) <= half


def check(y: np.ndarray) -> None:
    """One world through the command: the same pairs, p-values and decisions."""
    model, item, template = (axis.ravel() for axis in np.indices(y.shape))
    table = {"item": item, "model": model, "template": template, "score": y.ravel()}
    found = analyze(pd.DataFrame(table))
    p = holm(pairs(y[None])[0])[0]
    np.testing.assert_allclose([c.p_corrected for c in found.comparisons], p, atol=1e-6)
    differ = [c.details["outcome"] == "differs" for c in found.comparisons]
    np.testing.assert_array_equal(differ, p < LEVEL)


def cells(
    worlds: int, seed: int, templates: int, models: int, mixture: Mixture
) -> Iterator[dict[str, np.ndarray]]:
    """Alarms, coverage and power of worlds, some at a time."""
    rng = np.random.default_rng([seed, templates, models, MIXTURES.index(mixture)])
    step = max(1, AT_ONCE // (models * ITEMS * templates))
    for start in range(0, worlds, step):
        count = min(step, worlds - start)
        y = draw(rng, count, models, templates, mixture, 0.0)
        if start == 0 and models <= 5:
            check(y[0])
        p, independent = pairs(y)
        chunk = {
            "alarms": (holm(p) < LEVEL).any(axis=1),
            "naive": (holm(independent) < LEVEL).any(axis=1),
            "coverage": covered(y, mixture),
        }
        for name, d in (("power_05", 0.5), ("power_08", 0.8)):
            moved = draw(rng, count, models, templates, mixture, d)
            chunk[name] = holm(pairs(moved)[0])[:, 0] < LEVEL
        yield chunk


def row(command: str, world: str, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """A row of the table of calibration; `naive` are the alarms of independent scores."""
    alarms, worlds = int(found["alarms"].sum()), len(found["alarms"])
    rate, low, high = wilson(alarms, worlds)
    means = {name: float(values.mean()) for name, values in found.items() if name != "alarms"}
    return {
        "command": command,
        "world": world,
        "nominal": LEVEL,
        "worlds": worlds,
        "alarms": alarms,
        "rate": rate,
        "low": low,
        "high": high,
        "coverage": means["coverage"],
        "power_05": means.get("power_05"),
        "power_08": means.get("power_08"),
        "naive": means.get("naive"),
    }


def scores_rows(
    worlds: int,
    seed: int,
    templates: tuple[int, ...] = TEMPLATES,
    models: tuple[int, ...] = MODELS,
    mixtures: tuple[Mixture, ...] = MIXTURES,
) -> list[dict[str, Any]]:
    """The rows of `evenhand scores`."""
    results = []
    for mixture in mixtures:
        for t in templates:
            for m in models:
                chunks = list(cells(worlds, seed, t, m, mixture))
                found = {name: np.concatenate([c[name] for c in chunks]) for name in chunks[0]}
                results.append(row("scores", f"{t} templates, {m} models; {mixture.name}", found))
    return results


def professions_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """The contrast of 40 professions in eight templates with two, three and six person pairs.

    A pair matters for the professions of one group more than for those of the other, with an SD of
    .3 or not at all; professions have an SD of .5, which is that of d.
    """
    results = []
    labels = np.arange(40) % 2
    weights = np.where(labels == 0, 0.05, -0.05)
    shift = 20 * weights[None, :, None] / 2  # moves the contrast by 1
    for number in (2, 3, 6):
        for name, size in (("alike", 0.0), ("different", 0.3)):
            rng = np.random.default_rng([seed, number, int(100 * size)])
            found: dict[str, list[bool]] = {
                key: [] for key in ("alarms", "coverage", "power_05", "power_08")
            }
            for _ in range(worlds):
                table = 0.5 * rng.normal(size=(1, 40, 1)) + 0.3 * rng.normal(size=(8, 40, number))
                table += size * rng.normal(size=number) * (labels == 0)[None, :, None]
                table += 0.2 * rng.normal(size=(8, 1, 1)) * (labels == 0)[None, :, None]
                mean = crossed(table, weights, labels)
                low, high = mean.interval(0.95)
                found["alarms"].append(bool((mean.p_value or 1.0) < LEVEL))
                found["coverage"].append(low <= 0 <= high)
                for key, d in (("power_05", 0.5), ("power_08", 0.8)):
                    moved = crossed(table + 0.5 * d * shift, weights, labels)
                    found[key].append(bool((moved.p_value or 1.0) < LEVEL))
            arrays = {key: np.array(values) for key, values in found.items()}
            results.append(
                row("model measure (professions)", f"{number} person pairs, {name}", arrays)
            )
    return results


def gest_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """The stereotype of 16 stereotypes in two and four templates."""
    kinds = np.repeat(np.arange(1, 17), 10)
    men = (kinds > 7)[:, None]
    results = []
    for templates in (2, 4):
        for size in (0.0, 0.1, 0.4):
            rng = np.random.default_rng([seed, templates, int(100 * size)])
            found: dict[str, list[bool]] = {
                key: [] for key in ("alarms", "coverage", "power_05", "power_08")
            }
            for _ in range(worlds):
                scores = 0.3 * rng.normal(size=16)[kinds - 1][:, None]
                scores = scores + size * rng.normal(size=templates) * men
                scores = scores + 0.5 * rng.normal(size=(len(kinds), templates))
                _, low, high = stereotype_interval(scores, kinds)
                found["alarms"].append(not low <= 0 <= high)
                found["coverage"].append(low <= 0 <= high)
                for key, d in (("power_05", 0.5), ("power_08", 0.8)):
                    found[key].append(low + d * np.hypot(0.3, 0.5) > 0)
            arrays = {key: np.array(values) for key, values in found.items()}
            results.append(row("model measure (gest)", f"{templates} templates, sd {size}", arrays))
    return results


def rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """All rows: `scores`, and the two measures whose intervals are over few levels."""
    return [
        *scores_rows(worlds, seed),
        *professions_rows(worlds, seed),
        *gest_rows(worlds, seed),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print("| command | world | alarms | 95 % | coverage | power, d = .5 | .8 | naive |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for each in rows(options.worlds, options.seed):
        naive = "–" if each["naive"] is None else f"{each['naive']:.3f}"
        print(
            f"| {each['command']} | {each['world']} | {each['rate']:.3f} | "
            f"[{each['low']:.3f}, {each['high']:.3f}] | {each['coverage']:.3f} | "
            f"{each['power_05']:.2f} | {each['power_08']:.2f} | {naive} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
