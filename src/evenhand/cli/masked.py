"""`evenhand masked …`: measure, generate with and fine-tune masked language models."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evenhand.cli.options import (
    combine,
    configure,
    declared_options,
    describe,
    folder_option,
    form_of,
    format_option,
    format_options,
    given_options,
    json_option,
    load_vectors,
    output_option,
    prob_option,
    reading_options,
    seed_option,
)
from evenhand.cli.output import (
    number,
    p_text,
    print_comparisons,
    print_json,
    print_measurements,
    save_figures,
    step_bars,
    table,
)
from evenhand.instruments import Run, correct_p_values, instruments, lookup
from evenhand.masked.metrics.crows import Crows
from evenhand.masked.metrics.pronouns import Pronouns

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.lexicon.phrases import Phrases
    from evenhand.masked.designs import Design
    from evenhand.masked.finetuning import FinetuneResult
    from evenhand.masked.generation import Generation
    from evenhand.masked.model import Model
    from evenhand.results import Comparison, Estimate, Measurement

__all__ = ["masked"]


@click.group(short_help="Measure and reduce bias in masked language models.")
def masked() -> None:
    """Masked language models: measure, score, associate, phrases, crows, generate, finetune.

    A model is named mini (embedded, the default), by the path of a folder in the transformers
    layout, or as hf:NAME, the only case in which anything is downloaded.
    """


F = TypeVar("F", bound=Callable[..., Any])

_MODEL = "mini, the path of a folder, or hf:NAME"
model_option = click.option(
    "--model", default="mini", show_default=True, metavar="SRC", help=f"The model: {_MODEL}."
)
models_option = click.option(
    "--model",
    "models",
    multiple=True,
    default=("mini",),
    show_default=True,
    metavar="SRC",
    help=f"The model: {_MODEL}. Repeat it to compare several on the same input.",
)


def running_options(command: F) -> F:
    """--device, --dtype, --int8, --cache and how input is read: the same for all commands.

    The command takes them as `device`, `dtype`, `int8` and `cache`.
    """
    device = click.option(
        "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …"
    )
    dtype = click.option(
        "--dtype",
        type=click.Choice(["float32", "bfloat16", "float16"]),
        default="float32",
        show_default=True,
        help="Data type of the computation; bfloat16 is for GPUs.",
    )
    int8 = click.option(
        "--int8", is_flag=True, help="8-bit weights on the CPU: faster, and no longer exact."
    )
    cache = click.option(
        "--cache",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        help="Cache the scores of the model here: the same command, interrupted or on a longer"
        " file, computes only what is missing.",
    )
    return device(dtype(int8(cache(reading_options(command)))))


def load_model(source: str, device: str, dtype: str, int8: bool) -> Model:
    """Load a model as the options say."""
    from evenhand.masked.model import load

    return load(source, device=device, dtype=dtype, int8=int8)  # type: ignore[arg-type]


def open_cache(folder: str | None) -> Cache | None:
    """The cache in the folder, or None without a folder."""
    if folder is None:
        return None
    from evenhand.cache import Cache

    return Cache(folder)


@contextmanager
def scoring_bar(label: str, unit: str = "") -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar with rate and remaining time if stderr is a terminal, else None."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=None, rate="")

        def report(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)
            speed = shown.tasks[task].speed
            shown.update(task, rate=f"{speed:,.0f}{unit}/s" if speed else "")

        yield report


METRICS = list(instruments("model").values())

MEASURE_HELP = f"""Measure a model by declared metrics, each on its default material or on FILE.

MODEL is mini, the path of a folder, or hf:NAME. The metrics:

{describe(METRICS)}

Without --metric, those that have built-in material are run. `evenhand list metrics NAME` explains
one of them.

\b
Examples:
  evenhand masked measure mini
  evenhand masked measure ./bert --metric pronouns --data biased.jsonl --json
  evenhand masked measure mini --metric crows,perplexity --data crows_pairs_anonymized.csv
