"""The stages for the data, and the verdict on data that lean and on data that do not."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evenhand.audit import stages
from evenhand.audit.stages import Options, Texts
from evenhand.fewshot.data import Dataset, read
from evenhand.instruments import Run
from evenhand.report.verdicts import explain, judge_subject
from evenhand.text.metrics.odds import Odds, class_odds
from masked_worlds import audited_data

CLASSES = ("baker", "mason", "florist", "glazier", "weaver", "tailor")


def drawn(seed: int, shares=0.5, each: int = 60) -> Dataset:
    """Texts of six classes, each with the same share of women or with its own."""
    rng = np.random.default_rng(seed)
    women = np.broadcast_to(shares, len(CLASSES))
    genders = [rng.random(each) < share for share in women]
    rows = [
        (f"Text {place} of a {name}.", name, "F" if woman else "M")
        for name, of_class in zip(CLASSES, genders, strict=True)
        for place, woman in enumerate(of_class)
    ]
    return Dataset.of(*zip(*rows, strict=True), name=f"drawn {seed}")


def test_odds_are_those_of_the_counts(tmp_path):
    data = drawn(3, (0.9, 0.1, 0.5, 0.5, 0.5, 0.5))
    findings = audited_data(data, tmp_path)
    men, women = (
        dict(zip(data.classes, column.tolist(), strict=True)) for column in data.gender_sizes.T
    )
    expected = class_odds(men, women)
    found = findings.measured("odds")
    assert [m.query for m in found] == [row.query for row in expected]
    for m, row in zip(found, expected, strict=True):
        assert (m.value, m.low, m.high) == pytest.approx((row.value, row.low, row.high))
        assert (m.p_value, m.p) == pytest.approx((row.p_value, row.p))
        assert m.n == row.n == row.details["male"] + row.details["female"]
    content = findings.details("odds")
    assert content["men"] + content["women"] == content["texts"] == 360
    assert content["unknown"] == 0


def test_texts_of_unknown_gender_and_classes_without_any_are_counted(tmp_path):
    data = Dataset.of(
        [f"text {i}" for i in range(9)],
        "aaaabbbbc",
        ["M", "F", "M", None, "F", "F", "M", "F", None],
        name="some",
    )
    content = audited_data(data, tmp_path).details("odds")
    assert content["unknown"] == 2
    assert content["without_gender"] == ["c"]
    assert content["classes"] == 2


@pytest.mark.parametrize(
    ("labels", "genders", "reason"),
    [
        ("abab", None, "no text with the gender of men and women"),
        ("abab", "MMMM", "no text with the gender of women"),
        ("aaaa", "MFMF", "expected two classes or more with genders, got only 'a'"),
    ],
)
def test_what_cannot_be_compared_is_skipped_with_the_reason(tmp_path, labels, genders, reason):
    data = Dataset.of([f"text {i}" for i in range(4)], labels, genders, name="few")
    findings = audited_data(data, tmp_path)
    assert findings.details("odds") is None
    assert reason in findings.of("odds")[0].skipped[0]["reason"]
    [verdict] = judge_subject(findings, "corpus")
    assert verdict.level == "not measured"
    assert reason in verdict.sentence


def test_planted_leanings_are_found_and_named(tmp_path):
    findings = audited_data(drawn(5, (0.05, 0.95, 0.5, 0.5, 0.5, 0.5)), tmp_path)
    [verdict] = judge_subject(findings, "corpus")
    assert verdict.level == "strong evidence"
    assert verdict.subject == "corpus"
    assert verdict.name == "drawn 5"
    assert "'baker'" in verdict.sentence
    assert "'mason'" in verdict.sentence
    labels = [number.label for number in verdict.numbers]
    assert "baker" in labels[0]
    assert "mason" in labels[-1]
    assert verdict.numbers[0].value > 1 > verdict.numbers[-1].value
    assert all(number.low < number.value < number.high for number in verdict.numbers)


def test_a_leaning_of_middling_clarity_is_some_evidence(tmp_path):
    """Holm's p of the clearest class lies between .01 and .05: 6 classes, raw p near .004."""
    data = Dataset.of(
        [f"text {i}" for i in range(240)],
        [name for name in CLASSES for _ in range(40)],
        ["M"] * 30 + ["F"] * 10 + (["M"] * 20 + ["F"] * 20) * 5,
        name="middling",
    )
    findings = audited_data(data, tmp_path)
    least = min(m.p for m in findings.measured("odds"))
    assert 0.01 < least < 0.05
    [verdict] = judge_subject(findings, "corpus")
    assert verdict.level == "some evidence"


def test_even_data_raise_no_alarm_beyond_the_level(tmp_path):
    """Two hundred worlds without a leaning: at most one in twenty is called leaning."""
    levels = Counter()
    for seed in range(200):
        made = Odds().audit(None, Run(), Texts(drawn(seed), Options(work=tmp_path)))
        levels[min(m.p for m in made["measurements"]) < 0.05] += 1
    assert levels[True] <= 10


def test_none_found_says_what_it_cannot_mean(tmp_path):
    [verdict] = judge_subject(audited_data(drawn(0), tmp_path), "corpus")
    assert verdict.level == "undecided"
    assert "rule out an odds ratio beyond" in verdict.sentence
    assert verdict.cannot_mean
    assert any(verdict.cannot_mean in rule for rule in explain("corpus"))


@pytest.mark.parametrize(
    ("dials", "level"), [("shares=1", "strong evidence"), ("shares=0,seed=2", "undecided")]
)
def test_simulated_biographies_are_judged_by_their_shares(tmp_path, dials, level):
    data = read(f"simulated:per_class=40,{dials}")
    [verdict] = judge_subject(audited_data(data, tmp_path), "corpus")
    assert verdict.level == level


def test_nothing_audited_is_not_judged(tmp_path):
    findings = audited_data(drawn(1), tmp_path)
    object.__setattr__(findings, "stages", ())
    assert judge_subject(findings, "corpus") == []


def test_the_filter_finds_planted_sentences_and_their_class(tmp_path):
    data = Dataset.of(
        [
            "The drummer sits at the back tapping her foot. It rains outside.",
            "A girl took her kite to the beach.",
            "Rain fell on the roof all day long.",
        ],
        ["music", "leisure", "weather"],
        name="three",
    )
    content = audited_data(data, tmp_path).details("filter")
    assert content["steps"]["read"] == 4
    assert content["steps"]["accepted"] == 1
    assert content["reasons"]["other_indicator"] == 1
    [one] = content["examples"]
    assert one["masked"] == "The drummer sits at the back tapping [MASK] foot."
    assert (one["class"], one["pronoun"], one["row"]) == ("music", "her", 0)
    assert content["texts"] == content["of"] == 3


def test_of_many_texts_a_sample_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "QUICK_TEXTS", 5)
    content = audited_data(drawn(2, each=2), tmp_path).details("filter")
    assert (content["texts"], content["of"], content["steps"]["read"]) == (5, 12, 5)


def test_line_separators_inside_a_sentence_do_not_cut_it(tmp_path):
    data = Dataset.of(["The drummer\u2028sits there tapping her foot."], ["a"], name="odd")
    found = Texts(data, Options(work=tmp_path)).filtered()
    assert [one["row"] for one in found.accepted] in ([], [0])
    assert found.counts["read"] >= 1
