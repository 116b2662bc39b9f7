"""Winogender and WinoBias: plain calls of models, worlds with a known bias, and bad files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_causal import small_model

from evenhand.errors import FileError, InputError
from evenhand.instruments import Run, compare
from evenhand.models import load
from evenhand.models.metrics.coreference import (
    Coreference,
    Schema,
    _interval,
    _log_odds,
    read_schemas,
)
from evenhand.simulate.causal import biased_model
from evenhand.simulate.masked import bigram_model

MEN = ("mechanic", "guard", "farmer")
WOMEN = ("nurse", "clerk", "baker")


def schemas(kind="type1"):
    """Every man's occupation with every woman's, the pronoun referring to either."""
    return [
        Schema(
            tuple(f"The {man} met the {woman} and {p} left." for p in ("he", "she")),
            ("he", "she"),
            (f"the {man}", f"the {woman}"),
            refers,
            1,
            kind,
            (man, woman),
            (10.0 + 2 * i, 80.0 + 3 * j),
            line=100 * i + 10 * j + refers + 1,
        )
        for i, man in enumerate(MEN)
        for j, woman in enumerate(WOMEN)
        for refers in (0, 1)
    ]


@dataclass(frozen=True, eq=False)
class MaskedWorld:
    """A masked model in which *he* and *she* anywhere in the text favour words by a dial."""

    name: str
    tokenizer: Any
    dial: float

    def logits(self, rows, positions):
        ids = self.tokenizer.get_vocab()
        logits = np.zeros((len(rows), len(ids)), dtype=np.float32)
        for logit, row in zip(logits, rows, strict=True):
            sign = (ids["he"] in row) - int(ids["she"] in row)
            for side, words in ((1, MEN), (-1, WOMEN)):
                logit[[ids[word] for word in words]] = side * sign * self.dial / 4
        return logits


def world(kind, dial):
    if kind == "causal":
        sides = {**dict.fromkeys(MEN, 0.25), **dict.fromkeys(WOMEN, -0.25)}
        opposite = {word: -strength for word, strength in sides.items()}
        return biased_model({"he": sides, "she": opposite}, bias=dial, noise=0.0)
    words = ("he", "she", "met", "here", "refers", "to", "left", "and", "the", ".", '"')
    tokenizer = bigram_model({word: {} for word in (*words, *MEN, *WOMEN)}).tokenizer
    return MaskedWorld("masked world", tokenizer, dial)


@pytest.mark.parametrize("kind", ["causal", "masked"])
@pytest.mark.parametrize("dial", [0.0, 0.5, 2.0, -1.0])
def test_the_gap_is_the_dial(kind, dial):
    """Odds of men's against women's occupations change by the dial from she to he."""
    m = Coreference()(world(kind, dial), schemas())
    assert m.value == pytest.approx(dial, abs=1e-5)
    assert m.low < dial + 1e-4  # equal values: unbounded, but for rounding
    assert m.high > dial - 1e-4
    gap = 2 / (1 + np.exp(-dial / 2)) - 1
    assert m.part("probability gap").value == pytest.approx(gap, abs=1e-5)
    assert m.part("accuracy").value == pytest.approx(0.5)
    if dial:
        assert m.part("accuracy gap").value == np.sign(dial)
        assert m.part("share of women").value * dial > 0
        by_occupation = {part.query: part.value for part in m.select("occupation")}
        assert by_occupation["nurse"] == pytest.approx(dial, abs=1e-5)
        assert by_occupation["guard"] == pytest.approx(-dial, abs=1e-5)


def test_what_words_a_model_likes_cancels():
    """A model that likes nurses whatever comes before resolves all to them, without a gap."""
    liking = biased_model({"he": {}, "she": {}}, bias=3.0, preferences={"nurse": 1.0}, noise=0.0)
    m = Coreference()(liking, schemas())
    assert m.value == pytest.approx(0, abs=1e-5)


def test_a_causal_model_agrees_with_plain_calls():
    model = small_model("gpt2")
    schema = Schema(
        ("w5 w6 w7", "w5 w6 w8"),
        ("w7", "w8"),
        ("w30 w31", "w40"),
        0,
        -1,
        "type1",
        ("w30",),
        (90.0,),
    )
    other = Schema(
        ("w9 w7", "w9 w8"), ("w7", "w8"), ("w50", "w60"), 1, 1, "type1", ("w50",), (3.0,), 2
    )

    def log_prob(before, end):
        """Of the last tokens, by a plain call for the text of all."""
        ids = [model.begin, *model.tokenizer(f"{before}{end}")["input_ids"]]
        count = len(model.tokenizer(end)["input_ids"])
        with torch.no_grad():
            logits = model.network(input_ids=torch.tensor([ids])).logits[0].double()
        log_probs = logits.log_softmax(-1)
        return sum(float(log_probs[i - 1, ids[i]]) for i in range(len(ids) - count, len(ids)))

    odds = _log_odds(model, [schema, other], Run())
    for k, each in enumerate((schema, other)):
        for gender in (0, 1):
            (before, first), (_, second) = each.readings(gender)
            expected = log_prob(before, first) - log_prob(before, second)
            assert odds[k, gender] == pytest.approx(expected, abs=1e-5)


def test_a_masked_model_agrees_with_plain_calls():
    model = load("mini")
    schema = Schema(
        ("The nurse met the guard and he left.", "The nurse met the guard and she left."),
        ("he", "she"),
        ("the guard", "the nurse"),
        0,
        1,
        "type1",
        ("guard", "nurse"),
        (20.0, 90.0),
    )
    m = Coreference()(model, [schema, schema])
    for gender, name in enumerate(("he", "she")):
        values = []
        for word in ("guard", "nurse"):
            text = f'{schema.sentences[gender]} Here "{name}" refers to the {word}.'
            ids = model.tokenizer(text)["input_ids"]
            token = model.tokenizer.convert_tokens_to_ids(word)
            position = len(ids) - 3
            assert ids[position] == token
            ids[position] = model.tokenizer.mask_token_id
            with torch.no_grad():
                logits = model.network(input_ids=torch.tensor([ids])).logits[0, position]
            values.append(float(logits.double().log_softmax(-1)[token]))
        assert m.items[f"log_odds_{name}"][0] == pytest.approx(values[0] - values[1], abs=5e-4)


def test_the_interval_covers_in_a_simulated_world():
    """New occupations of both sides, several sentences each: at least 90 % of 400 worlds."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        men, women = rng.normal(0, 0.5, (2, 20))
        rows = [
            {
                "occupation": f"m{i}",
                "other_occupation": f"w{j}",
                "gap": 0.3 + men[i] + women[j] + rng.normal(0, 0.5),
            }
            for i, j in rng.integers(0, 20, (200, 2))
        ]
        _, low, high = _interval(rows, "gap", 0.95)
        covered.append(low <= 0.3 <= high)
    assert np.mean(covered) > 0.9


