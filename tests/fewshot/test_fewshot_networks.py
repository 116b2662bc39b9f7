"""What must hold of every network: names, shapes, invariances, gradients, awkward points."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.func import functional_call

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.networks import LOSSES, NAMES, make, options
from evenhand.fewshot.networks.induction import squash
from evenhand.fewshot.networks.metric import Metric

E, C, K, M, U, D = 3, 4, 3, 5, 6, 5
SMALL = {
    "relation-base": {"hidden": 6},
    "relation-ntl": {"slices": 4},
    "induction": {"slices": 4},
}
every = pytest.mark.parametrize("name", NAMES)


def built(name, dim=D, **settings):
    """A small network in double, its weights shaken so that no two are equal."""
    network = make(name, dim, settings={**SMALL.get(name, {}), **settings}).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
    return network


def drawn(ways=C, shots=K, queries=M, seed=0, dim=D):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((E, ways, shots, dim), (E, queries, dim), (E, U, dim))
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)


def logs(network, *episode):
    return network.log_probabilities(network(*episode)).detach()


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_names_are_those_of_the_command_line():
    assert " ".join(NAMES) == (
        "matching-cosine matching-euclidean proto-euclidean proto-cosine proto-soft "
        "relation-base relation-ntl induction maml"
    )


def test_asking_for_names_does_not_import_torch():
    code = "import sys, evenhand.fewshot.networks; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "settings", "problem"),
    [
        ("relation-base", {"hidden": 0}, "hidden: expected at least 1, got 0"),
        ("relation-ntl", {"slices": 0}, "slices: expected at least 1, got 0"),
        ("induction", {"iterations": 0}, "iterations: expected at least 1, got 0"),
        ("maml", {"steps": 0}, "steps: expected a number above 0, got 0"),
        ("maml", {"rate": -1.0}, "rate: expected a number above 0, got -1.0"),
        ("proto-cosine", {"scale": 0.0}, "scale: expected a number above 0, got 0.0"),
        ("proto-cosine", {"metric": "cosine"}, "no option 'metric'"),
        ("maml", {"projection": 0}, "network maml: projection must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_named(name, settings, problem):
    with pytest.raises(InputError, match=problem):
        make(name, D, settings=settings)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'induction'"):
        make("inducton", D)
    with pytest.raises(UnknownNameError, match="did you mean 'euclidean'"):
        make("proto-soft", D, settings={"metric": "euclid"})
    with pytest.raises(UnknownNameError, match=r"unknown loss 'mae'.*known: ce, mse"):
        make("maml", D).loss(torch.zeros(1, 1, 2), torch.zeros(1, 1, dtype=torch.long), "mae")


@pytest.mark.parametrize("which", ["support", "query", "unlabelled"])
def test_a_wrong_shape_is_named(which):
    episode = dict(zip(("support", "query", "unlabelled"), drawn(), strict=True))
    episode[which] = episode[which][..., :-1]
    with pytest.raises(
        InputError, match=rf"{which} features: expected \(3 episodes.* 5 dimensions"
    ):
        built("proto-soft")(**episode)


@every
def test_options_are_those_make_takes(name):
    assert "projection" in options(name)
    assert not {"self", "dim"} & set(options(name))
    assert make(name, D, projection=3, settings=SMALL.get(name, {})).width == 3


@every
def test_probabilities_sum_to_one_and_fit_their_logs(name):
    network, episode = built(name), drawn()
    scores = network(*episode)
    assert scores.shape == (E, M, C)
    chances = network.probabilities(scores)
    same(chances.sum(-1), torch.ones(E, M, dtype=torch.float64))
    same(chances.log(), network.log_probabilities(scores))
    responses = network.responses(scores)
    assert ((responses >= 0) & (responses <= 1)).all()


@every
def test_the_order_of_the_shots_does_not_matter(name):
    network, (support, query, unlabelled) = built(name), drawn()
    order = torch.tensor([2, 0, 1])
    found = logs(network, support[:, :, order], query, unlabelled.flip(1))
    same(found, logs(network, support, query, unlabelled))


@every
def test_reordered_classes_reorder_the_scores(name):
    network, (support, query, unlabelled) = built(name), drawn()
    order = torch.tensor([3, 1, 0, 2])
    found = logs(network, support[:, order], query, unlabelled)
    same(found, logs(network, support, query, unlabelled)[..., order])


@every
def test_queries_are_judged_one_by_one(name):
    network, (support, query, unlabelled) = built(name), drawn()
    whole = logs(network, support, query, unlabelled)
    same(logs(network, support, query[:, [4, 2]], unlabelled), whole[:, [4, 2]])


@every
def test_episodes_of_a_batch_do_not_meet(name):
    network, episode = built(name), drawn()
    alone = logs(network, *(part[1:2] for part in episode))
    same(alone, logs(network, *episode)[1:2])


@every
@pytest.mark.parametrize(("ways", "shots", "queries"), [(2, 1, 1), (7, 1, 3), (3, 6, 2)])
def test_any_number_of_classes_and_shots(name, ways, shots, queries):
    found = logs(built(name), *drawn(ways, shots, queries))
    assert found.shape == (E, queries, ways)
    assert found.isfinite().all()


@every
def test_only_the_soft_network_looks_at_unlabelled_points(name):
    network, (support, query, unlabelled) = built(name), drawn()
    plain = logs(network, support, query)
    changed = (logs(network, support, query, unlabelled) - plain).abs().max() > 1e-6
    assert changed == network.uses_unlabelled == (name == "proto-soft")
    same(logs(network, support, query, unlabelled[:, :0]), plain)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_soft_prototypes_without_unlabelled_points_are_plain(metric):
    support, query, _ = drawn()
    soft = make("proto-soft", D, settings={"metric": metric}).double()
    same(logs(soft, support, query), logs(make(f"proto-{metric}", D).double(), support, query))


@every
def test_a_projection_begins_as_plain_features(name):
    settings = SMALL.get(name, {})
    plain, projected = (
        make(name, D, projection=projection, settings=settings).double() for projection in (None, D)
    )
    same(logs(projected, *drawn()), logs(plain, *drawn()))


def test_a_wider_or_narrower_projection_keeps_distances():
    support, query, _ = drawn()
    plain, wide = (
        make("proto-euclidean", D, projection=projection, settings={"scale": 1.0}).double()
        for projection in (None, 9)
    )
    torch.testing.assert_close(
        logs(wide, support, query), logs(plain, support, query), rtol=1e-5, atol=1e-5
    )
    points = torch.randn(4000, 20, generator=torch.Generator().manual_seed(1))
    narrow = make("proto-euclidean", 20, projection=5).project(points)
    assert narrow.square().sum(-1).mean().item() == pytest.approx(20, rel=0.05)


@every
def test_a_table_projected_once_gives_the_same_scores(name):
    network, (support, query, unlabelled) = built(name, projection=4), drawn()
    used = network.project(unlabelled) if network.uses_unlabelled else None
    once = network.score(network.project(support), network.project(query), used)
    same(once, network(support, query, unlabelled))


@every
def test_the_same_seed_gives_the_same_weights_and_leaves_the_generator(name):
    torch.manual_seed(7)
    expected = torch.rand(2)
    torch.manual_seed(7)
    first, again, other = (make(name, D, projection=3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(2), expected)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.projection, other.projection)


@every
@pytest.mark.parametrize("kind", LOSSES)
def test_gradients_are_those_of_the_loss(name, kind):
    """MAML's first order is exact where there is one step, in its rates and the queries."""
    settings = {"steps": 1} if name == "maml" else {"projection": 3}
    network = built(name, dim=4, **settings)
    weights = {key: value.detach().requires_grad_() for key, value in network.named_parameters()}
    support, query, unlabelled = (part[:2, ..., :4] for part in drawn(2, 2, 2))
    points = (query,) if name == "maml" else (query, support, unlabelled)
    points = tuple(part.contiguous().requires_grad_() for part in points)
    targets = torch.tensor([[0, 1], [1, 1]])

    def loss(*values):
        given = dict(zip(weights, values, strict=False))
        x, s, u = (*values[len(weights) :], support, unlabelled)[:3]
        return network.loss(functional_call(network, given, (s, x, u)), targets, kind)

    assert torch.autograd.gradcheck(loss, (*weights.values(), *points))


