"""The pytest plugin, in a pytest of its own, and the GitHub action's script."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml
from gate_worlds import estimate, mean_of

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "evenhand.gate.plugin"
MEASURED = """
from evenhand.results import Measurement, load

def measured(value=0.2, **more):
    given = {"ideal": 0.0, "worse": "higher", **more}
    return Measurement(metric="demo", query="q", value=value, low=value - 0.1, high=value + 0.1,
                       n=50, interval="t", **given)
"""


@pytest.fixture
def run_tests(pytester):
    installed = any(entry.value == PLUGIN for entry in entry_points(group="pytest11"))
    load = [] if installed else ["-p", PLUGIN]

    def run(text, *arguments):
        pytester.makepyfile(MEASURED + text)
        common = ["-p", "no:cacheprovider", "-p", "no:xdist", "-q"]
        return pytester.runpytest_subprocess(*load, *common, *arguments)

    return run


def test_rules_and_policies(run_tests, pytester):
    pytester.makefile(
        ".toml",
        policy='[[rules]]\nmetric = "demo"\nmax = 0.05\n'
        '[[rules]]\nmetric = "weat"\nmin = -1.0\nmax = 1.0\n',
    )
    mean_of([1.0, 2.0, 4.0]).save(pytester.path / "old.json")
    mean_of([2.0, 3.0, 5.5]).save(pytester.path / "new.json")
    result = run_tests(
        """
def test_passes(evenhand_gate):
    assert evenhand_gate(measured(), max=0.35).met
    assert evenhand_gate(measured(-0.1)).met  # the policy of the configuration
    assert evenhand_gate("old.json", max_worsening=0.0, baseline="old.json").met

def test_fails_by_a_rule(evenhand_gate):
    evenhand_gate(measured(), max=0.05)

def test_fails_by_the_policy(evenhand_gate):
    evenhand_gate(measured())

def test_is_worse_than_the_baseline(evenhand_gate):
    evenhand_gate("new.json", max_worsening=0.0, baseline="old.json")

def test_has_a_wrong_key(evenhand_gate):
    evenhand_gate(measured(), maxx=0.05)

def test_has_no_rule(evenhand_gate):
    evenhand_gate(measured(), {"metric": "weat", "min": -1.0, "max": 1.0})
""",
        "-o",
        "evenhand_policy=policy.toml",
    )
    result.assert_outcomes(passed=1, failed=5)
    shown = result.stdout.str()
    assert shown.count("the interval is above the limit") >= 2
    assert "gate not met: 1 not met" in shown
    assert "evenhand_gate: no rule is about demo" in shown
    assert "maxx" in shown


def test_what_is_inconclusive_fails_or_warns_as_the_policy_says(run_tests):
    result = run_tests(
        """
def test_fails_by_default(evenhand_gate):
    evenhand_gate(measured(), max=0.25)

def test_warns(evenhand_gate):
    result = evenhand_gate(measured(), max=0.25, fails_if="clearly outside")
    assert result.state == "inconclusive"
    evenhand_gate(measured(), max=0.05, fails_if="clearly outside")  # and goes on

def test_only_warns(evenhand_gate):
    assert not evenhand_gate(measured(), max=0.25, fails_if="clearly outside").met
"""
    )
    result.assert_outcomes(passed=1, failed=2, warnings=2)
    shown = result.stdout.str()
    assert "gate inconclusive, which fails by this policy: 1 inconclusive" in shown
    assert "gate inconclusive, which does not fail by this policy: 1 inconclusive" in shown
    assert "gate not met: 1 not met" in shown


def test_wrong_limits_fail_the_test(run_tests):
    result = run_tests(
        """
import math
import pytest

@pytest.mark.parametrize("rule", [
    {"max": math.nan}, {"max": True}, {"max": 1, "prob": 2}, {"min": 1, "max": 0}, {"prob": 0.9},
])
def test_rule(evenhand_gate, rule):
    evenhand_gate(measured(), **rule)

def test_two_sided(evenhand_gate):
    evenhand_gate(measured(-0.7, worse="away"), max=0.5)

def test_nothing(evenhand_gate):
    evenhand_gate([], max=0.5)
"""
    )
    result.assert_outcomes(failed=7)
    shown = result.stdout.str()
    for message in (
        "max: expected a number, got nan",
        "max: expected a number, got True",
        "prob: expected a number between 0 and 1, got 2",
        "expected min of max or less, got 1 and 0",
        "expected a limit",
        "write min = -0.5 and max = 0.5",
        "expected results, got none",
    ):
        assert message in shown
    assert "Traceback" not in shown


def test_it_measures_and_asserts(run_tests, pytester):
    pytester.makefile(".toml", policy='[[rules]]\nmetric = "association"\nmin = -0.02\n')
    result = run_tests(
        """
import evenhand as eh

def test_glove(evenhand_gate):
    evenhand_gate.measure(eh.vectors.load("glove"), "gender", "association")
""",
        "--evenhand-policy",
        "policy.toml",
    )
    result.assert_outcomes(failed=1)
    assert "the interval is below the limit" in result.stdout.str()


def test_without_a_policy_it_says_what_is_missing(run_tests):
    result = run_tests("def test_it(evenhand_gate):\n    evenhand_gate(measured())\n")
    result.assert_outcomes(failed=1)
    assert "expected a policy (--evenhand-policy FILE" in result.stdout.str()


def test_the_plugin_is_declared_and_imports_nothing_heavy():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"evenhand": PLUGIN}
    heavy = {"numpy", "pandas", "torch", "pydantic", "evenhand.results"}
    code = f"import sys, {PLUGIN}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def action():
    return yaml.safe_load((ROOT / "action.yml").read_text())


def test_the_action_names_its_inputs_once_and_interpolates_nothing(action):
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # inputs come by the environment, not as code
    assert {"state", "met"} == set(action["outputs"])
    used = str(action["runs"])
    assert all(f"inputs.{name}" in used for name in action["inputs"])


@pytest.mark.parametrize(
    ("limit", "code", "state"),
    [
        ("max = 0.5", 0, "met"),
        ("max = 0.05", 3, "not met"),
        ("max = 0.25", 3, "inconclusive"),
        ('max = 0.25\nfails_if = "clearly outside"', 0, "inconclusive"),
        ("max = nan", 2, ""),
    ],
)
def test_the_script_of_the_action(action, tmp_path, limit, code, state):
    estimate(0.2, 0.1, 0.3).save(tmp_path / "my results.json")
    rule = f'title = "Gate: not met"\n[[rules]]\nmetric = "demo"\n{limit}\n'
    (tmp_path / "policy.toml").write_text(rule)
    shim = tmp_path / "bin" / "evenhand"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evenhand "$@"\n')
    shim.chmod(0o755)
    files = {"GITHUB_STEP_SUMMARY": tmp_path / "summary.md", "GITHUB_OUTPUT": tmp_path / "out"}
    given = {
        "POLICY": "policy.toml",
        "RESULTS": "my results.json\n",
        "BASELINE": "",
        "JUNIT": "gate.xml",
        "MARKDOWN": "gate.md",
    }
    environment = {
        **os.environ,
        **given,
        **{name: str(path) for name, path in files.items()},
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
    }
    script = action["runs"]["steps"][-1]["run"]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == code
    met = "true" if state == "met" else "false"
    assert files["GITHUB_OUTPUT"].read_text() == f"state={state}\nmet={met}\n"
    assert (tmp_path / "gate.xml").exists() == (code != 2)
    if state:
        assert f"### Gate: not met: {state}\n" in files["GITHUB_STEP_SUMMARY"].read_text()
