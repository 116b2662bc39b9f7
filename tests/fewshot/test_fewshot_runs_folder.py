"""The folder of a few-shot run: what was saved comes back, damage is named, nothing is lost."""

from __future__ import annotations

import errno
import os
import random
import shutil

import numpy as np
import pytest
from small_runs import Runs, chosen, episodes_of

from evenhand.errors import FileError, InputError, PartialFailure
from evenhand.fewshot import runs as running
from evenhand.fewshot.answers import Classifier, FewShotPredictions
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.runs import read_run, summarise

ANSWERS = "split-0/seed-0/answers.npz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def copied(runs, tmp_path):
    """A finished run to damage."""
    return shutil.copytree(runs.done().folder, tmp_path / "copied")


def small_answers(**more):
    rng = np.random.default_rng(1)
    truth = np.tile([0, 0, 1, 1], (3, 1))
    answers = FewShotPredictions(
        np.log(rng.dirichlet(np.ones(2), (3, 4))),
        rng.integers(0, 99, (3, 4)),
        truth,
        np.array([[0, 2], [2, 1], [1, 0]]),
        rng.integers(-1, 2, (3, 4)),
        ("a", "b é", "c"),
    )
    usual = {"swapped": rng.normal(size=(3, 4, 2)), "leaning": np.array([0, 1, -1])}
    return Classifier.of(answers, **{**usual, **more})


@pytest.mark.parametrize("more", [{}, {"swapped": None}])
def test_saved_answers_come_back(tmp_path, more):
    saved = small_answers(**more)
    saved.save(tmp_path / "one.npz")
    back = Classifier.load(tmp_path / "one.npz")
    assert back.answers.same_queries(saved.answers)
    np.testing.assert_allclose(back.answers.log_probs, saved.answers.log_probs, rtol=1e-6)
    np.testing.assert_array_equal(back.answers.genders, saved.answers.genders)
    np.testing.assert_array_equal(back.leaning, saved.leaning)
    assert back.answers.names == saved.answers.names
    assert (back.counterfactuals is None) == (saved.counterfactuals is None) == bool(more)
    back.save(tmp_path / "two.npz")
    assert (tmp_path / "two.npz").read_bytes() == (tmp_path / "one.npz").read_bytes()


def test_counterfactuals_need_genders_and_leanings():
    assert small_answers().counterfactuals is not None
    assert small_answers(leaning=np.array([-1, -1, -1])).counterfactuals is None
    with pytest.raises(InputError, match=r"leaning: expected one for each of 3 classes, got .*2"):
        small_answers(leaning=np.array([0, 1]))
    with pytest.raises(InputError, match="classes: expected 3 × 3, got"):
        small_answers(swapped=np.zeros((3, 4, 3)))


def test_damaged_answers_are_an_error_and_never_other_numbers(tmp_path):
    path = tmp_path / "answers.npz"
    saved = small_answers()
    saved.save(path)
    whole, chance = path.read_bytes(), random.Random(5)  # noqa: S311
    refused = 0
    for number in range(300):
        damaged = bytearray(whole)
        if number % 3:
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        else:
            del damaged[chance.randrange(len(whole)) :]
        path.write_bytes(damaged)
        try:
            back = Classifier.load(path)
        except FileError:
            refused += 1
            continue
        np.testing.assert_allclose(back.answers.log_probs, saved.answers.log_probs, rtol=1e-6)
        mine, other = (each.counterfactuals.swapped for each in (back, saved))
        np.testing.assert_allclose(mine.log_probs, other.log_probs, rtol=1e-6)
        assert back.answers.same_queries(saved.answers)
        assert back.answers.names == saved.answers.names
    assert refused > 150


