"""What works without the extra `models`: torch, transformers and tokenizers cannot be imported."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evenhand import errors

ROOT = Path(__file__).resolve().parents[1]

SCRIPT = """
import importlib.abc, io, json, sys, contextlib

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import importlib.util
real = importlib.util.find_spec
def find_spec(name, package=None):
    absent = name.partition(".")[0] in ("torch", "transformers", "tokenizers")
    return None if absent else real(name, package)
importlib.util.find_spec = find_spec

from evenhand.cli import run
results = []
for words, given in json.loads(sys.argv[1]):
    sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    out.flush()
    results.append((code, out.buffer.getvalue().decode(), err.getvalue()))
print(json.dumps(results))
"""


def without_models(folder, *commands):
    given = json.dumps([(words, text) for words, text in commands])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, given],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_text_vectors_and_posteriors_work(tmp_path):
    distances = ["lab", "vectors", "distances", "glove", "--topic", "gender", "-o", "distances.csv"]
    fit = [
        "lab",
        "posterior",
        "fit",
        "distances.csv",
        "--family",
        "baseline",
        "--draws",
        "160",
        "--json",
    ]
    results = without_models(
        tmp_path,
        (["rewrite", "swap", "-"], "Her neighbour waved to her.\n"),
        (["measure", "glove", "--topic", "gender", "--metric", "weat", "--json"], ""),
        (distances, ""),
        (fit, ""),
        (["list", "metrics", "--json"], ""),
        (["doctor", "--json"], ""),
    )
    assert [code for code, _, _ in results] == [0] * len(results), results
    assert results[0][1] == "His neighbour waved to him.\n"
    assert json.loads(results[1][1])["measurements"][0]["metric"] == "weat"


NEEDING = (
    ["ask", "The clerk lost [MASK] keys."],
    ["measure", "pronouns", "mini", "--data", "-"],
    ["measure", "mini"],
    ["lab", "fewshot", "run", "--out", "run"],
    ["audit", "--out", "page"],
    ["list", "networks"],
)


def test_what_needs_a_model_says_which_extra_to_install(tmp_path):
    sentence = "The clerk lost [MASK] keys.\n"
    results = without_models(tmp_path, *((words, sentence) for words in NEEDING))
    for words, (code, out, err) in zip(NEEDING, results, strict=True):
        assert (code, out) == (2, ""), words
        assert err.count("\n") == 1, err
        assert err.startswith("error: ")
        assert "needs the package torch: pip install 'evenhand[models]'" in err
    assert not list(tmp_path.iterdir())


def test_python_raises_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr(errors, "MODELS", ("no_such_package",))
    with pytest.raises(errors.MissingExtraError, match=r"evenhand\[models\]"):
        errors.require_models()


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_base_does_without_the_packages_of_models():
    named = {re.match(r"[\w-]+", text)[0] for text in project()["dependencies"]}
    assert not named & set(errors.MODELS)
    extra = {re.match(r"[\w-]+", text)[0] for text in project()["optional-dependencies"]["models"]}
    assert extra == set(errors.MODELS)


def test_the_oldest_versions_are_the_bounds_of_the_project():
    groups = project()["optional-dependencies"]
    needed = [*project()["dependencies"]]
    needed += [
        text for name, each in groups.items() if name not in ("dev", "docs") for text in each
    ]
    bounds = dict(re.match(r"([\w-]+)>=([\d.]+)", text).groups() for text in needed if ">=" in text)
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    assert dict(line.split("==") for line in lines if not line.startswith("#")) == bounds


def test_every_direct_dependency_is_pinned():
    pinned = {
        line.partition("==")[0]
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    }
    groups = project()["optional-dependencies"]
    needed = [*project()["dependencies"], *groups["models"], *groups["docs"], *groups["dev"]]
    names = {re.match(r"[\w-]+", text)[0] for text in needed} - {"evenhand"}
    assert names <= pinned, names - pinned
