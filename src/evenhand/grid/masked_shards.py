"""Pronoun scores shard by shard, and the score of all shards as one.

A mean can be added up from sums, its interval cannot: it comes from a bootstrap over sentences, and
a sentence counts once however many shards have it. So a result has the few numbers of each
sentence, and pooling them is one run over all sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError, InputError
from evenhand.files import open_rows
from evenhand.grid import files
from evenhand.grid.masked_material import sentences
from evenhand.grid.task_masked import rows_name
from evenhand.masked.metrics.pronouns import (
    Sentence,
    pool,
    pronouns,
    read_sentences,
    sentence_key,
)
from evenhand.results import Measurement
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.grid.task import Workspace
    from evenhand.grid.task_masked import MaskedSettings
    from evenhand.masked.model import Model
    from evenhand.masked.scoring import Progress

__all__ = ["pooled", "scored"]

POOLED = ("pronoun", "slot", "p_male", "p_female", "in_top")
"""The columns of the items that pooling needs; the text is in the rows of `out`."""


def scored(
    model: Model,
    settings: MaskedSettings,
    place: Workspace,
    cache: Cache,
    progress: Progress | None,
) -> dict[str, Any]:
    """The pronoun score of a file or of the embedded sentences, with the numbers of each."""
    counts = Counter[str]()
    if settings.source:
        keep = Filter(someone=settings.keep_someone) if settings.filter else None
        read = list(read_sentences(settings.source, counts=counts, keep=keep))
    else:
        read = [Sentence(text, line=line) for line, text in enumerate(sentences(), 1)]
    m = pronouns(
        model,
        read,
        top_k=settings.top_k,
        delta=settings.delta,
        threshold=settings.least,
        words=settings.words,
        prob=settings.prob,
        seed=settings.seed,
        cache=cache,
        progress=progress,
    )
    if not len(m.items) and not settings.shard:  # a shard may well have none
        left_out = m.details["left_out"]
        why = left_out[0]["reason"] if left_out else "there are none"
        raise FileError(settings.source, f"expected sentences to score: {why}")
    items = m.items.to_dict()
    result = m.to_dict(items=False)
    result["details"] = {
        **m.details,
        "blank_lines": counts["blank"],
        "filtered": counts["filtered"],
    }
    result["items"] = {"key": [sentence_key(text) for text in items["masked"]]} | {
        name: items[name] for name in POOLED
    }
    if settings.shard:
        result["shard"] = PurePath(settings.shard).name
    if settings.out:
        path = place.work / rows_name(settings.source, settings.rows)
        with open_rows(path) as write:
            write({"model": [m.subject] * len(m.items), **items})
        result["outputs"] = [files.publish(path, settings.folder / path.name)]
    return result


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The score of the sentences of all results, each sentence once, as one run would give it."""
    if not results or any(result["measure"] != "score" for result in results):
        raise InputError("pooled: expected results of the measure score")
    measurements = []
    for result in results:
        own = {name: result[name] for name in (*Measurement.__slots__,) if name in result}
        left_out = [
            {"shard": result.get("shard", ""), **row} for row in result["details"]["left_out"]
        ]
        own["details"] = {**result["details"], "left_out": left_out}
        measurements.append(Measurement.from_dict(own))
    m = pool(measurements)
    return files.plain({"measure": "score", "shards": len(results), **m.to_dict(items=False)})
