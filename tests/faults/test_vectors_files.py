"""No malformed file of vectors loads silently: each gets one line that names the place."""

from __future__ import annotations

import gzip
import io
import os
import struct

import numpy as np
import pytest

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.vectors.formats import text as text_format
from evenhand.vectors.store import load

pytestmark = pytest.mark.slow

GOOD = b"the 0.1 0.2 0.3\nof 0.4 0.5 0.6\nand 0.7 0.8 0.9\n"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"


def binary(words=(b"the", b"of"), count=2, width=3, value=0.5):
    return f"{count} {width}\n".encode() + b"".join(
        word + b" " + struct.pack(f"<{width}f", *[value] * width) for word in words
    )


TEXT = {
    "too few numbers": (GOOD + b"to 0.1 0.2\n", 4, "expected a word and 3 numbers, got 2"),
    "too few on the first line": (b"the 0.1 0.2\n" + GOOD[16:], 1, "and 3 numbers, got 2"),
    "too many numbers": (GOOD + b"to 1 2 3 4\n", 4, "expected a word and 3 numbers, got 4"),
    "too many, one of them nan": (GOOD + b"to nan 1 2 3\n", 4, "and 3 numbers, got 4"),
    "a word without numbers": (GOOD + b"to\nin 1 2 3\n", 4, "expected a word and 3 numbers, got 0"),
    "not a number": (GOOD + b"to 1 x2 3\n", 4, "a number as number 2 of 'to', got 'x2'"),
    "not a number on the first line": (b"to 1 x2 3\n" + GOOD, 1, "number 2 of 'to', got 'x2'"),
    "a comma for a point": (GOOD + b"to 0,1 0,2 0,3\n", 4, "number 1 of 'to', got '0,1'"),
    "hexadecimal": (GOOD + b"to 0x1p3 2 3\n", 4, "number 1 of 'to', got '0x1p3'"),
    "underscores in a number": (GOOD + b"to 1_0 2 3\n", 4, "number 1 of 'to', got '1_0'"),
    "nan": (GOOD + b"to 1 NaN 3\n", 4, "a finite number as number 2 of 'to', got 'NaN'"),
    "inf": (GOOD + b"to 1 2 -inf\n", 4, "a finite number as number 3 of 'to', got '-inf'"),
    "too large": (GOOD + b"to 1 2 1e39\nin 1 2 3\n", 4, "'to' is too large for float32"),
    "an empty word": (GOOD + b" 1 2 3\n", 4, "the word is empty"),
    "an empty word by tab": (GOOD.replace(b" ", b"\t") + b"\t1\t2\t3\n", 4, "the word is empty"),
    "an empty line": (GOOD + b"\nto 1 2 3\n", 4, "an empty line"),
    "an empty first line": (b"\n" + GOOD, 1, "an empty line"),
    "a cut last line": (GOOD + b"to 0.1 0.", 4, "expected a word and 3 numbers, got 2"),
    "a last line cut in the word": (GOOD + b"t", 4, "expected a word and 3 numbers, got 0"),
    "a last line cut in an exponent": (GOOD + b"to 1 2 3e-", 4, "number 3 of 'to', got '3e-'"),
    "more rows than promised": (b"2 3\n" + GOOD, 4, "promises 2 words, here is one more"),
    "fewer rows than promised": (b"4 3\n" + GOOD, 1, "promises 4 words, the file has 3"),
    "only a header": (b"4 3\n", 1, "promises 4 words, the file has 0"),
    "a header cut before its line end": (b"4 3", 1, "promises 4 words, the file has 0"),
    "another width promised": (b"3 5\n" + GOOD, 1, "promises 5 numbers a word, the lines have 3"),
    "a smaller width promised": (b"3 2\n" + GOOD, 1, "promises 2 numbers a word, the lines have 3"),
    "one line unlike the header": (
        b"3 3\nthe 1 2\n" + GOOD[16:] + b"to 1 2 3\n",
        2,
        "expected a word and 3 numbers, got 2",
    ),
    "no words promised": (b"0 3\n", 1, "promises 0 words"),
    "no numbers promised": (b"3 0\n" + GOOD, 1, "of 0 numbers"),
    "PNG": (PNG, 1, "looks like a PNG image"),
    "JSON": (b'{\n "words": ["the"],\n "vectors": []\n}\n', None, "looks like JSON"),
    "HTML": (b"<!DOCTYPE html>\n<html lang='en'>\n<body>\n</body>\n", None, "HTML"),
    "pickle": (b"\x80\x04\x95\x10\x00\x00\x00gensim.models.keyedvectors\n", 1, "a Python pickle"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 1, "git lfs pull"),
    "prose": (b"It was the best of times\nit was the worst\n", 1, "expected a number"),
    "a list of words": (b"the\nof\nand\n", 1, "expected a word and its numbers, got 'the'"),
    "comma separated": (b"word,x,y\nthe,0.1,0.2\n", 1, "expected a word and its numbers"),
    "blank lines only": (b"\n\n \n", None, "the file has no vectors"),
    "one number in all": (b"7\n", 1, "expected a word and its numbers, got '7'"),
}


def failure(tmp_path, content):
    path = tmp_path / "bad.vec"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.iterdir()) == [path], "a file that failed leaves nothing behind"
    return caught.value


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("case", TEXT)
def test_text(tmp_path, case, packed):
    content, line, message = TEXT[case]
    error = failure(tmp_path, gzip.compress(content) if packed else content)
    assert message in error.problem
    assert line is None or error.line == line


