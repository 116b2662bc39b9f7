"""The command line as its users meet it: tables, JSON, files and errors."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.vectors import load

QUERY = {
    "name": "jobs",
    "targets": {
        "technical": ["engineer", "mechanic", "pilot"],
        "caring": ["nurse", "nanny", "maid"],
    },
    "attributes": {"he": ["he", "him", "man"], "she": ["she", "her", "woman", "zzzqx"]},
}


@pytest.fixture
def query(tmp_path):
    path = tmp_path / "q.json"
    path.write_text(json.dumps(QUERY))
    return str(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory, glove):
    """The 6,000 most frequent words as a text file."""
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    from evenhand.vectors import Vectors

    Vectors.from_arrays(glove.words[:6000], glove.matrix[:6000]).save(path, "word2vec")
    return str(path)


def test_measure_a_query_as_json(capsys, query):
    document = json.loads(output(capsys, "measure", "glove", "--query", query, "--json"))
    assert document["schema"] == "evenhand/2"
    weat = next(m for m in document["measurements"] if m["metric"] == "weat")
    assert {
        "metric",
        "query",
        "value",
        "low",
        "high",
        "prob",
        "p_value",
        "n",
        "ideal",
        "worse",
        "left_out",
        "seed",
    } <= weat.keys()
    assert weat["query"] == "jobs"
    assert weat["left_out"] == ["zzzqx"]
    assert weat["n"] == 6
    assert weat["value"] > 1


def test_measure_a_topic_as_a_table(capsys):
    text = output(capsys, "measure", "glove", "--topic", "gender", "--option", "null=50")
    assert "association" in text
    assert "projections" in text
    assert "interval" in text


def test_measure_everything_saves_items_and_names_what_was_skipped(capsys, small, tmp_path):
    path = tmp_path / "items.csv"
    text = output(
        capsys,
        *("measure", "mac", small, "--items", str(path)),
        *("--null", "20", "--topic", "gender"),
    )
    assert "mac" in text
    assert {"metric", "query", "word", "score"} <= set(pd.read_csv(path).columns)
    document = json.loads(
        output(capsys, "measure", small, "--weat", "1", "--option", "null=20", "--json")
    )
    reasons = {skip["metric"] for skip in document["skipped"]} | {
        m["metric"] for m in document["measurements"]
    }
    assert "weat" in reasons


def test_robust_adds_two_rows(capsys, query):
    document = json.loads(
        output(
            capsys,
            *("measure", "weat", "glove", "--query", query, "--robust", "--json"),
        )
    )
    names = [m["metric"] for m in document["measurements"]]
    assert names == ["weat", "leave_one_out(weat)", "split_half(weat)"]


def test_distances_writes_six_columns(capsys, tmp_path):
    path = tmp_path / "d.csv"
    document = json.loads(
        output(
            capsys,
            *("lab", "vectors", "distances"),
            "glove",
            "--topic",
            "religion",
            "-o",
            str(path),
            "--json",
        )
    )
    frame = pd.read_csv(path)
    assert len(frame) == document["rows"]
    assert list(frame.columns)[-1] == "connection"
    assert document["measurements"][0]["metric"] == "association"


def test_info_counts_the_words(capsys, small):
    document = json.loads(output(capsys, "info", small, "--json"))
    assert document["words"] == 6000
    assert document["dim"] == 100
    assert document["coverage"]["gender"]["missing"]
    assert "6,000 words × 100" in output(capsys, "info", small)


def test_debias_writes_vectors_that_gensim_reads(capsys, small, tmp_path):
    gensim = pytest.importorskip("gensim.models")
    path = tmp_path / "fair.bin"
    document = json.loads(
        output(capsys, "debias", small, "--topic", "gender", "-o", str(path), "--json")
    )
    assert {"debias", "comparisons", "measurements"} <= document.keys()
    read = gensim.KeyedVectors.load_word2vec_format(str(path), binary=True)
    assert np.allclose(read["engineer"], load(path)["engineer"])
    first = next(c for c in document["comparisons"] if c["metric"] == "direct_bias")
    assert first["after"]["value"] < 1e-5


@pytest.mark.parametrize("method", ["soft", "inlp", "leace"])
def test_debias_prints_tables(capsys, small, method):
    text = output(capsys, "debias", small, "--method", method)
    assert "Hidden bias" in text
    assert "recovery_rbf" in text


def test_occupations_on_two_axes(capsys, tmp_path):
    folder = tmp_path / "out"
    text = output(capsys, "lab", "vectors", "occupations", "glove", "-o", str(folder))
    assert "interior designer*" in text
    assert "mean of the vectors of its words" in text
    items = pd.read_csv(folder / "occupations.csv")
    assert {"word", "group", "she", "he", "score"} <= set(items.columns)
    drawn = (folder / "occupations.svg").read_text()
    assert "fighter pilot*" in drawn
    assert "cosine with she" in drawn
    document = json.loads(output(capsys, "lab", "vectors", "occupations", "glove", "--json"))
    assert len(document["measurements"][0]["details"]["averaged"]) == 3


def test_pairs_and_their_threshold(capsys, small):
    text = output(
        capsys, "lab", "vectors", "pairs", small, "she", "he", "--top", "5", "--limit", "800"
    )
    assert "her" in text
    assert "5 of 5" in text
    arguments = (
        "lab",
        "vectors",
        "pairs",
        small,
        "--max-distance",
        "0.9",
        "--limit",
        "800",
        "--json",
    )
    document = json.loads(output(capsys, *arguments))
    assert document["pair"] == ["she", "he"]
    assert 0.9 in [effect["threshold"] for effect in document["sensitivity"]]
    assert all(pair["length"] <= 0.9 for pair in document["pairs"])
    assert "two words" in failure(capsys, "lab", "vectors", "pairs", small, "she")


def test_strictness_of_direct_bias(capsys, small):
    measure = ("measure", "direct_bias", small, "--topic", "gender")
    measure = (*measure, "--null", "0", "--json")
    values = []
    for strictness in ("1", "2"):
        document = json.loads(output(capsys, *measure, "--strictness", strictness))
        (m,) = document["measurements"]
        assert m["details"]["strictness"] == float(strictness)
        values.append(m["value"])
    assert values[1] < values[0]
    assert "strictness" in failure(capsys, *measure, "--strictness", "0")


def test_analogies_with_words_and_without(capsys):
    text = output(capsys, "lab", "vectors", "analogies", "glove", "man", "doctor", "woman")
    assert "inputs allowed" in text
    assert "nurse" in text
    document = json.loads(output(capsys, "lab", "vectors", "analogies", "glove", "--json"))
    assert [m["metric"] for m in document["measurements"]] == ["analogies", "analogy_accuracy"]


def test_null_and_dimension(capsys):
    document = json.loads(
        output(
            capsys,
            *("lab", "vectors", "null"),
            "glove",
            "--topic",
            "gender",
            "--metric",
            "direct_bias",
            "--null",
            "100",
            "--json",
        )
    )
    assert document["measurements"][0]["details"]["null_draws"] >= 100
    text = output(capsys, "lab", "vectors", "null", "glove", "--weat", "6", "--null", "50")
    assert "weat" in text
    assert "1/√d" in output(capsys, "lab", "vectors", "null", "glove", "--by-dimension")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("measure", "glvoe"), "glvoe"),
        (("measure", "no/such.vec"), "no/such.vec"),
        (("measure", "glove", "--topic", "gendre"), "did you mean 'gender'"),
        (("measure", "glove", "--weat", "11"), "unknown WEAT query '11'"),
        (("measure", "glove", "--metric", "waet"), "did you mean 'weat'"),
        (("measure", "glove", "--query", "none.json"), "none.json"),
        (("measure", "glove", "--prob", "95"), "not in the range 0<x<1"),
        (("measure", "glove", "--seed", "x"), "not a valid integer"),
        (("lab", "vectors", "distances", "glove"), "--topic"),
        (("lab", "vectors", "analogies", "glove", "man", "doctor"), "three words"),
        (("lab", "vectors", "null", "glove"), "--by-dimension"),
        (("debias", "glove", "-o", "/no/such/dir/x.bin"), "/no/such/dir"),
        (("debias", "glove", "-o", "fair.foo"), "cannot tell the format"),
        (
            ("debias", "glove", "--method", "inlp", "--dimensions", "2"),
            "k: not an option of inlp",
        ),
        (("debias", "glove", "--seed", "5000000000"), "--seed"),
        (("lab", "vectors", "null", "glove", "--null", "0", "--weat", "1"), "--null"),
        (
            (
                "lab",
                "vectors",
                "null",
                "glove",
                "--topic",
                "race",
                "--metric",
                "association",
            ),
            "no null",
        ),
        (("measuer",), "did you mean 'measure'"),
        (("measure", "waet", "glove"), "did you mean 'weat'"),
        (("lab", "vector"), "did you mean 'vectors'"),
        (("--what",), "--what"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    assert message in failure(capsys, *arguments)


def test_a_broken_query_names_its_place(capsys, tmp_path):
    path = tmp_path / "q.json"
    path.write_text('{"name": "x",\n "targets": {"a": ["he"]')
    assert f"{path}, line 2" in failure(capsys, "measure", "glove", "--query", str(path))
    path.write_text(json.dumps({**QUERY, "atributes": {}}))
    assert "atributes" in failure(capsys, "measure", "glove", "--query", str(path))


def test_names_with_brackets_are_printed_as_they_are(capsys, tmp_path):
    """The table's library would take them for markup."""
    path = tmp_path / "q.json"
    path.write_text(json.dumps({**QUERY, "name": "x [/b] [bold]y"}))
    text = output(capsys, "measure", "glove", "--query", str(path), "--metric", "weat")
    assert "x [/b] [bold]y" in text


