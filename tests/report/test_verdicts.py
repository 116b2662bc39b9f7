from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from evenhand.files import to_json
from evenhand.instruments import _LOADED, Instrument, instrument, instruments, measure, option
from evenhand.report import verdicts
from evenhand.report.methods import label_of, methods, text_of
from evenhand.report.verdicts import Verdict
from evenhand.results import Measurement
from evenhand.simulate import world
from evenhand.vectors.store import Vectors

ASSOCIATION = Measurement(
    metric="association",
    query="t",
    value=-0.05,
    low=-0.08,
    high=-0.02,
    n=20,
    ideal=0.0,
    worse="lower",
    interval="",
    p_value=0.001,
)
PROJECTIONS = replace(ASSOCIATION, metric="projections", value=0.3, low=0.2, high=0.4, worse="away")
WEAT = replace(ASSOCIATION, metric="weat", value=1.2, low=0.5, high=1.5, worse="away")


def judge(topic: str, results: list[Measurement], name: str = "") -> Verdict:
    return verdicts.judge("vectors", results, topic=topic, name=name)


def test_strong_needs_both_measures() -> None:
    assert judge("t", [ASSOCIATION, PROJECTIONS]).level == "strong evidence"
    weak = replace(PROJECTIONS, p_value=0.2)
    assert judge("t", [ASSOCIATION, weak]).level == "some evidence"


def test_found_needs_the_interval_to_exclude_the_ideal() -> None:
    wide = replace(ASSOCIATION, high=0.01)
    assert judge("t", [wide, PROJECTIONS]).level == "some evidence"
    assert judge("t", [wide]).level == "undecided"


def test_a_second_measure_against_the_stereotype_confirms_nothing() -> None:
    against = replace(PROJECTIONS, value=-0.3, low=-0.4, high=-0.2)
    verdict = judge("t", [ASSOCIATION, against])
    assert verdict.level == "some evidence"
    assert verdict.confirmed_by == ()
    assert "against the direction" in verdict.sentence


def test_p_values_are_corrected_before_some() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    one = judge("t", [no, replace(PROJECTIONS, p_value=0.03)])
    assert [test.p for test in one.tests] == pytest.approx([0.5, 0.06])
    assert one.level == "undecided"
    assert judge("t", [no, replace(PROJECTIONS, p_value=0.02)]).level == "some evidence"


def test_strong_uses_the_corrected_p_value() -> None:
    near = replace(ASSOCIATION, p_value=0.004)
    assert judge("t", [near, PROJECTIONS]).level == "strong evidence"
    others = [replace(ASSOCIATION, query=f"other {i}", p_value=0.5) for i in range(3)]
    verdict = verdicts.judge("vectors", [near, PROJECTIONS], topic="t", others=others)
    assert verdict.tests[0].p == pytest.approx(0.016), "five tests, the second smallest p"
    assert verdict.level == "some evidence"


def test_weat_on_two_classes_is_no_second_test() -> None:
    """Its mean difference is -2 times the association: one statistic counts once."""
    single = replace(ASSOCIATION, value=-0.055, low=-0.105, high=-0.006, p_value=0.027)
    verdict = judge("t", [single, replace(WEAT, p_value=0.027)])
    assert [test.metric for test in verdict.tests] == ["association"]
    assert verdict.level == "some evidence"
    sure = replace(ASSOCIATION, p_value=0.001)
    assert judge("t", [sure, WEAT]).level == "some evidence", "nothing else confirms it"


def test_an_interval_without_the_ideal_is_not_enough() -> None:
    single = replace(ASSOCIATION, low=-0.105, high=-0.006, p_value=0.027)
    others = [replace(ASSOCIATION, query="other", p_value=0.8)]
    verdict = verdicts.judge("vectors", [single], topic="t", others=others)
    assert verdict.level == "undecided"
    assert verdict.tests[0].p == pytest.approx(0.054)
    assert verdict.tests[0].family == 2


def test_what_is_not_found_says_what_is_ruled_out() -> None:
    no = replace(ASSOCIATION, value=0.0, low=-0.0196, high=0.0296, p_value=0.9)
    verdict = judge("t", [no])
    assert verdict.level == "undecided", "without a spread of the words there is no size"
    assert verdict.tests[0].ruled_out == pytest.approx(0.0296)
    assert "rule out an association contrast beyond 0.030" in verdict.sentence
    unknown = judge("t", [replace(no, low=-float("inf"), high=float("inf"))])
    assert unknown.tests[0].ruled_out is None
    assert "rule out no size" in unknown.sentence


