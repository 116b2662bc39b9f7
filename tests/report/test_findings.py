from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenhand.audit.main import write_tables
from evenhand.errors import FileError
from evenhand.files import document, save_json, to_json
from evenhand.gate.reading import read_results
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


EVERY_TYPE = Items(
    {
        "text": ["a", "", "ß"],
        "text or none": ["a", None, "null"],
        "float": [0.1 + 0.2, -0.0, 5e-324],
        "not finite": [math.nan, math.inf, -math.inf],
        "int": [2**62, -1, 0],
        "bool": [True, False, True],
        "mixed": [1, "1", None],
        "bool or none": [True, None, False],
        "nested": [{"a": [1, 2.5]}, [None], {}],
        "table": [1, 2, 3],
    }
)


def with_items(*tables: Items) -> Findings:
    measured = tuple(
        Measurement(
            metric="m",
            query=str(number),
            value=1.0,
            low=0.0,
            high=2.0,
            n=len(items),
            ideal=0.0,
            worse="away",
            interval="",
            items=items,
        )
        for number, items in enumerate(tables)
    )
    nested = replace(measured[0], query="nested", items=Items(), parts=measured)
    stage = StageResult(name="s", kind="k", title="t", measurements=(*measured, nested))
    return Findings(
        subjects={"vectors": {"name": "v"}}, settings={}, topics=(), stages=(stage,), run={}
    )


def saved(folder: Path, *tables: Items) -> tuple[Measurement, ...]:
    """The measurements with these items, written and read back."""
    save_json(folder / "run.json", document())
    with_items(*tables).save(folder)
    return read_findings(folder).stages[0].measurements


def test_items_of_every_type_come_back_to_the_last_bit(tmp_path: Path) -> None:
    empty = Items({"text": (), "int": np.array([], dtype=int)})
    other_types = Items({"text": [1, 2], "int": [0.5, 1.5], "bool": ["x", None]})
    tables = (EVERY_TYPE, other_types, empty, Items(), EVERY_TYPE[:2])
    measured = saved(tmp_path, *tables)
    assert [m.items for m in measured] == [*tables, Items()]
    assert [m.items for m in measured[-1].parts] == list(tables)
    for before, after in zip(tables, (m.items for m in measured), strict=False):
        for name in before.columns:
            assert type(after[name]) is type(before[name])
            if isinstance(before[name], np.ndarray):
                assert after[name].dtype == before[name].dtype
                assert after[name].tobytes() == before[name].tobytes()
            else:
                assert list(map(type, after[name])) == list(map(type, before[name]))
    assert measured == with_items(*tables).stages[0].measurements


def test_equal_tables_are_stored_once_and_the_same_bytes_are_written(tmp_path: Path) -> None:
    saved(tmp_path, EVERY_TYPE, EVERY_TYPE)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(first) == {"results.json", "items.parquet", "run.json"}
    (stage,) = json.loads(first["results.json"])["stages"]
    assert [m["items"] for m in stage["measurements"]] == [0, 0, 1]
    saved(tmp_path, EVERY_TYPE, EVERY_TYPE)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_the_former_layout_is_read(tmp_path: Path) -> None:
    finite = Items({"word": ["a", "b"], "score": [1.0, math.nan], "n": [1, 2]})
    save_json(tmp_path / "run.json", document())
    save_json(tmp_path / "results.json", with_items(finite).to_dict())
    (m, _) = read_findings(tmp_path).stages[0].measurements
    assert m.items == finite


def test_items_without_their_file_are_an_error_that_names_it(tmp_path: Path) -> None:
    saved(tmp_path, EVERY_TYPE)
    other = tmp_path / "other"
    other.mkdir()
    saved(other, EVERY_TYPE[:1])
    (tmp_path / "items.parquet").unlink()
    (m, _) = read_findings(tmp_path).stages[0].measurements
    (gated, _) = read_results(tmp_path).measurements
    for found in (m, gated):
        assert (found.value, found.low, found.high, found.n) == (1.0, 0.0, 2.0, 3)
        assert str(found).startswith("m 0: 1.000 [0.000, 2.000]")
        with pytest.raises(FileError, match=r"items\.parquet: no such file") as error:
            len(found.items)
        assert "\n" not in str(error.value)
    (other / "items.parquet").rename(tmp_path / "items.parquet")
    with pytest.raises(FileError, match="got those of other results"):
        len(m.items)