def test_what_worked_is_printed_though_robustness_did_not(capsys, tmp_path):
    path = tmp_path / "q.json"
    short = {name: words[:2] for name, words in QUERY["targets"].items()}
    path.write_text(
        json.dumps({**QUERY, "targets": short, "attributes": {"a": ["he"], "b": ["she"]}})
    )
    text = output(capsys, "measure", "glove", "--query", str(path), "--robust")
    assert "weat" in text
    assert "not measured: leave_one_out" in text


def test_more_answers_than_words(capsys, tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text("a 1 0\nb 0 1\nc 1 1\nd 2 1\ne 0 3\n")
    assert "inputs barred" in output(
        capsys, "lab", "vectors", "analogies", str(path), "a", "b", "c", "--top", "50"
    )


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("lab", "vectors"),
        ("info",),
        ("measure",),
        ("measure", "weat"),
        ("debias", "glove"),
        *[("lab", "vectors", name) for name in ("distances", "analogies", "null")],
    ],
)
def test_help_teaches(capsys, command):
    text = output(capsys, *command, "--help")
    assert "Usage: evenhand" in text
    assert "Example" in text or "Start with" in text


def test_import_stays_light():
    """`import evenhand` and `evenhand --help` load none of the heavy packages."""
    code = (
        "import sys, evenhand, evenhand.cli; evenhand.cli.run(['--help']);"
        "print([m for m in ('torch', 'jax', 'pandas', 'scipy', 'sklearn', 'altair', 'numpy') "
        "if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("[]")


def test_an_option_of_another_metric_is_refused(capsys):
    line = failure(
        capsys,
        *("measure", "weat", "glove", "--topic", "gender", "--strictness", "2"),
    )
    assert "no such option --strictness" in line


def test_declared_options_reach_the_metric(capsys):
    arguments = ("glove", "--topic", "gender", "--null", "0", "--json")
    chosen = ("direct_bias", *arguments, "--strictness", "2")
    document = json.loads(output(capsys, "measure", *chosen))
    assert document["measurements"][0]["details"]["strictness"] == 2
    chosen = ("weat", *arguments, "--alternative", "greater")
    (m,) = json.loads(output(capsys, "measure", *chosen))["measurements"]
    assert m["p_value"] == m["details"]["p_greater"]


def test_p_values_of_a_table_are_corrected_and_say_what_they_are_against(capsys):
    arguments = ("measure", "glove", "--topic", "gender", "--option", "null=200")
    measured = json.loads(output(capsys, *arguments, "--json"))["measurements"]
    tested = {(m["metric"], m["query"]): m for m in measured if m["p_value"] is not None}
    assert all(m["p_corrected"] >= m["p_value"] for m in tested.values())
    families = {m["family"] for m in tested.values()}
    assert len(families) > 1, "tests that decide are corrected apart from the others"
    for family in families:
        members = [m for m in tested.values() if m["family"] == family]
        smallest = min(members, key=lambda m: m["p_value"])
        assert smallest["p_corrected"] == pytest.approx(min(1.0, family * smallest["p_value"]))
    shown = output(capsys, *arguments)
    assert "against" in shown
    assert "random words" in shown
