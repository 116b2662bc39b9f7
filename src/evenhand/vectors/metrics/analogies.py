"""Analogies a : b :: c : ?, with and without the input words allowed as answers.

The answer maximises cos(x, b - a + c), all vectors at length one (3CosAdd, Mikolov et al. 2013).
Most implementations never return a, b or c, so "man : doctor :: woman : ?" cannot be answered
"doctor" and looks biased by construction (Nissim, van Noord & van der Goot 2020). Both answers
side by side make the artefact visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand import lexicon
from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import Declaration, Run, instrument, option
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import Floats, crossed_mean, t_mean, wilson
from evenhand.vectors.debias.subspace import moderate_rows, row_lengths
from evenhand.vectors.store import Vectors, load


@dataclass(frozen=True, slots=True)
class Answer:
    """A candidate and its cosine with b - a + c."""

    word: str
    score: float
    row: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The best answers to one analogy: all words allowed, and the three inputs barred."""

    question: tuple[str, str, str]
    allowed: tuple[Answer, ...]
    barred: tuple[Answer, ...]


class AnalogyMetric:
    """What both metrics share: they take the analogy questions of the lexicon."""

    declaration: ClassVar[Declaration]

    def single(self, questions: lexicon.Analogies) -> Mapping[str, Callable[..., Measurement]]:
        """A measurement for each group of questions, by its name; it takes vectors and a run."""
        raise NotImplementedError

    def audit(self, subject: Vectors, run: Run, data: Any) -> dict[str, Any]:  # noqa: ARG002
        """The built-in questions, group by group."""
        measured, skipped = [], []
        for query, compute in run.steps(list(self.single(lexicon.analogies()).items())):
            try:
                measured.append(compute(subject, query=query, run=run))
            except InputError as error:
                name = self.declaration.name
                skipped.append({"metric": name, "query": query, "reason": str(error)})
        return {"measurements": tuple(measured), "skipped": tuple(skipped)}

    @classmethod
    def example(cls) -> tuple[Vectors, lexicon.Analogies]:
        """A subject and material to try the metric on."""
        return load("glove"), lexicon.analogies()

    def misfit(self, material: Any = None) -> str | None:
        """Why the material cannot be taken, None where it can."""
        if material is None or isinstance(material, lexicon.Analogies):
            return None
        return "takes analogy questions"


