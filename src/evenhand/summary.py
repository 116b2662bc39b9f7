"""What results say, in one plain sentence: what was found and how sure it is.

The judge decides (`evenhand.judging`); here it is put into words. They come from the declaration of
the instrument: `above` and `below` say what a value on either side of the ideal means. The
terminal, the JSON of a command, pages and notebooks use the same sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from evenhand.instruments import Instrument, Tested, find, judge_results
from evenhand.judging import Judgement
from evenhand.results import Comparison, Measurement
from evenhand.wording import number, p_relation, percent, probability, upper_first

Judged: TypeAlias = tuple[Tested, Judgement]


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
        "Found …", "Undecided …" or "None found …" by the rules of `evenhand.judging.judge`, with
        what the interval rules out. Of several tests those that decide a verdict count, or where
        none does those that confirm one, or all; p-values are corrected for them (Holm). A measure
        without ideal, or
        without a test that could say whether it is more than chance gives, is "Measured …".

    Examples
    --------
    >>> import evenhand as eh
    >>> m = eh.measure(eh.vectors.load("glove"), eh.lexicon.weat(6), "weat")
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
    tests = judge_results(m for m in results if isinstance(m, Measurement))
    if not tests:
        return ""
    judged = [each for each in tests if each[1].outcome not in ("not judged", "not measured")]
    kinds = {each[0].test.kind for each in judged}
    first = next((kind for kind in ("deciding", "confirming") if kind in kinds), "other")
    deciding = [each for each in judged if each[0].test.kind == first]
    if len(deciding) > 1:
        return _several(deciding)
    return _single(*(deciding or tests)[0], of=len(tests))


def clause_of(cls: type[Instrument] | None, m: Measurement) -> str:
    """The meaning of a value, in the words of the instrument's declaration."""
    if cls is None or m.ideal is None or math.isnan(m.value):
        return ""
    return cls.clause(m)


def _clause(tested: Tested) -> str:
    return clause_of(find(tested.about.name) if tested.about else None, tested.evidence.measurement)


def _value(x: float) -> str:
    """A number with as many decimals as its size allows."""
    return number(x, 3 if abs(x) < 10 else 1)


def _interval(low: float, high: float) -> str:
    return f"[{_value(low)}, {_value(high)}]"


def _numbers(tested: Tested, judgement: Judgement) -> str:
    """Value, interval and p, for parentheses."""
    test, m = judgement.test, tested.evidence.measurement
    text = f"{_value(test.value)} {_interval(judgement.low, judgement.high)}"
    if not math.isclose(test.prob, 0.95):
        text += f" ({percent(test.prob)})"
    if (sure := m.details.get("p_below_zero")) is not None:
        text += f"; P(< 0) {_relation(probability(sure))}"
    p = m.p if judgement.outcome == "not judged" else judgement.p
    if p is not None:
        draws = m.draws if judgement.outcome == "not judged" else judgement.draws
        text += f"; p {p_relation(p, draws)}".replace("\u00a0", " ")
        text += f", corrected for {judgement.family} tests" if judgement.family > 1 else ""
        if m.null == "random words":
            text += f"; random words score {_value(m.details['null_median'])}"
        if judgement.p_tested is not None:
            text += f"; p {p_relation(judgement.p_tested)}".replace("\u00a0", " ")
            text += f" {_tested(tested)}"
    elif judgement.family > 1 and judgement.outcome not in ("not judged", "not measured"):
        text += f", {judgement.family} intervals together"
    return text


def _tested(tested: Tested) -> str:
    """The population that was tested, where a wider one decides."""
    if tested.measurement.by == "unit":
        unit = tested.about.unit if tested.about is not None else "items"
        return f"over single {unit}"
    return "in the classes tested"


def _relation(text: str) -> str:
    """A number with its relation sign, which bounds already have."""
    text = text.replace("\u00a0", " ")
    return text if text.startswith(("<", ">")) else f"= {text}"


def _where(*names: str) -> str:
    """The subject and the question of a finding."""
    listed = [name for name in names if name]
    return f" in {', '.join(listed)}" if listed else ""


