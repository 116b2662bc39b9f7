"""Few-shot runs as cells: one network, task and mitigation each, on some class splits and seeds.

Cells share the texts in every version, their features and the baseline's word vectors through a
store in the grid's cache. With a frozen encoder a cell is computed in one thread, whatever it is
given, so that its numbers are the same on every engine.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.settings import (
    EpisodeCounts,
    RunSettings,
    TrainingSettings,
    parse_shares,
)
from evenhand.grid.files import HUB, file_digest, model_digest, plain
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.grid.task import Task, Workspace

__all__ = ["TASK", "FewshotSettings"]

HELD = 2
"""The number of stores that a process holds."""

_TRAINING, _RUN = TrainingSettings(), RunSettings()


class FewshotSettings(BaseModel):
    """The settings of a cell: the options of `evenhand fewshot run`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: str = Field("simulated", description="Labelled texts: simulated, a file, or hf:NAME.")
    text: str | None = Field(None, description="Column of the text, if not a known one.")
    label: str | None = Field(None, description="Column of the class.")
    gender: str | None = Field(None, description="Column of the person's gender.")
    male: str | None = Field(None, description="What the file has for a man, if not M or male.")
    female: str | None = Field(None, description="What it has for a woman.")
    at_least: int | None = Field(None, ge=1, description="Leave out classes of fewer texts.")
    each_gender: int | None = Field(
        None, ge=1, description="Leave out classes with fewer texts of one gender."
    )
    network: str = Field(_TRAINING.network, description="The few-shot network.")
    ways: int = Field(_RUN.ways, ge=2, description="Classes of a task (C).")
    shots: int = Field(_RUN.shots, ge=1, description="Texts given of each class (K).")
    queries: int | None = Field(
        None, ge=1, description="Query texts of each class (Q); by default as many as shots."
    )
    unlabelled: int | None = Field(
        None, ge=0, description="Texts a class given without it, for proto-soft."
    )
    episodes: str = Field(str(EpisodeCounts()), description="TRAIN/VALID/TEST tasks.")
    mitigation: str = Field(
        "none", description="none, or some of augment, neutralize, calibrate joined by +."
    )
    encoder: str = Field("mini", description="The encoder: mini, a folder, or hf:NAME.")
    frozen: bool = Field(True, description="Leave the encoder as it is, or train it along.")
    pooling: str = Field(_RUN.pooling, description="How a text's tokens become its features.")
    limit: int | None = Field(None, ge=3, description="Cut texts after so many tokens.")
    loss: str | None = Field(None, description="ce or mse; by default the network's usual one.")
    batch: int = Field(_TRAINING.batch, ge=1, description="Episodes of a step.")
    learning_rate: float = Field(
        _TRAINING.learning_rate, gt=0, description="The highest learning rate of the network."
    )
    encoder_learning_rate: float = Field(
        _TRAINING.encoder_learning_rate, gt=0, description="That of an encoder that learns."
    )
    validate_every: int | None = Field(
        None, ge=1, description="Episodes between validations; a tenth by default, 500 at most."
    )
    patience: int = Field(
        _TRAINING.patience, ge=1, description="Validations no better than the best until it stops."
    )
    options: dict[str, int | float] = Field(
        default_factory=dict, description="Options of the network's own."
    )
    splits: int = Field(_RUN.splits, ge=1, description="Class splits to train and test on.")
    seed: int = Field(_TRAINING.seed, ge=0, lt=2**32, description="Seed of the training.")
    seeds: int = Field(_RUN.seeds, ge=1, description="Trainings of each split, from seed on.")
    split_seed: int = Field(
        _RUN.split_seed, ge=0, description="Seed of splits, validation and test episodes."
    )
    shares: str = Field("50/25/25", description="Per cent of the classes: TRAIN/VALID/TEST.")
    any_leaning: bool = Field(
        False, description="Allow parts without a class that leans male, or female."
    )
    prob: float = Field(0.95, gt=0, lt=1, description="The probability of the intervals.")
    margin: float = Field(0.05, gt=0, lt=1, description="The ε of ε-robustness.")
    tosses: int = Field(2000, ge=1, description="Permutations of the test against chance.")

    @field_validator("episodes")
    @classmethod
    def _episodes(cls, value: str) -> str:
        return str(EpisodeCounts.parse(value))

    @field_validator("shares")
    @classmethod
    def _shares(cls, value: str) -> str:
        parse_shares(value)
        return value

    @property
    def run(self) -> RunSettings:
        """The same as a run takes it; names that are unknown are an error."""
        episodes = EpisodeCounts.parse(self.episodes)
        same = (
            "network",
            "loss",
            "batch",
            "learning_rate",
            "encoder_learning_rate",
            "patience",
            "options",
            "seed",
        )
        training = TrainingSettings(
            validate_every=self.validate_every or episodes.validate_every,
            **{name: getattr(self, name) for name in same},
        )
        alike = (
            "ways",
            "shots",
            "unlabelled",
            "mitigation",
            "pooling",
            "limit",
            "splits",
            "seeds",
            "split_seed",
        )
        return RunSettings(
            training=training,
            episodes=episodes,
            queries=self.queries or self.shots,
            finetune=not self.frozen,
            **{name: getattr(self, name) for name in alike},
        )


