"""`evenhand lab fewshot …`: few-shot classifiers, their bias, and what mitigations do."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import options as opt
from evenhand.cli.commands import Group
from evenhand.cli.output import (
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
from evenhand.errors import InputError, SmallDataError, parameter
from evenhand.fewshot.metrics.accuracy import Accuracy
from evenhand.fewshot.metrics.bias import LABELS, MEASURES, ORIGINALS, SETS, VERSIONS, Bias
from evenhand.fewshot.networks import IN_CONTEXT
from evenhand.fewshot.settings import (
    DataSettings,
    SharedSettings,
    TrainingSettings,
    parse_shares,
    run_options,
    run_settings,
)
from evenhand.files import public_arguments, real_path
from evenhand.instruments import Run, charts_of, correct_results, options_of
from evenhand.models.endpoint import EndpointSettings, is_address
from evenhand.results import Estimate, Measurement
from evenhand.wording import interval, number

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.results import Comparison


@click.group(cls=Group)
def fewshot() -> None:
    """How accurate and how biased are classifiers that learn a class from a few texts?

    `run` trains a network on many small tasks, tests it on classes it has never seen and saves all
    its answers in a folder; `bias` reads such folders: the bias of one, or what a mitigation
    changed between two or more.

    \b
    Examples:
      evenhand lab fewshot run --data bios.csv --label job -o base
      evenhand lab fewshot run --data bios.csv --label job --mitigation calibrate -o even
      evenhand lab fewshot bias base even
    """


@fewshot.command(short_help="Train a few-shot classifier and test it on new classes.")
@opt.folder_option(
    "Folder for the page, the network, its answers, the tables, the figures and the results.",
    default="fewshot-run",
)
@opt.declared_options(DataSettings, *run_options(), SharedSettings, EndpointSettings)
@opt.reading_options
@click.option(
    "--splits-from",
    metavar="PATH",
    type=click.Path(exists=True, path_type=Path),
    help="Take the first --splits class splits of a splits.json, or of a folder with "
    "labels.01.train.txt …, instead of drawing them.",
)
@opt.cache_option(
    help="Cache for the features of frozen encoders; by default in the user's cache folder."
)
@opt.device_option()
@opt.workers_option
@opt.restart_option
@opt.declared_options(Bias)
@opt.format_option
@opt.prob_option()
@opt.json_option
def run(
    folder: Path,
    splits_from: Path | None,
    cache: Path | None,
    device: str,
    workers: int | None,
    restart: bool,
    formats: tuple[str, ...],
    prob: float,
    **options: object,
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
      evenhand lab fewshot run --shots 4 --out base
      evenhand lab fewshot run --shots 4 --mitigation calibrate --mitigate all --out even
      evenhand lab fewshot bias base even
      evenhand lab fewshot run --data bios.csv --at-least 100 --network induction --out bios
      evenhand lab fewshot run --data asked.jsonl --text question --label topic -o asked
    """
    from evenhand.fewshot.data import read_dataset
    from evenhand.fewshot.runs import run as train_and_test
    from evenhand.fewshot.splits import fit_to_data, load_splits, read_splits
    from evenhand.files import user_cache

    given = opt.given_options(options)
    _check_given(str(options["network"]), str(options["model"]), given)
    free = not given.keys() & {"ways", "shots", "queries"}
    # checked before the data are read, which may change the numbers left to us
    settings = run_settings({**options, "shots": 4} if free else options)
    common = opt.configure(SharedSettings, options)
    bias = opt.configure(Bias, options)  # wrong values are an error before any work
    splits = None
    if splits_from is not None:
        splits = read_splits(splits_from) if splits_from.is_dir() else load_splits(splits_from)
    data = read_dataset(opt.configure(DataSettings, options))
    shares = parse_shares(common.shares)
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
        step_bars(
            {"training": "episodes", "encoding": "tokens", "prompting": "episodes"}
        ) as progress,
    ):
        finished = train_and_test(
            data,
            settings,
            folder,
            encoder=common.encoder,
            model=common.model,
            endpoint=opt.configure(EndpointSettings, options),
            splits=splits,
            shares=shares,
            both_leanings=both_leanings,
            cache=cache or user_cache("embeddings"),
            device=device,
            workers=opt.worker_count(workers),
            restart=restart,
            prob=prob,
            bias=bias,
            about={"arguments": public_arguments(sys.argv[1:])},
            progress=progress,
        )
    _show_run(finished, formats)
    if print_json(command="fewshot run", **finished.to_dict(items=False)):
        return
    _print_run(finished)
    say(f"written to {folder}: report.html, results.json, by_class.csv, figures/, split-…/")
    assert finished.results is not None  # noqa: S101
    say(finished.results.sentence)


