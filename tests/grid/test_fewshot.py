"""Few-shot cells: the figures of a run, the same bytes in any order and after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest
from killing import finished, started
from pydantic import ValidationError

from evenhand.errors import InputError
from evenhand.fewshot import read
from evenhand.fewshot.answers import Tallies, check_same_queries
from evenhand.fewshot.metrics.bias import Bias, bias_replicates, read_measure
from evenhand.fewshot.runs import run
from evenhand.fewshot.settings import RunSettings, TrainingSettings
from evenhand.files import to_json
from evenhand.grid import fewshot, read_grid
from evenhand.grid.fewshot import TASK
from evenhand.grid.task import Workspace, load_task
from evenhand.instruments import Run
from evenhand.results import Measurement
from small_encoder import save_small

DATA = "simulated:per_class=24,leak=1"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return str(save_small(tmp_path_factory.mktemp("encoder") / "small"))


@pytest.fixture(autouse=True)
def _nothing_held():
    fewshot._open_store.cache_clear()


def asked(small, **more):
    usual = {
        "data": DATA,
        "leaning": "share",
        "neutral": False,
        "each_gender": 3,
        "encoder": small,
        "episodes": "24/8/40",
        "ways": 3,
        "shots": 2,
        "batch": 4,
        "permutations": 50,
    }
    return TASK.settings(**{**usual, **more})


def at(folder, name="cell", cache="cache"):
    work = folder / "work" / name
    work.mkdir(parents=True, exist_ok=True)
    return Workspace(
        work=work, cache=folder / cache, device="cpu", threads=2, lock=lambda _: nullcontext()
    )


def test_the_figures_are_those_of_a_run(encoder, tmp_path):
    result = json.loads(to_json(TASK.compute(asked(encoder, splits=2), at(tmp_path))))
    training = TrainingSettings(batch=4, validate_every=2)
    settings = RunSettings(
        training=training, ways=3, shots=2, queries=2, episodes="24/8/40", splits=2, neutral=False
    )
    people = read(DATA, leaning="share").at_least(1, each_gender=3)
    done = run(people, settings, tmp_path / "run", encoder=encoder, bias=Bias(permutations=50))
    assert set(result) == {
        "name",
        "chance",
        "baseline",
        "measurements",
        "comparisons",
        "skipped",
        "curves",
        "tallies",
    }
    assert (result["name"], result["chance"]) == ("proto-euclidean", pytest.approx(1 / 3))
    assert result["baseline"]["value"] == done.results.baseline.value
    accuracy, bias, baseline = map(Measurement.from_dict, result["measurements"])
    assert baseline.value == done.results.baseline.value
    for metric in ("f1", "f1_episode"):
        mine, theirs = accuracy.part(metric), done.results.accuracy.part(metric)
        assert mine.value == pytest.approx(theirs.value, abs=0.01)
        assert mine.low == pytest.approx(theirs.low, abs=0.05)
    assert accuracy.value == pytest.approx(done.results.accuracy.value, abs=0.01)
    assert bias.value == pytest.approx(done.results.bias.value, abs=1e-3)
    assert not accuracy.select("class")
    assert set(result["curves"]) == {"split 0, seed 0", "split 1, seed 0"}
    for name, curve in result["curves"].items():
        best = max(point["validation_accuracy"] for point in done.curves[name])
        assert curve["best"]["validation_accuracy"] == pytest.approx(best, abs=0.05)
        assert curve["episodes"] <= 24
    tallies = Tallies.unpack(result["tallies"])
    assert (tallies.splits, tallies.repeats, len(tallies.counts)) == (2, 1, 80)
    epsilon = read_measure("epsilon", bias_replicates(tallies), tallies.strata, Run())
    assert epsilon.value == pytest.approx(bias.part("epsilon").value, abs=1e-12)
    row = TASK.row(result)
    assert list(row) == [
        "accuracy",
        "f1",
        "baseline",
        "above_baseline",
        "association",
        "epsilon",
        "skew",
        "stereotype",
        "mu_skew",
        "mu_stereo",
    ]
    assert row["accuracy"] == {key: getattr(accuracy, key) for key in ("value", "low", "high")}


@pytest.mark.slow
def test_the_same_bytes_in_any_order(encoder, tmp_path):
    cells = [
        asked(encoder, network=network, mitigation=mitigation)
        for network, mitigation in (
            ("proto-euclidean", "none"),
            ("matching-cosine", "augment"),
            ("proto-euclidean", "neutralize"),
            ("proto-cosine", "calibrate"),
        )
    ]
    first = {n: to_json(TASK.compute(cell, at(tmp_path, f"a{n}"))) for n, cell in enumerate(cells)}
    fewshot._open_store.cache_clear()
    second = {
        n: to_json(TASK.compute(cells[n], at(tmp_path, f"b{n}", "other cache")))
        for n in (3, 1, 2, 0)
    }
    assert second == first
    assert to_json(TASK.compute(cells[0], at(tmp_path, "again"))) == first[0]
    one, two = (Tallies.unpack(json.loads(first[n])["tallies"]) for n in (0, 2))
    check_same_queries(one, two)


def test_it_goes_on_with_what_it_finds(encoder, tmp_path):
    cell = asked(encoder, splits=2)
    whole = to_json(TASK.compute(cell, at(tmp_path, "whole")))
    place = at(tmp_path, "broken")

    def stop(what, done, total, _words):
        if what.startswith("split 1") and done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TASK.compute(
            cell, Workspace(**{n: getattr(place, n) for n in place.__slots__} | {"progress": stop})
        )
    kept = place.work / "run/split-0/seed-0/answers.npz"
    before = kept.stat().st_mtime_ns
    assert to_json(TASK.compute(cell, place)) == whole
    assert kept.stat().st_mtime_ns == before
    (place.work / "run/run.json").write_text("{}")  # of no run at all: made anew
    assert to_json(TASK.compute(cell, place)) == whole


KILLED = """
import os, signal, sys
from contextlib import nullcontext
from pathlib import Path
from evenhand import training
from evenhand.files import to_json
from evenhand.grid.fewshot import TASK
from evenhand.grid.task import Workspace
training.INTERVAL, training.SHARE = 0.0, 1e9
steps = []
def step(what, *_):
    steps.append(what)
    print("at", flush=True)
    if len(steps) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