class _Fewshot:
    name = "fewshot"
    version = 1
    settings = FewshotSettings

    def check(self, settings: FewshotSettings) -> None:
        """Names, numbers, and whether the data have texts and classes enough."""
        from evenhand.fewshot.networks import options

        run = settings.run
        for name in settings.options:
            if name not in options(settings.network):
                known = [each for each in options(settings.network) if each != "projection"]
                raise UnknownNameError(f"option of {settings.network}", name, known)
        _encoder(settings.encoder)
        _check_parts(
            _dataset(settings),
            run.ways,
            run.shots,
            run.queries,
            run.unlabelled or 0,
            run.mitigation.calibrate,
            run.splits,
            run.split_seed,
            settings.shares,
            not settings.any_leaning,
        )

    def identity(self, settings: FewshotSettings) -> dict[str, Any]:
        """The run, the texts with their classes and genders, and the encoder's files."""
        return {
            "run": settings.run.to_dict(),
            "data": _dataset(settings).digest,
            "encoder": _encoder(settings.encoder),
            "shares": parse_shares(settings.shares),
            "any_leaning": settings.any_leaning,
            "prob": settings.prob,
            "margin": settings.margin,
            "tosses": settings.tosses,
        }

    def group(self, settings: FewshotSettings) -> str:
        """The data, the encoder and the versions of the texts."""
        words = [word for word in ("augment", "neutralize") if word in settings.mitigation]
        task = f"{settings.ways:03} {settings.shots:03} {settings.seed:010}"
        names = (settings.data, settings.encoder, settings.pooling, str(settings.limit))
        return " ".join([*names, "+".join(words), task])

    def compute(self, settings: FewshotSettings, workspace: Workspace) -> dict[str, Any]:
        """Train, test and measure."""
        from evenhand.fewshot.training import thread_count

        with thread_count(1 if settings.frozen else workspace.threads):
            try:
                finished = _run(settings, workspace)
            except FileError:  # what an earlier worker left does not fit any more
                shutil.rmtree(workspace.work / "run", ignore_errors=True)
                finished = _run(settings, workspace)
            return _result(finished)

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Accuracy, F1, what is gained over counting words, and the bias measures."""
        accuracy, *others = map(Measurement.from_dict, result["measurements"])
        baseline = others.pop()
        [above] = map(Comparison.from_dict, result["comparisons"])
        figures = {
            "accuracy": accuracy.estimate,
            "f1": accuracy.part("f1", by="score").estimate,
            "baseline": baseline.estimate,
            "above_baseline": above.change,
        }
        for bias in others:
            figures |= {part.query: part.estimate for part in bias.select("measure")}
        return {
            name: {"value": figure.value, "low": figure.low, "high": figure.high}
            for name, figure in figures.items()
        }


def _run(settings: FewshotSettings, workspace: Workspace) -> FewShotRun:
    from evenhand.fewshot.runs import run

    dataset = _dataset(settings)
    return run(
        dataset,
        settings.run,
        workspace.work / "run",
        shares=parse_shares(settings.shares),
        both_leanings=not settings.any_leaning,
        prob=settings.prob,
        margin=settings.margin,
        permutations=settings.tosses,
        store=_store(settings, dataset, workspace),
        progress=workspace.progress,
    )


def _result(finished: FewShotRun) -> dict[str, Any]:
    """The measurements without items and classes, and the tallies, which have them all."""
    from evenhand.fewshot.answers import Tallies

    results = finished.results
    assert results is not None  # noqa: S101
    content = replace(
        results,
        accuracy=_without_classes(results.accuracy),
        baseline=_without_classes(results.baseline),
        bias=None if results.bias is None else _without_classes(results.bias),
    ).to_dict(items=False)
    curves = {
        name: {
            "episodes": points[-1]["episodes"],
            "best": max(points, key=lambda point: point["validation_accuracy"] or 0.0),
        }
        for name, points in finished.curves.items()
    }
    baseline = results.baseline
    return plain(
        {
            "name": finished.name,
            "chance": results.accuracy.details["chance"],
            "baseline": {**baseline.estimate.to_dict(), **baseline.details},
            **content,
            "curves": curves,
            "tallies": Tallies.of(finished).pack(),
        }
    )


def _without_classes(measured: Measurement) -> Measurement:
    parts = (_without_classes(part) for part in measured.parts if part.by != "class")
    details = {k: v for k, v in measured.details.items() if k not in ("names", "leaning")}
    return replace(measured, parts=tuple(parts), details=details)


_stores: OrderedDict[tuple[Any, ...], FeatureStore] = OrderedDict()


def _store(settings: FewshotSettings, dataset: Dataset, workspace: Workspace) -> FeatureStore:
    """The store of the cell's data and encoder; a process holds the last ones."""
    from evenhand.fewshot.features import FeatureStore

    key = (
        dataset.digest,
        settings.encoder,
        _encoder(settings.encoder),
        settings.pooling,
        settings.limit,
        workspace.cache,
        workspace.device,
    )
    if key not in _stores:
        while len(_stores) >= HELD:
            _stores.popitem(last=False)
        _stores[key] = FeatureStore(
            dataset,
            settings.encoder,
            workspace.cache / "fewshot",
            pooling=settings.pooling,
            limit=settings.limit,
            device=workspace.device,
        )
    _stores.move_to_end(key)
    _stores[key].lock = workspace.lock
    return _stores[key]