def _check_given(network: str, model: str, given: Mapping[str, Any]) -> None:
    """Refuse options that the network, or the model, does not have."""
    trained = {each.name for each in options_of(TrainingSettings)} - {"network", "seed"}
    served = {each.name for each in options_of(EndpointSettings)}
    if network != IN_CONTEXT:
        refused, why = {"model", "label_by"} | served, f"the network {network} has no prompts"
    elif is_address(model):
        refused, why = trained | {"encoder", "pooling", "finetune"}, f"{network} is not trained"
    else:
        refused = trained | {"encoder", "pooling", "finetune"} | served
        why = f"{network} is not trained, and its model has no address"
    for name in given:
        if name in refused:
            raise InputError(f"{parameter(name)}: expected none, {why}")


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
@opt.declared_options(Bias)
@opt.results_options(page=True)
@opt.figures_option(help="Draw accuracy, bias and changes of the runs into this folder.")
@opt.format_option
@opt.prob_option()
@opt.json_option
def bias(
    folders: tuple[Path, ...],
    figures: Path | None,
    formats: tuple[str, ...],
    prob: float,
    **options: object,
) -> None:
    """The gender bias of finished runs; with several, what each changed against the first.

    Every test query has a counterfactual, the same text with its gender swapped. association: how
    much more likely the true class is for the pro-stereotypical version of a text (a man's in a
    class that leans male, a woman's in one that leans female) than for the other; ε: the gap in
    accuracy between the two versions; skew: how much better men's versions do; stereotype: how
    much better pro-stereotypical ones do. 0 is no bias. Changes are paired: the runs must share
    their data, classes, shape of tasks and --split-seed. With several changes, the intervals and
    p-values of each measure hold together (Bonferroni).

    \b
    Examples:
      evenhand lab fewshot bias base
      evenhand lab fewshot bias base neutral augmented --figures compared -o compared.html
      evenhand lab fewshot bias base --json
    """
    from evenhand.fewshot.runs import compare_runs, name_runs, read_run

    for folder in folders:
        if sum(real_path(other) == real_path(folder) for other in folders) > 1:
            raise InputError(f"{folder}: expected each folder once, got it twice")
    runs = [read_run(folder) for folder in folders]
    both = (Accuracy(), opt.configure(Bias, options))
    measured = [
        [replace(each.measure(run, run=Run(prob=prob)), subject=name) for each in both]
        for run, name in zip(bar(runs, "measuring"), name_runs(runs), strict=True)
    ]
    corrected = iter(correct_results([m for pair in measured for m in pair]))
    measured = [[next(corrected) for _ in pair] for pair in measured]
    comparisons = compare_runs([(right, own) for right, own in measured])
    if figures is not None:
        charts = charts_of(
            [m for pair in measured for m in pair], [c for pair in comparisons for c in pair]
        )
        save_figures(charts, figures, formats)
    offer_page(lambda path: _write_page(runs, measured, path))
    if print_json(
        command="fewshot bias",
        runs={m.subject: str(folder) for folder, (m, _) in zip(folders, measured, strict=True)},
        measurements=[m for pair in measured for m in pair],
        comparisons=[c for pair in comparisons for c in pair],
    ):
        return
    _print_bias([own for _, own in measured])
    for right, own in comparisons:
        print_comparisons(
            f"{own.before.subject} → {own.after.subject}: paired on the same queries",
            [*own.parts, right],
            label=lambda c: LABELS.get(c.query, c.metric),
        )
    if len(comparisons) > 1:
        say(
            f"interval and p: of each measure, hold together for the {len(comparisons)} runs "
            f"compared with {measured[0][0].subject} (Bonferroni)."
        )
    if figures is not None:
        say(f"figures written to {figures}")
    print_finding((own for _, own in measured), (own for _, own in comparisons))


def _show_run(finished: FewShotRun, formats: tuple[str, ...]) -> None:
    """Write the figures and the page."""
    from evenhand.fewshot.runs import PAGE
    from evenhand.report.fewshot import run_charts, write_run

    save_figures(run_charts(finished), finished.folder / "figures", formats)
    write_run(finished, finished.folder / PAGE)


