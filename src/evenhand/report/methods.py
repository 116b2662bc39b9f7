"""What each measure is, for readers: from its declaration, or from `templates/methods.toml`.

The tests of hidden bias and of cost are declared beside their functions; the file explains what
has no declaration: robustness, models, parts of an audit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from evenhand.instruments import Declaration, all_declarations, find
from evenhand.results import Measurement
from evenhand.vectors import hiding, nulls, utility
from evenhand.wording import upper_first

PARTS = {
    "corpus": "text",
    "vectors": "vectors",
    "model": "masked",
    "causal": "causal",
    "encoder": "encoder",
    "language": "masked",
    "classifier": "fewshot",
    "predictions": "predictions",
}
"""The part of an audit that the instruments of a subject belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One measure as the methods section explains it."""

    label: str
    question: str
    formula: str = ""
    source: str = ""
    scale: str = ""
    part: str = ""
    reading: str = ""
    caveats: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The label and the source."""
        return f"{self.label}, {self.source}" if self.source else self.label

    @property
    def text(self) -> str:
        """The formula, how to read the value, what to beware of, and the options."""
        parts = [self.formula, self.reading, *self.caveats]
        if self.options:
            parts.append(f"Options: {'; '.join(self.options)}")
        return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def _declared(declaration: Declaration) -> Method:
    return Method(
        label=declaration.label,
        question=declaration.question,
        formula=declaration.formula,
        source=declaration.source,
        scale=declaration.scale,
        part=PARTS[declaration.subject],
        reading=declaration.reading,
        caveats=declaration.caveats,
        options=tuple(f"{each.name} = {each.default}" for each in declaration.options),
    )


@cache
def _others() -> Mapping[str, Method]:
    path = resources.files("evenhand.report") / "templates" / "methods.toml"
    rows: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    tests = (*hiding.DECLARATIONS, *utility.DECLARATIONS, *nulls.DECLARATIONS)
    return {name: Method(**row) for name, row in rows.items()} | {
        each.name: _declared(each) for each in tests
    }


def method(metric: str) -> Method | None:
    """What a measure is; None where nothing is known of it."""
    instrument = find(metric)
    return _others().get(metric) if instrument is None else _declared(instrument.declaration)


def methods(part: str) -> dict[str, Method]:
    """All that is explained of a part of an audit: its instruments, then the rest."""
    subject = next((name for name, own in PARTS.items() if own == part), None)
    declared = {
        each.name: _declared(each) for each in all_declarations([subject] if subject else [])
    }
    others = {name: known for name, known in _others().items() if known.part == part}
    return {**declared, **{name: known for name, known in others.items() if name not in declared}}


def label_of(measured: str | Measurement, topic: str = "", query: str = "") -> str:
    """The label of a measure; for a measurement with its query, without the topic's name.

    >>> label_of("my_metric"), label_of("my_metric", "race", "race: black/asian")
    ('My metric', 'My metric, black/asian')
    """
    metric = measured if isinstance(measured, str) else measured.metric
    known = method(metric)
    name = known.label if known else metric.replace("_", " ").replace("-", " ")
    name = upper_first(name)
    query = query if isinstance(measured, str) else measured.query
    part = query.removeprefix(topic).removeprefix(":").strip() if topic else query
    return ", ".join(text for text in (name, part) if text)


def scale_of(metric: str) -> str:
    """The title of the axis that a measure shares with others of its scale, or nothing."""
    known = method(metric)
    return known.scale if known else ""


def used(measurements: Iterable[Measurement], part: str) -> dict[str, list[Measurement]]:
    """The measurements of a part by metric, in the order in which the metrics are explained."""
    by_metric: dict[str, list[Measurement]] = {}
    for m in measurements:
        by_metric.setdefault(m.metric, []).append(m)
    order = dict.fromkeys([*methods(part), *by_metric])
    return {metric: by_metric[metric] for metric in order if metric in by_metric}
