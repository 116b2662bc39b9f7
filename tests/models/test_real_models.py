"""Published scores of real models: their published numbers, and the page of ours."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import icat_order
import real_models
from evenhand.results import Estimate
from evenhand.scores import analyze

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "real-models"
PAGE = ROOT / "docs" / "experiments" / "real-models.md"


@pytest.fixture(scope="module")
def data(shared):
    folder = shared / "data"
    if not (folder / "published").is_dir():
        pytest.skip("needs ../shared/data/published")
    return folder


def read(name):
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ------------------------------------------------------------------------- published numbers


@pytest.mark.slow
def test_published_values_of_stereoset_come_out(data):
    repeated = [row.repeated for row in real_models.measure_stereoset(data / "published")]
    assert (len(repeated), repeated.count("same"), repeated.count("within ties")) == (264, 217, 47)


def test_published_values_of_stereoset_with_the_rule_of_the_authors(data):
    """A tie is no preference for the stereotype, nor for a meaningful text; plain arithmetic."""
    folder = data / "published"
    items = real_models.stereoset_items(folder)
    published = pd.read_csv(folder / "stereoset_published.csv")
    published["model"] = published["model"].map(real_models.STEREOSET)
    known = published.set_index(["model", "kind", "domain"])
    same, others = 0, set()
    for model, rows in items.groupby("model"):
        for kind, domain, own in real_models.stereoset_parts(rows):
            texts = (own[name] > own["unrelated"] for name in ("stereotype", "anti"))
            scores = own.assign(ss=own["stereotype"] > own["anti"], lms=sum(texts) / 2)
            ss, lms = 100 * scores.groupby("target")[["ss", "lms"]].mean().mean()
            ours = {"ss": ss, "lms": lms, "icat": lms * min(ss, 100 - ss) / 50}
            for name, value in ours.items():
                if abs(value - known.loc[(model, kind, domain)][name]) < 1e-6:
                    same += 1
                else:
                    others.add(model)
    assert same == 236
    assert others == {"BERT-base cased", "BERT-large cased", "RoBERTa-base"}


def test_published_values_of_crows_come_out(data):
    """Nangia et al. (2020) print 60.5, 61.1 and 56.9 for BERT; the others by plain arithmetic."""
    rows = real_models.measure_crows(real_models.crows_rows(data))
    ours = {(row.system, row.part): 100 * row.measured.value for row in rows}
    for part, value in {"over pairs": 60.5, "stereo": 61.1, "antistereo": 56.9}.items():
        assert ours["BERT-base uncased", part] == pytest.approx(value, abs=0.05)
    table = pd.read_csv(data / "published" / "crows_scores.csv.xz")
    higher = table["sent_more_score"] > table["sent_less_score"]
    table["prefers"] = higher == (table["direction"] == "stereo")
    for name, value in {"bert": 60.4775, "scibert": 57.1618, "biobert": 47.7454}.items():
        plain = 100 * table.loc[table["model"] == name, "prefers"].mean()
        for part in ("over pairs", "over writers"):
            assert ours[real_models.CROWS[name], part] == pytest.approx(plain)
        assert plain == pytest.approx(value, abs=1e-4)


def test_agreement_of_five_chat_models_comes_out(data):
    """All 15 shares as plain arithmetic has them, as published on the page of answers."""
    table = pd.read_csv(data / "published" / "decodingtrust_stereotype.csv.xz")
    table["said"] = table["answers"].str.count(r"\+") / table["answers"].str.len()
    shares = table.groupby(["model", "system_prompt"])["said"].mean()
    with (ROOT / "docs/results/answers/agreement.csv").open(encoding="utf-8") as file:
        page = {(row["model"], row["system"]): float(row["value"]) for row in csv.DictReader(file)}
    ours = {row["system"]: float(row["value"]) for row in read("real-models") if not row["part"]}
    assert len(shares) == len(page) == len(ours) == 15
    for (model, prompt), share in shares.items():
        assert page[model, prompt] == pytest.approx(share, abs=1e-6)
        assert ours[f"{model}, {prompt}"] == pytest.approx(share, abs=1e-6)


# -------------------------------------------------------------------------------- our tables


@pytest.mark.slow
def test_the_files_come_out(data):
    for name, rows in real_models.measure(data).items():
        published = read(name)
        assert len(rows) == len(published)
        for row, known in zip(rows, published, strict=True):
            assert list(row) == list(known)
            for key, value in row.items():
                if key in ("needed", "now") and str(value).isdigit():
                    assert int(known[key]) == pytest.approx(int(value), rel=0.01)
                elif isinstance(value, float):
                    assert float(known[key]) == pytest.approx(value, abs=2e-3)
                else:
                    assert known[key] == ("" if value is None else str(value)), (row, key)


def test_the_page_has_the_tables_that_are_printed(capsys):
    real_models.tables(RESULTS)
    page = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()]
    printed = capsys.readouterr().out.splitlines()
    rows = [line for line in printed if line.startswith("|")]
    assert len(rows) > 150
    assert [row for row in rows if row not in page] == []
    assert next(line for line in printed if "published values" in line) in " ".join(page)


def test_the_counts_in_the_text_are_those_of_the_pairs():
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    pairs, rows = read("pairs"), read("real-models")

    def counted(**key):
        own = [pair["outcome"] for pair in pairs if key.items() <= pair.items()]
        return f"{own.count('differs')} of {len(own)} pairs"

    overall = {"benchmark": "StereoSet", "part": "overall"}
    for key in ({**overall, "quantity": "ss"}, {**overall, "quantity": "lms"}):
        assert counted(**key) in page
    assert counted(benchmark="DecodingTrust") in page
    assert counted(benchmark="GEST") == "0 of 226 pairs"
    assert "on GEST none of 226" in page
    of_icat = [row for row in rows if {**overall, "quantity": "icat"}.items() <= row.items()]
    assert sum(row["rank_low"] == "1" for row in of_icat) == 6
    assert sum(row["rank_low"] == row["rank_high"] for row in of_icat) == 2
    assert "six of eight systems could be first and the last two have their place" in page
    of_ss = [row for row in rows if {**overall, "quantity": "ss"}.items() <= row.items()]
    assert sum(row["outcome"] == "found" for row in of_ss) == 7
    together = read("agreement")
    assert all(row["differ_both"] in ("", "0") for row in together)


def test_a_value_and_its_rank_have_the_same_mean():
    """The instrument's value and the mean by which systems are ranked."""
    rows = {(r["benchmark"], r["part"], r["quantity"], r["system"]): r for r in read("real-models")}
    pairs = read("pairs")
    for pair in pairs:
        key = (pair["benchmark"], pair["part"], pair["quantity"])
        one, two = (float(rows[*key, pair[side]]["value"]) for side in ("first", "second"))
        change = float(pair["change"])
        if pair["quantity"] in ("ss", "share"):  # compared by their distances from the ideal
            change = abs(change)
            one, two = 0.0, abs(abs(two - 0.5) - abs(one - 0.5))
        assert two - one == pytest.approx(change, abs=3e-6), pair
    assert len(pairs) == 9 * 28 + 3 + 36 + 190 + 105


