"""The callback of the Trainer: what it measures and logs, and that training is the same with it."""

from __future__ import annotations

import copy
from functools import cache

import pytest
import torch
from small_models import TEXT, made

import evenhand as eh
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import lookup

pytest.importorskip("accelerate", reason="needs accelerate, of the extra dev")

PAIRS = [
    ("The nurse lost her keys.", "The nurse lost his keys."),
    ("The doctor lost his keys.", "The doctor lost her keys."),
    ("The teacher said that she was late.", "The teacher said that he was late."),
    ("The engineer said that he was early.", "The engineer said that she was early."),
]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    rows = "".join(f"{more},{less},stereo,gender\n" for more, less in PAIRS)
    path.write_text("sent_more,sent_less,stereo_antistereo,bias_type\n" + rows)
    return lookup("masked", "crows")().read(str(path))


@cache
def small():
    """A tokenizer and a network: another call would train another tokenizer."""
    return made("bert")


def trainer(folder, *, causal=False, tokenizer=True, steps=6):
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    own, network = copy.deepcopy(small())
    if causal:
        torch.manual_seed(0)
        size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 48}
        network = GPT2LMHeadModel(GPT2Config(vocab_size=len(own), **size))
    rows = [own(text, max_length=16, truncation=True, padding="max_length") for text in TEXT]
    rows = [
        {
            "input_ids": row["input_ids"],
            "attention_mask": row["attention_mask"],
            "labels": row["input_ids"],
        }
        for row in rows
    ]
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=4,
        learning_rate=0.01,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=3,
        dataloader_pin_memory=False,
    )
    return Trainer(
        network, arguments, train_dataset=rows, processing_class=own if tokenizer else None
    )


@pytest.mark.filterwarnings("ignore")
def test_curves_are_logged_and_training_is_the_same(tmp_path, pairs, capsys):
    plain = trainer(tmp_path)
    plain.train()
    watched = trainer(tmp_path)
    before = eh.measure(
        eh.models.MaskedModel("before", watched.model.eval(), watched.processing_class),
        pairs,
        "crows",
    )
    callback = eh.integrations.log_bias(watched, "crows", pairs, every=4)
    watched.train()
    assert [step for step, _, _ in callback.history] == [0, 4, 6]
    for one, other in zip(plain.model.parameters(), watched.model.parameters(), strict=True):
        assert torch.equal(one, other)
    first, last = callback.history[0][2][0], callback.history[-1][2][0]
    assert first.value == before.value
    after = eh.models.MaskedModel("after", watched.model.eval(), watched.processing_class)
    again = eh.measure(after, pairs, "crows")
    assert last.items["difference"].tolist() == pytest.approx(again.items["difference"].tolist())
    assert last.items["difference"].tolist() != pytest.approx(first.items["difference"].tolist())
    logged = [row for row in watched.state.log_history if any("bias/" in key for key in row)]
    assert [row["step"] for row in logged] == [0, 4, 6]
    names = {key for row in logged for key in row if key.startswith("bias/crows")}
    assert {name.rsplit("/", 1)[1] for name in names} >= {"low", "high"}
    losses = [
        [(row["step"], row["loss"]) for row in each.state.log_history if "loss" in row]
        for each in (plain, watched)
    ]
    assert losses[0] == losses[1]
    assert [step for step, _ in losses[0]] == [2, 4, 6]
    frame = callback.to_frame()
    assert frame["loss"].notna().sum() == 2
    assert list(frame["step"]) == [0, 4, 6]
    (change,) = callback.changes()
    assert 0 < change.paired <= len(PAIRS)  # ties do not count


@pytest.mark.filterwarnings("ignore")
def test_a_causal_model_is_measured_with_its_weights_of_now(tmp_path, pairs, capsys):
    watched = trainer(tmp_path, causal=True, steps=3)
    callback = eh.integrations.log_bias(watched, ["crows"], pairs, every=10)
    watched.train()
    assert [step for step, _, _ in callback.history] == [0, 3]
    scores = [measured[0].items["difference"].tolist() for _, _, measured in callback.history]
    assert scores[0] != scores[1]


@pytest.mark.filterwarnings("ignore")
def test_wrong_input_is_refused_before_training(tmp_path, pairs):
    with pytest.raises(UnknownNameError, match="did you mean 'crows'"):
        eh.integrations.log_bias(trainer(tmp_path), "crow", pairs)
    with pytest.raises(InputError, match="every: expected 1 or more"):
        eh.integrations.log_bias(trainer(tmp_path), "crows", pairs, every=0)
    with pytest.raises(InputError, match="expected a tokenizer"):
        eh.integrations.log_bias(trainer(tmp_path, tokenizer=False), "crows", pairs)
    other = trainer(tmp_path)
    other.model = torch.nn.Linear(2, 2)
    with pytest.raises(InputError, match="expected a masked or causal language model, got Linear"):
        eh.integrations.log_bias(other, "crows", pairs)
