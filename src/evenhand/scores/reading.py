"""Scores of items by model, read from any table and from the logs of other tools.

| source | item | model | score |
| --- | --- | --- | --- |
| CSV, TSV, JSONL, Parquet, DataFrame | columns, named or recognised by their names | | |
| `samples_*.jsonl` of lm-evaluation-harness | task and `doc_id` | the folder's name | a metric |
| a JSON log of inspect | task and `id` | `eval.model` | a scorer; epochs are averaged |
| a folder of text files, one number a line | line | the file's name | the line |
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.display import Shown
from evenhand.errors import FileError, InputError, UnknownNameError, parameter
from evenhand.files import parse_json, parse_number, read_limited
from evenhand.statistics.intervals import Floats
from evenhand.text.corpus.compression import open_content, source_name, text_lines
from evenhand.text.tables import Source, json_objects, open_table

Role = Literal["item", "model", "score", "cluster", "group", "task"]
NAMES: Mapping[Role, tuple[str, ...]] = {
    "item": ("item", "item_id", "id", "doc_id", "sample_id", "question_id", "example_id"),
    "model": ("model", "model_name", "model_id", "system"),
    "score": ("score", "value", "correct", "is_correct", "acc", "accuracy", "exact_match"),
    "cluster": ("cluster", "template", "document", "passage"),
    "group": ("group", "category"),
    "task": ("task", "task_name", "benchmark"),
}
"""The names by which a column is recognised, the first of them that there is."""
LARGEST = 1e100
"""The largest score: squares and sums of scores are finite."""
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
INSPECT_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partially correct, no answer, as inspect's own metrics count them."""
HARNESS_KEYS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
"""What a sample of lm-evaluation-harness has besides its metrics."""
FACTOR = re.compile(r"(?P<model>.+)_(?P<factor>[A-Za-z]+)[-=](?P<level>\w+)")
"""A file's name such as gpt2_template-0: scores of the model gpt2 with template 0."""


class _Row(NamedTuple):
    item: str
    model: str
    score: float
    clusters: tuple[str, ...] = ()
    group: str = ""
    task: str = ""


Label = TypeVar("Label", str, tuple[str, ...])


class _Labels(Generic[Label]):
    """A column of labels by number: a label that many rows have is held once."""

    def __init__(self) -> None:
        self.numbers: dict[Label, int] = {}
        self._codes = array("q")

    def append(self, label: Label) -> None:
        self._codes.append(self.numbers.setdefault(label, len(self.numbers)))

    @property
    def codes(self) -> NDArray[np.int64]:
        return np.frombuffer(self._codes, dtype=np.int64)

    def take(self, rows: NDArray[np.intp]) -> tuple[Label, ...]:
        """The labels of some rows."""
        labels = list(self.numbers)
        return tuple(map(labels.__getitem__, self.codes[rows].tolist()))


class _Part(NamedTuple):
    """A source: its name, its first row, its clusters, and whether its rows have numbers."""

    name: str
    start: int
    factors: tuple[str, ...]
    numbered: bool


