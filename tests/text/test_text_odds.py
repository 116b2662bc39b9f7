"""Odds ratios: hand-computed values, scipy's exact interval, coverage, tables of every kind."""

import bz2
import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact
from scipy.stats.contingency import odds_ratio as scipy_odds_ratio

from evenhand.errors import FileError, InputError
from evenhand.intervals import holm
from evenhand.text.odds import class_odds, conditional_interval, odds, odds_ratio, pronoun_gender
from evenhand.text.tables import open_table

JOBS = [("pilot", "M")] * 6 + [("pilot", "F")] * 2 + [("nurse", "M")] * 3 + [("nurse", "F")] * 9
FRAME = pd.DataFrame(JOBS, columns=["job", "sex"])
WORDS = {"M": "He flies his plane.", "F": "She knows her trade."}

cells = st.integers(0, 60)


# the two-by-two table


def test_value_and_normal_interval_by_hand():
    """(6·9)/(3·2) = 9; log 9 ± 1.959964·√(1/6 + 1/3 + 1/2 + 1/9) = 2.1972 ± 2.0660."""
    found = odds_ratio(6, 3, 2, 9)
    assert found.value == 9
    assert found.low == pytest.approx(math.exp(2.197225 - 2.065980), rel=1e-5)
    assert found.high == pytest.approx(math.exp(2.197225 + 2.065980), rel=1e-5)
    assert not found.corrected


def test_fisher_and_exact_interval_by_hand():
    """Three of three against none of three: p = 2/C(6,3); P(X = 3 | ψ) = ψ³/(1+9ψ+9ψ²+ψ³)."""
    found = odds_ratio(3, 0, 0, 3)
    assert found.p_value == pytest.approx(0.1)
    low = found.exact_low
    assert low**3 / (1 + 9 * low + 9 * low**2 + low**3) == pytest.approx(0.025, rel=1e-9)
    assert found.exact_high == math.inf


def test_zero_cell_is_corrected_and_says_so():
    found = odds_ratio(5, 95, 0, 100)
    assert found.corrected
    assert found.value == pytest.approx((5.5 * 100.5) / (95.5 * 0.5))
    half = 1.959963985 * math.sqrt(1 / 5.5 + 1 / 95.5 + 1 / 0.5 + 1 / 100.5)
    assert found.low == pytest.approx(found.value * math.exp(-half))
    assert found.exact_low == pytest.approx(
        scipy_odds_ratio([[5, 95], [0, 100]]).confidence_interval().low, rel=1e-6
    )
    assert found.exact_high == math.inf


def test_an_empty_margin_says_nothing():
    found = odds_ratio(5, 0, 7, 0)
    assert math.isnan(found.value)
    assert (found.exact_low, found.exact_high, found.p_value) == (0, math.inf, 1)


