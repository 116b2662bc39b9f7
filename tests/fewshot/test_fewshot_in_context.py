"""Few-shot by prompting: hand-computed probabilities, plain calls, orders, windows, worlds."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest

from evenhand.errors import InputError, PartialFailure
from evenhand.fewshot import read
from evenhand.fewshot.answers import FewShotPredictions
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.in_context import (
    ContextPrompts,
    check_window,
    classify,
    clean_labels,
    draw_orders,
    find_label,
)
from evenhand.fewshot.metrics.accuracy import Accuracy
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.mitigation import neutralize, swap_gender
from evenhand.fewshot.runs import draw_parts, prepare, read_run, run
from evenhand.fewshot.settings import RunSettings, TrainingSettings
from evenhand.models.causal import load
from evenhand.models.local_writer import LocalWriter
from evenhand.models.writing import Message, Written

WOMEN = {"she", "her", "hers", "herself", "ms", "mrs", "woman", "chairwoman", "spokeswoman"}
MEN = {"he", "him", "his", "himself", "mr", "man", "chairman", "spokesman"}


class StubWriter:
    """Likelihoods and answers from functions of the prompt's query and a label."""

    name, fingerprint, about = "stub", "stub", {}

    def __init__(self, likelihood=None, text=None, fail_after=None):
        self.likelihood, self.text, self.left = likelihood, text, fail_after
        self.prompts = []

    def _queries(self, requests):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        for request in requests:
            [message] = request.messages
            self.prompts.append(message.content)
            yield re.fullmatch(r".*Text: (.*)\nLabel:", message.content, re.DOTALL)[1]

    def label_likelihoods(self, requests, labels):
        return [
            [self.likelihood(query, label) for label in own]
            for query, own in zip(self._queries(requests), labels, strict=True)
        ]

    def write(self, requests, settings):
        assert settings.temperature == 0
        for number, query in enumerate(self._queries(requests)):
            yield number, self.text(query)


def small_prompts(limit=5, orders=((3, 0, 2, 1),)):
    """One episode of two classes and two shots."""
    texts = [f"text {number} of some six words" for number in range(8)]
    episodes = Episodes(
        classes=np.array([[2, 0]]),
        support=np.array([[[0, 1], [2, 3]]]),
        query=np.array([[[4], [5]]]),
    )
    return ContextPrompts(
        episodes, texts, ("nurse", "poet", "stage_actor"), np.array(orders), limit
    )


def test_a_prompt_has_the_examples_in_their_order():
    [request] = small_prompts().requests(0, ["Who is it?"])
    assert request.messages == (
        Message(
            "user",
            "Each text has one of these labels: nurse, stage actor.\n\n"
            "Text: text 3 of some six\nLabel: nurse\n\n"
            "Text: text 0 of some six\nLabel: stage actor\n\n"
            "Text: text 2 of some six\nLabel: nurse\n\n"
            "Text: text 1 of some six\nLabel: stage actor\n\n"
            "Text: Who is it?\nLabel:",
        ),
    )


def test_likelihoods_are_normalised_and_calibrated():
    values = {
        ("a", "stage actor"): -1.0,
        ("a", "nurse"): -2.0,
        ("N/A", "stage actor"): -0.5,
        ("N/A", "nurse"): -4.0,
        ("[MASK]", "stage actor"): -1.0,
        ("[MASK]", "nurse"): -1.0,
        ("", "stage actor"): -2.0,
        ("", "nurse"): -3.0,
    }
    writer = StubWriter(lambda query, label: values[query, label])
    plain = classify(writer, small_prompts(), 0, ["a", "a"], "likelihood")
    first = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(np.exp(plain), [[first, 1 - first]] * 2)
    assert len(writer.prompts) == 1  # the same query is asked once
    free = np.mean([1 / (1 + np.exp(-3.5)), 1 / 2, 1 / (1 + np.exp(-1))])
    odds = first / (1 - first) * (1 - free) / free
    calibrated = classify(writer, small_prompts(), 0, ["a"])
    np.testing.assert_allclose(np.exp(calibrated), [[odds / (1 + odds), 1 / (1 + odds)]])


