"""Coverage, false alarms and power of δ by crossed, in worlds that the model does not assume.

    python benchmarks/posterior_worlds.py [--sets 1000] [--chains 400] [--workers 2]
        [--worlds 'A;B']

Tables are simulated with and without class × attribute effects (η), with normal and with
heavy-tailed errors and effects (Student t, 3 degrees of freedom), with scales of the error that
differ between words (standard deviation of their logarithm .4) or by connection (associated 1.8
times the others), with skewed attributes (levels, η and errors gamma distributed, skewness -2: a
few attributes are much closer than the others) and with correlated attributes (neighbours of one
class, two of them or all four, share half of the variance of levels, η and errors). Last, the words
of one class alone, where δ compares different attributes. The numbers of words and stereotypes are
those of religion and gender, the scales about those of embedded GloVe vectors and of the Reddit
vectors of Dobrzeniecka (2021). δ is measured from the stereotypes, as in `evenhand plan`,
by crossed and, on the same tables, by crossed-no-interaction; then, with control words, by the
chains of `evenhand lab posterior fit`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.posterior.crossed import CrossedData, CrossedPrior, fit_crossed
from evenhand.posterior.planning import sample_delta
from evenhand.posterior.tables import Table, simulate
from evenhand.statistics.intervals import wilson
from evenhand.statistics.mcmc import hdi

NOMINAL = 0.89
GUESS = np.array([0.09, 0.16, 0.03, 0.08, 0.03])
GLOVE = {"error": 0.075, "stereotype": 0.155, "delta": 0.02, "word": 0.067}
GLOVE_GENDER = {"error": 0.068, "stereotype": 0.085, "delta": 0.035, "word": 0.09}
REDDIT = {"error": 0.118, "stereotype": 0.183, "delta": 0.03, "word": 0.142}
CONTROLS = {"human": 0.08, "neutral": 0.075}


@dataclass(frozen=True)
class World:
    """A way of simulating tables; `eta` is the scale of the class × attribute effects."""

    name: str
    scales: dict[str, float]
    eta: float = 0.0
    delta: float = 0.0
    freedom: float | None = None
    unequal: tuple[float, float] = (0.0, 1.0)
    words: tuple[int, ...] = (5, 5, 5)
    stereotypes: tuple[int, ...] = (4, 3, 4)
    skew: float = 0.0
    correlated: tuple[int, float] = (1, 0.0)
    alone: bool = False
    """Whether the words of the first class are the table."""

    def draw(self, seed: int, human: int = 0, neutral: int = 0) -> Table:
        scales = {**CONTROLS, **self.scales, "interaction_stereotype": self.eta}
        scales |= dict.fromkeys(("interaction_human", "interaction_neutral"), self.eta / 2)
        table = simulate(
            delta=self.delta,
            words=self.words,
            stereotypes=self.stereotypes,
            human=human,
            neutral=neutral,
            scales=scales,
            freedom=self.freedom,
            unequal=self.unequal,
            skew=self.skew,
            correlated=self.correlated,
            seed=seed,
        )
        return table.select_classes(["class1"]) if self.alone else table


BY_WORD, BY_CONNECTION = (0.4, 1.0), (0.0, 1.8)
GENDER = {"words": (7, 7), "stereotypes": (13, 12)}
WORLDS = (
    World("religion, GloVe", GLOVE),
    World("religion, GloVe", GLOVE, 0.03),
    World("religion, GloVe", GLOVE, 0.056),
    World("heavy tails", GLOVE, 0.0, freedom=3),
    World("heavy tails", GLOVE, 0.056, freedom=3),
    World("unequal by word", GLOVE, 0.0, unequal=BY_WORD),
    World("unequal by word", GLOVE, 0.056, unequal=BY_WORD),
    World("unequal by connection", GLOVE, 0.0, unequal=BY_CONNECTION),
    World("unequal by connection", GLOVE, 0.056, unequal=BY_CONNECTION),
    World("all three", GLOVE, 0.056, freedom=3, unequal=(0.4, 1.8)),
    World("religion, Reddit", REDDIT),
    World("gender, GloVe", GLOVE_GENDER, **GENDER),
    World("gender, GloVe", GLOVE_GENDER, 0.042, **GENDER),
    World("religion, GloVe", GLOVE, 0.0, -0.05),
    World("religion, GloVe", GLOVE, 0.056, -0.05),
    World("religion, Reddit", REDDIT, 0.0, -0.05),
)
PAIRS, CLASSES = (2, 0.5), (4, 0.5)
ATTRIBUTE_WORLDS = (
    World("skewed attributes", GLOVE, 0.0, skew=-2.0),
    World("skewed attributes", GLOVE, 0.056, skew=-2.0),
    World("skewed attributes", GLOVE, 0.056, -0.05, skew=-2.0),
    World("correlated pairs", GLOVE, 0.0, correlated=PAIRS),
    World("correlated pairs", GLOVE, 0.056, correlated=PAIRS),
    World("correlated classes", GLOVE, 0.0, correlated=CLASSES),
    World("correlated classes", GLOVE, 0.056, correlated=CLASSES),
    World("correlated pairs", GLOVE, 0.056, -0.05, correlated=PAIRS),
    World("words of one class", GLOVE, alone=True),
    World("words of one class", REDDIT, alone=True),
)
CHAIN_WORLDS = (WORLDS[0], WORLDS[2], WORLDS[4])
ATTRIBUTE_CHAIN_WORLDS = (ATTRIBUTE_WORLDS[1], ATTRIBUTE_WORLDS[4], ATTRIBUTE_WORLDS[6])


def assess_stereotypes(world: World, seed: int) -> list[tuple[bool, bool]]:
    """Whether the interval of δ contains the truth and excludes 0: crossed, no interaction."""
    data = CrossedData.of(world.draw(seed))
    prior, rng = CrossedPrior(), np.random.default_rng(seed)
    outcomes = []
    with threadpool_limits(1, "blas"):
        for rows, hyper, guess in (
            (data, prior, GUESS[:-1] if data.word_class is None else GUESS),
            (replace(data, word_class=None), prior.without_interaction(), GUESS[:-1]),
        ):
            posterior = sample_delta(rows, hyper, guess, rng)
            outcomes.append(
                (
                    posterior.mass_denser_than(world.delta) <= NOMINAL,
                    posterior.mass_denser_than(0.0) > NOMINAL,
                )
            )
    return outcomes


def assess_chains(world: World, seed: int) -> list[tuple[bool, bool]]:
    """Like `assess_stereotypes`, of crossed only: by its chains and with control words."""
    table = world.draw(seed, human=10, neutral=20)
    with threadpool_limits(1, "blas"):
        fit = fit_crossed(table, draws=800, seed=seed, warm_up=(40, 60, 80), attempts=1)
    low, high = hdi(fit.draws["delta"], NOMINAL)
    return [(low <= world.delta <= high, not low <= 0 <= high)]


def lines(sets: int, chains: int, workers: int, worlds: str) -> Iterator[str]:
    """One line per world: coverage, and the share of intervals that exclude 0."""
    names = [name.strip() for name in worlds.split(";")] if worlds else []
    known = dict.fromkeys(world.name for world in (*WORLDS, *ATTRIBUTE_WORLDS))
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(
            f"error: unknown world '{unknown[0]}': expected some of {'; '.join(known)}"
        )
    yield (
        f"{'world':24}{'η':>6}{'δ':>7}{'tables':>8}{'covered, nominal .89':>22}"
        f"{'excluded 0':>22}{'no interaction':>18}"
    )
    first = count(0, 100_000)
    studies = [(assess_stereotypes, w, sets) for w in WORLDS]
    studies += [(assess_chains, w, chains) for w in CHAIN_WORLDS]
    studies += [(assess_stereotypes, w, sets) for w in ATTRIBUTE_WORLDS]
    studies += [(assess_chains, w, chains) for w in ATTRIBUTE_CHAIN_WORLDS]
    with ProcessPoolExecutor(workers) as pool:
        for assess, world, tables in studies:
            start = next(first)
            if not tables or (names and world.name not in names):
                continue
            seeds = range(start, start + tables)
            results = list(pool.map(partial(assess, world), seeds, chunksize=4))
            covered, excluded = np.array([r[0] for r in results]).sum(axis=0)
            old = ""
            if assess is assess_stereotypes:
                old = " / ".join(f"{s:.3f}" for s in np.mean([r[1] for r in results], axis=0))
            name = world.name if old else f"{world.name}, chains"
            yield (
                f"{name:24}{world.eta:>6.3f}{world.delta:>7.2f}{tables:>8}"
                f"{share(covered, tables):>22}{share(excluded, tables):>22}{old:>18}"
            )


def share(number: int, sets: int) -> str:
    """A share with its 95 % interval."""
    value, low, high = wilson(int(number), sets)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=1000, help="tables per world")
    parser.add_argument("--chains", type=int, default=400, help="tables fitted by chains")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--worlds", default="", metavar="NAME;…", help="only the worlds named so")
    for line in lines(**vars(parser.parse_args())):
        print(line, flush=True)
