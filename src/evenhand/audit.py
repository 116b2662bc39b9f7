"""The main job: measure, mitigate, measure again, and write one report.

An audit is a list of stages. Each is computed once and saved under `stages/` with a key of all
that it depends on, so that the same command goes on where it stopped; everything else in the
folder (`results.json`, tables, figures, the page) is made from the stages.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeVar

from evenhand import __version__, lexicon
from evenhand.errors import EvenhandError, FileError, InputError, VocabularyError
from evenhand.lexicon import Query, Topic
from evenhand.report.html import write_report
from evenhand.report.saved import Account, StageResult, read_json, read_stages, stage_rows
from evenhand.report.tables import write_tables
from evenhand.report.verdicts import Verdict, judge
from evenhand.results import Comparison, Measurement, document, save_json, to_json
from evenhand.vectors.store import EMBEDDED, Vectors, load

__all__ = ["METHODS", "Audit", "Progress", "Stage", "audit"]

T = TypeVar("T")

DEFAULT_TOPICS = ("gender", "religion", "race")

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hard": {"method": "hard"},
    "soft, summed": {"method": "soft", "scale": "sum"},
    "soft, averaged": {"method": "soft", "scale": "mean"},
    "INLP": {"method": "inlp"},
}
"""The mitigations of a full audit, with the options each is called with."""


class Progress(Protocol):
    """What is told of how far an audit is."""

    def stage(self, title: str, number: int, of: int) -> None:
        """A stage begins."""

    def step(self, done: int, of: int) -> None:
        """So many of the stage's steps are done."""


