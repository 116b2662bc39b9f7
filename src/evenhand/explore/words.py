"""The tab *Words*: an association test of own lists, two bias axes, and neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from evenhand import lexicon
from evenhand.charts import BLUE, GREY, INK, Chart, data, forest, layer, tooltips
from evenhand.errors import InputError
from evenhand.explore.subjects import Subjects
from evenhand.instruments import measure
from evenhand.lexicon import Query
from evenhand.results import Measurement
from evenhand.statistics.association import association
from evenhand.statistics.intervals import Floats
from evenhand.summary import summarize
from evenhand.vectors.debias.subspace import unit_rows
from evenhand.vectors.robustness import leave_one_out
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import nearest
from evenhand.vectors.vocabulary import known, refuse_shared
from evenhand.wording import number, p_relation, p_value

Lists = Mapping[str, Sequence[str]]

METRIC = "weat"
MOST_MOVING = 12
"""So many words that move the value most are drawn."""
FREQUENT = 50_000
"""Neighbours are among so many most frequent words, as in the measures of utility."""
NEIGHBOURS = 15


def presets() -> dict[str, Any]:
    """Lists to start from: published tests and built-in topics as queries, and axes."""
    topics = [lexicon.topic(name) for name in lexicon.topic_names()]
    queries = [
        {
            "name": query.name,
            "title": query.title or query.name,
            "targets": query.targets,
            "attributes": query.attributes,
        }
        for query in lexicon.weat_queries()
    ]
    axes: dict[str, Lists] = {}
    for topic in topics:
        for pair in combinations(topic.classes, 2):
            lists = {name: topic.protected[name] for name in pair}
            axes[f"{topic.name}: {' – '.join(pair)}"] = lists
    for query in lexicon.weat_queries():
        if len(query.attributes) == 2:
            axes.setdefault(" – ".join(query.attributes), query.attributes)
    words = [word for topic in topics for listed in topic.occupations.values() for word in listed]
    return {
        "queries": queries,
        "axes": [{"name": name, "lists": lists} for name, lists in axes.items()],
        "words": list(dict.fromkeys(words)),
        "topics": [{"name": topic.name, "title": topic.title} for topic in topics],
    }


# ------------------------------------------------------------------------------- association test


def read_association(
    subjects: Subjects, vectors: str, targets: Lists, attributes: Lists, *, narrow: bool = False
) -> dict[str, Any]:
    """WEAT of four lists: with permutations, against random words, and without each word."""
    v = subjects.words(vectors)
    for kind, lists in (("target", targets), ("attribute", attributes)):
        if len(lists) != 2:
            raise InputError(f"expected two {kind} lists with different names, got {len(lists)}")
        for name, words in lists.items():
            if not words:
                raise InputError(f"{kind} list '{name}': expected words, got none")
    query = Query(
        name=f"{'/'.join(targets)} {'/'.join(attributes)}",
        targets={name: tuple(words) for name, words in targets.items()},
        attributes={name: tuple(words) for name, words in attributes.items()},
    )
    measured = measure(v, query, METRIC)
    random = measure(v, query, METRIC, options={"permutations": 0})
    without = leave_one_out(v, query)
    about = measured.details
    return {
        "measurement": measured,
        "random_words": random,
        "leave_one_out": without,
        "p": {
            "targets": p_value(measured.p, measured.draws),
            "attributes": p_value(about["p_attributes"], about.get("draws_attributes")),
            "random": p_value(random.p, random.draws),
        },
        "summary": describe_association(measured, random, without, query),
        "chart": association_chart(measured, random, without, narrow=narrow),
    }


def describe_association(
    measured: Measurement, random: Measurement, without: Measurement, query: Query
) -> list[str]:
    """What the judge says of the test, as the shell prints it, and what the other numbers are."""
    (x, y), (a, b) = query.targets, query.attributes
    first = without.items[0]
    low, high = random.details["null_low"], random.details["null_high"]
    lines = [
        summarize(measured),
        f"d is above 0 where “{x}” goes with “{a}” and “{y}” with “{b}”.",
        f"Random words of similar frequency instead of the targets give d from {number(low, 2)} "
        f"to {number(high, 2)} in 95 % of {random.details['null_draws']:,} draws "
        f"(p\u00a0{p_relation(random.p, random.draws)}).",
        f"Without any one word d stays between {number(without.low, 2)} and "
        f"{number(without.high, 2)}; “{first['word']}” moves it most, to "
        f"{number(first['score'], 2)}.",
    ]
    return [line.replace(" %", "\u00a0%") for line in lines]


def association_chart(
    measured: Measurement, random: Measurement, without: Measurement, *, narrow: bool = False
) -> Chart:
    """The value with its interval above the range of random words, and without single words."""
    label = "all words"
    band = {"band_low": random.details["null_low"], "band_high": random.details["null_high"]}
    ends = {name: getattr(measured, name) for name in ("value", "low", "high")}
    rows = [{"label": label, **ends, **band, "ideal": 0}]
    for item in without.items[:MOST_MOVING]:
        row = dict.fromkeys(("value", "low", "high"), item["score"])
        rows.append({"label": f"without {item['word']} ({item['group']})", **row, "ideal": 0})
    width, line = (150, 20) if narrow else (460, 40)
    return forest(rows, x="Effect size d (no bias: 0)", digits=2, width=width, line=line)


# ---------------------------------------------------------------------------------------- axes


def read_axes(
    subjects: Subjects,
    vectors: str,
    words: Sequence[str],
    x: Lists,
    y: Lists,
    *,
    narrow: bool = False,
) -> dict[str, Any]:
    """The association of words with two pairs of lists, s(w) = mean cos(w, A) - mean cos(w, B)."""
    v = subjects.words(vectors)
    probes = known(v, words, "words")
    unit = v.unit(probes.rows)
    (x_values, x_missing), (y_values, y_missing) = (
        _axis(v, unit, lists, name) for name, lists in (("x axis", x), ("y axis", y))
    )
    rows = [
        {"word": word, "x": float(first), "y": float(second)}
        for word, first, second in zip(probes.words, x_values, y_values, strict=True)
    ]
    correlation = None
    if len(rows) > 2 and np.std(x_values) and np.std(y_values):
        correlation = float(np.corrcoef(x_values, y_values)[0, 1])
    return {
        "rows": rows,
        "left_out": [*probes.missing, *x_missing, *y_missing],
        "correlation": correlation,
        "chart": axes_chart(rows, x, y, narrow=narrow),
    }


def _axis(v: Vectors, unit: Floats, lists: Lists, name: str) -> tuple[Floats, tuple[str, ...]]:
    if len(lists) != 2:
        raise InputError(f"{name}: expected two lists with different names, got {len(lists)}")
    first, second = (known(v, words, f"{name}, '{end}'") for end, words in lists.items())
    refuse_shared(first, second, name)
    values = association(unit, v.unit(first.rows), v.unit(second.rows))
    return values, (*first.missing, *second.missing)


def axes_chart(
    rows: Sequence[Mapping[str, Any]], x: Lists, y: Lists, *, narrow: bool = False
) -> Chart:
    """One dot per word, with its name where there is room."""
    import altair as alt

    width, height = (230, 300) if narrow else (720, 460)
    domains = [_domain([row[name] for row in rows]) for name in ("x", "y")]
    scales = [alt.Scale(domain=domain, nice=False) for domain in domains]
    titles = ["← {1} · {0} →".format(*lists) for lists in (x, y)]
    drawn = [
        {**row, "side": side}
        for row, side in zip(rows, place_labels(rows, domains, width, height), strict=True)
    ]
    ticks = alt.Axis(tickCount=4 if narrow else 6)
    base = layer(data(drawn)).encode(
        x=alt.X("x:Q", title=titles[0], scale=scales[0], axis=ticks),
        y=alt.Y("y:Q", title=titles[1], scale=scales[1], axis=ticks),
    )
    zero = layer(data([{"at": 0}]))
    layers: list[Chart] = [
        zero.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.X("at:Q")),
        zero.mark_rule(color=GREY, strokeDash=[4, 3]).encode(y=alt.Y("at:Q")),
    ]
    for side, look in SIDES.items():
        if any(row["side"] == side for row in drawn):
            near = base.transform_filter(f"datum.side == '{side}'")
            layers.append(
                near.mark_text(fontSize=11, color=INK, **look).encode(text=alt.Text("word:N"))
            )
    tips = {"word": "", "x": "/".join(x), "y": "/".join(y)}
    dots = base.mark_point(filled=True, size=44, opacity=0.85, color=BLUE)
    layers.append(dots.encode(tooltip=tooltips(tips, drawn)))
    return alt.layer(*layers).properties(width=width, height=height)


SIDES: Mapping[str, Any] = {
    "right": {"align": "left", "dx": 6},
    "left": {"align": "right", "dx": -6},
    "above": {"align": "center", "dy": -10},
    "below": {"align": "center", "dy": 10},
}
LETTER, LINE, DOT = 6.2, 13.0, 5.0
"""The size of a letter, a line and half a dot in a chart."""


def _domain(values: Sequence[float]) -> list[float]:
    """From the smallest to the largest value, and 0, with some room."""
    low, high = min(*values, 0.0), max(*values, 0.0)
    room = 0.06 * (high - low) or 0.1
    return [low - room, high + room]


def place_labels(
    rows: Sequence[Mapping[str, Any]],
    domains: Sequence[Sequence[float]],
    width: float,
    height: float,
) -> list[str]:
    """On which side of its dot each name fits without hiding another; "" where on none.

    Examples
    --------
    >>> rows = [{"word": "nurse", "x": 0.5, "y": 0.5}, {"word": "judge", "x": 0.51, "y": 0.5}]
    >>> place_labels(rows, [(0, 1), (0, 1)], 200, 200)
    ['left', 'right']
    """
    (x_low, x_high), (y_low, y_high) = domains
    across, down = width / (x_high - x_low), height / (y_high - y_low)
    dots = [((row["x"] - x_low) * across, (y_high - row["y"]) * down) for row in rows]
    taken = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in dots]
    sides = []
    for i, (row, (x, y)) in enumerate(zip(rows, dots, strict=True)):
        long = LETTER * len(row["word"])
        boxes = {
            "right": (x + 6, y - LINE / 2, x + 6 + long, y + LINE / 2),
            "left": (x - 6 - long, y - LINE / 2, x - 6, y + LINE / 2),
            "above": (x - long / 2, y - 10 - LINE / 2, x + long / 2, y - 10 + LINE / 2),
            "below": (x - long / 2, y + 10 - LINE / 2, x + long / 2, y + 10 + LINE / 2),
        }
        for side, box in boxes.items():
            inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
            if inside and not any(_overlap(box, other) for j, other in enumerate(taken) if j != i):
                taken.append(box)
                sides.append(side)
                break
        else:
            sides.append("")
    return sides


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# ---------------------------------------------------------------------------------- neighbours


def read_neighbours(
    subjects: Subjects, vectors: str, word: str, *, topic: str, method: str, other: str = ""
) -> dict[str, Any]:
    """The nearest words before and after debiasing, or in other vectors."""
    v = subjects.words(vectors)
    after = subjects.words(other) if other else subjects.debiased(vectors, topic, method)
    return {
        "word": word,
        "before": {"name": v.name, "neighbours": neighbours(v, word)},
        "after": {"name": after.name, "neighbours": neighbours(after, word)},
        "among": min(FREQUENT, len(v)),
    }


def neighbours(v: Vectors, word: str, k: int = NEIGHBOURS) -> list[dict[str, Any]]:
    """The k most similar of the most frequent words, with their cosines.

    Examples
    --------
    >>> import evenhand as eh
    >>> [row["word"] for row in neighbours(eh.vectors.load("glove"), "paris", k=1)]
    ['france']
    """
    v[word]  # a word without a vector is an error that suggests another
    [row] = known(v, [word], "word").rows.tolist()
    unit = unit_rows(v.matrix[:FREQUENT])
    rows, cosines = nearest(unit, min(k + 1, len(unit)), unit_rows(v.matrix[row : row + 1]))
    listed = [
        {"word": v.words[near], "cosine": float(cosine)}
        for near, cosine in zip(rows[0], cosines[0], strict=True)
        if near != row
    ]
    return listed[:k]
