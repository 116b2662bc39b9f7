"""Golden inputs for peers: what a driver is given, the right answer, and Evenhand's.

`CASES` has one `Case` per input. The right answer comes from arithmetic that is written out here or
from brute force, never from Evenhand. tests/test_peers.py holds Evenhand's answers to it without
any peer; `make peers` (peers.py) gives the same inputs to the peers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import combinations
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.instruments import Run
from evenhand.lexicon import Query
from evenhand.results import Measurement

Answer = float | str
Vectors = dict[str, list[float]]


@dataclass(frozen=True)
class Case:
    """One golden input.

    `given` is what the driver gets as JSON, `exact` the right answer, `other` the answer by another
    `convention` that is in use, and `ours` Evenhand's. `says` is what Evenhand should answer where
    it does so in other words.
    """

    what: str
    given: dict[str, Any]
    exact: Callable[[], Answer]
    ours: Callable[[], Answer]
    other: Callable[[], Answer] | None = None
    convention: str = ""
    says: Answer | None = None
    tolerance: float = 1e-4


# Word vectors: associations in two dimensions are cos θ - sin θ, by hand.

FLAT: Vectors = {
    "x1": [0.8, 0.6],  # association .2
    "x2": [1.0, 0.0],  # 1
    "y1": [0.6, 0.8],  # -.2
    "y2": [0.0, 1.0],  # -1
    "a1": [1.0, 0.0],
    "a2": [2.0, 0.0],
    "a3": [0.0, 1.0],
    "b1": [0.0, 1.0],
    "b2": [0.0, 3.0],
}
HAND = 1.2 / math.sqrt(2.08 / 3)
"""Means .6 and -.6; the squares of .2, 1, -.2, -1 add up to 2.08, divided by n - 1 = 3."""


def lists(x: Sequence[str], y: Sequence[str], a: Sequence[str], b: Sequence[str]) -> dict[str, Any]:
    """Four lists of words, as the drivers get them."""
    return {"x": list(x), "y": list(y), "a": list(a), "b": list(b)}


def weat(vectors: Vectors, words: dict[str, Any]) -> Measurement:
    """Evenhand's WEAT."""
    v = eh.vectors.Vectors.from_arrays(list(vectors), np.array(list(vectors.values()), np.float32))
    query = Query(
        name="weat",
        targets={name: words[name] for name in "xy"},
        attributes={name: words[name] for name in "ab"},
    )
    return eh.vectors.Weat()(v, query, seed=1)


