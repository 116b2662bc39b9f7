"""Effective samples per CPU-second: exact draws against NUTS, same model, same table, same run.

    python benchmarks/posterior.py [TABLE.csv] [--models baseline,coefficients,separate,crossed]

The effective sample is that of the worst of all quantities, the smaller of bulk and tail. The gap
is the largest difference of a mean from the exact draws, in Monte Carlo errors. NUTS has
four chains of 1,000 draws after 1,000 steps of warm-up; NumPyro's is timed compiled, with its own
settings and, for the models of Dobrzeniecka (2021), also with a dense mass matrix. PyMC runs only
if installed. The default table is simulated, of the size of the religion table of Dobrzeniecka
(2021).
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.posterior import Priors, Table, fit, read_table, simulate
from evenhand.posterior.nuts import build_numpyro_model
from evenhand.posterior.thesis import THESIS, build_design
from evenhand.statistics.mcmc import diagnose

Draws = dict[str, np.ndarray[Any, Any]]


def main(table: Table, models: list[str]) -> None:
    """Print one table."""
    print(f"{table.source}: {table.rows:,} rows; ESS: the worst quantity, bulk or tail")
    print(f"{'model':14}{'engine':24}{'CPU s':>9}{'ESS':>8}{'ESS/s':>12}{'exact is':>12}{'gap':>8}")
    for model in models:
        engines: dict[str, Callable[[], Draws]] = {"exact": lambda m=model: exact(table, m)}  # type: ignore[misc]
        if importlib.util.find_spec("numpyro"):
            engines["NumPyro NUTS"] = numpyro(table, model, dense=False)
            if model in THESIS:
                engines["NumPyro NUTS, dense"] = numpyro(table, model, dense=True)
        if importlib.util.find_spec("pymc") and model in THESIS:
            engines["PyMC NUTS"] = lambda m=model: pymc(table, m)  # type: ignore[misc]
        reference, first = 0.0, None
        for name, engine in engines.items():
            draws, seconds = timed(engine, repeats=5 if name == "exact" else 1)
            size = worst(draws)
            rate = size / seconds
            reference = reference or rate
            ratio = gap = ""
            if first is None:
                first = draws
            else:
                ratio, gap = f"{reference / rate:,.0f} ×", f"{largest_gap(first, draws):.1f}"
            row = f"{model:14}{name:24}{seconds:>9.3f}{size:>8.0f}{rate:>12,.0f}{ratio:>12}{gap:>8}"
            print(row, flush=True)


def timed(engine: Callable[[], Draws], repeats: int) -> tuple[Draws, float]:
    """Return the draws of the last run and the shortest CPU time, after a warm-up run."""
    engine()
    shortest = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        draws = engine()
        shortest = min(shortest, time.process_time() - start)
    return draws, shortest


def worst(draws: Draws) -> float:
    """The smallest effective sample of all quantities."""
    return min(
        float(np.minimum(*diagnose(x.reshape(*x.shape[:2], -1))[1:]).min()) for x in draws.values()
    )


def largest_gap(first: Draws, second: Draws) -> float:
    """The largest difference of the means of a quantity, in Monte Carlo errors."""
    largest = 0.0
    for name in {*first} & {*second}:
        errors = []
        for draws in (first[name], second[name]):
            size = diagnose(draws.reshape(*draws.shape[:2], -1))[1].reshape(draws.shape[2:])
            errors.append(draws.std(axis=(0, 1), ddof=1) / np.sqrt(size))
        difference = first[name].mean(axis=(0, 1)) - second[name].mean(axis=(0, 1))
        largest = max(largest, float(np.max(np.abs(difference) / np.hypot(*errors))))
    return largest


def exact(table: Table, model: str) -> Draws:
    """Evenhand's exact samplers."""
    return dict(fit(table, model).draws)


def numpyro(table: Table, model: str, *, dense: bool) -> Callable[[], Draws]:
    """NumPyro's NUTS, compiled once."""
    import jax
    from numpyro.infer import MCMC, NUTS

    kernel = NUTS(build_numpyro_model(model, table, Priors()), dense_mass=dense)
    sampler = MCMC(
        kernel,
        num_warmup=1000,
        num_samples=1000,
        num_chains=4,
        chain_method="sequential",
        progress_bar=False,
    )

    def run() -> Draws:
        sampler.run(jax.random.PRNGKey(0))
        samples = sampler.get_samples(group_by_chain=True)
        return {name: np.asarray(x, dtype=float) for name, x in samples.items()}

    return run


def pymc(table: Table, model: str) -> Draws:
    """PyMC's NUTS on the same priors."""
    import pymc as pm

    design = build_design(model, table)
    with pm.Model():
        total: Any = 0.0
        for name, entries, index in zip(design.names, design.entries, design.index, strict=True):
            total = total + pm.Normal(name, float(name != "co"), 0.5, shape=len(entries))[index]
        sigma = pm.HalfCauchy("sigma", 1.0)
        pm.Normal("y", total, sigma, observed=table.distance)
        trace = pm.sample(1000, tune=1000, chains=4, cores=1, random_seed=0, progressbar=False)
    return {name: np.asarray(x) for name, x in trace.posterior.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?")
    parser.add_argument("--models", default="baseline,coefficients,separate,crossed")
    arguments = parser.parse_args()
    table = read_table(arguments.table) if arguments.table else simulate(neutral=242)
    main(table, arguments.models.split(","))
