"""WEAT: do two sets of target words differ in their association with two attribute sets?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.instruments import Run, instrument, option
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import association, effect, unit
from evenhand.statistics.intervals import Floats, effect_size
from evenhand.statistics.tests import two_sample
from evenhand.vectors.probes import Labels, ProbeTest, WordMetric, class_pairs
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups, refuse_shared

EQUAL = (
    "all target words are equally near to both attribute sets, as hard debiasing with equalised "
    "sets makes them: the effect size is 0 / 0"
)


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
    label="WEAT",
    question="Do two sets of words differ in their association with two other sets?",
    above="the first target words go with the first attributes",
    below="the first target words go with the second attributes",
    formula="s(w) = mean cos(w, a in A) - mean cos(w, b in B); "
    "d = (mean s(X) - mean s(Y)) / sd of s over X and Y, n - 1 in the sd",
    source="Caliskan, Bryson & Narayanan (2017)",
    role="shown",
    stereotype=1,
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
)
class Weat(WordMetric):
    r"""WEAT: the effect size of target words X against Y, for attribute words A against B.

    The material is a query with two target sets and two attribute sets, or a topic. Targets are the
    words whose bias is in question; at least two of each need a vector. With up to 40 target words
    every partition is counted.

    Returns
    -------
    Measurement
        `details["p_attributes"]` is the same test over the attribute words, the targets fixed; a
        result that only one of the two tests supports may depend on the choice of the other words.
        The one-sided p-values are in `details` too.

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
    >>> query = eh.lexicon.Query(
    ...     name="flowers and insects",
    ...     targets={"flowers": ("rose", "tulip", "lily"), "insects": ("ant", "wasp", "flea")},
    ...     attributes={"pleasant": ("love",), "unpleasant": ("pain",)},
    ... )
    >>> m = eh.vectors.Weat()(eh.vectors.load("glove"), query)
    >>> m.value > 1, m.p_value, m.details["partitions"]
    (True, 0.1, 20)
    """

    target_sets = 2
    attribute_sets = 2
    controls: ClassVar[tuple[str, ...]] = ("weat-1", "weat-2")

    alternative: Literal["two-sided", "greater", "less"] = option(
        "two-sided", help="weat: the alternative of the permutation test."
    )

    def audit(self, subject: Vectors, run: Run, data: object) -> dict[str, object]:
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

    def answer(self, v: Vectors, question: Query, run: Run) -> Iterator[Measurement]:
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
        measurement = self.score(
            v,
            WeatStatistic(*attributes),
            targets,
            query=question.name,
            run=run,
            fixed=(first, second),
            test=self._test(words, labels, attributes, run.seed),
            details={
                "statistic": float(s_x.sum() - s_y.sum()),
                "mean_difference": float(s_x.mean() - s_y.mean()),
                f"mean_{x}": float(s_x.mean()),
                f"mean_{y}": float(s_y.mean()),
                "alternative": self.alternative,
            },
        )
        if not (s_x.any() or s_y.any()):
            measurement = replace(measurement, notes=(*measurement.notes, f"{what}: {EQUAL}"))
        yield measurement

    def _test(
        self, words: Floats, labels: Labels, attributes: tuple[Floats, Floats], seed: int
    ) -> ProbeTest | None:
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
        return ProbeTest(
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
