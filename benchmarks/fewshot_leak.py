"""Measured bias against the bias that is there: every network and mitigation, simulated texts.

    python benchmarks/fewshot_leak.py [--worlds 40] [--fewer 10] [--workers 2] [--out FILE]

A world is a set of simulated biographies with a leak, the share of texts that tell of the gender
recorded. At leak 0 no bias is there: intervals should hold 0 in 95 % of the worlds. The dial is
then turned up, on `--fewer` worlds, and at leak 1 each mitigation is tried on the same worlds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from evenhand.fewshot import read
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import EpisodeCounts, RunSettings, bias_of, changes, run
from evenhand.fewshot.training import Settings
from evenhand.results import document, save_json

MEASURES = ("association", "epsilon", "skew", "stereotype")
MITIGATIONS = ("none", "augment", "neutralize", "calibrate", "augment+calibrate")


def work(job: dict[str, Any]) -> list[dict[str, Any]]:
    """One world: every network with the mitigations asked for."""
    dataset = read(f"simulated:leak={job['leak']},seed={job['world']}")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for network in NAMES:
            before = None
            for mitigation in job["mitigations"]:
                settings = RunSettings(
                    training=Settings(network=network, seed=job["world"], validate_every=100),
                    ways=job["ways"], shots=4, queries=5, mitigation=mitigation,
                    episodes=EpisodeCounts.parse(job["episodes"]), split_seed=job["world"],
                )  # fmt: skip
                folder = Path(place) / f"{network}-{mitigation}"
                found = bias_of(run(dataset, settings, folder, cache=Path(place) / "cache"))
                moved = None if before is None else changes(before, [found])[0][1]
                before = before or found
                rows.append(
                    {
                        "leak": job["leak"], "world": job["world"], "network": network,
                        "mitigation": mitigation, "accuracy": found.bias.accuracy.value,
                        **{name: found.bias[name].as_dict() for name in MEASURES},
                        "change": None if moved is None else moved.as_dict(),
                    }
                )  # fmt: skip
    return rows


def holds_zero(one: dict[str, Any]) -> bool:
    """Whether the interval has no bias in it."""
    return bool(one["signed_low"] <= 0 <= one["signed_high"])


def printed(rows: list[dict[str, Any]]) -> None:
    """Rates of false alarms at leak 0, the dial, and what each mitigation leaves."""

    def chosen(**asked: Any) -> list[dict[str, Any]]:
        return [row for row in rows if all(row[name] == value for name, value in asked.items())]

    print("leak 0: worlds whose interval holds 0 | whose p of chance is below .05")
    for network in NAMES:
        here = chosen(leak=0.0, mitigation="none", network=network)
        told = [
            f"{name} {np.mean([holds_zero(row[name]) for row in here]):.0%} | "
            f"{np.mean([row[name]['null_p'] < 0.05 for row in here]):.0%}"
            for name in MEASURES
        ]
        print(f"  {network:20}", "   ".join(told), f"  ({len(here)} worlds)")
    for name in ("association", "epsilon"):
        leaks = sorted({row["leak"] for row in rows})
        print(f"{name}, mean over worlds ± standard error, by leak:", *leaks)
        for network in NAMES:
            told = []
            for leak in leaks:
                values = [row[name]["signed"] for row in
                          chosen(leak=leak, mitigation="none", network=network)]  # fmt: skip
                told.append(f"{np.mean(values):+.3f} ± {np.std(values) / len(values) ** 0.5:.3f}")
            print(f"  {network:20}", "   ".join(told))
    print("leak 1: association (accuracy) with each mitigation, and in how many worlds it is less")
    worlds = {row["world"] for row in rows if row["mitigation"] != "none"}
    for network in NAMES:
        told = []
        for mitigation in MITIGATIONS:
            here = [row for row in chosen(leak=1.0, mitigation=mitigation, network=network)
                    if row["world"] in worlds]  # fmt: skip
            if not here:
                continue
            mean = np.mean([row["association"]["signed"] for row in here])
            right = np.mean([row["accuracy"] for row in here])
            less = ""
            if mitigation != "none":
                fell = [row["change"]["association"]["change"] < 0 for row in here]
                less = f" {sum(fell)}/{len(fell)}"
            told.append(f"{mitigation} {mean:+.3f} ({right:.1%}){less}")
        print(f"  {network:20}", "   ".join(told))


def main() -> None:
    """Run all worlds and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=40, help="worlds without a leak")
    parser.add_argument("--fewer", type=int, default=10, help="worlds of each other kind")
    parser.add_argument("--leaks", type=float, nargs="+", default=[0.25, 0.5, 0.75, 1.0])
    parser.add_argument("--ways", type=int, default=4)
    parser.add_argument("--episodes", default="400/100/200")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out")
    asked = parser.parse_args()
    jobs = [
        {"leak": leak, "world": world, "ways": asked.ways, "episodes": asked.episodes,
         "mitigations": MITIGATIONS if leak == 1.0 else ("none",)}
        for leak in (*sorted(asked.leaks, reverse=True), 0.0)
        for world in range(asked.fewer if leak else asked.worlds)
    ]  # fmt: skip
    rows = []
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(pool.map(work, jobs), 1):
            rows += found
            print(f"{done} of {len(jobs)} worlds", flush=True)
            if asked.out:
                save_json(asked.out, document(rows=rows))
    printed(rows)


if __name__ == "__main__":
    main()
