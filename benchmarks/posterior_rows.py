"""Time and memory of `evenhand lab posterior fit TABLE --family all` by the number of rows.

    python benchmarks/posterior_rows.py [FOLDER] [--rows 50000,100000] [--words 40,400]
    python benchmarks/posterior_rows.py --words 40 --models crossed --errors student

Every table is simulated (`--words` protected words in four classes, each with every attribute),
written as CSV, and fitted end to end by the command line with its default draws. The time is on the
clock and of all processors; memory is the peak of the process. Memory that is linear in the rows
has the same bytes per row at every size. The last column is the CPU time of WAIC and LOO relative
to the usual way, a matrix of log likelihoods and PSIS of it, for a part of the rows and `baseline`,
in the same process. With FOLDER the figures are written there as JSON.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from evenhand.posterior import Table, compute_criteria, fit, simulate
from evenhand.posterior.tables import CONNECTIONS
from evenhand.statistics.mcmc import MIN_TAIL, smooth_tail, tail_size

CLASSES = 4
GOAL = 60.0
"""Seconds for 100,000 rows."""
ROWS = 2000
"""Rows of which the criteria are also computed in the usual way."""


def build_table(rows: int, words: int) -> Table:
    """Simulate a complete table of about so many rows: a tenth of the attributes stereotypes."""
    attributes = rows // words
    stereotypes = max(1, attributes // 10 // CLASSES)
    human = attributes // 5
    return simulate(
        delta=-0.05,
        words=(words // CLASSES,) * CLASSES,
        stereotypes=(stereotypes,) * CLASSES,
        human=human,
        neutral=attributes - human - CLASSES * stereotypes,
    )


def save_table(table: Table, path: Path) -> None:
    """Write a table as `evenhand lab vectors distances` does."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["protectedWord", "wordToCompare", "wordClass", "cosineDistance", "connection"]
        )
        columns = (table.word, table.attribute, table.distance, table.connection)
        for i, j, distance, connection in zip(*(c.tolist() for c in columns), strict=True):
            label = table.attribute_class[j]
            distance = min(max(distance, 0.0), 2.0)
            writer.writerow(
                [table.words[i], table.attributes[j], label, distance, CONNECTIONS[connection]]
            )


def measure(path: Path, options: list[str]) -> dict[str, float]:
    """Run the command; return seconds on the clock and of the processors, and peak memory in MB."""
    command = [sys.executable, "-m", "evenhand", "lab", "posterior", "fit", str(path)]
    start = time.perf_counter()
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.DEVNULL, stderr=sys.stderr
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the command failed with exit code {process.returncode}")
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }


def measure_criteria(table: Table) -> float:
    """CPU time of WAIC and LOO of `baseline`, relative to the usual way."""
    part = table.select(np.arange(0, table.rows, max(1, table.rows // ROWS)))
    result = fit(part, "baseline")
    result.diagnostics()
    start = time.process_time()
    ours = compute_criteria(result)
    middle = time.process_time()
    mean = result.draws["m"].reshape(result.size, -1).T[part.word]
    scale = result.draws["sigma"].ravel()
    log_likelihood = norm.logpdf(part.distance[:, None], mean, scale)
    lppd = logsumexp(log_likelihood, axis=1) - np.log(result.size)
    weights, _ = psis(-log_likelihood, result.relative_efficiency())
    loo = -2 * logsumexp(weights + log_likelihood, axis=1).sum()
    waic = -2 * (lppd - log_likelihood.var(axis=1)).sum()
    end = time.process_time()
    if not np.allclose([ours.waic, ours.loo], [waic, loo]):
        raise SystemExit(f"criteria {ours.waic}, {ours.loo}; in the usual way {waic}, {loo}")
    return (middle - start) / (end - middle)


def psis(log_ratios: NDArray[Any], efficiency: float = 1.0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smooth importance ratios by Pareto-smoothed importance sampling.

    Parameters
    ----------
    log_ratios : array of shape (rows, draws)
    efficiency : float, default 1.0
        Effective draws per draw.

    Returns
    -------
    log_weights : array of shape (rows, draws)
        Smoothed and normalised.
    pareto_k : array of shape (rows,)
    """
    rows, draws = log_ratios.shape
    x = log_ratios - log_ratios.max(axis=1, keepdims=True)
    tail = tail_size(draws, efficiency)
    if tail < MIN_TAIL:
        return x - logsumexp(x, axis=1, keepdims=True), np.full(rows, np.inf)
    positions = np.argpartition(x, draws - tail - 1, axis=1)[:, draws - tail - 1 :]
    largest = np.take_along_axis(x, positions, axis=1)
    order = np.argsort(largest, axis=1)
    positions = np.take_along_axis(positions, order, axis=1)
    top, k = smooth_tail(np.take_along_axis(largest, order, axis=1))
    np.put_along_axis(x, positions[:, 1:], top, axis=1)
    return x - logsumexp(x, axis=1, keepdims=True), k


def main(rows: list[int], words: list[int], models: str, errors: str, folder: Path | None) -> None:
    """Print one line per table."""
    print(f"posterior fit --family {models} --errors {errors}")
    print(f"goal: {GOAL:.0f} s for 100,000 rows on two cores")
    names = f"{'words':>6}{'rows':>9}{'s':>9}{'CPU s':>9}{'peak MB':>9}{'bytes/row':>11}"
    print(f"{names}{'criteria':>10}")
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        for count in words:
            for size in rows:
                path = Path(place) / f"{count}-{size}.csv"
                table = build_table(size, count)
                save_table(table, path)
                figure = {
                    "words": count,
                    "rows": table.rows,
                    **measure(path, ["--family", models, "--errors", errors]),
                    "criteria_ratio": measure_criteria(table),
                }
                figures.append(figure)
                per_row = figure["peak_mb"] * 2**20 / table.rows
                print(
                    f"{count:>6}{table.rows:>9,}{figure['seconds']:>9.1f}"
                    f"{figure['cpu_seconds']:>9.1f}{figure['peak_mb']:>9.0f}{per_row:>11,.0f}"
                    f"{figure['criteria_ratio']:>10.2f}",
                    flush=True,
                )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "posterior_rows.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", default="50000,100000")
    parser.add_argument("--words", default="40,400")
    parser.add_argument("--models", default="all")
    parser.add_argument("--errors", default="normal", choices=["normal", "student"])
    given = parser.parse_args()
    main(
        [int(n) for n in given.rows.split(",")],
        [int(n) for n in given.words.split(",")],
        given.models,
        given.errors,
        given.folder,
    )