"""


@masked.command(short_help="Measure a model by any declared metric.", help=MEASURE_HELP)
@click.argument("source", metavar="MODEL")
@click.option("--metric", "metrics", metavar="NAME[,NAME…]", help="The metrics to run.")
@click.option(
    "--data",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="The material of the metrics; each reads it in its own format.",
)
@declared_options(*METRICS)
@running_options
@seed_option
@prob_option
@json_option
def measure(
    source: str,
    metrics: str | None,
    data: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
    **options: Any,
) -> None:
    names = [name.strip() for name in metrics.split(",")] if metrics else None
    chosen = [lookup("model", name) for name in names] if names else _with_material(data)
    given = given_options(options)
    accepted = {option.name for cls in chosen for option in cls.declaration.options}
    for name in given:
        if name not in accepted:
            raise click.UsageError(f"option '{name}': none of the chosen metrics has it")
    material = {}
    for cls in chosen:
        instrument = configure(cls, given)
        material[cls] = instrument, instrument.read(data) if data else None
    model = load_model(source, device, dtype, int8)
    results: list[Measurement] = []
    answers = open_cache(cache)
    for cls, (instrument, read) in material.items():
        with scoring_bar(f"measuring {cls.declaration.name}") as progress:
            run = Run(seed=seed, prob=prob, cache=answers, progress=progress)
            measured = instrument.measure(model, read, run)
        results += measured if isinstance(measured, list) else [measured]
    if as_json:
        print_json(command="masked measure", measurements=results)
        return
    print_measurements(f"{source}", results, parts=True)
    for note in dict.fromkeys(note for m in results for note in m.notes):
        click.echo(f"- {note}")


def _with_material(data: str | None) -> list[Any]:
    """The metrics that are run without --metric: those with built-in material."""
    if data is not None:
        raise click.UsageError("--data: name the metrics that read it with --metric")
    return [cls for cls in METRICS if cls.declaration.audit]


@masked.command("score", short_help="The gender a model predicts where a pronoun was masked.")
@click.argument("file", metavar="FILE|-")
@models_option
@click.option(
    "--filter",
    "filtered",
    is_flag=True,
    help="FILE is plain text, one sentence per line: score what `evenhand text filter` accepts.",
)
@click.option("--keep-someone", is_flag=True, help='With --filter: accept "someone" too.')
@declared_options(Pronouns)
@output_option("Write every sentence's score here: .csv, .jsonl or .parquet.")
@click.option(
    "--figures",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Draw the distribution of the scores, and the differences of several models.",
)
@format_option
@running_options
@prob_option
@seed_option
@json_option
def score(
    file: str,
    models: tuple[str, ...],
    filtered: bool,
    keep_someone: bool,
    output: str | None,
    figures: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Score masked sentences: bias = P(male) / (P(male) + P(female)), 1 male, 0 female.

    FILE has what `evenhand text filter` wrote (JSON lines with "masked"), or text with one [MASK]
    per line, or with --filter plain text. P is the probability of the likeliest word of that gender
    in the full vocabulary or, as published by Ye et al. (2021), among the --top-k likeliest words,
    where a gender without a word counts 0. A repeated sentence counts once. Intervals come from a
    bootstrap over sentences. With -o or --cache the same command resumes after a break.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl
      evenhand masked score biased.jsonl -o items.csv
      evenhand masked score biased.jsonl --model mini --model ./tuned --figures out
      evenhand masked score sentences.txt --filter --keep-someone --figures out
      echo "[MASK] waves at the driver." | evenhand masked score - --json
    """
    from evenhand.masked.metrics.pronouns import pronouns_of_file
    from evenhand.text.structural import Filter

    instrument = configure(Pronouns, options)
    if keep_someone and not filtered:
        raise click.UsageError("--keep-someone goes with --filter")
    keep = Filter(someone=keep_someone) if filtered else None
    loaded = _load_models(tuple(dict.fromkeys(models)), device, dtype, int8)
    with scoring_bar("scoring", " sentences") as progress:
        run = Run(seed=seed, prob=prob, cache=open_cache(cache), progress=progress)
        results = pronouns_of_file(loaded, file, instrument, run, output=output, keep=keep)
    comparisons = correct_p_values(
        [Pronouns.compare(first, second) for first, second in combinations(results, 2)]
    )
    if as_json:
        print_json(
            command="masked score",
            file=file,
            output=output,
            measurements=results,
            comparisons=comparisons,
        )
    else:
        _print_scores(results, comparisons)
    if figures is not None:
        _draw_scores(results, comparisons, figures, formats)


def _load_models(sources: Sequence[str], device: str, dtype: str, int8: bool) -> list[Model]:
    """The models; those of one name are distinguished by how they were given."""
    loaded = [load_model(source, device, dtype, int8) for source in sources]
    names = Counter(model.name for model in loaded)
    return [
        replace(model, name=source) if names[model.name] > 1 else model
        for model, source in zip(loaded, sources, strict=True)
    ]


def _draw_scores(
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    from evenhand.charts import save_charts
    from evenhand.report.masked import score_charts

    charts = score_charts(results, comparisons)
    save_charts(charts.charts, folder, formats)
    for name, reason in charts.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)


def _print_scores(results: Sequence[Measurement], comparisons: Sequence[Comparison]) -> None:
    settings, prob = results[0].details["settings"], results[0].prob
    delta, top = settings["delta"], f"top {settings['top_k']}"
    table(
        "Pronoun score: how many sentences (and their mean score)",
        ("model", "by", "n", "male", "female", "neutral", "undecided", "mean", "interval", "p"),
        (
            (m.subject, name, *_score_cells(part))
            for m in results
            for name, part in ((top, m.part(top, "vocabulary")), ("full vocabulary", m))
        ),
    )
    click.echo(
        f"score: P(male)/(P(male)+P(female)). male above {0.5 + delta:g}, female below "
        f"{0.5 - delta:g}; undecided: no gender word of at least {settings['threshold']:g}. mean: "
        f"over decided sentences, {prob:.0%} interval; p: as many above .5 as below (sign test)."
    )
    _print_remarks(results, top)
    table(
        "By the role of the pronoun in the sentence",
        ("model", "role", "n", top, "full vocabulary, all sentences"),
        (
            (
                m.subject,
                part.query,
                str(part.n),
                _estimate_text(part.part(top).estimate),
                _estimate_text(part.estimate),
            )
            for m in results
            for part in m.select("slot")
        ),
    )
    if comparisons:
        table(
            "Models on the same sentences: difference of the score, paired",
            ("models", "n", "full vocabulary", "p", "decided by both", top),
            (
                (
                    f"{c.after.subject} - {c.before.subject}",
                    str(c.paired),
                    _estimate_text(c.change),
                    p_text(c.details["p_holm"]),
                    str(c.details["decided"]["both"]),
                    _estimate_text(c.parts[0].change),
                )
                for c in comparisons
            ),
        )
        click.echo("p: sign test on the full-vocabulary differences, corrected (Holm).")


def _print_remarks(results: Sequence[Measurement], top: str) -> None:
    """What was left out or needs a comment, one line each."""
    for m in results:
        one_sided = sum(m.part(top, "vocabulary").details["one_sided"].values())
        if one_sided:
            click.echo(
                f"{m.subject}: only one gender is among the {top} (the other counts 0) in "
                f"{one_sided} of the sentences."
            )
        for reason in m.left_out[:10]:
            click.echo(f"{m.subject}: left out: {reason}")
        if len(m.left_out) > 10:
            click.echo(f"{m.subject}: left out: {len(m.left_out) - 10} more (see --json)")
        for note in m.notes:
            click.echo(f"{m.subject}: {note}")
    details = results[0].details
    if details["filtered"]:
        click.echo(f"sentences that the structural filter left out: {details['filtered']:,}")
    if details["duplicates"]:
        click.echo(f"repeated sentences, which count once: {details['duplicates']}")


