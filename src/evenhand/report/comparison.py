"""Two audits or more side by side: what differs, the verdicts, each measure, the set-up."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from evenhand.charts import BLUE, GREEN, ORANGE, PURPLE, Chart, forests, row_of
from evenhand.errors import InputError
from evenhand.files import document, real_path, replace_file, save_csv, save_json, signed
from evenhand.instruments import (
    LANGUAGE,
    Instrument,
    compare,
    compare_together,
    find,
    is_ratio,
    item_key,
    paired_jackknife,
)
from evenhand.lexicon import Topic
from evenhand.report.blocks import (
    Block,
    PageTable,
    Prose,
    Section,
    TableCell,
    Text,
    cell,
    count,
    figure,
    lay_out,
    listed,
    p_cell,
    render_page,
    span,
)
from evenhand.report.cards import FACTS, without_aside
from evenhand.report.findings import Findings, read_findings
from evenhand.report.methods import label_of, scale_of
from evenhand.report.verdicts import SUBJECTS, Verdict
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.statistics.intervals import independent_difference
from evenhand.wording import interval, number, percent, shortest, slug

prose = Prose("comparison")

IDENTITY = {
    "vectors": "content_sha256",
    **dict.fromkeys(LANGUAGE, "fingerprint"),
    "corpus": "digest",
    "answers": "digest",
    "predictions": "digest",
}
"""The fact that shows whether two audits had the same input."""
DEPENDS_ON: Mapping[str, tuple[str, ...]] = {
    "corpus": ("corpus",),
    "vectors": ("vectors",),
    **{kind: (kind, "corpus") for kind in LANGUAGE},
    "fewshot": (*LANGUAGE, "corpus"),
    "answers": ("answers",),
    "predictions": ("predictions",),
}
"""What the numbers on each subject depend on."""
LOOKS = tuple(
    zip(
        (ORANGE, BLUE, GREEN, PURPLE) * 2,
        ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross"),
        strict=False,
    )
)
TALLIES = {"better": "less_biased", "worse": "more_biased", "": "unclear"}
"""How an audit reads against the first, by the direction of a change."""

Change: TypeAlias = Comparison | str | None
"""What differs from the first audit, or the reason why it is not known; None for the first."""
Tally: TypeAlias = "Mapping[str, list[ComparedMeasure]]"
Key: TypeAlias = tuple[str, str, str, str]
"""Subject, topic, metric and query."""
Measured: TypeAlias = tuple[Measurement, Measurement | None]
"""A measurement, and the one that it is a part of."""


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


ABOUT = ("subject", "topic", "metric", "query")
NUMBERS = ("value", "low", "high", "p_value", "p_corrected", "family", "ideal")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMeasure:
    """One measure in all audits, None where an audit lacks it, and what differs from the first.

    The `details` of a difference say how it was `computed`: "paired", "unpaired" or "same input".
    """

    subject: str
    topic: str
    metric: str
    query: str
    sides: tuple[Measurement | None, ...] = field(repr=False)
    differences: tuple[Change, ...]

    @property
    def shared(self) -> bool:
        """At least two audits have it."""
        return sum(side is not None for side in self.sides) > 1

    @property
    def label(self) -> str:
        """The measure and its query."""
        return label_of(self.metric, self.topic, self.query) if self.metric else self.query

    @property
    def is_bias(self) -> bool:
        """It measures bias, not usefulness, and is not a number of a verdict shown elsewhere."""
        cls = find(self.metric)
        return bool(self.metric) and (cls is None or bool(cls.declaration.bias))

    @property
    def is_control(self) -> bool:
        """It is about a harmless association, whose changes are neither better nor worse."""
        return self.query in (find(self.metric) or Instrument).controls

    def effect(self, index: int) -> str | None:
        """How an audit reads against the first, in the words of a change."""
        change = self.differences[index]
        if not isinstance(change, Comparison):
            return None if change is None else "–"
        return "a control" if self.is_control else change.effect

    @property
    def about(self) -> dict[str, str]:
        """Subject, topic, metric and query by name."""
        return {name: getattr(self, name) for name in ABOUT}


def _columns(change: Comparison | str, effect: str | None) -> dict[str, Any]:
    """A difference, or the reason why there is none, as columns of a table."""
    computed, found, p, ratio, items = "none", None, None, False, 0
    if isinstance(change, Comparison):
        computed, found, p = change.details["computed"], change.change, change.p
        ratio, items = change.kind == "ratio", change.paired
    return {
        "difference": found and found.value,
        "difference_low": found and found.low,
        "difference_high": found and found.high,
        "difference_p": p,
        "computed": computed,
        "kind": "ratio" if ratio else "difference",
        "items": items or None,
        "effect": effect,
        "how": change if isinstance(change, str) else change.interval,
    }


def _differs(change: Change) -> TypeGuard[Comparison]:
    """Whether two different inputs were compared."""
    return isinstance(change, Comparison) and change.details["computed"] != "same input"


def _text(change: Comparison) -> str:
    """The difference with its interval; a ratio says how many times."""
    c = change.change
    if not _differs(change):
        return "0 (same input)"
    if change.kind == "ratio":
        return f"× {number(c.value, 2)} {interval(c.low, c.high, 2)}"
    return f"{number(c.value)} {interval(c.low, c.high)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditComparison:
    """The audits, their verdicts by what they are about, and every measure of any of them."""

    sides: tuple[Side, ...]
    verdicts: dict[tuple[str, str, str], tuple[Verdict | None, ...]] = field(repr=False)
    lines: tuple[ComparedMeasure, ...] = field(repr=False)

    @property
    def prob(self) -> float:
        """The probability of the intervals of the first audit."""
        return float(self.sides[0].findings.settings["prob"])

    def tally(self, index: int, subject: str | None = None) -> Tally:
        """The measures by how an audit reads against the first: less or more biased, or unclear.

        Measures of usefulness, and those of other subjects than `subject`, are not counted.
        """
        counted: dict[str, list[ComparedMeasure]] = {name: [] for name in TALLIES.values()}
        for line in self.lines:
            change = line.differences[index]
            if not line.is_bias or line.is_control or subject not in (None, line.subject):
                continue
            if _differs(change) and change.direction in TALLIES:
                counted[TALLIES[change.direction]].append(line)
        return counted

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
                **line.about,
                "audit": side.short,
                **{name: getattr(m, name) for name in NUMBERS},
                **({} if change is None else _columns(change, line.effect(index))),
            }
            for line in self.lines
            for index, (side, m, change) in enumerate(
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
                    "against_first": _labels(self.tally(index)) if index else None,
                    "subjects": side.findings.subjects,
                    "settings": side.findings.settings,
                }
                for index, side in enumerate(self.sides)
            ],
            "verdicts": [
                {
                    **dict(zip(("subject", "topic", "which"), key, strict=True)),
                    "verdicts": [None if v is None else v.to_dict() for v in judged],
                }
                for key, judged in self.verdicts.items()
            ],
            "measures": self.rows(),
        }


def _labels(tally: Tally) -> dict[str, Any]:
    listed = {name: [line.label for line in lines] for name, lines in tally.items()}
    return {"compared": sum(map(len, tally.values())), **listed}


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
    if not 2 <= len(paths) <= 26:
        expected = "two audits or more" if len(paths) < 2 else "at most 26 audits"
        raise InputError(f"comparison: expected {expected}, got {len(paths)}")
    real = [real_path(path) for path in paths]
    for i, path in enumerate(paths):
        if real[i] in real[:i]:
            raise InputError(f"comparison: expected different audits, got {path} twice")
    for path in paths:
        if not path.is_dir():
            what = "a file" if path.exists() else "nothing there"
            raise InputError(f"{path}: expected the folder of an audit, got {what}")
    letters = [chr(ord("A") + i) for i in range(len(paths))]
    labels = labels or {}
    _check_labels(labels, letters)
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


def _check_labels(labels: Mapping[str, str], letters: Sequence[str]) -> None:
    """Each label is of an audit that is there, and unlike all others."""
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


def _lines(sides: Sequence[Side]) -> list[ComparedMeasure]:
    """Every measure, with intervals of all differences from the first that hold together."""
    tables = [_measured(side) for side in sides]
    tables[1:] = [_across_kinds(tables[0], table) for table in tables[1:]]
    keys = dict.fromkeys(key for table in tables for key in table)
    order = list(SUBJECTS)
    lines = []
    for key in sorted(keys, key=lambda key: order.index(key[0])):
        found = [table.get(key) for table in tables]
        changes = (
            _difference(sides[0], side, key, found[0], given)
            for side, given in zip(sides[1:], found[1:], strict=True)
        )
        lines.append(
            ComparedMeasure(
                **dict(zip(ABOUT, key, strict=True)),
                sides=tuple(given and given[0] for given in found),
                differences=(None, *changes),
            )
        )
    differing = [change for line in lines for change in line.differences if _differs(change)]
    wider = iter(compare_together(differing))
    return [
        replace(
            line,
            differences=tuple(next(wider) if _differs(c) else c for c in line.differences),
        )
        for line in lines
    ]


def _across_kinds(first: Mapping[Key, Measured], table: dict[Key, Measured]) -> dict[Key, Measured]:
    """The table with contrasts of a model of another kind under the first audit's kind.

    In a contrast what the kinds of models do differently with a sentence cancels, if the templates
    are the same; other values of two kinds are not on one scale.
    """

    def own(key: Key, parent: Measurement | None) -> Key:
        if key[0] not in LANGUAGE or parent is None or key in first:
            return key
        same = [(kind, *key[1:]) for kind in LANGUAGE if (kind, *key[1:]) in first]
        return same[0] if same else key

    return {own(key, given[1]): given for key, given in table.items()}


def _measured(side: Side) -> dict[Key, Measured]:
    """The measurements of an audit, their contrasts, and numbers of verdicts that are neither."""
    found: dict[Key, Measured] = {}
    for stage in side.findings.stages:
        for m in stage.measurements if stage.measures else ():
            if "(" not in m.metric:  # the range of another measure, such as split_half(…)
                place = (stage.subject, stage.topic or "", m.metric)
                found.setdefault((*place, m.details.get("run", m.query)), (m, None))
                for part in m.select("contrast"):
                    found.setdefault((*place, part.query), (part, m))
    known = {(m.value, m.low, m.high) for m, _ in found.values()}
    for verdict in side.findings.verdicts:
        for shown in verdict.numbers:
            if (shown.value, shown.low, shown.high) not in known:
                query = without_aside(shown.label)
                number = Measurement(
                    metric="",
                    query=query,
                    n=0,
                    worse="away",
                    interval="",
                    prob=side.findings.settings["prob"],
                    p_corrected=shown.p_value,
                    **{name: getattr(shown, name) for name in ("value", "low", "high", "ideal")},
                )
                found.setdefault((verdict.subject, verdict.topic, "", query), (number, None))
    return found


def _difference(
    before: Side, after: Side, key: Key, first: Measured | None, second: Measured | None
) -> Change:
    if first is None or second is None:
        return None
    subject, topic, metric, query = key
    if subject == "vectors":
        reason = _not_comparable(before.findings, after.findings, topic, metric)
        if reason:
            return reason
    same = _same(before.findings, after.findings, subject)
    (m, whole), (other, other_whole) = first, second
    if whole is not None and other_whole is not None and not same:
        try:
            part = compare(whole, other_whole).part(query)
        except InputError:  # the items differ
            return difference(m, other)
        if math.isclose(part.change.value, part.after.value - part.before.value, abs_tol=1e-9):
            paired = _paired(part, m, other)
            if paired is not None:
                return paired
    return difference(m, other, same_input=same)


def _paired(compared: Comparison, first: Measurement, second: Measurement) -> Comparison | None:
    """The change of two values over the same items, where it has an interval."""
    change = compared.change
    if not (math.isfinite(change.low) and math.isfinite(change.high)):
        return None
    return _changed(first, second, "paired", change, paired=compared.paired)


def _changed(
    first: Measurement, second: Measurement, computed: str, change: Estimate, paired: int = 0
) -> Comparison:
    ratio = computed == "unpaired" and is_ratio(first.metric)
    how = prose.paired(paired) if paired else getattr(prose, computed.replace(" ", "_"))()
    return Comparison(
        before=first,
        after=second,
        change=change,
        interval=how,
        paired=paired,
        kind="ratio" if ratio else "difference",
        details={"computed": computed},
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


def difference(
    first: Measurement, second: Measurement, *, same_input: bool = False
) -> Comparison | str:
    """The second minus the first, or why it is not known.

    Paired where both have the same items, which needs the value with each item left out; where the
    items are not all the same, the two values are about other words and are not paired.
    """
    if not (math.isfinite(first.value) and math.isfinite(second.value)):
        return prose.no_value()
    if same_input and first.value == second.value:
        none = Estimate(value=0.0, low=0.0, high=0.0, prob=first.prob)
        return _changed(first, second, "same input", none)
    complete = (find(first.metric) or Instrument).with_replicates
    before, after = complete(first), complete(second)
    if len(before.items) and _keys(before) and _keys(before) == _keys(after):
        paired = _paired(paired_jackknife(before, after), first, second)
        if paired is not None:
            return paired
    change = independent_difference(
        (first.value, first.low, first.high),
        (second.value, second.low, second.high),
        first.prob,
        second.prob,
        ratio=is_ratio(first.metric),
    )
    if not all(map(math.isfinite, change[1:])):
        return prose.no_interval()
    return _changed(first, second, "unpaired", Estimate.of(change, first.prob))


def _keys(m: Measurement) -> set[tuple[str, str, str]]:
    """The items by what they are; none where the value without an item is not known for all."""
    if m.items.get("without") is None:
        return set()
    keys = set(map(item_key, m.items))
    known = all(math.isfinite(item["without"]) for item in m.items)
    apart = "cluster" in m.items.columns or len(keys) == len(m.items)
    return keys if known and apart else set()


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
        file.write(signed(text))
    return target


def _finding(compared: AuditComparison) -> Iterable[Block]:
    """The blocks below the finding: chance, warnings, verdicts that differ, counts by subject."""
    counted = [
        (subject, side, tally)
        for index, side in enumerate(compared.sides[1:], start=1)
        for subject in SUBJECTS
        if any((tally := compared.tally(index, subject)).values())
    ]
    first = compared.sides[0]
    if counted:
        total = sum(len(lines) for *_, tally in counted for lines in tally.values())
        yield prose.text("chance", total, compared.prob)
    yield from (Text(text, "warning") for text in _warnings(compared))
    for key, judged in compared.verdicts.items():
        levels = [
            f"{v.level} ({s.short})" for s, v in zip(compared.sides, judged, strict=True) if v
        ]
        if len({v.level for v in judged if v}) > 1:
            yield Text(f"The verdicts differ on {_about(*key)}: {', '.join(levels)}.")
    if counted:
        yield PageTable.of(
            f"Measures of bias by subject, against {first.short}",
            ("Subject", "Audit", "Compared", "Less biased", "More biased", "No clear difference"),
            [
                (
                    SUBJECTS[subject],
                    side.short,
                    count(sum(map(len, tally.values()))),
                    *(count(len(lines)) for lines in tally.values()),
                )
                for subject, side, tally in counted
            ],
        )
        rows = [
            (line.label, side.short, how, _text(change))
            for index, side in enumerate(compared.sides[1:], start=1)
            for how, lines in zip(("less", "more"), compared.tally(index).values(), strict=False)
            for line in lines
            if isinstance(change := line.differences[index], Comparison)
        ]
        if rows:
            headers = ("Measure", "Audit", "Biased", f"Difference from {first.short}")
            yield PageTable.of("Measures that clearly differ", headers, rows)


def comparison_sections(compared: AuditComparison) -> list[Section]:
    """The page's sections, in the order of reading."""
    return [_verdict_section(compared), _measures(compared), _alone(compared), _setup(compared)]


