"""How a comparison is put in words: names of measures, differences, which side reads worse."""

from __future__ import annotations

from evenhand.report.comparison import Line
from evenhand.report.comparison_differences import Difference
from evenhand.report.methods import METHODS
from evenhand.report.methods_fewshot import METHODS as FEWSHOT
from evenhand.report.methods_masked import METHODS as MASKED
from evenhand.report.methods_posterior import METHODS as POSTERIOR
from evenhand.report.methods_text import METHODS as TEXT
from evenhand.report.wording import interval, number

__all__ = ["apart", "label_of", "worse"]

CONTROLS = {
    ("weat", "weat-1"), ("weat", "weat-2"), ("phrases", "neutral"),
}  # fmt: skip
"""Associations that harm nobody, measured to see what one looks like."""


def label_of(metric: str, query: str = "", topic: str = "") -> str:
    """The measure's name for readers, and which part of the topic it is about.

    >>> label_of("rnd", "race: black/asian", "race"), label_of("", "Mean score")
    ('RND, black/asian', 'Mean score')
    """
    every = {**TEXT, **MASKED, **FEWSHOT, **POSTERIOR, **METHODS}
    name = every[metric].label if metric in every else metric.replace("_", " ").replace("-", " ")
    part = query.removeprefix(topic).removeprefix(":").strip() if topic else query
    return ", ".join(words for words in (name[:1].upper() + name[1:], part) if words)


def apart(found: Difference) -> str:
    """The difference with its interval; a ratio says how many times.

    >>> apart(Difference(kind="unpaired", how="", value=2, low=1.5, high=3, ratio=True))
    '× 2.00 [1.50, 3.00]'
    """
    if found.kind == "none":
        return "–"
    if found.kind == "same":
        return "0 (same input)"
    if found.ratio:
        return f"× {number(found.value, 2)} {interval(found.low, found.high, 2)}"
    return f"{number(found.value)} {interval(found.low, found.high)}"


def worse(line: Line, place: int, letters: tuple[str, str]) -> str:
    """Which of the first audit and another reads worse, where the difference is clear.

    A measure that is worse on either side of its ideal can only be told where both values lie on
    one side of it. Controls have no worse: they are there to be read.
    """
    found, first, second = line.differences[place], line.sides[0], line.sides[place]
    if found is None or first is None or second is None or found.kind == "none":
        return "–"
    if (line.metric, line.query) in CONTROLS:
        return "a control"
    if not found.clear:
        return "not clear"
    risen = second.value > first.value
    if first.worse == "away":
        if first.ideal is None:
            return "–"
        sides = [m.value - first.ideal for m in (first, second)]
        if sides[0] * sides[1] < 0:
            return "opposite sides"
        more = abs(sides[1]) > abs(sides[0])
    else:
        more = risen if first.worse == "higher" else not risen
    return letters[1] if more else letters[0]
