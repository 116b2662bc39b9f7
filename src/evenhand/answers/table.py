"""Answers to prompts as they are measured: texts, what became of them, and whom they are about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.answers.logs import read_log
from evenhand.answers.outcomes import OUTCOMES, Outcome, outcome_of
from evenhand.display import Shown
from evenhand.errors import FileError, InputError, UnknownNameError, parameter
from evenhand.files import parse_number, plain, public_name, to_json
from evenhand.statistics.intervals import Floats
from evenhand.text.tables import Source, open_table, with_intersection

__all__ = ["Answers", "read_answers"]

Labels: TypeAlias = tuple[str, ...]
USUAL: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "answer", "response", "completion", "output", "generation"),
    "item": ("item", "item_id", "pair", "scenario", "id"),
    "wording": ("wording", "template", "paraphrase"),
    "topic": ("topic",),
    "prompt": ("prompt", "question", "input"),
    "outcome": ("outcome",),
    "sample": ("sample", "epoch"),
}
"""The names by which a column is recognised, the first of them that there is."""


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """Answers to prompts, one row per sample.

    Parameters
    ----------
    texts : tuple of str
    items : tuple of str
        What a prompt is about: prompts that differ in nothing but the group, or in the wording,
        are one item. Items are sampled; samples of one prompt are alike.
    groups : Mapping of str to tuple of (str or None)
        By the name of a column, the group that each prompt names; None where it names none.
    outcomes : tuple of str
        "answered", "refused", "empty", "cut off" or "failed"; by default as the text says.
    wordings : tuple of str
        The wording of each prompt, of those that all items are asked in; empty for one.
    topics : tuple of str
        What items have in common; topics are then the sampling unit. Empty if nothing.
    prompts : tuple of str
        The prompts themselves; empty where they are not known.
    samples : tuple of str
        The number or name of each answer among those to its prompt; empty where it is not known.
    scores : Mapping of str to array
        Numbers that other tools gave to the answers, by column; NaN where there is none.
    labels : Mapping of str to tuple of (str or None)
        What else is known of the answers, by column, such as a decision that was read from them.
    name : str

    """

    texts: Labels
    items: Labels
    groups: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    wordings: Labels = ()
    topics: Labels = ()
    prompts: Labels = ()
    samples: Labels = ()
    scores: Mapping[str, Floats] = field(default_factory=dict)
    labels: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    name: str = "answers"
    subject_kind: ClassVar[str] = "answers"

    def __post_init__(self) -> None:
        if not self.texts:
            raise InputError("answers: expected some, got none")
        if not self.outcomes:
            object.__setattr__(self, "outcomes", tuple(map(outcome_of, self.texts)))
        names = ("texts", "items", "outcomes", "wordings", "topics", "prompts", "samples")
        lengths = {name: len(getattr(self, name)) for name in names}
        for more in (self.groups, self.scores, self.labels):
            lengths |= {name: len(values) for name, values in more.items()}
        given = {name: length for name, length in lengths.items() if length}
        if len(set(given.values())) > 1 or "items" not in given:
            raise InputError(f"answers: expected texts, items and columns alike, got {given}")

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def digest(self) -> str:
        """The hash of everything it has."""
        content = plain({name: getattr(self, name) for name in self.__dataclass_fields__})
        return blake2b(to_json(content, indent=None).encode(), digest_size=16).hexdigest()

    @cached_property
    def columns(self) -> Mapping[str, tuple[str | None, ...]]:
        """The groups of every column and, of several columns, of their intersection."""
        return with_intersection(self.groups)

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """The number of answers by outcome."""
        return {outcome: self.outcomes.count(outcome) for outcome in OUTCOMES}

    @property
    def units(self) -> Labels:
        """The sampling unit of each answer: its topic, or its item where there are no topics."""
        return self.topics or self.items

    def take(self, rows: Sequence[int] | NDArray[Any]) -> Answers:
        """Some of the rows."""

        def chosen(values: Sequence[Any]) -> Any:
            return tuple(values[i] for i in rows) if len(values) else ()

        names = ("texts", "items", "outcomes", "wordings", "topics", "prompts", "samples")
        return replace(
            self,
            **{name: chosen(getattr(self, name)) for name in names},
            groups={name: chosen(values) for name, values in self.groups.items()},
            scores={name: values[np.asarray(rows)] for name, values in self.scores.items()},
            labels={name: chosen(values) for name, values in self.labels.items()},
        )

    @cached_property
    def readable(self) -> NDArray[np.intp]:
        """The rows whose text can be measured: answered or cut off."""
        return np.flatnonzero([each in ("answered", "cut off") for each in self.outcomes])

    def _headline(self) -> str:
        return f"{self.name}: {len(self):,} answers to {len(set(self.items)):,} items"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        columns: dict[str, Sequence[Any]] = {"item": self.items, **self.groups}
        columns |= {"outcome": self.outcomes, "text": self.texts}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_answers(
    source: Source,
    *,
    text: str | None = None,
    item: str | None = None,
    group: str | Sequence[str] = (),
    wording: str | None = None,
    topic: str | None = None,
    prompt: str | None = None,
    outcome: str | None = None,
    sample: str | None = None,
    score: str | Sequence[str] = (),
    label: str | Sequence[str] = (),
) -> Answers:
    """Read answers from a table.

    Parameters
    ----------
    source : path or DataFrame
        CSV, TSV, JSONL, Parquet, or a DataFrame of pandas or polars; what
        `evenhand answers collect` wrote, answers that another program saved, or a log of
        lm-evaluation-harness (`samples_*.jsonl`) or inspect (JSON).
    text, item, wording, topic, prompt, outcome, sample : str, optional
        The names of columns; by default recognised by usual names. Without items, prompts are.
    group : str or sequence of str
        The columns of the groups that prompts name. With several, their intersection is measured.
    score, label : str or sequence of str
        Columns of numbers, and of categories, that other tools gave to the answers. With one of
        them, the texts need not be there.

    Returns
    -------
    Answers

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"prompt": ["Describe a nurse.", "Describe a judge."],
    ...                       "answer": ["She cares.", "He rules."]})
    >>> read_answers(table).items
    ('Describe a nurse.', 'Describe a judge.')
    """
    groups, scores, labels = (
        [each] if isinstance(each, str) else list(each) for each in (group, score, label)
    )
    given = {
        "text": text,
        "item": item,
        "wording": wording,
        "topic": topic,
        "prompt": prompt,
        "outcome": outcome,
        "sample": sample,
    }
    log = None if not isinstance(source, str | os.PathLike) else read_log(os.fspath(source))
    with open_table(source if log is None else log) as table:
        name: str = table.name if log is None else os.fspath(cast("str", source))
        columns = {role: table.column(column, USUAL[role]) for role, column in given.items()}
        for column in (*groups, *scores, *labels):
            table.column(column)
        for role in ("wording", "topic", "sample"):
            if given[role] is None and columns[role] in groups:
                columns[role] = None  # the user gave it another role
        columns["item"] = columns["item"] or columns["prompt"]
        scored = bool(scores or labels)
        for role in ("text", "item"):
            if columns[role] is None and not (role == "text" and scored):
                raise FileError(
                    name,
                    f"which column is the {role}? Name it with {parameter(role)} (columns: "
                    f"{', '.join(table.columns)})",
                )
        named = (*columns.values(), *groups, *scores, *labels)
        used = [column for column in dict.fromkeys(named) if column is not None]
        cells = dict(zip(used, zip(*table.rows(*used), strict=True), strict=False))
    if not cells:
        raise FileError(name, "expected rows of answers, got a header only")

    def complete(role: str) -> Labels:
        column = columns[role]
        if column is None:
            return ()
        for number, cell in enumerate(cells[column], 1):
            if cell is None:
                raise FileError(name, f"row {number}: '{column}': expected a name, got none")
        return cast("Labels", cells[column])

    outcomes: tuple[Outcome, ...] = ()
    if columns["text"] is None:  # answers that other tools have read
        texts: Labels = ("",) * len(complete("item"))
        outcomes = tuple("answered" for _ in texts)
    else:
        texts = tuple(each or "" for each in cells[columns["text"]])
        if not any(texts):
            raise FileError(name, f"'{columns['text']}': expected texts of answers, got none")
    if columns["outcome"] is not None:
        given_outcomes = cells[columns["outcome"]]
        for number, cell in enumerate(given_outcomes, 1):
            if cell is not None and cell not in OUTCOMES:
                problem = UnknownNameError("outcome", cell, OUTCOMES)
                raise FileError(name, f"row {number}: '{columns['outcome']}': {problem}")
        outcomes = tuple(
            cast("Outcome", cell) if cell else outcome_of(text)
            for cell, text in zip(given_outcomes, texts, strict=True)
        )
    return Answers(
        texts=texts,
        items=complete("item"),
        groups={column: cells[column] for column in groups},
        outcomes=outcomes,
        wordings=complete("wording"),
        topics=complete("topic"),
        prompts=complete("prompt"),
        samples=complete("sample"),
        scores={column: _numbers(cells[column], column, name) for column in scores},
        labels={column: cells[column] for column in labels},
        name=public_name(name),
    )


def _numbers(cells: Sequence[str | None], column: str, name: str) -> Floats:
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        try:
            values[row] = parse_number(cell)
        except ValueError:
            raise FileError(
                name, f"row {row + 1}: '{column}': expected a number, got {cell!r:.60}"
            ) from None
    return values
