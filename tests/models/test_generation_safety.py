"""What may never enter a sentence, on any model; real models, and the comparison on real seeds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.cache import Cache
from evenhand.lexicon.first_names import names
from evenhand.lexicon.gendered import pairs, sex_indicators
from evenhand.models import load
from evenhand.models.generation.drafts import (
    Draft,
    DraftCandidate,
    SeedContext,
    can_insert,
    fills,
    read_seeds,
    same_form,
    seeds_of,
    share_stem,
    states_gender,
)
from evenhand.models.generation.search import GenerateSettings, generate
from evenhand.simulate.masked import bigram_model
from evenhand.text.structural import Accepted, Filter

SEEDS = (
    "The nurse moved her chair.",
    "A clerk lost his old lamp.",
    "The young pilot washed her car and drank some water.",
    "An artist painted a small house before she slept.",
)
NEUTRAL = (
    "lifted",
    "pushed",
    "found",
    "table",
    "lamp",
    "garden",
    "white",
    "large",
    "water",
    "knife",
    "engine",
    "sold",
    "closed",
)
BARRED = (
    "girl",
    "boy",
    "actress",
    "uncle",
    "king",
    "mary",
    "james",
    "linda",
    "widow",
    "beard",
    "crewman",
    "pregnant",
    "mother",
    "lady",
    "himself",
    "wife",
    "rose",
    "explan",
)


@st.composite
def worlds(draw):
    """A model in which barred words are about as likely everywhere as any other."""
    own = {word for seed in SEEDS for word in re.findall(r"\w+", seed.lower())}
    words = sorted({*own, *NEUTRAL, *BARRED, ".", "he", "she", "his", "her", "him"})
    likely = st.lists(st.sampled_from(words), min_size=3, max_size=8, unique=True)
    table = {}
    for before in ("[CLS]", *words):
        chosen = draw(likely)
        weights = draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen)))
        table[before] = {w: 0.9 * n / sum(weights) for w, n in zip(chosen, weights, strict=True)}
    return bigram_model(table)


@settings(max_examples=8, deadline=None)
@given(model=worlds(), side=st.sampled_from(["male", "female"]), seed=st.integers(0, 99))
@pytest.mark.slow
def test_no_gendered_word_or_name_enters_and_the_filter_passes(model, side, seed):
    wide = GenerateSettings(fluency=50.0, likely=0.0, least=0.0, gain=0.0, edits=3)
    result = generate(model, SEEDS, direction=side, settings=wide, seed=seed)
    known = names()
    paired = {word for pair in pairs() for word in (pair.female, pair.male)}
    for row in result.sentences + result.controls:
        assert 1 <= len(row["edits"]) <= 3
        for edit in row["edits"]:
            assert edit["new"] not in sex_indicators()
            assert edit["new"] not in paired
            assert edit["new"] not in BARRED
            assert known.gender(edit["new"].capitalize()) is None or edit["new"] in NEUTRAL
        accepted = Filter().sentence(row["sentence"])
        assert isinstance(accepted, Accepted)
        assert accepted.antecedent.split()[-1] == row["antecedent"].split()[-1]
        before = Filter().sentence(row["seed"])
        assert accepted.antecedent.split()[-1] == before.antecedent.split()[-1]
        assert accepted.pronoun == before.pronoun
    masked = [row["masked"] for row in result.sentences]
    assert len(set(masked)) == len(masked)


def test_every_word_of_the_lexicon_that_tells_a_sex_is_barred():
    single = {word for word in sex_indicators() if word.isalpha()}
    single |= {w for pair in pairs() for w in (pair.female, pair.male) if w.isalpha()}
    assert [word for word in sorted(single) if can_insert(word) or not states_gender(word)] == []
    common = [*names().female[:300], *names().male[:300]]
    assert [name for name in common if can_insert(name.lower())] == []


@pytest.mark.parametrize(
    ("old", "new", "tag", "fits"),
    [
        ("chairs", "table", "W", False),
        ("chairs", "tables", "W", True),
        ("walks", "walked", "V", False),
        ("walks", "runs", "V", True),
        ("chair", "doctor", "W", False),
        ("horse", "guard", "W", False),
        ("chair", "chair", "W", False),
        ("slowly", "quickly", "B", True),
    ],
)
def test_the_form_stays(old, new, tag, fits):
    assert same_form(old, new, tag) is fits


def test_articles_repetitions_and_joined_words():
    context = SeedContext(
        seeds_of([DraftCandidate("The tall cook broke an egg on her table.")]).seeds[0]
    )
    draft = Draft(context)
    egg = context.tokens.index("egg")
    assert draft.fits(egg, "answer")
    assert not draft.fits(egg, "bottle")
    assert not draft.fits(egg, "table")
    assert share_stem("blow", "blows")
    joined = SeedContext(
        seeds_of([DraftCandidate("The well - dressed cook cut her bread.")]).seeds[0]
    )
    assert [joined.tokens[i] for i in joined.positions] == ["cut", "bread"]
    phrase = SeedContext(seeds_of([DraftCandidate("The cook shows off her new knife.")]).seeds[0])
    assert [phrase.tokens[i] for i in phrase.positions] == ["new", "knife"]


def test_fills_are_whole_words_behind_a_space_on_every_family(family):
    model = load(family)
    found = fills(model)
    for token, word in found.items():
        coded = model.tokenizer(f"a {word} a", add_special_tokens=False)["input_ids"]
        assert token in coded
        assert model.tokenizer.decode([token]).strip() == word
    assert {"nurse", "table", "book"} & set(found.values()) or len(model.tokenizer) < 400


SOME = ["The cook put her spoon on the table."]


@pytest.mark.slow
def test_cached_answers_give_the_same_and_nothing_is_asked_again(mini, tmp_path):
    cache = Cache(tmp_path / "answers")
    progress_calls: list[tuple[int, int]] = []
    few = GenerateSettings(edits=1, beam=1, tried=8)
    first = generate(
        mini, SOME, settings=few, cache=cache, progress=lambda *at: progress_calls.append(at)
    )
    n = len(cache)
    again = generate(mini, SOME, settings=few, cache=Cache(tmp_path / "answers"))
    assert n > 0
    assert len(Cache(tmp_path / "answers")) == n
    assert again.lines() == first.lines()
    assert again.to_dict() == first.to_dict()
    assert generate(mini, SOME, settings=few).lines() == first.lines()
    done = [at for at, _ in progress_calls]
    assert done == sorted(done)
    assert all(at <= total for at, total in progress_calls)


@pytest.mark.slow
def test_real_seeds_are_pushed_further_than_by_random_edits(mini, shared):
    seeds = read_seeds(shared / "data" / "swag" / "swag_sent1_subset.txt", limit=30)
    result = generate(mini, seeds, direction="own")
    m, _ = result.measurements
    change, held_out = (c for c in result.comparisons if c.query == "random")
    assert held_out.details["score"] == "held-out continuations"
    assert held_out.part("push").change.value < change.part("push").change.value
    assert change.change.low > 0
    assert change.p_value < 0.01
    assert m.part("found").part("moved").value > m.part("random").part("moved").value
    assert len(result.sentences) >= 10
    for row in result.sentences:
        assert isinstance(Filter().sentence(row["sentence"]), Accepted)
        assert row["fluency_loss"] <= result.settings.fluency
        assert row["perplexity_ratio"] <= row["fluency_loss"]
