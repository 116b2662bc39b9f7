"""`evenhand odds` and `evenhand lab annotate` as their users meet them."""

import io
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.results import load

ROWS = [("pilot", "M")] * 6 + [("pilot", "F")] * 2 + [("nurse", "M")] * 3 + [("nurse", "F")] * 9
ROWS += [("cook", "M")] * 4 + [("cook", "X")]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "jobs.csv"
    pd.DataFrame(ROWS, columns=["job", "sex"]).to_csv(path, index=False)
    return str(path)


def test_odds_as_a_table(capsys, table):
    text = output(capsys, "odds", table, "--label", "job", "--gender", "sex")
    male, female = text.split("Leaning female")
    assert "cook*" in male
    assert "pilot" in male
    assert "nurse" in female
    assert "25 rows: 13 male, 11 female, 1 left out" in text
    assert "left out: gender 'X': 1" in text
    assert "one half added" in text
    exact = output(capsys, "odds", table, "--label", "job", "--gender", "sex", "--exact")
    assert "∞" in exact


def test_odds_as_json(capsys, table):
    document = json.loads(
        output(
            capsys,
            "odds",
            table,
            "--label",
            "job",
            "--gender",
            "sex",
            "--json",
            "--top",
            "1",
        )
    )
    assert document["schema"] == "evenhand/2"
    (measurement,) = document["measurements"]
    parts = measurement["parts"]
    assert [part["query"] for part in parts] == ["cook", "pilot", "nurse"]
    assert parts[1]["value"] == pytest.approx((6 / 7) / (2 / 9))
    assert parts[0]["details"]["exact_high"] is None
    assert document["leaning_male"] == ["cook"]
    assert document["leaning_female"] == ["nurse"]
    assert measurement["details"]["left_out"] == {"gender 'X'": 1}


def test_odds_are_written(capsys, table, tmp_path):
    items, shown, saved = (tmp_path / name for name in ("all.csv", "shown.csv", "odds.json"))
    odds = ("odds", table, "--label", "job", "--top", "1")
    text = output(capsys, *odds, "--items", str(items), "-o", str(shown))
    assert f"3 classes written to {items}" in text
    frame = pd.read_csv(items)
    assert frame["class"].tolist() == ["cook", "pilot", "nurse"]
    assert frame["exact_high"][0] == float("inf")
    frame = pd.read_csv(shown)
    assert frame["name"].str.rstrip("*").tolist() == ["cook", "nurse"]
    assert frame["table"].tolist() == ["Leaning male", "Leaning female"]
    output(capsys, *odds, "-o", str(saved))
    assert len(load(saved).select("class")) == 3


def test_odds_do_not_overwrite_the_table(capsys, table, tmp_path):
    before = (tmp_path / "jobs.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    for path in (table, str(tmp_path / "link.csv")):
        for option in ("-o", "--items"):
            message = failure(capsys, "odds", table, "--label", "job", option, path)
            assert f"{path}: is an input" in message
    assert (tmp_path / "jobs.csv").read_bytes() == before


def test_odds_with_codes_and_from_stdin(capsys, table, tmp_path, monkeypatch):
    content = (tmp_path / "jobs.csv").read_bytes().replace(b",M", b",0").replace(b",F", b",1")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))
    document = json.loads(
        output(
            capsys,
            "odds",
            "-",
            "--label",
            "job",
            "--gender",
            "sex",
            "--male",
            "0",
            "--female",
            "1",
            "--json",
        )
    )
    (measurement,) = document["measurements"]
    counts = measurement["details"]["counts"]
    assert counts == {"read": 25, "male": 13, "female": 11, "left_out": 1}
    assert measurement["subject"] == "<stdin>"


def test_odds_from_pronouns(capsys, tmp_path):
    path = tmp_path / "t.jsonl"
    texts = {"M": "He did his best.", "F": "She did her best.", "X": "They did."}
    lines = [json.dumps({"job": job, "bio": texts[sex]}) for job, sex in ROWS]
    path.write_text("\n".join(lines))
    text = output(capsys, "odds", str(path), "--label", "job", "--text", "bio")
    assert "majority of the pronouns in column 'bio'" in text
    assert "left out: undecided: no gendered pronoun: 1" in text