@settings(max_examples=60, deadline=None)
@given(cells, cells, cells, cells, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_exact_interval_is_scipys(a, b, c, d, prob):
    if 0 in (a + b, c + d, a + c, b + d):
        return
    ours = conditional_interval(a, b, c, d, prob)
    theirs = scipy_odds_ratio([[a, b], [c, d]]).confidence_interval(prob)
    assert ours == pytest.approx((theirs.low, theirs.high), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(cells, cells, cells, cells)
def test_swapping_genders_inverts_everything(a, b, c, d):
    if 0 in (a + b, c + d, a + c, b + d):
        return
    one, other = odds_ratio(a, b, c, d), odds_ratio(c, d, a, b)
    assert one.value == pytest.approx(1 / other.value)
    assert one.low == pytest.approx(1 / other.high)
    assert one.p_value == pytest.approx(other.p_value)
    assert one.exact_low <= one.exact_high
    if other.exact_high < math.inf:
        assert one.exact_low == pytest.approx(1 / other.exact_high, rel=1e-8)
    else:
        assert one.exact_low == 0
    assert one.p_value == pytest.approx(max(fisher_exact([[a, b], [c, d]]).pvalue, 1e-307))


def test_exact_interval_of_huge_tables():
    """Two rare events in two thousand million rows: binomial(2, ½), so P = 1 - (1-p)² = .025."""
    low, high = conditional_interval(1, 10**9, 1, 10**9)
    p = 1 - math.sqrt(0.975)
    assert low == pytest.approx(p / (1 - p), rel=1e-6)
    assert high == pytest.approx(1 / low, rel=1e-9)
    large = odds_ratio(3_000_000, 10**9, 2_500_000, 9 * 10**8)
    assert large.exact_low == pytest.approx(large.low, rel=1e-5)
    assert large.exact_high == pytest.approx(large.high, rel=1e-5)
    assert large.p_value > 0


def test_intervals_cover_the_true_ratio():
    rng = np.random.default_rng(4)
    truth = 3.0
    odds_f = 0.15
    p_m, p_f = truth * odds_f / (1 + truth * odds_f), odds_f / (1 + odds_f)
    normal = exact = 0
    for m, f in zip(rng.binomial(80, p_m, 1500), rng.binomial(60, p_f, 1500), strict=True):
        found = odds_ratio(int(m), 80 - int(m), int(f), 60 - int(f))
        normal += found.low <= truth <= found.high
        exact += found.exact_low <= truth <= found.exact_high
    assert 0.935 <= normal / 1500 <= 0.985
    assert 0.945 <= exact / 1500 <= 0.995


# classes of a corpus


def test_classes_by_hand():
    """D0 eq. 18 for pilot: (10/30) / (5/95), for nurse (20/20) / (90/10)."""
    rows = class_odds({"pilot": 10, "nurse": 20, "cook": 10}, {"pilot": 5, "nurse": 90, "cook": 5})
    assert [row.label for row in rows] == ["cook", "pilot", "nurse"]
    by = {row.label: row for row in rows}
    assert by["pilot"].odds_ratio == pytest.approx((10 / 30) / (5 / 95))
    assert by["nurse"].odds_ratio == pytest.approx((20 / 20) / (90 / 10))
    assert [row.p_holm for row in rows] == holm([row.p_value for row in rows])


def test_odds_of_a_frame():
    found = odds(FRAME, "job", "sex")
    assert [row.label for row in found.rows] == ["pilot", "nurse"]
    assert found.rows[0].odds_ratio == pytest.approx(9)
    assert found.counts == {"read": 20, "male": 9, "female": 11, "left_out": 0}
    assert found.top(1)[0][0].label == "pilot"
    assert found.top(1)[1][0].label == "nurse"
    assert found.as_dict()["schema"] == "evenhand/2"
    assert "pilot: 9 [" in str(found)


def save(frame, path):
    lines = "".join(json.dumps(row) + "\n" for row in frame.to_dict(orient="records"))
    match path.suffixes[0]:
        case ".parquet":
            frame.to_parquet(path, row_group_size=7)
        case ".jsonl":
            path.write_bytes(pack(lines.encode(), path.suffix))
        case ".tsv":
            frame.to_csv(path, sep="\t", index=False)
        case ".csv":
            path.write_bytes(pack(frame.to_csv(index=False).encode(), path.suffix))
    return path


def pack(data, ending):
    if ending == ".zst":
        import pyarrow as pa

        return pa.compress(data, codec="zstd", asbytes=True)
    return {".gz": gzip.compress, ".bz2": bz2.compress}.get(ending, lambda x: x)(data)


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.tsv",
        "t.jsonl",
        "t.parquet",
        "t.csv.gz",
        "t.csv.bz2",
        "t.jsonl.gz",
        "t.jsonl.zst",
    ],
)
def test_every_kind_of_file_reads_the_same(tmp_path, name):
    path = save(FRAME, tmp_path / name)
    assert odds(path, "job", "sex").rows == odds(FRAME, "job", "sex").rows


def test_content_tells_the_format_not_the_name(tmp_path):
    path = save(FRAME, tmp_path / "t.jsonl.gz")
    renamed = path.rename(tmp_path / "table")
    assert odds(renamed, "job", "sex").rows == odds(FRAME, "job", "sex").rows


@pytest.mark.parametrize("values", [("male", "female"), ("m", "f"), ("Man", "WOMAN"), (" M ", "F")])
def test_gender_values_known_without_being_told(values):
    frame = FRAME.assign(sex=FRAME["sex"].map({"M": values[0], "F": values[1]}))
    assert odds(frame, "job", "sex").rows == odds(FRAME, "job", "sex").rows


