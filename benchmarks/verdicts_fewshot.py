"""How often few-shot classifiers are called biased, by the audit's own sizes and rules.

    python benchmarks/verdicts_fewshot.py [--quick 60] [--full 16] [--fewer 8] [--keep FOLDER]

A world is a set of simulated biographies read by `mini`. At leak 0 no text tells the gender that is
recorded: "none found" is the right verdict, and should come in 95 % of the worlds or more. At leak
1 every text tells it. `--fewer` is the number of worlds at leak 1 of either size. What is found is
kept in a folder if asked for, and taken up again from there. The verdict needs no mitigation, so
none is tried.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from scipy.stats import binomtest

from evenhand.audit.fewshot import FULL, QUICK, Size, fewshot_stages
from evenhand.audit.stages import Options, Silent, run_stage
from evenhand.fewshot import read
from evenhand.report.findings import Findings
from evenhand.report.verdicts import Verdict, judge_subject


def verdict(leak: float, seed: int, size: Size, keep: Path) -> Verdict:
    """That on one world; the features of its texts are not kept."""
    place = keep / f"{len(size.episodes)}-networks-leak-{leak:g}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    data = read(f"simulated:leak={leak},seed={seed}")
    with tempfile.TemporaryDirectory() as work:
        options = Options(seed=seed, work=Path(work))
        stages = fewshot_stages("mini", data, options, size=replace(size, mitigations=("none",)))
        done = tuple(run_stage(stage, place, stage.key({}), Silent())[0] for stage in stages)
    findings = Findings(subjects={}, settings={}, topics=(), stages=done, run={})
    (found,) = judge_subject(findings, "classifier")
    return found


def main() -> None:
    """A line for each size and leak, with the exact interval of the share of "none found"."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", type=int, default=60, help="quick worlds at leak 0")
    parser.add_argument("--full", type=int, default=16, help="full worlds at leak 0")
    parser.add_argument("--fewer", type=int, default=8, help="worlds at leak 1 of either size")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, size, clean in (("quick", QUICK, asked.quick), ("full", FULL, asked.full)):
            for leak, worlds in ((0.0, clean), (1.0, asked.fewer)):
                if not worlds:
                    continue
                levels = Counter(
                    verdict(leak, seed, size, asked.keep or Path(folder)).level
                    for seed in range(worlds)
                )
                none = levels["none found"]
                low, high = binomtest(none, worlds).proportion_ci(method="exact")
                result = ", ".join(f"{level} {count}" for level, count in levels.most_common())
                print(
                    f"{name:6} leak {leak:g}  {result}   none found in {none / worlds:.0%} "
                    f"[{low:.0%}, {high:.0%}] of {worlds} worlds",
                    flush=True,
                )


if __name__ == "__main__":
    main()
