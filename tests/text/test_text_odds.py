"""Odds ratios of the classes of a corpus: hand-computed values, tables of every kind."""

import bz2
import gzip
import json
import math

import pandas as pd
import pytest

from by_lists import odds
from evenhand.errors import FileError, InputError
from evenhand.fewshot import read
from evenhand.instruments import compare
from evenhand.results import Measurement, load
from evenhand.statistics.intervals import wilson
from evenhand.statistics.tests import holm
from evenhand.text.metrics.odds import class_odds, leaning, pronoun_gender
from evenhand.text.tables import open_table

JOBS = [("pilot", "M")] * 6 + [("pilot", "F")] * 2 + [("nurse", "M")] * 3 + [("nurse", "F")] * 9
FRAME = pd.DataFrame(JOBS, columns=["job", "sex"])
WORDS = {"M": "He flies his plane.", "F": "She knows her trade."}

# classes of a corpus


def test_classes_by_hand():
    """El Zein (2021), eq. 18: for pilot (10/30) / (5/95), for nurse (20/20) / (90/10)."""
    rows = class_odds({"pilot": 10, "nurse": 20, "cook": 10}, {"pilot": 5, "nurse": 90, "cook": 5})
    assert [row.query for row in rows] == ["cook", "pilot", "nurse"]
    by_class = {row.query: row for row in rows}
    assert by_class["pilot"].value == pytest.approx((10 / 30) / (5 / 95))
    assert by_class["nurse"].value == pytest.approx((20 / 20) / (90 / 10))
    assert [row.p_corrected for row in rows] == holm([row.p_value for row in rows])


def test_an_empty_cell_is_reported():
    cook, *_ = class_odds({"cook": 5, "pilot": 95}, {"pilot": 100})
    assert cook.details["corrected"]
    assert cook.details["exact_high"] is None


def test_odds_of_a_frame():
    result = odds(FRAME, "job", "sex")
    assert [part.query for part in result.select("class")] == ["pilot", "nurse"]
    assert result.part("pilot").value == pytest.approx(9)
    assert result.details["counts"] == {"read": 20, "male": 9, "female": 11, "left_out": 0}
    (male,), (female,) = leaning(result, 1)
    assert (male.query, female.query) == ("pilot", "nurse")


def test_a_result_reads_itself_back_and_can_be_compared():
    result = odds(FRAME, "job", "sex")
    assert Measurement.from_dict(result.to_dict()) == result
    swapped = odds(FRAME, "job", "sex", male="F", female="M")
    change = compare(result, swapped).part("pilot").change
    assert change.value == pytest.approx(1 / 81)
    half = 1.959963985 * math.sqrt(2 * (1 / 6 + 1 / 3 + 1 / 2 + 1 / 9))
    assert change.high == pytest.approx(change.value * math.exp(half))


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
    assert odds(path, "job", "sex").parts == odds(FRAME, "job", "sex").parts


def test_the_content_decides_the_format_not_the_name(tmp_path):
    path = save(FRAME, tmp_path / "t.jsonl.gz")
    renamed = path.rename(tmp_path / "table")
    assert odds(renamed, "job", "sex").parts == odds(FRAME, "job", "sex").parts


@pytest.mark.parametrize("values", [("male", "female"), ("m", "f"), ("Man", "WOMAN"), (" M ", "F")])
def test_usual_gender_values_are_known(values):
    frame = FRAME.assign(sex=FRAME["sex"].map({"M": values[0], "F": values[1]}))
    assert odds(frame, "job", "sex").parts == odds(FRAME, "job", "sex").parts


@pytest.mark.parametrize("dtype", [int, float, bool])
def test_codes_are_named(dtype):
    frame = FRAME.assign(sex=(FRAME["sex"] == "F").astype(dtype))
    codes = {"male": dtype(0), "female": dtype(1)}
    assert odds(frame, "job", "sex", **codes).parts == odds(FRAME, "job", "sex").parts
    with pytest.raises(InputError, match=r"no row is male; left out: gender '(1|True)' \(11\)"):
        odds(frame, "job", "sex")


def test_codes_may_be_several_and_must_differ():
    frame = FRAME.assign(sex=["a", "b", "c"] * 6 + ["c", "c"])
    assert odds(frame, "job", "sex", male=["A", "b"], female="c").details["counts"]["male"] == 12
    with pytest.raises(InputError, match="expected different values, got 'm' for both"):
        odds(FRAME, "job", "sex", female="M")


