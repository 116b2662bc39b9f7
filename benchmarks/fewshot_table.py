"""Every network against counting words, on several class splits: the table of docs/fewshot.md.

    python benchmarks/fewshot_table.py DATA [--splits-from FOLDER] [--splits 5] [--shots 1 5]
        [--episodes 10000/600/600] [--network NAME …] [--workers 2] [--out FOLDER]

Each network is a whole `evenhand fewshot run`, in a folder of its own under --out: repeated, the
command goes on where it stopped. Accuracy with its interval for new classes and, beside it, the
usual one over episodes alone.
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

from evenhand.fewshot import read
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import EpisodeCounts, RunSettings, run, summary
from evenhand.fewshot.splits import load_splits, read_splits
from evenhand.fewshot.training import Settings
from evenhand.results import document, save_json

HEAD = (
    "| data | shots | network | accuracy | new classes | episodes alone | less counting words | p |"
)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One network: its summary as a row."""
    dataset = read(job["data"], name=job["name"])
    if job["at_least"]:
        dataset = dataset.at_least(job["at_least"])
    given = job["splits_from"]
    splits = None
    if given is not None:
        splits = read_splits(given) if Path(given).is_dir() else load_splits(given)
    settings = RunSettings(
        training=Settings(network=job["network"], seed=job["seed"]), ways=job["ways"],
        shots=job["shots"], queries=job["queries"], splits=job["splits"],
        episodes=EpisodeCounts.parse(job["episodes"]),
    )  # fmt: skip
    folder = Path(job["out"]) / f"{job['name']}-{job['shots']}-shot-{job['network']}"
    found = summary(
        run(dataset, settings, folder, splits=splits, cache=Path(job["out"]) / "cache"), tosses=100
    )
    return {
        "data": job["name"], "shots": job["shots"], "network": job["network"],
        "floor": found.floor["accuracy"].as_dict(), "accuracy": found.scores["accuracy"].as_dict(),
        "f1": found.scores["f1"].as_dict(), "beyond": found.beyond_floor["accuracy"].as_dict(),
        "variance": [each.as_dict() for each in found.variance],
    }  # fmt: skip


def cells(row: dict[str, Any], which: str = "accuracy") -> str:
    """Value and both intervals in per cent."""
    one = row[which]
    return (
        f"{one['value']:.1%} | [{one['low']:.1%}, {one['high']:.1%}] | "
        f"[{one['naive_low']:.1%}, {one['naive_high']:.1%}]"
    )


def printed(rows: list[dict[str, Any]]) -> None:
    """A table in Markdown, the floor before its networks."""
    print(HEAD, "|---" * 8 + "|", sep="\n")
    for name, shots in dict.fromkeys((row["data"], row["shots"]) for row in rows):
        here = [row for row in rows if (row["data"], row["shots"]) == (name, shots)]
        print(f"| {name} | {shots} | counting words | {cells(here[0], 'floor')} | | |")
        for row in here:
            gap = row["beyond"]
            told = f"{100 * gap['value']:+.1f} [{100 * gap['low']:+.1f}, {100 * gap['high']:+.1f}]"
            print(f"| {name} | {shots} | {row['network']} | {cells(row)} | {told} | "
                  f"{gap['p_value']:.2g} |")  # fmt: skip


def main() -> None:
    """Run all networks and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--splits-from", nargs="*", help="as many as data, in their order")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--shots", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--ways", type=int, default=5)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--episodes", default="10000/600/600")
    parser.add_argument("--at-least", type=int)
    parser.add_argument("--network", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", default=tempfile.gettempdir() + "/fewshot-table")
    asked = parser.parse_args()
    jobs = [
        {**vars(asked), "data": data, "shots": shots, "network": network,
         "name": Path(data).parent.name if Path(data).stem == "full" else Path(data).name,
         "splits_from": asked.splits_from[place] if asked.splits_from else None}
        for place, data in enumerate(asked.data)
        for shots in asked.shots
        for network in asked.network
    ]  # fmt: skip
    rows = []
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(work, jobs):
            rows.append(row)
            print(row["data"], row["shots"], row["network"], cells(row), flush=True)
            save_json(Path(asked.out) / "table.json", document(rows=rows))
    printed(rows)


if __name__ == "__main__":
    main()
