r"""How many stereotypes until a difference of a given size is found: planning a study of δ.

Found means that the highest-density interval of δ in the crossed model lies on the effect's side
of 0. With the scales known the power is about $\Phi(d / s_n - z)$, where $s_n$ is the posterior
standard deviation of δ with n attributes (`power.Precision`) and z the interval's normal quantile.
Whoever fits the model does not know the scales, so tables are simulated and fitted with the scales
integrated out; the share in which δ is found is put on the curve $\Phi(a + b\, d / s_n)$.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.errors import InputError
from evenhand.intervals import wilson
from evenhand.lexicon import Topic, topic, topic_names
from evenhand.posterior.crossed import CrossedPrior
from evenhand.posterior.crossed_fit import check_identified
from evenhand.posterior.fits import Fit
from evenhand.posterior.models import fit
from evenhand.posterior.power import (
    SCALES,
    Layout,
    Precision,
    delta_posterior,
    simulated_data,
)
from evenhand.posterior.tables import read_table

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = ["RELIGION", "Plan", "Point", "plan"]

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]

RELIGION = {"error": 0.118, "stereotype": 0.183, "delta": 0.030, "word": 0.142}
"""Posterior medians of crossed on the thesis' table of religion in Reddit vectors (4,200 rows).

`word` is the spread of a word's level on stereotypes: √(.034² + .138²), from word and slope."""
MOST = 1000
"""More attributes than this are not looked at."""
ENDLESS = 1e9
ASIDE = (-0.6, -0.2, 0.2, 0.6, 1.0)
"""Where tables are simulated: so far from the wanted power by the approximation, in probits."""
LOOSE = 0.5
"""How far, in standard deviations, a and b may lie from the approximation's -z and 1."""
SURE = 0.95
RELIGION_NOTE = (
    "the scales are those of religion in Reddit vectors: yours may differ, so fit a first table "
    "of your vectors and plan from that"
)


