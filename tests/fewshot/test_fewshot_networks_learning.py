"""Each network learns, on planted clusters, which features tell classes apart, near the best rule.

Class means vary in the first 4 of 12 features; the other 8 are loud and say nothing. Every episode
draws new classes, so only the way of comparing can be learnt. The best rules are known: the
distance to the class means in the first 4 features or, for networks that see only the direction of
a class (cosines, bilinear forms), the cosine there.
"""

from __future__ import annotations

import pytest
import torch

from evenhand.fewshot.networks import LOSSES, NAMES, make

DIM, SIGNAL, WAYS, SHOTS, QUERIES = 12, 4, 4, 4, 4
TARGETS = torch.arange(WAYS).repeat_interleave(QUERIES)
PROJECTED = {name: {"projection": DIM} for name in NAMES if name.startswith(("matching", "proto"))}
SLICES = {"settings": {"slices": 8}}
SETTINGS = PROJECTED | {"relation-ntl": SLICES, "induction": SLICES}


def drawn(generator, episodes):
    means = torch.zeros(episodes, WAYS, 1, DIM)
    means[..., :SIGNAL] = 1.5 * torch.randn(episodes, WAYS, 1, SIGNAL, generator=generator)
    noise = torch.randn(episodes, WAYS, SHOTS + QUERIES, DIM, generator=generator)
    noise[..., SIGNAL:] *= 2.5
    points = means + noise
    return points[:, :, :SHOTS], points[:, :, SHOTS:].flatten(1, 2)


def accuracy(scores):
    return (scores.argmax(-1) == TARGETS).float().mean().item()


@pytest.fixture(scope="module")
def test_episodes():
    return drawn(torch.Generator().manual_seed(1), 500)


def best(name, episodes):
    support, query = (part[..., :SIGNAL] for part in episodes)
    means = support.mean(dim=2)
    if name in ("matching-cosine", "proto-cosine", "relation-ntl", "induction"):
        return accuracy(query @ torch.nn.functional.normalize(means, dim=-1).mT)
    return accuracy(-torch.cdist(query, means))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", LOSSES)
def test_training_comes_near_the_best_rule(name, kind, test_episodes):
    network = make(name, DIM, **SETTINGS.get(name, {}))
    with torch.no_grad():
        before = accuracy(network(*test_episodes))
    generator = torch.Generator().manual_seed(2)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.02)
    targets = TARGETS.expand(16, -1)
    for _ in range(200):
        loss = network.loss(network(*drawn(generator, 16)), targets, kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        after = accuracy(network(*test_episodes))
    assert after > before + 0.05
    assert after > best(name, test_episodes) - 0.05


def test_unlabelled_points_of_the_classes_sharpen_one_shot():
    generator = torch.Generator().manual_seed(3)
    support, query = drawn(generator, 500)
    network = make("proto-soft", SIGNAL)
    once, points, supports = (part[..., :SIGNAL] for part in (support[:, :, :1], query, support))
    with torch.no_grad():
        plain = accuracy(network(once, points))
        helped = accuracy(network(once, points, supports[:, :, 1:].flatten(1, 2)))
    assert helped > plain + 0.02
