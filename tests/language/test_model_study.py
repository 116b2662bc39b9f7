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
    for i in range(6):
        for metric, value in (("stereoset", i), ("crows", 2 * i), ("gest", -i)):
            rows = [result(metric, float(value)).to_dict(items=False)]
            content = {"model": f"m{i}", "family": f"f{i // 2}", "kind": "causal"}
            path = tmp_path / f"m{i}.{metric}.json"
            save_json(path, document(**content, measurements=rows))
    out = tmp_path / "models.csv.gz"
    monkeypatch.setattr(
        sys, "argv", ["model_study.py", "tables", str(tmp_path), "--publish", str(out)]
    )
    model_study.main()
    shown = capsys.readouterr().out
    assert "| crows, gest | 6 | -1.00 |" in shown
    assert "| crows, stereoset | 6 | 1.00 |" in shown
    with gzip.open(out, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert {row["family"] for row in rows} == {"f0", "f1", "f2"}


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
