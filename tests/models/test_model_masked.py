"""Loading by name, path and hub name; logits and embeddings against a plain padded call."""

import json
import socket
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

import evenhand as eh
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.models import base, load
from evenhand.models.masked import load as load_masked
from evenhand.models.sources import name_of
from evenhand.simulate.masked import bigram_model

WORDS = ["he", "she", "the", "nurse", "doctor", "sleeps", "reads", "a", "book", "."]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def saved(request, tmp_path_factory):
    """A small random model with a real tokenizer, saved on disk."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = bigram_model({word: {} for word in WORDS}).tokenizer
    torch.manual_seed(3)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "pad_token_id": 0,
    }
    if request.param == "bert":
        model = BertForMaskedLM(BertConfig(**shape, max_position_embeddings=12))
    else:
        model = RobertaForMaskedLM(RobertaConfig(**shape, max_position_embeddings=13))
    model.save_pretrained(folder)
    PreTrainedTokenizerFast.save_pretrained(tokenizer, folder)
    return folder


TEXTS = ["he sleeps", "the nurse reads a book .", "she", "a doctor sleeps", "the book"]


def test_mean_embedding_equals_a_padded_call(saved):
    """One padded batch with a mask, special tokens left out of the mean, done plainly."""
    model = eh.models.load(saved)
    batch = model.tokenizer(
        TEXTS, padding=True, return_tensors="pt", return_special_tokens_mask=True
    )
    special = batch.pop("special_tokens_mask").bool()
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        hidden = model.network.base_model(**batch).last_hidden_state
    kept = (~special & batch["attention_mask"].bool()).unsqueeze(-1)
    expected = (hidden * kept).sum(1) / kept.sum(1)
    assert np.allclose(model.embed(TEXTS), expected.numpy(), atol=1e-5)
    assert np.allclose(model.embed(TEXTS, pooling="cls"), hidden[:, 0].numpy(), atol=1e-5)


def test_batches_do_not_change_the_numbers(saved):
    model = eh.models.load(saved)
    one = model.embed(TEXTS, batch_size=1)
    assert np.allclose(one, model.embed(TEXTS, batch_size=3), atol=1e-6)
    assert np.allclose(one[::-1], model.embed(TEXTS[::-1]), atol=1e-6)


def test_long_and_empty_texts(saved):
    model = eh.models.load(saved)
    assert model.longest == 12
    made = model.embed(["book " * 50, "book " * 10, ""])
    assert np.allclose(made[0], made[1], atol=1e-6)
    assert np.isfinite(made).all()
    assert model.embed([]).shape == (0, 16)


def test_logits_are_the_models(saved):
    model = eh.models.load(saved)
    rows = [model.tokenizer(text)["input_ids"] for text in ("he [MASK]", "she [MASK]")]
    with torch.no_grad():
        expected = model.network(torch.tensor(rows)).logits[:, 2].numpy()
    assert np.allclose(model.logits(rows, [2, 2]), expected, atol=1e-5)
    with pytest.raises(InputError, match="rows of one length"):
        model.logits([[1, 2], [1, 2, 3]], [0, 0])


def test_dtype_and_device(saved):
    model = eh.models.load(saved, dtype="bfloat16", device="cpu")
    assert model.network.dtype == torch.bfloat16
    assert model.embed(["he"]).dtype == np.float32
    with pytest.raises(InputError, match="device: expected auto, cpu or cuda, got 'gpu'"):
        eh.models.load(saved, device="gpu")
    with pytest.raises(UnknownNameError, match="dtype"):
        eh.models.load(saved, dtype="float8")
    with pytest.raises(UnknownNameError, match="did you mean 'mean'"):
        eh.models.load(saved).embed(["he"], pooling="maen")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="'cuda' is not there"):
            eh.models.load(saved, device="cuda")


def test_what_is_not_a_model_is_named(tmp_path):
    with pytest.raises(InputError, match="no such folder or GGUF file, and not embedded"):
        eh.models.load("minni")
    with pytest.raises(FileError, match=r"expected config\.json"):
        eh.models.load(tmp_path)
    (tmp_path / "config.json").write_text("{ broken")
    with pytest.raises(FileError, match="not valid JSON"):
        eh.models.load(tmp_path)
    file = tmp_path / "model.bin"
    file.write_text("")
    with pytest.raises(FileError, match=r"or a \.gguf file, got a file"):
        eh.models.load(file)


def test_a_tokenizer_without_a_mask_is_refused(saved, tmp_path):
    import shutil

    folder = tmp_path / "maskless"
    shutil.copytree(saved, folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("mask_token", None)
    path.write_text(json.dumps(settings))
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    with pytest.raises(InputError, match="no mask token"):
        eh.models.load(folder)


def test_without_network_the_hub_error_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr("time.sleep", lambda _: None)  # the hub's library waits and retries
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"'hf:no/such-model': could not be had from the hub"):
        eh.models.load("hf:no/such-model")


def test_a_local_load_opens_no_connection(saved, monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    eh.models.load(saved)
    eh.models.load("mini")


def test_mini_loads_through_transformers_without_a_warning(capfd):
    from importlib import resources

    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = resources.files("evenhand.assets") / "mini"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, report = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    assert not any(report.values())
    assert model.dtype == torch.float32
    assert tokenizer.is_fast
    assert "warn" not in capfd.readouterr().err.lower()
    assert model.config.model_type == "bert"
    assert model.config.max_position_embeddings == 256
    assert tokenizer.tokenize("The Nurse SAID.") == ["the", "nurse", "said", "."]
    size = sum(entry.stat().st_size for entry in folder.iterdir())  # type: ignore[attr-defined]
    assert size < 25_000_000


def test_an_encoder_without_its_head_can_embed_and_not_be_asked(tmp_path):
    """Else its answers would come from random weights."""
    from evenhand.models.masked import load

    whole = load("mini")
    whole.network.base_model.save_pretrained(tmp_path)
    whole.tokenizer.save_pretrained(tmp_path)
    with pytest.raises(FileError, match="saved without its masked head"):
        load_masked(tmp_path)
    first, second = (load_masked(tmp_path, head=False) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    texts = ["she reads.", "he sings a song."]
    assert first.embed(texts) == pytest.approx(whole.embed(texts), abs=1e-6)


def test_the_fingerprint_is_computed_once_for_each_state_of_the_weights(monkeypatch):
    hashed: list[str] = []
    compute = base.hash_model

    def counted(*given):
        hashed.append(compute(*given))
        return hashed[-1]

    monkeypatch.setattr(base, "hash_model", counted)
    model = load("mini")
    assert model.fingerprint == model.fingerprint
    assert len(hashed) == 1
    weights = [weight for weight in model.network.parameters() if weight.requires_grad]
    hashed.clear()
    first = model.fingerprint
    assert [model.fingerprint, replace(model, name="other").fingerprint] == [first, first]
    assert len(hashed) == 1
    optimizer = torch.optim.AdamW(weights, lr=1e-3, fused=True)
    model.network(
        input_ids=torch.tensor([[2, 5, 3]]), labels=torch.tensor([[2, 5, 3]])
    ).loss.backward()
    optimizer.step()
    trained = model.fingerprint
    assert trained != first
    assert len(hashed) == 2
    model.network.load_state_dict(load("mini").network.state_dict())
    assert model.fingerprint == first
    model.tokenizer.add_tokens(["Newword"])
    assert model.fingerprint not in (first, trained)


def test_a_folder_that_says_nothing_is_not_the_name_of_the_model(tmp_path):
    folder = tmp_path / "bert-of-anna" / "model"
    folder.mkdir(parents=True)
    assert name_of(folder.parent) == "bert-of-anna"
    assert name_of(folder) == "bert-of-anna/model"
    (folder / "config.json").write_text('{"_name_or_path": "/home/anna/secret/tiny-bert"}')
    assert name_of(folder) == "tiny-bert (model)"
    (folder / "config.json").write_text('{"_name_or_path": "org/tiny-bert"}')
    assert name_of(folder) == "org/tiny-bert (model)"
    (folder / "README.md").write_text("---\nlicense: mit\n---\n\n# Model Card for Even BERT\n")
    assert name_of(folder) == "Even BERT"
    (folder / "README.md").write_text("# Model Card for Model ID\n")
    assert name_of(folder) == "org/tiny-bert (model)"
    for damaged in ("[" * 100_000, "[]", "{"):
        (folder / "config.json").write_text(damaged)
        assert name_of(folder) == "bert-of-anna/model"
