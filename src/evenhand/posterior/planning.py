r"""Planning a study of δ: how many stereotypes are needed to detect a difference of a given size.

A difference is detected if the highest-density interval of δ in the crossed model lies on the
effect's side of 0. With known scales the power is about $\Phi(d / s_n - z)$, where $s_n$ is the
posterior standard deviation of δ with n attributes (`Precision`) and z the normal quantile of the
interval. In practice the scales are unknown, so tables are simulated and fitted with the scales
integrated out, and the share of detections is fitted by the curve $\Phi(a + b\, d / s_n)$.

Only the rows of stereotypes are simulated. Control words inform the scale of the error and $u_i$,
but the level of a word on stereotypes, $u_i + s_i$, is informed by the stereotypes themselves. So a
design is the crossed model without controls, with $\sqrt{\tau_u^2 + \tau_s^2}$ as the spread of
that level, at a third of the cost. It is slightly conservative: of 200 tables with δ = -.05 and 269
controls the model detects it in 75 %, without the controls in 72 %.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.lexicon import Topic, topic, topic_names
from evenhand.posterior.crossed import (
    CrossedData,
    CrossedPrior,
    Marginal,
    check_identified,
    find_classes,
)
from evenhand.posterior.fits import Fit
from evenhand.posterior.models import fit
from evenhand.posterior.tables import Source, Table, read_table
from evenhand.results import Estimate, Measurement, Measurements
from evenhand.statistics.intervals import Floats, wilson
from evenhand.statistics.mcmc import Proposal

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Progress = Callable[[int, int], None]


SCALES = ("error", "stereotype", "delta", "word", "interaction_stereotype")
"""Scales of the model without controls, in the order of `CrossedData.scales`."""
STARTS, FIRST, SECOND = 60, 200, 400
"""Starting points, and points of the two rounds of importance sampling."""
NEGLIGIBLE = 1e-6
REACH, RESOLUTION = 6.0, 601
"""Standard deviations around the mean, and points, at which a density is evaluated."""


@dataclass(frozen=True, slots=True)
class PlanLayout:
    """Kinds of attributes, one row per kind and one column per protected word.

    `present` marks cells with a distance, `associated` those of the word's own class; `word_class`
    is the index of the class of every word. Attributes are taken from the kinds in turn, so that
    the classes differ by at most one attribute.
    """

    associated: Flags
    present: Flags
    word_class: Ints

    @classmethod
    def of_classes(cls, words: Sequence[int]) -> PlanLayout:
        """Build one kind per class from the numbers of protected words of the classes.

        >>> PlanLayout.of_classes([2, 1]).associated.astype(int).tolist()
        [[1, 1, 0], [0, 0, 1]]
        """
        label = np.repeat(np.arange(len(words)), words)
        associated = np.arange(len(words))[:, None] == label
        return cls(associated, np.ones_like(associated), label)

    @classmethod
    def of_table(cls, table: Table) -> PlanLayout:
        """Build one kind per stereotype of a table."""
        table = table.select(table.group[table.attribute] == 0)
        shape = (len(table.attributes), len(table.words))
        associated, present = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        present[table.attribute, table.word] = True
        associated[table.attribute, table.word] = table.connection == 0
        return cls(associated, present, find_classes(table))

    @property
    def words(self) -> int:
        return int(self.associated.shape[1])

    @property
    def classes(self) -> int:
        return int(np.unique(self.word_class).size)

    def cells(self, kinds: Ints) -> CrossedData:
        """Cells of a table with these kinds of attributes; all distances are 0."""
        attribute, word = np.nonzero(self.present[kinds])
        return CrossedData(
            np.zeros(word.size),
            word,
            attribute,
            self.associated[kinds][attribute, word],
            np.zeros(len(kinds), dtype=np.int64),
            self.word_class,
        )

    def draw(self, attributes: int, rng: np.random.Generator) -> CrossedData:
        """Cells of a number of attributes, the kinds in turn and in random order."""
        return self.cells(np.resize(rng.permutation(len(self.associated)), attributes))


class Precision:
    r"""Posterior standard deviation of δ by number of attributes, for known scales.

    With $\theta$ and $\eta$ integrated out an attribute adds $X_j^\top \Sigma_j^{-1} X_j$ to the
    information on $\beta$; $n$ attributes of random kinds add $n$ times the mean over the kinds.
    The variance of δ is its entry of $(D^{-1} + n \bar M)^{-1}$, with $D$ the prior variances.
    """

    def __init__(self, layout: PlanLayout, scales: Floats, prior: CrossedPrior) -> None:
        marginal = Marginal(layout.cells(np.arange(len(layout.associated))), prior)
        lower = marginal.factor(scales[None])[0][0, :-1, :-1]
        information = (lower @ lower.T - np.eye(len(lower))) / len(layout.associated)
        self.eigenvalues, vectors = np.linalg.eigh(information)
        self.share = vectors[1] ** 2
        self.delta_sd = prior.delta_sd

    def sd(self, attributes: ArrayLike) -> Floats:
        """Standard deviation for every number of attributes, integer or not."""
        n = np.asarray(attributes, dtype=float)[..., None]
        return np.asarray(self.delta_sd * np.sqrt((1 / (1 + n * self.eigenvalues)) @ self.share))


def simulate_data(
    layout: PlanLayout, attributes: int, effect: float, scales: Floats, rng: np.random.Generator
) -> CrossedData:
    """Simulate a table from the model, with new attributes and words."""
    cells = layout.draw(attributes, rng)
    error, stereotype, delta, word, interaction = scales
    theta = stereotype * rng.standard_normal(attributes)
    level = word * rng.standard_normal(layout.words)
    deltas = effect + delta * rng.standard_normal(layout.words)
    y = 1.0 + theta[cells.attribute] + level[cells.word] + deltas[cells.word] * cells.associated
    y += error * rng.standard_normal(y.size)
    eta = interaction * rng.standard_normal((attributes, int(layout.word_class.max()) + 1))
    y += eta[cells.attribute, layout.word_class[cells.word]]
    return replace(cells, y=y)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Posterior of δ: one weighted normal per set of scales."""

    weight: Floats
    mean: Floats
    sd: Floats

    def density(self, x: Floats) -> Floats:
        z = (x[:, None] - self.mean) / self.sd
        return np.asarray(np.exp(-0.5 * z**2) @ (self.weight / self.sd) / np.sqrt(2 * np.pi))

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        mean = float(self.weight @ self.mean)
        return mean, float(np.sqrt(self.weight @ (self.sd**2 + (self.mean - mean) ** 2)))

    def detects(self, effect: float, prob: float) -> bool:
        """Whether the highest-density interval excludes 0, on the side of the effect if any."""
        same_side = not effect or self.moments()[0] * effect > 0
        return same_side and self.mass_denser_than(0.0) > prob

    def mass_denser_than(self, x: float) -> float:
        """Probability of all values with a higher density than x.

        The highest-density interval of that probability ends at x; shorter ones exclude x.
        """
        center, spread = self.moments()
        grid = np.linspace(center - REACH * spread, center + REACH * spread, RESOLUTION)
        density = self.density(grid)
        above = density > self.density(np.array([x]))
        return float(density[above].sum() / density.sum())


