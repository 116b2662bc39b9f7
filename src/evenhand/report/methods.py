"""What each measure is, in the reader's words: label, question, formula, source, scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.results import Measurement

__all__ = ["METHODS", "SCALES", "Method", "label", "name_of", "row_label", "used"]

SCALES = {
    "cosine": "Difference of cosines (ideal: 0)",
    "one": "Mean distance and rank agreement (ideal: 1)",
    "effect": "Effect size in standard deviations (ideal: 0)",
    "product": "Inner product, depends on the vectors' length (ideal: 0)",
    "divergence": "Divergence from an even spread (ideal: 0)",
}
"""Groups of measures that can share an axis."""


ELSEWHERE = frozenset(
    ("odds_ratio", "pronouns", "professions", "phrases", "phrases_pronouns")
)
"""Measures of other parts than word vectors, which have pages of methods of their own."""


@dataclass(frozen=True, slots=True)
class Method:
    """One measure as the page explains it."""

    label: str
    question: str
    formula: str
    source: str
    scale: str = ""


METHODS = {
    "association": Method(
        "Association contrast",
        "Is a stereotype word nearer the class it is told of than to the other classes?",
        "distance(i, j) = u_i + t_j + d · [j is a stereotype of i's class]; d by least squares, "
        "with an effect for each protected word i and each stereotype j",
        "our own, on distances as in Dobrzeniecka 2021", "cosine",
    ),
    "mac": Method(
        "MAC",
        "How far are the protected words from the stereotypes, all classes together?",
        "mean over protected words t and stereotype lists A of mean over a in A of 1 - cos(t, a)",
        "Manzini et al. 2019", "one",
    ),
    "direct_bias": Method(
        "Direct bias",
        "How far do words that should be neutral lean along the line between the classes?",
        "mean over words w of |cos(w, g)|, g the first principal component of the defining sets, "
        "each centred on its mean",
        "Bolukbasi et al. 2016", "cosine",
    ),
    "same": Method(
        "SAME",
        "How much of a word lies in the space that tells the classes apart?",
        "mean over words of the length of the unit vector's projection on the differences of the "
        "class centres",
        "Schröder et al. 2021", "cosine",
    ),
    "rnsb": Method(
        "RNSB",
        "Does a sentiment classifier spread bad sentiment evenly over the protected words?",
        "KL(p / sum p, uniform), p the negative probability of each protected word under a "
        "logistic regression trained on pleasant and unpleasant words",
        "Sweeney & Najafian 2019", "divergence",
    ),
    "weat": Method(
        "WEAT",
        "Do two sets of words differ in their tie to two other sets?",
        "s(w) = mean cos(w, a in A) - mean cos(w, b in B); "
        "d = (mean s(X) - mean s(Y)) / sd of s over X and Y, n - 1 in the sd",
        "Caliskan, Bryson & Narayanan 2017", "effect",
    ),
    "rnd": Method(
        "RND",
        "Are the words nearer the centre of one class than of the other?",
        "mean over words of |w - centre 1| - |w - centre 2|, unit vectors; below 0: nearer the "
        "first class",
        "Garg et al. 2018, there a sum", "cosine",
    ),
    "ect": Method(
        "ECT",
        "Do two classes rank the same words alike?",
        "Spearman's correlation, over the words, of their cosines with the two class centres",
        "Dev & Phillips 2019", "one",
    ),
    "ripa": Method(
        "RIPA",
        "Where do words fall on the relation between the two classes?",
        "mean over words of w · b, b the first principal component of the pairs' differences at "
        "length one, w at its own length; above 0: towards the first class",
        "Ethayarajh, Duvenaud & Hirst 2019", "product",
    ),
    "projections": Method(
        "Projections",
        "Do occupations held to be one class's fall on its side of the line between two words?",
        "cos(w, a - b) for each occupation; mean of the first list minus mean of the second",
        "Bolukbasi et al. 2016", "cosine",
    ),
    "wefat": Method(
        "WEFAT",
        "Does a word's tie to women's and men's words follow a fact about the world?",
        "s(w) = (mean cos(w, women's words) - mean cos(w, men's words)) / sd of these cosines; "
        "Pearson's correlation of s with the fact",
        "Caliskan, Bryson & Narayanan 2017",
    ),
    "leave_one_out(weat)": Method(
        "WEAT, leave one out",
        "Does the effect hang on a single word?",
        "lowest and highest WEAT when any one word of any list is left out",
        "our own",
    ),
    "split_half(weat)": Method(
        "WEAT, random halves",
        "Would half of each word list have said the same?",
        "WEAT on random halves of every list; the middle 95 % of them",
        "our own",
    ),
    "analogies": Method(
        "Analogies, own word kept",
        "In a : w = c : ?, is w itself the best answer if it may be given?",
        "the word with the largest cosine to w - a + c, unit vectors, with the three inputs "
        "allowed and barred",
        "Nissim, van Noord & van der Goot 2019",
    ),
    "analogy_accuracy": Method(
        "Analogies, factual control",
        "How often are analogies with one right answer answered right?",
        "as above, inputs barred",
        "Mikolov et al. 2013",
    ),
    "cluster_purity": Method(
        "Clusters",
        "Do k-means clusters still find the classes?",
        "share of words whose cluster is their class's, best matching of clusters to classes",
        "Gonen & Goldberg 2019",
    ),
    "recovery_linear": Method(
        "Linear classifier",
        "Can a linear support vector machine still tell the class of unseen words?",
        "share right in five-fold cross-validation",
        "Gonen & Goldberg 2019",
    ),
    "recovery_rbf": Method(
        "Non-linear classifier",
        "Can a support vector machine with an RBF kernel still tell it?",
        "share right in five-fold cross-validation",
        "Gonen & Goldberg 2019",
    ),
    "neighbour_bias": Method(
        "Neighbours",
        "Do words still stand among those that leaned as they did?",
        "Pearson's correlation of a word's original lean with the share of its 100 nearest "
        "neighbours that leaned the same way",
        "Gonen & Goldberg 2019",
    ),
    "neighbour_overlap": Method(
        "Neighbours kept",
        "How many of a word's ten nearest neighbours stay among the ten nearest?",
        "mean share over random words",
        "our own",
    ),
    "neighbour_rank_correlation": Method(
        "Order of neighbours kept",
        "Do a word's hundred nearest neighbours keep their order?",
        "mean Spearman correlation of the cosines before and after, over random words",
        "our own",
    ),
    "cosine_rank_correlation": Method(
        "Order of cosines kept",
        "Do random pairs of words keep the order of their cosines?",
        "Spearman's correlation over random pairs without common words",
        "our own",
    ),
    "dimension_spread": Method(
        "Dimension",
        "How does the spread of cosines between random vectors shrink with dimension?",
        "slope of log sd on log dimension; theory: -1/2",
        "Dobrzeniecka 2021",
    ),
}  # fmt: skip


def label(metric: str) -> str:
    """The measure's name for readers; a plugin's own name where we have none."""
    return METHODS[metric].label if metric in METHODS else metric.replace("_", " ")


def row_label(m: Measurement, topic: str) -> str:
    """The measure and which part of the topic it is about.

    >>> from evenhand.results import Measurement
    >>> m = Measurement(metric="rnd", query="race: black/asian: asian stereotypes", value=0,
    ...                 low=0, high=0, n=1, ideal=0, worse="away", interval="")
    >>> row_label(m, "race")
    'RND, black/asian: asian stereotypes'
    """
    return name_of(m.metric, m.query, topic)


def name_of(metric: str, query: str, topic: str) -> str:
    """The same of a metric and a query."""
    part = query.removeprefix(topic).removeprefix(":").strip()
    return f"{label(metric)}, {part}" if part else label(metric)


def used(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """The measurements by metric, in the order in which the metrics are explained.

    Those of the data, the model and the classifiers are explained by themselves, not here.
    """
    found: dict[str, list[Measurement]] = {}
    for m in measurements:
        if m.metric not in ELSEWHERE and not m.metric.startswith("fewshot_"):
            found.setdefault(m.metric, []).append(m)
    order = dict.fromkeys([*METHODS, *found])
    return {metric: found[metric] for metric in order if metric in found}
