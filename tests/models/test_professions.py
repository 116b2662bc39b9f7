"""The association test against plain calls of the model, known probabilities and peers' defects."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from masked_oracle import oracle, plain, spans_of
from small_causal import small_model

from evenhand.errors import FileError, InputError
from evenhand.instruments import Run, compare
from evenhand.lexicon import PersonPair, Profession, Template, TemplateSet
from evenhand.models import load
from evenhand.models.designs import design, fill, read_becpro
from evenhand.models.metrics import professions as module
from evenhand.models.metrics.professions import Professions, _sensitivity, _Summary
from evenhand.results import Comparison, Measurement
from evenhand.simulate.causal import biased_model
from evenhand.simulate.causal import bigram_model as causal_bigram
from evenhand.simulate.masked import bigram_model
from evenhand.statistics.intervals import t_mean

HE = PersonPair("he", "him")  # two one-piece words of the small vocabularies, whatever they mean
NOUNS = PersonPair("the teacher", "the doctor")


def asked(texts, names, persons=(HE,), groups=()):
    found = [
        Profession(name, group)
        for name, group in zip(names, groups or [None] * len(names), strict=True)
    ]
    return design(TemplateSet(tuple(map(Template, texts)), ()), found, persons)


def cells(m, name):
    """A column of the items by template, profession and pair; a side's as the last axis."""
    shape = [m.details[each] for each in ("templates", "professions", "pairs")]
    if name == "difference":
        return m.items[name].reshape(shape)
    sides = [m.items[f"{name}_{side}"].reshape(shape) for side in ("male", "female")]
    return np.stack(sides, axis=-1)


TEXTS = ["{person} was a {profession} here", "the {profession} said that {person} was late."]
NAMES = ["nurse", "earlytable", "table nurse"]


def test_scores_are_log_ratios_of_plain_calls(family):
    model = load(family)
    made = asked(TEXTS, NAMES, [HE, NOUNS])
    result = Professions()(model, made)
    for index in np.ndindex(*made.shape, 2):
        sentence = made.at(*index)
        person = sentence.text[slice(*sentence.person)]
        profession = sentence.text[slice(*sentence.profession)]
        target = oracle(model, sentence.text, person)
        prior = oracle(model, sentence.text, person, hidden=profession)
        assert cells(result, "log_target")[index] == pytest.approx(target, abs=1e-5)
        assert cells(result, "log_prior")[index] == pytest.approx(prior, abs=1e-5)
        assert cells(result, "score")[index] == pytest.approx(target - prior, abs=2e-5)
    np.testing.assert_allclose(
        cells(result, "difference"), cells(result, "score")[..., 0] - cells(result, "score")[..., 1]
    )
    assert result.value == pytest.approx(cells(result, "difference").mean())


def test_sentences_of_other_lengths_and_masks_in_the_batch_change_nothing(family):
    """A peer pads short sentences with [MASK], which the model reads as missing words."""
    model = load(family)
    alone = Professions()(model, asked(TEXTS[:1], ["nurse"]))
    among = Professions()(model, asked([TEXTS[0], "to him " + TEXTS[1]], NAMES))
    np.testing.assert_allclose(
        cells(among, "log_prior")[0, 0], cells(alone, "log_prior")[0, 0], atol=1e-5
    )
    np.testing.assert_allclose(
        cells(among, "log_target")[0, 0], cells(alone, "log_target")[0, 0], atol=1e-5
    )
    sentence = asked(TEXTS[:1], ["nurse"]).at(0, 0, 0, 0).text
    mask = model.tokenizer.mask_token_id
    ids = model.tokenizer(sentence)["input_ids"]
    (span,) = spans_of(sentence, "He")
    length = len(model.tokenizer(sentence[slice(*span)], add_special_tokens=False)["input_ids"])
    if length == 1:
        padded = plain(model, [ids[0], mask, *ids[2:], *[mask] * 9], 1, ids[1])
        assert abs(padded - cells(alone, "log_target")[0, 0, 0, 0]) > 1e-3


