"""First names: the embedded table, its fixed pairs, and the script that makes it."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evenhand import lexicon
from evenhand.lexicon.first_names import Entry, Names

TOOLS = Path(__file__).parents[2] / "tools"
NAMES = lexicon.names()


def split(words: str) -> list[str]:
    return words.split()


def test_there_are_enough() -> None:
    assert len(NAMES.female) >= 8_000
    assert len(NAMES.male) >= 5_400
    assert not set(NAMES.female) & set(NAMES.male)


def test_the_table_is_small_and_in_order() -> None:
    counts = [NAMES.count(name) for name in NAMES.table]
    assert counts == sorted(counts, reverse=True)
    assert min(counts) >= 400
    assert all(name == name.capitalize() and name.isascii() for name in NAMES.table)
    assert all(entry.female != entry.male for entry in NAMES.table.values())


@pytest.mark.parametrize("name", split("Mary Elizabeth Jennifer Aisha Sofia Keisha"))
def test_women(name: str) -> None:
    assert NAMES.gender(name) == "female"
    assert name in NAMES.female


@pytest.mark.parametrize("name", split("John James Mohammed Jamal Jose William Hiroshi"))
def test_men(name: str) -> None:
    assert NAMES.gender(name) == "male"
    assert name in NAMES.male


def test_names_of_both_have_no_gender() -> None:
    for name in ("Casey", "Jordan", "Riley", "Jessie"):
        assert name in NAMES
        assert NAMES.gender(name) is None
        share = NAMES.share(name)
        assert share is not None
        assert 0.05 < share < 0.95


def test_by_falling_count() -> None:
    assert NAMES.female[0] == "Mary"
    assert NAMES.male[:2] == ("James", "John")
    counts = [NAMES.count(name) for name in NAMES.female]
    assert counts == sorted(counts, reverse=True)


def test_how_a_name_is_written() -> None:
    assert NAMES.gender("MARY") == "female"
    assert NAMES.count("McKenzie") == NAMES.count("Mckenzie") > 0
    assert NAMES.gender("mary") is NAMES.partner("mary") is NAMES.share("mary") is None
    assert ("mary" in NAMES, "" in NAMES, "Xqzt" in NAMES, 7 in NAMES) == (False,) * 4
    assert NAMES.count("Xqzt") == 0


def test_the_border_of_a_clear_gender() -> None:
    table = {"A": Entry(95, 5, None), "B": Entry(949, 51, None), "C": Entry(5, 95, None)}
    few = Names(table=table, ambiguous=frozenset())
    assert [few.gender(name) for name in "ABC"] == ["female", None, "male"]
    assert (few.female, few.male, len(few)) == (("A",), ("C",), 3)


def test_partners_are_mutual_and_of_the_other_gender() -> None:
    paired = {name: entry for name, entry in NAMES.table.items() if entry.partner}
    assert len(paired) >= 2 * 5_400
    for name, entry in paired.items():
        assert entry.partner is not None
        other = NAMES.table[entry.partner]
        assert other.partner == name
        assert (entry.female > entry.male) != (other.female > other.male)
    assert all(NAMES.partner(name) for name in list(NAMES.table)[:1000])


def test_partners_are_alike() -> None:
    births, specificity = [], []
    pairs = [(name, NAMES.partner(name)) for name in NAMES.table]
    for name, other in pairs:
        if other is not None:
            births.append(abs(math.log(NAMES.count(name) / NAMES.count(other))))
            one, two = (NAMES.share(n) or 0.0 for n in (name, other))
            specificity.append(abs(max(one, 1 - one) - max(two, 1 - two)))
            assert (name in NAMES.ambiguous) == (other in NAMES.ambiguous)
    assert statistics.median(births) < 0.3
    assert statistics.quantiles(births, n=100)[-1] < 1.1
    assert statistics.quantiles(specificity, n=100)[-1] < 0.06


@pytest.mark.parametrize(
    "name",
    split(
        "Will Mark May June April August Grace Hope Faith Rose Bill Art Paris Virginia Georgia "
        "Carolina Chase Christian Jordan Israel Chelsea Jackson Lincoln Washington King Prince "
        "Royal Major An My Any Said Even Ever De La Van Don Sue Drew Grant Joy Young Long Green "
        "Smith China Easter"
    ),
)
def test_names_that_are_also_something_else(name: str) -> None:
    assert name in NAMES.ambiguous


@pytest.mark.parametrize("name", split("Mary John James Michael Susan Linda Robert Emily Ahmed"))
def test_plain_names_are_not_ambiguous(name: str) -> None:
    assert name not in NAMES.ambiguous


def test_ambiguous_names_are_names() -> None:
    assert [name for name in NAMES.ambiguous if name not in NAMES.table] == []
    assert 1_500 < len(NAMES.ambiguous) < 2_500


def test_every_function_word_is_ambiguous() -> None:
    """Determiners, pronouns, prepositions, auxiliaries, conjunctions."""
    words = (
        "a an the any all both each every few many more most much no none one other some such "
        "i me my mine we us our you your he him his she her it its they them their who whom whose "
        "am is are was were be been being do does did done have has had having can could may might "
        "must shall should will would about above after at before below by down for from in into "
        "near of off on out over since through to under until up with and but if nor or so than "
        "that then though when where while yet not also even ever else here how just never now "
        "only often once soon still there thus too very well why said says see saw go went don let"
    )
    matches = {word.capitalize() for word in words.split()} & set(NAMES.table)
    assert {"An", "My", "Will", "May", "Any", "Even", "Ever", "Else", "Said"} <= matches
    assert matches <= NAMES.ambiguous


def test_coverage_of_the_published_names(shared: Path) -> None:
    lists = json.loads((shared / "data/wordlists/names.json").read_text())
    for side, gender, other in (("women", "female", "male"), ("men", "male", "female")):
        known = [name for name in lists[side] if name in NAMES]
        genders = [NAMES.gender(name) for name in known]
        print(  # noqa: T201
            f"{side}: {len(known)} of {len(lists[side])} known, "
            f"{genders.count(gender)} {gender}, {genders.count(other)} {other}"
        )
        assert len(known) / len(lists[side]) >= 0.99
        assert genders.count(gender) / len(known) > 0.75
        assert genders.count(other) == 0


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("make_names", TOOLS / "make_names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_names", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two years of births, by hand: frequent Ann and Bob, rare Cat and Dan, unisex Kit and Lee."""
    folder = tmp_path / "raw-data"
    folder.mkdir()
    (folder / "yob2000.txt").write_text(
        "Ann,F,900\nCat,F,40\nKit,F,60\nLee,F,40\nEve,F,45\nUnknown,F,500\nTie,F,50\nFew,F,9\n"
        "Bob,M,800\nDan,M,42\nKit,M,40\nLee,M,60\nTie,M,50\nUnknown,M,600\n"
    )
    (folder / "yob2001.txt").write_text("Ann,F,100\nBob,M,200\nDan,M,8\nCat,F,11\nEve,F,25\n")
    return tmp_path


