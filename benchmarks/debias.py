"""Hard debiasing of a vocabulary: Evenhand, one plain numpy pass, a Python loop over words.

Run: python benchmarks/debias.py [words] [dimensions]
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from evenhand.vectors.debias import bias_subspace, hard
from evenhand.vectors.store import Vectors

LOOPED = 2000
"""Words the loop is timed on; its time for all is extrapolated."""


def plain(matrix: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """One pass over complete arrays: project, divide by the lengths."""
    rest = matrix - (matrix @ basis.T) @ basis
    return rest / np.linalg.norm(rest, axis=1, keepdims=True)


def looped(matrix: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The same, word by word."""
    out = np.empty_like(matrix)
    for row, vector in enumerate(matrix):
        for axis in basis:
            vector = vector - (vector @ axis) * axis
        out[row] = vector / np.linalg.norm(vector)
    return out


def best_times(jobs: list[Callable[[], object]], repeats: int = 7) -> list[float]:
    """The best time of each job; the jobs alternate, so that other load affects all of them."""
    times = [[float("inf")] for _ in jobs]
    for _ in range(repeats):
        for job, spent in zip(jobs, times, strict=True):
            start = time.process_time()
            job()
            spent.append(time.process_time() - start)
    return [min(spent) for spent in times]


def peak_megabytes(job: Callable[[], object]) -> float:
    """The peak of the memory that the job allocates."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def main(words: int = 100_000, dim: int = 300) -> None:
    """Print one table."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((words, dim), dtype=np.float32)
    v = Vectors.from_arrays([f"w{i}" for i in range(words)], matrix, name="random")
    sets = [[f"w{3 * i}", f"w{3 * i + 1}", f"w{3 * i + 2}"] for i in range(10)]
    v.find(["w0"])
    size = matrix.nbytes / 2**20
    print(f"hard debias of {words:,} × {dim} float32 ({size:.0f} MB)")
    print(f"{'k':>2} {'method':<34}{'seconds':>9}{'× plain':>9}{'peak MB':>9}{'× matrix':>9}")
    for k in (1, 2):
        basis = bias_subspace(v, sets, k).basis.astype(np.float32)
        jobs: list[Callable[[], object]] = [
            lambda k=k: hard(v, sets, k=k),  # type: ignore[misc]
            lambda basis=basis: plain(matrix, basis),  # type: ignore[misc]
            lambda basis=basis: looped(matrix[:LOOPED], basis),  # type: ignore[misc]
        ]
        ours, one_pass, loop = best_times(jobs)
        rows = [
            ("evenhand (complete call)", ours, peak_megabytes(jobs[0])),
            ("limit: one plain numpy pass", one_pass, peak_megabytes(jobs[1])),
            (f"loop over words (of {LOOPED:,})", loop * words / LOOPED, float("nan")),
        ]
        for name, seconds, peak in rows:
            ratio = f"{seconds / one_pass:.2f}"
            print(f"{k:>2} {name:<34}{seconds:9.3f}{ratio:>9}{peak:9.0f}{peak / size:9.2f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
