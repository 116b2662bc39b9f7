"""The section on how sure one can be, built from what a stage has saved and from nothing else."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from evenhand.audit import posterior as stages
from evenhand.audit.stages import Options, Silent, run_stage
from evenhand.files import to_json
from evenhand.report.blocks import Figure, Section, Table, Text
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import methods
from evenhand.report.posterior import calibration_rows, posterior_numbers, posterior_section, prose
from evenhand.results import Measurement
from evenhand.simulate import World, world
from evenhand.vectors.store import Vectors

DELTA = "associated-different"
GOOD = {"rhat_max": 1.002, "ess_min": 900.0, "worst": "scale[delta]"}
BAD = {"rhat_max": 1.04, "ess_min": 90.0, "worst": "scale[word]"}


@pytest.fixture(scope="module")
def planted() -> World:
    return world(bias=0.5, dim=30, vocabulary=200, protected=3, stereotypes=5, seed=2)


@pytest.fixture(scope="module")
def saved(planted: World, tmp_path_factory: pytest.TempPathFactory) -> StageResult:
    """A finished stage, whose few draws are declared good: that is tested elsewhere."""
    folder = tmp_path_factory.mktemp("posterior")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "DRAWS", 640)
        patch.setattr(stages, "TABLES", 10)
        v = Vectors.from_arrays(planted.words, planted.matrix)
        (stage,) = stages.posterior_stages(v, [planted.topic], Options(work=folder))
        result, _ = run_stage(stage, folder, stage.key({}), Silent())
    content = json.loads(to_json(result.details))
    content["diagnostics"] = dict.fromkeys(content["diagnostics"], GOOD)
    return replace(result, details=content)


@pytest.fixture
def _undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made but not turned into pictures, which takes longest."""
    monkeypatch.setattr("evenhand.report.blocks.to_svgs", lambda _: ("<svg/>", "<svg/>"))


def findings(planted: World, *found: StageResult) -> Findings:
    return Findings(
        subjects={"vectors": {"name": "small"}},
        settings={"prob": 0.95, "parts": ["posterior"]},
        topics=(planted.topic,),
        stages=found,
        run={"seed": 0},
    )


@pytest.fixture(scope="module")
def section(planted: World, saved: StageResult) -> Section:
    return posterior_section(findings(planted, saved))


def changed(saved: StageResult, **more: Any) -> StageResult:
    return replace(saved, details={**copy.deepcopy(dict(saved.details)), **more})


def light(saved: StageResult, **more: Any) -> StageResult:
    """The stage without what takes long to draw."""
    contrasts = tuple(m for m in saved.measurements if m.metric == "posterior_contrast")
    return replace(changed(saved, **more), measurements=contrasts, comparisons=())


def texts(section: Section, kind: str = "text") -> list[str]:
    every = [*section.blocks, *(block for part in section.parts for block in part.blocks)]
    return [b.words for b in every if isinstance(b, Text) and b.kind == kind]


def tables(section: Section) -> dict[str, Table]:
    return {b.caption: b for b in section.parts[0].blocks if isinstance(b, Table)}


def contrast(value: float, low: float, high: float, p_below_zero: float) -> Measurement:
    return Measurement(
        metric="posterior_contrast",
        query=DELTA,
        value=value,
        low=low,
        high=high,
        n=9,
        ideal=0.0,
        worse="lower",
        interval="",
        details={"p_below_zero": p_below_zero},
    )


def answer(delta: Measurement) -> str:
    return prose.answer(delta=delta, lead=None)


def test_every_figure_is_there_and_says_how_to_read_it(section: Section) -> None:
    figures = list(section.figures())
    assert [figure.name.removesuffix("-simulated") for figure in figures] == [
        "posterior-contrasts",
        "posterior-words",
        "posterior-densities",
        "posterior-radial-1",
        "posterior-radial-2",
        "posterior-check",
        "posterior-calibration",
        "posterior-change",
    ]
    for figure in figures:
        assert figure.caption.startswith("How to read it:"), figure.name
        assert len(figure.words) > 30, figure.name
        assert not re.search(r"\b(NaN|nan|undefined|None)\b", figure.svg + figure.words)
    assert texts(section, "warning") == []


def test_the_numbers_on_the_page_are_the_saved_ones(section: Section, saved: StageResult) -> None:
    shown = tables(section)
    first = next(iter(shown.values())).rows[0]
    delta = saved.measurements[0]
    assert first[0].text == "associated − different"
    assert (first[2].value, first[3].value) == (delta.value, delta.low)
    words = shown["The difference for each class and each protected word"]
    assert words.words
    assert len(words.rows) == 2 + 6
    assert f"by {-delta.value:.3f}" in texts(section)[2]
    change = shown["Differences before and after hard debiasing"]
    assert [row[1].text for row in change.rows[:3]] == ["before", "after", "change"]
    caption = "The interval on 10 simulated tables each"
    assert [row[0].text for row in shown[caption].rows] == [
        "truth 0: interval contains it",
        "truth 0: false alarm",
        "truth −0.05: interval contains it",
        "truth −0.05: detected",
    ]


