"""The options of `evenhand fewshot run`, in the order of a user's questions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from evenhand.errors import FileError, InputError
from evenhand.fewshot.encoders import POOLINGS
from evenhand.fewshot.networks import LOSSES, NAMES
from evenhand.fewshot.runs.settings import EpisodeCounts, RunSettings
from evenhand.fewshot.training.settings import Settings

__all__ = [
    "class_options", "data_options", "in_options", "network_options", "parsed_options",
    "read_data", "task_options",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

_RUN, _TRAINING = RunSettings(), Settings()


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def every(command: F) -> F:
        for each in reversed(options):
            command = each(command)
        return command

    return every


def _count(flag: str, text: str, least: int = 1, default: Any = ..., name: str = "") -> Any:
    name = name or flag.removeprefix("--").replace("-", "_")
    usual = getattr(_RUN, name, None) if default is ... else default
    return click.option(
        flag, name, type=click.IntRange(least), default=usual, show_default=usual is not None,
        help=text,
    )  # fmt: skip


data_options: Callable[[F], F] = _all(
    click.option(
        "--data", default="simulated", show_default=True, metavar="SRC",
        help="Labelled texts: simulated (dials after a colon, as simulated:leak=0.8,per_class=300),"
        " a CSV, TSV, JSONL or Parquet file (packed too), or hf:NAME.",
    ),
    click.option(
        "--text", "text", metavar="COLUMN", help="Column of the text, if not a known one."
    ),
    click.option("--label", metavar="COLUMN", help="Column of the class."),
    click.option("--gender", metavar="COLUMN", help="Column of the person's gender."),
    click.option("--male", metavar="CODE", help="What the file has for a man, if not M or male."),
    click.option("--female", metavar="CODE", help="What it has for a woman."),
    _count("--at-least", "Leave out classes of fewer texts.", default=None),
    _count("--each-gender", "Leave out classes with fewer texts of one gender.", default=None),
)  # fmt: skip

task_options: Callable[[F], F] = _all(
    click.option(
        "--network", default=_TRAINING.network, show_default=True, metavar="NAME",
        help=f"One of {', '.join(NAMES)}.",
    ),
    _count("--ways", "Classes of a task (C).", 2),
    _count("--shots", "Texts given of each class (K)."),
    _count("--queries", "Texts asked of each class (Q)."),
    _count(
        "--unlabelled", "Texts a class given without it; proto-soft alone takes some, by default as"
        " many as queries.", 0, None,
    ),
    click.option(
        "--episodes", default=str(EpisodeCounts()), show_default=True, metavar="TRAIN/VALID/TEST",
        help="How many tasks to train, to validate and to test with.",
    ),
    click.option(
        "--mitigation", default="none", show_default=True, metavar="M[+M]",
        help="none, or some of augment, neutralize, calibrate joined by +.",
    ),
)  # fmt: skip

class_options: Callable[[F], F] = _all(
    _count("--splits", "Class splits to train and test on, one after the other."),
    click.option(
        "--seed", type=click.IntRange(0, 2**32 - 1), default=_TRAINING.seed, show_default=True,
        help="Seed of the training: first weights and training episodes.",
    ),
    _count("--seeds", "Trainings of each split, with seeds N, N+1 … from --seed on."),
    _count(
        "--split-seed", "Seed of the class splits, validation and test episodes; leave it as it is"
        " in runs that are to be compared.", 0,
    ),
    click.option(
        "--splits-from", metavar="PATH", type=click.Path(exists=True, path_type=Path),
        help="Take the first --splits class splits of a splits.json, or of a folder with"
        " labels.01.train.txt …, instead of drawing some.",
    ),
    click.option(
        "--shares", default="50/25/25", show_default=True, metavar="TRAIN/VALID/TEST",
        help="Per cent of the classes to train, validate and test on.",
    ),
    click.option(
        "--any-leaning", is_flag=True,
        help="Allow parts without a class that leans male, or female.",
    ),
)  # fmt: skip

network_options: Callable[[F], F] = _all(
    click.option(
        "--encoder", default="mini", show_default=True, metavar="SRC",
        help="The encoder: mini, the path of a folder, or hf:NAME.",
    ),
    click.option(
        "--frozen/--finetune", "frozen", default=True, show_default=True,
        help="Leave the encoder as it is, its features kept on disk; or train it along.",
    ),
    click.option(
        "--pooling", type=click.Choice(POOLINGS), default=_RUN.pooling, show_default=True,
        help="How a text's tokens become its features.",
    ),
    _count("--limit", "Cut texts after so many tokens; by default where the encoder ends.", 3),
    click.option(
        "--loss", type=click.Choice(LOSSES),
        help="Cross-entropy or squared error (D0); by default what the network is usually"
        " trained with.",
    ),
    _count("--batch", "Episodes of a step.", default=_TRAINING.batch),
    click.option(
        "--learning-rate", type=click.FloatRange(0, min_open=True), show_default=True,
        default=_TRAINING.learning_rate, help="The highest learning rate of the network.",
    ),
    click.option(
        "--encoder-learning-rate", type=click.FloatRange(0, min_open=True), show_default=True,
        default=_TRAINING.encoder_learning_rate, help="That of the encoder, with --finetune.",
    ),
    _count(
        "--validate-every", "Episodes between validations; by default a tenth of the training"
        " episodes, 500 at most.", default=None,
    ),
    _count("--patience", "Stop after so many validations no better than the best.",
           default=_TRAINING.patience),
    click.option(
        "--option", "options", multiple=True, metavar="NAME=VALUE",
        help="An option of the network's own, such as slices=50 of relation-ntl.",
    ),
)  # fmt: skip


_IN_PYTHON = (
    (r"at_least\((\d+), each_gender=(\d+)\)", r"--at-least \1 --each-gender \2"),
    (r"at_least\((\d+)\)", r"--at-least \1"),
    (r"\(each_gender leaves", "(--each-gender leaves"),
    (r"both_leanings=False", "--any-leaning"),
    (r"text= and label=", "--text and --label"),
    (r"male= and female=", "--male and --female"),
)


@contextmanager
def in_options() -> Iterator[None]:
    """Errors that name arguments of Python name the options of the command line instead."""
    try:
        yield
    except InputError as error:
        told = str(error)
        for argument, option in _IN_PYTHON:
            told = re.sub(argument, option, told)
        raise InputError(told) from error


def read_data(
    data: str, at_least: int | None, each_gender: int | None, columns: dict[str, str | None]
) -> Any:
    """The data set that the options name, without the classes that are too small."""
    from evenhand.fewshot.data import read

    named = [name for name, column in columns.items() if column is not None]
    if named and data.partition(":")[0] == "simulated" and not Path(data).exists():
        raise InputError(f"--{named[0]}: simulated data have no columns to name")
    try:
        made = read(data, **columns)
    except FileNotFoundError:
        problem = "no such file, and not simulated; a data set of the hub is named hf:NAME"
        raise FileError(data, problem) from None
    if at_least or each_gender:
        made = made.at_least(at_least or 1, each_gender=each_gender or 0)
    return made


def parsed_options(given: tuple[str, ...]) -> dict[str, int | float]:
    """NAME=VALUE pairs as the network takes them."""
    found: dict[str, int | float] = {}
    for each in given:
        name, _, value = (part.strip() for part in each.partition("="))
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number):
            raise InputError(f"option: expected NAME=NUMBER, got '{each}'")
        if name in found:
            raise InputError(f"option: expected '{name}' once, got it twice")
        found[name] = int(value) if value.lstrip("+-").isdecimal() else number
    return found
