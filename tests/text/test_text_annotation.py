"""Annotation sheets out and in; agreement against published values and brute force."""

import csv
import json
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.intervals import wilson
from evenhand.text.annotation import (
    count_verdicts,
    fleiss_kappa,
    krippendorff_alpha,
    read_sheets,
    write_sheet,
)

FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def units(*coders):
    """Coders' rows of values, a dot where there is none, as units."""
    rows = [[None if value == "." else value for value in coder.split()] for coder in coders]
    return list(zip(*rows, strict=True))


# agreement


def test_fleiss_of_the_textbook_table():
    """Ten subjects, fourteen raters, five categories: P̄ = 0.378, P̄e = 0.213, κ = 0.210."""
    found = fleiss_kappa(FLEISS)
    assert found.details["observed_agreement"] == pytest.approx(0.378, abs=5e-4)
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert found.low < 0.210 < found.high
    assert found.n == 10


def test_fleiss_by_hand():
    """Three units, two raters: P̄ = 2/3, shares ½ and ½, so κ = (2/3 - 1/2) / (1/2) = 1/3."""
    assert fleiss_kappa([[2, 0], [0, 2], [1, 1]]).value == pytest.approx(1 / 3)


def test_alpha_of_three_coders_with_gaps():
    """Published as 0.691 (nominal)."""
    ratings = units(
        ". . . . . 3 4 1 2 1 1 3 3 . 3",
        "1 . 2 1 3 3 4 3 . . . . . . .",
        ". . 2 1 3 4 4 . 2 1 1 3 3 . 4",
    )
    found = krippendorff_alpha(count_verdicts(ratings)[1])
    assert found.value == pytest.approx(0.691, abs=5e-4)
    assert found.n == 12


def test_alpha_of_four_observers_with_gaps():
    """Krippendorff (2011): nominal alpha 0.743."""
    ratings = units(
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )
    found = krippendorff_alpha(count_verdicts(ratings)[1])
    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert found.notes == ("1 units with fewer than two verdicts left out",)


def brute_force_alpha(ratings):
    """1 - observed / expected disagreement, pair of values by pair of values."""
    kept = [[v for v in unit if v is not None] for unit in ratings]
    kept = [unit for unit in kept if len(unit) > 1]
    values = [value for unit in kept for value in unit]
    observed = sum(
        2 * sum(a != b for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in kept
    ) / len(values)
    pairs = list(combinations(values, 2))
    expected = sum(a != b for a, b in pairs) / len(pairs)
    return 1 - observed / expected if expected else math.nan


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=4, max_size=4), min_size=2)
)
def test_alpha_is_the_definition(ratings):
    if not any(sum(v is not None for v in unit) > 1 for unit in ratings):
        return
    found = krippendorff_alpha(count_verdicts(ratings)[1])
    assert found.value == pytest.approx(brute_force_alpha(ratings), nan_ok=True)
    assert -1 <= found.low <= found.high <= 1
    if not math.isnan(found.value):
        assert found.low <= found.value <= found.high


def test_agreement_intervals_cover_the_truth():
    """Verdicts from a beta-binomial: the true coefficient is its intraclass correlation."""
    rng = np.random.default_rng(8)
    for mean, truth in ((0.9, 0.3), (0.6, 0.6)):
        a, b = mean * (1 / truth - 1), (1 - mean) * (1 / truth - 1)
        covered = 0
        for _ in range(300):
            yes = rng.binomial(4, rng.beta(a, b, 120))
            found = fleiss_kappa(np.stack([yes, 4 - yes], axis=1))
            covered += found.low <= truth <= found.high
        assert covered / 300 >= 0.93


def test_agreement_that_is_perfect_or_undefined():
    perfect = fleiss_kappa([[4, 0]] * 20 + [[0, 4]] * 5)
    assert perfect.value == perfect.high == 1
    assert 0.3 < perfect.low < 0.95
    nothing = fleiss_kappa([[4, 0]] * 20)
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high) == (-1, 1)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[4, 0], [3, 0]], "as many verdicts on every unit"),
        ([[1, 0], [0, 1]], "two or more"),
        ([[1, -1]], "whole numbers"),
        ([1, 2], "units × categories"),
    ],
)
def test_counts_that_make_no_sense(counts, message):
    with pytest.raises(InputError, match=message):
        fleiss_kappa(counts)
    with pytest.raises(InputError, match="two verdicts or more, got none"):
        krippendorff_alpha([[1, 0], [0, 1]])