@instrument(
    name="analogies",
    subject="vectors",
    label="Analogies answered with the word itself",
    question="In a : w :: c : ?, is w itself the best answer if it is allowed?",
    bias=False,
    formula="the word with the largest cosine to w - a + c, unit vectors, with the three inputs "
    "allowed and barred; the share of questions whose allowed answer is w",
    source="Nissim, van Noord & van der Goot (2020)",
    ideal=1.0,
    worse="lower",
    stereotype=0,
    material="analogy questions",
    reading="A share: what a search with barred inputs can never return, and what vectors without "
    "bias in these words always return.",
    caveats=("An answer other than the word itself need not be a stereotype: read the items.",),
    audit=True,
    command="analogies",
)
@dataclass(frozen=True, kw_only=True)
class Analogies(AnalogyMetric):
    """The declaration of the analogies; `analogies` is their function."""

    answers: int = option(
        5, minimum=1, flag="--top", help="Number of rows shown, of each side where there are two."
    )

    def single(self, questions: lexicon.Analogies) -> Mapping[str, Callable[..., Measurement]]:
        """Each pair of words."""
        return {
            "→".join(pair): partial(self.compute, pairs=[pair], words=questions.probes)
            for pair in questions.pairs
        }

    def measure(
        self, v: Vectors, material: lexicon.Analogies | None = None, run: Run | None = None
    ) -> Measurement:
        """Measure the vectors on analogy questions, by default the built-in ones."""
        questions = material or lexicon.analogies()
        return self.compute(v, questions.pairs, questions.probes, "analogies", run or Run())

    def compute(
        self,
        v: Vectors,
        pairs: Sequence[tuple[str, str]],
        words: Sequence[str],
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these pairs and words."""
        pairs, words = [(a, c) for a, c in pairs], list(words)
        ends = [word for pair in pairs for word in pair]
        missing = v.find([*ends, *words]).missing
        questions = [
            (a, word, c) for a, c in pairs for word in words if not {a, word, c} & set(missing)
        ]
        if not questions:
            raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
        answers = _answers(v, questions, missing, self.answers)
        rows = [
            {
                "word": answer.question[1],
                "group": f"{answer.question[0]}→{answer.question[2]}",
                "score": float(_is(v, answer.allowed, answer.question[1])),
                "allowed": answer.allowed[0].word,
                "barred": answer.barred[0].word,
                "top_allowed": [candidate.word for candidate in answer.allowed],
                "top_barred": [candidate.word for candidate in answer.barred],
            }
            for answer in answers
        ]
        groups = dict.fromkeys(str(row["group"]) for row in rows)

        def share(query: str, rows: Sequence[dict[str, Any]], **fields: Any) -> Measurement:
            same = np.array([row["score"] > 0 for row in rows])
            count = len({row["word"] for row in rows})
            value, low, high = _crossed_share(same.reshape(-1, count), run.prob)
            return self.declaration.result(
                run,
                query,
                (value, low, high),
                subject=v.name,
                n=len(rows),
                interval="two-way random effects over pairs and words",
                notes=(
                    "an answer other than the word itself need not be a stereotype: read the items",
                ),
                **fields,
            )

        parts = [
            share(name, [row for row in rows if row["group"] == name], by="pair")
            for name in (groups if len(groups) > 1 else ())
        ]
        return share(query, rows, items=Items(rows), left_out=missing, parts=parts)

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change of the share, over the pairs and words that both have."""
        first, second = (
            {(item["group"], item["word"]): item["score"] for item in m.items}
            for m in (before, after)
        )
        shared = first.keys() & second.keys()
        pairs = {pair for pair, _ in shared}
        words = sorted(
            {word for _, word in shared if all((pair, word) in shared for pair in pairs)}
        )
        changes = np.array(
            [[second[pair, word] - first[pair, word] for word in words] for pair in sorted(pairs)]
        )
        value, low, high = after.value - before.value, -np.inf, np.inf
        if changes.size > 1:
            low, high = (
                crossed_mean(changes, prob=before.prob)
                if len(pairs) > 1
                else t_mean(changes[0], before.prob)
            )[1:]
        return Comparison(
            before=before,
            after=after,
            change=Estimate(value=value, low=low, high=high, prob=before.prob),
            interval="two-way random effects over pairs and words, paired",
            paired=int(changes.size),
        )


@instrument(
    name="analogy_accuracy",
    subject="vectors",
    label="Analogies, factual control",
    question="How often are analogies with one right answer answered right?",
    bias=False,
    formula="the share of a : b :: c : d whose best answer, inputs barred, is d",
    source="Mikolov et al. (2013)",
    ideal=1.0,
    worse="lower",
    stereotype=0,
    material="analogy questions",
    reading="A share: how good the vectors are at analogies at all.",
    caveats=("It measures quality, not bias.",),
    audit=True,
    command="analogies",
)
@dataclass(frozen=True, kw_only=True)
class AnalogyAccuracy(AnalogyMetric):
    """The declaration of the factual control; `analogy_accuracy` is its function."""

    def single(self, questions: lexicon.Analogies) -> Mapping[str, Callable[..., Measurement]]:
        """Each relation."""
        return {
            relation: partial(self.compute, questions=control)
            for relation, control in questions.controls.items()
        }

    def measure(
        self, v: Vectors, material: lexicon.Analogies | None = None, run: Run | None = None
    ) -> Measurement:
        """Measure the vectors on factual analogies, by default the built-in ones."""
        questions = material or lexicon.analogies()
        facts = [question for group in questions.controls.values() for question in group]
        return self.compute(v, facts, "factual analogies", run or Run())

    def compute(
        self, v: Vectors, questions: Sequence[tuple[str, str, str, str]], query: str, run: Run
    ) -> Measurement:
        """Measure these questions."""
        missing = v.find([word for question in questions for word in question]).missing
        complete = [question for question in questions if not set(question) & set(missing)]
        if not complete:
            raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
        answers = _answers(v, [question[:3] for question in complete], missing, 1)
        right = [
            _is(v, answer.barred, question[3])
            for answer, question in zip(answers, complete, strict=True)
        ]
        value, low, high = wilson(sum(right), len(right), run.prob)
        scores = np.array(right, dtype=float)
        items = Items(
            {
                "word": [question[1] for question in complete],
                "group": [f"{question[0]}→{question[2]}" for question in complete],
                "score": scores,
                "without": (scores.sum() - scores) / max(1, scores.size - 1),
                "expected": [question[3] for question in complete],
                "barred": [answer.barred[0].word for answer in answers],
                "allowed": [answer.allowed[0].word for answer in answers],
            }
        )
        return self.declaration.result(
            run,
            query,
            (value, low, high),
            subject=v.name,
            n=len(right),
            interval="Wilson score over the questions, though questions of one kind share words",
            items=items,
            left_out=missing,
        )


def analogy(v: Vectors, a: str, b: str, c: str, *, n: int = 10) -> Answers:
    """Answer a : b :: c : ?, with the inputs allowed and barred.

    Parameters
    ----------
    v : Vectors
    a, b, c : str
    n : int
        Answers of each kind.

    Returns
    -------
    Answers

    Examples
    --------
    >>> import evenhand as eh
    >>> answers = eh.vectors.analogy(eh.vectors.load("glove"), "man", "king", "woman")
    >>> answers.allowed[0].word, answers.barred[0].word
    ('king', 'queen')

    """
    return _answers(v, [(a, b, c)], v.find((a, b, c)).missing, n)[0]


def analogies(
    v: Vectors,
    pairs: Sequence[tuple[str, str]],
    words: Sequence[str],
    *,
    n: int = 5,
    query: str = "analogies",
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how often a : w :: c : ? is answered with w itself, for each pair and each word.

    Parameters
    ----------
    v : Vectors
    pairs : sequence of (str, str)
        The pairs a, c.
    words : sequence of str
        The words w.
    n : int
        Answers to list in the items.
    query : str
        The name of the question.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        The share, with one part per pair.

    Notes
    -----
    A search with barred inputs can never return w, and vectors without bias in these words always
    return it. Nissim, van Noord & van der Goot (2020).

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.analogies(v, [("man", "woman")], ["doctor", "nurse"]).value
    1.0

    """
    return Analogies(answers=n).compute(v, pairs, words, query, Run(seed=seed, prob=prob))


def analogy_accuracy(
    v: Vectors,
    questions: Sequence[tuple[str, str, str, str]],
    *,
    query: str = "factual analogies",
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how often analogies with a known answer are answered right, inputs barred.

    Parameters
    ----------
    v : Vectors
    questions : sequence of (str, str, str, str)
        a, b, c and the right answer d.
    query : str
        The name of the question.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        A share: a control that shows how good the vectors are at analogies at all.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.analogy_accuracy(v, [("man", "king", "woman", "queen")]).value
    1.0

    """
    return AnalogyAccuracy().compute(v, questions, query, Run(seed=seed, prob=prob))


def _is(v: Vectors, answers: Sequence[Answer], word: str) -> bool:
    """Is the best answer this word, however it is spelt in the vectors?"""
    return bool(answers) and answers[0].row == v.find([word]).rows[0]


def _crossed_share(same: NDArray[np.bool_], prob: float) -> tuple[float, float, float]:
    """The share of a table of pairs × words, whose cells are not independent.

    Where all answers agree the cells' spread says nothing: then it is Wilson's for the words.
    """
    rows, words = same.shape
    if same.all() or not same.any() or rows == 1:
        share, low, high = wilson(int(same.mean(axis=0).round().sum()), words, prob)
        return float(same.mean()), low, high
    share, low, high = crossed_mean(same.astype(float), prob=prob)
    return share, max(0.0, low), min(1.0, high)


def _answers(
    v: Vectors, questions: Sequence[tuple[str, str, str]], missing: Sequence[str], n: int
) -> list[Answers]:
    if n < 1:
        raise InputError(f"n: expected at least 1 answer, got {n}")
    if missing and any(set(question) & set(missing) for question in questions):
        raise VocabularyError(f"analogy: not in {v.name}: {', '.join(missing)}")
    if len(v) < 4:
        raise VocabularyError(f"analogy: expected at least 4 words in {v.name}, got {len(v)}")
    rows = np.stack([[v.find([word]).rows[0] for word in question] for question in questions])
    a, b, c = (v.unit(rows[:, i]) for i in range(3))
    targets = (b - a + c).astype(np.float32)
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    matrix = moderate_rows(v.matrix)
    norms = row_lengths(matrix)
    take = min(n + 3, len(v))
    result = []
    for i, question in enumerate(questions):
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.nan_to_num((matrix @ targets[i]) / norms, nan=-2.0)
        best = np.argpartition(-scores, take - 1)[:take]
        best = best[np.argsort(-scores[best], kind="stable")]
        result.append(
            Answers(
                question=question,
                allowed=_candidates(v, best[:n], scores),
                barred=_candidates(v, best[~np.isin(best, rows[i])][:n], scores),
            )
        )
    return result


def _candidates(v: Vectors, rows: NDArray[np.intp], scores: Floats) -> tuple[Answer, ...]:
    return tuple(Answer(v.words[row], float(scores[row]), int(row)) for row in rows)
