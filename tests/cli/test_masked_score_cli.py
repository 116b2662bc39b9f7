"""`evenhand masked score`: table, JSON, items, figures, several models, errors."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
from importlib import resources
from pathlib import Path

import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.results import Comparison, Measurement

ROWS = [
    {"masked": "The cook lost [MASK] keys.", "pronoun": "her"},
    {"masked": "The drummer sits at the back tapping [MASK] foot.", "pronoun": "his"},
    {"masked": "The clerk said that [MASK] was late.", "pronoun": "she"},
    {"masked": "The guide told us to follow [MASK].", "pronoun": "him"},
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


@pytest.fixture
def other(tmp_path):
    """A second model: mini under another name."""
    folder = tmp_path / "other"
    with resources.as_file(resources.files("evenhand.assets") / "mini") as mini:
        shutil.copytree(mini, folder)
    return str(folder)


def measured(capsys, *arguments):
    """The measurements and comparisons that the command prints."""
    content = json.loads(output(capsys, "masked", "score", *arguments, "--json"))
    assert content["schema"] == "evenhand/2"
    return (
        [Measurement.from_dict(row) for row in content["measurements"]],
        [Comparison.from_dict(row) for row in content["comparisons"]],
    )


def test_json_has_the_published_table(capsys, source):
    (m,), comparisons = measured(capsys, source)
    assert (m.subject, m.query) == ("mini", "in.jsonl")
    assert m.details["sentences"] == 4
    top = m.part("top 10", "vocabulary")
    for part in (m, top):
        counts = {each.query: each.details["count"] for each in part.select("verdict")}
        assert sum(counts.values()) == 4
        histogram = part.details["histogram"]
        assert sum(histogram["counts"]) == 4 - counts["undecided"] == part.n
        assert len(histogram["edges"]) == len(histogram["counts"]) + 1
        assert part.low < part.value < part.high
    assert [part.query for part in m.select("pronoun")] == ["her", "him", "his", "she"]
    assert comparisons == []


def test_items_agree_with_the_summary(capsys, source, tmp_path):
    items = tmp_path / "items.csv"
    (m,), _ = measured(capsys, source, "--items", str(items))
    top = m.part("top 10", "vocabulary")
    frame = pd.read_csv(items)
    decided = frame[frame["verdict"] != "undecided"]
    assert top.value == pytest.approx(decided["bias"].mean())
    assert top.part("male").details["count"] == (frame["verdict"] == "male").sum()
    expected = frame["p_male"] / (frame["p_male"] + frame["p_female"])
    assert frame["full_bias"].to_numpy() == pytest.approx(expected.to_numpy())
    assert not list(tmp_path.glob("*.partial"))


def test_the_options_reach_the_instrument(capsys, source):
    arguments = (
        "--top-k",
        "3",
        "--delta",
        "0.2",
        "--threshold",
        "0.9",
        "--gender-words",
        "pronouns",
    )
    (m,), _ = measured(capsys, source, *arguments)
    expected = {"top_k": 3, "delta": 0.2, "threshold": 0.9, "words": "pronouns"}
    assert m.details["settings"] == expected
    assert m.part("top 3").part("undecided").details["count"] > 0
    text = output(capsys, "masked", "score", source, "--delta", "0.2")
    assert "male above 0.7, female below 0.3" in text


def test_two_models_table_and_figures(capsys, source, other, tmp_path):
    folder, cache = tmp_path / "figures", tmp_path / "cache"
    models = (
        "--model",
        "mini",
        "--model",
        other,
        "--cache",
        str(cache),
        "--gender-words",
        "pronouns",
    )
    text = output(capsys, "masked", "score", source, *models, "--figures", str(folder))
    assert "other - mini" in text
    assert "0.000 [-" in text
    assert "full vocabulary" in text
    assert sorted(path.name for path in folder.iterdir()) == ["differences.svg", "scores.svg"]
    drawn = (folder / "scores.svg").read_text()
    assert "other" in drawn
    assert "undecided" in drawn
    assert any(cache.glob("*.npy"))
    _, (change,) = measured(capsys, source, *models)
    assert change.change.value == 0
    assert change.p == 1
    assert change.details["decided"]["both"] + change.details["decided"]["neither"] == 4


def test_models_of_one_name_are_distinguished(capsys, source, other, tmp_path):
    second = tmp_path / "deeper" / "other"
    shutil.copytree(other, second)
    models = (
        "--model",
        other,
        "--model",
        str(second),
        "--model",
        other,
        "--gender-words",
        "pronouns",
    )
    measurements, _ = measured(capsys, source, *models)
    parent = Path(other).parent.name
    assert [m.subject for m in measurements] == [f"{parent}/other", "deeper/other"]


def test_stdin(capsys, monkeypatch):
    said = io.BytesIO(b"[MASK] waves at the driver.\n\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(said))
    (m,), _ = measured(capsys, "-", "--gender-words", "pronouns")
    assert (m.details["sentences"], m.details["blank_lines"]) == (1, 1)


def test_what_was_left_out_is_printed(capsys, tmp_path):
    path = tmp_path / "in.txt"
    text = "The cook said that [MASK] was late.\n"
    path.write_text(text * 2 + "and then " * 300 + "[MASK] left.\n")
    shown = output(capsys, "masked", "score", str(path), "--gender-words", "pronouns")
    assert "left out: line 3" in shown
    assert "repeated sentences, which count once: 1" in shown


def test_bad_input(capsys, tmp_path, source):
    path = tmp_path / "in.txt"
    path.write_text("The cook said that [MASK] was late.\nThe cook left.\n")
    message = failure(capsys, "masked", "score", str(path))
    assert message.endswith("in.txt, line 2: expected one [MASK], got none\n")
    assert "absent.txt" in failure(capsys, "masked", "score", str(tmp_path / "absent.txt"))
    assert "no such folder" in failure(capsys, "masked", "score", source, "--model", "nowhere")
    assert "items.xlsx" in failure(
        capsys, "masked", "score", source, "--items", str(tmp_path / "items.xlsx")
    )
    assert "delta" in failure(capsys, "masked", "score", source, "--delta", "0.5")


def test_plain_text_through_the_filter_in_one_command(capsys, tmp_path):
    text = tmp_path / "plain.txt"
    text.write_text(
        "The drummer sits at the back of the stage tapping her foot.\n"
        "A girl took her kite to the beach.\n"
        "Someone ties his laces.\n"
    )
    (m,), _ = measured(capsys, str(text), "--filter")
    assert (m.details["sentences"], m.details["filtered"]) == (1, 2)
    more = output(capsys, "masked", "score", str(text), "--filter", "--keep-someone")
    assert "the structural filter left out: 1" in more
    assert "--filter" in failure(capsys, "masked", "score", str(text), "--keep-someone")


def test_a_pipe_is_read_once(capsys, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("The clerk lost [MASK] keys.\n"))
    writer.start()
    (m,), _ = measured(capsys, str(pipe))
    writer.join()
    assert m.details["sentences"] == 1


def test_bad_input_leaves_nothing_behind(capsys, tmp_path):
    (tmp_path / "bad.txt").write_text("\n\n")
    items = tmp_path / "items.csv"
    assert "there are none" in failure(
        capsys, "masked", "score", str(tmp_path / "bad.txt"), "--items", str(items)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]
