"""The few-shot stages of an audit: what they find, what they leave out, that they go on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenhand.audit.fewshot import (
    EACH_GENDER,
    FULL,
    QUICK,
    Size,
    fewshot_stages,
    fitted,
    part_sizes,
)
from evenhand.audit.stages import Options, Silent, run_stage
from evenhand.errors import InputError
from evenhand.fewshot import Dataset, read
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import read_run
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import methods
from evenhand.report.verdicts import fewshot_changes, judge_subject
from small_encoder import save_small

SMALL = Size(
    episodes={"proto-euclidean": "40/10/60"},
    mitigations=("none", "neutralize", "calibrate"),
    splits=2,
    texts=28 * 24,
    tokens=64,
)
THREE = dict.fromkeys(("proto-euclidean", "matching-cosine", "induction"), "40/10/60")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(save_small(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def people():
    """Enough of both genders in each class to calibrate it."""
    return read("simulated:per_class=26,leak=1,shares=0.4")


def findings_of(encoder, data, work, size=SMALL, seed=0, progress=None):
    """The stages run one after the other, as an audit does."""
    (work / "stages").mkdir(parents=True, exist_ok=True)
    stages = fewshot_stages(encoder, data, Options(seed=seed, work=work / "work"), size=size)
    done = tuple(run_stage(s, work / "stages", s.key({}), progress or Silent())[0] for s in stages)
    model = {"name": "small", "source": encoder}
    settings = {"prob": 0.95, "parts": ["fewshot"]}
    return Findings(subjects={"masked": model}, settings=settings, topics=(), stages=done, run={})


class Stopping(Silent):
    """Breaks off at the so-manieth step."""

    def __init__(self, after: int) -> None:
        self.left, self.steps = after, []

    def step(self, done: int, of: int) -> None:
        self.steps.append(done / of)
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def found(encoder, people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("found")
    progress = Stopping(10**9)
    return folder, findings_of(encoder, people, folder, progress=progress), progress


def data_of(classes, name="own"):
    """Texts of classes with so many men, women and others."""
    rows = [
        (f"{label} text {gender} {number}", label, gender)
        for label, counts in classes.items()
        for gender, count in zip(("M", "F", None), counts, strict=False)
        for number in range(count)
    ]
    return Dataset.of(*zip(*rows, strict=True), name=name, leaning_by="share")


def of_role(stage, role):
    """The measurements of a role by mitigation."""
    return {m.details["mitigation"]: m for m in stage.measurements if m.details["role"] == role}


def test_content_is_that_of_the_runs(found):
    folder, findings, _ = found
    (stage,) = findings.of("fewshot")
    assert stage.details["mitigations"] == ["none", "neutralize", "calibrate"]
    (changes,) = fewshot_changes(findings).values()
    assert list(changes) == ["neutralize", "calibrate"]
    runs = {p.name.rsplit("-", 1)[0]: read_run(p) for p in (folder / "work" / "fewshot").iterdir()}
    for mitigation, accuracy in of_role(stage, "performance").items():
        saved = runs[f"proto-euclidean-{mitigation}"].saved
        right = np.mean([k[0].answers.predicted == k[0].answers.truth for k in saved])
        assert accuracy.value == pytest.approx(right)
        tested = {name for k in saved for name in np.array(k[0].answers.names)[k[0].answers.tested]}
        assert {part.query for part in accuracy.select("class")} == tested
    c = changes["neutralize"][1].part("association")
    assert c.before.value == of_role(stage, "bias")["none"].part("association").value
    assert c.change.value == pytest.approx(c.after.value - c.before.value)


def test_planted_bias_is_found_and_neutralize_removes_it(found):
    biases = of_role(found[1].of("fewshot")[0], "bias")
    before, after = (biases[name].part("association") for name in ("none", "neutralize"))
    assert before.value > 0.05
    assert before.details["null_p"] < 0.01
    assert abs(after.value) < 0.1 * before.value
    (verdict,) = judge_subject(found[1], "fewshot")
    assert verdict.level in ("strong evidence", "some evidence")
    assert "neutralize" in verdict.sentence


def test_measurements_have_their_run_and_a_method(found):
    (stage,) = found[1].of("fewshot")
    by = {(m.details["role"], m.details["run"]): m for m in stage.measurements}
    assert {m.metric for m in stage.measurements} <= set(methods("fewshot"))
    bias = by["bias", "proto-euclidean"]
    assert bias == of_role(stage, "bias")["none"]
    assert ("performance", "proto-euclidean neutralize") in by


def test_trained_weights_are_removed(found):
    assert not list(found[0].rglob("*.safetensors"))
    assert list(found[0].rglob("answers.npz"))


@pytest.mark.slow
def test_resumes_after_a_break_with_the_same_numbers(encoder, people, found, tmp_path):
    steps = found[2].steps
    assert steps == sorted(steps)
    assert steps[-1] == 1
    with pytest.raises(KeyboardInterrupt):
        findings_of(encoder, people, tmp_path, progress=Stopping(len(steps) * 2 // 3))
    finished = set((tmp_path / "work" / "fewshot").rglob("answers.npz"))
    made = {p: p.stat().st_mtime_ns for p in finished}
    assert finished
    again = findings_of(encoder, people, tmp_path)
    assert {p: p.stat().st_mtime_ns for p in finished} == made
    assert again.of("fewshot")[0].measurements == found[1].of("fewshot")[0].measurements


def test_stages_depend_on_model_data_settings_and_seed(encoder, people, tmp_path):
    options = Options(work=tmp_path)
    keys = {
        fewshot_stages(encoder, data, how, size=size)[0].key({})
        for data, how, size in (
            (people, options, SMALL),
            (read("simulated:per_class=26,leak=1,shares=0.4,seed=1"), options, SMALL),
            (people, replace(options, seed=1), SMALL),
            (people, replace(options, prob=0.9), SMALL),
            (people, options, replace(SMALL, splits=3)),
        )
    }
    keys.add(fewshot_stages("mini", people, options, size=SMALL)[0].key({}))
    assert len(keys) == 6
    same = fewshot_stages(encoder, people, replace(options, workers=2), size=SMALL)[0].key({})
    assert same in keys


def test_a_full_audit_has_three_networks_a_quick_one_a_single_one(encoder, people, tmp_path):
    titles = [s.title for s in fewshot_stages(encoder, people, Options(work=tmp_path))]
    assert titles == [f"few-shot: {name}" for name in THREE]
    quick = fewshot_stages(encoder, people, Options(work=tmp_path, quick=True))
    assert [s.title for s in quick] == ["few-shot: proto-euclidean"]
    assert set(FULL.episodes) | set(QUICK.episodes) <= set(NAMES)


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        ({f"c{i}": (0, 0, 20) for i in range(12)}, "no text of known gender"),
        ({f"c{i}": (15, 5 if i else 25) for i in range(12)}, "the data have 11 and 1"),
        ({f"c{i}": (5, 1) if i % 2 else (1, 5) for i in range(12)}, "the data have 0 and 0"),
        ({"a": (9, 1), "b": (1, 9)}, "the data have 1 and 1"),
    ],
)
def test_unfit_data_are_skipped_with_the_reason(encoder, tmp_path, classes, reason):
    findings = findings_of(encoder, data_of(classes), tmp_path)
    (stage,) = findings.of("fewshot")
    assert not stage.failed
    assert not stage.details
    assert reason in stage.skipped[0]["reason"]
    (verdict,) = judge_subject(findings, "fewshot")
    assert verdict.level == "not measured"
    assert reason in verdict.sentence


def test_small_classes_are_left_out_by_name():
    classes = {f"c{i}": (12, 4) if i % 2 else (4, 12) for i in range(8)} | {"tiny": (4, 4)}
    made = fitted(data_of(classes), 1000, 0)
    assert "tiny" not in made.data.classes
    assert made.notes == ("Left out, with fewer than 9 texts: tiny.",)
    assert made.ways == 2


def test_only_the_largest_of_very_many_classes_are_used():
    classes = {f"c{i:02}": (i % 7 + 8, 4) if i % 2 else (4, i % 7 + 8) for i in range(80)}
    whole = data_of(classes)
    size = dict(zip(whole.classes, whole.sizes.tolist(), strict=True))
    lean = dict(zip(whole.classes, whole.leaning, strict=True))
    for texts, many in ((560, 28), (1200, 60)):
        made = fitted(whole, texts, 0)
        used = made.data.classes
        assert len(used) == many
        assert f"the {many} largest" in made.notes[0]
        for side in ("male", "female"):
            left = [size[name] for name in classes if name not in used and lean[name] == side]
            taken = [size[name] for name in used if lean[name] == side]
            assert len(taken) == many // 2
            assert max(left) <= min(taken)


def test_of_many_classes_those_of_the_rarer_leaning_stay():
    classes = {f"c{i:02}": (30 + i, 4) for i in range(70)} | {f"d{i}": (4, 9) for i in range(3)}
    used = fitted(data_of(classes), 560, 0).data
    assert len(used.classes) == 28
    assert {"d0", "d1", "d2"} < set(used.classes)


def test_texts_are_drawn_in_the_shares_of_genders_and_leanings_stay():
    rng = np.random.default_rng(5)
    classes = {f"c{i}": tuple(rng.integers(0, 200, 3)) for i in range(30)}
    classes |= {"even": (90, 90, 1), "odd": (101, 100, 0), "rare": (195, 8, 0)}
    whole = data_of({name: counts for name, counts in classes.items() if sum(counts) > 9})
    for texts in (700, 1500, 4000):
        made = fitted(whole, texts, 0).data
        most = min(100, max(20, texts // len(made.classes)))
        assert made.sizes.max() <= most
        assert made.leaning == whole.subset(made.classes).leaning
        assert set(made.rows.tolist()) <= set(whole.rows.tolist())
        share = whole.subset(made.classes).gender_sizes / whole.subset(made.classes).sizes[:, None]
        off = abs(made.gender_sizes - share * made.sizes[:, None])
        assert off.max() <= (EACH_GENDER if most >= 42 else 2)
        rare = made.gender_sizes[made.indices(["rare"])[0]].min()
        assert (rare >= EACH_GENDER) == (most >= 42)


def test_other_seeds_draw_other_texts(people):
    first, again, other = (fitted(people, 560, seed).data for seed in (0, 0, 1))
    assert first.digest == again.digest != other.digest


def test_the_parts_take_all_classes_and_leave_two_for_each():
    for classes in range(6, 80):
        sizes = part_sizes(classes)
        assert sum(sizes) == classes
        assert min(sizes) >= 2


def test_calibrate_is_skipped_where_a_gender_is_rare(encoder, tmp_path):
    classes = {f"c{i}": (20, 3) if i % 2 else (3, 20) for i in range(8)}
    findings = findings_of(encoder, data_of(classes), tmp_path)
    (stage,) = findings.of("fewshot")
    assert stage.details["mitigations"] == ["none", "neutralize"]
    (skip,) = stage.skipped
    assert skip["metric"] == "calibrate"
    assert "c0" in skip["reason"]


def test_a_result_is_read_back_as_it_was(found):
    folder, findings, _ = found
    (path,) = (folder / "stages").glob("*.json")
    saved = json.loads(Path(path).read_text())
    again = StageResult.from_dict(saved["stage"])
    assert again.measurements == findings.of("fewshot")[0].measurements


def test_errors_of_data_are_input_errors():
    with pytest.raises(InputError, match="no text of known gender"):
        fitted(data_of({"a": (0, 0, 30)}), 100, 0)


@pytest.mark.slow
def test_verdicts_on_worlds_without_and_with_bias(encoder, tmp_path):
    """In 12 worlds without bias more than 2 findings would be the work of chance in 2.0 %."""
    size = replace(SMALL, episodes=THREE, mitigations=("none",), texts=560)
    levels = {}
    for leak, worlds in ((0, 12), (1, 3)):
        levels[leak] = [
            judge_subject(
                findings_of(
                    encoder,
                    read(f"simulated:per_class=40,leak={leak},seed={seed}"),
                    tmp_path / f"{leak}-{seed}",
                    size,
                    seed,
                ),
                "fewshot",
            )[0].level
            for seed in range(worlds)
        ]
    assert levels[0].count("none found") + levels[0].count("undecided") >= 10
    assert "strong evidence" not in levels[0]
    assert "none found" not in levels[1]
