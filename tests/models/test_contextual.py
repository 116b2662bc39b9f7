"""The corpus of contextual bias: its rule, its tables, and its verdicts."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import contextual as study  # noqa: E402
from implicit_data import sentence_id  # noqa: E402


@pytest.mark.parametrize(
    ("sentence", "second"),
    [
        ("The girl cried, because she was afraid of the dark.", "she was"),
        ("He never wept in front of others, but he was not hard.", "he was"),
        ("The girl cried, because the boy was afraid of the dark.", None),  # no pronoun begins it
        ("The nurse cried, because she was afraid of the dark.", None),  # neutral first clause
        ("Then Mary cried, because she was afraid of the dark.", None),  # a name
        ("The girl cried because she was there but she left.", None),  # three clauses
        ("The girl, because she was afraid of the dark.", None),  # no verb in the first
        ("The girl cried because she was.", "she was"),
    ],
)
def test_the_rule(sentence, second):
    row = study.find_contextual(sentence)
    assert (row and sentence[int(row["second"]) :].startswith(second)) == (
        None if second is None else True
    )


def test_sentences_of_both_genders_are_left_out_and_files_are_read(tmp_path, capsys):
    (tmp_path / "a.txt").write_text(
        "It rained. The girl cried, because she was afraid of the dark.\n"
        "The girl hit him, because she was afraid of the dark.\n"
        "He never wept in front of others, but he was not hard.\n"
    )
    out = tmp_path / "out.csv.xz"
    study.find([f"tale={tmp_path / 'a.txt'}"], out)
    rows = study.read_corpus(out)
    assert [(row["written"], row["line"], row["source"]) for row in rows] == [
        ("female", "a.txt:1", "tale"),
        ("male", "a.txt:3", "tale"),
    ]
    clause = study.with_neutral_clause(rows[0], "was there")
    assert clause == "The girl cried, because she was there."
    study.score("mini", "mini", out, 1)
    scored = study.read_corpus(out)
    assert all(np.isfinite(float(row["score mini"])) for row in scored)


def test_the_page_has_the_published_tables_and_the_corpus_keeps_the_rule():
    page = study.DATA.with_name("contextual.md").read_text(encoding="utf-8")
    for table in study.tables(study.DATA).split("\n\n"):
        assert table in page
    rows = study.read_corpus(study.DATA)
    assert len(rows) == 600
    for row in rows:
        assert row["id"] == sentence_id(row["sentence"])
        assert study.find_contextual(row["sentence"])["second"] == row["second"]
