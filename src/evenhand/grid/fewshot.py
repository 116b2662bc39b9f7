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

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.mitigation import Scope
from evenhand.fewshot.settings import (
    SOFT,
    DataSettings,
    EpisodeCounts,
    RunSettings,
    SharedSettings,
    TrainingSettings,
    parse_shares,
    run_options,
    run_settings,
)
from evenhand.grid.files import HUB, file_digest, model_digest, plain
from evenhand.grid.measures import option_fields
from evenhand.instruments import options_of
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.grid.task import Task, Workspace

__all__ = ["TASK", "FewshotSettings"]

EARLIER = {"mitigate": "all", "neutral": False}
"""What runs of version 0.1 did, by setting: not part of the identity, so that their results stay
valid. (So is `leaning: share`.)"""
HELD = 2
"""The number of stores that a process holds."""


def _declared() -> dict[str, Any]:
    """Return the fields of a cell that the settings of a run and the measure of bias declare."""
    options = [option for option in run_options() if option.name != "finetune"]
    shown = "Query texts per class (Q); by default as many as shots."
    options = [
        replace(option, default=None, optional=True, help=shown)
        if option.name == "queries"
        else option
        for option in options
    ]
    shared = options_of(SharedSettings)
    return option_fields([*options_of(DataSettings), *options, *shared, *options_of(Bias)])


class CellSettings(BaseModel):
    """The settings of a cell: the options of `evenhand fewshot run`, which declares the others."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    frozen: bool = Field(True, description="Leave the encoder as it is, or train it along.")
    prob: float = Field(0.95, gt=0, lt=1, description="The probability of the intervals.")

    @field_validator("episodes", check_fields=False)
    @classmethod
    def _episodes(cls, value: str) -> str:
        return str(EpisodeCounts.parse(value))

    @field_validator("shares", check_fields=False)
    @classmethod
    def _shares(cls, value: str) -> str:
        parse_shares(value)
        return value

    @property
    def run(self) -> RunSettings:
        """The same as a run takes it; names that are unknown are an error."""
        return run_settings(
            {**self.model_dump(), "limit": self.max_length, "finetune": not self.frozen}  # type: ignore[attr-defined]
        )


FewshotSettings: Any = create_model(
    "FewshotSettings", __base__=CellSettings, __module__=__name__, **_declared()
)


class _Fewshot:
    name = "fewshot"
    version = 1
    settings = FewshotSettings

    def check(self, settings: Any) -> None:
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
            run.mitigate,
            run.splits,
            run.split_seed,
            settings.shares,
            not settings.any_leaning,
        )

    def identity(self, settings: Any) -> dict[str, Any]:
        """The run, the texts with their classes and genders, and the encoder's files."""
        run = settings.run.to_dict()
        for name, value in EARLIER.items():
            if run[name] == value or (name == "mitigate" and run["mitigation"] == "none"):
                del run[name]
        if not run["training"]["adapt"]:
            del run["training"]["adapt"], run["training"]["adapt_rate"]
        return {
            "run": run,
            "data": _dataset(settings).digest,
            "encoder": _encoder(settings.encoder),
            "shares": parse_shares(settings.shares),
            "any_leaning": settings.any_leaning,
            "prob": settings.prob,
            "margin": settings.margin,
            "tosses": settings.permutations,
            **({} if settings.leaning == "share" else {"leaning": settings.leaning}),
        }

    def group(self, settings: Any) -> str:
        """The data, the encoder and the versions of the texts."""
        words = [word for word in ("augment", "neutralize") if word in settings.mitigation]
        task = f"{settings.ways:03} {settings.shots:03} {settings.seed:010}"
        names = (settings.data, settings.encoder, settings.pooling, str(settings.max_length))
        return " ".join([*names, "+".join(words), settings.mitigate if words else "", task])

    def compute(self, settings: Any, workspace: Workspace) -> dict[str, Any]:
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
            accuracy.metric: accuracy.estimate,
            "f1": accuracy.part("f1", by="score").estimate,
            "baseline": baseline.estimate,
            "above_baseline": above.change,
        }
        for bias in others:
            kinds = ("measure", "original", "version")
            parts = [part for kind in kinds for part in bias.select(kind)]
            figures |= {part.query: part.estimate for part in parts}
        return {
            name: {"value": figure.value, "low": figure.low, "high": figure.high}
            for name, figure in figures.items()
        }


def _run(settings: Any, workspace: Workspace) -> FewShotRun:
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
        permutations=settings.permutations,
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


def _store(settings: Any, dataset: Dataset, workspace: Workspace) -> FeatureStore:
    """The store of the cell's data and encoder; a process holds the last ones."""
    from evenhand.fewshot.features import FeatureStore

    key = (
        dataset.digest,
        settings.encoder,
        _encoder(settings.encoder),
        settings.pooling,
        settings.max_length,
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
            limit=settings.max_length,
            device=workspace.device,
        )
    _stores.move_to_end(key)
    _stores[key].lock = workspace.lock
    return _stores[key]


def _dataset(settings: Any) -> Dataset:
    """The data of a cell; read once by a process, unless the file changes."""
    local = Path(settings.data)
    content = file_digest(local) if local.is_file() else ""
    names = [option.name for option in options_of(DataSettings)]
    return _read(DataSettings(**{name: getattr(settings, name) for name in names}), content)


@lru_cache(maxsize=4)
def _read(source: DataSettings, content: str) -> Dataset:  # noqa: ARG001
    return source.read()


@lru_cache(maxsize=1024)
def _check_parts(
    dataset: Dataset,
    ways: int,
    shots: int,
    queries: int,
    unlabelled: int,
    calibrate: bool,
    mitigate: Scope,
    splits: int,
    split_seed: int,
    shares: str,
    both_leanings: bool,
) -> None:
    """Draw one episode of each part: whether there are enough texts is known then."""
    from evenhand.fewshot.runs import draw_parts

    minimal = RunSettings(
        training=TrainingSettings(network=SOFT) if unlabelled else TrainingSettings(),
        ways=ways,
        shots=shots,
        queries=queries,
        unlabelled=unlabelled,
        episodes=EpisodeCounts(1, 1, 1),
        mitigation="calibrate" if calibrate else "none",  # type: ignore[arg-type]
        mitigate=mitigate,
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
