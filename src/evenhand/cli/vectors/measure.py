"""`evenhand vectors measure`: every metric that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import (
    case_option,
    json_option,
    load_vectors,
    output_option,
    prob_option,
    seed_option,
    source_argument,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenhand.lexicon import Query
    from evenhand.results import Measurement
    from evenhand.vectors.measuring import Job

__all__ = ["measure"]


@click.command(short_help="Every metric on topics, WEATs or your query.")
@source_argument
@click.option(
    "--topic", "topics", multiple=True, help="A built-in topic or your .toml; repeatable."
)
@click.option(
    "--weat", "weats", multiple=True, help="A built-in WEAT, 1 to 10, or all; repeatable."
)
@click.option("--wefat", "wefats", multiple=True, help="A built-in WEFAT by name, or all.")
@click.option(
    "--query",
    "queries",
    multiple=True,
    type=click.Path(),
    help='A JSON file {"name", "targets": {name: [words]}, "attributes": {name: [words]}}.',
)
@click.option("--metric", "metrics", multiple=True, help="Only this metric; repeatable.")
@click.option("--extended", is_flag=True, help="Topics: add our own stereotype words.")
@click.option("--robust", is_flag=True, help="Queries: add leave-one-out and split halves of WEAT.")
@click.option(
    "--permutations", default=100_000, show_default=True,
    help="Random partitions where not all can be counted.",
)  # fmt: skip
@click.option("--null", default=1000, show_default=True, help="Draws of random words; 0: none.")
@output_option("Write the items (a row a word) as CSV.")
@case_option
@seed_option
@prob_option
@json_option
def measure(
    source: str,
    topics: tuple[str, ...],
    weats: tuple[str, ...],
    wefats: tuple[str, ...],
    queries: tuple[str, ...],
    metrics: tuple[str, ...],
    extended: bool,
    robust: bool,
    output: str | None,
    case: str,
    as_json: bool,
    **settings: Any,
) -> None:
    """Measure bias: topics, the published WEATs and WEFATs, or a query of yours.

    Without --topic, --weat, --wefat or --query: everything built in. Every metric that fits is
    run unless --metric names some: weat, wefat, mac, direct_bias, ripa, rnd, rnsb, ect, same; for
    topics also association and projections.

    \b
    Examples:
      evenhand vectors measure glove --topic gender
      evenhand vectors measure my.vec --weat 7 --weat 8 --robust
      evenhand vectors measure my.bin --query q.json --metric weat --json
    """
    from evenhand import lexicon
    from evenhand.cli.output import bar, measurements_table, print_json, print_skipped
    from evenhand.errors import VocabularyError
    from evenhand.vectors.measuring import Measured, fact_job, query_jobs, run_jobs, topic_jobs

    everything = not (topics or weats or wefats or queries)
    if everything:
        topics, weats, wefats = lexicon.topic_names(), ("all",), ("all",)
    asked_topics = [lexicon.topic(name) for name in topics]
    facts = lexicon.wefat_queries() if "all" in wefats else map(lexicon.wefat, wefats)
    asked = [*_weats(weats), *(lexicon.read_query(path) for path in queries)]
    names = list(metrics) or None
    strict = None if everything else names
    jobs = [job for topic in asked_topics for job in topic_jobs(topic, strict, extended=extended)]
    jobs += [job for query in asked for job in query_jobs(query, strict)]
    jobs += [fact_job(query) for query in facts]
    if everything and names is not None:
        jobs = _chosen(jobs, names)
    v = load_vectors(source, case)
    shown = bar(jobs, "measuring", quiet=as_json)
    measured = run_jobs(v, shown, strict=strict is not None, **settings)
    if robust:
        checked = run_jobs(v, _robust(asked), **settings)
        measured = Measured(
            measured.measurements + checked.measurements, measured.skipped + checked.skipped
        )
    if not measured.measurements:
        raise VocabularyError(f"nothing could be measured: {measured.skipped[0]['reason']}")
    if output:
        _save_items(output, measured.measurements)
    if as_json:
        print_json(
            vectors={"name": v.name, "words": len(v), "dim": v.dim},
            measurements=measured.measurements, skipped=measured.skipped,
        )  # fmt: skip
        return
    measurements_table(f"Bias in {v.name}, {len(v):,} words × {v.dim}", measured.measurements)
    print_skipped(measured.skipped)


def _chosen(jobs: list[Job], names: list[str]) -> list[Job]:
    """The jobs of these metrics; a name that no job has is an error."""
    from evenhand.errors import UnknownNameError

    known = {job.metric for job in jobs}
    for name in names:
        if name not in known:
            raise UnknownNameError("metric", name, known)
    return [job for job in jobs if job.metric in names]


def _weats(numbers: tuple[str, ...]) -> list[Query]:
    from evenhand import lexicon

    if "all" in numbers:
        return list(lexicon.weat_queries())
    return [lexicon.weat(number) for number in numbers]


def _robust(queries: list[Query]) -> list[Job]:
    from evenhand.vectors.catalogue import weat
    from evenhand.vectors.measuring import Job
    from evenhand.vectors.robustness import leave_one_out, split_half

    def job(check: Callable[..., Measurement], query: Query) -> Job:
        return Job(check.__name__, query.name, lambda v, options: [check(v, query, **options)])

    fitting = [query for query in queries if weat.misfit(query) is None]
    return [job(check, query) for query in fitting for check in (leave_one_out, split_half)]


def _save_items(path: str, measurements: tuple[Any, ...]) -> None:
    import pandas as pd

    from evenhand.results import replace_file

    frames = [
        m.to_frame().assign(metric=m.metric, query=m.query).set_index(["metric", "query"])
        for m in measurements
    ]
    with replace_file(path) as file:
        pd.concat(frames).reset_index().to_csv(file, index=False)