def ruled_out(judgement: Judgement) -> str:
    """What the interval rules out, as a clause: "beyond 0.099 is ruled out at 95 %".

    Empty where it rules out nothing.
    """
    test, limit = judgement.test, judgement.ruled_out
    if limit is None or (test.ideal == 0.5 and limit >= 0.5):
        return ""
    if test.ratio:
        size = f"a ratio beyond {_value(limit)} (or its inverse {_value(1 / limit)})"
    elif test.ideal:
        size = f"a difference from {test.ideal:g} beyond {_value(limit)}"
    else:
        size = f"beyond {_value(limit)}"
    return f"{size} is ruled out at {percent(test.prob)}"


def _open(judgement: Judgement) -> str:
    """The clause on what is ruled out where nothing is found."""
    text = ruled_out(judgement)
    return f"; {text}" if text else "; the data rule out no size of bias"


def _single(tested: Tested, judgement: Judgement, *, of: int = 1) -> str:
    m, about, outcome = tested.evidence.measurement, tested.about, judgement.outcome
    where = _where(m.subject, m.query)
    label = m.metric if about is None else about.label
    if outcome == "not measured":
        return f"Nothing can be said of {label}{where}: too little could be measured."
    if outcome == "not judged":
        return _measured(tested, judgement, of)
    numbers = _numbers(tested, judgement)
    if outcome in ("none found", "undecided"):
        start = outcome.capitalize()
        beside = ""
        if judgement.in_tested:
            beside = f"; beyond chance {_tested(tested)}, not certain for others"
        if not judgement.settled:
            beside = (
                f"; {m.ideal:g} is outside the interval by less than the Monte Carlo error of its "
                f"end allows ({judgement.test.error:.1g}): more draws can decide"
            )
        return f"{start}{where}: {label} {numbers}{_open(judgement)}{beside}."
    start = "Found" if outcome == "found" else "Found the opposite of bias"
    if clause := _clause(tested):
        text = f"{start}{where}: {clause} ({label} {numbers}"
    else:
        side = "above" if m.value > (m.ideal or 0.0) else "below"
        text = f"{start}{where}: {label} is {side} its ideal {m.ideal:g} ({numbers}"
    return f"{text}){_no_verdict([tested])}."


def _measured(tested: Tested, judgement: Judgement, of: int) -> str:
    """A value that no test compares with an ideal."""
    m, about = tested.evidence.measurement, tested.about
    label = m.metric if about is None else about.label
    text = f"Measured{_where(m.subject, m.query)}: {label} {_numbers(tested, judgement)}"
    better = {"higher": "lower is better", "lower": "higher is better"}.get(m.worse)
    if tested.explained:
        text += f"; {tested.explained}"
    elif m.ideal is None:
        text += f"; {better}" if better else ""
    elif about is not None and not about.bias:
        text += f"; {better}, {m.ideal:g} at best" if better else f"; at best {m.ideal:g}"
    elif about is not None and m.n < about.minimum:
        text += f"; {m.n:,} {about.unit} are too few to be judged ({about.minimum} or more)"
    else:
        text += f"; {m.ideal:g} without bias, and no test says how far chance alone would go"
    return text + (f" (and {of - 1} more, see the table)." if of > 1 else ".")


def _no_verdict(tests: Sequence[Tested]) -> str:
    """Said where none of the measures decides a verdict."""
    if any(each.about is None or each.about.decides for each in tests):
        return ""
    labels = list(dict.fromkeys(each.about.label for each in tests if each.about is not None))
    if len(labels) == 1:
        return f"; no verdict rests on {labels[0]} alone"
    return "; no verdict rests on these measures alone"


