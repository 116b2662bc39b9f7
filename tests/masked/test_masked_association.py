"""The association test against plain calls of the model, known probabilities and peers' defects."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from masked_oracle import oracle, plain, spans_of

from evenhand.errors import FileError, InputError
from evenhand.lexicon import PersonPair, Profession, Template, TemplateSet
from evenhand.masked import load
from evenhand.masked.metrics.association import associate, compare, design, read_becpro
from evenhand.masked.metrics.association_design import fill
from evenhand.results import to_json
from evenhand.simulate.masked import bigram_model

HE = PersonPair("he", "him")  # two one-piece words of the small vocabularies, whatever they mean
NOUNS = PersonPair("the teacher", "the doctor")


def asked(texts, names, persons=(HE,), groups=()):
    found = [Profession(name, group) for name, group in zip(names, groups or [None] * len(names),
                                                            strict=True)]  # fmt: skip
    return design(TemplateSet(tuple(map(Template, texts)), ()), found, persons)


TEXTS = ["{person} was a {profession} here", "the {profession} said that {person} was late."]
NAMES = ["nurse", "earlytable", "table nurse"]


def test_scores_are_log_ratios_of_plain_calls(family):
    model = load(family)
    made = asked(TEXTS, NAMES, [HE, NOUNS])
    result = associate(model, made)
    for index in np.ndindex(*made.shape, 2):
        sentence = made.at(*index)
        person = sentence.text[slice(*sentence.person)]
        profession = sentence.text[slice(*sentence.profession)]
        target = oracle(model, sentence.text, person)
        prior = oracle(model, sentence.text, person, hidden=profession)
        assert result.log_target[index] == pytest.approx(target, abs=1e-5)
        assert result.log_prior[index] == pytest.approx(prior, abs=1e-5)
        assert result.scores[index] == pytest.approx(target - prior, abs=2e-5)
    np.testing.assert_allclose(result.difference, result.scores[..., 0] - result.scores[..., 1])
    assert result.overall.value == pytest.approx(result.difference.mean())


def test_sentences_of_other_lengths_and_masks_in_the_batch_change_nothing(family):
    """A peer pads short sentences with [MASK], which the model reads as missing words."""
    model = load(family)
    alone = associate(model, asked(TEXTS[:1], ["nurse"]))
    among = associate(model, asked([TEXTS[0], "to him " + TEXTS[1]], NAMES))
    np.testing.assert_allclose(among.log_prior[0, 0], alone.log_prior[0, 0], atol=1e-5)
    np.testing.assert_allclose(among.log_target[0, 0], alone.log_target[0, 0], atol=1e-5)
    sentence = alone.design.at(0, 0, 0, 0).text
    mask = model.tokenizer.mask_token_id
    ids = model.tokenizer(sentence)["input_ids"]
    (span,) = spans_of(sentence, "He")
    length = len(model.tokenizer(sentence[slice(*span)], add_special_tokens=False)["input_ids"])
    if length == 1:
        padded = plain(model, [ids[0], mask, *ids[2:], *[mask] * 9], 1, ids[1])
        assert abs(padded - alone.log_target[0, 0, 0, 0]) > 1e-3


def test_every_piece_of_the_profession_is_hidden_in_the_prior(family):
    """A peer has one mask a word, whatever the number of its pieces."""
    model = load(family)
    text, name = "the earlytable was late and he was here", "earlytable"
    pieces = model.tokenizer(f"the {name}", add_special_tokens=False)["input_ids"]
    before = len(model.tokenizer("the", add_special_tokens=False)["input_ids"])
    assert len(pieces) - before > 1
    result = associate(model, asked(["the {profession} was late and {person} was here"], [name]))
    assert result.log_prior[0, 0, 0, 0] == pytest.approx(oracle(model, text, "he", name), abs=1e-5)
    ids, mask = model.tokenizer(text)["input_ids"], model.tokenizer.mask_token_id
    place = 1 + len(model.tokenizer(text.split(" he ")[0], add_special_tokens=False)["input_ids"])
    cut = [*ids[: 1 + before], mask, *ids[1 + len(pieces) :]]
    shift = len(ids) - len(cut)
    cut[place - shift] = mask
    one_a_word = plain(model, cut, place - shift, ids[place])
    assert abs(one_a_word - result.log_prior[0, 0, 0, 0]) > 1e-3


KNOWN = {
    "nurse": {"he": 0.1, "she": 0.6},
    "pilot": {"he": 0.5, "she": 0.2},
    "the": {"he": 0.05, "she": 0.01, "nurse": 0.3, "pilot": 0.3, "sleeps": 0.1},
    "[MASK]": {"he": 0.3, "she": 0.2},
    "[CLS]": {"he": 0.4, "she": 0.1},
    "a": {"nurse": 0.5, "pilot": 0.5},
}


@pytest.fixture
def known():
    return bigram_model(KNOWN)


PAIR = [PersonPair("he", "she")]


def test_the_prior_is_read_at_the_person_not_at_the_other_mask(known):
    """A peer reads it at the profession's mask: there `he` has .05 and `she` .01."""
    result = associate(known, asked(["the {profession} {person} sleeps"], ["nurse", "pilot"], PAIR))
    expected = [[0.1 / 0.3, 0.6 / 0.2], [0.5 / 0.3, 0.2 / 0.2]]
    np.testing.assert_allclose(np.exp(result.scores[0, :, 0]), expected, rtol=1e-5)
    nurse = math.log(0.1 / 0.3) - math.log(0.6 / 0.2)
    assert result.difference[0, 0, 0] == pytest.approx(nurse, abs=1e-5)
    before = associate(known, asked(["{person} sleeps the {profession}"], ["nurse"], PAIR))
    np.testing.assert_allclose(np.exp(before.log_prior[0, 0, 0]), [0.4, 0.1], rtol=1e-5)
    assert before.overall.value == pytest.approx(0, abs=1e-5)


