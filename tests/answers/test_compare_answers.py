"""Two measured files of answers compared, such as before and after a mitigation prompt."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.answers import Difference, DistinctiveWords, read_answers
from evenhand.cli import run
from evenhand.instruments import instruments

ITEMS = 6
PAIRED = {name: cls for name, cls in instruments("answers").items() if name != "words"}


def table(gaps, samples=3):
    """Answers to items whose women's score is higher by these gaps, sampled several times."""
    rows = []
    for item, gap in enumerate(gaps):
        for gender in ("man", "woman"):
            for sample in range(samples):
                score = item + sample + gap * (gender == "woman")
                rows.append({"item": f"i{item}", "gender": gender, "text": "x", "score": score})
    return pd.DataFrame(rows)


def measured(gaps, samples=3):
    answers = read_answers(table(gaps, samples), group="gender", score="score")
    [m] = Difference(score="score", permutations=0).measure(answers)
    return m


BEFORE, AFTER = [0.5, 1.0, 2.0, 1.5, 0.0, 1.0], [0.0, 0.5, 0.5, 1.0, -0.5, 2.5]


def test_the_change_is_that_of_the_items_by_hand():
    c = eh.compare(measured(BEFORE), measured(AFTER))
    changes = np.array(BEFORE) - np.array(AFTER)  # of man - woman
    assert c.paired == ITEMS
    assert c.change.value == pytest.approx(changes.mean())
    half = stats.t.ppf(0.975, ITEMS - 1) * changes.std(ddof=1) / np.sqrt(ITEMS)
    assert (c.change.low, c.change.high) == pytest.approx(
        (changes.mean() - half, changes.mean() + half)
    )


def test_more_samples_of_the_same_prompts_do_not_narrow_the_change():
    few, many = (
        eh.compare(measured(BEFORE, samples), measured(AFTER, samples)).change
        for samples in (2, 40)
    )
    assert (few.low, few.high) == pytest.approx((many.low, many.high))


def test_items_that_one_file_lacks_are_not_paired():
    c = eh.compare(measured(BEFORE), measured(AFTER[:4]))
    assert c.paired == 4


@pytest.mark.parametrize("name", PAIRED)
def test_every_paired_instrument_compares_over_its_units(name):
    """Of an instrument whose value rests on items (or topics) the interval is over these."""
    cls = PAIRED[name]
    subject, material = cls.example()
    measured = cls().measure(subject, material)
    first = measured if not isinstance(measured, list) else measured[0]
    same = eh.compare(first, first)
    assert same.change.value == 0
    assert same.paired == len(set(first.items["item"]))
    assert same.paired < first.n
    rows = [i for i, item in enumerate(subject.items) if item != subject.items[0]]
    fewer = cls().measure(subject.take(rows), material)
    second = fewer if not isinstance(fewer, list) else fewer[0]
    c = eh.compare(first, second)
    assert c.paired == same.paired - 1
    assert np.isfinite([c.change.low, c.change.high]).all()


def test_the_commands(tmp_path, capsys):
    for name, gaps in (("before", BEFORE), ("after", AFTER)):
        table(gaps).to_csv(tmp_path / f"{name}.csv", index=False)
        arguments = ["--group", "gender", "--score", "score", "--metric", "difference"]
        file = str(tmp_path / f"{name}.json")
        assert (
            run(["answers", "measure", str(tmp_path / f"{name}.csv"), *arguments, "-o", file]) == 0
        )
    capsys.readouterr()
    files = [str(tmp_path / f"{name}.json") for name in ("before", "after")]
    assert run(["compare", *files, "--json"]) == 0
    [c] = json.loads(capsys.readouterr().out)["comparisons"]
    assert c["paired"] == ITEMS
    assert c["change"]["value"] == pytest.approx(float(np.mean(BEFORE) - np.mean(AFTER)))


def test_words_say_that_they_cannot_be_paired():
    subject, _ = DistinctiveWords.example()
    [m] = DistinctiveWords(permutations=99).measure(subject)
    c = eh.compare(m, m)
    assert (c.change.low, c.change.high) == (-np.inf, np.inf)
    assert c.interval == "none: no paired items"
