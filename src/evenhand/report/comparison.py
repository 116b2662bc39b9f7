"""Two audits or more side by side: what differs, the verdicts, each measure, the set-up."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evenhand.charts import BLUE, GREEN, ORANGE, PURPLE, Chart, forests
from evenhand.errors import InputError
from evenhand.files import document, real_path, replace_file, save_csv, save_json
from evenhand.instruments import LANGUAGE, compare, find, item_key, paired_jackknife
from evenhand.judging import excludes, simultaneous, widen
from evenhand.lexicon import Topic
from evenhand.report.blocks import (
    Block,
    Cell,
    Prose,
    Section,
    Table,
    Text,
    cell,
    count,
    lay_out,
    p_cell,
    render_page,
    span,
)
from evenhand.report.cards import without_aside
from evenhand.report.findings import Findings, read_findings
from evenhand.report.methods import label_of, scale_of
from evenhand.report.verdicts import SUBJECTS, Verdict
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.wording import interval, number, percent, slug

prose = Prose("comparison")

IDENTITY = {
    "vectors": "content_sha256",
    **dict.fromkeys(LANGUAGE, "fingerprint"),
    "data": "digest",
    "predictions": "digest",
}
"""The fact that shows whether two audits had the same input."""
DEPENDS_ON: Mapping[str, tuple[str, ...]] = {
    "data": ("data",),
    "vectors": ("vectors",),
    **{kind: (kind, "data") for kind in LANGUAGE},
    "classifier": (*LANGUAGE, "data"),
    "predictions": ("predictions",),
}
"""What the numbers on each subject depend on."""
COLOURS = (ORANGE, BLUE, GREEN, PURPLE)
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
FACTS = {
    "name": "name",
    "words": "words",
    "dim": "dimensions",
    "weights": "weights",
    "layers": "layers",
    "texts": "texts",
    "classes": "classes",
    "content_sha256": "SHA-256 of the content",
    "fingerprint": "fingerprint",
    "digest": "digest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The second audit's value minus the first's, or as a `ratio` divided by it.

    `how` says what the interval rests on, or for `kind` none why there is no difference.
    """

    kind: Literal["paired", "unpaired", "same input", "none"]
    how: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    prob: float = 0.95
    items: int = 0
    ratio: bool = False

    @property
    def clear(self) -> bool:
        """The interval excludes no difference."""
        return excludes(self.low, self.high, 1.0 if self.ratio else 0.0)

    def __str__(self) -> str:
        """The difference with its interval; a ratio says how many times.

        >>> str(Difference(kind="unpaired", how="", value=2, low=1.5, high=3, ratio=True))
        '× 2.00 [1.50, 3.00]'
        """
        if self.kind == "none":
            return "–"
        if self.kind == "same input":
            return "0 (same input)"
        if self.ratio:
            return f"× {number(self.value, 2)} {interval(self.low, self.high, 2)}"
        return f"{number(self.value)} {interval(self.low, self.high)}"

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the audits: a letter, a label if given, its folder's name, and all it found."""

    letter: str
    folder: str
    findings: Findings = field(repr=False)
    label: str = ""

    @property
    def short(self) -> str:
        """The label, or the letter where there is none."""
        return self.label or self.letter

    @property
    def quoted(self) -> str:
        """The label in quotation marks, or the letter, for use in a sentence."""
        return f"“{self.label}”" if self.label else self.letter

    @property
    def name(self) -> str:
        """The label or letter and what was audited."""
        return f"{self.short}: {self.findings.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measure in all audits, None where an audit lacks it, and each one's difference from A."""

    subject: str
    topic: str
    metric: str
    query: str
    sides: tuple[Measurement | None, ...] = field(repr=False)
    differences: tuple[Difference | None, ...]

    @property
    def shared(self) -> bool:
        """At least two audits have it."""
        return sum(side is not None for side in self.sides) > 1

    @property
    def label(self) -> str:
        """The measure and its query."""
        if not self.metric:
            return self.query
        return label_of(self.metric, self.topic, self.query)

    @property
    def is_bias(self) -> bool:
        """It measures bias, not usefulness, and is not a number of a verdict shown elsewhere."""
        cls = find(self.metric)
        return bool(self.metric) and (cls is None or bool(cls.declaration.bias))

    @property
    def ideal(self) -> float | None:
        """The value without bias."""
        return next((m.ideal for m in self.sides if m is not None), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "topic": self.topic,
            "metric": self.metric,
            "query": self.query,
            "sides": [None if m is None else m.to_dict(items=False) for m in self.sides],
            "differences": [None if d is None else d.to_dict() for d in self.differences],
            "effects": [
                None if d is None else effect(self, i) for i, d in enumerate(self.differences)
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The measures of bias by how an audit reads against the first; usefulness is not counted."""

    less_biased: tuple[Line, ...] = ()
    more_biased: tuple[Line, ...] = ()
    unclear: tuple[Line, ...] = ()

    @property
    def count(self) -> int:
        """The number of measures compared."""
        return len(self.less_biased) + len(self.more_biased) + len(self.unclear)

    def to_dict(self) -> dict[str, Any]:
        return {
            "compared": self.count,
            **{name: [line.label for line in getattr(self, name)] for name in self.__slots__},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditComparison:
    """The audits, their verdicts by what they are about, and every measure of any of them."""

    sides: tuple[Side, ...]
    verdicts: dict[tuple[str, str, str], tuple[Verdict | None, ...]] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)

    def tally(self, index: int, subject: str | None = None) -> Tally:
        """How an audit reads against the first, over all measures or those of one subject."""
        counted: dict[str, list[Line]] = {"less_biased": [], "more_biased": [], "unclear": []}
        for line in self.lines:
            gap = line.differences[index]
            known = gap is not None and gap.kind in ("paired", "unpaired")
            if known and line.is_bias and subject in (None, line.subject):
                reads = effect(line, index)
                if reads.startswith(("better", "nearer")):
                    counted["less_biased"].append(line)
                elif reads.startswith(("worse", "further")):
                    counted["more_biased"].append(line)
                elif reads.startswith(("no clear", "about as far")):
                    counted["unclear"].append(line)
        return Tally(**{name: tuple(lines) for name, lines in counted.items()})

    @property
    def findings(self) -> list[str]:
        """What was found, one sentence for each audit after the first."""
        return [
            prose.finding(self.sides[0], side, self.tally(index))
            for index, side in enumerate(self.sides)
            if index
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure and audit, as in a CSV file."""
        return [
            {
                "subject": line.subject,
                "topic": line.topic,
                "metric": line.metric,
                "query": line.query,
                "audit": side.short,
                "value": m.value,
                "low": m.low,
                "high": m.high,
                "p_value": m.p_value,
                "ideal": m.ideal,
                **(
                    {
                        "difference": gap.value,
                        "difference_low": gap.low,
                        "difference_high": gap.high,
                        "computed": gap.kind,
                        "kind": "ratio" if gap.ratio else "difference",
                        "items": gap.items or None,
                        "effect": effect(line, index),
                    }
                    if gap is not None
                    else {}
                ),
            }
            for line in self.lines
            for index, (side, m, gap) in enumerate(
                zip(self.sides, line.sides, line.differences, strict=True)
            )
            if m is not None
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "findings": self.findings,
            "audits": [
                {
                    "letter": side.letter,
                    "label": side.short,
                    "folder": side.folder,
                    "against_first": self.tally(index).to_dict() if index else None,
                    "subjects": side.findings.subjects,
                    "settings": side.findings.settings,
                }
                for index, side in enumerate(self.sides)
            ],
            "verdicts": [
                {
                    "subject": subject,
                    "topic": topic,
                    "which": which,
                    "verdicts": [None if v is None else v.to_dict() for v in judged],
                }
                for (subject, topic, which), judged in self.verdicts.items()
            ],
            "measures": [line.to_dict() for line in self.lines if line.shared],
        }


# ------------------------------------------------------------------------------------ comparing


def compare_audits(
    folders: Sequence[str | os.PathLike[str]], labels: Mapping[str, str] | None = None
) -> AuditComparison:
    """Compare the audits of two folders or more with the first, A.

    Parameters
    ----------
    folders : sequence of path-like
    labels : Mapping of letter to text, optional
        What to call the audits, such as ``{"A": "before", "B": "after"}``.

    Returns
    -------
    AuditComparison
        Its `findings` say in a sentence in how many measures each audit is less biased than A.

    """
    paths = [Path(folder) for folder in folders]
    if len(paths) < 2:
        raise InputError(f"comparison: expected two audits or more, got {len(paths)}")
    if len(paths) > 26:
        raise InputError(f"comparison: expected at most 26 audits, got {len(paths)}")
    real = [real_path(path) for path in paths]
    twice = next((paths[i] for i, path in enumerate(real) if path in real[:i]), None)
    if twice is not None:
        raise InputError(f"comparison: expected different audits, got {twice} twice")
    for path in paths:
        if not path.is_dir():
            what = "a file" if path.exists() else "nothing there"
            raise InputError(f"{path}: expected the folder of an audit, got {what}")
    letters = [chr(ord("A") + i) for i in range(len(paths))]
    labels = _check_labels(labels or {}, letters)
    sides = tuple(
        Side(
            letter=letter,
            folder=real[i].name,
            findings=read_findings(paths[i]),
            label=labels.get(letter, ""),
        )
        for i, letter in enumerate(letters)
    )
    compared = AuditComparison(sides=sides, verdicts=_verdicts(sides), lines=tuple(_lines(sides)))
    judged = any(sum(v is not None for v in row) > 1 for row in compared.verdicts.values())
    if not judged and not any(line.shared for line in compared.lines):
        given = "; ".join(f"{side.letter} ({side.folder}): {_audited(side)}" for side in sides)
        raise InputError(
            "comparison: expected audits with a measure or a verdict in common, got " + given
        )
    return compared


def _check_labels(labels: Mapping[str, str], letters: Sequence[str]) -> Mapping[str, str]:
    """The labels, each of an audit that is there and unlike all others."""
    for letter, label in labels.items():
        if letter not in letters:
            known = f"{letters[0]} to {letters[-1]}"
            raise InputError(f"label: expected the letter of an audit ({known}), got '{letter}'")
        if not label.strip():
            raise InputError(f"label: expected a text for {letter}, got nothing")
    names = [labels.get(letter, letter) for letter in letters]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"label: expected different labels, got '{name}' twice")
    return labels


def _audited(side: Side) -> str:
    topics = ", ".join(topic.name for topic in side.findings.topics)
    return ", ".join(side.findings.subjects) + (f" on {topics}" if topics else "")


def _verdicts(
    sides: Sequence[Side],
) -> dict[tuple[str, str, str], tuple[Verdict | None, ...]]:
    """The verdicts by subject and topic, and by name where an audit has several of these."""
    keyed: list[dict[tuple[str, str, str], Verdict]] = []
    for side in sides:
        judged = side.findings.verdicts
        about = [(verdict.subject, verdict.topic) for verdict in judged]
        alone = len(set(about)) == len(about)
        keyed.append({(v.subject, v.topic, "" if alone else v.name): v for v in judged})
    keys = dict.fromkeys(key for verdicts in keyed for key in verdicts)
    order = list(SUBJECTS)
    return {
        key: tuple(verdicts.get(key) for verdicts in keyed)
        for key in sorted(keys, key=lambda key: order.index(key[0]))
    }


Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A measurement, and the one that it is a part of."""

    m: Measurement
    parent: Measurement | None = None


def _lines(sides: Sequence[Side]) -> list[Line]:
    tables = [_measured(side) for side in sides]
    tables[1:] = [_across_kinds(tables[0], table) for table in tables[1:]]
    keys = dict.fromkeys(key for table in tables for key in table)
    order = list(SUBJECTS)
    lines = []
    for key in sorted(keys, key=lambda key: order.index(key[0])):
        subject, topic, metric, query = key
        found = [table.get(key) for table in tables]
        differences = tuple(
            None if i == 0 else _difference(sides[0], sides[i], key, found[0], found[i])
            for i in range(len(sides))
        )
        lines.append(
            Line(
                subject=subject,
                topic=topic,
                metric=metric,
                query=query,
                sides=tuple(None if given is None else given.m for given in found),
                differences=differences,
            )
        )
    return _together(lines)


def _together(lines: Sequence[Line]) -> list[Line]:
    """The lines with intervals of all differences from the first audit that hold together."""
    every = [gap for line in lines for gap in line.differences if gap is not None]
    family = sum(gap.kind in ("paired", "unpaired") for gap in every)

    def wider(gap: Difference | None) -> Difference | None:
        if gap is None or gap.kind not in ("paired", "unpaired"):
            return gap
        prob = simultaneous(gap.prob, family)
        df = gap.items - 1 if gap.items > 1 else None
        ends = (gap.value, gap.low, gap.high)
        _, low, high = widen(ends, gap.prob, prob, df=df, ratio=gap.ratio)
        return replace(gap, low=low, high=high)

    return [replace(line, differences=tuple(map(wider, line.differences))) for line in lines]


def _across_kinds(
    first: Mapping[Key, _Measured], table: dict[Key, _Measured]
) -> dict[Key, _Measured]:
    """The table with contrasts of a model of another kind under the first audit's kind.

    In a contrast what the kinds of models do differently with a sentence cancels, if the templates
    are the same; other values of two kinds are not on one scale.
    """

    def own(key: Key, given: _Measured) -> Key:
        if key[0] not in LANGUAGE or given.parent is None or key in first:
            return key
        same = [(kind, *key[1:]) for kind in LANGUAGE if (kind, *key[1:]) in first]
        return same[0] if same else key

    return {own(key, given): given for key, given in table.items()}


def _measured(side: Side) -> dict[Key, _Measured]:
    """The measurements of an audit, their contrasts, and numbers of verdicts that are neither."""
    found: dict[Key, _Measured] = {}
    for stage in side.findings.stages:
        for m in stage.measurements if stage.measures else ():
            if "(" not in m.metric:  # the range of another measure, such as split_half(…)
                place = (stage.subject, stage.topic or "", m.metric)
                found.setdefault((*place, m.details.get("run", m.query)), _Measured(m))
                for part in m.select("contrast"):
                    found.setdefault((*place, part.query), _Measured(part, m))
    known = {(given.m.value, given.m.low, given.m.high) for given in found.values()}
    prob = side.findings.settings["prob"]
    for verdict in side.findings.verdicts:
        for shown in verdict.numbers:
            if (shown.value, shown.low, shown.high) not in known:
                query = without_aside(shown.label)
                number = Measurement(
                    metric="",
                    query=query,
                    value=shown.value,
                    low=shown.low,
                    high=shown.high,
                    n=0,
                    ideal=shown.ideal,
                    worse="away",
                    interval="",
                    prob=prob,
                    p_value=shown.p_value,
                )
                found.setdefault((verdict.subject, verdict.topic, "", query), _Measured(number))
    return found


def _difference(
    before: Side, after: Side, key: Key, first: _Measured | None, second: _Measured | None
) -> Difference | None:
    if first is None or second is None:
        return None
    subject, topic, metric, _ = key
    if subject == "vectors":
        reason = _not_comparable(before.findings, after.findings, topic, metric)
        if reason:
            return Difference(kind="none", how=reason)
    same = _same(before.findings, after.findings, subject)
    if first.parent is not None and second.parent is not None and not same:
        paired = _paired_part(first.parent, second.parent, key[3])
        if paired is not None:
            return paired
    return difference(first.m, second.m, same_input=same)


def _paired_part(first: Measurement, second: Measurement, query: str) -> Difference | None:
    """The paired difference of a part by the measure's own method; None where items differ."""
    try:
        part = compare(first, second).part(query)
    except InputError:
        return None
    if not math.isclose(part.change.value, part.after.value - part.before.value, abs_tol=1e-9):
        return None  # about other items than the two values
    return _paired(part)


def _paired(compared: Comparison) -> Difference | None:
    change = compared.change
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return None
    return Difference(
        kind="paired",
        how=prose.paired(compared.paired),
        value=change.value,
        low=change.low,
        high=change.high,
        prob=change.prob,
        items=compared.paired,
    )


def _same(before: Findings, after: Findings, subject: str) -> bool:
    """Both audits had the same input."""
    return all(
        before.subjects.get(kind, {}).get(IDENTITY[kind])
        == after.subjects.get(kind, {}).get(IDENTITY[kind])
        for kind in DEPENDS_ON[subject]
    )


def _not_comparable(before: Findings, after: Findings, topic: str, metric: str) -> str:
    """Why two values on vectors are not comparable; empty where they are."""
    lists = [
        {given.name: _words(given) for given in findings.topics}.get(topic)
        for findings in (before, after)
    ]
    if topic and lists[0] != lists[1]:
        return prose.other_words(topic)
    if _same(before, after, "vectors"):
        return ""
    instrument = find(metric)
    varies_with = "" if instrument is None else instrument.declaration.varies_with
    if varies_with == "length":
        return prose.other_lengths()
    dims = [findings.subjects["vectors"]["dim"] for findings in (before, after)]
    if dims[0] != dims[1] and varies_with == "dimension":
        return prose.other_dimensions(*dims)
    return ""


def _words(topic: Topic) -> dict[str, Any]:
    about = ("name", "title", "provenance", "sources")
    return {name: getattr(topic, name) for name in topic.__slots__ if name not in about}


def difference(first: Measurement, second: Measurement, *, same_input: bool = False) -> Difference:
    """The second minus the first: paired where both have the same items, else unpaired.

    Pairing needs the value with each item left out; where the items are not all the same, the two
    values are about other words and are not paired.
    """
    if not (math.isfinite(first.value) and math.isfinite(second.value)):
        return Difference(kind="none", how=prose.no_value())
    if same_input and first.value == second.value:
        return Difference(
            kind="same input", how=prose.same_input(), value=0.0, low=0.0, high=0.0, prob=first.prob
        )
    instrument = find(first.metric)
    complete = getattr(instrument, "with_replicates", lambda m: m)
    before, after = complete(first), complete(second)
    if len(before.items) and _keys(before) and _keys(before) == _keys(after):
        paired = _paired(paired_jackknife(before, after))
        if paired is not None:
            return paired
    ratio = _is_ratio(first.metric)
    value, low, high = unpaired_interval(first, second, ratio=ratio)
    if not (math.isfinite(low) and math.isfinite(high)):
        return Difference(kind="none", how=prose.no_interval())
    return Difference(
        kind="unpaired",
        how=prose.unpaired(),
        value=value,
        low=low,
        high=high,
        prob=first.prob,
        ratio=ratio,
    )


def _is_ratio(metric: str) -> bool:
    """Whether values of a measure are compared as a ratio, on the logarithm."""
    instrument = find(metric)
    return instrument is not None and instrument.declaration.compared == "ratio"


def unpaired_interval(
    first: Measurement, second: Measurement, *, ratio: bool = False
) -> tuple[float, float, float]:
    r"""The difference of two independent estimates, its interval recovered from their two.

    $d - \sqrt{(v_2 - l_2)^2 + (u_1 - v_1)^2}$ to $d + \sqrt{(u_2 - v_2)^2 + (v_1 - l_1)^2}$ for
    estimates v with intervals from l to u (Newcombe 1998; Zou & Donner 2008). With symmetric
    intervals it is the usual normal one, with others it preserves their skew. Intervals of another
    level are first brought to the first one's by normal quantiles. A `ratio` is computed on the
    logarithm.

    >>> from dataclasses import replace
    >>> a = Measurement(metric="m", query="", value=1, low=0, high=2, n=9, ideal=0, worse="away",
    ...                 interval="")
    >>> [round(x, 3) for x in unpaired_interval(a, replace(a, value=5, low=4, high=6))]
    [4.0, 2.586, 5.414]
    """
    (v1, down1, up1), (v2, down2, up2) = (_arms(m, ratio=ratio) for m in (first, second))
    if first.prob != second.prob:
        stretch = _quantile(first.prob) / _quantile(second.prob)
        down2, up2 = down2 * stretch, up2 * stretch
    gap = v2 - v1
    found = (gap, gap - math.hypot(down2, up1), gap + math.hypot(up2, down1))
    return tuple(math.exp(x) for x in found) if ratio else found  # type: ignore[return-value]


def _arms(m: Measurement, *, ratio: bool) -> tuple[float, float, float]:
    """The value and how far the interval goes below and above it; evenly if it is not inside."""
    value, low, high = m.value, m.low, m.high
    if ratio:
        value, low, high = (math.log(x) if x > 0 else math.nan for x in (value, low, high))
    if not low <= value <= high:
        half = (high - low) / 2
        return value, half, half
    return value, value - low, high - value


def _quantile(prob: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + prob) / 2))


