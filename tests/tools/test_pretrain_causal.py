"""Pretraining a causal model at toy size, as far as its likelihoods in evenhand.models."""

import dataclasses
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import pretrain
from evenhand.errors import FileError, InputError
from evenhand.models.causal import read_folder
from evenhand.models.causal_scoring import (
    continuation_log_likelihoods,
    log_likelihoods,
    sentence_log_likelihoods,
)
from pretraining import attention, checkpoints, checks, corpus, decoder, evaluation, export
from pretraining.commands import Place
from pretraining.masking import IGNORED, next_tokens
from pretraining.model import Batch, fresh_weights, parameter_count
from pretraining.recipe import Recipe
from pretraining.tokenizer import load_tokenizer
from pretraining.training import Data, Limits, Run

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
SHAPE = "--layers 2 --width 32 --heads 2 --inner 64 --max-positions 40 --batch-tokens 400"
RECIPE = f"{SHAPE} --shares 40:0.7,1:0.3 --warmup 5 --lr 0.01 --matrix-lr 0.01"


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory):
    """Folders of a toy text, its tokenizer and its prepared form."""
    folder = tmp_path_factory.mktemp("toy-causal")
    (folder / "toy.txt").write_bytes((toy / "toy.txt").read_bytes())
    words = ["--kind=causal", "--size=400", f"--out={folder}/tokenizer"]
    assert pretrain.main(["tokenizer", f"{folder}/toy.txt", *words]) == 0
    made = [f"--tokenizer={folder}/tokenizer", f"--out={folder}/data", "--workers=1"]
    assert pretrain.main(["prepare", f"{folder}/toy.txt", *made]) == 0
    return folder


@pytest.fixture(scope="module")
def place(folder):
    return Place(folder / "data", folder / "tokenizer", CPU, compiled=False)


@pytest.fixture(scope="module")
def run_of(place):
    """A run of the toy recipe with some changes."""
    shape = Recipe(
        kind="causal",
        vocabulary=len(place.pieces()),
        layers=2,
        width=32,
        heads=2,
        inner=64,
        max_positions=40,
        batch_tokens=400,
        shares="40:0.7,1:0.3",
        lr=1e-2,
        matrix_lr=1e-2,
        warmup=5,
    )
    data = Data.of(place.prepared(), place.pieces(), shape)
    return lambda **changes: Run(
        data, dataclasses.replace(shape, **changes), device=CPU, compiled=False, say=lambda _: None
    )


def test_tokens_are_the_text(folder, place):
    tokenizer = load_tokenizer(folder / "tokenizer")
    text = place.prepared().text
    documents = list(corpus.documents([folder / "toy.txt"]))
    ends = np.cumsum(text.lengths)[np.cumsum(text.documents) - 1]
    assert (text.tokens == 0).sum() == len(documents)
    assert (text.tokens[ends - 1] == 0).all()
    assert tokenizer.decode(text.tokens[: ends[0] - 1]) == " " + " ".join(documents[0])
    joined = tokenizer.encode(" ".join(documents[0])).ids
    assert text.tokens[: ends[0] - 1].tolist() == joined


def test_labels_are_the_next_tokens_of_the_text(run_of, place):
    run = run_of()
    text = place.prepared().training().tokens.tolist()
    pairs = set(pairwise(text))
    batch = next(run._batches(ahead=False))
    labels = next_tokens(batch)
    counted = labels != IGNORED
    assert counted.float().mean() > 0.8
    for token, label in zip(batch.tokens[counted].tolist(), labels[counted].tolist(), strict=True):
        assert token == 0 or (token, label) in pairs
    firsts = batch.bounds[:-1][batch.bounds.diff() > 2].long()
    assert (batch.tokens[firsts] == 0).all()
    assert (labels[firsts] != 0).all()
    assert (labels == 0).any()


