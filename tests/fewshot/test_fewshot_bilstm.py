"""The Bi-LSTM over GloVe: its states, its gradients, and that it learns through episodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import evenhand as eh
from evenhand.errors import InputError
from evenhand.fewshot import bilstm
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.episodes import sample
from evenhand.fewshot.runs import run
from evenhand.fewshot.settings import RunSettings, TrainingSettings
from evenhand.fewshot.training import TrainedNetwork, evaluate, train
from evenhand.models import encoding

TEXTS = ["The nurse sings.", "He", "", "A full-time GUARD walks to the xqzxq bridge!", "He"]


@pytest.fixture(scope="module")
def model():
    return bilstm.build(torch.device("cpu"), eh.vectors.load("glove", limit=8000))


def by_hand(network, vectors):
    """The states (words, 2 x width) of one text by the equations of the LSTM."""

    def direction(rows, end):
        weights = dict(network.lstm.named_parameters())
        given, before = (weights[f"weight_{kind}_l0{end}"] for kind in ("ih", "hh"))
        shift = weights[f"bias_ih_l0{end}"] + weights[f"bias_hh_l0{end}"]
        state = cell = torch.zeros(bilstm.WIDTH)
        states = []
        for row in rows:
            gates = given @ row + before @ state + shift
            enter, forget, new, out = gates.chunk(4)
            cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
            state = out.sigmoid() * cell.tanh()
            states.append(state)
        return torch.stack(states)

    backward = direction(vectors.flip(0), "_reverse").flip(0)
    return torch.cat([direction(vectors, ""), backward], dim=1)


@pytest.mark.parametrize("padded", [False, True])
def test_states_are_those_of_the_equations(model, monkeypatch, padded):
    if padded:
        monkeypatch.setitem(encoding.BUCKETS, "cpu", 2)
    glove = eh.vectors.load("glove", limit=8000)
    words = [["the", "nurse", "sings", "."], ["he"], [""]]
    words += [["a", "full-time", "guard", "walks", "to", "the", "xqzxq", "bridge", "!"], ["he"]]
    known = dict(zip(glove.words, glove.matrix, strict=True))
    assert {"nurse", "guard", "he"} <= known.keys()
    unknown = np.asarray(glove.matrix, dtype=np.float32).mean(axis=0)
    encoder = TunedEncoder(model, TEXTS)
    points, places = encoder.table(np.arange(len(TEXTS)))
    for number, row in enumerate(words):
        given = torch.from_numpy(np.stack([known.get(word, unknown) for word in row]).astype("f4"))
        with torch.no_grad():
            wanted = by_hand(model.network, given).mean(dim=0)
        torch.testing.assert_close(points[places[number]], wanted, atol=2e-5, rtol=1e-4)


def test_gradients_reach_every_weight(model):
    encoder = TunedEncoder(model, TEXTS)
    points, _ = encoder.points(np.arange(len(TEXTS)))
    torch.autograd.backward(points.square().sum())
    for name, weight in encoder.weights().items():
        assert weight.grad.abs().sum() > 0, name


def test_the_seed_draws_the_initial_weights(model):
    encoder = TunedEncoder(model, TEXTS)
    found = {}
    for turn, seed in enumerate((0, 7, 0)):
        encoder.reset(seed)
        found[turn] = encoder.table(np.arange(5))[0]
    assert torch.equal(found[0], found[2])
    assert (found[0] - found[1]).abs().max() > 0.01


def toy():
    """The class of a text is the word that comes last; which words there are says nothing."""
    names = ["horse", "bridge", "letter", "fire", "garden", "river", "window", "bread", "paper"]
    rng = np.random.default_rng(0)
    rows = []
    for name in names:
        for _ in range(14):
            others = rng.choice([each for each in names if each != name], 3, replace=False)
            rows.append((" ".join([*others, name]), name))
    texts, labels = zip(*rows, strict=True)
    return Dataset.of(texts, labels, name="toy")


def test_it_learns_a_task_is_saved_and_loaded(model, tmp_path):
    data = toy()
    shape = {"ways": 2, "shots": 2, "queries": 3}
    training = sample(data, data.classes[:5], **shape, episodes=160, seed=1)
    valid = sample(data, data.classes[5:7], **shape, episodes=20, seed=2)
    test = sample(data, data.classes[7:], **shape, episodes=40, seed=3)
    settings = TrainingSettings(
        network="proto-euclidean", batch=8, validate_every=40, encoder_learning_rate=5e-3
    )
    encoder = TunedEncoder(model, data.texts)
    trained = train(settings, encoder, training, valid, tmp_path)
    first, last = trained.points[0], trained.points[-1]
    assert last.training_accuracy > first.validation_accuracy + 0.1
    assert last.training_accuracy > 0.85
    found = evaluate(trained, encoder, test)
    again = evaluate(TrainedNetwork.load(tmp_path), TunedEncoder(model, data.texts), test)
    np.testing.assert_array_equal(again.log_probs, found.log_probs)


def test_frozen_it_is_refused_and_adapted_it_moves(model, tmp_path):
    data = toy()
    settings = RunSettings(ways=2, shots=2, queries=2, episodes="4/2/2")
    with pytest.raises(InputError, match="bilstm begins with random weights: expected it with"):
        run(data, settings, tmp_path / "run", encoder="bilstm")
    with pytest.raises(InputError, match="got it frozen"):
        encode(model, TEXTS)
    shape = {"ways": 2, "shots": 2, "queries": 2}
    training = sample(data, data.classes[:5], **shape, episodes=4, seed=1)
    valid = sample(data, data.classes[5:], **shape, episodes=2, seed=2)
    learning = TrainingSettings(network="maml", adapt=1, adapt_rate=0.1, batch=2, validate_every=2)
    trained = train(learning, TunedEncoder(model, data.texts), training, valid)
    assert trained.episodes == 4