@dataclass(frozen=True, slots=True)
class Point:
    """The power with so many attributes: simulated with its interval, and by the approximation."""

    attributes: int
    sd: float
    approximate: float
    found: int
    sets: int
    power: float
    low: float
    high: float
    fitted: float

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many stereotypes are needed, all classes together.

    `low` and `high` hold the number with probability .95 as far as the simulation goes;
    `scales_range` with probability `prob` as far as the table tells the scales (a topic tells
    none). A number of None is more than are looked at, or than any attributes can give.
    `approximate` is the number by the approximation alone, `limit` the power with endless
    attributes, `has` what the topic or table has now and `power_now` the power with that.
    """

    source: str
    effect: float
    power: float
    prob: float
    seed: int
    words: int
    classes: int
    scales: Mapping[str, float]
    needed: int | None
    low: int | None
    high: int | None
    scales_range: tuple[int | None, int | None] | None
    approximate: int | None
    limit: float
    has: int
    power_now: float
    curve: tuple[Point, ...]
    notes: tuple[str, ...]

    @property
    def per_class(self) -> int | None:
        """The number for each class, where all classes are to have as many."""
        return -(-self.needed // self.classes) if self.needed and self.classes else None

    def as_dict(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "per_class": self.per_class}


def plan(
    source: Topic | Source,
    effect: float = 0.05,
    power: float = 0.8,
    prob: float = 0.89,
    seed: int = 0,
    *,
    sets: int = 120,
    progress: Progress | None = None,
) -> Plan:
    """Plan for a topic (or its name), with religion's scales, or for a table, with its own.

    `sets` tables are simulated at each of some five numbers of attributes; `progress` is told how
    many are done, and of how many.

    >>> found = plan("religion", effect=0.1, sets=20)
    >>> 3 <= found.needed <= 9, found.words, found.classes
    (True, 15, 3)
    """
    _check(effect, power, prob, sets)
    effect = abs(effect)
    setting = _setting(source, seed)
    from scipy.special import ndtr, ndtri

    z, wanted = float(ndtri((1 + prob) / 2)), float(ndtri(power))
    numbers = np.arange(max(2, setting.layout.classes), MOST + 1)
    ratio = effect / setting.precision().sd(numbers)
    chosen = _grid(numbers, ratio - z, wanted)
    found = _simulate(setting, numbers[chosen], effect, prob, sets, seed, progress)
    line = _Line.fitted(ratio[chosen], found, sets, z)
    middle, half = line.at(ratio), line.half(ratio)

    def number(height: Floats) -> int | None:
        return _first(numbers, height >= wanted)

    needed = number(middle)
    others = [number(line.at(effect / p.sd(numbers))) for p in setting.precisions()]
    limit = float(ndtr(line.at(effect / setting.precision().sd(ENDLESS))))
    return Plan(
        source=setting.name,
        effect=effect,
        power=power,
        prob=prob,
        seed=seed,
        words=setting.layout.words,
        classes=setting.layout.classes,
        scales=dict(zip(SCALES, map(float, setting.scales), strict=True)),
        needed=needed,
        low=number(middle + half),
        high=number(middle - half),
        scales_range=_middle(others, prob),
        approximate=number(ratio - z),
        limit=limit,
        has=setting.has,
        power_now=float(ndtr(line.at(effect / setting.precision().sd(setting.has)))),
        curve=tuple(
            Point(
                int(numbers[k]), float(effect / ratio[k]), float(ndtr(ratio[k] - z)),
                int(count), sets, *wilson(int(count), sets, SURE), float(ndtr(middle[k])),
            )
            for k, count in zip(chosen, found, strict=True)
        ),
        notes=_notes(setting, needed, limit),
    )  # fmt: skip


def _check(effect: float, power: float, prob: float, sets: int) -> None:
    if not 0 < abs(effect) < 2:
        raise InputError(f"effect: expected a difference of distances, not 0, got {effect:g}")
    if not 0 < prob < 1:
        raise InputError(f"prob: expected a number between 0 and 1, got {prob:g}")
    if not 1 - prob < power < 1:
        raise InputError(
            f"power: expected more than {1 - prob:.2g}, the share of false findings, and less "
            f"than 1, got {power:g}"
        )
    if sets < 10:
        raise InputError(f"sets: expected at least 10, got {sets}")


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is planned for: the layout, the scales, and draws of them where a table tells them."""

    name: str
    layout: Layout
    scales: Floats
    draws: Floats
    has: int
    notes: tuple[str, ...] = ()

    def precision(self) -> Precision:
        return Precision(self.layout, self.scales, CrossedPrior())

    def precisions(self) -> list[Precision]:
        return [Precision(self.layout, scales, CrossedPrior()) for scales in self.draws]


