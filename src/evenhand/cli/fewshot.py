"""`evenhand fewshot …`: train few-shot classifiers, measure their bias and what mitigations do."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evenhand.cli.options import (
    combine,
    configure,
    declared_options,
    format_option,
    json_option,
    prob_option,
    reading_options,
)
from evenhand.cli.output import (
    bar,
    number,
    p_text,
    print_json,
    save_figures,
    step_bars,
    table,
)
from evenhand.errors import FileError, InputError
from evenhand.fewshot.metrics.bias import MEASURES, Bias
from evenhand.fewshot.networks import LOSSES, NAMES
from evenhand.fewshot.settings import (
    POOLINGS,
    EpisodeCounts,
    RunSettings,
    TrainingSettings,
    parse_shares,
)
from evenhand.files import real_path

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.results import Comparison, Measurement

F = TypeVar("F", bound=Callable[..., Any])

_RUN, _TRAINING = RunSettings(), TrainingSettings()

LABELS = {
    "association": "association: log p, pro- less anti-stereotypical",
    "epsilon": "ε: accuracy, pro- less anti-stereotypical",
    "skew": "skew: F1, men's less women's versions",
    "stereotype": "stereotype: F1, pro- less anti-stereotypical",
}


@click.group(short_help="Accuracy and gender bias of few-shot text classifiers.")
def fewshot() -> None:
    """Few-shot text classification: run, bias.

    `run` trains a network on many small tasks, tests it on classes it has never seen and saves all
    its answers in a folder; `bias` reads such folders: the bias of one, or what a mitigation
    changed between two or more.
    """


# options


def _count(flag: str, text: str, minimum: int = 1, default: Any = ...) -> Any:
    name = flag.removeprefix("--").replace("-", "_")
    value = getattr(_RUN, name, None) if default is ... else default
    return click.option(
        flag,
        name,
        type=click.IntRange(minimum, 1_000_000),
        default=value,
        show_default=value is not None,
        help=text,
    )


_data_options: Callable[[F], F] = combine(
    reading_options,
    click.option(
        "--data",
        default="simulated",
        show_default=True,
        metavar="SRC",
        help="Labelled texts: simulated (parameters after a colon, as "
        "simulated:leak=0.8,per_class=300), a CSV, TSV, JSONL or Parquet file (compressed too), or "
        "hf:NAME.",
    ),
    click.option(
        "--text", "text", metavar="COLUMN", help="Column of the text, if not a known one."
    ),
    click.option("--label", metavar="COLUMN", help="Column of the class."),
    click.option("--gender", metavar="COLUMN", help="Column of the person's gender."),
    click.option("--male", metavar="CODE", help="The code for a man, if not M or male."),
    click.option("--female", metavar="CODE", help="The code for a woman."),
    _count("--at-least", "Leave out classes with fewer texts.", default=None),
    _count("--each-gender", "Leave out classes with fewer texts of one gender.", default=None),
)

_task_options: Callable[[F], F] = combine(
    click.option(
        "--network",
        default=_TRAINING.network,
        show_default=True,
        metavar="NAME",
        help=f"One of {', '.join(NAMES)}.",
    ),
    _count("--ways", "Classes per task (C).", 2),
    _count("--shots", "Labelled texts per class (K)."),
    _count("--queries", "Query texts per class (Q)."),
    _count(
        "--unlabelled",
        "Texts per class without their label; used by proto-soft only, by default as many as "
        "queries.",
        0,
        None,
    ),
    click.option(
        "--episodes",
        default=str(EpisodeCounts()),
        show_default=True,
        metavar="TRAIN/VALID/TEST",
        help="Numbers of tasks to train, to validate and to test with.",
    ),
    click.option(
        "--mitigation",
        default="none",
        show_default=True,
        metavar="M[+M]",
        help="none, or some of augment, neutralize, calibrate joined by +.",
    ),
)

_network_options: Callable[[F], F] = combine(
    click.option(
        "--encoder",
        default="mini",
        show_default=True,
        metavar="SRC",
        help="The encoder: mini, the path of a folder, or hf:NAME.",
    ),
    click.option(
        "--frozen/--finetune",
        "frozen",
        default=True,
        show_default=True,
        help="Leave the encoder as it is, its features cached on disk; or train it too.",
    ),
    click.option(
        "--pooling",
        type=click.Choice(POOLINGS),
        default=_RUN.pooling,
        show_default=True,
        help="How a text's tokens become its features.",
    ),
    _count("--limit", "The longest text in tokens; by default that of the encoder.", 3),
    click.option(
        "--loss",
        type=click.Choice(LOSSES),
        help="Cross-entropy or squared error (El Zein 2021); by default what the network is "
        "usually trained with.",
    ),
    _count("--batch", "Episodes per step.", default=_TRAINING.batch),
    click.option(
        "--learning-rate",
        type=click.FloatRange(0, min_open=True),
        show_default=True,
        default=_TRAINING.learning_rate,
        help="The highest learning rate of the network.",
    ),
    click.option(
        "--encoder-learning-rate",
        type=click.FloatRange(0, min_open=True),
        show_default=True,
        default=_TRAINING.encoder_learning_rate,
        help="That of the encoder, with --finetune.",
    ),
    _count(
        "--validate-every",
        "Episodes between validations; by default a tenth of the training episodes, 500 at most.",
        default=None,
    ),
    _count(
        "--patience",
        "Stop after this many validations no better than the best.",
        default=_TRAINING.patience,
    ),
    click.option(
        "--option",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the network, such as slices=50 of relation-ntl.",
    ),
)

_class_options: Callable[[F], F] = combine(
    _count("--splits", "Class splits to train and test on."),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=_TRAINING.seed,
        show_default=True,
        help="Seed of the training: initial weights and training episodes.",
    ),
    _count("--seeds", "Trainings of each split, with the seeds --seed, --seed + 1, …"),
    _count(
        "--split-seed",
        "Seed of the class splits, validation and test episodes; leave it as it is in runs that "
        "are to be compared.",
        0,
    ),
    click.option(
        "--splits-from",
        metavar="PATH",
        type=click.Path(exists=True, path_type=Path),
        help="Take the first --splits class splits of a splits.json, or of a folder with "
        "labels.01.train.txt …, instead of drawing them.",
    ),
    click.option(
        "--shares",
        default="50/25/25",
        show_default=True,
        metavar="TRAIN/VALID/TEST",
        help="Per cent of the classes to train, validate and test on.",
    ),
    click.option(
        "--any-leaning",
        is_flag=True,
        help="Allow parts without a class that leans male, or female.",
    ),
)


def parse_network_options(given: Sequence[str]) -> dict[str, int | float]:
    """NAME=VALUE pairs as the network takes them."""
    options: dict[str, int | float] = {}
    for pair in given:
        name, _, value = (part.strip() for part in pair.partition("="))
        try:
            parsed = float(value)
        except ValueError:
            parsed = math.nan
        if not name or not math.isfinite(parsed):
            raise InputError(f"option: expected NAME=NUMBER, got '{pair}'")
        if name in options:
            raise InputError(f"option: expected '{name}' once, got it twice")
        options[name] = int(value) if value.lstrip("+-").isdecimal() else parsed
    return options


def _read_data(chosen: dict[str, Any]) -> Dataset:
    """The data set that the options name, without the classes that are too small."""
    from evenhand.fewshot.data import read

    source = chosen["data"]
    columns = {name: chosen[name] for name in ("text", "label", "gender", "male", "female")}
    named = [name for name, column in columns.items() if column is not None]
    if named and source.partition(":")[0] == "simulated" and not Path(source).exists():
        raise InputError(f"--{named[0]}: simulated data have no columns to name")
    try:
        dataset = read(source, **columns)
    except FileNotFoundError:
        problem = "no such file, and not simulated; a data set of the hub is named hf:NAME"
        raise FileError(source, problem) from None
    at_least, each_gender = chosen["at_least"], chosen["each_gender"]
    if at_least or each_gender:
        dataset = dataset.at_least(at_least or 1, each_gender=each_gender or 0)
    return dataset


def _settings(frozen: bool, chosen: dict[str, Any]) -> RunSettings:
    episodes = EpisodeCounts.parse(chosen["episodes"])
    training = (
        "network",
        "loss",
        "batch",
        "learning_rate",
        "encoder_learning_rate",
        "patience",
        "seed",
    )
    own = (
        "ways",
        "shots",
        "queries",
        "unlabelled",
        "mitigation",
        "pooling",
        "limit",
        "splits",
        "seeds",
        "split_seed",
    )
    return RunSettings(
        training=TrainingSettings(
            options=parse_network_options(chosen["options"]),
            validate_every=chosen["validate_every"] or episodes.validate_every,
            **{name: chosen[name] for name in training},
        ),
        episodes=episodes,
        finetune=not frozen,
        **{name: chosen[name] for name in own},
    )


# commands


@fewshot.command(short_help="Train a few-shot classifier and test it on new classes.")
@click.option(
    "-o",
    "--out",
    "--output",
    "folder",
    metavar="DIR",
    default="fewshot-run",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the network, its answers, the tables, the figures and the results.",
)
@_data_options
@_task_options
@_network_options
@_class_options
@click.option(
    "--cache",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Cache for the features of frozen encoders; by default in the user's cache folder.",
)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes that rewrite texts; by default one per core."
)
@click.option("--restart", is_flag=True, help="Clear an earlier run in DIR and start over.")
@declared_options(Bias)
@format_option
@prob_option
@json_option
def run(
    folder: Path,
    frozen: bool,
    encoder: str,
    cache: Path | None,
    device: str,
    jobs: int | None,
    restart: bool,
    margin: float,
    permutations: int,
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Train a few-shot classifier and test it on classes it has never seen.

    The classes of the data are divided into some to train, to validate and to test on. A task has
    WAYS classes with SHOTS labelled texts and QUERIES query texts each. A baseline that counts
    words comes first. Where the persons' genders are known, every test query is answered a second
    time with its gender swapped, and the bias is measured. Intervals are for new classes; the
    usual ones, over episodes alone, stand beside them. Runs of other networks, mitigations and
    seeds have the same test queries. The same command resumes where it was stopped or killed.

    \b
    Examples:
      evenhand fewshot run --ways 5 --shots 4 --queries 5 --out base
      evenhand fewshot run --ways 5 --shots 4 --queries 5 --mitigation neutralize --out neutral
      evenhand fewshot bias base neutral
      evenhand fewshot run --data bios.csv --at-least 100 --network induction --seeds 3 --out bios
      evenhand fewshot run --data asked.jsonl --text question --label topic --finetune --out asked
    """
    from evenhand.fewshot.runs import run as train_and_test
    from evenhand.fewshot.splits import load_splits, read_splits
    from evenhand.files import user_cache

    settings = _settings(frozen, chosen)
    configure(Bias, {"margin": margin, "permutations": permutations})
    splits = None
    if (path := chosen["splits_from"]) is not None:
        splits = read_splits(path) if path.is_dir() else load_splits(path)
    with step_bars({"training": "episodes", "encoding": "tokens"}) as progress:
        finished = train_and_test(
            _read_data(chosen),
            settings,
            folder,
            encoder=encoder,
            splits=splits,
            shares=parse_shares(chosen["shares"]),
            both_leanings=not chosen["any_leaning"],
            cache=cache or user_cache("embeddings"),
            device=device,
            jobs=jobs or len(os.sched_getaffinity(0)),
            restart=restart,
            prob=prob,
            margin=margin,
            permutations=permutations,
            about={"arguments": sys.argv[1:]},
            progress=progress,
            finish=lambda done: _draw_run(done, formats),
        )
    if as_json:
        print_json(command="fewshot run", **finished.to_dict(items=False))
        return
    _print_run(finished)
    click.echo(f"written to {folder}: results.json, run.json, by_class.csv, figures/, split-…/")


