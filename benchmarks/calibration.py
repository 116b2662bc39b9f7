"""False alarms, coverage and power of every command that judges, in worlds with a known truth.

    python benchmarks/calibration.py [--rooms vectors,fewshot] [--worlds 2000] [--seed 0]

Each room simulates worlds without bias, runs what its command runs and reads what the command says:
an alarm is a sentence that starts with "Found", or a verdict with evidence. Coverage is the share
of 95 % intervals with the truth inside. `naive` is the share of alarms of the usual interval over
single texts (or cells, pairs, answers), all taken as independent. Power is the share of worlds with
an effect of d = .5 or .8, in standard deviations of the items, in which it is found.

The rows are merged into docs/results/calibration.csv, so that rooms can be run one at a time; the
table of docs/concepts/simulation.md is printed and written into the page (`--table` does that
without any runs). Expensive rooms use fewer worlds than asked for.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy import stats

import evenhand as eh
from evenhand.instruments import Run, judge_results
from evenhand.results import Measurement
from evenhand.summary import summarize
from published import replace_table

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "docs/results/calibration.csv"
PAGE = ROOT / "docs/concepts/simulation.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- calibration.csv -->", "<!-- end of calibration.csv -->"
"""Around the table of the page."""
TRUST = {
    "vectors": "word vectors",
    "models": "pronouns and professions in models",
    "benchmarks": "CrowS-Pairs, StereoSet, BBQ",
    "answers": "answers of chat models",
    "classifier": "classifiers",
    "fewshot": "few-shot classifiers, new classes",
    "scores": "models compared by scores",
}
"""The rooms that have a usual test, as README names them."""
COLUMNS = (
    "command",
    "world",
    "nominal",
    "worlds",
    "alarms",
    "rate",
    "low",
    "high",
    "coverage",
    "naive",
    "power_05",
    "power_08",
)
NOMINAL = 0.05
FEW = 400
"""Worlds of rows that take a second or so each."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command said of one world."""

    found: bool
    covered: bool | None = None
    naive: bool | None = None


@dataclass(frozen=True, kw_only=True)
class World:
    """Worlds of one kind; `draw(seed, d)` runs the command on one with an effect of size d."""

    name: str
    draw: Callable[[int, float], Outcome]
    power: bool = True


def differ(sides: Sequence[Any], level: float = NOMINAL) -> bool:
    """Whether the usual test of two means finds a difference; equal values have none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return bool(stats.ttest_ind(*sides, equal_var=False).pvalue < level)


def row(command: str, world: World, worlds: int, seed: int) -> dict[str, Any]:
    """Run the worlds; power has a quarter of them."""
    first = seed * 1_000_000
    outcomes = [world.draw(first + i, 0.0) for i in range(worlds)]
    alarms = sum(outcome.found for outcome in outcomes)
    limits = stats.binomtest(alarms, worlds).proportion_ci(method="exact")
    few = max(worlds // 4, min(worlds, 10))
    power = {
        name: float(np.mean([world.draw(first + i, d).found for i in range(few)]))
        if world.power
        else None
        for name, d in (("power_05", 0.5), ("power_08", 0.8))
    }
    return {
        "command": command,
        "world": world.name,
        "nominal": NOMINAL,
        "worlds": worlds,
        "alarms": alarms,
        "rate": alarms / worlds,
        "low": float(limits.low),
        "high": float(limits.high),
        "coverage": share(outcome.covered for outcome in outcomes),
        "naive": share(outcome.naive for outcome in outcomes),
        **power,
    }


def share(values: Iterable[bool | None]) -> float | None:
    """The share of known values that are true."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def says_found(measured: Sequence[Measurement]) -> bool:
    """Whether the sentence of a command says that bias was found."""
    return summarize(measured).startswith("Found")


def holds(m: Measurement, truth: float) -> bool:
    """Whether the interval has the truth inside."""
    return m.low <= truth <= m.high


# ----------------------------------------------------------------------------------------- vectors

FAST = {"permutations": 4999, "null": 199}


