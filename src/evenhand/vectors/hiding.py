"""Hidden bias after a mitigation: the tests of Gonen & Goldberg (2019), before and after.

A projection can make every word neutral along one direction while the words that leaned the same
way still form clusters. Choose the words in the original vectors (`most_biased`), then test in any
vectors whether clusters, classifiers or neighbours still reveal which side each word was on.
Before the mitigation the values are high by construction, since the words were chosen there; what
counts is how much is left after. All tests use unit vectors, before and after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError, UnknownNameError, check_whole
from evenhand.instruments import Run, compare
from evenhand.results import Comparison, Items, Measurement
from evenhand.statistics.correlation import pearson
from evenhand.statistics.intervals import Floats, fisher_z, wilson
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.vectors.debias.groups import disjoint_groups, most_biased, word_bias
from evenhand.vectors.debias.subspace import unit_rows
from evenhand.vectors.declarations import CLUSTERS, NEIGHBOURS, RECOVERY
from evenhand.vectors.probes import ProbeTest, items_of
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import nearest
from evenhand.vectors.vocabulary import Groups

_DRAWS = 2000
"""Permutations where not all of them can be counted."""


@checked
def cluster_purity(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    *,
    query: str = "",
    starts: int = 10,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how well k-means, with one cluster per group, recovers the groups.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str
        The words of each group.
    query : str
        The name of the question.
    starts : int
        Random starts of k-means.
    seed, prob
        As for `Run`.

    Returns
    -------
    Measurement
        The share of words whose cluster is their group's, under the best one-to-one matching of
        clusters to groups. Even random clusters match a little better than 1/k: `ideal` is the
        mean over all permutations of the words' groups, the clusters given, and the p-value the
        share of permutations that match as well (exact for two groups).

    Notes
    -----
    Gonen & Goldberg (2019).

    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    check_whole(starts=starts)
    run = Run(seed=seed, prob=prob)
    known = disjoint_groups(v, groups, 2)
    k = len(known.names)
    kmeans = KMeans(n_clusters=k, n_init=starts, random_state=run.seed)
    with threadpool_limits(limits=1):  # threads add up in any order: not the same bytes twice
        clusters = kmeans.fit_predict(v.unit(known.rows))
    table = np.zeros((k, k), dtype=np.intp)
    np.add.at(table, (known.labels, clusters), 1)
    partner = _matching(table)
    hits = partner[known.labels] == clusters
    chance, test = _chance(known.labels, clusters, k, int(hits.sum()), run.seed)
    return CLUSTERS.result(
        run,
        query or _name(groups),
        wilson(int(hits.sum()), hits.size, run.prob),
        subject=v.name,
        p_value=test.p_value,
        test=test.text,
        n=hits.size,
        ideal=chance,
        interval="Wilson over the words, the clusters taken as given",
        left_out=known.missing,
        items=_items(known, hits.astype(float), kmeans=clusters.tolist()),
        details={
            "clusters": k,
            "cluster_sizes": np.bincount(clusters, minlength=k).tolist(),
            **test.details,
        },
    )


@checked
def recovery(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    kernel: Literal["linear", "rbf"] = "linear",
    *,
    query: str = "",
    folds: int = 5,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how often a support vector machine predicts the group of an unseen word.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str
        The words of each group.
    kernel : {"linear", "rbf"}
    folds : int
        Folds of the stratified cross-validation.
    query, seed, prob
        As for `cluster_purity`.

    Returns
    -------
    Measurement
        The accuracy; every word is predicted once, by a machine that saw only other words.
        `ideal` is the largest group's share, which a constant prediction reaches.

    Notes
    -----
    Gonen & Goldberg (2019). The interval covers which words are tested; the folds share training
    words, so it does not cover the choice of these, and there is no p-value.

    """
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.svm import SVC

    if kernel not in RECOVERY:
        raise UnknownNameError("kernel", kernel, RECOVERY)
    run = Run(seed=seed, prob=prob)
    if folds < 2:
        raise InputError(f"folds: expected 2 or more, got {folds}")
    known = disjoint_groups(v, groups, folds)
    predicted = cross_val_predict(
        SVC(kernel=kernel, gamma="scale"),
        v.unit(known.rows) * math.sqrt(v.dim),
        known.labels,
        cv=StratifiedKFold(folds, shuffle=True, random_state=run.seed),
    )
    hits = predicted == known.labels
    return RECOVERY[kernel].result(
        run,
        query or _name(groups),
        wilson(int(hits.sum()), hits.size, run.prob),
        subject=v.name,
        n=hits.size,
        ideal=float(np.bincount(known.labels).max() / hits.size),
        interval="Wilson over the tested words, the training words held fixed",
        left_out=known.missing,
        details={"kernel": kernel, "folds": folds},
        items=_items(known, hits.astype(float), predicted=[known.names[i] for i in predicted]),
    )