@fewshot.command(short_help="The gender bias of runs, and what mitigations changed.")
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="DIR…",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@declared_options(Bias)
@click.option(
    "--figures",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Draw accuracy, bias and changes of the runs into this folder.",
)
@format_option
@prob_option
@json_option
def bias(
    folders: tuple[Path, ...],
    margin: float,
    permutations: int,
    figures: Path | None,
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
) -> None:
    """The gender bias of finished runs; with several, what each changed against the first.

    Every test query has a counterfactual, the same text with its gender swapped. association: how
    much more likely the true class is for the pro-stereotypical version of a text (a man's in a
    class that leans male, a woman's in one that leans female) than for the other; ε: the gap in
    accuracy between the two versions; skew: how much better men's versions do; stereotype: how
    much better pro-stereotypical ones do. 0 is no bias. Changes are paired: the runs must share
    their data, classes, shape of tasks and --split-seed.

    \b
    Examples:
      evenhand fewshot bias base
      evenhand fewshot bias base neutral augmented --figures compared
      evenhand fewshot bias base --json
    """
    from evenhand.fewshot.metrics.accuracy import accuracy
    from evenhand.fewshot.runs import read_run
    from evenhand.instruments import Run, compare

    for folder in folders:
        if sum(real_path(other) == real_path(folder) for other in folders) > 1:
            raise InputError(f"{folder}: expected each folder once, got it twice")
    runs = [read_run(folder) for folder in folders]
    instrument = configure(Bias, {"margin": margin, "permutations": permutations})
    measured = [
        (
            replace(accuracy(run, prob=prob), subject=name),
            replace(instrument.measure(run, run=Run(prob=prob)), subject=name),
        )
        for run, name in zip(bar(runs, "measuring"), _run_names(runs), strict=True)
    ]
    comparisons = [
        [compare(before, after) for before, after in zip(measured[0], other, strict=True)]
        for other in measured[1:]
    ]
    if figures is not None:
        _draw_bias(measured, comparisons, figures, formats)
    if as_json:
        print_json(
            command="fewshot bias",
            runs={m.subject: str(folder) for folder, (m, _) in zip(folders, measured, strict=True)},
            measurements=[m for pair in measured for m in pair],
            comparisons=[c for pair in comparisons for c in pair],
        )
        return
    _print_bias([own for _, own in measured])
    for pair in comparisons:
        _print_changes(*pair)
    if figures is not None:
        click.echo(f"figures written to {figures}")


