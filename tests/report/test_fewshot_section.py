"""The few-shot section and its verdict, from runs measured by the real functions."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from fewshot_runs import NAMES, SHARES, measured, stage_of, with_parts

from evenhand.fewshot.metrics.bias import MEASURES
from evenhand.files import to_json
from evenhand.report.blocks import Figure, PageTable, Text
from evenhand.report.findings import Findings, StageResult
from evenhand.report.stages import subject_section
from evenhand.report.verdicts import best_mitigation, explain, fewshot_changes, judge_subject
from evenhand.results import Measurement

NETWORKS = ("proto-euclidean", "matching-cosine", "induction")


@pytest.fixture(scope="module")
def stages() -> list[StageResult]:
    """What the stages save and read back."""
    biased, fair = measured(2.0), measured(0.0)
    results = [
        stage_of(
            name,
            {"none": biased.results(fair), "neutralize": fair.results(fair)},
            {"neutralize": biased.change(fair)},
            notes=["Left out, with fewer than 9 texts: potter."],
            task={"ways": 3, "shots": 4, "queries": 4, "splits": 1, "tokens": 128},
            data={"name": "<b>guilds", "classes": {name: {} for name in NAMES}},
            share_of_women=SHARES,
        )
        for name in NETWORKS
    ]
    return [StageResult.from_dict(json.loads(to_json(stage.to_dict()))) for stage in results]


def findings_of(stages, skipped=(), failed=""):
    if skipped or failed:
        other = StageResult(
            name="x",
            kind="fewshot",
            title="x",
            subject="fewshot",
            skipped=skipped,
            failed=failed,
        )
        stages = [*stages, other]
    return Findings(
        subjects={"masked": {"name": "mini"}},
        settings={"prob": 0.95},
        topics=(),
        stages=tuple(stages),
        run={},
    )


def other_bias(stage: StageResult, change) -> StageResult:
    """The stage with another bias in all runs."""
    return replace(
        stage,
        measurements=tuple(
            change(m) if m.details["role"] == "bias" else m for m in stage.measurements
        ),
    )


def blocks_of(section):
    return [*section.blocks, *(block for part in section.parts for block in blocks_of(part))]


def test_the_section_has_every_run_and_its_numbers(stages):
    section = subject_section(findings_of(stages), "fewshot")
    blocks = blocks_of(section)
    for figure in (block for block in blocks if isinstance(block, Figure)):
        assert figure.caption.startswith("How to read it:")
        assert "NaN" not in figure.svg
    tables = {block.title: block for block in blocks if isinstance(block, PageTable)}
    results = tables["The results"]
    accuracies = [row for row in results.rows if "Few-shot accuracy" in row[0].text]
    assert len(accuracies) == 2 * 2 * len(NETWORKS)  # of counting words, too
    bias = next(m for m in stages[0].measurements if m.details["role"] == "bias")
    parts = [
        row
        for row in tables["The results, part by part"].rows
        if row[2].value == bias.parts[0].value
    ]
    assert any("association" in row[1].text for row in parts)
    assert "Effect" in tables["Every measure before and after"].headers
    assert all(len(row) == len(table.headers) for table in tables.values() for row in table.rows)
    words = " ".join(block.words for block in blocks if isinstance(block, Text))
    assert "given 4 texts of each of 3 classes" in words
    assert "potter" in words


def test_without_stages_there_is_no_section():
    assert judge_subject(findings_of([]), "fewshot") == []
    section = subject_section(findings_of([]), "fewshot")
    assert not section.blocks
    assert not section.parts


def test_what_could_not_be_measured_is_named():
    skip = {"metric": "few-shot classifiers", "query": "mine", "reason": "no genders"}
    findings = findings_of([], skipped=(skip,))
    (text,) = subject_section(findings, "fewshot").parts[0].blocks
    assert text.kind == "warning"
    assert "no genders" in text.words
    (verdict,) = judge_subject(findings, "fewshot")
    assert (verdict.level, verdict.subject) == ("not measured", "fewshot")
    (failed,) = judge_subject(findings_of([], failed="out of memory"), "fewshot")
    assert "out of memory" in failed.sentence


def test_a_single_network_and_intervals_without_an_end(stages):
    def unbounded(m: Measurement) -> Measurement:
        ends = {"low": -math.inf, "high": math.inf, "p_value": None}
        return with_parts(m, *MEASURES, details={"null_p": 0.0005}, **ends)

    findings = findings_of([other_bias(stages[0], unbounded)])
    assert subject_section(findings, "fewshot").parts
    (verdict,) = judge_subject(findings, "fewshot")
    assert verdict.level == "undecided"
    assert "beyond chance" in verdict.sentence
    assert verdict.numbers[1].low == -math.inf
    assert json.loads(to_json(verdict))["numbers"][1]["low"] is None


def judged(stages, *, chance, new, sign=1.0):
    """The verdict where the deciding measures have these p-values, and intervals that agree."""
    others = []
    for index, stage in enumerate(stages):

        def other(m: Measurement, index: int = index) -> Measurement:
            for k, name in enumerate(("association", "epsilon"), 2 * index):
                size = abs(m.part(name).value) + 0.01
                half = size * (0.5 if new[k] < 0.05 else 2.0)
                fields = {"value": sign * size, "low": sign * size - half, "p_value": new[k]}
                fields["high"] = sign * size + half
                details = {
                    "null_p": chance[k],
                    "null_high": size * (0.5 if chance[k] < 0.05 else 2),
                }
                m = with_parts(m, name, details=details, **fields)
            return m

        others.append(other_bias(stage, other))
    return judge_subject(findings_of(others), "fewshot")[0]


@pytest.mark.parametrize(
    ("chance", "new", "sign", "level"),
    [
        ([0.0005] * 6, [0.001] * 6, 1, "strong evidence"),
        ([0.0005] * 6, [0.001] * 6, -1, "some evidence"),
        ([0.0005] * 6, [0.008] * 6, 1, "some evidence"),
        ([0.0005] * 6, [0.06] * 6, 1, "undecided"),
        ([0.0005, *[0.5] * 5], [0.001, *[0.5] * 5], 1, "some evidence"),
        ([0.0005, 0.0015, *[0.5] * 4], [0.001, 0.001, *[0.5] * 4], 1, "strong evidence"),
        ([0.0005, 0.0015, *[0.5] * 4], [0.009, *[0.5] * 5], 1, "undecided"),
        ([0.0005, *[0.5] * 5], [0.5, *[0.001] * 5], 1, "undecided"),
        ([0.5] * 6, [0.001] * 6, 1, "undecided"),
    ],
)
def test_the_level_follows_the_rules(stages, chance, new, sign, level):
    """New classes decide, corrected for six tests; what chance gives is in the interval too."""
    verdict = judged(stages, chance=chance, new=new, sign=sign)
    assert verdict.level == level
    assert len(verdict.tests) == len(verdict.numbers) == 6
    assert ("against the stereotype" in verdict.sentence) == (sign < 0)
    assert ("mitigation" in verdict.sentence) == (level != "undecided")


def test_verdict_names_what_was_judged(stages):
    (verdict,) = judge_subject(findings_of(stages), "fewshot")
    assert (verdict.subject, verdict.name, verdict.topic) == (
        "fewshot",
        "few-shot on mini",
        "gender",
    )
    assert len(explain("fewshot")) == 7
    assert "free of bias" in verdict.cannot_mean


def test_the_best_mitigation_is_that_with_the_least_left(stages):
    changes = fewshot_changes(findings_of(stages[:2]))

    def moved(network, after, before=None, cost=None):
        accuracy, bias = changes[network]["neutralize"]
        c = bias.part("association")
        first = c.before if before is None else replace(c.before, value=before)
        bias = with_parts(bias, "association", before=first, after=replace(c.after, value=after))
        if cost is not None:
            low, high = -0.04, 0.001
            change = replace(accuracy.change, value=cost, low=low, high=high)
            accuracy = replace(accuracy, change=change)
        return accuracy, bias

    text = best_mitigation(
        {
            network: {
                "neutralize": moved(network, 0.2),
                "augment": moved(network, left, before=before, cost=-0.0213),
            }
            for network, left, before in zip(changes, (0.01, -0.3), (None, 2.5), strict=True)
        }
    )
    assert text.startswith("Of 2 mitigations augment left the least: with matching-cosine")
    assert "from 2.500 to −0.300" in text
    assert text.endswith("the accuracy fell by 2.1 points [−4.0, 0.1].")
    assert best_mitigation({"proto-euclidean": {}}) == ""
