"""Reading distance tables: any headers, and errors with their line."""

import gzip

import numpy as np
import pandas as pd
import pytest

from evenhand import lexicon
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.posterior import models
from evenhand.posterior.tables import pair_tables, read_table, simulate
from evenhand.vectors.distances import distance_table

ROWS = [
    ("imam", "violent", "muslim_stereotype", 0.8, 0.2, "associated"),
    ("imam", "greedy", "jew_stereotype", 0.9, 0.1, "different"),
    ("rabbi", "violent", "muslim_stereotype", 0.95, 0.05, "different"),
    ("rabbi", "greedy", "jew_stereotype", 0.7, 0.3, "associated"),
    ("imam", "kind", "human", 1.0, 0.0, "human"),
    ("rabbi", "table", "neutral", 1.1, -0.1, "none"),
]
THESIS = [
    "protectedWord",
    "wordToCompare",
    "wordClass",
    "cosineDistance",
    "cosineSimilarity",
    "connection",
]
SNAKE = [
    "protected_word",
    "word_to_compare",
    "word_class",
    "cosine_distance",
    "cosine_similarity",
    "connection",
]
OTHER = ["Protected.Word", "attribute", "class", "distance", "similarity", "Connection"]


def frame(rows=ROWS, columns=THESIS):
    return pd.DataFrame(rows, columns=columns)


def saved(tmp_path, data, **options):
    path = tmp_path / "d.csv"
    data.to_csv(path, **options)
    return path


@pytest.mark.parametrize("columns", [THESIS, SNAKE, OTHER])
@pytest.mark.parametrize("index", [True, False])
def test_headers_vary(tmp_path, columns, index):
    table = read_table(saved(tmp_path, frame(columns=columns), index=index))
    assert table.rows == 6
    assert table.words == ("imam", "rabbi")
    assert table.word_class == ("muslim", "jew")
    assert table.attribute_class == ("muslim", "jew", "human", "neutral")
    assert list(table.group) == [0, 0, 1, 2]
    assert table.levels == ("associated", "different", "human", "none")
    assert table.distance.tolist() == [0.8, 0.9, 0.95, 0.7, 1.0, 1.1]
    assert dict(table.dropped) == {"sentinel": 0, "missing": 0, "duplicate": 0}


def test_distance_from_similarity_alone(tmp_path):
    path = saved(tmp_path, frame().drop(columns="cosineDistance"), index=False)
    assert np.allclose(read_table(path).distance, [0.8, 0.9, 0.95, 0.7, 1.0, 1.1])


def test_gzip_and_row_names_without_a_header(tmp_path):
    path = tmp_path / "d.csv.gz"
    lines = [",".join(THESIS), *(f"{k}," + ",".join(map(str, r)) for k, r in enumerate(ROWS))]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert read_table(path).rows == 6


def test_our_own_table(glove):
    distances = distance_table(glove, lexicon.topic("religion"))
    table = read_table(distances)
    assert table.rows == distances.distance.size
    assert table.word_class == distances.protected_class
    assert np.array_equal(np.sort(table.distance), np.sort(distances.distance.ravel()))


def test_what_cannot_be_used_is_dropped_and_counted(tmp_path):
    rows = [
        *ROWS,
        ("rabbi", "ghost", "neutral", 10001.0, -10000.0, "none"),
        ("rabbi", "wraith", "neutral", "", -2.0, "none"),
        ("rabbi", "literaly", "neutral", -100.0, -100.0, "none"),
        ("rabbi", "chair", "neutral", "", "", "none"),
        ("", "chair", "neutral", 1.0, 0.0, "none"),
        ("rabbi", "stool", "neutral", "NA", "NaN", "none"),
        ROWS[0],
        ROWS[5],
        ("rabbi", "lamp", "neutral", 0.5, 0.1, "none"),
    ]
    table = read_table(saved(tmp_path, frame(rows)))
    assert table.rows == 6
    assert dict(table.dropped) == {
        "sentinel": 3,
        "missing": 3,
        "duplicate": 2,
        "inconsistent": 1,
    }
    assert "ghost" not in table.attributes


def test_rounding_is_not_a_sentinel():
    table = read_table(frame([*ROWS, ("imam", "imam", "human", -1e-8, 1 + 1e-8, "human")]))
    assert table.rows == 7


def test_a_word_may_be_called_nan_or_null():
    rows = [
        *ROWS,
        ("imam", "nan", "neutral", 1.0, 0.0, "none"),
        ("imam", "null", "neutral", 1.0, 0.0, "none"),
    ]
    assert {"nan", "null"} <= set(read_table(frame(rows)).attributes)


