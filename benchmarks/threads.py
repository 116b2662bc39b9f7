"""Processor time of torch with a busy neighbour: one thread, the libraries' default, and ours.

    python benchmarks/threads.py [FOLDER] [--neighbours 1] [--rounds 3] [--steps 400]

The same products of small matrices, as a step of training has them, run in a new process each
time: with one thread, with as many threads as cores that spin while they wait (the libraries'
default, the way of version 0.1), with as many that sleep, and as `evenhand.threads.configure`
chooses. Meanwhile other processes keep some cores busy. The ways take turns. Shown are seconds of
the processor and on the clock, and the processor time relative to one thread; the goal is 1.3 at
most. With FOLDER the figures are written there as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from evenhand.threads import COUNT, SLEEP, available_cores

GOAL = 1.3
BUSY = "while True: pass"
WORK = """
import sys, time
if sys.argv[1] == "ours":
    from evenhand.threads import configure
    configure()
import torch
torch.manual_seed(0)
tokens, width = torch.randn(512, 256), torch.randn(256, 1024) / 16
back = torch.randn(1024, 256) / 32
begin, start = time.perf_counter(), time.process_time()
for _ in range(int(sys.argv[2])):
    tokens = torch.layer_norm(torch.nn.functional.gelu(tokens @ width) @ back + tokens, (256,))
print(torch.get_num_threads(), time.process_time() - start, time.perf_counter() - begin)
"""


def measure(way: str, steps: int) -> tuple[int, float, float]:
    """Threads, processor seconds and seconds on the clock of one way."""
    plain = {n: v for n, v in os.environ.items() if n not in (*SLEEP, COUNT)}
    cores = str(available_cores())
    settings = {
        "one thread": {COUNT: "1"},
        "default": {COUNT: cores},
        "sleeping": {COUNT: cores, **SLEEP},
        "ours": {},
    }
    done = subprocess.run(
        [sys.executable, "-c", WORK, way, str(steps)],
        env={**plain, **settings[way]},
        capture_output=True,
        text=True,
        check=True,
    )
    threads, cpu, seconds = done.stdout.split()
    return int(threads), float(cpu), float(seconds)


def main(folder: Path | None, neighbours: int, rounds: int, steps: int) -> None:
    """Print one line per way."""
    ways = ("one thread", "default", "sleeping", "ours")
    best: dict[str, tuple[int, float, float]] = {}
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(neighbours)]
    try:
        time.sleep(0.5)
        for _ in range(rounds):
            for way in ways:
                figures = measure(way, steps)
                if way not in best or figures[1] < best[way][1]:
                    best[way] = figures
    finally:
        for process in busy:
            process.kill()
    print(f"{available_cores()} cores, {neighbours} busy neighbours; goal: {GOAL} × one thread")
    print(f"{'':<12}{'threads':>9}{'CPU s':>9}{'s':>9}{'× one thread':>14}")
    rows = []
    for way, (threads, cpu, seconds) in best.items():
        ratio = cpu / best["one thread"][1]
        rows.append(
            {
                "way": way,
                "threads": threads,
                "cpu_seconds": cpu,
                "seconds": seconds,
                "ratio": ratio,
            }
        )
        print(f"{way:<12}{threads:>9}{cpu:>9.2f}{seconds:>9.2f}{ratio:>14.2f}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        document = {"cores": available_cores(), "neighbours": neighbours, "rows": rows}
        (folder / "threads.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    main(given.folder, given.neighbours, given.rounds, given.steps)
