"""The share of filtered sentences that annotators find structural, and how far they agree."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError
from evenhand.files import real_path, replace_file, to_json
from evenhand.instruments import Instrument, Run, instrument, option
from evenhand.results import Items, Measurement
from evenhand.statistics.agreement import (
    count_verdicts,
    fleiss_kappa,
    krippendorff_alpha,
    observed_agreement,
)
from evenhand.statistics.intervals import Floats, wilson
from evenhand.text.sheets import Answer, Sheet, digest, read_records, read_sheet
from evenhand.text.tables import Corpus, Source

Sheets: TypeAlias = Sequence[str | os.PathLike[str]] | Mapping[str, Source]
"""Paths of filled sheets, one per annotator, or tables by the annotator's name."""

Verdict = Literal["yes", "no", "undecided"]


@instrument(
    name="annotation",
    subjects=("corpus",),
    label="Accuracy of the structural filter",
    question="How many of the filtered sentences are structural, by the majority of annotators?",
    material="filled sheets, one per annotator (CSV)",
    reading=(
        "The share of decided sentences that the majority calls structural. The parts are the "
        "annotators' agreement above chance: Fleiss' kappa and Krippendorff's alpha, 1 where all "
        "agree and 0 at chance."
    ),
    bias=False,
    formula="yes / (yes + no)",
    source="Ye et al. (2021), §4.1",
    ideal=1.0,
    worse="lower",
    stereotype=0,
)
@dataclass(frozen=True, kw_only=True)
class Annotation(Instrument):
    """The majority's verdict on each sentence, the share of yes, and the agreement as parts."""

    majority: int | None = option(
        None, minimum=1, help="Yes verdicts needed (default: more than half of the sheets)."
    )

    def measure(
        self,
        subject: Corpus | None,
        material: Sheets | None = None,
        run: Run = Run(),
    ) -> Measurement:
        filtered = None if subject is None else subject.source
        name = "" if subject is None else subject.name
        return _measure(material or (), self.majority, filtered, run, name)

    def misfit(self, material: object = None) -> str | None:
        return "needs filled sheets" if material is None else None

    @classmethod
    def example(cls) -> tuple[None, dict[str, Any]]:
        import pandas as pd

        sentences = [f"The coach lost her way {n} times." for n in range(6)]
        ids = [f"s{n}-{digest(sentence)}" for n, sentence in enumerate(sentences, 1)]
        return None, {
            name: pd.DataFrame(
                {"id": ids, "sentence": sentences, "verdict": ["yes"] * yes + ["no"] * (6 - yes)}
            )
            for name, yes in (("ann", 5), ("ben", 4), ("cleo", 3))
        }


@checked
def read_sheets(
    sheets: Sheets,
    *,
    majority: int | None = None,
    filtered: str | os.PathLike[str] | None = None,
    prob: float = 0.95,
) -> Measurement:
    """Read the filled sheets, one per annotator, and judge each sentence by majority.

    Parameters
    ----------
    sheets : sequence of paths, or mapping of name to path or DataFrame
    majority : int, optional
        A sentence counts as structural where at least so many annotators say yes (default: more
        than half of them, which is 3 of 4 as in Ye et al. 2021, §4.1), as not where that can no
        longer be reached, and as undecided where the missing verdicts could decide it.
    filtered : path, optional
        The file the sheet was made from: ids that are not in it are an error, and its fields are
        carried over.
    prob : float
        The probability of the intervals.

    Returns
    -------
    Measurement
        The share of structural sentences (Wilson interval), Fleiss' kappa and Krippendorff's alpha
        as parts where they can be computed, and one item per sentence. `details["annotators"]`
        counts each annotator's answers, empty cells and sentences absent from the sheet.

    """
    return _measure(sheets, majority, filtered, Run(prob=prob))


@checked
def save_verdicts(measurement: Measurement, path: str | os.PathLike[str]) -> None:
    """Write the judged sentences as JSONL, complete or not at all."""
    with replace_file(path) as file:
        file.writelines(f"{to_json(row, indent=None)}\n".encode() for row in measurement.items)


def _measure(
    sheets: Sheets,
    majority: int | None,
    filtered: Source | None,
    run: Run,
    name: str = "",
) -> Measurement:
    read = _read(sheets)
    if not read:
        raise InputError("sheets: expected one or more, got none")
    needed = len(read) // 2 + 1 if majority is None else majority
    if not 1 <= needed <= len(read):
        raise InputError(f"majority: expected 1 to {len(read)}, the sheets given, got {majority}")
    rows = _merge_rows(read)
    if filtered is not None:
        rows = _filtered_rows(filtered, rows)
    verdicts = [
        {name: sheet[key][1] if key in sheet else None for name, sheet in read.items()}
        for key in rows
    ]
    decisions = [_decide(answers, needed) for answers in verdicts]
    counts = Counter(decisions)
    decided = counts["yes"] + counts["no"]
    parts, notes = _measure_agreement(verdicts, run)
    return Annotation.declaration.result(
        run,
        f"yes by {needed} of {len(read)} or more",
        wilson(counts["yes"], decided, run.prob),
        subject=name,
        n=decided,
        interval="Wilson",
        items=Items(
            {**record, "id": key, "verdict": decision, "verdicts": answers}
            for (key, record), decision, answers in zip(
                rows.items(), decisions, verdicts, strict=True
            )
        ),
        left_out=tuple(
            key for key, decision in zip(rows, decisions, strict=True) if decision == "undecided"
        ),
        parts=parts,
        details={
            "majority": needed,
            "counts": {
                "sentences": len(rows),
                **{verdict: counts[verdict] for verdict in ("yes", "no", "undecided")},
            },
            "annotators": {name: _tally(sheet, rows) for name, sheet in read.items()},
        },
        notes=notes,
    )


