"""`evenhand list metrics`: the reference, from the declarations."""

import json

import pytest
from cli_shell import failure, output

from evenhand.fewshot.networks import CHOICES
from evenhand.instruments import all_declarations


def test_every_metric_is_listed(capsys):
    text = output(capsys, "list", "metrics")
    document = json.loads(output(capsys, "list", "metrics", "--json"))
    names = [about.name for about in all_declarations()]
    assert [row["name"] for row in document["metrics"]] == names
    for name in names:
        assert name in text


@pytest.mark.parametrize(
    "about", all_declarations(), ids=lambda about: f"{about.subjects[0]}-{about.name}"
)
def test_a_metric_is_explained(capsys, about):
    text = output(capsys, "list", "metrics", about.name)
    joined = " ".join(text.split())
    assert about.question in joined
    assert about.source in joined
    for option in about.options:
        assert option.help in joined


def test_an_unknown_metric_suggests_the_nearest(capsys):
    assert "did you mean 'weat'" in failure(capsys, "list", "metrics", "waet")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("topics", "religion"),
        ("models", "mini"),
        ("networks", "proto-soft"),
        ("networks", "Snell et al. 2017"),
        ("templates", "{profession}"),
        ("templates", "[NAME] found work as a [MASK]."),
    ],
)
def test_what_there_is_can_be_listed(capsys, kind, name):
    assert name in output(capsys, "list", kind)
    assert name in output(capsys, "list", kind, "--json")
    assert json.loads(output(capsys, "list", kind, "--json"))[kind]


def test_every_network_says_what_it_does(capsys):
    rows = json.loads(output(capsys, "list", "networks", "--json"))["networks"]
    assert [row["name"] for row in rows] == list(CHOICES)
    assert all(row["classifies by"] for row in rows)


@pytest.mark.parametrize("arguments", [("metrics", "crows"), ("topics",), ("networks",)])
def test_lists_fit_80_columns(capsys, monkeypatch, arguments):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert max(map(len, output(capsys, "list", *arguments).splitlines())) <= 80


def test_two_metrics_of_one_name_are_both_listed(capsys):
    document = json.loads(output(capsys, "list", "metrics", "--json"))
    listed = [row["subjects"] for row in document["metrics"] if row["name"] == "perplexity"]
    assert listed == [["masked"], ["causal"]]
