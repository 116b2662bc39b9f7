"""`evenhand rewrite …` as a user of the shell meets it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli import run
from evenhand.cli.options import worker_count

TEXT = "Her neighbour waved to her.\n\nIt rained.\nHe's here.\n"
SWAPPED = "His neighbour waved to him.\n\nIt rained.\nShe's here.\n"


@pytest.fixture
def shell(capsys, monkeypatch, tmp_path):
    """Runs a command in an empty folder; gives its code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(["rewrite", *arguments])
        return code, *capsys.readouterr()

    return go


def test_a_filter_from_stdin_to_stdout(shell):
    assert shell("swap", stdin=TEXT) == (0, SWAPPED, "")
    assert shell("swap", "-", stdin=TEXT) == (0, SWAPPED, "")
    assert shell("neutralize", stdin="She runs and sings.\n")[1] == "They run and sing.\n"
    said = "Marie Curie spoke. Curie was thanked.\n"
    assert shell("anonymize", stdin=said)[1] == "E1 E2 spoke. E2 was thanked.\n"
    assert shell("substitute", "--rewrite-share", "1", stdin="She left.\n")[1] == "He left.\n"


def test_several_files_one_after_the_other(shell):
    Path("a.txt").write_text("She\n")
    Path("b.txt").write_text("He")
    assert shell("swap", "a.txt", "b.txt") == (0, "He\nShe", "")


def test_output_file_edits_and_the_way_back(shell):
    Path("in.txt").write_text(TEXT)
    code, out, err = shell("swap", "in.txt", "-o", "out.txt", "--edits", "edits.jsonl")
    assert (code, out) == (0, "")
    assert err == "2 of 4 documents changed, 3 edits (pronoun 3) → out.txt\n"
    assert Path("out.txt").read_text() == SWAPPED
    edits = [json.loads(line) for line in Path("edits.jsonl").read_text().splitlines()]
    assert edits[1] == {
        "document": 0,
        "source": "in.txt",
        "line": 1,
        "offset": 23,
        "rule": "pronoun",
        "before": "her",
        "after": "him",
    }
    assert shell("undo", "out.txt", "edits.jsonl", "-o", "back.txt")[0] == 0
    assert Path("back.txt").read_bytes() == Path("in.txt").read_bytes()


def test_json_is_the_counts_alone(shell):
    Path("in.txt").write_text(TEXT)
    code, out, err = shell("swap", "in.txt", "-o", "out.txt", "--json")
    reported = json.loads(out)
    assert (code, err, reported["schema"]) == (0, "", "evenhand/2")
    assert (reported["documents"], reported["changed"], reported["edits"]) == (4, 2, 3)
    assert reported["rules"] == {"pronoun": 3}


def test_records_keep_every_other_byte(shell):
    Path("in.jsonl").write_text('{"id": 1.50, "text": "She \\u2014 left", "x":"she"}\n')
    assert shell("swap", "in.jsonl", "--text", "text")[1] == (
        '{"id": 1.50, "text": "He \\u2014 left", "x":"she"}\n'
    )
    Path("in.csv").write_text('a,text\r\nshe,"She ""left"",\nthen"\r\n')
    assert shell("swap", "in.csv", "--text", "text", "-o", "out.csv")[0] == 0
    assert Path("out.csv").read_bytes() == b'a,text\r\nshe,"He ""left"",\nthen"\r\n'


def test_direction_has_short_names(shell):
    assert shell("swap", "--direction", "m2f", stdin="He, she\n")[1] == "She, she\n"
    assert shell("swap", "--direction", "female→male", stdin="He, she\n")[1] == "He, he\n"


def test_append_keeps_the_original(shell):
    assert shell("swap", "--append", stdin="She.\nIt.\n")[1] == "She.\nHe.\nIt.\n"


