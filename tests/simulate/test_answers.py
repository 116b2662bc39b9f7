"""Simulated answers: their dials are what they say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.simulate.answers import REFUSAL, AnswerWorld, TextWorld

KINDS = ("continuous", "share", "count", "yes")


def gap(frame: pd.DataFrame) -> float:
    means = frame.groupby(frame.columns[frame.columns.get_loc("sample") - 1]).score.mean()
    return means["woman"] - means["man"]


@pytest.mark.parametrize("score", KINDS)
@pytest.mark.parametrize("effect", [0.0, 0.5])
def test_the_difference_is_the_truth_on_average(score, effect):
    world = AnswerWorld(items=60, samples=2, score=score, effect=effect, item_group=0.3)
    gaps = np.array([gap(world.draw(seed)) for seed in range(60)])
    assert abs(gaps.mean() - world.truth) <= 4 * gaps.std(ddof=1) / math.sqrt(len(gaps))
    assert (world.truth > 0) == (effect > 0)


def test_effects_are_in_standard_deviations_of_answers():
    world = AnswerWorld(items=2000, samples=2, effect=0.5)
    frame = world.draw(1)
    sd = frame.groupby("gender").score.std().mean()
    assert sd == pytest.approx(math.sqrt(world.between + world.within), rel=0.05)
    assert world.truth == pytest.approx(0.5 * sd, rel=0.06)


def test_samples_of_a_prompt_are_alike_by_the_icc():
    world = AnswerWorld(items=1500, samples=2, item=1.0, item_group=0.0, noise=1.0)
    one, two = (part.score.to_numpy() for _, part in world.draw(2).groupby("sample"))
    assert world.icc == 0.5
    assert np.corrcoef(one, two)[0, 1] == pytest.approx(0.5, abs=0.04)


def test_wordings_and_topics_have_their_spreads():
    world = AnswerWorld(
        items=40, wordings=50, samples=1, topics=20, item=0.0, item_group=0.0, noise=0.1,
        wording=2.0, topic=1.0,
    )  # fmt: skip
    frame = world.draw(3)
    assert set(frame.groupby("topic").item.nunique()) == {2}
    assert frame.groupby("wording").score.mean().std() == pytest.approx(2.0, rel=0.35)
    assert frame.groupby("topic").score.mean().std() == pytest.approx(1.0, rel=0.45)


def test_unpaired_and_missing_items():
    unpaired = AnswerWorld(items=20, paired=False, first=0.25).draw()
    assert unpaired.groupby("gender").item.nunique().to_dict() == {"woman": 5, "man": 15}
    assert set(unpaired.groupby("item").gender.nunique()) == {1}
    missing = AnswerWorld(items=20, missing=0.8).draw()
    assert missing.groupby("gender").item.nunique().to_dict() == {"woman": 20, "man": 4}


def test_the_spread_of_the_first_group():
    world = AnswerWorld(items=4000, samples=1, paired=False, first_spread=3.0, noise=0.1)
    sd = world.draw(11).groupby("gender").score.std()
    assert sd["woman"] / sd["man"] == pytest.approx(3.0, rel=0.1)
    assert world.truth == pytest.approx(0.0, abs=1e-9)
    assert AnswerWorld(score="share", centre=-2.0, first_spread=3.0).truth > 0


def test_intersections():
    groups = {"gender": ("woman", "man"), "race": ("a", "b")}
    world = AnswerWorld(items=3000, samples=1, groups=groups, interaction=0.8)
    means = world.draw(4).groupby(["gender", "race"]).score.mean()
    others = means.drop(("woman", "a"))
    sd = math.sqrt(world.between + world.within)
    assert means["woman", "a"] - others.mean() == pytest.approx(0.8 * sd, abs=0.1)
    assert world.truth == pytest.approx(0.4 * sd)


def test_refusals_have_no_score():
    world = AnswerWorld(items=400, samples=5, refused=0.2, refused_effect=1.5, item=0, item_group=0)
    frame = world.draw(5)
    refused = frame[frame.outcome == "refused"]
    assert set(refused.text) == {REFUSAL}
    assert refused.score.isna().all()
    assert frame[frame.outcome == "answered"].score.notna().all()
    shares = (frame.outcome == "refused").groupby(frame.gender).mean()
    assert shares["man"] == pytest.approx(0.2, abs=0.03)
    assert shares["woman"] == pytest.approx(1 / (1 + 4 * math.exp(-1.5)), abs=0.03)


def test_the_judge_errs_by_group():
    world = AnswerWorld(
        items=500, score="yes", sensitivity=(0.9, 0.6), specificity=(0.95, 0.8)
    )  # fmt: skip
    frame = world.draw(6)
    right = (frame.label == frame.judged).groupby([frame.gender, frame.label]).mean()
    expected = {
        ("woman", "yes"): 0.9,
        ("man", "yes"): 0.6,
        ("woman", "no"): 0.95,
        ("man", "no"): 0.8,
    }
    assert right.to_dict() == pytest.approx(expected, abs=0.04)
    assert set(frame[frame.label == "yes"].text) == {"Yes."}


def test_counts_are_the_words_of_the_text():
    frame = AnswerWorld(score="count", centre=2.0).draw(7)
    assert [len(text.split()) for text in frame.text] == frame.score.to_list()


def test_texts_are_about_as_many_women_as_the_truth_says():
    world = TextWorld(items=100, samples=10, women=0.3, item=1.0, neutral=0.1, nobody=0.2)
    shares = []
    for seed in range(12):
        about = world.draw(seed).about.value_counts(normalize=True)
        shares.append(about["woman"] / (about["woman"] + about["man"]))
        assert about["nobody"] == pytest.approx(0.2, abs=0.06)
    assert np.mean(shares) == pytest.approx(world.truth, abs=4 * np.std(shares) / math.sqrt(12))


def test_pronouns_say_whom_a_text_is_about():
    frame = TextWorld(items=10).draw(8)
    words = [set(text.lower().replace(".", "").split()) for text in frame.text]
    for own, about in zip(words, frame.about, strict=True):
        assert ("she" in own, "he" in own, "they" in own) == (
            about == "woman",
            about == "man",
            about == "neutral",
        )


def test_a_stated_group_is_written_about():
    frame = TextWorld(items=3, stated=True).draw(9)
    assert (frame.about == frame.group).all()
    assert set(frame.groupby("item").group.nunique()) == {2}


def test_words_have_their_log_odds():
    world = TextWorld(items=120, samples=10, stated=True, words=1.0, burst=0.0)
    odds = {}
    for group, part in world.draw(10).groupby("group"):
        words = " ".join(part.text).replace(".", "").replace(",", "").lower().split()
        typical = sum(word in world.typical for word in words)
        odds[group] = typical / (3 * len(part) - typical)
    assert math.log(odds["woman"] / odds["man"]) == pytest.approx(1.0, abs=0.25)


def test_the_same_seed_draws_the_same():
    pd.testing.assert_frame_equal(AnswerWorld().draw(3), AnswerWorld().draw(3))
    pd.testing.assert_frame_equal(TextWorld().draw(3), TextWorld().draw(3))


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (lambda: AnswerWorld(samples=0), "at least one item, wording and sample"),
        (lambda: AnswerWorld(sensitivity=(0.9,)), "sensitivity: expected one of each of 2 groups"),
        (lambda: TextWorld(items=121), "items: expected 1 to 120, got 121"),
    ],
)
def test_impossible_dials(world, message):
    with pytest.raises(InputError, match=message):
        world()