def test_a_bias_towards_a_label_is_calibrated_away():
    def likelihood(query, label):
        return 7.0 * (label == "nurse") + 2.0 * (query == "on stage" and label == "stage actor")

    writer = StubWriter(likelihood)
    plain, calibrated = (
        classify(writer, small_prompts(), 0, ["on stage"], way)[0]
        for way in ("likelihood", "calibrated")
    )
    assert plain.argmax() == 1
    assert calibrated[0] - calibrated[1] == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Nurse", 0),
        ("I think the stage actor, not a nurse.", 2),
        ("actor", 1),
        ("nurses", None),
        ("", None),
        ("A clerk.", None),
    ],
)
def test_the_first_label_of_an_answer_counts(text, label):
    assert find_label(text, ["nurse", "actor", "stage actor"]) == label


def test_written_answers_without_a_label_are_wrong():
    texts = {"a": "Label: nurse", "b": "no idea"}
    writer = StubWriter(text=lambda query: Written(text=texts[query], finish="stop"))
    values = classify(writer, small_prompts(), 0, ["a", "b"], "written")
    np.testing.assert_allclose(np.exp(values), [[1 / 4, 2 / 4], [1 / 4, 1 / 4]])
    answers = FewShotPredictions(
        np.stack([values] * 6),
        np.arange(12).reshape(6, 2),
        np.array([[1, 0]] * 6),
        np.array([[0, 1], [1, 2], [2, 0]] * 2),
    )
    assert answers.predicted.tolist() == [[1, -1]] * 6
    measured = Accuracy()(answers)
    assert measured.value == pytest.approx(0.5)
    [none] = measured.select("outcome")
    assert (none.query, none.value) == ("no label", pytest.approx(0.5))
    assert none.low <= 0.5 <= none.high
    # no query without a label is confused with a class
    assert {part.details["confused_with"] for part in measured.select("class")} == {""}


def test_every_answer_names_a_label_where_probabilities_add_up_to_one():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(5, 0.3), (40, 10)).astype(np.float32)
    truth = np.tile(np.repeat(np.arange(5), 2), (40, 1))
    classes = np.tile(np.arange(5), (40, 1))
    with np.errstate(divide="ignore"):
        answers = FewShotPredictions(np.log(shares), truth, truth, classes)
    np.testing.assert_array_equal(answers.predicted, shares.argmax(axis=2))
    assert not Accuracy()(answers).select("outcome")


def test_an_answer_that_failed_is_an_error():
    writer = StubWriter(text=lambda _: Written(text="", finish="error", error="no connection"))
    with pytest.raises(PartialFailure, match="model 'stub': no answer: no connection"):
        classify(writer, small_prompts(), 0, ["a"], "written")


def test_labels_are_different_and_not_empty():
    assert clean_labels(["tv_chef", "nurse"]) == ["tv chef", "nurse"]
    with pytest.raises(InputError, match="got 'tv_chef' and 'tv chef' for 'tv chef'"):
        clean_labels(["tv_chef", "nurse", "tv chef"])
    with pytest.raises(InputError, match="different labels, got '_' for ''"):
        clean_labels(["_", "nurse"])


