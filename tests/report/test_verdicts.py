from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from evenhand.files import to_json
from evenhand.instruments import _LOADED, instrument, instruments, measure, option
from evenhand.report import verdicts
from evenhand.report.methods import label_of, methods
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
WEAT = replace(ASSOCIATION, metric="weat", value=1.2, low=0.5, high=1.5, worse="away")


def judge(topic: str, results: list[Measurement], name: str = "") -> Verdict:
    return verdicts.judge("vectors", results, topic=topic, name=name)


def test_strong_needs_both_measures() -> None:
    assert judge("t", [ASSOCIATION, WEAT]).level == "strong evidence"
    weak = replace(WEAT, p_value=0.2)
    assert judge("t", [ASSOCIATION, weak]).level == "some evidence"


def test_strong_needs_the_interval_below_zero() -> None:
    wide = replace(ASSOCIATION, high=0.01)
    assert judge("t", [wide, WEAT]).level == "some evidence"


def test_a_second_measure_against_the_stereotype_confirms_nothing() -> None:
    against = replace(WEAT, value=-1.2, low=-1.5, high=-0.5)
    verdict = judge("t", [ASSOCIATION, against])
    assert verdict.level == "some evidence"
    assert verdict.confirmed_by == ()
    assert "against the direction" in verdict.sentence


def test_p_values_are_corrected_before_some() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    one = judge("t", [no, replace(WEAT, p_value=0.03)])
    assert [test["p_holm"] for test in one.tests] == pytest.approx([0.5, 0.06])
    assert one.level == "none found"
    assert judge("t", [no, replace(WEAT, p_value=0.02)]).level == "some evidence"


def test_measures_against_random_words_do_not_decide() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    others = [
        replace(WEAT, metric=name, p_value=0.0001)
        for name in ("mac", "rnd", "ripa", "rnsb", "ect", "direct_bias", "same")
    ]
    assert judge("t", [no, *others]).level == "none found"


def test_none_found_says_what_it_cannot_mean() -> None:
    verdict = judge("t", [replace(ASSOCIATION, p_value=0.5, low=-0.08, high=0.03)])
    assert "not proof of no bias" in verdict.sentence
    assert "−0.080 and 0.030" in verdict.sentence


def test_without_the_association_there_is_no_verdict() -> None:
    assert judge("t", [WEAT]).level == "not measured"
    assert judge("t", [WEAT]).to_dict()["numbers"] == []


def _levels(bias: float, count: int, classes: tuple[str, ...]) -> list[str]:
    levels = []
    for seed in range(count):
        w = world(bias=bias, dim=50, vocabulary=600, seed=seed, classes=classes)
        v = Vectors.from_arrays(w.words, w.matrix)
        measured = measure(v, w.topic, permutations=1000, null=200)
        levels.append(judge(w.topic.name, list(measured)).level)
    return levels


@pytest.mark.parametrize("classes", [("male", "female"), ("a", "b", "c")])
def test_worlds_without_bias_are_not_called_biased(classes: tuple[str, ...]) -> None:
    assert _levels(0.0, 40, classes).count("none found") >= 36


@pytest.mark.parametrize("classes", [("male", "female"), ("a", "b", "c")])
def test_worlds_with_bias_are_called_strongly_biased(classes: tuple[str, ...]) -> None:
    assert set(_levels(0.5, 10, classes)) == {"strong evidence"}


def test_a_verdict_is_read_back_as_it_was_saved() -> None:
    verdict = judge("t", [replace(ASSOCIATION, high=float("inf")), WEAT], name="small")
    again = Verdict.from_dict(json.loads(to_json(verdict)))
    assert again.numbers == verdict.numbers
    assert (again.level, again.sentence) == (verdict.level, verdict.sentence)
    assert again.confirmed_by == verdict.confirmed_by


def test_a_new_instrument_of_an_audited_subject_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @instrument(name="length", subject="model", label="Mean length", question="How long?")
    @dataclass(frozen=True, kw_only=True)
    class Length:
        limit: int = option(10, minimum=1, help="Longest word that counts.")

    known = dict(instruments("model"))
    monkeypatch.setitem(_LOADED, "model", {**known, "length": Length})
    assert methods("masked")["length"].text == "Options: limit = 10."
    assert label_of("length") == "Mean length"


def test_strong_evidence_needs_every_required_instrument(monkeypatch: pytest.MonkeyPatch) -> None:
    @instrument(
        name="other",
        subject="vectors",
        label="Other",
        question="Is it so?",
        role="required",
        minimum=5,
        audit=True,
    )
    @dataclass(frozen=True, kw_only=True)
    class Other:
        pass

    monkeypatch.setitem(_LOADED, "vectors", {**instruments("vectors"), "other": Other})
    other = replace(WEAT, metric="other")
    assert judge("t", [ASSOCIATION, WEAT]).level == "some evidence"
    assert judge("t", [ASSOCIATION, WEAT, other]).level == "strong evidence"
    assert judge("t", [ASSOCIATION, WEAT, replace(other, n=4)]).level == "some evidence"
    assert judge("t", [ASSOCIATION, WEAT, replace(other, value=-1.2)]).level == "some evidence"
