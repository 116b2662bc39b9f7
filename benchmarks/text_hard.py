"""The share of the hard cases of rewriting that comes out right, by class.

    python benchmarks/text_hard.py [--wrong]

`--wrong` also lists the failures of the development file; those of the held-out file are not read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "text"))

from hard_cases import read_cases, share_by_class


def main(wrong: bool) -> None:
    """Print the table."""
    development, held = (share_by_class(read_cases(name)) for name in ("hard.txt", "hard_held.txt"))
    print(f"{'class':18}{'development':>14}{'held out':>14}")
    for group, counts in development.items():
        cells = "".join(f"{f'{right}/{total}':>14}" for right, total in (counts, held[group]))
        print(f"{group:18}{cells}")
    for name, shares in (("development", development), ("held out", held)):
        right, total = (sum(column) for column in zip(*shares.values(), strict=True))
        print(f"{name}: {right}/{total} = {right / total:.1%}")
    for case in read_cases("hard.txt") if wrong else ():
        if (text := case.rewritten()) != case.target:
            print(f"{case.group} {case.command}\n  {case.source}\n  {case.target}\n  {text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wrong", action="store_true", help="list the failures")
    main(parser.parse_args().wrong)