@pytest.mark.parametrize("dtype", [int, float, bool])
def test_codes_are_named(dtype):
    frame = FRAME.assign(sex=(FRAME["sex"] == "F").astype(dtype))
    codes = {"male": dtype(0), "female": dtype(1)}
    assert odds(frame, "job", "sex", **codes).rows == odds(FRAME, "job", "sex").rows
    with pytest.raises(InputError, match=r"no row is male; left out: gender '(1|True)' \(11\)"):
        odds(frame, "job", "sex")


def test_codes_may_be_several_and_must_differ():
    frame = FRAME.assign(sex=["a", "b", "c"] * 6 + ["c", "c"])
    assert odds(frame, "job", "sex", male=["A", "b"], female="c").counts["male"] == 12
    with pytest.raises(InputError, match="expected different values, got 'm' for both"):
        odds(FRAME, "job", "sex", female="M")


def test_what_is_left_out_is_counted_by_reason():
    more = pd.DataFrame(
        {"job": ["pilot", "pilot", None, "cook", "nurse"], "sex": ["X", None, "M", "X", "unsure"]}
    )
    found = odds(pd.concat([FRAME, more], ignore_index=True), "job", "sex")
    assert found.left_out == {
        "gender 'X'": 2, "gender missing": 1, "label missing": 1, "gender 'unsure'": 1,
    }  # fmt: skip
    assert found.counts["read"] == 25
    assert found.counts["left_out"] == 5
    assert found.rows == odds(FRAME, "job", "sex").rows
    assert found.notes == ("every row left out of the classes: cook",)


def test_gender_from_pronouns():
    frame = FRAME.assign(text=FRAME["sex"].map(WORDS))
    frame.loc[len(frame)] = ["pilot", "M", "They fly."]
    frame.loc[len(frame)] = ["pilot", "M", "He met her."]
    frame.loc[len(frame)] = ["pilot", "F", None]
    found = odds(frame, "job", text="text")
    assert found.rows == odds(FRAME, "job", "sex").rows
    assert found.left_out == {
        "undecided: no gendered pronoun": 1,
        "undecided: as many female as male pronouns": 1,
        "text missing": 1,
    }
    both = odds(frame, "job", "sex", "text")
    assert both.counts["left_out"] == 0
    assert both.agreement is not None
    assert (both.agreement.compared, both.agreement.agree, both.agreement.undecided) == (20, 20, 3)


def test_columns_are_found_where_none_is_named():
    assert odds(FRAME, "job").gender_from == "column 'sex'"
    frame = pd.DataFrame({"job": FRAME["job"], "Text": FRAME["sex"].map(WORDS)})
    assert odds(frame, "job").rows == odds(FRAME, "job", "sex").rows
    with pytest.raises(InputError, match=r"expected gender.*\(columns: job\)"):
        odds(FRAME[["job"]], "job")


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("", "none"),
        ("The shed, the hero, this heron, others.", "none"),
        ("SHE said: he's hers.", "female"),
        ("Himself he'd never; her mother did.", "male"),
        ("he/she", "tie"),
    ],
)
def test_pronoun_majority(text, gender):
    assert pronoun_gender(text) == gender


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME[FRAME["sex"] == "M"], "no row is female"),
        (FRAME[FRAME["job"] == "pilot"], "expected two classes or more, got only 'pilot'"),
        (FRAME[:0], "the table has no rows"),
    ],
)
def test_nothing_to_compare_is_an_error(frame, message):
    with pytest.raises(InputError, match=message):
        odds(frame, "job", "sex")


def test_other_bad_arguments():
    with pytest.raises(InputError, match="prob: expected a number between 0 and 1, got 95"):
        odds(FRAME, "job", "sex", prob=95)
    with pytest.raises(InputError, match="unknown column 'jobs': did you mean 'job'"):
        odds(FRAME, "jobs", "sex")
    with pytest.raises(InputError, match="expected a path or a pandas DataFrame, got list"):
        odds([1], "job", "sex")
    with pytest.raises(InputError, match=r"expected \.csv or \.json"):
        odds(FRAME, "job", "sex").save("x.txt")


def test_save_and_frame(tmp_path):
    found = odds(FRAME, "job", "sex")
    found.save(tmp_path / "o.csv")
    found.save(tmp_path / "o.json")
    assert pd.read_csv(tmp_path / "o.csv")["label"].tolist() == ["pilot", "nurse"]
    document = json.loads((tmp_path / "o.json").read_text())
    assert document["rows"][0]["odds_ratio"] == pytest.approx(9)
    assert list(found.to_frame().columns)[:4] == ["label", "odds_ratio", "low", "high"]