def sample_delta(
    data: CrossedData, prior: CrossedPrior, guess: Floats, rng: np.random.Generator
) -> Mixture:
    """Sample the posterior of δ, the scales integrated out by two rounds of importance sampling.

    `guess` is where the search for the mode of the scales starts. The proposal is a t distribution,
    around the mode in the first round and fitted to the points of the first round in the second.
    """
    marginal = Marginal(data, prior)
    start = marginal.start(guess, STARTS, rng)
    points, weight = _sample_weighted(marginal, Proposal.fit(start), FIRST, rng)
    tempered = np.sqrt(weight)
    resampled = points[rng.choice(FIRST, size=FIRST, p=tempered / tempered.sum())]
    points, weight = _sample_weighted(marginal, Proposal.fit(resampled), SECOND, rng)
    relevant = weight > NEGLIGIBLE
    lower = marginal.factor(marginal.to_scales(points[relevant]))[0]
    unit = np.zeros((len(lower), lower.shape[1] - 1, 1))
    unit[:, 1] = 1.0
    column = np.linalg.solve(lower[:, :-1, :-1], unit)[..., 0]
    return Mixture(
        weight[relevant] / weight[relevant].sum(),
        prior.delta_sd * np.sum(column * lower[:, -1, :-1], axis=1),
        prior.delta_sd * np.sqrt(np.sum(column**2, axis=1)),
    )


