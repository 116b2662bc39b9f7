"""WEFAT: does a word's association with two attribute sets follow a fact about the word?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand import lexicon
from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import Job, Run, instrument, run_jobs
from evenhand.lexicon import Query, Topic, WefatQuery
from evenhand.results import Measurement
from evenhand.statistics.association import project
from evenhand.statistics.intervals import Floats, fisher_z
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.vectors.probes import Material, MeanScore, Question, WordMetric, items_of, resolve
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import Groups, known, known_groups, refuse_shared

_CHUNK = 1 << 15
"""So many facts are permuted at once: they stay in the processor's cache."""


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
    subject="vectors",
    label="WEFAT",
    question="Does a word's association with two attribute sets follow a fact about the world?",
    formula="s(w) = (mean cos(w, a in A) - mean cos(w, b in B)) / sd of these cosines; Pearson's "
    "correlation of s with the fact, or the mean of s where there are no facts",
    source="Caliskan, Bryson & Narayanan (2017)",
    worse="away",
    stereotype=0,
    material="words with a fact about each, or a query with one target and two attribute sets",
    reading="With facts, such as the percentage of women in an occupation, a correlation between "
    "-1 and 1: how closely the vectors follow the facts.",
    caveats=("Vectors that follow a fact about the world need not be fair.",),
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Wefat(WordMetric):
    """The declaration of WEFAT; `wefat` is its function."""

    target_sets = 1
    attribute_sets = 2

    def audit(self, subject: Vectors, run: Run, data: Any) -> dict[str, Any]:  # noqa: ARG002
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

    def answer(self, v: Vectors, question: Query | WefatQuery, run: Run) -> list[Measurement]:
        if isinstance(question, WefatQuery):
            women, men = question.attributes["female"], question.attributes["male"]
            words, facts = question.words, question.shares
            return [self.compute(v, words, women, men, facts, question.name, run)]
        (words,) = question.targets.values()
        A, B = question.attributes.values()
        return [self.compute(v, words, A, B, None, question.name, run)]

    def compute(
        self,
        v: Vectors,
        words: Sequence[str],
        A: Sequence[str],
        B: Sequence[str],
        facts: Mapping[str, float] | None,
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these words."""
        first = known(v, A, f"wefat '{query}': attribute set A")
        second = known(v, B, f"wefat '{query}': attribute set B")
        refuse_shared(first, second, f"wefat '{query}': attribute sets A and B")
        if len(first.words) + len(second.words) < 3:
            raise VocabularyError(f"wefat '{query}': expected at least 3 attribute words, got 2")
        statistic = WefatStatistic(v.unit(first.rows), v.unit(second.rows))
        missing = [*first.missing, *second.missing]
        if facts is None:
            return self.read(
                v,
                statistic,
                known_groups(v, {"words": words}, f"wefat '{query}': list", at_least=2),
                query=query,
                run=run,
                fixed=np.concatenate([first.rows, second.rows]),
                left_out=missing,
            )
        words = list(words)
        unknown = [word for word in words if word not in facts]
        if unknown:
            raise InputError(f"wefat '{query}': no fact given for {', '.join(unknown[:8])}")
        probes = known_groups(v, {"words": words}, f"wefat '{query}': list", at_least=4)
        return self._correlate(v, statistic, probes, facts, query, run, missing)

    @staticmethod
    def clause(m: Measurement) -> str:
        """Whether scores follow the facts or, without facts, to which attributes words lean."""
        if "mean_score" in m.details:
            return f"the words' associations {'follow' if m.value > 0 else 'go against'} the facts"
        return f"the words lean to the {'first' if m.value > 0 else 'second'} attributes"

    def _correlate(
        self,
        v: Vectors,
        statistic: WefatStatistic,
        probes: Groups,
        facts: Mapping[str, float],
        query: str,
        run: Run,
        missing: Sequence[str],
    ) -> Measurement:
        scores = statistic.scores(v.raw(probes.rows))[:, 0]
        truth = np.array([_number(facts[word], word, query) for word in probes.words])
        if truth.std() == 0 or scores.std() == 0:
            raise InputError(f"wefat '{query}': a correlation needs facts and scores that vary")
        rest = np.arange(len(scores))
        without = np.array([_pearson(scores[rest != i], truth[rest != i]) for i in rest])
        value = _pearson(scores, truth)
        low, high = fisher_z(value, len(scores), run.prob)
        test = _permutation_test(scores, truth, self.permutations, run.seed)
        return self.declaration.result(
            run,
            query,
            (value, low, high),
            subject=v.name,
            p_value=test.p_value if test else None,
            test=f"{test.draws:,} random permutations of the facts" if test else "",
            n=len(scores),
            interval="Fisher z over the words, attribute words held fixed",
            items=items_of(probes, {"score": scores, "fact": truth, "without": without}),
            left_out=tuple(dict.fromkeys([*missing, *probes.missing])),
            details={"mean_score": float(scores.mean()), **(test.details if test else {})},
        )


def wefat(
    v: Vectors,
    words: Sequence[str],
    A: Sequence[str],
    B: Sequence[str],
    facts: Mapping[str, float] | None = None,
    *,
    query: str = "wefat",
    permutations: int = 100_000,
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure whether the words' association with A against B follows facts about them.

    Parameters
    ----------
    v : Vectors
    words : sequence of str
    A, B : sequence of str
        The attribute words.
    facts : Mapping of str to float, optional
        A number for each word, such as the percentage of women in an occupation.
    query : str
        The name of the question.
    permutations : int
        Random permutations of the facts; 0: no p-value.
    null : int
        Draws of random words of similar frequency; used only without facts. 0: none.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

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
    >>> v, q = eh.vectors.load("glove"), eh.lexicon.wefat("wefat-occupations")
    >>> m = eh.vectors.wefat(v, q.words, q.attributes["female"], q.attributes["male"], q.shares)
    >>> m.low > 0.3
    True

    """
    metric = Wefat(permutations=permutations, null=null)
    return metric.compute(v, words, A, B, facts, query, Run(seed=seed, prob=prob))


def _number(fact: object, word: str, query: str) -> float:
    if isinstance(fact, int | float) and np.isfinite(fact):
        return float(fact)
    raise InputError(f"wefat '{query}': expected a number as the fact of '{word}', got {fact!r}")


def _pearson(x: Floats, y: Floats) -> float:
    a, b = x - x.mean(), y - y.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


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
