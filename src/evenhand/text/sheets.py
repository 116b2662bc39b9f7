"""Sheets for annotators: written from the filter's output, and read back when filled.

A sheet is a CSV for a spreadsheet, one row per sentence, with an empty verdict column. The id of a
row holds a hash of its sentence, so that rows whose cells were moved against each other are found.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError
from evenhand.files import replace_file
from evenhand.text.corpus.pipeline import check
from evenhand.text.tables import Source, json_objects, open_table

Answer = Literal["yes", "no"]
Sheet: TypeAlias = dict[str, tuple[Mapping[str, Any], Answer | None]]
"""The rows of a sheet by id: the fields of the sentence, and the verdict where there is one."""

_ANSWERS: dict[str, Answer] = {
    **dict.fromkeys(("yes", "y", "true", "1"), "yes"),
    **dict.fromkeys(("no", "n", "false", "0"), "no"),
}
_SHOWN = ("sentence", "pronoun", "antecedent", "masked")
_COLUMNS = ("id", *_SHOWN, "question", "verdict", "source", "line")
_CARRIED = ("line", "source", "sentence", "masked", "pronoun", "antecedent")


@checked
def write_sheet(
    filtered: str | os.PathLike[str],
    sheet: str | Path,
    *,
    sample: int | None = None,
    seed: int = 0,
) -> int:
    """Write a sheet for annotators from the output of the structural filter.

    Parameters
    ----------
    filtered : path
        The filter's JSONL.
    sheet : path
        The CSV to write. Give every annotator the same sheet.
    sample : int, optional
        The number of sentences to draw at random, in the file's order; without it, all.
    seed : int
        Seed of the sample.

    Returns
    -------
    int
        The number of sentences in the sheet.

    """
    check([os.fspath(filtered)], sheet)
    records = read_records(filtered)
    names = list(records)
    if sample is not None:
        if not 1 <= sample <= len(names):
            raise InputError(f"sample: expected 1 to {len(names)} sentences, got {sample}")
        drawn = np.random.default_rng(seed).choice(len(names), sample, replace=False)
        names = [names[i] for i in np.sort(drawn)]
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for name in names:
        writer.writerow({**records[name], "id": name, "question": _question(records[name])})
    content = text.getvalue()
    with replace_file(sheet) as file:
        # spreadsheets take a file for UTF-8 only where it begins with the byte order mark
        file.write(content.encode("utf-8" if content.isascii() else "utf-8-sig"))
    return len(names)


def read_records(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The filter's records by id, a number and a hash of the sentence."""
    records = {}
    for number, record in json_objects(path):
        for key in ("sentence", "masked", "pronoun"):
            if not isinstance(record.get(key), str):
                got = "nothing" if key not in record else repr(record[key])
                raise FileError(path, f"'{key}': expected text, got {got}", line=number)
        records[f"s{number}-{digest(record['sentence'])}"] = record
    if not records:
        raise FileError(path, "expected the filter's sentences, one JSON object per line, got none")
    return records


def read_sheet(path: Source, name: str) -> Sheet:
    """The rows of a filled sheet; `name` is what errors call it."""
    rows: Sheet = {}
    with open_table(path) as table:
        carried = [c for c in _CARRIED if c in table.columns and c != "sentence"]
        for key, sentence, answer, *fields in table.rows("id", "sentence", "verdict", *carried):
            if key is None and sentence is None and answer is None:
                continue
            if key is None:
                raise FileError(name, f"a row without an id: '{(sentence or answer or '')[:40]}'")
            if key in rows:
                raise FileError(name, f"the id {key} is there twice")
            if key.rpartition("-")[2] != digest(sentence or ""):
                raise FileError(
                    name,
                    f"id {key}: the sentence is not the one it was given for; were cells "
                    f"moved or changed? got '{(sentence or '')[:40]}'",
                )
            verdict = _ANSWERS.get(answer.casefold()) if answer is not None else None
            if answer is not None and verdict is None:
                raise FileError(name, f"id {key}: verdict: expected yes or no, got '{answer}'")
            record: dict[str, Any] = dict(zip(carried, fields, strict=True))
            if (record.get("line") or "").isdecimal():
                record["line"] = int(record["line"])
            rows[key] = {**record, "sentence": sentence}, verdict
    if all(verdict is None for _, verdict in rows.values()):
        raise FileError(name, f"none of its {len(rows)} rows has a verdict: expected yes or no")
    return rows


def digest(sentence: str) -> str:
    """The hash of a sentence in the id of its row."""
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:8]


def _question(record: Mapping[str, object]) -> str:
    person = f'"{record["antecedent"]}", a person' if record.get("antecedent") else "a person"
    return (
        f'Does "{record["pronoun"]}" stand for {person} whose gender nothing else in the sentence '
        "states? (yes/no)"
    )
