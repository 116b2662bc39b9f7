"""The stages for static word vectors: measures, published tests, mitigations, dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand import lexicon
from evenhand.audit.stages import Options, Progress, Stage, steps
from evenhand.errors import InputError, VocabularyError
from evenhand.lexicon import Query, Topic
from evenhand.report.saved import Account
from evenhand.results import Measurement
from evenhand.vectors.store import Vectors

if TYPE_CHECKING:
    from evenhand.vectors.measuring import Job
    from evenhand.vectors.metrics.reading import Settings

__all__ = ["METHODS", "vector_stages"]

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
    settings: Settings = {"seed": options.seed, "prob": options.prob}
    stages = [
        Stage(
            kind="measures", title=f"{topic.name}: measures", topic=topic,
            compute=partial(_measures, v, topic, settings),
        )
        for topic in topics
    ]  # fmt: skip
    stages += [
        Stage(kind="weat", title="WEAT 1 to 10", compute=partial(_weat, v, settings)),
        Stage(kind="wefat", title="WEFAT", compute=partial(_wefat, v, settings)),
        Stage(kind="analogies", title="analogies", compute=partial(_analogies, v, settings)),
    ]
    tried = [(topic, name) for topic in topics for name in METHODS]
    if options.quick:
        tried = [(next((t for t in topics if t.name == "gender"), topics[0]), "hard")]
    stages += [
        Stage(
            kind="mitigation", title=f"{topic.name}: {name} debiasing", topic=topic,
            depends={"options": METHODS[name]},
            compute=partial(_mitigation, v, topic, name, settings),
        )
        for topic, name in tried
    ]  # fmt: skip
    stages.append(Stage(kind="dimension", title="dimension", compute=partial(_dimension, settings)))
    return [replace(stage, depends={**stage.depends, "vectors": identity}) for stage in stages]


def _measures(v: Vectors, topic: Topic, settings: Settings, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.distances import distance_table
    from evenhand.vectors.measuring import topic_jobs

    try:
        distances = distance_table(v, topic)
    except InputError:
        distances = None
    return {**_measured(v, topic_jobs(topic), settings, progress), "distances": distances}


def _weat(v: Vectors, settings: Settings, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.measuring import Job, measure
    from evenhand.vectors.robustness import leave_one_out, split_half

    def all_of(query: Query) -> Job:
        def run(v: Vectors, settings: Settings) -> list[Measurement]:
            (whole,) = measure(v, query, ["weat"], **settings).measurements
            return [whole, leave_one_out(v, query, **settings), split_half(v, query, **settings)]

        return Job("weat", query.name, run)

    return _measured(v, [all_of(query) for query in lexicon.weat_queries()], settings, progress)


def _wefat(v: Vectors, settings: Settings, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.measuring import fact_job

    return _measured(v, [fact_job(query) for query in lexicon.wefat_queries()], settings, progress)


def _analogies(v: Vectors, settings: Settings, progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.measuring import Job
    from evenhand.vectors.metrics import accuracy, analogies

    asked = lexicon.analogies()

    def probes(pair: tuple[str, str]) -> Job:
        name = "→".join(pair)

        def run(v: Vectors, settings: Settings) -> list[Measurement]:
            return [analogies(v, [pair], asked.probes, query=name, **settings)]

        return Job("analogies", name, run)

    def control(relation: str) -> Job:
        def run(v: Vectors, settings: Settings) -> list[Measurement]:
            return [accuracy(v, asked.controls[relation], query=relation, **settings)]

        return Job("analogy_accuracy", relation, run)

    jobs = [*map(probes, asked.pairs), *map(control, asked.controls)]
    return _measured(v, jobs, settings, progress)


def _measured(
    v: Vectors, jobs: Sequence[Job], settings: Settings, progress: Progress
) -> dict[str, Any]:
    from evenhand.vectors.measuring import run_jobs

    done = run_jobs(v, steps(jobs, progress), **settings)
    return {"measurements": done.measurements, "skipped": done.skipped}


def _mitigation(
    v: Vectors,
    topic: Topic,
    name: str,
    settings: Mapping[str, Any],
    progress: Progress,  # noqa: ARG001
) -> dict[str, Any]:
    from evenhand.vectors.mitigation import mitigate

    try:
        done = mitigate(v, topic, **METHODS[name], **settings)
    except VocabularyError as error:
        return {"skipped": ({"metric": name, "query": topic.name, "reason": str(error)},)}
    return {"mitigations": (Account.of(name, done),)}


def _dimension(settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:  # noqa: ARG001
    from evenhand.vectors.nulls import dimension_spread

    return {"measurements": (dimension_spread(**settings),)}
