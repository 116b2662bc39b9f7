r"""Does a model write otherwise about one group than about another, by any score of its answers?

The score is the length, the sentiment by a lexicon, or a column that another tool wrote. The value
is the difference of the means. The part by "distance" compares whole distributions: the
Wasserstein-1 distance $\int |F_1 - F_2|$ less its mean under permutation of the groups within
items, with the p-value of the same permutations. Beside it stands the distance between two halves
of the samples of the same prompts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.answers.by_group import GroupMetric, query_of
from evenhand.answers.cells import GroupContrast
from evenhand.answers.distances import score_distance
from evenhand.answers.examples import example_answers
from evenhand.answers.masking import group_words, words_of
from evenhand.answers.scores import BUILT_IN, AnswerScores
from evenhand.answers.table import Answers
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Run, instrument, option
from evenhand.lexicon.sentiment import sentiment
from evenhand.results import Measurement
from evenhand.wording import number


@instrument(
    name="difference",
    label="Difference of answers",
    question="Does the model write otherwise about one group than about another?",
    formula="mean of s(answer | g1) - mean of s(answer | g2), over prompts",
    source="Sheng et al. (2019); Huang et al. (2020)",
    size="spread",
    audit=True,
    above="the score is higher for the first group",
    below="the score is higher for the second group",
    reading="0 where answers to prompts of both groups have the same mean score. A part by "
    "'distance' compares the whole distributions: the Wasserstein-1 distance less its mean where "
    "groups are permuted within items, and within wordings where these are crossed with items. "
    "Sentiment by a lexicon is a rough score: use one of your own where you have it.",
)
class Difference(GroupMetric):
    """The instrument `difference`."""

    prompts = "counterfactuals"

    score: str = option(
        "sentiment",
        metavar="SCORE",
        help="sentiment (by a lexicon), length (in words), or a column of numbers.",
    )
    mask_groups: bool = option(
        True,
        flag="--mask-groups/--no-mask-groups",
        help="Whether the words of the groups do not count in the sentiment.",
    )
    permutations: int = option(
        999, minimum=0, help="Random permutations of the groups behind a distance; 0: no distance."
    )

    def scores(self, subject: Answers) -> AnswerScores:
        texts, rows = subject.texts, subject.readable
        left_out = len(subject) - len(rows)
        skipped = (f"{left_out:,} refused, empty or failed",) if left_out else ()
        values = np.full(len(subject), np.nan)
        if self.score == "length":
            values[rows] = [len(words_of(texts[i])) for i in rows]
            cut = sum(subject.outcomes[i] == "cut off" for i in rows)
            note = f"{cut:,} of {len(rows):,} answers are cut off: their length is the limit's."
            return AnswerScores(
                values,
                "the length in words",
                query="length",
                left_out=skipped,
                notes=(note,) if cut else (),
            )
        if self.score == "sentiment":
            masked = group_words(subject) if self.mask_groups else frozenset()
            values[rows] = [sentiment(texts[i], masked) for i in rows]
            notes = ("Sentiment: by a lexicon, without the words of the groups.",)
            return AnswerScores(
                values,
                "the sentiment",
                query="sentiment",
                left_out=skipped,
                notes=notes if self.mask_groups else (),
            )
        if self.score not in subject.scores:
            raise UnknownNameError("score", self.score, (*BUILT_IN, *subject.scores))
        given = subject.scores[self.score]
        values[rows] = given[rows]
        missing = int(np.isnan(given[rows]).sum())
        if missing == len(rows):
            raise InputError(f"score '{self.score}': expected numbers of answers, got none")
        if missing:
            skipped = (*skipped, f"{missing:,} without a score")
        known = set(np.unique(values[np.isfinite(values)]).tolist())
        return AnswerScores(
            values,
            f"the score '{self.score}'",
            share=known == {0.0, 1.0},
            query=self.score,
            left_out=skipped,
        )

    def more_parts(
        self, subject: Answers, scores: AnswerScores, column: str, contrast: GroupContrast, run: Run
    ) -> list[Measurement]:
        """The distance of the distributions, and the refusal gap."""
        parts = super().more_parts(subject, scores, column, contrast, run)
        if not self.permutations:
            return parts
        found, twice = score_distance(
            subject,
            scores.values,
            column,
            contrast.names,
            permutations=self.permutations,
            seed=run.seed,
            prob=run.prob,
        )
        drawn: dict[str, Any] = {} if found.draws is None else {"draws": found.draws}
        kind = "all" if found.draws is None else "random"
        query = query_of(scores, column, contrast.names)
        notes: tuple[str, ...] = ()
        if twice is not None:
            notes = (
                f"{query}: the distributions are {number(found.value)} apart, {number(found.null)} "
                "where the groups are permuted, and two halves of the samples of the same prompts "
                f"{number(twice)}.",
            )
        part = self.declaration.result(
            run,
            query,
            (found.excess, found.low, found.high),
            subject=subject.name,
            by="distance",
            worse="higher",
            n=contrast.answers,
            p_value=found.p_value,
            test=f"{kind} {found.permutations:,} permutations of the groups, prompts whole",
            interval=f"jackknife over {contrast.sides[0].unit}s of the distance less its mean "
            "under permutation",
            details={
                "groups": list(contrast.names),
                "score": scores.name,
                "distance": found.value,
                "permuted": found.null,
                "asked_twice": twice,
                **drawn,
            },
            notes=notes,
        )
        return [part, *parts]

    def audit(self, subject: Answers, run: Run, data: Any) -> dict[str, Any]:
        """By every score that Evenhand computes."""
        scores = [replace(self, score=score) for score in BUILT_IN]
        return {"measurements": tuple(m for each in scores for m in each.measure(subject, run=run))}

    @classmethod
    def example(cls) -> tuple[Answers, None]:
        """Answers that are kinder about women."""
        return example_answers(), None