def test_what_is_left_out_is_counted_by_reason():
    more = pd.DataFrame(
        {"job": ["pilot", "pilot", None, "cook", "nurse"], "sex": ["X", None, "M", "X", "unsure"]}
    )
    result = odds(pd.concat([FRAME, more], ignore_index=True), "job", "sex")
    assert result.details["left_out"] == {
        "gender 'X'": 2,
        "gender missing": 1,
        "label missing": 1,
        "gender 'unsure'": 1,
    }
    assert result.details["counts"]["read"] == 25
    assert result.details["counts"]["left_out"] == 5
    assert result.parts == odds(FRAME, "job", "sex").parts
    assert result.notes == ("every row left out of the classes: cook",)


def test_gender_from_pronouns():
    frame = FRAME.assign(text=FRAME["sex"].map(WORDS))
    frame.loc[len(frame)] = ["pilot", "M", "They fly."]
    frame.loc[len(frame)] = ["pilot", "M", "He met her."]
    frame.loc[len(frame)] = ["pilot", "F", None]
    result = odds(frame, "job", text="text")
    assert result.parts == odds(FRAME, "job", "sex").parts
    assert result.details["left_out"] == {
        "undecided: no gendered pronoun": 1,
        "undecided: as many female as male pronouns": 1,
        "text missing": 1,
    }
    both = odds(frame, "job", "sex", "text")
    assert both.details["counts"]["left_out"] == 0
    (agreement,) = both.select("agreement")
    assert (agreement.n, agreement.details["agree"], agreement.details["undecided"]) == (20, 20, 3)


def test_columns_are_found_where_none_is_named():
    assert odds(FRAME, "job").details["gender_from"] == "column 'sex'"
    frame = pd.DataFrame({"job": FRAME["job"], "Text": FRAME["sex"].map(WORDS)})
    assert odds(frame, "job").parts == odds(FRAME, "job", "sex").parts
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
    with pytest.raises(InputError, match="expected a path or a DataFrame, got list"):
        odds([1], "job", "sex")
    with pytest.raises(InputError, match=r"expected label, .* \(columns: job, sex\)"):
        odds(FRAME)


def test_save_and_frame(tmp_path):
    result = odds(FRAME, "job", "sex")
    result.save(tmp_path / "o.json")
    assert load(tmp_path / "o.json") == result
    assert list(result.to_frame().columns)[:4] == ["class", "odds_ratio", "low", "high"]
    assert result.to_frame()["class"].tolist() == ["pilot", "nurse"]


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
        (b'[{"job": "pilot"}]', "one JSON object per line, got an array"),
        (b"PAR1 but no more", "not a valid Parquet file"),
        (gzip.compress(b"job,sex\nam,M\n" * 999, mtime=0)[:-20], "the gz data ends too soon"),
        (bz2.compress(b"job,sex\npilot,M\n" * 999)[:-20], "the bz2 data ends too soon"),
        (b"\x28\xb5\x2f\xfdxxxxxxxxxxxx", "damaged zst data"),
    ],
)
def test_broken_files_name_the_location(tmp_path, content, message):
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
    result = odds(shared / "data/bios/wikibios.csv.gz", "occupation", "gender", "text")
    frame = pd.read_csv(shared / "data/bios/wikibios.csv.gz")
    assert result.details["counts"] == {
        "read": len(frame),
        "male": 19_424,
        "female": 4_435,
        "left_out": 0,
    }
    table = pd.crosstab(frame["occupation"], frame["gender"])
    classes = result.select("class")
    assert {p.query: (p.details["male"], p.details["female"]) for p in classes} == {
        str(name): (int(row["M"]), int(row["F"])) for name, row in table.iterrows()
    }
    male, female = leaning(result, 3)
    assert [part.query for part in male] == ["bishop", "footballer", "cricketer"]
    assert [part.query for part in female][:2] == ["model", "nurse"]
    (agreement,) = result.select("agreement")
    assert agreement.value > 0.999
    assert agreement.details["undecided"] < 100
    inferred = odds(shared / "data/bios/wikibios.csv.gz", "occupation", text="text")
    assert all(
        result.part(part.query).low < part.value < result.part(part.query).high
        for part in inferred.select("class")
    )