# -------------------------------------------------------------------------------------- icat


def terms_of(rng, systems, terms=79, items=27):
    """Scores of target terms of systems with these stereotype and language scores."""
    rows = []
    for number, (share, language) in enumerate(systems):
        for term in range(terms):
            ss = rng.binomial(items, share) / items
            lms = rng.binomial(2 * items, language) / 2 / items
            rows.append({"model": f"m{number}", "target": str(term), "ss": ss, "lms": lms})
    return pd.DataFrame(rows)


def plain_icat(own):
    share, language = own["ss"].mean(), own["lms"].mean()
    return language * min(share, 1 - share) / 0.5


def test_icat_is_that_of_the_formula_and_its_error_that_of_a_bootstrap():
    rng = np.random.default_rng(3)
    terms = terms_of(rng, [(0.62, 0.85), (0.45, 0.7)])
    found = icat_order.rank_icat(terms, {"m0": True, "m1": True})
    one, two = (terms[terms["model"] == name].reset_index() for name in ("m0", "m1"))
    for m, own in zip(found.measurements, (one, two), strict=True):
        assert m.value == pytest.approx(plain_icat(own))
    (c,) = found.comparisons
    assert c.change.value == pytest.approx(plain_icat(two) - plain_icat(one))
    samples = rng.integers(len(one), size=(2000, len(one)))
    changes = [plain_icat(two.iloc[each]) - plain_icat(one.iloc[each]) for each in samples]
    assert (c.change.high - c.change.low) / 2 == pytest.approx(1.99 * np.std(changes), rel=0.08)


