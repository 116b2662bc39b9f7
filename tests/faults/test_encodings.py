"""Input that is not UTF-8 is refused by its name, or read with --encoding."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from cli_shell import failure, output

from evenhand.errors import FileError, InputError
from evenhand.files import guess_encoding, reading
from evenhand.lexicon.gendered import read_pairs
from evenhand.text.corpus.pipeline import RewriteWork, stream
from evenhand.text.rewrite.swap import Swap

pytestmark = pytest.mark.slow

SENTENCES = "The café of the jalapeño was full.\nShe said that her brother was late.\n" * 40
SWAPPED = "The café of the jalapeño was full.\nHe said that his sister was late.\n" * 40
CHINESE = "護士說她遲到了。她哥哥也遲到了。\nshe reads.\n" * 40

NAMES = {
    "utf-16": "UTF-16: --encoding utf-16",
    "utf-16-le": "UTF-16 without a byte order mark: --encoding utf-16-le",
    "utf-16-be": "UTF-16 without a byte order mark: --encoding utf-16-be",
    "utf-32": "UTF-32: --encoding utf-32",
    "utf-32-le": "UTF-32 without a byte order mark: --encoding utf-32-le",
    "utf-32-be": "UTF-32 without a byte order mark: --encoding utf-32-be",
    "latin-1": "Latin-1: --encoding latin-1",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("encoding", NAMES)
@pytest.mark.parametrize(
    "command",
    ["rewrite swap", "rewrite neutralize", "rewrite anonymize", "rewrite substitute", "filter"],
)
def test_another_encoding_is_refused_by_its_name(capsys, encoding, command):
    Path("in.txt").write_bytes(SENTENCES.encode(encoding))
    error = failure(capsys, *command.split(), "in.txt", "-o", "out.txt")
    assert error.startswith("error: in.txt, line 1: expected UTF-8, got ")
    assert NAMES[encoding] in error
    assert not Path("out.txt").exists()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", NAMES)
def test_the_encoding_is_read_and_utf_8_is_written(capsys, encoding, packed):
    content = SENTENCES.encode(encoding)
    Path("in").write_bytes(gzip.compress(content) if packed else content)
    output(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--encoding", encoding)
    assert Path("out").read_bytes() == SWAPPED.encode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-be", "gb18030"])
def test_other_alphabets(capsys, encoding):
    Path("in").write_bytes(CHINESE.encode(encoding))
    error = failure(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite")
    assert "expected UTF-8, got " in error
    assert "--encoding" in error
    output(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--encoding", encoding)
    assert Path("out").read_text() == CHINESE.replace("she", "he")


def test_the_line_of_the_first_wrong_byte_is_named(capsys):
    lines = ["she reads.\n"] * 200_000
    lines[150_000] = "she drinks café.\n"
    Path("in").write_bytes("".join(lines).encode("cp1252"))
    error = failure(
        capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--workers", "2", "-q"
    )
    assert "in, line 150001: expected UTF-8, got the byte 0xe9" in error
    assert sorted(path.name for path in Path().iterdir()) == ["in"]


def test_quotes_of_windows_are_recognised(capsys):
    Path("in").write_bytes("“she reads”\n".encode("cp1252"))
    assert "Windows-1252: --encoding cp1252" in failure(capsys, "rewrite", "swap", "in")


def test_binary_data_is_refused(capsys):
    Path("in").write_bytes(bytes(range(256)) * 40)
    assert "it looks like binary data, not text" in failure(capsys, "rewrite", "swap", "in")
    Path("in").write_bytes(b"\0\1\2she\0\3\0\0\0\1" * 40)
    assert "got binary data, not text" in failure(capsys, "rewrite", "swap", "in")


def test_stray_bytes_are_left_alone_if_requested(capsys):
    Path("in").write_bytes(b"she \xff\xfe\x00 reads.\n")
    output(
        capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--encoding", "utf-8-lenient"
    )
    assert Path("out").read_bytes() == b"he \xff\xfe\x00 reads.\n"


def test_utf_8_in_every_form_is_not_refused(capsys):
    for text in ("she \0 reads.", "\ufeffshe reads.\n", "она читает, she reads.\n", "", "日本" * 9):
        Path("in").write_text(text, encoding="utf-8", newline="")
        output(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite")
        assert Path("out").read_text() == text.replace("she", "he")


@pytest.mark.parametrize("name", ["utf-99", "rot13", "zlib", "base64", "", "\0", "undefined"])
def test_unknown_encodings_are_refused(capsys, name):
    Path("in").write_text("she reads.\n")
    assert "encoding: expected one such as" in failure(
        capsys, "rewrite", "swap", "in", "--encoding", name
    )


def test_text_that_is_not_in_the_given_encoding_is_refused(capsys):
    Path("in").write_bytes(b"she reads.\n" * 3 + b"caf\xe9\n")
    error = failure(
        capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--encoding", "ascii"
    )
    assert "in, line 4: expected text in ascii" in error
    assert not Path("out").exists()


ROWS = [["text", "label", "gender"]] + [
    [f"{'Él' if i % 2 else 'Ella'} está aquí, número {i}", f"año{i % 3}", "MF"[i % 2]]
    for i in range(60)
]


def table(encoding: str) -> Path:
    path = Path("table.csv")
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file).writerows(ROWS)
    return path


@pytest.mark.parametrize("encoding", NAMES)
def test_tables(capsys, encoding):
    path = str(table(encoding))
    calls = ["odds", path, "--label", "label", "--gender", "gender", "--json"]
    assert NAMES[encoding] in failure(capsys, *calls)
    assert '"año1"' in output(capsys, *calls, "--encoding", encoding)


def test_a_table_rewritten_with_its_header(capsys):
    path = str(table("utf-16"))
    output(
        capsys, "rewrite", "swap", path, "--text", "text", "-o", "out.csv", "--encoding", "utf-16"
    )
    with Path("out.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == ROWS


def test_commands_of_other_groups(capsys):
    Path("in").write_bytes("The señora lost [MASK] keys.\n".encode("utf-16"))
    assert NAMES["utf-16"] in failure(capsys, "measure", "pronouns", "mini", "--data", "in")
    path = str(table("latin-1"))
    assert NAMES["latin-1"] in failure(capsys, "lab", "fewshot", "run", "--data", path, "-o", "run")
    assert NAMES["latin-1"] in failure(capsys, "audit", "--data", path, "-o", "audited")
    path = str(table("utf-16"))
    assert NAMES["utf-16"] in failure(capsys, "lab", "posterior", "fit", path)
    assert NAMES["utf-16"] in failure(capsys, "measure", "crows", "mini", "--data", path)
    assert NAMES["utf-16"] in failure(capsys, "lab", "generate", "in")


class InterruptError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1", "utf-32-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_an_interrupted_run_resumes_in_the_same_encoding(monkeypatch, encoding, packed):
    content = SENTENCES.encode(encoding)
    Path("in").write_bytes(gzip.compress(content) if packed else content)
    monkeypatch.setattr("evenhand.text.corpus.writing.INTERVAL", 0.0)
    work, seen = RewriteWork(Swap()), []

    def stop(done: int, total: int | None) -> None:
        seen.append(done)
        if len(seen) == 5:
            raise InterruptError

    with reading(encoding=encoding):
        with pytest.raises(InterruptError):
            stream(["in"], "out", work, block_size=200, progress=stop)
        counts = stream(["in"], "out", work, block_size=200, progress=lambda *_: seen.append(0))
    assert Path("out").read_bytes() == SWAPPED.encode()
    assert counts["documents"] == 80
    assert seen.count(0) < 30  # blocks that were done are not done again


def test_a_run_of_another_encoding_is_not_resumed(monkeypatch):
    Path("in").write_bytes("she drinks café.\n".encode() * 80)
    monkeypatch.setattr("evenhand.text.corpus.writing.INTERVAL", 0.0)

    def stop(*_: object) -> None:
        raise InterruptError

    work = RewriteWork(Swap())
    with reading(encoding="latin-1"), pytest.raises(InterruptError):
        stream(["in"], "out", work, block_size=200, progress=stop)
    stream(["in"], "out", work, block_size=200)
    assert Path("out").read_text() == "he drinks café.\n" * 80


def test_undo_of_text_in_another_encoding_gives_utf_8(capsys):
    Path("in").write_bytes(SENTENCES.encode("utf-16"))
    calls = [
        "rewrite",
        "swap",
        "in",
        "-o",
        "out",
        "--overwrite",
        "--edits",
        "edits",
        "--encoding",
        "utf-16",
    ]
    output(capsys, *calls)
    output(capsys, "rewrite", "undo", "out", "edits", "-o", "back", "--overwrite")
    assert Path("back").read_bytes() == SENTENCES.encode()
    error = failure(
        capsys,
        "rewrite",
        "undo",
        "out",
        "edits",
        "-o",
        "back",
        "--overwrite",
        "--encoding",
        "utf-16",
    )
    assert "what a rewriting writes is in UTF-8" in error


def test_settings_end_with_the_command_and_the_context(capsys):
    Path("in").write_bytes("café\n".encode("latin-1"))
    output(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite", "--encoding", "latin-1")
    assert "Latin-1" in failure(capsys, "rewrite", "swap", "in", "-o", "out", "--overwrite")
    with pytest.raises(InputError), reading(encoding="none"):
        pass


def test_what_bytes_look_like():
    assert guess_encoding(b"she\0reads\0\0books") == ""
    assert guess_encoding(b"") == ""
    assert guess_encoding("é".encode("latin-1"), valid=False).startswith("Latin-1")
    Path("pairs.csv").write_bytes("female,male\nshe,he\n".encode("utf-16"))
    with pytest.raises(FileError, match="not UTF-8 text: expected UTF-8, got UTF-16"):
        read_pairs(Path("pairs.csv"))


@pytest.mark.parametrize(
    "words",
    [
        ("scores", "t.csv"),
        ("classifier", "t.csv", "--pred", "score", "--true", "model", "--group", "town"),
        ("answers", "measure", "t.csv", "--text", "score", "--group", "model"),
    ],
    ids=lambda words: words[0],
)
def test_commands_have_the_options_that_their_errors_name(capsys, words):
    rows = [f"{i % 4},{'ab'[i // 4]},{i % 3 % 2},{('Köln', 'Bonn')[i % 2]}" for i in range(8)]
    text = "\n".join(["item,model,score,town", *rows])
    Path("t.csv").write_bytes(text.encode("latin-1"))
    assert "it looks like Latin-1: --encoding latin-1" in failure(capsys, *words)
    output(capsys, *words, "--encoding", "latin-1", "--json")
    assert "--max-size raises it" in failure(
        capsys, *words, "--encoding", "latin-1", "--max-size", "1KB"
    )
