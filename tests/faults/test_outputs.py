"""No command overwrites an input, and over what others wrote only with --overwrite."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest
from cli_shell import failure

from evenhand.cli import command, run
from evenhand.cli.outputs import OutputFile, OutputFolder

SCORES = "item,model,score\n" + "".join(
    f"{i},{m},{(i * 7 + k) % 5 / 5}\n" for i in range(12) for k, m in enumerate("ab")
)
POLICY = '[[rules]]\nmetric = "mean_score"\nmax = 5.0\n'
VECTORS = "".join(f"{w} {i} {i % 3} 1\n" for i, w in enumerate(("he", "she", "man", "king")))
MINE = "mine\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(SCORES)
    Path("a.vec").write_text(VECTORS)
    Path("p.toml").write_text(POLICY)
    Path("in.txt").write_text("She reads her book.\n")
    Path("mine").write_text(MINE)
    for ending in ("csv", "json", "html", "xml", "jsonl", "vec", "txt"):
        Path(f"mine.{ending}").write_text(MINE)
    return tmp_path


INPUTS = [
    ("scores", "a.csv", "-o", "a.csv"),
    ("scores", "a.csv", "-o", "HARD.csv"),
    ("scores", "a.csv", "-o", "SOFT.csv"),
    ("gate", "p.toml", "r.json", "--junit", "r.json"),
    ("gate", "p.toml", "r.json", "--markdown", "p.toml"),
    ("debias", "a.vec", "-o", "a.vec"),
    ("rewrite", "swap", "in.txt", "-o", "in.txt"),
    ("rewrite", "swap", "in.txt", "-o", "out.txt", "--edits", "in.txt"),
    ("rewrite", "counterfactuals", "a.csv", "-o", "a.csv"),
    ("filter", "in.txt", "--rejected", "in.txt"),
    ("odds", "a.csv", "--label", "model", "--items", "a.csv"),
    ("lab", "vectors", "distances", "a.vec", "-o", "a.vec"),
    ("lab", "annotate", "sheet", "in.txt", "-o", "in.txt"),
    ("measure", "pronouns", "mini", "--data", "a.csv", "--items", "a.csv"),
    ("classifier", "a.csv", "-o", "a.csv"),
]


@pytest.mark.parametrize("flag", [(), ("--overwrite",)])
@pytest.mark.parametrize("words", INPUTS, ids=" ".join)
def test_an_input_is_never_overwritten(capsys, words, flag):
    Path("r.json").write_text(json.dumps({"schema": "evenhand/2", "measurements": []}))
    os.link("a.csv", "HARD.csv")
    Path("SOFT.csv").symlink_to("a.csv")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    message = failure(capsys, *words, *flag)
    assert "is an input: expected another file to write" in message
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("flag", [(), ("--overwrite",)])
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--predictions", "out/results.json", "-o", "out"),
        ("lab", "fewshot", "run", "--data", "out/by_class.csv", "-o", "out"),
        ("finetune", "in.txt", "--model", "out/model", "-o", "./out"),
        ("finetune", "LINK.csv", "-o", "out"),
    ],
    ids=" ".join,
)
def test_a_folder_with_an_input_is_not_written_into(capsys, words, flag):
    Path("out/model").mkdir(parents=True)
    Path("out/run.json").write_text("{}")
    for name in ("results.json", "by_class.csv", "model/config.json"):
        Path("out", name).write_text(SCORES)
    Path("LINK.csv").symlink_to("out/by_class.csv")
    assert "has the input" in failure(capsys, *words, *flag)


OTHERS = [
    ("scores", "a.csv", "-o", "mine.csv"),
    ("scores", "a.csv", "-o", "mine.json"),
    ("scores", "a.csv", "-o", "mine.html"),
    ("rewrite", "swap", "in.txt", "-o", "mine.txt"),
    ("rewrite", "swap", "in.txt", "--edits", "mine"),
    ("rewrite", "swap", "Her book.", "-o", "mine"),
    ("debias", "a.vec", "-o", "mine.vec"),
    ("gate", "p.toml", "r.json", "--junit", "mine.xml"),
    ("measure", "glove", "-o", "mine.json"),
    ("measure", "glove", "--items", "mine.jsonl"),
    ("report", "x", "y", "-o", "mine.html"),
]


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_what_others_wrote_is_refused(capsys, words):
    message = failure(capsys, *words)
    assert "exists and does not say that Evenhand wrote it: --overwrite replaces it" in message
    assert Path(words[-1]).read_text() == MINE


def test_overwrite_replaces_it(capsys):
    assert run(["scores", "a.csv", "-o", "mine.csv", "--overwrite"]) == 0
    assert Path("mine.csv").read_text() != MINE


@pytest.mark.parametrize("ending", ["json", "html"])
def test_the_same_command_can_be_repeated(capsys, ending):
    words = ["scores", "a.csv", "-o", f"new.{ending}"]
    assert run(words) == run(words) == 0


def test_the_summaries_of_a_gate_can_be_repeated(capsys):
    assert run(["scores", "a.csv", "-o", "r.json"]) == 0
    words = ["gate", "p.toml", "r.json", "--junit", "g.xml", "--markdown", "g.md"]
    assert run(words) == run(words)
    assert Path("g.xml").read_text().endswith("<!-- written by Evenhand -->\n")


def test_folders(capsys):
    Path("full").mkdir()
    Path("full", "letter.txt").write_text(MINE)
    words = ["measure", "glove", "--topic", "gender", "--metric", "weat", "--figures"]
    assert "has 'letter.txt'" in failure(capsys, *words, "full")
    assert run([*words, "full", "--overwrite"]) == 0
    assert run([*words, "new"]) == run([*words, "new"]) == 0


def test_empty_files_and_devices_are_written(capsys):
    Path("empty.csv").touch()
    assert run(["scores", "a.csv", "-o", "empty.csv"]) == 0
    assert Path("empty.csv").stat().st_size
    assert run(["rewrite", "swap", "in.txt", "-o", "/dev/null"]) == 0


def test_two_outputs_are_two_files(capsys):
    message = failure(capsys, "rewrite", "swap", "in.txt", "-o", "o.txt", "--edits", "./o.txt")
    assert "expected another file than" in message


def test_every_option_for_a_file_to_write_is_checked():
    """A path that need not exist is an output, a cache or a text; each is declared as such."""
    inputs = {"--query", "--sentences", "--watch", "--crows", "--data", "--eval", "--cache"}
    left = []

    def walk(current, name):
        if isinstance(current, click.Group):
            context = click.Context(current)
            for child in current.list_commands(context):
                walk(current.get_command(context, child), f"{name} {child}")
            return
        for option in current.params:
            kind = option.type
            if (
                isinstance(option, click.Option)
                and isinstance(kind, click.Path)
                and not isinstance(kind, OutputFile | OutputFolder)
                and not kind.exists
                and not inputs & set(option.opts)
            ):
                left.append(f"{name} {option.opts}")

    walk(command, "")
    assert left == []