def test_ones_own_stereotype_wins_over_a_strangers():
    """A stereotype of two classes is listed twice for every word."""
    rows = [
        ("imam", "cheap", "jew_stereotype", 0.6, 0.4, "different"),
        ("imam", "cheap", "muslim_stereotype", 0.6, 0.4, "associated"),
        *ROWS,
    ]
    table = read_table(frame(rows))
    assert table.dropped["conflicting"] == 1
    assert table.connection[table.attribute == table.attributes.index("cheap")].tolist() == [0]


def test_an_attribute_has_one_group():
    rows = [*ROWS, ("rabbi", "kind", "neutral", 1.0, 0.0, "none")]
    table = read_table(frame(rows))
    assert table.dropped["conflicting"] == 1
    assert table.rows == 6


@pytest.mark.parametrize("missing", ["protectedWord", "wordToCompare", "connection"])
def test_a_column_is_missing(tmp_path, missing):
    path = saved(tmp_path, frame().rename(columns={missing: "other"}), index=False)
    with pytest.raises(FileError, match=rf"d\.csv, line 1: no column {missing}: expected"):
        read_table(path)


def test_neither_distance_nor_similarity(tmp_path):
    data = frame().drop(columns=["cosineDistance", "cosineSimilarity"])
    with pytest.raises(FileError, match="line 1: no column cosineDistance"):
        read_table(saved(tmp_path, data))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("connection", "enemy", "line 4: column connection: expected associated, different, human"),
        ("cosineDistance", "far", "line 4: column cosineDistance: expected a number, got 'far'"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(tmp_path, column, value, message):
    data = frame().astype(object)
    data.loc[2, column] = value
    with pytest.raises(FileError, match=message):
        read_table(saved(tmp_path, data, index=False))


def test_damaged_files(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("")
    with pytest.raises(FileError, match="empty file"):
        read_table(path)
    path.write_text(",".join(THESIS) + "\na,b,c\n")
    with pytest.raises(FileError, match="line 2: expected 6 cells, got 3"):
        read_table(path)
    path.write_text(",".join(THESIS) + "\n")
    with pytest.raises(FileError, match="expected rows with a distance, got none"):
        read_table(path)
    path.write_bytes(",".join(THESIS).encode() + b"\nimam,\xff\xfe,c,1,0,none\n")
    with pytest.raises(FileError, match="UTF-8"):
        read_table(path)
    path.write_text(",".join([*THESIS, "connection"]) + "\na,b,c,1,0,none,none\n")
    with pytest.raises(FileError, match="two columns named 'connection'"):
        read_table(path)
    gz = tmp_path / "d.csv.gz"
    gz.write_bytes(gzip.compress(b"protectedWord\n")[:-5])
    with pytest.raises(FileError, match="gz data ends too soon"):
        read_table(gz)


def test_some_words_alone():
    table = read_table(frame()).select_words(["rabbi"])
    assert table.words == ("rabbi",)
    assert table.attributes == ("violent", "greedy", "table")
    with pytest.raises(InputError, match="no protected word 'pope'"):
        read_table(frame()).select_words(["pope"])


def test_classes_of_words():
    table = read_table(frame())
    assert table.select_classes(["muslim"]).words == ("imam",)
    assert table.select_classes(["muslim"]).attributes == table.select_words(["imam"]).attributes
    assert (table.shared_attributes, table.repeated) == (2, 0)
    with pytest.raises(UnknownNameError, match="did you mean 'muslim'"):
        table.select_classes(["muslin"])


def test_repeated_rows_are_kept_on_request():
    rows = [*ROWS, ROWS[0], ("rabbi", "kind", "neutral", 1.0, 0.0, "none")]
    table = read_table(frame(rows), duplicates="keep")
    assert (table.rows, table.repeated) == (8, 1)
    assert table.dropped == {"sentinel": 0, "missing": 0, "duplicate": 0}
    first, second, unpaired = pair_tables(table, table.with_distance(table.distance + 0.1, "b"))
    assert unpaired == {"before": 0, "after": 0}
    assert np.allclose(second.distance - first.distance, 0.1)
    with pytest.raises(UnknownNameError, match="unknown duplicates 'all'"):
        read_table(frame(rows), duplicates="all")


def test_pairing_by_word_and_attribute():
    before = read_table(frame())
    shuffled = frame().sample(frac=1, random_state=1)
    shuffled["cosineDistance"] += 0.1
    after = read_table(
        shuffled[shuffled["wordToCompare"] != "table"].drop(columns="cosineSimilarity")
    )
    first, second, unpaired = pair_tables(before, after)
    assert first.rows == second.rows == 5
    assert np.allclose(second.distance - first.distance, 0.1)
    assert unpaired == {"before": 1, "after": 0}
    other = frame()
    other.loc[0, "connection"] = "different"
    with pytest.raises(InputError, match="'imam' and 'violent': expected the connection 'assoc"):
        pair_tables(before, read_table(other))


def test_the_race_file_repeats_words(shared):
    table = read_table(shared / "data" / "cosine" / "raceReddit.csv")
    assert (table.rows, table.dropped["duplicate"]) == (2840, 2272)
    assert len(table.words) == 10


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("imam", "x", "human", "inf", "", "human"), "line 8: 'imam' and 'x': expected a cosine"),
        (
            ("imam", "x", "human", "", "-inf", "human"),
            "expected a cosine similarity between -1 and",
        ),
        (("imam", "x", "human", 7.5, "", "human"), "cosine distance between 0 and 2, got 7.5"),
        (("imam", "x", "human", -0.5, "", "human"), "cosine distance between 0 and 2, got -0.5"),
        (("imam", "x", "human", 1e300, "", "human"), "cosine distance between 0 and 2, got 1e"),
        (
            ("imam", "violent", "muslim_stereotype", 0.3, 0.7, "associated"),
            "line 8: 'imam' and 'violent': expected one distance, got 0.8 in line 2 and 0.3 here",
        ),
        (
            ("imam", "violent", "jew_stereotype", 0.3, 0.7, "different"),
            "line 8: 'imam' and 'violent': expected one distance, got 0.8 in line 2 and 0.3 here",
        ),
    ],
)
def test_what_no_cosine_has_and_contradictions_are_errors(tmp_path, row, message):
    with pytest.raises(FileError, match=message):
        read_table(saved(tmp_path, frame([*ROWS, row]), index=False))