@dataclass(frozen=True)
class Words:
    """Word lists of a simulated topic: their sizes, and what words of a class share."""

    protected: int = 8
    stereotypes: int = 12
    unequal: bool = False
    neighbours: float = 0.0
    """The length of what the stereotypes of a class share (their noise has length 1)."""
    pairs: bool = False
    """Whether only pairs of neighbouring words share it."""

    def simulate(self, seed: int, bias: float) -> tuple[Any, Any]:
        world = eh.simulate.world(
            dim=50,
            vocabulary=600,
            protected=self.protected,
            stereotypes=self.stereotypes,
            bias=bias,
            seed=seed,
        )
        topic, matrix = world.topic, world.matrix.copy()
        if self.neighbours:
            rng = np.random.default_rng([seed, 1])
            place = {word: i for i, word in enumerate(world.words)}
            for listed in topic.stereotypes.values():
                step = 2 if self.pairs else len(listed)
                for start in range(0, len(listed), step):
                    shared = rng.normal(size=matrix.shape[1])
                    shared *= self.neighbours / np.linalg.norm(shared)
                    for word in listed[start : start + step]:
                        matrix[place[word]] += shared
        if self.unequal:
            topic = replace(
                topic,
                protected=first_words(topic.protected, (self.protected, 3)),
                stereotypes=first_words(topic.stereotypes, (self.stereotypes, 4)),
            )
        return eh.vectors.Vectors.from_arrays(world.words, matrix, name="simulated"), topic

    def measure(self, seed: int, bias: float) -> tuple[list[Measurement], Any]:
        vectors, topic = self.simulate(seed, bias)
        table = eh.vectors.distance_table(vectors, topic)
        return list(eh.measure(vectors, topic, options=FAST)), table

    def draw(self, seed: int, d: float) -> Outcome:
        from evenhand.report.verdicts import judge

        measured, table = self.measure(seed, d * self.unit())
        verdict = judge("vectors", measured)
        contrast = next(m for m in measured if m.metric == "association")
        connection = table.connection()
        cells = [table.distance[connection == kind] for kind in ("associated", "different")]
        return Outcome(
            found=says_found(measured) or verdict.found,
            covered=holds(contrast, 0.0),
            naive=differ(cells),
        )

    def unit(self) -> float:
        """The bias of size d = 1, words of a class being independent."""
        return unit_bias(self.protected, self.stereotypes)


@cache
def unit_bias(protected: int, stereotypes: int) -> float:
    """The bias whose median size in 30 worlds is d = 1."""
    words, bias, sizes = Words(protected, stereotypes), 0.3, []
    for seed in range(30):
        measured, _ = words.measure(seed, bias)
        sizes += [j.size for _, j in judge_results(measured) if j.test.metric == "association"]
    return bias / float(np.median([size for size in sizes if size is not None]))


def first_words(lists: Mapping[str, Sequence[str]], sizes: Sequence[int]) -> dict[str, Any]:
    """The first words of each list."""
    return {name: tuple(words[:n]) for (name, words), n in zip(lists.items(), sizes, strict=True)}


def vectors_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """The measures of vectors on a topic of two classes."""
    kinds = {
        "8 protected words, 12 stereotypes a class": Words(),
        "4 protected words, 4 stereotypes a class": Words(4, 4),
        "unequal classes: 8 and 3, 12 and 4 words": Words(unequal=True),
        "stereotypes in pairs of neighbours": Words(neighbours=1.0, pairs=True),
        "stereotypes of a class share a tenth of their variance": Words(neighbours=1 / 3),
        "stereotypes of a class share half of their variance": Words(neighbours=1.0),
    }
    return [
        row("vectors measure", World(name=name, draw=kind.draw), worlds, seed)
        for name, kind in kinds.items()
    ]


# ------------------------------------------------------------------------------------------ models


