"""`evenhand fewshot run`: train a few-shot classifier and test it on classes it has not seen."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.fewshot.options import (
    class_options,
    data_options,
    in_options,
    network_options,
    parsed_options,
    read_data,
    task_options,
)
from evenhand.cli.options import format_option, json_option, prob_option
from evenhand.cli.output import step_bars
from evenhand.results import document, save_json, to_json

if TYPE_CHECKING:
    from evenhand.fewshot.runs import RunSummary, SavedRun

__all__ = ["run"]


@click.command(short_help="Train a few-shot classifier and test it on new classes.")
@click.option(
    "-o", "--out", "--output", "folder", metavar="DIR", default="fewshot-run", show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the network, its answers, the tables, the figures and the results.",
)  # fmt: skip
@data_options
@task_options
@network_options
@class_options
@click.option(
    "--cache", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Where the features of frozen encoders are kept; by default in the user's cache folder.",
)  # fmt: skip
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes that rewrite texts; by default one a core."
)
@click.option("--restart", is_flag=True, help="Clear an earlier run out of DIR and begin anew.")
@click.option(
    "--margin", type=click.FloatRange(0, 1, True, True), default=0.05, show_default=True,
    help="The ε at which the classifier is asked to be ε-robust.",
)  # fmt: skip
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
    formats: tuple[str, ...],
    prob: float,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Train a few-shot classifier and test it on classes it has never seen.

    The classes of the data are divided into some to train, to validate and to test on. A task has
    WAYS classes with SHOTS texts given and QUERIES texts asked of each. What counting words alone
    reaches comes first. Where the persons' genders are known, every test query is asked a second
    time with its gender swapped, and the bias is measured. Intervals are for new classes; the
    usual ones, over episodes alone, stand beside them. Runs of other networks, mitigations and
    seeds have the same test queries. The same command goes on where it was stopped or killed.

    \b
    Examples:
      evenhand fewshot run --ways 5 --shots 4 --queries 5 --out base
      evenhand fewshot run --ways 5 --shots 4 --queries 5 --mitigation neutralize --out neutral
      evenhand fewshot bias base neutral
      evenhand fewshot run --data bios.csv --at-least 100 --network induction --seeds 3 --out bios
      evenhand fewshot run --data asked.jsonl --text question --label topic --finetune --out asked
    """
    from evenhand.fewshot.runs import run as work
    from evenhand.folders import user_cache

    results = _Results(prob=prob, margin=margin, formats=formats)
    with in_options(), step_bars({"training": "episodes", "encoding": "tokens"}) as progress:
        settings, dataset, splits, shares = _asked(finetune=not frozen, **chosen)
        work(
            dataset, settings, folder, encoder=encoder, splits=splits, shares=shares,
            both_leanings=not chosen["any_leaning"],
            cache=cache or user_cache("features"), device=device,
            jobs=jobs or len(os.sched_getaffinity(0)), restart=restart,
            about={"arguments": sys.argv[1:]}, progress=progress, finish=results.write,
        )  # fmt: skip
    if as_json:
        click.echo(to_json(results.document))
        return
    from evenhand.cli.fewshot.tables import print_run

    print_run(results.summary)
    click.echo(f"written to {folder}: results.json, run.json, by_class.csv, figures/, split-…/")


def _asked(**chosen: Any) -> Any:
    """The settings, the data, and the class splits where they are given."""
    from evenhand.fewshot.runs import EpisodeCounts, RunSettings
    from evenhand.fewshot.runs.settings import parse_shares
    from evenhand.fewshot.splits import load_splits, read_splits
    from evenhand.fewshot.training import Settings

    episodes = EpisodeCounts.parse(chosen["episodes"])
    every = chosen["validate_every"] or episodes.validate_every
    training = Settings(
        options=parsed_options(chosen["options"]), validate_every=every,
        **{name: chosen[name] for name in ("network", "loss", "batch", "learning_rate",
                                           "encoder_learning_rate", "patience", "seed")},
    )  # fmt: skip
    names = ("ways", "shots", "queries", "unlabelled", "mitigation", "finetune", "pooling", "limit",
             "splits", "seeds", "split_seed")  # fmt: skip
    settings = RunSettings(
        training=training, episodes=episodes, **{name: chosen[name] for name in names}
    )
    shares = parse_shares(chosen["shares"])
    splits = None
    if (path := chosen["splits_from"]) is not None:
        splits = read_splits(path) if path.is_dir() else load_splits(path)
    columns = {name: chosen[name] for name in ("text", "label", "gender", "male", "female")}
    dataset = read_data(chosen["data"], chosen["at_least"], chosen["each_gender"], columns)
    return settings, dataset, splits, shares


@dataclass
class _Results:
    """What is written into the folder of a finished run beside its answers."""

    prob: float
    margin: float
    formats: tuple[str, ...]
    summary: RunSummary = field(init=False)
    document: dict[str, Any] = field(init=False)

    def write(self, done: SavedRun) -> None:
        from evenhand.cli.output import save_figures
        from evenhand.fewshot.runs import summary
        from evenhand.fewshot.runs.folder import ASSOCIATIONS, BY_CLASS, RunFolder
        from evenhand.report.fewshot import run_charts

        self.summary = summary(done, prob=self.prob, margin=self.margin)
        told = self.document = document(command="fewshot run", **self.summary.as_dict())
        place = RunFolder(done.folder)
        place.save_table(told["by_class"], BY_CLASS)
        if told["associations"]:
            place.save_table(told["associations"], ASSOCIATIONS)
        charts = run_charts(told)
        if told["bias"] is None:  # the output says so
            charts.skipped.pop("bias", None)
            charts.skipped.pop("associations", None)
        save_figures(charts, done.folder, self.formats)
        save_json(done.folder / "results.json", told)
