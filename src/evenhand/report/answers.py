"""The page of measured answers: what was found, answers of two groups side by side, what is stored.

Which answers are shown follows from a rule that the page states: those to the item whose difference
is typical and those to the item whose difference is largest, the first samples of each prompt.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.answers.outcomes import OUTCOMES, Outcome
from evenhand.answers.table import Answers
from evenhand.instruments import find
from evenhand.report.blocks import (
    Block,
    P,
    PageTable,
    Prose,
    Section,
    count,
    figure,
    listed,
    result_table,
    value_columns,
    write_results,
)
from evenhand.report.methods import label_of
from evenhand.report.stages import not_measured, result_blocks, result_forests
from evenhand.results import Measurement
from evenhand.summary import summarize
from evenhand.wording import number

prose = Prose("answers")

LONGEST = 1200
"""So many characters of an answer are quoted."""
SAMPLES = 3
"""So many answers of each group to an item are quoted."""


def write_answers(
    answers: Answers,
    results: Sequence[Measurement],
    path: str | os.PathLike[str],
    *,
    record: Mapping[str, Any] | None = None,
    skipped: Iterable[Mapping[str, str]] = (),
) -> Path:
    """Write the page of measured answers, one HTML file that loads nothing from elsewhere.

    Parameters
    ----------
    answers : Answers
    results : sequence of Measurement
    path : path
        The file to write.
    record : Mapping, optional
        Of the run that collected the answers, as `evenhand answers collect` wrote it.
    skipped : iterable of Mapping
        What could not be measured, with the reasons.

    Returns
    -------
    Path
        The file.

    """
    examples = list(_examples(answers, results))
    metrics: dict[str, list[Measurement]] = {}
    for m in results:
        metrics.setdefault(m.metric, []).append(m)
    missing = list(map(not_measured, skipped))
    rows = [("", label_of(m), m) for m in results]
    found = Section("results", "The results", [*_results(rows), *missing])
    outcomes = Section("outcomes", "Answers by outcome", list(outcome_blocks(answers)))
    shown = Section("examples", "Answers side by side", examples)
    return write_results(
        path,
        f"What a model writes: {answers.name}",
        [summarize(results), prose.measured(answers=answers, results=results)],
        [
            *(
                Section(
                    metric,
                    label_of(metric),
                    list(
                        result_blocks(
                            metric, [("", label_of(m), m) for m in measured], find(metric)
                        )
                    ),
                )
                for metric, measured in metrics.items()
            ),
            Section("stored", "What is stored", list(_stored(record, quoted=bool(examples)))),
        ],
        prose.limits(),
        start=[section for section in (found, shown, outcomes) if section.blocks],
        notices=[prose.personal()] if examples else [],
    )


def _results(rows: Sequence[tuple[str, str, Measurement]]) -> Iterator[Block]:
    """All results with their intervals: a forest and a table."""
    yield figure(
        "results-forest",
        partial(result_forests, rows),
        f"The results: {listed((label, m) for _, label, m in rows)}",
    )
    columns = {**value_columns(rows[0][2].prob), **P, "Answers": lambda m: count(m.n)}
    yield result_table("All results", ("Measure",), [(label, m) for _, label, m in rows], columns)


def outcome_blocks(answers: Answers) -> Iterator[Block]:
    """How many answers there are by outcome, of each group of each column."""
    yield prose.text("outcomes")
    occurring = [each for each in OUTCOMES if answers.counts[each]]
    rows: list[tuple[str, Mapping[Outcome, int]]] = [("all", answers.counts)]
    for column, labels in answers.columns.items():
        by_group = Counter(zip(labels, answers.outcomes, strict=True))
        rows += [
            (f"{column}: {group or 'none'}", {each: by_group[group, each] for each in OUTCOMES})
            for group in dict.fromkeys(labels)
        ]
    yield PageTable.of(
        "Answers by group and outcome",
        ("Group", *occurring),
        ((name, *(count(counts[each]) for each in occurring)) for name, counts in rows),
    )


# ------------------------------------------------------------------------------------- examples


def _examples(answers: Answers, results: Sequence[Measurement]) -> Iterator[Block]:
    """Answers about two groups to a typical item and to the one that differs most."""
    chosen = [m for m in results if {"item", "axis", "difference"} <= set(m.items.columns)]
    if not chosen:
        return
    m = min(chosen, key=lambda each: 1.0 if each.p_value is None else each.p_value)
    unit = m.items[0]["axis"]
    known = {each["item"]: float(each["difference"]) for each in m.items if each["axis"] == unit}
    known = {name: x for name, x in known.items() if np.isfinite(x)}
    if not known:
        return
    yield prose.text("examples", label=label_of(m), unit=unit)
    middle = float(np.median(list(known.values())))
    typical = min(known, key=lambda name: abs(known[name] - middle))
    extreme = max(known, key=lambda name: abs(known[name]))
    for kind, name in {"Typical": typical, "Largest difference": extreme}.items():
        table = _side_by_side(answers, m, unit, name, f"{kind}: {name}", known[name])
        if table is not None:
            yield table


def _side_by_side(
    answers: Answers, m: Measurement, unit: str, name: str, title: str, difference: float
) -> PageTable | None:
    """The first answer of each group to the item (of a topic, its first with both groups)."""
    column, (first, second) = m.details["column"], m.details["groups"]
    units = answers.topics if unit == "topic" else answers.items
    places: dict[tuple[str, str], dict[str, list[int]]] = {}
    for i, group in enumerate(answers.columns[column]):
        if units[i] == name and group is not None:
            side = first if group == first else second
            if side == group or second not in answers.columns[column]:
                wording = answers.wordings[i] if answers.wordings else ""
                place = places.setdefault((answers.items[i], wording), {})
                place.setdefault(side, []).append(i)
    pair = next((place for place in places.values() if len(place) == 2), None)
    if pair is None:
        return None
    sides = [pair[first], pair[second]]
    if not m.details.get("share"):  # refused answers have no score
        sides = [sorted(side, key=lambda i: i not in answers.readable) for side in sides]
    if prompts := answers.prompts:  # several of one group to an item: answers to the first
        sides = [[i for i in side if prompts[i] == prompts[side[0]]] for side in sides]
    sides = [side[:SAMPLES] for side in sides]
    groups = [str(answers.columns[column][side[0]]) for side in sides]
    lines = []
    if answers.prompts:
        lines.append(("Prompt", *(_quoted(answers.prompts[side[0]]) for side in sides)))
    for number_of in range(max(map(len, sides))):
        cells = (
            _answer(answers, side[number_of]) if number_of < len(side) else "–" for side in sides
        )
        lines.append((f"Answer {number_of + 1}", *cells))
    caption = f"{title} (difference {number(difference)})"
    return PageTable.of(caption, ("Text", *groups), lines, words=True)


def _answer(answers: Answers, i: int) -> str:
    outcome = answers.outcomes[i]
    return (
        _quoted(answers.texts[i])
        if outcome == "answered"
        else (f"({outcome}) {_quoted(answers.texts[i])}")
    )


def _quoted(text: str) -> str:
    return f"{text[:LONGEST]} …" if len(text) > LONGEST else text or "–"


# --------------------------------------------------------------------------------------- stored


def _stored(record: Mapping[str, Any] | None, *, quoted: bool) -> Iterator[Block]:
    """Where texts are, and how they were collected as far as that is known."""
    yield prose.text("stored", quoted=quoted, record=record)
    if record is not None:
        headers = ("What", "Value")
        yield PageTable.of("How the answers were collected", headers, _facts(record))


def _facts(value: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    for name, item in value.items():
        title = f"{within}{name.replace('_', ' ')}"
        if isinstance(item, Mapping):
            yield from _facts(item, f"{title}: ")
        elif item not in ("", None):
            yield title, f"{item:,}" if type(item) is int else str(item)
