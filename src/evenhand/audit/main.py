"""An audit from beginning to end: the stages, then what is made of them."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import resources
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand import __version__, lexicon
from evenhand.audit.stages import Progress, Silent, run_stage
from evenhand.audit.vectors import vector_stages
from evenhand.errors import FileError, InputError, VocabularyError
from evenhand.lexicon import Topic
from evenhand.report.html import write_report
from evenhand.report.saved import StageResult, read_json, stage_rows
from evenhand.report.tables import slug, write_tables
from evenhand.report.verdicts import Verdict, judge
from evenhand.results import Comparison, Measurement, document, save_json
from evenhand.vectors.store import EMBEDDED, Vectors, load

__all__ = ["DEFAULT_TOPICS", "Audit", "audit"]

DEFAULT_TOPICS = ("gender", "religion", "race")


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
    read_from: str | os.PathLike[str] | None = None,
    command: Sequence[str] = (),
) -> Audit:
    """Audit word vectors on some topics and write the findings and a page into the folder `out`.

    `quick` tries one mitigation on one topic (gender if asked for) instead of four on each. What
    an earlier audit of the same vectors and settings left in `out` is taken over. `command` and
    the hash of the file `read_from` (where `vectors` are given as an object) are kept in
    `run.json`.
    """
    asked = _topics(topics)
    if isinstance(vectors, Vectors):
        v = vectors
    else:
        v, read_from = load(vectors), vectors
    folder = _folder(out)
    settings = {"seed": seed, "prob": prob}
    identity = {
        "name": v.name, "words": len(v), "dim": v.dim, "case": v.case,
        "content_sha256": _content_hash(v), "notes": v.notes,
    }  # fmt: skip
    versions = _versions()
    common = {
        "vectors": identity, "settings": settings, "versions": versions, "code": _code_hash(),
    }  # fmt: skip
    stages = vector_stages(v, asked, quick=quick, seed=seed, prob=prob)
    shown = progress or Silent()
    done = []
    for number, stage in enumerate(stages, 1):
        shown.stage(stage.title, number, len(stages))
        done.append(run_stage(stage, folder / "stages", stage.key(common), shown))
    _refuse_nothing(v, done)
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
    run = document(
        command=list(command), time=datetime.now(UTC).isoformat(timespec="seconds"),
        configuration={
            **settings, "quick": quick, "topics": [topic.name for topic in asked],
            "vectors": v.source,
        },
        seed=seed, versions=versions, vectors=identity,
        input_sha256=None if read_from is None else _input_hash(os.fspath(read_from)),
    )  # fmt: skip
    earlier = _files(folder)
    save_json(folder / "run.json", {**run, "files": earlier})
    page, *figures = write_report(folder)
    files = [
        path.relative_to(folder).as_posix() for path in (*write_tables(folder, done), *figures)
    ]
    for stale in set(earlier) - set(files):
        (folder / stale).unlink(missing_ok=True)
    save_json(folder / "run.json", {**run, "files": files})
    return Audit(verdicts=verdicts, stages=tuple(done), out=folder, report=page)


def _topics(topics: Iterable[str | Topic]) -> list[Topic]:
    asked = [topic if isinstance(topic, Topic) else lexicon.topic(topic) for topic in topics]
    names = [slug(topic.name) for topic in asked]
    if not names:
        raise InputError("topics: expected at least one, got none")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"topics: expected each name once, got '{twice}' twice")
    return asked


def _refuse_nothing(v: Vectors, done: Sequence[StageResult]) -> None:
    """Vectors without any of the words are the user's mistake, and get no page."""
    if any(stage.measurements for stage in done if stage.kind != "dimension"):
        return
    reasons = [s.failed for s in done if s.failed] or [k["reason"] for s in done for k in s.skipped]
    raise VocabularyError(f"nothing could be measured in {v.name}: {reasons[0]}")


def _files(folder: Path) -> list[str]:
    """The tables and figures that an earlier audit left here."""
    try:
        listed = read_json(folder / "run.json").get("files", [])
    except FileError:
        return []
    return [name for name in listed if Path(name).parent.as_posix() in ("tables", "figures")]


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


def _code_hash() -> str:
    """The hash of our own code and word lists: a stage made by other code is made anew."""
    digest = hashlib.sha256()
    root = resources.files("evenhand")
    for name in ("vectors", "lexicon", "audit", "intervals.py", "permutation.py", "paired.py"):
        _update(digest, root / name)
    return digest.hexdigest()


def _update(digest: hashlib._Hash, place: Traversable) -> None:
    if place.is_file():
        if place.name.endswith((".py", ".toml")):
            digest.update(place.read_bytes())
        return
    for entry in sorted(place.iterdir(), key=lambda entry: entry.name):
        _update(digest, entry)


def _content_hash(v: Vectors) -> str:
    digest = hashlib.sha256(v.vocabulary.blob)
    digest.update(v.matrix.data if v.matrix.flags.c_contiguous else v.matrix.tobytes())
    return digest.hexdigest()


def _input_hash(source: str) -> str:
    """The hash of the file, or of the embedded asset."""
    asset = resources.files("evenhand.assets") / f"{source}.npz"
    with asset.open("rb") if source in EMBEDDED else Path(source).open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
