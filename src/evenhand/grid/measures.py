"""Cells that measure a subject with declared instruments.

The options of the instruments are keys of the grid's file, and part of the identity of a cell. A
new instrument needs nothing here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib import resources
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError, UnknownNameError, VocabularyError
from evenhand.files import HUB
from evenhand.grid import files
from evenhand.grid.spec import format_value
from evenhand.grid.task import Task, Workspace
from evenhand.instruments import (
    Instrument,
    Job,
    Option,
    Run,
    check_options,
    identity,
    instruments,
    options_of,
    plan,
    run_jobs,
)
from evenhand.results import Measurement
from evenhand.text.structural import Filter
from evenhand.vectors.mitigation import METHOD_OPTIONS, DebiasSettings

if TYPE_CHECKING:
    from evenhand.models.masked import MaskedModel
    from evenhand.vectors.mitigation import VectorMitigation
    from evenhand.vectors.store import Vectors

FEW = 20
"""Parts of one kind that a table shows; all of them are in the result."""


class MeasureSettings(BaseModel):
    """The settings of every cell that measures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prob: float = Field(0.95, gt=0, lt=1, description="Probability of the intervals.")
    seed: int = Field(0, ge=0, lt=2**32)


class ShardSettings(MeasureSettings):
    """The settings of cells that read one file of many and may write one."""

    shard: str = Field(
        "", description="One file; `shards: PATTERN` in fixed makes an axis of all that match."
    )
    out: str = Field(
        "",
        description="The folder for what is written, one file per shard; {seed} and any other "
        "setting in braces is filled in.",
    )

    @property
    def folder(self) -> Path:
        return files.folder_of(self.out, self.model_dump())


Sharded = TypeVar("Sharded", bound=ShardSettings)


class ShardTask(Task[Sharded]):
    """Cells whose setting `choice` names a measure or an operation, of one file of many."""

    choice = ""
    default = ""

    def keys(self) -> Mapping[str, Sequence[str]]:
        """The keys that have an effect, by the value of `choice`."""
        raise NotImplementedError

    def output_name(self, shard: str) -> str:
        """The name of the file that the cell of a shard writes."""
        return PurePath(shard).name

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Write `shards: PATTERN` out as an axis.

        Options and axes without an effect are refused, and axes along which cells would overwrite
        each other's files.
        """
        keys = self.keys()
        files.refuse_unused(fixed, axes, self.choice, keys, self.default)
        rest, varied = files.expand_shards(fixed, axes, self.output_name)
        others = {name: values for name, values in varied.items() if name != "shard"}
        defaults = {name: field.default for name, field in self.settings.model_fields.items()}
        seen: dict[Path, dict[str, Any]] = {}
        for values in product(*others.values()):
            cell = dict(zip(others, values, strict=True))
            given = {**defaults, **rest, **cell}
            if not given["out"] or "out" not in keys.get(given[self.choice], ()):
                continue
            first = seen.setdefault(files.folder_of(str(given["out"]), given), cell)
            name = next((name for name in cell if first[name] != cell[name]), None)
            if name is not None:
                differing = f"{format_value(first[name])}, {format_value(cell[name])}"
                raise InputError(
                    f"out: cells that differ in {name} ({differing}) would write the same files: "
                    f"put {{{name}}} into it, and have names that differ"
                )
        return rest, varied

    def intact(self, settings: Sharded, result: Mapping[str, Any]) -> bool:
        """Whether the files that the cell wrote are still there and the same."""
        return files.are_intact(settings.folder, result.get("outputs", ()))


def option_keys(option: Option) -> tuple[str, ...]:
    """Return the keys of an option in a grid's file: its name, and its flag if that differs.

    Of a switch with two flags (--neutral/--no-neutral) it is the first.

    >>> option_keys(Option(name="threshold", type=float, default=0, help="", flag="--minimum"))
    ('threshold', 'minimum')
    """
    given = [flag.partition("/")[0] for flag in (option.flag or "").split()]
    flags = [flag.lstrip("-").replace("-", "_") for flag in given]
    return tuple(dict.fromkeys([option.name, *(flag for flag in flags if len(flag) > 1)]))


def option_fields(options: Iterable[Option]) -> dict[str, Any]:
    """Return the fields of a pydantic model for options that settings declare, with their ranges.

    A choice is a string here; the settings refuse others when they are made of the cell's.
    """
    fields: dict[str, Any] = {}
    for option in options:
        kind: Any = dict[str, int | float] if option.type is dict else option.type
        kind = tuple[kind, ...] if option.multiple else kind
        bounds = {"ge": option.minimum, "le": option.maximum, "gt": option.above}
        about: dict[str, Any] = {k: v for k, v in bounds.items() if v is not None}
        about |= {} if option.below is None else {"lt": option.below}
        given = Field(option.default, description=option.help, **about)
        key = option.name if option.type is dict else option_keys(option)[-1]
        fields[key] = (kind | None if option.optional else kind, given)
    return fields


Model = TypeVar("Model", bound=BaseModel)


def add_options(base: type[Model], kind: str) -> type[Model]:
    """Return the settings with the options of all instruments of a subject.

    A value that is not given is None; the instrument has its default and checks the others.
    """
    fields: dict[str, Any] = {
        key: (Any, Field(None, description=option.help))
        for cls in instruments(kind).values()
        for option in cls.declaration.options
        for key in option_keys(option)
        if key not in base.model_fields
    }
    return create_model(base.__name__, __base__=base, __module__=__name__, **fields)


def instrument_keys(cls: type[Instrument]) -> tuple[str, ...]:
    """Return the keys of the options of an instrument."""
    return tuple(key for option in cls.declaration.options for key in option_keys(option))


def given_options(classes: Iterable[type[Instrument]], settings: BaseModel) -> dict[str, Any]:
    """Return the options of these instruments that a cell sets, by their names."""
    given: dict[str, Any] = {}
    for option in (option for cls in classes for option in cls.declaration.options):
        for key in option_keys(option):
            if (value := getattr(settings, key)) is not None:
                if option.multiple:
                    value = tuple(value) if isinstance(value, list | tuple) else (value,)
                given[option.name] = value
    return given


def instrument_identities(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Return each instrument of the jobs with its options; files count by their content."""
    identities: list[dict[str, Any]] = []
    for job in jobs:
        described = {name: _by_content(value) for name, value in identity(job.instrument).items()}
        if described not in identities:
            identities.append(described)
    return identities


