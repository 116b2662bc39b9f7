"""Nine few-shot classifiers on features, one file per family, vectorised over many episodes.

>>> import torch
>>> network = make("proto-euclidean", 2, settings={"scale": 1.0})
>>> support = torch.tensor([[[[0.0, 0.0]], [[2.0, 0.0]]]])  # 1 episode, 2 classes, 1 shot, dim 2
>>> scores = network(support, torch.tensor([[[0.5, 0.0]]]))  # 1 query
>>> network.probabilities(scores).tolist()  # distances² 0.25 and 2.25: 1 / (1 + e⁻²)
[[[0.880..., 0.119...]]]
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenhand.arguments import checked
from evenhand.errors import InputError, require_models
from evenhand.registry import Registry

if TYPE_CHECKING:
    from evenhand.fewshot.networks.base import FewShotNetwork

__all__ = ["LOSSES", "NAMES", "make", "options"]

LOSSES = ("ce", "mse")
"""Cross-entropy, and the squared error of relation and induction networks in El Zein (2021)."""

_HERE = "evenhand.fewshot.networks"
_PRESET: Mapping[str, tuple[str, dict[str, str]]] = {
    "matching-cosine": ("matching:Matching", {"metric": "cosine"}),
    "matching-euclidean": ("matching:Matching", {"metric": "euclidean"}),
    "proto-euclidean": ("prototypical:Prototypical", {"metric": "euclidean"}),
    "proto-cosine": ("prototypical:Prototypical", {"metric": "cosine"}),
    "proto-soft": ("prototypical:SoftPrototypical", {}),
    "relation-base": ("relation:RelationBase", {}),
    "relation-ntl": ("relation:RelationNTL", {}),
    "induction": ("induction:Induction", {}),
    "maml": ("maml:MAML", {}),
}
_REGISTRY = Registry(
    "network", {name: f"{_HERE}.{target}" for name, (target, _) in _PRESET.items()}
)

LARGEST = 100_000
"""The largest size, or number of steps, of a network."""
MOST_WEIGHTS = 1 << 28

NAMES = tuple(_PRESET)
"""Every network that is trained, by its name on the command line."""

IN_CONTEXT = "in-context"
"""A causal model that reads the examples in its prompt, which is not trained."""

CHOICES = (*NAMES, IN_CONTEXT)


def options(name: str) -> tuple[str, ...]:
    """The settings that `make` takes for this network besides name, dim and seed.

    >>> options("relation-base")
    ('projection', 'hidden')
    """
    require_models("a few-shot network")
    parameters = inspect.signature(_REGISTRY[name].__init__).parameters
    fixed = {"self", "dim", *_PRESET[name][1]}
    return tuple(parameter for parameter in parameters if parameter not in fixed)


@checked
def make(
    name: str,
    dim: int,
    *,
    projection: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> FewShotNetwork:
    """A new network for features of width `dim`; the same seed gives the same initial weights.

    `projection` puts a learned linear map to that many dimensions before it, which begins as the
    identity (as a random rotation where the width changes): on frozen features matching and
    prototypical networks have little else to learn. `settings` are the family's own (`options`).

    >>> make("porto-cosine", 8)
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown network 'porto-cosine': did you mean...
    >>> make("proto-cosine", 8, settings={"slices": 3})
    Traceback (most recent call last):
    evenhand.errors.InputError: network proto-cosine: no option 'slices' (it has projection, scale)
    """
    require_models("a few-shot network")
    import torch

    family, chosen = _REGISTRY[name], {"projection": projection, **(settings or {})}
    for key in chosen:
        if key not in options(name):
            raise InputError(
                f"network {name}: no option '{key}' (it has {', '.join(options(name))})"
            )
    for key, value in {"dim": dim, "projection": chosen["projection"]}.items():
        if value is not None and value < 1:
            raise InputError(f"network {name}: {key} must be at least 1, got {value}")
    parameters = inspect.signature(family.__init__).parameters
    for key, value in {"dim": dim, **chosen}.items():
        whole = value is not None and str(parameters[key].annotation).startswith("int")
        if whole and not (isinstance(value, int) and value <= LARGEST):
            raise InputError(
                f"network {name}: {key}: expected a whole number up to {LARGEST:,}, got {value}"
            )
    with torch.device("meta"):  # as large as the network, without its memory
        planned = family(dim, **_PRESET[name][1], **chosen)
    size = sum(weight.numel() for weight in planned.parameters())
    if size > MOST_WEIGHTS:
        raise InputError(
            f"network {name}: expected options for at most {MOST_WEIGHTS:,} weights, got {size:,}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network: FewShotNetwork = family(dim, **_PRESET[name][1], **chosen)
    return network