class _Rows:
    """The rows of all sources, column by column."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.items, self.models = _Labels[str](), _Labels[str]()
        self.groups, self.tasks = _Labels[str](), _Labels[str]()
        self.clusters = _Labels[tuple[str, ...]]()
        self._scores = array("d")

    @property
    def scores(self) -> Floats:
        return np.frombuffer(self._scores)

    def extend(
        self,
        name: str,
        rows: Iterable[_Row],
        factors: Sequence[str] = (),
        *,
        numbered: bool = False,
    ) -> None:
        """Add the rows of a source."""
        self.parts.append(_Part(name, len(self._scores), tuple(factors), numbered))
        for row in rows:
            self.items.append(row.item)
            self.models.append(row.model)
            self._scores.append(row.score)
            self.clusters.append(row.clusters)
            self.groups.append(row.group)
            self.tasks.append(row.task)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scores(Shown):
    """One row per item, model and, where there are any, cluster.

    Parameters
    ----------
    items, models : tuple of str
    scores : array of float
    clusters : Mapping of str to tuple of str
        By the name of a column: documents that items belong to, templates they were asked in.
    groups : tuple of str
        Of each row, or none.
    name : str
        Where they are from.
    left_out : tuple of str
        Rows without a score.

    """

    items: tuple[str, ...]
    models: tuple[str, ...]
    scores: Floats
    clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    name: str = "scores"
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)

    def _headline(self) -> str:
        return f"{self.name}: {len(self.scores):,} scores of {len(set(self.models))} models"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"item": item, "model": model, "score": float(score)}
            for item, model, score in zip(self.items, self.models, self.scores, strict=True)
        ]


@checked
def read(
    *sources: Source,
    item: str | None = None,
    model: str | None = None,
    score: str | None = None,
    cluster: str | Sequence[str] | None = None,
    group: str | None = None,
    task: str | Sequence[str] | None = None,
) -> Scores:
    """Read the scores of items by model.

    Parameters
    ----------
    *sources : path or DataFrame
        Tables, logs or folders as in the table above; their rows are joined.
    item, model, score, group : str, optional
        The names of columns; by default recognised by usual names. For logs, `score` is the metric
        (lm-evaluation-harness: also `metric,filter`) or scorer. A table without a column for the
        model has the scores of one, named like the file.
    cluster : str or sequence of str, optional
        Columns of what items have in common: a document they are from, or a template that all of
        them were asked in.
    task : str or sequence of str, optional
        The task of which scores are used, where a log or a column `task` has several. Of several
        names, or of a pattern such as `mmlu_*`, the scores of all tasks are used together, so that
        each item counts the same; `*` is all of them. They are groups where no column is.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("q1", "a", 1), ("q2", "a", 0), ("q1", "b", 1), ("q2", "b", 1)]
    >>> scores = read(pd.DataFrame(rows, columns=["question_id", "model", "correct"]))
    >>> scores.scores.tolist(), scores.models
    ([1.0, 0.0, 1.0, 1.0], ('a', 'a', 'b', 'b'))
    """
    if not sources:
        raise InputError("scores: expected a table, a log or a folder, got none")
    clusters = [cluster] if isinstance(cluster, str) else list(cluster or ())
    chosen: dict[Role, str | None] = {"item": item, "model": model, "score": score, "group": group}
    rows = _Rows()
    for source in sources:
        _add(rows, source, chosen, clusters)
    factors = {part.factors for part in rows.parts}
    if len(factors) > 1:
        shown = " and ".join(", ".join(names) or "none" for names in sorted(factors))
        raise InputError(f"scores: expected the same clusters in every source, got {shown}")
    [names] = factors
    name = rows.parts[0].name if len(rows.parts) == 1 else "scores"
    wanted = _of_tasks(rows, task)
    missing = np.isnan(rows.scores[wanted])
    known, left_out = wanted[~missing], wanted[missing]
    if not known.size:
        raise FileError(name, "expected scores, got none")
    _refuse_repeated(rows, known)
    groups = rows.groups.take(known)
    if len(set(groups)) == 1 and set(groups) == set(rows.tasks.take(known)):
        groups = ()  # a single task is no group of items
    labels = rows.clusters.take(known)
    return Scores(
        rows.items.take(known),
        rows.models.take(known),
        rows.scores[known],
        {factor: tuple(own[i] for own in labels) for i, factor in enumerate(names)},
        groups if any(groups) else (),
        name,
        tuple(
            f"{item} ({model}): no score"
            for item, model in zip(
                rows.items.take(left_out), rows.models.take(left_out), strict=True
            )
        ),
    )


def _of_tasks(rows: _Rows, wanted: str | Sequence[str] | None) -> NDArray[np.intp]:
    """The rows of the tasks that were asked for; of one task where nothing was."""
    known = sorted({*rows.tasks.numbers} - {""})
    if wanted is None or (not isinstance(wanted, str) and not wanted):
        if len(known) > 1:
            shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
            raise InputError(
                f"scores: expected one task, got {len(known)} ({shown}): choose one with "
                f"{parameter('task')}, or '*' for the mean over the items of all"
            )
        return np.arange(len(rows.scores))
    chosen: set[str] = set()
    for name in [wanted] if isinstance(wanted, str) else wanted:
        fitting = fnmatch.filter(known, name)
        if not fitting:
            raise UnknownNameError("task", name, known)
        chosen.update(fitting)
    return np.flatnonzero(np.isin(rows.tasks.codes, [rows.tasks.numbers[name] for name in chosen]))


def _refuse_repeated(rows: _Rows, known: NDArray[np.intp]) -> None:
    """An error that names the first row with the item, model and clusters of an earlier one."""
    keys = rows.items.codes[known] * len(rows.models.numbers) + rows.models.codes[known]
    keys = keys * len(rows.clusters.numbers) + rows.clusters.codes[known]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    repeated = order[1:][keys[1:] == keys[:-1]]
    if not repeated.size:
        return
    row = known[repeated.min() :][:1]
    [item], [model] = rows.items.take(row), rows.models.take(row)
    part = next(part for part in reversed(rows.parts) if part.start <= row[0])
    where = f"row {row[0] - part.start + 1}: " if part.numbered else ""
    other = f" with the same {' and '.join(part.factors)}" if part.factors else ""
    raise FileError(
        part.name,
        f"{where}item '{item}' has several scores of model "
        f"'{model}'{other}: name the column that distinguishes them with "
        f"{parameter('cluster')}, or average them",
    )


def _add(
    rows: _Rows, source: Source, chosen: Mapping[Role, str | None], clusters: Sequence[str]
) -> None:
    if not isinstance(source, str | os.PathLike):
        _add_table(rows, source, chosen, clusters)
        return
    path = Path(source)
    if path.is_dir():
        _add_folder(rows, path, chosen, clusters)
    elif _is_harness(path.name):
        _add_harness(rows, path, chosen["score"])
    elif path.suffix.lower() == ".eval":
        raise FileError(path, "expected a JSON log; inspect log convert --to json makes one of it")
    elif path.suffix.lower() == ".json":
        _add_inspect(rows, path, chosen["score"])
    else:
        _add_table(rows, source, chosen, clusters)


def _is_harness(name: str) -> bool:
    return name.startswith("samples_") and ".jsonl" in name


def _add_folder(
    rows: _Rows, folder: Path, chosen: Mapping[Role, str | None], clusters: Sequence[str]
) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    logs = [path for path in files if _is_harness(path.name)]
    if logs:
        for path in logs:
            _add_harness(rows, path, chosen["score"])
        return
    for ending in (".json", ".txt"):
        fitting = [path for path in files if ending in [s.lower() for s in path.suffixes[-2:]]]
        if fitting and ending == ".json":
            for path in fitting:
                _add_inspect(rows, path, chosen["score"])
            return
        if fitting:
            _add_lines(rows, folder, fitting)
            return
    tables = [path for path in files if path.suffix.lower() in (".csv", ".jsonl", ".parquet")]
    if not tables:
        raise FileError(
            folder,
            "expected samples_*.jsonl of lm-evaluation-harness, JSON logs of inspect, tables, or "
            "text files with one score a line, got none of them",
        )
    for path in tables:
        _add_table(rows, path, chosen, clusters)


# ---------------------------------------------------------------------------------------- tables


def _add_table(
    rows: _Rows, source: Source, chosen: Mapping[Role, str | None], clusters: Sequence[str]
) -> None:
    with open_table(source) as table:
        columns: dict[Role, str | None] = {
            role: table.column(given, NAMES[role]) for role, given in chosen.items()
        }
        for role in ("item", "score"):
            if columns[role] is None:
                raise FileError(
                    table.name,
                    f"which column is the {role}? Name it with {parameter(role)} (columns: "
                    f"{', '.join(table.columns)})",
                )
        columns["task"] = table.column(None, NAMES["task"])
        if columns["task"] in (*clusters, *(columns[role] for role in chosen)):
            columns["task"] = None  # the user gave it another role
        recognised = table.column(None, NAMES["cluster"])
        free = recognised is not None and recognised not in columns.values()
        factors = tuple(clusters) or ((recognised,) if recognised and free else ())
        for factor in factors:
            table.column(factor)
        used = [name for name in (*columns.values(), *factors) if name is not None]
        if len(set(used)) < len(used):
            twice = next(name for name in used if used.count(name) > 1)
            raise FileError(table.name, f"column '{twice}': expected one role, got several")
        alone = Path(table.name).name.split(".")[0]

        def read_rows() -> Iterator[_Row]:
            for number, cells in enumerate(table.rows(*used), 1):
                row: dict[str | None, str | None] = dict(zip(used, cells, strict=True))
                where = f"row {number}: "
                for name in (columns["item"], *factors, columns["model"]):
                    if name is not None and row[name] is None:
                        raise FileError(table.name, f"{where}'{name}': expected a name, got none")
                task, item = row.get(columns["task"]) or "", row[columns["item"]] or ""
                yield _Row(
                    f"{task}/{item}" if task else item,
                    row.get(columns["model"]) or alone,
                    _number(row[columns["score"]], table.name, where),
                    tuple(row[factor] or "" for factor in factors),
                    (row[columns["group"]] if columns["group"] else task) or "",
                    task,
                )

        rows.extend(table.name, read_rows(), factors, numbered=True)


def _number(cell: object, name: str | os.PathLike[str], where: str = "") -> float:
    """A cell as a number; NaN where it is empty."""
    if cell is None or cell == "":
        return math.nan
    word = str(cell).strip().lower()
    try:
        value = WORDS[word] if word in WORDS else parse_number(cell)
    except ValueError:
        raise FileError(name, f"{where}expected a number as score, got {cell!r:.60}") from None
    if abs(value) > LARGEST:
        raise FileError(
            name, f"{where}expected a finite score of at most {LARGEST:g}, got {cell!r:.60}"
        )
    return value


def _add_lines(into: _Rows, folder: Path, paths: Sequence[Path]) -> None:
    """Files of one number a line; a factor in every name is a cluster (`FACTOR`)."""
    stems = [path.name.split(".txt")[0] for path in paths]
    matches = [FACTOR.fullmatch(stem) for stem in stems]
    names = {match["factor"] if match else "" for match in matches}
    factor = names.pop() if len(names) == 1 else ""
    several = len({path.parent for path in paths}) > 1
    rows, lengths = [], dict[str, int]()
    for path, stem, match in zip(paths, stems, matches, strict=True):
        model, level = (match["model"], match["level"]) if match and factor else (stem, "")
        if several and factor:  # templates of one folder are not those of another
            level = f"{path.parent.relative_to(folder)}/{level}"
        name = source_name(os.fspath(path))
        with closing(open_content(os.fspath(path))) as file:
            own = [
                _number(line.strip(), name, f"line {number}: ")
                for number, line in text_lines(name, file)
            ]
        lengths[name] = len(own)
        if len(set(lengths.values())) > 1:
            first, expected = next(iter(lengths.items()))
            raise FileError(
                name, f"expected as many lines as {first} has ({expected:,}), got {len(own):,}"
            )
        clusters = (level,) if factor else ()
        rows += [_Row(str(i), model, score, clusters) for i, score in enumerate(own, 1)]
    into.extend(source_name(os.fspath(folder)), rows, (factor,) if factor else ())


# ------------------------------------------------------------------------------------------ logs


def _add_harness(into: _Rows, path: Path, wanted: str | None) -> None:
    """The samples of one task; items of different tasks are different, tasks are groups."""
    task = re.sub(r"_\d{4}-\d\d-\d\dT.*$", "", path.name[len("samples_") :].split(".jsonl")[0])
    model = path.absolute().parent.name.replace("__", "/")
    metric, _, rule = (wanted or "").partition(",")
    rows: list[_Row] = []
    rules: set[str] = set()
    for number, line in json_objects(path):
        filtered = str(line.get("filter", "none"))
        if rule and filtered != rule:
            rules.add(filtered)
            continue
        if "doc_id" not in line:
            raise FileError(path, "expected 'doc_id', got none", line=number)
        known = [key for key, value in line.items() if key not in HARNESS_KEYS and _scalar(value)]
        name = _chosen(path, metric, known, "metric", number)
        rows.append(
            _Row(
                f"{task}/{line['doc_id']}",
                model,
                _number(line[name], path, f"line {number}: "),
                (),
                task,
                task=task,
            )
        )
        rules.add(filtered)
        if not rule and len(rules) > 1:
            raise FileError(
                path,
                f"which filter? Name it with {parameter('score')} as {name},FILTER (filters: "
                f"{', '.join(sorted(rules))})",
            )
    if not rows:
        hint = f"; filters: {', '.join(sorted(rules))}" if rules else ""
        raise FileError(path, f"expected samples, got none{hint}")
    into.extend(source_name(os.fspath(path)), rows)


def _scalar(value: object) -> bool:
    return isinstance(value, int | float) or value is None


def _chosen(
    path: Path, wanted: str, known: Sequence[str], kind: str, line: int | None = None
) -> str:
    if wanted:
        if wanted not in known:
            raise FileError(path, str(UnknownNameError(kind, wanted, known)), line=line)
        return wanted
    if len(known) == 1:
        return known[0]
    usual = next((name for name in NAMES["score"] if name in known), None)
    if usual is not None:
        return usual
    shown = ", ".join(known) or "none with a number"
    raise FileError(path, f"which {kind}? Name it with {parameter('score')} ({shown})", line=line)


def _add_inspect(into: _Rows, path: Path, wanted: str | None) -> None:
    """The samples of one log; a sample's epochs are averaged."""
    log = parse_json(read_limited(path), path)
    about = log.get("eval") if isinstance(log, dict) else None
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(about, dict) or not isinstance(samples, list) or not samples:
        raise FileError(path, "expected a JSON log of inspect with 'eval' and 'samples'")
    model, task = str(about.get("model", path.stem)), str(about.get("task", path.stem))
    values: dict[str, list[float]] = {}
    for number, sample in enumerate(samples, 1):
        scores = sample.get("scores") if isinstance(sample, dict) else None
        if not isinstance(scores, dict) or "id" not in sample:
            raise FileError(path, f"sample {number}: expected 'id' and 'scores', got none")
        if not scores:  # the sample failed
            values.setdefault(str(sample["id"]), [])
            continue
        scorer = _chosen(path, wanted or "", list(scores), "scorer")
        grade = scores[scorer].get("value") if isinstance(scores[scorer], dict) else None
        value = INSPECT_GRADES.get(grade) if isinstance(grade, str) else None
        own = _number(grade if value is None else value, path, f"sample {number}: ")
        values.setdefault(str(sample["id"]), []).append(own)
    rows = [
        _Row(f"{task}/{name}", model, float(np.mean(own)) if own else math.nan, (), task, task=task)
        for name, own in values.items()
    ]
    into.extend(source_name(os.fspath(path)), rows)
