"""Whole few-shot runs: the numbers of a plain loop, nothing that leaks, settings checked early."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
from small_runs import Runs, chosen, episodes_of

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot import Dataset, training
from evenhand.fewshot.answers import leaning_codes
from evenhand.fewshot.encoders import encode
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.mitigation import neutralize, swap_gender
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import RunMaterial, draw_parts, prepare, read_run, summarise
from evenhand.fewshot.settings import EpisodeCounts, RunSettings
from evenhand.fewshot.splits import Split, load_splits
from evenhand.fewshot.training import TrainedNetwork
from evenhand.files import to_json
from evenhand.instruments import compare, measure
from evenhand.results import load


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"))


class ByHand:
    """The trained prototypical network of a run applied to one text at a time."""

    def __init__(self, found, encoder):
        trained = TrainedNetwork.load(found.folder / "split-0" / "seed-0")
        self.encoder, self.points = encoder, {}
        self.mean = trained.network.mean.double().numpy()
        self.deviation = trained.network.deviation.double().numpy()
        self.turn = trained.network.projection.detach().double().numpy()
        self.scale = math.exp(trained.network.metric.log_scale.item())

    def read(self, texts):
        for text, vector in zip(texts, encode(self.encoder, texts), strict=True):
            self.points[text] = self.turn @ ((vector - self.mean) / self.deviation)

    def __call__(self, support, query):
        """Log-probabilities of a text given the texts of each class."""
        centres = [np.mean([self.points[text] for text in texts], axis=0) for texts in support]
        near = [-self.scale * ((self.points[query] - centre) ** 2).sum() for centre in centres]
        return near - np.logaddexp.reduce(near)


def readings(mitigation, texts):
    """The supports of each row, its query, and its counterfactual."""
    swapped_texts = swap_gender(texts, names="fixed")
    given = [[text] for text in texts]
    if "augment" in mitigation:
        given = [[text, other] for text, other in zip(texts, swap_gender(texts), strict=True)]
    if "neutralize" in mitigation:
        given = [neutralize(each) for each in given]
        texts, swapped_texts = neutralize(texts), neutralize(swapped_texts)
    return given, texts, swapped_texts


@pytest.mark.parametrize(
    ("mitigation", "mitigate"),
    [
        *((name, "all") for name in ("none", "augment", "neutralize", "calibrate")),
        ("augment+neutralize", "all"),
        ("neutralize", "train"),
        ("augment+neutralize+calibrate", "train"),
    ],
)
def test_answers_are_those_of_a_plain_loop(runs, mitigation, mitigate):
    people = runs.people
    found = runs.done(mitigation=mitigation, mitigate=mitigate)
    tested = mitigation if mitigate == "all" else "none"
    given, asked, swapped_texts = readings(tested, people.texts)
    assert sum(
        text != counterfactual
        for text, counterfactual in zip(people.texts, swapped_texts, strict=True)
    ) > (0 if "neutralize" in tested else 0.9 * len(people))
    hand, drawn, kept = ByHand(found, runs.encoder), episodes_of(found), found.saved[0][0]
    hand.read(sorted({*(text for each in given for text in each), *asked, *swapped_texts}))
    right = total = 0
    for number in range(len(drawn)):
        support = [
            [text for row in rows for text in given[row]] for rows in drawn.support[number].tolist()
        ]
        for query, row in enumerate(drawn.query[number].ravel().tolist()):
            expected = hand(support, asked[row])
            np.testing.assert_allclose(kept.answers.log_probs[number, query], expected, atol=1e-4)
            np.testing.assert_allclose(
                kept.counterfactuals.swapped.log_probs[number, query],
                hand(support, swapped_texts[row]),
                atol=1e-4,
            )
            right += int(np.argmax(expected) == query // drawn.queries)
            total += 1
            assert (
                people.classes[people.labels[row]]
                == kept.answers.names[kept.answers.classes[number, query // drawn.queries]]
            )
            assert kept.answers.genders[number, query] == people.genders[row]
    assert found.results.accuracy.value == pytest.approx(right / total, abs=1e-12)
    assert kept.leaning.tolist() == leaning_codes(people.leaning).tolist()


def test_neutralised_counterfactuals_are_the_same_text(runs):
    """The simulated texts have no gendered word or name that is left after neutralising."""
    measured = Bias()(runs.done(mitigation="neutralize"))
    assert abs(measured.value) < 0.02
    assert abs(measured.part("epsilon").value) < 0.02
    assert np.abs(runs.done().counterfactuals.association).max() > 0.05


def test_mitigated_training_leaves_the_test_as_it_is(runs):
    """Texts to train and validate with are mitigated, those of the test are the original ones."""
    base = runs.done()
    for mitigation in ("augment", "neutralize", "calibrate"):
        found = runs.done(mitigation=mitigation, mitigate="train")
        assert found.name == f"proto-euclidean {mitigation} (train)"
        for part in ("classes", "query", "support"):
            mine, others = (getattr(episodes_of(run), part) for run in (found, base))
            np.testing.assert_array_equal(mine, others)
        mine, others = (run.saved[0][0].answers.log_probs for run in (found, base))
        assert not np.array_equal(mine, others)  # it has learned from other texts
    neutral = runs.done(mitigation="neutralize", mitigate="train")
    assert np.abs(neutral.counterfactuals.association).max() > 0.05  # not 0 by construction
    settings = chosen(mitigation="neutralize", mitigate="train")
    parts = draw_parts(runs.people, settings)
    material = prepare(runs.people, settings, parts)
    drawn = material.validation(parts[0])
    texts = [material.texts[row] for row in drawn.query.ravel()]
    plain = [runs.people.texts[row] for row in parts[0].valid.query.ravel()]
    assert texts == list(neutralize(plain))


def test_what_is_learned_from_has_one_version_and_the_test_both(runs):
    people, settings = runs.people, chosen(mitigation="anti", mitigate="train")
    parts = draw_parts(people, settings)
    material = prepare(people, settings, parts)
    leaning = leaning_codes(people.leaning)[people.labels]
    swapped = material.mitigated.pool.texts[len(people) :]
    anti = np.where(leaning == people.genders, swapped, people.texts)
    assert 0.3 < (anti == people.texts).mean() < 0.7
    for drawn, given, expected in (
        (material.training(parts[0], 0), parts[0].training(people, settings, 0), anti),
        (material.validation(parts[0]), parts[0].valid, anti),
        (material.test(parts[0]), parts[0].test, people.texts),
    ):
        for part in ("support", "query"):
            read = [material.texts[row] for row in getattr(drawn, part).ravel()]
            assert read == [expected[row] for row in getattr(given, part).ravel()]
    everywhere = replace(material, settings=replace(settings, mitigate="all")).test(parts[0])
    np.testing.assert_array_equal(everywhere.query, parts[0].test.query)
    read = [material.texts[row] for row in everywhere.support.ravel()]
    assert read == [anti[row] for row in parts[0].test.support.ravel()]


@pytest.mark.slow
def test_runs_trained_on_one_version_are_compared_on_both(runs):
    made = [runs.done(mitigation=name, mitigate="train").results.bias for name in ("pro", "anti")]
    change = compare(*made)
    for name in ("pro", "anti"):
        part = change.part(name, by="set")
        values = [own.part(name, by="set").value for own in made]
        assert part.change.value == pytest.approx(values[1] - values[0])
        assert part.change.low <= part.change.value <= part.change.high
    for own in made:
        sides = [own.part(name, by="set").value for name in ("pro", "anti")]
        assert own.part("epsilon", by="measure").value == pytest.approx(sides[0] - sides[1])


@pytest.mark.parametrize(("mitigation", "mitigate"), [("none", "all"), ("neutralize", "train")])
def test_queries_are_answered_in_their_neutral_version(runs, mitigation, mitigate):
    plain = runs.done(mitigation=mitigation, mitigate=mitigate)
    found = runs.done(mitigation=mitigation, mitigate=mitigate, neutral=True)
    mine, other = found.saved[0][0], plain.saved[0][0]
    np.testing.assert_array_equal(mine.answers.log_probs, other.answers.log_probs)
    both, without = mine.counterfactuals, other.counterfactuals
    np.testing.assert_array_equal(both.swapped.log_probs, without.swapped.log_probs)
    assert without.neutral is None
    hand, drawn = ByHand(found, runs.encoder), episodes_of(found)
    texts = runs.people.texts
    neutral = neutralize(texts)
    hand.read(sorted({*texts, *neutral}))
    for number in range(10):
        support = [[texts[row] for row in rows] for rows in drawn.support[number].tolist()]
        for query, row in enumerate(drawn.query[number].ravel().tolist()):
            expected = hand(support, neutral[row])
            np.testing.assert_allclose(both.neutral.log_probs[number, query], expected, atol=1e-4)
    ways = found.results.bias.select("version")
    assert ways[0].value == pytest.approx(found.results.bias.value)
    assert not plain.results.bias.select("version")


def test_everyone_is_asked_the_same(runs):
    base = runs.done()
    drawn = episodes_of(base)
    others = [{"network": name} for name in NAMES]
    for more in (*others, {"seed": 7}, {"episodes": "12/4/40"}):
        other = episodes_of(runs.done(**more))
        for part in ("classes", "query", "support"):
            np.testing.assert_array_equal(getattr(other, part), getattr(drawn, part))
    for mitigation in ("augment", "neutralize", "calibrate", "augment+calibrate"):
        found = runs.done(mitigation=mitigation)
        other = episodes_of(found)
        np.testing.assert_array_equal(other.query, drawn.query)
        np.testing.assert_array_equal(other.classes, drawn.classes)
        np.testing.assert_array_equal(found.saved[0][0].answers.rows, base.saved[0][0].answers.rows)
        if "calibrate" in mitigation:
            assert (runs.people.genders[other.support].sum(axis=2) == 1).all()
        else:
            np.testing.assert_array_equal(other.support, drawn.support)


def test_splits_and_seeds(runs):
    people = runs.people
    found = runs.done(splits=2, seeds=2)
    first, second = found.saved
    np.testing.assert_array_equal(first[0].answers.rows, first[1].answers.rows)
    assert not np.array_equal(first[0].answers.rows, second[0].answers.rows)
    assert not np.array_equal(first[0].answers.log_probs, first[1].answers.log_probs)
    np.testing.assert_array_equal(
        first[0].answers.log_probs, runs.done().saved[0][0].answers.log_probs
    )
    alone = runs.done(splits=1, seeds=2)
    np.testing.assert_array_equal(first[1].answers.log_probs, alone.saved[0][1].answers.log_probs)
    results = found.results
    every = [saved.answers for split in found.saved for saved in split]
    accuracies = [(each.predicted == each.truth).mean() for each in every]
    assert results.accuracy.value == pytest.approx(np.mean(accuracies))
    saved = found.saved_baseline
    baselines = [(each.answers.predicted == each.answers.truth).mean() for each in saved]
    assert results.baseline.value == pytest.approx(np.mean(baselines))
    gap = results.above_baseline.change.value
    assert gap == pytest.approx(np.mean(accuracies) - np.mean(baselines))
    assert compare(results.baseline, results.accuracy) == results.above_baseline
    assert results.accuracy.part("seed", by="component").n == 2
    assert len(found.curves) == 4
    for split, saved in enumerate(load_splits(found.folder / "splits.json")):
        asked = np.unique(people.labels[episodes_of(found, split).query])
        assert {people.classes[label] for label in asked} <= set(saved.test)


@pytest.mark.parametrize("mitigation", ["none", "augment+calibrate"])
def test_training_never_sees_the_other_classes(runs, tmp_path, monkeypatch, mitigation):
    people = runs.people
    calls = []

    def watched(name, real):
        def act(*arguments, **more):
            drawn = [each for each in arguments if isinstance(each, Episodes)]
            calls.append((name, drawn))
            return real(*arguments, **more)

        return act

    for name in ("train", "evaluate"):
        monkeypatch.setattr(training, name, watched(name, getattr(training, name)))
    monkeypatch.setattr(RunMaterial, "reduced", lambda self: self)  # rows are those of all texts
    found = runs.make(chosen(mitigation=mitigation, seeds=2), tmp_path / "run")
    split = load_splits(found.folder / "splits.json")[0]
    assert [name for name, _ in calls] == ["train", "evaluate", "evaluate"] * 2
    assert calls[0][1][0].digest != calls[3][1][0].digest  # another seed, other episodes
    for name, drawn in calls:
        parts = (split.train, split.valid) if name == "train" else (split.test,)
        for episodes, names in zip(drawn, parts, strict=True):
            places = people.indices(names)
            assert np.isin(episodes.classes, places).all()
            rows = np.concatenate([episodes.support.ravel(), episodes.query.ravel()])
            rows = rows[rows < len(people) * (2 if "augment" in mitigation else 1)] % len(people)
            assert np.isin(people.labels[rows], places).all()


def test_tuned_encoders_start_afresh_with_every_seed(runs, tmp_path):
    both = chosen(finetune=True, seeds=2, episodes="12/4/10")
    found = runs.make(both, tmp_path / "both")
    for number in range(2):
        shutil.rmtree(tmp_path / "both" / f"split-0/seed-{1 - number}")
    runs.make(both, tmp_path / "both")
    again = read_run(tmp_path / "both")
    for first, second in zip(found.saved[0], again.saved[0], strict=True):
        np.testing.assert_array_equal(first.answers.log_probs, second.answers.log_probs)
    one, other = (each.answers.log_probs for each in found.saved[0])
    assert not np.array_equal(one, other)


class TestBias:
    def test_changes_are_paired(self, runs):
        before, after = Bias()(runs.done()), Bias()(runs.done(mitigation="neutralize"))
        change = compare(before, after).part("association").change
        assert after.subject == "proto-euclidean neutralize"
        assert change.value == pytest.approx(after.value - before.value)
        assert change.low <= change.value <= change.high

    def test_saved_results_are_compared(self, runs):
        folders = [runs.done().folder, runs.done(mitigation="neutralize").folder]
        before, after = (load(folder / "results.json") for folder in folders)
        assert [m.metric for m in before] == ["accuracy", "fewshot_bias", "accuracy"]
        measured = [runs.done().results, runs.done(mitigation="neutralize").results]
        for metric, name in (("accuracy", "accuracy"), ("fewshot_bias", "bias")):
            expected = compare(*(getattr(results, name) for results in measured))
            assert compare(before[metric], after[metric]) == expected

    def test_a_run_is_measured_like_any_subject(self, runs):
        run = read_run(runs.done().folder)
        measured = measure(run, options={"permutations": 200})
        assert measured["accuracy"] == runs.done().results.accuracy
        assert measured["fewshot_bias"] == runs.done().results.bias
        assert summarise(run, Bias(permutations=200)) == runs.done().results

    def test_runs_that_cannot_be_paired(self, runs, tmp_path):
        before, people = Bias()(runs.done()), runs.people
        texts = [f"{text} So it is." for text in people.texts]
        other = replace(people, texts=tuple(texts), name="other")
        found = runs.make(chosen(), tmp_path / "run", other)
        assert found.saved[0][0].answers.same_queries(runs.done().saved[0][0].answers)
        with pytest.raises(InputError, match="expected runs on the same data, got other texts"):
            compare(before, Bias()(found))
        with pytest.raises(InputError, match="got 1 splits x 1 seeds and 2 splits x 2 seeds"):
            compare(before, Bias()(runs.done(splits=2, seeds=2)))
        with pytest.raises(InputError, match="maml: expected the same test queries"):
            compare(before, Bias()(runs.done("maml", split_seed=1)))

    def test_without_genders(self, runs, tmp_path):
        people = runs.people
        names = [people.classes[label] for label in people.labels]
        plain = Dataset.of(people.texts, names, name="plain")
        found = runs.make(chosen(), tmp_path / "run", plain)
        assert found.saved[0][0].counterfactuals is None
        assert found.results.bias is None
        assert not found.results.accuracy.select("gender")
        content = json.loads((found.folder / "results.json").read_text())
        assert [m["metric"] for m in content["measurements"]] == ["accuracy", "accuracy"]
        assert content["skipped"][0]["metric"] == "fewshot_bias"
        with pytest.raises(InputError, match="run: expected test queries of known gender"):
            Bias()(found)


class TestSettings:
    def test_they_come_back(self):
        for settings in (
            chosen(),
            chosen("proto-soft", mitigation="calibrate", limit=9),
            chosen("relation-ntl", options={"slices": 3}, finetune=True),
        ):
            message = json.loads(to_json(settings.to_dict()))
            assert RunSettings.from_dict(message) == settings

    def test_names(self):
        assert chosen().name == "proto-euclidean"
        assert chosen("maml", mitigation="calibrate+augment").name == "maml augment+calibrate"
        assert chosen("proto-soft").unlabelled == 2
        assert chosen("proto-soft", unlabelled=0).unlabelled == 0
        assert str(EpisodeCounts.parse("3/2/1")) == "3/2/1"

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"ways": 1}, "ways: expected 2 or more, got 1"),
            ({"shots": 3, "mitigation": "calibrate"}, "shots: expected an even number"),
            ({"queries": 2.0}, "queries: expected a whole number"),
            ({"seeds": True}, "seeds: expected a whole number"),
            ({"limit": 2}, "limit: expected 3 or more, got 2"),
            ({"unlabelled": -1}, "unlabelled: expected 0 or more"),
            ({"unlabelled": 3}, "unlabelled: expected none, the network proto-euclidean"),
            ({"episodes": "9/9"}, "episodes: expected TRAIN/VALID/TEST such as"),
            ({"episodes": "9/0/9"}, "episodes: valid: expected a whole number from 1 up, got 0"),
        ],
    )
    def test_wrong_ones(self, more, message):
        with pytest.raises(InputError, match=message):
            chosen(**more)

    def test_unknown_names(self):
        with pytest.raises(UnknownNameError, match="did you mean 'neutralize'"):
            chosen(mitigation="neutralise")
        with pytest.raises(UnknownNameError, match="pooling 'max'"):
            chosen(pooling="max")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"slice": 2}, "no option 'slice'"),
            ({"slices": 2.5}, "slices: expected a whole number up to 100,000, got 2.5"),
        ],
    )
    def test_options_are_checked_before_the_work(self, runs, tmp_path, options, message):
        settings = chosen("relation-ntl", options=options)
        with pytest.raises(InputError, match=message):
            runs.make(settings, tmp_path / "run", cache=tmp_path / "cache")
        assert not (tmp_path / "cache").exists()

    def test_splits_that_are_given(self, runs, tmp_path):
        names = runs.people.classes
        given = [Split(names[:4], names[4:7], names[7:])]
        found = runs.make(chosen(), tmp_path / "run", splits=given)
        assert load_splits(found.folder / "splits.json") == tuple(given)
        with pytest.raises(InputError, match="splits: expected 2 in what was given, got 1"):
            runs.make(chosen(splits=2), tmp_path / "two", splits=given)
        wrong = [Split(("cook",), names[4:7], names[7:])]
        with pytest.raises(InputError, match="splits: split 0: unknown class 'cook'"):
            runs.make(chosen(), tmp_path / "two", splits=wrong)
        assert not (tmp_path / "two").exists()
        with pytest.raises(InputError, match=r"validation classes of split 0: .*fewer in 'com"):
            runs.make(chosen(shots=30), tmp_path / "two", splits=given)