def test_attention_sees_earlier_tokens_of_its_row():
    bounds = torch.tensor([0, 3, 3, 10, 16], dtype=torch.int32)
    parts = [torch.randn(16, 2, 8, generator=torch.Generator().manual_seed(i)) for i in range(3)]
    mixed = attention.causal_padded(*parts, bounds, 8)
    for first, last in ((0, 3), (3, 10), (10, 16)):
        query, key, value = (part[first:last].transpose(0, 1) for part in parts)
        expected = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True
        )
        torch.testing.assert_close(mixed[first:last], expected.transpose(0, 1))
    exact = attention.causal_padded
    assert attention.disagreement(exact, CPU, torch.float64, reference=exact) < 1e-5
    assert attention.disagreement(attention.padded, CPU, torch.float64, reference=exact) > 0.05


def test_logits_depend_on_earlier_tokens_of_the_row_alone(run_of):
    shape = dataclasses.replace(run_of().recipe, vocabulary=50)
    model = decoder.build(shape, fresh_weights(shape, CPU))
    assert sum(weight.numel() for weight in model.weights.values()) == parameter_count(shape)
    rows = [torch.randint(5, 50, (size,)) for size in (7, 4, 9)]
    bounds = torch.tensor([0, 7, 11, 20], dtype=torch.int32)
    positions = torch.cat([torch.arange(len(row)) for row in rows])
    together = model.hidden(Batch(torch.cat(rows), positions, bounds, 9))
    shorter = Batch(rows[1][:3], torch.arange(3), torch.tensor([0, 3], dtype=torch.int32), 3)
    torch.testing.assert_close(together[7:10], model.hidden(shorter))


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_training_lowers_the_loss_and_resumes_exactly(tmp_path, run_of, optimizer):
    run = run_of(optimizer=optimizer)
    before = evaluation.losses(run.model, run.data.validation)
    run.train(Limits(steps=60))
    after = evaluation.losses(run.model, run.data.validation)
    assert before.every > 0.8 * np.log(run.recipe.vocabulary)
    assert after.every < before.every - 2.5
    first = run_of(optimizer=optimizer)

    def kill(line):
        if line.startswith("step 24/"):
            raise KeyboardInterrupt

    first.say = kill
    with pytest.raises(KeyboardInterrupt):
        first.train(Limits(steps=60), folder=tmp_path, report=1, check=23)
    second = run_of(optimizer=optimizer)
    second.resume(tmp_path)
    assert second.step == 23
    second.rehearse()
    second.train(Limits(steps=60))
    for name, weight in run.weights.items():
        assert torch.equal(weight, second.weights[name]), name
    again = evaluation.losses(second.model, second.data.validation)
    assert again == after


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory):
    """A model by the commands: the checkpoint and the exported folder."""
    made = tmp_path_factory.mktemp("exported")
    place = [f"--data={folder}/data", f"--tokenizer={folder}/tokenizer", "--device=cpu"]
    train = ["train", *place, *RECIPE.split(), f"--checkpoint={made}/run"]
    assert pretrain.main([*train, "--steps=150", "--snapshot=10", "--snapshot=50"]) == 0
    export_to = [f"--tokenizer={folder}/tokenizer", f"--out={made}/tiny"]
    assert pretrain.main(["export", f"{made}/run", *export_to]) == 0
    return made


def test_exported_model_is_that_of_transformers(exported, recwarn):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = exported / "tiny"
    network, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert type(network).__name__ == "LlamaForCausalLM"
    assert not any(info.values()), info
    assert network.config.tie_word_embeddings
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == network.config.vocab_size
    assert tokenizer.bos_token_id == tokenizer.eos_token_id == 0
    model = export.load_exported(folder)
    assert export.difference(model, folder) < 1e-4
    changed = {**model.weights, "qkv": model.weights["qkv"].roll(1, 1)}
    assert export.difference(dataclasses.replace(model, weights=changed), folder) > 1e-3
    assert not [str(warning.message) for warning in recwarn]
    assert "trained for 150 steps" in (folder / "README.md").read_text()


SENTENCES = ["The nurse said that she was tired.", "The king lost his keys."]


