"""`evenhand lab posterior …`: Bayesian models of cosine distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command, Group
from evenhand.cli.options import F
from evenhand.cli.output import (
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    print_rows,
    save_figures,
    say,
    table,
)
from evenhand.cli.progress import bar, is_set, progress_bar
from evenhand.errors import UnknownNameError
from evenhand.summary import summarize
from evenhand.wording import interval, number

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.planning import Plan
    from evenhand.posterior.tables import Duplicates
    from evenhand.posterior.tables import Table as Distances
    from evenhand.results import Comparison, Measurement

draws_option = click.option(
    "--draws",
    type=click.IntRange(160, 1_000_000),
    default=4000,
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
    help="Rows that repeat a pair of words. keep: count them, as Dobrzeniecka (2021) does; "
    "crossed does not take them.",
)
words_option = opt.names_option(
    "--word",
    "words",
    metavar="WORD[,WORD…]",
    help="Only these protected words; repeatable.",
)
classes_option = opt.names_option(
    "--class",
    "classes",
    metavar="CLASS[,CLASS…]",
    help="Only the protected words of these classes; repeatable.",
)


def reads_tables(command: F) -> F:
    """The tables of the arguments, or their rows of some words or classes, each by its name."""

    @wraps(command)
    def call(
        *,
        sources: Sequence[str],
        words: Sequence[str],
        classes: Sequence[str],
        duplicates: Duplicates = "drop",
        **others: object,
    ) -> None:
        from evenhand.posterior import read_table

        tables: dict[str, Distances] = {}
        for source in sources:
            data = read_table(source, duplicates=duplicates)
            if classes:
                data = data.select_classes(list(classes))
            if words:
                data = data.select_words(list(words))
            stem = Path(source).stem.removesuffix(".csv")
            count = sum(name == stem or name.startswith(f"{stem} ") for name in tables)
            tables[f"{stem} {count + 1}" if count else stem] = data
        command(tables=tables, **others)

    return call  # type: ignore[return-value]


def tables_argument(metavar: str = "TABLE…") -> Callable[[F], F]:
    """The tables, at least one."""
    return click.argument(
        "sources", metavar=metavar, type=completion.TABLE, nargs=-1, required=True
    )


def _find_models(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The models of these names, each once."""
    for name in names:
        if name not in known:
            raise UnknownNameError("family", name, known)
    return tuple(dict.fromkeys(names))


def _print_contents(
    contents: Sequence[Mapping[str, Any]],
    names: Iterable[str],
    deciding: Iterable[Measurement | Comparison],
) -> None:
    """Print the JSON of one table, or of several by their names, with the closing sentence."""
    several = {"tables": dict(zip(names, contents, strict=True))}
    content = contents[0] if len(contents) == 1 else several
    print_json(**content, sentence=summarize(deciding))


def family_option(default: str) -> Callable[[F], F]:
    """--family as `models`: which statistical models are fitted."""
    return opt.names_option(
        "--family",
        "models",
        default=(default,),
        type=completion.FAMILIES,
        help="baseline, coefficients, separate, paper, crossed-no-interaction, crossed, or all; "
        "repeatable.",
    )


PLANNED = completion.Value(completion.TOPICS.names, files=(".csv",))


@click.group(cls=Group)
def posterior() -> None:
    """How sure is a bias in cosine distances, and how many words would show it?

    A table is a CSV with the columns protectedWord, wordToCompare, connection (associated,
    different, human, none) and cosineDistance or cosineSimilarity, under these or similar names.
    `evenhand lab vectors distances` writes one.

    \b
    Examples:
      evenhand lab vectors distances glove --topic religion -o religion.csv
      evenhand lab posterior fit religion.csv
      evenhand plan religion --effect 0.03
    """