def _score_cells(m: Measurement) -> tuple[str, ...]:
    groups = []
    for verdict in ("male", "female", "neutral"):
        part = m.part(verdict, "verdict")
        count = part.details["count"]
        mean = part.part("mean score").value
        groups.append(f"{count} ({number(mean)})" if count else "0")
    return (
        str(m.details["sentences"]),
        *groups,
        str(m.part("undecided", "verdict").details["count"]),
        number(m.value),
        f"[{number(m.low)}, {number(m.high)}]",
        p_text(m.p_value),
    )


def _estimate_text(estimate: Estimate) -> str:
    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"


SHOWN_PROFESSIONS = 8
"""Professions shown of either end; JSON and -o have all."""


@masked.command(short_help="Which professions suggest a man, which a woman.")
@click.argument("file", metavar="[FILE.tsv]", type=click.Path(), required=False)
@models_option
@click.option(
    "--templates",
    metavar="FILE",
    type=click.Path(),
    help="Your own sentences with {person} and {profession}: one per line, or a TOML file.",
)
@click.option(
    "--professions",
    metavar="FILE",
    type=click.Path(),
    help="Your own professions: one per line, or CSV with profession, group, women.",
)
@click.option(
    "--persons",
    metavar="MALE/FEMALE",
    multiple=True,
    help="Your own pair of persons, such as he/she or 'my brother/my sister'. Repeatable.",
)
@folder_option("Folder for results.json, items.csv and the figures.")
@format_option
@running_options
@prob_option
@json_option
def associate(
    file: str | None,
    models: tuple[str, ...],
    templates: str | None,
    professions: str | None,
    persons: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    as_json: bool,
) -> None:
    """The association of professions with men and women: log(p_target / p_prior).

    p_target is the probability of the person word with the profession shown, p_prior that of the
    same word at the same position with every piece of the profession masked (Kurita et al. 2019,
    Bartl et al. 2020); reported is the man's minus the woman's. Above 0 the profession suggests a
    man. Templates, professions and person words are all samples, and the intervals allow for all
    three.

    Without FILE the built-in templates, professions and persons are used, or yours. FILE is a table
    in the layout of BEC-Pro (columns Sentence, Template, Person, Gender, Profession, Prof_Gender).

    \b
    Examples:
      evenhand masked associate
      evenhand masked associate BEC-Pro_EN.tsv --model ./bert --json
      evenhand masked associate --model mini --model ./tuned -o out
      evenhand masked associate --persons he/she --professions jobs.txt --templates own.toml
    """
    from evenhand.masked.metrics.professions import Professions

    sentences, incomplete = _design(file, templates, professions, persons)
    results = []
    sources = tuple(dict.fromkeys(models))
    for source in sources:
        model = load_model(source, device, dtype, int8)
        if len(sources) > 1:
            model = replace(model, name=source)
        with scoring_bar(f"scoring {model.name}", " words") as progress:
            run = Run(prob=prob, cache=open_cache(cache), progress=progress)
            results.append(Professions().measure(model, sentences, run))
    changes = [Professions.compare(results[0], other) for other in results[1:]]
    if output:
        _save_associations(results, changes, incomplete, output, formats)
    if as_json:
        print_json(
            command="masked associate",
            file=file,
            incomplete=incomplete,
            measurements=results,
            comparisons=changes,
        )
        return
    for m in results:
        _print_association(m)
    _print_association_changes(changes)
    if incomplete:
        click.echo(f"left out, since {file} lacks some of their sentences: {', '.join(incomplete)}")


def _design(
    file: str | None, templates: str | None, professions: str | None, persons: Sequence[str]
) -> tuple[Design, tuple[str, ...]]:
    """The sentences, and the professions for which some are missing."""
    from evenhand.lexicon.professions import PersonPair, read_professions, read_templates
    from evenhand.masked.designs import design, read_becpro

    if file is not None:
        if templates or professions or persons:
            raise click.UsageError(
                "FILE has its own sentences: give it without --templates, --professions, --persons"
            )
        return read_becpro(file)
    filled = design(
        read_templates(templates) if templates else None,
        read_professions(professions) if professions else None,
        [PersonPair.parse(text) for text in persons] or None,
    )
    return filled, ()