def _keys(m: Measurement) -> set[tuple[str, str, str]]:
    """The items by what they are; none where the value without an item is not known for all."""
    if m.items.get("without") is None:
        return set()
    keys = set(map(item_key, m.items))
    known = all(math.isfinite(item["without"]) for item in m.items)
    apart = "cluster" in m.items.columns or len(keys) == len(m.items)
    return keys if known and apart else set()


def effect(line: Line, index: int) -> str:
    """How an audit reads against the first, in the words of a change; controls have no effect."""
    gap, first, second = line.differences[index], line.sides[0], line.sides[index]
    if gap is None or first is None or second is None or gap.kind == "none":
        return "–"
    if line.query in getattr(find(line.metric), "controls", ()):
        return "a control"
    change = Estimate(value=gap.value, low=gap.low, high=gap.high, prob=gap.prob)
    kind: Literal["difference", "ratio"] = "ratio" if gap.ratio else "difference"
    return Comparison(
        before=first, after=second, change=change, interval=gap.how, paired=gap.items, kind=kind
    ).effect


# ------------------------------------------------------------------------------------- the page


def write_comparison(
    compared: AuditComparison, path: str | os.PathLike[str] = "comparison.html"
) -> Path:
    """Write a comparison: by the end of its name a table (.csv), JSON, or a page; its path."""
    target = Path(path)
    if target.suffix == ".csv":
        save_csv(target, compared.rows())
        return target
    if target.suffix == ".json":
        save_json(target, document(**compared.to_dict()))
        return target
    (head,) = lay_out([Section("finding", "", list(_finding(compared)))])
    built = [part for part in comparison_sections(compared) if part.blocks or part.parts]
    text = render_page(
        "comparison.html",
        built,
        sides=compared.sides,
        findings=compared.findings,
        blocks=head.blocks,
    )
    with replace_file(target) as file:
        file.write(text.encode())
    return target


