"""The stages on uncertainty: the Bayesian model of a topic's cosine distances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress, Stage, skip
from evenhand.errors import InputError
from evenhand.lexicon import Topic

if TYPE_CHECKING:
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.tables import Table
    from evenhand.vectors.store import Vectors

DRAWS = 3200
TABLES, EFFECT = 80, -0.05
"""The number of tables simulated without a difference and with this one."""
FITS = 3 * TABLES
"""The weight of the fits in the progress, in simulated tables."""


def posterior_stages(v: Vectors, topics: Sequence[Topic], options: Options) -> list[Stage]:
    """One stage per topic; quick: one topic (gender if given), no debiasing and calibration."""
    chosen = list(topics)
    if options.quick:
        chosen = [next((topic for topic in chosen if topic.name == "gender"), chosen[0])]
    return [
        Stage(
            kind="posterior",
            title=f"{topic.name}: how sure",
            subject="vectors",
            measures=False,
            topic=topic,
            depends={
                "model": "crossed, with class × attribute effects",
                "draws": DRAWS,
                "tables": TABLES,
                "effect": EFFECT,
                "quick": options.quick,
                "vectors": _fingerprint(v, topic),
            },
            compute=partial(_posterior, v, topic, options),
        )
        for topic in chosen
    ]


def _fingerprint(v: Vectors, topic: Topic) -> list[str]:
    """The vectors of the topic's words: nothing else of `v` matters here."""
    found = v.find(topic.words())
    digest = hashlib.sha256(v.raw(found.rows).tobytes())
    return [v.name, digest.hexdigest(), *found.missing]


def _posterior(v: Vectors, topic: Topic, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.posterior import calibrate, check_posterior, fit, measure_contrasts, read_table
    from evenhand.posterior.crossed import check_identified
    from evenhand.vectors.distances import distance_table

    seed, prob = options.seed, options.prob
    total = 1 if options.quick else FITS + 2 * TABLES
    progress.step(0, total)
    skipped: list[Mapping[str, str]] = []
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
                skipped += skip("hard debiasing", topic.name, error)["skipped"]
        complete = change is not None and not change.unpaired["before"]
        fitted = change.before if change and complete else fit(table, draws=DRAWS, seed=seed)
    except InputError as error:
        return skip("posterior", topic.name, error)
    progress.step(min(FITS, total), total)
    naive = fit(table, "coefficients", draws=DRAWS, seed=seed)
    measured = [m for each in (fitted, naive) for m in measure_contrasts(each, prob).values()]
    if not options.quick:
        measured += calibrate(
            fitted,
            effect=EFFECT,
            sets=TABLES,
            prob=prob,
            seed=seed,
            progress=lambda done, _: progress.step(FITS + done, total),
        )
    diagnostics = {"the difference": fitted.diagnostics()}
    if change is not None:
        diagnostics |= {
            "after debiasing": change.after.diagnostics(),
            "the change": change.change.diagnostics(),
        }
    return {
        "measurements": tuple(measured),
        "comparisons": () if change is None else tuple(change.contrasts(prob).values()),
        "distances": distances,
        "details": {
            "draws": fitted.size,
            "rows": table.rows,
            "dropped": dict(table.dropped),
            "protected": len(table.words),
            "attributes": len(table.attributes),
            "stereotypes": int((table.group == 0).sum()),
            "left_out": distances.left_out,
            "equalised": () if change is None else change.equalised,
            "diagnostics": {name: asdict(values) for name, values in diagnostics.items()},
            "checks": {
                each.model: [check.to_dict() for check in check_posterior(each, seed=seed)]
                for each in (fitted, naive)
            },
        },
        "skipped": tuple(skipped),
    }


def _change(
    v: Vectors, topic: Topic, table: Table, seed: int, report: Callable[[int, int], None]
) -> Change:
    """Before and after the hard debiasing of the mitigation stage."""
    from evenhand.posterior import compare_tables
    from evenhand.vectors.debias import hard
    from evenhand.vectors.distances import distance_table

    protected = [word for words in topic.protected.values() for word in words]
    fair = hard(
        v, topic.definitional, k=len(topic.classes) - 1, equalize=topic.equalize, keep=protected
    )
    after = distance_table(fair.vectors, topic)
    return compare_tables(table, after, draws=DRAWS, seed=seed, progress=report)
