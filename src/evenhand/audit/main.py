"""An audit from beginning to end: the stages, then the results, tables, page and cards."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand import lexicon, threads
from evenhand.arguments import checked
from evenhand.audit.answers import answer_stages, given_stages
from evenhand.audit.fewshot import fewshot_stages
from evenhand.audit.inputs import Inputs, gather
from evenhand.audit.mitigation import debias_stages, finetune_stages
from evenhand.audit.posterior import posterior_stages
from evenhand.audit.stages import (
    Options,
    Progress,
    Silent,
    Stage,
    Texts,
    instrument_stages,
    loaded,
    run_stage,
    text_stages,
    topic_stages,
)
from evenhand.display import Result, ResultList
from evenhand.errors import FileError, InputError, VocabularyError, check_whole, parameter
from evenhand.files import (
    RunFolder,
    check_folder,
    document,
    read_document,
    save_csv,
    save_json,
    versions,
)
from evenhand.instruments import Run, correct_results, subject_of
from evenhand.lexicon import Topic
from evenhand.report.answer import AuditAnswer, Finding
from evenhand.report.cards import write_cards
from evenhand.report.findings import Findings, StageResult
from evenhand.report.interactive import Embed, check_embeddable, embed, save_embedded
from evenhand.report.page import write_report
from evenhand.report.verdicts import Verdict, verdicts
from evenhand.results import Comparison, Measurement
from evenhand.vectors.declarations import HIDING
from evenhand.wording import slug

if TYPE_CHECKING:
    from evenhand.answers.table import Answers
    from evenhand.charts import Chart
    from evenhand.classifier.predictions import Predictions
    from evenhand.fewshot.data import Dataset
    from evenhand.vectors.store import Vectors

DEFAULT_TOPICS = ("gender", "religion", "race")
PACKAGES = ("scipy", "scikit-learn", "torch", "transformers")
IGNORED = ("cli", "explore", "report", "assets", "charts.py", "wording.py")
"""Our own code that a stage's numbers do not depend on."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Result):
    """What an audit found and where it is written; `failed` names the stages that failed.

    `answer` is the first screen of the page as data; `print(audit.answer)` shows it as text.
    """

    verdicts: tuple[Verdict, ...]
    answer: AuditAnswer = field(repr=False)
    stages: tuple[StageResult, ...] = field(repr=False)
    out: Path
    report: Path

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One row per check: what was found, how large, how sure, and what is ruled out."""
        return self.answer.findings

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Everything measured, in the order of the stages."""
        return tuple(m for stage in self.stages for m in stage.measurements)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Every measure and hiding test before and after a mitigation."""
        return tuple(c for stage in self.stages for c in stage.comparisons)

    @property
    def failed(self) -> dict[str, str]:
        """The reason for each stage that failed."""
        return {stage.title: stage.failed for stage in self.stages if stage.failed}

    def _headline(self) -> str:
        listed = "; ".join(
            f"{v.name} {v.topic}: {v.level}".replace(" :", ":") for v in self.verdicts
        )
        return f"{listed or 'no verdicts'}. Page: {self.report}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        names = ("subject", "name", "topic", "level", "sentence")
        return [{name: getattr(v, name) for name in names} for v in self.verdicts]

    def _notes(self) -> Sequence[str]:
        return [f"{title}: failed: {reason}" for title, reason in self.failed.items()]

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot of the numbers behind the verdicts (an Altair chart)."""
        return ResultList(self.verdicts).plot(title=title or "", width=width)


