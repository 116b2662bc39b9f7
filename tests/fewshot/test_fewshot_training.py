"""Training and evaluation: what a plain loop gives, the same bits again, whatever comes between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from evenhand.errors import FileError, InputError
from evenhand.fewshot import Dataset, sample
from evenhand.fewshot import training as loop
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.networks import NAMES, make
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import (
    FeatureTable,
    TrainedNetwork,
    evaluate,
    train,
)
from evenhand.models.masked import MaskedModel, load

DIM, EACH = 12, 20
KINDS = {"training": 8, "validation": 5, "test": 5}
CLASSES = {kind: [f"{kind} {k}" for k in range(number)] for kind, number in KINDS.items()}
NAMED = [name for names in CLASSES.values() for name in names]
THINGS = (
    "horse",
    "bridge",
    "letter",
    "song",
    "fire",
    "clock",
    "coat",
    "lamp",
    "ship",
    "tree",
    "coin",
    "map",
    "bell",
    "wall",
    "road",
    "farm",
    "boat",
    "door",
)


@pytest.fixture(scope="module")
def dataset():
    texts = [
        f"Number {k} tells of a {thing} and of {thing} {'s' * (k % 3)} again."
        for thing in THINGS
        for k in range(EACH)
    ]
    labels = [name for name in NAMED for _ in range(EACH)]
    return Dataset.of(texts, labels, name="things")


@pytest.fixture(scope="module")
def features(dataset):
    """Clouds of points that differ along half of the dimensions; the others are loud noise."""
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(len(dataset.classes), DIM))
    centres[:, DIM // 2 :] = 0
    width = np.where(np.arange(DIM) < DIM // 2, 1.0, 4.0)
    noise = rng.normal(size=(len(dataset), DIM)) * width
    return (centres[dataset.labels] + noise + 7).astype(np.float32)


def episodes(dataset, kind, count, **more):
    options = {"ways": 3, "shots": 2, "queries": 3, "seed": 4, **more}
    return sample(dataset, CLASSES[kind], episodes=count, purpose=kind, **options)


@pytest.fixture(scope="module")
def drawn(dataset):
    counts = {"training": 130, "validation": 40, "test": 60}
    return {kind: episodes(dataset, kind, count) for kind, count in counts.items()}


SETTINGS = TrainingSettings(batch=8, validate_every=40, learning_rate=3e-3)


def run(settings, source, drawn, *rest, **more):
    return train(settings, source, drawn["training"], drawn["validation"], *rest, **more)


@pytest.mark.parametrize("name", NAMES)
def test_every_network_is_trained_and_evaluated(dataset, features, drawn, name):
    settings = replace(SETTINGS, network=name, options={"slices": 4} if "ntl" in name else {})
    unlabelled = {
        kind: episodes(dataset, kind, 40, unlabelled=2) for kind in ("training", "validation")
    }
    trained = run(settings, features, unlabelled if name == "proto-soft" else drawn)
    found = evaluate(trained, features, drawn["test"])
    assert found.log_probs.dtype == np.float32
    np.testing.assert_allclose(np.exp(found.log_probs).sum(axis=2), 1, atol=1e-5)
    assert trained.ended == "episodes"
    assert trained.best.validation_accuracy == max(p.validation_accuracy for p in trained.points)


def test_training_on_classes_helps_on_others(features, drawn):
    untrained = TrainingSettings(learning_rate=1e-12, validate_every=130, standardise=False)
    before = evaluate(run(untrained, features, drawn), features, drawn["test"])
    settings = replace(SETTINGS, learning_rate=2e-2, standardise=False)
    after = evaluate(run(settings, features, drawn), features, drawn["test"])
    assert after.accuracy > before.accuracy + 0.05


def test_evaluation_is_that_of_a_plain_loop(dataset, features, drawn):
    trained = run(replace(SETTINGS, network="matching-cosine"), features, drawn)
    asked = drawn["test"]
    found = evaluate(trained, features, asked)
    train_rows = np.unique(
        np.concatenate([drawn["training"].support.ravel(), drawn["training"].query.ravel()])
    )
    known = features[train_rows].astype(np.float64)
    scaled = torch.from_numpy(((features - known.mean(0)) / known.std(0)).astype(np.float32))
    right = 0
    with torch.no_grad():
        for number in range(len(asked)):
            support = scaled[torch.from_numpy(asked.support[number].astype(int))]
            query = scaled[torch.from_numpy(asked.query[number].astype(int))].flatten(0, 1)
            logits = trained.network(support[None], query[None])[0]
            expected = torch.log_softmax(logits, dim=-1).numpy()
            np.testing.assert_allclose(found.log_probs[number], expected, atol=2e-5)
            for place, row in enumerate(asked.query[number].ravel()):
                guess = asked.classes[number][expected[place].argmax()]
                right += guess == dataset.labels[row]
    assert found.accuracy == pytest.approx(right / asked.query.size)
    answers = found.answers(dataset)
    assert (answers.predicted == found.log_probs.argmax(axis=2)).all()


def test_a_step_is_that_of_a_plain_loop(features, drawn):
    """Two steps by hand: the mean loss over a batch of episodes, AdamW, the rates of the plan."""
    settings = TrainingSettings(
        batch=2,
        warmup=0.0,
        clip=1e9,
        standardise=False,
        learning_rate=1e-2,
        validate_every=4,
        network="relation-base",
    )
    part = _first(drawn["training"], 4)
    network = make("relation-base", DIM)
    optimizer = torch.optim.AdamW(
        [
            {"params": [w for w in network.parameters() if w.ndim > 1], "weight_decay": 0.01},
            {"params": [w for w in network.parameters() if w.ndim < 2], "weight_decay": 0.0},
        ]
    )
    table = torch.from_numpy(features)
    for step, share in enumerate((0.75, 0.25)):
        losses = []
        for number in (2 * step, 2 * step + 1):
            support = table[torch.from_numpy(part.support[number].astype(int))]
            query = table[torch.from_numpy(part.query[number].astype(int))].flatten(0, 1)
            wanted = torch.arange(3).repeat_interleave(3)
            losses.append(network.loss(network(support[None], query[None]), wanted[None]))
        for group in optimizer.param_groups:
            group["lr"] = share * 1e-2
        optimizer.zero_grad()
        torch.autograd.backward(torch.stack(losses).mean())
        optimizer.step()
    seen = {}

    class Spy(loop._Training):
        def validate(self):
            super().validate()
            seen.update({n: w.detach().clone() for n, w in self.network.named_parameters()})

    Spy(settings, loop.as_source(features), part, drawn["validation"], {}, None, None).run()
    for name, weight in network.named_parameters():
        torch.testing.assert_close(seen[name], weight.detach(), atol=1e-5, rtol=1e-4)


def _first(drawn, count):
    return replace(
        drawn,
        classes=drawn.classes[:count],
        support=drawn.support[:count],
        query=drawn.query[:count],
    )


def test_the_scaling_knows_training_texts_alone(dataset, features, drawn):
    trained = run(SETTINGS, features, drawn)
    other = features.copy()
    test = np.isin(dataset.labels, dataset.indices(CLASSES["test"]))
    other[test] = other[test] * 50 - 3
    again = run(SETTINGS, other, drawn)
    assert (trained.network.mean == again.network.mean).all()
    assert trained.points == again.points


def test_the_best_weights_are_kept_and_patience_ends_it(features, drawn):
    settings = replace(SETTINGS, patience=1, validate_every=8, learning_rate=0.5)
    trained = run(settings, features, drawn)
    assert trained.ended == "patience"
    assert trained.episodes < 130
    assert trained.best is not trained.points[-1]
    found = evaluate(trained, features, drawn["validation"])
    assert found.accuracy == pytest.approx(trained.best.validation_accuracy)


def stopping(after):
    def stop(what, done, total, words):
        assert "episodes/s" in words
        if done >= after:
            raise KeyboardInterrupt

    return stop


def broken_off(monkeypatch, tmp_path, settings, make_source, drawn, moments):
    """A run that was stopped at some moments and one that was not: what both left."""
    monkeypatch.setattr("evenhand.training.INTERVAL", 0.0)
    monkeypatch.setattr("evenhand.training.SHARE", 1e9)
    whole = run(settings, make_source(), drawn, tmp_path / "whole")
    for after in moments:
        with pytest.raises(KeyboardInterrupt):
            run(settings, make_source(), drawn, tmp_path / "parts", progress=stopping(after))
        assert (tmp_path / "parts" / loop.CHECKPOINT).is_file()
    source = make_source()
    parts = run(settings, source, drawn, tmp_path / "parts")
    for name in ("trained.safetensors", "curve.csv"):
        one, other = ((tmp_path / kind / name).read_bytes() for kind in ("whole", "parts"))
        assert one == other
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        "curve.csv",
        "trained.safetensors",
    ]
    assert whole.points == parts.points
    return parts, source


@pytest.mark.parametrize("name", ["proto-euclidean", "induction"])
def test_a_run_broken_off_ends_with_the_same_bits(monkeypatch, tmp_path, features, drawn, name):
    options = {"slices": 4} if name == "induction" else {}
    settings = replace(SETTINGS, network=name, options=options)
    moments = (24, 40, 41, 120)
    parts, _ = broken_off(monkeypatch, tmp_path, settings, lambda: features, drawn, moments)
    again = TrainedNetwork.load(tmp_path / "parts")
    one, other = (evaluate(each, features, drawn["test"]) for each in (parts, again))
    assert (one.log_probs == other.log_probs).all()
    calls = []
    same = run(settings, features, drawn, tmp_path / "parts", progress=lambda *c: calls.append(c))
    assert same.points == parts.points
    assert not calls


def tiny_model():
    tokenizer = load("mini").tokenizer
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
        pad_token_id=tokenizer.pad_token_id,
    )
    return MaskedModel("tiny", BertForMaskedLM(config).eval(), tokenizer)


def test_an_encoder_is_trained_along_and_goes_on_with_the_same_bits(
    monkeypatch, tmp_path, dataset, drawn
):
    model = tiny_model()
    settings = TrainingSettings(batch=4, validate_every=16, encoder_learning_rate=5e-3)
    some = {"training": _first(drawn["training"], 48), "validation": drawn["validation"]}
    trained, source = broken_off(
        monkeypatch, tmp_path, settings, lambda: TunedEncoder(model, dataset.texts), some, (12, 32)
    )
    assert trained.best.validation_accuracy > trained.points[0].validation_accuracy
    found = evaluate(trained, source, drawn["test"])
    again = TrainedNetwork.load(tmp_path / "parts")
    others = TunedEncoder(model, [*dataset.texts, "A text of other words."])
    np.testing.assert_allclose(
        evaluate(again, others, drawn["test"]).log_probs, found.log_probs, atol=1e-5
    )
    with pytest.raises(
        InputError, match="trained with its encoder: expected a TunedEncoder, got FeatureTable"
    ):
        evaluate(again, encode(model, dataset.texts), drawn["test"])
    with pytest.raises(InputError, match="trained with an encoder of another model"):
        evaluate(again, TunedEncoder(model, dataset.texts, pooling="cls"), drawn["test"])
    source.reset()
    assert run(settings, source, some).points == trained.points


def test_what_does_not_fit_is_refused(tmp_path, dataset, features, drawn):
    trained = run(SETTINGS, features, drawn, tmp_path)
    with pytest.raises(FileError, match=r"has another training \(other settings\)"):
        run(replace(SETTINGS, seed=1), features, drawn, tmp_path)
    with pytest.raises(FileError, match=r"other features"):
        run(SETTINGS, features + 1, drawn, tmp_path)
    other = run(replace(SETTINGS, batch=4), features, drawn, tmp_path, restart=True)
    assert TrainedNetwork.load(tmp_path).points == other.points
    with pytest.raises(InputError, match="expected other classes in validation than in train"):
        train(SETTINGS, features, drawn["training"], drawn["training"])
    with pytest.raises(InputError, match="expected 12 dimensions as in training, got 11"):
        evaluate(trained, features[:, 1:], drawn["test"])
    with pytest.raises(InputError, match="expected rows 0 to 99"):
        evaluate(trained, features[:100], drawn["test"])
    with pytest.raises(InputError, match="not finite"):
        run(SETTINGS, features * np.float32("nan"), drawn)
    with pytest.raises(InputError, match="the loss is nan: expected smaller learning rates"):
        run(replace(SETTINGS, learning_rate=1e30, clip=1e30), features * 1e6, drawn)
    (tmp_path / "trained.safetensors").write_bytes(b"cut off")
    with pytest.raises(FileError, match=r"trained\.safetensors: not a trained network"):
        TrainedNetwork.load(tmp_path)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"network": "protos"}, "unknown network"),
        ({"loss": "hinge"}, "unknown loss"),
        ({"batch": 0}, "batch: expected 1 or more, got 0"),
        ({"patience": 1.5}, "patience: expected a whole number"),
        ({"learning_rate": 0.0}, "learning_rate: expected more than 0"),
        ({"clip": float("nan")}, "clip: expected a number"),
        ({"warmup": 1.0}, "warmup: expected 0 or more and less than 1"),
        ({"projection": -1}, "projection: expected 0 or more"),
        ({"options": {"projection": 3}}, "options: expected those of the network alone"),
    ],
)
def test_settings_are_checked_at_once(given, problem):
    with pytest.raises(InputError, match=problem):
        TrainingSettings(**given)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("network", ["proto-euclidean", "relation-base", "induction", "maml"])
def test_steps_that_a_gpu_replays_learn_what_a_cpu_learns(network):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 40)
    centres = rng.normal(size=(12, 32))
    features = (centres[labels] + 2 * rng.normal(size=(len(labels), 32))).astype("float32")
    names = [f"class {label:02}" for label in labels]
    data = Dataset.of([f"text {i}" for i in range(len(labels))], names, name="blobs")
    shape = {"ways": 3, "shots": 4, "queries": 4}
    training = sample(data, data.classes[:6], **shape, episodes=200, purpose="train")
    validation = sample(data, data.classes[6:], **shape, episodes=50, purpose="valid")
    settings = TrainingSettings(network=network, validate_every=96, patience=9)
    curves = [
        [(point.training_loss or 0, point.validation_loss) for point in trained.points]
        for trained in (
            train(settings, FeatureTable(features, device), training, validation)
            for device in ("cpu", "cuda")
        )
    ]
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-4)