def _by_content(value: object) -> object:
    if isinstance(value, tuple):
        return [_by_content(part) for part in value]
    if isinstance(value, str) and value and Path(value).is_file():
        return {"file": files.file_digest(value)}
    return value


def figures(measurements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values with intervals of measurements and of their parts, for tables.

    Of many parts of one kind, the first and the last ones are shown.
    """
    rows: dict[str, Any] = {}
    for measurement in measurements:
        name = f"{measurement['metric']} {measurement['query']}".strip()
        if measurement.get("subject") != measurements[0].get("subject"):
            name += f" by {measurement['subject']}"
        if measurement["value"] is not None:
            rows[name] = _figure(measurement)
        kinds: dict[str, list[Mapping[str, Any]]] = {}
        for part in measurement.get("parts") or ():
            kinds.setdefault(part["by"], []).append(part)
        for by, parts in kinds.items():
            shown = parts if len(parts) <= FEW else [*parts[: FEW // 2], *parts[-FEW // 2 :]]
            for part in shown:
                own = "" if part["metric"] == measurement["metric"] else f"{part['metric']}, "
                rows[f"{name}: {own}{by} {part['query']}"] = _figure(part)
    return rows


def _figure(measurement: Mapping[str, Any]) -> dict[str, Any]:
    p = measurement.get("p_value")
    figure = {name: measurement[name] for name in ("value", "low", "high", "n")}
    return figure if p is None else {**figure, "p_value": p}


# ---- word vectors

DEBIAS_KEYS = {option.name: option_keys(option)[-1] for option in options_of(DebiasSettings)}
"""The key in a grid of each option of debiasing."""
DEBIAS_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    **{method: tuple(DEBIAS_KEYS[name] for name in own) for method, own in METHOD_OPTIONS.items()},
}


class VectorSettings(MeasureSettings):
    """Settings of a cell that measures word vectors; the options of the metrics are added."""

    vectors: str = Field("glove", description="glove, or the path of a file.")
    topic: str | tuple[str, ...] = Field(
        (),
        description="A topic by name or the path of its TOML file, or several; without topic, "
        "weat, wefat and query: gender.",
    )
    weat: tuple[int, ...] = Field((), description="Published WEATs, 1 to 10.")
    wefat: tuple[str, ...] = Field((), description="Published WEFATs by name.")
    query: tuple[str, ...] = Field((), description="Your own queries: JSON files.")
    metrics: tuple[str, ...] | None = Field(
        None, description="Only these; by default every metric that fits."
    )
    debias: Literal["none", "hard", "soft", "inlp", "leace"] = Field(
        "none",
        description="Debias for the topic, then measure; the result also has the measures before "
        "and after, the tests of where bias hides and what usefulness was lost.",
    )
    case: Literal["fallback", "exact"] = "fallback"
    limit: int | None = Field(None, ge=1, description="Only this many of the first words.")

    @property
    def topics(self) -> tuple[str, ...]:
        named = (self.topic,) if isinstance(self.topic, str) else self.topic
        return named if named or self.weat or self.wefat or self.query else ("gender",)

    @property
    def debias_options(self) -> dict[str, Any]:
        """The options of the debiasing method that were given."""
        return {
            name: value
            for name in METHOD_OPTIONS.get(self.debias, ())
            if (value := getattr(self, DEBIAS_KEYS[name])) is not None
        }


class _Vectors(Task[VectorSettings]):
    name = "vectors"
    version = 2

    @cached_property
    def settings(self) -> type[VectorSettings]:
        declared = [option for option in options_of(DebiasSettings) if option.name != "method"]
        base = create_model(
            "VectorSettings",
            __base__=VectorSettings,
            __module__=__name__,
            **option_fields(declared),
        )
        return add_options(base, "vectors")

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Refuse options that no chosen debiasing method has."""
        files.refuse_unused(fixed, axes, "debias", DEBIAS_OPTIONS, "none")
        return super().expand(fixed, axes)

    def check(self, settings: VectorSettings) -> None:
        from evenhand.vectors.store import EMBEDDED

        if settings.vectors not in EMBEDDED and not Path(settings.vectors).is_file():
            raise InputError(
                f"vectors: expected {', '.join(EMBEDDED)} or a file, got '{settings.vectors}'"
            )
        if settings.debias != "none" and len(settings.topics) != 1:
            raise InputError(
                f"debias: expected one topic to debias for, got {len(settings.topics)}"
            )
        check_options(DebiasSettings(**settings.debias_options))
        _vector_jobs(settings)

    def identity(self, settings: VectorSettings) -> dict[str, Any]:
        return {
            "vectors": {
                "name": PurePath(settings.vectors).name,
                "content": _vectors_digest(settings.vectors),
                "case": settings.case,
                "limit": settings.limit,
            },
            "debias": {"method": settings.debias, **settings.debias_options},
            "material": files.content_digest(_vector_material(settings)),
            "instruments": instrument_identities(_vector_jobs(settings)),
            "chosen": settings.metrics is not None,
            "prob": settings.prob,
            "seed": settings.seed,
        }

    def group(self, settings: VectorSettings) -> str:
        return f"{settings.vectors} {settings.case} {settings.limit}"

    def compute(self, settings: VectorSettings, workspace: Workspace) -> dict[str, Any]:
        v = _load_vectors(settings.vectors, settings.case, settings.limit)
        subject = {"name": v.name, "words": len(v), "dim": v.dim}
        run = Run(seed=settings.seed, prob=settings.prob)
        mitigation: VectorMitigation | None = None
        if settings.debias != "none":
            from evenhand.vectors.mitigation import mitigate

            (topic,), _, _ = _vector_material(settings)
            mitigation = mitigate(
                v, topic, settings.debias, **settings.debias_options, prob=run.prob, seed=run.seed
            )
            v = mitigation.debiased.vectors
        measurements = run_jobs(v, _vector_jobs(settings), run, strict=settings.metrics is not None)
        if not measurements:
            reason = measurements.skipped[0]["reason"]
            raise VocabularyError(f"nothing could be measured: {reason}")
        return files.plain(
            {
                "vectors": subject,
                "measurements": list(measurements),
                "skipped": measurements.skipped,
                "mitigation": mitigation,
            }
        )

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        measurements = list(result["measurements"])
        if mitigation := result["mitigation"]:
            measurements += [comparison["after"] for comparison in mitigation["hiding"]]
            measurements += [{**entry, "query": ""} for entry in mitigation["utility"]]
        return figures(measurements)


VECTORS = _Vectors()


def _vector_material(settings: VectorSettings) -> tuple[Any, Any, Any]:
    """Return the topics, queries and facts with all their words."""
    from evenhand import lexicon

    queries = (*map(lexicon.weat, settings.weat), *map(lexicon.read_query, settings.query))
    topics = tuple(map(lexicon.topic, settings.topics))
    return topics, queries, tuple(map(lexicon.wefat, settings.wefat))


def _vector_jobs(settings: VectorSettings) -> list[Job]:
    """Return what is measured; a named metric that does not fit is an error."""
    topics, queries, facts = _vector_material(settings)
    names = None if settings.metrics is None else list(settings.metrics)
    options = given_options(instruments("vectors").values(), settings)
    jobs = [
        job for material in (*topics, *queries) for job in plan("vectors", material, names, options)
    ]
    jobs += [job for fact in facts for job in plan("vectors", fact, None, options)]
    return jobs


def _vectors_digest(source: str) -> str:
    from evenhand.vectors.store import EMBEDDED

    if source not in EMBEDDED:
        return files.file_digest(source)
    with resources.as_file(resources.files("evenhand.assets") / f"{source}.npz") as path:
        return files.file_digest(path)


def _load_vectors(
    source: str, case: Literal["fallback", "exact"] = "fallback", limit: int | None = None
) -> Vectors:
    """Load vectors; those of the last cells are still there."""
    return _loaded_vectors(source, _vectors_digest(source), case, limit)


@lru_cache(maxsize=2)
def _loaded_vectors(
    source: str, _digest: str, case: Literal["fallback", "exact"], limit: int | None
) -> Vectors:
    from evenhand.vectors.store import load

    return load(source, case=case, limit=limit)


# ---- language models

ROWS_ENDINGS = (".gz", ".bz2", ".zst", ".jsonl", ".ndjson", ".json", ".txt")


class ModelSettings(ShardSettings):
    """Settings of a cell that measures a language model; the options of the measures are added."""

    model: str = Field("mini", description="mini, the path of a folder, or hf:NAME.")
    measure: str = Field("score", description="An instrument, or its command.")
    data: str = Field("", description="The file of the measure's material.")
    rows: Literal["jsonl", "csv", "parquet"] = Field("jsonl", description="The format of out.")
    filter: bool = Field(False, description="The file is plain text: filter and mask it.")
    keep_someone: bool = Field(False, description='With filter: keep "someone" too.')
    vectors: tuple[str, ...] = Field(
        (), description="Word vectors to measure beside the model, where the measure can."
    )
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    int8: bool = Field(False, description="8-bit weights on the CPU: faster, no longer exact.")

    @property
    def source(self) -> str:
        """The file of the material; empty for the built-in material."""
        return self.shard or self.data


class _Models(ShardTask[ModelSettings]):
    name = "masked"
    version = 2
    choice = "measure"
    default = "score"

    @cached_property
    def settings(self) -> type[ModelSettings]:
        base = add_options(ModelSettings, "masked")
        choices: dict[str, Any] = {
            key: (Any, Field(None, description=f"{name}: material of your own."))
            for name, cls in instruments("masked").items()
            for key in _choice_keys(cls)
            if key not in base.model_fields
        }
        return create_model(base.__name__, __base__=base, __module__=__name__, **choices)

    def keys(self) -> Mapping[str, Sequence[str]]:
        return {name: _keys_of(cls) for name, cls in _measures().items()}

    def output_name(self, shard: str) -> str:
        return rows_name(shard, "")

    def check(self, settings: ModelSettings) -> None:
        files.check_model("model", settings.model)
        instrument = _instrument(settings)
        if settings.data and settings.shard:
            raise InputError("shard: expected either data or shard, got both of them")
        choices = _choices(settings)
        for name, path in (("data", settings.data), ("shard", settings.shard)):
            if path and not Path(path).is_file():
                raise InputError(f"{name}: expected a file, got '{path}'")
        if not settings.source and instrument.requires_material:
            material = instrument.declaration.material
            raise InputError(f"data: expected a file of {material}, got none")
        if settings.source and choices:
            raise InputError(f"data: has its own material, expected no {', '.join(choices)}")
        if choices:
            instrument.choose(**choices)
        if len({PurePath(path).name for path in settings.vectors}) < len(settings.vectors):
            raise InputError("vectors: expected files of different names, got some of the same")
        if settings.keep_someone and not settings.filter:
            raise InputError("keep_someone: goes with filter: true")
        for name in ("filter", "out"):
            if getattr(settings, name) and not settings.source:
                raise InputError(f"{name}: goes with data or shard, got neither of them")
        if settings.out:
            target = settings.folder / rows_name(settings.source, settings.rows)
            if target.resolve() == Path(settings.source).resolve():
                raise InputError(f"out: '{target}' is the input: expected another folder")

    def identity(self, settings: ModelSettings) -> dict[str, Any]:
        material: dict[str, Any] = {}
        if settings.source:
            material["content"] = files.file_digest(settings.source)
            material |= {"filter": settings.filter, "keep_someone": settings.keep_someone}
        else:
            material["built_in"] = files.lexicon_digest()
            material |= {name: _by_content(value) for name, value in _choices(settings).items()}
        if settings.vectors:
            material["vectors"] = {
                PurePath(path).name: _vectors_digest(path) for path in settings.vectors
            }
        if settings.shard or settings.out:
            material["name"] = PurePath(settings.source).name
        return {
            "model": {
                **_model_identity(settings.model),
                "dtype": settings.dtype,
                "int8": settings.int8,
            },
            "instruments": instrument_identities([Job(_instrument(settings), None)]),
            "material": material,
            "shard": bool(settings.shard),
            "rows": settings.rows if settings.out else None,
            "prob": settings.prob,
            "seed": settings.seed,
        }

    def group(self, settings: ModelSettings) -> str:
        return f"{settings.model} {settings.dtype} {settings.int8}"

    def compute(self, settings: ModelSettings, workspace: Workspace) -> dict[str, Any]:
        model = _load_model(
            settings.model,
            **_model_identity(settings.model),
            device=workspace.device,
            dtype=settings.dtype,
            int8=settings.int8,
        )
        instrument = _instrument(settings)
        if settings.vectors:
            loaded = {PurePath(path).name: _load_vectors(path) for path in settings.vectors}
            instrument = instrument.with_vectors(loaded)
        run = Run(
            seed=settings.seed,
            prob=settings.prob,
            # of this cell only: the last bits of an answer depend on the batch
            cache=Cache(workspace.work / "answers"),
            progress=workspace.step("items"),
        )
        result: dict[str, Any] = {"measure": settings.measure}
        if settings.shard:
            result["shard"] = PurePath(settings.shard).name
        if settings.source and type(instrument).measure_file is not Instrument.measure_file:
            rows = workspace.work / rows_name(settings.source, settings.rows)
            scored = instrument.measure_file(
                model,
                settings.source,
                run,
                output=rows if settings.out else None,
                keep=Filter(someone=settings.keep_someone) if settings.filter else None,
            )
            if not settings.shard and not len(scored.items):  # a shard may have none
                reasons = [row["reason"] for row in scored.details.get("left_out") or ()]
                why = reasons[0] if reasons else "there are none"
                raise FileError(settings.source, f"expected sentences to score: {why}")
            if settings.out:
                result["outputs"] = [files.publish(rows, settings.folder / rows.name)]
            measurements = [scored]
        else:
            measured = instrument.measure(model, _read_material(instrument, settings), run)
            measurements = [measured] if isinstance(measured, Measurement) else measured
        measurements = [instrument.compact(measurement) for measurement in measurements]
        pooled = bool(settings.shard)
        documents = [measurement.to_dict(items=pooled) for measurement in measurements]
        return files.plain({**result, "measurements": documents})

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        return figures(result["measurements"])

    def pool(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Pool the shards: the measurement of one run over all of them."""
        names = {result["measure"] for result in results}
        if len(names) != 1:
            raise InputError(f"pooled: expected results of one measure, got {sorted(names)}")
        (name,) = names
        cls = _measures()[name]
        if cls.pool is Instrument.pool:
            raise InputError(f"pooled: {name} cannot be pooled over shards")
        measurements = []
        for result in results:
            (document,) = result["measurements"]
            measurement = Measurement.from_dict(document)
            left_out = [
                {"shard": result.get("shard", ""), **row}
                for row in measurement.details.get("left_out") or ()
            ]
            details = {**measurement.details, "left_out": left_out}
            measurements.append(replace(measurement, details=details))
        pooled = cls.pool(measurements).to_dict(items=False)
        return files.plain({"measure": name, "shards": len(results), "measurements": [pooled]})


MODELS = _Models()


def rows_name(source: str, ending: str) -> str:
    """Return the name of the file with the scores of a file of sentences.

    >>> rows_name("corpus/part-7.jsonl.zst", "csv")
    'part-7.csv'
    """
    name = PurePath(source).name
    while (end := PurePath(name).suffix) in ROWS_ENDINGS:
        name = name.removesuffix(end)
    return f"{name}.{ending}"


def _measures() -> dict[str, type[Instrument]]:
    """Return the instruments of models by name and by command."""
    declared = instruments("masked")
    commands = {cls.declaration.command: cls for cls in declared.values()}
    return {**declared, **{name: cls for name, cls in commands.items() if name}}


def _instrument(settings: ModelSettings) -> Instrument:
    known = _measures()
    if settings.measure not in known:
        raise UnknownNameError("measure", settings.measure, known)
    cls = known[settings.measure]
    return cls(**given_options([cls], settings))


def _choice_keys(cls: type[Instrument]) -> tuple[str, ...]:
    """Return the keys of the material that an instrument makes of names and files."""
    if cls.choose is Instrument.choose:
        return ()
    return tuple(inspect.signature(cls.choose).parameters)


def _keys_of(cls: type[Instrument]) -> tuple[str, ...]:
    """Return the keys that have an effect on a measure."""
    keys = [*instrument_keys(cls), *_choice_keys(cls)]
    keys += ["data"] if cls.read is not Instrument.read else []
    keys += ["vectors"] if cls.with_vectors is not Instrument.with_vectors else []
    keys += ["shard", "shards"] if cls.pool is not Instrument.pool else []
    if cls.measure_file is not Instrument.measure_file:
        keys += ["out", "rows", "filter", "keep_someone"]
    return tuple(keys)


def _choices(settings: ModelSettings) -> dict[str, Any]:
    """Return the material of the user's own that a cell names."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name in _choice_keys(_measures()[settings.measure])
        if (value := getattr(settings, name)) is not None
    }


def _read_material(instrument: Instrument, settings: ModelSettings) -> object:
    if settings.source:
        return instrument.read(settings.source)
    choices = _choices(settings)
    return instrument.choose(**choices) if choices else None


def _model_identity(source: str) -> dict[str, str]:
    """Return the name of a model, which its results have, and the hash of its files."""
    from evenhand.models.sources import MASKED as EMBEDDED
    from evenhand.models.sources import name_of

    known = source in EMBEDDED or source.startswith(HUB)
    name = source if known else name_of(source)
    return {"name": name, "content": files.model_digest(source)}


@lru_cache(maxsize=2)
def _load_model(
    source: str,
    name: str,
    content: str,  # noqa: ARG001
    device: str,
    dtype: Literal["float32", "bfloat16", "float16"],
    int8: bool,
) -> MaskedModel:
    """Load a model under a name; those of the last cells are still there."""
    from evenhand.models.masked import load

    return replace(load(source, device=device, dtype=dtype, int8=int8), name=name)
