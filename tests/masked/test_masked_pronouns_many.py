"""The pronoun score of many sentences: intervals, models compared, files, and going on."""

from __future__ import annotations

import bz2
import json

import numpy as np
import pandas as pd
import pytest

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError
from evenhand.masked import load
from evenhand.masked.metrics import pronouns, pronouns_asking
from evenhand.masked.metrics.pronouns import (
    Rule,
    Sentence,
    compare,
    probabilities,
    score,
    score_file,
)
from evenhand.masked.metrics.pronouns_interval import bootstrap_mean, sign_test
from evenhand.simulate.masked import bigram_model
from evenhand.text.structural import Accepted as Accepted
from evenhand.text.structural import Filter


@pytest.fixture(scope="module")
def mini():
    return load("mini")


# --- the interval ---------------------------------------------------------------------------


def two_peaks(rng, shape):
    return np.where(rng.random(shape) < 0.7, rng.beta(8, 1, shape), rng.beta(1, 8, shape))


def with_ones(rng, shape):
    return np.where(rng.random(shape) < 0.3, 1.0, rng.beta(6, 4, shape))


POPULATIONS = [
    (lambda rng, shape: rng.beta(11, 9, shape), 0.55),
    (lambda rng, shape: rng.beta(20, 0.5, shape), 20 / 20.5),
    (two_peaks, 0.7 * 8 / 9 + 0.3 / 9),
    (with_ones, 0.3 + 0.7 * 0.6),
]


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 30, 120])
@pytest.mark.parametrize(("draw", "mean"), POPULATIONS, ids=["usual", "skewed", "peaks", "ones"])
def test_the_interval_covers(n, draw, mean):
    """A 95 % interval covers 92 % of 600 samples at least (three standard errors below)."""
    samples = draw(np.random.default_rng(n), (600, n))
    told = [bootstrap_mean(x, seed=i, draws=1000) for i, x in enumerate(samples)]
    assert np.mean([e.low <= mean <= e.high for e in told]) > 0.92


@pytest.mark.parametrize("draw", [draw for draw, _ in POPULATIONS])
def test_many_values_resampled_in_groups_read_the_same(draw):
    """Above 2,048 values the groups' interval is the normal one, to the noise of the draws."""
    x = draw(np.random.default_rng(1), 20_000)
    told = bootstrap_mean(x)
    half = 1.96 * x.std(ddof=1) / np.sqrt(x.size)
    assert told.value == pytest.approx(x.mean())
    assert (told.high - told.low) / (2 * half) == pytest.approx(1, abs=0.05)
    assert (told.high + told.low) / 2 == pytest.approx(x.mean(), abs=0.1 * half)


def test_the_interval_of_few_or_equal_values():
    nothing = bootstrap_mean([])
    assert np.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (0, 1)
    one = bootstrap_mean([0.7])
    assert one.low < 0.1
    assert one.high > 0.95
    same = bootstrap_mean([1.0] * 100)  # at most 1 - .025^(1/100) of all are not 1
    assert (same.value, same.high) == (1, 1)
    assert same.low == pytest.approx(0.025 ** (1 / 100))
    two = bootstrap_mean([0.4, 0.6])
    assert (two.low, two.high) == (0, 1)


def test_the_interval_depends_on_the_seed_alone():
    x = np.random.default_rng(0).random(50)
    assert bootstrap_mean(x, seed=3) == bootstrap_mean(x[::-1], seed=3)
    assert bootstrap_mean(x, seed=3) != bootstrap_mean(x, seed=4)
    narrow, wide = bootstrap_mean(x, prob=0.5), bootstrap_mean(x, prob=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("above", "below"), [(8, 2), (5, 5), (0, 7), (0, 0), (600, 500)])
