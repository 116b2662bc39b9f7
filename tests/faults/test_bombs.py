"""Small files that decompress to gigabytes are refused in one line, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from cli_shell import failure, output

from evenhand.errors import FileError
from evenhand.files import reading
from evenhand.text.tables import open_table

pytestmark = pytest.mark.slow

LIMIT = ("--max-size", "1MB")
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.compress}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


LINE = "she reads. " * 250_000
ROWS = "she reads [MASK].\n" * 150_000
NAMES = "[NAME] reads [MASK].\n" * 150_000
COLUMNS = "text,label,gender\n"
PAIRS = ",sent_more,sent_less,stereo_antistereo,bias_type\n"
SENTENCES = "Template\tPerson\tProfession\tGender\tProf_Gender\tSentence\n"
DISTANCES = "protectedWord,wordToCompare,wordClass,cosineDistance,cosineSimilarity,connection\n"

COMMANDS = {
    "odds, a long line": (("odds", "FILE", "--label", "label"), COLUMNS + LINE),
    "odds, one row over many lines": (
        ("odds", "FILE", "--label", "label", "--gender", "gender"),
        COLUMNS + '"' + "she\n" * 750_000,
    ),
    "odds, a long object": (
        ("odds", "FILE", "--label", "label"),
        '{"label": ["' + LINE + '"]}\n',
    ),
    "annotate, sheet": (
        ("lab", "annotate", "sheet", "FILE", "-o", "sheet.csv"),
        '{"sentence": "a", "masked": "b", "pronoun": "she"}\n' * 75_000,
    ),
    "annotate, read": (
        ("lab", "annotate", "read", "FILE"),
        "id,sentence,verdict\n" + ",,\n" * 150_000,
    ),
    "fewshot": (
        ("lab", "fewshot", "run", "--data", "FILE", "-o", "run"),
        COLUMNS + "she reads,cook,F\n" * 150_000,
    ),
    "audit": (("audit", "--data", "FILE", "-o", "audit"), COLUMNS + "a,cook,F\n" * 250_000),
    "posterior": (("lab", "posterior", "fit", "FILE"), DISTANCES + "imam,a,c,1,0,none\n" * 150_000),
    "score": (("measure", "pronouns", "mini", "--data", "FILE"), ROWS),
    "score, a long line": (("measure", "pronouns", "mini", "--data", "FILE"), LINE),
    "crows": (
        ("measure", "crows", "mini", "--data", "FILE"),
        PAIRS + "0,a,b,stereo,age\n" * 150_000,
    ),
    "associate": (("measure", "professions", "mini", "--data", "FILE"), SENTENCES + LINE),
    "generate": (("lab", "generate", "FILE"), ROWS),
    "disco": (("measure", "mini", "--metric", "disco", "--data", "FILE"), NAMES),
    "answers, collect": (
        ("answers", "collect", "tiny-causal", "--prompts", "FILE", "-o", "out.jsonl"),
        "prompt,item\n" + "she reads,1\n" * 150_000,
    ),
    "answers, measure": (
        ("answers", "measure", "FILE", "--group", "gender"),
        "item,gender,answer\n" + "1,f,she reads\n" * 150_000,
    ),
    "answers, a long text": (
        ("answers", "measure", "FILE", "--group", "gender"),
        "item,gender,answer\n1,f," + LINE,
    ),
    "scores": (("scores", "FILE"), "item,model,score\n" + "1,a,1\n" * 250_000),
    "classifier": (
        ("classifier", "FILE", "--group", "gender"),
        "true,pred,gender\n" + "a,a,f\n" * 250_000,
    ),
    "compare": (("compare", "pronouns", "mini", "mini", "--data", "FILE"), ROWS),
    "measure": (("measure", "perplexity", "tiny-causal", "--data", "FILE"), ROWS),
    "debias a model": (("debias", "mini", "--texts", "FILE", "-o", "out"), ROWS),
    "debias vectors": (
        ("debias", "FILE", "--topic", "gender", "-o", "out.vec"),
        "she 1.0 2.0 3.0\n" * 150_000,
    ),
    "compare vectors": (
        ("compare", "glove", "FILE", "--topic", "gender"),
        "she " + "1.0 " * 750_000,
    ),
    "vectors": (("info", "FILE"), "she 1.0 2.0 3.0\n" * 150_000),
    "vectors, a long line": (("info", "FILE"), "she " + "1.0 " * 750_000),
    "swap": (("rewrite", "swap", "FILE", "-o", "out"), "she " * 750_000),
    "filter": (("filter", "FILE", "-o", "out"), "she " * 750_000),
}


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("case", COMMANDS)
def test_a_bomb_is_refused(capsys, case, kind):
    arguments, content = COMMANDS[case]
    if "vectors" in case and kind != "gz":
        pytest.skip("vectors are read from gzip alone")
    Path("bomb").write_bytes(PACK[kind](content.encode()))
    assert Path("bomb").stat().st_size < 60_000
    arguments = ["bomb" if word == "FILE" else word for word in arguments]
    error = failure(capsys, *arguments, *LIMIT)
    assert "more than the limit for input of 1 MB allows: --max-size" in error
    assert not Path("out").exists()


def test_an_archive_of_vectors_is_refused_before_it_is_read(capsys):
    content = io.BytesIO()
    np.save(content, np.zeros((100, 30_000), dtype=np.float32))
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("meta", "words", "matrix"):
            archive.writestr(f"{name}.npy", content.getvalue())
    error = failure(capsys, "info", "bomb.npz", *LIMIT)
    assert "more than the limit for input of 1 MB allows" in error
    Path("bomb.npz.gz").write_bytes(gzip.compress(Path("bomb.npz").read_bytes()))
    assert "more than the limit" in failure(capsys, "info", "bomb.npz.gz", *LIMIT)


def test_xz_and_zip_are_refused(capsys):
    Path("bomb").write_bytes(lzma.compress(b"she " * 1_000_000))
    assert "got a xz file" in failure(capsys, "rewrite", "swap", "bomb")


def test_tables_in_parquet_are_limited():
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"label": ["a"] * 100_000}), "rows.parquet")
    pq.write_table(pa.table({"label": ["a" * 1000] * 4000}), "bytes.parquet")
    for name, message in (("rows", "100,000 rows"), ("bytes", "bytes in its rows")):
        path = f"{name}.parquet"
        limited, refused = reading(max_bytes=1 << 20), pytest.raises(FileError, match=message)
        with refused, limited, open_table(path) as table:
            list(table.rows("label"))
    with reading(max_bytes=1 << 20), open_table("rows.parquet", held=False) as table:
        assert sum(1 for _ in table.rows("label")) == 100_000


def test_a_corpus_is_streamed_whatever_its_size(capsys):
    Path("in.csv").write_text(COLUMNS + "she reads,cook,F\nhe reads,poet,M\n" * 40_000)
    calls = ("odds", "in.csv", "--label", "label", "--gender", "gender", "--json")
    output(capsys, *calls, *LIMIT)
    Path("in.txt").write_text("she reads.\n" * 150_000)
    output(capsys, "rewrite", "swap", "in.txt", "-o", "out.txt", *LIMIT)


def test_the_limit_is_raised(capsys):
    Path("in").write_bytes(gzip.compress(b"the cook lost [MASK] keys.\n" * 9_000))
    calls = ("measure", "pronouns", "mini", "--data", "in", "--json")
    assert "more than 8,192 lines" in failure(capsys, *calls, *LIMIT)
    output(capsys, *calls, "--max-size", "2MB")


@pytest.mark.parametrize("size", ["0", "1023", "-1", "much", "1e9", "999999999999999999GB"])
def test_a_size_that_is_none_is_refused(capsys, size):
    Path("in").write_text("she reads.\n")
    assert "expected" in failure(capsys, "rewrite", "swap", "in", "--max-size", size)


HOSTS = {
    "score": ("measure", "pronouns", "mini", "--data", "bomb"),
    "odds": ("odds", "bomb", "--label", "label"),
    "fewshot": ("lab", "fewshot", "run", "--data", "bomb", "-o", "run"),
}


def zstandard_bomb(first: bytes, blocks: int) -> bytes:
    """One frame: some bytes, then blocks of one repeated letter, 128 KB in four bytes each."""

    def block(kind: int, size: int, content: bytes, last: int = 0) -> bytes:
        return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content

    frame = b"\x28\xb5\x2f\xfd" + b"\x00\x38"  # magic number; no size, a window of 128 KB
    repeated = block(1, 1 << 17, b"a") * blocks
    return frame + block(0, len(first), first) + repeated + block(0, 0, b"", last=1)


def test_the_bomb_is_a_file_of_zstandard():
    bomb = zstandard_bomb(COLUMNS.encode(), blocks=3)
    content = zstandard.ZstdDecompressor().stream_reader(bomb).read()
    assert content == COLUMNS.encode() + b"a" * (3 << 17)


@pytest.mark.parametrize("case", HOSTS)
def test_a_bomb_of_gigabytes_under_a_limit_of_memory(case):
    """20 GB of one line from a file of 640 KB, in a process that may have 6 GB."""
    first = b"" if case == "score" else COLUMNS.encode()
    Path("bomb").write_bytes(zstandard_bomb(first, blocks=160_000))
    assert Path("bomb").stat().st_size < 1_000_000
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)); "
    code = limit + "from evenhand.cli import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, *HOSTS[case]],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "--max-size" in done.stderr