@dataclass(frozen=True)
class Sentences:
    """The pronouns that a masked model expects in sentences, and what professions suggest."""

    count: int = 60
    groups: int = 60
    """Sentences of one group share half of the variance."""
    spread: float = 0.7
    templates: int = 6
    professions: int = 20
    pairs: int = 6

    def pronouns(self, rng: np.random.Generator, d: float) -> Measurement:
        from evenhand.models.metrics.pronouns import BUILT_IN, Pronouns, _summarise
        from evenhand.results import Items

        group = np.arange(self.count) % self.groups
        common = rng.normal(size=self.groups)[group] if self.groups < self.count else 0.0
        own = rng.normal(size=self.count)
        z = own if self.groups == self.count else (own + common) / math.sqrt(2)
        p = 1 / (1 + np.exp(-self.spread * (z + d)))
        rows = {
            "masked": [f"sentence {i}" for i in range(self.count)],
            "pronoun": [""] * self.count,
            "slot": [""] * self.count,
            "p_male": 0.8 * p,
            "p_female": 0.8 * (1 - p),
            "in_top": ["both"] * self.count,
        }
        return _summarise(
            Items(rows),
            Pronouns(),
            Run(),
            query=BUILT_IN,
            subject="model",
            left_out=(),
            counts={},
            notes=(),
        )

    def jobs(self, rng: np.random.Generator, d: float, causal: bool) -> Measurement:
        """The contrast of professions; d in standard deviations of professions' means."""
        from evenhand.models.metrics.professions import _measurement

        shape = (self.templates, self.professions, self.pairs)
        men = np.arange(self.professions) % 2 == 0
        table = 0.3 * rng.normal(size=(self.templates, 1, 1)) + 0.2 * rng.normal(size=shape)
        table = table + 0.5 * (rng.normal(size=(1, self.professions, 1)) + d * men[None, :, None])
        # templates and pairs of persons that suit the professions of one gender
        table = table + 0.1 * rng.normal(size=(self.templates, 1, 1)) * men[None, :, None]
        table = table + 0.1 * rng.normal(size=(1, 1, self.pairs)) * men[None, :, None]
        target = np.stack([table / 2, -table / 2], axis=-1) - 3
        return _measurement(
            design_of(shape),
            target,
            np.full_like(target, -3.0),
            query="professions",
            subject="model",
            run=Run(),
            causal=causal,
        )

    def masked(self, seed: int, d: float) -> Outcome:
        from evenhand.report.verdicts import judge

        rng = np.random.default_rng(seed)
        pronouns, jobs = self.pronouns(rng, d), self.jobs(rng, d, False)
        scores = np.asarray(pronouns.items["p_male"]) / 0.8
        measured = [pronouns, jobs]
        return Outcome(
            found=says_found(measured) or judge("masked", measured).found,
            covered=holds(pronouns, 0.5),
            naive=bool(stats.ttest_1samp(scores, 0.5).pvalue < NOMINAL / 2)
            or naive_contrast(jobs, NOMINAL / 2),
        )

    def causal(self, seed: int, d: float) -> Outcome:
        from evenhand.report.verdicts import judge

        jobs = self.jobs(np.random.default_rng(seed), d, True)
        [contrast] = jobs.select("contrast")
        return Outcome(
            found=says_found([jobs]) or judge("causal", [jobs]).found,
            covered=holds(contrast, 0.0),
            naive=naive_contrast(jobs, NOMINAL),
        )


def naive_contrast(jobs: Measurement, level: float) -> bool:
    """Welch's test of all sentences about men's against those about women's professions."""
    rows = list(jobs.items)
    sides = [
        [item["difference"] for item in rows if item["group"] == side]
        for side in ("male", "female")
    ]
    return differ(sides, level)


@cache
def design_of(shape: tuple[int, int, int]) -> Any:
    """Sentences of so many templates, professions and pairs of persons."""
    from evenhand.lexicon.templates import PersonPair, Profession, Template, TemplateSet
    from evenhand.models.designs import design

    templates, professions, pairs = shape
    persons = tuple(PersonPair(f"man{i}", f"woman{i}") for i in range(pairs))
    frames = tuple(Template(f"{{person}} verb{i} a {{profession}}.") for i in range(templates))
    jobs = [Profession(f"job{i}", "female" if i % 2 else "male") for i in range(professions)]
    return design(TemplateSet(frames, persons), jobs, persons)


