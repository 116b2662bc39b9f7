"""Each format read from a small file written here by hand."""

from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pytest

from evenhand.vectors.formats import text as text_format
from evenhand.vectors.store import load

ROWS = np.array([[0.5, -1.25, 3e-05], [2.0, 0.0, -0.125]], dtype=np.float32)
GLOVE = b"the 0.5 -1.25 3e-05\nof 2 0.0 -.125\n"
WORD2VEC = b"2 3\n" + GLOVE
FASTTEXT = b"2 3\nthe 0.5 -1.25 3e-05 \nof 2 0.0 -.125 \n"
BINARY = b"2 3\nthe " + struct.pack("<3f", *ROWS[0]) + b"of " + struct.pack("<3f", *ROWS[1])
BINARY_LINES = (
    b"2 3\nthe " + struct.pack("<3f", *ROWS[0]) + b"\nof " + struct.pack("<3f", *ROWS[1]) + b"\n"
)
FORMATS = {
    "glove": GLOVE,
    "word2vec": WORD2VEC,
    "fasttext": FASTTEXT,
    "binary": BINARY,
    "binary with line ends": BINARY_LINES,
    "tabs": GLOVE.replace(b" ", b"\t"),
    "tabs and spaces": GLOVE.replace(b" ", b"\t ", 1),
    "dos line ends": WORD2VEC.replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + WORD2VEC,
    "byte order mark, no header": b"\xef\xbb\xbf" + GLOVE,
    "blank lines at the end": GLOVE + b"\n \n",
    "plus signs": GLOVE.replace(b" 0.5", b" +0.5"),
}


def read(tmp_path, content, **options):
    path = tmp_path / "some.data"
    path.write_bytes(content)
    return load(path, cache=False, **options)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", FORMATS)
def test_golden(tmp_path, kind, packed):
    content = FORMATS[kind]
    v = read(tmp_path, gzip.compress(content) if packed else content)
    assert v.words == ["the", "of"]
    assert v.matrix.dtype == np.float32
    np.testing.assert_array_equal(v.matrix, ROWS)
    assert v.name == "some.data"
    assert v.notes == ()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_npz_as_numpy_writes_it(tmp_path, dtype, packed):
    def letters(text):
        return np.frombuffer(text.encode(), dtype=np.uint8)

    file = io.BytesIO()
    rows = ROWS.astype(dtype)
    meta = letters('{"format": "evenhand-vectors/1"}')
    ranks = np.array([3, 8], dtype=np.uint32)
    np.savez_compressed(file, words=letters("the\nof"), matrix=rows, meta=meta, ranks=ranks)
    content = file.getvalue()
    v = read(tmp_path, gzip.compress(content) if packed else content)
    assert v.words == ["the", "of"]
    assert v.matrix.dtype == np.float32
    np.testing.assert_array_equal(v.matrix, rows.astype(np.float32))
    assert v.ranks.tolist() == [3, 8]
    assert read(tmp_path, content, limit=1).words == ["the"]


def test_words_with_spaces_take_the_last_numbers(tmp_path):
    v = read(tmp_path, b"the 1 2\n. . . 3 4\nat name@domain.com 5 6\nNew  York 7 8\n")
    assert v.words == ["the", ". . .", "at name@domain.com", "New  York"]
    assert v.matrix.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_a_first_line_with_a_spaced_word(tmp_path):
    assert read(tmp_path, b"New York 1 2\nthe 3 4\n").words == ["New York", "the"]


def test_only_words_with_spaces(tmp_path):
    v = read(tmp_path, b"2 2\nNew York 1 2\nLos Angeles 3 4\n")
    assert v.words == ["New York", "Los Angeles"]
    assert read(tmp_path, b"New York 1 2\nLos Angeles 3 4\n").dim == 2


