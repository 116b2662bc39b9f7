"""What results say, in one plain sentence: what was found and how sure it is.

The words come from the declaration of the instrument: `above` and `below` say what a value on
either side of the ideal means. The terminal, the JSON of a command, pages and notebooks use the
same sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from evenhand.instruments import (
    PACKAGES,
    Declaration,
    Evidence,
    all_declarations,
    find,
    instruments,
)
from evenhand.results import Comparison, Measurement
from evenhand.statistics.power import POWER, quantile, smallest_effect
from evenhand.statistics.tests import holm
from evenhand.wording import number, p_relation, percent, probability

__all__ = ["clause_of", "summarize"]

FEWEST = 10
"""With fewer items the smallest bias that would have been seen is not known."""

Outcome = Literal["found", "opposite", "none", "measured", "missing"]


def summarize(
    measurements: Measurement | Comparison | Iterable[Measurement | Comparison],
    comparisons: Iterable[Comparison] = (),
) -> str:
    """Say in one sentence what was found, and how sure that is.

    Parameters
    ----------
    measurements : Measurement, Comparison, or iterable of these
    comparisons : iterable of Comparison
        With comparisons the sentence is about these.

    Returns
    -------
    str
        "Found …" where a test rejects the ideal or, without a test, the interval of a two-sided
        measure excludes it. "None found …" comes with the smallest bias that would have been seen.
        A measure without ideal, or without a test that could say whether it is more than chance
        gives, is "Measured …". P-values of several tests are corrected (Holm).

    Examples
    --------
    >>> import evenhand as eh
    >>> m = eh.measure(eh.vectors.load("glove"), eh.lexicon.weat(6), "weat")[0]
    >>> summarize(m).startswith("Found in glove, weat-6: the first target words go with the first")
    True

    """
    if isinstance(measurements, Measurement | Comparison):
        measurements = [measurements]
    results = list(measurements)
    changes = [*(c for c in results if isinstance(c, Comparison)), *comparisons]
    if len(changes) == 1:
        return _change(changes[0])
    if changes:
        return _changes(changes)
    tests = [test for m in results if isinstance(m, Measurement) for test in _tests(m)]
    decisive = [test for test in tests if test.outcome in ("found", "opposite", "none")]
    if not tests:
        return ""
    if len(decisive) > 1:
        return _several(_corrected(decisive))
    return _single(*(decisive or tests[:1]), of=len(tests))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """A result, or the part of one that decides, with its p-value and that of new classes."""

    m: Measurement
    about: Declaration | None
    label: str
    p: float | None
    general: Measurement | None = None
    tests: int = 1
    clause: str = ""
    explained: str = ""
    """What explains the value other than a bias."""

    @property
    def alpha(self) -> float:
        return 1 - self.m.prob

    @property
    def outcome(self) -> Outcome:
        m = self.m
        if math.isnan(m.value):
            return "missing"
        if m.ideal is None or self.explained or (self.about is not None and not self.about.bias):
            return "measured"
        if self.sure is not None:
            clear = not m.low <= m.ideal <= m.high
        elif self.p is not None:
            clear = self.p < self.alpha
        elif self.two_sided:
            clear = not m.low <= m.ideal <= m.high
        else:  # the ideal is the end of the range, and every interval of a value excludes it
            return "measured"
        if not clear or m.value == m.ideal:
            return "none"
        wrong = m.worse != "away" and (m.value > m.ideal) != (m.worse == "higher")
        return "opposite" if wrong else "found"

    @property
    def two_sided(self) -> bool:
        """Whether values can lie on either side of the ideal."""
        return self.m.worse == "away" or bool(
            self.about is not None and self.about.above and self.about.below
        )

    @property
    def sure(self) -> float | None:
        """Of a posterior, the probability of a value below 0."""
        known: float | None = self.m.details.get("p_below_zero")
        return known

    @property
    def smallest(self) -> float | None:
        """The smallest effect that the test finds with a power of 80 %, if it is known."""
        ends = (self.general or self.m).low, (self.general or self.m).high
        if self.p is None or self.m.null == "random words":
            return None
        if self.ratio:
            ends = tuple(math.log(end) if end > 0 else -math.inf for end in ends)  # type: ignore[assignment]
        error = (ends[1] - ends[0]) / 2 / quantile((1 + self.m.prob) / 2)
        if not math.isfinite(error):
            return None
        effect = smallest_effect(error, alpha=self.alpha / self.tests)
        return math.exp(effect) if self.ratio else effect

    @property
    def ratio(self) -> bool:
        return self.about is not None and self.about.compared == "ratio"


def _tests(m: Measurement) -> list[_Test]:
    """The tests of a result: those that its instrument names, or the result itself."""
    cls = find(m.metric) or find(_estimated().get(f"{m.metric} {m.query}", ""))
    about = None if cls is None else cls.declaration
    evidence: list[Evidence] = []
    if cls is not None and not m.by and m.metric == cls.declaration.name:
        judged = cls.declaration.role not in ("shown", "") and hasattr(cls, "evidence")
        evidence = cls.evidence(m) if judged else []
    return [
        _Test(
            m=replace(each.measurement, subject=each.measurement.subject or m.subject),
            about=about,
            label=each.label or _label(about, each.measurement),
            p=each.measurement.p_value,
            general=each.general,
            clause="" if cls is None else clause_of(cls, each.measurement),
            explained=_explained(cls, m),
        )
        for each in evidence or [Evidence(measurement=m)]
    ]


@cache
def _estimated() -> dict[str, str]:
    """Results of models, and the instruments that measure the same."""
    return {result: about.name for about in all_declarations() for result in about.estimates}


def _explained(cls: type[Any] | None, m: Measurement) -> str:
    """What explains a value other than a bias, in words."""
    if m.query.partition(":")[0] in _controls(None if cls is None else cls.declaration):
        return "a harmless association, which is no bias"
    explain = getattr(cls, "explained", None)
    return "" if explain is None else str(explain(m))


def _controls(about: Declaration | None) -> frozenset[str]:
    """The questions about harmless associations, of the subjects that an instrument measures."""
    return frozenset(
        query
        for subject in PACKAGES
        if about is None or about.measures(subject)
        for cls in instruments(subject).values()
        for query in getattr(cls, "controls", ())
    )


def _label(about: Declaration | None, m: Measurement) -> str:
    return f"{m.metric if about is None else about.label}{f', {m.query}' if m.query else ''}"


def clause_of(cls: Any, m: Measurement) -> str:
    """What a value says, in the words of the instrument's declaration."""
    if m.ideal is None or math.isnan(m.value):
        return ""
    if hasattr(cls, "clause"):
        return str(cls.clause(m))
    text = cls.declaration.above if m.value > m.ideal else cls.declaration.below
    share, other = percent(m.value), percent(1 - m.value)
    return str(text.format(query=m.query, n=f"{m.n:,}", percent=share, other=other))


