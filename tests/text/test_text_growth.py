"""Time is linear in the length of a line, whatever the line holds.

The test separates linear from quadratic time, no more: 16 times the text takes 16 or 256 times as
long, and the limit stands in the middle, so that neither a busy machine nor its caches decide.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from text_growth import OPERATIONS, PATTERNS, TAILS, line_of, seconds

CHARACTERS, PROSE = 1_500, 10_000
"""The shorter line, of a short pattern and of one that is a sentence."""
LONGER = 16
"""The longer line holds so many times as much."""
LIMIT = LONGER**1.5
SHORTEST = 0.001
"""Seconds below which a time says nothing about growth."""


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_time_is_linear_in_the_length_of_a_line(operation: str) -> None:
    work = OPERATIONS[operation]
    work("He saw Mary. She runs.")
    slow = []
    for label, pattern in PATTERNS.items():
        for tail in TAILS.values():
            size = PROSE if len(pattern) > 40 else CHARACTERS
            short, long = (line_of(pattern, tail, n) for n in (size, LONGER * size))
            # one run says that time is linear; that it is not takes the least of three
            for repeats in (1, 3):
                base = max(seconds(work, short, 3), SHORTEST)
                ratio = seconds(work, long, repeats) / base
                if ratio <= LIMIT:
                    break
            else:
                slow.append(f"{label} + {tail!r}: {ratio:.0f} times as long")
    assert slow == []