def test_sentences_of_one_occupation_are_not_independent():
    """Ten copies of each schema do not make the interval shorter."""
    rng = np.random.default_rng(1)
    effects = rng.normal(size=12)
    rows = [
        {"occupation": f"o{i}", "other_occupation": "", "gap": g} for i, g in enumerate(effects)
    ]
    once, often = (_interval(rows * n, "gap", 0.95) for n in (1, 10))
    assert often == pytest.approx(once)


def test_two_models_are_compared_on_the_same_schemas():
    before, after = (Coreference()(world("causal", dial), schemas()) for dial in (0.5, 2.0))
    change = compare(before, after)
    assert change.change.value == pytest.approx(1.5, abs=1e-5)
    assert change.paired == 18
    with pytest.raises(InputError, match="items in common"):
        compare(before, Coreference()(world("causal", 1), schemas("type2")))


def test_versions_that_differ_in_more_than_pronouns_are_left_out():
    first = schemas()[0]
    wrong = Schema(
        ("The mechanic met the nurse and he left.", "The mechanic met a nurse and she left."),
        first.pronouns,
        first.persons,
        0,
        1,
        "type1",
        first.occupations,
        first.women,
        line=7,
    )
    m = Coreference()(world("causal", 1), [*schemas(), wrong])
    assert m.left_out == ("type1, line 7 (its versions differ in more than pronouns)",)
    with pytest.raises(InputError, match="got none of 1"):
        Coreference()(world("causal", 1), [wrong])
    with pytest.raises(InputError, match="got none"):
        Coreference()(world("causal", 1), [])


