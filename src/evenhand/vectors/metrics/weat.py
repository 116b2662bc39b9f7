"""WEAT: do two sets of target words differ in their association with two attribute sets?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.instruments import Run, instrument, option
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import association, effect, unit
from evenhand.statistics.intervals import Floats, effect_size
from evenhand.statistics.tests import two_sample
from evenhand.vectors.probes import Labels, Outcome, WordMetric, class_pairs
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups, refuse_shared


@dataclass(frozen=True, slots=True)
class WeatStatistic:
    """WEAT with its attribute words fixed; the target words are the probes."""

    a: Floats
    b: Floats

    def scores(self, vectors: Floats) -> Floats:
        return association(unit(vectors), self.a, self.b)[:, None]

    def value(self, scores: Floats, labels: Labels) -> Floats:
        return effect(scores[..., 0], labels)

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        s = scores[:, 0]
        _, low, high = effect_size(s[labels == 0], s[labels == 1], prob)
        return (
            low,
            high,
            "noncentral t or jackknife, the wider, over target words; attribute words held fixed",
        )


@instrument(
    name="weat",
    subject="vectors",
    label="WEAT",
    question="Do two sets of words differ in their association with two other sets?",
    above="the first target words go with the first attributes",
    below="the first target words go with the second attributes",
    formula="s(w) = mean cos(w, a in A) - mean cos(w, b in B); "
    "d = (mean s(X) - mean s(Y)) / sd of s over X and Y, n - 1 in the sd",
    source="Caliskan, Bryson & Narayanan (2017)",
    worse="away",
    role="shown",
    material="a topic, or a query with two target and two attribute sets",
    reading="An effect size in standard deviations, between -2 and 2. Above 0, X goes with A and "
    "Y with B. For a topic, X and Y are the stereotypes of two classes, A and B their protected "
    "words.",
    scale="Effect size in standard deviations (ideal: 0)",
    caveats=(
        "The test is about the target words: put the words whose bias is in question into X and "
        "Y. p_attributes is the same test over the attribute words.",
        "On a topic of two classes its numerator is -2 times the association contrast, so that it "
        "has no part in the verdict of its own.",
    ),
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Weat(WordMetric):
    """The declaration of WEAT; `weat` is its function."""

    target_sets = 2
    attribute_sets = 2
    controls: ClassVar[tuple[str, ...]] = ("weat-1", "weat-2")

    alternative: Literal["two-sided", "greater", "less"] = option(
        "two-sided", help="weat: the alternative of the permutation test."
    )

    def audit(self, subject: Vectors, run: Run, data: Any) -> dict[str, Any]:  # noqa: ARG002
        """The published tests, each with one word left out and on random halves of its lists."""
        from evenhand.vectors.robustness import leave_one_out, split_half

        measured: list[Measurement] = []
        skipped = []
        options: dict[str, Any] = {"seed": run.seed, "prob": run.prob}
        for query in run.steps(lexicon.weat_queries()):
            try:
                effects = self.measure(subject, query, run)
                checks = [check(subject, query, **options) for check in (leave_one_out, split_half)]
            except InputError as error:
                skipped.append({"metric": "weat", "query": query.name, "reason": str(error)})
            else:
                measured += [*effects, *checks]
        return {"measurements": tuple(measured), "skipped": tuple(skipped)}

    def split(self, topic: Topic) -> Sequence[Query]:
        """Stereotypes are the targets: with the protected words there, the test would find a
        difference wherever the classes differ at all.
        """
        return [
            Query(name=pair.name, targets=pair.attributes, attributes=pair.targets)
            for pair in class_pairs(topic, extended=self.extended)
        ]

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        (x, X), (y, Y) = question.targets.items()
        (a, A), (b, B) = question.attributes.items()
        what = f"weat '{question.name}'"
        targets = known_groups(v, {x: X, y: Y}, f"{what}: target set", at_least=2, disjoint=True)
        first = known(v, A, f"{what}: attribute set '{a}'")
        second = known(v, B, f"{what}: attribute set '{b}'")
        refuse_shared(first, second, f"{what}: attribute sets '{a}' and '{b}'")
        attributes = v.unit(first.rows), v.unit(second.rows)
        words, labels = v.unit(targets.rows), targets.labels
        s_x, s_y = (association(words[labels == label], *attributes) for label in (0, 1))
        if max(np.abs(s_x).max(), np.abs(s_y).max()) < 1e-12:
            raise InputError(
                f"{what}: the two attribute sets have the same mean, so nothing differs"
            )
        measurement = self.read(
            v,
            WeatStatistic(*attributes),
            targets,
            query=question.name,
            run=run,
            fixed=np.concatenate([first.rows, second.rows]),
            left_out=[*first.missing, *second.missing],
            test=self._test(words, labels, attributes, run.seed),
            details={
                "statistic": float(s_x.sum() - s_y.sum()),
                "mean_difference": float(s_x.mean() - s_y.mean()),
                f"mean_{x}": float(s_x.mean()),
                f"mean_{y}": float(s_y.mean()),
                "alternative": self.alternative,
            },
        )
        return [measurement]

    def _test(
        self, words: Floats, labels: Labels, attributes: tuple[Floats, Floats], seed: int
    ) -> Outcome | None:
        if not self.permutations:
            return None
        x, y = words[labels == 0], words[labels == 1]
        targets, others = (
            two_sample(
                association(first, *against),
                association(second, *against),
                alternative=self.alternative,
                permutations=self.permutations,
                seed=seed,
            )
            for first, second, against in ((x, y, attributes), (*attributes, (x, y)))
        )
        return Outcome(
            targets.p_value,
            targets.words,
            {
                "p_greater": targets.p_greater,
                "p_less": targets.p_less,
                "p_attributes": others.p_value,
                **{f"{name}_attributes": number for name, number in others.details.items()},
                "exact": targets.exact,
                "partitions": targets.partitions,
                **targets.details,
            },
        )


def weat(
    v: Vectors,
    X: Sequence[str],
    Y: Sequence[str],
    A: Sequence[str],
    B: Sequence[str],
    *,
    names: tuple[str, str, str, str] = ("X", "Y", "A", "B"),
    query: str = "",
    alternative: Literal["two-sided", "greater", "less"] = "two-sided",
    permutations: int = 100_000,
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure the WEAT effect size of target words X against Y, for attributes A against B.

    Parameters
    ----------
    v : Vectors
    X, Y : sequence of str
        The target words, whose bias is in question; at least two of each with a vector.
    A, B : sequence of str
        The attribute words.
    names : tuple of str
        The names of the four sets.
    query : str
        The name of the question.
    alternative : {"two-sided", "greater", "less"}
        Of the permutation test; the one-sided p-values are in `details` too.
    permutations : int
        Random permutations where there are more than 40 target words; with up to 40 every
        partition is counted. With 0 the targets are compared with random words instead.
    null : int
        Draws of random words of similar frequency; used only without permutations.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        `details["p_attributes"]` is the same test over the attribute words, the targets fixed; a
        result that only one of the two tests supports may depend on the choice of the other words.

    Notes
    -----
    .. math:: s(w) = \operatorname{mean}_{a \in A} \cos(w, a)
              - \operatorname{mean}_{b \in B} \cos(w, b)
    .. math:: d = \frac{\operatorname{mean}_{x \in X} s(x) - \operatorname{mean}_{y \in Y} s(y)}
              {\operatorname{std}_{w \in X \cup Y} s(w)}

    Caliskan, Bryson & Narayanan (2017), with n - 1 in the standard deviation as in their code.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = eh.vectors.weat(
    ...     v, ["rose", "tulip", "lily"], ["ant", "wasp", "flea"], ["love"], ["pain"]
    ... )
    >>> m.value > 1, m.p_value, m.details["partitions"]
    (True, 0.1, 20)

    """
    x, y, a, b = names
    question = Query(
        name=query or f"{x}/{y} {a}/{b}",
        targets={x: X, y: Y},  # type: ignore[dict-item]
        attributes={a: A, b: B},  # type: ignore[dict-item]
    )
    metric = Weat(alternative=alternative, permutations=permutations, null=null)
    return metric.answer(v, question, Run(seed=seed, prob=prob))[0]
