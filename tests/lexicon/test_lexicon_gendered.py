"""Gendered pairs, neutral forms and sex indicators: what a swap may rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenhand import lexicon
from evenhand.errors import LexiconError
from evenhand.lexicon.gendered import DIRECTIONS, PERSONS

PAIRS = lexicon.pairs()
ARROWS = [
    (word, dual, pair)
    for pair in PAIRS
    for word, dual, barred in (
        (pair.female, pair.male, "male-to-female"),
        (pair.male, pair.female, "female-to-male"),
    )
    if pair.direction != barred
]


def split(words: str) -> list[str]:
    return words.split()


def swap_of(word: str) -> set[str]:
    return {dual for source, dual, pair in ARROWS if source == word and pair.safe}


def test_there_are_enough() -> None:
    assert len({(pair.female, pair.male) for pair in PAIRS}) >= 600
    assert len({(pair.female, pair.male) for pair in PAIRS if pair.safe}) >= 500
    assert len({form.gendered for form in lexicon.neutral_forms()}) >= 750
    assert len(lexicon.sex_indicators()) >= 1000


def test_each_word_swaps_to_one() -> None:
    duals: dict[str, set[str]] = {}
    for word, dual, pair in ARROWS:
        if pair.pos != "pronoun":
            duals.setdefault(word, set()).add(dual)
    assert {word: found for word, found in duals.items() if len(found) > 1} == {}


def test_swapping_twice_gives_the_word_back() -> None:
    both = {(w, d) for w, d, pair in ARROWS if pair.direction == "both" and pair.pos != "pronoun"}
    assert len(both) > 600
    assert {(dual, word) for word, dual in both} == both


def test_pronouns_have_a_row_for_each_reading() -> None:
    assert swap_of("her") == {"him", "his"}
    assert swap_of("his") == {"her", "hers"}
    assert [swap_of(w) for w in ("she", "he", "hers")] == [{"he"}, {"she"}, {"his"}]


def test_no_word_is_of_both_genders() -> None:
    female = {pair.female for pair in PAIRS}
    assert not female & {pair.male for pair in PAIRS}


@pytest.mark.parametrize(
    "word",
    split(
        "actor host manager governor count master bachelor major guys fellow patron poet hero heir "
        "priest god alumni airman landlord mankind human cow bull does duck doctor person parent "
        "lord tutor singer dancer monastery sperm peer prior witch maid mummy sultana dame nurse"
    ),
)
def test_what_is_not_gendered_in_running_text_is_left_alone(word: str) -> None:
    assert swap_of(word) == set()


@pytest.mark.parametrize(
    ("word", "dual"),
    [
        ("mr", "ms"),
        ("ms", "mr"),
        ("mrs", "mr"),
        ("ma'am", "sir"),
        ("sir", "ma'am"),
        ("madam", "sir"),
        ("actress", "actor"),
        ("waiter", "waitress"),
        ("mother-in-law", "father-in-law"),
        ("sons-in-law", "daughters-in-law"),
        ("policemen", "policewomen"),
        ("mum", "dad"),
        ("dad", "mom"),
        ("gentlemen", "ladies"),
        ("queen", "king"),
        ("heroine", "hero"),
        ("nun", "monk"),
        ("males", "females"),
    ],
)
def test_well_known_duals(word: str, dual: str) -> None:
    assert swap_of(word) == {dual}


def test_case_tells_titles_and_surnames() -> None:
    case = {word: pair.case for word, _, pair in ARROWS if pair.safe}
    assert [case[w] for w in ("ms", "miss", "king", "guy", "sir")] == [
        "capital",
        "capital",
        "lower",
        "lower",
        "lower",
    ]


def test_plural_and_singular_come_together() -> None:
    """A noun of a singular row in -man or -woman has its plural in -men or -women."""
    known = {(pair.female, pair.male) for pair in PAIRS}
    for pair in PAIRS:
        if pair.number == "singular" and pair.female.endswith("woman") and pair.male != "bloke":
            plural = pair.female[:-2] + "en", re.sub("man$", "men", pair.male)
            assert plural in known or pair.female == "everywoman", pair


def test_neutral_forms_are_neutral() -> None:
    starts = {word for word, _, pair in ARROWS if pair.safe}
    gendered = starts | lexicon.sex_indicators()
    for form in lexicon.neutral_forms():
        parts = {form.neutral, *re.split("[ '-]", form.neutral)}
        assert not parts & gendered, form
        assert form.gendered != form.neutral


def test_a_gendered_word_has_one_neutral_form() -> None:
    words = [form.gendered for form in lexicon.neutral_forms() if form.kind != "pronoun"]
    assert len(words) == len(set(words))
    by_kind = {
        (form.kind, form.gendered): form.neutral for form in lexicon.neutral_forms() if form.safe
    }
    assert by_kind["title", "mrs"] == "mx"
    assert by_kind["role", "policewomen"] == "police officers"
    assert by_kind["role", "laymen"] == "laypeople"
    assert by_kind["family", "sisters-in-law"] == "siblings-in-law"
    assert by_kind["person", "girls"] == "children"


def test_indicators_state_a_sex() -> None:
    indicators = lexicon.sex_indicators()
    assert set(split("he his him himself she her hers herself")) <= indicators
    assert set(split("sister boy boys actress mr king aunt pregnant cowboy lesbian")) <= indicators
    assert not indicators & set(split("actor they dancer someone cow parent nurse host doctor god"))
    for pair in PAIRS:
        if pair.kind not in PERSONS:
            assert pair.female not in indicators, pair


MISSPELT = {"godess", "godesses", "adultress", "adultresses", "mentleman", "barnoesses", "stailor"}
MISSPELT |= {"heros"}
NOT_DUALS = {
    "dowry": "gifts of the other side",
    "governess": "teaches children; a governor governs",
    "governesses": "as governess",
    "obstetrics": "fields of medicine",
    "female ejaculation": "physiology",
    "hair salon": "places",
    "feminism": "movements of unlike meaning",
    "viagra": "two brands of one kind of drug",
    "minx": "unlike characters",
    "minxes": "as minx",
    "mothered": "to mother is to care, to father to beget",
    "doe": "deer names the kind",
    "mezzo": "voices, also of the other gender",
    "mistress": "a paramour is of any gender",
    "hostess": "a host is of any gender: ours goes hostess to host",
    "toque": "a hat",
    "toques": "as toque",
    "effeminate": "said of men, as macho is",
    "skene gland": "anatomy",
    "womb": "anatomy",
    "uterus": "anatomy",
}
OTHER_DUAL = {
    ("nun", "priest"): "ours pairs nun with monk",
    ("nuns", "priests"): "ours pairs nun with monk",
    ("marchioness", "marquis"): "ours pairs the British marquess and the French marquise",
    ("ladies", "fellas"): "ours pairs by register: gals",
    ("lady", "fella"): "ours pairs by register: gal",
    ("miss", "sir"): "a title before a name becomes Mr",
    ("wench", "bloke"): "ours pairs by register: lad, woman",
    ("wenches", "blokes"): "as wench",
    ("wife", "hubby"): "ours pairs by register: wifey",
}


def test_coverage_of_the_published_pairs(shared: Path) -> None:
    """Every pair of the 222 is ours, or there is a reason."""
    lists = [
        (shared / "data" / "wordlists" / f"{side}_word_file.txt").read_text().split()
        for side in ("female", "male")
    ]
    published = [
        tuple(word.lower().rstrip(".'").replace("_", " ") for word in pair)
        for pair in zip(*lists, strict=True)
    ]
    assert len(published) == 222
    ours = {(pair.female, pair.male) for pair in PAIRS}
    sides = {pair.female for pair in PAIRS}, {pair.male for pair in PAIRS}
    spelt = [pair for pair in published if not MISSPELT & set(pair)]
    known = [pair for pair in spelt if pair[0] in sides[0] and pair[1] in sides[1]]
    exact = [pair for pair in spelt if pair in ours]
    print(f"of {len(spelt)} rightly spelt, {len(known)} known, {len(exact)} the same")  # noqa: T201
    assert len(known) / len(spelt) >= 0.9
    rest = [pair for pair in known if pair not in ours]
    assert set(rest) == set(OTHER_DUAL)
    assert {pair[0] for pair in spelt if pair not in known} == set(NOT_DUALS)


def test_coverage_of_the_gender_specific_words(shared: Path) -> None:
    words = json.loads((shared / "data/wordlists/gender_specific_seed.json").read_text())
    ours = {word for pair in PAIRS for word in (pair.female, pair.male)} | lexicon.sex_indicators()
    missing = [w for w in words if not ours & {w.lower(), *w.lower().split("_")}]
    print(f"{len(words) - len(missing)} of {len(words)}; not {missing}")  # noqa: T201
    assert len(missing) / len(words) <= 0.08


def test_own_pairs(tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("male,female,direction,safe\nKing,Queen,both,no\n\nY’all man,ya gal,,\n")
    first, second = lexicon.read_pairs(file)
    assert (first.female, first.male, first.safe) == ("queen", "king", False)
    assert (second.male, second.direction, second.kind) == ("y'all man", "both", "person")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "expected a header .* and rows, got no row"),
        ("female,male\n", "expected a header .* and rows, got no row"),
        ("female,mael\na,b\n", "line 1: unknown column 'mael': did you mean 'male'?"),
        ("female\na\n", "line 1: the column 'male' is missing"),
        ("female,male,male\na,b,c\n", "line 1: the column 'male' occurs twice"),
        ("female,male\nshe,he\nher\n", "line 3: expected 2 cells, got 1"),
        ("female,male\nshe,\n", "line 2: male: expected letters.*, got ''"),
        ("female,male\nsh3,he\n", "line 2: female: expected letters.*, got 'sh3'"),
        ("female,male,safe\nshe,he,maybe\n", "line 2: safe: expected one of yes, no, got 'maybe'"),
        ("female,male,pos\nshe,he,verb\n", "line 2: pos: expected one of pronoun, .* got 'verb'"),
        (
            "female,male,direction\nshe,he,up\n",
            f"line 2: direction: expected one of {', '.join(DIRECTIONS)}, got 'up'",
        ),
        (
            "female,male\nshe,he\nhe,it\n",
            "line 3: 'he' is female here and male on line 2",
        ),
        ("female,male\nshe,she\n", "line 2: 'she' is male here and female on line 2"),
        (
            "female,male\nmom,dad\nmum,dad\n",
            "line 3: 'dad' swaps to 'mum' here and to 'mom' on line 2",
        ),
        ('female,male\n"she,he\n', "not CSV: unexpected end of data"),
    ],
)
def test_bad_pairs_get_one_line(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(content)
    with pytest.raises(LexiconError, match=problem) as caught:
        lexicon.read_pairs(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_missing_file_of_pairs(tmp_path: Path) -> None:
    with pytest.raises(LexiconError, match="cannot be read: No such file"):
        lexicon.read_pairs(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes(b"female,male\n\xe9,he\n")
    with pytest.raises(LexiconError, match="line 2: not UTF-8 text"):
        lexicon.read_pairs(tmp_path / "latin.csv")
