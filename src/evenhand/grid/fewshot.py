"""Few-shot runs as cells: one network, task and mitigation each, on some class splits and seeds.

Cells share the texts in every version, their features and the baseline's word vectors through a
store in the grid's cache. With a frozen encoder a cell is computed in one thread, whatever it is
given, so that its numbers are the same on every engine.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.metrics.bias import Bias
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
from evenhand.files import HUB
from evenhand.grid.files import (
    causal_digest,
    check_model,
    file_digest,
    model_digest,
    plain,
)
from evenhand.grid.measures import option_fields
from evenhand.grid.task import Task
from evenhand.instruments import options_of
from evenhand.models.loading import kind_of
from evenhand.models.sources import CAUSAL
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.fewshot.tables import Row
    from evenhand.grid.spec import Cell
    from evenhand.grid.task import Progress, Workspace
    from evenhand.models.writing import Writer

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


Declared = TypeVar("Declared", bound=DataSettings | SharedSettings | Bias)


class CellSettings(BaseModel):
    """The settings of a cell: the options of `lab fewshot run`, which declares the others."""

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
        given = self.model_dump()
        return run_settings({**given, "limit": given["max_length"], "finetune": not self.frozen})

    @property
    def source(self) -> DataSettings:
        """The data."""
        return self._declared_by(DataSettings)

    @property
    def shared(self) -> SharedSettings:
        """The encoder and how the classes are divided."""
        return self._declared_by(SharedSettings)

    @property
    def bias(self) -> Bias:
        """The measure of bias."""
        return self._declared_by(Bias)

    @property
    def parts(self) -> dict[str, Any]:
        """The division of the classes, as `runs.run` takes it."""
        shared = self.shared
        return {"shares": parse_shares(shared.shares), "both_leanings": not shared.any_leaning}

    def _declared_by(self, cls: type[Declared]) -> Declared:
        given = self.model_dump()
        return cls(**{field.name: given[field.name] for field in fields(cls)})


FewshotSettings = create_model(
    "FewshotSettings", __base__=CellSettings, __module__=__name__, **_declared()
)


class _Fewshot(Task[CellSettings]):
    name = "fewshot"
    settings = FewshotSettings

    def check(self, settings: CellSettings) -> None:
        """Names, numbers, and whether the data have texts and classes enough."""
        from evenhand.fewshot.networks import options

        run, _ = settings.run, settings.bias
        training = run.training
        if run.in_context:
            _check_causal(settings.shared.model)
            _check_parts(settings)
            return
        for name in training.options:
            if name not in options(training.network):
                known = [each for each in options(training.network) if each != "projection"]
                raise UnknownNameError(f"option of {training.network}", name, known)
        encoder = settings.shared.encoder
        if not (encoder in CAUSAL or encoder.endswith(".gguf")):
            check_model("encoder", encoder)
        _check_parts(settings)

    def identity(self, settings: CellSettings) -> dict[str, Any]:
        """The run, the texts with their classes and genders, and the encoder's files."""
        run, leaning = settings.run.to_dict(), settings.source.leaning
        for name, value in EARLIER.items():
            if run[name] == value or (name == "mitigate" and run["mitigation"] == "none"):
                del run[name]
        if not run["training"]["adapt"]:
            del run["training"]["adapt"], run["training"]["adapt_rate"]
        return {
            "run": run,
            "data": _dataset(settings).digest,
            **_model_identity(settings),
            "shares": settings.parts["shares"],
            "any_leaning": settings.shared.any_leaning,
            "prob": settings.prob,
            "margin": settings.bias.margin,
            "tosses": settings.bias.permutations,
            **({} if leaning == "share" else {"leaning": leaning}),
        }

    def group(self, settings: CellSettings) -> str:
        """The data, the encoder and the versions of the texts."""
        run = settings.run
        words = ["swapped"] * run.mitigation.swaps
        words += [run.mitigation.rewritten] if run.mitigation.rewritten else []
        task = f"{run.ways:03} {run.shots:03} {run.training.seed:010}"
        shared = settings.shared
        model = shared.model if run.in_context else shared.encoder
        names = (settings.source.data, str(model), run.pooling, str(run.limit))
        return " ".join([*names, "+".join(words), run.mitigate if words else "", task])

    def compute(self, settings: CellSettings, workspace: Workspace) -> dict[str, Any]:
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
        figures |= {part.metric: part.estimate for part in accuracy.select("outcome")}
        return {
            name: {"value": figure.value, "low": figure.low, "high": figure.high}
            for name, figure in figures.items()
        }

    def summarize(
        self,
        results: Sequence[tuple[Cell, Mapping[str, Any]]],
        missing: Sequence[tuple[Cell, str]],
        prob: float,
        progress: Progress | None,
    ) -> tuple[dict[str, list[Row]], dict[str, Any], tuple[str, ...]]:
        """Compare networks, tasks and mitigations, with cells that differ in their seed as one."""
        from evenhand.fewshot.groups import group_cells
        from evenhand.fewshot.tables import flatten, make_tables

        notes: list[str] = []
        groups = group_cells(results, missing, notes)
        made = make_tables(groups, notes, prob=prob, progress=progress)
        columns = {name: [flatten(row) for row in rows] for name, rows in made.items() if rows}
        return columns, {"prob": prob, **made}, tuple(dict.fromkeys(notes))


