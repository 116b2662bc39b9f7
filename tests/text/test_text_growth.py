"""Time is linear in the length of a line, whatever the line holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from text_growth import OPERATIONS, PATTERNS, TAILS, line_of, seconds

CHARACTERS = 12_000
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
            short = seconds(work, line_of(pattern, tail, CHARACTERS))
            long = seconds(work, line_of(pattern, tail, 4 * CHARACTERS))
            if long / max(short, SHORTEST) > 4 * TOLERANCE:
                # a busy machine may have stretched the longer one
                again = seconds(work, line_of(pattern, tail, 4 * CHARACTERS))
                ratio = min(long, again) / max(short, SHORTEST)
                if ratio > 4 * TOLERANCE:
                    slow.append(f"{label} + {tail!r}: {ratio:.1f} times as long")
    assert slow == []