def _finding(compared: AuditComparison) -> Iterable[Block]:
    """What stands below the finding: chance, warnings, verdicts that differ, counts by subject."""
    counted = [
        (index, side, subject, compared.tally(index, subject))
        for index, side in enumerate(compared.sides[1:], start=1)
        for subject in SUBJECTS
    ]
    counted = [row for row in counted if row[3].count]
    first = compared.sides[0]
    if counted:
        prob = first.findings.settings["prob"]
        yield prose.text("chance", sum(tally.count for *_, tally in counted), prob)
    yield from (Text(text, "warning") for text in _warnings(compared))
    for key, judged in compared.verdicts.items():
        levels = [
            f"{v.level} ({s.short})" for s, v in zip(compared.sides, judged, strict=True) if v
        ]
        if len({v.level for v in judged if v}) > 1:
            yield Text(f"The verdicts differ on {_about(*key)}: {', '.join(levels)}.")
    if counted:
        yield Table.of(
            f"Measures of bias by subject, against {first.short}",
            ("Subject", "Audit", "Compared", "Less biased", "More biased", "No clear difference"),
            [
                (
                    SUBJECTS[subject],
                    side.short,
                    count(tally.count),
                    *(
                        count(len(lines))
                        for lines in (tally.less_biased, tally.more_biased, tally.unclear)
                    ),
                )
                for _, side, subject, tally in counted
            ],
        )
        rows = [
            (line.label, side.short, how, str(line.differences[index]))
            for index, side in enumerate(compared.sides[1:], start=1)
            for tally in [compared.tally(index)]
            for how, lines in (("less", tally.less_biased), ("more", tally.more_biased))
            for line in lines
        ]
        if rows:
            headers = ("Measure", "Audit", "Biased", f"Difference from {first.short}")
            yield Table.of("Measures that clearly differ", headers, rows)


