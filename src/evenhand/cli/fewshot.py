"""`evenhand fewshot …`: train few-shot classifiers, measure their bias and what mitigations do."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.commands import Group
from evenhand.cli.options import (
    cache_option,
    configure,
    declared_options,
    device_option,
    figures_option,
    folder_option,
    format_option,
    given_options,
    json_option,
    prob_option,
    reading_options,
    restart_option,
    results_options,
    worker_count,
    workers_option,
)
from evenhand.cli.output import (
    estimate,
    interval,
    number,
    offer_page,
    p_text,
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    save_figures,
    say,
    table,
)
from evenhand.cli.progress import bar, step_bars
from evenhand.errors import InputError, SmallDataError
from evenhand.fewshot.metrics.bias import LABELS, MEASURES, ORIGINALS, VERSIONS
from evenhand.fewshot.settings import (
    DataSettings,
    SharedSettings,
    parse_shares,
    run_options,
    run_settings,
)
from evenhand.files import public_arguments, public_names, real_path
from evenhand.instruments import Run, compare, correct_results, instruments

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.results import Comparison, Measurement

BIAS, ACCURACY = list(instruments("classifier").values())[:2]  # what decides a verdict comes first


@click.group(cls=Group, short_help="Accuracy and gender bias of few-shot text classifiers.")
def fewshot() -> None:
    """How accurate and how biased are classifiers that learn a class from a few texts?

    `run` trains a network on many small tasks, tests it on classes it has never seen and saves all
    its answers in a folder; `bias` reads such folders: the bias of one, or what a mitigation
    changed between two or more.

    \b
    Examples:
      evenhand fewshot run --data bios.csv --label job -o base
      evenhand fewshot run --data bios.csv --label job --mitigation calibrate --mitigate all -o even
      evenhand fewshot bias base even
    """


@fewshot.command(short_help="Train a few-shot classifier and test it on new classes.")
@folder_option(
    "Folder for the page, the network, its answers, the tables, the figures and the results.",
    default="fewshot-run",
)
@declared_options(DataSettings, *run_options(), SharedSettings)
@reading_options
@click.option(
    "--splits-from",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Take the first --splits class splits of a splits.json, or of a folder with "
    "labels.01.train.txt …, instead of drawing them.",
)
@cache_option(
    help="Cache for the features of frozen encoders; by default in the user's cache folder."
)
@device_option()
@workers_option
@restart_option
@declared_options(BIAS)
@format_option
@prob_option()
@json_option
def run(
    folder: Path,
    splits_from: Path | None,
    cache: Path | None,
    device: str,
    workers: int | None,
    restart: bool,
    margin: float,
    permutations: int,
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
    **options: Any,
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
      evenhand fewshot run --shots 4 --out base
      evenhand fewshot run --shots 4 --mitigation calibrate --mitigate all --out even
      evenhand fewshot bias base even
      evenhand fewshot run --data bios.csv --at-least 100 --network induction --seeds 3 --out bios
      evenhand fewshot run --data asked.jsonl --text question --label topic --finetune --out asked
    """
    from evenhand.fewshot.runs import run as train_and_test
    from evenhand.fewshot.splits import fit_to_data, load_splits, read_splits
    from evenhand.files import user_cache

    given = given_options(options)
    free = not given.keys() & {"ways", "shots", "queries"}
    # checked before the data are read, which may change the numbers left to us
    settings = run_settings({**options, "shots": 4} if free else options)
    common = configure(SharedSettings, options)
    BIAS(margin=margin, permutations=permutations)  # wrong values are an error before any work
    splits = None
    if splits_from is not None:
        splits = read_splits(splits_from) if splits_from.is_dir() else load_splits(splits_from)
    data, shares = configure(DataSettings, options).read(), parse_shares(common.shares)
    both_leanings = not common.any_leaning
    if free and splits is None:
        fit = fit_to_data(
            data,
            splits=given.get("splits"),
            both_leanings=None if both_leanings else False,
            shares=shares,
            unlabelled=settings.unlabelled or 0,
            calibrated=settings.mitigation.calibrate,
        )
        for note in fit.notes:
            say(f"note: {note}", err=True)
        chosen = {name: getattr(fit, name) for name in ("ways", "shots", "queries", "splits")}
        settings = run_settings({**options, **chosen})
        data, both_leanings = fit.dataset, fit.both_leanings
    with (
        _suggestion(data, shares),
        step_bars({"training": "episodes", "encoding": "tokens"}) as progress,
    ):
        finished = train_and_test(
            data,
            settings,
            folder,
            encoder=common.encoder,
            splits=splits,
            shares=shares,
            both_leanings=both_leanings,
            cache=cache or user_cache("embeddings"),
            device=device,
            workers=worker_count(workers),
            restart=restart,
            prob=prob,
            margin=margin,
            permutations=permutations,
            about={"arguments": public_arguments(sys.argv[1:])},
            progress=progress,
            finish=lambda done: _show_run(done, formats),
        )
    if as_json:
        print_json(command="fewshot run", **finished.to_dict(items=False))
        return
    _print_run(finished)
    say(f"written to {folder}: report.html, results.json, by_class.csv, figures/, split-…/")
    assert finished.results is not None  # noqa: S101
    say(finished.results.sentence)


