"""The rows of a shard by class and gender, which add up over shards to one table of odds ratios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.text.metrics.odds import Counts, count_rows

__all__ = ["counted", "figures", "pooled"]

MOST = 5
"""Classes of either end that are shown in a table; the pooled result has all."""

AGREEMENT = ("agree", "compared", "undecided")


def counted(source: str, *, label: str, prob: float, **columns: Any) -> dict[str, Any]:
    """The counts of one shard; a shard may well have no women, no men or a single class."""
    counts = count_rows(source, label, **columns)
    return {
        "label": label,
        "gender_from": counts.gender_from,
        "prob": prob,
        "read": counts.read,
        "male": dict(sorted(counts.rows["male"].items())),
        "female": dict(sorted(counts.rows["female"].items())),
        "left_out": [[reason, n] for reason, n in counts.left_out.items()],
        "classes": sorted(counts.labels),
        "agreement": {n: getattr(counts, n) for n in AGREEMENT} if counts.compares else None,
    }


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The odds ratios over the rows of all shards: those of one run over the joined file."""
    first = results[0]
    for name in ("label", "gender_from", "prob"):
        for result in results:
            if result[name] != first[name]:
                raise InputError(
                    f"pooled: expected shards of the same {name}, got {first[name]} and "
                    f"{result[name]}"
                )
    return _joined(results).measure(first["prob"]).to_dict(items=False)


def figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a shard in a few numbers; of all shards, the odds of the most leaning classes."""
    if "parts" in result:
        rows = [part for part in result["parts"] if part["by"] == "class"]
        ends = rows if len(rows) <= 2 * MOST else [*rows[:MOST], *rows[-MOST:]]
        odds = {
            f"odds ratio of {row['query']}": {name: row[name] for name in ("value", "low", "high")}
            for row in ends
        }
        return {**result["details"]["counts"], "classes": len(rows), **odds}
    return {**_joined([result]).totals(), "classes": len(result["classes"])}


def _joined(results: Sequence[Mapping[str, Any]]) -> Counts:
    first = results[0]
    counts = Counts(
        source=f"{len(results)} shards",
        label=first["label"],
        gender_from=first["gender_from"],
        compares=first["agreement"] is not None,
    )
    for result in results:
        counts.read += result["read"]
        for gender, rows in counts.rows.items():
            rows.update(result[gender])
        counts.left_out.update(dict(result["left_out"]))
        counts.labels.update(result["classes"])
        for name, number in (result["agreement"] or {}).items():
            setattr(counts, name, getattr(counts, name) + number)
    return counts
