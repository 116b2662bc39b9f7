"""The findings as CSV files, for whoever wants to go on with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.report.saved import Account, StageResult
from evenhand.results import Comparison, Measurement, save_csv

__all__ = ["slug", "write_tables"]

FIELDS = (
    "metric", "query", "value", "low", "high", "prob", "p_value", "n", "ideal", "worse",
    "interval", "test", "seed",
)  # fmt: skip


def slug(name: str) -> str:
    """A name as part of a file name.

    >>> slug("gender: soft, summed")
    'gender-soft-summed'
    """
    return re.sub(r"\W+", "-", name).strip("-").lower()


def write_tables(folder: Path, stages: Sequence[StageResult]) -> list[Path]:
    """Measurements, items, comparisons, utility and distances under `folder/tables`."""
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "measurements": ({"stage": s.name, **_measured(m)} for s in stages for m in s.measurements),
        "items": (row for s in stages for m in s.measurements for row in _items(s.name, m)),
        "comparisons": (
            row for s in stages for account in s.mitigations for row in _compared(s, account)
        ),
        "utility": (
            {"topic": s.topic, "method": account.method, **_measured(m)}
            for s in stages
            for account in s.mitigations
            for m in account.utility
        ),
    }
    written = [_write(folder / "tables" / f"{name}.csv", found) for name, found in rows.items()]
    for stage in stages:
        if stage.distances is not None:
            written.append(folder / "tables" / f"distances-{slug(stage.distances.topic)}.csv")
            stage.distances.save(written[-1])
    return written


def _measured(m: Measurement) -> dict[str, Any]:
    row = {name: getattr(m, name) for name in FIELDS}
    row |= {name: m.details.get(name) for name in ("null_low", "null_median", "null_high")}
    return {**row, "left_out": "; ".join(m.left_out)}


def _items(stage: str, m: Measurement) -> Iterable[dict[str, Any]]:
    for item in m.items:
        flat = {
            key: " ".join(map(str, value)) if isinstance(value, list) else value
            for key, value in item.items()
        }
        yield {"stage": stage, "metric": m.metric, "query": m.query, **flat}


def _compared(stage: StageResult, account: Account) -> Iterable[dict[str, Any]]:
    for kind, comparisons in (("measure", account.measures), ("hiding", account.hiding)):
        for c in comparisons:
            yield {
                "topic": stage.topic,
                "method": account.method,
                "kind": kind,
                "metric": c.before.metric,
                "query": c.before.query,
                **_bounds("before", c),
                **_bounds("after", c),
                **_bounds("change", c),
                "prob": c.change.prob,
                "ideal": c.before.ideal,
                "worse": c.before.worse,
                "paired": c.paired,
                "interval": c.interval,
            }


def _bounds(which: str, c: Comparison) -> dict[str, float]:
    side = getattr(c, which)
    return {which: side.value, f"{which}_low": side.low, f"{which}_high": side.high}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    save_csv(path, rows)
    return path
