from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evenhand.audit import Audit, audit, main, mitigation, stages
from evenhand.cli import run
from evenhand.errors import FileError, InputError, VocabularyError
from evenhand.lexicon import Topic
from evenhand.report import blocks
from evenhand.report.findings import read_findings
from evenhand.simulate import World, world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors

SKIP = ("posterior",)
COMPUTING = ("_measure", "_measure_topic", "_debias", "_dimension")


@pytest.fixture(scope="module", autouse=True)
def _few_dimensions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        yield


@pytest.fixture(scope="module")
def biased() -> World:
    return world(bias=0.5, dim=30, vocabulary=600, seed=1)


def vectors_of(w: World) -> Vectors:
    return Vectors.from_arrays(w.words, w.matrix)


@pytest.fixture(scope="module")
def finished(biased: World, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    out = tmp_path_factory.mktemp("audit") / "out"
    return audit(vectors_of(biased), topics=[biased.topic], out=out, quick=True, skip=SKIP)


@pytest.fixture
def copied(finished: Audit, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.out, tmp_path / "copy"))


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of stages and files: the figures of the page take longest by far."""
    monkeypatch.setattr(blocks.Figure, "of", lambda *_, **__: blocks.Text("No figure."))


@pytest.fixture
def empty_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the files of figures, not of what they show."""
    svg = '<svg width="9" height="9" viewBox="0 0 9 9"></svg>'
    monkeypatch.setattr(blocks, "to_svgs", lambda _: (svg, svg))


def forbid(patch: pytest.MonkeyPatch, *names: str) -> None:
    def refuse(*_: Any) -> dict[str, Any]:
        raise RuntimeError("computed again")

    for name in names:
        patch.setattr(stages if hasattr(stages, name) else mitigation, name, refuse)