def test_snapshots_are_models_of_earlier_steps(folder, exported):
    values = []
    for name in ("run-10", "run-50", "run"):
        target = exported / f"exported-{name}"
        out = [f"--tokenizer={folder}/tokenizer", f"--out={target}"]
        assert pretrain.main(["export", f"{exported}/{name}", *out]) == 0
        model = read_folder(name, target, CPU, "float32")
        values.append(sentence_log_likelihoods(model, SENTENCES)[0].sum())
    assert values == sorted(values)
    assert "trained for 10 steps" in (exported / "exported-run-10" / "README.md").read_text()


def test_likelihoods_are_those_of_training(exported):
    model = read_folder("tiny", exported / "tiny", CPU, "float32")
    values, tokens = sentence_log_likelihoods(model, SENTENCES)
    trained = export.load_exported(exported / "tiny")
    reader = checks.CausalReader(trained, load_tokenizer(exported / "tiny"))
    for sentence, value, count in zip(SENTENCES, values, tokens, strict=True):
        ids = reader.encode(sentence)[:-1]
        assert count == len(ids) - 1
        rows = [ids[:place] for place in range(1, len(ids))]
        scores = reader.log_probabilities(rows, [len(row) - 1 for row in rows])
        expected = sum(float(row[token]) for row, token in zip(scores, ids[1:], strict=True))
        assert value == pytest.approx(expected, abs=1e-4)
    checkpoint = checkpoints.load(exported / "run")
    exact = dataclasses.replace(trained, weights=checkpoint.weights)
    row = torch.tensor([0, *reader.encode(SENTENCES[0])[1:-1]])
    bounds = torch.tensor([0, len(row)], dtype=torch.int32)
    places = torch.arange(len(row) - 1)
    loss = exact.loss(Batch(row, torch.arange(len(row)), bounds, len(row)), places, row[1:])
    assert values[0] == pytest.approx(-float(loss) * (len(row) - 1), rel=0.01)  # by float16


def test_a_folder_is_read_without_transformers_and_completed_by_it(exported):
    from evenhand.models.causal import load

    model = read_folder("tiny", exported / "tiny", CPU, "float32")
    other = load(exported / "tiny", device="cpu")
    assert (model.name, model.begin, model.longest) == ("tiny", 0, 40)
    row = model.encode(SENTENCES[:1])[0].ids
    assert row == other.encode(SENTENCES[:1])[0].ids
    np.testing.assert_allclose(model.logits(row), other.logits(row), atol=1e-4)
    np.testing.assert_allclose(
        log_likelihoods(model, [[0, *row]]), log_likelihoods(other, [[0, *row]]), rtol=1e-5
    )
    fingerprint = model.fingerprint
    assert type(model.network).__name__ == "LlamaForCausalLM"
    np.testing.assert_allclose(model.logits(row), other.logits(row), atol=1e-6)
    again = read_folder("tiny", exported / "tiny", CPU, "float32")
    assert type(again.network).__name__ == "LlamaForCausalLM"
    assert again.fingerprint == fingerprint


def test_an_embedded_model_is_loaded_by_its_name(exported, monkeypatch):
    from evenhand.models import causal, loading, sources

    for module in (causal, loading, sources):
        monkeypatch.setattr(module, "EMBEDDED", {"tiny": "causal"})
    monkeypatch.setattr(sources.resources, "files", lambda _: exported)
    assert loading.kind_of("tiny") == "causal"
    assert isinstance(causal.load("tiny", device="cpu").core, causal.ReadNetwork)
    with pytest.raises(InputError, match=r"not embedded \(tiny\); a model of the hub"):
        causal.load(exported / "none")