def _run_names(runs: Sequence[FewShotRun]) -> list[str]:
    """The runs' names, with their folders where several have the same name."""
    names = [run.name for run in runs]
    return [
        name if names.count(name) == 1 else f"{name} ({run.folder})"
        for name, run in zip(names, runs, strict=True)
    ]


def _draw_run(finished: FewShotRun, formats: tuple[str, ...]) -> None:
    from evenhand.fewshot.runs import summarise
    from evenhand.report.fewshot import run_charts, run_rows

    results = finished.results or summarise(finished)
    charts = run_charts(run_rows(results, finished.name, finished.curves))
    if results.bias is None:  # the output says so
        charts.skipped.pop("bias", None)
        charts.skipped.pop("associations", None)
    save_figures(charts, finished.folder, formats)


def _draw_bias(
    measured: Sequence[tuple[Measurement, Measurement]],
    comparisons: Sequence[Sequence[Comparison]],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    from evenhand.charts import save_charts
    from evenhand.report.fewshot import bias_charts, bias_rows, change_rows, score_row

    drawn = bias_charts(
        {
            "runs": {
                own.subject: {"accuracy": score_row(right), "bias": bias_rows(own)}
                for right, own in measured
            },
            "changes": {pair[0].after.subject: change_rows(*pair) for pair in comparisons},
        }
    )
    save_charts(drawn.charts, folder, formats)
    for name, reason in drawn.skipped.items():
        if name != "changes" or comparisons:
            click.echo(f"figure not drawn: {name}: {reason}", err=True)


# tables


def _print_run(finished: FewShotRun) -> None:
    """Accuracy first, the baseline before the network; then by class, by gender, bias, spread."""
    results, settings = finished.results, finished.settings
    assert results is not None  # noqa: S101
    right = results.accuracy
    data = finished.record["data"]
    left = "; ".join(f"{reason}: {count:,}" for reason, count in data["left_out"].items())
    click.echo(
        f"data: {data['name']}, {data['texts']:,} texts in {len(data['classes'])} classes"
        + (f" (left out: {left})" if left else "")
    )
    encoder = "fine-tuned" if settings.finetune else "frozen"
    difference = results.above_baseline
    table(
        f"{settings.ways} ways, {settings.shots} shots, {settings.queries} queries, {encoder} "
        f"encoder: {right.details['episodes']} test episodes over {right.n} classes",
        ("", "accuracy", "new classes", "episodes alone", "p", "F1", "F1 interval"),
        [
            _score_row(results.baseline.subject, results.baseline),
            _score_row(finished.name, right),
            (
                "difference",
                number(difference.change.value),
                _interval(difference.change.low, difference.change.high),
                _interval(difference.details["naive_low"], difference.details["naive_high"]),
                p_text(difference.p_value),
                number(difference.part("f1").change.value),
                _interval(difference.part("f1").change.low, difference.part("f1").change.high),
            ),
        ],
    )
    click.echo(
        f"chance: {right.details['chance']:.3f}. new classes: {_percent(right.prob)} intervals for "
        f"{right.interval}.\nepisodes alone: the usual ones, of these classes only. "
        "F1: the mean over classes."
    )
    _print_classes(right)
    _print_genders(right)
    if results.bias is not None:
        _print_bias([results.bias])
    else:
        click.echo(
            "gender bias not measured: no test query is of known gender in a class that leans male "
            "or female"
        )
    if settings.splits > 1 or settings.seeds > 1:
        table(
            "SD that each source gives the accuracy of one run",
            ("", "value", "interval", "n"),
            [
                (part.query, number(part.value), _interval(part.low, part.high), str(part.n))
                for part in right.select("component")
            ],
        )


def _print_classes(right: Measurement) -> None:
    f1 = right.part("f1", by="score")
    table(
        "By class: new texts of it, new opponents",
        ("", "leans", "n", "accuracy", "interval", "F1", "F1 interval", "confused with"),
        [
            (
                part.query,
                part.details["leaning"],
                str(part.n),
                *_value(part),
                *_value(f1.part(part.query, by="class")),
                part.details["confused_with"],
            )
            for part in right.select("class")
        ],
    )


def _print_genders(right: Measurement) -> None:
    f1 = right.part("f1", by="score")
    names = {"male": "men", "female": "women", "gap": "women less men"}
    rows = [
        (
            names[part.query],
            *_value(part),
            p_text(part.p_value),
            *_value(f1.part(part.query, by="gender")),
        )
        for part in right.select("gender")
    ]
    if rows:
        headers = ("", "accuracy", "interval", "p", "F1", "F1 interval")
        table("By gender, classes with equal weight", headers, rows)


def _print_bias(measured: Sequence[Measurement]) -> None:
    """One row per measure for each run, with what chance gives."""
    for own in measured:
        parts = {name: own.part(name, by="measure") for name in MEASURES}
        table(
            f"Gender bias of {own.subject}",
            ("measure", "value", "interval", "p", "chance gives", "p of chance", "classes"),
            [
                (
                    LABELS[name],
                    *_value(part),
                    p_text(part.p_value),
                    number(part.details["null_high"]),
                    p_text(part.details["null_p"]),
                    str(part.details["classes"]),
                )
                for name, part in parts.items()
            ],
        )
        epsilon = parts["epsilon"].details
        click.echo(
            f"ε-robust at {own.details['margin']:g}: {own.details['verdict']} "
            f"(accuracy {number(epsilon['accuracy_pro'])} pro-, "
            f"{number(epsilon['accuracy_anti'])} anti-stereotypical; "
            f"ε {number(epsilon['size'])} {_interval(epsilon['size_low'], epsilon['size_high'])})"
        )
        counts = own.details["left_out"].items()
        left = ", ".join(f"{reason}: {count}" for reason, count in counts if count)
        if left:
            click.echo(f"queries left out: {left}")
    click.echo(
        "value: with its sign; interval and p: for new classes. chance gives: sizes up to this in "
        f"{_percent(measured[0].prob)} of permutations\nof which version of each text is the "
        "pro-stereotypical one; p of chance: for these classes."
    )


def _print_changes(right: Comparison, own: Comparison) -> None:
    table(
        f"{own.before.subject} → {own.after.subject}: paired on the same queries",
        ("measure", "before", "after", "change", "interval", "p", ""),
        [
            (
                LABELS.get(part.query, part.metric),
                number(part.before.value),
                number(part.after.value),
                number(part.change.value),
                _interval(part.change.low, part.change.high),
                p_text(part.p_value),
                part.details.get("direction", ""),
            )
            for part in (*own.parts, right)
        ],
    )


def _score_row(name: str, right: Measurement) -> tuple[str, ...]:
    naive = _interval(right.details["naive_low"], right.details["naive_high"])
    value, interval = _value(right)
    return (name, value, interval, naive, p_text(None), *_value(right.part("f1", by="score")))


def _value(part: Measurement) -> tuple[str, str]:
    return number(part.value), _interval(part.low, part.high)


def _interval(low: float | None, high: float | None) -> str:
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    return f"[{number(ends[0])}, {number(ends[1])}]"


def _percent(prob: float) -> str:
    return f"{prob * 100:g}%"