@contextmanager
def _suggestion(data: Dataset, shares: Sequence[float]) -> Iterator[None]:
    """Adds to an error on data that are too small which options would work."""
    from evenhand.fewshot.splits import fit_to_data

    try:
        yield
    except SmallDataError as error:
        try:
            options = fit_to_data(data, shares=shares).options
        except InputError:
            raise error from None
        raise SmallDataError(f"{error}; these options work: {options}") from None


@fewshot.command(short_help="The gender bias of runs, and what mitigations changed.")
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    metavar="DIR…",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@declared_options(BIAS)
@results_options(page=True)
@figures_option(help="Draw accuracy, bias and changes of the runs into this folder.")
@format_option
@prob_option()
@json_option
def bias(
    folders: tuple[Path, ...],
    figures: Path | None,
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
    **options: Any,
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
      evenhand fewshot bias base neutral augmented --figures compared -o compared.html
      evenhand fewshot bias base --json
    """
    from evenhand.fewshot.runs import read_run

    for folder in folders:
        if sum(real_path(other) == real_path(folder) for other in folders) > 1:
            raise InputError(f"{folder}: expected each folder once, got it twice")
    runs = [read_run(folder) for folder in folders]
    both = (ACCURACY(), configure(BIAS, options))
    measured = [
        [replace(each.measure(run, run=Run(prob=prob)), subject=name) for each in both]
        for run, name in zip(bar(runs, "measuring"), _run_names(runs), strict=True)
    ]
    corrected = iter(correct_results([m for pair in measured for m in pair]))
    measured = [[next(corrected) for _ in pair] for pair in measured]
    comparisons = [
        [compare(before, after) for before, after in zip(measured[0], other, strict=True)]
        for other in measured[1:]
    ]
    if figures is not None:
        _draw_bias(measured, comparisons, figures, formats)
    offer_page(lambda path: _write_page(runs, measured, path))
    if as_json:
        print_json(
            command="fewshot bias",
            runs={m.subject: str(folder) for folder, (m, _) in zip(folders, measured, strict=True)},
            measurements=[m for pair in measured for m in pair],
            comparisons=[c for pair in comparisons for c in pair],
        )
        return
    _print_bias([own for _, own in measured])
    for right, own in comparisons:
        print_comparisons(
            f"{own.before.subject} → {own.after.subject}: paired on the same queries",
            [*own.parts, right],
            label=lambda c: LABELS.get(c.query, c.metric),
        )
    if figures is not None:
        say(f"figures written to {figures}")
    print_finding((own for _, own in measured), (own for _, own in comparisons))


def _run_names(runs: Sequence[FewShotRun]) -> list[str]:
    """The runs' names, with their folders where several have the same name."""
    names, folders = [run.name for run in runs], public_names(run.folder for run in runs)
    return [
        name if names.count(name) == 1 else f"{name} ({folders[str(run.folder)]})"
        for name, run in zip(names, runs, strict=True)
    ]


def _show_run(finished: FewShotRun, formats: tuple[str, ...]) -> None:
    """Write the figures and the page."""
    from evenhand.fewshot.runs import PAGE
    from evenhand.report.fewshot import run_charts, write_run

    assert finished.results is not None  # noqa: S101
    charts = run_charts(finished.results, finished.name, finished.curves)
    save_figures(charts, finished.folder / "figures", formats)
    write_run(finished, finished.folder / PAGE)


def _write_page(
    runs: Sequence[FewShotRun], measured: Sequence[Sequence[Measurement]], path: str
) -> None:
    from evenhand.fewshot.metrics.accuracy import accuracy
    from evenhand.fewshot.runs import RunResults
    from evenhand.report.fewshot import write_run

    finished = []
    for run, (right, own) in zip(runs, measured, strict=True):
        baseline = accuracy(run.baseline, prob=right.prob)
        above = compare(baseline, right)
        results = RunResults(accuracy=right, baseline=baseline, above_baseline=above, bias=own)
        finished.append(replace(run, results=results))
    write_run(finished, path)


def _draw_bias(
    measured: Sequence[Sequence[Measurement]],
    comparisons: Sequence[Sequence[Comparison]],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    from evenhand.report.fewshot import bias_charts

    charts = bias_charts(
        {own.subject: (right, own) for right, own in measured},
        {own.after.subject: (right, own) for right, own in comparisons},
    )
    save_figures(charts, folder, formats)


# ---- tables


def _print_run(finished: FewShotRun) -> None:
    """Accuracy first, the baseline before the network; then by class, by gender, bias, spread."""
    results, settings = finished.results, finished.settings
    assert results is not None  # noqa: S101
    right = results.accuracy
    data = finished.record["data"]
    left = "; ".join(f"{reason}: {count:,}" for reason, count in data["left_out"].items())
    say(
        f"data: {data['name']}, {data['texts']:,} texts in {len(data['classes'])} classes, "
        "equal texts counted once" + (f" (left out: {left})" if left else "")
    )
    encoder = "fine-tuned" if settings.finetune else "frozen"
    difference = results.above_baseline
    table(
        f"{settings.ways} ways, {settings.shots} shots, {settings.queries} queries, {encoder} "
        f"encoder: {right.details['episodes']} test episodes over {right.n} classes",
        ("", "accuracy", "new classes", "episodes alone", "p", "F1"),
        [
            *(_score_row(name, m) for name, m in _scores(finished).items()),
            (
                "difference",
                number(difference.change.value),
                interval(difference.change.low, difference.change.high),
                _naive(difference),
                p_text(difference.p_value),
                estimate(difference.part("f1").change),
            ),
        ],
    )
    say(
        f"chance: {right.details['chance']:.3f}. new classes: {right.prob * 100:g}% intervals for "
        f"{right.interval}.\nepisodes alone: the usual ones, of these classes only. "
        "F1: the mean over classes."
    )
    f1 = right.part("f1", by="score")
    print_measurements(
        "Accuracy by class: new texts of it, new opponents",
        right.select("class"),
        label=lambda part: part.query,
        columns={
            "leans": lambda part: part.details["leaning"],
            "odds ratio": lambda part: _odds_text(data["classes"][part.query]),
            "F1": lambda part: estimate(f1.part(part.query, by="class").estimate),
            "confused with": lambda part: part.details["confused_with"],
        },
        hide=["ideal", "legend"],
    )
    genders = {"male": "men", "female": "women", "gap": "women less men", "neither": "neither"}
    print_measurements(
        "Accuracy by gender, classes with equal weight",
        right.select("gender"),
        label=lambda part: genders[part.query],
        columns={"F1": lambda part: estimate(f1.part(part.query, by="gender").estimate)},
        hide=["ideal", "legend"],
    )
    if results.bias is not None:
        _print_bias([results.bias])
    else:
        say(
            "gender bias not measured: no test query is of known gender in a class that leans male "
            "or female"
        )
    if settings.splits > 1 or settings.seeds > 1:
        print_measurements(
            "SD that each source gives the accuracy of one run",
            right.select("component"),
            label=lambda part: part.query,
            hide=["ideal"],
        )


def _scores(finished: FewShotRun) -> dict[str, Measurement]:
    results = finished.results
    assert results is not None  # noqa: S101
    return {results.baseline.subject: results.baseline, finished.name: results.accuracy}


def _score_row(name: str, m: Measurement) -> tuple[str, ...]:
    f1 = estimate(m.part("f1", by="score").estimate)
    return name, number(m.value), interval(m.low, m.high), _naive(m), p_text(None), f1


def _naive(result: Measurement | Comparison) -> str:
    """The interval over episodes alone."""
    low, high = (result.details[f"naive_{end}"] for end in ("low", "high"))
    return interval(-math.inf if low is None else low, math.inf if high is None else high)


def _odds_text(counts: Mapping[str, Any]) -> str:
    """The odds ratio of a class, men to women, with its interval."""
    ratio, low, high = (counts.get(f"odds_{end}") for end in ("ratio", "low", "high"))
    if ratio is None or math.isnan(ratio):
        return "–"
    return f"{ratio:.2f} {interval(low or 0.0, math.inf if high is None else high, 2)}"


def _print_bias(measured: Sequence[Measurement]) -> None:
    """One row per measure for each run, with what chance gives."""
    for own in measured:
        print_measurements(
            f"Gender bias of {own.subject}",
            [
                *(own.part(name, by="measure") for name in MEASURES),
                *(own.part(name, by="original") for name in ORIGINALS),
            ],
            label=lambda part: LABELS[part.query],
            columns={
                "chance gives": lambda part: number(part.details["null_high"]),
                "p of chance": lambda part: p_text(
                    part.details["null_p"], part.details.get("permutations")
                ),
                "classes": lambda part: str(part.details["classes"]),
            },
            hide=["ideal", "legend"],
        )
        if own.select("version"):
            print_measurements(
                "The association three ways: log p, with - in classes that lean female",
                own.select("version"),
                label=lambda part: VERSIONS[part.query],
                columns={
                    f"leaning {side}": lambda part, side=side: estimate(  # type: ignore[misc]
                        part.part(side, by="leaning").estimate
                    )
                    for side in ("male", "female")
                },
                hide=["ideal", "legend"],
            )
        epsilon = own.part("epsilon", by="measure").details
        say(
            f"ε-robust at {own.details['margin']:g}: {own.details['verdict']} "
            f"(accuracy {number(epsilon['accuracy_pro'])} pro-, "
            f"{number(epsilon['accuracy_anti'])} anti-stereotypical; "
            f"ε {number(epsilon['size'])} {interval(epsilon['size_low'], epsilon['size_high'])})"
        )
        counts = own.details["left_out"].items()
        left = ", ".join(f"{reason}: {count}" for reason, count in counts if count)
        if left:
            say(f"queries left out: {left}")
    say(
        "value: with its sign (μ: eq. 20 and 21 of El Zein 2021, sizes); interval and p: for new "
        "classes. chance gives: sizes up to this in "
        f"{measured[0].prob * 100:g}% of permutations\nof which version of each text is the "
        "pro-stereotypical one; p of chance: for these classes."
    )
