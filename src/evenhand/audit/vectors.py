"""The stages for static word vectors: measures, published tests, mitigations, dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenhand import lexicon
from evenhand.audit.stages import Progress, Stage, steps
from evenhand.errors import InputError, VocabularyError
from evenhand.lexicon import Query, Topic, WefatQuery
from evenhand.report.saved import Account
from evenhand.results import Measurement
from evenhand.vectors.store import Vectors

__all__ = ["METHODS", "vector_stages"]

Job = tuple[str, str, Callable[[], list[Measurement]]]
"""Metric, query and how it is measured."""

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hard": {"method": "hard"},
    "soft, summed": {"method": "soft", "scale": "sum"},
    "soft, averaged": {"method": "soft", "scale": "mean"},
    "INLP": {"method": "inlp"},
}
"""The mitigations of a full audit, with the options each is called with."""


def vector_stages(
    v: Vectors, topics: Sequence[Topic], *, quick: bool, seed: int, prob: float
) -> list[Stage]:
    """The stages for static vectors."""
    settings = {"seed": seed, "prob": prob}
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
    if quick:
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
    return stages


def _measures(
    v: Vectors, topic: Topic, settings: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    from evenhand.vectors.distances import distance_table
    from evenhand.vectors.measuring import run_jobs, topic_jobs

    measured = run_jobs(v, steps(topic_jobs(topic), progress), **settings)
    try:
        distances = distance_table(v, topic)
    except VocabularyError:
        distances = None
    return {
        "measurements": measured.measurements,
        "skipped": measured.skipped,
        "distances": distances,
    }


def _weat(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.measuring import measure
    from evenhand.vectors.robustness import leave_one_out, split_half

    def all_of(query: Query) -> list[Measurement]:
        (whole,) = measure(v, query, ["weat"], **settings).measurements
        return [whole, leave_one_out(v, query, **settings), split_half(v, query, **settings)]

    return _all_or_skipped(
        [("weat", query.name, partial(all_of, query)) for query in lexicon.weat_queries()], progress
    )


def _wefat(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.metrics import wefat

    def one(q: WefatQuery) -> list[Measurement]:
        women, men = q.attributes["female"], q.attributes["male"]
        return [wefat(v, q.words, women, men, q.shares, query=q.name, **settings)]

    return _all_or_skipped(
        [("wefat", query.name, partial(one, query)) for query in lexicon.wefat_queries()], progress
    )


def _analogies(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.metrics import accuracy, analogies

    asked = lexicon.analogies()

    def probes(pair: tuple[str, str], name: str) -> list[Measurement]:
        return [analogies(v, [pair], asked.probes, query=name, **settings)]

    def control(relation: str) -> list[Measurement]:
        return [accuracy(v, asked.controls[relation], query=relation, **settings)]

    jobs: list[Job] = []
    for pair in asked.pairs:
        name = "→".join(pair)
        jobs.append(("analogies", name, partial(probes, pair, name)))
    jobs += [("analogy_accuracy", name, partial(control, name)) for name in asked.controls]
    return _all_or_skipped(jobs, progress)


def _all_or_skipped(jobs: Sequence[Job], progress: Progress) -> dict[str, Any]:
    """Run the jobs; one whose words are not known is skipped, with the reason."""
    measurements: list[Measurement] = []
    skipped = []
    for metric, query, run in steps(jobs, progress):
        try:
            measurements += run()
        except InputError as error:
            skipped.append({"metric": metric, "query": query, "reason": str(error)})
    return {"measurements": tuple(measurements), "skipped": tuple(skipped)}


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
