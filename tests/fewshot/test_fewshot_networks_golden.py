"""Every network against plain loops over episodes, queries, classes and shots, in double."""

from __future__ import annotations

import math

import pytest
import torch

from evenhand.fewshot.networks import make

E, C, K, M, U, D = 2, 3, 2, 4, 5, 6
TOLERANCE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture
def episode():
    """Support, query and unlabelled points of two episodes, in double."""
    torch.manual_seed(3)
    shapes = ((E, C, K, D), (E, M, D), (E, U, D))
    return tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)


def softmax(values):
    top = max(values)
    parts = [math.exp(value - top) for value in values]
    return [part / sum(parts) for part in parts]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def mean(points):
    return [sum(column) / len(points) for column in zip(*points, strict=True)]


def likeness(metric, scale, a, b):
    if metric == "cosine":
        return scale * dot(a, b) / (math.sqrt(dot(a, a)) * math.sqrt(dot(b, b)))
    return -scale * sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def scaled(name, **settings):
    """A network with the scale 0.7, in double."""
    network = make(name, D, settings=settings).double()
    torch.nn.init.constant_(network.metric.log_scale, math.log(0.7))
    return network


def over(episode, classify):
    """What `classify(support, x, unlabelled)` says of each episode and query, (E, M, C)."""
    rows = (tensor.tolist() for tensor in episode)
    return torch.tensor(
        [
            [classify(support, x, unlabelled) for x in query]
            for support, query, unlabelled in zip(*rows, strict=True)
        ],
        dtype=torch.float64,
    )


