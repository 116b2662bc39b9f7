"""ANNDOC."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import FileError, InputError
from evenhand.intervals import Floats, jackknife, wilson
from evenhand.results import Measurement, document, replace_file, to_json
from evenhand.text.corpus.pipeline import check
from evenhand.text.tables import json_objects, open_table

if TYPE_CHECKING:
    import pandas as pd


def count_verdicts(ratings: Sequence[Sequence[str | None]]) -> tuple[tuple[str, ...], Floats]:
    """The categories, and how often each unit (a row of verdicts) was put in each.

    >>> names, counts = count_verdicts([["yes", "yes", None], ["no", "yes", "no"]])
    >>> names, counts.tolist()
    (('no', 'yes'), [[0.0, 2.0], [2.0, 1.0]])
    """
    names = tuple(sorted({verdict for unit in ratings for verdict in unit if verdict is not None}))
    counts = [[sum(verdict == name for verdict in unit) for name in names] for unit in ratings]
    return names, np.array(counts, dtype=float).reshape(len(counts), len(names))


def fleiss_kappa(counts: ArrayLike, prob: float = 0.95) -> Measurement:
    """Fleiss' kappa of units × categories counts, every unit judged by as many annotators.

    >>> found = fleiss_kappa([[4, 0], [4, 0], [3, 1], [0, 4], [1, 3], [4, 0]])
    >>> round(found.value, 3)
    0.625
    """
    table = _checked(counts)
    judged = np.unique(table.sum(axis=1))
    if judged.size != 1 or judged[0] < 2:
        raise InputError(
            "fleiss_kappa: expected as many verdicts on every unit, two or more, got "
            + " and ".join(f"{n:g}" for n in judged[:3])
        )
    return _agreement("fleiss_kappa", table, 0, prob)


def krippendorff_alpha(counts: ArrayLike, prob: float = 0.95) -> Measurement:
    """Krippendorff's nominal alpha of units × categories counts; verdicts may be missing.

    Units with fewer than two verdicts cannot agree or disagree: they are left out and counted.

    >>> found = krippendorff_alpha([[4, 0], [3, 0], [2, 1], [0, 4], [1, 0]])
    >>> round(found.value, 3), found.n
    (0.711, 4)
    """
    table = _checked(counts)
    pairable = table[table.sum(axis=1) >= 2]
    if not len(pairable):
        raise InputError("krippendorff_alpha: expected units with two verdicts or more, got none")
    return _agreement("krippendorff_alpha", pairable, 1, prob, dropped=len(table) - len(pairable))


def _checked(counts: ArrayLike) -> Floats:
    table = np.asarray(counts, dtype=float)
    if table.ndim != 2 or not table.size:
        raise InputError(f"counts: expected units × categories, got the shape {table.shape}")
    if not (np.isfinite(table).all() and (table >= 0).all() and (table == table.round()).all()):
        raise InputError("counts: expected whole numbers, 0 or more")
    return table


def _agreement(
    metric: str, table: Floats, correction: int, prob: float, dropped: int = 0
) -> Measurement:
    apart, totals = _apart(table), table.sum(axis=0)
    value = float(_coefficient(apart.sum(), totals, correction))
    low, high = _interval(table, value, correction, prob)
    return Measurement(
        metric=metric,
        query=f"{len(table)} units",
        value=value,
        low=low,
        high=high,
        n=len(table),
        ideal=1.0,
        worse="lower",
        prob=prob,
        interval="jackknife over units, with room for one more unit",
        details={
            "observed_agreement": float(1 - apart.sum() / totals.sum()),
            "shares": (totals / totals.sum()).tolist(),
        },
        notes=(f"{dropped} units with fewer than two verdicts left out",) if dropped else (),
    )


def _interval(table: Floats, value: float, correction: int, prob: float) -> tuple[float, float]:
    """The jackknife's interval, moved out to those that one more unit could give.

    Where one category is rare the sample often holds too few units of it: in simulations of 30
    units the jackknife alone covered as little as 37 percent where 95 was asked. Adding a unit
    that all put in the rarest category, or one that the annotators split evenly over the two most
    common, makes up for those not seen; the interval then errs on the wide side.
    """
    if math.isnan(value):
        return -1.0, 1.0
    totals, judged = table.sum(axis=0), int(table.sum(axis=1).max())
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0]
    rare, split = np.zeros((2, 1, totals.size))
    rare[0, order[-1]] = judged
    split[0, order[:2]] = judged - judged // 2, judged // 2
    ends = [
        _jackknifed(more, correction, prob)
        for more in (table, np.concatenate([table, rare]), np.concatenate([table, split]))
    ]
    return max(min(low for low, _ in ends), -1.0), min(max(high for _, high in ends), 1.0)


def _jackknifed(table: Floats, correction: int, prob: float) -> tuple[float, float]:
    apart, totals = _apart(table), table.sum(axis=0)
    without = _coefficient(apart.sum() - apart, totals - table, correction)
    return jackknife(float(_coefficient(apart.sum(), totals, correction)), without, prob)


def _apart(table: Floats) -> Floats:
    """The disagreement of each unit."""
    judged = table.sum(axis=1)
    apart: Floats = (judged**2 - (table**2).sum(axis=1)) / (judged - 1)
    return apart


def _coefficient(
    apart: float | Floats, totals: Floats, correction: int
) -> NDArray[np.float64] | np.float64:
    """1 - observed / expected disagreement; nan where all verdicts are of one category."""
    n = totals.sum(axis=-1)
    pairs = n**2 - (totals**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pairs > 0, 1 - apart * (n - correction) / pairs, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A sentence as the filter wrote it, each annotator's verdict, and that of the majority."""

    id: str
    record: Mapping[str, Any]
    verdicts: Mapping[str, Literal["yes", "no"] | None]
    verdict: Literal["yes", "no", "undecided"]

    def as_dict(self) -> dict[str, Any]:
        own = {"id": self.id, "verdict": self.verdict, "verdicts": dict(self.verdicts)}
        return {**self.record, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Judged sentences, the share that is structural, and how far the annotators agree.

    `annotators` counts each one's answers, cells left empty and sentences absent from the sheet.
    `agreement` has Fleiss' kappa and Krippendorff's alpha where they can be computed.
    """

    sentences: tuple[Judged, ...] = field(repr=False)
    majority: int
    annotators: Mapping[str, Mapping[str, int]]
    accuracy: Measurement
    agreement: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Sentences by the majority's verdict."""
        found = Counter(one.verdict for one in self.sentences)
        return {
            "sentences": len(self.sentences),
            "yes": found["yes"],
            "no": found["no"],
            "undecided": found["undecided"],
        }

    def as_dict(self) -> dict[str, Any]:
        """The JSON view, without the sentences."""
        return document(
            counts=self.counts,
            majority=self.majority,
            annotators={name: dict(tally) for name, tally in self.annotators.items()},
            measurements=[m.as_dict() for m in (self.accuracy, *self.agreement)],
            notes=list(self.notes),
        )

    def to_frame(self) -> pd.DataFrame:
        """A row a sentence, a column an annotator."""
        import pandas as pd

        return pd.DataFrame(
            [
                {"id": one.id, **one.record, **one.verdicts, "verdict": one.verdict}
                for one in self.sentences
            ]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sentences with their verdicts as JSONL, whole or not at all."""
        with replace_file(path) as file:
            file.writelines(
                f"{to_json(one.as_dict(), indent=None)}\n".encode() for one in self.sentences
            )

    def __str__(self) -> str:
        return "\n".join(str(m) for m in (self.accuracy, *self.agreement))


Answer = Literal["yes", "no"]

_ANSWERS: dict[str, Answer] = {
    "yes": "yes",
    "y": "yes",
    "true": "yes",
    "1": "yes",
    "no": "no",
    "n": "no",
    "false": "no",
    "0": "no",
}
_COLUMNS = (
    "id",
    "sentence",
    "pronoun",
    "antecedent",
    "masked",
    "question",
    "verdict",
    "source",
    "line",
)
_CARRIED = ("line", "source", "sentence", "masked", "pronoun", "antecedent")


def write_sheet(
    filtered: str | os.PathLike[str],
    sheet: str | Path,
    *,
    sample: int | None = None,
    seed: int = 0,
) -> int:
    """Write a sheet for annotators from the filter's JSONL; returns how many sentences it has.

    `sample` takes so many at random, in the file's order; give every annotator the same sheet.
    """
    check([os.fspath(filtered)], sheet)
    records = _records(filtered)
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


def read_sheets(
    sheets: Sequence[str | os.PathLike[str]],
    *,
    majority: int | None = None,
    filtered: str | os.PathLike[str] | None = None,
    prob: float = 0.95,
) -> Annotation:
    """Read the filled sheets, one an annotator, and judge each sentence by majority.

    A sentence counts as structural where at least `majority` annotators say yes (default: more
    than half of them, which is 3 of 4 as in D1 §4.1), as not where that can no longer be reached,
    and as undecided where the missing verdicts could tip it. With `filtered`, the file the sheet
    was made from, ids that are not in it are refused and its fields are carried over.
    """
    read = {_annotator(path, sheets): _read_sheet(path) for path in sheets}
    if not read:
        raise InputError("sheets: expected one or more, got none")
    needed = len(read) // 2 + 1 if majority is None else majority
    if not 1 <= needed <= len(read):
        raise InputError(f"majority: expected 1 to {len(read)}, the sheets given, got {majority}")
    rows = _every_row(read)
    if filtered is not None:
        records = _records(filtered)
        unknown = sorted(rows.keys() - records.keys())
        if unknown:
            more = f" nor of {len(unknown) - 1} more" if unknown[1:] else ""
            raise FileError(filtered, f"has no sentence of the sheets' id {unknown[0]}{more}")
        rows = {key: record for key, record in records.items() if key in rows}
    sentences = tuple(
        _judged(key, fields, {name: _verdict(sheet, key) for name, sheet in read.items()}, needed)
        for key, fields in rows.items()
    )
    agreement, notes = _measure_agreement(sentences, prob)
    return Annotation(
        sentences=sentences,
        majority=needed,
        annotators={name: _tally(sheet, rows) for name, sheet in read.items()},
        accuracy=_accuracy(sentences, len(read), needed, prob),
        agreement=agreement,
        notes=notes,
    )


_Sheet = dict[str, tuple[Mapping[str, Any], Answer | None]]


def _records(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The filter's records by id, a number and a hash of the sentence."""
    records = {}
    for number, record in json_objects(path):
        for key in ("sentence", "masked", "pronoun"):
            if not isinstance(record.get(key), str):
                got = "nothing" if key not in record else repr(record[key])
                raise FileError(path, f"'{key}': expected text, got {got}", line=number)
        records[f"s{number}-{_digest(record['sentence'])}"] = record
    if not records:
        raise FileError(path, "expected the filter's sentences, one JSON object a line, got none")
    return records


def _digest(sentence: str) -> str:
    return hashlib.sha256(" ".join(sentence.split()).encode()).hexdigest()[:8]


def _question(record: Mapping[str, Any]) -> str:
    person = f'"{record["antecedent"]}", a person' if record.get("antecedent") else "a person"
    return (
        f'Does "{record["pronoun"]}" stand for {person} whose gender nothing else in the sentence '
        "tells? (yes/no)"
    )


def _annotator(path: str | os.PathLike[str], sheets: Sequence[str | os.PathLike[str]]) -> str:
    """An annotator's name: the sheet's file name, or its path where two have the same."""
    paths = [Path(sheet) for sheet in sheets]
    if sum(other.resolve() == Path(path).resolve() for other in paths) > 1:
        raise InputError(f"sheets: expected different files, got {os.fspath(path)} twice")
    stem = Path(path).stem
    return os.fspath(path) if sum(other.stem == stem for other in paths) > 1 else stem


def _read_sheet(path: str | os.PathLike[str]) -> _Sheet:
    rows: _Sheet = {}
    with open_table(path) as table:
        carried = [name for name in _CARRIED if name in table.columns and name != "sentence"]
        for key, sentence, answer, *fields in table.rows("id", "sentence", "verdict", *carried):
            if key is None and sentence is None and answer is None:
                continue
            if key is None:
                raise FileError(path, f"a row without an id: '{(sentence or answer or '')[:40]}'")
            if key in rows:
                raise FileError(path, f"the id {key} is there twice")
            if key.rpartition("-")[2] != _digest(sentence or ""):
                raise FileError(
                    path,
                    f"id {key}: the sentence is not the one it was given for; were cells "
                    f"moved or changed? got '{(sentence or '')[:40]}'",
                )
            verdict = _ANSWERS.get(answer.casefold()) if answer is not None else None
            if answer is not None and verdict is None:
                raise FileError(path, f"id {key}: verdict: expected yes or no, got '{answer}'")
            record: dict[str, Any] = dict(zip(carried, fields, strict=True))
            if (record.get("line") or "").isdecimal():
                record["line"] = int(record["line"])
            rows[key] = {**record, "sentence": sentence}, verdict
    if all(verdict is None for _, verdict in rows.values()):
        raise FileError(path, f"none of its {len(rows)} rows has a verdict: expected yes or no")
    return rows


def _every_row(read: Mapping[str, _Sheet]) -> Mapping[str, Mapping[str, Any]]:
    """The sentences of all sheets by id, in the order they are met."""
    rows: dict[str, Mapping[str, Any]] = {}
    for name, sheet in read.items():
        others = {key for other, theirs in read.items() if other != name for key in theirs}
        if len(read) > 1 and others.isdisjoint(sheet):
            raise InputError(f"sheet {name}: has no id in common with the other sheets")
        rows |= {key: record for key, (record, _) in sheet.items() if key not in rows}
    return rows


def _verdict(sheet: _Sheet, key: str) -> Answer | None:
    return sheet[key][1] if key in sheet else None


def _judged(
    key: str, fields: Mapping[str, Any], verdicts: Mapping[str, Answer | None], needed: int
) -> Judged:
    tally = Counter(verdicts.values())
    if tally["yes"] >= needed:
        verdict = "yes"
    else:
        verdict = "undecided" if tally["yes"] + tally[None] >= needed else "no"
    return Judged(
        id=key,
        record=fields,
        verdicts=verdicts,
        verdict=cast(Literal["yes", "no", "undecided"], verdict),
    )


def _tally(sheet: _Sheet, rows: Mapping[str, object]) -> dict[str, int]:
    """An annotator's answers, cells left empty, and sentences the sheet does not have."""
    verdicts = Counter(verdict for _, verdict in sheet.values())
    return {
        "yes": verdicts["yes"],
        "no": verdicts["no"],
        "empty": verdicts[None],
        "absent": len(rows.keys() - sheet.keys()),
    }


def _accuracy(
    sentences: Sequence[Judged], annotators: int, needed: int, prob: float
) -> Measurement:
    decided = [one for one in sentences if one.verdict != "undecided"]
    yes = sum(one.verdict == "yes" for one in decided)
    share, low, high = wilson(yes, len(decided), prob)
    return Measurement(
        metric="accuracy",
        query=f"yes by {needed} of {annotators} or more",
        value=share,
        low=low,
        high=high,
        n=len(decided),
        ideal=1.0,
        worse="lower",
        interval="Wilson",
        prob=prob,
        left_out=tuple(one.id for one in sentences if one.verdict == "undecided"),
        details={"yes": yes, "no": len(decided) - yes},
    )


def _measure_agreement(
    sentences: Sequence[Judged], prob: float
) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Fleiss' kappa of the sentences all judged, Krippendorff's alpha of those two judged."""
    if len(sentences[0].verdicts) < 2:
        return (), ("one annotator: no agreement to measure",)
    names, counts = count_verdicts([list(one.verdicts.values()) for one in sentences])
    judged = counts.sum(axis=1)
    complete = counts[judged == judged.max()] if judged.max() == len(sentences[0].verdicts) else []
    measured, notes = [], []
    if len(complete):
        measured.append(fleiss_kappa(complete, prob))
        if len(complete) < len(counts):
            notes.append(
                f"Fleiss' kappa leaves out {len(counts) - len(complete):,} sentences that not "
                "every annotator judged"
            )
    else:
        notes.append("no sentence was judged by every annotator: no Fleiss' kappa")
    if judged.max() >= 2:
        measured.append(krippendorff_alpha(counts, prob))
    if len(names) == 1:
        notes.append(f"every verdict is {names[0]}: agreement beyond chance is not defined")
    return tuple(measured), tuple(notes)
