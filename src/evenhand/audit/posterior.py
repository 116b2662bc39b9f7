"""The stages on how sure one can be: the Bayesian model of a topic's cosine distances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress, Stage
from evenhand.errors import InputError
from evenhand.lexicon import Topic

if TYPE_CHECKING:
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.fits import Fit
    from evenhand.posterior.tables import Table
    from evenhand.results import Comparison, Measurement
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
        else _calibration(fitted, options, lambda done, _: progress.step(FITS + done, total))
    )
    return {"details": content, "skipped": tuple(skipped)}


def _calibration(
    fitted: Fit, options: Options, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    from evenhand.posterior import calibrate

    results = calibrate(
        fitted,
        effect=EFFECT,
        sets=TABLES,
        prob=options.prob,
        seed=options.seed,
        progress=progress,
    )
    return [
        {
            "truth": coverage.details["truth"],
            "tables": coverage.n,
            "held": _share(coverage),
            "found": _share(excluded),
        }
        for coverage, excluded in zip(results[::2], results[1::2], strict=True)
    ]


def _share(share: Measurement) -> dict[str, float]:
    return {"value": share.value, "low": share.low, "high": share.high}


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
    from evenhand.posterior import check_posterior, fit, measure_contrasts

    table = fitted.table
    naive = fit(table, "coefficients", draws=DRAWS, seed=seed)
    contrasts = measure_contrasts(fitted, prob)
    delta = contrasts["associated-different"]
    naive_contrasts = measure_contrasts(naive, prob)
    return {
        "prob": prob,
        "draws": fitted.size,
        "rows": table.rows,
        "dropped": dict(table.dropped),
        "protected": len(table.words),
        "attributes": len(table.attributes),
        "stereotypes": int((table.group == 0).sum()),
        "contrasts": {name: _values(m) for name, m in contrasts.items()},
        "naive_contrasts": {name: _values(m) for name, m in naive_contrasts.items()},
        "classes": [{"word": "", "class": m.query, **_values(m)} for m in delta.select("class")],
        "words": [
            {"word": m.query, "class": m.details.get("class", ""), **_values(m)}
            for m in delta.select("word")
        ],
        "diagnostics": {"the difference": fitted.diagnostics().to_dict()},
        "checks": {
            model.model: [check.to_dict() for check in check_posterior(model, seed=seed)]
            for model in (fitted, naive)
        },
    }


def _changed(change: Change, prob: float) -> dict[str, Any]:
    return {
        "contrasts": {
            name: {"before": _values(c.before), "after": _values(c.after), "change": _values(c)}
            for name, c in change.contrasts(prob).items()
        },
        "equalised": change.equalised,
        "diagnostics": {
            "after debiasing": change.after.diagnostics().to_dict(),
            "the change": change.change.diagnostics().to_dict(),
        },
    }


def _values(result: Measurement | Comparison) -> dict[str, float]:
    """Mean, interval, 50 % interval and P(< 0) of a quantity, or of its change."""
    from evenhand.results import Measurement

    estimate = result.estimate if isinstance(result, Measurement) else result.change
    names = ("sd", "p_below_zero", "inner_low", "inner_high")
    return {
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        **{name: result.details[name] for name in names},
    }


def _compact(distances: DistanceTable) -> dict[str, Any]:
    """The distances for the page's pictures, a line of text a protected word."""
    names = ("topic", "protected", "protected_class", "attributes", "attribute_class")
    lines = [" ".join(f"{x:.6f}" for x in row) for row in distances.distance]
    return {**{name: getattr(distances, name) for name in names}, "distance": lines}
