"""Every network against counting words, on class splits: the table of docs/experiments/fewshot.md.

    python benchmarks/fewshot_table.py DATA [--splits-from FOLDER] [--splits 5] [--shots 1 5]
        [--encoder mini] [--episodes 10000/600/600] [--network NAME …] [--workers 2] [--out FOLDER]
        [--rows FILE.csv.gz]

DATA is what `evenhand lab fewshot run --data` takes, or CLINC150's data_full.json (its out-of-scope
sentences are left out). --splits-from is a folder with the published class splits, or `drawn`. Each
network is an `evenhand lab fewshot run`, in a folder of its own under --out: repeated, the command
resumes where it stopped. Accuracy with its interval for new classes and, beside it, the
usual one over episodes alone.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from evenhand.fewshot import read
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import run
from evenhand.fewshot.settings import EpisodeCounts, RunSettings, TrainingSettings
from evenhand.fewshot.splits import load_splits, read_splits
from evenhand.files import document, save_json
from evenhand.results import Measurement

HEAD = (
    "| data | shots | network | accuracy | new classes | episodes alone | less counting words | p |"
)


def load(path: str, name: str) -> Dataset:
    """The labelled sentences of a file."""
    if not Path(path).name.startswith("data_full.json"):
        return read(path, name=name)
    content = Path(path).read_bytes()
    parts = json.loads(gzip.decompress(content) if path.endswith(".gz") else content)
    rows = [row for part in ("train", "val", "test") for row in parts[part]]
    return Dataset.of(*zip(*rows, strict=True), name=name)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One network: its results as a row."""
    dataset = load(job["data"], job["name"])
    if job["at_least"]:
        dataset = dataset.at_least(job["at_least"])
    given = job["splits_from"]
    splits = None
    if given not in (None, "drawn"):
        splits = read_splits(given) if Path(given).is_dir() else load_splits(given)
    settings = RunSettings(
        training=TrainingSettings(network=job["network"], seed=job["seed"]),
        ways=job["ways"],
        shots=job["shots"],
        queries=job["queries"],
        splits=job["splits"],
        episodes=EpisodeCounts.parse(job["episodes"]),
    )
    folder = Path(job["out"]) / f"{job['name']}-{job['shots']}-shot-{job['network']}"
    cache = Path(job["out"]) / "cache"
    finished = run(
        dataset,
        settings,
        folder,
        encoder=job["encoder"],
        splits=splits,
        cache=cache,
        permutations=100,
    )
    results = finished.results
    above = results.above_baseline
    return {
        "data": job["name"],
        "shots": job["shots"],
        "network": job["network"],
        "encoder": Path(job["encoder"]).name,
        "ways": job["ways"],
        "queries": job["queries"],
        "classes": len(dataset.classes),
        "texts": len(dataset),
        "baseline": score(results.baseline),
        "accuracy": score(results.accuracy),
        "f1": score(results.accuracy.part("f1", by="score")),
        "above_baseline": {**above.change.to_dict(), "p_value": above.p_value},
        "variance": [
            {"source": part.query, **part.estimate.to_dict()}
            for part in results.accuracy.select("component")
        ],
        "by_class": [
            {"class": part.query, "queries": part.details["queries"], **score(part)}
            for part in results.accuracy.select("class")
        ],
    }


def score(measured: Measurement) -> dict[str, Any]:
    """Value and both intervals."""
    return {**measured.estimate.to_dict(), **measured.details}


def cells(row: dict[str, Any], which: str = "accuracy") -> str:
    """Value and both intervals in per cent."""
    entry = row[which]
    return (
        f"{entry['value']:.1%} | [{entry['low']:.1%}, {entry['high']:.1%}] | "
        f"[{entry['naive_low']:.1%}, {entry['naive_high']:.1%}]"
    )


def print_table(rows: list[dict[str, Any]]) -> None:
    """A table in Markdown, the baseline before its networks."""
    print(HEAD, "|---" * 8 + "|", sep="\n")
    for name, shots in dict.fromkeys((row["data"], row["shots"]) for row in rows):
        here = [row for row in rows if (row["data"], row["shots"]) == (name, shots)]
        print(f"| {name} | {shots} | counting words | {cells(here[0], 'baseline')} | | |")
        for row in here:
            gap = row["above_baseline"]
            text = f"{100 * gap['value']:+.1f} [{100 * gap['low']:+.1f}, {100 * gap['high']:+.1f}]"
            print(
                f"| {name} | {shots} | {row['network']} | {cells(row)} | {text} | "
                f"{gap['p_value']:.2g} |"
            )


def save_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """One row per data set and network, counting words too, and one per test class of each."""
    ends = ("value", "low", "high", "naive_low", "naive_high")
    lines: list[dict[str, Any]] = []
    for row in rows:
        about = {key: row[key] for key in ("data", "encoder", "ways", "shots", "queries")}
        baseline = {**about, "encoder": "", "network": "counting words", "class": ""}
        whole = {**about, "network": row["network"], "class": ""}
        tested = {key: row["accuracy"][key] for key in ("classes", "episodes", "splits")}
        baseline |= tested | {key: row["baseline"][key] for key in ends}
        if baseline not in lines:
            lines.append(baseline)
        above = {f"above_{key}": row["above_baseline"][key] for key in ("value", "low", "high")}
        whole |= tested | {key: row["accuracy"][key] for key in ends} | above
        lines.append(whole | {"p_value": row["above_baseline"]["p_value"]})
        lines.extend(
            {
                **about,
                "network": row["network"],
                "class": part["class"],
                "tested": part["queries"],
                **{key: part[key] for key in ends[:3]},
            }
            for part in row["by_class"]
        )
    text = io.StringIO()
    names = dict.fromkeys(key for line in lines for key in line)
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: shorten(value) for key, value in line.items()} for line in lines)
    path.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))


def shorten(value: Any) -> Any:
    """Numbers to six digits."""
    return f"{value:.6g}" if isinstance(value, float) else value


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
    parser.add_argument("--encoder", default="mini")
    parser.add_argument("--at-least", type=int)
    parser.add_argument("--network", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", type=Path, metavar="FILE.csv.gz")
    parser.add_argument("--out", default=tempfile.gettempdir() + "/fewshot-table")
    arguments = parser.parse_args()
    jobs = [
        {
            **vars(arguments),
            "data": data,
            "shots": shots,
            "network": network,
            "name": Path(data).parent.name
            if Path(data).name.startswith(("full.", "data_full."))
            else Path(data).name,
            "splits_from": arguments.splits_from[number] if arguments.splits_from else None,
        }
        for number, data in enumerate(arguments.data)
        for shots in arguments.shots
        for network in arguments.network
    ]
    rows = []
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for row in pool.map(work, jobs):
            rows.append(row)
            print(row["data"], row["shots"], row["network"], cells(row), flush=True)
            save_json(Path(arguments.out) / "table.json", document(rows=rows))
    print_table(rows)
    if arguments.rows:
        save_rows(arguments.rows, rows)


if __name__ == "__main__":
    main()
