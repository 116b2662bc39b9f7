"""Cells that measure a subject with declared instruments.

The options of the instruments are keys of the grid's file, and part of the identity of a cell. A
new instrument needs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from evenhand.errors import InputError, VocabularyError
from evenhand.grid import files
from evenhand.grid.task import Task, Workspace
from evenhand.instruments import Job, Option, Run, identity, instruments, plan, run_jobs

if TYPE_CHECKING:
    from evenhand.vectors.mitigation import Mitigation
    from evenhand.vectors.store import Case, Vectors

__all__ = ["VECTORS", "VectorSettings"]

FEW = 20
"""Parts of one kind that a table shows; all of them are in the result."""


class MeasureSettings(BaseModel):
    """The settings of every cell that measures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prob: float = Field(0.95, gt=0, lt=1, description="Probability of the intervals.")
    seed: int = Field(0, ge=0, lt=2**32)


def option_keys(option: Option) -> tuple[str, ...]:
    """Return the keys of an option in a grid's file: its name, and its flag if that differs.

    >>> option_keys(Option(name="threshold", type=float, default=0, help="", flag="--least"))
    ('threshold', 'least')
    """
    flags = [flag.lstrip("-").replace("-", "_") for flag in (option.flag or "").split()]
    return tuple(dict.fromkeys([option.name, *(flag for flag in flags if len(flag) > 1)]))


def add_options(base: type[BaseModel], kind: str) -> type[BaseModel]:
    """Return the settings with the options of all instruments of a subject.

    A value that is not given is None; the instrument has its default and checks the others.
    """
    fields: dict[str, Any] = {}
    for cls in instruments(kind).values():
        for option in cls.declaration.options:
            for key in option_keys(option):
                if key not in base.model_fields:
                    fields[key] = (Any, Field(None, description=option.help))
    return create_model(base.__name__, __base__=base, __module__=__name__, **fields)


def given_options(kind: str, settings: BaseModel) -> dict[str, Any]:
    """Return the options of instruments that a cell sets, by their names."""
    given: dict[str, Any] = {}
    for cls in instruments(kind).values():
        for option in cls.declaration.options:
            for key in option_keys(option):
                value = getattr(settings, key)
                if value is None:
                    continue
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


def _by_content(value: Any) -> Any:
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
    return {end: measurement[end] for end in ("value", "low", "high")}


def report_jobs(jobs: Sequence[Job], workspace: Workspace) -> Iterator[Job]:
    """Yield the jobs and report the progress before each."""
    for number, job in enumerate(jobs):
        if workspace.progress is not None:
            workspace.progress("measures", number, len(jobs), f"{job.metric} {job.query}")
        yield job


# ---- word vectors

DEBIAS_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "hard": ("k", "neutralize"),
    "soft": ("k", "neutralize", "lam", "scale"),
    "inlp": (),
}


class VectorSettings(MeasureSettings):
    """What one cell measures in one file of vectors; the options of the metrics come along."""

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
    debias: Literal["none", "hard", "soft", "inlp"] = Field(
        "none",
        description="Debias for the topic, then measure; the result also has the measures before "
        "and after, the tests of where bias hides and what usefulness was lost.",
    )
    k: int | None = Field(None, ge=1, description="hard, soft: dimensions of bias.")
    lam: float | None = Field(None, ge=0, description="soft: weight of the bias term.")
    scale: Literal["sum", "mean"] | None = Field(None, description="soft: how terms are joined.")
    neutralize: Literal["all", "stereotypes"] | None = Field(
        None, description="hard, soft: what becomes neutral."
    )
    case: Literal["fallback", "exact"] = "fallback"
    limit: int | None = Field(None, ge=1, description="Only the first so many words.")

    @property
    def topics(self) -> tuple[str, ...]:
        named = (self.topic,) if isinstance(self.topic, str) else self.topic
        return named if named or self.weat or self.wefat or self.query else ("gender",)

    @property
    def debias_options(self) -> dict[str, Any]:
        """The options of the debiasing method that were given."""
        return {
            name: value
            for name in DEBIAS_OPTIONS[self.debias]
            if (value := getattr(self, name)) is not None
        }


class _Vectors:
    name = "vectors"
    version = 2

    @cached_property
    def settings(self) -> type[BaseModel]:
        return add_options(VectorSettings, "vectors")

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Refuse options that no chosen debiasing method has."""
        files.refuse_unused(fixed, axes, "debias", DEBIAS_OPTIONS, "none")
        return dict(fixed), {name: list(values) for name, values in axes.items()}

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
        digest = _vectors_digest(settings.vectors)
        v = _load_vectors(settings.vectors, digest, settings.case, settings.limit)
        subject = {"name": v.name, "words": len(v), "dim": v.dim}
        run = Run(seed=settings.seed, prob=settings.prob)
        mitigation: Mitigation | None = None
        if settings.debias != "none":
            from evenhand.vectors.mitigation import mitigate

            (topic,), _, _ = _vector_material(settings)
            mitigation = mitigate(
                v, topic, settings.debias, **settings.debias_options, prob=run.prob, seed=run.seed
            )
            v = mitigation.debiased.vectors
        jobs = report_jobs(_vector_jobs(settings), workspace)
        measurements = run_jobs(v, jobs, run, strict=settings.metrics is not None)
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


VECTORS: Task = _Vectors()


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
    options = given_options("vectors", settings)
    jobs = [
        job for material in (*topics, *queries) for job in plan("vectors", material, names, options)
    ]
    if facts:
        cls = instruments("vectors")["wefat"]
        own = {option.name for option in cls.declaration.options}
        chosen = {name: value for name, value in options.items() if name in own}
        jobs += [job for fact in facts for job in plan("vectors", fact, "wefat", chosen)]
    return jobs


def _vectors_digest(source: str) -> str:
    from evenhand.vectors.store import EMBEDDED

    if source not in EMBEDDED:
        return files.file_digest(source)
    with resources.as_file(resources.files("evenhand.assets") / f"{source}.npz") as path:
        return files.file_digest(path)


@lru_cache(maxsize=2)
def _load_vectors(source: str, digest: str, case: Case, limit: int | None) -> Vectors:  # noqa: ARG001
    """Load vectors; those of the last cells are still there."""
    from evenhand.vectors.store import load

    return load(source, case=case, limit=limit)