@checked
def audit(
    vectors: str | os.PathLike[str] | Vectors | Any | None = None,
    *,
    model: str | os.PathLike[str] | Any | None = None,
    data: str | os.PathLike[str] | Dataset | Any | None = None,
    predictions: str | os.PathLike[str] | Predictions | Any | None = None,
    answers: str | os.PathLike[str] | Answers | Any | None = None,
    topics: Iterable[str | Topic] = DEFAULT_TOPICS,
    out: str | os.PathLike[str] = "audit-out",
    quick: bool = False,
    skip: Sequence[str] = (),
    columns: dict[str, str | None] | None = None,
    seed: int = 0,
    prob: float = 0.95,
    workers: int = 1,
    device: str = "auto",
    restart: bool = False,
    interactive: bool = False,
    progress: Progress | None = None,
    read_from: str | os.PathLike[str] | None = None,
    command: Sequence[str] = (),
) -> Audit:
    """Audit word vectors, a language model and labelled texts, and write a report.

    With nothing given the embedded defaults are audited, else only what is given. Stages of an
    earlier audit of the same inputs and settings in `out` are not computed again.

    Parameters
    ----------
    vectors : str, path, Vectors or vectors in memory, optional
        As for `evenhand.vectors.load`: an embedded name, a file, loaded vectors, `KeyedVectors` of
        gensim.
    model : str, path or model in memory, optional
        A language model of any kind (masked, causal, sentence encoder), as for
        `evenhand.models.load`: an embedded name, a folder, a GGUF file, `hf:NAME`, or the pair
        (network, tokenizer) of transformers. A model in memory is saved under `out` and audited
        from there.
    data : str, path, Dataset or DataFrame, optional
        Labelled texts: `simulated`, a file, `hf:NAME`, a loaded data set, or a DataFrame with the
        columns that `columns` names.
    predictions : Predictions, path or DataFrame, optional
        Of a classifier of any kind, as for `evenhand.classifier.read_predictions`.
    answers : Answers, path or DataFrame, optional
        What a model wrote, as for `evenhand.answers.read_answers`. Without them a causal model
        that has a chat template is asked some of the built-in prompts.
    topics : iterable of str or Topic
        The topics of the vectors.
    out : str or path
        The folder for the page, results, tables and figures.
    quick : bool
        Leave out fine-tuning, most mitigations and most training.
    skip : sequence of str
        Parts to leave out: corpus, vectors, posterior, masked, causal, encoder, answers,
        fewshot, predictions.
    columns : dict, optional
        The columns of the data: text, label, gender, and the codes male and female.
    seed, prob : int and float
        The random seed, and the probability of intervals.
    workers : int
        Processes that rewrite texts.
    device : str
        Where models run: auto, cpu, cuda, cuda:1 ….
    restart : bool
        Compute all stages again, also those of an earlier audit in `out`.
    interactive : bool
        Embed the audited model in the page, which then answers for any sentence, as `ask` does,
        without a server. For masked models of the family bert and of the size of `mini`; others are
        an error before the work starts.
    progress : Progress, optional
        Receives the stages and steps.
    read_from : str or path, optional
        The file that loaded `vectors` were read from; its hash is recorded.
    command : sequence of str
        The command line to record.

    Returns
    -------
    Audit
        The verdicts, the stages and where the report is. A stage that fails does not lose the
        others: `failed` has the reasons.

    """
    Run(seed=seed, prob=prob)
    check_whole(workers=workers)
    chosen = _topics(topics)
    folder = check_folder(out)
    new = not folder.exists()
    if model is not None and not isinstance(model, str | os.PathLike):
        model = _save_model(model, folder)
    given = gather(
        vectors,
        model,
        data,
        predictions=predictions,
        answers=answers,
        skip=skip,
        columns=columns,
        read_from=read_from,
        device=device,
    )
    _check_words(given, chosen)
    embedding = _embedding(given, device) if interactive else None
    with RunFolder.working(folder):
        if not (folder / "run.json").exists():  # an audit that is killed can be resumed
            save_json(folder / "run.json", document(command=list(command), files=[]))
        for name in ("stages", "work"):
            if restart:
                shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir(exist_ok=True)
        options = Options(
            quick=quick, seed=seed, prob=prob, workers=workers, device=device, work=folder / "work"
        )
        settings = {"seed": seed, "prob": prob}
        used = versions(*PACKAGES)
        common = {"settings": settings, "versions": used, "code": _code_hash()}
        stages = list(_stages(given, chosen, options))
        shown = progress or Silent()
        done: list[StageResult] = []
        seconds: dict[str, float] = {}
        for number, stage in enumerate(stages, 1):
            shown.stage(stage.title, number, len(stages))
            result, took = run_stage(stage, folder / "stages", stage.key(common), shown)
            done.append(result)
            seconds[stage.title] = took
        if all(s.empty or s.kind in ("dimension", "collect") for s in done):
            if new and not any(stage.failed for stage in done):
                shutil.rmtree(folder)
            raise _nothing(given, done)
        (folder / "tables").mkdir(exist_ok=True)
        described = {**settings, "quick": quick, "parts": given.parts}
        run = document(
            command=list(command),
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            configuration={**described, "topics": [topic.name for topic in chosen]},
            seed=seed,
            versions=used,
            subjects=given.subjects,
            seconds=seconds,
            threads=threads.record(),
        )
        findings = Findings(
            subjects=given.subjects,
            settings=described,
            stages=tuple(done),
            run=run,
            topics=tuple(chosen) if given.vectors is not None else (),
        )
        findings = replace(findings, stages=_correct(findings.stages))
        findings = replace(findings, verdicts=verdicts(findings))
        findings.save(folder)
        earlier = _files(folder)
        save_json(folder / "run.json", {**run, "files": earlier})
        save_embedded(folder, None)
        page, *figures = write_report(folder, embedding)
        files = [
            path.relative_to(folder).as_posix()
            for path in (*write_tables(folder, findings.stages), *figures)
        ]
        for stale in set(earlier) - set(files):
            (folder / stale).unlink(missing_ok=True)
        save_json(folder / "run.json", {**run, "files": files})
        write_cards(folder)
        return Audit(
            verdicts=findings.verdicts,
            answer=findings.answer,
            stages=findings.stages,
            out=folder,
            report=page,
        )