def _run(settings: CellSettings, workspace: Workspace) -> FewShotRun:
    from evenhand.fewshot.runs import run

    dataset = _dataset(settings)
    return run(
        dataset,
        settings.run,
        workspace.work / "run",
        model=_open_model(settings, workspace) if settings.run.in_context else None,
        **settings.parts,
        prob=settings.prob,
        bias=settings.bias,
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


@lru_cache(maxsize=HELD)
def _open_store(
    dataset: Dataset,
    encoder: str,
    content: str,  # noqa: ARG001
    pooling: str,
    limit: int | None,
    folder: Path,
    device: str,
) -> FeatureStore:
    """The store of data and an encoder; a process holds the last ones."""
    from evenhand.fewshot.features import FeatureStore

    return FeatureStore(dataset, encoder, folder, pooling=pooling, limit=limit, device=device)


def _check_causal(source: str | None) -> None:
    from evenhand.models.endpoint import is_address
    from evenhand.models.sources import locate

    if is_address(source):
        raise InputError("model: expected a model whose files are here, got the address of one")
    if source is None:
        raise InputError("model: expected the causal model of the network in-context, got none")
    if not source.startswith(HUB):
        locate(source, "causal")


def _model_identity(settings: CellSettings) -> dict[str, str]:
    """The files of the encoder, or of the causal model that takes its place."""
    shared = settings.shared
    if settings.run.in_context:
        return {"model": causal_digest(str(shared.model))}
    return {"encoder": _encoder_digest(shared.encoder)}


def _encoder_digest(source: str) -> str:
    causal = kind_of(source) == "causal"
    return causal_digest(source) if causal else model_digest(source, head=False)


def _open_model(settings: CellSettings, workspace: Workspace) -> Writer:
    source = str(settings.shared.model)
    return _load_writer(source, causal_digest(source), workspace.device)


@lru_cache(maxsize=1)
def _load_writer(source: str, content: str, device: str) -> Writer:  # noqa: ARG001
    """A causal model; a process holds the last one."""
    from evenhand.fewshot.runs import open_writer

    return open_writer(source, device)


def _store(settings: CellSettings, dataset: Dataset, workspace: Workspace) -> FeatureStore:
    run, encoder = settings.run, settings.shared.encoder
    store = _open_store(
        dataset,
        encoder,
        "" if run.in_context else _encoder_digest(encoder),
        run.pooling,
        run.limit,
        workspace.cache / "fewshot",
        workspace.device,
    )
    store.lock = workspace.lock
    return store


def _dataset(settings: CellSettings) -> Dataset:
    """The data of a cell; read once by a process, unless the file changes."""
    source = settings.source
    content = file_digest(source.data) if Path(source.data).is_file() else ""
    return _read(source, content)


@lru_cache(maxsize=4)
def _read(source: DataSettings, content: str) -> Dataset:  # noqa: ARG001
    from evenhand.fewshot.data import read_dataset

    return read_dataset(source)


_checked: set[tuple[str, ...]] = set()


def _check_parts(settings: CellSettings) -> None:
    """Draw one episode of each part, once: whether there are enough texts is known then."""
    from evenhand.fewshot.runs import draw_parts

    dataset, run, parts = _dataset(settings), settings.run, settings.parts
    minimal = RunSettings(
        training=TrainingSettings(network=SOFT) if run.unlabelled else TrainingSettings(),
        ways=run.ways,
        shots=run.shots,
        queries=run.queries,
        unlabelled=run.unlabelled or 0,
        episodes=EpisodeCounts(1, 1, 1),
        mitigation="calibrate" if run.mitigation.calibrate else "none",  # type: ignore[arg-type]
        mitigate=run.mitigate,
        splits=run.splits,
        split_seed=run.split_seed,
    )
    key = (dataset.digest, str(dataset.leaning_by), repr(minimal), repr(parts))
    if key not in _checked:
        draw_parts(dataset, minimal, **parts)
        _checked.add(key)


TASK = _Fewshot()