def test_first_order_maml_holds_the_inner_gradients_fixed():
    """∂L/∂(log a_j) = Σ_c W_jc ∂L/∂W_jc at the fitted W, and the support has no gradient."""
    network, (support, query, _) = built("maml", steps=5), drawn()
    support.requires_grad_()
    targets = torch.zeros(E, M, dtype=torch.long)
    network.loss(network(support, query), targets).backward()
    assert support.grad is None

    centre = support.detach().mean(dim=(1, 2))[:, None]
    ones = torch.ones(E, M, 1, dtype=torch.float64)
    given = torch.cat([query - centre, ones], dim=-1)
    # the scores are linear in the inputs: W is read off at the unit vectors
    probes = torch.cat([torch.zeros(1, D), torch.eye(D)]).double() + centre
    at = network(support, probes).detach()
    fitted = torch.cat([at[:, 1:] - at[:, :1], at[:, :1]], dim=1)
    weights = fitted.clone().requires_grad_()
    network.loss(given @ weights, targets).backward()
    same(network.log_rates.grad, (fitted * weights.grad).sum(dim=(0, 2)))


@pytest.mark.parametrize("name", ["relation-ntl", "induction"])
@pytest.mark.parametrize("kind", LOSSES)
def test_every_slice_is_trained(name, kind):
    network = make(name, D, settings={"slices": 12})
    support, query, _ = (part.float() for part in drawn())
    targets = torch.arange(M).remainder(C).expand(E, -1)
    network.loss(network(support, query), targets, kind).backward()
    assert (network.tensor.slices.grad.flatten(1).norm(dim=1) > 0).all()
    assert (network.tensor.weights.grad.abs() > 0).all()


