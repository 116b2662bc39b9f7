"""The stages of an audit: every instrument that is declared for audits, on its default material.

A stage is computed once and saved with a key of all that it depends on, so that an interrupted
audit resumes. What is particular to an instrument (sentences of the data, published tests, titles)
is its own method `audit`.
"""

from __future__ import annotations

import hashlib
import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from evenhand.errors import EvenhandError, FileError, InputError
from evenhand.files import document, plain, public, read_document, replace_file, save_json, to_json
from evenhand.instruments import LANGUAGE, Instrument, Run, identity, instruments, plan, run_jobs
from evenhand.lexicon import Topic
from evenhand.report.findings import StageResult
from evenhand.report.verdicts import Subject
from evenhand.wording import slug

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.text.tables import Corpus
    from evenhand.vectors.store import Vectors


class Progress(Protocol):
    """Receives how far an audit is."""

    def stage(self, title: str, number: int, of: int) -> None:
        """A stage starts."""

    def step(self, done: int, of: int) -> None:
        """So many of the stage's steps are done."""


class Silent:
    """Ignores progress."""

    def stage(self, title: str, number: int, of: int) -> None: ...

    def step(self, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an audit is run; `work` is the audit's folder for caches and unfinished work."""

    quick: bool = False
    seed: int = 0
    prob: float = 0.95
    workers: int = 1
    device: str = "auto"
    work: Path

    def run(self, progress: Progress, *, cached: bool = False) -> Run:
        """How instruments run; `cached`: the answers of a model, so that it resumes."""
        from evenhand.cache import Cache

        self.work.mkdir(parents=True, exist_ok=True)
        cache = Cache(self.work / "answers") if cached else None
        return Run(seed=self.seed, prob=self.prob, cache=cache, progress=progress.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One part of the work: its name, what it depends on, and how it is computed.

    `kind` is the name of an instrument, or of what is none. `measures` says whether it measures
    the subject as it was given. `compute` returns the fields of a `StageResult` that it fills:
    measurements, comparisons, skipped, distances, details.
    """

    kind: str
    title: str
    subject: Subject
    measures: bool = True
    topic: Topic | None = None
    depends: Mapping[str, Any] = field(default_factory=dict)
    compute: Callable[[Progress], dict[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of its file."""
        return slug(f"{self.kind} {self.title}")

    def key(self, common: Mapping[str, Any]) -> str:
        """A hash of everything the result depends on."""
        topic = None if self.topic is None else asdict(self.topic)
        depends = {"stage": self.name, "topic": topic, **self.depends, **common}
        return hashlib.sha256(to_json(depends, indent=None).encode()).hexdigest()


def run_stage(
    stage: Stage, folder: Path, key: str, progress: Progress
) -> tuple[StageResult, float]:
    """The result of a stage and the seconds it took: the saved one if its key is the same."""
    path, trouble = folder / f"{stage.name}.json", folder / f"{stage.name}.error.txt"
    try:
        saved = read_document(path)
        intact = saved.get("digest") == _digest([saved["seconds"], saved["stage"]])
        if saved.get("key") == key and intact:
            return StageResult.from_dict(saved["stage"]), float(saved["seconds"])
    except (FileError, KeyError, TypeError, ValueError):
        pass
    names = ("name", "kind", "title", "subject", "measures")
    about: dict[str, Any] = {name: getattr(stage, name) for name in names}
    about["topic"] = None if stage.topic is None else stage.topic.name
    began = time.monotonic()
    try:
        result = StageResult(**about, **stage.compute(progress))
    except Exception as error:
        reason = str(error) if isinstance(error, EvenhandError) else repr(error)
        with replace_file(trouble) as file:
            file.write(public(traceback.format_exc()).encode())
        return StageResult(**about, failed=reason), round(time.monotonic() - began, 1)
    seconds = round(time.monotonic() - began, 1)
    checksum = _digest([seconds, plain(result)])
    save_json(path, document(key=key, seconds=seconds, digest=checksum, stage=result))
    trouble.unlink(missing_ok=True)
    return StageResult.from_dict(read_document(path)["stage"]), seconds


def _digest(value: object) -> str:
    """The hash of a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def skip(metric: str, query: str, reason: object) -> dict[str, tuple[Mapping[str, str], ...]]:
    """The fields of a stage that could not be done."""
    return {"skipped": ({"metric": metric, "query": query, "reason": str(reason)},)}


# ------------------------------------------------------------------------------------ instruments


def instrument_stages(
    kind: str,
    load: Callable[[], Any],
    depends: Mapping[str, Any],
    options: Options,
    texts: Texts | None = None,
    topics: Sequence[Topic] = (),
    prompts: str = "",
) -> list[Stage]:
    """A stage for each instrument of a kind of subject that is declared for audits.

    With `prompts`, for those that measure answers to these built-in ones. One that takes topics is
    measured on these by `topic_stages`; it has a stage of its own only where it has a method
    `audit`.
    """
    stages = []
    for name, cls in instruments(kind).items():
        chosen = cls()
        if prompts and cls.prompts != prompts:
            continue
        if not cls.declaration.audits(kind) or (
            cls.audit is Instrument.audit and any(chosen.misfit(topic) is None for topic in topics)
        ):
            continue
        also: dict[str, Any] = {}
        if texts is not None and (cls.audit_uses_data or kind == "corpus"):
            also = {"data": texts.dataset.digest, "quick": options.quick}
        stages.append(
            Stage(
                kind=name,
                title=f"{kind}: {cls.declaration.label}",
                subject=cast(Subject, kind),
                depends={**depends, **also, **identity(chosen)},
                compute=partial(_measure, chosen, load, options, texts),
            )
        )
    return stages


def _measure(
    chosen: Instrument,
    load: Callable[[], Any],
    options: Options,
    texts: Texts | None,
    progress: Progress,
) -> dict[str, Any]:
    cached = any(map(chosen.declaration.measures, LANGUAGE))
    subject, run = load(), options.run(progress, cached=cached)
    try:
        return chosen.audit(subject, run, texts)
    except InputError as error:
        return skip(chosen.declaration.name, "", error)


def topic_stages(
    v: Vectors, topics: Sequence[Topic], depends: Mapping[str, Any], options: Options
) -> list[Stage]:
    """A stage for each topic, with all instruments of word vectors that take topics."""
    return [
        Stage(
            kind="measures",
            title=f"{topic.name}: measures",
            subject="vectors",
            topic=topic,
            depends=depends,
            compute=partial(_measure_topic, v, topic, options),
        )
        for topic in topics
    ]


def _measure_topic(
    v: Vectors, topic: Topic, options: Options, progress: Progress
) -> dict[str, Any]:
    from evenhand.vectors.distances import distance_table

    names = [
        name for name, cls in instruments("vectors").items() if cls.declaration.audits("vectors")
    ]
    run = options.run(progress)
    done = run_jobs(v, run.steps(plan("vectors", topic, names, fitting=True)), run)
    try:
        distances = distance_table(v, topic)
    except InputError:
        distances = None
    return {"measurements": tuple(done), "skipped": done.skipped, "distances": distances}


@lru_cache(maxsize=1)
def loaded(source: str, device: str = "auto") -> Any:
    """The model of any kind, loaded once for all stages."""
    from evenhand.models.loading import load

    return load(source, device=device)


# --------------------------------------------------------------------------- the texts of an audit

MOST_TEXTS, QUICK_TEXTS = 20_000, 5_000
"""Texts that the structural filter reads at most; of more a sample is drawn."""
EXAMPLES = 200
_BLOCK = 500


class Structural(NamedTuple):
    """The result of the structural filter: texts read, counts of its steps, accepted sentences.

    An accepted sentence has `sentence`, `masked`, `pronoun`, `antecedent` and `row`, the number of
    its text in the data.
    """

    texts: int
    counts: Mapping[str, int]
    accepted: tuple[Mapping[str, Any], ...]


@dataclass(slots=True)
class Texts:
    """The labelled texts of an audit, and the sentences that the structural filter accepts."""

    dataset: Dataset
    options: Options
    result: Structural | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The name of the data."""
        return self.dataset.name

    @property
    def most(self) -> int:
        """The number of texts that are read at most."""
        return QUICK_TEXTS if self.options.quick else MOST_TEXTS

    def corpus(self) -> Corpus:
        """The texts as a corpus with the columns text, label and gender."""
        import pandas as pd

        from evenhand.fewshot.data import FEMALE, MALE
        from evenhand.text.tables import Corpus

        data, codes = self.dataset, {MALE: "M", FEMALE: "F"}
        columns = {
            "text": data.texts,
            "label": [data.classes[label] for label in data.labels],
            "gender": [codes.get(int(gender)) for gender in data.genders],
        }
        return Corpus(pd.DataFrame(columns), data.name)

    def accepted(self) -> tuple[Mapping[str, Any], ...]:
        """The accepted sentences."""
        return self.filtered().accepted

    def filtered(self, progress: Progress | None = None) -> Structural:
        """The structural filter over the sentences of the data, or of a sample of many texts.

        The result is computed once, since several stages use it.
        """
        import numpy as np

        from evenhand.text.block import Block
        from evenhand.text.structural import Filter

        if self.result is not None:
            return self.result
        data, report = self.dataset, progress or Silent()
        rows = np.arange(len(data))
        if len(rows) > self.most:
            rng = np.random.default_rng(self.options.seed)
            rows = np.sort(rng.choice(rows, self.most, replace=False))
        work = Filter(split=True)
        counts: Counter[str] = Counter()
        accepted: list[Mapping[str, Any]] = []
        for start in range(0, len(rows), _BLOCK):
            report.step(start, len(rows))
            chosen = rows[start : start + _BLOCK].tolist()
            done = work(Block.of_documents([data.texts[row] for row in chosen], lines=chosen))
            counts.update(done.counts)
            for line in done.output.split("\n")[:-1]:
                row = json.loads(line)
                names = ("sentence", "masked", "pronoun", "antecedent")
                accepted.append({**{name: row[name] for name in names}, "row": row["line"]})
        report.step(len(rows), len(rows))
        self.result = Structural(len(rows), dict(counts), tuple(accepted))
        return self.result


def text_stages(texts: Texts) -> list[Stage]:
    """The stages for the data: the instruments of a corpus, and the structural filter."""
    data, options = texts.dataset, texts.options
    depends = {"data": data.digest}
    return [
        *instrument_stages("corpus", texts.corpus, {**depends, "name": data.name}, options, texts),
        Stage(
            kind="filter",
            title="data: structural filter",
            subject="corpus",
            measures=False,
            depends={**depends, "most": texts.most, "seed": options.seed},
            compute=partial(_filter, texts),
        ),
    ]


def _filter(texts: Texts, progress: Progress) -> dict[str, Any]:
    from evenhand.text.structural import REASONS, RULES, STEPS

    data, result = texts.dataset, texts.filtered(progress)
    return {
        "details": {
            "name": data.name,
            "texts": result.texts,
            "of": len(data),
            "steps": {step: result.counts.get(step, 0) for step in STEPS},
            "reasons": {name: result.counts.get(f"reason:{name}", 0) for name in REASONS},
            "rules": RULES,
            "examples": [
                {**row, "class": data.classes[data.labels[row["row"]]]}
                for row in result.accepted[:EXAMPLES]
            ],
        }
    }
