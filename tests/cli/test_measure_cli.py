"""`evenhand measure METRIC SRC` and `evenhand compare`: material, options, output and errors."""

import json
from io import BytesIO, TextIOWrapper

import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.cli.measure import all_metrics
from evenhand.results import Measurement
from small_encoder import save_small

SENTENCES = "The clerk lost [MASK] keys.\nThe nurse raised [MASK] hand.\n[MASK] waved.\n"
PAIRS = """sent_more,sent_less,stereo_antistereo,bias_type
The nurse said she was late.,The nurse said he was late.,stereo,gender
The boss raised his voice.,The boss raised her voice.,antistereo,gender
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "masked.txt").write_text(SENTENCES)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    return tmp_path


def measured(capsys, *arguments):
    content = json.loads(output(capsys, "measure", *arguments, "--json"))
    return [Measurement.from_dict(row) for row in content["measurements"]]


def test_metrics_read_their_material(capsys, place):
    (crows,) = measured(capsys, "crows", "mini", "--data", "pairs.csv")
    assert (crows.metric, crows.subject, crows.n) == ("crows", "mini", 2)
    both = measured(capsys, "mini", "--metric", "crows,sss", "--data", "pairs.csv")
    assert [m.metric for m in both] == ["crows", "sss"]
    (place / "texts.txt").write_text("The door was open.\nIt rained all day.\n")
    (perplexity,) = measured(capsys, "perplexity", "mini", "--data", "texts.txt")
    assert perplexity.n == 2


def test_options_of_the_metric_reach_it(capsys):
    (m,) = measured(capsys, "pronouns", "mini", "--top-k", "3", "--gender-words", "pronouns")
    assert m.details["settings"]["top_k"] == 3
    assert m.query == "built-in sentences"
    (m,) = measured(capsys, "mini", "--metric", "pronouns", "--option", "top_k=4")
    assert m.details["settings"]["top_k"] == 4


def test_a_metric_name_wins_over_a_file(capsys, place):
    (place / "weat").write_text("he 1 0\nshe 0 1\n")
    assert "Missing argument" in failure(capsys, "measure", "weat")
    document = json.loads(output(capsys, "info", "./weat", "--json"))
    assert document["words"] == 2


@pytest.mark.parametrize("name", all_metrics())
def test_every_metric_has_a_help_of_its_own(capsys, name):
    text = " ".join(output(capsys, "measure", name, "--help").split())
    for cls in all_metrics()[name]:
        for option in cls.declaration.options:
            assert (option.flag or f"--{option.name.replace('_', '-')}").split()[0] in text
    cls = all_metrics()[name][0]
    assert cls.declaration.question in text
    assert f"evenhand measure {name}" in text
    assert name in output(capsys, "measure", "--help")


def test_sentences_from_a_pipe_and_items(capsys, monkeypatch):
    def pipe():
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(SENTENCES.encode())))

    pipe()
    (m,) = measured(capsys, "pronouns", "mini", "--data", "-", "--items", "items.csv")
    items = pd.read_csv("items.csv")
    assert items["masked"].tolist() == SENTENCES.splitlines()
    assert m.n <= 3
    for name in ("items.jsonl", "items.parquet"):
        pipe()
        output(capsys, "measure", "pronouns", "mini", "--data", "-", "--items", name)
    again = pd.read_json("items.jsonl", lines=True)["full_bias"]
    assert again.tolist() == pytest.approx(items["full_bias"].tolist())
    assert pd.read_parquet("items.parquet")["masked"].tolist() == items["masked"].tolist()
    shown = output(capsys, "measure", "pronouns", "mini", "--data", "masked.txt")
    assert "slot: subject" in shown
    assert "The clerk lost [MASK] keys." in shown


def test_plain_text_goes_through_the_filter(capsys, place):
    (place / "text.txt").write_text("The clerk lost his keys.\nIt rained.\nMary lost her keys.\n")
    (m,) = measured(capsys, "pronouns", "mini", "--data", "text.txt", "--filter")
    assert m.details["settings"]
    assert sum(part.details["count"] for part in m.select("verdict")) == 1
    for flags in (("--keep-someone", "--data", "text.txt"), ("--filter",)):
        assert "goes with" in failure(capsys, "measure", "pronouns", "mini", *flags)


def test_two_models_are_compared(capsys, place):
    save_small(place / "small")
    arguments = ("measure", "crows", "mini", "small", "--data", "pairs.csv")
    content = json.loads(output(capsys, *arguments, "--json"))
    assert [m["subject"] for m in content["measurements"]] == ["mini", "small"]
    [change] = content["comparisons"]
    assert change["metric"] == "crows"
    assert "Compared with mini" in output(capsys, *arguments, "--cache", "answers")
    assert (place / "answers").is_dir()
    other = json.loads(output(capsys, "compare", *arguments[1:], "--json"))
    assert other["comparisons"][0]["change"] == change["change"]


def test_saved_results_are_compared(capsys, place):
    save_small(place / "small")
    for name in ("mini", "small"):
        output(capsys, "measure", "crows", name, "--data", "pairs.csv", "-o", f"{name}.json")
    content = json.loads(output(capsys, "compare", "mini.json", "small.json", "--json"))
    assert content["comparisons"][0]["metric"] == "crows"
    (place / "old.json").write_text('{"schema": "evenhand/1", "measurements": []}')
    assert "old.json" in failure(capsys, "compare", "mini.json", "old.json")


def test_vectors_are_compared(capsys, place):
    output(capsys, "debias", "glove", "-o", "fair.npz", "--quiet")
    content = json.loads(
        output(capsys, "compare", "direct_bias", "glove", "fair.npz", "--topic", "gender", "--json")
    )
    [change] = content["comparisons"]
    assert change["after"]["value"] < change["before"]["value"]


def test_own_professions_templates_and_persons(capsys, place):
    (place / "jobs.txt").write_text("nurse\nguard\nclerk\n")
    (place / "t.txt").write_text("{person} is a {profession}.\n{person} became a {profession}.\n")
    own = ("--persons", "he/she", "--professions", "jobs.txt", "--templates", "t.txt")
    (m,) = measured(capsys, "professions", "mini", *own)
    assert {part.query for part in m.select("profession")} == {"nurse", "guard", "clerk"}
    output(capsys, "measure", "professions", "mini", *own, "--figures", "out")
    assert list((place / "out").glob("*.svg"))
    problem = failure(capsys, "measure", "professions", "mini", "--data", "x.tsv", *own)
    assert "--data has its own material" in problem


def test_phrases_beside_vectors_and_of_sentences(capsys, place):
    found = measured(capsys, "phrases", "mini", "--set", "machines", "--vectors", "glove")
    assert {m.subject for m in found} == {"mini", "glove"}
    (place / "text.txt").write_text(
        "The drummer sits at the back of the stage tapping her foot.\n"
        "The engineer lost her keys.\nThe farmer repairs his tractor in the barn.\n"
        "The teacher waves at her class.\nThe pilot checks his watch.\n"
    )
    output(capsys, "filter", "text.txt", "-o", "accepted.jsonl")
    (m,) = measured(capsys, "phrases_pronouns", "mini", "--data", "accepted.jsonl")
    assert m.query == "filtered sentences"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("mini", "--metric", "pronoun"), "did you mean 'pronouns'"),
        (("pronoun", "mini"), "did you mean 'pronouns'"),
        (("crows", "mini"), "expected --data FILE with sentence pairs"),
        (("mini", "--data", "pairs.csv"), "name the metric"),
        (("crows", "mini", "--top-k", "3"), "no such option --top-k"),
        (("pronouns", "glove"), "does not measure word vectors"),
        (("mini", "--topic", "gender"), "for word vectors"),
        (("pairs.csv",), "`evenhand odds` measures texts"),
        (("mini", "glove"), "expected sources of one kind"),
        (("mini", "--option", "nulls=3"), "unknown option 'nulls'"),
        (("glove", "--option", "null=x"), "expected a number, got 'x'"),
        (("pronouns", "nowhere"), "unknown source 'nowhere'"),
        (("pronouns", "mini", "--data", "none.txt"), "none.txt"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, problem):
    assert problem in failure(capsys, "measure", *arguments)
