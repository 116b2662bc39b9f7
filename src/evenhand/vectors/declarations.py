"""What is measured of word vectors beside the instruments: hidden bias, utility, dimension."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from evenhand.instruments import Declaration

_hiding = partial(Declaration, subjects=("vectors",), source="Gonen & Goldberg (2019)")
_cost = partial(Declaration, subjects=("vectors",), source="Evenhand", ideal=1.0, worse="lower")

CLUSTERS = _hiding(
    name="cluster_purity",
    label="Clusters",
    question="Do k-means clusters still find the classes?",
    formula="share of words whose cluster is their class's, best matching of clusters to classes",
    ideal=None,
    worse="higher",
)
RECOVERY = {
    kernel: replace(
        CLUSTERS,
        name=f"recovery_{kernel}",
        label=label,
        question=question,
        formula="share right in five-fold cross-validation",
    )
    for kernel, label, question in (
        (
            "linear",
            "Linear classifier",
            "Can a linear support vector machine still predict the class of unseen words?",
        ),
        (
            "rbf",
            "Non-linear classifier",
            "Can a support vector machine with an RBF kernel still predict it?",
        ),
    )
}
NEIGHBOURS = _hiding(
    name="neighbour_bias",
    label="Neighbours",
    question="Are words still among those that leaned as they did?",
    formula="Pearson's correlation of a word's original lean with the share of its 100 nearest "
    "neighbours that leaned the same way",
)
HIDING = tuple(each.name for each in (CLUSTERS, *RECOVERY.values(), NEIGHBOURS))
"""The tests for bias that is hidden after a mitigation."""
OVERLAP = _cost(
    name="neighbour_overlap",
    label="Neighbours preserved",
    question="How many of a word's ten nearest neighbours stay among the ten nearest?",
    formula="mean share over random words",
)
RANKS = _cost(
    name="neighbour_rank_correlation",
    label="Order of neighbours preserved",
    question="Do a word's hundred nearest neighbours keep their order?",
    formula="mean Spearman correlation of the cosines before and after, over random words",
)
COSINES = _cost(
    name="cosine_rank_correlation",
    label="Order of cosines preserved",
    question="Do random pairs of words keep the order of their cosines?",
    formula="Spearman's correlation over random pairs without common words",
)
DIMENSION = Declaration(
    name="dimension_spread",
    subjects=("vectors",),
    label="Dimension",
    question="How does the spread of cosines between random vectors shrink with dimension?",
    formula="slope of log sd on log dimension; theory: -1/2",
    source="Dobrzeniecka (2021)",
    ideal=-0.5,
)
DECLARATIONS = (CLUSTERS, *RECOVERY.values(), NEIGHBOURS, OVERLAP, RANKS, COSINES, DIMENSION)