def test_every_piece_of_the_profession_is_hidden_in_the_prior(family):
    """A peer has one mask a word, whatever the number of its pieces."""
    model = load(family)
    text, name = "the earlytable was late and he was here", "earlytable"
    pieces = model.tokenizer(f"the {name}", add_special_tokens=False)["input_ids"]
    before = len(model.tokenizer("the", add_special_tokens=False)["input_ids"])
    assert len(pieces) - before > 1
    result = Professions()(
        model, asked(["the {profession} was late and {person} was here"], [name])
    )
    assert cells(result, "log_prior")[0, 0, 0, 0] == pytest.approx(
        oracle(model, text, "he", name), abs=1e-5
    )
    ids, mask = model.tokenizer(text)["input_ids"], model.tokenizer.mask_token_id
    place = 1 + len(model.tokenizer(text.split(" he ")[0], add_special_tokens=False)["input_ids"])
    cut = [*ids[: 1 + before], mask, *ids[1 + len(pieces) :]]
    shift = len(ids) - len(cut)
    cut[place - shift] = mask
    one_a_word = plain(model, cut, place - shift, ids[place])
    assert abs(one_a_word - cells(result, "log_prior")[0, 0, 0, 0]) > 1e-3


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
    result = Professions()(
        known, asked(["the {profession} {person} sleeps"], ["nurse", "pilot"], PAIR)
    )
    expected = [[0.1 / 0.3, 0.6 / 0.2], [0.5 / 0.3, 0.2 / 0.2]]
    np.testing.assert_allclose(np.exp(cells(result, "score")[0, :, 0]), expected, rtol=1e-5)
    nurse = math.log(0.1 / 0.3) - math.log(0.6 / 0.2)
    assert cells(result, "difference")[0, 0, 0] == pytest.approx(nurse, abs=1e-5)
    before = Professions()(known, asked(["{person} sleeps the {profession}"], ["nurse"], PAIR))
    np.testing.assert_allclose(np.exp(cells(before, "log_prior")[0, 0, 0]), [0.4, 0.1], rtol=1e-5)
    assert before.value == pytest.approx(0, abs=1e-5)


def test_a_planted_effect_comes_back_by_profession_and_group(known):
    names = ["pilot", "nurse"]
    result = Professions()(
        known,
        asked(
            ["the {profession} {person} sleeps", "a {profession} {person} sleeps"],
            names,
            PAIR,
            groups=["male", "female"],
        ),
    )
    pilot, nurse = (math.log(a / 0.3) - math.log(b / 0.2) for a, b in ((0.5, 0.2), (0.1, 0.6)))
    assert [part.query for part in result.select("profession")] == names
    assert result.part("male", "group").value == pytest.approx(pilot, abs=1e-5)
    assert result.part("female", "group").value == pytest.approx(nurse, abs=1e-5)
    [contrast] = result.select("contrast")
    assert contrast.value == pytest.approx(pilot - nurse, abs=1e-5)
    assert "one pair of persons" in result.notes[0]


def test_what_the_tokenizer_cannot_represent_is_left_out_and_named(known):
    names = ["nurse", "astronaut", "pilot"]
    result = Professions()(
        known,
        asked(["the {profession} {person} sleeps"], names, [*PAIR, PersonPair("uncle", "aunt")]),
    )
    assert result.left_out == ("astronaut", "uncle/aunt")
    assert [result.details[name] for name in ("templates", "professions", "pairs")] == [1, 2, 1]
    assert any("astronaut, uncle/aunt" in note for note in result.notes)
    assert result.items[1]["profession"] == "pilot"
    with pytest.raises(InputError, match="can represent none of the professions"):
        Professions()(known, asked(["the {profession} {person} sleeps"], ["astronaut"], PAIR))
    with pytest.raises(InputError, match="can represent none of the persons"):
        Professions()(
            known, asked(["the {profession} {person} x"], ["nurse"], [PersonPair("uncle", "aunt")])
        )


def test_near_impossible_words_are_noted():
    rare = bigram_model({"nurse": {"he": 1e-6, "she": 1e-6}, "[MASK]": {"he": 1e-7, "she": 1e-7}})
    result = Professions()(rare, asked(["{profession} {person}"], ["nurse"], PAIR))
    assert any("less than 1 in 10,000" in note for note in result.notes)


def test_models_are_compared_cell_by_cell(known):
    other = {**KNOWN, "nurse": {"he": 0.2, "she": 0.3}, "pilot": {"he": 0.6, "she": 0.1}}
    texts = ["the {profession} {person} sleeps", "a {profession} {person} sleeps"]
    made = asked(texts, ["pilot", "nurse"], PAIR, groups=["male", "female"])
    first, second = (
        Professions()(known, made),
        Professions()(bigram_model(other, name="other"), made),
    )
    change = Professions.compare(first, second)
    np.testing.assert_allclose(
        change.change.value,
        (cells(second, "difference") - cells(first, "difference")).mean(),
        atol=1e-6,
    )
    assert (change.after.subject, change.before.subject) == ("other", "bigram")
    assert change.paired == 4
    [contrast] = change.parts
    expected = contrast.after.value - contrast.before.value
    assert contrast.change.value == pytest.approx(expected, abs=1e-6)
    assert Comparison.from_dict(change.to_dict()) == change
    with pytest.raises(InputError, match="different templates"):
        Professions.compare(first, Professions()(known, asked(texts[:1], ["pilot"], PAIR)))
    with pytest.raises(InputError, match="items in common"):
        Professions.compare(
            Professions()(known, asked(texts, ["pilot"], PAIR)),
            Professions()(known, asked(texts, ["nurse"], PAIR)),
        )