class TestFolder:
    def test_a_finished_run_is_not_repeated(self, runs, monkeypatch):
        found = runs.done()
        before = {p: p.stat().st_mtime_ns for p in found.folder.rglob("seed-0/*")}
        monkeypatch.setattr(running, "prepare", None)
        again = runs.make(found.settings, found.folder)
        assert {p: p.stat().st_mtime_ns for p in found.folder.rglob("seed-0/*")} == before
        assert again.results == found.results
        assert summarise(read_run(found.folder), Bias(permutations=200)) == found.results

    def test_another_run_is_refused_and_a_restart_clears_its_own_alone(self, runs, copied):
        other = chosen("proto-cosine")
        message = r"has another run \(network: proto-euclidean there, proto-cosine now\)"
        with pytest.raises(FileError, match=message):
            runs.make(other, copied)
        with pytest.raises(FileError, match=r"another run .*another data"):
            runs.make(chosen(), copied, runs.people.subset(runs.people.classes[:-1]))
        (copied / "mine.csv").write_text("x")
        (copied / "split-notes.txt").write_text("x")
        made = runs.make(other, copied, restart=True)
        assert made.settings.training.network == "proto-cosine"
        assert (copied / "mine.csv").is_file()
        assert (copied / "split-notes.txt").is_file()

    def test_what_is_missing_is_named_and_computed_again(self, runs, copied):
        whole = (copied / ANSWERS).read_bytes()
        for name in (ANSWERS, "split-0/baseline.npz"):
            (copied / name).unlink()
            with pytest.raises(FileError, match=f"{name}: missing, this run is not finished"):
                read_run(copied)
        runs.make(runs.done().settings, copied)
        assert (copied / ANSWERS).read_bytes() == whole

    def test_damage_is_named_with_what_to_do(self, runs, copied):
        (copied / ANSWERS).write_bytes(b"PK")
        with pytest.raises(FileError, match=r"answers\.npz: expected .*; delete it and repeat"):
            runs.make(runs.done().settings, copied)
        (copied / ANSWERS).unlink()
        (copied / "split-0" / "episodes.npz").write_bytes(b"PK")
        found = runs.make(runs.done().settings, copied)  # drawn anew, they are the same
        assert episodes_of(found).digest == episodes_of(runs.done()).digest
        curve = copied / "split-0" / "seed-0" / "curve.csv"
        for content in ("", "episodes\nmany\n", "episodes\n1,2\n"):
            curve.write_text(content)
            with pytest.raises(FileError, match=r"curve\.csv: expected a curve"):
                read_run(copied)
        curve.unlink()
        with pytest.raises(FileError, match="has lost its curve"):
            read_run(copied)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "not valid JSON"),
            ("[]", "expected the record of 'fewshot run'"),
            ('{"command": "masked finetune"}', "expected the record of 'fewshot run'"),
            ('{"command": "fewshot run"}', "not the record of a few-shot run: 'settings'"),
            (
                '{"command": "fewshot run", "settings": {"training": {}, "mitigation": null}}',
                "not the record of a few-shot run",
            ),
            ('{"command": "fewshot run", "settings": {"training": {}, "way": 3}}', "'way'"),
        ],
    )
    def test_a_bad_record(self, tmp_path, content, message):
        (tmp_path / "run.json").write_text(content)
        with pytest.raises(FileError, match=rf"run\.json[:,] .*{message}"):
            read_run(tmp_path)

    def test_a_full_disk_leaves_what_was_computed(self, runs, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        settings = runs.done().settings
        monkeypatch.setattr(Classifier, "save", full)
        with pytest.raises(PartialFailure, match="run: No space left on device; results saved"):
            runs.make(settings, tmp_path / "run")
        assert (tmp_path / "run" / "split-0" / "seed-0" / "trained.safetensors").is_file()
        monkeypatch.undo()
        runs.make(settings, tmp_path / "run")
        expected = (runs.done().folder / ANSWERS).read_bytes()
        assert (tmp_path / "run" / ANSWERS).read_bytes() == expected

    def test_the_disk_of_the_cache_is_named(self, runs, tmp_path, monkeypatch):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr("evenhand.models.encoding._encode_missing", full)
        with pytest.raises(PartialFailure, match="saved here: No space left on device"):
            runs.make(chosen(), tmp_path / "run", cache=tmp_path / "saved here")

    def test_cached_word_vectors(self, runs, tmp_path):
        settings = runs.done().settings
        cache = shutil.copytree(runs.cache, tmp_path / "cache")
        (file,) = (cache / ".baseline").iterdir()
        damaged = bytearray(file.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        file.write_bytes(damaged)
        runs.make(settings, tmp_path / "run", cache=cache)
        shutil.rmtree(cache / ".baseline")
        (cache / ".baseline").write_text("no folder")
        runs.make(settings, tmp_path / "again", cache=cache)
        expected = (runs.done().folder / "split-0" / "baseline.npz").read_bytes()
        for name in ("run", "again"):
            assert (tmp_path / name / "split-0" / "baseline.npz").read_bytes() == expected
