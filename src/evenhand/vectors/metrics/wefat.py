"""WEFAT: does a word's association with two attribute sets follow a fact about the word?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import lexicon
from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import Job, Run, instrument, run_jobs
from evenhand.lexicon import Query, Topic, WefatQuery
from evenhand.results import Item, Measurement
from evenhand.statistics.association import project
from evenhand.statistics.correlation import pearson
from evenhand.statistics.intervals import Floats, fisher_z
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.vectors.probes import Material, MeanScore, Question, WordMetric, items_of, resolve
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups, refuse_shared
from evenhand.wording import interval, number

_CHUNK = 1 << 15
"""Facts permuted per batch; small enough for the CPU cache."""


@dataclass(frozen=True, slots=True)
class WefatStatistic(MeanScore):
    """WEFAT's word score with the attribute words fixed."""

    a: Floats
    b: Floats

    def scores(self, vectors: Floats) -> Floats:
        cosines = project(vectors, np.concatenate([self.a, self.b]))
        split = len(self.a)
        difference = cosines[:, :split].mean(axis=1) - cosines[:, split:].mean(axis=1)
        return np.asarray(difference / cosines.std(axis=1, ddof=1))[:, None]


@instrument(
    name="wefat",
    label="WEFAT",
    question="Does a word's association with two attribute sets follow a fact about the world?",
    formula="s(w) = (mean cos(w, a in A) - mean cos(w, b in B)) / sd of these cosines; Pearson's "
    "correlation of s with the fact, or the mean of s where there are no facts",
    source="Caliskan, Bryson & Narayanan (2017)",
    material="words with a fact about each, or a query with one target and two attribute sets",
    reading="With facts, such as the percentage of women in an occupation, a correlation between "
    "-1 and 1: how closely the vectors follow the facts.",
    caveats=("Vectors that follow a fact about the world need not be fair.",),
)
class Wefat(WordMetric):
    r"""WEFAT: whether the association of words with A against B follows facts about them.

    The material is a `WefatQuery`, words with the percentage of women of each, or a query with one
    target set and two attribute sets, without facts.

    Returns
    -------
    Measurement
        With facts, Pearson's correlation of word scores and facts; without, the mean word score.
        The items have the scores.

    Notes
    -----
    .. math:: s(w) = \frac{\operatorname{mean}_{a \in A} \cos(w, a)
              - \operatorname{mean}_{b \in B} \cos(w, b)}
              {\operatorname{std}_{x \in A \cup B} \cos(w, x)}

    Caliskan, Bryson & Narayanan (2017), with n - 1 in the standard deviation.

    Examples
    --------
    >>> import evenhand as eh
    >>> query = eh.lexicon.wefat("wefat-occupations")
    >>> eh.vectors.Wefat()(eh.vectors.load("glove"), query).low > 0.3
    True
    """

    target_sets = 1
    attribute_sets = 2

    def audit(self, subject: Vectors, run: Run, data: object) -> dict[str, object]:
        """All built-in words with facts."""
        jobs = [Job(self, query) for query in lexicon.wefat_queries()]
        done = run_jobs(subject, run.steps(jobs), run)
        return {"measurements": tuple(done), "skipped": done.skipped}

    @classmethod
    def default_material(cls) -> Question:
        return lexicon.wefat("wefat-occupations")

    def misfit(self, material: Material | None = None) -> str | None:
        question = self.default_material() if material is None else resolve(material)
        return None if isinstance(question, WefatQuery) else super().misfit(question)

    def topic_misfit(self, topic: Topic) -> str | None:
        return f"takes words with facts or a query, '{topic.name}' is a topic"

    def answer(self, v: Vectors, question: Query | WefatQuery, run: Run) -> Iterator[Measurement]:
        what, facts = f"wefat '{question.name}'", None
        if isinstance(question, WefatQuery):
            A, B = question.attributes["female"], question.attributes["male"]
            words, facts = question.words, question.shares
        else:
            (words,) = question.targets.values()
            A, B = question.attributes.values()
        first = known(v, A, f"{what}: attribute set A")
        second = known(v, B, f"{what}: attribute set B")
        refuse_shared(first, second, f"{what}: attribute sets A and B")
        if len(first.words) + len(second.words) < 3:
            raise VocabularyError(f"{what}: expected at least 3 attribute words, got 2")
        statistic = WefatStatistic(v.unit(first.rows), v.unit(second.rows))
        unknown = [word for word in words if facts is not None and word not in facts]
        if unknown:
            raise InputError(f"{what}: no fact given for {', '.join(unknown[:8])}")
        fewest = 2 if facts is None else 4
        probes = known_groups(v, {"words": words}, f"{what}: list", at_least=fewest)
        if facts is None:
            fixed = (first, second)
            yield self.score(v, statistic, probes, query=question.name, run=run, fixed=fixed)
            return
        scores = statistic.scores(v.raw(probes.rows))[:, 0]
        truth = np.array([_number(facts[word], word, what) for word in probes.words])
        if truth.std() == 0 or scores.std() == 0:
            raise InputError(f"{what}: a correlation needs facts and scores that vary")
        value, without = pearson(scores, truth)
        test = _permutation_test(scores, truth, self.permutations, run.seed)
        yield self.declaration.result(
            run,
            question.name,
            (value, *fisher_z(value, len(scores), run.prob)),
            subject=v.name,
            p_value=test.p_value if test else None,
            test=f"{test.draws:,} random permutations of the facts" if test else "",
            n=len(scores),
            interval="Fisher z over the words, attribute words held fixed",
            items=items_of(probes, {"score": scores, "fact": truth, "without": without}),
            left_out=tuple(dict.fromkeys([*first.missing, *second.missing, *probes.missing])),
            details={"mean_score": float(scores.mean()), **(test.details if test else {})},
        )

    @staticmethod
    def charts(measurement: Measurement) -> dict[str, Any]:
        """The fact about each word against its association with the first attributes."""
        from evenhand.charts import heading, scatter

        m, named = measurement, _labelled(measurement.items)
        chart = scatter(
            [
                {
                    "word": item["word"],
                    "fact": item["fact"],
                    "score": item["score"],
                    "left" if item["fact"] <= 60 else "right": item["word"]
                    if item["word"] in named
                    else "",
                }
                for item in m.items
            ],
            x="fact",
            y="score",
            x_title="percent women",
            y_title="nearer men's words  ←  →  women's",
            x_scale={"domain": [0, 100]},
            tips={"word": "", "fact": "percent women", "score": "score"},
            title=heading(
                f"Associations and facts, {m.query}",
                f"r = {number(m.value, 2)}, interval {interval(m.low, m.high, 2)}",
            ),
        )
        return {
            "facts": chart.properties(
                description="each dot is a word, placed by the share of women and by its "
                "association with women's or men's words; a rising line means that the vectors "
                "mirror the fact. Whether a program may use that is another question."
            )
        }

    @staticmethod
    def clause(m: Measurement) -> str:
        """Whether scores follow the facts or, without facts, to which attributes words lean."""
        if "mean_score" in m.details:
            return f"the words' associations {'follow' if m.value > 0 else 'go against'} the facts"
        return f"the words lean to the {'first' if m.value > 0 else 'second'} attributes"


