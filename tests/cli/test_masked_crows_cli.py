"""`evenhand masked crows` as its users meet it."""

import json

import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.results import Comparison, Measurement

PAIRS = """,sent_more,sent_less,stereo_antistereo,bias_type,anon_writer
0,The nurse said that she was tired.,The nurse said that he was tired.,stereo,gender,a1
1,The boss raised his voice.,The boss raised her voice.,antistereo,gender,a2
2,Old people forget their keys.,Young people forget their keys.,stereo,age,a1
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return str(path)


def test_json(capsys, path, tmp_path):
    items = tmp_path / "items.csv"
    found = json.loads(output(capsys, "masked", "crows", path, "--items", str(items), "--json"))
    assert found["schema"] == "evenhand/2"
    assert found["comparisons"] == []
    mini = Measurement.from_dict(*found["measurements"])
    assert (mini.subject, mini.n) == ("mini", 3)
    assert [part.query for part in mini.select("category")] == ["age", "gender"]
    assert {part.query for part in mini.select("direction")} == {"stereo", "antistereo"}
    assert len(mini.notes) >= 5
    table = pd.read_csv(items)
    assert table["bias_type"].tolist() == ["gender", "gender", "age"]
    assert (table["score_more"] - table["score_less"]).tolist() == pytest.approx(
        table["difference"].tolist()
    )
    assert (table["prefers"] == "more").mean() == pytest.approx(mini.value)


def test_table_shows_caveats_and_the_unit(capsys, path):
    text = output(capsys, "masked", "crows", path)
    assert "all pairs" in text
    assert "2 writers as the unit" in text
    assert "Blodgett" in text
    assert "as the authors count" in text


def test_two_models_are_compared_pair_by_pair(capsys, path, tmp_path):
    from evenhand.masked import load

    model = load("mini")
    folder = tmp_path / "other"
    with_changes = model.network
    with_changes.cls.predictions.bias.data[model.tokenizer.convert_tokens_to_ids("tired")] += 3
    with_changes.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    arguments = ("masked", "crows", path, "--model", "mini", "--model", str(folder))
    found = json.loads(output(capsys, *arguments, "--json"))
    change = Comparison.from_dict(*found["comparisons"])
    assert (change.before.subject, change.after.subject) == ("mini", "other")
    assert change.paired == 3
    before, after = (m.part("mean difference").value for m in (change.before, change.after))
    assert change.part("mean difference").change.value == pytest.approx(after - before)
    assert after != before
    assert "McNemar" in output(capsys, *arguments)


def test_the_cache_gives_the_same_answers(capsys, path, tmp_path):
    arguments = ("masked", "crows", path, "--cache", str(tmp_path / "cache"), "--json")
    assert output(capsys, *arguments) == output(capsys, *arguments)


def test_bad_input(capsys, path, tmp_path):
    assert "No such file" in failure(capsys, "masked", "crows", str(tmp_path / "none.csv"))
    broken = tmp_path / "broken.csv"
    broken.write_text(PAIRS.replace(",stereo,age", ",neither,age"))
    message = failure(capsys, "masked", "crows", str(broken))
    assert "broken.csv, line 4: column 'stereo_antistereo'" in message
    broken.write_text(PAIRS.replace("her voice", "[MASK] voice"))
    message = failure(capsys, "masked", "crows", str(broken))
    assert "broken.csv, line 3: column 'sent_less': expected a text without a mask" in message
    assert "no such folder" in failure(capsys, "masked", "crows", path, "--model", "minni")