def test_a_planted_effect_comes_back_by_profession_and_group(known):
    names = ["pilot", "nurse"]
    result = associate(
        known,
        asked(["the {profession} {person} sleeps", "a {profession} {person} sleeps"], names, PAIR,
              groups=["male", "female"]),
    )  # fmt: skip
    pilot, nurse = (math.log(a / 0.3) - math.log(b / 0.2) for a, b in ((0.5, 0.2), (0.1, 0.6)))
    assert [line.profession for line in result.professions] == names
    assert result.groups["male"].value == pytest.approx(pilot, abs=1e-5)
    assert result.groups["female"].value == pytest.approx(nurse, abs=1e-5)
    assert result.stereotype.value == pytest.approx(pilot - nurse, abs=1e-5)
    assert "one pair of persons" in result.notes[0]


def test_what_the_tokenizer_cannot_represent_is_left_out_and_named(known):
    names = ["nurse", "astronaut", "pilot"]
    result = associate(
        known,
        asked(["the {profession} {person} sleeps"], names, [*PAIR, PersonPair("uncle", "aunt")]),
    )
    assert result.left_out == ("astronaut", "uncle/aunt")
    assert result.design.shape == (1, 2, 1)
    assert any("astronaut, uncle/aunt" in note for note in result.notes)
    assert result.design.at(0, 1, 0, 1).text == "the pilot she sleeps"
    with pytest.raises(InputError, match="can represent none of the professions"):
        associate(known, asked(["the {profession} {person} sleeps"], ["astronaut"], PAIR))
    with pytest.raises(InputError, match="can represent none of the persons"):
        associate(
            known,
            asked(["the {profession} {person} x"], ["nurse"], [PersonPair("uncle", "aunt")]),
        )


def test_near_impossible_words_are_noted():
    rare = bigram_model({"nurse": {"he": 1e-6, "she": 1e-6}, "[MASK]": {"he": 1e-7, "she": 1e-7}})
    result = associate(rare, asked(["{profession} {person}"], ["nurse"], PAIR))
    assert any("less than 1 in 10,000" in note for note in result.notes)