def _corrected(tests: Sequence[_Test]) -> list[_Test]:
    """The tests with their p-values corrected for their number."""
    known = [test.p for test in tests if test.p is not None]
    corrected = iter(holm(known))
    return [
        replace(test, p=None if test.p is None else next(corrected), tests=max(len(known), 1))
        for test in tests
    ]


def _value(x: float) -> str:
    """A number with as many decimals as its size allows."""
    return number(x, 3 if abs(x) < 10 else 1)


def _interval(low: float, high: float) -> str:
    return f"[{_end(low)}, {_end(high)}]"


def _end(x: float) -> str:
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    return _value(x)


def _numbers(test: _Test) -> str:
    """Value, interval and p, as they stand in parentheses."""
    m, shown = test.m, test.general or test.m
    text = f"{_value(m.value)} {_interval(shown.low, shown.high)}"
    if not math.isclose(m.prob, 0.95):
        text += f" ({percent(m.prob)})"
    if test.sure is not None:
        text += f"; P(< 0) {_relation(probability(test.sure))}"
    if test.p is not None:
        text += f"; p {p_relation(test.p)}".replace("\u00a0", " ")
        text += " in the classes tested" if test.general is not None else ""
        if test.tests > 1:
            text += f", corrected for {test.tests} tests"
        if m.null == "random words":
            text += f", against random words, which read {_value(m.details['null_median'])}"
        if test.general is not None and test.general.p_value is not None:
            text += f"; {_p(test.general.p_value)} for new ones"
    return text


def _relation(text: str) -> str:
    """A number with its relation sign, which bounds already have."""
    text = text.replace("\u00a0", " ")
    return text if text.startswith(("<", ">")) else f"= {text}"


def _p(p: float) -> str:
    return p_relation(p).replace("\u00a0", " ").removeprefix("= ")


