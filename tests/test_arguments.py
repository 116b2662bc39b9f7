"""Wrong calls from Python end with one line that names the argument, before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.arguments import check_fields, checked
from evenhand.errors import InputError

SETS = [["he", "she"], ["man", "woman"]]
GROUPS = {"m": ["he", "man", "king"], "f": ["she", "woman", "queen"]}
RULE = {"rules": [{"metric": "weat", "min": -1.0, "max": 1.0}]}
ONE = pd.DataFrame({"text": ["a"], "label": ["b"], "true": ["x"], "pred": ["x"], "g": ["m"]})
SCORES = pd.DataFrame({"item": [1, 1], "model": ["a", "b"], "score": [0, 1]})

CALLS = """
ask(5) | ask(None) | ask([]) | ask(["[MASK] reads.", 3]) | ask("[MASK] reads.", [])
ask("[MASK] reads.", cache="folder")
audit(seed="a") | audit(prob=2) | audit(workers=0) | audit(workers="two") | audit(topics=5)
audit(topics=["nope"]) | audit(columns=["a"]) | audit(out=5) | audit(skip=5) | audit(quick="yes")
compare(1, 2) | compare(m, None) | compare([m], m) | load(5) | load(None) | load("nowhere")
measure(5) | measure(None) | measure(v, q, 5) | measure(v, q, ["weat", 5]) | measure(v, 5, "weat")
measure(v, q, "weat", options=5) | measure(v, q, "weat", options={"permutations": "many"})
measure(v, q, "weat", options={"nope": 1}) | measure(v, q, "weat", seed=1.5)
measure(v, q, "weat", seed=-1) | measure(v, q, "weat", prob="a") | measure(v, q, "weat", cache="c")
measure(v, q, "weat", progress=5) | measure(v, q, "weat", prob=float("nan")) | Cache(5)
instruments.Run(seed=None) | instruments.Run(prob=None) | instruments.Run(progress=3)
instruments.instruments(5) | instruments.lookup(5, "weat") | instruments.lookup("vectors", 5)
classifier.read_predictions(5) | classifier.read_predictions(ONE, true=5)
classifier.read_predictions(ONE, group=5) | classifier.read_predictions(ONE, group="g", score=5)
classifier.Predictions(pred="ab")
classifier.Predictions(pred=5) | classifier.Predictions(pred=("a",), groups=5)
classifier.Predictions(pred=("a",), groups={"g": 5}) | classifier.Predictions(pred=("a",), items=5)
classifier.predict(5, ["a"]) | classifier.predict(str, "abc") | classifier.predict(str, [1, 2])
classifier.predict(list, ["a"], versions=5) | classifier.predict(list, ["a"], groups=5)
classifier.predict(list, ["a"], batch=0) | classifier.TprGap(permutations=1e12)
classifier.TprGap()(5)
fewshot.read(5) | fewshot.read(ONE, text=5) | fewshot.read(ONE, leaning="nope")
fewshot.read(ONE, duplicates="nope") | fewshot.read(ONE, name=5)
fewshot.make_splits(5) | fewshot.make_splits(d, n="a") | fewshot.make_splits(d, seed="a")
fewshot.make_splits(d, shares=5) | fewshot.make_splits(d, shares=("a", "b", "c"))
fewshot.make_splits(d, shares=(0.5, 0.5, float("nan"))) | fewshot.make_splits(d, sizes="abc")
fewshot.sample(d, 5, ways=2, shots=1, queries=1, episodes=2)
fewshot.sample(d, "ab", ways=2, shots=1, queries=1, episodes=2)
fewshot.sample(d, ["a", "b"], ways="2", shots=1, queries=1, episodes=2)
fewshot.sample(d, ["a", "b"], ways=2, shots=1, queries=1, episodes=10**12)
fewshot.sample(d, ["a", "b"], ways=2, shots=1, queries=1, episodes=2, seed="x")
fewshot.run(5) | fewshot.run(d, 5) | fewshot.run(d, folder=5) | fewshot.run(d, bias=5)
fewshot.run(d, workers="a") | fewshot.run(d, shares=5) | fewshot.run(d, splits=5)
fewshot.RunSettings(training=5) | fewshot.RunSettings(episodes=5)
fewshot.RunSettings(finetune="no") | fewshot.RunSettings(ways="a")
fewshot.TrainingSettings(network=5) | fewshot.TrainingSettings(options=5)
fewshot.TrainingSettings(learning_rate="a") | fewshot.read_run(5) | fewshot.Bias(margin="a")
fewshot.encode("mini", "text") | fewshot.encode("mini", [1])
fewshot.encode("mini", ["a"], cache=5)
fewshot.summarise(5) | fewshot.networks.make("proto-euclidean", "a") | fewshot.networks.options(5)
fewshot.networks.make("proto-euclidean", 5, settings=5) | fewshot.evaluate(5, 5, 5)
gate.check(5, m) | gate.check(RULE, 5) | gate.check(RULE, m, baseline=5) | gate.read_policy(None)
gate.plan(RULE, m, draws="a") | gate.plan(RULE, m, worsenings=5) | gate.plan(RULE, m, draws=10**12)
scores.read(5) | scores.read(SCORES, item=5) | scores.read(SCORES, cluster=5)
scores.analyze(5) | scores.analyze(SCORES, prob="a") | scores.analyze(SCORES, ideal="a")
simulate.world(dim="a") | simulate.world(classes="ab") | simulate.world(bias="a")
simulate.world(bias=float("nan")) | simulate.world(identity="a") | simulate.world(seed="a")
text.swap(5) | text.swap(None) | text.swap(b"she") | text.swap("she", seed="a")
text.swap("she", kinds=5) | text.swap("she", pairs=5) | text.swap("she", probability="a")
text.substitute("she") | text.substitute(5) | text.substitute(["she", 5])
text.neutralize(5) | text.anonymize(5) | text.find_people(5) | text.negate(5)
text.counterfactuals("she") | text.counterfactuals([5]) | text.counterfactuals(["she"], versions=5)
text.stereotype("she", "a", "F", "pro") | text.rewrite_all("she", str)
text.rewrite_all(["she"], 5) | text.read_sheets(5) | text.read_sheets("nope.csv")
text.write_sheet(5, "o.csv") | text.save_verdicts(5, "a.csv") | text.leaning(5)
text.leaning(m, k="a") | text.Filter(mask=5) | text.Odds(male="he")
vectors.load(5) | vectors.load("glove", limit="a") | vectors.load({"he": "a"}) | vectors.load({})
vectors.analogy(5, "he", "she", "king") | vectors.analogy(v, "he", "she", "king", n="a")
vectors.bias_subspace(v, 5) | vectors.bias_subspace(v, SETS, k="a")
vectors.cluster_purity(v, 5) | vectors.cluster_purity(v, GROUPS, starts=0)
vectors.cluster_purity(v, {"a": 5, "b": 6}) | vectors.cosine_rank_correlation(v, 5)
vectors.cosine_rank_correlation(v, v, pairs="a") | vectors.dimension_spread(5)
vectors.distance_table(v, 5) | vectors.distance_table(5, "gender") | vectors.hard(5, SETS)
vectors.hard(v, 5) | vectors.hard(v, SETS, equalize=5) | vectors.hard(v, SETS, keep=5)
vectors.hard(v, SETS, neutralize="nope") | vectors.soft(v, SETS, lam="a")
vectors.inlp(v, 5) | vectors.inlp(v, GROUPS, held_out="a") | vectors.leace(v, 5)
vectors.leave_one_out(v, q, 5) | vectors.split_half(v, q, draws="a")
vectors.split_half(v, q, draws=10**12) | vectors.mac_of_table(5) | vectors.mitigate(v, 5)
vectors.mitigate(v, "gender", 5) | vectors.mitigate(v, "gender", k="a")
vectors.neighbour_bias(v, 5, ["a"]) | vectors.neighbour_bias(v, {"he": 1.0}, "she")
vectors.neighbour_overlap(v, 5) | vectors.neighbour_overlap(v, v, n_words="a")
vectors.pair_analogies(v, threshold="a") | vectors.pair_analogies(v, limit=0)
vectors.pair_analogies(v, thresholds=5) | vectors.recovery(v, GROUPS, folds="a")
vectors.recovery(v, 5) | vectors.hiding_tests(v, v, sets=5)
vectors.debias.debias(v, 5, SETS) | vectors.debias.debias(v, "hard", 5)
vectors.debias.debias(v, "hard", SETS, options=5) | vectors.Weat(extended="a")
vectors.debias.debias(v, "hard", SETS, options={"nope": 1}) | vectors.SemBias(first=5)
vectors.debias.most_biased(v, 5) | vectors.debias.word_bias(v, SETS, limit="a")
lexicon.topic(5) | lexicon.topic(None) | lexicon.weat(None) | lexicon.weat("a")
"""
TABLE = [call.strip() for line in CALLS.strip().splitlines() for call in line.split(" | ")]


@pytest.fixture(scope="module")
def names():
    v = eh.vectors.load("glove")
    q = eh.lexicon.weat(6)
    labels = np.repeat(np.arange(8), 5)
    texts = tuple(f"text {i}" for i in range(40))
    d = eh.fewshot.Dataset(texts, labels, np.tile([0, 1, 0, 1, 0], 8), tuple("abcdefgh"), "d")
    m = eh.measure(v, q, "weat", options={"permutations": 100, "null": 10})
    return {**globals(), "v": v, "q": q, "d": d, "m": m}


@pytest.mark.parametrize("call", TABLE)
def test_a_wrong_call_names_what_was_expected(names, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        eval(f"eh.{call}", names)  # noqa: S307
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_long():
    assert len(TABLE) > 150


@checked
def one(
    number: int = 0,
    share: float = 0.5,
    word: str = "",
    words: Sequence[str] = (),
    choice: Literal["a", "b"] = "a",
    flag: bool = False,
    of: Mapping[str, Sequence[float]] | None = None,
    act: Callable[[int], int] = abs,
    anything: Any = None,
) -> int:
    return number


RIGHT: list[dict[str, object]] = [
    {"number": np.int64(3)},
    {"share": 1},
    {"share": np.float32(0.5)},
    {"words": ["a"]},
    {"words": np.array(["a", "b"])},
    {"words": pd.Series(["a", "b"])},
    {"choice": "b"},
    {"of": {"a": np.array([1.0])}},
    {"of": {"a": (1, 2)}},
    {"act": print},
    {"anything": ...},
]
WRONG: list[tuple[dict[str, object], str]] = [
    ({"number": True}, "number: expected a whole number, got True"),
    ({"number": 1.0}, "number: expected a whole number, got 1.0"),
    ({"share": "0.5"}, "share: expected a number, got '0.5'"),
    ({"word": 5}, "word: expected a text, got 5"),
    ({"words": "ab"}, "words: expected a list of texts, got 'ab'"),
    ({"words": ["a", 5]}, "words: expected a list of texts, got"),
    ({"choice": "c"}, "unknown choice 'c' (known: a, b)"),
    ({"choice": 5}, "choice: expected 'a', 'b', got 5"),
    ({"flag": 1}, "flag: expected True or False, got 1"),
    ({"of": {"a": 5}}, "of: expected a mapping or None, got"),
    ({"act": 5}, "act: expected a function, got 5"),
]


@pytest.mark.parametrize("given", RIGHT, ids=str)
def test_what_an_annotation_allows(given):
    one(**given)


@pytest.mark.parametrize(("given", "message"), WRONG, ids=str)
def test_what_it_does_not(given, message):
    with pytest.raises(InputError) as caught:
        one(**given)
    assert str(caught.value).startswith(message)


def test_fields_of_a_dataclass():
    @dataclass
    class Settings:
        rate: float

    check_fields(Settings(0.5))
    with pytest.raises(InputError, match="rate: expected a number, got 'a'"):
        check_fields(Settings("a"))  # type: ignore[arg-type]
