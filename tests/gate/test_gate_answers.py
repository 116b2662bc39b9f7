"""Gates on results of `evenhand answers measure`: met, not met, inconclusive, changes, a plan."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from evenhand.answers.examples import example_answers
from evenhand.cli import run
from evenhand.gate import check

QUERY = "length, gender: man - woman"


def write(path, extra=0, samples=3):
    """Twelve items; of women the answers are so many words longer, give or take one."""
    rows = [
        {
            "item": f"job {item}",
            "gender": gender,
            "text": " ".join(["word"] * (20 + (extra + item % 3 - 1) * (gender == "woman"))),
        }
        for item in range(12)
        for gender in ("man", "woman")
        for _ in range(samples)
    ]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


@pytest.fixture
def results(tmp_path, capsys):
    """Measure answers of that many extra words; the file of the results."""

    def measured(extra):
        table = write(tmp_path / f"answers-{extra}.csv", extra)
        file = tmp_path / f"results-{extra}.json"
        arguments = ["--group", "gender", "--metric", "difference", "--score", "length"]
        assert run(["answers", "measure", str(table), *arguments, "-o", str(file)]) == 0
        capsys.readouterr()
        return str(file)

    return measured


def policy(path, **limits):
    lines = ["[[rules]]", 'metric = "difference"', f'query = "{QUERY}"']
    lines += [f"{name} = {value}" for name, value in limits.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_a_limit_is_met_not_met_or_inconclusive(results, tmp_path, capsys):
    file = policy(tmp_path / "policy.toml", min=-2, max=2)
    expected = {0: ("met", 0), 2: ("inconclusive", 3), 6: ("not met", 3)}
    for extra, (state, code) in expected.items():
        assert run(["gate", file, results(extra), "--json"]) == code
        gate = json.loads(capsys.readouterr().out)["gate"]
        assert gate["state"] == state
        [row] = gate["rules"]
        assert (row["metric"], row["query"]) == ("difference", QUERY)


def test_a_change_is_paired_over_items(results, tmp_path, capsys):
    file = policy(tmp_path / "policy.toml", max_worsening=1)
    before = results(1)
    assert run(["gate", file, results(0), "--baseline", before, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["gate"]["rules"]
    assert row["n"] == 12
    assert run(["gate", file, results(6), "--baseline", before, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["gate"]["state"] == "not met"


def test_a_first_policy_is_met_by_its_own_results_and_can_be_planned(results, tmp_path, capsys):
    file = results(3)
    assert run(["gate", "--init", file]) == 0
    drafted = tmp_path / "policy.toml"
    drafted.write_text(capsys.readouterr().out, encoding="utf-8")
    assert QUERY in drafted.read_text(encoding="utf-8")
    assert run(["gate", str(drafted), file]) == 0
    capsys.readouterr()
    assert run(["gate", str(drafted), file, "--plan", "--json"]) == 0
    [rule] = json.loads(capsys.readouterr().out)["plan"]["rules"]
    assert rule["standard_error"] > 0


def test_results_in_memory_and_the_fixture(evenhand_gate):
    from evenhand.answers import Refusals

    [m] = Refusals().measure(example_answers())
    assert check({"metric": "refusals", "min": -0.9, "max": 0.9}, m).state == "met"
    assert evenhand_gate(m, min=-0.9, max=0.9).met
    with pytest.raises(pytest.fail.Exception, match="the interval is above the limit"):
        evenhand_gate(m, min=-0.9, max=-0.6)
