"""What each measure is, for readers: from its declaration, or from `templates/methods.toml`.

The tests of hidden bias and of cost are declared beside their functions; the file explains what
has no declaration: robustness, models, parts of an audit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from evenhand.instruments import PACKAGES, Declaration, all_declarations, find
from evenhand.results import Measurement
from evenhand.vectors.declarations import DECLARATIONS
from evenhand.wording import upper_first


@cache
def _others() -> Mapping[str, Declaration]:
    path = resources.files("evenhand.report") / "templates" / "methods.toml"
    rows: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    explained = {
        name: Declaration(name=name, **{"subjects": (), **row}) for name, row in rows.items()
    }
    return explained | {each.name: each for each in DECLARATIONS}


def method(metric: str) -> Declaration | None:
    """What a measure is; None where nothing is known of it."""
    instrument = find(metric)
    return _others().get(metric) if instrument is None else instrument.declaration


def methods(part: str) -> dict[str, Declaration]:
    """All that is explained of a part of an audit: its instruments, then the rest."""
    declared = {each.name: each for each in all_declarations([part] if part in PACKAGES else [])}
    others = {name: known for name, known in _others().items() if known.measures(part)}
    return {**declared, **{name: known for name, known in others.items() if name not in declared}}


def title_of(about: Declaration) -> str:
    """The label and the source."""
    return f"{about.label}, {about.source}" if about.source else about.label


def text_of(about: Declaration) -> str:
    """The formula, how to read the value, what to beware of, and the options."""
    parts = [about.formula, about.reading, *about.caveats]
    if about.options:
        options = (f"{each.name} = {each.default}" for each in about.options)
        parts.append(f"Options: {'; '.join(options)}")
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


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
