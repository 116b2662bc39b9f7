"""Parity: as many men as women get each class, at the least change of the probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from small_runs import Runs, chosen

from evenhand.errors import InputError
from evenhand.fewshot.answers import Classifier, FewShotPredictions
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.parity import equalize, offsets


def classifier(world, seed=0, genders=None):
    both = replace(world, episodes=60).counterfactuals(np.random.default_rng(seed), 8, leak=1.0)
    answers = both.original if genders is None else replace(both.original, genders=genders)
    return Classifier.of(answers, both.leaning, both.swapped.log_probs)


def means(answers, gender):
    """The mean probabilities over the queries of a gender in each episode, NaN without any."""
    mask = (answers.genders == gender)[:, :, None]
    with np.errstate(invalid="ignore"):
        return (np.exp(answers.log_probs) * mask).sum(axis=1) / mask.sum(axis=1)


def test_two_classes_by_hand():
    """With two classes one shift of the log-odds for each gender is all there is to find."""
    shares = np.array([0.9, 0.6, 0.2, 0.5])
    log_probs = np.log(np.stack([shares, 1 - shares], axis=1))[None]
    answers = FewShotPredictions(
        log_probs, np.arange(4)[None], np.zeros((1, 4), int), np.array([[0, 1]]), [[0, 0, 1, -1]]
    )
    target = shares[:3].mean()
    odds = np.log(shares / (1 - shares))

    def share(shift):
        return 1 / (1 + np.exp(-(odds + shift)))

    man = brentq(lambda shift: share(shift)[:2].mean() - target, -9, 9)
    woman = brentq(lambda shift: share(shift)[2] - target, -9, 9)
    made = equalize(Classifier("x", answers)).answers
    found = np.exp(made.log_probs[0, :, 0])
    expected = [*share(man)[:2], share(woman)[2], 0.5]  # the last has no known gender
    assert found == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(np.exp(made.log_probs).sum(axis=2), 1)


def test_shares_are_equal_in_every_episode(world):
    before = classifier(world)
    after = equalize(before)
    men, women = (means(after.answers, gender) for gender in (0, 1))
    assert np.abs(men - women).max() < 1e-6
    assert np.abs(means(before.answers, 0) - means(before.answers, 1)).max() > 0.2
    gaps = [Bias(permutations=1)(each).part("shares", by="parity") for each in (before, after)]
    assert gaps[0].low > 3 * abs(gaps[1].value)
    assert gaps[0].details == gaps[1].details  # of the true classes


def test_the_offsets_are_of_the_gender_and_see_no_label(world):
    before = classifier(world)
    after, added = equalize(before), offsets(before.answers)
    genders = before.answers.genders
    for own, gender in (
        ((before.answers, after.answers), genders),
        ((before.counterfactuals.swapped, after.counterfactuals.swapped), 1 - genders),
    ):
        moved = own[1].log_probs - own[0].log_probs
        moved -= np.take_along_axis(added, gender[:, :, None], axis=1)
        clear = own[1].log_probs > -27  # smaller ones are cut off
        offset = np.where(clear, moved, np.nan)
        assert np.nanmax(np.nanmax(offset, axis=2) - np.nanmin(offset, axis=2)) < 1e-9
    other = replace(before.answers, truth=before.answers.truth[:, ::-1])
    np.testing.assert_array_equal(offsets(other), added)


def test_episodes_of_one_gender_and_other_persons_stay(world):
    genders = classifier(world).answers.genders.copy()
    genders[0] = np.where(genders[0] == 1, -2, genders[0])
    genders[1] = -1
    before = classifier(world, genders=genders)
    after = equalize(before)
    for version in ("answers", "counterfactuals"):
        own, made = (getattr(each, version) for each in (before, after))
        if version == "counterfactuals":
            own, made = own.swapped, made.swapped
        np.testing.assert_allclose(made.log_probs[:2], own.log_probs[:2], atol=1e-12)
        assert np.abs(made.log_probs[2:] - own.log_probs[2:]).max() > 0.1


def test_parity_gap_by_hand():
    """Class 0 leans male: of two men one gets it, of two women none; class 1 the other way."""
    log_probs = np.log([[[0.8, 0.2], [0.3, 0.7], [0.1, 0.9], [0.4, 0.6]]] * 2)
    truth = [[0, 0, 1, 1]] * 2
    answers = FewShotPredictions(
        log_probs, [[0, 1, 2, 3]] * 2, truth, [[0, 1]] * 2, [[0, 0, 1, 1]] * 2, ("a", "b")
    )
    own = Classifier.of(answers, np.array([0, 1]), log_probs)
    part = Bias(permutations=1)(own).part("shares", by="parity")
    assert part.value == pytest.approx(0.5)
    assert part.details["labels"] == pytest.approx(1.0)
    one = replace(answers, genders=np.zeros((2, 4), int))
    assert not Bias(permutations=1)(Classifier.of(one, np.array([0, 1]), log_probs)).select(
        "parity"
    )


@pytest.mark.slow
def test_a_run_with_parity_is_the_run_without_and_its_answers_equalised(tmp_path):
    runs = Runs(tmp_path)
    base, made = runs.done(), runs.done(mitigation="parity")
    expected = equalize(base.saved[0][0])
    for version in ("original", "swapped"):
        own, other = (
            getattr(each.counterfactuals, version).log_probs
            for each in (made.saved[0][0], expected)
        )
        np.testing.assert_allclose(own, other, atol=1e-5)
    assert made.name == "proto-euclidean parity"


def test_parity_changes_no_training():
    with pytest.raises(InputError, match="mitigate=: expected all with parity"):
        chosen(mitigation="parity", mitigate="train")