def _several(judged: Sequence[Judged]) -> str:
    """The number of tests that find something, and the clearest of them."""
    found = [each for each in judged if each[1].outcome in ("found", "opposite")]
    subjects = list(dict.fromkeys(t.evidence.measurement.subject for t, _ in judged))
    subjects = [subject for subject in subjects if subject]
    where = f" of {subjects[0]}" if len(subjects) == 1 else ""
    first, judgement = min(found or judged, key=_clearness)
    subject = first.evidence.measurement.subject
    name = first.test.label if where or not subject else f"{subject}, {first.test.label}"
    numbers = _numbers(first, judgement)
    if not found:
        unsettled = sum(j.outcome == "undecided" for _, j in judged)
        which = f"{name} {numbers}{_open(judgement)}"
        if not unsettled:
            return f"None found in {len(judged)} tests{where}: {which}."
        count = "all" if unsettled == len(judged) else f"{unsettled} of {len(judged)}"
        start = f"Undecided: none of {len(judged)} tests{where} found a bias"
        leave = "leaves" if unsettled == 1 else "leave"
        return f"{start}, {count} {leave} one open; {which}."
    clause = _clause(first)
    opposite = sum(j.outcome == "opposite" for _, j in found)
    aside = f" ({opposite} of them the opposite of bias)" if opposite else ""
    return (
        f"Found in {len(found)} of {len(judged)} tests{where}{aside}; the clearest is {name}"
        f"{f': {clause}' if clause else ''} ({numbers}){_no_verdict([t for t, _ in found])}."
    )


def _clearness(judged: Judged) -> tuple[bool, float, float]:
    """Sort key: leading tests, then the smallest p, then the largest distance in widths."""
    tested, judgement = judged
    test = tested.test
    width = test.high - test.low
    distance = abs(test.value - (test.ideal or 0.0)) / width if width > 0 else 0.0
    return not test.decides, 1.0 if judgement.p is None else judgement.p, -distance


# ---- comparisons


def _change(c: Comparison) -> str:
    before, after = c.before.subject or "before", c.after.subject or "after"
    if before == after:
        before, after = "before", "after"
    numbers = f"{_value(c.before.value)} → {_value(c.after.value)}, {_change_numbers(c)}"
    of = _label(c)
    direction = c.direction
    if not direction:
        return f"No clear change from {before} to {after}: {of} {numbers}{_change_open(c)}."
    if direction == "moved":
        return f"{_upper(after)} differs from {before}: {of} {c.effect} ({numbers})."
    return f"{_upper(after)} is {_word(c, direction)} than {before}: {of} {c.effect} ({numbers})."


def _label(c: Comparison) -> str:
    """The measure and the question."""
    cls = find(c.metric)
    label = c.metric if cls is None else cls.declaration.label
    return f"{label}, {c.query}" if c.query else label


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
    return text if c.p is None else f"{text}; p {p_relation(c.p)}".replace("\u00a0", " ")


def _change_open(c: Comparison) -> str:
    """What the interval of a change rules out."""
    low, high = c.change.low, c.change.high
    if c.kind == "ratio" or not math.isfinite(high - low):
        return ""
    limit = _value(max(abs(low), abs(high)))
    return f"; a change beyond {limit} is ruled out at {percent(c.change.prob)}"


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
    start = f"{who} is {less} than {than}" if than else upper_first(less)
    text = f"{start} in {_count(counts['better'])} of {total}, {more} in {_count(counts['worse'])}"
    if counts["moved"]:
        text += f", and {counts['moved']} moved otherwise"
    clear = [c for c, direction in zip(changes, directions, strict=True) if direction]
    first = min(clear, key=_change_clearness)
    of = _label(first)
    if not than and first.before.subject != first.after.subject:
        of = f"{first.before.subject} → {first.after.subject}, {of}"
    values = f"{_value(first.before.value)} → {_value(first.after.value)}"
    return f"{text}; the clearest is {of}: {values}, {_change_numbers(first)}."


def _count(count: int) -> str:
    return str(count) if count else "none"


def _change_clearness(c: Comparison) -> float:
    """The change in widths of its interval, the largest first."""
    unchanged = 1.0 if c.kind == "ratio" else 0.0
    width = c.change.high - c.change.low
    return -abs(c.change.value - unchanged) / width if width > 0 else 0.0
