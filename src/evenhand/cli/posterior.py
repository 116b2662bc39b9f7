"""`evenhand posterior …`: Bayesian models of cosine distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.options import (
    F,
    folder_option,
    format_option,
    json_option,
    names_option,
    prob_option,
    reading_options,
    results_options,
    seed_option,
    single,
)
from evenhand.cli.output import (
    interval,
    number,
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    save_figures,
    say,
    table,
)
from evenhand.cli.progress import bar, progress_bar
from evenhand.summary import summarize

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.planning import Plan
    from evenhand.posterior.tables import Table as Distances
    from evenhand.results import Comparison, Measurement

__all__ = ["posterior"]

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


duplicates_option = click.option(
    "--repeats",
    "duplicates",
    type=click.Choice(["drop", "keep"]),
    default="drop",
    show_default=True,
    help="Rows that repeat a pair of words. keep: count them, as Dobrzeniecka (2021) does; "
    "crossed does not take them.",
)
words_option = names_option(
    "--word",
    "words",
    metavar="WORD[,WORD…]",
    help="Only these protected words; repeatable.",
)
classes_option = names_option(
    "--class",
    "classes",
    metavar="CLASS[,CLASS…]",
    help="Only the protected words of these classes; repeatable.",
)


def _read(
    source: str, duplicates: Any, words: Sequence[str] = (), classes: Sequence[str] = ()
) -> Distances:
    """The table, or its rows of some words or classes."""
    from evenhand.posterior import read_table

    data = read_table(source, duplicates=duplicates)
    if classes:
        data = data.select_classes(list(classes))
    if words:
        data = data.select_words(list(words))
    return data


def _print_contents(
    contents: Sequence[Mapping[str, Any]],
    names: Iterable[str],
    deciding: Iterable[Measurement | Comparison],
) -> None:
    """Print the JSON of one table, or of several by their names, with the closing sentence."""
    several = {"tables": dict(zip(names, contents, strict=True))}
    content = contents[0] if len(contents) == 1 else several
    print_json(**content, sentence=summarize(deciding))


def _stems(sources: Iterable[str]) -> list[str]:
    """A name per table, for its panel and folder."""
    names: list[str] = []
    for source in sources:
        stem = Path(source).stem.removesuffix(".csv")
        count = sum(name == stem or name.startswith(f"{stem} ") for name in names)
        names.append(f"{stem} {count + 1}" if count else stem)
    return names


def family_option(default: str) -> Callable[[F], F]:
    """--family as `models`: which statistical models are fitted."""
    return names_option(
        "--family",
        "models",
        default=(default,),
        show_default=True,
        type=completion.FAMILIES,
        help="baseline, coefficients, separate, paper, crossed-no-interaction, crossed, or all; "
        "repeatable.",
    )


PLANNED = completion.Value(completion.TOPICS.names, files=(".csv",))


@click.group(cls=Group, short_help="Bayesian models of distance tables.")
def posterior() -> None:
    """How sure is a bias in cosine distances, and how many words would show it?

    A table is a CSV with the columns protectedWord, wordToCompare, connection (associated,
    different, human, none) and cosineDistance or cosineSimilarity, under these or similar names.
    `evenhand vectors distances` writes one.

    \b
    Examples:
      evenhand vectors distances glove --topic religion -o religion.csv
      evenhand posterior fit religion.csv
      evenhand posterior plan religion --effect 0.03
    """


@posterior.command(short_help="MAC and contrast of a distance table, without a model.")
@reading_options
@click.argument("tables", metavar="TABLE…", type=completion.TABLE, nargs=-1, required=True)
@words_option
@classes_option
@results_options()
@seed_option()
@prob_option()
@json_option
def describe(
    tables: tuple[str, ...],
    words: tuple[str, ...],
    classes: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Describe tables of cosine distances: means by connection, MAC, and the association contrast.

    No vectors are needed. MAC is the mean distance of protected words to stereotypes (Manzini et
    al. 2019); the contrast compares each stereotype's distance to its own class with that to the
    others, with a permutation test.

    \b
    Example:  evenhand posterior describe religion.csv debiased.csv
    """
    from evenhand.posterior import describe_table

    described = [
        describe_table(_read(path, "drop", words, classes), seed=seed, prob=prob) for path in tables
    ]
    measured = [m for d in described for m in d.measurements]
    if as_json:
        _print_contents([d.to_dict() for d in described], _stems(tables), measured)
        return
    for d in described:
        table(
            f"{d.source}: {d.rows:,} rows, {d.words} protected words, {d.attributes} attributes",
            ("connection", "mean", "median", "n"),
            (
                (name, number(row["mean"]), number(row["median"]), f"{row['size']:,}")
                for name, row in d.connections.items()
            ),
        )
        print_measurements(f"{d.source} ({prob:.0%})", d.measurements, hide=["legend"])
        _print_dropped(d.source, d.dropped)
        for name, reason in d.skipped.items():
            say(f"not measured: {name}: {reason}")
        print_notes(note for m in d.measurements for note in m.notes)
    print_finding(measured)


