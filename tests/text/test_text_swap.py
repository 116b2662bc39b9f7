"""Swapping: gold counterfactuals, WinoBias' pairs, and what must hold for any text."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.lexicon import pairs
from evenhand.text import Block, rewrite_all, substitute, swap
from evenhand.text.edits import apply, undo
from evenhand.text.rewrite.swap import Swap

GOLD = Path(__file__).parent / "data" / "swap.tsv"


def gold(split: str) -> list[tuple[str, str]]:
    with GOLD.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["source"], row["target"]) for row in rows if row["split"] == split]


@pytest.mark.parametrize("split", ["tune", "held"])
def test_gold_counterfactuals(split: str) -> None:
    pairs = gold(split)
    wrong = [(a, b, swap(a).text) for a, b in pairs if swap(a).text != b]
    assert len(pairs) >= 120
    assert len(wrong) <= 0.08 * len(pairs), "\n".join(map(str, wrong))


PRONOUNS = "he|she|him|her|his|hers|himself|herself"


def winobias(shared: Path) -> list[tuple[str, str]]:
    """Lines that differ from their counterfactual in gendered pronouns only."""
    pairs = []
    for kind in ("type1", "type2"):
        folder = shared / "data/winobias"
        pro = (folder / f"pro_stereotyped_{kind}.txt.dev").read_text().splitlines()
        anti = (folder / f"anti_stereotyped_{kind}.txt.dev").read_text().splitlines()
        pairs += list(zip(pro, anti, strict=True))
    bare = re.compile(rf"\b(?:{PRONOUNS})\b", re.IGNORECASE)
    return [(a, b) for a, b in pairs if bare.sub("_", a) == bare.sub("_", b)]


def test_winobias_pro_lines_become_anti_lines(shared: Path) -> None:
    pairs = winobias(shared)
    right = sum(swap(a, kinds=("pronoun",)).text == b for a, b in pairs)
    assert len(pairs) > 700
    assert right / len(pairs) >= 0.99


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("HE'S HER BROTHER!", "SHE'S HIS SISTER!"),
        ("y'all know she’d go", "y'all know he’d go"),
        ("The woman's hat; the women's hats", "The man's hat; the men's hats"),
        ("my ex-wife and mother-in-law", "my ex-husband and father-in-law"),
        ("#SheSaid www.her.com/he @him", "#SheSaid www.her.com/he @him"),
        ("“Her?” — naïve Zoë — “her!”", "“Him?” — naïve Zoë — “him!”"),
        ("The manager of Manchester's history shed", "The manager of Manchester's history shed"),
        ("Yes, ma'am. Yes, ma’am.", "Yes, sir. Yes, sir."),
        ("Mrs. Smith met Mr. Jones", "Mr. Smith met Ms. Jones"),
        ("the actor and the actress", "the actor and the actor"),
        ("I miss her", "I miss him"),
        ("Sons and daughters. “Kings ruled.”", "Daughters and sons. “Queens ruled.”"),
        ("Ladies' night, the actress' role", "Gentlemen's night, the actor's role"),
        (
            "Spider-Man is a man. The Beach Boys sang.",
            "Spider-Man is a woman. The Beach Boys sang.",
        ),
        ("Isle of Man, mother tongue, man-made", "Isle of Man, mother tongue, man-made"),
        (
            "The Women's Cup. Man is mortal. My Father knew.",
            "The Men's Cup. Woman is mortal. My Mother knew.",
        ),
        ("her\N{SOFT HYPHEN}self <td>he</td>", "her\N{SOFT HYPHEN}self <td>she</td>"),
        ("Smith & Sons and King Henry", "Smith & Sons and King Henry"),
        ("It was Sons and Lovers.", "It was Sons and Lovers."),
        ("he/she, (s)he, s/he", "she/he, (s)he, s/he"),
    ],
)
def test_by_hand(before: str, after: str) -> None:
    assert swap(before).text == after


def test_direction() -> None:
    text = "He told her that the queen knew his father."
    assert swap(text, direction="male-to-female").text == (
        "She told her that the queen knew her mother."
    )
    assert swap(text, direction="female-to-male").text == (
        "He told him that the king knew his father."
    )


def test_kinds_and_unsafe_pairs() -> None:
    assert swap("She is a mother.", kinds=("pronoun",)).text == "He is a mother."
    assert swap("The hostess smiled.", unsafe=True).text == "The host smiled."


def test_edits_say_where_what_and_why() -> None:
    (first, second) = swap("So she left her.").edits
    assert (first.offset, first.rule, first.before, first.after) == (3, "pronoun", "she", "he")
    assert (second.offset, second.before, second.after) == (12, "her", "him")


def test_own_pairs(tmp_path: Path) -> None:
    own = tmp_path / "pairs.csv"
    own.write_text("female,male\ndoe,buck\n")
    assert swap("The doe saw her.", pairs=str(own)).text == "The buck saw her."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "up"}, "unknown direction 'up'.*known: both"),
        ({"probability": 2}, "probability: expected 0 to 1, got 2"),
        ({"names": "some"}, "unknown names 'some'.*known: fixed, off, random"),
        ({"kinds": ("family", "planet")}, "kinds: expected some of .* got 'planet'"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        swap("she", **options)


WORDS = sorted({w for p in pairs() for w in (p.female, p.male)})
TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*WORDS, "the", "of", "John", "Mary", "saw", "James's", "#she", "a@b.her"]),
        st.sampled_from(["'s", "’d", ".", ",", " ", "\n", "-", "É", "“", "😀", "\udcfe"]),
    ),
    max_size=30,
).map(" ".join)


@given(TEXTS, st.sampled_from(["off", "fixed", "random"]), st.integers(0, 9))
def test_undo_gives_the_input_back(text: str, names: str, seed: int) -> None:
    result = swap(text, names=names, seed=seed)
    assert result.undo() == text


@given(st.text(max_size=80))
def test_any_text_is_taken(text: str) -> None:
    assert swap(text, names="fixed").undo() == text


def test_twice_gives_the_input_back_for_pairs_that_go_both_ways() -> None:
    for pair in pairs():
        if pair.safe and pair.direction == "both" and pair.kind not in ("pronoun", "title"):
            for word in (pair.female, pair.male):
                if pair.case == "any":
                    assert swap(swap(word).text).text == word


@given(st.lists(TEXTS, min_size=1, max_size=8), st.data())
def test_cutting_into_blocks_changes_nothing(documents: list[str], data: st.DataObject) -> None:
    rewriter = Swap(probability=0.5, seed=3, names="random")
    complete = [r.text for r in rewrite_all(documents, rewriter)]
    cut = data.draw(st.integers(0, len(documents)))
    parts = rewrite_all(documents[:cut], rewriter) + rewrite_all(
        documents[cut:], rewriter, first=cut
    )
    assert [r.text for r in parts] == complete


def test_substitute_draws_half_of_the_documents() -> None:
    documents = ["She sings."] * 4000
    changed = sum(r.text != "She sings." for r in substitute(documents, seed=1))
    assert 1850 < changed < 2150
    again = sum(r.text != "She sings." for r in substitute(documents, seed=2))
    assert changed != again


def test_substitute_swaps_names_consistently() -> None:
    text = "James met Mary. James liked her."
    (result,) = substitute([text], probability=1.0)
    new_james, new_mary = result.text.split()[0], result.text.split()[2].rstrip(".")
    assert result.text == f"{new_james} met {new_mary}. {new_james} liked him."
    assert new_james != "James"
    assert substitute([result.text], probability=1.0)[0].text == text


def test_lines_and_documents_agree() -> None:
    text = "She ran.\nHis dog ran.\n"
    edits = Swap()(Block.of_lines(text))
    assert apply(text, edits) == "He ran.\nHer dog ran.\n"
    assert undo(apply(text, edits), edits) == text


def test_words_of_named_people_stay_by_the_rule_of_cda() -> None:
    accepted = "Elizabeth ruled for long, and she was a good queen."
    assert swap(accepted, keep_named=True).text == accepted
    assert swap("The woman said she was a queen.", keep_named=True).text == (
        "The man said he was a king."
    )
    before_the_name = "He lived in Rome, where Peter sold his house."
    assert swap(before_the_name, keep_named=True).text == before_the_name


def test_long_text_without_blanks_is_fast() -> None:
    assert swap("he." * 20_000).undo() == "he." * 20_000
    assert swap("<td>he</td>" * 2_000).text == "<td>she</td>" * 2_000
