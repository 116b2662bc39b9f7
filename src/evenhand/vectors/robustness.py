"""Does a result depend on single words? Leave-one-out and random halves of every word list.

Both rerun the metric on the changed query, whichever list a word is in, so they also show what
the metric's own interval holds fixed, such as the identity words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import Run, lookup
from evenhand.lexicon import Query
from evenhand.results import Item, Items, Measurement
from evenhand.vectors.store import Vectors

__all__ = ["leave_one_out", "split_half"]

Lists = Mapping[str, tuple[str, ...]]


def leave_one_out(
    v: Vectors, query: Query, metric: str = "weat", *, seed: int = 0, prob: float = 0.95
) -> Measurement:
    """Measure the range of a metric's value when any one word (or pair) of any list is left out.

    Parameters
    ----------
    v : Vectors
    query : Query
    metric : str
        A metric that gives one value for the query.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        `low` and `high` are the range, all of it. The items begin with the word that moves the
        value most. Words whose list would become too short are named in `notes`.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = eh.vectors.leave_one_out(v, eh.lexicon.weat(7))
    >>> m.low <= m.value <= m.high, m.n
    (True, 32)

    """
    base, paired, value_of = _reader(v, query, metric, Run(seed=seed, prob=prob))
    items: list[Item] = []
    needed: list[str] = []
    for kind, name, position, label in _positions(query, paired):
        if label in base.left_out:
            continue
        without = value_of(_drop(query, kind, name, position))
        if without is None:
            needed.append(label)
        else:
            items.append({"word": label, "group": name, "score": without})
    ranked = sorted(items, key=lambda item: -abs(item["score"] - base.value))
    return replace(
        _summary("leave_one_out", base, ranked, "range over leaving out one word of any list"),
        prob=1.0,
        notes=(f"could not be left out: {', '.join(needed)}",) if needed else (),
    )


def split_half(
    v: Vectors,
    query: Query,
    metric: str = "weat",
    *,
    draws: int = 200,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure a metric on random halves of every word list at once.

    Parameters
    ----------
    v : Vectors
    query : Query
    metric : str
        A metric that gives one value for the query.
    draws : int
        Random halves.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        `low` and `high` contain the central `prob` of the halves' values;
        `details["same_side"]` is the share of halves on the same side of the ideal as the value.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.split_half(v, eh.lexicon.weat(7), draws=20).details["same_side"] > 0.5
    True

    """
    if draws < 2:
        raise InputError(f"draws: expected at least 2, got {draws}")
    base, paired, value_of = _reader(v, query, metric, Run(seed=seed, prob=prob))
    rng = np.random.default_rng(base.seed)
    items: list[Item] = []
    for i in range(draws):
        value = value_of(_half(query, rng, paired))
        if value is not None:
            items.append({"word": f"half {i + 1}", "group": "", "score": value})
    return _summary(
        "split_half",
        base,
        items,
        f"central {base.prob:.0%} of random halves of every list",
        quantiles=((1 - base.prob) / 2, (1 + base.prob) / 2),
    )


def _reader(
    v: Vectors, query: Query, metric: str, run: Run
) -> tuple[Measurement, bool, Callable[[Query], float | None]]:
    """The metric on the query, whether targets are pairs, and its value on a changed query."""
    bare: Any = lookup("vectors", metric)(permutations=0, null=0)
    base = bare.measure(v, query, run)
    if len(base) != 1:
        raise InputError(f"metric '{metric}' gives {len(base)} values: use one attribute set")

    def value_of(changed: Query) -> float | None:
        try:
            return float(bare.answer(v, changed, run)[0].value)
        except InputError:
            return None

    return base[0], bare.paired, value_of


def _positions(
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
    return replace(
        base,
        metric=f"{name}({base.metric})",
        low=float(low),
        high=float(high),
        n=values.size,
        interval=interval,
        items=Items(items),
        details={"same_side": float(side.mean()), "mean": float(values.mean())},
    )
