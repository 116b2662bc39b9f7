from __future__ import annotations

import bz2
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zstandard

from evenhand.errors import FileError, InputError, MissingExtraError, UnknownNameError
from evenhand.fewshot.data import PROFESSIONS, Dataset, gender_code, read
from evenhand.fewshot.episodes import sample
from evenhand.fewshot.mitigation import apply
from evenhand.simulate.biographies import biographies
from evenhand.statistics.odds import odds_ratio


def tiny() -> Dataset:
    return Dataset.of(
        ["one", "two", "three", "four", "five", "six"],
        ["b", "b", "a", "a", "c", "b"],
        ["F", "female", "M", "Woman", None, "unknown"],
        name="tiny",
    )


class TestDataset:
    def test_classes_are_sorted_and_labels_are_places_in_them(self) -> None:
        made = tiny()
        assert made.classes == ("a", "b", "c")
        assert made.labels.tolist() == [1, 1, 0, 0, 2, 1]
        assert made.genders.tolist() == [1, 1, 0, 1, -1, -1]
        assert made.genders.dtype == np.int8
        assert len(made) == 6

    def test_shares_and_leanings(self) -> None:
        made = tiny()
        assert made.sizes.tolist() == [2, 3, 1]
        assert made.gender_sizes.tolist() == [[1, 1], [0, 2], [0, 0]]
        np.testing.assert_array_equal(made.share_of_women, [0.5, 1.0, np.nan])
        assert replace(made, leaning_by="share").leaning == ("even", "female", "unknown")
        men = Dataset.of("ab", "xx", "MM", name="men")
        assert men.leaning == ("unknown",)
        assert replace(men, leaning_by="share").leaning == ("male",)

    def test_a_leaning_that_is_given(self) -> None:
        rows = [("a", "M")] * 3 + [("b", "F")] * 3 + [("c", "M")] * 3
        labels, genders = zip(*rows, strict=True)
        made = Dataset.of(map(str, range(9)), labels, genders, name="made")
        given = replace(made, leaning_by={"a": "female", "b": "male"})
        assert given.leaning == ("female", "male", "even")
        assert given.subset(["b", "c"]).leaning == ("male", "even")
        assert given.to_dict()["leaning_by"] == "given"
        with pytest.raises(InputError, match=r"leaning: expected male or female .* got men"):
            replace(made, leaning_by={"a": "men"})

    def test_leaning_by_the_odds_ratio(self) -> None:
        """Of mostly men, a class with fewer of them than the others leans female."""
        sizes = {"a": (80, 40), "b": (190, 10), "c": (95, 10), "d": (5, 0)}
        rows = [(name, g) for name, n in sizes.items() for g in "M" * n[0] + "F" * n[1]]
        labels, genders = zip(*rows, strict=True)
        made = Dataset.of(map(str, range(len(rows))), labels, genders, name="made")
        assert made.leaning == ("female", "male", "even", "even")
        assert replace(made, leaning_by="point").leaning == ("female", "male", "male", "male")
        assert replace(made, leaning_by="share").leaning == ("male",) * 4
        for row, (men, women) in zip(made.odds_ratios, sizes.values(), strict=True):
            assert row.tolist() == list(odds_ratio(men, 370 - men, women, 60 - women))
        record = made.to_dict()["classes"]["a"]
        assert (record["leaning"], record["odds_ratio"]) == ("female", made.odds_ratios[0, 0])
        assert record["odds_low"] < record["odds_ratio"] < record["odds_high"] < 1
        part = replace(made, leaning_by="share").subset(["a", "b"])
        assert part.leaning_by == "share"
        with pytest.raises(UnknownNameError, match="unknown leaning 'odd': did you mean 'odds'"):
            replace(made, leaning_by="odd")  # type: ignore[arg-type]

    def test_persons_who_are_neither(self) -> None:
        genders = ["M", "nonbinary", "x", "unknown", "F"]
        made = Dataset.of(map(str, range(5)), "aabbb", genders, name="made")
        assert made.genders.tolist() == [0, -2, -2, -1, 1]
        assert made.neither_sizes.tolist() == [1, 1]
        assert made.gender_sizes.tolist() == [[1, 0], [0, 1]]
        assert made.to_dict()["classes"]["a"]["neither"] == 1
        assert apply(made, "augment").pool.genders.tolist() == [0, -2, -2, -1, 1, 1, -2, -2, -1, 0]
        people = Dataset.of(map(str, range(40)), "ab" * 20, ["M", "F", "x", "M"] * 10, name="m")
        drawn = sample(people, ["a", "b"], ways=2, shots=2, queries=2, episodes=20, seed=1)
        assert (people.labels[drawn.support] == drawn.classes[:, :, None]).all()
        half = people.subset(["b"])
        assert half.neither_sizes.tolist() == [0]

    def test_what_is_left_out_is_counted(self) -> None:
        made = Dataset.of(
            ["same", " same ", "", None, "torn", "torn", "torn", "lost", "kept"],
            ["x", "x", "x", "x", "x", "y", "x", None, "y"],
            name="dirty",
        )
        assert made.texts == ("same", "kept")
        assert made.rows.tolist() == [0, 8]
        assert made.left_out == {
            "duplicate text": 1,
            "empty text": 2,
            "no class": 1,
            "text under several classes": 3,
        }
        assert len(made) + sum(made.left_out.values()) == 9

    @pytest.mark.parametrize(
        ("genders", "expected"), [("FM", -1), ("FF", 1), (["M", None], 0), ([None, "F"], 1)]
    )
    def test_gender_of_copies(self, genders: Any, expected: int) -> None:
        assert Dataset.of(["a", "a"], ["x", "x"], genders, name="t").genders.tolist() == [expected]

    def test_frozen_all_through(self) -> None:
        made = tiny()
        with pytest.raises(AttributeError):
            made.name = "other"  # type: ignore[misc]
        with pytest.raises(ValueError, match="read-only"):
            made.labels[0] = 2

    def test_digest_tells_content_apart_and_nothing_else(self) -> None:
        base = Dataset.of(["ab", "c"], ["x", "y"], "MF", name="one")
        assert base.digest == Dataset.of(["ab", "c"], ["x", "y"], "MF", name="two").digest
        others = [
            Dataset.of(["a", "bc"], ["x", "y"], "MF", name="one"),
            Dataset.of(["c", "ab"], ["x", "y"], "MF", name="one"),
            Dataset.of(["ab", "c"], ["x", "z"], "MF", name="one"),
            Dataset.of(["ab", "c"], ["y", "x"], "MF", name="one"),
            Dataset.of(["ab", "c"], ["x", "y"], "FM", name="one"),
        ]
        assert len({base.digest, *(other.digest for other in others)}) == 6

    def test_subset(self) -> None:
        made = tiny().subset(["c", "b"])
        assert made.classes == ("b", "c")
        assert made.texts == ("one", "two", "five", "six")
        assert made.labels.tolist() == [0, 0, 1, 0]
        assert made.rows.tolist() == [0, 1, 4, 5]
        with pytest.raises(UnknownNameError, match="unknown class 'd'"):
            tiny().subset(["d"])
        with pytest.raises(InputError, match="'a' twice"):
            tiny().subset(["a", "a"])
        with pytest.raises(InputError, match="expected a list"):
            tiny().subset("ab")

    def test_at_least_names_the_classes(self) -> None:
        made = tiny().at_least(2)
        assert made.classes == ("a", "b")
        assert made.left_out == {"class 'c': fewer than 2 texts": 1}
        made = tiny().at_least(2, each_gender=1)
        assert made.classes == ("a",)
        assert made.left_out["class 'b': fewer than 1 texts of one gender"] == 3
        with pytest.raises(InputError, match="tiny: no class has 9 texts"):
            tiny().at_least(9)

    def test_wrong_arguments(self) -> None:
        with pytest.raises(InputError, match=r"t: expected as many texts.*got 1, 2, 1"):
            Dataset.of(["a"], ["x", "y"], ["M"], name="t")
        with pytest.raises(InputError, match=r"t, row 2: gender: expected M or F.*got 'q'"):
            Dataset.of(["a", "b"], ["x", "y"], ["M", "q"], name="t")
        with pytest.raises(InputError, match=r"no text with a class is left \(empty text: 1\)"):
            Dataset.of([" "], ["x"], name="t")
        plain: dict[str, Any] = {"texts": ("a",), "classes": ("x",), "name": "t"}
        for labels, genders, message in (
            ([1], [0], "labels"),
            ([0], [2], "genders"),
            ([0, 0], [0], "labels: expected 1"),
        ):
            with pytest.raises(InputError, match=message):
                Dataset(labels=np.array(labels), genders=np.array(genders), **plain)

    def test_numbers_are_genders_but_their_text_is_not(self) -> None:
        assert [gender_code(np.int8(1)), gender_code(0), gender_code(-1)] == [1, 0, -1]
        for value in ("0", "1", True, 2, "1.0"):
            with pytest.raises(InputError, match="expected M or F"):
                gender_code(value)

    def test_simulated_biographies_fit(self) -> None:
        made = biographies(5, occupations=["nurse", "yoga teacher"])
        data = Dataset.of(made.texts, made.occupations, made.genders, name="simulated")
        assert data.classes == ("nurse", "yoga teacher")
        women = [gender == "F" for gender in made.genders]
        assert (data.genders == 1).tolist() == [women[row] for row in data.rows]


