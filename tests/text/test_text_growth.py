"""Time is linear in the length of a line, whatever the line holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from text_growth import OPERATIONS, PATTERNS, TAILS, line_of, seconds

CHARACTERS, PROSE = 6_000, 40_000
"""The shorter line, of a short pattern and of one that is a sentence."""
TOLERANCE = 1.8
"""Four times the text may take this much more than four times as long; quadratic time takes 16."""
SHORTEST = 0.004
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
            short, long = (line_of(pattern, tail, n) for n in (size, 4 * size))
            # one run says that time is linear; that it is not takes the least of seven
            for repeats in (1, 3, 7):
                base = max(seconds(work, short, repeats), SHORTEST)
                ratio = seconds(work, long, repeats) / base
                if ratio <= 4 * TOLERANCE:
                    break
            else:
                slow.append(f"{label} + {tail!r}: {ratio:.1f} times as long")
    assert slow == []
