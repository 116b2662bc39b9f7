from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import FileError
from evenhand.instruments import compare
from evenhand.report.findings import Findings, read_findings
from evenhand.report.saved import StageResult, read_stages, stage_rows
from evenhand.report.tables import write_tables
from evenhand.results import Measurement, to_json


def test_stages_survive_the_way_to_json_and_back(findings: Findings) -> None:
    again = read_stages(json.loads(to_json(stage_rows(findings.stages))))
    for before, after in zip(findings.stages, again, strict=True):
        assert before.measurements == after.measurements
        assert before.mitigations == after.mitigations
        if before.distances is not None:
            assert after.distances is not None
            assert np.array_equal(before.distances.distance, after.distances.distance)


def test_numbers_that_are_not_finite_come_back_as_nan_and_unbounded() -> None:
    m = Measurement(
        metric="weat", query="q", value=math.nan, low=-math.inf, high=1.0, n=1, ideal=0.0,
        worse="away", interval="", p_value=None,
    )  # fmt: skip
    stage = StageResult(name="s", kind="k", title="t", measurements=(m,))
    (after,) = read_stages(json.loads(to_json(stage_rows([stage]))))
    (found,) = after.measurements
    assert math.isnan(found.value)
    assert found.low == -math.inf
    assert found.p_value is None


def test_saved_items_of_which_a_value_is_not_known_can_be_compared() -> None:
    m = Measurement(
        metric="weat", query="q", value=1.0, low=0.0, high=2.0, n=3, ideal=0.0, worse="away",
        interval="", items=tuple({"word": w, "without": x} for w, x in
                                 (("a", 0.9), ("b", 1.2), ("c", math.nan))),
    )  # fmt: skip
    stage = StageResult(name="s", kind="k", title="t", measurements=(m,))
    (after,) = read_stages(json.loads(to_json(stage_rows([stage]))))
    (found,) = after.measurements
    assert math.isnan(found.items[2]["without"])
    assert compare(found, found).paired == 2


def test_tables_have_a_row_for_everything(tmp_path: Path, findings: Findings) -> None:
    (tmp_path / "tables").mkdir()
    names = {path.name: path for path in write_tables(tmp_path, findings.stages)}
    assert set(names) == {
        "measurements.csv", "items.csv", "comparisons.csv", "utility.csv",
        "distances-simulated.csv",
    }  # fmt: skip
    rows = {name: len(path.read_text().splitlines()) - 1 for name, path in names.items()}
    measured = [m for stage in findings.stages for m in stage.measurements]
    accounts = [account for stage in findings.stages for account in stage.mitigations]
    assert rows["measurements.csv"] == len(measured)
    assert rows["items.csv"] == sum(len(m.items) for m in measured)
    assert rows["comparisons.csv"] == sum(len(a.measures) + len(a.hiding) for a in accounts)
    header = names["distances-simulated.csv"].read_text().splitlines()[0]
    assert header == (
        "protectedWord,wordToCompare,wordClass,cosineDistance,cosineSimilarity,connection"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1"),
        ("[]", "expected a document with the schema evenhand/2, got list"),
        ('{"schema": "other/2"}', "got other/2"),
        ('{"schema": "evenhand/2"}', "expected the results of an audit, got none for 'subjects'"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "results.json").write_text(text)
    (tmp_path / "run.json").write_text('{"schema": "evenhand/2"}')
    with pytest.raises(FileError, match=r"results\.json") as error:
        read_findings(tmp_path)
    assert words in str(error.value)


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file: expected what `evenhand audit`"):
        read_findings(tmp_path)
