"""`evenhand masked measure`: any declared metric of a model."""

from __future__ import annotations

import json

import pytest
from cli_shell import failure, output

from evenhand.instruments import instruments
from evenhand.results import Measurement

PAIRS = """sent_more,sent_less,stereo_antistereo,bias_type
The nurse said that she was tired.,The nurse said that he was tired.,stereo,gender
The boss raised his voice.,The boss raised her voice.,antistereo,gender
"""


def measured(capsys, *arguments):
    content = json.loads(output(capsys, "masked", "measure", *arguments, "--json"))
    return [Measurement.from_dict(row) for row in content["measurements"]]


def test_metrics_read_their_material(capsys, tmp_path):
    pairs, texts = tmp_path / "pairs.csv", tmp_path / "texts.txt"
    pairs.write_text(PAIRS)
    texts.write_text("The door was open.\nIt rained all day.\n")
    (crows,) = measured(capsys, "mini", "--metric", "crows", "--data", str(pairs))
    assert (crows.metric, crows.subject, crows.n) == ("crows", "mini", 2)
    (perplexity,) = measured(capsys, "mini", "--metric", "perplexity", "--data", str(texts))
    assert perplexity.n == 2


def test_built_in_material_options_and_table(capsys):
    arguments = ("mini", "--metric", "pronouns", "--top-k", "3", "--gender-words", "pronouns")
    (m,) = measured(capsys, *arguments)
    assert m.details["settings"]["top_k"] == 3
    assert m.query == "built-in sentences"
    assert "built-in sentences" in output(capsys, "masked", "measure", *arguments)


def test_every_declared_metric_is_in_the_help(capsys):
    text = output(capsys, "masked", "measure", "--help")
    for name, cls in instruments("model").items():
        assert name in text
        assert " ".join(cls.declaration.question.split()) in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["mini", "--metric", "pronoun"], "did you mean 'pronouns'"),
        (["mini", "--metric", "crows"], "expected sentence pairs"),
        (["mini", "--data", "x.csv"], "name the metrics"),
        (["mini", "--metric", "crows", "--top-k", "3"], "none of the chosen metrics has it"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, problem):
    assert problem in failure(capsys, "masked", "measure", *arguments)
