"""The hard cases of rewriting: reading the files, and the share that comes out right by class."""

from __future__ import annotations

import re
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
