"""The pronoun score of several models and of files, and resuming."""

from __future__ import annotations

import bz2
import json

import numpy as np
import pandas as pd
import pytest

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError
from evenhand.instruments import Run
from evenhand.models import gender_words
from evenhand.models.gender_words import probabilities
from evenhand.models.metrics import pronouns as module
from evenhand.models.metrics.pronouns import (
    Pronouns,
)
from evenhand.models.sentences import Sentence, read_sentences
from evenhand.simulate.masked import bigram_model
from evenhand.text.structural import Accepted, Filter

# --- several models -------------------------------------------------------------------------


def world(p_he, name, least=0.2):
    """After word i the model says `he` with probability p_he[i] of 0.6; the last says little."""
    table = {f"c{i}": {"he": 0.6 * p, "she": 0.6 * (1 - p)} for i, p in enumerate(p_he)}
    table["rare"] = {"he": least, "she": least / 2, "it": 0.5}
    return bigram_model(table, name=name)


def texts(n):
    return [*(f"c{i} [MASK] ." for i in range(n)), "rare [MASK] ."]


def test_paired_differences():
    rng = np.random.default_rng(5)
    base = rng.uniform(0.3, 0.7, 40)
    one, two = world(base, "one", 0.02), world(base + 0.1, "two")
    three = world(rng.permutation(base), "three")
    first, second, third = (
        Pronouns(words="pronouns")(model, texts(40)) for model in (one, two, three)
    )
    change = Pronouns.compare(first, second)
    assert (change.before.subject, change.after.subject) == ("one", "two")
    assert change.change.value == pytest.approx(0.1 * 40 / 41, abs=1e-6)
    [top] = change.parts
    assert top.change.value == pytest.approx(0.1, abs=1e-6)
    assert top.paired == 40
    assert change.details["decided"] == {
        "both": 40,
        "only_before": 0,
        "only_after": 1,
        "neither": 0,
    }
    assert change.paired == 41
    assert change.p_value == pytest.approx(2 * 0.5**40)
    # the pairing takes the sentences' own spread out of the difference
    unrelated = Pronouns.compare(first, third).change
    assert 0.07 < change.change.low < change.change.high < 0.11
    assert unrelated.high - unrelated.low > 0.08
    assert unrelated.low < 0 < unrelated.high
    back = Pronouns.compare(second, first)
    assert back.change.value == pytest.approx(-change.change.value)


def test_only_sentences_that_both_scored_are_compared():
    one, two = world([0.4, 0.6], "one"), world([0.5, 0.5], "two")
    first = Pronouns(words="pronouns")(one, texts(2))
    change = Pronouns.compare(first, Pronouns(words="pronouns")(two, texts(2)[1:]))
    assert (change.paired, change.details["only_before"], change.details["only_after"]) == (2, 1, 0)
    assert change.change.value == pytest.approx(-0.05, abs=1e-6)
    with pytest.raises(InputError, match="'one' and 'two'"):
        Pronouns.compare(first, Pronouns(words="pronouns")(two, ["c3 [MASK] ."]))
    with pytest.raises(InputError, match="same rule"):
        Pronouns.compare(first, Pronouns(words="pronouns", delta=0.1)(two, texts(2)))


