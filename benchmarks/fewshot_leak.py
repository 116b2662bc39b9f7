"""Measured bias against the true bias: every network and mitigation, simulated texts.

    python benchmarks/fewshot_leak.py [--worlds 40] [--fewer 10] [--workers 2] [--out FILE]

A world is a set of simulated biographies with a leak, the share of texts that state the recorded
gender. At leak 0 there is no bias: intervals should contain 0 in 95 % of the worlds. The leak is
then raised, on `--fewer` worlds, and at leak 1 each mitigation is tried on the same worlds.
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
from evenhand.fewshot.runs import run
from evenhand.fewshot.settings import EpisodeCounts, RunSettings, TrainingSettings
from evenhand.files import document, save_json
from evenhand.instruments import compare

MEASURES = ("association", "epsilon", "skew", "stereotype")
MITIGATIONS = ("none", "augment", "neutralize", "calibrate", "augment+calibrate")


def work(job: dict[str, Any]) -> list[dict[str, Any]]:
    """One world: every network with the mitigations of the job."""
    dataset = read(f"simulated:leak={job['leak']},seed={job['world']}", leaning="share")
    rows = []
    with tempfile.TemporaryDirectory() as root:
        for network in NAMES:
            before = None
            for mitigation in job["mitigations"]:
                settings = RunSettings(
                    training=TrainingSettings(
                        network=network, seed=job["world"], validate_every=100
                    ),
                    ways=job["ways"],
                    shots=4,
                    queries=5,
                    mitigation=mitigation,
                    mitigate="all",
                    episodes=EpisodeCounts.parse(job["episodes"]),
                    split_seed=job["world"],
                )
                folder = Path(root) / f"{network}-{mitigation}"
                results = run(dataset, settings, folder, cache=Path(root) / "cache").results
                change = None if before is None else compare(before, results.bias).change.value
                before = before or results.bias
                rows.append(
                    {
                        "leak": job["leak"],
                        "world": job["world"],
                        "network": network,
                        "mitigation": mitigation,
                        "accuracy": results.accuracy.value,
                        **{
                            part.query: {**part.estimate.to_dict(), **part.details}
                            for part in results.bias.select("measure")
                        },
                        "change": change,
                    }
                )
    return rows


def contains_zero(measure: dict[str, Any]) -> bool:
    """Whether the interval contains no bias."""
    return bool(measure["low"] <= 0 <= measure["high"])


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Rates of false alarms at leak 0, bias by leak, and what each mitigation leaves."""

    def chosen(**arguments: Any) -> list[dict[str, Any]]:
        return [row for row in rows if all(row[name] == value for name, value in arguments.items())]

    print("leak 0: worlds whose interval contains 0 | whose p of chance is below .05")
    for network in NAMES:
        here = chosen(leak=0.0, mitigation="none", network=network)
        texts = [
            f"{name} {np.mean([contains_zero(row[name]) for row in here]):.0%} | "
            f"{np.mean([row[name]['null_p'] < 0.05 for row in here]):.0%}"
            for name in MEASURES
        ]
        print(f"  {network:20}", "   ".join(texts), f"  ({len(here)} worlds)")
    for name in ("association", "epsilon"):
        leaks = sorted({row["leak"] for row in rows})
        print(f"{name}, mean over worlds ± standard error, by leak:", *leaks)
        for network in NAMES:
            texts = []
            for leak in leaks:
                values = [
                    row[name]["value"]
                    for row in chosen(leak=leak, mitigation="none", network=network)
                ]
                texts.append(f"{np.mean(values):+.3f} ± {np.std(values) / len(values) ** 0.5:.3f}")
            print(f"  {network:20}", "   ".join(texts))
    print("leak 1: association (accuracy) with each mitigation, and in how many worlds it is less")
    worlds = {row["world"] for row in rows if row["mitigation"] != "none"}
    for network in NAMES:
        texts = []
        for mitigation in MITIGATIONS:
            here = [
                row
                for row in chosen(leak=1.0, mitigation=mitigation, network=network)
                if row["world"] in worlds
            ]
            if not here:
                continue
            mean = np.mean([row["association"]["value"] for row in here])
            right = np.mean([row["accuracy"] for row in here])
            less = ""
            if mitigation != "none":
                fell = [row["change"] < 0 for row in here]
                less = f" {sum(fell)}/{len(fell)}"
            texts.append(f"{mitigation} {mean:+.3f} ({right:.1%}){less}")
        print(f"  {network:20}", "   ".join(texts))


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
    arguments = parser.parse_args()
    jobs = [
        {
            "leak": leak,
            "world": world,
            "ways": arguments.ways,
            "episodes": arguments.episodes,
            "mitigations": MITIGATIONS if leak == 1.0 else ("none",),
        }
        for leak in (*sorted(arguments.leaks, reverse=True), 0.0)
        for world in range(arguments.fewer if leak else arguments.worlds)
    ]
    rows = []
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for done, found in enumerate(pool.map(work, jobs), 1):
            rows += found
            print(f"{done} of {len(jobs)} worlds", flush=True)
            if arguments.out:
                save_json(arguments.out, document(rows=rows))
    print_tables(rows)


if __name__ == "__main__":
    main()