def test_the_measurement_reads_itself_back(known):
    m = Professions()(known, asked(["the {profession} {person} sleeps"], ["pilot", "nurse"], PAIR))
    assert Measurement.from_dict(m.to_dict()) == m
    assert Professions.compare(m, Measurement.from_dict(m.to_dict())).change.value == 0
    frame = m.to_frame()
    assert m.n == len(frame) == 2
    np.testing.assert_allclose(frame.difference, frame.score_male - frame.score_female, rtol=1e-12)
    assert m.select("profession")[0].part("pooled", "estimate").n == 1


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
        for phrase, person, gender in (
            ("He", "He", "male"),
            ("Our son", "son", "male"),
            ("Our daughter", "daughter", "female"),
            ("She", "She", "female"),
        )
        for name, group in (("man trap", "male"), ("nurse", "female"))
    ]
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
        (
            ("He sells a nurse.", SLOTS, "He", "man", "nurse", "male"),
            "'Gender': expected male or female, got 'man'",
        ),
        (
            ("He sells a nurse.", SLOTS, "He", "male", "nurse", ""),
            "'Prof_Gender': expected .* got ''",
        ),
        (("He sells a nurse.", SLOTS, "He", "male", "nurse", "male"), "as many male as female"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(tmp_path, row, problem):
    with pytest.raises(FileError, match=problem):
        read_becpro(table(tmp_path / "a.tsv", row))


def test_a_table_without_the_columns_is_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("Sentence\tPerson\nHe sleeps.\tHe\n")
    with pytest.raises(
        FileError, match=r"line 1: expected a column 'Template' .*got Sentence, Person"
    ):
        read_becpro(tmp_path / "a.tsv")
    with pytest.raises(FileNotFoundError):
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
            ("Sent_TM", sentence.person, "[MASK]"),
            ("Sent_AM", sentence.profession, hidden),
        ):
            if f"{sentence.text[: span[0]]}{masks}{sentence.text[span[1] :]}" != row[column]:
                wrong[column].add(row[column])
    # what the table itself masks wrongly: "man" in "manager", and "of" before "director of"
    assert len(wrong["Sent_TM"]) == 5
    assert all("lodging [MASK]ager" in text for text in wrong["Sent_TM"])
    assert len(wrong["Sent_AM"]) == 18
    assert all("the position [MASK] [MASK] [MASK] [MASK] [MASK]." in t for t in wrong["Sent_AM"])
    texts = {template.text for template in design().templates}
    assert not texts & {template.text for template in made.templates}


@pytest.mark.slow
def test_mini_follows_the_labour_force():
    """On the embedded model male-leaning professions stand above female-leaning ones."""
    result = Professions()(load("mini"), design(persons=PAIR))
    [contrast] = result.select("contrast")
    assert contrast.low > 0
    assert contrast.p_value < 0.001
    assert result.select("profession")[-1].query == "nurse"
    assert result.part("share of women", "correlation").high < 0


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
    result = Professions()(load(family), asked(TEXTS, names, [HE, NOUNS], groups))
    assert [note for note in result.notes if note.startswith("one profession")] == expected


def test_the_example_of_the_docs_is_not_of_becpro(shared):
    example = "Last year my sister retrained as a plumber."
    page = (Path(__file__).parents[2] / "docs" / "guides" / "association.md").read_text()
    assert f"*{example}*" in page
    assert example in " ".join(module.__doc__.split())
    table = (shared / "data" / "becpro" / "BEC-Pro_EN.tsv").read_text()
    assert "my sister is a plumber." in table.lower()
    assert example.lower() not in table.lower()


# --- the parts of a table -------------------------------------------------------------------

HAND = np.array([[[1.0], [-1.0], [2.0]], [[3.0], [1.0], [-1.0]], [[2.0], [-3.0], [2.0]]])
JOBS = [Profession("a", "male", 10.0), Profession("b", "female", 90.0), Profession("c")]
TEMPLATES = [Template("x"), Template("y"), Template("z")]
SUMMARY = _Summary("model", Run())


