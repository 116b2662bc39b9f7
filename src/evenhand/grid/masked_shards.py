"""Pronoun scores shard by shard: each sentence's numbers, and the score of all shards as one.

A mean can be added up from sums, its interval cannot: it comes from a bootstrap over sentences, and
a sentence counts once however many shards have it. So a result carries the few numbers of each
sentence, some 27 bytes, and pooling them is one run over the joined sentences.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.grid import files
from evenhand.grid.masked_material import sentences
from evenhand.grid.task_masked import rows_name
from evenhand.masked.metrics.pronouns import (
    Probabilities,
    PronounScores,
    Rule,
    Sentence,
    read_sentences,
    score,
)
from evenhand.masked.metrics.pronouns_items import open_items
from evenhand.masked.metrics.pronouns_scores import LeftOut, columns_of
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.grid.task import Workspace
    from evenhand.grid.task_masked import MaskedSettings
    from evenhand.masked.model import Model
    from evenhand.masked.scoring import Progress

__all__ = ["pooled", "scored"]

KEPT = {
    "p_male": "<f8", "p_female": "<f8", "male_in_top": "|b1", "female_in_top": "|b1",
    "slot": "|i1", "her_slot": "|i1",
}  # fmt: skip
"""What is kept of each sentence's probabilities, and how; the words are in the rows alone."""
KEYS = "<u8"


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
    told = score(
        model,
        read,
        top_k=settings.top_k,
        delta=settings.delta,
        least=settings.least,
        words=settings.words,
        prob=settings.prob,
        seed=settings.seed,
        cache=cache,
        progress=progress,
    )
    if not len(told) and not settings.shard:  # a shard may well have none
        why = told.left_out[0].reason if told.left_out else "there are none"
        raise FileError(settings.source, f"expected sentences to score: {why}")
    told = replace(told, blank=counts["blank"], filtered=counts["filtered"])
    texts = {sentence.line: sentence.text for sentence in read}
    result = {**told.as_dict(), "scores": _packed(told, [texts[o.line] for o in told.left_out])}
    if settings.shard:
        result["shard"] = PurePath(settings.shard).name
    if settings.out:
        made = place.work / rows_name(settings.source, settings.rows)
        with open_items(made) as write:
            write(columns_of(told.model, told.sentences or (), told.probabilities, told.rule))
        result["outputs"] = [files.publish(made, settings.folder / made.name)]
    return result


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The score of the sentences of all results, each sentence once, as one run would tell it."""
    if not results or any(result["measure"] != "score" for result in results):
        raise InputError("pooled: expected results of the measure score")
    first = results[0]
    for result in results:
        for name in ("model", "rule"):
            if result[name] != first[name]:
                raise InputError(
                    f"pooled: expected results of one {name}, got {first[name]} and {result[name]}"
                )
    packs = [result["scores"] for result in results]
    keys = np.concatenate([_array(pack["keys"], KEYS) for pack in packs])
    once = np.sort(np.unique(keys, return_index=True)[1])
    gone, seen = [], set[int]()
    for result in results:
        told_of = result["left_out"]["sentences"]
        for out, key in zip(told_of, _array(result["scores"]["left_out"], KEYS), strict=True):
            if int(key) not in seen:
                seen.add(int(key))
                gone.append({"shard": result.get("shard", ""), **out})
    counts = {
        name: sum(result["left_out"][name] for result in results)
        for name in ("n", "duplicates", "blank_lines", "filtered")
    }
    told = PronounScores(
        model=first["model"],
        rule=Rule(**first["rule"]),
        probabilities=_probabilities(packs, once),
        keys=keys[once],
        pronouns=np.concatenate([_pronouns(pack) for pack in packs])[once],
        left_out=tuple(LeftOut(out["line"], out["reason"]) for out in gone),
        duplicates=counts["duplicates"] + keys.size - once.size + counts["n"] - len(gone),
        blank=counts["blank_lines"],
        filtered=counts["filtered"],
        notes=tuple(first["notes"]),
    ).as_dict()
    told["left_out"]["sentences"] = gone
    return files.plain({"measure": "score", "shards": len(results), **told})


def _packed(told: PronounScores, left_out: Sequence[str]) -> dict[str, Any]:
    names, codes = np.unique(told.pronouns, return_inverse=True)
    return {
        "keys": _text(told.keys, KEYS),
        **{name: _text(getattr(told.probabilities, name), kind) for name, kind in KEPT.items()},
        "pronouns": names.tolist(),
        "pronoun": _text(codes, "<u2"),
        "left_out": _text(np.array([_key(text) for text in left_out], dtype=np.uint64), KEYS),
    }


def _probabilities(packs: Sequence[Mapping[str, Any]], once: NDArray[np.int64]) -> Probabilities:
    of = {
        name: np.concatenate([_array(pack[name], kind) for pack in packs])[once]
        for name, kind in KEPT.items()
    }
    words = np.zeros(once.size, dtype=np.int16)
    return Probabilities(
        of["p_male"], of["p_female"], words, words, of["male_in_top"], of["female_in_top"],
        of["slot"].astype(np.int16), of["her_slot"].astype(np.int16),
    )  # fmt: skip


def _pronouns(pack: Mapping[str, Any]) -> NDArray[np.str_]:
    names = np.array([*pack["pronouns"], ""], dtype="<U10")
    return np.asarray(names[_array(pack["pronoun"], "<u2")])


def _text(array: NDArray[Any], kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, dtype=kind).tobytes()).decode()


def _array(text: str, kind: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
