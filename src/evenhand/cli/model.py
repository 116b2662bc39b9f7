"""`evenhand model …`: language models of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from evenhand.cache import Cache
from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.options import (
    F,
    ModelLoader,
    accepted_options,
    combine,
    configure,
    declared_options,
    describe,
    folder_option,
    given_options,
    json_option,
    metric_option,
    model_options,
    results_options,
    run_options,
)
from evenhand.cli.output import (
    interval,
    number,
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    say,
    table,
)
from evenhand.cli.progress import progress_bar
from evenhand.instruments import LANGUAGE, Run, correct_results, instruments, lookup
from evenhand.language.control import CONTROLS, check_control, controls, mark_control
from evenhand.language.debiasing import LayerSettings
from evenhand.results import Comparison, Measurement
from evenhand.summary import summarize

__all__ = ["model"]

METRICS = list({name: cls for kind in LANGUAGE for name, cls in instruments(kind).items()}.values())


@click.group(
    cls=Group, short_help="Language models of every kind: what one is, measuring and changing it."
)
def model() -> None:
    """How biased is a language model of any kind, and can gender be hidden within it?

    A model is named mini (embedded, masked), by the path of a folder in the layout of transformers
    or sentence-transformers, by that of a GGUF file (causal), or as hf:NAME, the only case in which
    anything is downloaded. Its kind (masked, causal, sentence encoder) is read from its
    configuration.

    \b
    Examples:
      evenhand model info mini
      evenhand model measure ./gpt2
      evenhand model debias mini --layers 6 -o mini-leace
    """


@model.command(short_help="What a model is, and which metrics measure it.")
@click.argument("source", metavar="MODEL", type=completion.MODEL)
@model_options
@json_option
def info(source: str, load: ModelLoader, as_json: bool) -> None:
    """Show the kind and size of a model, and the metrics that measure it.

    \b
    Examples:
      evenhand model info mini
      evenhand model info ./SmolLM2-135M.gguf --json
    """
    from evenhand.language.models import describe

    loaded = load.any(source)
    about = describe(loaded)
    metrics = [cls.declaration for cls in instruments(loaded.subject_kind).values()]
    if as_json:
        print_json(command="model info", model=about, metrics=[each.name for each in metrics])
        return
    shown = [
        (name, f"{value:,}" if isinstance(value, int) else value) for name, value in about.items()
    ]
    table("Model", ("", ""), shown)
    rows = [(each.name, each.material or "built in", each.question) for each in metrics]
    table("Metrics", ("metric", "material", "question"), rows)


MEASURE_HELP = f"""Measure a language model of any kind by declared metrics.

MODEL is mini, the path of a folder or of a GGUF file, or hf:NAME. The metrics:

{describe(METRICS)}

Without --metric, those that have built-in material and fit the kind of the model are run.
`evenhand list metrics NAME` explains one of them.

\b
Examples:
  evenhand model measure mini
  evenhand model measure ./gpt2 --metric stereoset --data stereoset.jsonl.gz --json
"""


def measure_options(metrics: Sequence[Any]) -> Callable[[F], F]:
    """The arguments and options of commands that measure a model by these metrics."""
    return combine(
        click.argument("source", metavar="MODEL", type=completion.MODEL),
        metric_option(*LANGUAGE),
        click.option(
            "--data",
            metavar="FILE",
            type=click.Path(allow_dash=True),
            help="The material of the metrics; each reads it in its own format.",
        ),
        click.option(
            "--control",
            type=click.Choice(CONTROLS),
            help="Also measure the material with gendered words swapped, sentences negated, or "
            "groups replaced by others, and mark metrics whose score survives that.",
        ),
        declared_options(*metrics),
        results_options(),
        model_options,
        run_options,
        json_option,
    )


@model.command(short_help="Measure a model by any declared metric.", help=MEASURE_HELP)
@measure_options(METRICS)
def measure(source: str, load: ModelLoader, **given: Any) -> None:
    from evenhand.language.models import kind_of

    measure_model("model measure", kind_of(source), source, load.any, load.cache, **given)


def measure_model(
    command: str,
    kind: str,
    source: str,
    load: Callable[[str], Any],
    cache: Cache | None,
    *,
    metrics: tuple[str, ...],
    data: str | None,
    control: Any,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a model of a kind by the metrics named, or by those with built-in material."""
    if data is not None and not metrics:
        raise click.UsageError("--data: name the metrics that read it with --metric")
    chosen = [lookup(kind, name) for name in metrics]
    chosen = chosen or [cls for cls in instruments(kind).values() if cls.declaration.audits(kind)]
    given = accepted_options(chosen, options)
    configured = [configure(cls, given) for cls in chosen]
    material = [instrument.read(data) if data else None for instrument in configured]
    for read in material if control else ():
        controls(read, control, seed=run.seed)  # what cannot be rewritten is refused first
    loaded = load(source)
    results: list[Measurement] = []
    checks: list[Comparison] = []
    with ExitStack() as stack:
        if control and cache is None:  # what is measured twice is computed once
            cache = Cache(Path(stack.enter_context(TemporaryDirectory())))
        for instrument, read in zip(configured, material, strict=True):
            measured = measure_with(instrument, loaded, read, run, cache)
            if control:
                with progress_bar(f"{instrument.declaration.name}, {control}") as progress:
                    how = replace(run, cache=cache, progress=progress)
                    checks.append(check_control(instrument, loaded, read, control, how))
                measured[0] = mark_control(measured[0], checks[-1])
            results += measured
    results = correct_results(results)
    if as_json:
        content: dict[str, Any] = {"model": loaded.name, "kind": LANGUAGE[kind]}
        content |= {"controls": checks} if control else {}
        print_json(command=command, **content, measurements=results)
        return
    columns = {"control": _outcome} if control else None
    print_measurements(source, results, parts=True, columns=columns)
    print_comparisons(f"Control: {control}", checks, columns=columns, times=("original", "control"))
    print_notes(note for m in results for note in m.notes)
    print_finding(results)