def test_labels_with_brackets_are_printed_as_they_are(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("job,sex\n[bold]x,M\n[/b],F\n[/b],M\n[bold]x,F\n[bold]x,M\n")
    text = output(capsys, "odds", str(path), "--label", "job", "--gender", "sex")
    assert "[bold]x" in text
    assert "[/b]" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "jb", "--gender", "sex"), "unknown column 'jb': did you mean 'job'?"),
        (("--label", "job", "--gender", "gender"), "unknown column 'gender'"),
        (("--label", "job", "--gender", "sex", "--male", "0", "--female", "1"), "no row is male"),
        (("--label", "job", "--gender", "sex", "--male", "F"), "got 'f' for both"),
        (("--label", "job", "--gender", "sex", "-o", "x.txt"), "expected a file that ends in .csv"),
        (("--label", "job", "--gender", "sex", "-o", "/no/such/x.csv"), "/no/such/x.csv"),
        (("--label", "job", "--prob", "1"), "--prob"),
        (("--gender", "sex"), "expected label, the column"),
        (("--label", "sex", "--text", "job"), "no row is male"),
    ],
)
def test_bad_arguments_are_one_line(capsys, table, arguments, message):
    assert message in failure(capsys, "odds", table, *arguments)


def test_bad_files_are_one_line(capsys, tmp_path):
    calls = ("--label", "job", "--gender", "sex")
    assert "no/such.csv" in failure(capsys, "odds", "no/such.csv", *calls)
    assert str(tmp_path) in failure(capsys, "odds", str(tmp_path), *calls)
    path = tmp_path / "t.jsonl"
    path.write_text('{"job": "pilot", "sex": "M"}\n{"job": "pilot", sex: "M"}\n')
    assert f"{path}, line 2: not valid JSON" in failure(capsys, "odds", str(path), *calls)


@pytest.fixture
def sheets(capsys, tmp_path):
    accepted = tmp_path / "accepted.jsonl"
    accepted.write_text(
        "".join(
            json.dumps(
                {
                    "line": i,
                    "sentence": f"Coach {i} lost her way.",
                    "pronoun": "her",
                    "masked": f"Coach {i} lost [MASK] way.",
                    "antecedent": f"Coach {i}",
                    "confidence": 0.8,
                    "source": "a.txt",
                }
            )
            + "\n"
            for i in range(10)
        )
    )
    sheet = tmp_path / "sheet.csv"
    text = output(capsys, "lab", "annotate", "sheet", str(accepted), "-o", str(sheet))
    assert "10 sentences written" in text
    frame = pd.read_csv(sheet)
    paths = []
    for name, yes in (("ann", 10), ("ben", 9), ("cleo", 8)):
        frame.assign(verdict=["yes"] * yes + ["no"] * (10 - yes)).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
        paths.append(str(tmp_path / f"{name}.csv"))
    return paths


def test_annotate_reads_sheets_back(capsys, sheets, tmp_path):
    path = tmp_path / "judged.jsonl"
    text = output(capsys, "lab", "annotate", "read", *sheets, "--items", str(path))
    assert "9 structural (yes by 2 of 3 or more), 1 not, 0 undecided" in text
    assert "fleiss_kappa" in text
    assert [json.loads(line)["verdict"] for line in path.read_text().splitlines()] == [
        "yes"
    ] * 9 + ["no"]
    document = json.loads(
        output(
            capsys,
            "lab",
            "annotate",
            "read",
            *sheets,
            "--majority",
            "3",
            "--json",
            "--filtered",
            str(tmp_path / "accepted.jsonl"),
        )
    )
    assert document["schema"] == "evenhand/2"
    (measurement,) = document["measurements"]
    details = measurement["details"]
    assert details["counts"] == {"sentences": 10, "yes": 8, "no": 2, "undecided": 0}
    assert [m["metric"] for m in measurement["parts"]] == ["fleiss_kappa", "krippendorff_alpha"]
    assert details["annotators"]["ben"] == {"yes": 9, "no": 1, "empty": 0, "absent": 0}


def test_annotate_errors_are_one_line(capsys, sheets, tmp_path):
    accepted = str(tmp_path / "accepted.jsonl")
    command = ("lab", "annotate")
    assert "Missing option '-o' / '--out'" in failure(capsys, *command, "sheet", accepted)
    assert "expected 1 to 10 sentences, got 11" in failure(
        capsys, *command, "sheet", accepted, "-o", str(tmp_path / "x.csv"), "--sample", "11"
    )
    assert "majority: expected 1 to 3" in failure(
        capsys, *command, "read", *sheets, "--majority", "4"
    )
    assert "twice" in failure(capsys, *command, "read", sheets[0], sheets[0])
    for arguments in (("sheet", accepted, "-o", accepted), ("read", *sheets, "--items", sheets[1])):
        before = Path(arguments[-1]).read_bytes()
        assert "is an input" in failure(capsys, *command, *arguments)
        assert Path(arguments[-1]).read_bytes() == before
    assert "SHEET" in failure(capsys, *command, "read")
    assert "no.csv" in failure(capsys, *command, "read", "no.csv")


@pytest.mark.parametrize(
    "command", [("odds",), ("lab", "annotate", "sheet"), ("lab", "annotate", "read")]
)
def test_text_help_teaches(capsys, command):
    text = output(capsys, *command, "--help")
    assert f"Usage: evenhand {' '.join(command)} [OPTIONS]" in text
    assert "Example" in text