def _simulate_posterior(
    layout: PlanLayout,
    attributes: int,
    effect: float,
    scales: Floats,
    seed: np.random.SeedSequence,
) -> Mixture:
    rng = np.random.default_rng(seed)
    data = simulate_data(layout, attributes, effect, scales, rng)
    return sample_delta(data, CrossedPrior(), scales, rng)


def _sample_weighted(
    marginal: Marginal, proposal: Proposal, size: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw points of `Marginal` with weights; the weight is 0 where a scale would be negative."""
    points = proposal.draw(size, rng)
    log_weight = marginal(points) - proposal.log_density(points)
    weight = np.exp(log_weight - log_weight.max())
    return points, weight / weight.sum()


RELIGION = {
    "error": 0.118,
    "stereotype": 0.198,
    "delta": 0.023,
    "word": 0.151,
    "interaction_stereotype": 0.010,
}
"""Posterior root mean squares of crossed on the religion table of Dobrzeniecka (2021), 4,200 rows.

`word` is the spread of the level of a word on stereotypes, √(.034² + .138²)."""
MAX_ATTRIBUTES = 1000
"""Largest number of attributes that is considered."""
UNLIMITED = 1e9
OFFSETS = (-0.6, -0.2, 0.2, 0.6, 1.0)
"""Differences from the target power, in probits, at which tables are simulated."""
CURVE_SD = 0.5
"""Prior standard deviation of a and b around -z and 1, the values of the approximation."""
SIMULATION_PROB = 0.95
RELIGION_NOTE = (
    "the scales are those of religion in Reddit vectors; for other vectors fit a first table and "
    "plan from it"
)


def show_count(attributes: int | None) -> str:
    """A needed number of attributes, in words."""
    return f"more than {MAX_ATTRIBUTES:,}" if attributes is None else f"{attributes:,}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Result):
    """Number of stereotypes needed, over all classes.

    Attributes
    ----------
    needed, low, high : int or None
        Number of stereotypes and its 95 % interval due to simulation. None: more than
        `MAX_ATTRIBUTES`, or the power cannot be reached.
    scales_range : tuple of int or None
        Interval of probability `prob` due to the uncertainty of the scales; None for a topic, which
        does not inform them.
    approximate : int or None
        Number by the approximation.
    limit : float
        Power with unlimited attributes.
    available : int
        Number of stereotypes in the topic or table.
    power_available : Estimate
        Power with the available stereotypes, and its 95 % interval due to simulation.
    curve : tuple of Measurement
        Simulated power by number of stereotypes; `details` has `attributes`, the posterior standard
        deviation `sd` of δ, the number of tables in which it was `detected`, and the power by the
        approximation (`approximate`) and by the fitted curve (`fitted`).
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
    available: int
    power_available: Estimate
    curve: tuple[Measurement, ...]
    notes: tuple[str, ...]

    @property
    def per_class(self) -> int | None:
        """Number per class, if all classes have the same number."""
        return -(-self.needed // self.classes) if self.needed and self.classes else None

    @property
    def sentence(self) -> str:
        """How many stereotypes are needed, how sure that is, and what the available ones give."""
        by_class = f", {self.per_class:,} per class" if self.per_class else ""
        now = self.power_available
        return (
            f"To detect a difference of {self.effect:g} with a power of {self.power:g}, "
            f"{show_count(self.needed)} stereotypes are needed{by_class} (simulation, 95%: "
            f"{show_count(self.low)} to {show_count(self.high)}); the {self.available:,} available "
            f"give a power of {now.value:.2f} [{now.low:.2f}, {now.high:.2f}]."
        )

    def to_dict(self) -> dict[str, object]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "per_class": self.per_class, "sentence": self.sentence}

    def _headline(self) -> str:
        needed = "more than could be tried" if self.needed is None else f"{self.needed} words"
        return f"{self.source}: {needed} for power {self.power:g} at an effect of {self.effect:g}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return Measurements(self.curve)._rows()


def plan(
    source: Topic | Source,
    effect: float = 0.05,
    power: float = 0.8,
    prob: float = 0.95,
    seed: int = 0,
    *,
    sets: int = 120,
    progress: Progress | None = None,
) -> Plan:
    """Plan how many stereotypes a study of δ needs.

    Parameters
    ----------
    source : Topic, str, path, DataFrame, DistanceTable or Table
        A topic or its name, planned with the scales of religion, or a distance table, planned with
        its own scales.
    effect : float, default 0.05
        Size of δ to detect.
    power : float, default 0.8
        Target probability of detection.
    prob : float, default 0.95
        Probability of the highest-density interval.
    seed : int, default 0
    sets : int, default 120
        Tables simulated at each of about five numbers of attributes.
    progress : callable, optional
        Called with the number of simulated tables and their total.

    Returns
    -------
    Plan

    Examples
    --------
    >>> result = plan("religion", effect=0.1, sets=20)
    >>> 3 <= result.needed <= 9, result.words, result.classes
    (True, 15, 3)
    """
    _check(effect, power, prob, sets)
    effect = abs(effect)
    setting = _setting(source, seed)
    from scipy.special import ndtr, ndtri

    z, target = float(ndtri((1 + prob) / 2)), float(ndtri(power))
    numbers = np.arange(max(2, setting.layout.classes), MAX_ATTRIBUTES + 1)
    ratio = effect / setting.precision().sd(numbers)
    selected = _grid(numbers, ratio - z, target)
    detected = _count_detections(setting, numbers[selected], effect, prob, sets, seed, progress)
    curve = _Curve.fit(ratio[selected], detected, sets, z)
    middle, half = curve.at(ratio), curve.half_width(ratio)

    def number(height: Floats) -> int | None:
        return _first(numbers, height >= target)

    needed = number(middle)
    others = [number(curve.at(effect / p.sd(numbers))) for p in setting.precisions()]
    now = effect / setting.precision().sd(setting.available)
    margin = curve.half_width(now)
    power_now, power_low, power_high = (
        float(ndtr(curve.at(now) + change)) for change in (0.0, -margin, margin)
    )
    limit = float(ndtr(curve.at(effect / setting.precision().sd(UNLIMITED))))
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
        available=setting.available,
        power_available=Estimate.of((power_now, power_low, power_high), SIMULATION_PROB),
        curve=tuple(
            _measure_share(
                "power",
                f"{numbers[k]} attributes",
                int(count),
                sets,
                ideal=None,
                worse="lower",
                subject=setting.name,
                by="attributes",
                seed=seed,
                details={
                    "attributes": int(numbers[k]),
                    "detected": int(count),
                    "sd": float(effect / ratio[k]),
                    "approximate": float(ndtr(ratio[k] - z)),
                    "fitted": float(ndtr(middle[k])),
                    "interval_prob": prob,
                },
            )
            for k, count in zip(selected, detected, strict=True)
        ),
        notes=_notes(setting, needed, limit),
    )