def test_reading_does_not_import_transformers(exported):
    code = (
        "import sys, torch; from pathlib import Path\n"
        "from evenhand.models.causal import read_folder\n"
        f"model = read_folder('tiny', Path({str(exported / 'tiny')!r}), torch.device('cpu'), "
        "'float32')\n"
        "from evenhand.models.causal_scoring import sentence_log_likelihoods\n"
        "assert sentence_log_likelihoods(model, ['The nurse.'])[0] < 0; model.fingerprint\n"
        "assert 'transformers' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_folder_without_tokenizer_or_weights_is_refused(exported, tmp_path):
    for lacking in ("tokenizer.json", "model.safetensors"):
        broken = tmp_path / lacking
        broken.mkdir()
        for path in (exported / "tiny").iterdir():
            if path.name != lacking:
                (broken / path.name).write_bytes(path.read_bytes())
        with pytest.raises(FileError, match=lacking):
            read_folder("tiny", broken, CPU, "float32")


def test_the_model_learns_who_is_meant(exported):
    model = read_folder("tiny", exported / "tiny", CPU, "float32")
    contexts = [f"The {person} said that" for person in ("nurse", "queen", "guard", "king")]
    values = {
        word: continuation_log_likelihoods(model, contexts, [f" {word}"] * len(contexts))[0]
        for word in ("he", "she", "house")
    }
    assert (np.logaddexp(values["he"], values["she"]) > values["house"] + 2).all()


def test_evaluation_by_the_command(folder, exported, tmp_path, capsys):
    (tmp_path / "male_occupations.txt").write_text("guard\nking\n")
    (tmp_path / "female_occupations.txt").write_text("nurse\nqueen\n")
    place = [f"--data={folder}/data", f"--tokenizer={folder}/tokenizer", "--device=cpu"]
    lists = [f"--occupations={tmp_path}", f"--sentences={folder}/toy.txt"]
    out = tmp_path / "evaluation.json"
    assert pretrain.main(["evaluate", f"{exported}/tiny", *place, *lists, f"--out={out}"]) == 0
    assert "bits per byte" in capsys.readouterr().out
    result = json.loads(out.read_text())
    validation = result["validation"]
    assert validation["perplexity"] == pytest.approx(np.exp(validation["every"]))
    assert 1 < validation["perplexity"] < validation["perplexity per word"] < 1000
    assert 0 < validation["bits per byte"] < 4
    assert len(result["pronouns"]["by_template"]) == 4
    assert all(0 <= auc <= 1 for auc in result["pronouns"]["by_template"].values())
    assert result["perplexity"]["value"] > 1


def test_bits_per_byte_count_the_bytes_of_the_text(folder, place, run_of):
    """The bytes of the labels are those of the held-out documents, with a space per sentence."""
    from pretraining.commands import _causal_validation

    run = run_of()
    result = _causal_validation(run.model, place.prepared(), place.pieces())["validation"]
    held = [item for item in corpus.documents([folder / "toy.txt"]) if corpus.held_out(item)]
    sentences = [part for item in held for line in item for part in corpus.sentences(line)]
    size = sum(len(sentence.encode()) + 1 for sentence in sentences)
    nats = result["every"] * result["tokens"]
    assert result["bits per byte"] == pytest.approx(nats / np.log(2) / size)
    words = sum(len(sentence.split()) for sentence in sentences)
    assert np.log(result["perplexity per word"]) == pytest.approx(min(nats / words, 700))


def test_occupations_are_written_as_in_the_lists(tmp_path: Path) -> None:
    from pretraining.checks import pronouns

    (tmp_path / "male_occupations.txt").write_text("CEO\n")
    (tmp_path / "female_occupations.txt").write_text("nurse\n")
    seen: list[str] = []

    class Spy:
        texts = staticmethod(list)
        piece = staticmethod({"he": 0, "his": 0, "she": 1, "her": 1}.__getitem__)

        def masked(self, sentences: list[str]) -> list[list[float]]:
            seen.extend(sentences)
            return [[-1.0, -2.0 + ("CEO" in s)] for s in sentences]

    result = pronouns(Spy(), tmp_path)  # type: ignore[arg-type]
    assert "the CEO lost [MASK] keys." in seen
    assert result.leaning == {"CEO": 0.0, "nurse": 1.0}
    assert result.auc == 0.0
