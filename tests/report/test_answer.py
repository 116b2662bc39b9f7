"""The answer: what is said first, and that nothing is said without its number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.files import to_json
from evenhand.instruments import all_declarations
from evenhand.lexicon import topic
from evenhand.report.answer import AuditAnswer, Remedy, build_answer, deciding_forest
from evenhand.report.blocks import FILTERS, Figure, Prose
from evenhand.report.findings import Findings, StageResult
from evenhand.report.verdicts import Level, Subject, Verdict, VerdictTest, judge
from evenhand.results import Items, Measurement


def association(value: float, p: float, *, spread: float = 0.05, n: int = 40) -> Measurement:
    """An association contrast with items of a known spread."""
    scores = [value + spread * (1 if i % 2 else -1) for i in range(n)]
    groups = ["male" if i < n // 2 else "female" for i in range(n)]
    return Measurement(
        metric="association",
        query="gender",
        value=value,
        low=value - 0.02,
        high=value + 0.02,
        n=n,
        ideal=0.0,
        worse="lower",
        interval="",
        prob=0.95,
        p_value=p,
        items=Items(
            {
                "word": [f"word{i}" for i in range(n)],
                "group": groups,
                "axis": ["attribute"] * n,
                "score": scores,
            }
        ),
    )


def verdict(level: Level, subject: Subject = "masked", **more) -> Verdict:
    sizes = {"size": 1.0, "size_low": 0.8, "size_high": 1.2}
    size = VerdictTest(label="x", metric="x", query="", value=1.0, low=0.8, high=1.2, **sizes)
    given = {
        "name": "tiny",
        "topic": "gender",
        "sentence": f"Said: {level}.",
        "claim": "does it",
        "size": size if level in ("strong evidence", "some evidence") else None,
    }
    return Verdict(subject=subject, level=level, **{**given, **more})


def answer_of(findings: Findings, *verdicts: Verdict) -> AuditAnswer:
    return build_answer(replace(findings, verdicts=verdicts))


def test_the_headline_counts_the_checks(findings: Findings) -> None:
    levels = ("strong evidence", "some evidence", "undecided", "none found", "not measured")
    strong, some, unsure, none, missing = map(verdict, levels)
    for verdicts, says in (
        ((strong, strong, none), "Two of three checks found bias."),
        ((strong, some), "Two of two checks found bias, one of them with strong evidence."),
        ((some,), "The one check found bias, none of it with strong evidence."),
        ((none, none), "None of the two checks found bias."),
        ((none,), "The one check found no bias."),
        ((unsure,), "The one check found no bias; it is undecided."),
        ((strong, unsure), "One of two checks found bias; the other is undecided."),
        ((strong, unsure, unsure), "One of three checks found bias; two are undecided."),
        ((missing,), "Nothing could be judged."),
        ((strong, missing), "The one check found bias. One could not be judged."),
    ):
        assert answer_of(findings, *verdicts).headline == says


def test_behaviour_is_said_before_representation_and_strong_before_some(findings: Findings) -> None:
    given = [
        verdict("none found", "predictions"),
        verdict("strong evidence", "vectors"),
        verdict("some evidence", "causal"),
        verdict("strong evidence", "masked"),
    ]
    answer = answer_of(findings, *given)
    assert [row.subject for row in answer.findings] == [
        "masked",
        "vectors",
        "causal",
        "predictions",
    ]
    assert answer.lead == "tiny does it."


def test_simulated_data_are_named_first_and_come_last(findings: Findings) -> None:
    subjects = {**findings.subjects, "corpus": {"name": "simulated", "source": "simulated"}}
    given = [verdict("strong evidence", subject) for subject in ("corpus", "vectors", "fewshot")]
    answer = answer_of(replace(findings, subjects=subjects), *given)
    assert "simulated" in answer.notices[0]
    assert [row.subject for row in answer.findings] == ["vectors", "fewshot", "corpus"]
    assert [row.simulated for row in answer.findings] == [False, True, True]
    assert answer.lines()[0].startswith("Note: The texts are simulated")
    found = "of real objects found bias; both planted biases were found."
    assert answer.headline == f"The one check {found}"
    given[2] = verdict("undecided", "fewshot")
    answer = answer_of(replace(findings, subjects=subjects), *given)
    assert answer.headline.endswith("found bias; one of two planted biases was found.")


@pytest.mark.parametrize("value", [0.0, -0.01])
def test_what_is_not_found_says_what_is_ruled_out(value: float, findings: Findings) -> None:
    judged = judge("vectors", [association(value, 0.6)], name="tiny")
    assert judged.level == "undecided"
    assert judged.size is None
    (test,) = judged.tests
    # between two groups twice the contrast, over the spread of the words
    largest = max(abs(test.size_low), abs(test.size_high))
    assert largest == pytest.approx(2 * test.ruled_out / 0.05, rel=0.05)
    assert test.needed > test.n == 40
    (row,) = answer_of(findings, judged).findings
    assert f"beyond {test.ruled_out:.2f} (d beyond {largest:.1f}" in row.ruled_out
    assert row.size == ""
    assert row.d is None
    unknown = replace(judged, tests=())
    assert "rule out no size" in answer_of(findings, unknown).findings[0].ruled_out


def test_the_size_of_a_finding_is_that_of_the_measure_that_leads() -> None:
    leads = association(-0.03, 0.001)
    other = Measurement(
        metric="projections",
        query="gender: occupations on she-he",
        value=0.4,
        low=0.3,
        high=0.5,
        n=4,
        ideal=0.0,
        worse="away",
        interval="",
        prob=0.95,
        p_value=1e-5,
        items=Items({"group": ["a", "a", "b", "b"], "score": [0.1, 0.2, -0.2, -0.3]}),
    )
    judged = judge("vectors", [leads, other], name="tiny")
    assert judged.size.metric == "association"
    assert judged.size.size == pytest.approx(2 * 0.03 / 0.05, rel=0.05)
    assert judged.size.size_low < judged.size.size < judged.size.size_high
    weak = replace(leads, p_value=0.5)
    assert judge("vectors", [weak, other], name="tiny").size.metric == "projections"


def test_a_size_against_the_stereotype_is_below_zero() -> None:
    judged = judge("vectors", [association(0.05, 1e-4)], name="tiny")
    assert judged.tests[0].size < judged.tests[0].size_high
    assert judged.tests[0].size < 0


def test_the_example_is_the_item_with_the_largest_effect_in_the_direction() -> None:
    from evenhand.models.metrics.pronouns import Pronouns

    items = Items(
        {
            "masked": ["A [MASK].", "B [MASK].", "C [MASK]." + "x" * 200, "D [MASK]."],
            "male_word": ["he"] * 4,
            "female_word": ["she"] * 4,
            "p_male": [0.6, 0.8, 0.99, 0.0],
            "p_female": [0.1, 0.1, 0.0, 0.95],
        }
    )
    m = Measurement(
        metric="pronouns",
        query="built-in sentences",
        value=0.7,
        low=0.6,
        high=0.8,
        n=4,
        ideal=0.5,
        worse="away",
        interval="",
        items=items,
    )
    shown = Pronouns.exhibit(m)
    assert shown.text == "B [MASK]."
    assert shown.readings == (("he", "80 %", 0.8), ("she", "10 %", 0.1))
    other = Pronouns.exhibit(replace(m, value=0.3))
    assert other.text == "D [MASK]."
    assert other.readings[0][0] == "she"
    assert Pronouns.exhibit(replace(m, items=Items({}))) is None


def test_the_answer_of_an_audit(findings: Findings) -> None:
    answer = findings.answer
    (row,) = answer.findings
    assert answer.headline == "The one check found bias."
    assert row.size == "large"
    assert row.at_least in ("medium", "large")
    assert row.low < row.d < row.high
    assert answer.example.measure == "Association contrast"
    assert {remedy.subject for remedy in answer.remedies} == {"vectors"}
    assert all(remedy.cost and remedy.left for remedy in answer.remedies)
    assert all(re.search(r"\(change \S+ \[\S+, \S+\]\)", r.sentence) for r in answer.remedies)
    assert any("debias" in action.command for action in answer.actions)
    saved = json.loads(to_json(answer.to_dict()))
    assert saved["findings"][0]["d"] == pytest.approx(row.d)
    assert str(answer).startswith("Note: The word lists")


def test_it_is_saved(audited: Path, findings: Findings) -> None:
    saved = json.loads((audited / "results.json").read_text(encoding="utf-8"))
    assert saved["answer"]["headline"] == findings.answer.headline


def test_an_open_question_says_how_many_items_it_takes(findings: Findings) -> None:
    judged = judge("vectors", [association(-0.01, 0.6)], name="tiny", topic="gender")
    (action,) = answer_of(findings, judged).actions
    assert f"{judged.tests[0].needed:,} stereotype words" in action.text
    assert action.command == "evenhand plan gender --effect 0.05"


def test_more_texts_of_the_same_classes_do_not_settle_what_is_open_for_new_ones() -> None:
    numbers = {"value": 0.05, "low": -0.03, "high": 0.13, "size_low": 0.0, "size_high": 0.1}
    known = {"metric": "fewshot_bias", "query": "gender", "n": 260, "unit": "texts", "needed": 260}
    test = VerdictTest(label="Association", in_tested=True, classes=13, **known, **numbers)
    prose = Prose("answer")
    text = prose.settle(test=test)
    assert "in the 13 classes tested" in text
    assert "More classes" in text
    assert "260" not in text
    assert "takes about 260 texts" in prose.settle(test=replace(test, in_tested=False))
    judged = verdict("undecided", "fewshot", tests=(test,))
    assert prose.finding(verdict=judged, found=False).startswith("A difference beyond chance in")
    plain = replace(judged, tests=(replace(test, in_tested=False),))
    assert prose.finding(verdict=plain, found=False).startswith("No difference beyond")


def test_the_forest_has_every_deciding_number(findings: Findings) -> None:
    (judged,) = findings.verdicts
    figure = deciding_forest(findings)
    assert isinstance(figure, Figure)
    for test in judged.tests:
        assert test.label in figure.words


def test_every_measure_that_decides_has_a_size_and_a_unit() -> None:
    deciding = [about for about in all_declarations() if about.decides]
    assert len(deciding) > 5
    assert [about.name for about in deciding if not about.size or about.unit == "items"] == []


def test_the_brief_has_the_answer(audited: Path, findings: Findings) -> None:
    text = (audited / "brief.html").read_text(encoding="utf-8")
    plain = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    assert findings.answer.headline in plain
    assert "<script" not in text
    assert "&lt;b&gt;small" in text
    assert "<b>small" not in text


def test_the_methods_have_formulas_lists_and_references(audited: Path) -> None:
    text = (audited / "methods.html").read_text(encoding="utf-8")
    for words in ("@software{evenhand", "@inproceedings{gonen2019", "male-stereotype-0", "Formula"):
        assert words in text
    assert "<b>small" not in text


def test_stages_that_failed_are_in_the_notices(findings: Findings) -> None:
    lost = StageResult(name="s", kind="k", title="phrases", subject="masked", failed="no memory")
    answer = build_answer(replace(findings, stages=(*findings.stages, lost)))
    assert any("phrases failed" in notice for notice in answer.notices)


def test_a_topic_without_a_mitigation_says_so(findings: Findings) -> None:
    judged = verdict("strong evidence", "vectors", topic=topic("race").name)
    (action,) = answer_of(findings, judged).actions
    assert "No mitigation was tried" in action.text
    assert "--topic race" in action.command


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a mean effect size", "A mean effect size"),
        ("an association contrast", "An association contrast"),
        ("the accuracy gap with maml", "The accuracy gap with maml"),
        ("LEACE", "LEACE"),
        ("", ""),
    ],
)
def test_only_the_first_letter_becomes_a_capital(text: str, expected: str) -> None:
    assert FILTERS["upper_first"](text) == expected


DOCS = Path(__file__).parents[2] / "docs"


def advice(subject: str, remedy: Remedy | None = None) -> tuple[str, str]:
    named = {"verdict": verdict("strong evidence", subject), "remedy": remedy, "source": "mini"}
    prose = Prose("answer")
    return prose.act(**named), prose.act_command(**named)


@pytest.mark.parametrize("subject", ["masked", "causal", "encoder", "corpus", "fewshot"])
def test_advice_without_a_measurement_cites_an_experiment(subject: str) -> None:
    """Every number of the advice, with its interval, is on the page that it names."""
    text, _ = advice(subject)
    cited = re.findall(r"docs/([\w/-]+\.md)", text)
    assert cited
    pages = " ".join((DOCS / name).read_text(encoding="utf-8") for name in cited)
    known = set(re.findall(r"\d*\.\d+", pages))
    numbers = re.findall(r"\d*\.\d+", text)
    assert len(numbers) >= 3
    assert {number for number in numbers if number.removeprefix("0") not in known} == set()


def test_nothing_advises_neutral_training_texts_alone() -> None:
    for subject in ("corpus", "fewshot"):
        text, command = advice(subject)
        assert "Neutral texts in the training alone raised the association" in text
        assert "neutral" not in command
    assert "--mitigation calibrate --mitigate all" in advice("fewshot")[1]


def test_a_mitigation_of_a_classifier_is_advised_as_it_was_tried() -> None:
    tried = {"subject": "fewshot", "topic": "gender", "method": "neutralize", "helped": True}
    remedy = Remedy(**tried, sentence="", cost="")
    text, command = advice("fewshot", remedy)
    assert "applied to the test as well as to the training" in text
    assert "in the training alone raised" in text
    assert "--mitigation neutralize --mitigate all" in command