def test_sign_test_is_the_exact_binomial_test(above, below):
    from scipy.stats import binomtest

    n = above + below
    expected = binomtest(above, n, 0.5).pvalue if n else 1.0
    x = np.repeat([0.2, -0.1, 1e-8], [above, below, 3])
    assert sign_test(x) == pytest.approx(expected)


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
    scores = [score(model, texts(40), words="pronouns") for model in (one, two, three)]
    first, second, third = compare(scores)
    assert (first.first, first.second) == ("one", "two")
    assert first.full_vocabulary.value == pytest.approx(0.1 * 40 / 41, abs=1e-6)
    assert first.top_k.value == pytest.approx(0.1, abs=1e-6)
    assert first.decided == {"both": 40, "only_first": 0, "only_second": 1, "neither": 0}
    assert first.n == 41
    assert first.p_value == pytest.approx(2 * 0.5**40)
    assert first.p_corrected == pytest.approx(3 * 2 * 0.5**40)
    # the pairing takes the sentences' own spread out of the difference
    wide = second.full_vocabulary.high - second.full_vocabulary.low
    assert 0.07 < first.full_vocabulary.low < first.full_vocabulary.high < 0.11
    assert wide > 0.08
    assert second.full_vocabulary.low < 0 < second.full_vocabulary.high
    back = compare([scores[1], scores[0]])[0]
    assert back.full_vocabulary.value == pytest.approx(-first.full_vocabulary.value)
    assert third.as_dict()["first"] == "two"