@posterior.command(short_help="MAC and contrast of a distance table, without a model.")
@opt.reading_options
@tables_argument()
@words_option
@classes_option
@opt.results_options()
@opt.seed_option()
@opt.prob_option()
@opt.json_option
@reads_tables
def describe(tables: Mapping[str, Distances], prob: float, seed: int) -> None:
    """Describe tables of cosine distances: means by connection, MAC, and the association contrast.

    No vectors are needed. MAC is the mean distance of protected words to stereotypes (Manzini et
    al. 2019); the contrast compares each stereotype's distance to its own class with that to the
    others, with a permutation test.

    \b
    Example:  evenhand lab posterior describe religion.csv debiased.csv
    """
    from evenhand.posterior import describe_table

    described = [describe_table(data, seed=seed, prob=prob) for data in tables.values()]
    measured = [m for d in described for m in d.measurements]
    if is_set("json"):
        _print_contents([d.to_dict() for d in described], tables, measured)
        return
    for d in described:
        table(
            f"{d.source}: {d.rows:,} rows, {d.words} protected words, {d.attributes} attributes",
            ("connection", "mean", "median", "n"),
            (
                (name, row["mean"], row["median"], row["size"])
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
@opt.reading_options
@tables_argument()
@family_option("all")
@click.option(
    "--sampler",
    type=click.Choice(["exact", "nuts"]),
    default="exact",
    help="nuts: NumPyro's, as a check; needs the extra nuts.",
)
@click.option(
    "--errors",
    type=click.Choice(["normal", "student"]),
    default="normal",
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
@opt.folder_option("Folder for results.json, contrasts.csv, levels.csv, the draws and the figures.")
@opt.format_option
@opt.names_option(
    "--figure-word",
    "drawn",
    metavar="WORD[,WORD…]",
    help="Protected word of a radial figure; repeatable.  [default: the two most different ones]",
)
@opt.seed_option()
@opt.prob_option()
@opt.json_option
@reads_tables
def fit(
    tables: Mapping[str, Distances],
    models: tuple[str, ...],
    checks: bool,
    sensitivity: bool,
    priors: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    drawn: tuple[str, ...],
    prob: float,
    **sampling: Any,
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
      evenhand lab vectors distances glove --topic religion -o religion.csv
      evenhand lab posterior fit religion.csv
      evenhand lab posterior fit religion.csv --family crossed --json
      evenhand lab posterior fit religion.csv --class muslim
      evenhand lab posterior fit religion.csv gender.csv --family coefficients -o FOLDER
    """
    from evenhand.posterior import MODELS, Priors, assess, fit_models

    if drawn and not folder:
        raise click.UsageError("--figure-word draws a figure: expected -o FOLDER with it, got none")
    chosen = _find_models(models, (*MODELS, "all"))
    use_all = "all" in chosen
    names = MODELS if use_all else chosen
    prior = Priors().update(priors)
    for word in drawn:  # reports an unknown word before the work
        if not any(word in distances.words for distances in tables.values()):
            next(iter(tables.values())).select_words([word])
    assessed: dict[str, Assessment] = {}
    draws = {name: sampling[name] for name in ("draws", "seed")}
    for name, distances in tables.items():
        fitted = fit_models(
            distances,
            bar(names, f"fitting {name}" if len(tables) > 1 else "fitting"),
            strict=not use_all,
            priors=prior,
            **sampling,
        )
        assessment = assess(fitted, prob=prob, checks=checks, seed=sampling["seed"])
        if sensitivity:
            assessment = assessment.with_sensitivity(prior.crossed, **draws)
        assessed[name] = assessment
    if folder:
        from evenhand.posterior.charts import fit_charts, topic_charts

        for name, assessment in assessed.items():
            own = folder / name if len(assessed) > 1 else folder
            assessment.save(own)
            words = tuple(word for word in drawn if word in assessment.fitted.table.words)
            charts = fit_charts(assessment, prior, words=words, seed=sampling["seed"])
            save_figures(charts, own / "figures", formats)
        if len(assessed) > 1:
            fits = {name: {"before": a.fitted.fits} for name, a in assessed.items()}
            save_figures(topic_charts(fits, prob), folder / "figures", formats)
    deciding = [
        crossed["associated-different"]
        for assessment in assessed.values()
        if "associated-different" in (crossed := assessment.contrasts().get("crossed", {}))
    ]
    if is_set("json"):
        _print_contents([a.to_dict() for a in assessed.values()], assessed, deciding)
        return
    for assessment in assessed.values():
        _print_assessment(assessment)
    if folder:
        each = f" ({', '.join(assessed)})" if len(assessed) > 1 else ""
        say(f"written to {folder}{each}: results.json, contrasts.csv, levels.csv, draws/, figures/")
    print_finding(deciding)


@posterior.command(short_help="Before against after debiasing.")
@opt.reading_options
@tables_argument("BEFORE AFTER [BEFORE AFTER]…")
@family_option("crossed")
@words_option
@classes_option
@duplicates_option
@draws_option
@prior_option
@opt.folder_option("Folder for results.json, words.csv and the figures.")
@opt.format_option
@opt.seed_option()
@opt.prob_option()
@opt.json_option
@reads_tables
def compare(
    tables: Mapping[str, Distances],
    models: tuple[str, ...],
    priors: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    prob: float,
    **sampling: Any,
) -> None:
    """Compare two tables of the same words, before and after debiasing, with intervals of the
    change.

    The model is fitted to the differences of the cells that both tables have, so that the interval
    of the change is paired by protected word and attribute. Draw conclusions from crossed; the
    other models are for reproduction. Of several pairs of tables, such as three topics, FOLDER has
    one folder each and a figure of all of them.

    \b
    Examples:
      evenhand lab posterior compare before.csv after.csv
      evenhand lab posterior compare religion.csv religion-after.csv gender.csv gender-after.csv \\
        --family coefficients -o FOLDER
    """
    from evenhand.posterior import MODELS, Priors, compare_tables

    if len(tables) % 2:
        raise click.UsageError(
            f"compare: expected pairs of tables, BEFORE AFTER, got {len(tables)} table(s)"
        )
    [model] = _find_models([opt.single(models, "--family")], MODELS)
    prior = Priors().update(priors)
    names = list(tables)
    changes = {
        before: compare_tables(tables[before], tables[after], model, priors=prior, **sampling)
        for before, after in zip(names[::2], names[1::2], strict=True)
    }
    if folder:
        from evenhand.posterior.charts import change_charts, topic_charts

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
    if is_set("json"):
        contents = [change.to_dict(prob) for change in changes.values()]
        _print_contents(contents, changes, _head(changes.values(), prob))
        return
    for change in changes.values():
        _print_change(change, prob)
    print_finding(comparisons=_head(changes.values(), prob))


def _head(changes: Iterable[Change], prob: float) -> Iterator[Comparison]:
    """The contrast for conclusions of each change."""
    for change in changes:
        contrasts = change.contrasts(prob)
        if "associated-different" in contrasts:
            yield contrasts["associated-different"]


@click.command(cls=Command)
@opt.reading_options
@click.argument("source", metavar="[TOPIC|TABLE.csv]", default="religion", type=PLANNED)
@click.option(
    "--effect",
    type=float,
    default=0.05,
    help="Difference associated-different to detect; its sign does not matter.",
)
@click.option(
    "--power",
    type=float,
    default=0.8,
    help="Target probability of detection.",
)
@click.option(
    "--simulations",
    "sets",
    type=click.IntRange(10, 100_000),
    default=120,
    help="Tables simulated at each of about five numbers of stereotypes.",
)
@opt.seed_option()
@opt.prob_option()
@opt.json_option
def plan(**study: Any) -> None:
    """How many stereotypes are needed to detect a difference between classes.

    Detected: the interval of associated-different by the model crossed excludes 0. A topic
    (default: religion) is planned with its numbers of protected words and the spreads of religion
    in Reddit vectors; a distance table with its words and the spreads estimated from it.

    \b
    Examples:
      evenhand plan religion --effect 0.03
      evenhand plan religion.csv --power 0.9
    """
    from evenhand.posterior.planning import plan as plan_study

    with progress_bar("simulating") as progress:
        result = plan_study(**study, progress=progress)
    if print_json(**result.to_dict()):
        return
    _print_plan(result)


COLUMNS = {"sd": "sd", "P(< 0)": "p_below_zero"}


def _print_posteriors(title: str, results: Iterable[Measurement]) -> None:
    """Means with their sd, highest-density interval and the probability of a value below 0."""
    print_measurements(title, results, label=_label, columns=COLUMNS, hide=["ideal", "n", "legend"])


def _label(part: Measurement) -> str:
    group = part.details.get("class")
    return f"{part.query} ({group})" if group else part.query


def _print_assessment(assessment: Assessment) -> None:
    fitted, level = assessment.fitted, f"{assessment.prob:.0%}"
    criteria, diagnostics = assessment.criteria, assessment.diagnostics
    print_rows(
        f"{fitted.table.source}: {fitted.table.rows:,} rows, {len(fitted.table.words)} protected "
        f"words, {len(fitted.table.attributes)} attributes",
        assessment.differences,
        {
            "model": "model",
            "WAIC": lambda d: number(criteria[d.model].waic, 1),
            "SE": lambda d: number(criteria[d.model].waic_se, 1),
            "p": lambda d: number(criteria[d.model].p_waic, 1),
            "difference": lambda d: number(d.waic_difference, 1),
            "SE of it": lambda d: number(d.waic_difference_se, 1),
            "weight": lambda d: number(d.weight, 2),
            "LOO": lambda d: number(criteria[d.model].loo, 1),
            "k > .7": lambda d: str(criteria[d.model].high_k),
            "R-hat": lambda d: diagnostics[d.model].rhat_max,
            "ESS": lambda d: number(diagnostics[d.model].ess_min, 0),
        },
    )
    print_measurements(
        f"Mean distance by connection ({level} highest-density intervals; coefficients: co)",
        [
            replace(m, query=f"{model}: {connection}")
            for model, levels in assessment.levels().items()
            for connection, m in levels.items()
        ],
        label="query",
        columns={"sd": "sd"},
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
        print_rows(
            f"Tables simulated by {model}, and the data",
            checks,
            {
                "statistic": "statistic",
                "data": "observed",
                "model": "mean",
                "interval": lambda c: interval(c.low, c.high),
                "p": "p",
            },
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


def _print_change(change: Change, prob: float) -> None:
    levels, contrasts = change.levels(prob), change.contrasts(prob)
    for title, compared in (("Mean distance by connection", levels), ("Contrasts", contrasts)):
        print_comparisons(
            f"{title}, {change.change.table.rows:,} pairs of words ({prob:.0%})",
            compared.values(),
            label="query",
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
        label="query",
        columns=COLUMNS,
    )
    for when, fit in (("before", change.before), ("after", change.after)):
        source = fit.table.source
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
    print_rows(
        f"{result.source}: {result.words} protected words; power to detect a difference of "
        f"{result.effect:g} ({level} interval excludes 0)",
        result.curve,
        {
            "stereotypes": lambda m: str(m.details["attributes"]),
            "sd of δ": lambda m: number(m.details["sd"], 4),
            "approximation": "approximate",
            "detected": lambda m: f"{m.details['detected']} of {m.n}",
            "share": "value",
            "interval": lambda m: interval(m.low, m.high),
            "curve": "fitted",
        },
    )
    spreads = ", ".join(f"{name} {number(value)}" for name, value in result.scales.items())
    say(f"spreads: {spreads}")
    print_notes(result.notes)
    say(f"needed by the approximation: {show_count(result.approximate)}")
    if result.scales_range:
        low, high = map(show_count, result.scales_range)
        say(f"needed given the uncertainty of the spreads ({level}): {low} to {high}")
    say(result.sentence)
