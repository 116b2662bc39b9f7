"""`evenhand lab posterior` from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.posterior.tables import CONNECTIONS, simulate
from evenhand.results import Measurement

LEVELS = list(CONNECTIONS)


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


def select(document, metric, model):
    return {
        m["query"]: m
        for m in document["measurements"]
        if m["metric"] == metric and m["details"]["model"] == model
    }


@pytest.mark.slow
def ends_with(text, sentence):
    """Whether the closing sentence of a command is this one, whatever its lines and minus signs."""
    return bool(sentence) and " ".join(text.split()).endswith(sentence.replace("−", "-"))


@pytest.mark.slow
def test_fit_as_json(capsys, path, table):
    arguments = ("lab", "posterior", "fit", path, "--draws", "1600", "--seed", "3", "--json")
    document = json.loads(output(capsys, *arguments))
    assert document["schema"] == "evenhand/2"
    assert document["rows"] == table.rows
    assert document["dropped"] == {"sentinel": 0, "missing": 0, "duplicate": 0}
    assert list(document["models"]) == [
        "baseline",
        "coefficients",
        "separate",
        "paper",
        "crossed-no-interaction",
        "crossed",
    ]
    for name, model in document["models"].items():
        assert {"waic", "waic_se", "p_waic", "loo", "rhat_max", "ess_min"} <= set(model)
        assert model["rhat_max"] < 1.02
        levels = select(document, "posterior_level", name)
        assert list(levels) == ([] if name == "baseline" else LEVELS)
        for level in levels.values():
            assert level["low"] < level["value"] < level["high"]
    contrasts = select(document, "posterior_contrast", "crossed")
    assert list(contrasts) == [
        "associated-different",
        "associated-human",
        "associated-none",
        "human-none",
    ]
    assert all({"sd", "p_below_zero"} <= set(c["details"]) for c in contrasts.values())
    delta = contrasts["associated-different"]
    assert delta["high"] < 0
    assert delta["seed"] == 3
    parts = [(part["by"], part["query"]) for part in delta["parts"]]
    assert parts[:2] == [("class", "class1"), ("class", "class2")]
    assert [by for by, _ in parts[2:]] == ["word"] * 6
    assert any("not identified" in note for note in document["notes"])
    for m in document["measurements"]:
        measurement = Measurement.from_dict(m)
        assert Measurement.from_dict(measurement.to_dict()) == measurement
    assert json.loads(output(capsys, *arguments)) == document


def test_fit_for_reading(capsys, path):
    text = output(capsys, "lab", "posterior", "fit", path, "--draws", "160", "--checks")
    for word in ("WAIC", "associated-different", "class2", "word6", "note: co alone", "R-hat"):
        assert word in text
    assert "intra-class correlation" in text


@pytest.mark.slow
def test_one_model_and_its_files(capsys, path, tmp_path):
    folder = tmp_path / "out"
    arguments = (
        "lab",
        "posterior",
        "fit",
        path,
        "--family",
        "crossed",
        "--draws",
        "160",
        "--sensitivity",
    )
    text = output(capsys, *arguments, "-o", str(folder))
    assert "under other priors" in text
    saved = json.loads((folder / "results.json").read_text())
    assert list(saved["models"]) == ["crossed"]
    assert len(saved["sensitivity"]) == 8
    draws = pd.read_csv(folder / "draws" / "crossed.csv")
    assert len(draws) == 160
    delta = select(saved, "posterior_contrast", "crossed")["associated-different"]
    assert draws["delta"].mean() == pytest.approx(delta["value"], abs=1e-6)
    contrasts = pd.read_csv(folder / "contrasts.csv")
    assert set(contrasts["quantity"]) >= {"associated-different", "human-none"}
    assert set(contrasts["model"]) == {"crossed"}
    assert len(pd.read_csv(folder / "levels.csv")) == 24
    assert sorted(p.name for p in folder.iterdir()) == [
        "contrasts.csv",
        "draws",
        "figures",
        "levels.csv",
        "results.json",
    ]


def test_a_model_the_table_does_not_allow_is_named(capsys, table, tmp_path):
    twice = table.select(table.connection < 2).select_words(["word1", "word4"])
    data = pd.read_csv(write(twice, tmp_path / "once.csv"), index_col=0)
    path = tmp_path / "twice.csv"
    pd.concat([data, data]).to_csv(path)
    arguments = ("lab", "posterior", "fit", str(path), "--draws", "160", "--repeats", "keep")
    document = json.loads(output(capsys, *arguments, "--json"))
    assert document["rows"] == 2 * twice.rows
    assert list(document["skipped"]) == ["crossed-no-interaction", "crossed"]
    assert select(document, "posterior_contrast", "crossed") == {}
    assert "16 repeated rows" in failure(capsys, *arguments, "--family", "crossed")


@pytest.mark.parametrize("chosen", [("--class", "class1"), ("--word", "word1, word2,word3")])
def test_words_of_one_class(capsys, path, chosen):
    """No attribute is both associated and different: the contrasts compare other attributes."""
    arguments = ("lab", "posterior", "fit", path, "--draws", "160", "--family", "crossed", *chosen)
    document = json.loads(output(capsys, *arguments, "--json"))
    assert ends_with(output(capsys, *arguments), document["sentence"])
    contrasts = select(document, "posterior_contrast", "crossed")
    assert list(contrasts) == [
        "associated-different",
        "associated-human",
        "associated-none",
        "human-none",
    ]
    assert {c["ideal"] for c in contrasts.values()} == {None}
    (note,) = (n for n in document["notes"] if n.startswith("crossed: no attribute"))
    assert "4 attributes with 4 others" in note
    assert "remaining contrasts: associated-different, associated-human" in note


def test_unknown_words_and_classes(capsys, path):
    fit = ("lab", "posterior", "fit", path)
    assert "did you mean 'class1'" in failure(capsys, *fit, "--class", "clas1")
    assert "no protected word 'pope'" in failure(capsys, *fit, "--word", "word1,pope")


@pytest.mark.slow
def test_several_tables_share_a_figure(capsys, table, path, tmp_path):
    other = write(table.with_distance(table.distance**0.9, "other"), tmp_path / "other.csv")
    fit = ("lab", "posterior", "fit", path, other, "--family", "coefficients", "--draws", "160")
    document = json.loads(output(capsys, *fit, "--json", "-o", str(tmp_path / "out")))
    assert list(document["tables"]) == ["d", "other"]
    assert document["tables"]["d"]["rows"] == table.rows
    names = [p.name for p in (tmp_path / "out" / "figures").iterdir()]
    assert names == ["levels-coefficients.svg"]
    assert (tmp_path / "out" / "other" / "results.json").exists()
    compare = ("lab", "posterior", "compare", path, other, other, path, "--family", "coefficients")
    compare = (*compare, "--draws", "160", "-o", str(tmp_path / "change"))
    text = output(capsys, *compare)
    assert text.count("Change of each protected word") == 2
    drawn = (tmp_path / "change" / "figures" / "levels-coefficients.svg").read_text()
    assert ">before<" in drawn
    assert ">after<" in drawn
    assert "pairs of tables" in failure(capsys, "lab", "posterior", "compare", path, other, path)


@pytest.mark.slow
def test_compare(capsys, table, path, tmp_path):
    noise = 0.01 * np.random.default_rng(0).standard_normal(table.rows)
    moved = table.distance + 0.1 * (table.connection == 0) + noise
    after = write(table.with_distance(moved, "after"), tmp_path / "after.csv")
    arguments = ("lab", "posterior", "compare", path, after, "--draws", "160")
    document = json.loads(output(capsys, *arguments, "--json", "-o", str(tmp_path / "c")))
    assert document["rows"] == table.rows
    assert document["unpaired"] == {"before": 0, "after": 0}
    assert ends_with(output(capsys, *arguments), document["sentence"])
    comparisons = {c["query"]: c for c in document["comparisons"]}
    assert list(comparisons)[:4] == LEVELS
    delta = comparisons["associated-different"]
    assert delta["change"]["value"] == pytest.approx(0.1, abs=0.01)
    assert "hard debiasing" in document["notes"][0]
    parts = [p for c in document["comparisons"] for p in c["parts"] if p["before"]["by"] == "word"]
    assert len(pd.read_csv(tmp_path / "c" / "words.csv")) == len(parts) == 30
    saved = json.loads((tmp_path / "c" / "results.json").read_text())
    assert saved["comparisons"][4]["change"] == delta["change"]
    text = output(capsys, *arguments)
    assert "Change of each protected word" in text
    assert "note: hard debiasing" in text


def test_describe(capsys, path, table):
    text = output(capsys, "lab", "posterior", "describe", path)
    for word in ("associated", "mac", "association"):
        assert word in text
    document = json.loads(output(capsys, "lab", "posterior", "describe", path, "--json"))
    assert ends_with(text, document["sentence"])
    assert document["rows"] == table.rows
    assert [m["metric"] for m in document["measurements"]] == ["mac", "association"]
    arguments = ("lab", "posterior", "describe", path, path, "--class", "class1", "--json")
    shown = json.loads(output(capsys, *arguments))
    assert ends_with(output(capsys, *arguments[:-1]), shown["sentence"])
    several = shown["tables"]
    assert list(several) == ["d", "d 2"]
    assert [m["metric"] for m in several["d"]["measurements"]] == ["mac"]
    assert "two classes" in several["d"]["skipped"]["association"]


def test_errors_are_one_line(capsys, path, tmp_path):
    assert "crossed" in failure(capsys, "lab", "posterior", "fit", path, "--family", "crosed")
    assert "No such file" in failure(capsys, "lab", "posterior", "fit", str(tmp_path / "none.csv"))
    bad = tmp_path / "bad.csv"
    bad.write_text("protectedWord,wordToCompare\na,b\n")
    assert "bad.csv, line 1: no column connection" in failure(
        capsys, "lab", "posterior", "fit", str(bad)
    )
    text = failure(capsys, "lab", "posterior", "fit", path, "--prior", "crossed.delta=1")
    assert "did you mean 'crossed.delta_sd'" in text
    assert "no change" in failure(capsys, "lab", "posterior", "compare", path, path)
    assert "expected a folder" in failure(capsys, "lab", "posterior", "fit", path, "-o", path)
    assert "expected a folder" in failure(
        capsys, "lab", "posterior", "fit", path, "-o", "no/such/one"
    )
