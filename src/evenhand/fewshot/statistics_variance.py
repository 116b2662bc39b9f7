r"""Where the spread of few-shot results comes from: episodes, classes, splits, seeds.

Runs are accuracies by episode, $y_{sre}$ for split $s$, seed $r$ and episode $e$; the seeds of a
split share its test episodes. The model is

$$y_{sre} = \mu + S_s + R_{sr} + T_{se} + \varepsilon_{sre}, \qquad
  T_{se} = \textstyle\sum_{c \in e} a_c + \text{rest}$$

and the estimators are the moments' (analysis of variance; negative ones are 0):

- *episode*: the spread of $T + \varepsilon$ within a run; it gives a run $V_e$, the naive variance;
- *class*: what the draw of test classes gives a run, the class jackknife free of noise;
- *seed*: the spread of run means within a split less their share of $\varepsilon$;
- *split*: the spread of split means less the seeds' and the episodes' share. A split draws its
  test classes, so the classes' part is in it: `split beyond its classes` is without. Classes that
  two splits have in common do not set them apart: of the classes' part it is the share of others.

Each is given as the SD it gives the accuracy of one run, with an interval from generalised pivots
(Weerahandi 1995): mean squares times freedom over draws of χ².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.fewshot.statistics import Answers
from evenhand.fewshot.statistics_joined import check_runs, shared_classes
from evenhand.fewshot.statistics_replicates import Floats, replicates

__all__ = ["Component", "variance_split"]

DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The SD that one source gives the accuracy of one run; NaN where the runs cannot tell."""

    source: str
    sd: float
    low: float
    high: float
    units: int
    freedom: int
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def variance_split(
    runs: Sequence[Sequence[Answers]], *, prob: float = 0.95, seed: int = 0
) -> tuple[Component, ...]:
    """The components from runs[split][seed]; as many seeds in each split."""
    check_runs(runs)
    y = np.array([[_accuracies(run) for run in split] for split in runs])
    by_class = float(np.mean([_class_variance(split) for split in runs]))
    tested = np.stack([np.isin(np.arange(len(run.names)), run.tested) for run, *_ in runs])
    apart = 1 - shared_classes(tested)
    classes = int(tested.any(axis=0).sum())
    return _components(y, by_class, apart, classes, prob, np.random.default_rng(seed))


def _components(
    y: Floats, by_class: float, apart: float, classes: int, prob: float, rng: np.random.Generator
) -> tuple[Component, ...]:
    splits, seeds, episodes = y.shape
    means = y.mean(axis=2)
    within = y - means[:, :, None]
    noise = within - within.mean(axis=1, keepdims=True)
    freedom = {
        "episode": splits * (episodes - 1),
        "seed": splits * (seeds - 1),
        "split": splits - 1,
        "noise": splits * (seeds - 1) * (episodes - 1),
        "class": classes - 1,
    }
    squares = {
        "episode": float((within**2).sum()) / seeds / freedom["episode"] / episodes
        if episodes > 1 else math.nan,
        "seed": float(((means - means.mean(axis=1, keepdims=True)) ** 2).sum())
        / max(1, freedom["seed"]),
        "split": float(means.mean(axis=1).var(ddof=1)) if splits > 1 else math.nan,
        "noise": float((noise**2).sum()) / max(1, freedom["noise"]) / episodes,
        "class": by_class,
    }  # fmt: skip
    drawn = {
        name: square * freedom[name] / rng.chisquare(freedom[name], DRAWS)
        if freedom[name] > 0
        else np.full(DRAWS, math.nan)
        for name, square in squares.items()
    }
    drawn["seed"] = drawn["seed"] if seeds > 1 else np.zeros(DRAWS)
    drawn["noise"] = drawn["noise"] if seeds > 1 else np.zeros(DRAWS)

    def parts(square: dict[str, Any]) -> dict[str, Any]:
        # the mean of the seeds' episodes has T and 1 / seeds of the noise
        shared = square["episode"] - square["noise"] * (1 - 1 / seeds)
        split = square["split"] - (square["seed"] - square["noise"]) / seeds - shared
        return {
            "episode": square["episode"],
            "class": square["class"],
            "seed": square["seed"] - square["noise"] if seeds > 1 else square["seed"] * math.nan,
            "split": split,
            "split beyond its classes": split - apart * square["class"],
        }

    values = parts(squares)
    chances = parts(drawn)
    tails = [(1 - prob) / 2, (1 + prob) / 2]
    units = {"episode": episodes, "seed": seeds, "split": splits,
             "class": classes}  # fmt: skip
    found = []
    for source, value in values.items():
        low, high = np.quantile(_root(chances[source]), tails)
        key = "split" if source.startswith("split") else source
        found.append(
            Component(
                source=source, sd=float(_root(value)), low=float(low), high=float(high),
                units=units[key],
                freedom=freedom[key], prob=prob,
            )
        )  # fmt: skip
    return tuple(found)


def _root(variance: Any) -> Any:
    return np.sqrt(np.maximum(variance, 0))


def _accuracies(answers: Answers) -> Floats:
    right: Floats = (answers.predicted == answers.truth).mean(axis=1)
    return right


def _class_variance(runs: Sequence[Answers]) -> float:
    """What the draw of classes gives the accuracy of a split, the mean over its seeds."""
    counts = np.mean([run.tally() for run in runs], axis=0)
    made = replicates(
        lambda sums: sums[..., 1].sum(-1) / sums[..., 0].sum(-1), counts, runs[0].local
    )
    return made.class_variance(cautious=False)[0]
