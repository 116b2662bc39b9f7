"""The printers of measurements and comparisons."""

import re
from dataclasses import replace

from evenhand.cli.output import (
    p_text,
    print_comparisons,
    print_measurements,
    recording,
    table,
)
from evenhand.cli.tables import width
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.wording import interval, number

MEASUREMENT = Measurement(
    metric="mac",
    query="gender",
    subject="glove",
    value=0.5,
    low=0.25,
    high=float("inf"),
    n=12,
    ideal=1.0,
    worse="lower",
    interval="",
    p_value=0.00002,
)
PART = replace(MEASUREMENT, query="home", by="category", value=0.125)


def test_numbers_for_reading():
    assert number(-0.0001) == "0.000"
    assert number(None) == number(float("nan")) == "–"
    assert interval(-float("inf"), 1.5) == "[−∞, 1.500]"
    assert [p_text(p) for p in (None, 0.25, 0.0004)] == ["–", "0.250", "< 0.001"]


def test_columns_that_would_be_empty_are_left_out(capsys):
    print_measurements("Title", [MEASUREMENT])
    text = capsys.readouterr().out
    assert "null" not in text
    assert "left out" not in text
    assert "subject" not in text
    assert "[0.250, ∞]" in text
    other = replace(MEASUREMENT, subject="other", left_out=("a", "b", "c", "d"))
    print_measurements("Title", [MEASUREMENT, other])
    text = capsys.readouterr().out
    assert "a, b, c +1" in text
    assert "subject" in text


def test_parts_are_indented_on_request(capsys):
    whole = replace(MEASUREMENT, parts=(replace(PART, parts=(replace(PART, by="word"),)),))
    print_measurements("Title", [whole])
    assert "category" not in capsys.readouterr().out
    print_measurements("Title", [whole], parts=True)
    text = capsys.readouterr().out
    assert "  category: home" in text
    assert "word: home" not in text


def test_the_legend_says_which_p_values_are_corrected(capsys):
    raw = replace(MEASUREMENT, p_value=0.01)
    corrected = replace(PART, p_value=0.01, p_corrected=0.03, family=3)
    print_measurements("Title", [replace(corrected, by="")])
    assert "p: corrected for 3 tests (Holm)." in capsys.readouterr().out
    print_measurements("Title", [replace(raw, parts=(corrected,))], parts=True)
    assert "p: corrected for families of 1 and 3 tests (Holm)." in capsys.readouterr().out


def test_comparisons_with_p_and_parts(capsys):
    change = Estimate(value=-0.5, low=-0.75, high=-0.25)
    part = Comparison(
        before=PART, after=PART, change=change, interval="", paired=3, p_value=0.03, kind="ratio"
    )
    print_comparisons("Title", [part])
    text = capsys.readouterr().out
    assert "ratio" in text
    assert "0.030" in text
    whole = replace(
        part, before=MEASUREMENT, after=MEASUREMENT, kind="difference", p_value=None, parts=(part,)
    )
    print_comparisons("Title", [whole])
    text = capsys.readouterr().out
    assert " p " not in text
    assert "category" not in text
    print_comparisons("Title", [whole], parts=True)
    assert "  category: home" in capsys.readouterr().out


def test_comparisons_say_when_the_other_side_of_the_ideal_is_reached(capsys):
    before, after = (replace(MEASUREMENT, value=x, ideal=0.5, worse="away") for x in (0.7, 0.4))
    change = Estimate(value=-0.3, low=-0.35, high=-0.25)
    print_comparisons(
        "Title", [Comparison(before=before, after=after, change=change, interval="", paired=3)]
    )
    text = " ".join(capsys.readouterr().out.split())
    assert "nearer the ideal, on its other side" in text


def test_a_wide_table_is_not_cut(capsys):
    table("Title", ("name", "value"), [("x" * 90, "0.125"), ("y", "[-1.250, ∞]")])
    text = capsys.readouterr().out
    assert "x" * 90 in text
    assert "[-1.250, ∞]" in text


def test_long_texts_are_wrapped_and_columns_stay_aligned(capsys):
    words = "many words " * 30
    table("Title", ("name", "text", "value"), [("名前", words, "0.125"), ("e\u0301", "x", "-1.5")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(width, lines)) <= 160
    assert " ".join(lines).count("many") == 30
    assert lines[4].index("many") + 2 == lines[-2].index("x") - 1  # two wide letters, one accent
    assert lines[4].rstrip().endswith("0.125")
    assert lines[-2].endswith("-1.5")


def test_of_many_parts_the_extremes_are_printed_and_all_are_saved(tmp_path, capsys):
    def part(number, by="word", parts=()):
        return Measurement(
            metric="m",
            query=f"q{number:02}",
            by=by,
            value=float(number),
            low=0.0,
            high=1.0,
            n=1,
            ideal=0.0,
            worse="away",
            interval="bootstrap",
            parts=tuple(parts),
        )

    many = [part(i, parts=[part(100 + i, by="estimate")]) for i in range(30)]
    few = [part(i, by="template") for i in range(50, 53)]
    result = part(99, by="", parts=[*many, *few])
    with recording() as record:
        print_measurements("title", [result], parts=True)
    printed = capsys.readouterr().out
    shown = {int(number) for number in re.findall(r"q(\d+)", printed)}
    assert shown == {*range(5), *range(25, 30), 50, 51, 52, 99}
    assert "5 highest and 5 lowest by word of 30" in " ".join(printed.split())
    [(_, rows)] = record.tables
    assert len(rows) == 1 + 30 + 30 + 3