def test_orders_are_drawn_by_seed_and_split():
    episodes = Episodes(
        classes=np.zeros((50, 2), int),
        support=np.zeros((50, 2, 3), int),
        query=np.zeros((50, 2, 1)),
    )
    first = draw_orders(episodes, 0, 0)
    np.testing.assert_array_equal(first, draw_orders(episodes, 0, 0))
    np.testing.assert_array_equal(np.sort(first), np.tile(np.arange(6), (50, 1)))
    for other in (draw_orders(episodes, 1, 0), draw_orders(episodes, 0, 1)):
        assert (first != other).any(axis=1).mean() > 0.9
    assert {tuple(row) for row in (first[:, :1] // 3).tolist()} == {(0,), (1,)}


# in whole runs


def chosen(**more):
    usual = {"ways": 2, "shots": 2, "queries": 2, "episodes": "2/2/4", "limit": 9, "neutral": False}
    training = {name: more.pop(name) for name in ("seed",) if name in more}
    learning = TrainingSettings(network="in-context", **training)
    return RunSettings(training=learning, **{**usual, "seeds": 2, **more})


@pytest.fixture(scope="module")
def people():
    return read("simulated:per_class=16,leak=1", leaning="share").at_least(1, each_gender=2)


@pytest.fixture(scope="module")
def model():
    return load("tiny-causal", device="cpu")


def plain_likelihood(model, prompt, label):
    """The log-likelihood of a label by a call of the model for the whole row."""
    before = [model.begin, *model.encode([prompt])[0].ids]
    own = model.encode([f" {label}"])[0].ids
    logits = model.logits(np.array([*before, *own]))[len(before) - 1 : -1].astype(np.float64)
    top = logits.max(axis=1, keepdims=True)
    log_probs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    return log_probs[np.arange(len(own)), own].sum()


@pytest.mark.parametrize(
    ("label_by", "mitigation", "mitigate"),
    [
        ("calibrated", "none", "train"),
        ("likelihood", "neutralize", "train"),
        ("calibrated", "neutralize", "all"),
        ("likelihood", "augment", "train"),
        ("likelihood", "calibrate", "train"),
    ],
)
def test_answers_are_those_of_plain_calls(people, model, tmp_path, label_by, mitigation, mitigate):
    settings = chosen(
        label_by=label_by, mitigation=mitigation, mitigate=mitigate, episodes="2/2/2", queries=1
    )
    done = run(people, settings, tmp_path / "run", model=model, bias=Bias(permutations=20))
    drawn = Episodes.load(tmp_path / "run" / "split-0" / "episodes.npz")
    if mitigation == "calibrate":
        assert (people.genders[drawn.support].sum(axis=2) == 1).all()
    queries, swapped = people.texts, swap_gender(people.texts, names="fixed")
    examples = neutralize(people.texts) if mitigation == "neutralize" else people.texts
    if mitigate == "all":
        queries, swapped = neutralize(queries), neutralize(swapped)
    given = [[text] for text in examples]
    if mitigation == "augment":
        given = [[*own, other] for own, other in zip(given, swap_gender(people.texts), strict=True)]
    for seed in range(2):
        kept = done.saved[0][seed]
        for number in range(len(drawn)):
            labels = [people.classes[index] for index in drawn.classes[number]]
            support = [
                # the texts of a class, then their counterfactuals
                (text, label)
                for label, rows in zip(labels, drawn.support[number].tolist(), strict=True)
                for version in range(len(given[0]))
                for text in [given[row][version] for row in rows]
            ]
            rng = np.random.default_rng([seed, 0, 0x0DE2])
            order = rng.random((len(drawn), len(support))).argsort(axis=1)[number]
            ordered = [support[index] for index in order]

            def prompt(query, ordered=ordered):
                shown = ", ".join(dict.fromkeys(label for _, label in ordered))
                blocks = [f"Each text has one of these labels: {shown}."]
                blocks += [
                    f"Text: {' '.join(text.split()[:9])}\nLabel: {label}" for text, label in ordered
                ]
                return "\n\n".join([*blocks, f"Text: {' '.join(query.split()[:9])}\nLabel:"])

            def shares(query, labels=labels, prompt=prompt):
                values = [plain_likelihood(model, prompt(query), label) for label in labels]
                return np.exp(values) / np.exp(values).sum()

            free = np.ones(2)
            if label_by == "calibrated":
                free = np.mean([shares(query) for query in ("N/A", "[MASK]", "")], axis=0)
            for query, row in enumerate(drawn.query[number].ravel().tolist()):
                for found, text in (
                    (kept.answers, queries[row]),
                    (kept.counterfactuals.swapped, swapped[row]),
                ):
                    expected = shares(text) / free
                    np.testing.assert_allclose(
                        np.exp(found.log_probs[number, query]),
                        expected / expected.sum(),
                        atol=1e-4,
                    )


def test_episodes_are_those_of_the_trained_networks(people):
    """The same classes, queries and supports; the examples alone are mitigated by `train`."""
    trained = RunSettings(ways=2, shots=2, queries=2, episodes="2/2/4")
    for mitigation in ("none", "neutralize", "augment"):
        [mine], [theirs] = (
            draw_parts(people, settings) for settings in (chosen(mitigation=mitigation), trained)
        )
        assert mine.test.digest == theirs.test.digest
    settings = chosen(mitigation="neutralize", neutral=True)
    material = prepare(people, settings, draw_parts(people, settings))
    test = material.test(material.parts[0])
    plain = material.parts[0].test
    assert [material.texts[row] for row in test.support.ravel()] == list(
        neutralize([people.texts[row] for row in plain.support.ravel()])
    )
    assert [material.texts[row] for row in test.query.ravel()] == [
        people.texts[row] for row in plain.query.ravel()
    ]


def test_an_interrupted_run_resumes(people, tmp_path):
    def likelihood(query, label):
        return zlib.crc32(f"{query} {label}".encode()) / 2**32

    settings = chosen(episodes="2/2/20")
    how = {"bias": Bias(permutations=20)}
    whole = StubWriter(likelihood)
    first = run(people, settings, tmp_path / "whole", model=whole, **how)
    stopped = StubWriter(likelihood, fail_after=29)
    with pytest.raises(KeyboardInterrupt):
        run(people, settings, tmp_path / "stopped", model=stopped, **how)
    rest = StubWriter(likelihood)
    again = run(people, settings, tmp_path / "stopped", model=rest, **how)
    # 20 + 8 episodes were stored: the second order's first 8
    assert len(rest.prompts) < 0.4 * len(whole.prompts)
    for mine, other in zip(again.saved[0], first.saved[0], strict=True):
        np.testing.assert_array_equal(mine.answers.log_probs, other.answers.log_probs)
    assert not list((tmp_path / "stopped").rglob("prompted.npz"))
    finished = StubWriter(likelihood)
    run(people, settings, tmp_path / "stopped", model=finished, **how)
    assert not finished.prompts
    # read again, without a model
    back = read_run(tmp_path / "stopped")
    assert back.settings == settings
    np.testing.assert_array_equal(back.answers.log_probs, again.answers.log_probs)
    assert back.record["model"]["texts_cut"] == len(people)


def test_the_two_orders_are_a_random_factor(people, tmp_path):
    """A model that repeats the label of the last example: the order alone decides."""

    class Last(StubWriter):
        def label_likelihoods(self, requests, labels):
            ends = [re.findall(r"Label: (.+)", r.messages[0].content)[-1] for r in requests]
            return [
                [3.0 * (label == end) for label in own]
                for end, own in zip(ends, labels, strict=True)
            ]

    settings = chosen(episodes="2/2/30", label_by="likelihood")
    done = run(people, settings, tmp_path / "run", model=Last(), bias=Bias(permutations=20))
    one, two = (saved.answers.predicted for saved in done.saved[0])
    assert 0.25 < (one != two).mean() < 0.75
    assert done.answers.repeats == 2
    assert done.results.accuracy.value == pytest.approx(0.5)
    assert done.results.bias.value == 0


def test_a_prompt_beyond_the_window_is_refused(people, model, tmp_path):
    with pytest.raises(
        InputError,
        match=r"^2 ways × 2 shots: expected prompts of at most 256 tokens, the window of model "
        r"'tiny-causal', got one of \d{3} \(4 examples of 128 words or fewer\); limit= shortens",
    ):
        run(people, chosen(limit=None), tmp_path / "run", model=model)
    assert not list(tmp_path.rglob("answers.npz"))


def test_the_window_is_counted_to_the_token(model):
    writer = LocalWriter(model)

    def prompts(words):
        texts = ["the " * words] * 3
        episodes = Episodes(
            classes=np.array([[0, 1]]), support=np.array([[[0], [1]]]), query=np.array([[[2], [2]]])
        )
        return ContextPrompts(episodes, texts, ("x", "y"), np.array([[0, 1]]), 999)

    rows = np.array([[2, 2]])
    fits = 0
    while True:
        try:
            check_window(writer, prompts(fits + 1), rows)
        except InputError as error:
            needed = int(re.search(r"got one of (\d+)", str(error))[1])
            break
        fits += 1
    own = prompts(fits + 1)
    [request] = own.requests(0, [own.query(2)])
    label = max(len(coded.ids) for coded in model.encode([" x", " y"]))
    assert needed == len(model.encode([request.messages[0].content])[0].ids) + 1 + label
    assert 256 < needed <= 256 + 3
    check_window(StubWriter(), own, rows)  # the window of an endpoint is not known


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"finetune": True}, "finetune: expected none, the network in-context is not trained"),
        ({"unlabelled": 3}, "unlabelled: expected none"),
        ({"label_by": "vote"}, "unknown label_by 'vote'"),
        ({"limit": 2}, "limit: expected"),
    ],
)
def test_wrong_settings_are_refused(more, message):
    with pytest.raises(InputError, match=message):
        chosen(**more)