def comparison_sections(compared: AuditComparison) -> list[Section]:
    """The page's sections, in the order of reading."""
    return [_verdict_section(compared), _measures(compared), _alone(compared), _setup(compared)]


def line_forests(lines: Sequence[Line], names: Sequence[str]) -> Chart:
    """A panel for each scale, a row for each measure: the values of the audits with intervals.

    Lines that only one audit has are not drawn.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    options: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line.shared:
            scale = scale_of(line.metric) or label_of(line.metric) or "Other numbers"
            rows = parts.setdefault(scale, [])
            if _is_ratio(line.metric):
                options[scale] = {"log": True}
            for m, name, found in zip(line.sides, names, line.differences, strict=True):
                if m is not None:
                    known = found is not None and found.kind != "none"
                    rows.append(
                        {
                            "label": line.label.removeprefix(f"{scale}, "),
                            "series": name,
                            "value": m.value,
                            "low": m.low,
                            "high": m.high,
                            "ideal": m.ideal,
                            "difference": f"{found} from {names[0].split(':')[0]}, {found.kind}"
                            if known and found is not None
                            else None,
                        }
                    )
    looks = {
        name: (COLOURS[i % len(COLOURS)], SHAPES[i % len(SHAPES)]) for i, name in enumerate(names)
    }
    return forests(
        parts,
        looks=looks,
        beside=True,
        options=options,
        tips={"series": "audit", "difference": "difference"},
        width=420,
        step=24,
    )


def _setup(compared: AuditComparison) -> Section:
    """What differs, and what is the same, folded."""
    facts = [dict(_facts(side)) for side in compared.sides]
    names = list(dict.fromkeys(name for known in facts for name in known))
    rows = [(name, *(known.get(name, "–") for known in facts)) for name in names]
    headers = ("What", *(side.short for side in compared.sides))
    differing = [row for row in rows if len(set(row[1:])) > 1]
    same = [row for row in rows if len(set(row[1:])) == 1]
    blocks: list[Block] = [Table.of("What differs between the audits", headers, differing)]
    blocks.append(Table.of("What is the same in all of them", headers, same, folded=True))
    return Section("setup", "What was set up differently", blocks)


def _facts(side: Side) -> Iterable[tuple[str, str]]:
    findings = side.findings
    yield "Folder", side.folder
    for kind, subject in findings.subjects.items():
        for key, words in FACTS.items():
            value = subject.get(key)
            if value is not None:
                text = f"{value:,}" if isinstance(value, int) else str(value)
                hashed = key in IDENTITY.values()
                yield f"{kind.capitalize()}: {words}", text[:12] if hashed else text
    yield "Topics", ", ".join(topic.name for topic in findings.topics) or "–"
    yield "Parts", ", ".join(findings.settings["parts"])
    yield "Quick", "yes" if findings.settings["quick"] else "no"
    yield "Level of intervals", percent(findings.settings["prob"])
    yield "Seed", f"{findings.run['seed']:,}"
    yield "Time", str(findings.run["time"])
    for package, version in findings.run["versions"].items():
        yield f"Version of {package}", str(version)
    if findings.failed:
        yield "Stages that failed", ", ".join(stage.title for stage in findings.failed)


def _warnings(compared: AuditComparison) -> Iterable[str]:
    """What a reader must know before reading a difference."""
    audits = [side.findings for side in compared.sides]

    def differ(kind: str) -> bool:
        known = [audit.subjects[kind] for audit in audits if kind in audit.subjects]
        return len({subject.get(IDENTITY[kind]) for subject in known}) > 1

    if len({audit.settings["prob"] for audit in audits}) > 1:
        yield prose.other_levels(compared.sides[0], audits[0].settings["prob"])
    if len({audit.run["versions"]["evenhand"] for audit in audits}) > 1:
        yield prose.other_versions()
    if len({bool(audit.settings["quick"]) for audit in audits}) > 1:
        yield prose.some_quick()
    if differ("vectors"):
        yield prose.other_vectors()
    if len({kind for audit in audits for kind in LANGUAGE if kind in audit.subjects}) > 1:
        yield prose.other_kinds()
    if any(map(differ, LANGUAGE)) and differ("data"):
        yield prose.other_model_and_data()


def _verdict_section(compared: AuditComparison) -> Section:
    rows = [
        [_about(*key), *("not audited" if v is None else v.level for v in judged)]
        for key, judged in compared.verdicts.items()
    ]
    sentences = [
        (_about(*key), side.name, verdict.sentence, _numbers(verdict))
        for key, judged in compared.verdicts.items()
        for side, verdict in zip(compared.sides, judged, strict=True)
        if verdict is not None
    ]
    audits = ("What", *(side.name for side in compared.sides))
    headers = ("What", "Audit", "Verdict", "Numbers")
    blocks: list[Block] = [
        prose.text("levels"),
        Table.of("Evidence of bias", audits, rows),
        Table.of("The verdicts as sentences", headers, sentences, folded=True),
    ]
    judged = [v for side in compared.sides for v in side.findings.verdicts]
    limits = dict.fromkeys(v.cannot_mean for v in judged if v.level == "none found")
    blocks += [Text(f"What “none found” cannot mean: {text}") for text in limits if text]
    return Section("verdicts", "Verdicts side by side", blocks if rows else [])


def _about(subject: str, topic: str, which: str) -> str:
    return f"{SUBJECTS[subject]}{', ' + which if which else ''}: {topic}"


def _numbers(verdict: Verdict) -> str:
    return "; ".join(
        f"{shown.label} {number(shown.value)} {interval(shown.low, shown.high)}"
        for shown in verdict.numbers
    )


def _measures(compared: AuditComparison) -> Section:
    """A part for each subject and topic, with a figure and a table."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in compared.lines:
        if line.shared:
            groups.setdefault((line.subject, line.topic), []).append(line)
    alike = {
        key
        for key, lines in groups.items()
        if all(d is None or d.kind == "same input" for line in lines for d in line.differences)
    }
    parts = [_group(compared, *key, lines) for key, lines in groups.items() if key not in alike]
    every = [d for line in compared.lines for d in line.differences if d is not None]
    counted = [d for d in every if d.kind in ("paired", "unpaired")]
    blocks: list[Block] = []
    if parts:
        prob = compared.sides[0].findings.settings["prob"]
        clear = sum(d.clear for d in counted)
        blocks.append(
            prose.text("differences", compared.sides[0], shown=len(counted), clear=clear, prob=prob)
        )
    if any(map(_mitigated, compared.sides)):
        blocks.append(prose.text("mitigations"))
    if alike:
        names = ", ".join(dict.fromkeys(SUBJECTS[subject].lower() for subject, _ in alike))
        blocks.append(Text(f"The same input gave the same values, which are not shown: {names}."))
    return Section("measures", "Measures side by side", blocks, parts)


