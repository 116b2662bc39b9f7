"""Static word vectors: load them, measure their bias, reduce it, and look where it hides.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.vectors.weat(
...     v, X=["math", "physics"], Y=["poetry", "dance"], A=["he", "man"], B=["she", "woman"]
... )
>>> m.value > 0
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.vectors import debias
    from evenhand.vectors.debias import Debiased, hard, inlp, soft
    from evenhand.vectors.debias.subspace import bias_subspace
    from evenhand.vectors.distances import DistanceTable, association_contrast, distance_table
    from evenhand.vectors.hiding import cluster_purity, hiding_tests, neighbour_bias, recovery
    from evenhand.vectors.measuring import Measured, measure
    from evenhand.vectors.metrics import (
        accuracy,
        analogies,
        analogy,
        direct_bias,
        ect,
        mac,
        projections,
        ripa,
        rnd,
        rnsb,
        same,
        weat,
        wefat,
    )
    from evenhand.vectors.nulls import dimension_spread
    from evenhand.vectors.robustness import leave_one_out, split_half
    from evenhand.vectors.store import Found, Vectors, load
    from evenhand.vectors.utility import cosine_rank_correlation, neighbour_overlap

_PLACES = {
    "debias": ("Debiased", "hard", "inlp", "soft"),
    "debias.subspace": ("bias_subspace",),
    "distances": ("DistanceTable", "association_contrast", "distance_table"),
    "hiding": ("cluster_purity", "hiding_tests", "neighbour_bias", "recovery"),
    "measuring": ("Measured", "measure"),
    "metrics": (
        "accuracy", "analogies", "analogy", "direct_bias", "ect", "mac", "projections", "ripa",
        "rnd", "rnsb", "same", "weat", "wefat",
    ),
    "nulls": ("dimension_spread",),
    "robustness": ("leave_one_out", "split_half"),
    "store": ("Found", "Vectors", "load"),
    "utility": ("cosine_rank_correlation", "neighbour_overlap"),
}  # fmt: skip

__all__ = [
    "Debiased",
    "DistanceTable",
    "Found",
    "Measured",
    "Vectors",
    "accuracy",
    "analogies",
    "analogy",
    "association_contrast",
    "bias_subspace",
    "cluster_purity",
    "cosine_rank_correlation",
    "debias",
    "dimension_spread",
    "direct_bias",
    "distance_table",
    "ect",
    "hard",
    "hiding_tests",
    "inlp",
    "leave_one_out",
    "load",
    "mac",
    "measure",
    "neighbour_bias",
    "neighbour_overlap",
    "projections",
    "recovery",
    "ripa",
    "rnd",
    "rnsb",
    "same",
    "soft",
    "split_half",
    "weat",
    "wefat",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return import_module(f"evenhand.vectors.{name}")
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"evenhand.vectors.{module}"), name)
    raise AttributeError(f"module 'evenhand.vectors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
