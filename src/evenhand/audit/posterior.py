"""The stages on how sure one can be: the Bayesian model of a topic's cosine distances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.audit.stages import Options, Progress, Stage
from evenhand.errors import InputError
from evenhand.lexicon import Topic

if TYPE_CHECKING:
    from evenhand.posterior.contrasts import Change, Named
    from evenhand.posterior.fits import Fit, Summary
    from evenhand.posterior.tables import Table
    from evenhand.vectors.distances import DistanceTable
    from evenhand.vectors.store import Vectors

DRAWS = 3200
TABLES, EFFECT = 80, -0.05
"""So many tables are simulated without a difference, and as many with this one."""
FITS = 3 * TABLES
"""What the fits count for where progress is told, in simulated tables."""


def posterior_stages(v: Vectors, topics: Sequence[Topic], options: Options) -> list[Stage]:
    """A stage a topic; quick: one topic (gender if asked for) without debiasing and calibration."""
    asked = list(topics)
    if options.quick:
        asked = [next((topic for topic in asked if topic.name == "gender"), asked[0])]
    return [
        Stage(
            kind="posterior",
            title=f"{topic.name}: how sure",
            topic=topic,
            depends={
                "draws": DRAWS,
                "tables": TABLES,
                "effect": EFFECT,
                "quick": options.quick,
                "vectors": _fingerprint(v, topic),
            },
            compute=partial(_posterior, v, topic, options),
        )
        for topic in asked
    ]


def _fingerprint(v: Vectors, topic: Topic) -> list[str]:
    """The vectors of the topic's words: nothing else of `v` counts here."""
    found = v.find(topic.words())
    digest = hashlib.sha256(v.raw(found.rows).tobytes())
    return [v.name, digest.hexdigest(), *found.missing]