@posterior.command(short_help="Fit models to a distance table.")
@reading_options
@click.argument("tables", metavar="TABLE…", type=completion.TABLE, nargs=-1, required=True)
@family_option("all")
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
@words_option
@classes_option
@duplicates_option
@click.option("--checks", is_flag=True, help="Add posterior predictive checks.")
@click.option(
    "--sensitivity",
    is_flag=True,
    help="Add the contrasts under other priors, and whether the judgement depends on them.",
)
@draws_option
@prior_option
@folder_option("Folder for results.json, contrasts.csv, levels.csv, the draws and the figures.")
@format_option
@names_option(
    "--figure-word",
    "drawn",
    metavar="WORD[,WORD…]",
    help="Protected word of a radial figure; repeatable.  [default: the two most different ones]",
)
@seed_option()
@prob_option()
@json_option
def fit(
    tables: tuple[str, ...],
    models: tuple[str, ...],
    sampler: Any,
    errors: Any,
    words: tuple[str, ...],
    classes: tuple[str, ...],
    duplicates: str,
    checks: bool,
    sensitivity: bool,
    draws: int,
    priors: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    drawn: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Fit models to tables of cosine distances, compare them, and measure the contrasts.

    The contrasts for conclusions come from the model crossed, in which protected words, attributes
    and classes × attributes have effects of their own: below 0, stereotypes are closer to their
    class. crossed-no-interaction, the model of version 0.1, lacks the latter; its intervals are too
    short. The models of Dobrzeniecka (2021) (baseline, coefficients, separate) and of the 2024
    paper are for reproduction.

    In the words of one class no attribute is associated with one word and different for another.
    crossed is fitted nevertheless and a note names the contrasts that remain. Of several tables,
    FOLDER has one folder each and figures of all of them.

    \b
    Examples:
      evenhand vectors distances glove --topic religion -o religion.csv
      evenhand posterior fit religion.csv
      evenhand posterior fit religion.csv --family crossed --json
      evenhand posterior fit religion.csv --class muslim
      evenhand posterior fit religion.csv gender.csv --family coefficients -o FOLDER
    """
    from evenhand.errors import UnknownNameError
    from evenhand.posterior import MODELS, Priors, assess, fit_models

    if drawn and not folder:
        raise click.UsageError("--figure-word draws a figure: expected -o FOLDER with it, got none")
    for name in models:
        if name not in (*MODELS, "all"):
            raise UnknownNameError("family", name, (*MODELS, "all"))
    use_all = "all" in models
    names = MODELS if use_all else tuple(dict.fromkeys(models))
    prior = Priors().update(priors)
    data = dict(
        zip(
            _stems(tables),
            (_read(table, duplicates, words, classes) for table in tables),
            strict=True,
        )
    )
    for word in drawn:  # reports an unknown word before the work
        if not any(word in distances.words for distances in data.values()):
            next(iter(data.values())).select_words([word])
    assessed: dict[str, Assessment] = {}
    for name, distances in data.items():
        fitted = fit_models(
            distances,
            bar(names, f"fitting {name}" if len(data) > 1 else "fitting"),
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
        assessed[name] = assessment
    if folder:
        from evenhand.report.posterior import fit_charts, topic_charts

        for name, assessment in assessed.items():
            own = folder / name if len(assessed) > 1 else folder
            assessment.save(own)
            words = tuple(word for word in drawn if word in assessment.fitted.table.words)
            charts = fit_charts(assessment, prior, words=words, seed=seed)
            save_figures(charts, own / "figures", formats)
        if len(assessed) > 1:
            fits = {name: {"before": a.fitted.fits} for name, a in assessed.items()}
            save_figures(topic_charts(fits, prob), folder / "figures", formats)
    deciding = [
        crossed["associated-different"]
        for assessment in assessed.values()
        if "associated-different" in (crossed := assessment.contrasts().get("crossed", {}))
    ]
    if as_json:
        _print_contents([a.to_dict() for a in assessed.values()], assessed, deciding)
        return
    for assessment in assessed.values():
        _print_assessment(assessment)
    if folder:
        each = f" ({', '.join(assessed)})" if len(assessed) > 1 else ""
        say(f"written to {folder}{each}: results.json, contrasts.csv, levels.csv, draws/, figures/")
    print_finding(deciding)


@posterior.command(short_help="Before against after debiasing.")
@reading_options
@click.argument(
    "tables", metavar="BEFORE AFTER [BEFORE AFTER]…", type=completion.TABLE, nargs=-1, required=True
)
@family_option("crossed")
@words_option
@classes_option
@duplicates_option
@draws_option
@prior_option
@folder_option("Folder for results.json, words.csv and the figures.")
@format_option
@seed_option()
@prob_option()
@json_option
def compare(
    tables: tuple[str, ...],
    models: tuple[str, ...],
    words: tuple[str, ...],
    classes: tuple[str, ...],
    duplicates: str,
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

    The model is fitted to the differences of the cells that both tables have, so that the interval
    of the change is paired by protected word and attribute. Draw conclusions from crossed; the
    other models are for reproduction. Of several pairs of tables, such as three topics, FOLDER has
    one folder each and a figure of all of them.

    \b
    Examples:
      evenhand posterior compare before.csv after.csv
      evenhand posterior compare religion.csv religion-after.csv gender.csv gender-after.csv \\
        --family coefficients -o FOLDER
    """
    from evenhand.errors import UnknownNameError
    from evenhand.posterior import MODELS, Priors, compare_tables

    if len(tables) % 2:
        raise click.UsageError(
            f"compare: expected pairs of tables, BEFORE AFTER, got {len(tables)} table(s)"
        )
    model = single(models, "--family")
    if model not in MODELS:
        raise UnknownNameError("family", model, MODELS)
    prior = Priors().update(priors)
    read = [_read(table, duplicates, words, classes) for table in tables]
    changes = {
        name: compare_tables(before, after, model, priors=prior, draws=draws, seed=seed)
        for name, before, after in zip(_stems(tables[::2]), read[::2], read[1::2], strict=True)
    }
    if folder:
        from evenhand.report.posterior import change_charts, topic_charts

        for name, change in changes.items():
            own = folder / name if len(changes) > 1 else folder
            change.save(own, prob)
            save_figures(change_charts(change, prob), own / "figures", formats)
        if len(changes) > 1:
            fits = {
                name: {"before": {model: change.before}, "after": {model: change.after}}
                for name, change in changes.items()
            }
            save_figures(topic_charts(fits, prob), folder / "figures", formats)
    if as_json:
        contents = [change.to_dict(prob) for change in changes.values()]
        _print_contents(contents, changes, _head(changes.values(), prob))
        return
    for change, before, after in zip(changes.values(), tables[::2], tables[1::2], strict=True):
        _print_change(change, prob, {"before": before, "after": after})
    print_finding(comparisons=_head(changes.values(), prob))


def _head(changes: Iterable[Change], prob: float) -> Iterator[Comparison]:
    """The contrast for conclusions of each change."""
    for change in changes:
        contrasts = change.contrasts(prob)
        if "associated-different" in contrasts:
            yield contrasts["associated-different"]


@posterior.command(short_help="How many stereotypes a study needs.")
@reading_options
@click.argument("source", metavar="[TOPIC|TABLE.csv]", default="religion", type=PLANNED)
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
    "--simulations",
    "sets",
    type=click.IntRange(10, 100_000),
    default=120,
    show_default=True,
    help="Tables simulated at each of about five numbers of stereotypes.",
)
@seed_option()
@prob_option()
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

    with progress_bar("simulating") as progress:
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
        (
            "model",
            "WAIC",
            "SE",
            "p",
            "difference",
            "SE of it",
            "weight",
            "LOO",
            "k > .7",
            "R-hat",
            "ESS",
        ),
        (
            (
                d.model,
                number(assessment.criteria[d.model].waic, 1),
                number(assessment.criteria[d.model].waic_se, 1),
                number(assessment.criteria[d.model].p_waic, 1),
                number(d.waic_difference, 1),
                number(d.waic_difference_se, 1),
                number(d.weight, 2),
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
        say(f"not fitted: {name}: {reason}")
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
            say(f"only in {source}, left out: {change.unpaired[when]:,} rows")
    print_notes(change.notes)


def _print_dropped(source: str, dropped: Mapping[str, int]) -> None:
    counts = [f"{count:,} {reason}" for reason, count in dropped.items() if count]
    if counts:
        say(f"dropped from {source}: {', '.join(counts)}")


def _print_plan(result: Plan) -> None:
    from evenhand.posterior.planning import show_count

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
    spreads = ", ".join(f"{name} {number(value)}" for name, value in result.scales.items())
    say(f"spreads: {spreads}")
    print_notes(result.notes)
    say(f"needed by the approximation: {show_count(result.approximate)}")
    if result.scales_range:
        low, high = map(show_count, result.scales_range)
        say(f"needed given the uncertainty of the spreads ({level}): {low} to {high}")
    say(result.sentence)
