"""What holds for every declared instrument, of every subject."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

import evenhand as eh
from evenhand.cli.output import print_comparisons, print_finding, print_measurements
from evenhand.errors import InputError
from evenhand.files import to_json
from evenhand.instruments import (
    PACKAGES,
    Instrument,
    Run,
    all_declarations,
    find,
    identity,
    instrument,
    instruments,
    option,
    plan,
    run_jobs,
)
from evenhand.results import Comparison, Items, Measurement, Measurements
from evenhand.summary import clause_of, summarize

INSTRUMENTS = [
    pytest.param(cls, id=f"{subject}-{name}")
    for subject in PACKAGES
    for name, cls in instruments(subject).items()
]
CHEAP = {"permutations": 100, "null": 20, "resamples": 200}
"""Values that make an instrument fast, for options of these names."""

every_instrument = pytest.mark.parametrize("cls", INSTRUMENTS)


@cache
def example(cls: Any) -> tuple[Any, Any]:
    return cls.example()


@cache
def measured(cls: Any) -> tuple[Measurement, ...]:
    subject, material = example(cls)
    names = {option.name for option in cls.declaration.options}
    chosen = cls(**{name: value for name, value in CHEAP.items() if name in names})
    result = chosen.measure(subject, material, Run())
    return (result,) if isinstance(result, Measurement) else tuple(result)


@cache
def compared(cls: Any) -> tuple[Comparison, ...]:
    """Each result with itself."""
    return tuple(eh.compare(m, m) for m in measured(cls))


def test_there_are_instruments_and_their_names_are_unique():
    names = [(kind, about.name) for about in all_declarations() for kind in about.subjects]
    assert {"weat", "mac", "association", "crows"} <= {name for _, name in names}
    assert len(names) == len(set(names))
    assert find("weat").declaration.subjects == ("vectors",)
    assert find("no such metric") is None


@every_instrument
def test_the_declaration_is_complete(cls):
    about = cls.declaration
    for text in (about.label, about.question, about.formula, about.source, about.reading):
        assert text, about.name
    assert about.question.endswith("?")
    assert "\\" not in about.formula, "plain text: terminals and pages show it as it is"
    assert about.worse in ("higher", "lower", "away")
    for declared in about.options:
        assert declared.help.endswith("."), (about.name, declared.name)
        declared.check(declared.default)
    assert json.loads(to_json(identity(cls())))["metric"] == about.name


@every_instrument
def test_a_result_is_complete(cls):
    name, has_subject = cls.declaration.name, example(cls)[0] is not None
    assert measured(cls)[0].metric == name
    for m in measured(cls):
        assert m.subject or not has_subject
        assert m.n > 0
        assert m.interval
        assert len(m.items)
        if m.metric == name:
            assert m.ideal == cls.declaration.ideal
            assert m.worse == cls.declaration.worse
        else:  # a related number that the instrument returns too
            assert m.metric.startswith(name)
        assert math.isnan(m.value) or m.low <= m.value <= m.high


@every_instrument
def test_every_part_has_an_interval(cls):
    """README: every measure comes with its uncertainty."""
    remaining = list(measured(cls))
    while remaining:
        m = remaining.pop()
        remaining += m.parts
        assert m.interval, (m.by, m.query)
        assert not math.isnan(m.low), (m.by, m.query)
        assert not math.isnan(m.high), (m.by, m.query)


@every_instrument
def test_a_result_reads_itself_back(cls, tmp_path):
    for m in measured(cls):
        assert Measurement.from_dict(m.to_dict()) == m
        assert Measurement.from_dict(json.loads(to_json(m.to_dict()))) == m
        m.save(tmp_path / "result.json")
        assert eh.load(tmp_path / "result.json") == m


@every_instrument
def test_a_result_can_be_compared_even_after_loading(cls, tmp_path):
    for m in measured(cls):
        m.save(tmp_path / "result.json")
        again = eh.load(tmp_path / "result.json")
        change = eh.compare(m, again)
        assert change.paired > 0 or change.interval == "none: no paired items"
        for part in (change, *change.parts):
            no_change = 1 if part.kind == "ratio" else 0
            if not math.isnan(part.before.value):
                assert part.change.value == pytest.approx(no_change, abs=1e-12)
            assert part.change.low <= no_change + 1e-12
            assert part.change.high >= no_change - 1e-12
        assert Comparison.from_dict(json.loads(to_json(change.to_dict()))) == change
        assert len(change.to_frame()) == 1 + len(change.parts)
        assert change.plot().to_dict()


@every_instrument
def test_a_result_can_be_plotted_and_put_in_a_frame(cls):
    for m in measured(cls):
        assert len(m.to_frame()) == len(m.items)
        assert len(m.to_frame("parts")) >= 1 + len(m.parts)
        assert m.plot().to_dict()
        assert m.query in m._repr_html_() or cls.declaration.name in m._repr_html_()
        assert str(m).count("\n") == 0
    assert len(Measurements(measured(cls)).to_frame()) == len(measured(cls))


@pytest.mark.parametrize("columns", ["60", "80", "110", "200"])
@every_instrument
def test_the_table_and_the_sentence_of_a_result_fit_the_terminal(cls, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    results = measured(cls)
    print_measurements("Results", results, parts=True)
    print_comparisons("Changes", compared(cls), parts=True)
    print_finding(results)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= int(columns)
    for line in lines:
        assert line.count("[") == line.count("]"), f"an interval is wrapped: {line}"
        assert not re.search(r"\d…|…\d", line)
    alone = [len(line.split()) == 1 and line.startswith("   ") for line in lines]
    assert not any(map(all, zip(alone, alone[1:], alone[2:], strict=False))), "one word per line"


@every_instrument
def test_the_sentence_says_what_was_found_and_how_sure(cls):
    for m, comparison in zip(measured(cls), compared(cls), strict=True):
        text = summarize(m)
        assert text.startswith(
            ("Found", "Undecided", "None found", "Measured", "Nothing can be said")
        )
        assert text.endswith(".")
        assert not re.search(r"[{}\n]|nan|None\b(?! found)", text)
        if not text.startswith("Nothing"):
            assert re.search(r"−?\d\.\d+ \[.*\]", text)
        same = summarize(comparison)
        assert same.startswith("No clear change from before to after: ")


@every_instrument
def test_either_side_of_the_ideal_has_its_words(cls):
    about = cls.declaration
    if not about.bias:
        return
    m = measured(cls)[0]
    for side in (1, -1):
        value = about.ideal + side * 0.2
        moved = replace(m, value=value, low=value - 0.1, high=value + 0.1, p_value=1e-6)
        text = clause_of(cls, moved)
        bounded = (about.ideal == 1.0 and side > 0) or (about.worse == "higher" and side < 0)
        assert text or bounded, (about.name, side)
        assert "{" not in text


def test_measure_refuses_what_no_instrument_measures():
    with pytest.raises(InputError, match="expected word vectors, a language model"):
        eh.measure(42)


def test_a_plan_can_leave_out_what_does_not_fit():
    query = eh.lexicon.weat(7)
    with pytest.raises(InputError, match="metric 'association' needs a topic"):
        plan("vectors", query, ["association", "weat"])
    jobs = plan("vectors", query, ["association", "weat"], fitting=True)
    assert [(job.metric, job.query) for job in jobs] == [("weat", "weat-7")]


def test_jobs_that_fail_are_skipped_or_raise(glove):
    unknown = eh.lexicon.Query(
        name="unknown", targets={"a": ("zzzqx",)}, attributes={"b": ("zzzqy",)}
    )
    jobs = plan("vectors", unknown, "mac")
    (skip,) = run_jobs(glove, jobs).skipped
    assert (skip["metric"], skip["query"]) == ("mac", "unknown")
    with pytest.raises(InputError, match="zzzqx"):
        run_jobs(glove, jobs, strict=True)


@instrument(
    name="vocabulary_size",
    subjects=("vectors",),
    label="Vocabulary",
    question="How many words are there?",
    ideal=None,
)
@dataclass(frozen=True, kw_only=True)
class VocabularySize(Instrument):
    scale: float = option(1.0, minimum=0, help="A factor.")

    def measure(self, subject: Any, material: Any = None, run: Run = Run()) -> Measurement:
        return Measurement(
            metric="vocabulary_size",
            query=str(getattr(material, "name", "")),
            value=len(subject) * self.scale,
            low=0,
            high=float("inf"),
            prob=run.prob,
            n=len(subject),
            ideal=None,
            worse="away",
            interval="none",
        )


def test_other_packages_add_instruments_by_an_entry_point(monkeypatch, glove):
    entry = SimpleNamespace(name="vocabulary_size", load=lambda: VocabularySize)
    groups = {"evenhand.instruments": [entry]}
    monkeypatch.setattr("evenhand.instruments.entry_points", lambda group: groups.get(group, []))
    monkeypatch.setattr("evenhand.instruments._LOADED", {})
    assert find("vocabulary_size") is VocabularySize
    assert "vocabulary_size" not in instruments("masked")
    m = eh.measure(glove, eh.lexicon.weat(7), "vocabulary_size", options={"scale": 0.5})
    assert (m.value, m.query) == (len(glove) / 2, "weat-7")
    assert list(instruments("vectors"))[-1] == "vocabulary_size"


def test_calling_an_instrument_measures_as_measure_does(glove):
    query = eh.lexicon.weat(7)
    weat = find("weat")(permutations=100, null=0)
    measured = eh.measure(glove, query, weat, seed=3, prob=0.9)
    assert weat(glove, query, seed=3, prob=0.9) == measured
    assert weat("glove", query) == eh.measure("glove", query, weat)
    with pytest.raises(InputError, match="metric 'weat' needs 2 target sets"):
        weat(glove, eh.lexicon.Query(name="one", targets={"a": ("he",)}, attributes={"b": ("x",)}))


def test_an_instrument_inherits_from_the_base_class(monkeypatch):
    class Other:
        declaration = VocabularySize.declaration

    with pytest.raises(TypeError, match="Other: an instrument inherits from"):
        instrument(name="other", subjects=("vectors",), label="", question="")(
            dataclass(frozen=True)(Other)
        )
    entry = SimpleNamespace(name="other", load=lambda: Other)
    monkeypatch.setattr("evenhand.instruments.entry_points", lambda _group: [entry])
    monkeypatch.setattr("evenhand.instruments._LOADED", {})
    with pytest.raises(TypeError, match="Other: an instrument inherits"):
        instruments("vectors")


def scored(scores: list[float], value: float | None = None, **columns: Any) -> Measurement:
    items = {"item": [f"i{i}" for i in range(len(scores))], "score": scores, **columns}
    mean = sum(scores) / len(scores) if value is None else value
    return VocabularySize.declaration.result(
        Run(), "q", (mean, -math.inf, math.inf), n=len(scores), interval="none", items=Items(items)
    )


def test_items_with_scores_are_compared_by_students_t():
    # differences 1, 2, 3: mean 2, sd 1, t(.975, 2) = 4.302653, half = 4.302653 / sqrt(3) = 2.484138
    change = eh.compare(scored([1.0, 1.0, 1.0]), scored([2.0, 3.0, 4.0]))
    assert change.paired == 3
    assert change.change.value == pytest.approx(2)
    assert (change.change.low, change.change.high) == pytest.approx((-0.484138, 4.484138))
    # clusters a, b of two: means 1.5 and 3.5, sd sqrt(2), t(.975, 1) = 12.706205, half = 12.706205
    clusters = {"cluster": ["a", "a", "b", "b"]}
    change = eh.compare(scored([0.0] * 4, **clusters), scored([1.0, 2.0, 3.0, 4.0], **clusters))
    assert change.paired == 2
    assert (change.change.low, change.change.high) == pytest.approx((-10.206205, 15.206205))
    # clusters of 1 and 2: mean 2; 2 + 2/3 (1 - 2) = 4/3, 2 + 2/3 (5 - 4) = 8/3; sd .942809
    clusters = {"cluster": ["a", "b", "b"]}
    change = eh.compare(scored([0.0] * 3, **clusters), scored([1.0, 2.0, 3.0], **clusters))
    half = 12.706205 * 0.942809 / math.sqrt(2)
    assert (change.change.low, change.change.high) == pytest.approx((2 - half, 2 + half))


def test_scores_that_are_not_what_the_value_changes_by_give_no_interval():
    before = scored([1.0, 1.0, 1.0])
    for after, reason in (
        (scored([2.0, 3.0, 4.0], value=2.5), "the value is not the mean of its items' scores"),
        (scored([2.0, 4.0]), "no paired items"),
    ):
        change = eh.compare(before, after)
        assert change.interval.startswith(f"none: {reason}")
        assert math.isinf(change.change.high)


def test_values_that_are_means_plus_a_constant_are_compared_by_scores():
    before, after = scored([1.0, 1.0, 1.0], value=0.5), scored([2.0, 3.0, 4.0], value=2.5)
    change = eh.compare(before, after)
    assert (change.change.low, change.change.high) == pytest.approx((-0.484138, 4.484138))


def test_a_class_documents_its_options():
    text = find("weat").__doc__
    assert "alternative : 'two-sided' | 'greater' | 'less', default 'two-sided'" in text
    assert text.index("Parameters") < text.index("Returns") < text.index("Examples")