def _posterior(v: Vectors, topic: Topic, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.posterior import fit, read_table
    from evenhand.posterior.crossed import check_identified
    from evenhand.vectors.distances import distance_table

    seed = options.seed
    total = 1 if options.quick else FITS + 2 * TABLES
    progress.step(0, total)
    skipped = []
    try:
        distances = distance_table(v, topic)
        table = read_table(distances)
        check_identified(table)
        change = None
        if not options.quick:
            try:
                change = _change(
                    v, topic, table, seed, lambda n, of: progress.step(FITS * n // of, total)
                )
            except InputError as error:
                skipped.append(_skip("hard debiasing", topic, error))
        whole = change is not None and not change.unpaired["before"]
        fitted = change.before if change and whole else fit(table, draws=DRAWS, seed=seed)
    except InputError as error:
        return {"skipped": (_skip("posterior", topic, error),)}
    progress.step(min(FITS, total), total)
    content = _content(fitted, options.prob, seed)
    content |= {"left_out": distances.left_out, "distances": _compact(distances)}
    content["change"] = change and _changed(change, options.prob)
    content["calibration"] = (
        []
        if options.quick
        else calibrate(
            fitted,
            effect=EFFECT,
            sets=TABLES,
            prob=options.prob,
            seed=seed,
            told=lambda done: progress.step(FITS + done, total),
        )
    )
    return {"details": content, "skipped": tuple(skipped)}


def _change(
    v: Vectors, topic: Topic, table: Table, seed: int, told: Callable[[int, int], None]
) -> Change:
    """Before and after the hard debiasing that the mitigation stage makes."""
    from evenhand.posterior import compare_tables
    from evenhand.vectors.debias import hard
    from evenhand.vectors.distances import distance_table

    protected = [word for words in topic.protected.values() for word in words]
    fair = hard(
        v, topic.definitional, k=len(topic.classes) - 1, equalize=topic.equalize, keep=protected
    )
    after = distance_table(fair.vectors, topic)
    return compare_tables(table, after, draws=DRAWS, seed=seed, progress=told)


def _skip(what: str, topic: Topic, error: InputError) -> dict[str, str]:
    return {"metric": what, "query": topic.name, "reason": str(error)}


def _content(fitted: Fit, prob: float, seed: int) -> dict[str, Any]:
    from evenhand.posterior import (
        check_posterior,
        class_contrasts,
        connection_contrasts,
        fit,
        word_contrasts,
    )

    table = fitted.table
    naive = fit(table, "coefficients", draws=DRAWS, seed=seed)
    return {
        "prob": prob,
        "draws": fitted.size,
        "rows": table.rows,
        "dropped": dict(table.dropped),
        "protected": len(table.words),
        "attributes": len(table.attributes),
        "stereotypes": int((table.group == 0).sum()),
        "contrasts": _named(connection_contrasts, fitted, prob),
        "naive_contrasts": _named(connection_contrasts, naive, prob),
        "classes": _listed(class_contrasts, fitted, prob),
        "words": _listed(word_contrasts, fitted, prob),
        "diagnostics": {"the difference": _diagnostics(fitted)},
        "checks": {
            model.model: [check.as_dict() for check in check_posterior(model, seed=seed)]
            for model in (fitted, naive)
        },
    }


def _changed(change: Change, prob: float) -> dict[str, Any]:
    wide, narrow = change.contrasts(prob), change.contrasts(0.5)
    return {
        "contrasts": {
            name: {when: _told(s, narrow[name][when]) for when, s in times.items()}
            for name, times in wide.items()
        },
        "equalised": change.equalised,
        "diagnostics": {
            "after debiasing": _diagnostics(change.after),
            "the change": _diagnostics(change.change),
        },
    }


def _named(
    function: Callable[[Fit, float], dict[str, Summary]], fitted: Fit, prob: float
) -> dict[str, Any]:
    narrow = function(fitted, 0.5)
    return {name: _told(summary, narrow[name]) for name, summary in function(fitted, prob).items()}


def _listed(
    function: Callable[[Fit, float], list[Named]], fitted: Fit, prob: float
) -> list[dict[str, Any]]:
    return [
        {"word": wide.word, "class": wide.group, **_told(wide.summary, narrow.summary)}
        for wide, narrow in zip(function(fitted, prob), function(fitted, 0.5), strict=True)
    ]


def _told(wide: Summary, narrow: Summary) -> dict[str, float]:
    """A quantity with its interval and the 50 % one within it."""
    return {**wide.as_dict(), "inner_low": narrow.low, "inner_high": narrow.high}


def _diagnostics(fitted: Fit) -> dict[str, Any]:
    found = fitted.diagnostics()
    return {"rhat_max": found.rhat_max, "ess_min": found.ess_min, "worst": found.worst}


def _compact(distances: DistanceTable) -> dict[str, Any]:
    """The distances for the page's pictures, a line of text a protected word."""
    names = ("topic", "protected", "protected_class", "attributes", "attribute_class")
    lines = [" ".join(f"{x:.6f}" for x in row) for row in distances.distance]
    return {**{name: getattr(distances, name) for name in names}, "distance": lines}


def calibrate(
    fit: Fit, *, effect: float, sets: int, prob: float, seed: int, told: Callable[[int], None]
) -> list[dict[str, Any]]:
    """How often the interval of δ holds the truth and how often it excludes 0, in `sets` tables.

    Once where the truth is 0, where excluding it is a false alarm, and once where it is `effect`,
    where it counts if the interval lies on the effect's side. `told` hears how many are done.
    """
    import scipy.optimize  # noqa: F401  (before its threads are limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from evenhand.intervals import wilson
    from evenhand.posterior.crossed import CrossedPrior
    from evenhand.posterior.planning import Layout, sample_delta, simulate_data

    layout, scales = Layout.of_table(fit.table), _scales(fit)
    seeds = iter(np.random.SeedSequence(seed).spawn(2 * sets))
    rows = []
    done = 0
    with threadpool_limits(1, "blas"):
        for truth in (0.0, effect):
            held = found = 0
            for _ in range(sets):
                rng = np.random.default_rng(next(seeds))
                data = simulate_data(layout, len(layout.associated), truth, scales, rng)
                posterior = sample_delta(data, CrossedPrior(), scales, rng)
                held += posterior.mass_denser_than(truth) <= prob
                right = truth == 0 or posterior.moments()[0] * truth > 0
                found += right and posterior.mass_denser_than(0.0) > prob
                done += 1
                told(done)
            rows.append(
                {
                    "truth": truth,
                    "tables": sets,
                    "held": _share(wilson(held, sets)),
                    "found": _share(wilson(found, sets)),
                }
            )
    return rows


def _share(found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), found, strict=True))


def _scales(fit: Fit) -> NDArray[np.float64]:
    """The medians of the spreads of the model without control words.

    There a word's level on stereotypes is its own and its shift on them together.
    """
    from evenhand.posterior.planning import SCALES

    names = fit.entries["scale"]
    drawn = dict(zip(names, np.moveaxis(fit.draws["scale"], -1, 0), strict=True))
    if "slope_stereotype" in drawn:
        drawn["word"] = np.hypot(drawn["word"], drawn["slope_stereotype"])
    return np.array([float(np.median(drawn[name])) for name in SCALES])