def test_models_are_compared_cell_by_cell(known):
    other = {**KNOWN, "nurse": {"he": 0.2, "she": 0.3}, "pilot": {"he": 0.6, "she": 0.1}}
    texts = ["the {profession} {person} sleeps", "a {profession} {person} sleeps"]
    made = asked(texts, ["pilot", "nurse"], PAIR, groups=["male", "female"])
    first, second = associate(known, made), associate(bigram_model(other, name="other"), made)
    (change,) = compare([first, second])
    np.testing.assert_allclose(
        change.overall.value, (second.difference - first.difference).mean(), atol=1e-6
    )
    assert (change.model, change.against, change.n) == ("other", "bigram", 4)
    gap = second.stereotype.value - first.stereotype.value
    assert change.stereotype.value == pytest.approx(gap, abs=1e-6)
    with pytest.raises(InputError, match="other templates"):
        compare([first, associate(known, asked(texts[:1], ["pilot"], PAIR))])
    with pytest.raises(InputError, match="at least two"):
        compare([first])


def test_views_of_the_result(known):
    made = asked(["the {profession} {person} sleeps"], ["pilot", "nurse"], PAIR)
    result = associate(known, made)
    shown = result.as_dict(items=True)
    assert list(shown)[:4] == ["model", "n", "of", "overall"]
    assert shown["n"] == len(shown["items"]) == len(result.to_frame()) == 2
    assert set(shown["professions"][0]) >= {"profession", "value", "low", "high", "pooled"}
    assert to_json(shown)
    frame = result.to_frame()
    np.testing.assert_allclose(frame.difference, frame.score_male - frame.score_female, rtol=1e-12)


def test_the_built_in_design_is_sound():
    made = design()
    templates, names, pairs = made.shape
    assert templates >= 12
    assert names >= 60
    assert len({sentence.text for sentence in made.sentences}) == 2 * templates * names * pairs
    for sentence in made.sentences[:: 2 * pairs]:
        assert not sentence.text[:1].islower()
        word = sentence.text[slice(*sentence.profession)]
        if (before := sentence.text[: sentence.profession[0]].split()[-1].lower()) in ("a", "an"):
            assert (before == "an") == (word[0] in "aeio")
    assert made.at(0, 5, 1, 0).text[slice(*made.at(0, 5, 1, 0).person)] == "man"
    assert fill("{person} is an {profession}.", "nurse", PAIR[0], 1).text == "She is a nurse."
    assert fill("See {person:object}: a {profession}", "usher", PAIR[0], 0).text == (
        "See him: an usher"
    )
    with pytest.raises(InputError, match="professions: expected at least one, each once"):
        design(attributes=[])


HEADER = "Sentence\tSent_TM\tSent_AM\tSent_TAM\tTemplate\tPerson\tGender\tProfession\tProf_Gender"


def table(path, *rows):
    lines = [HEADER]
    for text, template, person, gender, profession, group in rows:
        lines.append("\t".join([text, "", "", "", template, person, gender, profession, group]))
    path.write_text("\n".join(lines) + "\n")
    return path


SLOTS = "<person subject> sells a <profession>."


