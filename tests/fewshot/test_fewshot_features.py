"""A store gives runs their texts and features, the same bits whoever comes first."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from filelock import FileLock
from small_runs import Runs, chosen

from evenhand.errors import InputError
from evenhand.fewshot import Dataset, encoders, features
from evenhand.fewshot.features import VERSIONS, FeatureStore
from evenhand.fewshot.mitigation import neutralize, swap_gender
from evenhand.fewshot.runs import draw_parts, prepare, run
from evenhand.fewshot.settings import TextMitigation, TrainingSettings
from evenhand.fewshot.training import FeatureTable, train
from evenhand.models import encoding

pytestmark = pytest.mark.slow

MITIGATIONS = ["none", "augment", "neutralize", "augment+neutralize", "calibrate"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def store(runs):
    return FeatureStore(runs.people, runs.encoder, runs.folder / "store", device="cpu")


def fresh(runs, folder):
    return FeatureStore(runs.people, runs.encoder, folder, device="cpu")


@pytest.mark.parametrize("mitigate", ["train", "all"])
@pytest.mark.parametrize("mitigation", [*MITIGATIONS, "rename", "anti"])
def test_the_texts_are_those_that_a_run_makes(runs, store, mitigation, mitigate):
    settings = chosen(mitigation=mitigation, mitigate=mitigate)
    parts = draw_parts(runs.people, settings)
    alone = prepare(runs.people, settings, parts)
    shared = prepare(runs.people, settings, parts, store=store)
    assert shared.mitigated.pool.digest == alone.mitigated.pool.digest
    for part in parts:
        for one, other in (
            (alone.training(part, 0), shared.training(part, 0)),
            (alone.validation(part), shared.validation(part)),
            (alone.test(part), shared.test(part)),
            (alone.test(part, alone.swapped), shared.test(part, shared.swapped)),
        ):
            for rows in ("support", "query"):
                mine, theirs = getattr(one, rows).ravel(), getattr(other, rows).ravel()
                assert [alone.texts[row] for row in mine] == [shared.texts[row] for row in theirs]


@pytest.mark.parametrize(
    ("mitigation", "mitigate"), [*((name, "all") for name in MITIGATIONS), ("neutralize", "train")]
)
def test_a_run_with_a_store_gives_the_same_numbers(runs, store, tmp_path, mitigation, mitigate):
    expected = runs.done(mitigation=mitigation, mitigate=mitigate)
    found = run(runs.people, expected.settings, tmp_path / "run", store=store)
    for one, other in zip(expected.saved[0], found.saved[0], strict=True):
        assert one.answers.same_queries(other.answers)
        np.testing.assert_allclose(other.answers.log_probs, one.answers.log_probs, atol=1e-3)
        mine, theirs = (each.counterfactuals.swapped.log_probs for each in (other, one))
        np.testing.assert_allclose(mine, theirs, atol=1e-3)
    np.testing.assert_array_equal(
        found.saved_baseline[0].answers.log_probs, expected.saved_baseline[0].answers.log_probs
    )
    assert found.record["encoder"] == expected.record["encoder"]


def test_tuned_encoders_read_its_texts_and_start_afresh(runs, store, tmp_path):
    settings = chosen(finetune=True, episodes="12/4/10", mitigation="augment")
    expected = runs.make(settings, tmp_path / "alone").saved[0][0]
    for name in ("first", "second"):
        found = run(runs.people, settings, tmp_path / name, store=store).saved[0][0]
        np.testing.assert_allclose(found.answers.log_probs, expected.answers.log_probs, atol=1e-3)
        assert (tmp_path / name / "split-0/seed-0/answers.npz").read_bytes() == (
            tmp_path / "first/split-0/seed-0/answers.npz"
        ).read_bytes()


def test_features_depend_on_no_order(runs, store, tmp_path):
    """Nor on what was asked for before, on a kill, or on damage."""
    expected = {version: store.features(version) for version in VERSIONS}
    other = fresh(runs, tmp_path / "other")
    other.source(TextMitigation.parse("augment+neutralize"))
    for version in reversed(VERSIONS):
        np.testing.assert_array_equal(other.features(version), expected[version])
    for file in (tmp_path / "other/features").glob("*.npz"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    for file in (tmp_path / "other/texts").glob("*.npz"):
        file.write_bytes(file.read_bytes()[:-9])
    again = fresh(runs, tmp_path / "other")
    for version in VERSIONS:
        np.testing.assert_array_equal(again.features(version), expected[version])
        assert again.texts(version) == store.texts(version)


def test_a_kill_in_the_middle_of_encoding(runs, store, tmp_path, monkeypatch):
    monkeypatch.setitem(encoding.TOKENS, "cpu", 512)
    monkeypatch.setitem(encoding.STORED, "cpu", 1)
    expected = fresh(runs, tmp_path / "whole").features("swapped")

    class Killed(BaseException):
        pass

    def stop(_what, done, total, _words):
        if done > total / 2:
            raise Killed

    broken = fresh(runs, tmp_path / "broken")
    with pytest.raises(Killed):
        broken.features("swapped", progress=stop)
    parts = list((tmp_path / "broken/features").glob("*.parts/*.npy"))
    assert parts
    before = {path.name: path.stat().st_mtime_ns for path in parts}
    seen = []

    def watch(_what, done, _total, _words):
        now = (tmp_path / "broken/features").glob("*.parts/*.npy")
        seen.append({path.name: path.stat().st_mtime_ns for path in now})

    found = fresh(runs, tmp_path / "broken").features("swapped", progress=watch)
    np.testing.assert_array_equal(found, expected)
    assert all(seen[-1][name] == when for name, when in before.items())  # none was made again
    assert not list((tmp_path / "broken/features").glob("*.parts"))


def test_everything_is_computed_once(runs, tmp_path, monkeypatch):
    made = []

    def watched(name, real):
        def act(*arguments, **more):
            made.append(name)
            return real(*arguments, **more)

        return act

    monkeypatch.setattr(encoders, "encode", watched("features", encoders.encode))
    monkeypatch.setattr(features, "swap_gender", watched("swapped", swap_gender))
    monkeypatch.setattr(features, "neutralize", watched("neutralized", neutralize))
    every = [fresh(runs, tmp_path / "shared") for _ in range(3)]
    for each in every:
        each.lock = lambda name: FileLock(tmp_path / f"{name}.lock")
    asked = [
        threading.Thread(target=each.source, args=(TextMitigation.parse("neutralize"),))
        for each in every
    ]
    for each in asked:
        each.start()
    for each in asked:
        each.join()
    assert sorted(made) == ["features", "features", "neutralized", "neutralized", "swapped"]
    made.clear()
    for each in every:
        each.source(TextMitigation.parse("neutralize"))
        each.source(TextMitigation.parse("neutralize+calibrate"))
    assert not made
    assert every[0].source(TextMitigation.parse("neutralize")) is every[0].source(
        TextMitigation.parse("neutralize+calibrate")
    )


def test_without_genders_there_are_no_counterfactuals(runs, tmp_path):
    known = runs.people
    people = Dataset(known.texts, known.labels, np.full(len(known), -1), known.classes, "unknown")
    store = FeatureStore(people, runs.encoder, tmp_path / "store", device="cpu")
    found = run(people, chosen(), tmp_path / "run", store=store, both_leanings=False)
    assert found.saved[0][0].counterfactuals is None
    assert not (tmp_path / "store/texts").exists()


def test_a_store_of_something_else_is_refused(runs, store, tmp_path):
    fewer = runs.people.subset(runs.people.classes[:-1])
    with pytest.raises(InputError, match="store: expected that of this data set"):
        run(fewer, chosen(), tmp_path / "run", store=store)
    with pytest.raises(InputError, match="store: pooling: expected cls, got mean"):
        run(runs.people, chosen(pooling="cls"), tmp_path / "run", store=store)
    with pytest.raises(InputError, match="store: limit: expected 9, got None"):
        run(runs.people, chosen(limit=9), tmp_path / "run", store=store)
    assert not (tmp_path / "run").exists()


class Whole(FeatureTable):
    """A table that gives all its features for any rows."""

    def points(self, rows, weights=None, *, through=False):
        return self.features, rows

    table = points


def learnt(source, people):
    settings = chosen(ways=3, shots=2, queries=2, episodes="24/200/4")
    (part,) = draw_parts(people, settings)
    how = TrainingSettings(batch=4, validate_every=8, learning_rate=1e-2)
    return train(how, source, part.training(people, settings, 0), part.valid)


def test_taking_rows_out_of_a_table_changes_no_bit(runs):
    people, rng = runs.people, np.random.default_rng(1)
    features = rng.normal(size=(len(people) * 4, 32)).astype(np.float32)
    taken = FeatureTable(features)
    some = taken.table(np.arange(300))[0]
    assert len(some) == 300
    assert len(taken.table(np.arange(20))[0]) == len(features)
    one, other = learnt(taken, people), learnt(Whole(features), people)
    assert one.points == other.points
    for mine, theirs in zip(one.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
        ),
    ],
)
def test_runs_on_a_device(runs, tmp_path, device):
    store = FeatureStore(runs.people, runs.encoder, tmp_path / "store", device=device)
    assert store.source(TextMitigation.parse("none")).device.type == device
    found = run(runs.people, chosen(), tmp_path / "run", store=store)
    np.testing.assert_allclose(
        found.saved[0][0].answers.log_probs, runs.done().saved[0][0].answers.log_probs, atol=0.05
    )
    plain = runs.make(chosen(), tmp_path / "plain", device=device)
    np.testing.assert_allclose(
        plain.saved[0][0].answers.log_probs, runs.done().saved[0][0].answers.log_probs, atol=0.05
    )
