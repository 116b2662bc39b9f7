"""`evenhand debias`: reduce the bias of word vectors or of a language model, then measure again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command, Variants
from evenhand.cli.output import (
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    say,
    table,
)
from evenhand.cli.progress import is_set, progress_bar
from evenhand.errors import UnknownNameError
from evenhand.instruments import LANGUAGE, Run, lookup
from evenhand.models.debiasing import LayerSettings
from evenhand.summary import summarize
from evenhand.vectors.mitigation import DebiasSettings


class ByKind(Variants):
    """A command with the options of the kind of its source."""

    def variant(self, args: Sequence[str]) -> tuple[Command, str, list[str]] | None:
        for arg in args:
            if not arg.startswith("-"):
                try:
                    kind = opt.kind_of_source(arg)
                except UnknownNameError:
                    if arg is args[0]:
                        raise
                    continue
                return (debias_vectors if kind == "vectors" else debias_model), "", list(args)
        return None


@click.command(cls=ByKind)
@click.argument("source", metavar="SRC", type=completion.SOURCE)
def debias(source: str) -> None:  # pragma: no cover - a source has the command of its kind
    """Reduce the bias of word vectors or hide gender within a language model, then measure again.

    SRC is word vectors or a model, as for evenhand measure. The options depend on its kind:
    `evenhand debias glove --help` shows those of vectors, `evenhand debias mini --help` those of
    models.

    \b
    Examples:
      evenhand debias glove --topic gender --method hard -o fair.bin
      evenhand debias mini --layers 6 -o mini-leace
    """


@click.command(cls=Command, name="debias")
@click.argument("source", metavar="SRC", type=completion.VECTORS)
@opt.topic_option("gender")
@opt.declared_options(DebiasSettings)
@opt.output_option(
    "Write the vectors here: .txt or .vec word2vec text, .bin binary, .npz Evenhand's; .gz of text."
)
@click.option(
    "--out-format",
    "file_format",
    help="word2vec, word2vec-binary, glove or npz; by default from the ending.",
)
@opt.case_option
@opt.size_option
@opt.run_options
@opt.json_option
def debias_vectors(
    source: str,
    topics: tuple[str, ...],
    output: str | None,
    file_format: str | None,
    case: str,
    run: Run,
    **options: Any,
) -> None:
    """Reduce a topic's bias, then measure again: the same metrics, hidden bias, and the cost.

    \b
    Example:  evenhand debias glove --topic gender --method hard -o fair.bin
    """
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors import mitigate
    from evenhand.vectors.formats import format_of

    topic = opt.single(topics, "--topic")
    material = read_topic(topic)
    if output:
        format_of(output, file_format)
    v = opt.load_vectors(source, case)
    result = mitigate(v, material, seed=run.seed, prob=run.prob, **options)
    debiased = result.debiased
    notes = list(debiased.notes)
    if output:
        notes += debiased.vectors.save(output, file_format)
    if print_json(
        output=output,
        debias=debiased.to_dict(),
        comparisons=[*result.measures, *result.hiding],
        measurements=list(result.utility),
    ):
        return
    print_comparisons(f"{debiased.vectors.name}: {topic}", result.measures)
    print_comparisons(
        "Hidden bias (words most associated with each class, none of them fitted on)", result.hiding
    )
    print_measurements("Utility: what is left of the geometry of the vectors", result.utility)
    print_notes(notes)
    if debiased.left_out:
        say(f"left out, no vector: {', '.join(debiased.left_out)}")
    if output:
        say(f"{len(v):,} words written to {output}")
    print_finding(result.utility, [*result.measures, *result.hiding])


@click.command(cls=Command, name="debias")
@click.argument("source", metavar="MODEL", type=completion.MODEL)
@opt.declared_options(LayerSettings)
@click.option(
    "--strength",
    "strengths",
    type=float,
    multiple=True,
    default=(1.0,),
    show_default=False,
    help="How much of the change is applied, 1 by default; steer takes negative numbers, towards "
    "men. Several are compared.",
)
@opt.material_option(
    "--texts",
    help="Texts with gendered words, one per line; by default built-in sentences.",
)
@opt.material_option(
    "--utility",
    help="Texts for perplexity or, of a sentence encoder, for cosines, one per line; by default "
    "the texts that are not fitted on.",
)
@opt.metric_option(*LANGUAGE)
@opt.data_option
@opt.folder_option("Save the changed model into this new folder.")
@opt.model_options
@opt.run_options
@opt.json_option
def debias_model(
    source: str,
    load: opt.ModelLoader,
    strengths: tuple[float, ...],
    texts: str | None,
    utility: str | None,
    metrics: tuple[str, ...],
    data: str | None,
    folder: Path | None,
    run: Run,
    **settings: object,
) -> None:
    """Hide gender within a model by affine maps after its layers, then measure again.

    The maps are fitted on texts in two versions, with their gendered words male and female, and
    tested on other texts: does a probe still find the gender in the states, and how much worse does
    the model predict? Of a sentence encoder the vectors are mapped, and their cosines compared.
    --metric names measures of bias to compare. The saved folder loads as any other, with the maps.

    \b
    Examples:
      evenhand debias mini --layers 6 -o mini-leace
      evenhand debias ./gpt2 --method steer --layers 6 --strength -1 --strength 1
      evenhand measure mini-leace
    """
    from evenhand.models.debiasing import mitigate_encoder, mitigate_model, save_model
    from evenhand.models.loading import kind_of

    kind = kind_of(source)
    if kind == "encoder" and "layers" in opt.given_options(settings):
        raise click.UsageError("--layers: the vectors of a sentence encoder are changed, no layer")
    if folder is not None and len(strengths) > 1:
        raise click.UsageError(f"--strength: expected one to save, got {len(strengths)}")
    if folder is not None and folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"-o: expected a new or an empty folder, got {folder}")
    if data is not None and not metrics:
        raise click.UsageError("--data: name the metrics that read it with --metric")
    chosen = [lookup(kind, name)() for name in metrics]
    material = [instrument.read(data) if data else None for instrument in chosen]
    lines = lookup("masked", "perplexity")().read
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
    if is_set("json"):
        content = [
            {"strength": strength, **result.to_dict()}
            for strength, result in zip(strengths, results, strict=True)
        ]
        about = {"model": loaded.name, "kind": LANGUAGE[kind], "output": folder and str(folder)}
        found = summarize([], compared)
        print_json(command="debias", **about, strengths=content, sentence=found)
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

    rows = [
        (same[0].metric, same[0].query, same[0].before.estimate, *(c.after.estimate for c in same))
        for same in zip(*compared, strict=True)
    ]
    headers = ("metric", "query", "before", *(f"strength {strength:g}" for strength in strengths))
    table(f"{title}: by strength", headers, rows)
