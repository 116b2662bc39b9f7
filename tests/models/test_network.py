"""Models read without transformers: the same numbers, ids and limits as with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
import torch
from small_models import FAMILIES, made
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    CamembertConfig,
    CamembertForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

import evenhand as eh
from evenhand.models.masked_scoring import MaskedPosition, log_probs
from evenhand.models.network import MaskedNetwork, parameters_of, read_network
from evenhand.models.tokenizer import Tokenizer, read_tokenizer

MINI = resources.files("evenhand.assets") / "mini"
TEXTS = [
    "",
    "The nurse said that he was late.",
    "  A teacher\treads\n\nto her ;  again ",
    "Zoë's naïve café (ÀÉÎ) — 東京 😀 e\u0301 \u200b x" * 3,
    "unbelievablyunknownwordofmanyletters" * 10,
    "[MASK] <mask> [CLS] <s> [UNK]",
]


def agree(folder, dtype="float32", tolerance=1e-5):
    """Check that a folder is read without transformers, with the numbers of its own network."""
    model = eh.models.load(folder, dtype=dtype, device="cpu")
    assert isinstance(model.core, MaskedNetwork)
    network = AutoModelForMaskedLM.from_pretrained(folder).eval()
    size, padding = network.config.vocab_size, network.config.pad_token_id
    rng = np.random.default_rng(0)
    rows = [tuple(rng.integers(size, size=n).tolist()) for n in (3, 7, 7, 12, 1)]
    rows.append((5, padding, 6, padding, 7))
    queries = [MaskedPosition(row, len(row) // 2) for row in rows]
    result = log_probs(model, queries, range(size))
    with torch.no_grad():
        for query, values in zip(queries, result, strict=True):
            logits = network(input_ids=torch.tensor([query.ids])).logits[0, query.position]
            expected = torch.log_softmax(logits.double(), dim=-1).numpy()
            assert np.abs(values - expected).max() < tolerance
    weights = {name for name, _ in parameters_of(network)}
    assert {name for name, _ in parameters_of(model.core)} == weights
    assert model.longest == eh.models.MaskedModel("x", network, model.tokenizer).longest


def test_every_family(family):
    agree(family)


@pytest.mark.parametrize(
    ("config", "kind"),
    [(CamembertConfig, CamembertForMaskedLM), (XLMRobertaConfig, XLMRobertaForMaskedLM)],
)
def test_relatives_of_roberta(tmp_path, config, kind):
    tokenizer, _ = made("roberta")
    torch.manual_seed(3)
    settings = config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.3,
    )
    kind(settings).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    agree(tmp_path)


def test_mini():
    agree(MINI, tolerance=2e-4)  # rows of random tokens have log probabilities of -25
    agree(MINI, "bfloat16", tolerance=2.0)


def check_tokenizer(folder, family):
    own, expected = read_tokenizer(folder, family), AutoTokenizer.from_pretrained(folder)
    assert isinstance(own, Tokenizer)
    for text in TEXTS:
        coded = expected(text, return_offsets_mapping=True)
        result = own.backend_tokenizer.encode(text)
        assert result.ids == coded["input_ids"] == own(text)["input_ids"]
        assert result.offsets == coded["offset_mapping"]
        assert result.word_ids == coded.word_ids()
        cut = expected(text, truncation=True, max_length=9)["input_ids"]
        assert own(text, truncation=True, max_length=9)["input_ids"] == cut
        bare = expected(text, add_special_tokens=False)["input_ids"]
        assert own(text, add_special_tokens=False)["input_ids"] == bare
    assert own(TEXTS)["input_ids"] == expected(TEXTS)["input_ids"]
    for name in ("mask", "unk", "pad", "cls", "sep"):
        assert getattr(own, f"{name}_token") == getattr(expected, f"{name}_token")
        assert getattr(own, f"{name}_token_id") == getattr(expected, f"{name}_token_id")
    assert set(own.all_special_ids) == set(expected.all_special_ids)
    assert own.model_max_length == expected.model_max_length
    assert len(own) == len(expected)
    assert own.get_vocab() == expected.get_vocab()
    tokens = ["he", "nothing like it", expected.mask_token]
    assert own.convert_tokens_to_ids(tokens) == expected.convert_tokens_to_ids(tokens)
    assert own.convert_ids_to_tokens([5, 6]) == expected.convert_ids_to_tokens([5, 6])
    # the rest is that of transformers
    assert own.decode([5, 6]) == expected.decode([5, 6])
    own.add_tokens(["Newword"])
    assert len(own) == len(expected) + 1


def test_tokenizers(family):
    check_tokenizer(family, "bert")


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", ["BertTokenizer", "BertTokenizerFast", "ElectraTokenizer", None])
def test_tokenizers_of_bert(tmp_path, lower, name):
    content = json.loads((MINI / "tokenizer.json").read_text())
    content["normalizer"]["lowercase"] = lower
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    shutil.copy(MINI / "config.json", tmp_path)
    settings = {"do_lower_case": lower, "model_max_length": 128}
    if name is not None:
        settings["tokenizer_class"] = name
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    check_tokenizer(tmp_path, "bert")


def test_settings_that_contradict_the_tokenizer_are_left_to_transformers(tmp_path):
    shutil.copytree(MINI, tmp_path / "model")
    path = tmp_path / "model/tokenizer_config.json"
    settings = json.loads(path.read_text())
    for change in (
        {"do_lower_case": False},
        {"tokenizer_class": "RobertaTokenizer"},
        {"extra_special_tokens": ["<a>"]},
        {"mask_token": "[BLANK]"},
        {"something": 1},
    ):
        path.write_text(json.dumps(settings | change))
        assert read_tokenizer(tmp_path / "model", "bert") is None
    path.write_text(json.dumps(settings | {"do_lower_case": False}))
    model = eh.models.load(tmp_path / "model")
    assert (
        model.tokenizer("The")["input_ids"] != eh.models.load("mini").tokenizer("The")["input_ids"]
    )


def test_what_is_not_as_expected_is_left_to_transformers(family, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(family, folder)
    path = folder / "config.json"
    settings = json.loads(path.read_text())
    assert read_network(folder, torch.float32) is not None
    changes = [
        {"vocab_size": settings["vocab_size"] + 1},
        {"max_position_embeddings": 10},
        {"tie_word_embeddings": False},
        {"is_decoder": True},
        {"quantization_config": {}},
        {"model_type": "mpnet"},
    ]
    for change in changes:
        path.write_text(json.dumps(settings | change))
        assert read_network(folder, torch.float32) is None


def test_the_network_of_transformers_replaces_the_one_that_was_read(family):
    model = eh.models.load(family)
    query = [MaskedPosition((2, 5, 9, 3), 2)]
    before, fingerprint = log_probs(model, query, [5, 6]), model.fingerprint
    assert model.network is model.network is model.core
    assert model.fingerprint == fingerprint
    assert np.allclose(log_probs(model, query, [5, 6]), before, atol=1e-6)
    model.network.config.layer_norm_eps = 0.5
    assert model.fingerprint != fingerprint
    with torch.no_grad():
        next(model.network.parameters()).mul_(2)
    assert np.abs(log_probs(model, query, [5, 6]) - before).max() > 1e-4


def test_a_sentence_is_scored_without_transformers(tmp_path):
    """All families in one process: starting one costs more than the sentence."""
    for name in FAMILIES:
        tokenizer, network = made(name)
        network.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    (tmp_path / "sentences.txt").write_text("The nurse said that [MASK] was late.\n")
    code = (
        "import sys; from evenhand.cli import run\n"
        "for name in sys.argv[1:]:\n"
        "    code = run(['measure', 'pronouns', name, '--data', 'sentences.txt', '--json'])\n"
        "    assert 'transformers' not in sys.modules, name\n"
        "    print(name, code, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *FAMILIES],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    for name in FAMILIES:
        # the smallest tokenizers lack a pronoun
        unfit = f"{name} 2" in lines and "single pieces" in lines[lines.index(f"{name} 2") - 1]
        assert unfit or f"{name} 0" in lines, done.stderr
