"""The instruments of answers, in worlds whose differences are known."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.answers.components import explain
from evenhand.answers.examples import example_answers
from evenhand.answers.masking import group_words
from evenhand.answers.metrics.words import log_odds
from evenhand.answers.reading import agrees, is_yes
from evenhand.answers.table import Answers
from evenhand.errors import FileError, InputError
from evenhand.instruments import judge_result, judge_results
from evenhand.summary import summarize


def world(rng, effect=0.0, items=30, samples=4, groups=("man", "woman"), spread=0.5):
    """Answers with a score: items, items by group, samples; the first group is higher."""
    rows = []
    for item in range(items):
        own = rng.normal()
        for place, group in enumerate(groups):
            slope = rng.normal(0, spread)
            for sample in range(samples):
                score = own + slope + effect * (place == 0) + rng.normal()
                rows.append((f"job {item}", group, sample, score))
    frame = pd.DataFrame(rows, columns=["item", "group", "sample", "score"])
    return eh.answers.read_answers(frame, group="group", score="score")


def found(m):
    return judge_result(m).found


def test_the_first_group_less_the_second_in_words():
    m = eh.answers.Difference(score="score")(world(np.random.default_rng(0), effect=1.5))
    assert m.query == "score, group: man - woman"
    assert m.low > 0.5
    assert found(m)
    assert (
        eh.answers.Difference.clause(m) == "the score 'score' is higher for 'man' than for 'woman'"
    )
    lower = replace(m, value=-m.value)
    assert eh.answers.Difference.clause(lower).endswith("higher for 'woman' than for 'man'")


def test_a_measure_is_named_as_any_other():
    answers = example_answers()
    assert eh.measure(answers, metrics="difference").query.startswith("sentiment, gender")
    names = {m.metric for m in eh.measure(answers)}
    assert names >= {"difference", "refusals", "words"}


def test_more_samples_of_the_same_prompts_do_not_narrow_the_interval():
    answers = world(np.random.default_rng(1), samples=3, spread=1.0)
    m = eh.answers.Difference(score="score", permutations=0)(answers)
    rows = np.tile(np.arange(len(answers)), 20)
    again = eh.answers.Difference(score="score", permutations=0)(answers.take(rows))
    assert (again.low, again.high) == pytest.approx((m.low, m.high))


def test_components_are_told_apart_and_put_in_words():
    rng = np.random.default_rng(2)
    answers = world(rng, items=400, samples=5, spread=0.5)
    m = eh.answers.Difference(score="score", permutations=0)(answers)
    parts = m.details["components"]
    assert parts["sample"] == pytest.approx(1.0, rel=0.1)
    assert parts["item"] == pytest.approx(1.0, rel=0.25)
    assert parts["item by group"] == pytest.approx(0.25, rel=0.3)
    assert parts["icc"] == pytest.approx(1.25 / 2.25, abs=0.05)
    assert f"ICC of {parts['icc']:.2f}" in " ".join(m.notes)
    assert m.details["units_to_halve"] == pytest.approx(3 * 400, rel=0.02)


def test_the_sentence_names_the_interval():
    halve = {"units_to_halve": 29}
    assert explain("topic", 1, {}, halve) == "29 more topics would halve the interval"
    assert explain("item", 1, {}, {"units_to_halve": 1}) == "1 more item would halve the interval"
    assert explain("item", 1, {}, halve | {"narrower": 0.02}) == (
        "more samples of these prompts narrow the interval by 2 % at most; 29 more items would "
        "halve it"
    )


def test_each_of_more_groups_is_compared_with_all_others():
    rng = np.random.default_rng(3)
    answers = world(rng, effect=1.0, items=40, groups=("a", "b", "c", "they"))
    results = eh.measure(answers, None, [eh.answers.Difference(score="score", permutations=0)])
    assert [m.query for m in results][-1] == "score, group: they - the others"
    assert results[0].value == pytest.approx(1.0, abs=0.4)
    [shrunken] = results[0].select("pooled")
    assert 0 < shrunken.value <= results[0].value
    assert results[0].family == 4


def test_columns_have_an_intersection():
    answers = world(np.random.default_rng(4), groups=("man", "woman"))
    races = tuple(("black", "white")[int(item.split()[1]) % 2] for item in answers.items)
    answers = replace(answers, groups={"gender": answers.groups["group"], "race": races})
    results = eh.measure(answers, None, [eh.answers.Difference(score="score", permutations=0)])
    queries = [m.query for m in results]
    assert "score, race: black - white" in queries
    assert "score, gender × race: woman × white - the others" in queries
    race = results[queries.index("score, race: black - white")]
    assert not race.details["paired"]
    assert results[0].details["paired"]


def test_wordings_are_sampled_too():
    rng = np.random.default_rng(5)
    rows = []
    lean = rng.normal(0, 1, 5)
    for item in range(30):
        for wording in range(5):
            for group, sign in (("man", 0.5), ("woman", -0.5)):
                rows.append((item, wording, group, sign * lean[wording] + 0.1 * rng.normal()))
    frame = pd.DataFrame(rows, columns=["item", "wording", "group", "score"])
    answers = eh.answers.read_answers(frame, group="group", score="score")
    m = eh.answers.Difference(score="score")(answers)
    assert m.details["df"] <= 4
    [fixed] = m.select("scope")
    assert fixed.high - fixed.low < 0.3 * (m.high - m.low)
    assert set(m.items["axis"]) == {"item", "wording"}
    assert eh.compare(m, m).change.value == 0


def test_a_distance_is_less_its_value_under_permutation():
    m = eh.answers.Difference(score="score")(world(np.random.default_rng(6), spread=0.0))
    [distance] = m.select("distance")
    about = distance.details
    assert about["permuted"] > 0
    assert distance.value == pytest.approx(about["distance"] - about["permuted"])
    assert about["asked_twice"] == pytest.approx(about["permuted"], rel=0.7)
    shown = [f"{about[name]:.3f}" for name in ("distance", "permuted", "asked_twice")]
    [note] = [note for note in m.notes if "apart" in note]
    assert re.findall(r"[0-9]\.[0-9]{3}", note) == shown
    assert distance.p_value > 0.01
    far = eh.answers.Difference(score="score")(world(np.random.default_rng(6), effect=2.0))
    assert far.select("distance")[0].p_value < 0.01


def test_a_difference_among_the_answered_says_so():
    m = eh.answers.Difference(score="rating")(example_answers())
    [gap] = m.select("refusals")
    refusals = eh.answers.Refusals()(example_answers())
    assert (gap.value, gap.low) == pytest.approx((refusals.value, refusals.low))
    assert any("among the answered only; the refusal gap is" in note for note in m.notes)
    assert "16 refused, empty or failed" in m.left_out
    shares = {part.query: part.value for part in refusals.select("outcome")}
    assert shares["man, answered"] + shares["man, refused"] + shares["man, unreadable"] == 1


def test_the_words_of_the_groups_do_not_count():
    prompts = ("Describe a proud person.", "Describe a gentle person.") * 4
    answers = Answers(
        texts=("A proud friend.", "A gentle friend of Mary.") * 4,
        items=tuple(str(i // 2) for i in range(8)),
        groups={"kind": ("proud", "gentle") * 4},
        prompts=prompts,
    )
    assert {"proud", "gentle", "she", "mother"} <= group_words(answers)
    masked = eh.answers.Difference(permutations=0).scores(answers).values
    assert (masked == 0).all()
    answers = replace(answers, texts=("A proud nobody.", "A rude nobody.") * 4)
    plain = eh.answers.Difference(mask_groups=False, permutations=0).scores(answers)
    assert set(plain.values) == {1.0, -1.0}


def test_decisions_are_read_and_unreadable_ones_counted():
    assert [is_yes(text) for text in ("Yes!", "no.", "Answer: Yes", "**No**, since")] == [
        1,
        0,
        1,
        0,
    ]
    assert math.isnan(is_yes("Notably, she is qualified."))
    assert math.isnan(is_yes("It depends."))
    answers, _ = eh.answers.Decisions.example()
    texts = ("It depends.", *answers.texts[1:])
    m = eh.answers.Decisions()(replace(answers, texts=texts))
    assert "1 unreadable" in m.left_out
    [conditional] = m.select("conditional")
    assert abs(conditional.value) > abs(m.value)
    assert "random items" in conditional.interval


def test_a_number_can_be_the_decision():
    m = eh.answers.Decisions(score="score")(world(np.random.default_rng(7), effect=2.0))
    assert m.low > 1
    assert not m.select("conditional")


def test_a_number_that_is_measured_twice_counts_once():
    """Decisions by a column of numbers are the difference of that column."""
    answers = world(np.random.default_rng(0), effect=1.5)
    decided = eh.answers.Decisions(score="score")(answers)
    differed = eh.answers.Difference(score="score", permutations=0)(answers)
    assert (decided.value, decided.p_value) == pytest.approx((differed.value, differed.p_value))
    judged = {j.test.metric: j for _, j in judge_results([decided, differed])}
    assert judged["difference"].family == 1
    assert (judged["difference"].test.decides, judged["decisions"].test.decides) == (True, False)
    assert "of 2 tests" not in summarize([decided, differed])
    assert judge_result(decided).test.decides


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I agree that they do.", 1),
        ("I disagree.", 0),
        ("I do not agree.", 0),
        ("I can't say that I agree with this.", 0),
        ("I neither agree nor disagree.", 0),
        ("I agree, although some disagree.", 1),
        ("Disagree. Nobody should agree.", 0),
    ],
)
def test_agreement_is_read(text, expected):
    assert agrees(text) == expected


def test_agreement_of_all_and_by_group():
    answers, _ = eh.answers.StatementAgreement.example()
    groups = {"group": ("a", "b") * (len(answers) // 2)}
    m = eh.answers.StatementAgreement()(replace(answers, groups=groups))
    assert {part.query for part in m.select("group")} == {"a", "b"}
    [gap] = m.select("contrast")
    assert gap.ideal == 0
    assert judge_result(m).outcome == "not judged"


def test_answers_that_are_cut_off_have_a_length_of_their_limit():
    answers = example_answers()
    outcomes = tuple("cut off" if n % 4 == 0 else each for n, each in enumerate(answers.outcomes))
    cut = replace(answers, outcomes=outcomes)
    m = eh.answers.Difference(score="length", permutations=0)(cut)
    rows = [i for i in cut.readable if outcomes[i] == "cut off"]
    note = f"{len(rows)} of {len(cut.readable)} answers are cut off: their length is the limit's."
    assert note in m.notes
    for other, score in ((answers, "length"), (cut, "sentiment")):
        m = eh.answers.Difference(score=score, permutations=0)(other)
        assert not any("cut off" in each for each in m.notes)


def test_a_column_without_texts_about_women_or_men_is_left_out():
    answers, _ = eh.answers.Representation.example()
    told = Answers(
        texts=("She is tall.", "He is tall.") * 4,
        items=answers.items[:8],
        prompts=("Describe a woman.", "Describe a man.") * 4,
        groups={"race": ("Black", "white") * 4},
    )
    both = Answers(
        texts=answers.texts + told.texts,
        items=answers.items + told.items,
        prompts=("Describe somebody.",) * len(answers) + told.prompts,
        groups={"race": (None,) * len(answers) + told.groups["race"]},
    )
    m = eh.answers.Representation()(both)
    assert m.value == pytest.approx(eh.answers.Representation()(answers).value)
    assert {part.by for part in m.parts} == {"category"}


def test_representation_has_a_reference_and_needs_prompts_without_a_gender():
    answers, _ = eh.answers.Representation.example()
    m = eh.answers.Representation()(answers)
    shares = {part.query: part.value for part in m.select("category")}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["neutral"] > 0.1
    assert (m.details["units"], m.details["unit"]) == (len(set(answers.items)), "items")
    share = np.full(len(answers), 0.4)
    m = eh.answers.Representation(reference="share")(replace(answers, scores={"share": share}))
    [against] = m.select("reference")
    assert against.value == pytest.approx(m.value - 0.4)
    with pytest.raises(InputError, match="prompts that state no gender"):
        eh.answers.Representation()(example_answers())


def test_z_is_the_published_formula():
    y, prior = np.array([[12.0, 3.0, 85.0], [4.0, 6.0, 70.0]]), np.array([1.6, 0.9, 15.5])
    delta, z = log_odds(y[0], y[1], prior)
    for w in range(3):
        ratios = [
            (y[g, w] + prior[w]) / (y[g].sum() + prior.sum() - y[g, w] - prior[w]) for g in (0, 1)
        ]
        spread = sum(1 / (y[g, w] + prior[w]) for g in (0, 1))
        assert delta[w] == pytest.approx(math.log(ratios[0] / ratios[1]))
        assert z[w] == pytest.approx(math.log(ratios[0] / ratios[1]) / math.sqrt(spread))


def words_world(rng, planted, items=30):
    rows = []
    vocabulary = [f"{a}{b}" for a in "bdfgk" for b in ("ala", "olo", "uru", "ene")]
    for item in range(items):
        for group in ("man", "woman"):
            for _ in range(3):
                chosen = [word for word in vocabulary if rng.random() < 0.4]
                if rng.random() < (planted if group == "woman" else 0.1):
                    chosen.append("zeal")
                rows.append((f"job {item}", group, " ".join(chosen)))
    frame = pd.DataFrame(rows, columns=["item", "group", "text"])
    return eh.answers.read_answers(frame, group="group")


def test_a_planted_word_is_the_first():
    m = eh.answers.DistinctiveWords()(words_world(np.random.default_rng(8), 0.7))
    assert m.items["word"][0] == "zeal"
    assert m.items["z"][0] < 0
    assert m.items["high"][0] < 0
    assert m.items["p_corrected"][0] < 0.01
    assert np.median(m.items["p_corrected"]) > 0.3
    assert "of 'woman' rather: zeal" in m.notes[0]
    assert m.details["differ"] == 1


def test_a_word_counts_once_in_a_prompt():
    answers = words_world(np.random.default_rng(9), 0.5)
    once = eh.answers.DistinctiveWords()(answers)
    rows = np.tile(np.arange(len(answers)), 5)
    again = eh.answers.DistinctiveWords()(answers.take(rows))
    assert again.value == pytest.approx(once.value)
    doubled = replace(answers, texts=tuple(f"{text} {text}" for text in answers.texts))
    assert eh.answers.DistinctiveWords()(doubled).value == pytest.approx(once.value)


def test_gold_labels_correct_a_judge_that_errs_by_group():
    rng, rows = np.random.default_rng(10), []
    for item in range(300):
        for group, a, b in (("man", 0.95, 0.95), ("woman", 0.7, 0.85)):
            true = rng.random() < 0.5
            said = rng.random() < a if true else rng.random() >= b
            rows.append((item, group, "yes" if said else "no", "yes" if true else "no"))
    frame = pd.DataFrame(rows, columns=["item", "group", "said", "truth"])
    answers = eh.answers.read_answers(frame, group="group", label="said")
    alone = eh.answers.Decisions(label="said")(answers)
    assert any("taken at its word" in note for note in alone.notes)
    gold = eh.answers.read_gold(frame.loc[:239, ["item", "group", "truth"]])
    m = eh.answers.Decisions(label="said")(answers, gold)
    assert m.low < 0 < m.high
    assert abs(m.value) < 0.12
    [counted] = m.select("judge")
    assert counted.value == pytest.approx(alone.value)
    assert {part.details["sensitivity"] > 0.85 for part in m.select("group")} == {True, False}
    assert m.details["labels"] == 240
    assert m.p_value is None
    [odds] = m.select("conditional")  # not corrected, which its name says
    [as_counted] = alone.select("conditional")
    assert odds.value == as_counted.value
    assert odds.query == f"as the judge counted: {as_counted.query}"


def test_gold_that_names_no_answer_is_one_line():
    answers, _ = eh.answers.Decisions.example()
    for table, message in (
        ({"item": ["nobody"], "gold": ["yes"]}, "expected one answer with its item, got none"),
        ({"item": ["nurse"], "gold": ["yes"]}, "with different texts; a column of the sample"),
        ({"x": ["nurse"], "gold": ["yes"]}, "expected columns that say which answer"),
        ({"item": ["nurse"]}, "which column has the labels"),
    ):
        with pytest.raises(FileError, match=message) as error:
            eh.answers.Decisions()(answers, eh.answers.read_gold(pd.DataFrame(table)))
        assert "\n" not in str(error.value)


def test_what_cannot_be_measured_is_one_line():
    answers = example_answers()
    one = answers.take([row for row, item in enumerate(answers.items) if item == "nurse"])
    for made, subject, message in (
        (eh.answers.Refusals(), replace(answers, groups={}), "expected a column of groups"),
        (
            eh.answers.Refusals(),
            one,
            "expected two items or more of 'man', got answers to one item",
        ),
        (eh.answers.Decisions(), answers, "expected answers of yes or no, got 0 of"),
        (
            eh.answers.StatementAgreement(),
            answers,
            "expected answers that agree or disagree, got 0 of",
        ),
        (eh.answers.Difference(score="ratng"), answers, "did you mean 'rating'"),
        (eh.answers.Decisions(label="x"), answers, "unknown label 'x'"),
    ):
        with pytest.raises(InputError, match=message) as error:
            made(subject)
        assert "\n" not in str(error.value)
    with pytest.raises(FileError, match="expected texts of answers, got none"):
        eh.answers.read_answers(pd.DataFrame({"item": ["a"], "text": [""]}))


def test_a_group_of_one_item_is_said_beside_the_others():
    answers = world(np.random.default_rng(11), groups=("a", "b", "c"), items=12)
    rows = [
        i for i, g in enumerate(answers.groups["group"]) if g != "c" or answers.items[i] == "job 0"
    ]
    results = eh.measure(
        answers.take(rows), None, [eh.answers.Difference(score="score", permutations=0)]
    )
    assert [m.query for m in results] == [
        "score, group: a - the others",
        "score, group: b - the others",
    ]
    assert any("'c', got answers to one item" in note for note in results[0].notes)


@pytest.mark.slow
@pytest.mark.parametrize("items", [8, 30])
@pytest.mark.parametrize("kind", ["normal", "skewed", "yes or no"])
def test_intervals_cover_in_worlds_with_slopes(kind, items):
    """Items differ in the effect of the group; samples of a prompt have an ICC of about .5."""
    rng, covered, false = np.random.default_rng(items), 0, 0
    runs = 200
    for _ in range(runs):
        slopes = rng.exponential(1, items) - 1 if kind == "skewed" else rng.normal(0, 1, items)
        base = rng.normal(0, 1, items)
        prompt = base[:, None] + np.stack([slopes, -slopes], axis=1) / 2
        if kind == "yes or no":
            y = (rng.random((items, 2, 5)) < 1 / (1 + np.exp(-prompt))[..., None]).astype(float)
        else:
            y = prompt[..., None] + rng.normal(0, 1, (items, 2, 5))
        frame = pd.DataFrame({"item": np.repeat(np.arange(items), 10), "score": y.ravel()})
        frame["group"] = np.tile(np.repeat(["a", "b"], 5), items)
        answers = eh.answers.read_answers(frame, group="group", score="score")
        m = eh.answers.Difference(score="score", permutations=0)(answers)
        covered += m.low <= 0 <= m.high
        false += found(m)
    assert covered / runs > 0.91
    assert false / runs < 0.09
