"""JSON lines and tables: the document changes, and every other byte of the record stays."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from corpus_rewriters import Listing, Nothing, Numbering, Swapping
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.errors import FileError, InputError
from evenhand.files import LENIENT, reading
from evenhand.text.block import Block
from evenhand.text.corpus.formats import Csv, CsvLayout, Form, Jsonl, Location, locate
from evenhand.text.corpus.pipeline import Done, RewriteWork, stream


def run(folder: Path, data: bytes, form: Form, *, name: str = "in", **options: object) -> bytes:
    (folder / name).write_bytes(data)
    append = bool(options.pop("append", False))
    work = RewriteWork(options.pop("rewriter", Swapping()), append)  # type: ignore[arg-type]
    stream([folder / name], folder / "out", work, form=form, **options)  # type: ignore[arg-type]
    return (folder / "out").read_bytes()


JSON_LINES = (
    '{"n":1.50e+3 , "text" : "he is Zo\\u00eb\\/\\n", "x":{"text":"he"}, "y":[1,  2]}\r\n'
    "\n"
    '  {"text":"it", "text":"caf\\u00e9: h\\u0065 \\ud83d\\ude00 she"}\n'
    '{"z": "he", "text": "naïve é"}'
).encode()
JSON_SWAPPED = (
    '{"n":1.50e+3 , "text" : "she is Zo\\u00eb\\/\\n", "x":{"text":"he"}, "y":[1,  2]}\r\n'
    "\n"
    '  {"text":"it", "text":"caf\\u00ea: she \\ud83d\\ude00 he"}\n'
    '{"z": "he", "text": "naïve ê"}'
).encode()


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_only_the_words_of_the_field_change_in_json(tmp_path: Path, size: int) -> None:
    assert run(tmp_path, JSON_LINES, Jsonl("text"), block_size=size) == JSON_SWAPPED
    bom = "\ufeff".encode()
    assert run(tmp_path, bom + JSON_LINES, Jsonl("text")) == bom + JSON_SWAPPED
    assert run(tmp_path, JSON_LINES, Jsonl("text"), rewriter=Nothing()) == JSON_LINES


def test_a_copy_of_a_json_record_is_a_complete_record(tmp_path: Path) -> None:
    out = run(tmp_path, b'{"a": 1, "text": "he"}\n{"text": "it"}', Jsonl("text"), append=True)
    assert out == b'{"a": 1, "text": "he"}\n{"a": 1, "text": "she"}\n{"text": "it"}'


def test_blank_lines_are_no_documents(tmp_path: Path) -> None:
    (tmp_path / "in").write_text('{"text": "#"}\n\n{"text": "#"}\n')
    counts = stream(
        [tmp_path / "in"], tmp_path / "out", RewriteWork(Numbering()), form=Jsonl("text")
    )
    assert counts["documents"] == 2
    assert (tmp_path / "out").read_text() == '{"text": "0"}\n\n{"text": "2"}\n'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "he"', "line 2: expected a JSON object: Expecting ',' delimiter"),
        ("[1]", "line 2: expected a JSON object, got a list"),
        ('{"body": "he", "id": 1}', r"line 2: no field 'text' \(fields: body, id\)"),
        ('{"text": null}', "line 2: field 'text': expected a string, got null"),
        ('{"text": 1.5}', "line 2: field 'text': expected a string, got a number"),
        ("[" * 200_000, "line 2: expected a JSON object: maximum recursion"),
        ('{"text": "he", "n": ' + "1" * 5000 + "}", "line 2: expected a JSON object: Exceeds"),
    ],
)
def test_a_broken_json_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(FileError, match=problem):
        run(tmp_path, f'{{"text": "it"}}\n{line}\n'.encode(), Jsonl("text"))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


class Quoting:
    """Writes each document as a JSON string, as a work with JSON output does."""

    def __call__(self, block: Block) -> Done:
        documents = (block.document(i) for i in range(len(block)))
        return Done("".join(json.dumps(text, ensure_ascii=False) + "\n" for text in documents))


def test_half_a_surrogate_pair_is_written_as_the_escape_it_was(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'{"text": "\\ud83d he \xff \\ude00"}\n')
    with reading(encoding=LENIENT):
        stream([tmp_path / "in"], tmp_path / "out", Quoting(), form=Jsonl("text"))
    assert (tmp_path / "out").read_bytes() == b'"\\ud83d he \xff \\ude00"\n'
    assert run(tmp_path, b'{"text": "\\ud83d he"}', Jsonl("text")) == b'{"text": "\\ud83d she"}'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.text(), st.booleans())
def test_the_field_is_found_in_any_object(
    row: dict[str, object], value: str, ascii_only: bool
) -> None:
    row["text"] = value
    line = json.dumps(row, ensure_ascii=ascii_only)
    begin, end = locate(line, "text")
    assert json.loads(line[begin:end]) == value
    assert line[:begin].rstrip().endswith(":")


TABLE = b'id,"text",note\r\n1,he sat,"he, too"\r\n\r\n2,"she said ""he""\r\nleft",x\n3,it,"a""b"\n'
SWAPPED = (
    b'id,"text",note\r\n1,she sat,"he, too"\r\n\r\n2,"he said ""she""\r\nleft",x\n3,it,"a""b"\n'
)


@pytest.mark.parametrize("size", [1, 30, 1 << 20])
def test_only_the_words_of_the_column_change_in_a_table(tmp_path: Path, size: int) -> None:
    assert run(tmp_path, TABLE, Csv("text"), block_size=size) == SWAPPED
    bom = "\ufeff".encode()
    assert run(tmp_path, bom + TABLE, Csv("text"), block_size=size) == bom + SWAPPED
    tabs = TABLE.replace(b",", b"\t").replace(b"he\t too", b"he, too")
    swapped = SWAPPED.replace(b",", b"\t").replace(b"he\t too", b"he, too")
    assert run(tmp_path, tabs, Csv("text"), name="in.tsv", block_size=size) == swapped
    returns = b"text\rhe\rit\r"
    assert run(tmp_path, returns, Csv("text"), block_size=size) == b"text\rshe\rit\r"


def test_a_field_is_put_in_quotes_when_it_needs_them(tmp_path: Path) -> None:
    out = run(tmp_path, b'a,text\n1,q!\n2,"q"\n3,5" he\n4,"he"she\n', Csv("text"))
    assert out == b'a,text\n1,"x,""y!"\n2,"x,""y"\n3,5" she\n4,"shehe"\n'
    assert [row[1] for row in csv.reader(io.StringIO(out.decode()))][1] == 'x,"y!'


def test_tables_one_after_the_other_share_a_header(tmp_path: Path) -> None:
    work = RewriteWork(Numbering())
    parts = [b"text,n", b"text,n\n#,1", b"text,n\r\n#,2\n"]
    sources = [tmp_path / f"{number}.csv" for number in range(3)]
    for source, part in zip(sources, parts, strict=True):
        source.write_bytes(part)
    stream(sources, tmp_path / "out", work, form=Csv("text"))
    assert (tmp_path / "out").read_bytes() == b"text,n\n0,1\n1,2\n"
    stream(sources[:1], tmp_path / "out", work, form=Csv("text"))
    assert (tmp_path / "out").read_bytes() == b"text,n"
    sources[1].write_bytes(b"n,text\n1,#\n")
    with pytest.raises(FileError, match=r"1\.csv, line 1: expected the columns text, n, got n"):
        stream(sources, tmp_path / "out", work, form=Csv("text"))
    stream(sources, tmp_path / "list", Listing(), form=Csv("text"))
    assert len((tmp_path / "list").read_text().splitlines()) == 2


def test_a_document_of_a_table_knows_its_line(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(TABLE)
    stream([tmp_path / "in.csv"], tmp_path / "out", Listing(), form=Csv("text"), block_size=1)
    rows = [line.rsplit(" ", 2)[1] for line in (tmp_path / "out").read_text().splitlines()]
    assert rows == ["2", "3", "4", "6"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1: expected a header with a column 'text'"),
        (b"a,b\n1,2\n", r"line 1: no column 'text' \(columns: a, b\)"),
        (b"text,text\n", "line 1: more than one column 'text'"),
        (b'a,"text\n', "line 1: a quoted field of the header is never closed"),
        (b'a,text\n1,"he\nshe\n', "line 2: a quoted field is never closed"),
        (b"a,text\n1,it\n2\n", "line 3: too few fields: expected at least 2"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(FileError, match=problem):
        run(tmp_path, data, Csv("text"))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_delimiter_is_one_character() -> None:
    for wrong in ("", ";;", "\n", '"', "é"):
        with pytest.raises(InputError, match="delimiter"):
            Csv("text", wrong)


cells = st.text(st.sampled_from('a,"\r\n\t;é '), max_size=6)


@given(st.text(st.sampled_from('a,"\r\n'), max_size=30))
@example('a"a,"a"a"",a\n')
def test_tables_are_read_as_the_csv_module_reads_them(text: str) -> None:
    table = CsvLayout(0, ",")
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    try:
        records = table.parse(text, Location(0, "f", 1))
    except FileError:  # a quote left open, which the module lets pass
        assert table.cut(text.encode(), final=True).end < len(text)
        return
    block = records.block
    documents = [block.document(i) for i in range(len(block))]
    full = [
        document
        for document, begin, end in zip(
            documents, records.bounds[:-1], records.bounds[1:], strict=True
        )
        if text[begin:end].strip("\r\n")
    ]
    assert full == [row[0] for row in rows]
    cut = table.cut(text.encode(), final=True)
    assert (cut.end, cut.records) == (len(text), len(block))


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[str, str]], delimiter: str
) -> None:
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows(rows)
    records = CsvLayout(1, delimiter).parse(written.getvalue(), Location(0, "f", 1))
    assert [records.block.document(i) for i in range(len(records.block))] == [r[1] for r in rows]