# --- files ----------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    rows = [{"masked": f"The {w} lost [MASK] keys.", "pronoun": "her"} for w in ("cook", "clerk")]
    rows += [{"masked": f"[MASK] is a {w}.", "pronoun": "he"} for w in ("nurse", "judge", "guide")]
    rows.append(rows[0])
    rows.append({"masked": "Then " + "and then " * 300 + "[MASK] left."})
    path = tmp_path / "in.jsonl.bz2"
    path.write_bytes(bz2.compress(("\n\n".join(map(json.dumps, rows)) + "\n").encode()))
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_a_file_reads_as_its_sentences(mini, source, tmp_path, ending, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 2)
    out = tmp_path / f"items{ending}"
    m = Pronouns().measure_file(mini, source, output=out)
    plain = Pronouns()(mini, read_sentences(source))
    counts = [m.details[name] for name in ("duplicates", "blank_lines")]
    assert (len(m.items), *counts, len(m.left_out)) == (5, 1, 6, 1)
    assert m.left_out[0].startswith("line 13: ")
    np.testing.assert_allclose(m.items["full_bias"], plain.items["full_bias"], atol=1e-6)
    readers = {
        ".csv": lambda path: pd.read_csv(path, keep_default_na=False, na_values=[""]),
        ".jsonl": lambda path: pd.read_json(path, lines=True),
        ".parquet": pd.read_parquet,
    }
    items = readers[ending](out)
    expected = plain.to_frame()
    expected.insert(0, "model", "mini")
    pd.testing.assert_frame_equal(items, expected, check_dtype=False, atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl.bz2", out.name]


def test_progress_counts_every_sentence(mini, source, tmp_path):
    seen = []
    run = Run(progress=lambda done, total: seen.append((done, total)))
    Pronouns().measure_file(mini, source, run, output=tmp_path / "items.csv")
    assert seen[-1] == (7, 7)
    assert {total for _, total in seen} == {7}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_interrupted_run_resumes(mini, source, tmp_path, monkeypatch):
    """Answers from before the interruption are not queried again; the result is the same."""
    monkeypatch.setattr(module, "CHUNK", 2)
    out = tmp_path / "items.csv"
    expected = Pronouns().measure_file(mini, source)
    queried = []
    real = gender_words.compute

    def broken(model, positions, missing, *given, **options):
        if len(queried) == 2:
            raise KeyboardInterrupt
        queried.append(len(missing))
        return real(model, positions, missing, *given, **options)

    monkeypatch.setattr(gender_words, "compute", broken)
    with pytest.raises(KeyboardInterrupt):
        Pronouns().measure_file(mini, source, Run(cache=Cache(tmp_path / "answers")), output=out)
    assert not out.exists()
    before = sum(queried)
    queried = [0] * 5

    def counted(model, positions, missing, *given, **options):
        queried.append(len(missing))
        return real(model, positions, missing, *given, **options)

    monkeypatch.setattr(gender_words, "compute", counted)
    run = Run(cache=Cache(tmp_path / "answers"))
    m = Pronouns().measure_file(mini, source, run, output=out)
    assert before + sum(queried) == 5
    assert before >= 2
    assert m == expected


def test_cached_answers_are_those_of_the_same_question(mini, tmp_path, monkeypatch):
    """Another k, other words or another model are new questions; the same question is not."""
    cache = Cache(tmp_path / "cache")
    asked = []
    real = gender_words.compute
    monkeypatch.setattr(
        gender_words, "compute", lambda *a, **o: asked.append(len(a[2])) or real(*a, **o)
    )
    sentences = ["The cook lost [MASK] keys.", "[MASK] is a nurse."]
    first = Pronouns()(mini, sentences, cache=cache)
    again = Pronouns()(mini, sentences, cache=Cache(tmp_path / "cache"))
    assert sum(asked) == 2
    assert first == again
    Pronouns(delta=0.1)(mini, sentences, cache=cache)
    assert sum(asked) == 2
    Pronouns(top_k=5)(mini, sentences, cache=cache)
    Pronouns(words="pronouns")(mini, sentences, cache=cache)
    assert sum(asked) == 6


def test_cached_answers_under_another_word_list_are_not_read(mini, tmp_path, monkeypatch):
    """The codes of the best words are places in the list: another list is another question."""
    cache = Cache(tmp_path)
    texts = ["The cook lost [MASK] keys."]
    first = probabilities(mini, texts, cache=cache)
    n = len(cache)
    monkeypatch.setattr(gender_words, "_word_list", lambda: "another list")
    again = probabilities(mini, texts, cache=cache)
    assert len(cache) == 2 * n
    assert again.male_word[0] == first.male_word[0]


def test_a_broken_file_leaves_nothing_behind(mini, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("[MASK] left.\nnothing\n")
    with pytest.raises(FileError, match="line 2"):
        Pronouns().measure_file(mini, path, output=tmp_path / "items.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["in.txt"]
    path.write_text("[MASK] left.\n")
    with pytest.raises(InputError, match=r"\.csv, \.jsonl, \.parquet"):
        Pronouns().measure_file(mini, path, output=tmp_path / "items.xlsx")


def test_a_file_may_have_no_sentence_that_can_be_scored(mini, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n\n")
    assert not Pronouns().measure_file(mini, path).left_out
    path.write_text("and then " * 300 + "[MASK] left.")
    m = Pronouns().measure_file(mini, path)
    assert not len(m.items)
    assert "expected at most" in m.left_out[0]


def test_swag_through_the_filter(mini, shared):
    """The whole way on real sentences: more of them male than female, none lost."""
    lines = (shared / "data/swag/swag_sent1_subset.txt").read_text().splitlines()
    results = map(Filter().sentence, lines)
    accepted = [each for each in results if isinstance(each, Accepted)]
    m = Pronouns()(mini, [Sentence(each.masked, each.pronoun) for each in accepted])
    top = m.part("top 10", "vocabulary")
    counts = {part.query: part.details["count"] for part in top.select("verdict")}
    assert len(m.items) + m.details["duplicates"] == len(accepted) == 92
    assert sum(counts.values()) == len(m.items)
    assert sum(top.details["histogram"]["counts"]) == top.n
    assert counts["male"] > 10 * counts["female"]
    assert top.low > 0.7
    slots = {part.query for part in m.select("slot")}
    assert slots == {"subject", "object", "possessive", "reflexive"}
