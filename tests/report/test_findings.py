from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evenhand.audit.main import write_tables
from evenhand.errors import FileError
from evenhand.files import to_json
from evenhand.instruments import compare
from evenhand.report.findings import Findings, StageResult, read_findings
from evenhand.results import Items, Measurement


def read_back(stage: StageResult) -> StageResult:
    return StageResult.from_dict(json.loads(to_json(stage)))


def test_stages_survive_the_way_to_json_and_back(findings: Findings) -> None:
    again = [read_back(stage) for stage in findings.stages]
    for before, after in zip(findings.stages, again, strict=True):
        assert before.measurements == after.measurements
        assert before.comparisons == after.comparisons
        assert before.details == after.details
        if before.distances is not None:
            assert after.distances is not None
            assert np.array_equal(before.distances.distance, after.distances.distance)


def test_numbers_that_are_not_finite_come_back_as_nan_and_unbounded() -> None:
    m = Measurement(
        metric="weat",
        query="q",
        value=math.nan,
        low=-math.inf,
        high=1.0,
        n=1,
        ideal=0.0,
        worse="away",
        interval="",
        p_value=None,
    )
    stage = StageResult(name="s", kind="k", title="t", measurements=(m,))
    after = read_back(stage)
    (found,) = after.measurements
    assert math.isnan(found.value)
    assert found.low == -math.inf
    assert found.p_value is None


def test_saved_items_of_which_a_value_is_not_known_can_be_compared() -> None:
    m = Measurement(
        metric="weat",
        query="q",
        value=1.0,
        low=0.0,
        high=2.0,
        n=3,
        ideal=0.0,
        worse="away",
        interval="",
        items=Items({"word": ["a", "b", "c"], "without": [0.9, 1.2, math.nan]}),
    )
    stage = StageResult(name="s", kind="k", title="t", measurements=(m,))
    after = read_back(stage)
    (found,) = after.measurements
    assert math.isnan(found.items[2]["without"])
    assert compare(found, found).paired == 2


def test_tables_have_a_row_for_everything(tmp_path: Path, findings: Findings) -> None:
    (tmp_path / "tables").mkdir()
    names = {path.name: path for path in write_tables(tmp_path, findings.stages)}
    assert set(names) == {
        "measurements.csv",
        "items.csv",
        "comparisons.csv",
        "utility.csv",
        "distances-simulated.csv",
    }
    rows = {name: len(path.read_text().splitlines()) - 1 for name, path in names.items()}
    mitigating = findings.of("mitigation")
    measured = [m for s in findings.stages if s not in mitigating for m in s.measurements]
    assert rows["measurements.csv"] == len(measured)
    assert rows["items.csv"] == sum(len(m.items) for m in measured)
    assert rows["comparisons.csv"] == sum(len(s.comparisons) for s in mitigating)
    assert rows["utility.csv"] == sum(len(s.measurements) for s in mitigating)
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
