"""The study of several models: what is measured, saved and compared."""

import csv
import gzip
import sys
from pathlib import Path

import pytest

from evenhand.files import document, save_json
from evenhand.results import Measurement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import model_study  # noqa: E402


def result(metric, value, **more):
    fields = {"n": 9, "ideal": 0.0, "worse": "away", "interval": "made up"}
    return Measurement(
        metric=metric, query="q", value=value, low=value - 1, high=value + 1, **fields, **more
    )


def test_models_are_named_with_source_and_family():
    assert model_study.parse_model("a=mini") == ("a", "mini", "a")
    assert model_study.parse_model("a=./x@mini") == ("a", "./x", "mini")
    with pytest.raises(SystemExit, match="expected NAME=SOURCE"):
        model_study.parse_model("mini")


def test_measures_that_rank_models_alike_agree(tmp_path, capsys, monkeypatch):
    checked = {"control": "negate", "items": 4, "before": 0.1, "outcome": "survives"}
    for i in range(6):
        for metric, value in (("stereoset", i), ("crows", 2 * i), ("gest", -i), ("disco", 0)):
            content = {"model": f"m{i}", "family": f"f{i // 2}", "kind": "causal"}
            content["measurements"] = [result(metric, float(value)).to_dict(items=False)]
            content["controls"] = [checked] if metric == "crows" else []
            save_json(tmp_path / f"m{i}.{metric}.json", document(**content))
    out = tmp_path / "models"
    monkeypatch.setattr(sys, "argv", ["model_study.py", "publish", str(tmp_path), str(out)])
    model_study.main()
    monkeypatch.setattr(sys, "argv", ["model_study.py", "tables", str(out)])
    model_study.main()
    shown = capsys.readouterr().out
    assert "| m3 | .00 [-1.00, 1.00] | -3.00 [-4.00, -2.00] |" in shown
    assert "| m3 | 6.00 [5.00, 7.00] | 3.00 [2.00, 4.00] |" in shown
    assert "| crows, gest | 6 | -1.00 |" in shown
    assert "| crows, stereoset | 6 | 1.00 |" in shown
    assert "| both about many groups | 1 | 1.00 |" in shown
    assert "| one of each | 2 | -1.00 |" in shown  # those with equal values have no rank
    assert "| crows | negate | 6 | 0 | 0 | 0 |" in shown
    with gzip.open(out / "values.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 24
    assert {row["family"] for row in rows} == {"f0", "f1", "f2"}


def test_the_page_has_the_published_numbers(capsys, monkeypatch):
    folder = ROOT / "docs" / "results" / "models"
    monkeypatch.setattr(sys, "argv", ["model_study.py", "tables", str(folder)])
    model_study.main()
    page = (ROOT / "docs" / "results-models.md").read_text(encoding="utf-8").replace("−", "-")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 100
    for line in lines:
        # models have longer names on the page
        assert (line.partition(" | ")[2] if "[" in line else line) in page, line


@pytest.mark.slow
def test_models_are_measured_once(tmp_path, capsys, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    command = ["model_study.py", "measure", str(tmp_path / "out"), "mini=mini"]
    command += ["--data", str(data), "--metric", "disco"]
    monkeypatch.setattr(sys, "argv", command)
    model_study.main()
    assert "mini disco: mini: disco" in capsys.readouterr().out
    model_study.main()
    assert capsys.readouterr().out == ""
    assert [path.name for path in (tmp_path / "out").glob("*.json")] == ["mini.disco.json"]