def test_compressed_in_and_out(shell):
    Path("in.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert shell("swap", "in.gz", "-o", "out.bz2")[0] == 0
    assert bz2.decompress(Path("out.bz2").read_bytes()).decode() == SWAPPED
    assert shell("swap", "out.bz2", "-o", "back.zst")[0] == 0
    assert shell("swap", "back.zst")[1] == SWAPPED


def test_processes_keep_the_order(shell, tmp_path):
    lines = [f"{i} she saw {'his' if i % 3 else 'her'} dog\n" for i in range(40_000)]
    Path("in.txt").write_text("".join(lines))
    assert shell("swap", "in.txt", "-o", "one.txt")[0] == 0
    assert shell("swap", "in.txt", "-o", "two.txt", "--workers", "2")[0] == 0
    assert Path("one.txt").read_bytes() == Path("two.txt").read_bytes()


def test_short_input_has_one_process_and_long_input_one_per_core(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    file = tmp_path / "in.txt"
    file.write_text("She left.\n")
    assert worker_count(None, ["-"]) == worker_count(None, [str(file)]) == 1
    assert worker_count(2, [str(file)]) == 2
    monkeypatch.setattr("evenhand.cli.options.SHORT", 5)
    assert worker_count(None, [str(file)]) == worker_count(None) == 3


def test_a_restart_does_not_resume(shell, monkeypatch):
    given = []
    monkeypatch.setattr(
        "evenhand.text.corpus.pipeline.stream",
        lambda *_, restart, **__: given.append(restart) or {"documents": 0},
    )
    Path("in.txt").write_text("She left.\n")
    assert shell("swap", "in.txt", "-o", "out.txt")[0] == 0
    assert shell("swap", "in.txt", "-o", "out.txt", "--restart")[0] == 0
    assert given == [False, True]


def test_bytes_that_are_not_text_stay_if_requested(shell, tmp_path):
    Path("in.txt").write_bytes(b"she \xff\xfe\x00 met with \xe2\x80\x9cher\xe2\x80\x9d.\r\n")
    assert shell("swap", "in.txt", "-o", "out.txt")[0] == 2
    assert shell("swap", "in.txt", "-o", "out.txt", "--encoding", "utf-8-lenient")[0] == 0
    swapped = b"he \xff\xfe\x00 met with \xe2\x80\x9chim\xe2\x80\x9d.\r\n"
    assert Path("out.txt").read_bytes() == swapped


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["swap", "absent.txt"], "absent.txt: No such file or directory"),
        (["swap", "in.txt", "-o", "in.txt"], "in.txt: is an input"),
        (["swap", "in.txt", "-o", "nowhere/out.txt"], "expected a file in a folder that exists"),
        (["swap", "in.txt", "--kind", "planets"], "kinds: expected some of"),
        (["swap", "in.txt", "--tagger", "oracle"], "unknown judge 'oracle'"),
        (["swap", "in.txt", "--tagger", "spacy:none"], "spacy"),
        (["swap", "in.txt", "--text", "text"], "--text needs a file ending in"),
        (["swap", "in.txt", "--json"], "--json needs -o"),
        (["swap", "in.csv", "--text", "texts"], "in.csv, line 1: no column 'texts'"),
        (["swap", "bad.jsonl", "--text", "text"], "bad.jsonl, line 2"),
        (["swap", "in.txt", "--pairs", "pairs.csv"], "pairs.csv, line 1"),
        (["swap", "in.txt", "--rewrite-share", "1.5"], "1.5 is not in the range"),
        (["anonymize", "in.txt", "--entities", "x"], "unknown finder of names 'x'"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(shell, arguments, message):
    Path("in.txt").write_text(TEXT)
    Path("in.csv").write_text("id,text\n1,she\n")
    Path("bad.jsonl").write_text('{"text": "she"}\n{"text": 3}\n')
    Path("pairs.csv").write_text("woman;man\nshe;he\n")
    before = sorted(Path().iterdir())
    code, out, err = shell(*arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("error: ")
    assert message in err
    assert out == "" or "bad" in arguments[1]
    assert sorted(Path().iterdir()) == before


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    source = tmp_path / "in.txt"
    source.write_text("She left.\n" * 300_000)
    script = "import sys; from evenhand.cli import run; sys.exit(run(sys.argv[1:]))"
    writer = subprocess.Popen(
        [sys.executable, "-c", script, "rewrite", "swap", str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"He left.\n"
    writer.stdout.close()
    assert writer.stderr is not None
    assert writer.stderr.read() == b""
    writer.stderr.close()
    writer.wait()


TABLE = "id,gender,job,bio\n1,F,stewardess,She has flown for years.\n2,M,king,It rained a lot.\n"


def test_of_a_table_only_the_column_of_texts_is_rewritten(shell):
    Path("in.csv").write_text(TABLE)
    code, out, err = shell("swap", "in.csv")
    assert (code, out) == (0, TABLE.replace("She has", "He has"))
    assert err == "in.csv: the text is in 'bio' (--text names another)\n"
    Path("in.jsonl").write_text('{"who": "queen", "text": "She has flown for years."}\n')
    assert shell("swap", "in.jsonl")[1] == '{"who": "queen", "text": "He has flown for years."}\n'
    assert shell("swap", "in.csv", "--input-format", "lines")[1].startswith(
        "id,gender,job,bio\n1,F,steward,He"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "a,b\nshe,he\n",
            "in.csv: which column is the text? Name it with --text; --input-format lines takes "
            "every line as it is (columns: a, b)",
        ),
        (
            "id,title,text\n1,She and a dog there,He ran all the way\n",
            "in.csv: which is the text: title, text? Name it with --text; --input-format lines "
            "takes every line as it is (columns: id, title,",
        ),
    ],
)
def test_where_several_or_no_columns_are_texts_the_columns_are_listed(shell, content, problem):
    Path("in.csv").write_text(content)
    code, out, err = shell("swap", "in.csv")
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {problem}")
    assert err.count("\n") == 1


def test_the_gender_of_a_swapped_record_is_swapped(shell):
    Path("in.csv").write_text(TABLE)
    swapped = (
        "id,gender,job,bio\n1,M,stewardess,He has flown for years.\n2,M,king,It rained a lot.\n"
    )
    assert shell("swap", "in.csv", "--text", "bio", "--flip", "gender")[1] == swapped
    to_female = ("--direction", "male-to-female", "--flip", "gender")
    assert shell("swap", "in.csv", "--text", "bio", *to_female)[1] == TABLE
    both = shell("swap", "in.csv", "--text", "bio", "--flip", "gender", "--append")[1]
    assert both.splitlines()[1:3] == [TABLE.splitlines()[1], swapped.splitlines()[1]]
    Path("in.jsonl").write_text(
        '{"sex": "Woman", "text": "She left."}\n{"sex": null, "text": "He"}\n'
    )
    out = shell("swap", "in.jsonl", "--text", "text", "--flip", "sex")[1]
    assert out == '{"sex": "Man", "text": "He left."}\n{"sex": null, "text": "She"}\n'


def test_a_flipped_record_can_be_restored(shell):
    Path("in.csv").write_text(TABLE)
    swap = ("swap", "in.csv", "--text", "bio", "--flip", "gender")
    assert shell(*swap, "-o", "out.csv", "--edits", "e.jsonl")[0] == 0
    assert shell("undo", "out.csv", "e.jsonl", "--text", "bio", "-o", "back.csv")[0] == 0
    assert Path("back.csv").read_text() == TABLE


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["in.csv", "--flip", "sex"],
            "in.csv, line 1: no column 'sex' (columns: id, gender, job, bio)",
        ),
        (
            ["in.csv", "--flip", "id"],
            "in.csv, line 2: column 'id': expected a gender (m/f, male/female",
        ),
        (["in.txt", "--flip", "gender"], "--flip goes with JSONL and CSV, not with lines"),
    ],
)
def test_a_column_that_cannot_be_flipped_is_one_line(shell, options, problem):
    Path("in.csv").write_text(TABLE)
    Path("in.txt").write_text("She left.\n")
    code, _, err = shell("swap", *options)
    assert code == 2
    assert problem in err
    assert err.splitlines()[-1].startswith("error: ")


def test_a_text_can_be_given_as_an_argument(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["rewrite", "swap", "Her neighbour waved to her.", "corpus.txt"]) == 2
    assert "expected files or texts, got both" in capsys.readouterr().err
    assert run(["rewrite", "swap", "Her neighbour waved to her."]) == 0
    assert capsys.readouterr().out == "His neighbour waved to him.\n"
    assert run(["rewrite", "neutralize", "Does she know that he runs?"]) == 0
    assert capsys.readouterr().out == "Do they know that they run?\n"
    assert run(["rewrite", "swap", "my corpus.txt"]) == 2
    assert "No such file" in capsys.readouterr().err
