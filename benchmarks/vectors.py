"""Static vectors: Evenhand, a naive implementation and the limit, as ratios of one run.

    python benchmarks/vectors.py [--words 100000] [--dim 300] [--no-gensim]

`naive` does what peers do, in a plain Python loop: WEAT recomputes every association for each
permutation, MAC takes each cosine by itself. `limit` is the arithmetic alone in numpy. All times
are of the processor, with one thread, the best of some runs, each with other permutations. The
tables of debias.py and load.py follow in the same run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import count

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is loaded

import numpy as np

import debias
import load
from evenhand.lexicon import Query
from evenhand.statistics.association import association
from evenhand.vectors import Mac, Vectors, Weat

PERMUTATIONS = 10_000


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The best of some runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def query_of(lists: list[list[str]]) -> Query:
    """WEAT on four lists of words."""
    x, y, a, b = lists
    return Query(name="weat", targets={"x": x, "y": y}, attributes={"a": a, "b": b})


def naive_weat(vector: dict[str, np.ndarray], lists: list[list[str]], draws: int) -> float:
    """Each permutation from scratch, cosine by cosine; returns seconds for PERMUTATIONS."""
    X, Y, A, B = lists

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    def score(word: str, A: list[str], B: list[str]) -> float:
        first = np.mean([cosine(vector[word], vector[a]) for a in A])
        return float(first - np.mean([cosine(vector[word], vector[b]) for b in B]))

    rng = np.random.default_rng(0)

    def permute() -> None:
        pool = list(rng.permutation([*X, *Y]))
        sum(score(x, A, B) for x in pool[: len(X)])
        sum(score(y, A, B) for y in pool[len(X) :])

    return seconds(permute, draws) * PERMUTATIONS


def limit_weat(v: Vectors, lists: list[list[str]]) -> None:
    """Gather, one product, one random partition matrix, one sum: no checks, no interval."""
    X, Y, A, B = (v.unit(v.find(words).rows) for words in lists)
    scores = association(np.concatenate([X, Y]), A, B)
    keys = np.random.default_rng(0).random((PERMUTATIONS, scores.size), dtype=np.float32)
    chosen = np.argpartition(keys, len(X) - 1, axis=1)[:, : len(X)]
    (scores[chosen].sum(axis=1) >= scores[: len(X)].sum()).mean()


def naive_mac(vector: dict[str, np.ndarray], targets: list[str], words: list[str]) -> float:
    """Cosine by cosine."""

    def distance(a: np.ndarray, b: np.ndarray) -> float:
        return 1 - float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    return float(
        np.mean([np.mean([distance(vector[t], vector[w]) for w in words]) for t in targets])
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--no-gensim", dest="gensim", action="store_false", help="it is slow")
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    names = [f"w{i}" for i in range(given.words)]
    matrix = rng.standard_normal((given.words, given.dim), dtype=np.float32)
    v = Vectors.from_arrays(names, matrix, name="random")
    lists = [names[i * 25 : (i + 1) * 25] for i in range(4)]
    small = [words[:8] for words in lists]
    vector = {name: matrix[i] for i, name in enumerate(names[:100])}
    targets, words = names[:15], names[15:26]
    mac_query = Query(name="mac", targets={"t": targets}, attributes={"a": words})
    seeds = count()
    rows = [
        (
            f"WEAT, {PERMUTATIONS:,} permutations, 25+25 words",
            seconds(lambda: Weat(permutations=PERMUTATIONS)(v, query_of(lists), seed=next(seeds))),
            naive_weat(vector, lists, 20),
            seconds(lambda: limit_weat(v, lists)),
        ),
        (
            "WEAT, all 12,870 partitions, 8+8 words",
            seconds(lambda: Weat()(v, query_of(small))),
            naive_weat(vector, small, 100) * 12_870 / PERMUTATIONS,
            None,
        ),
        (
            "MAC with its interval, 15 × 11 words",
            seconds(lambda: Mac(null=0)(v, mac_query), 50),
            seconds(lambda: naive_mac(vector, targets, words), 50),
            seconds(
                lambda: float(
                    (1 - v.unit(v.find(targets).rows) @ v.unit(v.find(words).rows).T).mean()
                ),
                50,
            ),
        ),
    ]
    print(f"{given.words:,} words × {given.dim}\n")
    print(f"{'work':<48}{'ours':>10}{'naive':>11}{'limit':>10}{'naive/ours':>12}{'ours/limit':>12}")
    for name, ours, naive, limit in rows:
        bound = f"{limit * 1e3:8.2f}ms" if limit else "         –"
        share = f"{ours / limit:11.2f}x" if limit else "           –"
        print(f"{name:<48}{ours * 1e3:8.2f}ms{naive:10.3g}s{bound}{naive / ours:11,.0f}x{share}")
    print()
    debias.main(given.words, given.dim)
    print()
    load.main(given.words, given.dim, gensim=given.gensim)


if __name__ == "__main__":
    main()