@every
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e4, 1e-30])
def test_equal_points_and_zero_vectors_stay_finite(name, kind, value):
    network = make(name, D, projection=D, settings=SMALL.get(name, {}))
    support, query, unlabelled = (
        torch.full(part.shape, value, requires_grad=True) for part in drawn()
    )
    scores = network(support, query, unlabelled)
    torch.testing.assert_close(network.probabilities(scores), torch.full((E, M, C), 1 / C))
    network.loss(scores, torch.zeros(E, M, dtype=torch.long), kind).backward()
    for tensor in (support, query, unlabelled, *network.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all()


def test_a_zero_vector_has_no_cosine_gradient():
    points = torch.zeros(1, 1, D, requires_grad=True)
    Metric("cosine", D)(points, torch.randn(1, 3, D)).sum().backward()
    assert (points.grad == 0).all()


def test_squash_keeps_direction_and_stays_below_one():
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e4, 4e4]], requires_grad=True)
    made = squash(vectors)
    torch.testing.assert_close(made[0], torch.tensor([3.0, 4.0]) / 5 * 25 / 26)
    assert (made.norm(dim=-1) <= 1).all()
    made.sum().backward()
    assert (vectors.grad[1] == 0).all()


@pytest.mark.parametrize("name", ["matching-euclidean", "proto-euclidean", "proto-soft", "maml"])
def test_a_common_offset_costs_no_digits(name):
    """|x|² + |y|² - 2xy on points near 1000 would be wrong by whole units in float32."""
    far = tuple((part + 1000).float() for part in drawn())
    single = make(name, D, projection=None)
    double = make(name, D).double()
    torch.testing.assert_close(
        logs(single, *far).double(),
        logs(double, *(part.double() for part in far)),
        rtol=1e-3,
        atol=1e-3,
    )


@every
def test_half_precision_features_are_scored_in_single(name):
    network = make(name, D, settings=SMALL.get(name, {}))
    coarse = tuple(part.bfloat16() for part in drawn())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = network(*coarse)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, network(*(part.float() for part in coarse)))


def test_what_the_package_offers_is_there():
    import evenhand.fewshot as package

    assert package.__all__ == sorted(package.__all__) == dir(package)
    for name in package.__all__:
        assert getattr(package, name).__name__.removeprefix("evenhand.fewshot.") == name
    with pytest.raises(AttributeError, match="raed"):
        package.raed  # noqa: B018