def models_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Masked models by pronouns and professions, causal models by professions."""
    masked = {
        "60 sentences; 6 templates, 20 professions, 6 pairs of persons": Sentences(),
        "20 sentences; 2 templates, 8 professions, 2 pairs": Sentences(20, 20, 0.7, 2, 8, 2),
        "scores near 0 and 1": Sentences(spread=5.0),
        "60 sentences of 10 kinds that are alike": Sentences(groups=10),
    }
    causal = {
        "6 templates, 20 professions, 6 pairs of persons": Sentences(),
        "2 templates, 20 professions, 2 pairs": Sentences(templates=2, pairs=2),
        "3 templates, 8 professions, 6 pairs": Sentences(templates=3, professions=8),
    }
    return [
        *(
            row("model measure (masked)", World(name=name, draw=kind.masked), worlds, seed)
            for name, kind in masked.items()
        ),
        *(
            row("model measure (causal)", World(name=name, draw=kind.causal), worlds, seed)
            for name, kind in causal.items()
        ),
    ]


# -------------------------------------------------------------------------------------- benchmarks


def preferences(
    rng: np.random.Generator, clusters: int, each: int, icc: float, d: float
) -> tuple[np.ndarray, np.ndarray]:
    """Differences of two scores with mean d and variance 1, alike within clusters."""
    of = np.repeat(np.arange(clusters), each)
    common = rng.normal(size=clusters)[of]
    return of, d + math.sqrt(icc) * common + math.sqrt(1 - icc) * rng.normal(size=of.size)


def crows(clusters: int, each: int, icc: float, seed: int, d: float) -> Outcome:
    """CrowS-Pairs, clustered by writer."""
    from evenhand.models.metrics.crows import Crows

    of, x = preferences(np.random.default_rng(seed), clusters, each, icc, d)
    rows = [
        {
            "line": i,
            "bias_type": f"category {i % 3}",
            "stereo_antistereo": "stereo",
            "writer": str(writer),
            "sent_more": f"more {i}",
            "sent_less": f"less {i}",
            "scored_tokens": 5,
            "score_more": value,
            "score_less": 0.0,
            "difference": value,
            "prefers": "more" if value > 0 else "less",
        }
        for i, (writer, value) in enumerate(zip(of, x, strict=True))
    ]
    about = {"query": "pairs", "subject": "model", "method": "shared", "run": Run()}
    m = Crows().summarise(rows, (), **about)
    naive = stats.binomtest(int((x > 0).sum()), x.size).pvalue < NOMINAL
    return Outcome(found=says_found([m]), covered=holds(m, 0.5), naive=bool(naive))


def stereoset(clusters: int, each: int, icc: float, seed: int, d: float) -> Outcome:
    """StereoSet, clustered by target term."""
    from evenhand.models.metrics.stereoset import StereoSet

    rng = np.random.default_rng(seed)
    of, x = preferences(rng, clusters, each, icc, d)
    rows = [
        {"target": f"term {t}", "stereotype": v, "anti": 0.0, "unrelated": u}
        for t, v, u in zip(of, x, rng.normal(-2, 1, x.size), strict=True)
    ]
    m = StereoSet().summarise(rows, "items", Run(), "model")
    naive = stats.binomtest(int((x > 0).sum()), x.size).pvalue < NOMINAL
    return Outcome(found=says_found([m]), covered=holds(m, 0.5), naive=bool(naive))


def bbq(clusters: int, each: int, icc: float, unknown: float, seed: int, d: float) -> Outcome:
    """BBQ: answers that agree with the stereotype, the opposite or "unknown", by template."""
    from evenhand.models.metrics.bbq import Bbq

    rng = np.random.default_rng(seed)
    _, x = preferences(rng, clusters, each, icc, d)
    known = rng.random(x.size) >= unknown
    ambiguous = np.where(known, np.where(x > 0, 0, 1), 2)
    clear = np.where(rng.random(x.size) < 0.8, np.arange(x.size) % 2, 2)
    answers = np.stack([ambiguous, clear], axis=1).ravel()
    m = Bbq().summarise(questions_of(clusters, each), answers, subject="model")
    agreeing = int((ambiguous == 0).sum())
    naive = bool(known.any()) and stats.binomtest(agreeing, int(known.sum())).pvalue < NOMINAL
    return Outcome(found=says_found([m]), covered=holds(m, 0.0), naive=bool(naive))


@cache
def questions_of(clusters: int, each: int) -> list[Any]:
    """Questions of templates, each with an ambiguous and a clear context."""
    from evenhand.models.metrics.bbq import BbqQuestion

    return [
        BbqQuestion(
            template=str(i // each),
            category="age",
            context="Anna and Ben came.",
            question="Who was late?",
            answers=("Anna", "Ben", "unknown"),
            right=2 if ambiguous else i % 2,
            unknown=2,
            stereotyped=0,
            negative=True,
            ambiguous=ambiguous,
            line=2 * i + (not ambiguous),
        )
        for i in range(clusters * each)
        for ambiguous in (True, False)
    ]


def benchmarks_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Answers to published benchmarks, alike within writers, terms or templates."""
    kinds = [
        ("crows", "100 pairs, one a writer", partial(crows, 100, 1, 0.0)),
        ("crows", "20 writers of 5 pairs, ICC .3", partial(crows, 20, 5, 0.3)),
        ("crows", "77 writers of 20 pairs, ICC .05", partial(crows, 77, 20, 0.05)),
        ("crows", "5 writers of 20 pairs, ICC .3", partial(crows, 5, 20, 0.3)),
        ("stereoset", "79 terms of 10 items, ICC .3", partial(stereoset, 79, 10, 0.3)),
        ("stereoset", "20 terms of 5 items, ICC .5", partial(stereoset, 20, 5, 0.5)),
        ("stereoset", "6 terms of 20 items, ICC .5", partial(stereoset, 6, 20, 0.5)),
        ("bbq", "25 templates of 8 questions, ICC .3", partial(bbq, 25, 8, 0.3, 0.3)),
        ("bbq", "6 templates of 20 questions, ICC .5", partial(bbq, 6, 20, 0.5, 0.3)),
        ("bbq", "3 templates of 20 questions, ICC .5", partial(bbq, 3, 20, 0.5, 0.3)),
        ("bbq", "25 templates of 8, 95 % unknown", partial(bbq, 25, 8, 0.3, 0.95)),
    ]
    return [
        row(f"model measure ({name})", World(name=world, draw=draw), worlds, seed)
        for name, world, draw in kinds
    ]