@pytest.mark.parametrize(("high", "level"), [(1.4, "none found"), (1.5, "undecided")])
def test_none_found_is_an_interval_within_a_small_size(high: float, level: str) -> None:
    """An odds ratio of 1.4 is d = 0.186, one of 1.5 d = 0.224."""
    odds = replace(
        ASSOCIATION, metric="odds", value=1.0, low=1 / high, high=high, ideal=1.0, p_value=0.9
    )
    verdict = verdicts.judge("corpus", [odds, replace(odds, query="u")])
    assert verdict.level == level
    assert odds.high == high


def test_the_ruled_out_odds_ratio_is_a_ratio() -> None:
    odds = replace(ASSOCIATION, metric="odds", value=1.1, low=0.4, high=2.0, ideal=1.0, p_value=0.9)
    verdict = verdicts.judge("corpus", [odds])
    assert verdict.tests[0].ruled_out == pytest.approx(2.5)


def test_measures_against_random_words_do_not_decide() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    others = [
        replace(PROJECTIONS, metric=name, p_value=0.0001)
        for name in ("mac", "rnd", "ripa", "rnsb", "ect", "direct_bias", "same")
    ]
    assert judge("t", [no, *others]).level == "undecided"


def test_without_the_association_there_is_no_verdict() -> None:
    assert judge("t", [PROJECTIONS]).level == "not measured"
    assert judge("t", [PROJECTIONS]).to_dict()["numbers"] == []


def _levels(bias: float, count: int, classes: tuple[str, ...]) -> list[str]:
    levels = []
    for seed in range(count):
        w = world(bias=bias, dim=50, vocabulary=600, seed=seed, classes=classes)
        v = Vectors.from_arrays(w.words, w.matrix)
        measured = measure(v, w.topic, options={"permutations": 1000, "null": 200})
        levels.append(judge(w.topic.name, list(measured)).level)
    return levels


@pytest.mark.parametrize("classes", [("male", "female"), ("a", "b", "c")])
def test_worlds_without_bias_are_not_called_biased(classes: tuple[str, ...]) -> None:
    assert {*_levels(0.0, 40, classes)} <= {"undecided", "none found", "some evidence"}
    assert _levels(0.0, 40, classes).count("some evidence") <= 4


@pytest.mark.parametrize("classes", [("male", "female"), ("a", "b", "c")])
def test_worlds_with_bias_are_called_strongly_biased(classes: tuple[str, ...]) -> None:
    assert set(_levels(0.5, 10, classes)) == {"strong evidence"}


def test_a_verdict_is_read_back_as_it_was_saved() -> None:
    verdict = judge("t", [replace(ASSOCIATION, high=float("inf")), PROJECTIONS], name="small")
    again = Verdict.from_dict(json.loads(to_json(verdict)))
    assert again.numbers == verdict.numbers
    assert (again.level, again.sentence) == (verdict.level, verdict.sentence)
    assert again.confirmed_by == verdict.confirmed_by
    assert (again.tests, again.size) == (verdict.tests, verdict.size)


def test_a_new_instrument_of_an_audited_subject_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @instrument(name="length", subjects=("masked",), label="Mean length", question="How long?")
    @dataclass(frozen=True, kw_only=True)
    class Length(Instrument):
        limit: int = option(10, minimum=1, help="Longest word that counts.")

    known = dict(instruments("masked"))
    monkeypatch.setitem(_LOADED, "masked", {**known, "length": Length})
    assert text_of(methods("masked")["length"]) == "Options: limit = 10."
    assert label_of("length") == "Mean length"


def test_strong_evidence_needs_every_required_instrument(monkeypatch: pytest.MonkeyPatch) -> None:
    @instrument(
        name="other",
        subjects=("vectors",),
        label="Other",
        question="Is it so?",
        role="required",
        minimum=5,
        audit=True,
    )
    @dataclass(frozen=True, kw_only=True)
    class Other(Instrument):
        pass

    monkeypatch.setitem(_LOADED, "vectors", {**instruments("vectors"), "other": Other})
    other = replace(PROJECTIONS, metric="other")
    assert judge("t", [ASSOCIATION, PROJECTIONS]).level == "some evidence"
    assert judge("t", [ASSOCIATION, PROJECTIONS, other]).level == "strong evidence"
    assert judge("t", [ASSOCIATION, PROJECTIONS, replace(other, n=4)]).level == "some evidence"
    assert (
        judge("t", [ASSOCIATION, PROJECTIONS, replace(other, value=-1.2)]).level == "some evidence"
    )