def _where(*names: str) -> str:
    """Where it was found: the subject and the question."""
    listed = [name for name in names if name]
    return f" in {', '.join(listed)}" if listed else ""


def _single(test: _Test, *, of: int = 1) -> str:
    m, about = test.m, test.about
    where = _where(m.subject, m.query)
    label = m.metric if about is None else about.label
    if test.outcome == "missing":
        return f"Nothing can be said of {label}{where}: too little could be measured."
    if test.outcome == "measured":
        return _measured(test, of)
    if test.outcome == "none":
        return f"None found{where}: {label} {_numbers(test)}{_could_see(test)}."
    start = "Found" if test.outcome == "found" else "Found the opposite of bias"
    if test.clause:
        text = f"{start}{where}: {test.clause} ({label} {_numbers(test)}"
    else:
        side = "above" if m.value > (m.ideal or 0.0) else "below"
        text = f"{start}{where}: {label} is {side} its ideal {m.ideal:g} ({_numbers(test)}"
    return f"{text}){_no_verdict([test])}."


def _measured(test: _Test, of: int) -> str:
    """A value that no test compares with an ideal."""
    m, about = test.m, test.about
    label = m.metric if about is None else about.label
    text = f"Measured{_where(m.subject, m.query)}: {label} {_numbers(test)}"
    better = {"higher": "lower is better", "lower": "higher is better"}.get(m.worse)
    if test.explained:
        text += f"; {test.explained}"
    elif m.ideal is None:
        text += f"; {better}" if better else ""
    elif about is not None and not about.bias:
        text += f"; {better}, {m.ideal:g} at best" if better else f"; at best {m.ideal:g}"
    else:
        text += f"; {m.ideal:g} without bias, and no test says how far chance alone would go"
    return text + (f" (and {of - 1} more, see the table)." if of > 1 else ".")


def _could_see(test: _Test) -> str:
    """The smallest bias that would have been seen."""
    smallest = test.smallest
    if smallest is None:
        return ""
    if test.m.n < FEWEST or (test.m.ideal == 0.5 and smallest > 0.5):
        items = "1 item is" if test.m.n == 1 else f"{test.m.n} items are"
        return f"; {items} too few to see even a large bias"
    if test.ratio:
        size = f"a ratio of {_value(smallest)} or more (or {_value(1 / smallest)} or less)"
    else:
        what = "a bias" if not test.m.ideal else f"a difference from {test.m.ideal:g}"
        size = f"{what} of {_value(smallest)} or more"
    return f"; {size} would have been seen with a power of {percent(POWER)}"


def _no_verdict(tests: Sequence[_Test]) -> str:
    """Said where none of the measures decides a verdict."""
    if any(test.about is None or test.about.decides for test in tests):
        return ""
    labels = list(dict.fromkeys(test.about.label for test in tests if test.about is not None))
    if len(labels) == 1:
        return f"; no verdict rests on {labels[0]} alone"
    return "; no verdict rests on these measures alone"


def _several(tests: Sequence[_Test]) -> str:
    """The number of tests that find something, and the clearest of them."""
    found = [test for test in tests if test.outcome in ("found", "opposite")]
    subjects = list(dict.fromkeys(test.m.subject for test in tests if test.m.subject))
    where = f" of {subjects[0]}" if len(subjects) == 1 else ""
    first = min(found or tests, key=_clearness)
    name = first.label if where or not first.m.subject else f"{first.m.subject}, {first.label}"
    if not found:
        leads = first.about is not None and first.about.decides
        which = f"{name}, which decides," if leads else f"{name}, with the smallest p,"
        return (
            f"None found in {len(tests)} tests{where}: {which} reads {_numbers(first)}"
            f"{_could_see(first)}."
        )
    said = f": {first.clause}" if first.clause else ""
    opposite = sum(test.outcome == "opposite" for test in found)
    aside = f" ({opposite} of them the opposite of bias)" if opposite else ""
    return (
        f"Found in {len(found)} of {len(tests)} tests{where}{aside}; the clearest is {name}{said} "
        f"({_numbers(first)}){_no_verdict(found)}."
    )


def _clearness(test: _Test) -> tuple[bool, float, float]:
    """What decides first, then the smallest p, then the largest distance in standard errors."""
    m = test.m
    width = m.high - m.low
    distance = abs(m.value - (m.ideal or 0.0)) / width if width > 0 else 0.0
    decides = test.about is not None and test.about.decides
    return not decides, 1.0 if test.p is None else test.p, -distance