# -------------------------------------------------------------------------------------- classifier


@dataclass(frozen=True)
class Texts:
    """Predictions for texts of two groups; clusters have rates of their own."""

    clusters: int
    each: int
    classes: int = 2
    rate: float = 0.7
    share: float = 0.5
    mixed: bool = True
    """Whether a cluster has texts of both groups."""
    alike: float = 0.0
    """The variance between clusters, in units of the logistic distribution's."""

    def draw(self, seed: int, d: float) -> Outcome:
        from evenhand.classifier import read_predictions
        from evenhand.report.verdicts import judge

        rng = np.random.default_rng(seed)
        of = np.repeat(np.arange(self.clusters), self.each)
        second = (
            rng.random(of.size) >= self.share
            if self.mixed
            else of >= max(1, round(self.clusters * self.share))
        ).astype(int)
        noise = rng.normal(size=(2, self.clusters)) * math.sqrt(self.alike / 2)
        own = rng.normal(size=self.clusters) * math.sqrt(self.alike / 2)
        gap = d * math.pi / math.sqrt(3)
        centre = math.log(self.rate / (1 - self.rate)) * math.sqrt(1 + self.alike)
        logit = centre + 1.81 * (own[of] + noise[second, of]) - gap * (second - 0.5)
        hit = rng.random(of.size) < 1 / (1 + np.exp(-logit))
        true = rng.integers(self.classes, size=of.size)
        wrong = (true + rng.integers(1, self.classes, size=of.size)) % self.classes
        table = pd.DataFrame(
            {
                "y_true": [f"class {i}" for i in true],
                "y_pred": [f"class {i}" for i in np.where(hit, true, wrong)],
                "group": np.where(second, "b", "a"),
                "person": of,
            }
        )
        how = {"cluster": "person"} if self.alike else {}
        if self.classes == 2:
            how["positive"] = "class 1"
        subject = read_predictions(table, true="y_true", pred="y_pred", group="group", **how)
        measured = list(eh.measure(subject, options={"permutations": 1999}))
        hits = [hit[second == side] for side in (0, 1)]
        [tpr] = [m for m in measured if m.metric == "tpr-gap"] or [None]
        return Outcome(
            found=says_found(measured) or judge("predictions", measured).found,
            covered=holds(tpr, 0.0) if tpr is not None and self.classes == 2 else None,
            naive=differ(hits),
        )


def classifier_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Classifiers, by single texts and by clusters such as persons."""
    kinds = {
        "2 classes, 200 texts": Texts(200, 1),
        "4 classes, 400 texts": Texts(400, 1, classes=4),
        "2 classes, 300 texts, a tenth of one group, 97 % right": Texts(
            300, 1, rate=0.97, share=0.9
        ),
        "4 classes, 200 texts, a tenth of one group": Texts(200, 1, classes=4, share=0.9),
        "3 clusters of both groups": Texts(3, 40, alike=0.5),
        "10 clusters of both groups": Texts(10, 20, alike=0.5),
        "10 clusters of one group each": Texts(10, 20, alike=0.5, mixed=False),
        "30 clusters of one group each, 6 and 24": Texts(30, 8, alike=0.5, mixed=False, share=0.2),
        "10 clusters of both groups, 97 % right": Texts(10, 20, alike=0.5, rate=0.97),
        "40 clusters of both groups, 4 classes": Texts(40, 8, classes=4, alike=0.5),
    }
    return [
        row(
            "classifier --cluster" if kind.alike else "classifier",
            World(name=name, draw=kind.draw),
            worlds,
            seed,
        )
        for name, kind in kinds.items()
    ]


# ---------------------------------------------------------------------------- few-shot, posterior


def from_tests(module: str, folder: str) -> Any:
    """A module of the tests, for the worlds that it simulates."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / folder)]
    imported = import_module(module)
    del sys.path[:2]
    return imported