def _mitigated(side: Side) -> bool:
    """The audit has a change made by a mitigation."""
    return any(stage.comparisons for stage in side.findings.stages if stage.kind != "posterior")


def _group(compared: AuditComparison, subject: str, topic: str, lines: Sequence[Line]) -> Section:
    titles = {t.name: t.title for side in compared.sides for t in side.findings.topics}
    title = SUBJECTS[subject] + (f": {titles.get(topic, topic)}" if topic else "")
    if subject == "vectors" and not topic:
        title = "Word vectors: published tests"
    name = slug(f"compared {subject} {topic}")
    names = [side.name for side in compared.sides]
    blocks: list[Block] = [
        prose.figure(
            name,
            lambda: line_forests(lines, names),
            "lines",
            names=names,
            lines=[
                (
                    line.label,
                    [
                        (m, side.short)
                        for m, side in zip(line.sides, compared.sides, strict=True)
                        if m is not None
                    ],
                )
                for line in lines
            ],
        ),
        _values(compared, title, lines),
    ]
    differences = _differences(compared, title, lines)
    blocks += [differences] if differences.rows else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for found, side in zip(line.differences, compared.sides, strict=True):
            if found is not None and found.kind == "none":
                reasons.setdefault((found.how, side.short), []).append(line.label)
    first = compared.sides[0].short
    blocks += [
        Text(f"{letter} minus {first} is not given for {', '.join(left)}: {why}.", "warning")
        for (why, letter), left in reasons.items()
    ]
    return Section(name, title, blocks)