def write_topic(topic: Topic, path: Path) -> Path:
    lines = [f'name = "{topic.name}"', f'title = "{topic.title}"', 'provenance = "a test"']
    lines += [f"{key} = {json.dumps(getattr(topic, key))}" for key in ("definitional", "neutral")]
    lines.append(f"human = {json.dumps(topic.human)}")
    for name in topic.classes:
        lines += [f"[classes.{name}]", f"protected = {json.dumps(topic.protected[name])}"]
        lines.append(f"stereotypes = {json.dumps(topic.stereotypes[name])}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_planted_bias_is_called_strong(finished: Audit) -> None:
    (verdict,) = finished.verdicts
    assert verdict.level == "strong evidence"
    assert finished.failed == {}
    assert {m.metric for m in finished.measurements} >= {"association", "weat", "dimension_spread"}
    assert {c.before.metric for c in finished.comparisons} >= {"association", "recovery_rbf"}


def test_everything_is_written(finished: Audit) -> None:
    names = {path.name for path in finished.out.iterdir()}
    assert names == {
        "run.json",
        "results.json",
        "items.parquet",
        "report.html",
        "brief.html",
        "methods.html",
        "stages",
        "tables",
        "figures",
        "work",
        "summary.md",
        "model_card.md",
    }
    results = json.loads((finished.out / "results.json").read_text())
    assert results["schema"] == "evenhand/2"
    assert results["verdicts"][0]["verdict"] == "strong evidence"
    listed = [m for stage in results["stages"] for m in stage["measurements"]]
    assert len(listed) == len(finished.measurements)
    assert all(isinstance(m["items"], int) for m in listed)
    assert (finished.out / "results.json").stat().st_size < 300_000
    assert read_findings(finished.out).stages[0].measurements == finished.stages[0].measurements
    listed = json.loads((finished.out / "run.json").read_text())["files"]
    assert all((finished.out / name).is_file() for name in listed)


def test_the_run_is_recorded(finished: Audit) -> None:
    recorded = json.loads((finished.out / "run.json").read_text())
    assert set(recorded["versions"]) >= {"evenhand", "python", "numpy", "scipy", "torch"}
    assert recorded["seed"] == 0
    assert recorded["configuration"]["quick"] is True
    assert recorded["subjects"]["vectors"]["sha256"] is None
    assert len(recorded["subjects"]["vectors"]["content_sha256"]) == 64
    assert set(recorded["seconds"]) == {stage.title for stage in finished.stages}


def test_words_that_the_vectors_lack_are_skipped_by_name(finished: Audit) -> None:
    skipped = [skip for stage in finished.stages for skip in stage.skipped]
    assert {skip["metric"] for skip in skipped} >= {"weat", "wefat", "analogies", "rnsb"}
    assert all(skip["reason"] for skip in skipped)


@pytest.mark.usefixtures("without_figures")
def test_a_second_run_computes_nothing(
    finished: Audit, copied: Path, biased: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, *COMPUTING)
    again = audit(vectors_of(biased), topics=[biased.topic], out=copied, quick=True, skip=SKIP)
    assert again.failed == {}
    assert again.measurements == finished.measurements
    for name in ("results.json", "items.parquet", "tables/items.csv"):
        assert (copied / name).read_bytes() == (finished.out / name).read_bytes()


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize("change", ["seed", "vectors", "topic", "code"])
def test_a_changed_configuration_is_computed_again(
    change: str, copied: Path, biased: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "_debias")
    v, topic, seed = vectors_of(biased), biased.topic, 0
    if change == "seed":
        seed = 1
    elif change == "code":
        monkeypatch.setattr(main, "_code_hash", lambda: "other")
    elif change == "vectors":
        matrix = v.matrix.copy()
        matrix[0, 0] += 1e-4
        v = v.with_matrix(matrix, name=v.name)
    else:
        fields = {name: getattr(topic, name) for name in topic.__slots__}
        topic = Topic(**{**fields, "human": topic.human[:-1]})
    again = audit(v, topics=[topic], out=copied, quick=True, skip=SKIP, seed=seed)
    assert again.failed == {"simulated: hard debiasing": "RuntimeError('computed again')"}


@pytest.mark.usefixtures("without_figures")
def test_a_restart_computes_all_stages_again(
    copied: Path, biased: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copied / "work" / "left").touch()
    forbid(monkeypatch, "_debias")
    again = audit(
        vectors_of(biased), topics=[biased.topic], out=copied, quick=True, skip=SKIP, restart=True
    )
    assert again.failed == {"simulated: hard debiasing": "RuntimeError('computed again')"}
    assert not (copied / "work" / "left").exists()


def test_the_model_runs_on_the_device(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(source: str, *, device: str) -> None:
        raise InputError(f"{source} on {device}")

    monkeypatch.setattr("evenhand.models.loading.load", load)
    out = str(tmp_path / "out")
    assert run(["audit", "--model", "mini", "--device", "cuda:7", "--out", out]) == 2
    assert "mini on cuda:7" in capsys.readouterr().err


@pytest.mark.usefixtures("without_figures")
def test_a_damaged_stage_is_computed_again(
    copied: Path, biased: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (copied / "stages").glob("mitigation-*.json")
    path.write_text(path.read_text()[:100])
    forbid(monkeypatch, *(name for name in COMPUTING if name != "_debias"))
    again = audit(vectors_of(biased), topics=[biased.topic], out=copied, quick=True, skip=SKIP)
    assert again.failed == {}
    assert json.loads(path.read_text())["schema"] == "evenhand/2"


@pytest.mark.usefixtures("without_figures")
def test_a_failed_stage_loses_nothing_else(
    tmp_path: Path, biased: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        forbid(patch, "_debias")
        found = audit(
            vectors_of(biased), topics=[biased.topic], out=tmp_path, quick=True, skip=SKIP
        )
    assert list(found.failed) == ["simulated: hard debiasing"]
    assert found.verdicts[0].level == "strong evidence"
    page = found.report.read_text()
    assert "simulated: hard debiasing failed" in page
    trouble = tmp_path / "stages" / "mitigation-simulated-hard-debiasing.error.txt"
    assert "computed again" in trouble.read_text()
    forbid(monkeypatch, *(name for name in COMPUTING if name != "_debias"))
    again = audit(vectors_of(biased), topics=[biased.topic], out=tmp_path, quick=True, skip=SKIP)
    assert again.failed == {}
    assert not trouble.exists()


@pytest.mark.usefixtures("without_figures")
def test_same_seed_same_bytes(finished: Audit, tmp_path: Path, biased: World) -> None:
    again = audit(vectors_of(biased), topics=[biased.topic], out=tmp_path, quick=True, skip=SKIP)
    names = [
        "results.json",
        "items.parquet",
        *(f"tables/{p.name}" for p in (again.out / "tables").iterdir()),
    ]
    assert len(names) >= 5
    for name in names:
        assert (again.out / name).read_bytes() == (finished.out / name).read_bytes(), name


@pytest.mark.usefixtures("empty_figures")
def test_files_of_a_topic_no_longer_chosen_are_removed(copied: Path, biased: World) -> None:
    fields = {name: getattr(biased.topic, name) for name in biased.topic.__slots__}
    second = Topic(**{**fields, "name": "second"})
    mine = copied / "tables" / "mine.csv"
    mine.write_text("kept")
    v = vectors_of(biased)
    audit(v, topics=[biased.topic, second], out=copied, quick=True, skip=SKIP)
    assert (copied / "tables" / "distances-second.csv").exists()
    assert (copied / "figures" / "vectors-measures-second-forest.svg").exists()
    audit(v, topics=[biased.topic], out=copied, quick=True, skip=SKIP)
    assert not (copied / "tables" / "distances-second.csv").exists()
    assert not (copied / "figures" / "vectors-measures-second-forest.svg").exists()
    assert mine.exists()


def test_vectors_without_the_words_are_refused(tmp_path: Path, biased: World) -> None:
    names = [f"w{i}" for i in range(len(biased.words))]
    with pytest.raises(VocabularyError, match="expected vectors of words of the topics"):
        audit(
            Vectors.from_arrays(names, biased.matrix),
            topics=[biased.topic],
            out=tmp_path,
            skip=SKIP,
        )


def test_bad_arguments_are_named(tmp_path: Path, biased: World) -> None:
    v = vectors_of(biased)
    with pytest.raises(InputError, match="expected at least one"):
        audit(v, topics=[], out=tmp_path)
    with pytest.raises(InputError, match="'simulated' twice"):
        audit(v, topics=[biased.topic, biased.topic], out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="expected a folder"):
        audit(v, topics=[biased.topic], out=tmp_path / "file")


@pytest.fixture
def arguments(biased: World, tmp_path: Path) -> list[str]:
    vectors_of(biased).save(tmp_path / "small.npz")
    topic = write_topic(biased.topic, tmp_path / "simulated.toml")
    return [
        "audit",
        "--vectors",
        str(tmp_path / "small.npz"),
        "--topic",
        str(topic),
        "--out",
        str(tmp_path / "out"),
        "--quick",
        "--skip",
        "posterior",
    ]


@pytest.mark.usefixtures("empty_figures")
def test_the_command_prints_verdicts_and_the_page(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 0
    shown = capsys.readouterr()
    assert "strong evidence" in shown.out
    assert shown.out.rstrip().endswith(f"report: {tmp_path / 'out' / 'report.html'}")
    assert shown.err == ""
    recorded = json.loads((tmp_path / "out" / "run.json").read_text())
    digest = hashlib.sha256((tmp_path / "small.npz").read_bytes()).hexdigest()
    assert recorded["subjects"]["vectors"]["sha256"] == digest
    before = (tmp_path / "out" / "report.html").read_bytes()
    (tmp_path / "out" / "report.html").unlink()
    assert run(["report", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "report.html").read_bytes() == before


@pytest.mark.usefixtures("without_figures")
def test_json_is_one_document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "evenhand/2"
    assert printed["verdicts"][0]["topic"] == "simulated"
    assert Path(printed["report"]).is_file()
    assert printed["failed"] == {}


@pytest.mark.usefixtures("without_figures")
def test_a_failed_stage_exits_with_1_and_its_name(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "_dimension")
    assert run([*arguments, "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["failed"] == {"dimension": "RuntimeError('computed again')"}
    assert shown.err.startswith("error: failed, the rest is saved: dimension (")


def test_wrong_options_exit_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "--topic", "gendr", "--out", str(tmp_path)]) == 2
    assert "did you mean 'gender'?" in capsys.readouterr().err
    assert run(["report", str(tmp_path / "nowhere")]) == 2
    assert "results.json: no such file" in capsys.readouterr().err


@pytest.mark.slow
def test_quick_audit_of_glove(tmp_path: Path) -> None:
    found = audit("glove", out=tmp_path, quick=True, skip=SKIP)
    assert found.failed == {}
    levels = {verdict.topic: verdict.level for verdict in found.verdicts}
    assert levels["gender"] == "strong evidence"
    assert set(levels) == {"gender", "religion", "race"}
    assert found.report.stat().st_size < 3_000_000
    again = audit("glove", out=tmp_path, quick=True, skip=SKIP)
    assert again.measurements == found.measurements


@pytest.mark.usefixtures("without_figures")
def test_cards_of_an_earlier_audit_in_the_folder_are_removed(biased: World, copied: Path) -> None:
    for name in ("vectors_card.md", "data_card.md", "notes.md"):
        (copied / name).write_text("of an audit of other data")
    audit(vectors_of(biased), topics=[biased.topic], out=copied, quick=True, skip=SKIP)
    assert {path.name for path in copied.glob("*.md")} == {
        "summary.md",
        "model_card.md",
        "notes.md",  # the user's own
    }