def _number(fact: object, word: str, what: str) -> float:
    if isinstance(fact, int | float) and np.isfinite(fact):
        return float(fact)
    raise InputError(f"{what}: expected a number as the fact of '{word}', got {fact!r}")


def _permutation_test(x: Floats, y: Floats, permutations: int, seed: int) -> Counted | None:
    if not permutations:
        return None
    a, b = x - x.mean(), y - y.mean()
    observed = abs(float(a @ b)) * (1 - 1e-12)
    step = max(1, _CHUNK // x.size)

    def count(size: int, seed: Seed) -> int:
        rng, extreme = np.random.default_rng(seed), 0
        for start in range(0, size, step):
            shuffled = np.tile(b, (min(step, size - start), 1))
            rng.permuted(shuffled, axis=1, out=shuffled)
            extreme += int((np.abs(shuffled @ a) >= observed).sum())
        return extreme

    return draw_until_clear(count, permutations, seed)


def _labelled(items: Sequence[Item]) -> set[str]:
    """The words of the strongest scores whose labels overlap no other label and no other dot."""
    half = 0.05 * max(abs(item["score"]) for item in items)
    taken: list[tuple[float, float, float]] = []
    named: set[str] = set()
    for item in sorted(items, key=lambda item: -abs(item["score"])):
        length = 3 + 2.0 * len(item["word"])
        start = item["fact"] + 1 if item["fact"] <= 60 else item["fact"] - 1 - length
        free = not any(
            start < other["fact"] < start + length and abs(other["score"] - item["score"]) < half
            for other in items
            if other["word"] != item["word"]
        ) and not any(
            start < end and begin < start + length and abs(y - item["score"]) < 2 * half
            for begin, end, y in taken
        )
        if free and len(named) < 14:
            taken.append((start, start + length, item["score"]))
            named.add(item["word"])
    return named