def probabilities(network, episode):
    return network.probabilities(network(*episode)).detach()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_matching_is_attention_over_the_support(episode, metric):
    network = scaled(f"matching-{metric}")

    def classify(support, x, _):
        flat = [shot for shots in support for shot in shots]
        attention = softmax([likeness(metric, 0.7, x, shot) for shot in flat])
        return [sum(attention[c * K : (c + 1) * K]) for c in range(C)]

    torch.testing.assert_close(
        probabilities(network, episode), over(episode, classify), **TOLERANCE
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_prototypical_is_the_nearest_mean(episode, metric):
    network = scaled(f"proto-{metric}")

    def classify(support, x, _):
        return softmax([likeness(metric, 0.7, x, mean(shots)) for shots in support])

    torch.testing.assert_close(
        probabilities(network, episode), over(episode, classify), **TOLERANCE
    )


def refined(support, unlabelled, metric, scale):
    """Prototypes after one step of soft k-means (El Zein 2021, eq. 7)."""
    means = [mean(shots) for shots in support]
    total = [[sum(column) for column in zip(*shots, strict=True)] for shots in support]
    weight = [float(len(shots)) for shots in support]
    for point in unlabelled:
        shares = softmax([likeness(metric, scale, point, m) for m in means])
        for c, share in enumerate(shares):
            weight[c] += share
            total[c] = [t + share * p for t, p in zip(total[c], point, strict=True)]
    return [[t / weight[c] for t in total[c]] for c in range(len(support))]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_soft_prototypes_use_one_metric_throughout(episode, metric):
    network = scaled("proto-soft", metric=metric)

    def by(responsibilities):
        def classify(support, x, unlabelled):
            moved = refined(support, unlabelled, responsibilities, 0.7)
            return softmax([likeness(metric, 0.7, x, point) for point in moved])

        return over(episode, classify)

    found = probabilities(network, episode)
    torch.testing.assert_close(found, by(metric), **TOLERANCE)
    other = "euclidean" if metric == "cosine" else "cosine"
    assert (found - by(other)).abs().max() > 1e-3


def test_relation_base_is_two_layers_on_the_concatenation(episode):
    network = make("relation-base", D, settings={"hidden": 7}).double()
    first, second, last = network.first, network.second, network.last

    def layer(linear, x):
        return [
            dot(row, x) + shift
            for row, shift in zip(linear.weight.tolist(), linear.bias.tolist(), strict=True)
        ]

    def logits(support, x, _):
        made = []
        for shots in support:
            hidden = [max(0.0, value) for value in layer(first, x + mean(shots))]
            made.append(layer(last, layer(second, hidden))[0])
        return made

    torch.testing.assert_close(network(*episode).detach(), over(episode, logits), **TOLERANCE)
    relations = over(episode, lambda *a: [1 / (1 + math.exp(-g)) for g in logits(*a)])
    torch.testing.assert_close(
        network.responses(network(*episode)).detach(), relations, **TOLERANCE
    )


def tensor_layer(network, x, p):
    total = network.tensor.bias.item()
    for weight, matrix in zip(
        network.tensor.weights.tolist(), network.tensor.slices.tolist(), strict=True
    ):
        product = sum(x[i] * matrix[i][j] * p[j] for i in range(D) for j in range(D))
        total += weight * max(0.0, product)
    return total


def test_relation_ntl_is_a_bilinear_form_a_slice(episode):
    network = make("relation-ntl", D, settings={"slices": 5}).double()

    def logits(support, x, _):
        return [
            tensor_layer(network, x, [value / math.sqrt(D) for value in mean(shots)])
            for shots in support
        ]

    torch.testing.assert_close(network(*episode).detach(), over(episode, logits), **TOLERANCE)


def squashed(v):
    square = dot(v, v)
    return [value * square / (1 + square) / math.sqrt(square) for value in v]


@pytest.mark.parametrize("iterations", [1, 3])
def test_induction_routes_with_coupling_coefficients(episode, iterations):
    network = make("induction", D, settings={"slices": 4, "iterations": iterations}).double()
    torch.nn.init.normal_(network.shared.weight)
    torch.nn.init.normal_(network.shared.bias)
    weight, bias = network.shared.weight.tolist(), network.shared.bias.tolist()

    def induced(shots):
        moved = [
            squashed([dot(row, shot) + b for row, b in zip(weight, bias, strict=True)])
            for shot in shots
        ]
        logits = [0.0] * len(moved)
        for _ in range(iterations):
            coupling = softmax(logits)
            vector = squashed([dot(coupling, column) for column in zip(*moved, strict=True)])
            logits = [b + dot(shot, vector) for b, shot in zip(logits, moved, strict=True)]
        return vector

    def logits(support, x, _):
        return [tensor_layer(network, x, induced(shots)) for shots in support]

    torch.testing.assert_close(network(*episode).detach(), over(episode, logits), **TOLERANCE)


def test_routing_differs_from_the_plain_sum(episode):
    routed, plain = (make("induction", D, settings={"iterations": n}).double() for n in (3, 1))
    assert (routed.induce(episode[0]) - plain.induce(episode[0])).abs().max() > 1e-3


@pytest.mark.parametrize("start", [0.0, 1.7])
def test_maml_is_a_fitted_softmax_regression_from_any_common_row(episode, start):
    network = make("maml", D, settings={"steps": 4, "rate": 0.6}).double()
    with torch.no_grad():
        network.log_rates += torch.linspace(-1, 1, D + 1)
    rates = network.log_rates.exp().tolist()

    def classify(support, x, _):
        centre = mean([shot for shots in support for shot in shots])

        def given(point):
            return [p - m for p, m in zip(point, centre, strict=True)] + [1.0]

        rows = [[start] * (D + 1) for _ in range(C)]
        for _ in range(4):
            gradient = [[0.0] * (D + 1) for _ in range(C)]
            for label, shots in enumerate(support):
                for point in map(given, shots):
                    guess = softmax([dot(row, point) for row in rows])
                    for c in range(C):
                        for j in range(D + 1):
                            gradient[c][j] += (guess[c] - (c == label)) * point[j] / (C * K)
            rows = [
                [rows[c][j] - rates[j] * gradient[c][j] for j in range(D + 1)] for c in range(C)
            ]
        return softmax([dot(row, given(x)) for row in rows])

    torch.testing.assert_close(
        probabilities(network, episode), over(episode, classify), **TOLERANCE
    )


def test_losses_are_cross_entropy_and_the_sum_of_squares():
    scores = torch.tensor([[[2.0, 0.0, -1.0]], [[0.0, 1.0, 0.5]]], dtype=torch.float64)
    targets = torch.tensor([[0], [2]])
    chances = [softmax(row) for row in scores.flatten(0, 1).tolist()]
    right = [0, 2]
    ce = -sum(math.log(p[c]) for p, c in zip(chances, right, strict=True)) / 2
    metric = make("proto-euclidean", D)
    assert metric.loss(scores, targets).item() == pytest.approx(ce, rel=1e-12)

    def squares(responses):
        return (
            sum(
                (r - (c == i)) ** 2
                for row, c in zip(responses, right, strict=True)
                for i, r in enumerate(row)
            )
            / 2
        )

    assert metric.loss(scores, targets, "mse").item() == pytest.approx(squares(chances), rel=1e-12)
    relation = make("relation-base", D)
    sigmoids = [[1 / (1 + math.exp(-g)) for g in row] for row in scores.flatten(0, 1).tolist()]
    assert relation.loss(scores, targets).item() == pytest.approx(squares(sigmoids), rel=1e-12)
    assert relation.loss(scores, targets, "ce").item() == pytest.approx(ce, rel=1e-12)
