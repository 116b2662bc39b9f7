"""`evenhand fewshot bias`: the bias of runs, and what a mitigation changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evenhand.cli.fewshot.options import in_options
from evenhand.cli.options import format_option, json_option, prob_option
from evenhand.errors import InputError

__all__ = ["bias"]


@click.command(short_help="The gender bias of runs, and what mitigations changed.")
@click.argument(
    "folders", nargs=-1, required=True, metavar="DIR…",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip
@click.option(
    "--margin", type=click.FloatRange(0, 1, True, True), default=0.05, show_default=True,
    help="The ε at which the classifier is asked to be ε-robust.",
)  # fmt: skip
@click.option(
    "--tosses", type=click.IntRange(100), default=2000, show_default=True,
    help="Tosses of coins that say what chance gives.",
)  # fmt: skip
@click.option(
    "--figures", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Draw accuracy, bias and changes of the runs into this folder.",
)  # fmt: skip
@format_option
@prob_option
@json_option
def bias(
    folders: tuple[Path, ...],
    margin: float,
    tosses: int,
    figures: Path | None,
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
) -> None:
    """The gender bias of finished runs; with several, what each changed against the first.

    Every test query has a twin, the same text with its gender swapped. association: how much more
    likely the true class is for the pro-stereotypical version of a text (a man's in a class that
    leans male, a woman's in one that leans female) than for the other; ε: the gap in accuracy
    between the two versions; skew: how much better men's versions do; stereotype: how much better
    pro-stereotypical ones do. 0 is no bias. Changes are paired: the runs must share their data,
    classes, shape of tasks and --split-seed.

    \b
    Examples:
      evenhand fewshot bias base
      evenhand fewshot bias base neutral augmented --figures compared
      evenhand fewshot bias base --json
    """
    from evenhand.cli.output import bar, print_json
    from evenhand.fewshot.runs import bias_of, changes, read_run

    _check_once(folders)
    runs = [read_run(folder) for folder in folders]
    names = _names(folders, [run.name for run in runs])
    with in_options():
        found = [
            replace(bias_of(run, prob=prob, margin=margin, tosses=tosses), name=name)
            for run, name in zip(bar(runs, "measuring"), names, strict=True)
        ]
        moved = changes(found[0], found[1:])
    told: dict[str, Any] = {
        "runs": {
            each.name: {
                "folder": str(folder), "accuracy": each.bias.accuracy.as_dict(),
                "bias": each.bias.as_dict(),
                "associations": [row.as_dict() for row in each.associations],
            }
            for folder, each in zip(folders, found, strict=True)
        },
        "changes": {name: each.as_dict() for name, each in moved},
    }  # fmt: skip
    if figures is not None:
        _draw(told, figures, formats)
    if as_json:
        alone = found[0].as_dict() if len(found) == 1 else told
        print_json(command="fewshot bias", **alone)
        return
    from evenhand.cli.fewshot.tables import print_bias, print_changes

    print_bias(found)
    print_changes(found[0].name, moved)
    if figures is not None:
        click.echo(f"figures written to {figures}")


def _draw(told: dict[str, Any], folder: Path, formats: tuple[str, ...]) -> None:
    from evenhand.charts import save_charts
    from evenhand.report.fewshot import bias_charts

    made = bias_charts(told)
    save_charts(made.charts, folder, formats)
    for name, reason in made.skipped.items():
        if name != "changes" or told["changes"]:
            click.echo(f"figure not drawn: {name}: {reason}", err=True)


def _check_once(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        if sum(each.resolve() == folder.resolve() for each in folders) > 1:
            raise InputError(f"{folder}: expected each folder once, got it twice")


def _names(folders: tuple[Path, ...], names: list[str]) -> list[str]:
    """The runs' names, with their folders where several are called the same."""
    return [
        name if names.count(name) == 1 else f"{name} ({folder})"
        for folder, name in zip(folders, names, strict=True)
    ]