# ---- comparisons


def _change(c: Comparison) -> str:
    before, after = c.before.subject or "before", c.after.subject or "after"
    if before == after:
        before, after = "before", "after"
    cls = find(c.metric)
    label = c.metric if cls is None else cls.declaration.label
    numbers = f"{_value(c.before.value)} → {_value(c.after.value)}, {_change_numbers(c)}"
    of = f"{label}{f', {c.query}' if c.query else ''}"
    direction = c.direction
    if not direction:
        return f"No clear change from {before} to {after}: {of} {numbers}{_change_seen(c)}."
    if direction == "moved":
        return f"{_upper(after)} differs from {before}: {of} {c.effect} ({numbers})."
    return f"{_upper(after)} is {_word(c, direction)} than {before}: {of} {c.effect} ({numbers})."


def _word(c: Comparison, direction: str) -> str:
    """Less or more biased; of a measure of something else, better or worse."""
    if _measures_bias(c):
        return {"better": "less biased", "worse": "more biased"}[direction]
    return direction


def _measures_bias(c: Comparison) -> bool:
    cls = find(c.metric)
    return cls is not None and bool(cls.declaration.bias)


def _upper(text: str) -> str:
    return text.capitalize() if text in ("before", "after") else text


def _change_numbers(c: Comparison) -> str:
    text = f"{'ratio' if c.kind == 'ratio' else 'change'} {_value(c.change.value)} "
    text += _interval(c.change.low, c.change.high)
    p = c.details.get("p_holm", c.p_value)
    return text if p is None else f"{text}; p {p_relation(p)}".replace("\u00a0", " ")


def _change_seen(c: Comparison) -> str:
    if c.kind == "ratio" or c.paired < FEWEST or not math.isfinite(c.change.high - c.change.low):
        return ""
    error = (c.change.high - c.change.low) / 2 / quantile((1 + c.change.prob) / 2)
    size = _value(smallest_effect(error, alpha=1 - c.change.prob))
    return f"; a change of {size} or more would have been seen with a power of {percent(POWER)}"


def _changes(changes: Sequence[Comparison]) -> str:
    """In how many measures the bias is less, in how many more, and the clearest of them.

    Comparisons of other things, such as usefulness, count only where there are none of bias.
    """
    changes = [c for c in changes if _measures_bias(c)] or changes
    if len(changes) == 1:
        return _change(changes[0])
    directions = [c.direction for c in changes]
    subjects = {(c.before.subject, c.after.subject) for c in changes}
    counts = {name: directions.count(name) for name in ("better", "worse", "moved")}
    who, than = "Bias", ""
    if len(subjects) == 1:
        [(before, after)] = subjects
        if before != after and before and after:
            who, than = after, before
    total = f"{len(changes)} comparisons"
    if not any(directions):
        widest = f"No clear change in {total}"
        return f"{widest} from {than} to {who}." if than else f"{widest}."
    less, more = (_word(changes[0], direction) for direction in ("better", "worse"))
    if than:
        text = f"{who} is {less} than {than} in {_count(counts['better'])} of {total}, "
        text += f"{more} in {_count(counts['worse'])}"
    else:
        text = f"{_upper_first(less)} in {_count(counts['better'])} of {total}, "
        text += f"{more} in {_count(counts['worse'])}"
    if counts["moved"]:
        text += f", and {counts['moved']} moved otherwise"
    clear = [c for c, direction in zip(changes, directions, strict=True) if direction]
    first = min(clear, key=_change_clearness)
    cls = find(first.metric)
    label = first.metric if cls is None else cls.declaration.label
    of = f"{label}{f', {first.query}' if first.query else ''}"
    if not than and first.before.subject != first.after.subject:
        of = f"{first.before.subject} → {first.after.subject}, {of}"
    values = f"{_value(first.before.value)} → {_value(first.after.value)}"
    return f"{text}; the clearest is {of}: {values}, {_change_numbers(first)}."


def _count(count: int) -> str:
    return str(count) if count else "none"


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _change_clearness(c: Comparison) -> float:
    """The change in widths of its interval, the largest first."""
    unchanged = 1.0 if c.kind == "ratio" else 0.0
    width = c.change.high - c.change.low
    return -abs(c.change.value - unchanged) / width if width > 0 else 0.0