ROWS = [("Ann paints.", "painter", "F"), ("Bo sings.", "singer", "M"), ("Cy sings.", "singer", "M")]


def csv_text(header: str) -> str:
    return "\n".join([header, *(",".join(row) for row in ROWS)]) + "\n"


class TestRead:
    @pytest.mark.parametrize(
        "header",
        [
            "hard_text,profession,gender",
            "text,occupation,gender",
            "Text,Occupation,Gender",
            "text,label,gender",
        ],
    )
    def test_known_columns(self, tmp_path: Path, header: str) -> None:
        path = tmp_path / "some.csv"
        path.write_text(csv_text(header))
        made = read(path)
        assert made.texts == tuple(row[0] for row in ROWS)
        assert made.classes == ("painter", "singer")
        assert made.genders.tolist() == [1, 0, 0]
        assert made.name == "some.csv"

    def test_all_forms_give_the_same(self, tmp_path: Path) -> None:
        text = csv_text("text,occupation,gender").encode()
        records = [dict(zip(("text", "occupation", "gender"), row, strict=True)) for row in ROWS]
        (tmp_path / "a.csv").write_bytes(text)
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
        (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(text))
        (tmp_path / "a.csv.zst").write_bytes(zstandard.compress(text))
        (tmp_path / "a.tsv").write_bytes(text.replace(b",", b"\t"))
        lines = "\n".join(json.dumps(record) for record in records)
        (tmp_path / "a.jsonl").write_text(lines)
        pd.DataFrame(records).to_parquet(tmp_path / "a.parquet")
        digests = {read(path).digest for path in tmp_path.iterdir()}
        assert digests == {read(pd.DataFrame(records)).digest}
        assert len(list(tmp_path.iterdir())) == 7

    def test_numbers_of_bias_in_bios(self, tmp_path: Path) -> None:
        path = tmp_path / "bios.csv"
        path.write_text("hard_text,profession,gender\na,0,0\nb,27,1\nc,13,1\nd,poet,\n")
        made = read(path)
        assert made.classes == ("accountant", "nurse", "poet", "yoga_teacher")
        assert made.genders.tolist() == [0, 1, 1, -1]
        assert len(PROFESSIONS) == 28
        assert list(PROFESSIONS) == sorted(PROFESSIONS)
        path.write_text("hard_text,profession,gender\na,0,0\nb,28,1\n")
        with pytest.raises(FileError, match=r"bios\.csv: row 2: profession: .* 0 to 27, got 28"):
            read(path)

    def test_numbers_mean_nothing_elsewhere(self, tmp_path: Path) -> None:
        path = tmp_path / "own.csv"
        path.write_text("bio,profession,gender\na,0,F\nb,1,M\n")
        assert read(path, text="bio").classes == ("0", "1")
        path.write_text("bio,profession,gender\na,x,0\nb,y,1\n")
        with pytest.raises(
            FileError, match=r"row 1: gender: expected M or F.*named with male= and female="
        ):
            read(path, text="bio")
        assert read(path, text="bio", male="1", female="0").genders.tolist() == [1, 0]

    def test_codes_of_persons_who_are_neither(self, tmp_path: Path) -> None:
        path = tmp_path / "own.csv"
        path.write_text("text,label,gender\na,x,F\nb,y,N\nc,x,they\n")
        with pytest.raises(FileError, match="row 2: gender: expected M or F"):
            read(path)
        assert read(path, neither="N").genders.tolist() == [1, -2, -2]
        with pytest.raises(InputError, match="male=, neither=: expected different values, got 'N'"):
            read(path, male="N", neither="N")

    def test_without_genders(self, tmp_path: Path) -> None:
        path = tmp_path / "intents.jsonl"
        path.write_text('{"sentence": "hi", "label": "greet"}\n{"sentence": "go", "label": "go"}\n')
        assert read(path).genders.tolist() == [-1, -1]
        assert read(path).leaning == ("unknown", "unknown")

    def test_missing_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "own.csv"
        path.write_text("bio,job\na,x\n")
        known = r"own\.csv: expected columns hard_text and profession, .* or text and label"
        with pytest.raises(FileError, match=known + ".*the columns are bio, job"):
            read(path)
        with pytest.raises(FileError, match=r"label: unknown column 'jop': did you mean 'job'\?"):
            read(path, text="bio", label="jop")
        with pytest.raises(FileError, match="expected columns bio and profession, bio and occup"):
            read(path, text="bio")
        with pytest.raises(FileError, match="gender: unknown column 'sex'"):
            read(path, text="bio", label="job", gender="sex")

    def test_broken_rows_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "own.csv"
        path.write_text("text,label\na,x\nb\n")
        with pytest.raises(FileError, match="line 3: expected 2 fields as in the header, got 1"):
            read(path)
        path.write_text('{"text": "a", "label": "x"}\n{"text": ["b"], "label": "x"}\n')
        with pytest.raises(FileError, match="line 2: 'text': expected text or a number, got list"):
            read(path)
        path.write_text("text,label\n")
        with pytest.raises(FileError, match=r"own\.csv: no text with a class is left \(no rows\)"):
            read(path)

    def test_simulated_by_name_and_parameters(self, tmp_path: Path, monkeypatch: Any) -> None:
        monkeypatch.chdir(tmp_path)
        message = biographies(6, leak=1.0, seed=4)
        made = read("simulated:per_class=6, leak=1,seed=4")
        assert made.name == "simulated:per_class=6, leak=1,seed=4"
        assert (
            made.digest
            == Dataset.of(message.texts, message.occupations, message.genders, name="any").digest
        )
        assert made.digest != read("simulated:per_class=6,leak=1,seed=5").digest
        assert len(read("simulated:per_class=2").classes) == 28
        (tmp_path / "simulated").write_text("text,label\na,x\n")
        assert read("simulated").texts == ("a",)  # a file of that name comes first

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("simulated:leek=1", "unknown parameter of simulated data 'leek': did you mean 'leak'"),
            ("simulated:leak", "leak: expected a number such as leak=0.5, got 'leak'"),
            ("simulated:leak=much", "leak: expected a number such as leak=0.5, got 'much'"),
            ("simulated:per_class=2.5", "expected a whole number such as per_class=200, got '2.5'"),
            ("simulated:leak=7", "leak: expected a number from 0 to 1, got 7"),
            ("simulated:leak=nan", "leak: expected a number from 0 to 1, got nan"),
            ("simulated:per_class=0", "per_class: expected a whole number from 1 up, got 0"),
            ("simulated:leak=1,leak=0", "leak: expected once, got it twice"),
        ],
    )
    def test_wrong_parameters(self, source: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            read(source)


class Part:
    """One part of a data set of the hub, as far as it is asked."""

    def __init__(self, columns: dict[str, list[Any]], features: dict[str, Any]) -> None:
        self.column_names, self.features, self._columns = list(columns), features, columns

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns[name]


class TestHub:
    def stand_in(self, monkeypatch: pytest.MonkeyPatch, result: object) -> list[str]:
        asked = []

        def load_dataset(name: str) -> object:
            asked.append(name)
            if isinstance(result, Exception):
                raise result
            return result

        module = ModuleType("datasets")
        module.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", module)
        return asked

    def part(self, columns: dict[str, list[Any]], **features: object) -> Any:
        return Part(columns, dict.fromkeys(columns, SimpleNamespace()) | features)

    def test_all_parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        train = self.part({"hard_text": ["a", "b"], "profession": [0, 25], "gender": [0, 1]})
        test = self.part({"gender": [1], "hard_text": ["c"], "profession": [0]})
        asked = self.stand_in(monkeypatch, {"train": train, "test": test})
        made = read("hf:someone/bios")
        assert asked == ["someone/bios"]
        assert made.name == "hf:someone/bios"
        assert made.classes == ("accountant", "surgeon")
        assert made.genders.tolist() == [0, 1, 1]

    def test_numbers_with_names(self, monkeypatch: pytest.MonkeyPatch) -> None:
        names = SimpleNamespace(names=["red", "blue"])
        part = self.part({"text": ["a", "b", "c"], "label": [1, 0, -1]}, label=names)
        self.stand_in(monkeypatch, {"train": part})
        made = read("hf:colours")
        assert [made.classes[label] for label in made.labels] == ["blue", "red"]
        assert made.left_out == {"no class": 1}

    def test_without_the_package(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "datasets", None)
        with pytest.raises(
            MissingExtraError, match=r"'hf:x' needs the package datasets: .*\[hub\]"
        ):
            read("hf:x")

    def test_without_network(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand_in(monkeypatch, ConnectionError("no route\nmore"))
        with pytest.raises(InputError, match=r"hf:x: expected .* got ConnectionError: no route$"):
            read("hf:x")

    def test_parts_that_differ(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one, two = self.part({"text": ["a"], "label": ["x"]}), self.part({"text": ["a"]})
        self.stand_in(monkeypatch, {"train": one, "test": two})
        with pytest.raises(FileError, match="expected the same columns in all its parts"):
            read("hf:x")


class TestRealData:
    def test_wikibios(self, shared: Path) -> None:
        made = read(shared / "data/bios/wikibios.csv.gz")
        assert len(made) + sum(made.left_out.values()) == 23_859
        assert made.left_out == {"duplicate text": 30}
        assert len(made.classes) == 65
        assert (made.genders >= 0).all()
        share = dict(zip(made.classes, made.share_of_women, strict=True))
        assert share["model"] > 0.8
        assert share["footballer"] < 0.05

    def test_events(self, shared: Path) -> None:
        made = read(shared / "data/events/final_manual.csv")
        assert len(made) + sum(made.left_out.values()) == 581
        assert made.left_out == {"duplicate text": 26, "text under several classes": 2}
        assert len(made.classes) == 8
        assert set(made.genders.tolist()) == {0, 1}

    @pytest.mark.parametrize(
        ("folder", "rows", "classes"), [("BANKING77", 13_083, 77), ("HWU64", 11_036, 64)]
    )
    def test_intents(self, shared: Path, folder: str, rows: int, classes: int) -> None:
        made = read(shared / f"data/intents/{folder}/full.jsonl", name=folder)
        assert len(made) + sum(made.left_out.values()) == rows
        assert len(made.classes) == classes
        assert (made.genders == -1).all()