def fewshot(spread: float, seed: int, d: float) -> Outcome:
    """The verdict on three networks; gains of classes have this spread, and a mean of d of it."""
    of_classes = from_tests("test_fewshot_verdicts", "report").of_classes
    verdict = of_classes(seed, spread, mean=d * spread)
    first = verdict.tests[0]
    return Outcome(
        found=verdict.found,
        covered=first.low <= 0 <= first.high,
        naive=any(test.in_tested for test in verdict.tests),
    )


def fewshot_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Few-shot runs; the naive test is that of the classes tested."""
    return [
        row(
            "fewshot",
            World(name=f"18 classes differ by sd {spread}", draw=partial(fewshot, spread)),
            min(worlds, FEW),
            seed,
        )
        for spread in (0.05, 0.2)
    ]


@dataclass(frozen=True)
class Tables:
    """Tables of distances, as in benchmarks/posterior_worlds.py."""

    eta: float = 0.0
    """The standard deviation of effects of class and attribute together."""
    neighbours: tuple[int, float] = (1, 0.0)
    freedom: float | None = None
    words: tuple[int, ...] = (5, 5, 5)
    stereotypes: tuple[int, ...] = (4, 3, 4)

    def table(self, seed: int, d: float) -> Any:
        scales = {"error": 0.075, "stereotype": 0.155, "delta": 0.02, "word": 0.067}
        scales |= {"human": 0.08, "neutral": 0.075, "interaction_stereotype": self.eta}
        scales |= dict.fromkeys(("interaction_human", "interaction_neutral"), self.eta / 2)
        sd = math.sqrt(0.075**2 / self.words[0] + 0.02**2 + self.eta**2)
        return eh.posterior.simulate(
            delta=-d * sd,
            words=self.words,
            stereotypes=self.stereotypes,
            human=8,
            neutral=12,
            scales=scales,
            freedom=self.freedom,
            correlated=self.neighbours,
            seed=seed,
        )

    def fit(self, seed: int, d: float) -> Outcome:
        from threadpoolctl import threadpool_limits

        from evenhand.posterior.crossed import fit_crossed

        table = self.table(seed, d)
        with threadpool_limits(1, "blas"):
            fitted = fit_crossed(table, draws=600, seed=seed, warm_up=(30, 40, 60), attempts=1)
        delta = eh.posterior.measure_contrasts(fitted)["associated-different"]
        return Outcome(
            found=says_found([delta]), covered=holds(delta, 0.0), naive=naive_cells(table)
        )

    def describe(self, seed: int, d: float) -> Outcome:
        table = self.table(seed, d)
        measured = eh.posterior.describe_table(table).measurements
        contrast = next(m for m in measured if m.metric == "association")
        return Outcome(
            found=says_found(measured), covered=holds(contrast, 0.0), naive=naive_cells(table)
        )


def naive_cells(table: Any) -> bool:
    """Welch's test of the distances to own and to other stereotypes."""
    cells = [table.distance[table.connection == kind] for kind in (0, 1)]
    return differ(cells)


