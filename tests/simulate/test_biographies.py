"""Sizes, dials, labels, reproducibility, files and complaints of the simulated biographies."""

import csv
import math
import re

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import InputError, UnknownNameError
from evenhand.simulate.biographies import biographies

TABLE_3 = {
    "rapper": 8.2,
    "surgeon": 13.5,
    "dj": 15,
    "software engineer": 15.1,
    "composer": 16.3,
    "comedian": 21,
    "architect": 22.5,
    "pastor": 24.1,
    "chiropractor": 27.9,
    "filmmaker": 33.8,
    "dentist": 34.8,
    "photographer": 35,
    "accountant": 36.2,
    "attorney": 37.7,
    "physician": 39.5,
    "professor": 44.9,
    "personal trainer": 45,
    "painter": 46.1,
    "journalist": 49.9,
    "poet": 50.2,
    "teacher": 59.3,
    "psychologist": 61.8,
    "interior designer": 80.9,
    "model": 82.6,
    "paralegal": 84.2,
    "yoga teacher": 85,
    "nurse": 91.1,
    "dietitian": 92.6,
}
FEW = ["nurse", "composer", "teacher"]


def test_the_occupations_and_shares_are_those_of_table_3():
    bios = biographies(1)
    assert {name: round(100 * p, 6) for name, p in bios.share_of_women.items()} == TABLE_3
    assert bios.classes == tuple(TABLE_3)


def test_one_row_a_text_and_classes_of_one_size():
    bios = biographies(7, seed=1, occupations=FEW)
    assert bios.occupations == bios.true_occupations == tuple(np.repeat(FEW, 7))
    for column in (bios.texts, bios.counterfactuals, bios.genders, bios.stated_genders):
        assert len(column) == 21
    assert set(bios.genders) <= {"F", "M"}


@pytest.mark.parametrize("shares", [0.0, 0.5, 1.0])
def test_recorded_genders_follow_the_shares(shares):
    bios = biographies(150, shares=shares, seed=2)
    women = np.array(bios.genders) == "F"
    for name, share in TABLE_3.items():
        p = 0.5 + shares * (share / 100 - 0.5)
        assert bios.share_of_women[name] == pytest.approx(p)
        count = int(women[np.array(bios.true_occupations) == name].sum())
        assert stats.binomtest(count, 150, p).pvalue > 1e-5, name


@pytest.mark.parametrize("leak", [0.0, 0.4, 1.0])
def test_texts_tell_the_recorded_gender_as_often_as_the_leak_says(leak):
    bios = biographies(80, leak=leak, seed=3)
    same = sum(g == t for g, t in zip(bios.genders, bios.stated_genders, strict=True))
    assert stats.binomtest(same, len(bios.genders), (1 + leak) / 2).pvalue > 1e-5
    for text, gender in zip(bios.texts, bios.stated_genders, strict=True):
        pronoun = r"\b(she|her)\b" if gender == "F" else r"\b(he|his|him)\b"
        other = r"\b(she|her|Ms)\b" if gender == "M" else r"\b(he|his|him|Mr)\b"
        assert re.search(pronoun, text, re.IGNORECASE)
        assert not re.search(other, text, re.IGNORECASE)


def test_the_pull_is_the_log_odds_of_a_text_about_a_woman():
    bios = biographies(1500, leak=0.8, seed=4, occupations=FEW)
    shown = np.array(bios.stated_genders).reshape(3, -1) == "F"
    for name, row in zip(FEW, shown, strict=True):
        p = 0.5 + 0.8 * (TABLE_3[name] / 100 - 0.5)
        assert bios.pull[name] == pytest.approx(math.log(p / (1 - p)))
        odds = math.log(row.mean() / (1 - row.mean()))
        assert odds == pytest.approx(bios.pull[name], abs=4 / math.sqrt(1500 * p * (1 - p)))
    assert set(biographies(1, leak=0).pull.values()) == {0.0}


def test_label_noise_is_of_its_rate_and_uniform_over_the_others():
    bios = biographies(1000, label_noise=0.3, seed=5, occupations=FEW)
    labels, truth = np.array(bios.occupations), np.array(bios.true_occupations)
    for name in FEW:
        given = labels[truth == name]
        assert stats.binomtest(int((given != name).sum()), 1000, 0.3).pvalue > 1e-4
        wrong = [int((given == other).sum()) for other in FEW if other != name]
        assert stats.chisquare(wrong).pvalue > 1e-4
    clean = biographies(1000, seed=5, occupations=FEW)
    assert clean.texts == bios.texts
    assert clean.occupations == clean.true_occupations


def test_same_seed_same_bytes_and_another_seed_other_texts(tmp_path):
    options = {"leak": 0.7, "wording": 0.3, "label_noise": 0.1, "occupations": FEW}
    files = [tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"]
    for file, seed in zip(files, (6, 6, 7), strict=True):
        biographies(20, seed=seed, **options).save(file)
    one, two, three = (file.read_bytes() for file in files)
    assert one == two != three
    assert not set(biographies(20, seed=6).texts) & set(biographies(20, seed=7).texts)


def test_a_text_does_not_depend_on_sizes_or_on_the_other_occupations():
    small = biographies(5, seed=8, occupations=["teacher"])
    large = biographies(9, seed=8, occupations=FEW)
    teachers = [i for i, name in enumerate(large.true_occupations) if name == "teacher"][:5]
    assert small.texts == tuple(large.texts[i] for i in teachers)
    assert small.genders == tuple(large.genders[i] for i in teachers)


def test_the_file_has_the_columns_of_bias_in_bios(tmp_path):
    bios = biographies(4, seed=9, occupations=FEW)
    bios.save(tmp_path / "bios.csv")
    with (tmp_path / "bios.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["hard_text", "profession", "gender"]
    assert tuple(row["hard_text"] for row in rows) == bios.texts
    assert tuple(row["profession"] for row in rows) == bios.occupations
    frame = bios.to_frame()
    assert frame["gender"].tolist() == [row["gender"] for row in rows]
    assert frame["counterfactual"].tolist() == list(bios.counterfactuals)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leak": 1.2}, "leak: expected a number from 0 to 1, got 1.2"),
        ({"leak": float("nan")}, "leak: expected a number from 0 to 1, got nan"),
        ({"shares": -0.1}, "shares: expected a number from 0 to 1, got -0.1"),
        ({"wording": "much"}, "wording: expected a number from 0 to 1, got 'much'"),
        ({"label_noise": True}, "label_noise: expected a number from 0 to 1, got True"),
        ({"per_class": 0}, "per_class: expected a whole number from 1 up, got 0"),
        ({"per_class": 2.5}, "per_class: expected a whole number from 1 up, got 2.5"),
        ({"seed": -1}, "seed: expected a whole number from 0 up, got -1"),
        ({"occupations": []}, "occupations: expected at least one, got none"),
        ({"occupations": "nurse"}, "occupations: expected a list of names, got the text 'nurse'"),
        ({"occupations": ["nurse", "nurse"]}, "expected each once, got 'nurse' twice"),
        ({"occupations": ["nurse"], "label_noise": 0.1}, "at least two occupations to confuse"),
    ],
)
def test_bad_dials_are_named(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        biographies(**{"per_class": 2, **options})


def test_an_unknown_occupation_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="'nurze': did you mean 'nurse'"):
        biographies(2, occupations=["nurze"])