def test_a_singular_curvature_is_one_line(monkeypatch):
    def singular(*_, **__):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(models, "fit_crossed", singular)
    with pytest.raises(InputError, match="the table: crossed: expected distances that determine"):
        models.fit(frame())


def test_simulated_attributes_are_skewed_on_request():
    """Standard deviations remain; the third moment is that of the skewness."""
    options = {"words": (2, 2), "stereotypes": (1500, 1500), "human": 0, "neutral": 0}
    scales = {"error": 1e-9, "stereotype": 0.2}
    plain, skewed = (
        simulate(**options, scales=scales, skew=skew, seed=4).distance[:3000] for skew in (0, -2)
    )
    assert plain.std() == pytest.approx(0.2, rel=0.05)
    assert skewed.std() == pytest.approx(0.2, rel=0.1)
    moments = [float(np.mean(((y - y.mean()) / y.std()) ** 3)) for y in (plain, skewed)]
    assert moments == pytest.approx([0, -2], abs=0.4)


def test_simulated_attributes_are_correlated_on_request():
    """Neighbours of one class share part of levels, interactions and errors; others share none."""
    options = {"words": (3, 3), "stereotypes": (2000, 2001), "human": 0, "neutral": 0}
    for scales in ({"error": 0.1}, {"error": 1e-9, "interaction_stereotype": 0.1}):
        y = simulate(**options, scales=scales, correlated=(2, 0.5), seed=4).distance
        first = y.reshape(6, -1)[0] - 0.9
        assert first.std() == pytest.approx(0.1, rel=0.1)
        pairs = np.corrcoef(first[:4000:2], first[1:4000:2])[0, 1]
        others = np.corrcoef(first[1:3999:2], first[2:4000:2])[0, 1]
        assert (pairs, others) == pytest.approx((0.5, 0.0), abs=0.06)
    default = simulate(seed=4)
    assert np.array_equal(default.distance, simulate(seed=4, correlated=(3, 0.0)).distance)


def test_euclidean_distances_are_not_taken_for_cosine_distances():
    table = pd.DataFrame(
        {
            "protectedWord": ["imam", "imam"],
            "wordToCompare": ["violent", "kind"],
            "connection": ["associated", "human"],
            "euclideanDistance": [0.9, 1.1],
        }
    )
    with pytest.raises(FileError, match="cosineDistance"):
        read_table(table)