def test_what_is_not_of_the_network_is_refused(people, tmp_path):
    with pytest.raises(InputError, match="adapt: expected none"):
        RunSettings(training=TrainingSettings(network="in-context", adapt=2))
    with pytest.raises(InputError, match="options: expected none"):
        RunSettings(training=TrainingSettings(network="in-context", options={"scale": 2}))
    with pytest.raises(InputError, match="model=: expected a causal model for in-context"):
        run(people, chosen(), tmp_path / "run")
    with pytest.raises(InputError, match="model=: expected none"):
        run(people, RunSettings(), tmp_path / "run", model=StubWriter())
    with pytest.raises(InputError, match="no such folder or GGUF file, and not embedded"):
        run(people, chosen(), tmp_path / "run", model="tiny-casual")
    with pytest.raises(InputError, match=r"not embedded \(tiny-causal\)"):
        run(people, chosen(), tmp_path / "run", model="mini")


def test_training_settings_do_not_count():
    one, two = (
        RunSettings(training=TrainingSettings(network="in-context", batch=batch, seed=3))
        for batch in (4, 8)
    )
    assert one == two
    assert (one.training.seed, one.limit) == (3, 128)
    assert RunSettings.from_dict(one.to_dict()) == one
    assert "label_by" not in RunSettings().to_dict()