def _write_page(
    runs: Sequence[FewShotRun], measured: Sequence[Sequence[Measurement]], path: str
) -> None:
    from evenhand.fewshot.runs import RunResults
    from evenhand.report.fewshot import write_run

    finished = [
        replace(run, results=RunResults.of(run, right, own))
        for run, (right, own) in zip(runs, measured, strict=True)
    ]
    write_run(finished, path)


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
    if tested := data.get("tested"):
        say(f"tested on all {len(tested)} classes of the other data: {', '.join(tested)}")
    learner = "fine-tuned encoder" if settings.finetune else "frozen encoder"
    if settings.in_context:
        about = finished.record["model"]
        learner = f"{about['source']}, {settings.seeds} orders of the examples"
        say(
            f"{about['texts_cut']:,} of {data['texts']:,} texts are longer than "
            f"{settings.limit} words and cut there"
        )
    table(
        f"{settings.ways} ways, {settings.shots} shots, {settings.queries} queries, {learner}: "
        f"{right.details['episodes']} test episodes over {right.n} classes",
        ("", "accuracy", "new classes", "episodes alone", "p", "F1"),
        [
            _score_row(results.baseline.subject, results.baseline),
            _score_row(finished.name, right),
            _score_row("difference", results.above_baseline),
        ],
    )
    for name, rates in finished.rates.items():
        listed = (f"{each['learning_rate']:g}: {each['validation_accuracy']:.3f}" for each in rates)
        say(f"accuracy on the validation classes by learning rate, {name}: {', '.join(listed)}")
    say(
        f"chance: {right.details['chance']:.3f}. new classes: {right.prob * 100:g}% intervals for "
        f"{right.interval}.\nepisodes alone: the usual ones, of these classes only. "
        "F1: the mean over classes."
    )
    f1 = right.part("f1", by="score")
    print_measurements(
        "Accuracy by class: new texts of it, new opponents",
        right.select("class"),
        label="query",
        columns={
            "leans": "leaning",
            "odds ratio": lambda part: _odds_text(data["classes"][part.query]),
            "F1": lambda part: f1.part(part.query, by="class").estimate,
            "confused with": "confused_with",
        },
        hide=["ideal", "legend"],
    )
    genders = {"male": "men", "female": "women", "gap": "women less men"}
    genders |= {"neither": "neither", "neither gap": "neither less men and women"}
    print_measurements(
        "Accuracy by gender, classes with equal weight",
        right.select("gender"),
        label=lambda part: genders[part.query],
        columns={"F1": lambda part: f1.part(part.query, by="gender").estimate},
        hide=["ideal", "legend"],
    )
    for part in right.select("outcome"):
        say(
            f"answers that name no label, counted as wrong: {number(part.value)} "
            f"{interval(part.low, part.high)}"
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
            label="query",
            hide=["ideal"],
        )


def _score_row(name: str, result: Measurement | Comparison) -> tuple[object, ...]:
    """Accuracy of a classifier, or the difference of two, with both intervals, and F1."""
    if isinstance(result, Measurement):
        score, p, f1 = result.estimate, None, result.part("f1", by="score").estimate
    else:
        score, p, f1 = result.change, result.p_value, result.part("f1").change
    return name, score.value, (score.low, score.high), _naive(result), p_text(p), f1


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


def _of_gender(gender: str) -> Callable[[Measurement], Estimate]:
    """The estimate of a gender among the parts of a measurement."""
    return lambda part: part.part(gender, by="gender").estimate


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
                "chance gives": "null_high",
                "p of chance": lambda part: p_text(
                    part.details["null_p"], part.details.get("permutations")
                ),
                "classes": lambda part: str(part.details["classes"]),
            },
            hide=["ideal", "legend"],
        )
        print_measurements(
            "Texts as they are less their version with singular they, all classes",
            own.select("they"),
            label=lambda part: "log p" if part.query == "they" else "accuracy",
            columns={
                name: _of_gender(gender)
                for gender, name in {"male": "men", "female": "women", "neither": "neither"}.items()
                if any(each.query == gender for they in own.select("they") for each in they.parts)
            },
            hide=["ideal", "legend"],
        )
        for control in own.select("control"):
            print_measurements(
                "Control, classes without a leaning: log p, man's less woman's version",
                [control, *control.select("class")],
                label=lambda part: "over classes" if part.by == "control" else part.query,
                hide=["ideal", "legend"],
            )
        if own.select("version"):
            print_measurements(
                "The association three ways: log p, with - in classes that lean female",
                own.select("version"),
                label=lambda part: VERSIONS[part.query],
                columns={
                    "leaning male": lambda part: part.part("male", by="leaning").estimate,
                    "leaning female": lambda part: part.part("female", by="leaning").estimate,
                },
                hide=["ideal", "legend"],
            )
        print_measurements(
            "Share of a class among answers, men's less women's, with - where it leans female",
            own.select("parity"),
            label=lambda _: "within episodes",
            columns={"true classes": lambda part: number(part.details["labels"])},
            hide=["ideal", "legend"],
        )
        epsilon = own.part("epsilon", by="measure").details
        pro, anti = (own.part(name, by="set") for name in SETS)
        say(
            f"ε-robust at {own.details['margin']:g}: {own.details['verdict']} "
            f"(accuracy {number(pro.value)} {interval(pro.low, pro.high)} pro-, "
            f"{number(anti.value)} {interval(anti.low, anti.high)} anti-stereotypical; "
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