@checked
def neighbour_bias(
    v: Vectors,
    bias: Mapping[str, float],
    probes: Sequence[str],
    *,
    neighbours: int = 100,
    query: str = "",
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure whether words are still among those that leaned as they did originally.

    Parameters
    ----------
    v : Vectors
    bias : Mapping of str to float
        The original bias of the probe words and of every word that may be a neighbour
        (`word_bias` of the original vectors).
    probes : sequence of str
        The probe words. They are not neighbours of each other: each word's bias enters on one
        side only, so that permuting it among the probes is a valid test.
    neighbours : int
        The number of nearest neighbours.
    query : str
        The name of the question.
    seed, prob
        As for `Run`.

    Returns
    -------
    Measurement
        Pearson's correlation, over the probe words, of a word's own original bias with the share
        of positive ones among its nearest neighbours in `v`.

    Notes
    -----
    Gonen & Goldberg (2019).

    """
    run = Run(seed=seed, prob=prob)
    words = dict.fromkeys(probes)
    own = v.find(word for word in words if word in bias)
    others = v.find(word for word in bias if word not in words)
    if len(own.words) < 4:
        raise InputError(f"probes: expected 4 or more with an original bias, got {len(own.words)}")
    around = nearest(unit_rows(v.matrix[others.rows]), neighbours, unit_rows(v.matrix[own.rows]))[0]
    leans = np.array([bias[word] > 0 for word in others.words])
    x, shares = np.array([bias[word] for word in own.words]), leans[around].mean(axis=1)
    value, without = pearson(x, shares)
    defined = math.isfinite(value)
    low, high = fisher_z(value, x.size, run.prob) if defined else (-1.0, 1.0)
    test = _permutation_test(x, shares, run.seed) if defined else None
    return NEIGHBOURS.result(
        run,
        query or "probe words",
        (value, low, high),
        subject=v.name,
        p_value=test.p_value if test else None,
        test=f"{test.draws:,} permutations of the probe words' bias, two-sided" if test else "",
        n=x.size,
        interval="Fisher z over the probe words",
        items=Items({"word": own.words, "score": shares, "bias": x, "without": without}),
        left_out=tuple(word for word in words if word not in own.words),
        details={"neighbours": neighbours, **(test.details if test else {})},
    )


@checked
def hiding_tests(
    before: Vectors,
    after: Vectors,
    *,
    sets: Sequence[Sequence[str]] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    probes: Sequence[str] | None = None,
    n: int = 500,
    neighbours: int = 100,
    exclude: Iterable[str] = (),
    query: str = "",
    seed: int = 0,
    prob: float = 0.95,
) -> tuple[Comparison, ...]:
    """Compare clusters, linear and RBF recovery and neighbours before and after a mitigation.

    Parameters
    ----------
    before, after : Vectors
        With the same words.
    sets : sequence of sequences of str, optional
        Defining sets. Original bias is along their first component or, without sets, along the
        first principal component of the groups' means.
    groups : Mapping of str to sequence of str, optional
        The words of each class; by default the `n` most biased words on each side of the
        component in `before`.
    probes : sequence of str, optional
        The probe words of the neighbours; by default 1,000 random plain words, or a quarter of
        them where there are fewer than 4,000.
    n : int
        Words on each side, without `groups`.
    neighbours : int
        The number of nearest neighbours.
    exclude : iterable of str
        Words to leave out, such as those a mitigation was fitted on.
    query : str
        The name of the question.
    seed, prob
        As for `Run`.

    Returns
    -------
    tuple of Comparison
        cluster_purity, recovery_linear, recovery_rbf and neighbour_bias.

    Notes
    -----
    Gonen & Goldberg (2019).

    """
    if sets is None and groups is None:
        raise InputError("hiding_tests: expected sets or groups, got neither")
    barred = list(exclude)
    if groups is None:
        groups = most_biased(before, sets or (), n, exclude=barred)
    direction = sets if sets is not None else _between(before, groups)
    bias = word_bias(before, direction, exclude=barred)
    if probes is None:
        shuffled = np.random.default_rng(Run(seed=seed, prob=prob).seed).permutation(len(bias))
        listed = list(bias)
        probes = [listed[i] for i in np.sort(shuffled[: min(1000, len(bias) // 4)])]
    name = query or _name(groups)

    def measure(v: Vectors) -> list[Measurement]:
        return [
            cluster_purity(v, groups, query=name, seed=seed, prob=prob),
            recovery(v, groups, "linear", query=name, seed=seed, prob=prob),
            recovery(v, groups, "rbf", query=name, seed=seed, prob=prob),
            neighbour_bias(
                v, bias, probes, neighbours=neighbours, query=name, seed=seed, prob=prob
            ),
        ]

    return tuple(compare(*pair) for pair in zip(measure(before), measure(after), strict=True))


def _between(v: Vectors, groups: Mapping[str, Sequence[str]]) -> Floats:
    """The first principal component of the groups' means, positive on the first group's side."""
    known = disjoint_groups(v, groups, 1)
    unit = v.unit(known.rows)
    means = np.array([unit[known.labels == i].mean(axis=0) for i in range(len(known.names))])
    means -= means.mean(axis=0)
    axis = np.linalg.svd(means, full_matrices=False)[2][0]
    return np.asarray(axis if means[0] @ axis >= 0 else -axis)


def _name(groups: Mapping[str, Sequence[str]]) -> str:
    return " / ".join(f"{name} ({len(words)})" for name, words in groups.items())


def _items(known: Groups, scores: Floats, **columns: list[Any]) -> Items:
    """One row per word; `without` is the mean score of the others."""
    without = (scores.sum() - scores) / (scores.size - 1)
    return items_of(known, {**columns, "score": scores, "without": without})


def _matching(table: NDArray[np.intp]) -> NDArray[np.intp]:
    """The cluster of each group under the one-to-one matching with the most agreement."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(-table)[1])


def _chance(
    labels: NDArray[np.intp], clusters: NDArray[np.intp], k: int, hits: int, seed: int
) -> tuple[float, ProbeTest]:
    """Mean agreement and the chance of `hits` or more, over permutations of the labels."""
    n = labels.size
    if k == 2:
        from scipy.stats import hypergeom

        first, size = int((labels == 0).sum()), int((clusters == 0).sum())
        both = np.arange(max(0, first + size - n), min(first, size) + 1)
        agree = both + (n - first - size + both)
        agree = np.maximum(agree, n - agree)
        mass = hypergeom(n, first, size).pmf(both)
        p_value = min(1.0, float(mass[agree >= hits].sum()))
        test = ProbeTest(p_value, "exact permutation of the words' groups")
        return float(mass @ agree) / n, test
    agreed: list[int] = []

    def count(size: int, seed: Seed) -> int:
        rng = np.random.default_rng(seed)
        for _ in range(size):
            pairs = rng.permutation(labels) * k + clusters
            table = np.bincount(pairs, minlength=k * k).reshape(k, k)
            agreed.append(int(table[np.arange(k), _matching(table)].sum()))
        return sum(each >= hits for each in agreed[-size:])

    counted = draw_until_clear(count, _DRAWS, seed)
    text = f"{counted.draws:,} permutations of the words' groups"
    return float(np.mean(agreed)) / n, ProbeTest(counted.p_value, text, counted.details)


def _permutation_test(x: Floats, y: Floats, seed: int) -> Counted:
    """The number of permutations with a correlation as far from 0."""
    x, y = x - x.mean(), y - y.mean()

    def count(size: int, seed: Seed) -> int:
        rng = np.random.default_rng(seed)
        drawn = np.array([rng.permutation(x) @ y for _ in range(size)])
        return int((np.abs(drawn) >= abs(x @ y) * (1 - 1e-12)).sum())

    return draw_until_clear(count, _DRAWS, seed)