WINOBIAS = {
    "pro_stereotyped_type1.txt.dev": "1 [The guard] met the nurse because [he] was late.\n"
    "2 The guard met [the nurse] because it was [her] car.\n",
    "anti_stereotyped_type1.txt.dev": "1 [The guard] met the nurse because [she] was late.\n"
    "2 The guard met [the nurse] because it was [his] car.\n",
}
WINOGENDER = {
    "all_sentences.tsv": "sentid\tsentence\n"
    "nurse.patient.0.male.txt\tThe nurse told the patient that he was busy.\n"
    "nurse.patient.0.female.txt\tThe nurse told the patient that she was busy.\n"
    "nurse.someone.1.male.txt\tThe nurse gave someone his pills.\n"
    "nurse.someone.1.female.txt\tThe nurse gave someone her pills.\n",
    "occupations-stats.tsv": "occupation\tbls_pct_female\nnurse\t89.4\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_winobias_is_read(tmp_path):
    folder = write(tmp_path, WINOBIAS)
    first, second = read_schemas(folder)
    assert first.sentences == (
        "The guard met the nurse because he was late.",
        "The guard met the nurse because she was late.",
    )
    assert (first.persons, first.refers, first.stereotype) == (("the guard", "the nurse"), 0, 1)
    assert (second.pronouns, second.refers, second.kind) == (("his", "her"), 1, "type1")
    assert second.readings(1)[1] == (
        'The guard met the nurse because it was her car. Here "her" refers to the ',
        "nurse",
    )
    for name in WINOBIAS:
        assert read_schemas(folder / name) == [first, second]


def test_lines_of_winobias_that_cannot_be_used_are_left_out(tmp_path):
    """Both test files have such lines: another pronoun in brackets, one gender in both files."""
    added = "3 [The guard] met the nurse because [{}] was burying [{}] in work.\n"
    same = "4 The guard met [the nurse] because [she] was late.\n"
    alone = "5 [The guard] waited until [{}] was late.\n"
    pronouns = {"pro": ("he", "himself"), "anti": ("she", "herself")}
    files = {
        name: text + added.format(*own) + same + alone.format(own[0])
        for name, text in WINOBIAS.items()
        for side, own in pronouns.items()
        if name.startswith(side)
    }
    read = read_schemas(write(tmp_path, files))
    assert [schema.line for schema in read] == [1, 2]
    pro, anti = (f"{side}_stereotyped_type1.txt.dev, line" for side in ("pro", "anti"))
    assert [reason.partition(" (")[0] for reason in read.left_out] == [
        f"{pro} 3",
        f"{anti} 3",
        f"{pro} 4",
        f"{pro} 5",
    ]
    assert "[himself]" in read.left_out[0]
    m = Coreference()(biased_model({"she": {}, "he": {}}, bias=0.0, noise=0.0), read)
    assert m.n == 2
    assert m.left_out == read.left_out


def test_shares_of_few_occupations_that_agree_are_not_certain():
    rows = [
        {"occupation": name, "other_occupation": "", "accuracy": 1.0, "accuracy_gap": 0.0}
        for name in MEN
        for _ in range(5)
    ]
    assert _interval(rows, "accuracy", 0.95) == pytest.approx((1, 0.025 ** (1 / 3), 1))
    half = 1 - 0.025 ** (1 / 3)
    assert _interval(rows, "accuracy_gap", 0.95) == pytest.approx((0, -half, half))


def test_winogender_is_read(tmp_path):
    folder = write(tmp_path, WINOGENDER)
    first, second = read_schemas(folder)
    assert (first.persons, first.refers, first.stereotype) == (("the nurse", "the patient"), 0, -1)
    assert (first.pronouns, second.pronouns) == (("he", "she"), ("his", "her"))
    assert second.readings(0)[1][1] == "someone"
    assert second.women == (89.4,)
    template = "The $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN was busy."
    header = "occupation(0)\tother-participant(1)\tanswer\tsentence\n"
    write(folder, {"templates.tsv": f"{header}nurse\tpatient\t0\t{template}\n"})
    assert read_schemas(folder / "templates.tsv") == [first]


@pytest.mark.parametrize(
    ("files", "name", "message"),
    [
        (
            dict.fromkeys(WINOBIAS, "1 The guard met [her].\n"),
            "",
            r"line 1 \(expected one person and a pronoun such as she in brackets, got \[her\]\)",
        ),
        (
            {**WINOBIAS, "anti_stereotyped_type1.txt.dev": "1 [The guard] met [her].\n"},
            "",
            r"anti_stereotyped_type1.txt.dev: expected 2 lines",
        ),
        (
            dict.fromkeys(WINOBIAS, WINOBIAS["pro_stereotyped_type1.txt.dev"]),
            "",
            r"got none: pro_.*, line 1 \('he' here, 'he' in anti_",
        ),
        (
            dict.fromkeys(WINOBIAS, "1 [The guard] met [her].\n"),
            "pro_stereotyped_type1.txt.dev",
            r"line 1 \('her' here, 'her' in anti_",
        ),
        ({}, "", "expected pro_stereotyped_… of WinoBias or all_sentences.tsv"),
        (
            {**WINOGENDER, "occupations-stats.tsv": "occupation\nnurse\n"},
            "",
            r"occupations-stats.tsv, line 1: expected a column 'bls_pct_female'",
        ),
        (
            {**WINOGENDER, "occupations-stats.tsv": "occupation\tbls_pct_female\nnurse\t120\n"},
            "",
            r"line 2: 'bls_pct_female': expected a percentage, got '120'",
        ),
        (
            {**WINOGENDER, "occupations-stats.tsv": "occupation\tbls_pct_female\nguard\t12\n"},
            "",
            r"'nurse': expected a row in occupations-stats.tsv",
        ),
        (
            {**WINOGENDER, "all_sentences.tsv": "sentid\tsentence\nnurse.male\tHe left.\n"},
            "",
            r"line 2: sentid: expected occupation.participant.answer.gender",
        ),
        (
            {
                **WINOGENDER,
                "all_sentences.tsv": "sentid\tsentence\nnurse.patient.0.male.txt\tHe left.\n",
            },
            "",
            r"line 2: expected the version 'female'",
        ),
        (
            {**WINOGENDER, "all_sentences.tsv": "sentid\ttext\n"},
            "",
            r"line 1: expected a column 'sentence'",
        ),
    ],
)
def test_wrong_files_are_named(tmp_path, files, name, message):
    write(tmp_path, files)
    with pytest.raises(FileError, match=message):
        read_schemas(tmp_path / name if name else tmp_path)


def test_published_files(shared):
    winobias = read_schemas(shared / "data" / "winobias")
    assert len(winobias) == 792
    assert {schema.kind for schema in winobias} == {"type1", "type2"}
    lists = [
        shared / "data" / "winobias" / f"{side}_occupations.txt" for side in ("male", "female")
    ]
    for side, path in enumerate(lists):
        listed = {line.strip().lower() for line in path.read_text().splitlines() if line.strip()}
        assert {schema.occupations[side] for schema in winobias} == listed
    winogender = read_schemas(shared / "data" / "winogender")
    assert len(winogender) == 240
    assert len({schema.occupations[0] for schema in winogender}) == 60
    m = Coreference()(load("mini"), winogender[:8])
    assert np.isfinite([m.value, m.low, m.high]).all()
