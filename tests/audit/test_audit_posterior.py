from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import lexicon
from evenhand.audit import audit, main
from evenhand.audit import posterior as stages
from evenhand.audit.stages import Options, run_stage
from evenhand.lexicon import Topic
from evenhand.posterior import fit, read_table
from evenhand.report.findings import StageResult
from evenhand.results import Measurement
from evenhand.simulate import World, world
from evenhand.vectors.distances import distance_table
from evenhand.vectors.store import Vectors

DELTA = "associated-different"


class Heard:
    """Records the reported progress."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def stage(self, title: str, number: int, of: int) -> None: ...

    def step(self, done: int, of: int) -> None:
        self.steps.append((done, of))


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "DRAWS", 640)
        patch.setattr(stages, "TABLES", 10)
        yield


def small(bias: Any = 0.5, seed: int = 1, **more: Any) -> World:
    sizes = {"dim": 30, "vocabulary": 200, "protected": 4, "stereotypes": 6, **more}
    return world(bias=bias, seed=seed, **sizes)


def run(
    w: World, folder: Path, *, topic: Topic | None = None, quick: bool = True, **more: Any
) -> StageResult:
    """One stage, computed, saved and read back."""
    v = Vectors.from_arrays(more.pop("words", w.words), w.matrix)
    (stage,) = stages.posterior_stages(v, [topic or w.topic], Options(quick=quick, work=folder))
    result, _ = run_stage(stage, folder, stage.key({}), more.pop("progress", Heard()))
    assert result.failed == ""
    return result


def contrast(result: StageResult) -> Measurement:
    return next(m for m in result.measurements if m.query == DELTA)


@pytest.fixture(scope="module")
def heard() -> Heard:
    return Heard()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, heard: Heard) -> tuple[StageResult, Path]:
    folder = tmp_path_factory.mktemp("full")
    return run(small(), folder, quick=False, progress=heard), folder


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_planted_bias_shows_and_none_does_not(seed: int, tmp_path: Path) -> None:
    for bias, folder in ((0.5, tmp_path / "planted"), (0.0, tmp_path / "clean")):
        folder.mkdir()
        delta = contrast(run(small(bias, seed), folder))
        if bias:
            assert delta.high < 0
            assert delta.details["p_below_zero"] > 0.99
        else:
            assert delta.low < 0 < delta.high


def test_a_bias_against_the_stereotype_has_the_other_sign(tmp_path: Path) -> None:
    w = small({("male", "female"): 0.5, ("female", "male"): 0.5})
    delta = contrast(run(w, tmp_path))
    assert delta.low > 0
    assert delta.details["p_below_zero"] < 0.01


def test_the_content_is_that_of_the_engine(full: tuple[StageResult, Path]) -> None:
    content, w = full[0].details, small()
    table = read_table(distance_table(Vectors.from_arrays(w.words, w.matrix), w.topic))
    fitted = fit(table, draws=640)
    assert content["draws"] == 640
    delta = contrast(full[0])
    assert delta.value == pytest.approx(float(fitted.draws["delta"].mean()), rel=1e-12)
    assert (content["rows"], content["protected"], content["stereotypes"]) == (8 * 52, 8, 12)
    for m in (delta, *delta.parts):
        assert m.low <= m.details["inner_low"] <= m.value
        assert m.value <= m.details["inner_high"] <= m.high
    assert [m.query for m in delta.select("class")] == ["male", "female"]
    assert len(delta.select("word")) == 8
    assert set(content["checks"]) == {"crossed", "coefficients"}
    assert full[0].distances is not None
    assert np.array_equal(full[0].distances.distance.ravel(), table.distance)


def test_hard_debiasing_is_compared_by_the_same_cells(full: tuple[StageResult, Path]) -> None:
    [change] = [c for c in full[0].comparisons if c.query == DELTA]
    assert change.before.estimate == contrast(full[0]).estimate
    assert change.before.high < 0 < change.change.low
    assert abs(change.after.value) < 0.2 * abs(change.before.value)
    content = full[0].details
    assert set(content["equalised"]) <= {w for w in small().words if "protected" in w}
    assert list(content["diagnostics"])[1:] == ["after debiasing", "the change"]


def test_a_topic_stays_small_on_disk_and_has_no_nan(full: tuple[StageResult, Path]) -> None:
    (path,) = full[1].glob("*.json")
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert "NaN" not in text
    assert StageResult.from_dict(json.loads(text)["stage"]).measurements == full[0].measurements


def test_progress_only_grows_and_ends_at_the_end(
    full: tuple[StageResult, Path], heard: Heard
) -> None:
    done = [step for step, _ in heard.steps]
    assert done == sorted(done)
    assert {of for _, of in heard.steps} == {done[-1]}
    assert len(done) > 20
    thirds = [stages.FITS * fits // 3 for fits in range(4)]
    assert done[:4] == thirds


def test_a_quick_audit_models_gender_alone(tmp_path: Path) -> None:
    v = Vectors.from_arrays(["he", "she"], [[1.0, 0.0], [0.0, 1.0]])
    topics = [lexicon.topic(name) for name in ("religion", "gender", "race")]
    quick, whole = (
        [s.topic.name for s in stages.posterior_stages(v, asked, options) if s.topic]
        for asked, options in (
            (topics, Options(quick=True, work=tmp_path)),
            (topics, Options(work=tmp_path)),
        )
    )
    assert quick == ["gender"]
    assert whole == ["religion", "gender", "race"]
    (only,) = stages.posterior_stages(v, topics[:1], Options(quick=True, work=tmp_path))
    assert only.topic is topics[0]


def test_quick_leaves_out_debiasing_and_calibration(tmp_path: Path) -> None:
    result = run(small(), tmp_path)
    assert result.comparisons == ()
    assert {m.metric for m in result.measurements} == {"posterior_contrast"}


def test_other_numbers_of_classes_and_words_will_do(tmp_path: Path) -> None:
    w = small(classes=("north", "east", "south", "west"), protected=3, stereotypes=2)
    topic = replace(
        w.topic, human=(), stereotypes={**w.topic.stereotypes, "west": ("west-stereotype-0",)}
    )
    result = run(w, tmp_path, topic=topic)
    delta = contrast(result)
    assert [m.query for m in delta.select("class")] == ["north", "east", "south", "west"]
    assert result.details["stereotypes"] == 7
    assert [m.query for m in result.measurements[:2]] == [DELTA, "associated-none"]
    assert delta.high < 0


def test_missing_words_are_named(tmp_path: Path) -> None:
    w = small()
    gone = {"male-protected-0", "female-stereotype-2"}
    words = [f"not-{word}" if word in gone else word for word in w.words]
    content = run(w, tmp_path, words=words).details
    assert set(content["left_out"]) == gone
    assert (content["protected"], content["stereotypes"]) == (7, 11)


def test_what_cannot_be_modelled_is_skipped_with_the_reason(tmp_path: Path) -> None:
    w = small()
    words = [f"not-{word}" if word.startswith("male-stereo") else word for word in w.words]
    result = run(w, tmp_path, words=words)
    assert result.details == {}
    (skip,) = result.skipped
    assert skip["metric"] == "posterior"
    assert "stereotypes of 'male'" in skip["reason"]


def test_without_defining_words_the_rest_is_still_modelled(tmp_path: Path) -> None:
    w = small()
    topic = replace(w.topic, definitional=(("nobody", "noone"),), equalize=())
    result = run(w, tmp_path, topic=topic, quick=False)
    assert result.comparisons == ()
    assert contrast(result).high < 0
    shares = [m.metric for m in result.measurements if m.metric != "posterior_contrast"]
    assert shares == ["coverage", "false_positives", "coverage", "power"]
    (skip,) = result.skipped
    assert skip["metric"] == "hard debiasing"
    assert "nobody" in skip["reason"]


def test_the_key_follows_the_vectors_of_the_topic_alone(tmp_path: Path) -> None:
    w = small()

    def key(matrix: Any, quick: bool = True) -> str:
        v = Vectors.from_arrays(w.words, matrix)
        (stage,) = stages.posterior_stages(v, [w.topic], Options(quick=quick, work=tmp_path))
        return stage.key({})

    other, used = w.matrix.copy(), w.matrix.copy()
    other[w.words.index("word-100")] += 1
    used[w.words.index("male-stereotype-0")] += 1
    assert key(w.matrix) == key(other)
    assert key(w.matrix) != key(used)
    assert key(w.matrix) != key(w.matrix, quick=False)


@pytest.mark.slow
def test_the_draws_of_an_audit_can_be_trusted_on_glove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.vectors import load

    monkeypatch.setattr(stages, "DRAWS", 3200)
    (stage,) = stages.posterior_stages(
        load("glove"), [lexicon.topic("gender")], Options(quick=True, work=tmp_path)
    )
    result, _ = run_stage(stage, tmp_path, stage.key({}), Heard())
    found = result.details["diagnostics"]["the difference"]
    assert found["rhat_max"] <= 1.01
    assert found["ess_min"] >= 400
    assert contrast(result).high < 0


def test_without_the_tests_that_decide_a_card_says_that_there_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenhand.report.verdicts.ESS", 20)  # there are few draws here
    monkeypatch.setattr("evenhand.report.verdicts.RHAT", 1.5)
    monkeypatch.setattr(main, "write_report", lambda place, *_: [place])
    w = small()
    v = Vectors.from_arrays(w.words, w.matrix)
    found = audit(v, topics=[w.topic], out=tmp_path / "out", quick=True, skip=("vectors",))
    (verdict,) = found.verdicts
    assert (verdict.subject, verdict.level) == ("vectors", "not measured")
    assert "vectors is skipped" in verdict.sentence
    assert [number.value < 0 for number in verdict.numbers] == [True]