def test_line_numbers_hold_in_later_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(text_format, "BLOCK", 256)
    lines = [b"w%d 0.5 0.25" % i for i in range(1000)]
    for broken in (0, 1, 17, 500, 998, 999):
        content = b"\n".join([*lines[:broken], b"w 0.5", *lines[broken + 1 :]]) + b"\n"
        assert failure(tmp_path, content).line == broken + 1
        assert failure(tmp_path, b"1000 2\r\n" + content).line == broken + 2


def test_the_first_fault_is_the_one_named(tmp_path):
    assert failure(tmp_path, GOOD + b"to 1\nin 1 x 3\n").line == 4


def test_surplus_rows_are_found_under_a_generous_limit(tmp_path):
    path = tmp_path / "bad.vec"
    path.write_bytes(b"2 3\n" + GOOD)
    with pytest.raises(FileError, match="line 4: the header promises 2 words"):
        load(path, limit=10)
    assert len(load(path, limit=2)) == 2


def test_an_empty_file(tmp_path):
    assert failure(tmp_path, b"").problem == "the file is empty"
    assert failure(tmp_path, gzip.compress(b"")).problem == "the file is empty"


def test_every_cut_of_a_binary_file_is_found(tmp_path):
    whole = binary()
    for end in range(4, len(whole)):
        error = failure(tmp_path, whole[:end])
        assert "word " in error.problem or error.line == 1, whole[:end]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (binary()[:-5], "word 2, at byte 20: the file ends after 7 of the vector's 12 bytes"),
        (binary()[:21], "word 2, at byte 20: the file ends in the middle of a word"),
        (binary(count=3), "word 3, at byte 35: the file ends here, the header promises 3 words"),
        (binary(count=1), "the header promises 1 word, but more follows at byte 20"),
        (binary(words=(b"the", b"")), "word 2, at byte 20: expected a word, got an empty word"),
        (binary(words=(b"the", b"a\nb")), "word 2, at byte 20: expected a word, got a word with"),
        (binary(value=float("nan")), "word 1 ('the'): a number is nan or infinite"),
        (binary(value=float("inf")), "word 1 ('the'): a number is nan or infinite"),
        (binary(words=(b"the", b"x" * 5000)), "word 2, at byte 20: no space after the word"),
        (binary(count=10**12), "word 3, at byte 47: the file ends here"),
        (binary(count=2, width=3).replace(b"2 3", b"2 999999999", 1), "word 1, at byte 12"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_binary(tmp_path, content, message):
    assert message in failure(tmp_path, content).problem


def test_gzip_cut_short_or_damaged(tmp_path):
    packed = gzip.compress(GOOD)
    for end in range(3, len(packed)):
        assert "gzip" in failure(tmp_path, packed[:end]).problem
    assert "gzip" in failure(tmp_path, packed[:-8] + b"\0" * 8).problem


def arrays(**changes):
    def letters(text):
        return np.frombuffer(text.encode(), dtype=np.uint8)

    content = {
        "words": letters("the\nof"),
        "matrix": np.ones((2, 3), dtype=np.float32),
        "meta": letters('{"format": "evenhand-vectors/1"}'),
    } | {name: letters(it) if isinstance(it, str) else it for name, it in changes.items()}
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in content.items() if array is not None})
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (arrays(words=None), "no array 'words'"),
        (arrays(matrix=None), "no array 'matrix'"),
        (arrays(meta=None), "no array 'meta'"),
        (arrays(meta="{}"), "'meta' is not the JSON"),
        (arrays(meta="[]"), "'meta' is not the JSON"),
        (arrays(meta='{"format": "other/1"}'), "expected the format evenhand-vectors/1"),
        (arrays(words="the\nof\nand"), "3 words for 2 vectors"),
        (arrays(words="the\n"), "an empty or a repeated word"),
        (arrays(words="the\nthe"), "an empty or a repeated word"),
        (arrays(words=np.array(["the", "of"])), "'words' must be bytes"),
        (arrays(matrix=np.ones(2, dtype=np.float32)), "'matrix' must be n × d"),
        (arrays(matrix=np.ones((2, 3), dtype=np.int32)), "'matrix' must be n × d"),
        (arrays(matrix=np.full((2, 3), np.nan, dtype=np.float32)), "nan or infinite"),
        (arrays(matrix=np.array([[1], [object()]])), "cannot be read as .npz"),
        (arrays(ranks=np.arange(3, dtype=np.uint32)), "'ranks' must be a uint32 a word"),
        (arrays()[:-30], "cannot be read as .npz"),
        (arrays()[:200], "cannot be read as .npz"),
        (b"PK\x03\x04 and no more", "cannot be read as .npz"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_npz(tmp_path, content, message):
    assert message in failure(tmp_path, content).problem


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(FileError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(FileError, match=r"no such file \(embedded vectors: glove\)"):
        load(tmp_path / "absent.txt")
    with pytest.raises(UnknownNameError, match="unknown vectors 'golve': did you mean 'glove'"):
        load("golve")
    with pytest.raises(InputError, match="read from files or embedded"):
        load("hf:glove")


def test_wrong_options(tmp_path):
    with pytest.raises(InputError, match="limit: expected at least 1, got 0"):
        load("glove", limit=0)
    with pytest.raises(InputError, match=r"unknown case 'lower' \(known: exact, fallback\)"):
        load("glove", case="lower")


def test_a_stream_is_refused_before_it_is_opened(tmp_path):
    pipe = tmp_path / "pipe.vec"
    os.mkfifo(pipe)
    with pytest.raises(FileError, match="not a regular file"):
        load(pipe)