@pytest.mark.usefixtures("_undrawn")
def test_densities_stand_on_the_page_once(planted: World, saved: StageResult) -> None:
    from evenhand.vectors.distances import distance_table

    distances = distance_table(Vectors.from_arrays(planted.words, planted.matrix), planted.topic)
    measures = StageResult(
        name="m", kind="measures", title="m", topic="simulated", distances=distances
    )
    built = posterior_section(findings(planted, measures, light(saved)))
    assert not [figure.name for figure in built.figures() if "densities" in figure.name]


def test_the_verdict_gets_the_contrast(planted: World, saved: StageResult) -> None:
    (number,) = posterior_numbers(findings(planted, saved), "simulated")
    delta = saved.measurements[0]
    assert (number.value, number.low, number.high) == (delta.value, delta.low, delta.high)
    assert (number.ideal, number.p_value) == (0, None)
    assert "nearer to their own class: >\u00a00.999" in number.label
    assert posterior_numbers(findings(planted, saved), "another") == ()
    assert posterior_numbers(findings(planted), "simulated") == ()


@pytest.mark.usefixtures("_undrawn")
@pytest.mark.parametrize("missing", ["rhat_max", "ess_min", None])
def test_unreliable_draws_are_warned_of_and_left_out_of_the_verdict(
    planted: World, saved: StageResult, missing: str | None
) -> None:
    bad = {**GOOD, missing: None} if missing else BAD
    found = findings(planted, light(saved, diagnostics={"the difference": bad}))
    assert posterior_numbers(found, "simulated") == ()
    (warning,) = texts(posterior_section(found), "warning")
    assert warning.startswith("Draw no conclusions from these numbers")
    assert "R-hat is" in warning


@pytest.mark.usefixtures("_undrawn")
def test_bad_draws_after_debiasing_do_not_touch_the_contrast(
    planted: World, saved: StageResult
) -> None:
    diagnostics = {**saved.details["diagnostics"], "the change": BAD}
    found = findings(planted, changed(saved, diagnostics=diagnostics))
    assert len(posterior_numbers(found, "simulated")) == 1
    (warning,) = texts(posterior_section(found), "warning")
    assert "Before and after" in warning
    assert "1.040" in warning


@pytest.mark.usefixtures("_undrawn")
def test_a_model_that_does_not_fit_is_warned_of_and_null_is_not(
    planted: World, saved: StageResult
) -> None:
    checks = copy.deepcopy(saved.details["checks"])
    for check in checks["crossed"]:
        check["passed"] = check["statistic"] != "sd"
    icc = checks["crossed"][-1]
    icc |= {"observed": None, "mean": None, "low": None, "high": None, "passed": False}
    checks["coefficients"][-1] |= {"observed": None, "low": None}
    built = posterior_section(findings(planted, light(saved, checks=checks)))
    (warning,) = texts(built, "warning")
    assert "not like the data in: sd." in warning
    assert not [figure.name for figure in built.figures() if "check" in figure.name]


def test_the_answer_says_nearer_farther_or_open() -> None:
    nearer = contrast(-0.05, -0.08, -0.02, 0.99)
    farther = contrast(0.05, 0.02, 0.08, 0.01)
    unsure = contrast(-0.01, -0.04, 0.02, 0.7)
    assert "nearer to their own class, by 0.050" in answer(nearer)
    assert "0.020 to 0.080" in answer(nearer)
    assert "against the stereotype" in answer(farther)
    assert "remains open: the difference is −0.010 [−0.040, 0.020]" in answer(unsure)
    assert "not the same as none" in answer(unsure)


def test_what_was_skipped_or_not_chosen_is_named(planted: World, saved: StageResult) -> None:
    skip = {"metric": "posterior", "query": "simulated", "reason": "too few words"}
    only = StageResult(name="p", kind="posterior", title="p", topic="simulated", skipped=(skip,))
    (warning,) = texts(posterior_section(findings(planted, only)), "warning")
    assert warning == "Not measured: posterior: too few words."
    other = replace(planted.topic, name="other", title="Another topic")
    both = replace(findings(planted, only), topics=(planted.topic, other))
    assert "Not modelled in a quick audit: Another topic." in texts(posterior_section(both))
    empty = posterior_section(findings(planted))
    assert (list(empty.blocks), list(empty.parts)) == ([], [])


@pytest.mark.usefixtures("_undrawn")
def test_words_left_out_are_named(planted: World, saved: StageResult) -> None:
    built = posterior_section(findings(planted, light(saved, left_out=["wizard", "witch"])))
    assert texts(built)[-1].endswith("Without a vector: wizard, witch.")


def test_calibration_promises_only_what_intervals_promise(
    section: Section, saved: StageResult
) -> None:
    shares = [m for m in saved.measurements if m.metric != "posterior_contrast"]
    rows = calibration_rows(shares)
    assert [row["tick"] for row in rows] == [0.95, pytest.approx(0.05), 0.95, None]
    figure = next(f for f in section.figures() if "calibration" in f.name)
    assert isinstance(figure, Figure)
    assert "95 % interval promises" in re.sub(r"<[^>]+>", "", figure.svg)


def test_every_method_is_explained() -> None:
    assert set(methods("posterior")) == {
        "posterior",
        "posterior_thesis",
        "posterior_check",
        "posterior_calibration",
        "posterior_draws",
    }
    for method in methods("posterior").values():
        assert method.question.endswith("?")
        assert method.formula
        assert method.source