def _correct(stages: Sequence[StageResult]) -> tuple[StageResult, ...]:
    """The stages, p-values corrected for all tests of their subject on all topics."""
    families: dict[str, list[Measurement]] = {}
    for stage in stages:
        if stage.measures:
            families.setdefault(stage.subject, []).extend(stage.measurements)
    corrected = {subject: iter(correct_results(ms)) for subject, ms in families.items()}
    return tuple(
        replace(
            stage, measurements=tuple(next(corrected[stage.subject]) for _ in stage.measurements)
        )
        if stage.measures
        else stage
        for stage in stages
    )


def _embedding(given: Inputs, device: str) -> Embed:
    """What embeds the audited model in the page; an error if it cannot be embedded."""
    if "masked" not in given.parts:
        raise InputError(
            f"{parameter('interactive', True)}: expected the audit of a masked model, such as "
            f"mini, got an audit of {', '.join(given.parts)}"
        )
    check_embeddable(loaded(given.model, device))
    return lambda room: embed(loaded(given.model, device), room)


def _save_model(model: object, out: Path) -> Path:
    """Write a model in memory under the folder of the audit, as its stages load it by name."""
    from evenhand.models.loading import load
    from evenhand.models.memory import save

    folder = out / "work" / "models" / slug(load(model).name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    save(model, folder)
    return folder


def _stages(given: Inputs, topics: Sequence[Topic], options: Options) -> Iterable[Stage]:
    """The stages of all chosen parts."""
    v, texts = given.vectors, None if given.data is None else Texts(given.data, options)
    if "corpus" in given.parts and texts is not None:
        yield from text_stages(texts)
    if "vectors" in given.parts and v is not None:
        depends = {"vectors": given.subjects["vectors"]}
        yield from topic_stages(v, topics, depends, options)
        yield from instrument_stages("vectors", lambda: v, depends, options, topics=topics)
        yield from debias_stages(v, topics, depends, options)
    if "posterior" in given.parts and v is not None:
        yield from posterior_stages(v, topics, options)
    if given.kind in given.parts and texts is not None:
        yield from model_stages(given.model, texts, options)
    if "answers" in given.parts and given.answers is not None:
        yield from given_stages(given.answers, options)
    elif "answers" in given.parts:
        yield from answer_stages(given.model, options)
    if "fewshot" in given.parts and texts is not None:
        yield from fewshot_stages(given.model, texts.dataset, options, kind=given.kind)
    if "predictions" in given.parts and given.predictions is not None:
        predictions = given.predictions
        digest = {"predictions": predictions.digest}
        yield from instrument_stages("predictions", lambda: predictions, digest, options)


def model_stages(source: str, texts: Texts, options: Options) -> list[Stage]:
    """The stages for a model of any kind: its instruments that have built-in material.

    The data give sentences to score, and to masked models text to fine-tune on.
    """
    model = loaded(source, options.device)
    kind = subject_of(model)
    depends = {"model": model.fingerprint, "prob": options.prob, "seed": options.seed}
    stages = instrument_stages(
        kind, lambda: loaded(source, options.device), depends, options, texts
    )
    if kind == "masked":
        stages += finetune_stages(source, texts.dataset, depends, options)
    return stages


def _topics(topics: Iterable[str | Topic]) -> list[Topic]:
    chosen = [topic if isinstance(topic, Topic) else lexicon.topic(topic) for topic in topics]
    names = [slug(topic.name) for topic in chosen]
    if not names:
        raise InputError("topics: expected at least one, got none")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"topics: expected each name once, got '{twice}' twice")
    return chosen


