from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import pytest

from evenhand.files import to_json
from evenhand.instruments import _LOADED, instrument, instruments, measure, option
from evenhand.report import verdicts
from evenhand.report.methods import label_of, methods
from evenhand.report.verdicts import Verdict
from evenhand.results import Measurement
from evenhand.simulate import world
from evenhand.statistics.power import power_of
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


def test_strong_needs_the_interval_below_zero() -> None:
    wide = replace(ASSOCIATION, high=0.01)
    assert judge("t", [wide, PROJECTIONS]).level == "some evidence"


def test_a_second_measure_against_the_stereotype_confirms_nothing() -> None:
    against = replace(PROJECTIONS, value=-0.3, low=-0.4, high=-0.2)
    verdict = judge("t", [ASSOCIATION, against])
    assert verdict.level == "some evidence"
    assert verdict.confirmed_by == ()
    assert "against the direction" in verdict.sentence


def test_p_values_are_corrected_before_some() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    one = judge("t", [no, replace(PROJECTIONS, p_value=0.03)])
    assert [test["p_holm"] for test in one.tests] == pytest.approx([0.5, 0.06])
    assert one.level == "none found"
    assert judge("t", [no, replace(PROJECTIONS, p_value=0.02)]).level == "some evidence"


def test_strong_uses_the_corrected_p_value() -> None:
    near = replace(ASSOCIATION, p_value=0.004)
    assert judge("t", [near, PROJECTIONS]).level == "strong evidence"
    others = [replace(ASSOCIATION, query=f"other {i}", p_value=0.5) for i in range(3)]
    verdict = verdicts.judge("vectors", [near, PROJECTIONS], topic="t", others=others)
    assert verdict.tests[0]["p_holm"] == pytest.approx(0.016), "five tests, the second smallest p"
    assert verdict.level == "some evidence"


def test_weat_on_two_classes_is_no_second_test() -> None:
    """Its mean difference is -2 times the association: one statistic counts once."""
    single = replace(ASSOCIATION, value=-0.055, low=-0.105, high=-0.006, p_value=0.027)
    verdict = judge("t", [single, replace(WEAT, p_value=0.027)])
    assert [test["metric"] for test in verdict.tests] == ["association"]
    assert verdict.level == "some evidence"
    sure = replace(ASSOCIATION, p_value=0.001)
    assert judge("t", [sure, WEAT]).level == "some evidence", "nothing else confirms it"


def test_none_found_beside_an_interval_without_the_ideal_says_why() -> None:
    single = replace(ASSOCIATION, low=-0.105, high=-0.006, p_value=0.027)
    others = [replace(ASSOCIATION, query="other", p_value=0.8)]
    verdict = verdicts.judge("vectors", [single], topic="t", others=others)
    assert verdict.level == "none found"
    assert "excludes 0, but p = 0.027 is 0.054 after the correction for 2 tests" in (
        verdict.sentence
    )


def test_none_found_says_what_could_have_been_seen() -> None:
    """(1.96 + 0.84) standard errors for one test, (2.24 + 0.84) for two."""
    no = replace(ASSOCIATION, value=0.0, low=-0.0196, high=0.0196, p_value=0.9)
    verdict = judge("t", [no])
    assert verdict.tests[0]["smallest_effect"] == pytest.approx(0.02802, abs=1e-4)
    assert "differs from 0 by 0.028 or more" in verdict.sentence
    twice = verdicts.judge("vectors", [no], topic="t", others=[replace(no, query="other")])
    assert twice.tests[0]["smallest_effect"] == pytest.approx(0.03083, abs=1e-4)
    unknown = judge("t", [replace(no, low=-float("inf"), high=float("inf"))])
    assert unknown.tests[0]["smallest_effect"] is None


def test_the_smallest_odds_ratio_is_a_ratio() -> None:
    odds = replace(ASSOCIATION, metric="odds", value=1.1, low=0.5, high=2.0, ideal=1.0, p_value=0.9)
    verdict = verdicts.judge("data", [odds, replace(odds, query="u")])
    error = math.log(2) / 1.959964
    assert verdict.tests[0]["smallest_effect"] == pytest.approx(
        math.exp((2.241403 + 0.841621) * error), rel=1e-4
    )


def test_measures_against_random_words_do_not_decide() -> None:
    no = replace(ASSOCIATION, p_value=0.5)
    others = [
        replace(PROJECTIONS, metric=name, p_value=0.0001)
        for name in ("mac", "rnd", "ripa", "rnsb", "ect", "direct_bias", "same")
    ]
    assert judge("t", [no, *others]).level == "none found"


def test_none_found_says_what_it_cannot_mean() -> None:
    verdict = judge("t", [replace(ASSOCIATION, p_value=0.5, low=-0.08, high=0.03)])
    assert "not proof of no bias" in verdict.sentence
    assert "−0.080 and 0.030" in verdict.sentence


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
    assert _levels(0.0, 40, classes).count("none found") >= 36


@pytest.mark.parametrize("classes", [("male", "female"), ("a", "b", "c")])
def test_worlds_with_bias_are_called_strongly_biased(classes: tuple[str, ...]) -> None:
    assert set(_levels(0.5, 10, classes)) == {"strong evidence"}


@pytest.mark.slow
def test_the_predicted_power_is_that_of_simulated_worlds() -> None:
    """In worlds of a known bias, the share of detections is what the standard errors promise."""
    count, found, expected, effects = 150, 0, [], []
    for seed in range(count):
        w = world(bias=0.12, dim=50, vocabulary=600, seed=seed)
        v = Vectors.from_arrays(w.words, w.matrix)
        [m] = measure(v, w.topic, ["association"], options={"permutations": 1000})
        [test] = judge(w.topic.name, [m]).tests
        effects.append(m.value)
        found += m.p_value < 0.05
        expected.append(test["smallest_effect"] / (1.959964 + 0.841621))
    effect = abs(sum(effects) / count)
    power = sum(power_of(effect, error) for error in expected) / count
    assert 0.2 < power < 0.95, "the worlds must be able to tell"
    assert found / count == pytest.approx(power, abs=0.12)


def test_a_verdict_is_read_back_as_it_was_saved() -> None:
    verdict = judge("t", [replace(ASSOCIATION, high=float("inf")), PROJECTIONS], name="small")
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
    other = replace(PROJECTIONS, metric="other")
    assert judge("t", [ASSOCIATION, PROJECTIONS]).level == "some evidence"
    assert judge("t", [ASSOCIATION, PROJECTIONS, other]).level == "strong evidence"
    assert judge("t", [ASSOCIATION, PROJECTIONS, replace(other, n=4)]).level == "some evidence"
    assert (
        judge("t", [ASSOCIATION, PROJECTIONS, replace(other, value=-1.2)]).level == "some evidence"
    )
