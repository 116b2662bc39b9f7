"""Bars of work in steps: what a user sees while a long command runs."""

from __future__ import annotations

import io
import re
import sys
import time

from evenhand.cli import bars


def test_bars_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "110")
    with bars.step_bars({"encoding": "tokens"}) as told:
        for number in range(4):
            told("encoding", 20 * number, 100, f"{number} of 9 texts")
            time.sleep(0.01)
    assert re.search(r"[\d,]+ tokens/s, 0:\d\d left, 3 of 9 texts", sys.stderr.getvalue())
    with bars.step_bars() as told:
        told("rewriting", 0, 1, "")
        told("training", 10, 10, "12 episodes/s, 0:00 left")
    shown = re.sub(r"\x1b\[[\d;?]*\w", "", sys.stderr.getvalue())
    assert "10/10 12 episodes/s, 0:00 left" in shown
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with bars.step_bars() as told:
        assert told is None