def _save_associations(
    results: Sequence[Measurement],
    changes: Sequence[Comparison],
    incomplete: Sequence[str],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    import pandas as pd

    from evenhand.files import document, replace_file, save_json
    from evenhand.report.masked import association_charts

    folder.mkdir(exist_ok=True)
    content = document(
        measurements=[m.to_dict(items=False) for m in results],
        comparisons=[change.to_dict(items=False) for change in changes],
        incomplete=incomplete,
    )
    save_json(folder / "results.json", content)
    items = pd.concat([m.to_frame().assign(model=m.subject) for m in results])
    with replace_file(folder / "items.csv") as out:
        items.to_csv(out, index=False)
    save_figures(association_charts(results), folder, formats)


def _print_association(m: Measurement) -> None:
    sizes = {
        "template": m.details["templates"],
        "profession": m.details["professions"],
        "pair of persons": m.details["pairs"],
    }
    shown = {"all": m, **{part.query: part for part in m.select("group")}}
    for part in m.select("contrast"):
        shown["male - female"] = part
    table(
        f"Association of {m.subject}: {' × '.join(_counted(*size) for size in sizes.items())}",
        ("professions", "value", "interval", "p", "n"),
        ((name, *_association_cells(part)) for name, part in shown.items()),
    )
    click.echo(
        f"value: log(p_target / p_prior) of men minus that of women, {m.prob:.0%} "
        f"interval over {_listed(sizes)}. groups: who mostly holds the profession."
    )
    for women in m.select("correlation"):
        click.echo(
            f"rank correlation with the share of women, n = {women.n}: "
            f"{number(women.value)} [{number(women.low)}, {number(women.high)}]"
        )
    parts = m.select("profession")
    ends = (
        parts
        if len(parts) <= 2 * SHOWN_PROFESSIONS
        else (*parts[:SHOWN_PROFESSIONS], *parts[-SHOWN_PROFESSIONS:])
    )
    table(
        f"Professions, the {SHOWN_PROFESSIONS} most male and the {SHOWN_PROFESSIONS} most female"
        if len(ends) < len(parts)
        else "Professions, the most male first",
        ("profession", "group", "value", "interval", "pooled", "pooled interval"),
        (
            (
                part.query,
                part.details["group"] or "–",
                *_estimate_cells(part.estimate),
                *_estimate_cells(part.part("pooled").estimate),
            )
            for part in ends
        ),
    )
    table(
        "Templates: the value of each, and of all others without it",
        ("template", "value", "interval", "without", "sign changes", "agreement"),
        (
            (
                part.query,
                *_estimate_cells(part.estimate),
                number(part.details["without"]),
                f"{part.details['sign_changes']:.0%}",
                number(part.details["agreement"], 2),
            )
            for part in m.select("template")
        ),
    )
    sensitivity = m.details["sensitivity"]
    if sensitivity["low"] is not None:
        click.echo(
            f"one template left out: {number(sensitivity['low'])} to "
            f"{number(sensitivity['high'])}. {sensitivity['changing']:.0%} of the professions "
            f"change sign with the template, {sensitivity['sign_changes']:.0%} of single answers "
            "differ in sign from their profession's mean."
        )
    for note in m.notes:
        click.echo(f"note: {note}")


def _plural(name: str) -> str:
    return name.replace("pair ", "pairs ") if name.startswith("pair ") else f"{name}s"


def _counted(name: str, n: int) -> str:
    return f"{n} {name if n == 1 else _plural(name)}"


def _listed(sizes: Mapping[str, int]) -> str:
    """The factors that the interval is over: those with several levels."""
    several = [_plural(name) for name, n in sizes.items() if n > 1]
    return " and ".join(filter(None, (", ".join(several[:-1]), several[-1]))) if several else "none"


def _print_association_changes(changes: Sequence[Comparison]) -> None:
    if not changes:
        return
    table(
        "Models on the same sentences: difference, paired",
        ("models", "professions", "change", "interval", "p", "n"),
        (
            (
                f"{change.after.subject} - {change.before.subject}",
                "male - female" if part.before.by == "contrast" else "all",
                *_estimate_cells(part.change),
                p_text(part.p_value),
                f"{change.paired:,}",
            )
            for change in changes
            for part in (change, *change.parts)
        ),
    )


def _association_cells(measured: Measurement) -> tuple[str, ...]:
    return (*_estimate_cells(measured.estimate), p_text(measured.p_value), f"{measured.n:,}")


def _estimate_cells(estimate: Estimate) -> tuple[str, str]:
    return number(estimate.value), f"[{number(estimate.low)}, {number(estimate.high)}]"


@masked.command(short_help="Phrase WEAT, and whether it agrees with the pronouns.")
@models_option
@click.option(
    "--vectors",
    "sources",
    multiple=True,
    metavar="SRC",
    help="Also embed phrases by the mean of word vectors: glove or a file; repeatable.",
)
@click.option(
    "--sets",
    "names",
    multiple=True,
    metavar="NAME|FILE.toml",
    help="Phrase sets: force, machines, command, neutral (all by default), or a file of yours.",
)
@folder_option("Folder for results.json, phrases.csv and the figures.")
@format_option
@running_options
@seed_option
@prob_option
@json_option
def phrases(
    models: tuple[str, ...],
    sources: tuple[str, ...],
    names: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Measure how phrases of what people do lean to one gender, in two ways.

    A phrase such as "welds the steel frame" states no gender. The phrase WEAT measures whether its
    embedding is closer to words for men or for women; the pronoun score, which pronoun the model
    predicts beside it in carrier sentences. The two are correlated, overall and within the sides of
    the sets. In the table d is the effect size, above 0 where the first side of a set leans to the
    first attributes (male in the built-in sets).

    A FILE.toml has [sets.NAME.targets] with two named lists of phrases, and perhaps attributes
    (two named lists), carriers (sentences with {phrase} and [MASK]) and control phrases.

    \b
    Examples:
      evenhand masked phrases
      evenhand masked phrases --vectors glove -o phrases/ --format svg,html
      evenhand masked phrases --sets machines --sets mine.toml --json
    """
    from evenhand.masked.metrics.phrases import CORRELATION, WordMean, refuse_masks
    from evenhand.masked.metrics.phrases import Phrases as Instrument
    from evenhand.masked.metrics.phrases import phrases as measure

    lists = _phrase_lists(names)
    loaded = {
        source: replace(load_model(source, device, dtype, int8), name=source)
        for source in dict.fromkeys(models)
    }
    file = next((name for name in names if name.endswith(".toml")), None)
    refuse_masks(lists, loaded.values(), file)
    embeds = {source: WordMean(load_vectors(source, "fallback")) for source in sources}
    results: list[Measurement] = []
    with scoring_bar("predicting pronouns") as progress:
        for model in loaded.values():
            measured = measure(
                model,
                lists,
                embeds=embeds,
                prob=prob,
                seed=seed,
                cache=open_cache(cache),
                progress=progress,
            )
            known = {(m.metric, m.subject) for m in results}
            results += [
                m for m in measured if m.metric == CORRELATION or (m.metric, m.subject) not in known
            ]
    effects = [m for m in results if m.metric != CORRELATION]
    first = {m.query: m for m in effects if m.subject == next(iter(loaded))}
    comparisons = [
        Instrument.compare(first[m.query], m)
        for m in effects
        if m.subject in loaded and m is not first[m.query]
    ]
    if output:
        _save_phrases(output, results, comparisons, formats)
    if as_json:
        print_json(measurements=results, comparisons=comparisons)
        return
    _print_phrases(results, comparisons)
    if output:
        click.echo(f"written to {output}: results.json, phrases.csv, figures/")


def _phrase_lists(names: tuple[str, ...]) -> Phrases:
    """The chosen sets: built-in ones by name, or those of one file."""
    from evenhand.errors import InputError
    from evenhand.lexicon.phrases import phrases as built_in
    from evenhand.lexicon.phrases import read_phrases

    files = [name for name in names if name.endswith(".toml")]
    chosen = [name for name in names if name not in files]
    if not files:
        return built_in().select(chosen) if chosen else built_in()
    if len(files) > 1:
        raise InputError(f"--sets: expected one file, got {len(files)}: {', '.join(files)}")
    own = read_phrases(files[0])
    return own.join(built_in().select(chosen)) if chosen else own


def _save_phrases(
    folder: Path,
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    formats: tuple[str, ...],
) -> None:
    import pandas as pd

    from evenhand.files import document, replace_file, save_json
    from evenhand.report.masked import phrase_charts

    folder.mkdir(exist_ok=True)
    frames = [
        part.to_frame().assign(
            source=m.subject, model=m.details["pronouns"], centred=part.details["centred"]
        )
        for m, part in _phrase_correlations(results)
    ]
    with replace_file(folder / "phrases.csv") as file:
        pd.concat(frames).to_csv(file, index=False)
    save_figures(phrase_charts(results), folder, formats)
    content = document(
        measurements=[m.to_dict() for m in results],
        comparisons=[c.to_dict(items=False) for c in comparisons],
    )
    save_json(folder / "results.json", content)


def _phrase_correlations(results: Sequence[Measurement]) -> list[tuple[Measurement, Measurement]]:
    """The correlations with the pronouns, each raw and centred."""
    from evenhand.masked.metrics.phrases import CORRELATION

    return [
        (m, part)
        for m in results
        if m.metric == CORRELATION
        for part in (m.part("raw", "embedding"), m)
    ]


def _print_phrases(results: Sequence[Measurement], comparisons: Sequence[Comparison]) -> None:
    from evenhand.masked.metrics.phrases import CORRELATION

    effects = [m for m in results if m.metric != CORRELATION]
    table(
        "Phrase WEAT: effect size d of each set",
        ("embedded by", "set", "value", "interval", "p", "p of attributes", "n"),
        [
            (
                m.subject + (", centred" if part.details["centred"] else ""),
                m.query,
                number(part.value),
                f"[{number(part.low)}, {number(part.high)}]",
                p_text(part.p_value),
                p_text(part.details["p_attributes"]),
                str(part.n),
            )
            for m in effects
            for part in (m.part("raw", "embedding"), m)
        ],
    )
    if comparisons:
        print_comparisons("Against the first model, paired by phrase", comparisons, parts=True)
    for m, part in _phrase_correlations(results):
        _print_phrase_correlation(m, part)
    for subject, words in {m.subject: m.left_out for m in effects if m.left_out}.items():
        click.echo(f"{subject}: not known and skipped: {', '.join(words)}")
    click.echo(f"intervals: {results[0].prob:.0%}, over phrases.")
    for note in dict.fromkeys(note for m in results for note in m.notes):
        click.echo(f"- {note}")


def _print_phrase_correlation(m: Measurement, part: Measurement) -> None:
    centred = ", centred" if part.details["centred"] else ""
    table(
        f"Association by {m.subject}{centred} with the pronouns of {m.details['pronouns']}",
        ("phrases", "n", "Pearson's r", "p", "Spearman's r", "p", "reliability", "corrected r"),
        [
            (
                row.query,
                str(row.n),
                _coefficient(row),
                p_text(row.p_value),
                _coefficient(row.part("spearman")),
                p_text(row.part("spearman").p_value),
                " and ".join(number(r, 2) for r in row.details["reliability"].values()),
                number(row.details["corrected"], 2),
            )
            for row in part.select("phrases")
        ],
    )


def _coefficient(m: Measurement) -> str:
    return f"{number(m.value, 2)} [{number(m.low, 2)}, {number(m.high, 2)}]"


@masked.command(short_help="CrowS-Pairs: is the stereotype the likelier sentence?")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@models_option
@declared_options(Crows)
@output_option("Write every pair with its scores to this CSV file.")
@running_options
@seed_option
@prob_option
@json_option
def crows(
    path: str,
    models: tuple[str, ...],
    output: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Score the sentence pairs of CrowS-Pairs, or of a CSV file with its columns.

    In each pair the tokens that both sentences share are hidden one at a time; the sentence in
    which they are likelier counts as preferred. Without a preference half of the pairs would go
    each way. FILE has the columns sent_more, sent_less, stereo_antistereo, bias_type and optionally
    anon_writer, as crows_pairs_anonymized.csv; it may be compressed, and - is the standard input.
    With several models each is compared with the first, pair by pair.

    \b
    Examples:
      evenhand masked crows crows_pairs_anonymized.csv
      evenhand masked crows crows_pairs_anonymized.csv -o pairs.csv --json
      evenhand masked crows pairs.csv --model mini --model tuned/ --cache answers/
    """
    instrument = configure(Crows, options)
    pairs, answers = instrument.read(path), open_cache(cache)
    results = []
    for source in dict.fromkeys(models):
        model = load_model(source, device, dtype, int8)
        with scoring_bar(f"scoring {source}") as progress:
            run = Run(seed=seed, prob=prob, cache=answers, progress=progress)
            results.append(replace(instrument.measure(model, pairs, run), subject=source))
    changes = [Crows.compare(results[0], other) for other in results[1:]]
    if output:
        _save_pairs(output, results)
    if as_json:
        print_json(measurements=results, comparisons=changes)
        return
    for result in results:
        _print_pairs(result)
    for change in changes:
        _print_pair_change(change)
    click.echo("Read with care:")
    for caveat in Crows.declaration.caveats:
        click.echo(f"- {caveat}")


def _save_pairs(output: str, results: Sequence[Measurement]) -> None:
    import pandas as pd

    from evenhand.files import replace_file

    frames = [m.to_frame() for m in results]
    for frame, m in zip(frames, results, strict=True):
        frame.insert(0, "model", m.subject)
    with replace_file(output) as file:
        pd.concat(frames).to_csv(file, index=False)


def _print_pairs(m: Measurement) -> None:
    table(
        f"{m.subject}: share of pairs whose more stereotypical sentence is the likelier",
        ("pairs of", "n", "share", "interval", "p", "mean difference"),
        [
            _pair_row("all pairs", m),
            *(_pair_row(f"direction {part.query}", part) for part in m.select("direction")),
            *(_pair_row(part.query, part) for part in m.select("category")),
        ],
    )
    for by_writer in m.select("unit"):
        click.echo(
            f"all pairs, with the {m.details['writers']} writers as the unit: "
            f"{_percent(by_writer.estimate)} {_percents(by_writer.estimate)}"
        )
    ties = f", ties {m.details['ties']}" if m.details["ties"] else ", no ties"
    click.echo(
        f"intervals: {m.prob:.0%}. share: no preference is 50 %. p: exact against 50 %, for the "
        "categories corrected for their number (Holm). mean difference: score of the more minus "
        "the less stereotypical sentence, in nats. Share with ties as not stereotyped, as the "
        f"authors count: {m.details['authors_score']:.2f} %{ties}."
    )
    if m.left_out:
        more = f"; and {len(m.left_out) - 5} more" if len(m.left_out) > 5 else ""
        click.echo(f"left out: {len(m.left_out)} pairs: {'; '.join(m.left_out[:5])}{more}")
    click.echo()


def _pair_row(name: str, m: Measurement) -> tuple[str, ...]:
    return (
        name,
        str(m.n),
        _percent(m.estimate),
        _percents(m.estimate),
        p_text(m.details.get("p_holm", m.p_value)),
        _nats(m.part("mean difference").estimate),
    )


def _print_pair_change(change: Comparison) -> None:
    categories = [part for part in change.parts if part.before.by == "category"]
    table(
        f"{change.after.subject} against {change.before.subject}, pair by pair",
        ("pairs of", "n", "before", "after", "change", "interval", "p", "mean difference"),
        [
            _pair_change_row("all pairs", change),
            *(_pair_change_row(part.query, part) for part in categories),
        ],
    )
    click.echo(
        f"intervals: {change.change.prob:.0%}. change: of the share, in percentage points "
        "(Newcombe's paired interval; p: McNemar's exact test, for the categories corrected by "
        "Holm). mean difference: its change, in nats. "
        f"Pairs that only one model took: {change.details['unpaired']}.\n"
    )


def _pair_change_row(name: str, part: Comparison) -> tuple[str, ...]:
    share, details = part.change, part.details
    return (
        name,
        str(part.paired),
        *(f"{number(100 * _nan(details[when]), 1)} %" for when in ("before", "after")),
        f"{100 * share.value:+.1f}",
        f"[{100 * share.low:+.1f}, {100 * share.high:+.1f}]",
        p_text(details.get("p_holm", part.p_value)),
        _nats(part.part("mean difference").change),
    )


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} %"


def _percents(share: Estimate) -> str:
    return f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _nats(gap: Estimate) -> str:
    return f"{number(gap.value)} [{number(gap.low)}, {number(gap.high)}]"


@masked.command("generate", short_help="Edit sentences until a model's gender bias shows.")
@click.argument("file", metavar="FILE|-")
@model_option
@click.option(
    "--direction",
    type=click.Choice(["own", "both", "male", "female"]),
    default="own",
    show_default=True,
    help="Direction of the bias: the way each seed leans (own), both, or one gender.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Use only the first N seeds.")
@click.option(
    "--edits",
    type=click.IntRange(1, 3),
    default=2,
    show_default=True,
    help="Maximum number of replaced words.",
)
@click.option(
    "--beam",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Candidates per seed that are edited further after each edit.",
)
@click.option(
    "--fills",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Words tried per position: the likeliest of the model.",
)
@click.option(
    "--tried",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="Candidates scored per sentence: those with the largest expected effect.",
)
@click.option(
    "--fluency",
    type=click.FloatRange(1),
    default=1.1,
    show_default=True,
    metavar="FACTOR",
    help="Largest factor by which the words may become less likely (geometric mean).",
)
@click.option("--edit-antecedent", is_flag=True, help="Replace the head of the antecedent as well.")
@click.option("--sentences", "split", is_flag=True, help="Split lines of text into sentences.")
@click.option(
    "--resolver",
    default="rules",
    show_default=True,
    metavar="NAME",
    help="The resolver that finds the antecedent, as for `text filter`.",
)
@click.option("--keep-someone", is_flag=True, help='Accept seeds about "someone" too.')
@click.option(
    "--control/--no-control",
    default=True,
    show_default=True,
    help="Compare with random edits of the same seeds.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="SRC",
    help="Another model that scores the sentences. May be repeated.",
)
@click.option(
    "--beyond",
    "threshold",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.4,
    show_default=True,
    help="Count sentences whose bias is at least this far from .5 toward the target side.",
)
@output_option("Write the sentences here instead of stdout, as JSON lines.")
@running_options
@prob_option
@seed_option
@json_option
def generate(
    file: str,
    model: str,
    direction: str,
    limit: int | None,
    edits: int,
    beam: int,
    fills: int,
    tried: int,
    fluency: float,
    edit_antecedent: bool,
    split: bool,
    resolver: str,
    keep_someone: bool,
    control: bool,
    judges: tuple[str, ...],
    threshold: float,
    output: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    seed: int,
    as_json: bool,
) -> None:
    """Edit sentences to push the bias of a model, P(male) / (P(male) + P(female)), to one end.

    FILE is the output of `evenhand text filter`, or text, from which the filter selects the
    sentences in which a pronoun refers to a neutral word. One to three words are replaced by words
    that the model expects there. No gendered word or name is added, the sentence stays about as
    likely, and it passes the filter again with the same antecedent. The output has the format of
    the filter, for `text annotate`, `masked score` and `masked finetune`, with the seed, the edits,
    and the bias before and after.

    The control replaces as many words of each seed at random. The search maximises the score of
    its own model: add others with --judge to see whether the bias transfers. With --json stdout
    has only the summary: the sentences are written to -o, if given.

    \b
    Examples:
      evenhand masked generate biased.jsonl -o pushed.jsonl
      evenhand masked generate sentences.txt --direction both --edits 3 -o pushed.jsonl
      evenhand masked generate biased.jsonl --judge ./bert-base -o pushed.jsonl --json
    """
    from evenhand.masked.generation import Settings, read_seeds
    from evenhand.masked.generation import generate as run_generation
    from evenhand.text.coreference import resolver as load_resolver
    from evenhand.text.structural import Filter

    load_resolver(resolver)  # report a missing package or model before any work
    chosen = Filter(resolver=resolver, someone=keep_someone)
    seeds = read_seeds(file, filter=chosen, split=split, limit=limit)
    searched = load_model(model, device, dtype, int8)
    readers = [load_model(name, device, dtype, int8) for name in judges]
    with scoring_bar("searching", " queries") as progress:
        result = run_generation(
            searched,
            seeds,
            direction=direction,  # type: ignore[arg-type]
            settings=Settings(
                edits=edits,
                beam=beam,
                fills=fills,
                tried=tried,
                fluency=fluency,
                antecedent=edit_antecedent,
            ),
            filter=chosen,
            control=control,
            judges=readers,
            threshold=threshold,
            prob=prob,
            seed=seed,
            cache=open_cache(cache),
            progress=progress,
        )
    if output is not None:
        result.save(output)
    if as_json:
        print_json(command="masked generate", file=file, output=output, **result.to_dict())
        return
    if output is None:
        click.echo(result.lines(), nl=False)
        if sys.stderr.isatty():
            click.echo(_generation_text(result), err=True)
        return
    click.echo(f"{_generation_text(result)} → {output}")
    _print_generation(result)


def _generation_text(result: Generation) -> str:
    from evenhand.masked.generation import REASONS

    text = f"{len(result.sentences):,} sentences from {len(result.outcomes):,} searches"
    for reason, n in result.nothing.items():
        text += f"\n  nothing {n:,}×: {REASONS[reason]}"
    left_out = ", ".join(f"{reason} {n:,}" for reason, n in result.left_out.items())
    return text + (f"\n  of {result.read:,} read no seeds: {left_out}" if left_out else "")


def _print_generation(result: Generation) -> None:
    """The distance from .5, by model, direction and kind of sentence."""
    headers = (
        "model",
        "toward",
        "sentences",
        "n",
        "|bias - .5|",
        "top k",
        "target side",
        "moved",
        "above",
    )
    table(
        "bias of the seeds, of the generated sentences and of random edits",
        headers,
        (
            (
                m.subject if arm.query == "seeds" else "",
                m.query if arm.query == "seeds" else "",
                arm.query,
                f"{arm.n:,}",
                _rounded(arm.estimate),
                _rounded(arm.part("distance_top").estimate),
                _rounded(arm.part("push").estimate),
                _rounded(arm.part("moved").estimate, 2) if arm.query != "seeds" else "",
                _rounded(arm.part("above_threshold").estimate, 2),
            )
            for m in result.measurements
            for arm in m.select("sentences")
        ),
    )
    for c in result.comparisons:
        if c.query == "random":
            [push] = c.parts
            click.echo(
                f"{c.before.subject}, toward {c.details['toward']}: found - random "
                f"{_rounded(c.change)} in |bias - .5| (p = {c.p_value:.2g}), "
                f"{_rounded(push.change)} toward the target side (p = {push.p_value:.2g}), paired "
                f"over {c.paired:,} seeds"
            )
    rule = result.rule
    click.echo(
        f"intervals: {rule.prob:.0%}, bootstrap over seeds; p: sign test. target side: the "
        "distance of the bias from .5 toward the target side. moved: share of seeds whose bias "
        f"moved {rule.gain:g} or more to that side; above: {rule.threshold:g} or more from .5 on "
        "that side. A seed without a result counts as its own sentence."
    )


def _rounded(value: Estimate, digits: int = 3) -> str:
    low, high = number(value.low, digits), number(value.high, digits)
    return f"{number(value.value, digits)} [{low}, {high}]"


def _training_options(command: F) -> F:
    """The options of the training; each is a field of `Settings`."""
    from evenhand.masked.finetuning import REWRITES, Settings

    defaults = Settings()

    def option(name: str, kind: Any, text: str) -> Callable[[F], F]:
        default = getattr(defaults, name)
        flag = f"--{name.replace('_', '-')}"
        return click.option(flag, name, type=kind, default=default, show_default=True, help=text)

    options = [
        option(
            "rewrite",
            click.Choice(REWRITES),
            "How the text is rewritten: substitute swaps gender in half of the documents, redrawn"
            " in every epoch; swap in all; neutralize makes it neutral; none keeps it.",
        ),
        option(
            "max_tokens",
            click.IntRange(1),
            "Maximum number of training tokens over all epochs; a larger input is sampled.",
        ),
        option("epochs", click.IntRange(1), "Maximum number of passes over the text."),
        option("learning_rate", click.FloatRange(0, min_open=True), "Peak learning rate."),
        option("block", click.IntRange(8), "Maximum tokens per row."),
        option(
            "batch",
            click.IntRange(1),
            "Blocks per step; shorter rows are combined up to as many tokens.",
        ),
        option("mask", click.FloatRange(0, 1, True, True), "Share of masked tokens."),
        option("evaluations", click.IntRange(1), "Points of the loss curve over the run."),
        option(
            "patience",
            click.IntRange(1),
            "Stop after this many evaluations without improvement.",
        ),
        option(
            "held_out",
            click.FloatRange(0, 1, True, True),
            "Share of documents held out for the measurements before and after.",
        ),
        option(
            "top_k", click.IntRange(1), "Number of likeliest words for the second pronoun score."
        ),
        option(
            "dtype",
            click.Choice(["auto", "float32", "bfloat16"]),
            "Data type of matrix products; auto: bfloat16 on a GPU, else float32.",
        ),
    ]
    return combine(*options)(command)


@masked.command(short_help="Train on rewritten text; bias and perplexity before and after.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    default="finetuned",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model, the curve, the figures and the results.",
)
@model_option
@_training_options
@format_options
@click.option(
    "--sentences",
    metavar="FILE",
    type=click.Path(),
    help="Measure on these: output of `evenhand text filter`, or text with one [MASK] per line. By"
    " default the filter selects sentences of the held-out documents.",
)
@click.option("--crows", metavar="FILE", type=click.Path(), help="Measure CrowS-Pairs as well.")
@click.option(
    "--control",
    is_flag=True,
    help="Train a second time on the unchanged text, to separate rewriting and domain effects.",
)
@click.option("--restart", is_flag=True, help="Delete an earlier run in FOLDER and start again.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …")
@seed_option
@prob_option
@json_option
def finetune(
    files: tuple[str, ...],
    output: Path,
    model: str,
    field: str | None,
    form: str | None,
    sentences: str | None,
    crows: str | None,
    control: bool,
    restart: bool,
    device: str,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Fine-tune a masked language model on text rewritten on the fly and measure the change.

    A document is a line, or with --field a field of a JSONL or CSV file; files may be compressed
    and are not changed. The documents are split by a hash of their content: most are for training,
    some for the evaluation loss, some are held out. On held-out sentences the pronoun bias and the
    pseudo-perplexity are measured before and after, and each change has an interval. The same
    command resumes an interrupted run.

    \b
    Examples:
      evenhand masked finetune sentences.txt -o even
      evenhand masked finetune news.jsonl.gz --field body --rewrite swap --control -o even
      evenhand masked finetune generated.jsonl --field sentence --crows crows.csv -o even
      evenhand masked score biased.jsonl --model mini --model even/model
    """
    from evenhand.masked.finetuning import Settings
    from evenhand.masked.finetuning import finetune as run_finetuning
    from evenhand.masked.learning_text import input_hashes, read_documents
    from evenhand.masked.metrics.pronouns import read_sentences
    from evenhand.masked.pairs import read_pairs

    cut = form_of(files, field, form)
    named = [*files, *(name for name in (sentences, crows) if name)]
    with step_bars({"training": "tokens"}) as progress:
        result = run_finetuning(
            model,
            read_documents(files, cut),
            Settings(**chosen),
            output,
            sentences=read_sentences(sentences) if sentences else None,
            pairs=read_pairs(crows) if crows else (),
            control=control,
            restart=restart,
            device=device,
            progress=progress,
            run={"arguments": sys.argv[1:], "inputs": input_hashes(named)},
        )
    _draw_finetuning(result)
    if as_json:
        print_json(**result.to_dict())
        return
    _print_finetuning(result)


def _draw_finetuning(result: FinetuneResult) -> None:
    from evenhand.report.masked import finetune_charts

    save_figures(finetune_charts(result), result.folder, ("svg",))


def _print_finetuning(result: FinetuneResult) -> None:
    data, training, settings = result.data, result.training, result.settings
    loss = training["evaluation_loss"]
    ended = {
        "epochs": "all epochs done",
        "max_tokens": f"--max-tokens {settings['max_tokens']:,} reached",
        "patience": f"no better in {settings['patience']} evaluations",
    }[training["ended"]]
    click.echo(
        f"{data['documents_read']:,} documents read, {training['documents']:,} learned from "
        f"({training['epoch_tokens']:,} tokens), {training['evaluation_documents']:,} for the "
        f"evaluation loss, {data['held_out']:,} held out; rewrite: {settings['rewrite']}\n"
        f"{training['steps']:,} steps, {training['tokens']:,} tokens, {training['epochs']:.1f} "
        f"epochs: {ended}; evaluation loss {loss['before']:.3f} → {loss['after']:.3f} "
        f"(the best, of step {training['best']['step']:,})\n"
        f"measured on {data['sentences']:,} sentences ({data['sentences_from']}) and "
        f"{data['plain_sentences']:,} plain sentences\n"
    )
    _print_changes(f"{result.model}: before and after", ("before", "after"), result.changes)
    if result.control:
        _print_changes(
            "Control: the same training on the unchanged text", ("before", "after"), result.control
        )
        _print_changes(
            "The rewriting against the control", ("control", "rewritten"), result.against_control
        )
    for note in result.notes:
        click.echo(f"note: {note}")
    click.echo(
        f"ideal: the value without bias. The intervals ({settings['prob']:.0%}) hold the trained "
        f"weights fixed.\nwritten to {result.folder}: model/, curve.csv, items.csv, figures/, "
        "results.json, run.json"
    )


def _print_changes(title: str, times: tuple[str, str], changes: tuple[Comparison, ...]) -> None:
    def row(change: Comparison) -> tuple[str, ...]:
        times = "× " if change.kind == "ratio" else ""
        return (
            change.query,
            number(change.before.value),
            number(change.after.value),
            f"{times}{number(change.change.value)}",
            f"[{number(change.change.low)}, {number(change.change.high)}]",
            "–" if change.before.ideal is None else f"{change.before.ideal:g}",
            str(change.paired),
            change.details["verdict"],
        )

    headers = ("measure", *times, "change", "interval", "ideal", "n", "")
    table(title, headers, map(row, changes))
