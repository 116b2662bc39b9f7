"""Does a finding hang on single words? Leave-one-out and random halves of every word list.

Both rerun the metric on the changed query, whichever list a word stands in, so they also show
what the metric's own interval holds fixed (the identity words, say).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from evenhand.errors import InputError, VocabularyError
from evenhand.lexicon import Query
from evenhand.results import Item, Measurement
from evenhand.vectors.catalogue import Adapter
from evenhand.vectors.measuring import METRICS
from evenhand.vectors.metrics.reading import Options, Settings
from evenhand.vectors.store import Vectors

__all__ = ["leave_one_out", "split_half"]

Lists = Mapping[str, tuple[str, ...]]


def leave_one_out(
    v: Vectors, query: Query, metric: str = "weat", **settings: Unpack[Settings]
) -> Measurement:
    """The metric's value, and its range when any one word (or pair) of any list is left out.

    `low` and `high` are that range, all of it; the items name the word that moves the value most
    first. Words whose list would become too short are named in `notes`.

    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = leave_one_out(v, eh.lexicon.weat(7))
    >>> m.low <= m.value <= m.high, m.n
    (True, 32)
    """
    base, value_of = _reader(v, query, metric, settings)
    items: list[Item] = []
    kept: list[str] = []
    for kind, name, position, label in _places(query, METRICS[metric].paired):
        if label in base.left_out:
            continue
        without = value_of(_drop(query, kind, name, position))
        if without is None:
            kept.append(label)
        else:
            items.append({"word": label, "group": name, "score": without})
    return replace(
        _summary(
            "leave_one_out", base, sorted(items, key=lambda item: -abs(item["score"] - base.value)),
            "range over leaving out one word of any list",
        ),
        prob=1.0,
        notes=(f"could not be left out: {', '.join(kept)}",) if kept else (),
    )  # fmt: skip


def split_half(
    v: Vectors,
    query: Query,
    metric: str = "weat",
    *,
    draws: int = 200,
    **settings: Unpack[Settings],
) -> Measurement:
    """The metric on random halves of every word list at once.

    `low` and `high` hold the central `prob` of the halves' values; `details` has the share of
    halves on the same side of the ideal as the whole.
    """
    if draws < 2:
        raise InputError(f"draws: expected at least 2, got {draws}")
    base, value_of = _reader(v, query, metric, settings)
    rng = np.random.default_rng(base.seed)
    items: list[Item] = []
    for i in range(draws):
        value = value_of(_half(query, rng, METRICS[metric].paired))
        if value is not None:
            items.append({"word": f"half {i + 1}", "group": "", "score": value})
    return _summary(
        "split_half", base, items, f"central {base.prob:.0%} of random halves of every list",
        quantiles=((1 - base.prob) / 2, (1 + base.prob) / 2),
    )  # fmt: skip


def _reader(
    v: Vectors, query: Query, metric: str, settings: Settings
) -> tuple[Measurement, Callable[[Query], float | None]]:
    """The metric on the whole query, and a function for its bare value on a changed one."""
    adapter: Adapter = METRICS[metric]
    reason = adapter.misfit(query)
    if reason:
        raise InputError(f"metric '{metric}' {reason}")
    options = Options(**settings)
    bare: Settings = {"prob": options.prob, "seed": options.seed, "permutations": 0, "null": 0}
    base = adapter(v, query, bare)
    if len(base) != 1:
        raise InputError(f"metric '{metric}' gives {len(base)} values: ask for one attribute set")

    def value_of(changed: Query) -> float | None:
        try:
            return adapter(v, changed, bare)[0].value
        except InputError:
            return None

    return base[0], value_of


def _places(
    query: Query, paired: bool
) -> Iterator[tuple[Literal["targets", "attributes"], str, int, str]]:
    """Every word as (kind, list, position, label); paired targets count once, as a pair."""
    if paired:
        name, words = next(iter(query.targets.items()))
        second = list(query.targets.values())[1]
        for i, pair in enumerate(zip(words, second, strict=True)):
            yield "targets", "", i, "-".join(pair)
    else:
        for name, words in query.targets.items():
            for i, word in enumerate(words):
                yield "targets", name, i, word
    for name, words in query.attributes.items():
        for i, word in enumerate(words):
            yield "attributes", name, i, word


def _drop(query: Query, kind: Literal["targets", "attributes"], name: str, position: int) -> Query:
    lists = {
        key: words[:position] + words[position + 1 :] if name in (key, "") else words
        for key, words in getattr(query, kind).items()
    }
    return _changed(query, **{kind: lists})


def _half(query: Query, rng: np.random.Generator, paired: bool) -> Query:
    def halves(lists: Lists, together: bool) -> Lists:
        result, order = {}, None
        for name, words in lists.items():
            if order is None or not together:
                order = rng.permutation(len(words))[: (len(words) + 1) // 2]
            result[name] = tuple(words[i] for i in sorted(order))
        return result

    return _changed(
        query,
        targets=halves(query.targets, paired),
        attributes=halves(query.attributes, False),
    )


def _changed(query: Query, targets: Lists | None = None, attributes: Lists | None = None) -> Query:
    return Query(
        name=query.name,
        targets=targets or query.targets,
        attributes=attributes or query.attributes,
    )


def _summary(
    name: str,
    base: Measurement,
    items: list[Item],
    interval: str,
    quantiles: tuple[float, float] = (0.0, 1.0),
) -> Measurement:
    values = np.array([item["score"] for item in items])
    if not values.size:
        raise VocabularyError(f"{name} of {base.metric} '{base.query}': its lists are too short")
    low, high = np.quantile(values, quantiles)
    ideal = base.ideal or 0.0
    side = np.sign(values - ideal) == np.sign(base.value - ideal)
    return Measurement(
        metric=f"{name}({base.metric})", query=base.query, value=base.value, low=float(low),
        high=float(high), prob=base.prob, n=values.size, ideal=base.ideal, worse=base.worse,
        interval=interval, items=tuple(items), left_out=base.left_out, seed=base.seed,
        details={"same_side": float(side.mean()), "mean": float(values.mean())},
    )  # fmt: skip
