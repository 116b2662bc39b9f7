"""The tab *Answers*: what a model wrote, the groups of an item side by side."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from evenhand.answers.outcomes import OUTCOMES
from evenhand.answers.table import Answers
from evenhand.errors import UnknownNameError
from evenhand.wording import visible

SHOWN = 200
"""So many items are listed; of more, a search shows others."""
SAMPLES = 5
"""Answers of a group and wording on one page."""
ALL = "all answers"
"""The group of answers whose prompts name none."""


def read_items(
    answers: Answers, *, find: str = "", by: str = "", outcome: str = ""
) -> dict[str, Any]:
    """The items, with the number of answers of each group by their outcomes.

    Parameters
    ----------
    answers : Answers
    find : str
        A text that the item, its topic or one of its answers has, whatever its case.
    by : str
        The column of groups; the first if empty.
    outcome : str
        One that the answers found must have; any if empty.

    """
    by, groups = _groups(answers, by)
    wanted = find.strip().lower()
    found: dict[str, None] = {}
    for i, item in enumerate(answers.items):
        topic = answers.topics[i] if answers.topics else ""
        if (not outcome or answers.outcomes[i] == outcome) and any(
            wanted in text.lower() for text in (item, topic, answers.texts[i])
        ):
            found[item] = None
    known = list(dict.fromkeys(groups))
    counts = Counter(zip(groups, answers.outcomes, strict=True))
    occurring = [each for each in OUTCOMES if answers.counts[each]]
    return {
        "name": answers.name,
        "answers": len(answers),
        "total": len(set(answers.items)),
        "selected": len(found),
        "items": list(found)[:SHOWN],
        "columns": list(answers.columns),
        "by": by,
        "outcomes": occurring,
        "groups": known,
        "counts": [[counts[group, each] for each in occurring] for group in known],
    }


def read_item(
    answers: Answers, item: str, *, by: str = "", outcome: str = "", first: int = 0
) -> dict[str, Any]:
    """The answers to an item: for each wording, those of each group, some samples at a time."""
    by, groups = _groups(answers, by)
    rows = [i for i, name in enumerate(answers.items) if name == item]
    if not rows:
        raise UnknownNameError("item", item, dict.fromkeys(answers.items))
    cells: dict[str, dict[str, list[int]]] = {}
    for i in rows:
        wording = answers.wordings[i] if answers.wordings else ""
        cell = cells.setdefault(wording, {}).setdefault(groups[i], [])
        if not outcome or answers.outcomes[i] == outcome:
            cell.append(i)
    return {
        "item": item,
        "topic": answers.topics[rows[0]] if answers.topics else "",
        "first": first,
        "page": SAMPLES,
        "most": max(len(own) for row in cells.values() for own in row.values()),
        "wordings": [
            {
                "wording": wording,
                "groups": [
                    {
                        "group": group,
                        "total": len(row[group]),
                        "answers": [
                            _answer(answers, i) for i in row[group][first : first + SAMPLES]
                        ],
                    }
                    for group in dict.fromkeys(groups)
                    if group in row
                ],
            }
            for wording, row in cells.items()
        ],
    }


def _groups(answers: Answers, by: str) -> tuple[str, tuple[str, ...]]:
    """The column by which answers are shown, and the group of each."""
    if not answers.columns:
        return "", (ALL,) * len(answers)
    by = by or next(iter(answers.columns))
    if by not in answers.columns:
        raise UnknownNameError("column", by, answers.columns)
    return by, tuple(group or "no group" for group in answers.columns[by])


def _answer(answers: Answers, i: int) -> dict[str, Any]:
    scores = {name: float(values[i]) for name, values in answers.scores.items()}
    more: dict[str, object] = {name: x for name, x in scores.items() if math.isfinite(x)}
    more |= {name: labels[i] for name, labels in answers.labels.items() if labels[i] is not None}
    return {
        "text": visible(answers.texts[i]),
        "prompt": visible(answers.prompts[i]) if answers.prompts else "",
        "outcome": answers.outcomes[i],
        "more": more,
    }
