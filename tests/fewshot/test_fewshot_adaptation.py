"""Adaptation to the support: what moves, by how much, and that everything moves back."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from small_runs import Runs, chosen

from evenhand.errors import InputError
from evenhand.fewshot.adaptation import Adaptation, leave_one_out
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.encoders import TunedEncoder
from evenhand.fewshot.episodes import sample
from evenhand.fewshot.networks import NAMES, make
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import FeatureTable, evaluate, fit_scaling, targets, train
from evenhand.training import select
from small_encoder import save_small

DIM, EACH = 6, 12
CLASSES = {"training": "abcdef", "validation": "ghi", "test": "jkl"}


@pytest.fixture(scope="module")
def dataset():
    letters = "".join(CLASSES.values())
    texts = [f"{letter} tells number {k}" for letter in letters for k in range(EACH)]
    return Dataset.of(texts, [letter for letter in letters for _ in range(EACH)], name="letters")


@pytest.fixture(scope="module")
def features(dataset):
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(len(dataset.classes), DIM))
    return (centres[dataset.labels] + rng.normal(size=(len(dataset), DIM))).astype(np.float32)


@pytest.fixture(scope="module")
def drawn(dataset):
    return {
        kind: sample(
            dataset, [*names], ways=3, shots=3, queries=2, unlabelled=2, episodes=12, purpose=kind
        )
        for kind, names in CLASSES.items()
    }


def settings(network="proto-euclidean", **more):
    usual = {"batch": 4, "validate_every": 6, "learning_rate": 1e-2}
    options = {"slices": 3} if network in ("relation-ntl", "induction") else {}
    return TrainingSettings(network=network, options=options, **{**usual, **more})


def weights_of(network):
    return {name: weight.detach().clone() for name, weight in network.named_parameters()}


@pytest.mark.parametrize("name", NAMES)
def test_every_network_adapts_and_moves_back(features, drawn, name):
    trained = train(settings(name), features, drawn["training"], drawn["validation"])
    before = weights_of(trained.network)
    plain = evaluate(trained, features, drawn["test"])
    adapted = replace(trained, settings=settings(name, adapt=2, adapt_rate=0.05))
    first, second = (evaluate(adapted, features, drawn["test"]) for _ in range(2))
    np.testing.assert_array_equal(first.log_probs, second.log_probs)
    assert np.abs(first.log_probs - plain.log_probs).max() > 1e-4
    for weight_name, weight in trained.network.named_parameters():
        torch.testing.assert_close(weight, before[weight_name], rtol=0, atol=0)
        assert weight.grad is None


def test_the_steps_are_those_of_gradient_descent(features, drawn):
    """By hand: the loss of each support text among the others, one plain step, then the queries."""
    chosen_settings = settings(adapt=1, adapt_rate=0.1, clip=1e9, standardise=False)
    trained = train(chosen_settings, features, drawn["training"], drawn["validation"])
    found = evaluate(trained, features, drawn["test"]).log_probs
    network, episodes = trained.network, drawn["test"]
    table = torch.from_numpy(features)
    before = weights_of(network)
    for number in range(3):
        support = table[torch.from_numpy(episodes.support[number].astype(np.int64))]
        loss = 0.0
        for k in range(3):
            others = [j for j in range(3) if j != k]
            scores = network(support[:, others][None], support[:, k][None])
            loss = loss + network.loss(scores, torch.arange(3)[None]) / 3
        network.zero_grad()
        torch.autograd.backward(loss)
        with torch.no_grad():
            for weight in network.parameters():
                weight -= 0.1 * weight.grad
            query = table[torch.from_numpy(episodes.query[number].ravel().astype(np.int64))]
            expected = network.log_probabilities(network(support[None], query[None]))[0]
            for name, weight in network.named_parameters():
                weight.copy_(before[name])
        np.testing.assert_allclose(found[number], expected.numpy(), atol=1e-5)


def test_the_loss_on_the_support_falls(features, drawn):
    trained = train(settings(), features, drawn["training"], drawn["validation"])
    source = FeatureTable(features)

    def loss(adaptation, number):
        index = drawn["test"].support[number]
        points = torch.from_numpy(features[index])
        scores = trained.network(*leave_one_out(trained.network.scaled(points)))
        return trained.network.loss(scores, torch.arange(3).expand(3, -1)).item()

    for number in range(4):
        adaptation = Adaptation(settings(adapt=5, adapt_rate=0.02), trained.network, source)
        before, weights = loss(adaptation, number), weights_of(trained.network)
        moved = select("network.", adaptation.adapt(drawn["test"].support[number]))
        trained.network.load_state_dict(moved, strict=False)
        assert loss(adaptation, number) < before
        with torch.no_grad():
            for name, weight in trained.network.named_parameters():
                weight.copy_(weights[name])


def test_one_shot_is_support_and_query_at_once():
    support = torch.randn(4, 1, DIM)
    given, queries = leave_one_out(support)
    assert given.shape == (1, 4, 1, DIM)
    torch.testing.assert_close(queries, support.transpose(0, 1))


def test_maml_is_trained_through_its_steps(features, drawn):
    """The gradient of a step is that of the queries at the adapted weights (first order)."""
    through = settings("maml", adapt=2, adapt_rate=0.05)
    assert through.trains_through_adaptation
    assert not settings("proto-cosine", adapt=2).trains_through_adaptation
    plain, adapted = (
        train(each, features, drawn["training"], drawn["validation"])
        for each in (settings("maml"), through)
    )
    assert plain.points[-1].validation_loss != adapted.points[-1].validation_loss
    network = make("maml", DIM, projection=DIM)
    source, episodes = FeatureTable(features), drawn["training"]
    fit_scaling(network, source, episodes)
    adaptation = Adaptation(through, network, source)
    wanted = torch.from_numpy(targets(episodes))
    before = weights_of(network)
    adaptation.learn(episodes, slice(0, 3), wanted)
    mean = {name: weight.grad.clone() for name, weight in network.named_parameters()}
    total = {name: torch.zeros_like(weight) for name, weight in before.items()}
    for number in range(3):
        network.zero_grad()
        adaptation.learn(episodes, slice(number, number + 1), wanted)
        for name, weight in network.named_parameters():
            total[name] += weight.grad / 3
            torch.testing.assert_close(weight, before[name], rtol=0, atol=0)
    for name, gradient in mean.items():
        torch.testing.assert_close(gradient, total[name])


def test_an_encoder_that_is_trained_adapts_too(dataset, drawn, tmp_path):
    encoder = TunedEncoder(save_small(tmp_path / "small"), dataset.texts, device="cpu")
    more = {"encoder_learning_rate": 1e-2, "adapt": 1, "adapt_rate": 0.5}
    trained = train(settings("maml", **more), encoder, drawn["training"], drawn["validation"])
    before = encoder.state()
    adapted = evaluate(trained, encoder, drawn["test"])
    for name, weight in encoder.state().items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=0)
    lone = replace(trained, settings=settings("maml"))
    assert not np.array_equal(adapted.log_probs, evaluate(lone, encoder, drawn["test"]).log_probs)
    adaptation = Adaptation(trained.settings, trained.network, encoder)
    moved = select("encoder.", adaptation.adapt(drawn["test"].support[0]))
    assert any(not torch.equal(weight.cpu(), before[name]) for name, weight in moved.items())


def test_second_order_reaches_the_support():
    """The outer gradient goes through the inner steps, which use the support."""
    generator = torch.Generator().manual_seed(2)
    support = torch.randn(1, 3, 2, DIM, generator=generator, requires_grad=True)
    query = torch.randn(1, 4, DIM, generator=generator)
    wanted = torch.tensor([[0, 1, 2, 0]])
    for second_order in (0, 1):
        network = make("maml", DIM, settings={"steps": 3, "second_order": second_order}).double()
        points = support.detach().double().requires_grad_()
        loss = network.loss(network(points, query.double()), wanted)
        (gradient,) = torch.autograd.grad(loss, points, allow_unused=True)
        if not second_order:
            assert gradient is None or not gradient.any()
            continue

        def value(moved, network=network):
            with torch.no_grad():
                return float(network.loss(network(moved, query.double()), wanted))

        step = torch.zeros_like(points)
        step[0, 1, 0, 2] = 1e-5
        numeric = (value(points.detach() + step) - value(points.detach() - step)) / 2e-5
        assert float(gradient[0, 1, 0, 2]) == pytest.approx(numeric, rel=1e-5)
    with pytest.raises(InputError, match="second_order: expected 0 or 1, got 2"):
        make("maml", DIM, settings={"second_order": 2})


@pytest.mark.parametrize("clip", [1e9, 0.05])
def test_second_order_goes_through_the_steps_of_the_encoder(dataset, drawn, tmp_path, clip):
    """The gradient of weights of encoder and network against finite differences, in float64."""
    encoder = TunedEncoder(save_small(tmp_path / "small"), dataset.texts, device="cpu")
    encoder.model.network.double()
    network = (
        make("maml", encoder.dim, projection=4, settings={"steps": 2, "second_order": 1})
        .double()
        .eval()
    )
    more = {"adapt": 2, "adapt_rate": 0.5, "encoder_learning_rate": 5e-3, "clip": clip}
    adaptation = Adaptation(settings("maml", **more), network, encoder)
    episodes, wanted = drawn["training"], torch.from_numpy(targets(drawn["training"]))
    weights = adaptation.weights
    before = {name: weight.detach().clone() for name, weight in weights.items()}

    def gradients():
        adaptation.learn(episodes, slice(0, 2), wanted)
        found = {name: weight.grad for name, weight in weights.items()}
        for weight in weights.values():
            weight.grad = None
        return found

    def loss():
        """Of the queries after plain steps, by the code that answers test episodes."""
        both = islice(adaptation.scores(episodes), 2)
        return sum(network.loss(scores, wanted[None]).item() for scores in both) / 2

    found = gradients()
    for name, weight in weights.items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=0)
    network.second_order = False
    first_order = gradients()
    network.second_order = True
    ends_of_names = ("query.weight", "intermediate.dense.weight")
    chosen_weights = [
        name for name in weights if name.startswith("network.") or name.endswith(ends_of_names)
    ]
    assert len(chosen_weights) >= 6
    differs = False
    for name in chosen_weights:
        flat = weights[name].detach().view(-1)
        place = int(found[name].abs().view(-1).argmax())
        ends = []
        for step in (1e-5, -1e-5):
            flat[place] += step
            ends.append(loss())
            flat[place] -= step
        numeric = (ends[0] - ends[1]) / 2e-5
        assert float(found[name].view(-1)[place]) == pytest.approx(numeric, rel=1e-4)
        differs |= abs(float(first_order[name].view(-1)[place]) - numeric) > 0.01 * abs(numeric)
    assert differs


def test_second_order_trains_an_encoder(dataset, drawn, tmp_path):
    encoder = TunedEncoder(save_small(tmp_path / "small"), dataset.texts, device="cpu")
    more = {"adapt": 1, "adapt_rate": 0.5, "encoder_learning_rate": 1e-2}
    both = []
    for second_order in (0, 1):
        chosen_settings = replace(settings("maml", **more), options={"second_order": second_order})
        trained = train(chosen_settings, encoder, drawn["training"], drawn["validation"])
        both.append(evaluate(trained, encoder, drawn["test"]).log_probs)
    assert np.isfinite(both[1]).all()
    assert not np.array_equal(*both)


def test_a_run_with_adaptation(tmp_path):
    runs = Runs(tmp_path)
    plain = runs.done()
    more = replace(chosen().training, adapt=2, adapt_rate=0.05)
    found = runs.make(replace(chosen(), training=more), tmp_path / "adapted")
    assert found.saved[0][0].answers.same_queries(plain.saved[0][0].answers)
    first, second = (each.saved[0][0].answers.log_probs for each in (found, plain))
    assert not np.array_equal(first, second)
    assert found.settings.training.adapt == 2
    assert found.name == "proto-euclidean adapt 2"
