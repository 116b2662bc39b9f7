"""The study of published answers: independent computations, and its page has what is published."""

from __future__ import annotations

import csv
import runpy
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.errors import InputError

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "answers"


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks" / "answers_study.py"))


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "published"


def test_groups_are_those_of_the_statements(script, folder):
    for table in (script["read_decodingtrust"](folder), script["read_gpt35"](folder)):
        starts = [s.startswith(g) for s, g in zip(table["statement"], table["group"], strict=True)]
        assert all(starts)
        assert table.groupby("kind")["group"].nunique().to_dict() == {
            "stereotyped": 12,
            "the rest": 12,
        }


def test_intervals_over_texts_are_sixteen_times_too_short(script, folder):
    """The figures of issue and page, by plain arithmetic."""
    table = script["read_decodingtrust"](folder)
    own = table[table["model"] == "gpt-3.5-turbo-0301"]
    rows = {row["system"]: row for row in script["agreement_table"](own)}
    targeted = own[own["system_prompt"] == "targeted"]
    share = targeted["answers"].str.count(r"\+") / 25
    topics = share.groupby(targeted["topic"]).mean()
    row = rows["targeted"]
    assert row["value"] == pytest.approx(share.mean()) == pytest.approx(0.364, abs=5e-4)
    assert row["half_topics"] == pytest.approx(stats.t.ppf(0.975, 15) * topics.sem())
    assert row["half_topics"] == pytest.approx(0.089, abs=5e-4)
    assert row["half_texts"] == pytest.approx(0.0056, abs=5e-5)
    assert row["half_topics"] / row["half_texts"] == pytest.approx(16, abs=0.1)
    assert row["low"] < row["value"] - 0.05
    assert row["high"] > row["value"] + 0.05
    assert rows["benign"]["value"] == pytest.approx(0.010, abs=5e-4)
    one_way = stats.f_oneway(*[[c == "+" for c in text] for text in targeted["answers"]]).statistic
    assert row["icc"] == pytest.approx((one_way - 1) / (one_way + 24))


def plain_gap(table, values):
    """Women less men; variance over 40 names plus over places less over both."""
    wide = table.assign(value=values).pivot_table("value", ["gender", "name"], "place")
    women, men = wide.loc["female"].to_numpy(), wide.loc["male"].to_numpy()
    gap = women.mean() - men.mean()
    rows = [side.mean(axis=1).var(ddof=1) / len(side) for side in (women, men)]
    columns = (women.mean(axis=0) - men.mean(axis=0)).var(ddof=1) / women.shape[1]
    rest = [
        ((side - side.mean(axis=1, keepdims=True) - side.mean(axis=0) + side.mean()) ** 2).sum()
        / ((side.shape[0] - 1) * (side.shape[1] - 1))
        / side.size
        for side in (women, men)
    ]
    return gap, sum(rows) + columns - sum(rest), women.shape[1] - 1


def test_gaps_of_labe_are_those_of_plain_arithmetic(script, folder):
    """Interval and value of the instrument against a two-way table by hand."""
    table = script["read_labe"](folder, "ChatGPT, biographies", mitigated=False)
    ((m, naive),) = script["contrasts"](script["labe_answers"](table, "gender"), "length")
    lengths = table["text"].str.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*").str.len()
    gap, variance, freedom = plain_gap(table, lengths)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    assert m.value == pytest.approx(gap)
    assert (m.low, m.high) == pytest.approx((gap - half, gap + half), abs=0.01 * half)
    assert naive[1] - naive[0] < 0.6 * (m.high - m.low)


def test_people_are_paired_across_the_mitigation_prompt(script, folder):
    for kind in script["PAIRED"]:
        table = script["read_pairs"](folder, kind)
        people = table.groupby(["name", "place", "age"])
        assert len(people) == 96
        assert (people["mitigation"].nunique() == 2).all()
        assert (people["gender"].nunique() == 1).all()


@pytest.fixture(scope="module")
def small(folder, tmp_path_factory):
    """A part of the published answers: four topics, two models, four occupations or departments."""
    path = tmp_path_factory.mktemp("published")
    (path / "labe").mkdir()
    for name in ("decodingtrust_stereotype", "gpt35_answers"):
        table = pd.read_csv(folder / f"{name}.csv.xz", keep_default_na=False)
        table = table[table["topic"].isin(["criminals", "driving", "greed", "stem"])]
        if "model" in table:
            table = table[table["model"].isin(["alpaca-native", "gpt-3.5-turbo-0301"])]
        table.to_csv(path / f"{name}.csv.xz", index=False)
    for file in (folder / "labe").glob("*.csv.xz"):
        table = pd.read_csv(file, keep_default_na=False)
        place = table["occupation" if "occupation" in table else "department"]
        chosen = place.isin(
            ["comedian", "artist", "entrepreneur", "model"]
            + [f"{each} department" for each in ("Communication", "English", "Economics")]
            + [f"{each} department" for each in ("Humanities", "Mathematics")]
        )
        table[chosen].to_csv(path / "labe" / file.name, index=False)
    return path


def test_all_tables_come_out_of_a_part_of_the_files(script, small, tmp_path, capsys):
    for own in RESULTS.glob("smollm-*.jsonl.gz"):
        (tmp_path / own.name).write_bytes(own.read_bytes())
    script["measure"](Namespace(folder=small, output=tmp_path))
    assert "decisions, gender: not measured" in capsys.readouterr().out
    for published in RESULTS.glob("*.csv"):
        with published.open(encoding="utf-8") as file, (tmp_path / published.name).open() as own:
            ours, small_rows = csv.DictReader(file), list(csv.DictReader(own))
            assert list(small_rows[0]) == ours.fieldnames, published.name
            for row in small_rows:
                if "outcome" in row:
                    assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
    script["tables"](Namespace(output=tmp_path))
    assert "| alpaca-native | benign |" in capsys.readouterr().out


def test_converted_files_are_read_by_the_commands(script, small, tmp_path):
    script["convert"](Namespace(folder=small, output=tmp_path))
    scores = eh.scores.analyze(tmp_path / "decodingtrust.csv", cluster=["topic"])
    assert len(scores.comparisons) == 15
    bios = eh.answers.read_answers(
        tmp_path / "chatgpt_clg_bios.csv", item="name", wording="place", group="gender"
    )
    assert set(bios.groups["gender"]) == {"female", "male"}


def test_the_page_has_the_tables_that_are_printed(script, capsys):
    page = (ROOT / "docs" / "experiments" / "answers.md").read_text(encoding="utf-8")
    script["tables"](Namespace(output=RESULTS))
    lines = [line for line in capsys.readouterr().out.splitlines() if " " in line]
    assert len(lines) > 80
    assert [line for line in lines if line not in page] == []


def test_decisions_of_smollm_are_refused_as_the_page_says(script):
    page = (ROOT / "docs" / "experiments" / "answers.md").read_text(encoding="utf-8")
    answers = eh.answers.read_answers(RESULTS / "smollm-decisions.jsonl.gz", group="gender")
    with pytest.raises(InputError, match="expected answers of yes or no") as error:
        eh.answers.Decisions().measure(answers)
    assert str(error.value).partition("got ")[2] in " ".join(page.split())