def posterior_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Tables of distances by `posterior describe`, and by chains."""
    kinds = {
        "3 classes of 5 words, 11 stereotypes": Tables(),
        "the same, effects of class × attribute": Tables(0.056),
        "the same, heavy tails": Tables(0.056, freedom=3),
        "neighbours in pairs": Tables(0.056, (2, 0.5)),
        "all stereotypes of a class neighbours": Tables(0.056, (4, 0.5)),
    }
    return [
        *(
            row("posterior describe", World(name=name, draw=kind.describe), worlds, seed)
            for name, kind in kinds.items()
        ),
        *(
            row("posterior fit", World(name=name, draw=kind.fit), min(worlds, FEW), seed)
            for name, kind in list(kinds.items())[1::3]
        ),
    ]


# ------------------------------------------------------------------------------------------- audit


def audit_of(seed: int, d: float) -> dict[str, bool]:
    """Which verdicts of an audit have evidence, from measurements of its subjects."""
    from evenhand.report.verdicts import judge
    from evenhand.text.metrics.odds import class_odds

    rng = np.random.default_rng([seed, 7])
    words, sentences = Words(), Sentences()
    topics = []
    for i in range(3):
        measured, _ = words.measure(3 * seed + i, d * words.unit())
        topics.append([replace(m, query=f"topic {i}") for m in measured])
    found = {
        f"vectors, topic {i}": judge(
            "vectors", own, others=[m for other in topics if other is not own for m in other]
        ).found
        for i, own in enumerate(topics)
    }
    model = [sentences.pronouns(rng, d), sentences.jobs(rng, d, False)]
    # a class of data whose log odds differ by d of the logistic distribution, and seven others
    odds = np.exp(d * math.pi / math.sqrt(3) * (np.arange(8) == 0))
    men, women = rng.poisson(25 * odds), rng.poisson(25, size=8)
    names = [f"class {i}" for i in range(8)]
    counts = (dict(zip(names, map(int, column), strict=True)) for column in (men, women))
    data = [replace(m, by="") for m in class_odds(*counts)]
    return {
        **found,
        "model": judge("masked", model).found,
        "data": judge("corpus", data).found,
        "predictions": Texts(200, 1).draw(seed, d).found,
        "classifier": fewshot(0.2, seed, d).found,
    }


def _of_list(found: Mapping[float, Sequence[bool]], i: int, d: float) -> Outcome:
    return Outcome(found=found[d][i])


def audit_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Each verdict of an audit without any bias, and all of them together."""
    worlds = min(worlds, FEW)
    drawn = {
        d: [audit_of(seed * 1_000_000 + i, d) for i in range(n)]
        for d, n in ((0.0, worlds), (0.5, max(worlds // 4, 10)), (0.8, max(worlds // 4, 10)))
    }
    rows = []
    for name in (*drawn[0.0][0], "any verdict of the audit"):
        found = {
            d: [own.get(name, any(own.values())) for own in outcomes]
            for d, outcomes in drawn.items()
        }
        world = World(name=name, draw=partial(_of_list, found))
        rows.append(row("audit", world, worlds, 0))
    rows[-1]["nominal"] = 1 - (1 - NOMINAL) ** 5  # five subjects, each with a family of its own
    return rows


WHOLE = 40
"""Whole audits; each takes about half a minute."""


def whole_audit(seed: int) -> dict[str, bool]:
    """Which verdicts of a quick audit of files without bias have evidence, by subject."""
    from evenhand.classifier import read_predictions
    from evenhand.simulate.biographies import biographies
    from evenhand.simulate.predictions import biased_predictions

    masked_model = from_tests("test_audit_worlds", "audit").masked_model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulated = eh.simulate.world(bias=0.0, dim=50, vocabulary=600, seed=seed)
        vectors = folder / "simulated.vec"
        eh.vectors.Vectors.from_arrays(simulated.words, simulated.matrix).save(vectors)
        texts = folder / "texts.csv"
        biographies(20, shares=0.0, leak=0.0, seed=seed).save(texts)
        found = eh.audit(
            vectors,
            model=masked_model(folder / "model", seed),
            data=texts,
            predictions=read_predictions(biased_predictions(400, seed=seed), group="gender"),
            topics=[simulated.topic],
            out=folder / "out",
            quick=True,
            seed=seed,
        )
        if found.failed:
            raise SystemExit(f"error: a part of the audit of seed {seed} failed: {found.failed}")
        return {
            verdict.subject: verdict.level in ("some evidence", "strong evidence")
            for verdict in found.verdicts
        }


def whole_rows(worlds: int, seed: int) -> list[dict[str, Any]]:
    """Each verdict of whole quick audits without any bias, and all of them together."""
    worlds = min(worlds, WHOLE)
    drawn = [whole_audit(seed * 1_000_000 + i) for i in range(worlds)]
    rows = []
    for name in (*drawn[0], "any verdict of the audit"):
        found = {0.0: [own.get(name, any(own.values())) for own in drawn]}
        world = World(name=name, draw=partial(_of_list, found), power=False)
        rows.append(row("audit --quick", world, worlds, 0))
    rows[-1]["nominal"] = 1 - (1 - NOMINAL) ** len(drawn[0])
    return rows


# ------------------------------------------------------------------------------- rooms, CSV, table


def module_rows(name: str, worlds: int, seed: int) -> list[dict[str, Any]]:
    """The rows of a room in a file of its own."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    found: list[dict[str, Any]] = import_module(name).rows(worlds, seed)
    for each in found:
        limits = stats.binomtest(each["alarms"], each["worlds"]).proportion_ci(method="exact")
        each |= {"low": float(limits.low), "high": float(limits.high)}
    return found


ROOMS: Mapping[str, Callable[[int, int], list[dict[str, Any]]]] = {
    "vectors": vectors_rows,
    "models": models_rows,
    "benchmarks": benchmarks_rows,
    "classifier": classifier_rows,
    "scores": partial(module_rows, "calibration_scores"),
    "fewshot": fewshot_rows,
    "posterior": posterior_rows,
    "answers": partial(module_rows, "calibration_answers"),
    "gate": partial(module_rows, "calibration_gate"),
    "audit": audit_rows,
    "whole": whole_rows,
}


def merge(room: str, rows: Sequence[Mapping[str, Any]], path: Path = CSV) -> pd.DataFrame:
    """The rows of a room in place of its old ones, the others as they are."""
    new = pd.DataFrame(rows, columns=COLUMNS)
    new.insert(0, "room", room)
    if path.exists():
        old = pd.read_csv(path)
        new = pd.concat([old[old.room != room], new])
    order = new.room.map(list(ROOMS).index)
    new = new.iloc[np.argsort(order.to_numpy(), kind="stable")]
    path.parent.mkdir(parents=True, exist_ok=True)
    new.to_csv(path, index=False, float_format="%.4f")
    return new


def number(value: float, digits: int = 3) -> str:
    """A share without its leading zero; a dash where there is none."""
    if pd.isna(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else text


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the docs: of the mixtures of `scores`, the one with the most alarms."""
    design = table.world.str.partition(";")[0]
    kind = design.where(table.command == "scores", table.index.astype(str))
    return table.loc[table.groupby(kind, sort=False).rate.idxmax()]


def markdown(table: pd.DataFrame) -> str:
    """The table of the docs; rows whose lower bound is above the nominal level are marked."""
    table = worst(table)
    lines = [
        "| command | world | worlds | false alarms | coverage | naive | power .5 | .8 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in table.itertuples():
        mark = "**" if each.low > each.nominal else ""
        alarms = f"{mark}{number(each.rate)}{mark} [{number(each.low)}, {number(each.high)}]"
        if each.nominal != NOMINAL:
            alarms += f" (nominal {number(each.nominal)})"
        shown = [each.command, each.world, f"{each.worlds:,}", alarms, number(each.coverage)]
        shown += [number(each.naive), number(each.power_05, 2), number(each.power_08, 2)]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def trust(table: pd.DataFrame) -> str:
    """The table of README: all worlds of a room, their median and the worst."""
    lines = [
        "| | worlds | 95 % intervals with the truth | false alarms | of the usual test |",
        "| --- | --- | --- | --- | --- |",
    ]
    for room, label in TRUST.items():
        rows = table[table.room == room]
        covered, found, usual = (rows[name] for name in ("coverage", "rate", "naive"))
        cells = [label, f"{rows.worlds.sum():,} of {len(rows)} kinds"]
        cells += [
            f"{number(column.median(), 2)} ({number(extreme, 2)})"
            for column, extreme in (
                (covered, covered.min()),
                (found, found.max()),
                (usual, usual.max()),
            )
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run rooms, merge their rows into the CSV and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rooms", default=",".join(ROOMS), help=f"of {', '.join(ROOMS)}")
    parser.add_argument("--worlds", type=int, default=2000, help="worlds per row, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--table", action="store_true", help="only print and write the table")
    asked = parser.parse_args()
    for room in [] if asked.table else asked.rooms.split(","):
        if room not in ROOMS:
            raise SystemExit(f"error: unknown room '{room}': expected some of {', '.join(ROOMS)}")
        start = time.time()
        merge(room, ROOMS[room](asked.worlds, asked.seed), asked.csv)
        print(f"{room}: {time.time() - start:.0f} s", file=sys.stderr, flush=True)
    rows = pd.read_csv(asked.csv)
    table = markdown(rows)
    if asked.csv == CSV:
        replace_table(PAGE, table, BEGIN, END)
        replace_table(README, trust(rows), "<!-- trust -->", "<!-- end of trust -->")
    print(table)


if __name__ == "__main__":
    main()
