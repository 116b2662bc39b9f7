"""Analogies a : b :: c : ?, with and without the input words allowed as answers.

The answer maximises cos(x, b - a + c), all vectors at length one (3CosAdd, Mikolov et al. 2013).
Most implementations never return a, b or c, so "man : doctor :: woman : ?" cannot be answered
"doctor" and looks biased by construction (Nissim, van Noord & van der Goot 2020). Both answers
side by side make the artefact visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand import lexicon
from evenhand.arguments import checked
from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import Instrument, Run, instrument, option
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import Floats, crossed_mean, t_mean, wilson
from evenhand.vectors.debias.subspace import moderate_rows, row_lengths
from evenhand.vectors.store import Vectors, load


@dataclass(frozen=True, slots=True)
class AnalogyWord:
    """A candidate and its cosine with b - a + c."""

    word: str
    score: float
    row: int


@dataclass(frozen=True, slots=True)
class AnalogyAnswers:
    """The best answers to one analogy: all words allowed, and the three inputs barred."""

    question: tuple[str, str, str]
    allowed: tuple[AnalogyWord, ...]
    barred: tuple[AnalogyWord, ...]


class AnalogyMetric(Instrument):
    """The common part of both metrics: the analogy questions of the lexicon."""

    shared: ClassVar[Mapping[str, Any]] = {
        "subjects": ("vectors",),
        "bias": False,
        "ideal": 1.0,
        "worse": "lower",
        "stereotype": 0,
        "material": "analogy questions",
        "audit": True,
        "command": "analogies",
    }
    query: ClassVar[str]
    """The name of all questions together."""

    def answer(
        self, v: Vectors, questions: lexicon.AnalogyQuestions, query: str, run: Run
    ) -> Measurement:
        """Measure some questions under a name."""
        raise NotImplementedError

    def groups(self, questions: lexicon.AnalogyQuestions) -> dict[str, lexicon.AnalogyQuestions]:
        """The questions in groups, by the name of each."""
        raise NotImplementedError

    def measure(
        self, v: Vectors, material: lexicon.AnalogyQuestions | None = None, run: Run = Run()
    ) -> Measurement:
        """Measure the vectors on analogy questions, by default the built-in ones."""
        return self.answer(v, material or lexicon.analogies(), self.query, run)

    def audit(self, subject: Vectors, run: Run, data: object) -> dict[str, object]:
        """The built-in questions, group by group."""
        measured, skipped = [], []
        for query, questions in run.steps(list(self.groups(lexicon.analogies()).items())):
            try:
                measured.append(self.answer(subject, questions, query, run))
            except InputError as error:
                name = self.declaration.name
                skipped.append({"metric": name, "query": query, "reason": str(error)})
        return {"measurements": tuple(measured), "skipped": tuple(skipped)}

    @classmethod
    def example(cls) -> tuple[Vectors, lexicon.AnalogyQuestions]:
        """A subject and material to try the metric on."""
        return load("glove"), lexicon.analogies()

    def misfit(self, material: object = None) -> str | None:
        """Why the material cannot be taken, None where it can."""
        if material is None or isinstance(material, lexicon.AnalogyQuestions):
            return None
        return "takes analogy questions"


@instrument(
    name="analogies",
    label="Analogies answered with the word itself",
    question="In a : w :: c : ?, is w itself the best answer if it is allowed?",
    formula="the word with the largest cosine to w - a + c, unit vectors, with the three inputs "
    "allowed and barred; the share of questions whose allowed answer is w",
    source="Nissim, van Noord & van der Goot (2020)",
    reading="A share: what a search with barred inputs can never return, and what vectors without "
    "bias in these words always return.",
    caveats=("An answer other than the word itself need not be a stereotype: read the items.",),
)
class Analogies(AnalogyMetric):
    """Analogies: how often a : w :: c : ? is answered with w itself, for each pair and each word.

    The material is `eh.lexicon.AnalogyQuestions`, of which `pairs` (a, c), `occupations` and
    `traits` (w) are used; the default is the built-in one.

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
    >>> questions = eh.lexicon.AnalogyQuestions(
    ...     name="own", pairs=(("man", "woman"),), occupations=("doctor", "nurse")
    ... )
    >>> eh.vectors.Analogies()(eh.vectors.load("glove"), questions).value
    1.0
    """

    answers: int = option(
        5, minimum=1, flag="--top", help="Number of rows shown, of each side where there are two."
    )

    query = "analogies"

    def groups(self, questions: lexicon.AnalogyQuestions) -> dict[str, lexicon.AnalogyQuestions]:
        """Each pair of words."""
        return {"→".join(pair): replace(questions, pairs=(pair,)) for pair in questions.pairs}

    def answer(
        self, v: Vectors, questions: lexicon.AnalogyQuestions, query: str, run: Run
    ) -> Measurement:
        pairs, words = questions.pairs, questions.probes
        ends = [word for pair in pairs for word in pair]
        missing = v.find([*ends, *words]).missing
        complete = [
            (a, word, c) for a, c in pairs for word in words if not {a, word, c} & set(missing)
        ]
        if not complete:
            raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
        answers = _answers(v, complete, missing, self.answers)
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

        def share(query: str, rows: Sequence[dict[str, Any]], **fields: object) -> Measurement:
            same = np.array([row["score"] > 0 for row in rows])
            count = len({row["word"] for row in rows})
            return self.declaration.result(
                run,
                query,
                _crossed_share(same.reshape(-1, count), run.prob),
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
    label="Analogies, factual control",
    question="How often are analogies with one right answer answered right?",
    formula="the share of a : b :: c : d whose best answer, inputs barred, is d",
    source="Mikolov et al. (2013)",
    reading="A share: how good the vectors are at analogies at all.",
    caveats=("It measures quality, not bias.",),
)
class AnalogyAccuracy(AnalogyMetric):
    """Factual analogies: how often those with a known answer are answered right, inputs barred.

    The material is `eh.lexicon.AnalogyQuestions`, of which `controls` are used: questions
    (a, b, c, d) with the right answer d, by relation.

    Returns
    -------
    Measurement
        A share: a control that shows how good the vectors are at analogies at all.

    Examples
    --------
    >>> import evenhand as eh
    >>> kings = {"royal": (("man", "king", "woman", "queen"),)}
    >>> questions = eh.lexicon.AnalogyQuestions(name="own", controls=kings)
    >>> eh.vectors.AnalogyAccuracy()(eh.vectors.load("glove"), questions).value
    1.0
    """

    query = "factual analogies"

    def groups(self, questions: lexicon.AnalogyQuestions) -> dict[str, lexicon.AnalogyQuestions]:
        """Each relation."""
        controls = questions.controls.items()
        return {name: replace(questions, controls={name: control}) for name, control in controls}

    def answer(
        self, v: Vectors, questions: lexicon.AnalogyQuestions, query: str, run: Run
    ) -> Measurement:
        facts = [question for group in questions.controls.values() for question in group]
        missing = v.find([word for question in facts for word in question]).missing
        complete = [question for question in facts if not set(question) & set(missing)]
        if not complete:
            raise VocabularyError(f"analogies '{query}': no question has all its words in {v.name}")
        answers = _answers(v, [question[:3] for question in complete], missing, 1)
        right = [
            _is(v, answer.barred, question[3])
            for answer, question in zip(answers, complete, strict=True)
        ]
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
            wilson(sum(right), len(right), run.prob),
            subject=v.name,
            n=len(right),
            interval="Wilson score over the questions, though questions of one kind share words",
            items=items,
            left_out=missing,
        )


@checked
def analogy(v: Vectors, a: str, b: str, c: str, *, n: int = 10) -> AnalogyAnswers:
    """Answer a : b :: c : ?, with the inputs allowed and barred.

    Parameters
    ----------
    v : Vectors
    a, b, c : str
    n : int
        Answers of each kind.

    Returns
    -------
    AnalogyAnswers

    Examples
    --------
    >>> import evenhand as eh
    >>> answers = eh.vectors.analogy(eh.vectors.load("glove"), "man", "king", "woman")
    >>> answers.allowed[0].word, answers.barred[0].word
    ('king', 'queen')

    """
    return _answers(v, [(a, b, c)], v.find((a, b, c)).missing, n)[0]


def _is(v: Vectors, answers: Sequence[AnalogyWord], word: str) -> bool:
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
) -> list[AnalogyAnswers]:
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
            AnalogyAnswers(
                question=question,
                allowed=_candidates(v, best[:n], scores),
                barred=_candidates(v, best[~np.isin(best, rows[i])][:n], scores),
            )
        )
    return result


def _candidates(v: Vectors, rows: NDArray[np.intp], scores: Floats) -> tuple[AnalogyWord, ...]:
    return tuple(AnalogyWord(v.words[row], float(scores[row]), int(row)) for row in rows)