# tables that are broken


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"job,sex\n", "no rows"),
        (b"job,sex\npilot,M\nnurse\n", "line 3: expected 2 fields as in the header, got 1"),
        (b'job,sex\npilot,M\n"nurse\n,F\n', "line 3: the row that begins here is broken"),
        (b"job,sex\npilot,M\n\xff\xfe,F\n", "line 3: expected UTF-8, got the byte 0xff"),
        (b"job,sex,sex\npilot,M,F\n", "column 'sex' is there more than once"),
        (b'{"job": "pilot", "sex": "M"}\n{"job": \n', "line 2: not valid JSON"),
        (b'{"job": "pilot", "sex": "M"}\n\n[1]\n', "line 3: expected a JSON object, got list"),
        (b'{"job": ["pilot"], "sex": "M"}\n', "line 1: 'job': expected text or a number, got list"),
        (b'{"job": "\\ud83d", "sex": "M"}\n', "line 1: expected text, got half"),
        (b'[{"job": "pilot"}]', "one JSON object a line, got an array"),
        (b"PAR1 but no more", "not a valid Parquet file"),
        (gzip.compress(b"job,sex\nam,M\n" * 999, mtime=0)[:-20], "the gz data ends too soon"),
        (bz2.compress(b"job,sex\npilot,M\n" * 999)[:-20], "the bz2 data ends too soon"),
        (b"\x28\xb5\x2f\xfdxxxxxxxxxxxx", "damaged zst data"),
    ],
)
def test_broken_files_name_the_place(tmp_path, content, message):
    path = tmp_path / "t"
    path.write_bytes(content)
    with pytest.raises((FileError, InputError), match=message) as caught:
        odds(path, "job", "sex")
    assert str(path) in str(caught.value)


def test_csv_with_breaks_and_long_fields(tmp_path):
    """A quoted field over several lines, longer than csv's usual limit, a BOM, blank lines."""
    long = "she " * 50_000
    content = f'\ufeff\njob;sex;text\n\n"pi""lot";M;"a\n{long}"\nnurse;F;b;c\n'
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    with open_table(path) as table:
        rows = table.rows("text", "job")
        assert next(rows) == (f"a\n{long}".strip(), 'pi"lot')
        with pytest.raises(FileError, match="line 6: expected 3 fields"):
            next(rows)


def test_jsonl_columns_may_be_sparse(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"job": "pilot"}\n{"sex": "M", "job": null}\n{"sex": NaN, "job": 3.0}\n')
    with open_table(path) as table:
        assert list(table.rows("job", "sex")) == [("pilot", None), (None, "M"), ("3", None)]


def test_labels_without_end_are_refused(tmp_path):
    frame = pd.DataFrame({"job": range(100_001), "sex": "M"})
    with pytest.raises(InputError, match="more than 100,000 different values"):
        odds(frame, "job", "sex")


# real data


def test_wikibios(shared):
    found = odds(shared / "data/bios/wikibios.csv.gz", "occupation", "gender", "text")
    frame = pd.read_csv(shared / "data/bios/wikibios.csv.gz")
    assert found.counts == {"read": len(frame), "male": 19_424, "female": 4_435, "left_out": 0}
    table = pd.crosstab(frame["occupation"], frame["gender"])
    assert {row.label: (row.male, row.female) for row in found.rows} == {
        str(name): (int(row["M"]), int(row["F"])) for name, row in table.iterrows()
    }
    male, female = found.top(3)
    assert [row.label for row in male] == ["bishop", "footballer", "cricketer"]
    assert [row.label for row in female][:2] == ["model", "nurse"]
    assert found.agreement is not None
    assert found.agreement.share > 0.999
    assert found.agreement.undecided < 100
    inferred = odds(shared / "data/bios/wikibios.csv.gz", "occupation", text="text")
    given = {row.label: row for row in found.rows}
    assert all(
        given[row.label].low < row.odds_ratio < given[row.label].high for row in inferred.rows
    )


def test_wikipedia_gender_events(shared):
    found = odds(shared / "data/events/final_manual.csv", "Occupation", "Gender", "Text")
    assert found.counts["read"] == 581
    assert len(found.rows) == 8
    assert found.agreement is not None
    assert found.agreement.share > 0.95
