"""One question, many measures: the jobs a query or a topic makes, and how they are run.

Metrics are named in `METRICS`; other packages add theirs through the entry-point group
`evenhand.metrics` with an `evenhand.vectors.catalogue.Adapter`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Unpack

from evenhand import lexicon
from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon import Query, Topic, WefatQuery
from evenhand.registry import Registry
from evenhand.results import Measurement
from evenhand.vectors.catalogue import Adapter
from evenhand.vectors.metrics.reading import Settings
from evenhand.vectors.store import Vectors

__all__ = [
    "METRICS",
    "Job",
    "Measured",
    "fact_job",
    "measure",
    "query_jobs",
    "run_jobs",
    "topic_jobs",
]

METRICS = Registry(
    "metric",
    {
        name: f"evenhand.vectors.catalogue:{name}"
        for name in (
            "weat", "wefat", "mac", "direct_bias", "ripa", "rnd", "rnsb", "ect", "same",
        )
    },
    group="evenhand.metrics",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """One metric on one question."""

    metric: str
    query: str
    run: Callable[[Vectors, Settings], list[Measurement]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, and by name what could not be and why."""

    measurements: tuple[Measurement, ...]
    skipped: tuple[dict[str, str], ...] = ()


def measure(
    v: Vectors,
    question: Query | Topic,
    metrics: Sequence[str] | None = None,
    **settings: Unpack[Settings],
) -> Measured:
    """Every named metric on the question; without names, every metric that fits it.

    A named metric that does not fit, or finds too few known words, is an error; without names
    such metrics are left out, the latter listed in `skipped` with the reason.

    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> [m.metric for m in measure(v, eh.lexicon.weat(7), ["weat", "mac"]).measurements]
    ['weat', 'mac']
    """
    if isinstance(question, Topic):
        jobs = topic_jobs(question, metrics)
    else:
        jobs = query_jobs(question, metrics)
    return run_jobs(v, jobs, strict=metrics is not None, **settings)


def run_jobs(
    v: Vectors, jobs: Iterable[Job], *, strict: bool = False, **settings: Unpack[Settings]
) -> Measured:
    """Run the jobs in order; what the words do not allow is an error if `strict`, else a skip."""
    measurements: list[Measurement] = []
    skipped: list[dict[str, str]] = []
    for job in jobs:
        try:
            measurements += job.run(v, settings)
        except InputError as error:
            if strict:
                raise
            skipped.append({"metric": job.metric, "query": job.query, "reason": str(error)})
    return Measured(tuple(measurements), tuple(skipped))


def query_jobs(query: Query, metrics: Sequence[str] | None = None) -> list[Job]:
    """A job for each metric that takes a query of this shape."""
    jobs = []
    for name in metrics if metrics is not None else METRICS:
        adapter: Adapter = METRICS[name]
        reason = adapter.misfit(query)
        if reason is None:
            jobs.append(_job(name, adapter, query))
        elif metrics is not None:
            raise InputError(f"metric '{name}' {reason}")
    return jobs


def fact_job(query: WefatQuery) -> Job:
    """WEFAT on words with a fact about each: the share of women."""
    from evenhand.vectors.metrics import wefat

    def run(v: Vectors, settings: Settings) -> list[Measurement]:
        women, men = query.attributes["female"], query.attributes["male"]
        return [wefat(v, query.words, women, men, query.shares, query=query.name, **settings)]

    return Job("wefat", query.name, run)


def topic_jobs(
    topic: Topic, metrics: Sequence[str] | None = None, *, extended: bool = False
) -> list[Job]:
    """The jobs of a topic: its distance contrast, then each metric on the words it is made for.

    Metrics for two groups run on each two classes; direct bias and RIPA use the definitional
    sets; RNSB takes the pleasant and unpleasant words of WEAT 1 as its sentiment. WEAT has the
    stereotypes as its targets X and Y: its test is about the targets, and with the protected
    words there it would find a difference wherever the classes differ at all.
    """
    jobs = _topic_jobs(topic, extended)
    if metrics is None:
        return jobs
    names = [job.metric for job in jobs]
    for name in metrics:
        if name not in names:
            raise UnknownNameError(f"metric for topic '{topic.name}'", name, set(names))
    return [job for name in metrics for job in jobs if job.metric == name]


def _topic_jobs(topic: Topic, extended: bool) -> list[Job]:
    from evenhand.vectors import catalogue

    stereotypes = {
        f"{name} stereotypes": topic.attributes(name, extended=extended) for name in topic.classes
    }
    whole = Query(name=topic.name, targets=topic.protected, attributes=stereotypes)
    duels = [
        Query(
            name=whole.name if len(topic.classes) == 2 else f"{whole.name}: {one}/{two}",
            targets={one: topic.protected[one], two: topic.protected[two]},
            attributes={
                f"{name} stereotypes": stereotypes[f"{name} stereotypes"] for name in (one, two)
            },
        )
        for one, two in combinations(topic.classes, 2)
    ]
    sentiment = Query(
        name=f"{topic.name}: sentiment",
        targets=topic.protected,
        attributes=lexicon.weat(1).attributes,
    )
    jobs = [
        _association(topic, extended),
        _job("mac", catalogue.mac, whole),
        _direct_bias(topic, whole),
        _job("same", catalogue.same, whole),
        _job("rnsb", catalogue.rnsb, sentiment),
    ]
    jobs += [_job("weat", catalogue.weat, _turned(duel)) for duel in duels]
    for name in ("rnd", "ect"):
        jobs += [_job(name, METRICS[name], duel) for duel in duels]
    if len(topic.classes) == 2:
        jobs += [_ripa(topic, label, words) for label, words in stereotypes.items()]
        if topic.occupations:
            jobs.append(_projections(topic))
    return jobs


def _turned(query: Query) -> Query:
    return Query(name=query.name, targets=query.attributes, attributes=query.targets)


def _job(name: str, adapter: Adapter, query: Query) -> Job:
    return Job(name, query.name, lambda v, settings: adapter(v, query, settings))


def _association(topic: Topic, extended: bool) -> Job:
    from evenhand.vectors.distances import association_contrast, distance_table

    def run(v: Vectors, settings: Settings) -> list[Measurement]:
        return [association_contrast(distance_table(v, topic, extended=extended), **settings)]

    return Job("association", topic.name, run)


def _direct_bias(topic: Topic, whole: Query) -> Job:
    from evenhand.vectors.catalogue import every_attribute
    from evenhand.vectors.metrics import direct_bias

    def run(v: Vectors, settings: Settings) -> list[Measurement]:
        words = every_attribute(whole)
        return [direct_bias(v, topic.definitional, words, query=topic.name, **settings)]

    return Job("direct_bias", topic.name, run)


def _ripa(topic: Topic, label: str, words: Sequence[str]) -> Job:
    from evenhand.vectors.metrics import ripa

    name = f"{topic.name}: {label}"

    def run(v: Vectors, settings: Settings) -> list[Measurement]:
        pairs = [(members[0], members[1]) for members in topic.definitional]
        return [ripa(v, pairs, words, query=name, **settings)]

    return Job("ripa", name, run)


def _projections(topic: Topic) -> Job:
    from evenhand.vectors.metrics import projections

    ends = (topic.definitional[0][0], topic.definitional[0][1])
    name = f"{topic.name}: occupations on {ends[0]}-{ends[1]}"
    groups = {kind: topic.occupations[kind] for kind in topic.classes}

    def run(v: Vectors, settings: Settings) -> list[Measurement]:
        return [projections(v, groups, ends=ends, query=name, **settings)]

    return Job("projections", name, run)
