"""`evenhand vectors null`: what a measure reads on random words."""

from __future__ import annotations

import click

from evenhand.cli.options import (
    case_option,
    json_option,
    load_vectors,
    prob_option,
    seed_option,
    source_argument,
)

__all__ = ["null"]


@click.command(short_help="What a measure reads on random words.")
@source_argument
@click.option("--topic", help="A built-in topic or your .toml file.")
@click.option("--weat", "weat_number", help="A built-in WEAT, 1 to 10.")
@click.option("--query", "query_path", type=click.Path(), help="A query of yours as JSON.")
@click.option("--metric", "metrics", multiple=True, help="Only this metric; repeatable.")
@click.option(
    "--draws", type=click.IntRange(1), default=1000, show_default=True, help="Sets of random words."
)
@click.option(
    "--dimension", is_flag=True, help="Instead: spread of random cosines against dimension."
)
@case_option
@seed_option
@prob_option
@json_option
def null(
    source: str,
    topic: str | None,
    weat_number: str | None,
    query_path: str | None,
    metrics: tuple[str, ...],
    draws: int,
    dimension: bool,
    case: str,
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """What a measure reads on random words of like frequency in place of the probe words.

    A value is large where random words rarely reach it. With --dimension the thesis' experiment:
    how the spread of cosines between random vectors shrinks as their dimension grows.

    \b
    Examples:
      evenhand vectors null glove --topic gender --metric direct_bias
      evenhand vectors null glove --dimension
    """
    from evenhand import lexicon
    from evenhand.cli.output import (
        bar,
        measurements_table,
        number,
        p_text,
        print_json,
        print_skipped,
        table,
    )
    from evenhand.errors import InputError
    from evenhand.vectors.measuring import query_jobs, run_jobs, topic_jobs
    from evenhand.vectors.nulls import dimension_spread

    if dimension:
        spread = dimension_spread(seed=seed, prob=prob)
        if as_json:
            print_json(measurements=[spread.as_dict(items=True)])
            return
        columns = ("dimension", "sd_uniform", "sd_normal", "theory_normal")
        table(
            "Standard deviation of the cosine of random vectors",
            ("dimension", "uniform on [0, 1]", "normal", "1/√d"),
            ([number(item[name], 4 * (name != "dimension")) for name in columns]
             for item in spread.items),
        )  # fmt: skip
        measurements_table("Slope of log spread on log dimension, normal vectors", [spread])
        return
    if sum(given is not None for given in (topic, weat_number, query_path)) != 1:
        raise click.UsageError("null: expected one of --topic, --weat, --query or --dimension")
    names = list(metrics) or None
    if topic is not None:
        jobs = topic_jobs(lexicon.topic(topic), names)
    else:
        query = lexicon.read_query(query_path) if query_path else lexicon.weat(weat_number or "")
        jobs = query_jobs(query, names)
    v = load_vectors(source, case)
    measured = run_jobs(
        v, bar(jobs, "drawing", quiet=as_json), strict=names is not None,
        seed=seed, prob=prob, permutations=0, null=draws,
    )  # fmt: skip
    judged = [m for m in measured.measurements if "null_draws" in m.details]
    if not judged:
        reasons = [skip["reason"] for skip in measured.skipped]
        raise InputError(
            f"nothing to draw for: {reasons[0]}" if reasons
            else "null: association permutes classes and has no null of random words"
        )  # fmt: skip
    if as_json:
        print_json(measurements=judged, skipped=measured.skipped)
        return
    levels = ("0.025", "0.25", "0.5", "0.75", "0.975")
    table(
        f"{draws:,} draws of random words of like frequency in {v.name}",
        ("metric", "query", "value", *(f"null {float(level):.1%}" for level in levels), "p"),
        (
            (m.metric, m.query, number(m.value),
             *(number(m.details["null_quantiles"][level]) for level in levels), p_text(m.p_value))
            for m in judged
        ),
    )  # fmt: skip
    print_skipped(measured.skipped)
