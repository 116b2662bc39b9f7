"""Annotation sheets written and read back, the majority and the agreement."""

import csv
import json
import math

import pytest

from evenhand.errors import InputError
from evenhand.results import Measurement
from evenhand.statistics.agreement import fleiss_kappa, krippendorff_alpha
from evenhand.statistics.intervals import wilson
from evenhand.text.metrics.annotation import Annotation, read_sheets, save_verdicts
from evenhand.text.sheets import write_sheet


@pytest.fixture
def filtered(tmp_path):
    path = tmp_path / "accepted.jsonl"
    path.write_text("".join(json.dumps(record(i)) + "\n" for i in range(12)), encoding="utf-8")
    return path


def record(i):
    return {
        "line": 10 * i,
        "sentence": f'The dancer "{i}", shakes her hips.',
        "masked": f'The dancer "{i}", shakes [MASK] hips.',
        "pronoun": "her",
        "antecedent": "The dancer",
        "confidence": 0.9,
        "source": "swag.txt",
    }


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


def counts_of(measurement):
    return measurement.details["counts"]


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
    columns = [
        ["yes"] * 11 + ["no"],
        ["Yes"] * 11 + ["no"],
        ["y"] * 10 + ["n"] * 2,
        ["1"] * 9 + ["0"] * 3,
    ]
    sheets = [
        fill(sheet, tmp_path / f"{name}.csv", answers)
        for name, answers in zip("abcd", columns, strict=True)
    ]
    result = read_sheets(sheets)
    assert result.details["majority"] == 3
    assert counts_of(result) == {"sentences": 12, "yes": 10, "no": 2, "undecided": 0}
    assert (result.value, result.low, result.high) == wilson(10, 12)
    kappa, alpha = result.parts
    counts = [[4, 0]] * 9 + [[3, 1], [2, 2], [0, 4]]
    assert kappa.value == pytest.approx(fleiss_kappa(counts)[0])
    assert alpha.value == pytest.approx(krippendorff_alpha(counts)[0])
    assert read_sheets(sheets, majority=2).details["counts"]["yes"] == 11
    assert read_sheets(sheets, majority=4).details["counts"]["yes"] == 9
    assert Measurement.from_dict(result.to_dict()) == result
    save_verdicts(result, tmp_path / "judged.jsonl")
    judged = [json.loads(line) for line in (tmp_path / "judged.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in judged] == ["yes"] * 10 + ["no"] * 2
    assert judged[9]["verdicts"] == {"a": "yes", "b": "yes", "c": "yes", "d": "no"}
    assert judged[9]["line"] == 90
    assert judged[9]["masked"] == record(9)["masked"]
    carried = read_sheets(sheets, filtered=filtered).items[9]
    assert {name: carried[name] for name in record(9)} == record(9)
    assert [row["d"] for row in result.items["verdicts"]].count("yes") == 9


def test_missing_verdicts_are_counted(filtered, tmp_path):
    """What the missing verdict could decide is undecided, never a no."""
    sheet = tmp_path / "sheet.csv"
    write_sheet(filtered, sheet)
    sheets = [
        fill(sheet, tmp_path / "a.csv", ["yes"] * 12),
        fill(sheet, tmp_path / "b.csv", ["no"] * 2 + ["yes"] * 10),
        fill(sheet, tmp_path / "c.csv", ["", "no", ""] + ["yes"] * 9, keep=range(11)),
    ]
    result = read_sheets(sheets)
    assert list(result.items["verdict"]) == ["undecided", "no"] + ["yes"] * 10
    assert result.n == 11
    assert result.left_out == (result.items[0]["id"],)
    tally = result.details["annotators"]["c"]
    assert tally == {"yes": 8, "no": 1, "empty": 2, "absent": 1}
    assert result.part("fleiss_kappa").n == 9
    assert result.part("krippendorff_alpha").n == 12
    assert any("leaves out 3 sentences" in note for note in result.notes)


def test_one_annotator(filtered, tmp_path):
    write_sheet(filtered, tmp_path / "s.csv")
    result = read_sheets([fill(tmp_path / "s.csv", tmp_path / "a.csv", ["yes"] * 9 + ["no"] * 3)])
    assert result.value == 0.75
    assert result.parts == ()
    assert result.notes == ("one annotator: no agreement to measure",)


def test_a_note_where_every_verdict_is_the_same(filtered, tmp_path):
    write_sheet(filtered, tmp_path / "s.csv")
    sheets = [fill(tmp_path / "s.csv", tmp_path / f"{n}.csv", ["yes"] * 12) for n in "ab"]
    result = read_sheets(sheets)
    assert math.isnan(result.parts[0].value)
    assert "every verdict is yes: agreement above chance is not defined" in result.notes


def test_sheets_of_spreadsheets_in_other_locales(filtered, tmp_path):
    """Semicolons, a byte order mark, letters outside ASCII, empty rows at the end."""
    lines = filtered.read_text().replace("The dancer", "The señora's coach")
    filtered.write_text(lines.replace("\\u00f1", "ñ"), encoding="utf-8")
    write_sheet(filtered, tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    path = fill(tmp_path / "s.csv", tmp_path / "a.csv", ["yes"] * 12)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([*rows, [""] * len(rows[0])])
    result = read_sheets([path])
    assert counts_of(result)["yes"] == 12
    assert result.items[0]["antecedent"] == "The señora's coach"


def spoil(path, old, new, count=1):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def test_bad_sheets_name_the_location(filtered, tmp_path):
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
    refused(
        bad, r"other\.jsonl: has no sentence of the sheets' id s1\S+ nor of 11 more", filtered=other
    )
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
    path = tmp_path / "accepted.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        write_sheet(path, tmp_path / "sheet.csv")
    assert not (tmp_path / "sheet.csv").exists()


def test_sheets_with_few_verdicts_are_counted(filtered, tmp_path):
    """A sentence that one annotator judged counts for the majority, not for the agreement."""
    sheet = tmp_path / "sheet.csv"
    write_sheet(filtered, sheet)
    sheets = [
        fill(sheet, tmp_path / "a.csv", ["yes"] * 6 + ["no"] * 6),
        fill(sheet, tmp_path / "b.csv", ["", *["yes"] * 5, *["no"] * 6]),
    ]
    alpha = read_sheets(sheets).part("krippendorff_alpha")
    assert alpha.n == 11
    assert alpha.notes == ("1 units with fewer than two verdicts left out",)


def test_the_instrument_measures_tables_by_name():
    subject, sheets = Annotation.example()
    result = Annotation(majority=3).measure(subject, sheets)
    assert result.query == "yes by 3 of 3 or more"
    assert result.value == 0.5
    assert Annotation().misfit(None) == "needs filled sheets"
