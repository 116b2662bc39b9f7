"""Cells that measure word vectors, as they are or debiased, as `evenhand vectors …` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import InputError, VocabularyError
from evenhand.grid import files
from evenhand.grid.task import Task, Workspace
from evenhand.grid.vector_files import vectors_digest, vectors_of
from evenhand.instruments import Job, Run, plan, run_jobs

if TYPE_CHECKING:
    from evenhand.lexicon import Query, Topic, WefatQuery
    from evenhand.vectors.mitigation import Mitigation

__all__ = ["TASK", "VectorSettings"]

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "hard": ("k", "neutralize"),
    "soft": ("k", "neutralize", "lam", "scale"),
    "inlp": (),
}
"""The options of each way to debias."""


class VectorSettings(BaseModel):
    """What one cell measures in one file of vectors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vectors: str = Field("glove", description="glove, or the path of a file.")
    topic: str | tuple[str, ...] = Field(
        (), description="A topic by name or the path of its TOML file, or several; without topic, "
        "weat, wefat and query: gender."
    )  # fmt: skip
    weat: tuple[int, ...] = Field((), description="Published WEATs, 1 to 10.")
    wefat: tuple[str, ...] = Field((), description="Published WEFATs by name.")
    query: tuple[str, ...] = Field((), description="Your own queries: JSON files.")
    metrics: tuple[str, ...] | None = Field(
        None, description="Only these; by default every metric that fits."
    )
    extended: bool = Field(False, description="Topics: add our own stereotype words.")
    debias: Literal["none", "hard", "soft", "inlp"] = Field(
        "none", description="Debias for the topic, then measure; the same measures before and "
        "after, where bias hides and what it cost come along."
    )  # fmt: skip
    k: int | None = Field(None, ge=1, description="hard, soft: dimensions of bias.")
    lam: float | None = Field(None, ge=0, description="soft: weight of the bias term.")
    scale: Literal["sum", "mean"] | None = Field(None, description="soft: how terms are joined.")
    neutralize: Literal["all", "stereotypes"] | None = Field(
        None, description="hard, soft: what becomes neutral."
    )
    permutations: int = Field(100_000, ge=0)
    null: int = Field(1000, ge=0, description="Draws of random words; 0: none.")
    case: Literal["fallback", "exact"] = "fallback"
    limit: int | None = Field(None, ge=1, description="Only the first so many words.")
    prob: float = Field(0.95, gt=0, lt=1)
    seed: int = Field(0, ge=0, lt=2**32)

    @property
    def topics(self) -> tuple[str, ...]:
        named = (self.topic,) if isinstance(self.topic, str) else self.topic
        return named if named or self.weat or self.wefat or self.query else ("gender",)

    @property
    def debiasing(self) -> dict[str, Any]:
        """The options of the way to debias that were given."""
        return {
            name: value
            for name in OPTIONS[self.debias]
            if (value := getattr(self, name)) is not None
        }


class _Vectors:
    name = "vectors"
    version = 1
    settings = VectorSettings

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Both as they are; an option that no way to debias has is refused."""
        files.refuse_idle(fixed, axes, "debias", OPTIONS, "none")
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
        _jobs(settings)

    def identity(self, settings: VectorSettings) -> dict[str, Any]:
        names = ("metrics", "extended", "debias", "permutations", "null", "case", "limit", "prob",
                 "seed")  # fmt: skip
        return {
            "vectors": {
                "name": PurePath(settings.vectors).name,
                "content": vectors_digest(settings.vectors),
            },
            "asked": files.content_digest(_asked(settings)),
            "options": {name: getattr(settings, name) for name in names} | settings.debiasing,
        }

    def group(self, settings: VectorSettings) -> str:
        return f"{settings.vectors} {settings.case} {settings.limit}"

    def compute(self, settings: VectorSettings, place: Workspace) -> dict[str, Any]:
        v = vectors_of(settings.vectors, settings.case, settings.limit)
        result: dict[str, Any] = {"vectors": {"name": v.name, "words": len(v), "dim": v.dim}}
        options: dict[str, Any] = {"prob": settings.prob, "seed": settings.seed}
        done: Mitigation | None = None
        if settings.debias != "none":
            from evenhand.vectors.mitigation import mitigate

            (topic,) = _asked(settings)[0]
            done = mitigate(v, topic, settings.debias, **settings.debiasing, **options)
            v = done.debiased.vectors
        found = run_jobs(
            v,
            _told(_jobs(settings), place),
            Run(**options),
            strict=settings.metrics is not None,
        )
        if not found:
            raise VocabularyError(f"nothing could be measured: {found.skipped[0]['reason']}")
        result |= {
            "measurements": list(found),
            "skipped": found.skipped,
            "mitigation": done,
        }
        return files.plain(result)

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        rows = {f"{one['metric']} {one['query']}": one for one in result["measurements"]}
        if result["mitigation"]:
            hiding, kept = result["mitigation"]["hiding"], result["mitigation"]["utility"]
            rows |= {f"{one['metric']} {one['query']}": one["after"] for one in hiding}
            rows |= {one["metric"]: one for one in kept}
        ends = ("value", "low", "high")
        return {name: {end: one[end] for end in ends} for name, one in rows.items()}


TASK: Task = _Vectors()

Asked = tuple["tuple[Topic, ...]", "tuple[Query, ...]", "tuple[WefatQuery, ...]"]


def _asked(settings: VectorSettings) -> Asked:
    """The topics and queries with all their words."""
    from evenhand import lexicon

    queries = (*map(lexicon.weat, settings.weat), *map(lexicon.read_query, settings.query))
    return (
        tuple(map(lexicon.topic, settings.topics)),
        queries,
        tuple(map(lexicon.wefat, settings.wefat)),
    )


def _told(jobs: Sequence[Job], place: Workspace) -> Iterator[Job]:
    """The jobs, the progress told as each is taken."""
    for number, job in enumerate(jobs):
        if place.progress is not None:
            place.progress("measures", number, len(jobs), f"{job.metric} {job.query}")
        yield job


def _jobs(settings: VectorSettings) -> Sequence[Job]:
    """What is measured; a metric that fits none of it is refused."""
    topics, queries, facts = _asked(settings)
    names = None if settings.metrics is None else list(settings.metrics)
    options = {name: getattr(settings, name) for name in ("permutations", "null", "extended")}
    jobs = [job for topic in topics for job in plan("vectors", topic, names, options)]
    jobs += [job for query in queries for job in plan("vectors", query, names, options)]
    jobs += [job for fact in facts for job in plan("vectors", fact, "wefat", options)]
    return jobs
