r"""Word vectors with a bias of known strength.

Every word is isotropic noise of length about one. The classes have directions that sum to zero
(for two classes $g$ and $-g$). A protected word adds `identity` times the direction of its class
and `shared` times a direction common to all protected words; a stereotype word adds `bias` times
the direction of its class. At bias 0 stereotype words are like all others, so every measure must
read zero, however strong the identity is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.lexicon import Topic


@dataclass(frozen=True, slots=True)
class World:
    """Simulated vectors, their word lists and their true bias.

    `directions` has one row per class; `ties[stereotyped, towards]` is the strength of the bias.
    """

    words: tuple[str, ...]
    matrix: NDArray[np.float32] = field(repr=False)
    topic: Topic
    directions: NDArray[np.float64] = field(repr=False)
    ties: Mapping[tuple[str, str], float]
    seed: int

    def population(self, stereotyped: str, size: int, *, seed: int) -> NDArray[np.float64]:
        """Draw vectors of further stereotypes of a class: the population for interval coverage."""
        rng = np.random.default_rng([self.seed, seed])
        noise = _noise(rng, size, self.directions.shape[1])
        return noise + _lean(stereotyped, self.topic.classes, self.ties, self.directions)


@checked
def world(
    *,
    dim: int = 100,
    vocabulary: int = 2000,
    classes: Sequence[str] = ("male", "female"),
    protected: int = 8,
    stereotypes: int = 12,
    identity: float = 0.8,
    shared: float = 0.8,
    bias: float | Mapping[tuple[str, str], float] = 0.0,
    seed: int = 0,
) -> World:
    """Simulate word vectors with a bias of known strength.

    Parameters
    ----------
    dim : int, default 100
    vocabulary : int, default 2000
        Number of words.
    classes : sequence of str
    protected, stereotypes : int
        Words per class.
    identity, shared : float
        Strength of the class direction and of the common direction of protected words.
    bias : float or mapping
        Strength with which the stereotypes of every class lean towards their class, or a mapping
        {(stereotyped class, class leaned to): strength}.
    seed : int, default 0

    Returns
    -------
    World
        Words are named by their kind (`male-protected-3`, `male-stereotype-0`, `word-17`) and are
        in random order of frequency.

    Examples
    --------
    >>> w = world(bias={("male", "female"): 0.5}, seed=1)
    >>> w.matrix.shape, w.ties
    ((2000, 100), {('male', 'female'): 0.5})
    """
    classes = tuple(classes)
    listed = len(classes) * (protected + stereotypes)
    if len(classes) < 2 or dim < len(classes) or protected < 2 or stereotypes < 1:
        raise InputError(
            "world: expected at least two classes, two protected words and one stereotype each, "
            f"and no fewer dimensions than classes; got {len(classes)}, {protected}, "
            f"{stereotypes}, {dim}"
        )
    if vocabulary < listed + 40:
        raise InputError(
            f"vocabulary: expected at least {listed + 40} (the listed words and 40 controls), "
            f"got {vocabulary}"
        )
    ties = (
        dict(bias) if isinstance(bias, Mapping) else {(name, name): float(bias) for name in classes}
    )
    for pair, tie in ties.items():
        if not math.isfinite(tie):
            raise InputError(f"bias: expected a finite number, got {tie}")
        if not set(pair) <= set(classes):
            raise InputError(f"bias: expected pairs of the classes {classes}, got {pair}")
    rng = np.random.default_rng(seed)
    common, directions = _directions(rng, len(classes), dim)
    names: list[str] = []
    vectors = _noise(rng, vocabulary, dim)
    for i, name in enumerate(classes):
        start = len(names)
        names += [f"{name}-protected-{j}" for j in range(protected)]
        vectors[start : len(names)] += identity * directions[i] + shared * common
        start = len(names)
        names += [f"{name}-stereotype-{j}" for j in range(stereotypes)]
        vectors[start : len(names)] += _lean(name, classes, ties, directions)
    names += [f"word-{j}" for j in range(vocabulary - listed)]
    order = rng.permutation(vocabulary)
    lists = {
        kind: {name: tuple(f"{name}-{kind}-{j}" for j in range(count)) for name in classes}
        for kind, count in (("protected", protected), ("stereotype", stereotypes))
    }
    sets = tuple(zip(*lists["protected"].values(), strict=True))
    topic = Topic(
        name="simulated",
        title="Simulated",
        classes=classes,
        protected=lists["protected"],
        stereotypes=lists["stereotype"],
        extra_stereotypes=dict.fromkeys(classes, ()),
        definitional=sets,
        equalize=sets,
        occupations={},
        sources={},
        human=tuple(f"word-{j}" for j in range(20)),
        neutral=tuple(f"word-{j}" for j in range(20, 40)),
        provenance=f"simulated: {ties}, seed {seed}",
    )
    return World(
        words=tuple(names[i] for i in order),
        matrix=vectors[order].astype(np.float32),
        topic=topic,
        directions=directions,
        ties=ties,
        seed=seed,
    )


def _noise(rng: np.random.Generator, size: int, dim: int) -> NDArray[np.float64]:
    return np.asarray(rng.standard_normal((size, dim)) / np.sqrt(dim))


def _directions(
    rng: np.random.Generator, classes: int, dim: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw a common unit vector and, orthogonal to it, one per class: corners of a simplex."""
    basis = np.linalg.qr(rng.standard_normal((dim, classes)))[0].T
    common = basis.mean(axis=0)
    corners = basis - common
    return (
        np.asarray(common / np.linalg.norm(common)),
        np.asarray(corners / np.linalg.norm(corners, axis=1, keepdims=True)),
    )


def _lean(
    stereotyped: str,
    classes: Sequence[str],
    ties: Mapping[tuple[str, str], float],
    directions: NDArray[np.float64],
) -> NDArray[np.float64]:
    strengths = np.array([ties.get((stereotyped, name), 0.0) for name in classes])
    return np.asarray(strengths @ directions)