def _setting(source: Topic | Source, seed: int) -> _Setting:
    if isinstance(source, str | os.PathLike) and _names_topic(source):
        source = topic(source)
    if isinstance(source, Topic):
        layout = Layout.of_classes([len(set(source.protected[c])) for c in source.classes])
        scales = np.array([RELIGION[name] for name in SCALES])
        has = sum(len(set(source.stereotypes[c])) for c in source.classes)
        return _Setting(source.name, layout, scales, scales[None, :][:0], has, (RELIGION_NOTE,))
    table = read_table(source)
    check_identified(table)
    draws = _scales(fit(table, draws=2000, seed=seed))
    layout = Layout.of_table(table)
    median = np.median(draws, axis=0)
    return _Setting(table.source, layout, median, draws[:: len(draws) // 200], len(layout.own))


def _names_topic(source: str | os.PathLike[str]) -> bool:
    """Whether a topic is meant: a built-in name, a TOML file, or a bare name that is no file."""
    path = Path(source)
    bare = not path.suffix and not path.exists() and path.name == os.fspath(source)
    return os.fspath(source) in topic_names() or path.suffix == ".toml" or bare


def _scales(fitted: Fit) -> Floats:
    """Draws of the scales of the model without controls (draws × `SCALES`)."""
    names = fitted.entries["scale"]
    drawn = fitted.draws["scale"].reshape(-1, len(names))
    by_name = {name: drawn[:, k] for k, name in enumerate(names)}
    slope = by_name.get("slope_stereotype", np.zeros(len(drawn)))
    by_name["word"] = np.hypot(by_name["word"], slope)
    return np.stack([by_name[name] for name in SCALES], axis=1)


def _grid(numbers: NDArray[np.int64], height: Floats, wanted: float) -> NDArray[np.int64]:
    """Where in `numbers` to simulate: about the wanted power by the approximation."""
    last = len(numbers) - 1
    places = [int(np.argmax(height >= wanted + a)) for a in ASIDE if height[-1] >= wanted + a]
    chosen = sorted(set(places))
    if len(chosen) < 3:
        top = chosen[-1] + 2 * int(numbers[0]) if chosen else last
        ends = (numbers[0], numbers[min(top, last)])
        chosen = sorted({int(n - numbers[0]) for n in np.geomspace(*ends, len(ASIDE)).round()})
    return np.array(chosen)


def _simulate(
    setting: _Setting,
    numbers: NDArray[np.int64],
    effect: float,
    prob: float,
    sets: int,
    seed: int,
    progress: Progress | None,
) -> list[int]:
    """In how many of the tables with so many attributes each the effect is found."""
    import scipy.optimize  # noqa: F401  (before its threads are limited)

    found = [0] * len(numbers)
    children = np.random.SeedSequence(seed).spawn(len(numbers) * sets)
    with threadpool_limits(1, "blas"):
        for index, child in enumerate(children):
            place, rng = index // sets, np.random.default_rng(child)
            data = simulated_data(setting.layout, int(numbers[place]), effect, setting.scales, rng)
            posterior = delta_posterior(data, CrossedPrior(), setting.scales, rng)
            right = posterior.moments()[0] > 0
            found[place] += right and posterior.mass_denser_than(0.0) > prob
            if progress:
                progress(index + 1, len(children))
    return found


@dataclass(frozen=True, slots=True)
class _Line:
    """probit(power) = a + b x with x = d / s_n, and the covariance of (a, b)."""

    coefficients: Floats
    covariance: Floats

    @classmethod
    def fitted(cls, x: Floats, found: Sequence[int], sets: int, z: float) -> _Line:
        """By Fisher scoring, about the approximation a = -z, b = 1, as a loose normal prior."""
        from scipy.special import ndtr

        design = np.stack([np.ones_like(x), x], axis=1)
        center = np.array([-z, 1.0])
        now, share = center.copy(), np.asarray(found) / sets
        for _ in range(50):
            height = design @ now
            p = np.clip(ndtr(height), 1e-9, 1 - 1e-9)
            slope = np.exp(-0.5 * height**2) / np.sqrt(2 * np.pi)
            weight = sets * slope**2 / (p * (1 - p))
            information = design.T @ (weight[:, None] * design) + np.eye(2) / LOOSE**2
            score = design.T @ (sets * slope * (share - p) / (p * (1 - p)))
            now = now + np.linalg.solve(information, score - (now - center) / LOOSE**2)
            now[1] = max(now[1], 0.1)
        return cls(now, np.linalg.inv(information))

    def at(self, x: Floats) -> Floats:
        return np.asarray(self.coefficients[0] + self.coefficients[1] * x)

    def half(self, x: Floats) -> Floats:
        """Half the width of the interval about the line."""
        from scipy.special import ndtri

        c = self.covariance
        spread = np.sqrt(c[0, 0] + 2 * c[0, 1] * x + c[1, 1] * x**2)
        return np.asarray(ndtri((1 + SURE) / 2) * spread)


def _first(numbers: NDArray[np.int64], reached: NDArray[np.bool_]) -> int | None:
    return int(numbers[np.argmax(reached)]) if reached.any() else None


def _middle(others: list[int | None], prob: float) -> tuple[int | None, int | None] | None:
    """Between which numbers the middle share `prob` of them lies, None being the largest."""
    if not others:
        return None
    ordered = sorted(others, key=lambda n: MOST + 1 if n is None else n)
    skip = int((1 - prob) / 2 * len(ordered))
    return ordered[skip], ordered[-1 - skip]


def _notes(setting: _Setting, needed: int | None, limit: float) -> tuple[str, ...]:
    if needed is not None:
        return setting.notes
    floor = float(setting.precision().sd(ENDLESS))
    return (
        f"not reached with {MOST:,} attributes: with {setting.layout.words} protected words whose "
        f"own δ differ, the standard deviation of δ stays above {floor:.3f} and the power below "
        f"about {limit:.2f}; more protected words would help",
        *setting.notes,
    )
