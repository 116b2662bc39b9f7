"""The predictions of a classifier: from a table, or from a classifier and texts."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import check_fields, checked
from evenhand.display import Shown
from evenhand.errors import FileError, InputError, UnknownNameError, parameter, require_models
from evenhand.files import parse_json, parse_number, plain, to_json
from evenhand.statistics.intervals import Floats
from evenhand.text.tables import InputTable, Source, open_table, with_intersection

T = TypeVar("T")
Labels: TypeAlias = tuple[str, ...]
USUAL: Mapping[str, tuple[str, ...]] = {
    "true": ("y_true", "true", "label", "target", "gold"),
    "pred": ("y_pred", "pred", "prediction", "predicted", "yhat", "answer"),
    "item": ("item", "id"),
    "version": ("version",),
}
"""The names by which a column is recognised, the first of them that there is."""
BINARY = (("0", "1"), ("no", "yes"), ("false", "true"))
"""Pairs of classes, whatever their case, of which the second is the positive one."""


@dataclass(frozen=True, repr=False)
class Predictions(Shown):
    """What a classifier answered, what is true, and who it was about.

    Parameters
    ----------
    pred : tuple of str
        The predicted class of each text.
    true : tuple of str
        The true one; empty where it is not known.
    groups : Mapping of str to tuple of (str or None)
        By the name of a column, the group of each text; None where it is not known.
    scores : Mapping of str to array
        By class, the score of each text for it; empty where there are none.
    clusters : tuple of str
        What texts have in common, such as a person or a document; empty if nothing.
    items, versions : tuple of str
        The names of the texts, by which two classifiers are paired; of counterfactual texts, which
        are versions of one, and which version each is. Measures of groups use the originals only.
    positive : str
        The positive one of two classes, or the only class to be measured; empty if none is named.
    name : str

    """

    pred: Labels
    true: Labels = ()
    groups: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    scores: Mapping[str, Floats] = field(default_factory=dict)
    clusters: Labels = ()
    items: Labels = ()
    versions: Labels = ()
    positive: str = ""
    name: str = "predictions"
    subject_kind: ClassVar[str] = "predictions"

    def __post_init__(self) -> None:
        check_fields(self)
        lengths = {
            "pred": len(self.pred),
            **{n: len(getattr(self, n)) for n in ("true", "clusters", "items", "versions")},
            **{f"group {name}": len(labels) for name, labels in self.groups.items()},
            **{f"scores of {name}": len(values) for name, values in self.scores.items()},
        }
        given = {name: n for name, n in lengths.items() if n}
        if len(set(given.values())) > 1:
            raise InputError(f"predictions: expected columns of one length, got {given}")
        if not self.pred:
            raise InputError("predictions: expected some, got none")
        if self.versions and not self.items:
            raise InputError("predictions: versions: expected the item of each version, got none")

    def __len__(self) -> int:
        return len(self.pred)

    @cached_property
    def classes(self) -> Labels:
        """All classes, true or predicted, in order."""
        return tuple(sorted({*self.true, *self.pred}))

    @cached_property
    def columns(self) -> Mapping[str, tuple[str | None, ...]]:
        """The groups of every column and, of several columns, of their intersection."""
        return with_intersection(self.groups)

    @cached_property
    def originals(self) -> Predictions:
        """The rows that are people, not rewritten versions of their texts; all without versions."""
        from evenhand.text.rewrite.counterfactuals import ORIGINAL

        if not self.versions:
            return self
        rows = [row for row, version in enumerate(self.versions) if version == ORIGINAL]
        if not rows:
            raise InputError(
                f"predictions: expected rows whose version is '{ORIGINAL}', got "
                f"{', '.join(dict.fromkeys(self.versions))}"
            )
        return replace(self.take(rows), versions=())

    @property
    def notes(self) -> tuple[str, ...]:
        """How many rows measures of groups use, where these are not all."""
        used = len(self.originals)
        if used == len(self):
            return ()
        return (
            f"rows: {used:,} originals of {len(self):,}; the versions serve counterfactual "
            "measures",
        )

    def find_positive(self, given: object, known: Iterable[str]) -> str | None:
        """The class that is measured alone: the given one, or the positive one of two.

        Parameters
        ----------
        given : str or None
            Without it, the field `positive`; without that, 1 of 0 and 1, yes of no and yes, true
            of false and true.
        known : iterable of str
            The classes that can be measured.

        Returns
        -------
        str or None
            None where all classes are measured.

        """
        names = list(known)
        chosen = self.positive if given is None else str(given)
        if chosen:
            if chosen not in names:
                raise UnknownNameError("class", chosen, names)
            return chosen
        pair = sorted((name.lower().removesuffix(".0"), name) for name in self.classes)
        if tuple(key for key, _ in pair) in BINARY and pair[1][1] in names:
            return pair[1][1]
        return None

    @cached_property
    def digest(self) -> str:
        """The hash of everything it has."""
        content = plain({name: getattr(self, name) for name in self.__dataclass_fields__})
        return blake2b(to_json(content, indent=None).encode(), digest_size=16).hexdigest()

    @cached_property
    def units(self) -> tuple[Labels, NDArray[np.intp]]:
        """The names of what is sampled, clusters or single texts, and that of each row by number.

        Rows have the names of their items, or their numbers.
        """
        given = self.clusters or self.items or tuple(str(i) for i in range(1, len(self) + 1))
        names, codes = np.unique(given, return_inverse=True)
        return tuple(names.tolist()), codes

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Predictions:
        """Some of the rows."""

        def chosen(labels: Sequence[Any]) -> Any:
            return tuple(labels[i] for i in rows) if len(labels) else ()

        return replace(
            self,
            pred=chosen(self.pred),
            true=chosen(self.true),
            groups={name: chosen(labels) for name, labels in self.groups.items()},
            scores={name: values[np.asarray(rows)] for name, values in self.scores.items()},
            clusters=chosen(self.clusters),
            items=chosen(self.items),
            versions=chosen(self.versions),
        )

    def _headline(self) -> str:
        return f"{self.name}: {len(self):,} predictions of {len(self.classes)} classes"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        columns: dict[str, Sequence[Any]] = {"pred": self.pred}
        columns |= {"true": self.true} if self.true else {}
        columns |= dict(self.groups)
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]


@checked
def read_predictions(
    source: Source,
    *,
    true: str | None = None,
    pred: str | None = None,
    group: str | Sequence[str] = (),
    score: Mapping[str, str] | str | None = None,
    cluster: str | None = None,
    item: str | None = None,
    version: str | None = None,
    positive: str | int | None = None,
) -> Predictions:
    """Read predictions from a table.

    Parameters
    ----------
    source : path or DataFrame
        CSV, TSV, JSONL, Parquet, or a DataFrame of pandas or polars.
    true, pred, item, version : str, optional
        The names of columns; by default recognised by usual names. `item` and `version` are those
        of counterfactual texts. A column that is recognised, not named, is that of versions only
        if some rows are originals.
    group : str or sequence of str
        The columns of groups of people. With several, their intersection is measured too.
    score : Mapping of str to str, or str, optional
        For each class the column of its score, or a pattern with * for the class, such as "p *",
        for all columns that fit. Without `pred`, the class with the highest score
        is the prediction.
    cluster : str, optional
        The column of what texts have in common, such as a person or a document.
    positive : str, optional
        The positive one of two classes, or the only class to be measured; by default 1 of 0 and 1,
        yes of no and yes, true of false and true.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"y_true": ["nurse", "judge"], "y_pred": ["nurse", "nurse"],
    ...                       "gender": ["f", "m"]})
    >>> read_predictions(table, group="gender").classes
    ('judge', 'nurse')
    """
    from evenhand.text.rewrite.counterfactuals import ORIGINAL

    wanted = [group] if isinstance(group, str) else list(group)
    with open_table(source) as table:
        by_class = _score_columns(table, score) if isinstance(score, str) else dict(score or {})
        given = {"true": true, "pred": pred, "item": item, "version": version}
        columns = {role: table.column(name, USUAL[role]) for role, name in given.items()}
        for name in (*wanted, *by_class.values(), *([cluster] if cluster else [])):
            table.column(name)
        _check_roles(table.name, {**columns, "group": wanted})
        if columns["pred"] is None and not by_class:
            raise FileError(table.name, _which("prediction", "pred", table))
        counterfactual = columns["version"] is not None and columns["item"] is not None
        if not wanted and not counterfactual:
            raise FileError(table.name, _which("group of people", "group", table))
        if columns["true"] is None and not counterfactual:
            raise FileError(table.name, _which("true class", "true", table))
        named = (*columns.values(), *wanted, *by_class.values(), cluster)
        used = [column for column in dict.fromkeys(named) if column is not None]
        rows = list(table.rows(*used))
        name = table.name
        if not rows:
            raise FileError(name, "expected rows of predictions, got a header only")
        cells = {column: [row[i] for row in rows] for i, column in enumerate(used)}
        versions = columns["version"]
        if versions and version is None and wanted and ORIGINAL not in cells[versions]:
            columns["version"] = versions = None  # recognised by its name alone
        if versions and columns["item"] is None:
            raise FileError(name, _which("item that a version is of", "item", table))

    def labels(role: str) -> Labels:
        column = columns[role]
        return () if column is None else _complete(cells[column], column, name)

    scores = {
        label: np.array([_score(cell, column, i, name) for i, cell in enumerate(cells[column], 1)])
        for label, column in by_class.items()
    }
    predicted = labels("pred") or _highest(scores)
    return Predictions(
        pred=predicted,
        true=labels("true"),
        groups={column: tuple(cells[column]) for column in wanted},
        scores=scores,
        clusters=_complete(cells[cluster], cluster, name) if cluster else (),
        items=labels("item"),
        versions=labels("version"),
        positive="" if positive is None else str(positive),
        name=name,
    )


def _check_roles(name: str, columns: Mapping[str, str | Sequence[str] | None]) -> None:
    """Check that no column is, for example, the true class and the group at the same time."""
    roles: dict[str, str] = {}
    for role, value in columns.items():
        for column in [value] if isinstance(value, str) else value or ():
            if roles.setdefault(column, role) != role:
                raise FileError(
                    name,
                    f"'{column}': expected one use of a column, got it as {roles[column]} and as "
                    f"{role}",
                )


@runtime_checkable
class Pipeline(Protocol):
    """A pipeline of transformers for text classification."""

    model: object
    tokenizer: object


@checked
def predict(
    classifier: Any,
    texts: Sequence[str],
    *,
    true: Sequence[str] = (),
    groups: Mapping[str, Sequence[str | None]] | None = None,
    clusters: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    versions: bool | Sequence[str] = False,
    batch: int = 64,
) -> Predictions:
    """The predictions of a classifier on texts.

    Parameters
    ----------
    classifier : path, object or callable
        A folder with a sequence classifier in the transformers layout, an object with
        `predict_proba(texts)` and `classes_` as in scikit-learn (a pipeline, SetFit), a pipeline
        of transformers for text classification, or a function from texts to scores (texts,
        classes).
    texts : sequence of str
    true, groups, clusters
        As for `Predictions`.
    classes : sequence of str, optional
        The classes of the scores' columns; by default `classifier.classes_`, or `labels`.
    versions : bool or sequence of str
        Whether each text is followed by its counterfactual versions, or by some of them
        (`evenhand.text.counterfactuals`); the two counterfactual measures need them.
    batch : int
        Texts per call.

    Examples
    --------
    >>> long = lambda texts: [[len(text) / 100, 1 - len(text) / 100] for text in texts]
    >>> predict(long, ["a short text"], classes=["long", "short"]).pred
    ('short',)
    """
    if not len(texts):
        raise InputError("texts: expected some, got none")
    items: list[int] = []
    names_of_versions: list[str] = []
    if versions:
        from evenhand.text.rewrite.counterfactuals import VERSIONS, counterfactuals

        chosen = tuple(VERSIONS) if isinstance(versions, bool) else tuple(versions)
        rows = [
            (item, version, text)
            for item, own in enumerate(counterfactuals(texts, chosen))
            for version, text in own.items()
        ]
        items, names_of_versions = [row[0] for row in rows], [row[1] for row in rows]
        texts = [text for _, _, text in rows]

    def of_rows(labels: Sequence[T]) -> Sequence[T]:
        """Labels of texts as labels of their versions."""
        return [labels[item] for item in items] if items and len(labels) else labels

    if isinstance(classifier, str | os.PathLike):
        classifier = _load(classifier)
    answer = getattr(classifier, "predict_proba", None)
    pipeline = answer is None and isinstance(classifier, Pipeline)
    known = getattr(classifier, "classes_", None)
    if known is None:  # SetFit
        known = getattr(classifier, "labels", None)
    names = list(classes if classes is not None else () if known is None else known)
    if pipeline and not names:
        labels = classifier.model.config.id2label
        names = [labels[i] for i in sorted(labels)]
    if not names:
        raise InputError("classes: expected the names of the scores' columns, got none")
    call: Callable[[Sequence[str]], Any] = answer or classifier
    if pipeline:

        def call(part: Sequence[str]) -> Any:
            rows = classifier(list(part), top_k=None, truncation=True)
            scored = [{entry["label"]: entry["score"] for entry in row} for row in rows]
            return [[row[name] for name in names] for row in scored]

    blocks = [
        np.asarray(call(list(texts[first : first + batch])), dtype=float)
        for first in range(0, len(texts), batch)
    ]
    table = np.concatenate(blocks)
    if table.shape != (len(texts), len(names)):
        expected = (len(texts), len(names))
        raise InputError(f"classifier: expected scores of shape {expected}, got {table.shape}")
    if not np.isfinite(table).all():
        raise InputError("classifier: expected finite scores, got others")
    scores = {str(name): table[:, i] for i, name in enumerate(names)}
    return Predictions(
        pred=_highest(scores),
        true=tuple(map(str, of_rows(true))),
        groups={name: tuple(of_rows(own)) for name, own in (groups or {}).items()},
        scores=scores,
        clusters=tuple(map(str, of_rows(clusters))),
        items=tuple(str(item + 1) for item in items),
        versions=tuple(names_of_versions),
    )


def _load(folder: str | os.PathLike[str]) -> Any:
    """A text-classification pipeline of the sequence classifier in a folder."""
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise FileError(path, "expected the folder of a sequence classifier with config.json")
    heads = parse_json((path / "config.json").read_bytes(), path / "config.json")
    names = heads.get("architectures") if isinstance(heads, dict) else None
    if not names or not str(names[0]).endswith("ForSequenceClassification"):
        raise FileError(path, f"expected a model ForSequenceClassification, got {names}")
    require_models(f"the sequence classifier {path.name}")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    model = AutoModelForSequenceClassification.from_pretrained(path).eval()
    tokenizer = AutoTokenizer.from_pretrained(path)
    longest = getattr(model.config, "max_position_embeddings", tokenizer.model_max_length)
    tokenizer.model_max_length = min(tokenizer.model_max_length, longest)
    return pipeline("text-classification", model=model, tokenizer=tokenizer)


def _highest(scores: Mapping[str, Floats]) -> Labels:
    names = list(scores)
    if len(names) == 1:
        raise InputError("scores: expected those of two classes or more, or predictions, got one's")
    best = np.argmax(np.stack([scores[name] for name in names]), axis=0)
    return tuple(names[i] for i in best)


def _score_columns(table: InputTable, pattern: str) -> dict[str, str]:
    """The columns that a pattern with * fits, by what stands for it."""
    before, star, after = pattern.partition("*")
    if not star or "*" in after:
        raise InputError(f"score: expected a pattern with one * for the class, got '{pattern}'")
    by_class = {
        name[len(before) : len(name) - len(after)]: name
        for name in table.columns
        if name.startswith(before) and name.endswith(after) and len(name) > len(before + after)
    }
    if not by_class:
        columns = ", ".join(table.columns)
        raise FileError(table.name, f"no column fits '{pattern}' (columns: {columns})")
    return by_class


def _which(what: str, name: str, table: InputTable) -> str:
    columns = ", ".join(table.columns)
    return f"which column is the {what}? Name it with {parameter(name)} (columns: {columns})"


def _complete(cells: Iterable[str | None], column: str, name: str) -> Labels:
    labels = []
    for number, cell in enumerate(cells, 1):
        if cell is None:
            raise FileError(name, f"row {number}: '{column}': expected a value, got none")
        labels.append(cell)
    return tuple(labels)


def _score(cell: str | None, column: str, number: int, name: str) -> float:
    try:
        value = parse_number(cell or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FileError(name, f"row {number}: '{column}': expected a number, got {cell!r}")
    return value
