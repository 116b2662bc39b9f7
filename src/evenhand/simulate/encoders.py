r"""A sentence encoder with an association of known strength, for exact and fast tests.

A text is a template with one word in it. Its vector is that of the template, plus that of the word,
plus noise of its own. The words of a query have directions: attribute words of the two sets
$g$ and $-g$, target words $b_t\,g$ and $-b_t\,g$, where $b_t$ is `bias` plus a deviation of the
template. All other words are noise. At bias 0 without deviations the two target sets are alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.lexicon import Query


@dataclass(frozen=True, eq=False)
class SimulatedEncoder:
    """An encoder that reads the words of a query.

    Parameters
    ----------
    query : Query
        Two target and two attribute sets.
    bias : float
        How far target words lean to their attribute set.
    spread : float
        The standard deviation of that between templates.
    identity : float
        How far attribute words do.
    noise : float
        The length of the noise of a single text; that of a word's own vector is 1.
    dim, seed : int
    name : str

    Examples
    --------
    >>> from evenhand.lexicon import weat
    >>> encoder = SimulatedEncoder(weat(7), bias=0.5)
    >>> encoder.encode(["This is math.", "This is poetry."]).shape
    (2, 50)
    """

    query: Query
    bias: float = 0.0
    spread: float = 0.0
    identity: float = 1.0
    noise: float = 0.3
    dim: int = 50
    seed: int = 0
    name: str = "simulated encoder"
    subject_kind: ClassVar[str] = "encoder"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on."""
        settings = (self.query, self.bias, self.spread, self.identity, self.noise, self.dim)
        return blake2b(repr((settings, self.seed)).encode(), digest_size=16).hexdigest()

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        """The vectors (n, dim) of texts, in their order."""
        axis = self._draw("axis")
        axis /= np.linalg.norm(axis)
        signs = {
            word.lower(): (kind, sign)
            for kind, sets in (("target", self.query.targets), ("attribute", self.query.attributes))
            for sign, words in zip((1, -1), sets.values(), strict=True)
            for word in words
        }
        vectors = []
        for text in texts:
            words = re.findall(r"[\w-]+", text.lower())
            word = next((known for known in words if known in signs), "")
            template = " ".join("_" if other == word else other for other in words)
            kind, sign = signs.get(word, ("", 0))
            lean = self.identity
            if kind == "target":
                deviation = self._generator(f"deviation {template}").standard_normal()
                lean = self.bias + self.spread * deviation
            vectors.append(
                self._draw(f"template {template}")
                + self._draw(f"word {word}")
                + self.noise * self._draw(f"text {' '.join(words)}")
                + sign * lean * axis
            )
        return np.array(vectors, dtype=np.float32)

    def _draw(self, what: str) -> NDArray[np.float64]:
        """Noise of length about one that belongs to something."""
        return np.asarray(self._generator(what).standard_normal(self.dim) / np.sqrt(self.dim))

    def _generator(self, what: str) -> np.random.Generator:
        digest = blake2b(f"{self.seed} {what}".encode(), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))