# sheets


@pytest.fixture
def filtered(tmp_path):
    path = tmp_path / "kept.jsonl"
    path.write_text("".join(json.dumps(record(i)) + "\n" for i in range(12)), encoding="utf-8")
    return path


def record(i):
    return {
        "line": 10 * i, "sentence": f'The dancer "{i}", shakes her hips.',
        "masked": f'The dancer "{i}", shakes [MASK] hips.', "pronoun": "her",
        "antecedent": "The dancer", "confidence": 0.9, "source": "swag.txt",
    }  # fmt: skip


def fill(sheet, path, answers, keep=None):
    """A copy of the sheet with its verdicts, as an annotator would save it."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, answer in zip(rows, answers, strict=True):
        row["verdict"] = answer
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows if keep is None else [rows[i] for i in keep])
    return path


def test_sheet_has_what_annotators_need(filtered, tmp_path):
    sheet = tmp_path / "sheet.csv"
    assert write_sheet(filtered, sheet) == 12
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["id"] for row in rows}) == 12
    assert rows[3]["sentence"] == record(3)["sentence"]
    assert rows[3]["masked"] == record(3)["masked"]
    assert "confidence" not in rows[3]
    assert '"her" stand for "The dancer"' in rows[3]["question"]
    assert rows[3]["question"].endswith("(yes/no)")
    assert all(row["verdict"] == "" for row in rows)


def test_sample_is_seeded(filtered, tmp_path):
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert write_sheet(filtered, tmp_path / name, sample=5, seed=seed) == 5
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1] != texts[2]
    with pytest.raises(InputError, match="expected 1 to 12 sentences, got 13"):
        write_sheet(filtered, tmp_path / "d", sample=13)


def test_four_annotators_as_in_the_paper(filtered, tmp_path):
    """Nine sentences yes by all, one by three, one by two, one by none: 10 of 12 at 3 of 4."""
    sheet = tmp_path / "sheet.csv"
    write_sheet(filtered, sheet)
    columns = [["yes"] * 11 + ["no"], ["Yes"] * 11 + ["no"], ["y"] * 10 + ["n"] * 2,
               ["1"] * 9 + ["0"] * 3]  # fmt: skip
    sheets = [
        fill(sheet, tmp_path / f"{name}.csv", answers)
        for name, answers in zip("abcd", columns, strict=True)
    ]
    found = read_sheets(sheets)
    assert found.majority == 3
    assert found.counts == {"sentences": 12, "yes": 10, "no": 2, "undecided": 0}
    expected = wilson(10, 12)
    assert (found.accuracy.value, found.accuracy.low, found.accuracy.high) == expected
    kappa, alpha = found.agreement
    counts = [[4, 0]] * 9 + [[3, 1], [2, 2], [0, 4]]
    assert kappa.value == pytest.approx(fleiss_kappa(counts).value)
    assert alpha.value == pytest.approx(krippendorff_alpha(counts).value)
    assert read_sheets(sheets, majority=2).counts["yes"] == 11
    assert read_sheets(sheets, majority=4).counts["yes"] == 9
    found.save(tmp_path / "judged.jsonl")
    judged = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in judged] == ["yes"] * 10 + ["no"] * 2
    assert judged[9]["verdicts"] == {"a": "yes", "b": "yes", "c": "yes", "d": "no"}
    assert judged[9]["line"] == 90
    assert judged[9]["masked"] == record(9)["masked"]
    carried = read_sheets(sheets, filtered=filtered).sentences[9]
    assert dict(carried.record) == record(9)
    assert found.to_frame()["d"].tolist().count("yes") == 9


def test_missing_verdicts_are_counted(filtered, tmp_path):
    """What the missing verdict could tip is undecided, never a no."""
    sheet = tmp_path / "sheet.csv"
    write_sheet(filtered, sheet)
    sheets = [
        fill(sheet, tmp_path / "a.csv", ["yes"] * 12),
        fill(sheet, tmp_path / "b.csv", ["no"] * 2 + ["yes"] * 10),
        fill(sheet, tmp_path / "c.csv", ["", "no", ""] + ["yes"] * 9, keep=range(11)),
    ]
    found = read_sheets(sheets)
    assert [one.verdict for one in found.sentences] == ["undecided", "no"] + ["yes"] * 10
    assert found.accuracy.n == 11
    assert found.accuracy.left_out == (found.sentences[0].id,)
    assert found.annotators["c"] == {"yes": 8, "no": 1, "empty": 2, "absent": 1}
    assert found.agreement[0].n == 9
    assert found.agreement[1].n == 12
    assert any("leaves out 3 sentences" in note for note in found.notes)


def test_one_annotator(filtered, tmp_path):
    write_sheet(filtered, tmp_path / "s.csv")
    found = read_sheets([fill(tmp_path / "s.csv", tmp_path / "a.csv", ["yes"] * 9 + ["no"] * 3)])
    assert found.accuracy.value == 0.75
    assert found.agreement == ()
    assert found.notes == ("one annotator: no agreement to measure",)


def test_every_verdict_the_same_is_said(filtered, tmp_path):
    write_sheet(filtered, tmp_path / "s.csv")
    sheets = [fill(tmp_path / "s.csv", tmp_path / f"{n}.csv", ["yes"] * 12) for n in "ab"]
    found = read_sheets(sheets)
    assert math.isnan(found.agreement[0].value)
    assert "every verdict is yes: agreement beyond chance is not defined" in found.notes


def test_sheets_of_spreadsheets_in_other_lands(filtered, tmp_path):
    """Semicolons, a byte order mark, letters beyond ASCII, empty rows at the end."""
    lines = filtered.read_text().replace("The dancer", "The señora's coach")
    filtered.write_text(lines.replace("\\u00f1", "ñ"), encoding="utf-8")
    write_sheet(filtered, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    path = fill(tmp_path / "s.csv", tmp_path / "a.csv", ["yes"] * 12)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([*rows, [""] * len(rows[0])])
    found = read_sheets([path])
    assert found.counts["yes"] == 12
    assert found.sentences[0].record["antecedent"] == "The señora's coach"


def spoil(path, old, new, count=1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def test_bad_sheets_name_the_place(filtered, tmp_path):
    sheet = tmp_path / "s.csv"
    write_sheet(filtered, sheet)
    good = fill(sheet, tmp_path / "a.csv", ["yes"] * 12)

    def refused(bad, message, **options):
        with pytest.raises(InputError, match=message):
            read_sheets([good, bad], **options)

    bad = tmp_path / "b.csv"
    refused(
        fill(sheet, bad, ["maybe"] * 12), r"b\.csv: id s1-\w+: verdict: expected yes or no, got"
    )
    refused(fill(sheet, bad, [""] * 12), r"b\.csv: none of its 12 rows has a verdict")
    refused(fill(sheet, bad, ["no"] * 12, keep=[0, 1, 1]), r"b\.csv: the id s2-\w+ is there twice")
    fill(sheet, bad, ["no"] * 12)
    spoil(bad, "shakes her hips", "shook her hips")
    refused(bad, r"b\.csv: id s1-\w+: the sentence is not the one it was given for")
    fill(sheet, bad, ["no"] * 12)
    spoil(bad, "verdict", "judgement")
    refused(bad, r"b\.csv: unknown column 'verdict'")
    refused(good, "got .*a.csv twice")
    refused(fill(sheet, bad, ["no"] * 12), "majority: expected 1 to 2", majority=3)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(record(99)) + "\n")
    refused(bad, r"other\.jsonl: has no sentence of the sheets' id s1\S+ nor of 11 more",
            filtered=other)  # fmt: skip
    write_sheet(other, sheet)
    refused(fill(sheet, bad, ["no"]), "sheet a: has no id in common")
    with pytest.raises(InputError, match="expected one or more, got none"):
        read_sheets([])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "got none"),
        ('{"sentence": "x"}', "line 1: 'masked': expected text, got nothing"),
        ("{", "line 1: not valid JSON"),
    ],
)
def test_bad_filter_output(tmp_path, content, message):
    path = tmp_path / "kept.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        write_sheet(path, tmp_path / "sheet.csv")
    assert not (tmp_path / "sheet.csv").exists()