def test_the_template_table_by_hand():
    parts = SUMMARY.by_template(HAND, TEMPLATES)
    assert [part.value for part in parts] == pytest.approx([2 / 3, 1, 1 / 3])
    without = [part.details["without"] for part in parts]
    assert without == pytest.approx([2 / 3, 1 / 2, 5 / 6])
    assert [part.details["sign_changes"] for part in parts] == pytest.approx([0, 2 / 3, 0])
    sensitivity = _sensitivity(HAND, without)
    assert (sensitivity["low"], sensitivity["high"]) == pytest.approx((1 / 2, 5 / 6))
    assert sensitivity["changing"] == pytest.approx(2 / 3)
    assert sensitivity["sign_changes"] == pytest.approx(2 / 9)


def contrast(table, jobs):
    [part] = [part for part in SUMMARY.by_group(table, jobs) if part.by == "contrast"]
    return part


def test_professions_groups_and_shares_by_hand():
    parts = SUMMARY.by_profession(HAND, JOBS)
    assert [part.query for part in parts] == ["a", "c", "b"]
    assert parts[0].value == 2
    assert (parts[0].low, parts[0].high) == pytest.approx(t_mean([1, 3, 2])[1:])
    groups = {part.query: part.value for part in SUMMARY.by_group(HAND, JOBS) if part.by == "group"}
    assert groups == {"male": 2, "female": -1}
    assert contrast(HAND, JOBS).value == 3
    assert all(part.by == "group" for part in SUMMARY.by_group(HAND, JOBS[:1] * 3))
    assert SUMMARY.women(HAND, JOBS) is None
    more = [Profession(str(i), None, 20.0 * i) for i in range(5)]
    falling = np.tile(np.arange(5.0)[::-1, None], (2, 1, 1))
    assert SUMMARY.women(falling, more).value == pytest.approx(-1)


def planted_nothing(rng, male, female):
    """The contrast of a simulated table with crossed effects; in truth it is 0."""
    shape = (8, male + female, 4)
    draw = rng.standard_normal
    sizes = {
        (8, 1, 1): 0.4,
        (1, shape[1], 1): 0.5,
        (1, 1, 4): 0.3,
        (8, shape[1], 1): 0.3,
        (8, 1, 4): 0.2,
        (1, shape[1], 4): 0.2,
        shape: 0.3,
    }
    table = sum(scale * draw(size) for size, scale in sizes.items())
    jobs = [Profession(f"m{i}", "male") for i in range(male)]
    jobs += [Profession(f"f{i}", "female") for i in range(female)]
    return contrast(table, jobs)


@pytest.mark.parametrize(("male", "female"), [(1, 10), (10, 1), (1, 4)])
def test_one_profession_in_a_group_takes_its_spread_from_the_other(male, female):
    rng = np.random.default_rng(11)
    parts = [planted_nothing(rng, male, female) for _ in range(400)]
    held = np.mean([part.low <= 0 <= part.high for part in parts])
    assert 0.915 < held < 0.99, held
    assert "professions (spread of the" in parts[0].interval
    assert np.mean([part.p_value < 0.05 for part in parts]) == pytest.approx(1 - held)


def test_one_profession_in_both_groups_has_no_bounds():
    part = planted_nothing(np.random.default_rng(12), 1, 1)
    assert (part.low, part.high, part.p_value) == (-math.inf, math.inf, None)
    expected = "unbounded: one profession in each group says nothing about their spread"
    assert part.interval == expected


def test_the_interval_names_what_it_is_over():
    rng = np.random.default_rng(13)
    assert planted_nothing(rng, 3, 2).interval == (
        "Student's, over templates, professions, pairs (crossed random effects)"
    )


SHE = PersonPair("he", "she")
SIBLINGS = PersonPair("brother", "sister")
GROUPS = {"pilot": "male", "guard": "male", "nurse": "female", "clerk": "female"}
FRAMES = ["{person} was a {profession} here", "the {profession} said that {person} was late."]


def causal_world(dial):
    """Words of men favour the professions of men by the dial, and the other way round."""
    sides = {name: 0.25 if side == "male" else -0.25 for name, side in GROUPS.items()}
    opposite = {name: -strength for name, strength in sides.items()}
    words = {"he": sides, "brother": sides, "she": opposite, "sister": opposite}
    back = {
        name: {word: own[name] for word, own in words.items()}  # and professions favour persons
        for name in GROUPS
    }
    return biased_model({**words, **back}, bias=dial, noise=0.0)


