"""Pretraining at toy size: the model, training, resuming, export, the commands."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

import pretrain
from evenhand.errors import InputError
from pretraining import (
    attention,
    checkpoints,
    checks,
    evaluation,
    export,
    model,
    optimizers,
    prepared,
    training,
)
from pretraining.training import Limits

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


# --- model


def test_padded_attention_is_attention_row_by_row():
    bounds = torch.tensor([0, 3, 3, 10, 16], dtype=torch.int32)
    parts = [torch.randn(16, 2, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    found = attention.padded(*parts, bounds, 8)
    for first, last in ((0, 3), (3, 10), (10, 16)):
        query, key, value = (part[first:last].transpose(0, 1) for part in parts)
        weights = (query @ key.mT / 8**0.5).softmax(-1)
        torch.testing.assert_close(found[first:last], (weights @ value).transpose(0, 1))
    assert attention.disagreement(attention.padded, CPU, torch.float64) < 1e-5
    worse = lambda q, k, v, bounds, longest: attention.padded(q, k, v + 0.1, bounds, longest)  # noqa: E731
    assert attention.disagreement(worse, CPU, torch.float64) > 0.05


def test_orthogonal_updates():
    stack = torch.randn(3, 16, 40, generator=torch.Generator().manual_seed(0))
    for matrix in (stack, stack.mT):
        values = torch.linalg.svdvals(optimizers.orthogonal(matrix))
        assert values.min() > 0.5
        assert values.max() < 1.5


def test_logits_do_not_depend_on_the_neighbours(recipe):
    shape = recipe(vocabulary=50)
    toy_model = model.Model(shape, model.fresh_weights(shape, CPU))
    rows = [torch.randint(5, 50, (size,)) for size in (7, 4, 9)]
    bounds = torch.tensor([0, 7, 11, 20], dtype=torch.int32)
    positions = torch.cat([torch.arange(len(row)) for row in rows])
    together = toy_model.hidden(model.Batch(torch.cat(rows), positions, bounds, 9))
    alone = model.Batch(rows[1], torch.arange(4), torch.tensor([0, 4], dtype=torch.int32), 4)
    torch.testing.assert_close(together[7:11], toy_model.hidden(alone))


# --- training


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_training_lowers_the_loss(data, pieces, optimizer, run_of):
    run = run_of(optimizer=optimizer)
    before = evaluation.losses(run.model, data.validation)
    outcome = run.train(Limits(steps=60), report=20)
    after = evaluation.losses(run.model, data.validation)
    assert outcome.finished
    assert before.full > 0.8 * np.log(len(pieces))
    assert after.every < before.every - 1.5
    assert outcome.loss < before.every - 1.5


def test_training_learns_who_is_meant(toy, run_of):
    run = run_of(matrix_lr=0.03)
    run.train(Limits(steps=150))
    reader = checks.Reader(run.model, pretrain.tokenizer.load_tokenizer(toy / "tokenizer"))
    scores = reader.masked(["The guard said that [MASK] was tired."])[0]
    likely = scores.topk(2).indices.tolist()
    assert set(likely) == {reader.piece("he"), reader.piece("she")}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_killed_and_resumed_run_has_the_same_weights(tmp_path, optimizer, run_of):
    whole = run_of(optimizer=optimizer)
    whole.train(Limits(steps=40))

    def kill(line):
        if line.startswith("step 24/"):
            raise KeyboardInterrupt

    first = run_of(optimizer=optimizer)
    first.say = kill
    with pytest.raises(KeyboardInterrupt):
        first.train(Limits(steps=40), folder=tmp_path, report=1, check=23)
    second = run_of(optimizer=optimizer)
    second.resume(tmp_path)
    assert second.step == 23
    second.rehearse()
    second.train(Limits(steps=40))
    for name, weight in whole.weights.items():
        assert torch.equal(weight, second.weights[name]), name


class Clock:
    """A clock that goes on by as much whenever it is read, however busy the machine."""

    def __init__(self):
        self.now = 0.0

    def time(self):
        self.now += 0.01
        return self.now


def test_time_limit_stops_and_fits_the_steps(run_of, monkeypatch):
    monkeypatch.setattr(training, "time", Clock())
    run = run_of()
    outcome = run.train(Limits(deadline=3))
    assert outcome.step > 40
    assert abs(outcome.steps - outcome.step) <= 0.5 * outcome.step


def test_checkpoint_kinds(tmp_path, monkeypatch, run_of):
    run = run_of()
    run.train(Limits(steps=3))
    monkeypatch.setattr(checkpoints, "PART", 10_000)
    for kind, tolerance in (("full", 0), ("compact", 1e-3), ("weights", 1e-3)):
        checkpoints.save(run.checkpoint(), tmp_path / kind, kind)
        assert len(list((tmp_path / kind).glob("*.safetensors"))) > 3
        kept = checkpoints.load(tmp_path / kind)
        for name, weight in run.weights.items():
            torch.testing.assert_close(
                kept.weights[name], weight.detach(), atol=1e-6, rtol=tolerance
            )
    other = run_of()
    other.resume(tmp_path / "compact")
    assert other.train(Limits(steps=6)).finished
    with pytest.raises(InputError, match="got only weights"):
        other.resume(tmp_path / "weights")
    with pytest.raises(InputError, match="expected the recipe"):
        run_of(lr=1.0).resume(tmp_path / "full")


# --- the commands, to the exported model


def test_from_train_to_export_by_the_commands(toy, tmp_path, capsys, recwarn):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    words, made = toy / "tokenizer", tmp_path / "mini"
    place = ["--data", f"{toy}/data", "--tokenizer", str(words), "--device", "cpu"]
    shape = "--layers 2 --width 32 --heads 2 --inner 64 --max-positions 64 --batch-tokens 512"
    shape = [*shape.split(), "--shares", "64:0.6,1:0.4", "--warmup", "5"]
    train = [
        "train",
        *place,
        *shape,
        "--checkpoint",
        f"{tmp_path}/run",
        "--carry",
        f"{tmp_path}/back",
    ]
    assert pretrain.main([*train, "--steps", "30", "--minutes", "-1"]) == 0
    assert "to be continued: step 0" in capsys.readouterr().out
    assert pretrain.main([*train, "--steps", "30"]) == 0
    text = capsys.readouterr().out
    assert "going on from step 0" in text
    assert "finished: step 30 of 30" in text

    assert (
        pretrain.main(["export", f"{tmp_path}/back", f"--tokenizer={words}", f"--out={made}"]) == 0
    )
    loaded, info = AutoModelForMaskedLM.from_pretrained(made, output_loading_info=True)
    assert not any(info.values()), info
    assert loaded.dtype == torch.float32
    assert loaded.config.tie_word_embeddings
    assert len(AutoTokenizer.from_pretrained(made)) == loaded.config.vocab_size
    exported = export.load_exported(made)
    assert export.difference(exported, made) < 1e-5
    changed = {**exported.weights, "qkv": exported.weights["qkv"].roll(1, 1)}
    assert export.difference(dataclasses.replace(exported, weights=changed), made) > 1e-3
    broken = {**exported.weights, "qkv": exported.weights["qkv"] * float("nan")}
    assert math.isnan(export.difference(dataclasses.replace(exported, weights=broken), made))
    assert not [str(warning.message) for warning in recwarn]

    (tmp_path / "male_occupations.txt").write_text("guard\nking\n")
    (tmp_path / "female_occupations.txt").write_text("nurse\nqueen\n")
    lists = ["--occupations", str(tmp_path), "--sentences", str(toy / "toy.txt")]
    out = tmp_path / "evaluation.json"
    assert pretrain.main(["evaluate", str(made), *place, *lists, f"--out={out}", "--draws=1"]) == 0
    document = json.loads(out.read_text())
    assert document["validation, 80/10/10"]["every"] < np.log(loaded.config.vocab_size)
    assert 0 <= document["pronouns"]["auc"] <= 1


def test_probe_prints_one_table(toy, capsys):
    place = ["--data", f"{toy}/data", "--tokenizer", f"{toy}/tokenizer", "--device", "cpu"]
    shape = "--width 32 --heads 2 --inner 64 --max-positions 64 --batch-tokens 512 --shares 64:1"
    grid = ["--setting=layers=1,lr=0.01", "--setting=layers=2,optimizer=adamw", "--seconds=1"]
    assert pretrain.main(["probe", *place, *shape.split(), *grid]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert lines[0].split()[0] == "validation"
    assert float(lines[1].split()[0]) <= float(lines[2].split()[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--optimizer", "sgd"], "unknown optimizer 'sgd'"),
        (["--shares", "128:0.5"], "shares: expected limit:part"),
        (["--heads", "3"], "width: expected a multiple of 3 heads"),
        ([], "expected a number of steps or of minutes"),
    ],
)
def test_bad_input_gets_one_line(toy, tmp_path, capsys, arguments, message):
    place = ["--data", f"{toy}/data", "--tokenizer", f"{toy}/tokenizer"]
    assert pretrain.main(["train", *place, f"--checkpoint={tmp_path}", *arguments]) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert message in text
    assert text.count("\n") == 1


def test_missing_or_broken_files_get_one_line(tmp_path, capsys):
    assert pretrain.main(["tokenizer", f"{tmp_path}/none.txt", f"--out={tmp_path}"]) == 2
    assert "none.txt: expected running text" in capsys.readouterr().err
    (tmp_path / "bad.tokens.xz").write_bytes(b"bad")
    with pytest.raises(InputError, match="expected a prepared text"):
        prepared.load([tmp_path / "bad.tokens.xz"])