def test_only_sentences_that_both_scored_are_compared():
    one, two = world([0.4, 0.6], "one"), world([0.5, 0.5], "two")
    few = [score(one, texts(2), words="pronouns"), score(two, texts(2)[1:], words="pronouns")]
    pair = compare(few)[0]
    assert (pair.n, pair.only_first, pair.only_second) == (2, 1, 0)
    assert pair.full_vocabulary.value == pytest.approx(-0.05, abs=1e-6)
    with pytest.raises(InputError, match="'one' and 'two'"):
        compare([few[0], score(two, ["c3 [MASK] ."], words="pronouns")])
    with pytest.raises(InputError, match="same rule"):
        compare([few[0], score(two, texts(2), words="pronouns", delta=0.1)])


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
    monkeypatch.setattr(pronouns, "CHUNK", 2)
    out = tmp_path / f"items{ending}"
    (told,) = score_file([mini], source, output=out)
    sentences = list(pronouns.read_sentences(source))
    plain = score(mini, sentences)
    assert (len(told), told.duplicates, told.blank, len(told.left_out)) == (5, 1, 6, 1)
    assert told.left_out[0].line == 13
    np.testing.assert_allclose(told.full_bias, plain.full_bias, atol=1e-6)
    assert told.sentences is None
    with pytest.raises(InputError, match="not held"):
        told.to_frame()
    readers = {
        ".csv": lambda path: pd.read_csv(path, keep_default_na=False, na_values=[""]),
        ".jsonl": lambda path: pd.read_json(path, lines=True),
        ".parquet": pd.read_parquet,
    }
    items = readers[ending](out)
    expected = plain.to_frame()
    pd.testing.assert_frame_equal(items, expected, check_dtype=False, atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl.bz2", out.name]


def test_two_models_from_one_reading(mini, source, tmp_path):
    seen = []
    out = tmp_path / "items.csv"
    scores = score_file(
        [mini, mini], source, output=out, progress=lambda done, total: seen.append((done, total))
    )
    assert len(pd.read_csv(out)) == 2 * 5
    assert compare(scores)[0].full_vocabulary.value == 0
    assert seen[-1] == (14, 14)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_run_broken_off_goes_on(mini, source, tmp_path, monkeypatch):
    """What the model said before the break is not asked again, and the result is the same."""
    monkeypatch.setattr(pronouns, "CHUNK", 2)
    out = tmp_path / "items.csv"
    (expected,) = score_file([mini], source)
    asked = []
    real = pronouns_asking.ask

    def broken(model, places, **options):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(len(places))
        return real(model, places, **options)

    monkeypatch.setattr(pronouns_asking, "ask", broken)
    with pytest.raises(KeyboardInterrupt):
        score_file([mini], source, output=out)
    assert not out.exists()
    assert (tmp_path / "items.csv.partial").is_dir()
    before = sum(asked)
    asked = [0] * 5

    def counted(model, places, **options):
        asked.append(len(places))
        return real(model, places, **options)

    monkeypatch.setattr(pronouns_asking, "ask", counted)
    (told,) = score_file([mini], source, output=out)
    assert before + sum(asked) == 5
    assert before >= 2
    assert told.as_dict() == expected.as_dict()
    assert not (tmp_path / "items.csv.partial").exists()


def test_kept_answers_are_those_of_the_same_question(mini, tmp_path, monkeypatch):
    """Another k, other words or another model ask anew; the same question does not."""
    cache = Cache(tmp_path / "kept")
    asked = []
    real = pronouns_asking.ask
    monkeypatch.setattr(
        pronouns_asking, "ask", lambda *a, **o: asked.append(len(a[1])) or real(*a, **o)
    )
    sentences = ["The cook lost [MASK] keys.", "[MASK] is a nurse."]
    first = score(mini, sentences, cache=cache)
    again = score(mini, sentences, cache=Cache(tmp_path / "kept"))
    assert sum(asked) == 2
    assert first.as_dict() == again.as_dict()
    score(mini, sentences, cache=cache, delta=0.1)
    assert sum(asked) == 2
    score(mini, sentences, cache=cache, top_k=5)
    score(mini, sentences, cache=cache, words="pronouns")
    assert sum(asked) == 6


def test_answers_kept_under_another_word_list_are_not_read(mini, tmp_path, monkeypatch):
    """The codes of the best words are places in the list: another list is another question."""
    cache = Cache(tmp_path)
    texts = ["The cook lost [MASK] keys."]
    first = probabilities(mini, texts, cache=cache)
    n = len(cache)
    monkeypatch.setattr(pronouns_asking, "_LIST", "another list")
    again = probabilities(mini, texts, cache=cache)
    assert len(cache) == 2 * n
    assert again.male_word[0] == first.male_word[0]


def test_files_without_sentences_are_refused(mini, tmp_path):
    path = tmp_path / "in.txt"
    path.write_text("\n\n")
    with pytest.raises(FileError, match="there are none"):
        score_file([mini], path)
    path.write_text("and then " * 300 + "[MASK] left.")
    with pytest.raises(FileError, match="expected at most"):
        score_file([mini], path)
    path.write_text("[MASK] left.\nnothing\n")
    out = tmp_path / "items.csv"
    with pytest.raises(FileError, match="line 2"):
        score_file([mini], path, output=out)
    assert [p.name for p in tmp_path.iterdir()] == ["in.txt"]
    with pytest.raises(InputError, match=r"\.csv, \.jsonl, \.parquet"):
        score_file([mini], path, output=tmp_path / "items.xlsx")


def test_swag_through_the_filter(mini, shared):
    """The whole way on real sentences: more of them male than female, none lost."""
    lines = (shared / "data/swag/swag_sent1_subset.txt").read_text().splitlines()
    found = [kept for kept in map(Filter().sentence, lines) if isinstance(kept, Accepted)]
    told = score(mini, [Sentence(kept.masked, kept.pronoun) for kept in found])
    groups = told.top.groups
    assert len(told) + told.duplicates == len(found) == 92
    assert sum(group.n for group in groups.values()) == len(told)
    assert sum(told.top.histogram) == told.top.decided
    assert groups["male"].n > 10 * groups["female"].n
    assert told.top.mean_bias.low > 0.7
    assert {part.name for part in told.by_slot} == {"subject", "object", "possessive", "reflexive"}
    assert told.as_dict()["rule"]["top_k"] == Rule().top_k