def _values(compared: AuditComparison, title: str, lines: Sequence[Line]) -> Table:
    headers = ["Measure", "Ideal"]
    for side in compared.sides:
        level = percent(side.findings.settings["prob"])
        headers += [side.short, f"{side.short}: {level} interval", f"{side.short}: p"]
    return Table.of(
        f"{title}: the audits' values",
        headers,
        ([line.label, _ideal(line), *(c for m in line.sides for c in _shown(m))] for line in lines),
    )


def _ideal(line: Line) -> Cell:
    ideal = line.ideal
    return Cell("–") if ideal is None else Cell(f"{ideal:g}".replace("-", "−"), ideal)


def _shown(m: Measurement | None) -> list[Cell]:
    if m is None:
        return [Cell("–")] * 3
    return [cell(m.value), span(m.low, m.high), p_cell(m.p, m.draws)]


def _differences(compared: AuditComparison, title: str, lines: Sequence[Line]) -> Table:
    """One row per difference that can be computed."""
    first = compared.sides[0]
    level = percent(first.findings.settings["prob"])
    rows: list[list[Cell | str]] = []
    for line in lines:
        for index, (found, side) in enumerate(zip(line.differences, compared.sides, strict=True)):
            if found is not None and found.kind != "none":
                digits = 2 if found.ratio else 3
                sign, times = ("÷", "× ") if found.ratio else ("−", "")
                how = f"paired, {found.items} items" if found.kind == "paired" else found.kind
                rows.append(
                    [
                        line.label,
                        f"{side.short} {sign} {first.short}",
                        Cell(times + number(found.value, digits), found.value),
                        span(found.low, found.high, digits),
                        how,
                        effect(line, index),
                    ]
                )
    return Table.of(
        f"{title}: differences from {first.short}",
        ("Measure", "Which", "Difference", f"{level} interval", "Computed", "Effect"),
        rows,
    )


def _alone(compared: AuditComparison) -> Section:
    """What only one of the audits measured."""
    rows = [
        (line.label, SUBJECTS[line.subject], side.name, cell(m.value), span(m.low, m.high))
        for line in compared.lines
        if not line.shared
        for m, side in zip(line.sides, compared.sides, strict=True)
        if m is not None
    ]
    headers = ("Measure", "Subject", "Audit", "Value", "Interval")
    table = Table.of("Measured in one audit only", headers, rows, folded=True)
    return Section("alone", "Measured in one audit only", [table] if rows else [])