def test_a_causal_model_agrees_with_plain_calls():
    import torch

    model = small_model("llama")
    texts = ["{person} w20 {profession} w21", "w22 {profession} w23 {person}"]
    made = asked(texts, ["w30", "w31 w32", "w33"], [PersonPair("w5", "w6"), PersonPair("w7", "w8")])

    def log_likelihood(text):
        ids = [model.begin, *model.tokenizer(text)["input_ids"]]
        with torch.no_grad():
            logits = model.network(input_ids=torch.tensor([ids])).logits[0, :-1].double()
        return float(logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]].sum())

    expected = np.array(
        [
            log_likelihood(made.at(*index).text.replace("W", "w"))
            for index in np.ndindex(*made.shape, 2)
        ]
    ).reshape(*made.shape, 2)
    lower = [replace(s, text=s.text.replace("W", "w")) for s in made.sentences]
    m = Professions()(model, replace(made, sentences=tuple(lower)))
    np.testing.assert_allclose(cells(m, "log_target"), expected, atol=1e-5)
    prior = np.log(np.exp(expected).sum(axis=1, keepdims=True))
    odds = (expected - prior)[..., 0] - (expected - prior)[..., 1]
    np.testing.assert_allclose(cells(m, "difference"), odds, atol=2e-5)


@pytest.mark.parametrize("dial", [0.0, 1.0, 2.0])
def test_a_causal_model_reads_the_dial(dial):
    """Persons and professions stand once before and once after one another."""
    made = asked(FRAMES, list(GROUPS), [SHE, SIBLINGS], list(GROUPS.values()))
    m = Professions()(causal_world(dial), made)
    [contrast] = m.select("contrast")
    # the other words of the sentence are as likely as any other: their normalisers change little
    assert contrast.value == pytest.approx(dial, abs=0.2 * dial + 1e-5)
    [reading] = m.select("reading")
    assert reading.value == pytest.approx(dial, abs=1e-5)
    assert reading.part("auc").value == (1.0 if dial else 0.5)
    if not dial:
        assert np.abs(cells(m, "difference")).max() < 1e-5


def test_the_order_of_professions_does_not_depend_on_the_prior():
    """A list with other professions changes the mean over all of them, not the contrast."""
    groups = ["male", "male", "female", "female", "balanced"]
    words = {
        "he": {"pilot": 0.2, "guard": 0.1, "nurse": 0.05, "clerk": 0.1, "chief": 0.5},
        "she": {"pilot": 0.1, "guard": 0.1, "nurse": 0.3, "clerk": 0.2, "chief": 0.1},
    }
    model = causal_bigram({"[BOS]": {"he": 0.4, "she": 0.3}, **words})
    names = list(words["he"])
    short, long = (
        Professions()(model, asked(["{person} {profession}"], names[:n], [SHE], groups[:n]))
        for n in (4, 5)
    )
    assert short.select("contrast")[0].value == pytest.approx(long.select("contrast")[0].value)
    assert short.value != pytest.approx(long.value, abs=0.05)
    by_hand = np.log(np.array(list(words["he"].values()))) - np.log(list(words["she"].values()))
    by_hand -= np.log(sum(words["he"].values())) - np.log(sum(words["she"].values()))
    np.testing.assert_allclose(cells(long, "difference").ravel(), by_hand, atol=1e-5)


def test_masked_and_causal_models_stand_in_one_table():
    made = asked(FRAMES, list(GROUPS), [SHE], list(GROUPS.values()))
    masked = Professions()(
        bigram_model(
            {
                "[CLS]": {"he": 0.3, "she": 0.2},
                "said": {},
                **{
                    word: {}
                    for frame in FRAMES
                    for word in frame.replace(".", " . ").split()
                    if "{" not in word
                },
                **{name: {} for name in GROUPS},
            }
        ),
        made,
    )
    causal = Professions()(causal_world(1.0), made)
    assert [part.by for part in causal.parts[: len(masked.parts)]] == [p.by for p in masked.parts]
    assert list(masked.items.columns) == list(causal.items.columns)
    change = compare(masked, causal)
    assert change.paired == 8
    with pytest.raises(InputError, match="two or more for a causal model"):
        Professions()(causal_world(1.0), asked(FRAMES, ["nurse"], [SHE]))


def test_what_a_causal_tokenizer_cannot_represent_is_left_out_and_named():
    model, pair = small_model("gpt2"), PersonPair("w7", "w8")
    m = Professions()(model, asked(["w5 {profession} {person} w6"], ["w30", "w31", "cook"], [pair]))
    assert m.left_out == ("cook",)
    assert m.details["professions"] == 2
    with pytest.raises(InputError, match="its tokenizer can represent none of the professions"):
        Professions()(model, asked(["w5 {profession} {person}"], ["a", "b"], [pair]))
