"""Domain drift: the classes of one data set to train on, those of another to test on."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from evenhand.cli import run as shell
from evenhand.errors import InputError, SmallDataError
from evenhand.fewshot import make_splits
from evenhand.fewshot.data import Dataset, join_domains, read_dataset
from evenhand.fewshot.runs import read_run
from evenhand.fewshot.settings import DataSettings
from evenhand.fewshot.splits import fit_to_data

JOBS = ("poet", "chef", "judge", "stage_actor", "nurse", "guard")


def people(name, classes, count=12, start=0):
    """Texts of men and women; in the first half of the classes two thirds are men."""
    rows = []
    for number, job in enumerate(classes):
        for i in range(start, start + count):
            man = (i % 3 > 0) == (number < len(classes) / 2)
            rows.append((f"{'He' if man else 'She'} {job} {i} works.", job, "M" if man else "F"))
    texts, labels, genders = zip(*rows, strict=True)
    return Dataset.of(texts, labels, genders, name=name, leaning_by="share")


def test_classes_and_texts_of_the_test_are_new():
    training = people("bios", JOBS)
    test = people("events", ("Chefs", "Stage actors", "dancers"))
    same = Dataset.of([*training.texts[:1], "x"], ["models", "models"], name="more")
    joined = join_domains(training, test)
    assert joined.classes == ("guard", "judge", "nurse", "poet", *test.classes)
    assert joined.tested == test.classes
    assert joined.left_out == {"class of the test": 24}
    for data in (training, test):  # each text keeps its class, gender and row
        rows = {text: i for i, text in enumerate(data.texts)}
        for text, label, gender, row in zip(
            joined.texts, joined.labels, joined.genders, joined.rows, strict=True
        ):
            if text in rows:
                i = rows[text]
                assert joined.classes[label] == data.classes[data.labels[i]]
                assert (gender, row) == (data.genders[i], data.rows[i])
    assert join_domains(training, same).left_out == {"text of the test": 1}
    with pytest.raises(InputError, match="bios: expected classes that bios has not, got none"):
        join_domains(training, training)


def test_leanings_and_odds_are_those_within_each_data_set():
    training, test = people("bios", JOBS[:4]), people("events", ("dancers", "guards"), 30)
    joined = join_domains(training, test)
    for data in (training, test):
        own = joined.indices(data.classes)
        assert [joined.leaning[i] for i in own] == list(data.leaning)
        np.testing.assert_array_equal(joined.odds_ratios[own], data.odds_ratios)
    part = joined.subset(["chef", "poet", "dancers"])
    assert part.tested == ("dancers",)


def test_splits_test_on_the_other_classes_alone():
    joined = join_domains(people("bios", JOBS), people("events", ("dancers", "models")))
    for split in make_splits(joined, 4):
        assert split.test == ("dancers", "models")
        assert sorted(split.train + split.valid) == sorted(JOBS)
        assert (len(split.train), len(split.valid)) == (4, 2)
        for part in (split.train, split.valid):  # one of each leaning
            assert {joined.leaning[i] for i in joined.indices(part)} == {"male", "female"}
    assert len({split.train for split in make_splits(joined, 4)}) > 1
    fit = fit_to_data(joined)
    assert (fit.ways, fit.splits, fit.both_leanings) == (2, 1, True)
    few = join_domains(people("bios", JOBS[:1]), people("events", ("dancers", "models")))
    with pytest.raises(SmallDataError):
        make_splits(few)


def test_a_run_trains_on_one_file_and_tests_on_another(tmp_path, capsys):
    files = []
    for name, classes in (("bios", JOBS), ("events", ("Chefs", "dancers", "models"))):
        files.append(tmp_path / f"{name}.csv")
        data = people(name, classes)
        with files[-1].open("w", newline="") as file:
            rows = zip(data.texts, (data.classes[k] for k in data.labels), strict=True)
            genders = ("MF"[gender] for gender in data.genders)
            writer = csv.writer(file)
            writer.writerow(["text", "label", "gender"])
            writer.writerows([*row, gender] for row, gender in zip(rows, genders, strict=True))
    given = ["--data", str(files[0]), "--test-data", str(files[1]), "--leaning", "share"]
    shape = ["--ways", "2", "--shots", "2", "--queries", "2", "--episodes", "4/2/6"]
    folder = ["--out", str(tmp_path / "run"), "--cache", str(tmp_path / "cache"), "--no-neutral"]
    assert shell(["lab", "fewshot", "run", *given, *shape, *folder]) == 0
    shown = capsys.readouterr().out
    assert "data: bios.csv, tested on events.csv, 96 texts in 8 classes" in shown
    assert "tested on all 3 classes of the other data: Chefs, dancers, models" in shown
    done = read_run(tmp_path / "run")
    assert {done.answers.names[k] for k in np.unique(done.answers.classes)} == {*data.classes}
    assert done.record["data"]["tested"] == list(data.classes)
    settings = DataSettings(data=str(files[0]), test_data=str(files[1]), leaning="share")
    assert read_dataset(settings).digest == done.data