def _dataset(settings: FewshotSettings) -> Dataset:
    """The data of a cell; read once by a process, unless the file changes."""
    columns = tuple(
        (name, value)
        for name in ("text", "label", "gender", "male", "female")
        if (value := getattr(settings, name)) is not None
    )
    local = Path(settings.data)
    if columns and settings.data.partition(":")[0] == "simulated" and not local.exists():
        raise InputError(f"{columns[0][0]}: simulated data have no columns to name")
    content = file_digest(local) if local.is_file() else ""
    return _read(settings.data, content, columns, settings.at_least or 0, settings.each_gender or 0)


@lru_cache(maxsize=4)
def _read(
    data: str,
    content: str,  # noqa: ARG001
    columns: tuple[tuple[str, str], ...],
    at_least: int,
    each_gender: int,
) -> Dataset:
    from evenhand.fewshot.data import read

    try:
        dataset = read(data, **dict(columns))
    except FileNotFoundError:
        problem = "no such file, and not simulated; a data set of the hub is named hf:NAME"
        raise FileError(data, problem) from None
    if at_least or each_gender:
        dataset = dataset.at_least(at_least or 1, each_gender=each_gender)
    return dataset


@lru_cache(maxsize=1024)
def _check_parts(
    dataset: Dataset,
    ways: int,
    shots: int,
    queries: int,
    unlabelled: int,
    calibrate: bool,
    splits: int,
    split_seed: int,
    shares: str,
    both_leanings: bool,
) -> None:
    """Draw one episode of each part: whether there are enough texts is known then."""
    from evenhand.fewshot.runs import draw_parts

    minimal = RunSettings(
        training=TrainingSettings(network="proto-soft" if unlabelled else _TRAINING.network),
        ways=ways,
        shots=shots,
        queries=queries,
        unlabelled=unlabelled,
        episodes=EpisodeCounts(1, 1, 1),
        mitigation="calibrate" if calibrate else "none",  # type: ignore[arg-type]
        splits=splits,
        split_seed=split_seed,
    )
    draw_parts(dataset, minimal, shares=parse_shares(shares), both_leanings=both_leanings)


def _encoder(source: str) -> str:
    """Return the hash of an encoder's files; a missing one is an error that names the setting."""
    from evenhand.masked.model import EMBEDDED

    if source in EMBEDDED or source.startswith(HUB) or Path(source).is_dir():
        return model_digest(source, head=False)
    raise InputError(
        f"encoder: expected {', '.join(EMBEDDED)}, a folder with a model, or hf:NAME, got "
        f"'{source}'"
    )


TASK: Task = _Fewshot()