@pytest.mark.parametrize("space", list("\u00a0\u2003\u3000\u0085\u2028\x0b\x0c"))
def test_other_white_space_does_not_split_words(tmp_path, space):
    word = f"New{space}York{space}"
    v = read(tmp_path, f"the 1 2\n{word} 3 4\n{space} 5 6\n".encode())
    assert v.words == ["the", word, space]


def test_quotes_commas_and_missing_value_words_are_words(tmp_path):
    words = ['"', '"a', "'", ",", "NA", "nan", "null", "#", "\\", "1", "2.5"]
    content = "".join(f"{word} {i} {i}.5\n" for i, word in enumerate(words))
    v = read(tmp_path, content.encode())
    assert v.words == words
    assert v.matrix[:, 1].tolist() == [i + 0.5 for i in range(len(words))]


def test_duplicates_keep_the_first(tmp_path):
    v = read(tmp_path, b"a 1 1\nb 2 2\na 3 3\nA 4 4\nb 5 5\n")
    assert v.words == ["a", "b", "A"]
    assert v.matrix.tolist() == [[1, 1], [2, 2], [4, 4]]
    assert v.notes == ("2 duplicate words: first kept",)


def test_bytes_that_are_not_utf8_are_shown_noted_and_exported_as_they_were(tmp_path):
    content = b"2 2\ncaf\xe9 1 2\nna\xc3\xafve 3 4\n"
    v = read(tmp_path, content)
    assert v.words == ["caf\\xe9", "naïve"]
    assert v.notes == ("1 word not in UTF-8: odd bytes shown as \\xNN",)
    v.save(tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_bytes() == content


def test_no_line_end_after_the_last_line_is_noted(tmp_path):
    v = read(tmp_path, b"a 0.25 0.5\nb 0.75 0.1")
    assert v.matrix.tolist()[1] == [0.75, np.float32(0.1)]
    assert "may be cut short" in v.notes[0]
    assert read(tmp_path, b"a 0.25 0.5\nb 0.75 0.1", limit=1).notes == ()


def test_numbers_are_rounded_once(tmp_path):
    # just above the middle of two neighbours in float32, and exactly on it once in float64
    text = "1.00000005960464477539062500000000001"
    assert np.float32(float(text)) == 1
    for spelling in (text, f"+{text}"):
        v = read(tmp_path, f"a {spelling} 0\n".encode())
        assert v.matrix[0, 0] == np.nextafter(np.float32(1), np.float32(2))


def test_limit_reads_only_so_far(tmp_path):
    v = read(tmp_path, b"3 2\na 1 2\nb 3 4\nc 5 broken\n", limit=2)
    assert v.words == ["a", "b"]
    full = b"3 1\n" + b"".join(w + b" " + struct.pack("<f", 0.1) for w in (b"a", b"b", b"c"))
    assert read(tmp_path, full, limit=2).words == ["a", "b"]
    assert read(tmp_path, full, limit=9).words == ["a", "b", "c"]


def test_many_blocks_with_an_odd_line_among_them(tmp_path, monkeypatch):
    monkeypatch.setattr(text_format, "BLOCK", 200)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 5)).astype(np.float32)
    words = [f"w{i}" if i % 70 else f"w {chr(97 + i // 70)}" for i in range(300)]
    lines = [f"{w} {' '.join(map(str, r))}\n" for w, r in zip(words, rows.tolist(), strict=True)]
    seen = []
    path = tmp_path / "many.txt"
    path.write_text("".join(lines))
    v = load(path, cache=False, progress=lambda done, total: seen.append((done, total)))
    assert v.words == words
    np.testing.assert_array_equal(v.matrix, rows)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert seen == sorted(seen)


def test_binary_words_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.vectors.formats.binary.BLOCK", 64)
    rows = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)
    body = b"".join(f"word{i} ".encode() + row.tobytes() for i, row in enumerate(rows))
    v = read(tmp_path, b"50 7\n" + body)
    assert v.words == [f"word{i}" for i in range(50)]
    np.testing.assert_array_equal(v.matrix, rows)
