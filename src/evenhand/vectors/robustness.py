"""Does a result depend on single words? Leave-one-out and random halves of every word list.

Both rerun the metric on the changed query, whichever list a word is in, so they also show what
the metric's own interval holds fixed, such as the identity words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from evenhand.arguments import checked
from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import MOST_DRAWN, Run, lookup
from evenhand.lexicon import Query
from evenhand.results import Item, Items, Measurement
from evenhand.vectors.store import Vectors

Kind: TypeAlias = Literal["targets", "attributes"]


@checked
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
    seed, prob
        As for `Run`.

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
    for kind, names in _groups(query, paired):
        lists = getattr(query, kind)
        for i, words in enumerate(zip(*(lists[name] for name in names), strict=True)):
            label = "-".join(words)
            if label in base.left_out:
                continue
            rest = [k for k in range(len(lists[names[0]])) if k != i]
            without = value_of(_with_only(query, kind, names, rest))
            if without is None:
                needed.append(label)
            else:
                group = "" if len(names) > 1 else names[0]
                items.append({"word": label, "group": group, "score": without})
    ranked = sorted(items, key=lambda item: -abs(item["score"] - base.value))
    return replace(
        _summary("leave_one_out", base, ranked, "range over leaving out one word of any list"),
        prob=1.0,
        notes=(f"could not be left out: {', '.join(needed)}",) if needed else (),
    )


@checked
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
    draws : int
        Random halves.
    v, query, metric, seed, prob
        As for `leave_one_out`.

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
    if not 2 <= draws <= MOST_DRAWN:
        raise InputError(f"draws: expected 2 to {MOST_DRAWN:,}, got {draws:,}")
    base, paired, value_of = _reader(v, query, metric, Run(seed=seed, prob=prob))
    rng = np.random.default_rng(base.seed)
    items: list[Item] = []
    for i in range(draws):
        half = query
        for kind, names in _groups(query, paired):
            size = len(getattr(query, kind)[names[0]])
            half = _with_only(half, kind, names, sorted(rng.permutation(size)[: (size + 1) // 2]))
        value = value_of(half)
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
            return float(next(iter(bare.answer(v, changed, run))).value)
        except InputError:
            return None

    return base[0], bare.paired, value_of


def _groups(query: Query, paired: bool) -> list[tuple[Kind, tuple[str, ...]]]:
    """The lists whose words are left out together: both target sets if their words are pairs."""
    targets = [tuple(query.targets)] if paired else [(name,) for name in query.targets]
    attributes = [(name,) for name in query.attributes]
    return [
        *(("targets", each) for each in targets),
        *(("attributes", each) for each in attributes),
    ]


def _with_only(query: Query, kind: Kind, names: Sequence[str], positions: Sequence[int]) -> Query:
    """The query with only the words at these positions of some of its lists."""
    lists: Mapping[str, tuple[str, ...]] = getattr(query, kind)
    lists = {**lists, **{name: tuple(lists[name][i] for i in positions) for name in names}}
    return replace(query, targets=lists) if kind == "targets" else replace(query, attributes=lists)


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
