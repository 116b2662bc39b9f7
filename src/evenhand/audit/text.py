"""The stages for the data: which classes lean to men or women, which sentences assume a gender."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from evenhand.audit.stages import Options, Progress, Silent, Stage

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset

MOST_TEXTS, QUICK_TEXTS = 20_000, 5_000
"""Texts that the structural filter reads at most; of more a sample is drawn."""
EXAMPLES = 200
_BLOCK = 500


@dataclass(frozen=True, slots=True)
class Structural:
    """The result of the structural filter: texts read, counts of its steps, accepted sentences.

    An accepted sentence has `sentence`, `masked`, `pronoun`, `antecedent` and `row`, the number of
    its text in the data.
    """

    texts: int
    counts: Mapping[str, int]
    accepted: tuple[Mapping[str, Any], ...] = field(repr=False)


def text_stages(data: Dataset, options: Options) -> list[Stage]:
    """The stages for the data: odds ratios of the classes, and the structural filter."""
    depends = {"data": data.digest}
    return [
        Stage(
            kind="odds",
            title="data: odds ratios",
            depends={**depends, "name": data.name, "prob": options.prob},
            compute=partial(_odds, data, options),
        ),
        Stage(
            kind="filter",
            title="data: structural filter",
            depends={**depends, "most": _most(options), "seed": options.seed},
            compute=partial(_filter, data, options),
        ),
    ]


def structural(data: Dataset, options: Options, progress: Progress | None = None) -> Structural:
    """The structural filter over the sentences of the data, or of a sample of many texts.

    The result is cached for as long as the data exist, since two stages use it.
    """
    import numpy as np

    from evenhand.text.block import Block
    from evenhand.text.structural import Filter

    known = _known.setdefault(data, {})
    key = (_most(options), options.seed)
    if key in known:
        return known[key]
    report = progress or Silent()
    rows = np.arange(len(data))
    if len(rows) > key[0]:
        rows = np.sort(np.random.default_rng(options.seed).choice(rows, key[0], replace=False))
    work = Filter(split=True)
    counts: Counter[str] = Counter()
    accepted: list[Mapping[str, Any]] = []
    for start in range(0, len(rows), _BLOCK):
        report.step(start, len(rows))
        chosen = rows[start : start + _BLOCK].tolist()
        done = work(Block.of_documents([data.texts[row] for row in chosen], lines=chosen))
        counts.update(done.counts)
        for line in done.output.split("\n")[:-1]:
            row = json.loads(line)
            names = ("sentence", "masked", "pronoun", "antecedent")
            accepted.append({**{name: row[name] for name in names}, "row": row["line"]})
    report.step(len(rows), len(rows))
    known[key] = Structural(len(rows), dict(counts), tuple(accepted))
    return known[key]


_known: WeakKeyDictionary[Dataset, dict[tuple[int, int], Structural]] = WeakKeyDictionary()


def _most(options: Options) -> int:
    return QUICK_TEXTS if options.quick else MOST_TEXTS


def _odds(data: Dataset, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.text.metrics.odds import class_odds

    men, women = (
        {name: int(n) for name, n in zip(data.classes, column, strict=True)}
        for column in data.gender_sizes.T
    )
    known = [name for name in data.classes if men[name] + women[name]]
    reason = ""
    if not sum(men.values()) or not sum(women.values()):
        missing = "men and women" if not known else "women" if sum(men.values()) else "men"
        reason = f"the data have no text with the gender of {missing}"
        if not known:
            reason += " (name a column that is not called gender with --gender)"
    elif len(known) < 2:
        reason = f"expected two classes or more with genders, got only '{known[0]}'"
    if reason:
        return {"skipped": ({"metric": "odds", "query": data.name, "reason": reason},)}
    rows = class_odds(
        {name: men[name] for name in known}, {name: women[name] for name in known}, options.prob
    )
    progress.step(1, 1)
    return {
        "measurements": tuple(replace(row, by="") for row in rows),
        "details": {
            "name": data.name,
            "texts": len(data),
            "classes": len(rows),
            "men": sum(men.values()),
            "women": sum(women.values()),
            "unknown": len(data) - sum(men.values()) - sum(women.values()),
            "without_gender": [name for name in data.classes if name not in known],
            "left_out": dict(data.left_out),
            "prob": options.prob,
        },
    }


def _filter(data: Dataset, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.text.structural import REASONS, STEPS

    result = structural(data, options, progress)
    return {
        "details": {
            "name": data.name,
            "texts": result.texts,
            "of": len(data),
            "steps": {step: result.counts.get(step, 0) for step in STEPS},
            "reasons": {name: result.counts.get(f"reason:{name}", 0) for name in REASONS},
            "examples": [
                {**row, "class": data.classes[data.labels[row["row"]]]}
                for row in result.accepted[:EXAMPLES]
            ],
        }
    }
