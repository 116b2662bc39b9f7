"""How each metric takes a query (targets and attributes), and which shapes it accepts.

Targets are the identity words (two groups, or more), attributes the words whose tie to them is
in question. A metric for one list of words is run on each attribute set by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenhand.lexicon import Query
from evenhand.results import Measurement
from evenhand.vectors import metrics
from evenhand.vectors.metrics.reading import Settings
from evenhand.vectors.store import Vectors

__all__ = ["Adapter", "direct_bias", "ect", "mac", "ripa", "rnd", "rnsb", "same", "weat", "wefat"]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A metric as a function of a query, with the shape it needs (None: any number)."""

    run: Callable[[Vectors, Query, Settings], list[Measurement]]
    targets: int | None = None
    attributes: int | None = None
    paired: bool = False
    fewest_targets: int = 1

    def misfit(self, query: Query) -> str | None:
        """Why a query of this shape cannot be taken, in words; None where it can."""
        counts = len(query.targets), len(query.attributes)
        for name, needed, count in zip(
            ("target", "attribute"), (self.targets, self.attributes), counts, strict=True
        ):
            if needed is not None and needed != count:
                return f"needs {needed} {name} set{'s' * (needed > 1)}, '{query.name}' has {count}"
        if counts[0] < self.fewest_targets:
            return f"needs {self.fewest_targets} or more target sets, '{query.name}' has 1"
        sizes = {len(words) for words in query.targets.values()}
        if self.paired and len(sizes) > 1:
            return f"pairs the words of its two target sets: '{query.name}' has unequal ones"
        return None

    def __call__(self, v: Vectors, query: Query, settings: Settings) -> list[Measurement]:
        return self.run(v, query, settings)


def _weat(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    (x, X), (y, Y) = q.targets.items()
    (a, A), (b, B) = q.attributes.items()
    return [metrics.weat(v, X, Y, A, B, names=(x, y, a, b), query=q.name, **settings)]


def _wefat(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    (words,) = q.targets.values()
    A, B = q.attributes.values()
    return [metrics.wefat(v, words, A, B, query=q.name, **settings)]


def _mac(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    return [metrics.mac(v, q.targets, q.attributes, query=q.name, **settings)]


def _rnsb(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    positive, negative = q.attributes.values()
    return [metrics.rnsb(v, q.targets, positive, negative, query=q.name, **settings)]


def _same(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    return [metrics.same(v, q.targets, every_attribute(q), query=q.name, **settings)]


def _direct_bias(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    return [metrics.direct_bias(v, pairs(q), every_attribute(q), query=q.name, **settings)]


def _ect(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    first, second = q.targets.values()
    return [metrics.ect(v, first, second, every_attribute(q), query=q.name, **settings)]


def _rnd(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    first, second = q.targets.values()
    return [
        metrics.rnd(v, first, second, words, query=f"{q.name}: {name}", **settings)
        for name, words in q.attributes.items()
    ]


def _ripa(v: Vectors, q: Query, settings: Settings) -> list[Measurement]:
    return [
        metrics.ripa(v, pairs(q), words, query=f"{q.name}: {name}", **settings)
        for name, words in q.attributes.items()
    ]


def every_attribute(query: Query) -> list[str]:
    """The words of all attribute sets, each once."""
    return list(dict.fromkeys(word for words in query.attributes.values() for word in words))


def pairs(query: Query) -> list[tuple[str, str]]:
    """The words of the two target sets, paired by position."""
    first, second = query.targets.values()
    return list(zip(first, second, strict=True))


weat = Adapter(_weat, targets=2, attributes=2)
wefat = Adapter(_wefat, targets=1, attributes=2)
mac = Adapter(_mac)
direct_bias = Adapter(_direct_bias, targets=2, paired=True)
ripa = Adapter(_ripa, targets=2, paired=True)
rnd = Adapter(_rnd, targets=2)
rnsb = Adapter(_rnsb, attributes=2, fewest_targets=2)
ect = Adapter(_ect, targets=2)
same = Adapter(_same, fewest_targets=2)
