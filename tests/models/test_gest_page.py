"""The page of published GEST scores: its tables and counts come out of the published scores."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import evenhand as eh
import gest as script

PAGE = Path(__file__).parents[2] / "docs" / "experiments" / "gest.md"
NUMBER = re.compile(r"-?\d*\.\d+")


@pytest.fixture(scope="module")
def folder(shared):
    path = shared / "data" / "gest"
    if not (path / "scores").is_dir():
        pytest.skip("needs ../shared/data/gest")
    return path


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_the_tables_of_five_masked_models_come_out(folder, page, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gest.py", str(folder), "-o", str(tmp_path)])
    script.main()
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    known = {}
    for line in page.splitlines():
        known.setdefault(NUMBER.sub("#", line), []).append(line)
    assert len(printed) > 50
    for line in printed:
        numbers = [float(number) for number in NUMBER.findall(line)]
        candidates = known.get(NUMBER.sub("#", line), [])
        assert any(
            [float(number) for number in NUMBER.findall(row)] == pytest.approx(numbers, abs=0.0011)
            for row in candidates
        ), line


@pytest.fixture(scope="module")
def table(folder, page):
    """What the example of the page makes of the published scores: the table and its analysis."""
    (code,) = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    assert '"gest/' in code
    names: dict[str, object] = {}
    exec(code.replace("gest/", f"{folder}/"), names)  # noqa: S102 - the page's own example
    return names["table"], names["found"]


@pytest.mark.slow
def test_29_models_have_the_gaps_of_the_page(table, page):
    found = table[1]
    rows = re.findall(r"^\| (\S+) \| (\S+) \[(\S+), (\S+)\] \| \[(\S+), (\S+)\] \|$", page, re.M)
    assert [row[0] for row in rows] == [m.query for m in found.ranking]
    measured = {m.query: m for m in found.measurements}
    assert len(rows) == len(measured) == 29
    for name, *numbers in rows:
        m = measured[name]
        (these,) = m.select("scope")
        values = (m.value, m.low, m.high, these.low, these.high)
        assert [float(number) for number in numbers] == pytest.approx(values, abs=0.006)


def differ(found):
    outcomes = [c.details["outcome"] for c in found.comparisons]
    return outcomes.count("differs"), len(outcomes)


@pytest.mark.slow
def test_the_counts_of_the_page_come_out(table, folder, page):
    """Pairs that differ for other templates and for these, and τ between templates."""
    text = " ".join(page.split())
    rows, found = table
    design = {"cluster": ["stereotype", "template"], "gap": True, "best": "lowest"}
    assert differ(found) == (0, 226)
    assert all(m.details["could_be_first"] for m in found.ranking)
    fixed = eh.scores.analyze(rows, **design, fixed=True)
    assert "{} of {} pairs differ;".format(*differ(fixed)) in text
    assert differ(fixed) == (65, 226)
    between = {m.query: m for m in found.agreement}
    causal = between["glm 0, glm 1"]
    assert (causal.value, causal.low, causal.high) == pytest.approx((0.77, 0.54, 0.89), abs=0.006)
    masked = [m.value for m in found.agreement if m.query.startswith("mlm")]
    assert len(masked) == 6
    assert (min(masked), max(masked)) == pytest.approx((0.56, 0.89), abs=0.006)
    for kind, pairs, apart in (("mlm", 36, 35), ("glm", 190, 180)):
        scores = eh.scores.read(folder / "scores" / f"english_{kind}")
        other = eh.scores.analyze(scores)
        assert differ(other) == (0, pairs)
        assert differ(eh.scores.analyze(scores, fixed=True)) == (apart, pairs)
        assert f"{apart} of {pairs} pairs" in text
        taus = [(m.value, m.low, m.high) for m in other.agreement]
        if kind == "glm":
            assert taus[0] == pytest.approx((0.13, -0.25, 0.47), abs=0.006)
        else:
            assert min(taus)[0] == pytest.approx(0.33, abs=0.006)
            assert max(taus)[0] == pytest.approx(0.89, abs=0.006)
            assert sum(low <= 0 <= high for _, low, high in taus) == 5
