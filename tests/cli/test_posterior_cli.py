"""`evenhand posterior` as its users meet it."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.posterior.tables import CONNECTIONS, simulate

LEVELS = list(CONNECTIONS)
SUMMARY = {"mean", "sd", "low", "high", "p_below_zero"}


def write(table, path):
    pd.DataFrame(
        {
            "protected_word": [table.words[i] for i in table.word],
            "word_to_compare": [table.attributes[j] for j in table.attribute],
            "word_class": [table.attribute_class[j] for j in table.attribute],
            "cosine_distance": table.distance,
            "connection": [CONNECTIONS[k] for k in table.connection],
        }
    ).to_csv(path)
    return str(path)


@pytest.fixture(scope="module")
def table():
    return simulate(delta=-0.2, seed=1, words=(3, 3), stereotypes=(4, 4), human=6, neutral=10)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    return write(table, tmp_path_factory.mktemp("tables") / "d.csv")


def test_fit_as_json(capsys, path, table):
    found = json.loads(
        output(capsys, "posterior", "fit", path, "--draws", "1600", "--seed", "3", "--json")
    )
    assert found["schema"] == "evenhand/2"
    assert found["rows"] == table.rows
    assert found["dropped"] == {"sentinel": 0, "missing": 0, "duplicate": 0}
    assert list(found["models"]) == ["baseline", "coefficients", "separate", "paper", "crossed"]
    for name, model in found["models"].items():
        assert {"waic", "waic_se", "p_waic", "loo", "rhat_max", "ess_min"} <= set(model)
        assert model["rhat_max"] < 1.02
        assert list(model["coefficients"]) == ([] if name == "baseline" else LEVELS)
        for level in model["coefficients"].values():
            assert set(level) == {"mean", "sd", "low", "high"}
            assert level["low"] < level["mean"] < level["high"]
    assert list(found["contrasts"]) == [
        "associated-different", "associated-human", "associated-none", "human-none",
    ]  # fmt: skip
    assert all(set(c) == SUMMARY for c in found["contrasts"].values())
    assert found["contrasts"]["associated-different"]["high"] < 0
    assert [row["class"] for row in found["classes"]] == ["class1", "class2"]
    assert len(found["words"]) == 6
    assert any("not identified" in note for note in found["notes"])
    again = output(capsys, "posterior", "fit", path, "--draws", "1600", "--seed", "3", "--json")
    assert json.loads(again) == found


def test_fit_for_reading(capsys, path):
    text = output(capsys, "posterior", "fit", path, "--draws", "160", "--checks")
    for word in ("WAIC", "associated-different", "class2", "word6", "note: co alone", "R-hat"):
        assert word in text
    assert "intra-class correlation" in text


def test_one_model_and_its_files(capsys, path, tmp_path):
    folder = tmp_path / "out"
    arguments = ("posterior", "fit", path, "--model", "crossed", "--draws", "160", "--sensitivity")
    text = output(capsys, *arguments, "-o", str(folder))
    assert "under other priors" in text
    saved = json.loads((folder / "results.json").read_text())
    assert list(saved["models"]) == ["crossed"]
    assert len(saved["sensitivity"]) == 6
    draws = pd.read_csv(folder / "draws" / "crossed.csv")
    assert len(draws) == 160
    assert draws["delta"].mean() == pytest.approx(
        saved["contrasts"]["associated-different"]["mean"], abs=1e-6
    )
    contrasts = pd.read_csv(folder / "contrasts.csv")
    assert set(contrasts["of"]) >= {"crossed: associated-different", "crossed: human-none"}
    assert len(pd.read_csv(folder / "levels.csv")) == 24
    assert sorted(p.name for p in folder.iterdir()) == [
        "contrasts.csv", "draws", "figures", "levels.csv", "results.json",
    ]  # fmt: skip


def test_a_model_the_table_does_not_allow_is_named(capsys, table, tmp_path):
    one = write(table.select_words(["word1", "word2"]), tmp_path / "one.csv")
    found = json.loads(output(capsys, "posterior", "fit", one, "--draws", "160", "--json"))
    assert list(found["skipped"]) == ["crossed"]
    assert found["contrasts"] == {}
    assert "different for another" in failure(capsys, "posterior", "fit", one, "--model", "crossed")


def test_compare(capsys, table, path, tmp_path):
    noise = 0.01 * np.random.default_rng(0).standard_normal(table.rows)
    moved = table.distance + 0.1 * (table.connection == 0) + noise
    after = write(table.with_distance(moved, "after"), tmp_path / "after.csv")
    arguments = ("posterior", "compare", path, after, "--draws", "160")
    found = json.loads(output(capsys, *arguments, "--json", "-o", str(tmp_path / "c")))
    assert found["rows"] == table.rows
    assert found["unpaired"] == {"before": 0, "after": 0}
    assert list(found["levels"]) == LEVELS
    change = found["contrasts"]["associated-different"]
    assert set(change) == {"before", "after", "change"}
    assert change["change"]["mean"] == pytest.approx(0.1, abs=0.01)
    assert "hard debiasing" in found["notes"][0]
    assert len(pd.read_csv(tmp_path / "c" / "words.csv")) == len(found["words"]) == 30
    text = output(capsys, *arguments)
    assert "Change of each protected word" in text
    assert "note: hard debiasing" in text


def test_errors_are_one_line(capsys, path, tmp_path):
    assert "crossed" in failure(capsys, "posterior", "fit", path, "--model", "crosed")
    assert "No such file" in failure(capsys, "posterior", "fit", str(tmp_path / "none.csv"))
    bad = tmp_path / "bad.csv"
    bad.write_text("protectedWord,wordToCompare\na,b\n")
    assert "bad.csv, line 1: no column connection" in failure(capsys, "posterior", "fit", str(bad))
    text = failure(capsys, "posterior", "fit", path, "--prior", "crossed.delta=1")
    assert "did you mean 'crossed.delta_sd'" in text
    assert "no change" in failure(capsys, "posterior", "compare", path, path)
    assert "expected a folder" in failure(capsys, "posterior", "fit", path, "-o", path)
    assert "expected a folder" in failure(capsys, "posterior", "fit", path, "-o", "no/such/one")
