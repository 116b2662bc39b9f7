"""Record the golden numbers: `python tests/golden/record.py [CASE…]`.

Without names all cases are recorded. Numbers are recorded once, from code that is known to be
right; a case that exists is recorded again only with a reason that the commit message states.
"""

from __future__ import annotations

import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"  # as in the tests
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cases import CASES, measure
from extract import Numbers

STORED = Path(__file__).with_name("numbers")
DIGITS = 8


def read_numbers(file: str) -> dict[str, dict[str, Numbers]]:
    """The stored numbers of a file: `{case: {logical name: numbers}}`."""
    path = STORED / f"{file}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _rounded(values: Numbers) -> Numbers:
    return {
        key: number if isinstance(number, str | int) else float(f"{number:.{DIGITS}g}")
        for key, number in values.items()
    }


def write_numbers(file: str, numbers: Mapping[str, Mapping[str, Numbers]]) -> None:
    """Write one line per logical name, so that a change is one line of a diff."""
    blocks = []
    for case, rows in sorted(numbers.items()):
        lines = ",\n".join(
            f"  {json.dumps(name, ensure_ascii=False)}: {json.dumps(_rounded(values))}"
            for name, values in sorted(rows.items())
        )
        blocks.append(f" {json.dumps(case)}: {{\n{lines}\n }}")
    path = STORED / f"{file}.json"
    path.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def main(names: list[str]) -> None:
    """Record the named cases, or all."""
    unknown = set(names) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"error: no case is called {', '.join(sorted(unknown))}")
    for case in CASES:
        if names and case.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_CACHE_HOME"] = f"{folder}/user-cache"
            start = time.perf_counter()
            rows = measure(case, Path(folder))
            seconds = time.perf_counter() - start
        write_numbers(case.stored, read_numbers(case.stored) | {case.name: rows})
        sys.stderr.write(f"{case.name}: {len(rows)} numbers, {seconds:.1f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])