place = Workspace(work=Path("killed"), cache=Path("another"), device="cpu", threads=1,
                  lock=lambda _: nullcontext(), progress=step)
place.work.mkdir(exist_ok=True)
print(to_json(TASK.compute(TASK.settings.model_validate_json(sys.argv[1]), place)))
"""


@pytest.mark.slow
def test_the_same_bytes_after_kills(encoder, tmp_path):
    cell = asked(
        encoder, network="relation-base", mitigation="neutralize", episodes="96/8/40", splits=2
    )
    steps: list[str] = []
    whole = replace(at(tmp_path, "whole"), progress=lambda what, *_: steps.append(what))
    expected = to_json(TASK.compute(cell, whole))
    (tmp_path / "run.py").write_text(KILLED)
    training = steps.index("split 0, seed 0: training")
    # while it trains on the first split, and on the second
    for count in (training + 3, steps.count(steps[training])):
        with started(tmp_path, cell.model_dump_json(), str(count)) as (process, output):
            assert sum(line == "at\n" for line in output) == count
        assert process.exitcode == -signal.SIGKILL
    printed = finished(tmp_path, cell.model_dump_json(), "0")
    assert 0 < printed.count("at") < len(steps) - training
    assert [line for line in printed if line != "at"] == expected.splitlines()


class TestSettings:
    def test_as_many_queries_as_shots(self, encoder):
        assert asked(encoder, shots=4).run.queries == 4
        assert asked(encoder, shots=4, queries=3).run.queries == 3
        assert asked(encoder, episodes="10000/600/600").run.training.validate_every == 500
        assert TASK.settings(frozen=False).run.finetune

    def test_every_key_is_described(self):
        assert all(each.description for each in TASK.settings.model_fields.values())

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"network": "protos"}, "did you mean 'proto-soft'"),
            ({"mitigation": "neutralise"}, "did you mean 'neutralize'"),
            ({"pooling": "max"}, "unknown pooling 'max'"),
            ({"loss": "mae"}, "unknown loss 'mae': did you mean 'mse'"),
            ({"network": "relation-ntl", "options": {"slice": 3}}, "did you mean 'slices'"),
            ({"shots": 3, "mitigation": "calibrate"}, "shots: expected an even number"),
            ({"shots": 30}, "validation classes of split 0: .*expected 60 texts per class"),
            ({"ways": 9}, "validation classes of split 0: ways: expected 2 to"),
            ({"encoder": "maxi"}, "encoder: expected mini, a folder with config.json or hf:NAME"),
            ({"data": "none.csv"}, "none.csv: no such file, and not simulated"),
            ({"data": "simulated:leek=1"}, "did you mean 'leak'"),
            ({"text": "bio"}, "text: simulated data have no columns"),
        ],
    )
    def test_errors_before_anything_runs(self, encoder, more, message):
        settings = asked(encoder, **more)
        with pytest.raises(InputError, match=message):
            TASK.check(settings)

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"episodes": "9/9"}, "episodes: expected TRAIN/VALID/TEST"),
            ({"shares": "1/2"}, "shares: expected three numbers"),
            ({"ways": 1}, "greater than or equal to 2"),
            ({"ways": "3"}, "valid integer"),
            ({"way": 3}, "Extra inputs"),
        ],
    )
    def test_wrong_values(self, encoder, more, message):
        with pytest.raises(ValidationError, match=message):
            asked(encoder, **more)

    def test_it_is_known_by_name(self):
        assert load_task("fewshot") is TASK


class TestIdentity:
    def test_what_counts_and_what_does_not(self, encoder, tmp_path):
        base = TASK.identity(asked(encoder))
        assert json.loads(to_json(base)) == json.loads(to_json(TASK.identity(asked(encoder))))
        copied = save_small(tmp_path / "copy")
        assert TASK.identity(asked(str(copied))) == base  # the same files elsewhere
        assert TASK.identity(asked(encoder, queries=2)) == base
        for more in (
            {"seed": 1},
            {"mitigation": "augment"},
            {"data": "simulated:per_class=25"},
            {"splits": 2},
            {"prob": 0.9},
            {"any_leaning": True},
            {"leaning": "odds"},
            {"neutral": True},
            {"adapt": 1},
            {"mitigation": "augment", "mitigate": "all"},
            {"max_length": 20},
            {"shares": "40/30/30"},
            {"encoder": "mini"},
            {"permutations": 51},
        ):
            assert TASK.identity(asked(encoder, **more)) != base, more
        assert TASK.identity(asked(encoder, mitigate="all")) == base  # there is no mitigation
        first, second = (
            TASK.identity(asked(encoder, mitigation="augment", mitigate=scope))
            for scope in ("train", "all")
        )
        assert first != second
        text = to_json(base)
        assert str(tmp_path) not in text
        assert encoder not in text

    def test_files_are_read_again_when_they_change(self, encoder, tmp_path):
        file = tmp_path / "people.csv"
        rows = [f"text {i} of {c},{c},{'MF'[i % 2]}" for c in "abcdef" for i in range(8)]
        file.write_text("\n".join(["text,label,gender", *rows]))
        cell = asked(encoder, data=str(file), each_gender=None)
        before = TASK.identity(cell)
        assert TASK.identity(cell) == before
        file.write_text("\n".join(["text,label,gender", *rows[:-1]]))
        assert TASK.identity(cell)["data"] != before["data"]

    def test_groups_share_their_texts(self, encoder):
        plain = {
            TASK.group(asked(encoder, network=n, mitigation=m))
            for n in ("maml", "induction")
            for m in ("none", "calibrate")
        }
        assert len(plain) == 1
        assert TASK.group(asked(encoder, mitigation="neutralize")) not in plain


def test_importing_it_is_cheap():
    code = "import sys, evenhand.grid.fewshot; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("name", "cells", "digest"),
    [
        ("simulated", 576, "233db698dea6c5c4"),
        pytest.param("wikibios-mini", 432, "8ac681b06ad80fa1", marks=pytest.mark.slow),
    ],
)
def test_the_keys_of_the_published_grids_stay_the_same(name, cells, digest, request, monkeypatch):
    """Results that were computed with earlier versions stay valid."""
    root = Path(__file__).parents[2]
    if name != "simulated":
        request.getfixturevalue("shared")
    monkeypatch.chdir(root)
    grid = read_grid(root / "docs" / "grids" / f"{name}.yaml")
    keys = "".join(cell.key for cell in grid.cells)
    assert len(grid.cells) == cells
    assert blake2b(keys.encode(), digest_size=8).hexdigest() == digest


def test_a_causal_encoder_is_known_by_its_files():
    cell = asked("tiny-causal")
    TASK.check(cell)
    identity = TASK.identity(cell)
    assert identity != TASK.identity(asked("tiny-causal", pooling="last"))
    assert identity["encoder"] != TASK.identity(asked("mini"))["encoder"]
    with pytest.raises(InputError, match="folder"):
        TASK.check(asked("nowhere"))


PROMPTED = {"network": "in-context", "model": "tiny-causal", "ways": 2, "max_length": 9}


def test_a_prompted_cell_is_the_run_of_its_model(tmp_path):
    cell = asked("mini", **PROMPTED, episodes="2/2/6")
    TASK.check(cell)
    result = json.loads(to_json(TASK.compute(cell, at(tmp_path))))
    settings = RunSettings(
        training=TrainingSettings(network="in-context"),
        ways=2,
        shots=2,
        queries=2,
        episodes="2/2/6",
        limit=9,
        neutral=False,
        seeds=2,
    )
    people = read(DATA, leaning="share").at_least(1, each_gender=3)
    done = run(people, settings, tmp_path / "run", model="tiny-causal", bias=Bias(permutations=50))
    accuracy, bias, _ = map(Measurement.from_dict, result["measurements"])
    assert (result["name"], result["curves"]) == ("in-context", {})
    assert accuracy.value == pytest.approx(done.results.accuracy.value, abs=0.01)
    assert bias.value == pytest.approx(done.results.bias.value, abs=1e-3)
    assert Tallies.unpack(result["tallies"]).repeats == 2


def test_a_prompted_cell_has_no_encoder_and_no_training(encoder):
    base, other = (
        asked(small, **PROMPTED, **more)
        for small, more in (("mini", {}), (encoder, {"patience": 3, "learning_rate": 0.1}))
    )
    assert TASK.identity(base) == TASK.identity(other)
    assert TASK.identity(asked("mini", **PROMPTED, seeds=3)) != TASK.identity(base)
    assert TASK.identity(asked("mini", **PROMPTED, label_by="written")) != TASK.identity(base)
    # the model of prompts is nothing to a network that is trained
    trained = [asked(encoder, **more) for more in ({}, {"model": "tiny-causal"})]
    assert TASK.identity(trained[0]) == TASK.identity(trained[1])
    for wrong in (None, "nowhere", "mini"):
        with pytest.raises(InputError, match="model"):
            TASK.check(asked(encoder, **{**PROMPTED, "model": wrong}))


def test_prompted_and_trained_cells_are_in_one_grid(encoder, tmp_path):
    path = tmp_path / "grid.yaml"
    fixed = {"data": DATA, "encoder": encoder, "leaning": "share", "model": "tiny-causal"}
    grid = {
        "task": "fewshot",
        "fixed": {**fixed, "each_gender": 3, "ways": 2, "shots": 2, "max_length": 9},
        "axes": {"network": ["proto-euclidean", "in-context"]},
    }
    path.write_text(json.dumps(grid), encoding="utf-8")
    read_back = read_grid(path)
    assert [cell.axes["network"] for cell in read_back.cells] == ["proto-euclidean", "in-context"]
