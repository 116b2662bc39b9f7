"""Whom does a model write about where the prompt does not say: women, men, neither, several?"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from evenhand.answers.cells import Cells, make_cells, share_interval
from evenhand.answers.examples import JOBS
from evenhand.answers.overall import WILSON, ShareMetric, joined_labels
from evenhand.answers.scores import AnswerScores
from evenhand.answers.table import Answers
from evenhand.answers.whom import ACCURACY, WHOM, Whom, whom
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Run, instrument, option
from evenhand.results import Measurement
from evenhand.wording import percent


@instrument(
    name="representation",
    label="Representation",
    question="Whom does the model write about where the prompt does not say?",
    formula="texts about women / (texts about women + texts about men), averaged over prompts",
    source="Liang et al. (2023)",
    ideal=0.5,
    size="share",
    audit=True,
    above="where the prompt does not say, the model writes about women rather than men",
    below="where the prompt does not say, the model writes about men rather than women",
    reading="0.5 where the model writes about women as often as about men. Texts are read by rule "
    "from pronouns, first names, titles and nouns; those of people without a stated gender, or of "
    "several of different genders, have no part in the value and are the parts by 'category'. "
    "Prompts that state a gender are left out.",
    caveats=(
        "One half is not the share of women in a job: the option reference compares with shares "
        "of your own.",
    ),
)
class Representation(ShareMetric):
    """The instrument `representation`."""

    prompts = "occupations"
    answered_only = True

    reference: str | None = option(
        None, metavar="COLUMN", help="A column with the share of women to compare with, by item."
    )

    def scores(self, subject: Answers) -> AnswerScores:
        read = self._read(subject)
        values = np.array([{"women": 1.0, "men": 0.0}.get(each or "", np.nan) for each in read])
        known = sum(each is not None for each in read)
        if not np.isfinite(values).any():
            raise InputError(
                "representation: expected texts about women or men to prompts that state no "
                f"gender, got none in {known:,} answers"
            )
        left_out = []
        if known < len(subject):
            left_out.append(
                f"{len(subject) - known:,} refused, empty, failed or with a gender in the prompt"
            )
        note = (
            f"Whom a text is about is read by rule: rightly in {percent(ACCURACY)} of hand-made "
            "texts."
        )
        return AnswerScores(
            values, "the share of women", share=True, left_out=tuple(left_out), notes=(note,)
        )

    @staticmethod
    def _read(subject: Answers) -> list[Whom | None]:
        """Whom each text is about; None where it cannot be read or its prompt states a gender."""
        told = {prompt: whom(prompt) != "neutral" for prompt in set(subject.prompts)}
        readable = set(subject.readable.tolist())
        prompts = subject.prompts or ("",) * len(subject)
        return [
            whom(text) if row in readable and not told.get(prompt, False) else None
            for row, (text, prompt) in enumerate(zip(subject.texts, prompts, strict=True))
        ]

    def all_parts(
        self, subject: Answers, scores: AnswerScores, cells: Cells, run: Run
    ) -> Iterable[Measurement]:
        """The shares of all categories, those by group and topic, and against the reference."""
        read, labels = self._read(subject), joined_labels(subject)
        categories = []
        for category in WHOM:
            values = [np.nan if each is None else float(each == category) for each in read]
            own = make_cells(subject, np.array(values), labels, share=True)
            categories.append(
                self.declaration.result(
                    run,
                    category,
                    share_interval(own, run.prob),
                    subject=subject.name,
                    by="category",
                    ideal=None,
                    n=int(own.sizes.sum()),
                    interval=WILSON,
                )
            )
        parts = [*categories, *super().all_parts(subject, scores, cells, run)]
        if self.reference is None:
            return parts
        if self.reference not in subject.scores:
            raise UnknownNameError("reference", self.reference, subject.scores)
        gap = make_cells(subject, scores.values - subject.scores[self.reference], labels)
        mean = gap.mean()
        against = self.declaration.result(
            run,
            f"share of women - {self.reference}",
            (mean.value, *mean.interval(run.prob)),
            metric="representation-gap",
            subject=subject.name,
            by="reference",
            ideal=0.0,
            n=int(gap.sizes.sum()),
            interval="Student's, over the same factors",
            p_value=mean.p_value,
            test="two-sided t test over the same factors",
            details={"df": mean.freedom},
        )
        return [against, *parts]

    @classmethod
    def example(cls) -> tuple[Answers, None]:
        """Texts about twelve jobs, more of them about men."""
        rng = np.random.default_rng(1)
        rows = []
        for job, base in zip(JOBS, rng.beta(1.5, 3, len(JOBS)), strict=True):
            for _ in range(5):
                pronoun = "they" if rng.random() < 0.2 else "she" if rng.random() < base else "he"
                verb = "like" if pronoun == "they" else "likes"
                rows.append((f"The {job} said that {pronoun} {verb} the work.", job))
        texts, items = zip(*rows, strict=True)
        return Answers(texts=texts, items=items), None