# a world whose bias is known


@pytest.fixture(scope="module", params=[0, 1])
def world(request):
    return read(f"simulated:per_class=30,leak={request.param}", leaning="share"), request.param


def stated(text):
    """1 for a text about a woman, -1 for one about a man, 0 for neither."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    return np.sign(len(words & WOMEN) - len(words & MEN))


@pytest.mark.parametrize("planted", [0.0, 1.0])
def test_a_planted_bias_is_found_and_none_without_it(world, planted, tmp_path):
    """The stub prefers by `planted` nats the labels that the gender of the text leans to."""
    people, leak = world
    side = {
        name.replace("_", " "): 0 if code == "even" else 1 if code == "female" else -1
        for name, code in zip(people.classes, people.leaning, strict=True)
    }

    def likelihood(query, label):
        noise = zlib.crc32(f"{len(query.split())} {query[-9:]} {label}".encode()) / 2**32
        return noise + planted / 2 * stated(query) * side[label]

    settings = chosen(
        episodes="2/2/60", ways=3, queries=3, limit=60, splits=2, label_by="calibrated"
    )
    done = run(people, settings, tmp_path / "run", model=StubWriter(likelihood), bias=Bias())
    bias = done.results.bias
    if planted and leak:
        assert 0.15 < bias.value < planted
        assert bias.low > 0
    else:
        assert abs(bias.value) < 0.1
        assert bias.low < 0 < bias.high
