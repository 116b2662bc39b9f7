"""The stages for static word vectors: measures, published tests, mitigations, dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evenhand import lexicon
from evenhand.audit.stages import Options, Progress, Stage, steps
from evenhand.errors import InputError, VocabularyError
from evenhand.files import plain
from evenhand.instruments import Job, Run, measure, plan, run_jobs
from evenhand.lexicon import Topic
from evenhand.results import Measurement
from evenhand.vectors.store import Vectors

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hard": {"method": "hard"},
    "soft, summed": {"method": "soft", "scale": "sum"},
    "soft, averaged": {"method": "soft", "scale": "mean"},
    "INLP": {"method": "inlp"},
}
"""The mitigations of a full audit, with the options each is called with."""


def vector_stages(
    v: Vectors, topics: Sequence[Topic], options: Options, identity: Mapping[str, Any]
) -> list[Stage]:
    """The stages for static vectors; `identity` is what their results depend on."""
    run = Run(seed=options.seed, prob=options.prob)
    stages = [
        Stage(
            kind="measures",
            title=f"{topic.name}: measures",
            topic=topic,
            compute=partial(_measures, v, topic, run),
        )
        for topic in topics
    ]
    stages += [
        Stage(kind="weat", title="WEAT 1 to 10", compute=partial(_weat, v, run)),
        Stage(kind="wefat", title="WEFAT", compute=partial(_wefat, v, run)),
        Stage(kind="analogies", title="analogies", compute=partial(_analogies, v, run)),
    ]
    tried = [(topic, name) for topic in topics for name in METHODS]
    if options.quick:
        tried = [(next((t for t in topics if t.name == "gender"), topics[0]), "hard")]
    stages += [
        Stage(
            kind="mitigation",
            title=f"{topic.name}: {name} debiasing",
            topic=topic,
            depends={"options": METHODS[name]},
            compute=partial(_mitigation, v, topic, name, run),
        )
        for topic, name in tried
    ]
    stages.append(Stage(kind="dimension", title="dimension", compute=partial(_dimension, run)))
    return [replace(stage, depends={**stage.depends, "vectors": identity}) for stage in stages]


def _measures(v: Vectors, topic: Topic, run: Run, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.distances import distance_table

    try:
        distances = distance_table(v, topic)
    except InputError:
        distances = None
    return {**_measured(v, plan("vectors", topic), run, progress), "distances": distances}


def _weat(v: Vectors, run: Run, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.robustness import leave_one_out, split_half

    measurements: list[Measurement] = []
    skipped = []
    options: dict[str, Any] = {"seed": run.seed, "prob": run.prob}
    for query in steps(lexicon.weat_queries(), progress):
        try:
            (effect,) = measure(v, query, ["weat"], **options)
            checks = (leave_one_out(v, query, **options), split_half(v, query, **options))
        except InputError as error:
            skipped.append({"metric": "weat", "query": query.name, "reason": str(error)})
        else:
            measurements += [effect, *checks]
    return {"measurements": tuple(measurements), "skipped": tuple(skipped)}


def _wefat(v: Vectors, run: Run, progress: Progress) -> dict[str, Any]:
    jobs = [job for query in lexicon.wefat_queries() for job in plan("vectors", query, "wefat")]
    return _measured(v, jobs, run, progress)


def _analogies(v: Vectors, run: Run, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors import analogies, analogy_accuracy

    questions = lexicon.analogies()
    options: dict[str, Any] = {"seed": run.seed, "prob": run.prob}
    calls = [
        ("analogies", "→".join(pair), partial(analogies, v, [pair], questions.probes))
        for pair in questions.pairs
    ] + [
        ("analogy_accuracy", relation, partial(analogy_accuracy, v, control))
        for relation, control in questions.controls.items()
    ]
    measurements: list[Measurement] = []
    skipped = []
    for metric, query, call in steps(calls, progress):
        try:
            measurements.append(call(query=query, **options))
        except InputError as error:
            skipped.append({"metric": metric, "query": query, "reason": str(error)})
    return {"measurements": tuple(measurements), "skipped": tuple(skipped)}


def _measured(v: Vectors, jobs: Sequence[Job], run: Run, progress: Progress) -> dict[str, Any]:
    done = run_jobs(v, steps(jobs, progress), run)
    return {"measurements": tuple(done), "skipped": done.skipped}


def _mitigation(
    v: Vectors,
    topic: Topic,
    name: str,
    run: Run,
    progress: Progress,  # noqa: ARG001
) -> dict[str, Any]:
    from evenhand.vectors.mitigation import mitigate

    try:
        done = mitigate(v, topic, **METHODS[name], seed=run.seed, prob=run.prob)
    except VocabularyError as error:
        return {"skipped": ({"metric": name, "query": topic.name, "reason": str(error)},)}
    return {
        "measurements": done.utility,
        "comparisons": (*done.measures, *done.hiding),
        "details": {"method": name, "debias": plain(done.debiased)},
    }


def _dimension(run: Run, progress: Progress) -> dict[str, Any]:  # noqa: ARG001
    from evenhand.vectors.nulls import dimension_spread

    return {"measurements": (dimension_spread(seed=run.seed, prob=run.prob),)}
