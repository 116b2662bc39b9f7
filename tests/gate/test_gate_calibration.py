"""A short version of benchmarks/calibration_gate.py: whole gates in worlds whose truth is known."""

from __future__ import annotations

import pytest

import calibration_gate

SEVERAL = "5 rules, all at their limits"


@pytest.mark.slow
def test_gates_are_rarely_wrong_and_often_decide():
    """300 worlds notice 12 % where 5 % or less are promised."""
    table = {row["world"]: row for row in calibration_gate.rows(300, seed=1)}
    assert len(table) == 2 * len(calibration_gate.WORLDS)
    for row in table.values():
        assert row["alarms"] <= 0.075 * row["worlds"], row
    assert table[f"{SEVERAL}: wrongly met"]["alarms"] == 0  # all rules have to be met
    for state in ("met", "not met"):
        assert table[f"mean of 40 items: wrongly {state}"]["power_05"] > 0.75
        assert table[f"paired worsening, 25 items: wrongly {state}"]["power_08"] > 0.85
        covered = table[f"6 clusters of 5 items, ICC .5: wrongly {state}"]["coverage"]
        assert covered == pytest.approx(0.95, abs=0.04)
