"""`evenhand lab generate` as a user meets it: sentences, summary, errors."""

import json

import pytest
from cli_shell import failure, output

from evenhand.results import Measurement
from evenhand.text.structural import Accepted, Filter

TEXT = """The cook put her spoon on the table.
The girl lost her book.
The coach raised his arm and smiled.
"""
QUICK = ("--max-edits", "1", "--tried", "12")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    path = tmp_path_factory.mktemp("generate") / "seeds.txt"
    path.write_text(TEXT)
    return path


def test_sentences_and_summary(capsys, seeds, tmp_path):
    made = tmp_path / "made.jsonl"
    message = json.loads(
        output(capsys, "lab", "generate", str(seeds), "-o", str(made), "--toward", "both",
               "--judge", "mini", "--json", *QUICK)
    )  # fmt: skip
    rows = [json.loads(line) for line in made.read_text().splitlines()]
    assert (message["schema"], message["command"]) == ("evenhand/2", "masked generate")
    assert (message["read"], message["searches"], message["left_out"]) == (
        3,
        4,
        {"other_indicator": 1},
    )
    assert message["generated"] == len(rows) > 0
    assert message["generated"] + sum(message["nothing"].values()) == 4
    measured = [Measurement.from_dict(row) for row in message["measurements"]]
    results = [m for m in measured if m.metric == "generation"]
    held_out = [m for m in measured if m.metric == "continuation"]
    assert [m.details["score"] for m in held_out] == ["held-out continuations"] * 4
    assert "continuations that the search never scored" in message["sentence"]
    assert [(m.subject, m.query) for m in results] == [
        ("mini", "male"),
        ("mini", "female"),
    ] * 2
    pushes = [m.part("found").part("push").value for m in results]
    assert pushes[:2] == pytest.approx(pushes[2:], abs=1e-5)
    for row in rows:
        assert list(row)[:9] == ["line", "source", "sentence", "masked", "pronoun", "offset",
                                 "antecedent", "confidence", "resolver"]  # fmt: skip
        assert isinstance(Filter().sentence(row["sentence"]), Accepted)
        assert row["seed"] in TEXT
        assert len(row["edits"]) == 1
        gain = row["bias_after"] - row["bias_before"]
        assert gain * (1 if row["direction"] == "male" else -1) >= 0.01 - 1e-9
    scored = json.loads(
        output(capsys, "measure", "pronouns", "mini", "--data", str(made), "--json")
    )
    assert scored["measurements"][0]["details"]["sentences"] == len(rows)
    sheet = tmp_path / "sheet.csv"
    output(capsys, "lab", "annotate", "sheet", str(made), "-o", str(sheet))
    assert sheet.read_text(encoding="utf-8-sig").count("\n") == len(rows) + 1


def test_a_table_for_reading_and_lines_on_stdout(capsys, seeds, tmp_path):
    made = tmp_path / "made.jsonl"
    shown = output(capsys, "lab", "generate", str(seeds), "-o", str(made), "--limit", "1",
                   *QUICK)  # fmt: skip
    assert "searches" in shown
    assert "found - random" in shown
    assert "maximised by the search" in shown
    assert "continuations that the search never scored" in shown
    plain = output(capsys, "lab", "generate", str(seeds), "--limit", "1", "--no-control-edits",
                   *QUICK)  # fmt: skip
    assert plain == made.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.txt",), "no.txt"),
        (("EMPTY",), "expected sentences"),
        (("SEEDS", "--model", "no-such-model"), "no such folder"),
        (("SEEDS", "--max-edits", "4"), "edits"),
        (("SEEDS", "--fluency", "0.5"), "fluency"),
        (("SEEDS", "--toward", "up"), "toward"),
        (("SEEDS", "--judge", "no-such-model"), "no-such-model"),
        (("SEEDS", "--resolver", "magic"), "magic"),
        (("SEEDS", "-o", "no/such/folder/out.jsonl"), "no/such/folder"),
    ],
)
def test_bad_input_is_one_line(capsys, seeds, tmp_path, arguments, message):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    places = {"SEEDS": str(seeds), "EMPTY": str(empty)}
    given = [places.get(argument, argument) for argument in arguments]
    assert message in failure(capsys, "lab", "generate", *given)


def test_a_file_without_seeds_is_message(capsys, tmp_path):
    path = tmp_path / "none.txt"
    path.write_text("It rains.\n")
    assert "1 read" in failure(capsys, "lab", "generate", str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"sentence": "\\ud800 The cook dropped her spoon."}', "half of a surrogate pair"),
        ('{"sentence": ' + "[" * 100_000, "expected a JSON object"),
    ],
)
def test_odd_records_are_reported_in_one_line(capsys, tmp_path, line, message):
    path = tmp_path / "odd.jsonl"
    path.write_text(line + "\n")
    assert message in failure(capsys, "lab", "generate", str(path))
