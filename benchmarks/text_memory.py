"""Memory and rate of a rewriting on a file larger than what may be held.

    python benchmarks/text_memory.py [--gigabytes 1] [--workers 2] [--command swap]

Writes a text of that size into a temporary folder, rewrites it by the command line and watches the
memory of the process and its children together.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAIN = "The bridge was opened in the spring, after two winters of work on the far bank. "
LINE = "{}: " + PLAIN * 3 + "The doctor said that she had seen his brother there.\n"
RUN = "import sys; from evenhand.cli import run; sys.exit(run(sys.argv[1:]))"


def family(pid: int) -> list[int]:
    """A process and all that came from it."""
    result = [pid]
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in tasks.read_text().split():
            result += family(int(child))
    return result


def resident(pid: int) -> int:
    """Bytes of memory a process holds itself; what it shares with others counted once, by share."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--command", default="swap")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "in.txt"), Path(folder, "out.txt")
        size = 0
        with source.open("w") as file:
            number = 0
            while size < options.gigabytes * 1e9:
                text = "".join(LINE.format(number + k) for k in range(10_000))
                size += file.write(text)
                number += 10_000
        start = time.perf_counter()
        command = ["text", options.command, str(source), "-o", str(out)]
        run = subprocess.Popen(
            [sys.executable, "-c", RUN, *command, f"--workers={options.workers}"]
        )
        peak = 0
        while run.poll() is None:
            try:
                peak = max(peak, sum(resident(pid) for pid in family(run.pid)))
            except (FileNotFoundError, ProcessLookupError):
                continue
            time.sleep(0.2)
        seconds = time.perf_counter() - start
        print(
            f"{options.command}, {size / 1e9:.2f} GB, {options.workers} workers: "
            f"{size / 1e6 / seconds:.1f} MB/s, at most {peak / 1e6:.0f} MB of memory"
        )


if __name__ == "__main__":
    main()
