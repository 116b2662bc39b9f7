"""Golden numbers: every measuring command gives the values, intervals and p that were recorded.

The numbers in `numbers/` were recorded by `record.py` from version 0.1 and do not move. A change of
the JSON's shape is a change of `extract.py` alone.

Two sets of tolerances are stated below. PORTABLE holds on any machine. STRICT is for the machine
and the library versions on which the numbers were recorded, where arithmetic that was moved but not
changed gives the same digits: `EVENHAND_GOLDEN=strict pytest tests/golden`.
"""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import dataclass

import pytest
from cases import CASES, SHARED, Case, measure
from record import STORED, read_numbers


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the recorded one.

    The sum of `absolute`, of `relative` times the recorded number, and of `width` times the
    width of the recorded interval. p is compared by `p`, absolutely, plus `relative`.
    """

    absolute: float
    relative: float
    p: float
    width: float = 0.0


PORTABLE = {
    # NumPy in double precision: another CPU changes the last digits. A permutation that ties with
    # the observed value may fall on the other side, hence p.
    "arithmetic": Tolerance(absolute=1e-8, relative=1e-6, p=5e-4),
    # A decomposition, k-means and classifiers over 50,000 float32 vectors: single words change
    # sides, which moves a share of 1,000 words by 0.001.
    "debias": Tolerance(absolute=3e-3, relative=1e-3, p=5e-3),
    # A masked model in single precision: probabilities agree to about 1e-5.
    "model": Tolerance(absolute=2e-4, relative=2e-4, p=2e-3),
    # A search over the model's candidates: a near tie may be decided otherwise and another sentence
    # be generated, which changes one of a handful.
    "search": Tolerance(absolute=1e-3, relative=1e-3, p=0.01, width=0.2),
    # Draws of Markov chains diverge after the first difference in the last digit: what agrees is
    # the distribution. 400 draws leave a Monte Carlo error of some hundredths of the interval in
    # the mean, of about a tenth in its ends and of .025 in a probability near one half, .035 in the
    # difference of two of them.
    "posterior": Tolerance(absolute=2e-3, relative=2e-3, p=0.12, width=0.2),
    # Training in single precision amplifies rounding: single answers change. The intervals of
    # so small runs are wide, and a quarter of their width is still a useful bound.
    "training": Tolerance(absolute=0.03, relative=0.05, p=0.15, width=0.25),
}

STRICT = {
    # Numbers are stored with eight significant digits.
    "arithmetic": Tolerance(absolute=1e-12, relative=1e-7, p=1e-12),
    "debias": Tolerance(absolute=1e-9, relative=2e-6, p=1e-9),
    # Other batches may change the last digits of single precision.
    "model": Tolerance(absolute=5e-6, relative=5e-6, p=1e-6),
    "search": Tolerance(absolute=5e-6, relative=5e-6, p=1e-6),
    "posterior": Tolerance(absolute=1e-9, relative=2e-6, p=1e-9),
    "training": Tolerance(absolute=1e-5, relative=1e-5, p=1e-5),
}

TOLERANCES = STRICT if os.environ.get("EVENHAND_GOLDEN") == "strict" else PORTABLE


def allowed(tolerance: Tolerance, field: str, expected: dict[str, float]) -> float:
    """The largest difference allowed in one field of the recorded numbers."""
    relative = tolerance.relative * abs(expected[field])
    if field == "p":
        return relative + tolerance.p
    width = expected["high"] - expected["low"] if {"low", "high"} <= expected.keys() else 0.0
    return relative + tolerance.absolute + tolerance.width * width


def differences(tolerance: Tolerance, expected: dict, actual: dict) -> list[str]:
    """One line for each name or number that does not agree."""
    lines = [f"missing: {name}" for name in sorted(expected.keys() - actual.keys())]
    lines += [f"not recorded: {name}" for name in sorted(actual.keys() - expected.keys())]
    for name in sorted(expected.keys() & actual.keys()):
        before, after = expected[name], actual[name]
        if before.keys() != after.keys():
            lines.append(f"{name}: expected {', '.join(before)}, got {', '.join(after)}")
            continue
        for field, number in before.items():
            if isinstance(number, str) or isinstance(after[field], str):
                agrees = number == after[field]
            else:
                agrees = math.isclose(
                    number, after[field], rel_tol=0, abs_tol=allowed(tolerance, field, before)
                )
            if not agrees:
                lines.append(f"{name}, {field}: expected {number}, got {after[field]}")
    return lines


LONG = {
    "fewshot/odds",
    "fewshot/paired",
    "masked/finetuning",
    "masked/generation",
    "masked/phrases two models",
    "masked/pronouns",
    "posterior/fit student",
    "posterior/plan",
    "shared/posterior/compare",
    "shared/posterior/religion",
    "vectors/debias/hard",
}
"""Cases of several seconds whose instrument also has a shorter one: they run as slow tests."""

PARAMETERS = [
    pytest.param(
        case, id=case.name, marks=[pytest.mark.slow] if case.slow or case.name in LONG else []
    )
    for case in CASES
]


@pytest.mark.parametrize("case", PARAMETERS)
def test_numbers_are_those_recorded(case: Case, tmp_path, monkeypatch):
    if case.shared and not SHARED.is_dir():
        pytest.skip("needs ../shared/data, the real data that is not part of the project")
    if case.needs and importlib.util.find_spec(case.needs) is None:
        pytest.skip(f"needs {case.needs}, which an extra installs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    expected = read_numbers(case.stored)[case.name]
    lines = differences(TOLERANCES[case.tolerance], expected, measure(case, tmp_path))
    assert not lines, f"{len(lines)} differences in {case.name}:\n" + "\n".join(lines[:40])


def test_every_recorded_case_is_measured():
    recorded = {name for path in STORED.glob("*.json") for name in read_numbers(path.stem)}
    assert recorded == {case.name for case in CASES}


@pytest.mark.parametrize("tolerances", [PORTABLE, STRICT])
def test_a_wrong_number_is_noticed(tolerances):
    expected = {"weat": {"value": 1.25, "low": 1.0, "high": 1.5, "p": 0.01}, "mac": {"value": 0.5}}
    for tolerance in tolerances.values():
        assert differences(tolerance, expected, expected) == []
        moved = expected | {"weat": {"value": 1.5, "low": 1.0, "high": 1.5, "p": 0.3}}
        assert [line.split(":")[0] for line in differences(tolerance, expected, moved)] == [
            "weat, value",
            "weat, p",
        ]
        fewer = {"weat": {"value": 1.25, "low": 1.0, "high": 1.5}, "ect": {"value": 0.5}}
        assert differences(tolerance, expected, fewer) == [
            "missing: mac",
            "not recorded: ect",
            "weat: expected value, low, high, p, got value, low, high",
        ]
