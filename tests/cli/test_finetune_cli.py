"""`evenhand finetune`: one command from text to a model and what it changed."""

import bz2
import json
import os

import pytest
import torch
from cli_shell import failure, output
from transformers import BertConfig, BertForMaskedLM

from evenhand.cli import run
from evenhand.models import load

PEOPLE = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge", "coach", "singer")
PLACES = ("at the door", "in the hall", "by the car", "on the stage", "near the shop")
TEXT = [
    f"The {who} {act} {word} {thing} {place}."
    for who in PEOPLE
    for act, thing in (("raises", "arm"), ("drops", "hat"))
    for word in ("his", "her")
    for place in PLACES
]
QUICK = ("--model", "small", "--max-tokens", "1500", "--max-length", "64", "--evaluations", "2")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small random model with the tokenizer of mini."""
    folder = tmp_path_factory.mktemp("models") / "small"
    tokenizer = load("mini").tokenizer
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def text(tmp_path, monkeypatch, small):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").symlink_to(small)
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    (tmp_path / "masked.txt").write_text(
        "".join(f"The {who} opens [MASK] book.\n" for who in PEOPLE)
    )
    return tmp_path


def test_one_command_trains_measures_and_draws(text, capsys):
    printed = json.loads(output(capsys, "finetune", "text.txt", "-o", "even", *QUICK, "--json"))
    assert printed == json.loads((text / "even" / "results.json").read_text())
    assert printed["data"]["documents_read"] == len(TEXT)
    assert printed["data"]["sentences"] >= 10  # the structural filter on the held-out lines
    names = [change["query"] for change in printed["changes"]]
    scores = ["mean bias", "mean |bias - .5|", "mean bias, top 10", "mean |bias - .5|, top 10"]
    both = [name for score in scores for name in (score, f"{score}, built-in sentences")]
    assert names == [*both, "pseudo-perplexity"]
    for change in printed["changes"]:
        if not change["paired"]:  # a random model may have no gender word in its top 10
            assert change["change"]["value"] is None
            continue
        assert change["change"]["low"] <= change["change"]["value"] <= change["change"]["high"]
    figures = sorted(path.name for path in (text / "even" / "figures").iterdir())
    assert figures == ["bias.svg", "loss.svg"]
    drawn = (text / "even" / "figures" / "loss.svg").read_text()
    assert "training" in drawn
    assert "evaluation" in drawn
    record = json.loads((text / "even" / "run.json").read_text())
    assert len(record["inputs"]["text.txt"]) == 64
    assert record["versions"]["torch"]
    shown = output(capsys, "finetune", "text.txt", "-o", "even", *QUICK)
    assert "pseudo-perplexity" in shown
    assert "120 built-in sentences, which are of another kind" in shown
    assert "on held-out sentences of the training text" in shown
    assert "on sentences of another kind (built-in)" in shown
    assert f"{printed['training']['steps']:,} steps" in shown
    score = output(
        capsys,
        "measure",
        "pronouns",
        "even/model",
        "--data",
        "masked.txt",
        "--json",
    )
    assert json.loads(score)["measurements"][0]["subject"] == "even/model"


def test_records_packed_files_and_given_sentences(text, capsys):
    lines = "".join(json.dumps({"sentence": line}) + "\n" for line in TEXT)
    (text / "made.jsonl.bz2").write_bytes(bz2.compress(lines.encode()))
    (text / "pairs.csv").write_text(
        ",sent_more,sent_less,stereo_antistereo,bias_type\n"
        "0,Women cannot drive.,Men cannot drive.,stereo,gender\n"
        "1,The men fixed it.,The women fixed it.,antistereo,gender\n"
    )
    printed = json.loads(
        output(
            capsys, "finetune", "made.jsonl.bz2", "--text", "sentence", "--rewrite",
            "swap", "--sentences", "masked.txt", "--crows", "pairs.csv",
            "--control-training", *QUICK, "--json",
        )
    )  # fmt: skip
    assert printed["data"]["sentences"] == len(PEOPLE)
    assert printed["changes"][-1]["query"] == "CrowS stereotype share"
    assert printed["crows"]["details"]["unpaired"] == 0
    assert printed["data"]["pairs"] == 2
    assert printed["crows"]["before"]["notes"]
    assert len(printed["against_control"]) == len(printed["changes"])
    assert (text / "finetuned" / "control" / "model" / "model.safetensors").is_file()


def test_a_pipe_is_read_once(text, capsys):
    """As the shell's <(…) gives it; what was read to be hashed could not be read again."""
    reading, writing = os.pipe()
    os.write(writing, (text / "text.txt").read_bytes())
    os.close(writing)
    pipe = f"/dev/fd/{reading}"
    printed = output(capsys, "finetune", pipe, "--sentences", "masked.txt", *QUICK, "--json")
    os.close(reading)
    assert json.loads(printed)["data"]["documents_read"] == len(TEXT)
    inputs = json.loads((text / "finetuned" / "run.json").read_text())["inputs"]
    assert inputs[pipe.rpartition("/")[2]] is None
    assert len(inputs["masked.txt"]) == 64


def test_tuning_alone(text, capsys):
    shown = output(
        capsys,
        *("finetune", "text.txt", *QUICK, "--no-measure"),
        *("--max-tokens", "0", "--epochs", "2"),
    )
    assert "evaluation loss" in shown
    assert "measured on" not in shown
    assert "all epochs done" in shown
    assert (text / "finetuned" / "figures" / "loss.svg").is_file()
    assert not (text / "finetuned" / "figures" / "bias.svg").exists()


def test_bad_input_is_one_line(text, capsys):
    assert "missing.txt" in failure(capsys, "finetune", "missing.txt")
    printed = failure(capsys, "finetune", "text.txt", "--rewrite", "swop")
    assert "'swop' is not one of" in printed
    printed = failure(capsys, "finetune", "text.txt", "--text", "x")
    assert "--text needs a file ending in" in printed
    (text / "few.txt").write_text("A cat sleeps.\nIt rains.\n")
    printed = failure(capsys, "finetune", "few.txt", *QUICK)
    assert "held-out text: expected 2 or more sentences for the perplexity" in printed
    (text / "bad.txt").write_text("No mask here.\n")
    printed = failure(capsys, "finetune", "text.txt", "--sentences", "bad.txt")
    assert "bad.txt, line 1: expected one [MASK]" in printed
    (text / "file").write_text("")
    assert "file" in failure(capsys, "finetune", "text.txt", "-o", "file")
    assert not (text / "finetuned").exists() or not any((text / "finetuned").glob("model*"))


def test_help_teaches(capsys):
    assert run(["finetune", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in (
        "--rewrite",
        "--max-tokens",
        "--control-training",
        "--crows",
        "--restart",
        "Examples:",
    ):
        assert option in shown
