r"""Which words does a model use of one group rather than of another?

For a word w and groups i and j, $\delta_w = \log\frac{y_w^i + \alpha_w}{n^i + \alpha_0 - y_w^i -
\alpha_w} - \log\frac{y_w^j + \alpha_w}{n^j + \alpha_0 - y_w^j - \alpha_w}$ and $z_w = \delta_w /
\sqrt{1 / (y_w^i + \alpha_w) + 1 / (y_w^j + \alpha_w)}$, with the prior $\alpha_w$ in proportion to
the use of the word in all answers (Monroe, Colaresi & Quinn 2008). A word counts once in a prompt:
y is the sum over prompts of the share of the prompt's answers that have the word.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.answers.by_group import GroupMetric, no_groups, pairs_of, query_of
from evenhand.answers.cells import OTHERS
from evenhand.answers.examples import example_answers
from evenhand.answers.gold import Gold
from evenhand.answers.masking import group_words, words_of
from evenhand.answers.scores import AnswerScores
from evenhand.answers.table import Answers
from evenhand.errors import InputError
from evenhand.instruments import Evidence, Run, instrument, option
from evenhand.lexicon.first_names import names
from evenhand.results import Items, Measurement
from evenhand.statistics.intervals import Floats
from evenhand.statistics.permuted import distance_limits, permute_groups
from evenhand.statistics.power import quantile
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear

MOST = 2000
"""The most frequent words that are compared."""
PIECE = 1 << 22
SHOWN = 5
ENDING = re.compile(r"'(?:s|d|ll|re|ve|m)$")
"""Of a possessive or contraction: *Jamal's* and *she's* are words of a group too."""


@instrument(
    name="words",
    label="Words that differ",
    question="Which words does the model use of one group rather than of another?",
    formula="mean of |z| over words, less its mean where the groups are permuted; "
    "z of the log-odds ratio with an informative Dirichlet prior",
    source="Monroe, Colaresi & Quinn (2008)",
    worse="higher",
    role="confirms",
    unit="words",
    above="the model uses other words of one group than of another",
    reading="0 where words differ between the groups no more than where these are permuted within "
    "items, and within wordings where these are crossed with items; how many words differ singly "
    "is in the details. Words that name the groups, gendered words and first names are left out. "
    "The items are the words: log odds, interval over items, z, and p corrected for all words by "
    "the largest |z| under permutation.",
)
class DistinctiveWords(GroupMetric):
    """The instrument `words`."""

    prior: float = option(
        0.1, above=0, help="Weight of the prior, as a share of the words that are counted."
    )
    least: int = option(3, minimum=1, help="Prompts that a word has to be used in.")
    permutations: int = option(
        999, minimum=19, help="Random permutations of the groups within items."
    )

    def scores(self, subject: Answers) -> AnswerScores:
        left_out = len(subject) - len(subject.readable)
        skipped = (f"{left_out:,} refused, empty or failed",) if left_out else ()
        return AnswerScores(np.zeros(0), "the words", left_out=skipped)

    def measure(
        self, subject: Answers, material: Gold | None = None, run: Run = Run()
    ) -> list[Measurement]:
        if not subject.groups:
            raise no_groups()
        masked = group_words(subject) | {"i'm", "i"}
        results, problems = [], list[str]()
        texts = [frozenset(_counted(text, masked)) for text in subject.texts]
        for column, labels in subject.columns.items():
            levels = sorted({label for label in labels if label is not None})
            if len(levels) < 2:
                got = f"only '{levels[0]}'" if levels else "none"
                problems.append(f"group '{column}': expected two groups or more, got {got}")
                continue
            for pair in pairs_of(levels):
                try:
                    results.append(self._contrast(subject, texts, column, pair, run))
                except InputError as error:
                    problems.append(str(error))
        if not results:
            raise InputError(f"words: {problems[0]}")
        return results

    def _contrast(
        self,
        subject: Answers,
        texts: list[frozenset[str]],
        column: str,
        pair: tuple[str, str],
        run: Run,
    ) -> Measurement:
        labels = subject.columns[column]
        first, second = pair
        wanted = {label for label in labels if label is not None} if second == OTHERS else {*pair}
        order = [first, *sorted(wanted - {first})]
        rows = [row for row in subject.readable.tolist() if labels[row] in wanted]
        wordings = subject.wordings or ("",) * len(subject)
        prompts = [(subject.units[i], subject.items[i], wordings[i], labels[i]) for i in rows]
        used: Counter[str] = Counter()
        by_prompt: dict[tuple[str, str, str, str | None], list[int]] = {}
        for row, prompt in zip(rows, prompts, strict=True):
            by_prompt.setdefault(prompt, []).append(row)
        for own in by_prompt.values():
            used.update(frozenset[str]().union(*(texts[row] for row in own)))
        ranked = sorted(used, key=lambda word: (-used[word], word))
        known = [word for word in ranked[:MOST] if used[word] >= self.least]
        if len(known) < 2:
            raise InputError(
                f"group '{column}': expected two words or more that are used in {self.least} "
                f"prompts, got {len(known)}"
            )
        place = {word: number for number, word in enumerate(known)}
        factors = [0, 2] if len({prompt[2] for prompt in by_prompt}) > 1 else [0]
        compared = []
        for factor in factors:  # units (items, or topics), and wordings where they are crossed
            names_of = sorted({str(prompt[factor]) for prompt in by_prompt})
            units = {each: i for i, each in enumerate(names_of)}
            profiles = np.zeros((len(units), len(order), len(known)))
            present = np.zeros((len(units), len(order)))
            for prompt, own in by_prompt.items():
                cell = units[str(prompt[factor])], order.index(str(prompt[3]))
                present[cell] += 1
                for row in own:
                    columns = [place[word] for word in texts[row] if word in place]
                    profiles[cell][columns] += 1 / len(own)
            sides = np.count_nonzero(present[:, 0]), np.count_nonzero(present[:, 1:].sum(axis=1))
            if min(sides) < 2:
                if factor:
                    continue
                raise InputError(
                    f"group '{column}': expected two items or more of '{first}' and '{second}', "
                    "got one"
                )
            shares = profiles / np.maximum(present, 1)[:, :, None]
            compared.append(self._compare(shares, present, run))
        found = compared[0]
        delta, z = found.delta, found.z
        one, two = found.sides
        order_of = np.argsort(-np.abs(z), kind="stable")
        items = {
            "word": [known[i] for i in order_of],
            "log_odds": delta[order_of],
            "low": np.min([delta - each.half for each in compared], axis=0)[order_of],
            "high": np.max([delta + each.half for each in compared], axis=0)[order_of],
            "z": z[order_of],
            "p_corrected": np.max([each.corrected for each in compared], axis=0)[order_of],
            "first": one[order_of],
            "second": two[order_of],
        }
        over = "items (or topics)" if len(compared) == 1 else "items (or topics) and wordings"
        counted = max((each.counted for each in compared), key=lambda each: each.p_value)
        query = query_of(self.scores(subject), column, pair)
        tops = [
            f"of '{name}' rather: {', '.join(known[i] for i in top[:SHOWN])}"
            for name, top in (
                (first, [i for i in np.argsort(-z, kind="stable") if z[i] > 0]),
                (second, [i for i in np.argsort(z, kind="stable") if z[i] < 0]),
            )
            if top
        ]
        return self.declaration.result(
            run,
            query,
            (
                found.value - found.null,
                min(each.low for each in compared),
                max(each.high for each in compared),
            ),
            subject=subject.name,
            n=len(known),
            interval=f"jackknife over {over}" + (", the wider one" if len(compared) > 1 else ""),
            p_value=counted.p_value,
            test=f"{counted.draws:,} permutations of the groups, all answers of an item together"
            + ("; or of a wording, if that p is larger" if len(compared) > 1 else ""),
            items=Items(items),
            left_out=self.scores(subject).left_out,
            details={
                "groups": list(pair),
                "mean": found.value,
                "permuted": found.null,
                "words": len(known),
                "differ": int(np.all([each.beyond for each in compared], axis=0).sum()),
                "df": min(each.freedom for each in compared),
                **counted.details,
            },
            notes=(f"{query}: {'; '.join(tops)}.",) if tops else (),
        )

    def _compare(self, profiles: Floats, present: Floats, run: Run) -> _Compared:
        """The words of both groups, whose labels are permuted within units."""
        made = permute_groups(profiles, present)
        size = float(present[:, 0].sum())
        prior = self.prior * np.add(*made.groups(made.observed))[0] * size

        def scored(one: Floats, two: Floats) -> tuple[Floats, Floats]:
            return log_odds(one * size, two * size, prior)

        delta, z = (each[0] for each in scored(*made.groups(made.observed)))
        value = float(np.abs(z).mean())
        means: list[Floats] = []
        largest: list[Floats] = []

        def count(draws: int, batch: Seed) -> int:
            rng, extreme = np.random.default_rng(batch), 0
            step = max(1, PIECE // (profiles.shape[2] + present.size))
            for start in range(0, draws, step):
                chosen = made.draw(min(step, draws - start), rng)
                drawn = np.abs(scored(*made.groups(chosen))[1])
                means.append(drawn.mean(axis=1))
                largest.append(drawn.max(axis=1))
                extreme += int((means[-1] >= value - 1e-12).sum())
            return extreme

        counted = draw_until_clear(count, self.permutations, run.seed)
        null = float(np.concatenate(means).mean())
        maxima = np.concatenate(largest)
        beyond = (maxima[:, None] >= np.abs(z) - 1e-12).sum(axis=0)
        left = [scored(*sides) for sides in made.left_out()]
        error = np.sqrt((len(left) - 1) * np.stack([each[0] for each in left]).var(axis=0))
        without = np.array([float(np.abs(each[1]).mean()) for each in left])
        low, high = distance_limits(value, null, without, run.prob)
        one, two = (side[0] * size for side in made.groups(made.observed))
        return _Compared(
            delta=delta,
            z=z,
            half=quantile((1 + run.prob) / 2, len(left) - 1) * error,
            corrected=(1 + beyond) / (1 + len(maxima)),
            beyond=np.abs(z) > np.quantile(maxima, run.prob),
            sides=(one, two),
            value=value,
            null=null,
            low=low,
            high=high,
            freedom=len(left) - 1,
            counted=counted,
        )

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        return [Evidence(measurement=measurement)]

    @classmethod
    def clause(cls, m: Measurement) -> str:
        """Which groups the words differ of."""
        if m.value < 0:
            return ""
        first, second = m.details["groups"]
        return f"the model uses other words of '{first}' than of '{second}'"

    @classmethod
    def example(cls) -> tuple[Answers, None]:
        """Answers with other words of women than of men."""
        return example_answers(), None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """The words of two groups, with the labels permuted within the levels of one factor.

    By word its log odds, z, half an interval, corrected p, whether it is beyond the permutations,
    and its use by both groups; then the mean of |z| and what is permuted of it.
    """

    delta: Floats
    z: Floats
    half: Floats
    corrected: Floats
    beyond: NDArray[np.bool_]
    sides: tuple[Floats, Floats]
    value: float
    null: float
    low: float
    high: float
    freedom: int
    counted: Counted


def log_odds(one: Floats, two: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """The log-odds ratios of words with a Dirichlet prior, and their z.

    >>> delta, z = log_odds(np.array([8.0, 2.0]), np.array([2.0, 8.0]), np.array([1.0, 1.0]))
    >>> round(float(delta[0]), 3), round(float(z[0]), 3)
    (2.197, 3.296)
    """
    sides = []
    for counts in (one, two):
        total = counts.sum(axis=-1, keepdims=True) + prior.sum()
        sides.append(np.log(counts + prior) - np.log(total - counts - prior))
    delta = sides[0] - sides[1]
    return delta, delta / np.sqrt(1 / (one + prior) + 1 / (two + prior))


def _counted(text: str, masked: frozenset[str]) -> list[str]:
    """The words of a text that count: not those of the groups, and no first names."""
    known = names()
    return [
        word
        for word in (ENDING.sub("", each) for each in words_of(text))
        if word not in masked and known.gender(word.capitalize()) is None and len(word) > 1
    ]
