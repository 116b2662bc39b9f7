"""Streaming: what goes in, what comes out, whatever the compression, blocks and processes."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus_rewriters import PACK, UNPACK, Failing, Listing, Nothing, Numbering, Swapping

from evenhand.errors import FileError, InputError
from evenhand.files import LENIENT, reading
from evenhand.text.corpus import compression
from evenhand.text.corpus.formats import Csv, Jsonl, Lines
from evenhand.text.corpus.pipeline import RewriteWork, stream
from evenhand.text.edits import Edit

TEXT = "".join(f"line {n} # of {n * n}, Zoë\n" for n in range(3000)).encode()
NUMBERED = "".join(f"line {n} {n} of {n * n}, Zoë\n" for n in range(3000)).encode()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_bytes(TEXT)
    return path


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("out", UNPACK)
@pytest.mark.parametrize("into", PACK)
def test_compression_in_by_content_and_out_by_name(tmp_path: Path, into: str, out: str) -> None:
    source = tmp_path / "input"  # the name says nothing
    source.write_bytes(PACK[into](TEXT))
    target = tmp_path / f"out.txt{out}"
    counts = stream([source], target, RewriteWork(Numbering()), block_size=5000)
    assert UNPACK[out](target.read_bytes()) == NUMBERED
    assert counts == {"documents": 3000, "changed": 3000, "edits": 3000, "rule:number": 3000}
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 1 << 20])
def test_output_does_not_depend_on_the_block_size(plain: Path, tmp_path: Path, size: int) -> None:
    small = tmp_path / "small.txt"
    small.write_bytes(TEXT[:2000])
    stream([small], tmp_path / "out", RewriteWork(Numbering()), block_size=size)
    stream([small], tmp_path / "whole", RewriteWork(Numbering()))
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert NUMBERED.startswith((tmp_path / "out").read_bytes().rpartition(b"\n")[0])
    stream([plain], tmp_path / "list", Listing(), block_size=max(size, 64))
    stream([plain], tmp_path / "list1", Listing())
    assert (tmp_path / "list").read_bytes() == (tmp_path / "list1").read_bytes()


def test_processes_keep_the_order(plain: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    edits = tmp_path / "edits.jsonl.gz"
    counts = stream(
        [plain],
        tmp_path / "out.gz",
        RewriteWork(Numbering()),
        workers=3,
        block_size=2000,
        edits=edits,
        progress=lambda done, total: seen.append((done, total)),
    )
    stream([plain], tmp_path / "one.gz", RewriteWork(Numbering()), block_size=2000)
    assert (tmp_path / "out.gz").read_bytes() == (tmp_path / "one.gz").read_bytes()
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == NUMBERED
    rows = [json.loads(line) for line in gzip.decompress(edits.read_bytes()).splitlines()]
    assert [row["document"] for row in rows] == list(range(3000))
    assert counts["edits"] == 3000
    assert seen == sorted(seen)
    assert seen[-1] == (len(TEXT), len(TEXT))


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [("file", FileError, "lexicon.csv, line 3: broken"), ("other", Exception, "by hand")],
)
def test_an_error_in_a_worker_is_raised_with_its_message(
    plain: Path, tmp_path: Path, workers: int, how: str, kind: type[Exception], message: str
) -> None:
    work = RewriteWork(Failing("line 1500 ", how))
    with pytest.raises(kind, match=message):
        stream([plain], tmp_path / "out", work, workers=workers, block_size=5000, restart=True)
    assert not (tmp_path / "out").exists()
    assert hidden(tmp_path) == []


def test_bytes_of_any_kind_pass_unchanged(tmp_path: Path) -> None:
    odd = b"\xef\xbb\xbfhe\r\n\xff\xfe\x00he\x85\xe2\x80\xa8 she\x0b\x0c\x1c\r\r\n\n\n"
    odd += b"\xed\xa0\x80 end"
    (tmp_path / "in").write_bytes(odd)
    with reading(encoding=LENIENT):
        for size in (1, 3, 1 << 20):
            stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Nothing()), block_size=size)
            assert (tmp_path / "out").read_bytes() == odd
        counts = stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Swapping()))
    swapped = odd.replace(b"she", b"\0\0").replace(b"he", b"she").replace(b"\0\0", b"he")
    assert (tmp_path / "out").read_bytes() == swapped
    assert counts["documents"] == 5
    assert counts["changed"] == 2


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    parts = [b"a #\nb #", b"", b"c #\n", b"\n# d"]
    sources = []
    for number, part in enumerate(parts):
        sources.append(tmp_path / f"{number}.txt")
        sources[-1].write_bytes(part)
    stream(sources, tmp_path / "out", RewriteWork(Numbering()))
    assert (tmp_path / "out").read_bytes() == b"a 0\nb 1\nc 2\n\n4 d"
    stream(sources, tmp_path / "list", Listing())
    rows = [line.split() for line in (tmp_path / "list").read_text().splitlines()]
    positions = [(int(row[0]), Path(row[1]).name, int(row[2])) for row in rows]
    assert positions == [
        (0, "0.txt", 1),
        (1, "0.txt", 2),
        (2, "2.txt", 1),
        (3, "3.txt", 1),
        (4, "3.txt", 2),
    ]


@pytest.mark.parametrize("suffix", PACK)
def test_empty_input_makes_a_valid_empty_output(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "in").write_bytes(b"")
    target = tmp_path / f"out{suffix}"
    assert stream([tmp_path / "in"], target, RewriteWork(Swapping())) == {}
    assert UNPACK[suffix](target.read_bytes()) == b""


def test_append_keeps_each_changed_document_beside_its_copy(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("he sat\nit rained\nshe ran", newline="")
    stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Swapping(), append=True))
    assert (tmp_path / "out").read_text() == "he sat\nshe sat\nit rained\nshe ran\nhe ran"
    (tmp_path / "more").write_text("it is over\n")
    sources = [tmp_path / "in", tmp_path / "more"]
    stream(sources, tmp_path / "out", RewriteWork(Swapping(), append=True))
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[3:] == ["she ran", "he ran", "it is over"]


def test_edits_name_document_source_line_and_offset(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("it\nZoë: he, she\n")
    edits = tmp_path / "edits.jsonl"
    stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Swapping()), edits=edits)
    rows = [json.loads(line) for line in edits.read_text().splitlines()]
    index = {"document": 1, "source": str(tmp_path / "in"), "line": 2}
    assert rows == [
        {**index, "offset": 5, "rule": "pair", "before": "he", "after": "she"},
        {**index, "offset": 9, "rule": "pair", "before": "she", "after": "he"},
    ]


class _Breaking:
    def __call__(self, block: object) -> list[Edit]:
        return [Edit(0, "bad", "a", "a\nb")]


def test_wrong_requests_are_named(tmp_path: Path, plain: Path) -> None:
    work = RewriteWork(Nothing())
    with pytest.raises(FileError, match="is an input"):
        stream([plain], plain, work)
    (tmp_path / "link").symlink_to(plain)
    with pytest.raises(FileError, match="is an input"):
        stream([plain], tmp_path / "link", work)
    with pytest.raises(FileError, match="is an input"):
        stream([plain], tmp_path / "out", work, edits=plain)
    with pytest.raises(InputError, match="a file of its own"):
        stream([plain], tmp_path / "out", work, edits=tmp_path / "out")
    with pytest.raises(FileError, match="its folder does not exist"):
        stream([plain], tmp_path / "no" / "out", work)
    with pytest.raises(FileError, match="is a folder"):
        stream([plain], tmp_path, work)
    with pytest.raises(FileError, match="is a folder"):
        stream([tmp_path], tmp_path / "out", work)
    with pytest.raises(FileNotFoundError):
        stream([tmp_path / "absent"], tmp_path / "out", work)
    with pytest.raises(InputError, match="no input"):
        stream([], tmp_path / "out", work)
    with pytest.raises(InputError, match="at least one worker"):
        stream([plain], tmp_path / "out", work, workers=0)
    (tmp_path / "a").write_text("a\n")
    with pytest.raises(InputError, match="add or remove a line"):
        stream([tmp_path / "a"], tmp_path / "out", RewriteWork(_Breaking()))
    assert plain.read_bytes() == TEXT
    assert hidden(tmp_path) == []


def test_a_record_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"short\n" + b"x" * 10_000 + b"\nend\n")
    with reading(max_bytes=1 << 14), pytest.raises(FileError, match="line 2: a record of mo"):
        stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Nothing()), block_size=512)


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst"])
def test_members_and_frames_one_after_the_other_are_read(tmp_path: Path, kind: str) -> None:
    pack = PACK[f".{kind}"]
    padding = b"\0" * 70_000 if kind == "gz" else b""
    (tmp_path / "in").write_bytes(pack(b"a\nb") + pack(b"") + pack(b"c\n") + padding)
    reader = compression.Reader(str(tmp_path / "in"))
    assert reader.read(100) == b"a\nbc\n"
    assert reader.raw == (tmp_path / "in").stat().st_size
    reader.close()


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst"])
def test_what_compresses_well_is_not_unpacked_at_once(tmp_path: Path, kind: str) -> None:
    (tmp_path / "in").write_bytes(PACK[f".{kind}"](b"\n" * (1 << 23)))
    reader = compression.Reader(str(tmp_path / "in"))
    sizes = set()
    for piece in reader._pieces or ():
        sizes.add(len(piece))
    reader.close()
    assert max(sizes) <= 1 << 22


def test_archives_we_do_not_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.xz").write_bytes(b"\xfd7zXZ\0\0\0")
    with pytest.raises(FileError, match="got a xz file"):
        stream([tmp_path / "in.xz"], tmp_path / "out", RewriteWork(Nothing()))


def test_from_stdin_to_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream:
        def __init__(self, data: bytes = b"") -> None:
            self.buffer = io.BytesIO(data)

    output = Stream()
    monkeypatch.setattr(sys, "stdin", Stream(gzip.compress(TEXT)))
    monkeypatch.setattr(sys, "stdout", output)
    counts = stream(["-"], "-", RewriteWork(Numbering()))
    assert output.buffer.getvalue() == NUMBERED
    assert counts["documents"] == 3000


def test_a_pipe_or_a_device_is_written_to_directly(plain: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        stream([plain], pipe, RewriteWork(Numbering()), edits=tmp_path / "edits")
        assert reader.communicate(timeout=20)[0] == NUMBERED
    with subprocess.Popen(["cat", str(plain)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        source = f"/dev/fd/{writer.stdout.fileno()}"
        stream([source], tmp_path / "out", RewriteWork(Numbering()))
    assert (tmp_path / "out").read_bytes() == NUMBERED
    ends = os.pipe()
    stream([plain], os.devnull, RewriteWork(Numbering()))
    (tmp_path / "line").write_text("#\n")
    stream([tmp_path / "line"], f"/dev/fd/{ends[1]}", RewriteWork(Numbering()))
    assert os.read(ends[0], 10) == b"0\n"
    for end in ends:
        os.close(end)
    os.mkfifo(tmp_path / "pipe.zst")
    with pytest.raises(FileError, match="zstd can be written to a file only"):
        stream([plain], tmp_path / "pipe.zst", RewriteWork(Numbering()))
    assert hidden(tmp_path) == []


FILTER = """
import sys
sys.path.insert(0, sys.argv[1])
from corpus_rewriters import Numbering
from evenhand.text.corpus import RewriteWork, stream
stream(["-"], "-", RewriteWork(Numbering()))
"""


def _filter() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", FILTER, str(Path(__file__).parent)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def test_a_live_pipe_gets_each_line_when_it_is_there() -> None:
    with _filter() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(b"line #\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"line {number}\n".encode()
        process.stdin.close()
        assert process.wait(timeout=20) == 0


def test_a_reader_that_goes_away_ends_the_work_quietly() -> None:
    with _filter() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"first #\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(TEXT)
        process.stdin.close()
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("form", [Lines(), Jsonl("text"), Csv("text")])
def test_a_form_says_in_its_repr_what_it_is(form: object) -> None:
    assert repr(form) == {Lines: "Lines()", Jsonl: "Jsonl(field='text')"}.get(
        type(form), "Csv(field='text', delimiter=None)"
    )
