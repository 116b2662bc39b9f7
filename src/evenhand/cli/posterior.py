"""`evenhand posterior …`: Bayesian models of cosine distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import (
    folder_option,
    format_option,
    json_option,
    prob_option,
    reading_options,
    seed_option,
)
from evenhand.cli.output import (
    bar,
    interval,
    number,
    print_comparisons,
    print_json,
    print_measurements,
    print_notes,
    progress_bar,
    save_figures,
    table,
)

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.planning import Plan
    from evenhand.results import Measurement

__all__ = ["posterior"]

density_option = prob_option(default=0.89, help="Probability of the highest-density intervals.")
draws_option = click.option(
    "--draws",
    type=click.IntRange(160, 1_000_000),
    default=4000,
    show_default=True,
    help="Draws from each posterior.",
)
prior_option = click.option(
    "--prior",
    "priors",
    multiple=True,
    metavar="FAMILY.NAME=VALUE",
    help="Change a prior, e.g. crossed.delta_sd=0.1; repeatable.",
)


@click.group(short_help="Bayesian models of distance tables.")
def posterior() -> None:
    """Bayesian models of tables of cosine distances: fit, compare; plan a study.

    A table is a CSV with the columns protectedWord, wordToCompare, connection (associated,
    different, human, none) and cosineDistance or cosineSimilarity, under these or similar names.
    `evenhand vectors distances` writes one.
    """


@posterior.command(short_help="Fit models to a distance table.")
@reading_options
@click.argument("table", metavar="TABLE", type=click.Path())
@click.option(
    "--model",
    "models",
    multiple=True,
    default=("all",),
    show_default=True,
    help="baseline, coefficients, separate, paper, crossed-no-interaction, crossed, or all; "
    "repeatable.",
)
@click.option(
    "--sampler",
    type=click.Choice(["exact", "nuts"]),
    default="exact",
    show_default=True,
    help="nuts: NumPyro's, as a check; needs the extra nuts.",
)
@click.option(
    "--errors",
    type=click.Choice(["normal", "student"]),
    default="normal",
    show_default=True,
    help="Error distribution of crossed and crossed-no-interaction.",
)
@click.option("--checks", is_flag=True, help="Add posterior predictive checks.")
@click.option("--sensitivity", is_flag=True, help="Add the contrasts under other priors.")
@draws_option
@prior_option
@folder_option("Folder for results.json, contrasts.csv, levels.csv, the draws and the figures.")
@format_option
@click.option(
    "--word",
    "words",
    multiple=True,
    help="Protected word of a radial figure; repeatable.  [default: the two most different ones]",
)
@seed_option()
@density_option
@json_option
def fit(
    table: str,
    models: tuple[str, ...],
    sampler: Any,
    errors: Any,
    checks: bool,
    sensitivity: bool,
    draws: int,
    priors: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    words: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Fit models to a table of cosine distances, compare them, and measure the contrasts.

    The contrasts for conclusions come from the model crossed, in which protected words, attributes
    and classes × attributes have effects of their own: below 0, stereotypes are closer to their
    class. crossed-no-interaction, the model of version 0.1, lacks the latter; its intervals are too
    short. The models of Dobrzeniecka (2021) (baseline, coefficients, separate) and of the 2024
    paper are for reproduction.

    \b
    Examples:
      evenhand vectors distances glove --topic religion -o religion.csv
      evenhand posterior fit religion.csv
      evenhand posterior fit religion.csv --model crossed --json
    """
    from evenhand.errors import UnknownNameError
    from evenhand.posterior import MODELS, Priors, assess, fit_models, read_table

    if words and not folder:
        raise click.UsageError("--word draws a figure: expected -o FOLDER with it, got none")
    requested = [name for text in models for name in text.split(",")]
    for name in requested:
        if name not in (*MODELS, "all"):
            raise UnknownNameError("model", name, (*MODELS, "all"))
    use_all = "all" in requested
    names = MODELS if use_all else tuple(dict.fromkeys(requested))
    prior, data = Priors().update(priors), read_table(table)
    if words:
        data.select_words(words)  # reports an unknown word before the work
    fitted = fit_models(
        data,
        bar(names, "fitting", quiet=as_json),
        strict=not use_all,
        priors=prior,
        draws=draws,
        seed=seed,
        sampler=sampler,
        errors=errors,
    )
    assessment = assess(fitted, prob=prob, checks=checks, seed=seed)
    if sensitivity:
        assessment = assessment.with_sensitivity(prior.crossed, draws=draws, seed=seed)
    if folder:
        from evenhand.report.posterior import fit_charts

        assessment.save(folder)
        save_figures(
            fit_charts(assessment, prior, words=words, seed=seed), folder / "figures", formats
        )
    if as_json:
        print_json(**assessment.to_dict())
        return
    _print_assessment(assessment)
    if folder:
        click.echo(
            f"written to {folder}: results.json, contrasts.csv, levels.csv, draws/, figures/"
        )