@pytest.mark.slow
def test_equal_systems_at_the_kink_seldom_differ():
    """Where ss is .5, icat has a kink: both of its products have to differ."""
    rng = np.random.default_rng(4)
    worlds, wrong = 300, 0
    for _ in range(worlds):
        terms = terms_of(rng, [(0.5, 0.8)] * 3)
        shares = analyze(terms, item="target", model="model", score="ss", ideal=0.5)
        judged = {m.query: m.details["outcome"] == "found" for m in shares.measurements}
        found = icat_order.rank_icat(terms, judged)
        wrong += any(icat_order.differs(c) for c in found.comparisons)
        assert {m.query for m in found.ranking} == {"m0", "m1", "m2"}
    assert wrong / worlds < 0.05


def test_systems_at_the_kink_that_are_not_equal_differ():
    terms = terms_of(np.random.default_rng(4), [(0.5, 0.8), (0.5, 0.6), (0.6, 0.8)])
    found = icat_order.rank_icat(terms, {"m0": False, "m1": False, "m2": True})
    assert [m.query for m in found.ranking] == ["m0", "m2", "m1"]
    apart = {frozenset((c.before.query, c.after.query)): c for c in found.comparisons}
    for pair in (("m0", "m1"), ("m0", "m2")):
        assert icat_order.differs(apart[frozenset(pair)])
        assert apart[frozenset(pair)].p_corrected < 0.05


def test_the_smallest_of_rows_less_the_smallest_of_columns():
    """By brute force: whatever values the differences allow is inside the joined interval."""
    rng = np.random.default_rng(5)
    (c,) = icat_order.rank_icat(
        terms_of(rng, [(0.6, 0.8), (0.7, 0.8)]), {"m0": True, "m1": True}
    ).comparisons
    outcomes = []
    for _ in range(300):
        ones, twos = (np.sort(rng.normal(size=2)) for _ in range(2))
        half = rng.uniform(0, 1.5, size=(2, 2))
        table = []
        for i, two in enumerate(twos):
            table.append([])
            for j, one in enumerate(ones):
                value = two - one
                ends = (value, value - half[i, j], value + half[i, j])
                apart = abs(value) > half[i, j]
                details = {**c.details, "outcome": "differs" if apart else "undecided"}
                change = Estimate.of(ends, 0.95)
                table[-1].append(replace(c, change=change, details=details))
        joined = icat_order.join_products(table, (c.before, c.after))
        low, high = joined.change.low, joined.change.high
        assert joined.change.value == pytest.approx(twos.min() - ones.min())
        assert (joined.details["outcome"] == "differs") == (low > 0 or high < 0)
        outcomes.append(joined.details["outcome"])
        for shift in product((-1, 0, 1), repeat=4):  # of the true values of all four
            moved = (ones + 0.5 * np.array(shift[:2]), twos + 0.5 * np.array(shift[2:]))
            differences = moved[1][:, None] - moved[0][None]
            if (abs(differences - (twos[:, None] - ones[None])) <= half).all():
                assert low - 1e-9 <= moved[1].min() - moved[0].min() <= high + 1e-9
    assert {"differs", "undecided"} == set(outcomes)


# ---------------------------------------------------------------------- two benchmarks together


def benchmark(rng, means, items=60):
    rows = [
        {"item": str(i), "model": name, "score": mean + 0.1 * rng.normal()}
        for name, mean in means.items()
        for i in range(items)
    ]
    return pd.DataFrame(rows), {"item": "item"}


def test_pairs_that_two_benchmarks_compare_are_counted():
    rng = np.random.default_rng(6)
    names = ("GPT-2", "GPT-2 medium", "RoBERTa-base")
    benchmarks = {
        "one": benchmark(rng, dict(zip(names, (1, 2, 3), strict=True)) | {"BERT-base cased": 0}),
        "two": benchmark(rng, dict(zip(names, (1, 3, 2), strict=True)) | {"BERT-base uncased": 0}),
    }
    (row,) = real_models.two_benchmarks(benchmarks, one_bert=False)
    assert (row["systems"], row["families"], row["pairs"], row["same_order"]) == (3, 2, 3, 2)
    assert (row["differ_first"], row["differ_second"], row["differ_both"]) == (3, 3, 3)
    assert row["agree"] == 2
    (row,) = real_models.two_benchmarks(benchmarks, one_bert=True)
    assert (row["systems"], row["families"], row["pairs"], row["agree"]) == (4, 3, 6, 5)
    apart = {"one": benchmarks["one"], "one, part": benchmarks["two"]}
    assert list(real_models.two_benchmarks(apart, one_bert=False)) == []


def test_places_are_ranges():
    assert real_models.places("1 3 4 5 8") == "1, 3–5, 8"
    assert real_models.places("") == "–"