class _Silent:
    def stage(self, title: str, number: int, of: int) -> None: ...

    def step(self, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of the work: what it is called, what it depends on, and how it is done.

    `compute` returns the fields of a `StageResult` that it fills.
    """

    kind: str
    title: str
    topic: Topic | None = None
    depends: Mapping[str, Any] = field(default_factory=dict)
    compute: Callable[[Progress], dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of its file."""
        return re.sub(r"[^\w]+", "-", f"{self.kind} {self.title}").strip("-").lower()

    def key(self, common: Mapping[str, Any]) -> str:
        """A hash of everything the result depends on."""
        topic = None if self.topic is None else asdict(self.topic)
        depends = {"stage": self.name, "topic": topic, **self.depends, **common}
        return hashlib.sha256(to_json(depends, indent=None).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found and where it is written; `failed` names the stages that did not end."""

    verdicts: tuple[Verdict, ...]
    stages: tuple[StageResult, ...] = field(repr=False)
    out: Path
    report: Path

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Everything measured, in the order of the stages."""
        return tuple(m for stage in self.stages for m in stage.measurements)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every measure and hiding test before and after a mitigation."""
        accounts = (account for stage in self.stages for account in stage.mitigations)
        return tuple(c for account in accounts for c in (*account.measures, *account.hiding))

    @property
    def failed(self) -> dict[str, str]:
        """The reason for each stage that failed."""
        return {stage.title: stage.failed for stage in self.stages if stage.failed}


def audit(
    vectors: str | os.PathLike[str] | Vectors = "glove",
    *,
    topics: Iterable[str | Topic] = DEFAULT_TOPICS,
    out: str | os.PathLike[str] = "audit-out",
    quick: bool = False,
    seed: int = 0,
    prob: float = 0.95,
    progress: Progress | None = None,
    command: Sequence[str] = (),
) -> Audit:
    """Audit word vectors on some topics and write the findings and a page into the folder `out`.

    `quick` tries one mitigation on one topic (gender if asked for) instead of four on each. What
    an earlier audit of the same vectors and settings left in `out` is taken over. `command` is
    kept in `run.json`.
    """
    asked = _topics(topics)
    v = vectors if isinstance(vectors, Vectors) else load(vectors)
    folder = _folder(out)
    settings = {"seed": seed, "prob": prob}
    identity = {
        "name": v.name, "words": len(v), "dim": v.dim, "case": v.case,
        "content_sha256": _content_hash(v), "notes": v.notes,
    }  # fmt: skip
    versions = _versions()
    common = {"vectors": identity, "settings": settings, "versions": versions}
    stages = vector_stages(v, asked, quick=quick, seed=seed, prob=prob)
    shown = progress or _Silent()
    done = []
    for number, stage in enumerate(stages, 1):
        shown.stage(stage.title, number, len(stages))
        done.append(_run(stage, folder / "stages", stage.key(common), shown))
    if not any(stage.measurements for stage in done):
        reasons = [s.failed for s in done if s.failed] + [k["reason"] for s in done for k in s.skipped]
        raise VocabularyError(f"nothing could be measured in {v.name}: {reasons[0]}")
    verdicts = tuple(
        judge(s.topic, s.measurements) for s in done if s.kind == "measures" and s.topic is not None
    )
    save_json(
        folder / "results.json",
        document(
            vectors=identity, settings={**settings, "quick": quick}, verdicts=verdicts,
            topics=[asdict(topic) for topic in asked], **stage_rows(done),
        ),
    )  # fmt: skip
    save_json(
        folder / "run.json",
        document(
            command=list(command), time=datetime.now(UTC).isoformat(timespec="seconds"),
            configuration={
                **settings, "quick": quick, "topics": [topic.name for topic in asked],
                "vectors": v.source,
            },
            seed=seed, versions=versions, vectors=identity,
            input_sha256=None if isinstance(vectors, Vectors) else _input_hash(v.source),
        ),
    )  # fmt: skip
    write_tables(folder, done)
    return Audit(
        verdicts=verdicts, stages=tuple(done), out=folder, report=write_report(folder)
    )


def vector_stages(
    v: Vectors, topics: Sequence[Topic], *, quick: bool, seed: int, prob: float
) -> list[Stage]:
    """The stages for static vectors."""
    settings = {"seed": seed, "prob": prob}
    stages = [
        Stage(
            kind="measures", title=topic.name, topic=topic,
            compute=partial(_measures, v, topic, settings),
        )
        for topic in topics
    ]  # fmt: skip
    stages += [
        Stage(kind="weat", title="WEAT 1 to 10", compute=partial(_weat, v, settings)),
        Stage(kind="wefat", title="WEFAT", compute=partial(_wefat, v, settings)),
        Stage(kind="analogies", title="analogies", compute=partial(_analogies, v, settings)),
    ]
    tried = [(topic, name) for topic in topics for name in METHODS]
    if quick:
        tried = [(next((t for t in topics if t.name == "gender"), topics[0]), "hard")]
    stages += [
        Stage(
            kind="mitigation", title=f"{topic.name}: {name}", topic=topic,
            depends={"options": METHODS[name]},
            compute=partial(_mitigation, v, topic, name, settings),
        )
        for topic, name in tried
    ]  # fmt: skip
    stages.append(Stage(kind="dimension", title="dimension", compute=partial(_dimension, settings)))
    return stages


def _run(stage: Stage, folder: Path, key: str, progress: Progress) -> StageResult:
    """The stage's result: the saved one if its key is the same, else computed and saved."""
    path, trouble = folder / f"{stage.name}.json", folder / f"{stage.name}.error.txt"
    try:
        saved = read_json(path)
        if saved.get("key") == key:
            return read_stages(saved)[0]
    except FileError:
        pass
    described = {
        "name": stage.name, "kind": stage.kind, "title": stage.title,
        "topic": None if stage.topic is None else stage.topic.name,
    }  # fmt: skip
    try:
        result = StageResult(**described, **stage.compute(progress))  # type: ignore[arg-type]
    except Exception as error:
        reason = str(error) if isinstance(error, EvenhandError) else repr(error)
        trouble.write_text(traceback.format_exc(), encoding="utf-8")
        return StageResult(**described, failed=reason)  # type: ignore[arg-type]
    save_json(path, document(key=key, **stage_rows([result])))
    trouble.unlink(missing_ok=True)
    return read_stages(read_json(path))[0]


def _steps(items: Sequence[T], progress: Progress) -> Iterator[T]:
    for done, item in enumerate(items):
        progress.step(done, len(items))
        yield item
    progress.step(len(items), len(items))


def _measures(
    v: Vectors, topic: Topic, settings: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    from evenhand.vectors.distances import distance_table
    from evenhand.vectors.measuring import run_jobs, topic_jobs

    measured = run_jobs(v, _steps(topic_jobs(topic), progress), **settings)
    try:
        distances = distance_table(v, topic)
    except VocabularyError:
        distances = None
    return {
        "measurements": measured.measurements,
        "skipped": measured.skipped,
        "distances": distances,
    }


def _weat(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.measuring import measure
    from evenhand.vectors.robustness import leave_one_out, split_half

    def all_of(query: Query) -> list[Measurement]:
        (whole,) = measure(v, query, ["weat"], **settings).measurements
        return [whole, leave_one_out(v, query, **settings), split_half(v, query, **settings)]

    return _all_or_skipped(
        [("weat", query.name, partial(all_of, query)) for query in lexicon.weat_queries()], progress
    )


def _wefat(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.metrics import wefat

    return _all_or_skipped(
        [
            (
                "wefat",
                q.name,
                lambda q=q: [
                    wefat(
                        v, q.words, q.attributes["female"], q.attributes["male"], q.shares,
                        query=q.name, **settings,
                    )
                ],
            )
            for q in lexicon.wefat_queries()
        ],
        progress,
    )  # fmt: skip


def _analogies(v: Vectors, settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from evenhand.vectors.metrics import accuracy, analogies

    asked = lexicon.analogies()
    jobs = [
        (
            "analogies",
            f"{a}→{c}",
            lambda a=a, c=c: [
                analogies(v, [(a, c)], asked.probes, query=f"{a}→{c}", **settings)
            ],
        )
        for a, c in asked.pairs
    ]
    jobs += [
        (
            "analogy_accuracy",
            relation,
            lambda r=relation, q=questions: [accuracy(v, q, query=r, **settings)],
        )
        for relation, questions in asked.controls.items()
    ]
    return _all_or_skipped(jobs, progress)


def _all_or_skipped(
    jobs: Sequence[tuple[str, str, Callable[[], list[Measurement]]]], progress: Progress
) -> dict[str, Any]:
    """Run the jobs; one whose words are not known is skipped, with the reason."""
    measurements: list[Measurement] = []
    skipped = []
    for metric, query, run in _steps(jobs, progress):
        try:
            measurements += run()
        except InputError as error:
            skipped.append({"metric": metric, "query": query, "reason": str(error)})
    return {"measurements": tuple(measurements), "skipped": tuple(skipped)}


def _mitigation(
    v: Vectors, topic: Topic, name: str, settings: Mapping[str, Any], progress: Progress  # noqa: ARG001
) -> dict[str, Any]:
    from evenhand.vectors.mitigation import mitigate

    return {"mitigations": (Account.of(name, mitigate(v, topic, **METHODS[name], **settings)),)}


def _dimension(settings: Mapping[str, Any], progress: Progress) -> dict[str, Any]:  # noqa: ARG001
    from evenhand.vectors.nulls import dimension_spread

    return {"measurements": (dimension_spread(**settings),)}


def _topics(topics: Iterable[str | Topic]) -> list[Topic]:
    asked = [topic if isinstance(topic, Topic) else lexicon.topic(topic) for topic in topics]
    names = [topic.name for topic in asked]
    if not names:
        raise InputError("topics: expected at least one, got none")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"topics: expected each name once, got '{twice}' twice")
    return asked


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise FileError(folder, "expected a folder to write into, got a file")
    for name in ("stages", "tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folder


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"evenhand": __version__, "python": platform.python_version(), **packages}


def _content_hash(v: Vectors) -> str:
    digest = hashlib.sha256(v.vocabulary.blob)
    digest.update(v.matrix.data if v.matrix.flags.c_contiguous else v.matrix.tobytes())
    return digest.hexdigest()


def _input_hash(source: str) -> str:
    """The hash of the file, or of the embedded asset."""
    asset = resources.files("evenhand.assets") / f"{source}.npz"
    with asset.open("rb") if source in EMBEDDED else Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