def calibrate(
    fit: Fit,
    *,
    effect: float = -0.05,
    sets: int = 80,
    prob: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Measurement, ...]:
    """Calibrate the interval of δ on tables like the fitted one, with a known δ.

    The simulated tables have the protected words and stereotypes of the table and the scales of the
    fit.

    Parameters
    ----------
    fit : Fit
        Of the model crossed.
    effect : float, default -0.05
        True δ of half of the tables; it is 0 in the others.
    sets : int, default 80
        Tables per true δ.
    prob : float, default 0.95
        Probability of the interval.
    seed : int, default 0
    progress : callable, optional
        Called with the number of simulated tables and their total.

    Returns
    -------
    tuple of Measurement
        With δ = 0, the coverage of the interval and the share of false positives; with δ =
        `effect`, the coverage and the power. `details["truth"]` is δ; `ideal` the nominal share.
    """
    import scipy.optimize  # noqa: F401  (imported before its threads are limited)

    layout, scales = PlanLayout.of_table(fit.table), _typical(_scales(fit))
    seeds = iter(np.random.SeedSequence(seed).spawn(2 * sets))
    results: list[Measurement] = []
    with threadpool_limits(1, "blas"):
        for truth in (0.0, effect):
            covered = detected = 0
            for index in range(sets):
                size = len(layout.associated)
                posterior = _simulate_posterior(layout, size, truth, scales, next(seeds))
                covered += posterior.mass_denser_than(truth) <= prob
                detected += posterior.detects(truth, prob)
                if progress:
                    progress(len(results) // 2 * sets + index + 1, 2 * sets)
            rejection = ("power", None) if truth else ("false_positives", 1 - prob)
            results += [
                _measure_share(
                    metric,
                    f"δ = {truth:g}",
                    count,
                    sets,
                    ideal=nominal,
                    worse="higher" if metric == "false_positives" else "lower",
                    subject=fit.table.source,
                    seed=seed,
                    details={"truth": truth, "interval_prob": prob},
                )
                for count, (metric, nominal) in (
                    (covered, ("coverage", prob)),
                    (detected, rejection),
                )
            ]
    return tuple(results)


def _measure_share(metric: str, query: str, count: int, sets: int, **fields: Any) -> Measurement:
    """Measure a share of simulated tables."""
    value, low, high = wilson(count, sets, SIMULATION_PROB)
    return Measurement(
        metric=metric,
        query=query,
        value=value,
        low=low,
        high=high,
        prob=SIMULATION_PROB,
        n=sets,
        interval="Wilson",
        **fields,
    )


def _check(effect: float, power: float, prob: float, sets: int) -> None:
    if not 0 < abs(effect) < 2:
        raise InputError(f"effect: expected a difference of distances, not 0, got {effect:g}")
    if not 0 < prob < 1:
        raise InputError(f"prob: expected a number between 0 and 1, got {prob:g}")
    if not 1 - prob < power < 1:
        raise InputError(
            f"power: expected more than {1 - prob:.2g}, the share of false detections, and less "
            f"than 1, got {power:g}"
        )
    if sets < 10:
        raise InputError(f"sets: expected at least 10, got {sets}")


@dataclass(frozen=True, slots=True)
class _Setting:
    """Layout, scales, and draws of the scales where a table informs them."""

    name: str
    layout: PlanLayout
    scales: Floats
    draws: Floats
    available: int
    notes: tuple[str, ...] = ()

    def precision(self) -> Precision:
        return Precision(self.layout, self.scales, CrossedPrior())

    def precisions(self) -> list[Precision]:
        return [Precision(self.layout, scales, CrossedPrior()) for scales in self.draws]


def _setting(source: Topic | Source, seed: int) -> _Setting:
    if isinstance(source, str | os.PathLike) and _names_topic(source):
        source = topic(source)
    if isinstance(source, Topic):
        layout = PlanLayout.of_classes([len(set(source.protected[c])) for c in source.classes])
        scales = np.array([RELIGION[name] for name in SCALES])
        available = sum(len(set(source.stereotypes[c])) for c in source.classes)
        return _Setting(
            source.name, layout, scales, scales[None, :][:0], available, (RELIGION_NOTE,)
        )
    table = read_table(source)
    check_identified(table)
    draws = _scales(fit(table, draws=2000, seed=seed))
    layout = PlanLayout.of_table(table)
    return _Setting(
        table.source, layout, _typical(draws), draws[:: len(draws) // 200], len(layout.associated)
    )


def _names_topic(source: str | os.PathLike[str]) -> bool:
    """Whether the source names a topic: built in, a TOML file, or a bare name without a file."""
    path = Path(source)
    bare = not path.suffix and not path.exists() and path.name == os.fspath(source)
    return os.fspath(source) in topic_names() or path.suffix == ".toml" or bare


def _scales(fitted: Fit) -> Floats:
    """Draws of the scales of the model without controls (draws × `SCALES`)."""
    if "scale" not in fitted.draws:
        raise InputError(f"model: expected a fit of crossed, got {fitted.model}")
    names = fitted.entries["scale"]
    drawn = fitted.draws["scale"].reshape(-1, len(names))
    by_name = {name: drawn[:, k] for k, name in enumerate(names)}
    slope = by_name.get("slope_stereotype", np.zeros(len(drawn)))
    by_name["word"] = np.hypot(by_name["word"], slope)
    return np.stack([by_name[name] for name in SCALES], axis=1)


def _typical(draws: Floats) -> Floats:
    """Root mean squares of draws of the scales: the variance of δ is a sum of their squares."""
    return np.asarray(np.sqrt(np.mean(draws**2, axis=0)))


def _grid(numbers: NDArray[np.int64], height: Floats, target: float) -> NDArray[np.int64]:
    """Indices of `numbers` to simulate: around the target power by the approximation."""
    last = len(numbers) - 1
    levels = [target + offset for offset in OFFSETS if height[-1] >= target + offset]
    selected = sorted({int(np.argmax(height >= level)) for level in levels})
    if len(selected) < 3:
        top = selected[-1] + 2 * int(numbers[0]) if selected else last
        ends = (numbers[0], numbers[min(top, last)])
        selected = sorted({int(n - numbers[0]) for n in np.geomspace(*ends, len(OFFSETS)).round()})
    return np.array(selected)


def _count_detections(
    setting: _Setting,
    numbers: NDArray[np.int64],
    effect: float,
    prob: float,
    sets: int,
    seed: int,
    progress: Progress | None,
) -> list[int]:
    """Number of simulated tables in which the effect is detected, by number of attributes."""
    import scipy.optimize  # noqa: F401  (imported before its threads are limited)

    detected = [0] * len(numbers)
    children = np.random.SeedSequence(seed).spawn(len(numbers) * sets)
    with threadpool_limits(1, "blas"):
        for index, child in enumerate(children):
            k, scales = index // sets, setting.scales
            number = int(numbers[k])
            posterior = _simulate_posterior(setting.layout, number, effect, scales, child)
            detected[k] += posterior.detects(effect, prob)
            if progress:
                progress(index + 1, len(children))
    return detected


@dataclass(frozen=True, slots=True)
class _Curve:
    """probit(power) = a + b x with x = d / s_n, and the covariance of (a, b)."""

    coefficients: Floats
    covariance: Floats

    @classmethod
    def fit(cls, x: Floats, detected: Sequence[int], sets: int, z: float) -> _Curve:
        """Fit by Fisher scoring, with a weak normal prior around a = -z, b = 1."""
        from scipy.special import ndtr

        design = np.stack([np.ones_like(x), x], axis=1)
        center = np.array([-z, 1.0])
        current, share = center.copy(), np.asarray(detected) / sets
        for _ in range(50):
            height = design @ current
            p = np.clip(ndtr(height), 1e-9, 1 - 1e-9)
            slope = np.exp(-0.5 * height**2) / np.sqrt(2 * np.pi)
            weight = sets * slope**2 / (p * (1 - p))
            information = design.T @ (weight[:, None] * design) + np.eye(2) / CURVE_SD**2
            score = design.T @ (sets * slope * (share - p) / (p * (1 - p)))
            current = current + np.linalg.solve(
                information, score - (current - center) / CURVE_SD**2
            )
            current[1] = max(current[1], 0.1)
        return cls(current, np.linalg.inv(information))

    def at(self, x: Floats) -> Floats:
        return np.asarray(self.coefficients[0] + self.coefficients[1] * x)

    def half_width(self, x: Floats) -> Floats:
        """Half the width of the interval around the curve."""
        from scipy.special import ndtri

        c = self.covariance
        spread = np.sqrt(c[0, 0] + 2 * c[0, 1] * x + c[1, 1] * x**2)
        return np.asarray(ndtri((1 + SIMULATION_PROB) / 2) * spread)


def _first(numbers: NDArray[np.int64], reached: NDArray[np.bool_]) -> int | None:
    return int(numbers[np.argmax(reached)]) if reached.any() else None


def _middle(others: list[int | None], prob: float) -> tuple[int | None, int | None] | None:
    """Range of the middle share `prob` of the numbers; None is the largest."""
    if not others:
        return None
    ordered = sorted(others, key=lambda n: MAX_ATTRIBUTES + 1 if n is None else n)
    skip = int((1 - prob) / 2 * len(ordered))
    return ordered[skip], ordered[-1 - skip]


def _notes(setting: _Setting, needed: int | None, limit: float) -> tuple[str, ...]:
    if needed is not None:
        return setting.notes
    limit_sd = float(setting.precision().sd(UNLIMITED))
    return (
        f"not reached with {MAX_ATTRIBUTES:,} attributes: with {setting.layout.words} protected "
        f"words whose δ differ, the standard deviation of δ stays above {limit_sd:.3f} and the "
        f"power below about {limit:.2f}; more protected words would help",
        *setting.notes,
    )