def _read(sheets: Sheets) -> dict[str, Sheet]:
    if isinstance(sheets, str) or not isinstance(sheets, Collection):
        raise InputError(f"sheets: expected a list of files, got {sheets!r:.80}")
    if isinstance(sheets, Mapping):
        return {name: read_sheet(source, name) for name, source in sheets.items()}
    return {_annotator(path, sheets): read_sheet(path, os.fspath(path)) for path in sheets}


def _annotator(path: str | os.PathLike[str], sheets: Sequence[str | os.PathLike[str]]) -> str:
    """An annotator's name: the sheet's file name, or its path where two have the same."""
    paths = [Path(sheet) for sheet in sheets]
    if sum(real_path(other) == real_path(path) for other in paths) > 1:
        raise InputError(f"sheets: expected different files, got {os.fspath(path)} twice")
    stem = Path(path).stem
    return os.fspath(path) if sum(other.stem == stem for other in paths) > 1 else stem


def _merge_rows(read: Mapping[str, Sheet]) -> dict[str, Mapping[str, Any]]:
    """The sentences of all sheets by id, in the order they are met."""
    rows: dict[str, Mapping[str, Any]] = {}
    for name, sheet in read.items():
        others = {key for other, theirs in read.items() if other != name for key in theirs}
        if len(read) > 1 and others.isdisjoint(sheet):
            raise InputError(f"sheet {name}: has no id in common with the other sheets")
        rows |= {key: record for key, (record, _) in sheet.items() if key not in rows}
    return rows


def _filtered_rows(filtered: Source, rows: Mapping[str, object]) -> dict[str, Mapping[str, Any]]:
    """The fields of the filter's own records for the sentences of the sheets."""
    if not isinstance(filtered, str | os.PathLike):
        raise InputError(f"filtered: expected a path, got {type(filtered).__name__}")
    records = read_records(filtered)
    unknown = sorted(rows.keys() - records.keys())
    if unknown:
        more = f" nor of {len(unknown) - 1} more" if unknown[1:] else ""
        raise FileError(filtered, f"has no sentence of the sheets' id {unknown[0]}{more}")
    return {key: record for key, record in records.items() if key in rows}


def _decide(verdicts: Mapping[str, Answer | None], needed: int) -> Verdict:
    tally = Counter(verdicts.values())
    if tally["yes"] >= needed:
        return "yes"
    return "undecided" if tally["yes"] + tally[None] >= needed else "no"


def _tally(sheet: Sheet, rows: Mapping[str, object]) -> dict[str, int]:
    """An annotator's answers, cells left empty, and sentences the sheet does not have."""
    verdicts = Counter(verdict for _, verdict in sheet.values())
    return {
        "yes": verdicts["yes"],
        "no": verdicts["no"],
        "empty": verdicts[None],
        "absent": len(rows.keys() - sheet.keys()),
    }


def _measure_agreement(
    verdicts: Sequence[Mapping[str, Answer | None]], run: Run
) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Fleiss' kappa of the sentences all judged, Krippendorff's alpha of those two judged."""
    annotators = len(verdicts[0])
    if annotators < 2:
        return (), ("one annotator: no agreement to measure",)
    names, counts = count_verdicts([list(answers.values()) for answers in verdicts])
    judged = counts.sum(axis=1)
    complete = counts[judged == annotators]
    measured, notes = [], []
    if len(complete):
        kappa = fleiss_kappa(complete, run.prob)
        measured.append(_agreement_part("fleiss_kappa", complete, kappa, run))
        if len(complete) < len(counts):
            notes.append(
                f"Fleiss' kappa leaves out {len(counts) - len(complete):,} sentences that not "
                "every annotator judged"
            )
    else:
        notes.append("no sentence was judged by every annotator: no Fleiss' kappa")
    if judged.max() >= 2:
        alpha = krippendorff_alpha(counts, run.prob)
        measured.append(_agreement_part("krippendorff_alpha", counts, alpha, run))
    if len(names) == 1:
        notes.append(f"every verdict is {names[0]}: agreement above chance is not defined")
    return tuple(measured), tuple(notes)


def _agreement_part(
    metric: str, counts: Floats, estimate: tuple[float, float, float], run: Run
) -> Measurement:
    used = counts[counts.sum(axis=1) >= 2]
    dropped = len(counts) - len(used)
    return Annotation.declaration.result(
        run,
        f"{len(used)} units",
        estimate,
        metric=metric,
        by="agreement",
        n=len(used),
        interval="jackknife over units, with room for one more unit",
        details={
            "observed_agreement": observed_agreement(used),
            "shares": (used.sum(axis=0) / used.sum()).tolist(),
        },
        notes=(f"{dropped} units with fewer than two verdicts left out",) if dropped else (),
    )
