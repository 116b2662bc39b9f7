"""HolisticBias: by hand, by independent computations, and in worlds with known differences."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from evenhand.errors import FileError, InputError
from evenhand.instruments import compare, instruments
from evenhand.models import load
from evenhand.models.metrics.holisticbias import (
    Descriptor,
    HolisticBias,
    HolisticWords,
    _Resampled,
    _Tables,
    crossed_p_values,
    mann_whitney_p_values,
    read_holisticbias,
)
from evenhand.models.metrics.perplexity import pseudo_log_likelihoods
from evenhand.simulate.causal import biased_model
from evenhand.statistics.intervals import crossed_mean

NOUNS = {
    "female": (("aunt", "aunts"), ("queen", "queens"), ("nun", "nuns")),
    "male": (("uncle", "uncles"), ("king", "kings")),
    "neutral": (("friend", "friends"), ("guest", "guests"), ("cook", "cooks")),
}
TEMPLATES = (
    "I like {plural_noun_phrase}.",
    "I met {noun_phrase} today.",
    "They say {plural_noun_phrase} are best.",
    "You look like {noun_phrase}.",
    "We saw {plural_noun_phrase} there.",
    "He is {noun_phrase}.",
)
WORDS = HolisticWords(
    {
        "size": tuple(map(Descriptor, ("tall", "short", "wide", "slim", "huge", "tiny"))),
        "age": tuple(map(Descriptor, ("old", "young", "aged", "new"))),
        "nonce": tuple(map(Descriptor, ("dax", "wug", "toma", "blick", "fep", "zib"))),
    },
    NOUNS,
    TEMPLATES,
)


def simulated(rng, spread, interaction, *, descriptors=8, nouns=6, templates=8):
    """Tables whose descriptors differ by `spread`, and by `interaction` with the template."""
    by_noun, by_template = rng.normal(size=(nouns, 1)), rng.normal(size=templates)

    def table(own):
        return (
            own * rng.normal(size=(descriptors, 1, 1))
            + by_noun
            + by_template
            + interaction * rng.normal(size=(descriptors, 1, templates))
            + 0.3 * rng.normal(size=(descriptors, nouns, templates))
        )

    scores = {"people": table(spread), "nonce": table(0.0)}
    return _Tables(scores, {axis: table(0.0) for axis in scores}, "nonce")


def test_by_hand():
    """Two descriptors differ in every sentence by the same amount, nonsense words in none."""
    nouns = {plural: 1.0 for of in NOUNS.values() for pair in of for plural in pair}
    against = dict.fromkeys(nouns, -1.0)
    model = biased_model({"tall": nouns, "short": against}, bias=2.0, noise=0.0)
    ends = tuple(f"{word} {{plural_noun_phrase}}" for word in ("I like", "We saw", "They met"))
    words = replace(WORDS, templates=ends)
    m = HolisticBias(sentences=9, descriptors=6)(model, words)
    size = m.part("size", by="axis")
    # tall and short differ from each other and from the four others: 9 of 15 pairs
    assert size.value == pytest.approx(9 / 15)
    assert m.part("share of nonsense").value == 0
    assert m.part("age", by="axis").value == 0
    assert m.value == pytest.approx(9 / 30)


def test_a_model_that_knows_nothing_reads_nothing():
    m = HolisticBias(sentences=9, descriptors=6)(biased_model({}), WORDS)
    assert m.value == m.details["random_model"] == 0
    assert m.part("published").value == 0
    assert m.part("cbs").value == 0
    assert m.low < 0 < m.high


def test_the_categorical_bias_score_by_hand():
    """A template that prefers some descriptors; how likely they are by themselves cancels."""
    model = biased_model(
        {"tall": {"best": 1.0, "aunts": 3.0}, "old": {"aunt": -2.0}}, bias=1.0, noise=0.0
    )
    m = HolisticBias(sentences=9, descriptors=6)(model, WORDS)
    rows = [row for row in m.items if row["axis"] == "size"]
    cells = {}
    for row in rows:
        cells.setdefault((row["noun"], row["template"]), []).append(row["association"])
    expected = np.mean([np.var(values, ddof=1) for values in cells.values()])
    assert m.part("size", by="cbs").value == pytest.approx(expected, abs=1e-9)
    assert m.part("age", by="cbs").value < expected


def test_pairs_are_tested_as_crossed_means():
    """The p-value is where the interval of `crossed_mean` ends at no difference."""
    rng = np.random.default_rng(3)
    scores = simulated(rng, 0.4, 0.3).scores["people"]
    first, second = np.triu_indices(len(scores), 1)
    p_values = crossed_p_values(scores, first, second)
    for i, j, p in zip(first[:10], second[:10], p_values[:10], strict=True):
        mean, low, high = crossed_mean(scores[i] - scores[j], prob=1 - p)
        assert min(abs(low), abs(high)) < 1e-6 * abs(mean) + 1e-9


@pytest.mark.parametrize("digits", [1, 6])
def test_the_published_test_is_mann_whitney_over_sentences(digits):
    scores = simulated(np.random.default_rng(4), 0.5, 0.3).scores["people"].round(digits)
    first, second = np.triu_indices(len(scores), 1)
    expected = [
        mannwhitneyu(scores[i].ravel(), scores[j].ravel(), method="asymptotic").pvalue
        for i, j in zip(first, second, strict=True)
    ]
    assert mann_whitney_p_values(scores, first, second) == pytest.approx(expected, rel=1e-9)


def test_sentences_that_share_a_template_are_not_independent():
    """Descriptors that differ in some templates alone: the published test counts too many pairs."""
    rng = np.random.default_rng(5)
    shares = {"share": [], "published": []}
    for seed in range(10):
        drawn = _Resampled.of(simulated(rng, 0.0, 1.5), 2, seed)
        for name, of in shares.items():
            of += [drawn.values[name]["people"], drawn.values[name]["nonce"]]
    assert np.mean(shares["share"]) < 0.02
    assert np.mean(shares["published"]) > np.mean(shares["share"])


def test_no_difference_is_inside_the_interval_and_a_large_one_outside():
    rng = np.random.default_rng(6)
    weights = {"people": 1.0, "nonce": -1.0}
    for spread, differs in ((0.0, False), (3.0, True)):
        covered = 0
        for seed in range(10):
            drawn = _Resampled.of(simulated(rng, spread, 0.3), 30, seed)
            _, low, high = drawn.interval("share", weights, 0.95)
            covered += low <= 0 <= high
        assert covered <= 1 if differs else covered >= 9


def test_the_design_is_crossed_balanced_and_drawn_by_the_seed():
    chosen = HolisticBias(sentences=36, descriptors=3)
    design, left_out = chosen.design(WORDS, seed=1)
    assert not left_out
    assert [len(of) for of in design.descriptors.values()] == [3, 3, 3]
    assert (len(design.nouns), len(design.templates)) == (6, 6)
    for nouns in NOUNS.values():
        assert sum(noun in nouns for noun in design.nouns) == 2
    sentences, phrases = design.sentences("size")
    assert len(sentences) == len(phrases) == 3 * 36
    assert chosen.design(WORDS, seed=1)[0] == design
    assert chosen.design(WORDS, seed=2)[0] != design


def test_sentences_are_well_formed():
    words = HolisticWords(
        {
            "age": (Descriptor("old"), Descriptor("US-born", "a")),
            "nonce": (Descriptor("dax"), Descriptor("wug")),
        },
        {"neutral": (("friend", "friends"), ("guest", "guests"))},
        ("{plural_noun_phrase} are here.", "I am {noun_phrase}."),
    )
    design, _ = HolisticBias(sentences=4).design(words)
    sentences, phrases = design.sentences("age")
    assert {"I am an old friend.", "I am a US-born guest.", "Old guests are here."} <= {*sentences}
    assert "an old friend" in phrases


def test_a_masked_model_is_read_by_pseudo_perplexity():
    model = load("mini")
    words = HolisticWords(
        {
            "age": (Descriptor("old"), Descriptor("young")),
            "nonce": (Descriptor("dax"), Descriptor("wug")),
        },
        {"neutral": (("friend", "friends"), ("man", "men"))},
        ("I like {plural_noun_phrase}.", "I am {noun_phrase}."),
    )
    m = HolisticBias(sentences=4)(model, words)
    sums, counts = pseudo_log_likelihoods(model, ["I like old friends."])
    same = [
        row
        for row in m.items
        if (row["descriptor"], row["noun"], row["template"])
        == ("old", "friend", "I like {plural_noun_phrase}.")
    ]
    assert same[0]["log_perplexity"] == pytest.approx(-sums[0] / counts[0], abs=1e-4)


def test_two_models_are_compared_on_the_same_sentences():
    nouns = {plural: 1.0 for of in NOUNS.values() for pair in of for plural in pair}
    biased = biased_model({"tall": nouns}, bias=2.0, noise=0.0)
    results = [
        HolisticBias(sentences=9, descriptors=6, resamples=20)(model, WORDS)
        for model in (biased, biased_model({}))
    ]
    change = compare(*results)
    assert change.change.value == pytest.approx(results[1].value - results[0].value)
    other = HolisticBias(sentences=9, descriptors=6, resamples=20)(biased, WORDS, seed=3)
    with pytest.raises(InputError, match="expected the same sentences, got others"):
        compare(results[0], other)


def test_what_cannot_be_crossed_is_refused():
    few = HolisticWords({"age": WORDS.descriptors["age"], "nonce": ()}, NOUNS, TEMPLATES)
    with pytest.raises(InputError, match="two descriptors or more of the axis 'nonce'"):
        HolisticBias()(biased_model({}), few)
    few = HolisticWords(WORDS.descriptors, {"neutral": NOUNS["neutral"][:1]}, TEMPLATES)
    with pytest.raises(InputError, match="two nouns and two templates or more, got 1 and"):
        HolisticBias()(biased_model({}), few)
    with pytest.raises(InputError, match="expected a folder with descriptors"):
        HolisticBias().measure(biased_model({}))


def write(folder, **changes):
    content = {
        "descriptors": {
            "age": {"old": ["old", {"descriptor": "ageing", "article": "an"}]},
            "gender": {"all": ["plain", "kind", {"descriptor": "female", "gender": "female"}]},
            "nonce": {"all": ["dax", "wug"]},
        },
        "nouns": {"neutral": [["friend", "friends"], ["guest", "guests"]]},
        "sentence_templates": {"I am {noun_phrase}.": {}, "I like {plural_noun_phrase}.": {}},
    }
    for name, value in (content | changes).items():
        if value is not None:
            (folder / f"{name}.json").write_text(json.dumps(value))


def test_files_are_read_and_what_is_wrong_is_named(tmp_path):
    write(tmp_path)
    words = read_holisticbias(tmp_path)
    assert words.descriptors["age"] == (Descriptor("old"), Descriptor("ageing", "an"))
    assert words.left_out == ("gender: female (nouns of one gender only)",)
    assert words.nouns["neutral"][0] == ("friend", "friends")
    for changes, message in (
        ({"descriptors": {"age": {"all": ["old"]}}}, "expected an axis 'nonce'"),
        ({"descriptors": {"nonce": {"all": [3]}}}, "'nonce': expected a text as descriptor, got 3"),
        ({"descriptors": {"nonce": {"all": "dax"}}}, "'nonce': expected lists, got str"),
        ({"descriptors": []}, "descriptors.json: expected a JSON object, got list"),
        ({"nouns": {"neutral": ["friend"]}}, r"'neutral': expected \[singular, plural\]"),
        ({"sentence_templates": {"I am.": {}}}, r"'I am.': expected \{noun_phrase\} or"),
    ):
        write(tmp_path, **changes)
        with pytest.raises(FileError, match=message):
            read_holisticbias(tmp_path)
        write(tmp_path)
    (tmp_path / "nouns.json").unlink()
    with pytest.raises(FileError, match=r"got no nouns\.json"):
        read_holisticbias(tmp_path)
    with pytest.raises(FileError, match="got no folder"):
        read_holisticbias(tmp_path / "descriptors.json")


def test_the_published_files_are_read(shared):
    words = read_holisticbias(shared / "data" / "holisticbias")
    assert len(words.descriptors) == 13
    assert len(words.descriptors["nonce"]) == 8
    assert len(words.templates) == 26
    assert sum(map(len, words.nouns.values())) == 32


def test_it_measures_both_kinds_of_models():
    assert "holisticbias" in instruments("masked")
    assert "holisticbias" in instruments("causal")
