"""Labelled texts: CSV, TSV, JSONL (packed too), Parquet, DataFrames, the hub, simulated ones."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.data_hub import HUB, open_hub
from evenhand.fewshot.data_set import Dataset, gender_code
from evenhand.fewshot.data_simulated import SIMULATED, simulated
from evenhand.text.tables import Cell, Source, Table, open_table

__all__ = ["LAYOUTS", "PROFESSIONS", "Layout", "read"]

PROFESSIONS = (
    "accountant", "architect", "attorney", "chiropractor", "comedian", "composer", "dentist",
    "dietitian", "dj", "filmmaker", "interior_designer", "journalist", "model", "nurse", "painter",
    "paralegal", "pastor", "personal_trainer", "photographer", "physician", "poet", "professor",
    "psychologist", "rapper", "software_engineer", "surgeon", "teacher", "yoga_teacher",
)  # fmt: skip
"""The professions of Bias in Bios (De-Arteaga et al. 2019) in the order of the hub's numbers."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a published data set, and its number codes where it has some.

    `gender` may be absent from a file: the genders are then unknown. `male` and `female` are codes
    beside the usual words, `labels` the names of classes given as numbers from 0 up.
    """

    name: str
    text: str
    label: str
    gender: str = ""
    male: str | None = None
    female: str | None = None
    labels: tuple[str, ...] = ()


LAYOUTS = (
    Layout("Bias in Bios", "hard_text", "profession", "gender", "0", "1", PROFESSIONS),
    Layout("biographies", "text", "occupation", "gender"),
    Layout("WikipediaGenderEvents", "Text", "Occupation", "Gender"),
    Layout("intents", "sentence", "label"),
    Layout("plain", "text", "label", "gender"),
)
"""The sets of columns that are known, tried in this order."""


def read(
    source: Source,
    *,
    text: str | None = None,
    label: str | None = None,
    gender: str | None = None,
    male: str | None = None,
    female: str | None = None,
    name: str | None = None,
) -> Dataset:
    """A data set from a file, a DataFrame, `hf:NAME` (all parts of a data set of the hub), or
    `simulated` with its dials, such as `simulated:leak=0.8`.

    The columns are those of the first of `LAYOUTS` that fits; `text`, `label` and `gender` name
    others. Gender is M or F, male or female in any case; other codes are named by `male` and
    `female`, and only Bias in Bios has numbers that are known (0 male, 1 female). What is left out
    is that of `Dataset.of`.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"bio": ["a", "b"], "job": ["cook", "poet"], "sex": ["F", "M"]})
    >>> read(table, text="bio", label="job", gender="sex").genders.tolist()
    [1, 0]
    """
    if isinstance(source, str):
        if source.partition(":")[0] == SIMULATED and not Path(source).exists():
            return simulated(source)
        if source.startswith(HUB):
            return _collected(open_hub(source), text, label, gender, male, female, name or source)
    called = Path(source).name if isinstance(source, str | os.PathLike) else "DataFrame"
    with open_table(source) as table:
        return _collected(table, text, label, gender, male, female, name or called)


def _collected(
    table: Table,
    text: str | None,
    label: str | None,
    gender: str | None,
    male: str | None,
    female: str | None,
    name: str,
) -> Dataset:
    layout = _layout(table, text, label, gender)
    codes = (layout.male if male is None else male, layout.female if female is None else female)
    wanted = [layout.text, layout.label, *([layout.gender] if layout.gender else [])]
    texts: list[Cell] = []
    labels: list[Cell] = []
    genders: list[int] = []
    for number, row in enumerate(table.rows(*wanted), 1):
        texts.append(row[0])
        try:
            labels.append(_class_name(row[1], layout))
            genders.append(gender_code(row[2] if layout.gender else None, *codes))
        except InputError as error:
            raise FileError(table.name, f"row {number}: {error}") from None
    try:
        return Dataset.of(texts, labels, genders, name=name)
    except InputError as error:
        raise FileError(table.name, str(error).removeprefix(f"{name}: ")) from None


def _class_name(cell: Cell, layout: Layout) -> Cell:
    if cell is None or not layout.labels or not cell.lstrip("-").isdecimal():
        return cell
    number = int(cell)
    if not 0 <= number < len(layout.labels):
        raise InputError(
            f"{layout.label}: expected a name or 0 to {len(layout.labels) - 1}, got {cell}"
        )
    return layout.labels[number]


def _layout(table: Table, text: str | None, label: str | None, gender: str | None) -> Layout:
    """The first known layout that fits, with the columns that were named in place of its own."""
    for option, column in (("text", text), ("label", label), ("gender", gender)):
        if column is not None and column not in table.columns:
            problem = f"{option}: {UnknownNameError('column', column, table.columns)}"
            raise FileError(table.name, problem)
    for known in LAYOUTS:
        chosen = replace(known, text=text or known.text, label=label or known.label)
        if {chosen.text, chosen.label} <= set(table.columns):
            own = (chosen.text, chosen.label) == (known.text, known.label)
            column = gender or (known.gender if known.gender in table.columns else "")
            if not own or column != known.gender:
                chosen = replace(chosen, male=None, female=None)
            return replace(chosen, gender=column, labels=known.labels if own else ())
    raise FileError(
        table.name,
        f"expected columns {', '.join(_expected(text, label))}, or others named with text= and "
        f"label=; the columns are {', '.join(table.columns) or 'none'}",
    )


def _expected(text: str | None, label: str | None) -> list[str]:
    """The columns that would have done, each pair once."""
    pairs = [f"{text or known.text} and {label or known.label}" for known in LAYOUTS]
    return [*dict.fromkeys(pairs[:-1]), f"or {pairs[-1]}"] if len(set(pairs)) > 1 else pairs[:1]
