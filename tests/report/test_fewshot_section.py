"""The few-shot section, its rows and its verdict, from documents made by the real functions."""

from __future__ import annotations

import copy
import json

import pytest
from fewshot_documents import NAMES, SHARES, measured, stage_of

from evenhand.files import to_json
from evenhand.instruments import compare
from evenhand.report.blocks import Figure, Table, Text
from evenhand.report.fewshot import (
    MEASURES,
    class_rows,
    fewshot_section,
    fewshot_tables,
    gap_row,
    gender_association_rows,
    gender_rows,
    score_row,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.verdicts import best_mitigation, explain, judge_subject

NETWORKS = ("proto-euclidean", "matching-cosine", "induction")


@pytest.fixture(autouse=True)
def _contents_as_given(monkeypatch):
    """The stages here have their rows in `details`."""
    monkeypatch.setattr(
        "evenhand.report.fewshot.contents_of",
        lambda findings: [stage.details for stage in findings.of("fewshot") if stage.details],
    )


def run_of(found, baseline):
    """A run as the stage has it."""
    rows = {
        "by_class": class_rows(found.accuracy),
        "associations": gender_association_rows(found.bias),
    }
    above = compare(baseline.accuracy, found.accuracy)
    return {
        "name": "",
        "chance": 1 / 3,
        "baseline": {"accuracy": score_row(baseline.accuracy)},
        "accuracy": score_row(found.accuracy),
        "f1": score_row(found.accuracy.part("f1")),
        "above_baseline": {"accuracy": gap_row(above)},
        "by_gender": gender_rows(found.accuracy),
        "bias": found.rows,
        **{k: [{**r, "share_of_women": SHARES[r["name"]]} for r in v] for k, v in rows.items()},
    }


@pytest.fixture(scope="module")
def contents():
    biased, fair = measured(2.0), measured(0.0)
    floor = fair
    told = {
        "prob": 0.95,
        "notes": ["Left out, with fewer than 9 texts: potter."],
        "task": {"ways": 3, "shots": 4, "queries": 4, "splits": 1, "tokens": 128},
        "data": {"name": "<b>guilds", "classes": {name: {} for name in NAMES}},
        "runs": {"none": run_of(biased, floor), "neutralize": run_of(fair, floor)},
        "changes": {"neutralize": biased.change(fair)},
    }
    return [json.loads(to_json({"network": name, **told})) for name in NETWORKS]


def findings_of(contents, skipped=(), failed=""):
    stages = [stage_of(content) for content in contents]
    if skipped or failed:
        stages.append(
            StageResult(
                name="x",
                kind="fewshot",
                title="x",
                subject="classifier",
                skipped=skipped,
                failed=failed,
            )
        )
    return Findings(
        subjects={"model": {"name": "mini"}},
        settings={"prob": 0.95},
        topics=(),
        stages=tuple(stages),
        run={},
    )


def blocks_of(section):
    return [*section.blocks, *(block for part in section.parts for block in blocks_of(part))]


def test_section_has_figures_and_tables_with_the_numbers(contents):
    section = fewshot_section(findings_of(contents))
    blocks = blocks_of(section)
    figures = {b.name: b for b in blocks if isinstance(b, Figure)}
    assert set(figures) == {
        "fewshot-accuracy",
        "fewshot-bias",
        "fewshot-changes",
        "fewshot-associations",
    }
    for figure in figures.values():
        assert figure.caption.startswith("How to read it:")
        assert "dark" not in figure.caption  # the page has a dark paper too
        assert figure.words
        assert "NaN" not in figure.svg
    tables = {b.caption.partition(",")[0]: b for b in blocks if isinstance(b, Table)}
    bias = next(t for t in tables.values() if "p of chance" in t.headers)
    assert len(bias.rows) == 3 * 2 * len(MEASURES)
    first = contents[0]["runs"]["none"]["bias"]["association"]
    assert bias.rows[0][3].value == first["signed"]
    assert bias.rows[0][7].value == first["null_p"]
    assert all(len(row) == len(table.headers) for table in tables.values() for row in table.rows)
    words = " ".join(b.words for b in blocks if isinstance(b, Text))
    assert "given 4 texts of each of 3 classes" in words
    assert "potter" in words
    assert "3 networks (proto-euclidean, matching-cosine and induction)" in words


def test_rows_for_csv_have_every_run(contents):
    tables = fewshot_tables(contents)
    assert [(r["network"], r["mitigation"]) for r in tables["fewshot-accuracy"]] == [
        (network, mitigation) for network in NETWORKS for mitigation in ("none", "neutralize")
    ]
    cost = [r for r in tables["fewshot-changes"] if r["measure"] == "accuracy"]
    for row in cost:
        assert row["change"] == pytest.approx(row["after"] - row["before"])
    for name, rows in tables.items():
        assert rows, name
        assert len({tuple(row) for row in rows}) == 1, name
    assert len(tables["fewshot-classes"]) == 3 * 2 * len(NAMES)


def test_without_stages_there_is_no_section():
    assert judge_subject(findings_of([]), "classifier") == []
    section = fewshot_section(findings_of([]))
    assert not section.blocks
    assert not section.parts


def test_what_could_not_be_measured_is_named():
    skip = {"metric": "few-shot classifiers", "query": "mine", "reason": "no genders"}
    findings = findings_of([], skipped=(skip,))
    (text,) = fewshot_section(findings).blocks
    assert text.kind == "warning"
    assert "no genders" in text.words
    (verdict,) = judge_subject(findings, "classifier")
    assert (verdict.level, verdict.subject) == ("not measured", "classifier")
    (failed,) = judge_subject(findings_of([], failed="out of memory"), "classifier")
    assert "out of memory" in failed.sentence


def test_a_single_network_and_intervals_without_an_end(contents):
    """JSON has no infinity: null stands for it."""
    some = copy.deepcopy(contents[:1])
    ends = ("low", "high", "signed_low", "signed_high", "p_value")
    for run in some[0]["runs"].values():
        for metric in MEASURES:
            run["bias"][metric] |= {**dict.fromkeys(ends), "null_p": 0.0005}
    findings = findings_of(some)
    section = fewshot_section(findings)
    assert "the network proto-euclidean learns" in section.blocks[0].words
    assert len(section.parts) == 4
    (verdict,) = judge_subject(findings, "classifier")
    assert verdict.level == "some evidence"
    assert verdict.numbers[1].low == -float("inf")
    assert json.loads(to_json(verdict))["numbers"][1]["low"] is None


def judged(contents, *, chance, new, sign=1.0):
    """The verdict where the deciding measures have these p; None leaves the real one."""
    some = copy.deepcopy(contents)
    places = [(c, metric) for c in some for metric in ("association", "epsilon")]
    for (content, metric), p, q in zip(places, chance, new, strict=True):
        one = content["runs"]["none"]["bias"][metric]
        one |= {"null_p": p, "p_value": q, "signed": sign * abs(one["signed"])}
    return judge_subject(findings_of(some), "classifier")[0]


@pytest.mark.parametrize(
    ("chance", "new", "sign", "level"),
    [
        ([0.0005] * 6, [0.008] * 6, 1, "strong evidence"),
        ([0.0005] * 6, [0.01] * 6, -1, "some evidence"),
        ([0.0005] * 6, [0.06] * 6, 1, "some evidence"),
        ([0.0005, *[0.5] * 5], [0.01] * 6, 1, "some evidence"),
        ([0.0005, 0.0015, *[0.5] * 4], [0.008, *[0.5] * 5], 1, "strong evidence"),
        ([0.0005, 0.0015, *[0.5] * 4], [0.009, *[0.5] * 5], 1, "some evidence"),
        ([0.0005, 0.0015, *[0.5] * 4], [0.5, 0.5, *[0.01] * 4], 1, "some evidence"),
        ([0.0005, 0.0021, *[0.5] * 4], [0.01] * 6, 1, "some evidence"),
        ([0.008, *[0.5] * 5], [0.5] * 6, 1, "some evidence"),
        ([0.009, *[0.5] * 5], [0.01] * 6, 1, "none found"),
        ([0.5] * 6, [0.001] * 6, 1, "none found"),
    ],
)
def test_the_level_follows_the_rules(contents, chance, new, sign, level):
    verdict = judged(contents, chance=chance, new=new, sign=sign)
    assert verdict.level == level
    assert len(verdict.tests) == 6
    assert len(verdict.numbers) == 6 + (level != "strong evidence")
    against = level == "some evidence" and sign < 0
    assert ("against the stereotype" in verdict.sentence) == against
    assert ("mitigation" in verdict.sentence) == (level != "none found")


def test_verdict_names_what_was_judged(contents):
    (verdict,) = judge_subject(findings_of(contents), "classifier")
    assert (verdict.subject, verdict.name, verdict.topic) == (
        "classifier",
        "few-shot on mini",
        "gender",
    )
    assert len(explain("classifier")) == 6
    assert "free of bias" in verdict.cannot_mean


def test_the_best_mitigation_is_that_with_the_least_left(contents):
    some = copy.deepcopy(contents[:2])
    for content, left in zip(some, (0.01, -0.3), strict=True):
        moved = copy.deepcopy(content["changes"]["neutralize"])
        moved["association"] |= {"after": left, "change": left - moved["association"]["before"]}
        moved["accuracy"] |= {"value": -0.0213, "low": -0.04, "high": 0.001}
        content["changes"]["augment"] = moved
        content["changes"]["neutralize"]["association"]["after"] = 0.2
    some[1]["changes"]["augment"]["association"]["before"] = 2.5
    told = best_mitigation([stage_of(content) for content in some])
    assert told.startswith("Of 2 mitigations augment left the least: with matching-cosine")
    assert "from 2.500 to −0.300" in told
    assert told.endswith("the accuracy fell by 2.1 points [−4.0, 0.1].")
    assert best_mitigation([stage_of({**some[0], "changes": {}})]) == ""
