"""How often a gate is met or not met wrongly: whole gates in worlds whose truth is known.

Each world draws items, measures them as a command does and checks a policy. With the truth exactly
at the limit, "met" and "not met" are both alarms. Power is the share that is met with the truth
0.5 or 0.8 standard deviations of the items inside the limit, or not met with it so far outside.

    python benchmarks/calibration_gate.py --worlds 2000
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.classifier import read_predictions
from evenhand.classifier.metrics.gaps import TprGap
from evenhand.gate import GateResult, Policy, Rule, check
from evenhand.results import Measurement
from evenhand.scores import analyze
from evenhand.statistics.intervals import t_mean, wilson

Draw = Callable[[np.random.Generator, float], GateResult]


@dataclass(frozen=True, kw_only=True)
class World:
    """A gate on items that are drawn with the truth so many standard deviations above a limit."""

    name: str
    truth: float | None
    """What the first rule limits, with the truth at the limit; None where it is no one number."""
    draw: Draw
    met: float = 0.025
    """The nominal rate of gates that are met wrongly, and of those that are not met wrongly."""
    not_met: float = 0.025
    cheap: bool = True


# ---------------------------------------------------------------------------- scores of any tool


def by_scores(scores: np.ndarray, rule: dict[str, Any], clusters: np.ndarray | None = None) -> Any:
    """The gate on the mean of a model's item scores, beside another model's."""
    other = np.linspace(0, 1, len(scores))
    both = np.concatenate([scores, other])
    items = np.arange(len(scores))
    table = {"item": np.tile(items, 2), "model": np.repeat(["m", "other"], len(scores))}
    table["score"] = both
    if clusters is not None:
        table["cluster"] = np.tile(clusters, 2)
    name = None if clusters is None else "cluster"
    analysis = analyze(pd.DataFrame(table), cluster=name, best="lowest")
    return check({"metric": "mean_score", "query": "m", **rule}, analysis)


def normal_scores(n: int) -> Draw:
    """Scores of which the method assumes the distribution."""
    return lambda rng, shift: by_scores(rng.normal(1 + shift, 1, n), {"max": 1.0})


def skewed_scores(n: int) -> Draw:
    """Scores from an exponential distribution."""
    return lambda rng, shift: by_scores(rng.exponential(1, n) + shift, {"max": 1.0})


def share_scores(n: int, share: float) -> Draw:
    """Scores of 0 and 1."""

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        true = share + shift * math.sqrt(share * (1 - share))
        return by_scores((rng.random(n) < max(true, 0.0)).astype(float), {"max": share})

    return draw


def clustered_scores(clusters: int, each: int, icc: float) -> Draw:
    """Scores that are alike within clusters."""

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        of = np.repeat(np.arange(clusters), each)
        common = rng.normal(0, math.sqrt(icc), clusters)[of]
        scores = 1 + shift + common + rng.normal(0, math.sqrt(1 - icc), len(of))
        return by_scores(scores, {"max": 1.0}, of)

    return draw


# -------------------------------------------------------------------------------- other measures


def measured(estimate: tuple[float, float, float], n: int, **more: Any) -> Measurement:
    """A measurement with these numbers."""
    value, low, high = estimate
    usual = {"metric": "demo", "query": "q", "ideal": 0.0, "worse": "higher", "interval": ""}
    return Measurement(value=value, low=low, high=high, n=n, **{**usual, **more})


def mean_of(scores: np.ndarray, **more: Any) -> Measurement:
    """The mean of items that can be paired, with the values without each of them."""
    n = len(scores)
    rows = {"word": [f"w{i}" for i in range(n)], "score": scores}
    rows["without"] = (scores.sum() - scores) / (n - 1)
    return measured(t_mean(scores), n, items=rows, **more)


def wilson_share(n: int, share: float) -> Draw:
    """A share of pairs with Wilson's interval, limited on both sides of .5."""

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        true = min(max(share + shift * math.sqrt(share * (1 - share)), 0.0), 1.0)
        m = measured(wilson(rng.binomial(n, true), n), n, ideal=0.5, worse="away")
        return check({"metric": "demo", "min": 1 - share, "max": share}, m)

    return draw


def mean_in_range(n: int, reach: float) -> Draw:
    """A mean limited on both sides of 0."""

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        m = mean_of(rng.normal(reach + shift, 1, n), worse="away")
        return check({"metric": "demo", "min": -reach, "max": reach}, m)

    return draw


def mean_at(n: int, prob: float) -> Draw:
    """A mean whose interval the policy widens."""
    rule = {"metric": "demo", "max": 0.0, "prob": prob}
    return lambda rng, shift: check(rule, mean_of(rng.normal(shift, 1, n)))


def paired(n: int, *, margin: float, start: float, worse: str) -> Draw:
    """Two models on the same items; the truth of the worsening is the margin."""

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        items = start + rng.normal(0, 1, n)
        changed = items + rng.normal(margin + shift, 1, n)
        before, after = (mean_of(scores, worse=worse) for scores in (items, changed))
        return check({"metric": "demo", "max_worsening": margin}, after, before)

    return draw