@posterior.command(short_help="Before against after debiasing.")
@reading_options
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@draws_option
@prior_option
@folder_option("Folder for results.json, words.csv and the figures.")
@format_option
@seed_option()
@density_option
@json_option
def compare(
    before: str,
    after: str,
    draws: int,
    priors: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Compare two tables of the same words, before and after debiasing, with intervals of the
    change.

    The model crossed is fitted to the differences of the cells that both tables have, so that the
    interval of the change is paired by protected word and attribute.

    \b
    Example:  evenhand posterior compare before.csv after.csv
    """
    from evenhand.posterior import Priors, compare_tables

    prior = Priors().update(priors)
    change = compare_tables(before, after, priors=prior, draws=draws, seed=seed)
    if folder:
        from evenhand.report.posterior import change_charts

        change.save(folder, prob)
        save_figures(change_charts(change, prob), folder / "figures", formats)
    if as_json:
        print_json(**change.to_dict(prob))
        return
    _print_change(change, prob, {"before": before, "after": after})


@posterior.command(short_help="How many stereotypes a study needs.")
@reading_options
@click.argument("source", metavar="[TOPIC|TABLE.csv]", default="religion")
@click.option(
    "--effect",
    type=float,
    default=0.05,
    show_default=True,
    help="Difference associated-different to detect; its sign does not matter.",
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    help="Target probability of detection.",
)
@click.option(
    "--sets",
    type=click.IntRange(10, 100_000),
    default=120,
    show_default=True,
    help="Tables simulated at each of about five numbers of stereotypes.",
)
@seed_option()
@density_option
@json_option
def plan(
    source: str, effect: float, power: float, sets: int, seed: int, prob: float, as_json: bool
) -> None:
    """How many stereotypes are needed to detect a difference between classes.

    Detected: the interval of associated-different by the model crossed excludes 0. A topic
    (default: religion) is planned with its numbers of protected words and the spreads of religion
    in Reddit vectors; a distance table with its words and the spreads estimated from it.

    \b
    Examples:
      evenhand posterior plan religion --effect 0.03
      evenhand posterior plan religion.csv --power 0.9
    """
    from evenhand.posterior.planning import plan as plan_study

    with progress_bar("simulating", quiet=as_json) as progress:
        result = plan_study(source, effect, power, prob, seed, sets=sets, progress=progress)
    if as_json:
        print_json(**result.to_dict())
        return
    _print_plan(result)


COLUMNS: Mapping[str, Callable[[Any], str]] = {
    "sd": lambda result: number(result.details["sd"]),
    "P(< 0)": lambda result: number(result.details["p_below_zero"]),
}


def _print_posteriors(title: str, results: Iterable[Measurement]) -> None:
    """Means with their sd, highest-density interval and the probability of a value below 0."""
    print_measurements(title, results, label=_label, columns=COLUMNS, hide=["ideal", "n", "legend"])


def _label(part: Measurement) -> str:
    group = part.details.get("class")
    return f"{part.query} ({group})" if group else part.query


def _print_assessment(assessment: Assessment) -> None:
    fitted, level = assessment.fitted, f"{assessment.prob:.0%}"
    table(
        f"{fitted.table.source}: {fitted.table.rows:,} rows, {len(fitted.table.words)} protected "
        f"words, {len(fitted.table.attributes)} attributes",
        ("model", "WAIC", "SE", "p", "difference", "SE of it", "LOO", "k > .7", "R-hat", "ESS"),
        (
            (
                d.model,
                number(assessment.criteria[d.model].waic, 1),
                number(assessment.criteria[d.model].waic_se, 1),
                number(assessment.criteria[d.model].p_waic, 1),
                number(d.waic_difference, 1),
                number(d.waic_difference_se, 1),
                number(assessment.criteria[d.model].loo, 1),
                str(assessment.criteria[d.model].high_k),
                number(assessment.diagnostics[d.model].rhat_max),
                number(assessment.diagnostics[d.model].ess_min, 0),
            )
            for d in assessment.differences
        ),
    )
    print_measurements(
        f"Mean distance by connection ({level} highest-density intervals; coefficients: co)",
        [
            replace(m, query=f"{model}: {connection}")
            for model, levels in assessment.levels().items()
            for connection, m in levels.items()
        ],
        label=lambda m: m.query,
        columns={"sd": COLUMNS["sd"]},
        hide=["ideal", "n", "legend"],
    )
    contrasts = assessment.contrasts()
    crossed = contrasts.get("crossed", {})
    _print_posteriors(f"Contrasts by crossed, for conclusions ({level})", crossed.values())
    if delta := crossed.get("associated-different"):
        for by in ("class", "word"):
            _print_posteriors(f"associated-different by {by} ({level})", delta.select(by))
    _print_posteriors(
        f"Contrasts by coefficients, without attribute effects ({level})",
        contrasts.get("coefficients", {}).values(),
    )
    for model, checks in assessment.checks.items():
        table(
            f"Tables simulated by {model}, and the data",
            ("statistic", "data", "model", "interval", "p"),
            (
                (
                    c.statistic,
                    number(c.observed),
                    number(c.mean),
                    interval(c.low, c.high),
                    number(c.p),
                )
                for c in checks
            ),
        )
    _print_posteriors(
        "associated-different under other priors",
        [
            replace(row.contrasts["associated-different"], query=row.name)
            for row in assessment.sensitivity
        ],
    )
    _print_dropped(fitted.table.source, fitted.table.dropped)
    for name, reason in fitted.skipped.items():
        click.echo(f"not fitted: {name}: {reason}")
    print_notes(assessment.notes)


def _print_change(change: Change, prob: float, sources: Mapping[str, str]) -> None:
    levels, contrasts = change.levels(prob), change.contrasts(prob)
    for title, compared in (("Mean distance by connection", levels), ("Contrasts", contrasts)):
        print_comparisons(
            f"{title}, {change.change.table.rows:,} pairs of words ({prob:.0%})",
            compared.values(),
            label=lambda c: c.query,
            columns={
                **COLUMNS,
                "interval before": lambda c: interval(c.before.low, c.before.high),
                "interval after": lambda c: interval(c.after.low, c.after.high),
            },
        )
    words = {
        f"{part.query}, {name}": part
        for name, c in (levels | contrasts).items()
        for part in c.parts
        if part.before.by == "word"
    }
    print_comparisons(
        f"Change of each protected word ({prob:.0%})",
        [replace(part, before=replace(part.before, query=name)) for name, part in words.items()],
        label=lambda c: c.query,
        columns=COLUMNS,
    )
    for when, source in sources.items():
        _print_dropped(source, change.dropped[when])
        if change.unpaired[when]:
            click.echo(f"only in {source}, left out: {change.unpaired[when]:,} rows")
    print_notes(change.notes)


def _print_dropped(source: str, dropped: Mapping[str, int]) -> None:
    counts = [f"{count:,} {reason}" for reason, count in dropped.items() if count]
    if counts:
        click.echo(f"dropped from {source}: {', '.join(counts)}")


def _print_plan(result: Plan) -> None:
    level = f"{result.prob:.0%}"
    table(
        f"{result.source}: {result.words} protected words; power to detect a difference of "
        f"{result.effect:g} ({level} interval excludes 0)",
        ("stereotypes", "sd of δ", "approximation", "detected", "share", "interval", "curve"),
        (
            (
                str(m.details["attributes"]),
                number(m.details["sd"], 4),
                number(m.details["approximate"]),
                f"{m.details['detected']} of {m.n}",
                number(m.value),
                interval(m.low, m.high),
                number(m.details["fitted"]),
            )
            for m in result.curve
        ),
    )
    by_class = f", {result.per_class} per class ({result.classes})" if result.per_class else ""
    click.echo(
        f"needed for a power of {result.power:g}: {_count(result.needed)} stereotypes{by_class} "
        f"(simulation, 95%: {_range((result.low, result.high))}; approximation: "
        f"{_count(result.approximate)})"
    )
    if result.scales_range:
        click.echo(f"given the uncertainty of the spreads ({level}): {_range(result.scales_range)}")
    click.echo(f"power with the {result.available} available: {number(result.power_available, 2)}")
    spreads = ", ".join(f"{name} {number(value)}" for name, value in result.scales.items())
    click.echo(f"spreads: {spreads}")
    print_notes(result.notes)


def _range(ends: tuple[int | None, int | None]) -> str:
    return f"{_count(ends[0])} to {_count(ends[1])}"


def _count(value: int | None) -> str:
    from evenhand.posterior.planning import MAX_ATTRIBUTES

    return f"more than {MAX_ATTRIBUTES:,}" if value is None else f"{value:,}"
