"""Persons found by the rules: single cases, the marked documents, and the spaCy adapter."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from evenhand.errors import InputError, MissingExtraError, UnknownNameError
from evenhand.text.people import find_people, finder


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "text_names.py"
    spec = importlib.util.spec_from_file_location("text_names", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def found(text: str) -> list[str]:
    return [text[person.start : person.end] for person in find_people(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Marie Curie spoke. Curie was thanked.", ["Marie Curie", "Curie"]),
        ("We met Mr. Smith and Dr. Jane Doe.", ["Smith", "Jane Doe"]),
        ("President Obama greeted Queen Elizabeth II.", ["Obama", "Elizabeth"]),
        ("J. K. Rowling and George W. Bush met.", ["J. K. Rowling", "George W. Bush"]),
        ("He read Oscar de la Renta.", ["Oscar de la Renta"]),
        ("Conan O'Brien saw Jean-Luc Picard.", ["Conan O'Brien", "Jean-Luc Picard"]),
        (
            "Ludwig van Beethoven met Anna Smith-Jones.",
            ["Ludwig van Beethoven", "Anna Smith-Jones"],
        ),
        ("Michelle Obama's book outsold James' book.", ["Michelle Obama", "James"]),
        ("MARTINEZ WINS MAYORAL RACE", ["MARTINEZ"]),
        ('"Never," said Kowalczyk, and left.', ["Kowalczyk"]),
        ("Mr and Mrs Henderson won.", ["Henderson"]),
        ("Bashar al-Assad spoke.", ["Bashar al-Assad"]),
    ],
)
def test_persons_are_found(text: str, expected: list[str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Will you come in May?",
        "Mark my words: grace and beauty fade.",
        "May I come in? Hope is all we have.",
        "Don't go to Johns Hopkins University.",
        "Victoria Station is near St. Mary's Church.",
        "They live in Jackson, Mississippi, and Lincoln, Nebraska.",
        "On Monday the Germans met in London.",
        "See #Mary, @John and https://example.com/Anna/Smith for more.",
        "The Martin Luther King Library opened.",
        "",
        "no capitals at all",
    ],
)
def test_what_is_no_person(text: str) -> None:
    assert found(text) == []


def test_parts_are_named() -> None:
    person = find_people("George W. van Buren spoke.")[0]
    assert [part.kind for part in person.parts] == ["given", "initial", "particle", "surname"]
    assert find_people("Mr. James left.")[0].parts[0].kind == "surname"
    assert find_people("Then James left.")[0].parts[0].kind == "given"


def test_parts_are_ordered_and_inside_the_text(benchmark: ModuleType) -> None:
    for half in benchmark.read_marked():
        for document in half:
            spans = [
                (p.start, p.end) for person in find_people(document.text) for p in person.parts
            ]
            assert spans == sorted(spans)
            assert all(0 <= start < end <= len(document.text) for start, end in spans)
            assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_marked_documents_are_enough_and_readable(benchmark: ModuleType) -> None:
    tune, held = benchmark.read_marked()
    assert len(tune) + len(held) >= 120
    assert {d.kind for d in held} == {"news", "biography", "fiction", "forum", "reference"}
    assert tune[0].text.startswith("Barack Obama was born")
    assert tune[0].spans[0] == (0, 12)


@pytest.mark.parametrize(("half", "words", "names"), [(0, 0.95, 0.94), (1, 0.91, 0.89)])
def test_minimum_accuracy_on_marked_documents(
    benchmark: ModuleType, half: int, words: float, names: float
) -> None:
    documents = benchmark.read_marked()[half]
    assert benchmark.scores(documents, benchmark.found_by_rules, words=True)[2] >= words
    assert benchmark.scores(documents, benchmark.found_by_rules, words=False)[2] >= names


def test_minimum_accuracy_on_real_biographies(benchmark: ModuleType, shared: Path) -> None:
    documents = benchmark.read_biographies(shared / "data" / "bios" / "wikibios.csv.gz")
    assert len(documents) == 40
    assert benchmark.scores(documents, benchmark.found_by_rules, words=True)[2] >= 0.85
    assert benchmark.scores(documents, benchmark.found_by_rules, words=False)[2] >= 0.83


def test_better_than_the_lexicon_alone(benchmark: ModuleType) -> None:
    held = benchmark.read_marked()[1]
    ours = benchmark.scores(held, benchmark.found_by_rules, words=True)
    plain = benchmark.scores(held, benchmark.found_by_lexicon, words=True)
    assert ours[2] > plain[2] + 0.1


def test_names_in_a_treebank_are_proper_nouns(benchmark: ModuleType, shared: Path) -> None:
    total, proper = benchmark.proper_nouns(shared / "data" / "ud" / "en_ewt-ud-dev.conllu")
    assert total > 500
    assert proper / total > 0.9


def test_unknown_finder() -> None:
    with pytest.raises(UnknownNameError, match="rules, spacy:MODEL"):
        finder("rulez")


def test_spacy_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match="pip install 'evenhand\\[spacy\\]'"):
        finder("spacy:en_core_web_sm")


def test_spacy_without_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(model: str) -> None:
        raise OSError(f"[E050] Can't find model '{model}'.")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(InputError, match="python -m spacy download en_core_web_sm"):
        finder("spacy:en_core_web_sm")


def test_spacy_entities_become_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Ana Cruz's dog met IBM."

    def pipeline(document: str) -> SimpleNamespace:
        entity = SimpleNamespace(label_="PERSON", start_char=0, end_char=10)
        firm = SimpleNamespace(label_="ORG", start_char=19, end_char=22)
        return SimpleNamespace(ents=[entity, firm])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda _: pipeline))
    persons = finder("spacy:any")(text)
    assert [text[p.start : p.end] for p in persons] == ["Ana Cruz"]
    assert [part.kind for part in persons[0].parts] == ["given", "surname"]