def line_forests(lines: Sequence[ComparedMeasure], names: Sequence[str]) -> Chart:
    """A panel for each scale, a row for each measure: the values of the audits with intervals.

    Measures that only one audit has are not drawn.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    options: dict[str, dict[str, Any]] = {}
    for line in (line for line in lines if line.shared):
        scale = scale_of(line.metric) or label_of(line.metric) or "Other numbers"
        rows = parts.setdefault(scale, [])
        if is_ratio(line.metric):
            options[scale] = {"log": True}
        for m, name, change in zip(line.sides, names, line.differences, strict=True):
            if m is not None:
                text = None
                if isinstance(change, Comparison):
                    how = change.details["computed"]
                    text = f"{_text(change)} from {names[0].split(':')[0]}, {how}"
                label = line.label.removeprefix(f"{scale}, ")
                rows.append(row_of(m, label, series=name, ideal=m.ideal, difference=text))
    return forests(
        parts,
        looks={name: LOOKS[i % len(LOOKS)] for i, name in enumerate(names)},
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
    blocks = [
        PageTable.of("What differs between the audits", headers, differing),
        PageTable.of("What is the same in all of them", headers, same, folded=True),
    ]
    return Section("setup", "What was set up differently", blocks)


def _facts(side: Side) -> Iterable[tuple[str, str]]:
    findings = side.findings
    yield "Folder", side.folder
    for kind, subject in findings.subjects.items():
        for key, words in {"name": "name", "layers": "layers", **FACTS}.items():
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
        yield prose.other_levels(compared.sides[0], compared.prob)
    if len({audit.run["versions"]["evenhand"] for audit in audits}) > 1:
        yield prose.other_versions()
    if len({bool(audit.settings["quick"]) for audit in audits}) > 1:
        yield prose.some_quick()
    if differ("vectors"):
        yield prose.other_vectors()
    if len({kind for audit in audits for kind in LANGUAGE if kind in audit.subjects}) > 1:
        yield prose.other_kinds()
    if any(map(differ, LANGUAGE)) and differ("corpus"):
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
        PageTable.of("Evidence of bias", audits, rows),
        PageTable.of("The verdicts as sentences", headers, sentences, folded=True),
    ]
    judged = [v for side in compared.sides for v in side.findings.verdicts]
    limits = dict.fromkeys(v.cannot_mean for v in judged if v.level == "none found")
    blocks += [Text(f"What “none found” cannot mean: {text}") for text in limits if text]
    return Section("verdicts", "Verdicts side by side", blocks if rows else [])


def _about(subject: str, topic: str, which: str) -> str:
    return f"{SUBJECTS[subject]}{', ' + which if which else ''}: {topic}"


def _numbers(verdict: Verdict) -> str:
    return listed((shown.label, shown) for shown in verdict.numbers)


def _measures(compared: AuditComparison) -> Section:
    """A part for each subject and topic, with a figure and a table."""
    groups: dict[tuple[str, str], list[ComparedMeasure]] = {}
    for line in compared.lines:
        if line.shared:
            groups.setdefault((line.subject, line.topic), []).append(line)
    alike = {
        key
        for key, lines in groups.items()
        if not any(_differs(d) or isinstance(d, str) for line in lines for d in line.differences)
    }
    parts = [_group(compared, *key, lines) for key, lines in groups.items() if key not in alike]
    blocks: list[Block] = []
    if parts:
        counted = [d for line in compared.lines for d in line.differences if _differs(d)]
        clear = sum(d.effect != "no clear change" for d in counted)
        blocks.append(
            prose.text(
                "differences",
                compared.sides[0],
                shown=len(counted),
                clear=clear,
                prob=compared.prob,
            )
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


def _group(
    compared: AuditComparison, subject: str, topic: str, lines: Sequence[ComparedMeasure]
) -> Section:
    titles = {t.name: t.title for side in compared.sides for t in side.findings.topics}
    title = SUBJECTS[subject] + (f": {titles.get(topic, topic)}" if topic else "")
    if subject == "vectors" and not topic:
        title = "Word vectors: published tests"
    name = slug(f"compared {subject} {topic}")
    names = [side.name for side in compared.sides]
    blocks: list[Block] = [
        figure(
            name,
            lambda: line_forests(lines, names),
            f"{title}: {len(lines)} measures of {', '.join(names)}; the tables have all numbers",
            prose.caption_lines(),
        ),
        _values(compared, title, lines),
    ]
    differences = _differences(compared, title, lines)
    blocks += [differences] if differences.rows else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for change, side in zip(line.differences, compared.sides, strict=True):
            if isinstance(change, str):
                reasons.setdefault((change, side.short), []).append(line.label)
    first = compared.sides[0].short
    blocks += [
        Text(f"{letter} minus {first} is not given for {', '.join(left)}: {why}.", "warning")
        for (why, letter), left in reasons.items()
    ]
    return Section(name, title, blocks)


def _values(compared: AuditComparison, title: str, lines: Sequence[ComparedMeasure]) -> PageTable:
    headers = ["Measure", "Ideal"]
    for side in compared.sides:
        level = percent(side.findings.settings["prob"])
        headers += [side.short, f"{side.short}: {level} interval", f"{side.short}: p"]
    rows: list[list[TableCell | str]] = []
    for line in lines:
        ideal = next((m.ideal for m in line.sides if m is not None), None)
        values = (c for m in line.sides for c in _shown(m))
        rows.append([line.label, TableCell(shortest(ideal), ideal), *values])
    return PageTable.of(f"{title}: the audits' values", headers, rows)


def _shown(m: Measurement | None) -> list[TableCell]:
    if m is None:
        return [TableCell("–")] * 3
    return [cell(m.value), span(m.low, m.high), p_cell(m.p, m.draws)]


def _differences(
    compared: AuditComparison, title: str, lines: Sequence[ComparedMeasure]
) -> PageTable:
    """One row per difference that can be computed."""
    first = compared.sides[0]
    rows: list[list[TableCell | str]] = []
    for line in lines:
        for index, (found, side) in enumerate(zip(line.differences, compared.sides, strict=True)):
            if isinstance(found, Comparison):
                digits, sign, times = (2, "÷", "× ") if found.kind == "ratio" else (3, "−", "")
                how = str(found.details["computed"])
                change = found.change
                rows.append(
                    [
                        line.label,
                        f"{side.short} {sign} {first.short}",
                        TableCell(times + number(change.value, digits), change.value),
                        span(change.low, change.high, digits),
                        f"paired, {found.paired} items" if how == "paired" else how,
                        line.effect(index) or "",
                    ]
                )
    return PageTable.of(
        f"{title}: differences from {first.short}",
        (
            *("Measure", "Which", "Difference", f"{percent(compared.prob)} interval"),
            *("Computed", "Effect"),
        ),
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
    table = PageTable.of("Measured in one audit only", headers, rows, folded=True)
    return Section("alone", "Measured in one audit only", [table] if rows else [])