def associations(vectors: Vectors, words: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The associations of both target lists, cosine by cosine."""

    def cosine(one: str, other: str) -> float:
        u, v = np.array(vectors[one]), np.array(vectors[other])
        return float(u @ v / math.sqrt((u @ u) * (v @ v)))

    def association(word: str) -> float:
        first = [cosine(word, other) for other in words["a"]]
        second = [cosine(word, other) for other in words["b"]]
        return sum(first) / len(first) - sum(second) / len(second)

    x, y = ([association(word) for word in words[name]] for name in "xy")
    return np.array(x), np.array(y)


def effect_size(vectors: Vectors, words: dict[str, Any], ddof: int) -> float:
    """Caliskan et al. (2017), with n - ddof in the standard deviation."""
    x, y = associations(vectors, words)
    return float((x.mean() - y.mean()) / np.concatenate([x, y]).std(ddof=ddof))


def two_sided(vectors: Vectors, words: dict[str, Any], margin: float = 1e-12) -> float:
    """The share of all partitions whose |statistic| is at least that observed.

    With a negative margin those that are equal do not count.
    """
    x, y = associations(vectors, words)
    both, n = np.concatenate([x, y]), len(x)
    every = [
        2 * both[list(chosen)].sum() - both.sum() for chosen in combinations(range(both.size), n)
    ]
    observed = abs(x.sum() - y.sum())
    return float(np.mean(np.abs(every) >= observed - margin))


@cache
def weat8() -> tuple[Vectors, dict[str, Any]]:
    """WEAT 8 (science and arts, words for men and women) on the embedded GloVe."""
    v, query = eh.vectors.load("glove"), eh.lexicon.weat(8)
    x, y = query.targets.values()
    a, b = query.attributes.values()
    words = lists(x, y, a, b)
    every = [word for name in "xyab" for word in words[name]]
    rows = v.find(every).rows
    return dict(zip(every, v.matrix[rows].astype(float).tolist(), strict=True)), words


ANGLES: Vectors = {
    **{
        f"{name}{angle}": [math.cos(math.radians(angle)), math.sin(math.radians(angle))]
        for name, own in (("x", (0, 40, 41, 42)), ("y", (48, 49, 50, 90)))
        for angle in own
    },
    "a1": [1.0, 0.0],
    "b1": [0.0, 1.0],
}
POSITIVE = lists(
    [w for w in ANGLES if w[0] == "x"], [w for w in ANGLES if w[0] == "y"], ["a1"], ["b1"]
)
NEGATIVE = lists(POSITIVE["y"], POSITIVE["x"], ["a1"], ["b1"])

RELATED: Vectors = {
    **{f"p{i}": [float(i), 1.0] for i in range(1, 6)},
    **{f"q{i}": [float(i), -1.0] for i in range(1, 6)},
    "one": [1.0, 0.0],
    "two": [2.0, 0.0],
}
"""p - q is (0, 2) in every pair, so the words have RIPA 0 whichever pairs are known."""


def ripa_of_known_pairs() -> float:
    """Evenhand's RIPA where the first word of a pair has no vector."""
    known = {word: vector for word, vector in RELATED.items() if word != "p2"}
    v = eh.vectors.Vectors.from_arrays(list(known), np.array(list(known.values()), np.float32))
    query = Query(
        name="ripa",
        targets={name: [f"{name}{i}" for i in range(1, 6)] for name in "pq"},
        attributes={"words": ["one", "two"]},
    )
    return eh.vectors.Ripa(null=0)(v, query).value


SOFT: Vectors = {
    "he": [0.9, 0.3, 0.1],
    "she": [-0.8, 0.4, 0.2],
    "one": [0.5, 0.8, 0.1],
    "two": [-0.3, 0.2, 0.9],
    "three": [0.6, -0.7, 0.2],
    "four": [-0.4, -0.3, -0.8],
}
NEUTRAL = ["one", "two", "three", "four"]
LAM = 5.0


def largest_change(matrix: np.ndarray) -> float:
    """The largest change of a cosine between two words; no rotation changes it."""

    def cosines(rows: np.ndarray) -> np.ndarray:
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(unit @ unit.T)

    return float(np.abs(cosines(matrix) - cosines(np.array(list(SOFT.values())))).max())


@cache
def soft_by_search() -> float:
    """Bolukbasi et al.'s soft objective minimised over T from 20 random starts."""
    from scipy.optimize import minimize

    unit = np.array(list(SOFT.values()))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    direction = (unit[0] - unit[1]) / np.linalg.norm(unit[0] - unit[1])
    neutral = unit[[list(SOFT).index(word) for word in NEUTRAL]]

    def objective(flat: np.ndarray) -> float:
        transform = flat.reshape(3, 3)
        moved = unit @ transform.T
        bias = (neutral @ transform.T @ (transform @ direction)) ** 2
        return float(((moved @ moved.T - unit @ unit.T) ** 2).sum() + LAM * bias.sum())

    rng = np.random.default_rng(0)
    starts = [np.eye(3).ravel() + rng.normal(0, 0.3, 9) for _ in range(20)]
    found = [minimize(objective, start, method="BFGS", options={"gtol": 1e-9}) for start in starts]
    best = min(found, key=lambda each: each.fun)
    return largest_change(unit @ best.x.reshape(3, 3).T)


def soft_by_equations() -> float:
    """Evenhand's soft debiasing of the same words with the same λ."""
    v = eh.vectors.Vectors.from_arrays(list(SOFT), np.array(list(SOFT.values()), np.float32))
    done = eh.vectors.soft(v, [["he", "she"]], lam=LAM, neutral=NEUTRAL, scale="sum")
    return largest_change(done.vectors.matrix.astype(float))


# Language models: the embedded `mini`, read by transformers, and sentences of our own.

PAIRS = [
    ("The actor lost his keys.", "The actress lost his keys."),
    ("The king read the letter.", "The queen read the letter."),
    ("My brother paid the bill.", "My sister paid the bill."),
    ("The boy broke the window.", "The girl broke the window."),
    ("The man waited for the train.", "The woman waited for the train."),
    ("Her uncle sold the house.", "Her aunt sold the house."),
]
CHANGED = [
    ("actor", "actress"),
    ("king", "queen"),
    ("brother", "sister"),
    ("boy", "girl"),
    ("man", "woman"),
    ("uncle", "aunt"),
]
BIAS = {
    "sentence": "[MASK] is a [MASK].",
    "targets": ["he", "she"],
    "fill": "doctor",
    "mask": 0,
}
BIAS_SECOND = {
    "sentence": "the [MASK] said that [MASK] was late.",
    "targets": ["he", "she"],
    "fill": "doctor",
    "mask": 1,
}


def mini_folder() -> str:
    """The folder of the embedded model, in the layout of transformers."""
    return str(resources.files("evenhand.assets") / "mini")


@cache
def _mini() -> tuple[Any, Any]:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    network = AutoModelForMaskedLM.from_pretrained(mini_folder())
    return network.eval(), AutoTokenizer.from_pretrained(mini_folder())


def log_probs(text: str | Sequence[int]) -> tuple[list[int], np.ndarray]:
    """Token ids, and log P over the vocabulary at each position."""
    import torch

    network, tokenizer = _mini()
    ids = tokenizer(text)["input_ids"] if isinstance(text, str) else list(text)
    with torch.no_grad():
        logits = network(torch.tensor([ids])).logits[0].double()
    return ids, torch.log_softmax(logits, dim=-1).numpy()


def unmasked(sentence: str) -> float:
    """AUL: the mean log probability of the tokens of a sentence that is shown whole."""
    ids, table = log_probs(sentence)
    return float(np.mean([table[i, ids[i]] for i in range(1, len(ids) - 1)]))


def pseudo(sentence: str, changed: str) -> float:
    """CPS: the sum over all tokens but the changed one, each hidden in turn."""
    _, tokenizer = _mini()
    ids, barred = tokenizer(sentence)["input_ids"], tokenizer.convert_tokens_to_ids(changed)
    total = 0.0
    for i in range(1, len(ids) - 1):
        if ids[i] != barred:
            hidden = [*ids[:i], tokenizer.mask_token_id, *ids[i + 1 :]]
            total += float(log_probs(hidden)[1][i, ids[i]])
    return total


def log_bias(given: dict[str, Any]) -> float:
    """LPBS: log(P(he | doctor) / P(he)) - log(P(she | doctor) / P(she)), Kurita et al. (2019)."""
    _, tokenizer = _mini()
    before, middle, after = given["sentence"].split("[MASK]")
    fill = given["fill"]
    shown = (
        f"{before}[MASK]{middle}{fill}{after}"
        if given["mask"] == 0
        else f"{before}{fill}{middle}[MASK]{after}"
    )
    ids = tokenizer.convert_tokens_to_ids(given["targets"])

    def at(sentence: str, place: int) -> np.ndarray:
        tokens, table = log_probs(sentence)
        masks = [i for i, token in enumerate(tokens) if token == tokenizer.mask_token_id]
        return np.asarray(table[masks[place]][ids])

    ratio = at(shown, 0) - at(given["sentence"], given["mask"])
    return float(ratio[0] - ratio[1])


def crows(method: str, pairs: Sequence[tuple[str, str]] = tuple(PAIRS)) -> Measurement:
    """Evenhand's CrowS-Pairs on the pairs."""
    material = [eh.models.Pair(more, less, "stereo", "gender") for more, less in pairs]
    return eh.models.Crows(method=method)(eh.models.load("mini"), material)


def our_log_bias(given: dict[str, Any]) -> float:
    """Evenhand's association of one profession in one template."""
    from evenhand.lexicon.templates import PersonPair, Profession, Template, TemplateSet
    from evenhand.models.designs import design

    text = (
        given["sentence"]
        .replace("[MASK]", "{}")
        .format(
            *(("{person}", "{profession}") if given["mask"] == 0 else ("{profession}", "{person}"))
        )
    )
    persons = (PersonPair(*given["targets"]),)
    sentences = design(
        TemplateSet((Template(text),), persons), [Profession(given["fill"])], persons
    )
    return eh.models.Professions()(eh.models.load("mini"), sentences).value


# Benchmarks and classifiers: counts.


def bbq(agree: Sequence[bool]) -> dict[str, Any]:
    """Disambiguated questions and the answers of a model, by whether they agree."""
    return {
        "questions": [
            {
                "example_id": number,
                "category": "Age",
                "context_condition": "disambig",
                "question_polarity": "neg",
                "ans0": "The grandfather",
                "ans1": "The grandson",
                "ans2": "Unknown",
                "label": 1,
                "biased_answers": ["The grandfather"],
            }
            for number in range(len(agree))
        ],
        "answers": [0 if each else 1 for each in agree],
    }


def our_bbq(agree: Sequence[bool]) -> float:
    """Evenhand's bias score in disambiguated contexts."""
    questions = [
        eh.models.BbqQuestion(
            template=str(number),
            category="Age",
            context="",
            question="",
            answers=("The grandfather", "The grandson", "Unknown"),
            right=1,
            unknown=2,
            stereotyped=0,
            negative=True,
            ambiguous=False,
        )
        for number in range(len(agree))
    ]
    answers = [0 if each else 1 for each in agree]
    return eh.models.Bbq().summarise(questions, answers).part("disambiguated").value


AGREE_NEVER, AGREE_SOMETIMES = [False] * 8, [True] * 6 + [False] * 2
DIFFERENCES = [1.0, -2.0, -2.0, 1.0, -3.0]


def our_mean_difference() -> float:
    """Evenhand's mean difference of pairs with these likelihoods."""
    rows = [
        {
            "bias_type": "age",
            "stereo_antistereo": "stereo",
            "writer": "",
            "difference": each,
            "prefers": "more" if each > 0 else "less",
        }
        for each in DIFFERENCES
    ]
    m = eh.models.Crows().summarise(rows, (), "pairs", "likelihood", "", Run())
    return m.part("mean difference", "component").value


WORLDS, SAMPLES = 60, 25


def worlds() -> list[list[list[float]]]:
    """Scores of two groups from one distribution, so without any difference between them."""
    rng = np.random.default_rng(34)
    return np.round(rng.beta(1, 3, size=(WORLDS, 2, SAMPLES)), 3).tolist()


def our_mean_distance() -> float:
    """The mean over the worlds of Evenhand's distance, which is less its null."""
    import pandas as pd

    found = []
    for seed, (one, two) in enumerate(worlds()):
        frame = pd.DataFrame(
            {
                "item": [str(i) for i in range(SAMPLES)] * 2,
                "group": ["one"] * SAMPLES + ["two"] * SAMPLES,
                "text": "An answer.",
                "score": one + two,
            }
        )
        answers = eh.answers.read_answers(frame, group="group", score="score")
        m = eh.answers.Difference(score="score", permutations=199)(answers, seed=seed)
        found.append(m.select("distance")[0].value)
    return float(np.mean(found))


def failing(items: int) -> dict[str, Any]:
    """A model that fails in a quarter of the items."""
    return {"yes": [number % 4 == 0 for number in range(items)]}


def our_mark(items: int) -> str:
    """Whether at most 15 % fail, by the gate."""
    from evenhand.statistics.intervals import wilson

    value, low, high = wilson(items // 4, items, 0.95)
    m = Measurement(
        metric="fail_rate",
        query="items",
        value=value,
        low=low,
        high=high,
        n=items,
        ideal=0.0,
        worse="higher",
        interval="Wilson's",
    )
    return str(eh.gate.check({"metric": "fail_rate", "max": 0.15}, m).state)


PREDICTIONS = {
    "true": [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0],
    "predicted": [1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    "group": ["a"] * 8 + ["b"] * 8,
}
"""True positive rates 3/4 and 1/4, false positive rates 1/4 and 0."""


def our_gap(name: str) -> float:
    """Evenhand's gap of the two groups."""
    import pandas as pd

    from evenhand.classifier.metrics.gaps import EqualizedOdds, ParityGap

    frame = pd.DataFrame(PREDICTIONS).rename(columns={"true": "y_true", "predicted": "y_pred"})
    read = eh.classifier.read_predictions(frame, group="group")
    metric = {"equalized odds": EqualizedOdds, "parity": ParityGap}[name]()
    return abs(metric.measure(read)[0].value)


CLUSTERED = {"scores": [1, 1, 1, 0, 0, 0, 0, 1], "cluster": list("aabbccdd")}
"""Means 1, .5, 0, .5 of four clusters of two: variance 1/6, of their mean 1/24."""


def our_error() -> float:
    """Evenhand's standard error over clusters."""
    from evenhand.statistics.crossed import clustered

    return math.sqrt(clustered(CLUSTERED["scores"], {"cluster": CLUSTERED["cluster"]}).variance)


def concept() -> dict[str, Any]:
    """Vectors of two classes whose means differ."""
    rng = np.random.default_rng(5)
    z = np.repeat([0.0, 1.0], 40)
    x = rng.normal(size=(80, 4)) @ np.diag([1.0, 2.0, 0.5, 1.0]) + np.outer(z, [1, -2, 0.5, 0])
    return {"x": x.tolist(), "z": z.tolist()}


def our_map() -> np.ndarray:
    """The vectors after Evenhand's LEACE."""
    from evenhand.statistics.erasure import leace

    given = concept()
    return np.asarray(leace(given["x"], given["z"])(np.array(given["x"])))


def class_gap(erased: np.ndarray) -> float:
    """The largest difference of the class means."""
    return float(np.abs(erased[:40].mean(axis=0) - erased[40:].mean(axis=0)).max())


def erased_by_formula() -> np.ndarray:
    """Belrose et al. (2023), Theorem 4.3, for one concept: the formula written out."""
    x, z = (np.array(each) for each in concept().values())
    values, axes = np.linalg.eigh(np.cov(x.T, bias=True))
    root, inverse = ((axes * values**power) @ axes.T for power in (0.5, -0.5))
    u = inverse @ ((x - x.mean(axis=0)).T @ (z - z.mean()))
    u /= np.linalg.norm(u)
    return x - (x - x.mean(axis=0)) @ (root @ np.outer(u, u) @ inverse).T


def _model_case(what: str, given: dict[str, Any], exact: Any, ours: Any) -> Case:
    return Case(what, {"model": mini_folder(), **given}, exact, ours, tolerance=1e-3)


@cache
def cases() -> dict[str, Case]:
    """All golden inputs by name."""
    known, words = weat8()
    turned = {**words, "b": words["b"][::-1]}
    every = [sentence for pair in PAIRS for sentence in pair]
    changed = [word for pair in CHANGED for word in pair]

    def preferred(score: Callable[[int], float]) -> float:
        return float(sum(score(2 * i) > score(2 * i + 1) for i in range(len(PAIRS))))

    def of(method: str) -> float:
        return float(sum(each == "more" for each in crows(method).items["prefers"]))

    flat = lists(["x1", "x2"], ["y1", "y2"], ["a1"], ["b1"])
    unequal = lists(["x1", "x2"], ["y1", "y2"], ["a1", "a2", "a3"], ["b1", "b2"])
    return {
        "effect": Case(
            "WEAT effect size, 2 + 2 words in two dimensions",
            {"vectors": FLAT, **flat},
            lambda: HAND,
            lambda: weat(FLAT, flat).value,
            lambda: 1.2 / math.sqrt(2.08 / 4),
            "divided by n",
        ),
        "weat8": Case(
            "WEAT 8 on the embedded GloVe, effect size",
            {"vectors": known, **words},
            lambda: effect_size(known, words, 1),
            lambda: weat(known, words).value,
            lambda: effect_size(known, words, 0),
            "divided by n",
        ),
        "reordered": Case(
            "the same, one attribute list in reverse order",
            {"vectors": known, **turned},
            lambda: effect_size(known, words, 1),
            lambda: weat(known, turned).value,
            lambda: effect_size(known, words, 0),
            "divided by n",
        ),
        "unequal": Case(
            "WEAT effect size, attribute lists of 3 and 2 words",
            {"vectors": FLAT, **unequal},
            lambda: HAND,
            lambda: weat(FLAT, unequal).value,
            lambda: 1.2 / math.sqrt(2.08 / 4),
            "divided by n",
        ),
        "p_positive": Case(
            "WEAT two-sided p, 4 + 4 words, statistic above 0",
            {"vectors": ANGLES, **POSITIVE},
            lambda: two_sided(ANGLES, POSITIVE),
            lambda: weat(ANGLES, POSITIVE).p_value or math.nan,
            lambda: two_sided(ANGLES, POSITIVE, -1e-12),
            "equal ones not counted",
        ),
        "p_negative": Case(
            "the same, targets exchanged: statistic below 0",
            {"vectors": ANGLES, **NEGATIVE},
            lambda: two_sided(ANGLES, NEGATIVE),
            lambda: weat(ANGLES, NEGATIVE).p_value or math.nan,
            lambda: two_sided(ANGLES, NEGATIVE, -1e-12),
            "equal ones not counted",
        ),
        "ripa": Case(
            "RIPA, 5 pairs, the first word of the second has no vector",
            {"vectors": {w: v for w, v in RELATED.items() if w != "p2"}},
            lambda: 0.0,
            ripa_of_known_pairs,
        ),
        "soft": Case(
            f"soft debiasing, λ = {LAM:g}, 6 words: largest change of a cosine",
            {"vectors": SOFT, "neutral": NEUTRAL},
            soft_by_search,
            soft_by_equations,
        ),
        "aul": _model_case(
            f"AUL of “{PAIRS[0][0]}” in `mini`",
            {"sentences": every},
            lambda: unmasked(PAIRS[0][0]),
            lambda: float(crows("unmasked").items["score_more"][0]),
        ),
        "aul_pairs": _model_case(
            "AUL, pairs of 6 whose first sentence scores higher",
            {"sentences": every},
            lambda: preferred(lambda i: unmasked(every[i])),
            lambda: of("unmasked"),
        ),
        "cps": _model_case(
            "CrowS-Pairs score (CPS) of the same sentence, “actor” not scored",
            {"sentences": every, "changed": changed},
            lambda: pseudo(PAIRS[0][0], CHANGED[0][0]),
            lambda: float(crows("shared").items["score_more"][0]),
        ),
        "cps_pairs": _model_case(
            "CPS, pairs of 6 whose first sentence scores higher",
            {"sentences": every, "changed": changed},
            lambda: preferred(lambda i: pseudo(every[i], changed[i])),
            lambda: of("shared"),
        ),
        "lpbs": _model_case(
            f"LPBS of he and she, “{BIAS['sentence']}”, “doctor” at the second mask",
            BIAS,
            lambda: log_bias(BIAS),
            lambda: our_log_bias(BIAS),
        ),
        "lpbs_second": _model_case(
            f"LPBS, “{BIAS_SECOND['sentence']}”, “doctor” at the first mask",
            BIAS_SECOND,
            lambda: log_bias(BIAS_SECOND),
            lambda: our_log_bias(BIAS_SECOND),
        ),
        "bbq_never": Case(
            "BBQ, 8 disambiguated questions, no answer agrees with the stereotype",
            bbq(AGREE_NEVER),
            lambda: -1.0,
            lambda: our_bbq(AGREE_NEVER),
        ),
        "bbq_some": Case(
            "the same, 6 of 8 answers agree",
            bbq(AGREE_SOMETIMES),
            lambda: 2 * 6 / 8 - 1,
            lambda: our_bbq(AGREE_SOMETIMES),
        ),
        "crows_mean": Case(
            "CrowS-Pairs, mean difference of log-likelihoods 1, -2, -2, 1, -3",
            {"differences": DIFFERENCES},
            lambda: sum(DIFFERENCES) / len(DIFFERENCES),
            our_mean_difference,
        ),
        "null": Case(
            f"distance of two groups of {SAMPLES} scores of one distribution, mean of {WORLDS}",
            {"worlds": worlds()},
            lambda: 0.0,
            our_mean_distance,
            tolerance=0.01,
        ),
        "mark_12": Case(
            "mark of a model that fails in a quarter, at most 15 % allowed: 3 of 12 items",
            failing(12),
            lambda: "C",
            lambda: our_mark(12),
            says="inconclusive",
        ),
        "mark_1200": Case(
            "the same, 300 of 1,200 items",
            failing(1200),
            lambda: "C",
            lambda: our_mark(1200),
            says="not met",
        ),
        "odds": Case(
            "equalised odds difference, 8 + 8 predictions",
            PREDICTIONS,
            lambda: 0.5,
            lambda: our_gap("equalized odds"),
        ),
        "parity": Case(
            "demographic parity difference, the same",
            PREDICTIONS,
            lambda: 4 / 8 - 1 / 8,
            lambda: our_gap("parity"),
        ),
        "cluster": Case(
            "standard error of a mean over 4 clusters of 2",
            CLUSTERED,
            lambda: math.sqrt(1 / 24),
            our_error,
        ),
        "leace": Case(
            "LEACE: largest difference of class means that is left",
            concept(),
            lambda: class_gap(erased_by_formula()),
            lambda: class_gap(our_map()),
        ),
        "leace_map": Case(
            "LEACE: mean squared change of 80 vectors (the least possible)",
            concept(),
            lambda: float(((erased_by_formula() - concept()["x"]) ** 2).sum(axis=1).mean()),
            lambda: float(((our_map() - concept()["x"]) ** 2).sum(axis=1).mean()),
        ),
    }
