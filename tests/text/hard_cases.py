"""The hard cases of rewriting: reading the files, and the share that comes out right by class.

    python tests/text/hard_cases.py [--wrong]

prints the table of both files; `--wrong` lists the failures of the development file only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evenhand.text import neutralize, swap

DATA = Path(__file__).parent / "data"
CHANGE = re.compile(r"\{([^|{}]*)\|([^|{}]*)\}")
COMMANDS: dict[str, Callable[[str], str]] = {
    "swap": lambda text: swap(text).text,
    "neutralize": lambda text: neutralize(text).text,
    "neutralize-all": lambda text: neutralize(text, nouns="all").text,
}


@dataclass(frozen=True)
class Case:
    """A sentence, the command it is given to, and what should come out."""

    group: str
    command: str
    source: str
    target: str

    def rewritten(self) -> str:
        """What the command makes of the sentence."""
        return COMMANDS[self.command](self.source)


def read_cases(name: str) -> list[Case]:
    """The cases of a file: headings `## class command`, sentences with `{before|after}`."""
    cases = []
    group = command = ""
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            group, command = line[3:].split()
        elif line and not line.startswith("#"):
            cases.append(Case(group, command, CHANGE.sub(r"\1", line), CHANGE.sub(r"\2", line)))
    return cases


def share_by_class(cases: list[Case]) -> dict[str, tuple[int, int]]:
    """For each class the cases that come out right and all cases."""
    shares: dict[str, tuple[int, int]] = {}
    for case in cases:
        right, total = shares.get(case.group, (0, 0))
        shares[case.group] = (right + (case.rewritten() == case.target), total + 1)
    return shares


def main() -> None:
    """Print the table, and with --wrong the failures of the development file."""
    development, held = (
        share_by_class(read_cases(name)) for name in ("hard.txt", "hard_held.txt")
    )
    print(f"{'class':18}{'development':>14}{'held out':>14}")
    for group, counts in development.items():
        cells = "".join(f"{f'{right}/{total}':>14}" for right, total in (counts, held[group]))
        print(f"{group:18}{cells}")
    for name, shares in (("development", development), ("held out", held)):
        right, total = (sum(column) for column in zip(*shares.values(), strict=True))
        print(f"{name}: {right}/{total} = {right / total:.1%}")
    if "--wrong" in sys.argv:
        for case in read_cases("hard.txt"):
            if (text := case.rewritten()) != case.target:
                print(f"{case.group} {case.command}\n  {case.source}\n  {case.target}\n  {text}")


if __name__ == "__main__":
    main()