def several(n: int, count: int, prob: float | None = None) -> Draw:
    """Rules on other items each, with every truth at its limit."""
    rules = tuple(Rule(metric="demo", query=f"q{i}", max=0.0) for i in range(count))
    policy = Policy(rules=rules, prob=prob)

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        drawn = rng.normal(shift, 1, (count, n))
        return check(policy, [mean_of(x, query=f"q{i}") for i, x in enumerate(drawn)])

    return draw


def classifier(sizes: tuple[int, int], gap: float, rule: dict[str, Any]) -> Draw:
    """Three classes, each recognised less often by `gap` in the smaller of two groups."""
    sd = math.sqrt(0.7 * 0.3)

    def draw(rng: np.random.Generator, shift: float) -> GateResult:
        group = np.repeat([0, 1], sizes)
        true = np.arange(group.size) % 3
        rate = np.where(group == 0, 0.85, 0.85 - max(gap + shift * sd, 0.0))
        hit = rng.random(group.size) < np.maximum(rate, 0.0)
        wrong = (true + rng.integers(1, 3, group.size)) % 3
        table = {"label": np.array(list("abc"))[true], "group": np.array(["f", "g"])[group]}
        table["prediction"] = np.array(list("abc"))[np.where(hit, true, wrong)]
        subject = read_predictions(pd.DataFrame(table), group="group")
        return check({"metric": "tpr-gap", **rule}, TprGap(permutations=0).measure(subject))

    return draw


GAP = 0.3
WORLDS = (
    World(name="mean of 10 items", truth=1.0, draw=normal_scores(10)),
    World(name="mean of 40 items", truth=1.0, draw=normal_scores(40)),
    World(name="mean of 40 skewed items", truth=1.0, draw=skewed_scores(40)),
    World(name="share of .1 among 40 items", truth=0.1, draw=share_scores(40, 0.1)),
    World(name="6 clusters of 5 items, ICC .5", truth=1.0, draw=clustered_scores(6, 5, 0.5)),
    World(name="share of .9 among 40 pairs", truth=0.9, draw=wilson_share(40, 0.9)),
    World(name="range on both sides, 20 items", truth=0.6, draw=mean_in_range(20, 0.6)),
    World(
        name="prob = .99 in the policy",
        truth=0.0,
        draw=mean_at(12, 0.99),
        met=0.005,
        not_met=0.005,
    ),
    World(
        name="paired worsening, 25 items",
        truth=0.2,
        draw=paired(25, margin=0.2, start=1.0, worse="higher"),
    ),
    World(
        name="worsening away from the ideal",
        truth=0.2,
        draw=paired(25, margin=0.2, start=3.0, worse="away"),
    ),
    World(
        name="unchanged at the ideal, limit 0",
        truth=None,
        draw=paired(25, margin=0.0, start=0.0, worse="away"),
        not_met=0.05,
    ),
    World(
        name="5 rules, all at their limits",
        truth=0.0,
        draw=several(15, 5),
        not_met=0.05,
    ),
    World(
        name="classifier, gap of a class, 300 and 45 texts",
        truth=GAP,
        draw=classifier((300, 45), GAP, {"part": "a", "by": "class", "min": -GAP, "max": GAP}),
        cheap=False,
    ),
    World(
        name="classifier, root mean square, 300 and 45 texts",
        truth=GAP,
        draw=classifier((300, 45), GAP, {"max": GAP}),
        cheap=False,
    ),
)


def rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Two rows per world: gates that are met wrongly, and gates that are not met wrongly.

    Parameters
    ----------
    worlds : int
        Worlds with the truth at the limit; 400 at most where they are expensive. Power has a
        tenth of them, and at least 100.
    seed : int

    """
    return [row for i, world in enumerate(WORLDS) for row in _rows(world, worlds, [seed, i])]


def _rows(world: World, worlds: int, seed: list[int]) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    worlds = worlds if world.cheap else min(worlds, 400)
    states, covered = [], []
    for _ in range(worlds):
        result = world.draw(rng, 0.0)
        states.append(result.state)
        estimate = result.rows[0].estimate
        if world.truth is not None and estimate is not None:
            covered.append(estimate.low <= world.truth <= estimate.high)

    def power(state: str, shift: float) -> float:
        count = max(worlds // 10, 100)
        return sum(world.draw(rng, shift).state == state for _ in range(count)) / count

    for state, nominal, sign in (("met", world.met, -1), ("not met", world.not_met, 1)):
        alarms = states.count(state)
        rate, low, high = wilson(alarms, worlds)
        yield {
            "command": "gate",
            "world": f"{world.name}: wrongly {state}",
            "nominal": nominal,
            "worlds": worlds,
            "alarms": alarms,
            "rate": rate,
            "low": low,
            "high": high,
            "coverage": float(np.mean(covered)) if covered else None,
            "power_05": power(state, sign * 0.5),
            "power_08": power(state, sign * 0.8),
        }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = rows(arguments.worlds, arguments.seed)
    if arguments.json:
        print(json.dumps(table, indent=1))
    else:
        shown = pd.DataFrame(table).drop(columns="command")
        print(shown.to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
