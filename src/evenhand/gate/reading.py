"""Results as a gate reads them: audits, saved runs and results in memory, all as measurements."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from evenhand.errors import FileError, InputError
from evenhand.files import SCHEMA, parse_json
from evenhand.results import Comparison, Measurement, attach_items, read_with_items

Source: TypeAlias = str | os.PathLike[str] | Any
"""A path, or results in memory: a measurement, several, or an object that has `measurements`."""

MEASUREMENT = {"metric", "query", "value", "low", "high", "worse"}
COMPARISON = {"before", "after", "change"}


@runtime_checkable
class _Measured(Protocol):
    """What has measurements: an audit, an analysis of scores."""

    @property
    def measurements(self) -> Iterable[Measurement]: ...


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements, stored comparisons and what could not be measured, of some sources."""

    measurements: tuple[Measurement, ...] = field(repr=False)
    comparisons: tuple[Comparison, ...] = field(default=(), repr=False)
    skipped: tuple[Mapping[str, str], ...] = ()

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics, in order."""
        compared = (c.metric for c in self.comparisons)
        return list(dict.fromkeys([*(m.metric for m in self.measurements), *compared]))


def read_results(*sources: Source) -> Results:
    """Read results of any kind.

    Parameters
    ----------
    *sources : path, Measurement, Comparison, sequence of these, or object with `measurements`
        A path is the folder of an audit or of a few-shot run, a JSON document that a command
        (`--json`, `-o`) or `save` wrote, or `-` for standard input. What an audit measured after
        it had changed its subject (mitigations) is left out.

    Returns
    -------
    Results
        A measurement that occurs twice (the same metric, query and subject) counts once: the first.

    Examples
    --------
    >>> m = Measurement(metric="gap", query="test", value=0.2, low=0.1, high=0.3, n=50, ideal=0.0,
    ...                 worse="away", interval="t")
    >>> read_results(m).metrics
    ['gap']

    """
    results = _read_all(sources)
    if not (results.measurements or results.comparisons or results.skipped):
        raise InputError("gate: expected results, got none")
    return results


def _read_all(sources: Iterable[Source]) -> Results:
    measurements: dict[tuple[str, ...], Measurement] = {}
    comparisons: list[Comparison] = []
    skipped: list[Mapping[str, str]] = []
    for source in sources:
        if isinstance(source, Results):
            found = source
        elif isinstance(source, str | os.PathLike):
            found = _read(source)
        else:
            found = _in_memory(source)
        for m in found.measurements:
            measurements.setdefault((m.metric, m.query, m.subject, m.by), m)
        comparisons += found.comparisons
        skipped += found.skipped
    return Results(tuple(measurements.values()), tuple(comparisons), tuple(skipped))


def _in_memory(source: object) -> Results:
    if isinstance(source, Measurement):
        return Results((source,))
    if isinstance(source, Comparison):
        return Results((source.after,), (source,))
    if isinstance(source, _Measured):
        return Results(tuple(source.measurements), tuple(getattr(source, "comparisons", ())))
    if isinstance(source, Sequence) and not isinstance(source, bytes):
        results = _read_all(source)
        return Results(
            results.measurements,
            results.comparisons,
            (*results.skipped, *getattr(source, "skipped", ())),
        )
    raise InputError(
        "gate: expected a path, a measurement or several of them, got " + type(source).__name__
    )


def _read(source: str | os.PathLike[str]) -> Results:
    if os.fspath(source) == "-":
        path, row = Path("standard input"), parse_json(sys.stdin.buffer.read(), "standard input")
        if not isinstance(row, dict) or row.get("schema") != SCHEMA:
            raise FileError(path, f"expected a document with the schema {SCHEMA}, got another")
        row = attach_items(row, Path())
    else:
        path = Path(source)
        if path.is_dir():
            folder, path = path, path / "results.json"
            if not path.exists():
                problem = "expected the folder of an audit or a run, with results.json, got none"
                raise FileError(folder, problem)
        row = read_with_items(path)
    try:
        rows = list(_walk(row))
        measured = [Measurement.from_dict(r) for r in rows if set(r) >= MEASUREMENT]
        compared = [Comparison.from_dict(r) for r in rows if set(r) >= COMPARISON]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileError(path, f"expected measurements, got another form ({error})") from None
    if not measured and not compared:
        keys = ", ".join(key for key in row if key != "schema")
        raise FileError(path, f"expected measurements, got none in {keys or 'an empty document'}")
    return Results(tuple(measured), tuple(compared), tuple(_skipped(row)))


def _walk(value: object) -> Iterator[Mapping[str, Any]]:
    """The measurements and comparisons of a document, at any depth, not their own parts.

    Controls compare a benchmark with its control, not one model with another.
    """
    if isinstance(value, dict):
        if set(value) >= MEASUREMENT or set(value) >= COMPARISON:
            yield value
        elif value.get("measures", True) is not False:  # a stage that measures what it was given
            for key, item in value.items():
                yield from _walk(item) if key != "controls" else ()
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _skipped(value: object) -> Iterable[Mapping[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "skipped" and isinstance(item, list):
                yield from (each for each in item if isinstance(each, dict) and "metric" in each)
            elif key in ("stages", "results"):
                for stage in item if isinstance(item, list) else (item,):
                    yield from _skipped(stage)