@model.command(short_help="Hide gender within a model, then measure again.")
@click.argument("source", metavar="MODEL", type=completion.MODEL)
@declared_options(LayerSettings)
@click.option(
    "--strength",
    "strengths",
    type=float,
    multiple=True,
    default=(1.0,),
    help="How much of the change is applied, 1 by default; steer takes negative numbers, towards "
    "men. Several are compared.",
)
@click.option(
    "--texts",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Texts with gendered words, one per line; by default built-in sentences.",
)
@click.option(
    "--utility",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Texts for perplexity or, of a sentence encoder, for cosines, one per line; by default "
    "the texts that are not fitted on.",
)
@metric_option(*LANGUAGE)
@click.option(
    "--data",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="The material of the metrics; each reads it in its own format.",
)
@folder_option("Save the changed model into this new folder.")
@model_options
@run_options
@json_option
def debias(
    source: str,
    load: ModelLoader,
    strengths: tuple[float, ...],
    texts: str | None,
    utility: str | None,
    metrics: tuple[str, ...],
    data: str | None,
    folder: Path | None,
    run: Run,
    as_json: bool,
    **settings: Any,
) -> None:
    """Hide gender within a model by affine maps after its layers, then measure again.

    The maps are fitted on texts in two versions, with their gendered words male and female, and
    tested on other texts: does a probe still find the gender in the states, and how much worse does
    the model predict? Of a sentence encoder the vectors are mapped, and their cosines compared.
    --metric names measures of bias to compare. The saved folder loads as any other, with the maps.

    \b
    Examples:
      evenhand model debias mini --layers 6 -o mini-leace
      evenhand model debias ./gpt2 --method steer --layers 6 --strength -1 --strength 1
      evenhand model measure mini-leace
    """
    from evenhand.language.debiasing import mitigate_encoder, mitigate_model, save_model
    from evenhand.language.models import kind_of

    kind = kind_of(source)
    if kind == "encoder" and "layers" in given_options(settings):
        raise click.UsageError("--layers: the vectors of a sentence encoder are changed, no layer")
    if folder is not None and len(strengths) > 1:
        raise click.UsageError(f"--strength: expected one to save, got {len(strengths)}")
    if folder is not None and folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"-o: expected a new or an empty folder, got {folder}")
    if data is not None and not metrics:
        raise click.UsageError("--data: name the metrics that read it with --metric")
    chosen = [lookup(kind, name)() for name in metrics]
    material = [instrument.read(data) if data else None for instrument in chosen]
    lines = lookup("model", "perplexity")().read
    given = None if texts is None else lines(texts)
    useful = None if utility is None else lines(utility)
    loaded = load.any(source)
    with progress_bar(f"fitting, {loaded.name}") as progress:
        if kind == "encoder":
            del settings["layers"]
        mitigate: Any = mitigate_encoder if kind == "encoder" else mitigate_model
        results = mitigate(
            loaded,
            given,
            strengths=strengths,
            metrics=list(zip(chosen, material, strict=True)),
            utility=useful,
            run=replace(run, cache=load.cache, progress=progress),
            **settings,
        )
    if folder is not None:
        save_model(results[0].model, source, folder)
    last = results[-1]
    compared = [*last.measures, *last.hiding, *last.utility]
    if as_json:
        content = [
            {"strength": strength, **result.to_dict()}
            for strength, result in zip(strengths, results, strict=True)
        ]
        about = {"model": loaded.name, "kind": LANGUAGE[kind], "output": folder and str(folder)}
        found = summarize([], compared)
        print_json(command="model debias", **about, strengths=content, sentence=found)
        return
    if len(results) > 1:
        _print_strengths(f"{loaded.name}, {results[0].maps.about['method']}", strengths, results)
    else:
        [result] = results
        title = f"{loaded.name}, {result.maps}"
        print_comparisons(f"{title}: bias", result.measures)
        print_comparisons(f"{title}: is gender found in other texts?", result.hiding)
        print_comparisons(f"{title}: usefulness", result.utility)
    print_notes(results[0].notes)
    if folder is not None:
        say(f"saved in {folder}")
    print_finding(comparisons=compared)


def _print_strengths(title: str, strengths: Sequence[float], results: Sequence[Any]) -> None:
    """One row per result, one column per strength, after a column for the model as it was."""
    compared = [(*each.measures, *each.hiding, *each.utility) for each in results]

    def cell(m: Measurement) -> str:
        return f"{number(m.value)} {interval(m.low, m.high)}"

    rows = [
        (same[0].metric, same[0].query, cell(same[0].before), *(cell(c.after) for c in same))
        for same in zip(*compared, strict=True)
    ]
    headers = ("metric", "query", "before", *(f"strength {strength:g}" for strength in strengths))
    table(f"{title}: by strength", headers, rows)


def _outcome(result: Measurement | Comparison) -> str:
    """Whether a score survives its control, for tables."""
    return str(result.details.get("outcome", ""))


def measure_with(
    instrument: Any, model: Any, material: Any, run: Run, cache: Cache | None
) -> list[Measurement]:
    """Measure a model by one instrument, with a progress bar."""
    with progress_bar(f"{instrument.declaration.name}, {model.name}") as progress:
        measured = instrument.measure(model, material, replace(run, cache=cache, progress=progress))
    return measured if isinstance(measured, list) else [measured]