def build(script: ModuleType, package: Path, out: Path, *more: str) -> list[list[str]]:
    years = ["--first", "2000", "--last", "2001", "--least", "50"]
    script.main([str(package), str(out), *years, *more])
    return list(csv.reader(out.read_text().splitlines()))


def test_script_sums_keeps_and_pairs(
    script: ModuleType, package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = build(script, package, tmp_path / "names.csv")
    assert rows == [
        ["name", "female", "male", "partner"],
        ["Ann", "1000", "0", "Bob"],
        ["Bob", "0", "1000", "Ann"],
        ["Kit", "60", "40", "Lee"],
        ["Lee", "40", "60", "Kit"],
        ["Eve", "70", "0", ""],
        ["Cat", "51", "0", "Dan"],
        ["Dan", "0", "50", "Cat"],
    ]
    assert "4 female and 3 male names, 6 paired" in capsys.readouterr().out


def test_script_makes_the_same_bytes_again(
    script: ModuleType, package: Path, tmp_path: Path
) -> None:
    assert build(script, package, tmp_path / "a.csv") == build(script, package, tmp_path / "b.csv")


def test_script_keeps_words_among_themselves(script: ModuleType) -> None:
    """Hope is nearer to Tom in births, but Will is a word too."""
    people = [script.Name(n, f, m) for n, f, m in (("Hope", 100, 0), ("Amy", 130, 0))]
    people += [script.Name(n, 0, m) for n, m in (("Tom", 100), ("Will", 130))]
    assert script.partners(people, frozenset())["Hope"] == "Tom"
    assert script.partners(people, frozenset({"Hope", "Will"}))["Hope"] == "Will"


def test_script_names_the_missing_file(script: ModuleType, package: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"error: .*yob2002\.txt: No such file"):
        build(script, package, tmp_path / "names.csv", "--last", "2002")
    assert not (tmp_path / "names.csv").exists()