def test_a_becpro_table_is_read_as_it_is(tmp_path):
    rows = [
        (f"{phrase} sells a {name}.", SLOTS, person, gender, name, group)
        for phrase, person, gender in (("He", "He", "male"), ("Our son", "son", "male"),
                                       ("Our daughter", "daughter", "female"),
                                       ("She", "She", "female"))
        for name, group in (("man trap", "male"), ("nurse", "female"))
    ]  # fmt: skip
    made, left_out = read_becpro(table(tmp_path / "a.tsv", *rows))
    assert made.shape == (1, 2, 2)
    assert [pair.name for pair in made.pairs] == ["he/she", "son/daughter"]
    sentence = made.at(0, 0, 1, 1)
    assert sentence.text == "Our daughter sells a man trap."
    assert sentence.text[slice(*sentence.person)] == "daughter"
    assert sentence.text[slice(*sentence.profession)] == "man trap"
    assert [profession.group for profession in made.professions] == ["male", "female"]
    assert left_out == ()
    fewer, left_out = read_becpro(table(tmp_path / "b.tsv", *rows[:-1]))
    assert left_out == ("nurse",)
    assert fewer.shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("He sells.", SLOTS, "He", "male", "nurse", "male"), "line 2: 'nurse' is not in"),
        (("He sells he a nurse", "x", "He", "male", "nurse", "male"), "'He' is more than once in"),
        (("He sells a nurse.", SLOTS, "He", "man", "nurse", "male"), "Gender: expected one of"),
        (("He sells a nurse.", SLOTS, "He", "male", "nurse", ""), "Prof_Gender: expected a text"),
        (("He sells a nurse.", SLOTS, "He", "male", "nurse", "male"), "as many male as female"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(tmp_path, row, problem):
    with pytest.raises(FileError, match=problem):
        read_becpro(table(tmp_path / "a.tsv", row))


def test_a_table_without_the_columns_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("Sentence\tPerson\nHe sleeps.\tHe\n")
    with pytest.raises(FileError, match=r"line 1: .*Template, Gender, .* missing"):
        read_becpro(tmp_path / "a.tsv")
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_becpro(tmp_path / "none.tsv")


def test_becpro_itself(shared):
    """Where person and profession stand, checked against the table's own masked sentences."""
    import pandas as pd

    path = shared / "data" / "becpro" / "BEC-Pro_EN.tsv"
    made, left_out = read_becpro(path)
    assert made.shape == (5, 60, 9)
    assert left_out == ()
    assert [pair.name for pair in made.pairs][-1] == "dad/mom"
    table = pd.read_csv(path, sep="\t").set_index("Sentence")
    wrong = {"Sent_TM": set(), "Sent_AM": set()}
    for sentence in made.sentences:
        row = table.loc[sentence.text]
        hidden = " ".join(["[MASK]"] * len(row.Profession.split()))
        for column, span, masks in (
            ("Sent_TM", sentence.person, "[MASK]"), ("Sent_AM", sentence.profession, hidden)
        ):  # fmt: skip
            if f"{sentence.text[: span[0]]}{masks}{sentence.text[span[1] :]}" != row[column]:
                wrong[column].add(row[column])
    # what the table itself masks wrongly: "man" in "manager", and "of" before "director of"
    assert len(wrong["Sent_TM"]) == 5
    assert all("lodging [MASK]ager" in text for text in wrong["Sent_TM"])
    assert len(wrong["Sent_AM"]) == 18
    assert all("the position [MASK] [MASK] [MASK] [MASK] [MASK]." in t for t in wrong["Sent_AM"])
    texts = {template.text for template in design().templates}
    assert not texts & {template.text for template in made.templates}


def test_mini_follows_the_labour_force():
    """On the embedded model male-leaning professions stand above female-leaning ones."""
    result = associate(load("mini"), design(persons=PAIR))
    assert result.stereotype.low > 0
    assert result.stereotype.p_value < 0.001
    assert result.professions[-1].profession == "nurse"
    assert result.women["high"] < 0


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (["male"], ["one profession: the intervals say nothing about other professions"]),
        (
            ["male", "female"],
            [
                "one profession in a group (male, female): the interval of that group says nothing "
                "about other professions; male - female has no bounds"
            ],
        ),
        (
            ["male", "female", "female"],
            [
                "one profession in a group (male): the interval of that group says nothing about "
                "other professions; male - female takes the spread of professions from the other"
            ],
        ),
        (["male", "male", "female", "female"], []),
    ],
)
def test_notes_on_one_profession(family, groups, expected):
    names = ["nurse", "earlytable", "table nurse", "table"][: len(groups)]
    result = associate(load(family), asked(TEXTS, names, [HE, NOUNS], groups))
    assert [note for note in result.notes if note.startswith("one profession")] == expected


def test_the_example_of_the_docs_is_not_of_becpro(shared):
    from evenhand.masked.metrics import association

    example = "Last year my sister retrained as a plumber."
    page = (Path(__file__).parents[2] / "docs" / "association.md").read_text()
    assert f"*{example}*" in page
    assert example in " ".join(association.__doc__.split())
    table = (shared / "data" / "becpro" / "BEC-Pro_EN.tsv").read_text()
    assert "my sister is a plumber." in table.lower()
    assert example.lower() not in table.lower()