def _check_words(given: Inputs, topics: Sequence[Topic]) -> None:
    """Vectors that have no word of any topic are refused before any work."""
    v = given.vectors
    if v is None or any(v.find(topic.words()).words for topic in topics):
        return
    names = ", ".join(topic.name for topic in topics)
    first = ", ".join(f"'{word}'" for word in v.words[:3])
    raise VocabularyError(
        f"{v.name}: expected vectors of words of the topics ({names}), got none; its {len(v):,} "
        f"words begin with {first}. Are they English words?"
    )


def _nothing(given: Inputs, done: Sequence[StageResult]) -> VocabularyError:
    """The error where nothing can be measured: there is no page then."""
    reasons = [s.failed for s in done if s.failed] or [k["reason"] for s in done for k in s.skipped]
    names = ", ".join(dict.fromkeys(str(each["name"]) for each in given.subjects.values()))
    return VocabularyError(f"nothing could be measured in {names}: {reasons[0]}")


def _files(folder: Path) -> list[str]:
    """The tables and figures of an earlier audit in this folder."""
    try:
        listed = read_document(folder / "run.json").get("files", [])
    except FileError:
        return []
    return [name for name in listed if Path(name).parent.as_posix() in ("tables", "figures")]


def _code_hash() -> str:
    """The hash of our own code and word lists: a stage computed by other code is computed again."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*")):
        known = path.suffix in (".py", ".toml", ".txt", ".csv")
        if known and path.relative_to(package).parts[0] not in IGNORED:
            digest.update(path.read_bytes())
    return digest.hexdigest()


FIELDS = (
    *("metric", "query", "value", "low", "high", "prob", "p_value", "p_corrected", "family", "n"),
    *("ideal", "worse", "interval", "test", "seed"),
)


def write_tables(folder: Path, stages: Sequence[StageResult]) -> list[Path]:
    """Write measurements, items, comparisons, utility and distances under `folder/tables`."""
    measuring = [stage for stage in stages if stage.kind != "mitigation"]
    mitigating = [stage for stage in stages if stage.kind == "mitigation" and stage.comparisons]
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "measurements": ({"stage": s.name, **_row(m)} for s in measuring for m in s.measurements),
        "items": (
            {"stage": s.name, "metric": m.metric, "query": m.query, **_flat(item)}
            for s in measuring
            for m in s.measurements
            for item in m.items
        ),
        "comparisons": (_comparison_row(s, c) for s in mitigating for c in s.comparisons),
        "utility": (
            {"topic": s.topic, "method": s.details["method"], **_row(m)}
            for s in mitigating
            for m in s.measurements
        ),
    }
    written = []
    for name, listed in rows.items():
        written.append(folder / "tables" / f"{name}.csv")
        save_csv(written[-1], listed)
    for stage in stages:
        if stage.distances is not None:
            written.append(folder / "tables" / f"distances-{slug(stage.distances.topic)}.csv")
            stage.distances.save(written[-1])
    return written


def _row(m: Measurement) -> dict[str, Any]:
    row = {name: getattr(m, name) for name in FIELDS}
    row |= {name: m.details.get(name) for name in ("null_low", "null_median", "null_high")}
    return {**row, "left_out": "; ".join(m.left_out)}


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: " ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in item.items()
    }


def _comparison_row(stage: StageResult, c: Comparison) -> dict[str, Any]:
    row = {
        "topic": stage.topic,
        "method": stage.details["method"],
        "kind": "hiding" if c.metric in HIDING else "measure",
        "metric": c.metric,
        "query": c.query,
    }
    for name in ("before", "after", "change"):
        side = getattr(c, name)
        row |= {name: side.value, f"{name}_low": side.low, f"{name}_high": side.high}
    return {
        **row,
        "prob": c.change.prob,
        "ideal": c.before.ideal,
        "worse": c.before.worse,
        "paired": c.paired,
        "interval": c.interval,
    }