def test_wikipedia_gender_events(shared):
    result = odds(shared / "data/events/final_manual.csv", "Occupation", "Gender", "Text")
    assert result.details["counts"]["read"] == 581
    assert len(result.select("class")) == 8
    assert result.select("agreement")[0].value > 0.95


def test_equal_texts_count_as_in_few_shot_runs_where_this_is_requested():
    from evenhand.fewshot import read

    rows = [
        ("a b", "x", "F"),
        ("a b", "x", "F"),
        ("c d", "x", "M"),
        ("c d", "y", "M"),
        ("e f", "y", "M"),
        ("e f", "y", "F"),
        ("g h", "y", "M"),
        ("i j", "y", "F"),
        ("k l", "x", "M"),
        ("e f", "y", "M"),
    ]
    frame = pd.DataFrame(rows, columns=["text", "label", "gender"])
    every = odds(frame, "label", "gender")
    assert every.n == len(rows)
    assert every.details["duplicates"].startswith("every row counts")
    once = odds(frame, "label", "gender", duplicates="once")
    data = read(frame)
    counts = dict(zip(data.classes, data.gender_sizes.tolist(), strict=True))
    parts = {part.query: part.details for part in once.select("class")}
    assert {name: [own["male"], own["female"]] for name, own in parts.items()} == counts
    assert once.details["left_out"]["text under several classes"] == 2
    assert data.left_out["text under several classes"] == 2
    assert once.n + sum(once.details["left_out"].values()) == len(rows)
    with pytest.raises(InputError, match="duplicates: expected text, the column"):
        odds(frame.drop(columns="text"), "label", "gender", duplicates="once")


def test_shares_of_women_with_their_intervals():
    frame = pd.DataFrame(
        {
            "label": ["a"] * 40 + ["b"] * 40,
            "gender": ["F"] * 30 + ["M"] * 10 + ["F"] * 4 + ["M"] * 36,
        }
    )
    parts = {part.query: part.details for part in odds(frame).select("class")}
    for name, women in (("a", 30), ("b", 4)):
        expected = wilson(women, 40)
        found = tuple(parts[name][f"women{end}"] for end in ("", "_low", "_high"))
        assert found == expected
    assert odds(frame).items["women"].tolist() == [0.1, 0.75]


def test_texts_of_several_classes_count_in_each():
    rows = [
        ("t1", "a", "M"),
        ("t1", "b", "M"),
        ("t1", "b", "M"),
        ("t2", "a", "F"),
        ("t3", "b", "F"),
    ]
    frame = pd.DataFrame(rows, columns=["text", "label", "gender"])

    def counted(duplicates):
        result = odds(frame, "label", "gender", duplicates=duplicates)
        cells = {p.query: (p.details["male"], p.details["female"]) for p in result.select("class")}
        return cells, result.details["left_out"]

    assert counted("count") == ({"a": (1, 1), "b": (2, 1)}, {})
    assert counted("class") == ({"a": (1, 1), "b": (1, 1)}, {"duplicate text": 1})


TABLE_4 = {
    "writers": 50.0,
    "models": 53.9,
    "podcasters": 44.4,
    "chefs": 47.8,
    "artists": 52.1,
    "musicians": 43.7,
    "dancers": 47.1,
    "comedians": 48.5,
}


def test_the_shares_of_table_4(shared):
    """El Zein (2021), Table 4: 555 texts of WikipediaGenderEvents, one of them of two jobs."""
    file = shared / "data/events/final_manual.csv"
    result = odds(file, "Occupation", "Gender", "Text", duplicates="class")
    assert result.n == 555
    shares = {part.query: 100 * part.details["women"] for part in result.select("class")}
    assert shares == {name: pytest.approx(share, abs=0.05) for name, share in TABLE_4.items()}
    for part in result.select("class"):
        assert part.details["women_low"] < 0.5 < part.details["women_high"]
    data = read(file, duplicates="class")
    assert len(data) == 555
    found = dict(zip(data.classes, 100 * data.share_of_women, strict=True))
    assert found == {name: pytest.approx(share, abs=0.05) for name, share in TABLE_4.items()}
    assert len(read(file)) == 553
