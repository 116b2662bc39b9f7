"""A rewritten corpus leads back to the very bytes it was made of."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pytest
from corpus_rewriters import PACK, UNPACK, Numbering, Swapping
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evenhand.errors import FileError
from evenhand.files import LENIENT, reading
from evenhand.text.corpus.compression import REFUSED, detect
from evenhand.text.corpus.formats import Csv, Form, Jsonl, Lines
from evenhand.text.corpus.pipeline import RewriteWork, restore, stream

WORDS = st.sampled_from(
    ["he", "she", "é", "ab", "q", "z", " ", '"', ",", "\\", "/", "😀", "\r", "x"]
)
documents = st.lists(WORDS, max_size=8).map("".join)
suffixes = st.sampled_from(sorted(PACK))


def there_and_back(
    data: bytes, form: Form, suffix: str, size: int, *, append: bool, name: str = "in"
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}{suffix}"
        source.write_bytes(PACK[suffix](data))
        output, edits = Path(folder) / f"out{suffix}", Path(folder) / f"edits.jsonl{suffix}"
        work = RewriteWork(Swapping(), append)
        counts = stream([source], output, work, form=form, edits=edits, block_size=size)
        back = Path(folder) / f"back{suffix}"
        assert restore(output, edits, back, form=form, append=append) == counts["changed"]
        assert UNPACK[suffix](back.read_bytes()) == data
        changed = UNPACK[suffix](output.read_bytes()) != data
        assert changed == bool(counts["changed"])


@settings(max_examples=60, deadline=None)
@given(st.lists(documents | st.binary(max_size=8)), suffixes, st.booleans(), st.booleans())
@example(["ab"], "", False, False)
@example(["x", "ab"], ".gz", True, False)
@example(["ab", "ab"], "", True, False)
def test_lines(parts: list[str | bytes], suffix: str, append: bool, closed: bool) -> None:
    lines = [part.encode() if isinstance(part, str) else part for part in parts]
    data = b"\n".join(lines) + (b"\n" if closed else b"")
    assume(suffix or not (detect(data) or data.startswith(tuple(REFUSED))))
    with reading(encoding=LENIENT):
        there_and_back(data, Lines(), suffix, 40, append=append)


def escaped(text: str, marks: list[bool]) -> str:
    """The text as a JSON string in which some characters are escaped that need not be."""
    inner = []
    for number, character in enumerate(text):
        plain = json.dumps(character, ensure_ascii=False)[1:-1]
        unusual = marks and marks[number % len(marks)]
        inner.append(f"\\u{ord(character):04X}" if unusual and ord(character) < 65536 else plain)
    return '"' + "".join(inner) + '"'


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(documents, st.lists(st.booleans(), max_size=4)), max_size=6),
    suffixes,
    st.booleans(),
    st.sampled_from(["\n", "\r\n", ""]),
)
def test_json_lines(
    rows: list[tuple[str, list[bool]]], suffix: str, append: bool, last: str
) -> None:
    lines = [f'{{"he":1.0,"text": {escaped(text, marks)} }}' for text, marks in rows]
    data = ("\n".join(lines) + last).encode()
    there_and_back(data, Jsonl("text"), suffix, 40, append=append)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(documents, documents), max_size=6),
    suffixes,
    st.booleans(),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_tables(
    rows: list[tuple[str, str]], suffix: str, append: bool, quoting: int, closed: bool
) -> None:
    written = io.StringIO()
    csv.writer(written, quoting=quoting).writerows([("a", "text"), *rows])  # type: ignore[arg-type]
    text = written.getvalue() if closed else written.getvalue().removesuffix("\r\n")
    there_and_back(text.encode(), Csv("text"), suffix, 40, append=append, name="in.csv")


def test_odd_json_is_restored_by_the_record_itself(tmp_path: Path) -> None:
    odd = b'{"text": "\\u0073he \xff"}\n'
    (tmp_path / "in").write_bytes(odd)
    edits = tmp_path / "edits"
    work = RewriteWork(Swapping())
    with reading(encoding=LENIENT):
        stream([tmp_path / "in"], tmp_path / "out", work, form=Jsonl("text"), edits=edits)
        assert (tmp_path / "out").read_bytes() == b'{"text": "he \xff"}\n'
        assert '"record": ' in edits.read_text()
        restore(tmp_path / "out", edits, tmp_path / "back", form=Jsonl("text"))
    assert (tmp_path / "back").read_bytes() == odd


def test_edits_that_do_not_belong_to_the_output_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a #\nb #\n")
    edits = tmp_path / "edits"
    stream([tmp_path / "in"], tmp_path / "out", RewriteWork(Numbering()), edits=edits)
    (tmp_path / "other").write_text("a 0\nb x\n")
    with pytest.raises(FileError, match=r"edits, line 2: does not fit .*other"):
        restore(tmp_path / "other", edits, tmp_path / "back")
    (tmp_path / "other").write_text("a 0\n")
    with pytest.raises(FileError, match="edits, line 2: document 1 is not in the rewritten file"):
        restore(tmp_path / "other", edits, tmp_path / "back")
    edits.write_text(edits.read_text() + '{"document": 2}\n')
    with pytest.raises(FileError, match="edits, line 3: expected an edit"):
        restore(tmp_path / "out", edits, tmp_path / "back")
    lines = edits.read_text().splitlines()
    edits.write_text(f"{lines[1]}\n{lines[0]}\n")
    with pytest.raises(FileError, match="edits, line 2: documents out of order"):
        restore(tmp_path / "out", edits, tmp_path / "back")
    assert not (tmp_path / "back").exists()
