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
    return Measurement(metric="demo", query="q", value=value, low=value - 0.1, high=value + 0.1,
                       n=50, ideal=0.0, worse="higher", interval="t", **more)
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
        policy='[[rules]]\nmetric = "demo"\nmax = 0.05\n[[rules]]\nmetric = "weat"\nmax = 1.0\n',
    )
    mean_of([1.0, 2.0, 4.0]).save(pytester.path / "old.json")
    mean_of([2.0, 3.0, 5.5]).save(pytester.path / "new.json")
    result = run_tests(
        """
def test_passes(evenhand_gate):
    assert evenhand_gate(measured(), max=0.25).met
    assert evenhand_gate(measured(0.0)).met  # the policy of the configuration
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
    evenhand_gate(measured(), {"metric": "weat", "max": 1.0})
""",
        "-o",
        "evenhand_policy=policy.toml",
    )
    result.assert_outcomes(passed=1, failed=5)
    shown = result.stdout.str()
    assert shown.count("the whole interval is above the limit") >= 3
    assert "gate not met: 1 failed" in shown
    assert "evenhand_gate: no rule is about demo" in shown
    assert "maxx" in shown


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
    assert "the whole interval is below the limit" in result.stdout.str()


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
    used = str(action["runs"])
    assert all(f"inputs.{name}" in used for name in action["inputs"])


@pytest.mark.parametrize(("limit", "code"), [(0.5, 0), (0.05, 3)])
def test_the_script_of_the_action(action, tmp_path, limit, code):
    estimate(0.2, 0.1, 0.3).save(tmp_path / "my results.json")
    (tmp_path / "policy.toml").write_text(f'[[rules]]\nmetric = "demo"\nmax = {limit}\n')
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
    assert files["GITHUB_OUTPUT"].read_text() == f"met={'true' if code == 0 else 'false'}\n"
    assert "Bias gate" in files["GITHUB_STEP_SUMMARY"].read_text()
    assert (tmp_path / "gate.xml").exists()
