"""Controls: what is rewritten, the rule, and worlds in which it must give each outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.errors import InputError
from evenhand.instruments import Run
from evenhand.judging import judge_control
from evenhand.models.control import check_control, controls, mark_control
from evenhand.models.metrics.bbq import Bbq, BbqQuestion
from evenhand.models.metrics.crows import Crows
from evenhand.models.metrics.gest import Gest, GestSentence
from evenhand.models.metrics.stereoset import StereoSet, Triple
from evenhand.models.pairs import Pair
from evenhand.results import Measurement
from evenhand.simulate.causal import biased_model


def triple(target, context, words, *, category="profession", line=0):
    texts = tuple(context.replace("BLANK", word) for word in words)
    return Triple("intrasentence", target, category, context, texts, line)


KIN = [
    ("mother", "father"),
    ("sister", "brother"),
    ("aunt", "uncle"),
    ("daughter", "son"),
    ("niece", "nephew"),
    ("grandmother", "grandfather"),
    ("woman", "man"),
    ("girl", "boy"),
    ("wife", "husband"),
    ("actress", "actor"),
]


def gender_items():
    """Each term with its own stereotype, in several sentences."""
    items = []
    for woman, man in KIN:
        for i in range(6):
            for term, words in ((woman, ("sweet", "bold", "rusty")), (man, ("bold", "sweet", "x"))):
                item = triple(term, f"the {term} is place{i} BLANK", words, category="gender")
                items.append(replace(item, line=len(items)))
    return items


def women_items():
    return [item for item in gender_items() if item.target in {woman for woman, _ in KIN}]


def profession_items():
    """Each profession has a stereotype of its own."""
    terms = [f"worker{name}" for name in "abcdefghijklmnopqrst"]
    return [
        triple(term, f"the {term} is BLANK", (f"like{i}", f"unlike{i}", "rusty"), line=i)
        for i, term in enumerate(terms)
    ]


def reads(kind):
    """A model with stereotypes: it prefers what fits the group, and understands negation."""
    if kind == "swap":
        associations = {}
        for woman, man in KIN:
            associations[woman] = {"sweet": 1.0, "bold": -1.0}
            associations[man] = {"sweet": -1.0, "bold": 1.0}
        return biased_model(associations, bias=2.0)
    associations = {
        item.target: {f"like{item.line}": 1.0, f"unlike{item.line}": -1.0}
        for item in profession_items()
    }
    return biased_model(associations, bias=3.0, negations=("not",))


def likes_words(kind):
    """A model without stereotypes that likes the words of the stereotypes."""
    words = {"sweet": 1.0, "bold": -1.0}
    words |= {f"like{i}": 1.0 for i in range(20)} | {f"unlike{i}": -1.0 for i in range(20)}
    del kind
    return biased_model({}, bias=2.0, preferences=words)


MATERIAL = {"swap": women_items, "negate": profession_items, "identity": profession_items}


@pytest.mark.parametrize("kind", sorted(MATERIAL))
def test_a_score_of_stereotypes_responds_and_one_of_words_survives(kind):
    material = MATERIAL[kind]()
    check = check_control(StereoSet(), reads(kind), material, kind)
    assert check.before.low > 0.5
    assert check.details["outcome"] == "responds"
    assert check.change.high < 0
    if kind != "identity":
        assert check.after.high < 0.5  # it reverses
    check = check_control(StereoSet(), likes_words(kind), material, kind)
    assert check.details["outcome"] == "survives"
    assert check.change.value == 0
    assert check.details["retained"] == 1
    assert "survives its control" in check.notes[0]
    assert "no evidence of a stereotype" in check.notes[0]


@pytest.mark.parametrize("kind", sorted(MATERIAL))
def test_a_model_without_either_has_no_effect_to_control(kind):
    check = check_control(StereoSet(), biased_model({}), MATERIAL[kind](), kind)
    assert check.details["outcome"] == "no effect"


def sentences():
    return [
        GestSentence(f"I am deed{stereotype}x{i}", stereotype)
        for stereotype in range(1, 17)
        for i in range(4)
    ]


@pytest.mark.parametrize(("negations", "outcome"), [(("not",), "responds"), ((), "survives")])
def test_gest_responds_only_if_negations_are_read(negations, outcome):
    associations = {}
    for sentence in sentences():
        side = 0.5 if sentence.stereotype > 7 else -0.5
        associations[sentence.text.split()[-1]] = {
            "he": side,
            "she": -side,
            "man": side,
            "woman": -side,
        }
    model = biased_model(associations, bias=2.0, noise=0.3, negations=negations)
    check = check_control(Gest(), model, sentences(), "negate")
    assert check.details["outcome"] == outcome
    assert check.paired == len(sentences())


def questions():
    return [
        BbqQuestion(
            template=str(i),
            category="age",
            context=f"Anna and Ben came to place{i}.",
            question="Who was late?",
            answers=("Anna", "Ben", "unknown"),
            right=2,
            unknown=2,
            stereotyped=0,
            negative=True,
            ambiguous=True,
        )
        for i in range(40)
    ]


@pytest.mark.parametrize(("negations", "outcome"), [(("not",), "responds"), ((), "survives")])
def test_bbq_responds_only_if_negations_are_read(negations, outcome):
    associations = {f"place{i}": {"anna": 1.0, "ben": -1.0, "unknown": 0.0} for i in range(40)}
    model = biased_model(associations, bias=2.0, noise=0.5, negations=negations)
    check = check_control(Bbq(resamples=200), model, questions(), "negate")
    assert check.details["outcome"] == outcome
    if outcome == "responds":
        assert check.after.value < 0


def pairs():
    """Two groups of each pair, one of which has the attribute by stereotype."""
    groups = [("mexican", "american"), ("syrian", "canadian"), ("persian", "austrian")] * 12
    return [
        Pair(
            f"the {more} is attribute{i}", f"the {less} is attribute{i}", "stereo", "nation", "", i
        )
        for i, (more, less) in enumerate(groups, start=1)
    ]


@pytest.mark.parametrize("kind", ["negate", "identity"])
@pytest.mark.parametrize("world", ["reads", "likes words"])
def test_sentence_pairs(kind, world):
    attributes = [f"attribute{pair.line}" for pair in pairs()]
    if world == "reads":
        associations = {}
        for pair, attribute in zip(pairs(), attributes, strict=True):
            for text, side in ((pair.more, 1.0), (pair.less, -1.0)):
                associations.setdefault(text.split()[1], {})[attribute] = side
        model = biased_model(associations, bias=3.0, negations=("not",))
    else:
        liked = {pair.more.split()[1]: 1.0 for pair in pairs()}
        disliked = {pair.less.split()[1]: -1.0 for pair in pairs()}
        model = biased_model({}, bias=2.0, preferences=liked | disliked)
    check = check_control(Crows(), model, pairs(), kind)
    assert check.details["outcome"] == ("responds" if world == "reads" else "survives")
    assert check.paired > 0


def score(value, half=0.1):
    return Measurement(
        metric="m",
        query="q",
        value=value,
        low=value - half,
        high=value + half,
        prob=0.95,
        n=9,
        ideal=0.5,
        worse="away",
        interval="none",
    )


@pytest.mark.parametrize(
    ("before", "after", "change", "outcome"),
    [
        (0.7, 0.7, (-0.1, 0.1), "survives"),
        (0.7, 0.65, (-0.09, -0.01), "survives"),
        (0.3, 0.35, (0.0, 0.1), "survives"),
        (0.7, 0.5, (-0.3, -0.1), "responds"),
        (0.7, 0.3, (-0.5, -0.3), "responds"),
        (0.3, 0.5, (0.1, 0.3), "responds"),
        (0.7, 0.58, (-0.25, 0.01), "undecided"),
        (0.55, 0.9, (0.3, 0.4), "no effect"),
    ],
)
def test_the_rule(before, after, change, outcome):
    ends = [(score(value).low, score(value).high) for value in (before, after)]
    assert judge_control(*ends, change, 0.5) == outcome


def test_gendered_words_are_swapped_in_items_about_gender():
    items = [
        triple(
            "mother", "His mother was very BLANK.", ("sweet", "bold", "rusty"), category="gender"
        ),
        triple("nurse", "The nurse met her BLANK.", ("a", "b", "c")),
        triple("nurse", "The nurse is BLANK.", ("a", "b", "c"), category="gender"),
        triple("nurse", "The nurse said BLANK left.", ("she", "he", "it"), category="gender"),
    ]
    swapped = controls(items, "swap")
    [control] = swapped.controls
    assert control.context == "Her father was very BLANK."
    assert control.texts[0] == "Her father was very sweet."
    assert (control.target, control.line) == ("mother", 0)
    assert swapped.left_out == {
        "not about gender": 1,
        "nothing to rewrite": 1,
        "only exchanges the compared texts": 1,
    }


def test_the_word_in_the_blank_follows_the_negated_verb():
    items = [
        triple("nurse", "The nurse is very BLANK today.", ("kind", "rude", "rusty")),
        triple("nurse", "The BLANK nurse came.", ("kind", "rude", "rusty")),
        triple("nurse", "The nurse is here, but he is BLANK.", ("kind", "rude", "rusty")),
    ]
    negated = controls(items, "negate")
    [control] = negated.controls
    assert control.context == "The nurse is not very BLANK today."
    assert control.texts[1] == "The nurse is not very rude today."
    assert sum(negated.left_out.values()) == 2


def test_sentences_after_a_context_are_negated():
    item = Triple(
        "intersentence",
        "nurse",
        "profession",
        "The nurse came.",
        ("She is kind.", "He shouted.", "Iron is old."),
    )
    [control] = controls([item], "negate").controls
    assert control.context == item.context
    assert control.texts == ("She is not kind.", "He did not shout.", "Iron is not old.")


def test_another_group_takes_the_place_of_the_term():
    terms = ("actor", "baker", "cook", "driver", "editor", "farmer")
    items = [
        triple(term, f"He is a{'n' * (term[0] in 'ae')} {term}, BLANK.", "xyz") for term in terms
    ]
    rewritten = controls(items, "identity")
    for item, control in zip(items, rewritten.controls, strict=True):
        assert control.target == item.target  # still the sampling unit
        assert item.target not in control.context
        [other] = [term for term in terms if f" {term}," in control.context]
        article = "an" if other[0] in "ae" else "a"
        assert control.context == f"He is {article} {other}, BLANK."
        assert control.texts[0] == f"He is {article} {other}, x."
    assert controls(items, "identity", seed=1).controls != rewritten.controls
    with pytest.raises(InputError, match="expected items that can be rewritten, got none of 3"):
        controls(items[:3], "identity")


def test_the_groups_of_a_pair_are_replaced_in_their_order():
    rewritten = controls(pairs(), "identity")
    advantaged = {"american", "canadian", "austrian"}
    for original, control in zip(rewritten.originals, rewritten.controls, strict=True):
        more, less = (text.split()[1] for text in (control.more, control.less))
        assert less in advantaged
        assert more not in advantaged
        assert more not in original.more
        assert control.more.split()[2:] == original.more.split()[2:]


def test_the_right_answer_follows_a_negated_question():
    known = replace(questions()[0], right=0, ambiguous=False)
    [control] = controls([known], "negate").controls
    assert control.question == "Who was not late?"
    assert control.right == 1
    assert control.agrees(0) == known.agrees(0)


@pytest.mark.parametrize(
    ("material", "kind", "message"),
    [
        (pairs(), "swap", "expected negate or identity for items of this kind"),
        (sentences(), "identity", "expected negate for items of this kind"),
        ([], "negate", "expected items of one type"),
        (None, "negate", "expected items of one type"),
        ([*pairs(), *sentences()], "negate", "expected items of one type"),
        (pairs(), "reverse", "control"),
    ],
)
def test_what_does_not_fit_is_refused(material, kind, message):
    with pytest.raises(InputError, match=message):
        controls(material, kind)


def test_a_measurement_is_marked():
    material = profession_items()
    model = likes_words("negate")
    check = check_control(StereoSet(), model, material, "negate", Run())
    marked = mark_control(StereoSet().measure(model, material), check)
    assert marked.details["outcome"] == "survives"
    assert marked.notes[0] == check.notes[0]
    assert [part.query for part in marked.select("control")] == [
        "negate: original",
        "negate: control",
    ]
    assert Measurement.from_dict(marked.to_dict()) == marked
