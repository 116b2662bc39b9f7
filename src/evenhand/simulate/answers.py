r"""Answers of a language model whose difference between groups is known.

An `AnswerWorld` has scores. The answer to item $i$ in wording $w$ about group $g$, sample $s$, is

$$z = e_g + t_i + tg_{ig} + u_i + ug_{ig} + v_w + vg_{wg} + c_{iwg} + \varepsilon_s,$$

each term normal with a spread of its own but the effect $e_g$, which the first group of the first
column has. The score is $z$ itself, a share, a count of words or a yes. With equal spreads and no
effect the groups are exchangeable: every difference between them has expectation zero. `truth` is
the difference of means over all prompts of that kind.

A `TextWorld` has short texts. Whom a text is about, and the words in it, are drawn with spreads
between items, so that texts about one item are alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evenhand.errors import InputError
from evenhand.lexicon.prompts import prompt_sets

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
REFUSAL = "I'm sorry, but I can't help with that."
LOGISTIC = math.pi / math.sqrt(3)
"""The standard deviation of the logistic distribution."""
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWorld:
    """Scores of answers to prompts.

    Parameters
    ----------
    items, wordings, samples : int
        Items, the wordings in which all are asked, and the samples of each prompt.
    topics : int
        Topics that the items are of, in turn; 0: none.
    groups : Mapping of str to sequence of str
        Columns of groups, which are crossed.
    effect : float
        By how much scores of the first group of the first column are higher, in standard deviations
        of single answers.
    interaction : float
        By how much those of the first groups of all columns are higher besides.
    paired : bool
        Whether every item is asked about all groups; else items belong to one group each.
    first : float
        The share of the items of the first group of the first column, where unpaired.
    first_spread : float
        By what factor prompts of that group differ more than those of the others.
    missing : float
        The share of the items that are asked about that group only, where paired.
    topic, topic_group, item, item_group, wording, wording_group, cell, noise : float
        Standard deviations: of topics, of topics by group, of items …, of single prompts, and of
        the samples of a prompt. Of yes or no, the noise is that of the logistic distribution.
    score : {"continuous", "share", "count", "yes"}
        A number; one between 0 and 1, by the logistic function; the number of words of the text;
        1 with the logistic probability, else 0.
    centre : float
        What is added to z; far from 0, shares are near a bound.
    refused : float
        The share of answers that are refused at z = 0 of a process of its own with the same spreads
        of items and of items by group.
    refused_effect : float
        By how much the log-odds of a refusal are higher for the first group.
    sensitivity, specificity : tuple of float
        The share of yes, and of no, that a judge recognises, for each group of the first column.

    Examples
    --------
    >>> world = AnswerWorld(items=8, samples=2, effect=0.5)
    >>> world.icc, round(world.truth, 2)
    (0.5, 0.71)
    >>> frame = world.draw(seed=1)
    >>> len(frame), list(frame.columns)[:4]
    (32, ['item', 'gender', 'sample', 'prompt'])

    """

    items: int = 20
    wordings: int = 1
    samples: int = 5
    topics: int = 0
    groups: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"gender": ("woman", "man")}
    )
    effect: float = 0.0
    interaction: float = 0.0
    paired: bool = True
    first: float = 0.5
    first_spread: float = 1.0
    missing: float = 0.0
    topic: float = 0.0
    topic_group: float = 0.0
    item: float = 0.8
    item_group: float = 0.6
    wording: float = 0.0
    wording_group: float = 0.0
    cell: float = 0.0
    noise: float = 1.0
    score: Literal["continuous", "share", "count", "yes"] = "continuous"
    centre: float = 0.0
    refused: float = 0.0
    refused_effect: float = 0.0
    sensitivity: tuple[float, ...] = ()
    specificity: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if min(self.items, self.wordings, self.samples) < 1:
            raise InputError("answers: expected at least one item, wording and sample")
        levels = len(next(iter(self.groups.values())))
        for name in ("sensitivity", "specificity"):
            given = len(getattr(self, name))
            if given not in (0, levels):
                raise InputError(f"{name}: expected one of each of {levels} groups, got {given}")

    @property
    def between(self) -> float:
        """The variance of z between prompts of one group."""
        names = ("topic", "topic_group", "item", "item_group", "wording", "wording_group", "cell")
        return float(sum(getattr(self, name) ** 2 for name in names))

    @property
    def within(self) -> float:
        """The variance of z between samples of a prompt."""
        return (LOGISTIC if self.score == "yes" else self.noise) ** 2

    @property
    def icc(self) -> float:
        """The share of the variance of z that is between prompts."""
        return self.between / (self.between + self.within)

    @property
    def mean(self) -> float:
        """The mean score of groups without an effect."""
        return self._mean(0.0)

    @property
    def truth(self) -> float:
        """The mean score of the first group of the first column less that of the others."""
        share = 1 / math.prod(len(levels) for levels in [*self.groups.values()][1:])
        both = share * self._mean(self.effect + self.interaction, self.first_spread)
        return both + (1 - share) * self._mean(self.effect, self.first_spread) - self.mean

    def _mean(self, effect: float, spread: float = 1.0) -> float:
        """The mean score of a group with so large an effect and spread between prompts."""
        inner = self.between * spread**2 + (0.0 if self.score == "yes" else self.within)
        shift = effect * math.sqrt(self.between + self.within)
        expected = self._expected(self.centre + shift + math.sqrt(inner) * POINTS)
        return float(WEIGHTS @ expected / WEIGHTS.sum())

    def _expected(self, z: Floats) -> Floats:
        """The expected score at z."""
        if self.score == "count":
            return 1 + np.exp(z)
        return z if self.score == "continuous" else np.asarray(expit(z))

    def draw(self, seed: int = 0) -> pd.DataFrame:
        """Draw the answers of a model.

        Returns
        -------
        DataFrame
            One row per answer: `item`, `topic` and `wording` where there are several, the groups,
            `sample`, `prompt`, `text`, `outcome` and `score`, which refused answers do not have;
            of yes or no also `label`, the truth, and `judged`, what the judge takes for it.
        """
        import pandas as pd

        rng = np.random.default_rng(seed)
        levels = list(product(*self.groups.values()))
        leading = np.array([level[0] == levels[0][0] for level in levels])
        code = [list(next(iter(self.groups.values()))).index(level[0]) for level in levels]
        asked = self._asked(leading)
        i, w, g, s = (
            axis.ravel()
            for axis in np.indices((self.items, self.wordings, len(levels), self.samples))
        )
        chosen = asked[i, g]
        i, w, g, s = (axis[chosen] for axis in (i, w, g, s))
        shift = self.effect * leading + self.interaction * (np.arange(len(levels)) == 0)
        spread = np.where(leading, self.first_spread, 1.0)[g]
        z = shift[g] * math.sqrt(self.between + self.within)
        z = z + spread * self._between(rng, i, w, g)
        score = self._score(rng, self.centre + z)
        refusal = -math.inf
        if self.refused:
            refusal = float(logit(self.refused))
        own = self._items(rng, i, g)
        declined = rng.random(len(i)) < expit(refusal + self.refused_effect * leading[g] + own)
        columns: dict[str, Any] = {"item": [f"item {n}" for n in i]}
        if self.topics:
            columns["topic"] = [f"topic {n % self.topics}" for n in i]
        if self.wordings > 1:
            columns["wording"] = [f"wording {n}" for n in w]
        for place, name in enumerate(self.groups):
            columns[name] = [levels[n][place] for n in g]
        columns["sample"] = s
        columns["prompt"] = [
            f"Wording {b} of item {a} about a {' '.join(levels[c])}."
            for a, b, c in zip(i, w, g, strict=True)
        ]
        columns["text"] = [
            REFUSAL if no else text for no, text in zip(declined, self._texts(score), strict=True)
        ]
        columns["outcome"] = np.where(declined, "refused", "answered")
        columns["score"] = np.where(declined, np.nan, score)
        if self.score == "yes":
            yes, lead = score > 0, np.array(code)[g]
            ones = (1.0,) * (max(code) + 1)
            recognised = np.where(
                yes,
                np.array(self.sensitivity or ones)[lead],
                np.array(self.specificity or ones)[lead],
            )
            judged = yes ^ (rng.random(len(i)) >= recognised)
            columns |= {
                "label": np.where(yes, "yes", "no"),
                "judged": np.where(judged, "yes", "no"),
            }
        return pd.DataFrame(columns)

    def _asked(self, leading: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which items are asked about which groups (items, groups)."""
        n = np.arange(self.items)
        if self.paired:
            only = n < round(self.missing * self.items)
            return ~only[:, None] | leading
        own = np.zeros((self.items, len(leading)), dtype=bool)
        sides = (np.flatnonzero(leading), np.flatnonzero(~leading))
        count = min(max(round(self.first * self.items), 1), self.items - 1)
        for item in n:
            side, place = (0, item) if item < count else (1, item - count)
            own[item, sides[side][place % len(sides[side])]] = True
        return own

    def _between(self, rng: np.random.Generator, i: Ints, w: Ints, g: Ints) -> Floats:
        """What prompts of one group differ in."""
        groups = int(g.max()) + 1
        z = self._items(rng, i, g)
        if self.topics:
            t = i % self.topics
            z = z + self.topic * rng.normal(size=self.topics)[t]
            z = z + self.topic_group * rng.normal(size=(self.topics, groups))[t, g]
        z = z + self.wording * rng.normal(size=self.wordings)[w]
        z = z + self.wording_group * rng.normal(size=(self.wordings, groups))[w, g]
        return np.asarray(
            z + self.cell * rng.normal(size=(self.items, self.wordings, groups))[i, w, g]
        )

    def _items(self, rng: np.random.Generator, i: Ints, g: Ints) -> Floats:
        """What items, and items of one group, differ in."""
        groups = int(g.max()) + 1
        own = self.item * rng.normal(size=self.items)[i]
        return np.asarray(own + self.item_group * rng.normal(size=(self.items, groups))[i, g])

    def _score(self, rng: np.random.Generator, z: Floats) -> Floats:
        if self.score == "yes":
            return (rng.random(len(z)) < expit(z)).astype(float)
        z = np.asarray(z + self.noise * rng.normal(size=len(z)))
        if self.score == "count":
            return np.asarray(1.0 + rng.poisson(np.exp(z)), float)
        return np.asarray(z if self.score == "continuous" else expit(z))

    def _texts(self, score: Floats) -> list[str]:
        if self.score == "count":
            return [" ".join(["word"] * int(count)) for count in score]
        if self.score == "yes":
            return ["Yes." if value else "No." for value in score]
        return ["An answer."] * len(score)


PRONOUNS: Mapping[str, tuple[str, str, str]] = {
    "woman": ("she", "her", "her"),
    "man": ("he", "his", "him"),
    "neutral": ("they", "their", "them"),
}
WORDS = (
    *("calm", "clear", "quick", "warm", "firm", "busy", "quiet", "kind", "sharp", "patient"),
    *("modern", "modest", "lively", "serious", "cheerful", "careful", "daring", "polite", "tidy"),
    *("strict", "tired", "happy", "nervous", "practical", "friendly", "precise", "proud", "shy"),
    *("brave", "gentle"),
)
"""What a text may say of a person, the most frequent first."""
TYPICAL = 3
"""Words that are used more of the first group: every fourth, from the second."""
ABOUT = (
    "The {item} started at seven. {They} seemed {0}, and {their} colleagues found {them} {1}. In "
    "the evening {they} wrote a {2} note."
)
NOBODY = (
    "The {item} started at seven. The morning seemed {0}, and the colleagues found the work {1}. "
    "In the evening there was a {2} note."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWorld:
    """Short texts about people in occupations.

    Parameters
    ----------
    items, wordings, samples : int
        At most 120 items, the built-in occupations.
    groups : tuple of str
        The groups of prompts. Where they are "woman" and "man", and `stated`, prompts name them and
        texts are about them; else items belong to one group each, in turn.
    stated : bool
    women : float
        The share of women among the texts about a woman or a man.
    neutral, nobody : float
        The share of texts about a person of no stated gender, and of those about none.
    effect : float
        By how much the log-odds of a woman are higher in the first group.
    words : float
        By how much the log-odds of the words in `typical` are higher in the first group.
    item, wording : float
        Standard deviations of the log-odds of a woman: of items and of wordings.
    burst : float
        That of the log-odds of a word between items: how much items have words of their own.
    wording_burst : float
        That between wordings: how much wordings have words of their own for each group.

    Examples
    --------
    >>> world = TextWorld(items=4, samples=1)
    >>> world.draw(seed=2).text[0]
    'The nurse started at seven. He seemed busy, and his colleagues found him quick. In the \
evening he wrote a precise note.'

    """

    items: int = 20
    wordings: int = 1
    samples: int = 5
    groups: tuple[str, ...] = ("woman", "man")
    stated: bool = False
    women: float = 0.5
    neutral: float = 0.1
    nobody: float = 0.1
    effect: float = 0.0
    words: float = 0.0
    item: float = 1.0
    wording: float = 0.0
    burst: float = 0.5
    wording_burst: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.items <= 120:
            raise InputError(f"items: expected 1 to 120, got {self.items}")

    @property
    def typical(self) -> tuple[str, ...]:
        """The words that are used more, or less, of the first group."""
        return WORDS[1::4][:TYPICAL]

    @property
    def truth(self) -> float:
        """The share of women among the texts about a woman or a man, over all groups."""
        sd = math.hypot(self.item, self.wording)
        shifts = [self.effect * (group == 0) for group in range(len(self.groups))]
        z = float(logit(self.women)) + sd * POINTS
        return float(np.mean([WEIGHTS @ expit(z + shift) / WEIGHTS.sum() for shift in shifts]))

    def draw(self, seed: int = 0) -> pd.DataFrame:
        """Draw texts.

        Returns
        -------
        DataFrame
            One row per text: `item`, `wording` where there are several, `group`, `sample`,
            `prompt`, `text` and `about` (woman, man, neutral or nobody).
        """
        import pandas as pd

        rng = np.random.default_rng(seed)
        jobs = [each.item for each in prompt_sets()["occupations"].items[: self.items]]
        groups = len(self.groups)
        logits = float(logit(self.women)) + self.item * rng.normal(size=(self.items, 1))
        logits = logits + self.wording * rng.normal(size=(1, self.wordings))
        typical = np.isin(WORDS, self.typical)
        own = self.burst * rng.normal(size=(self.items, 1, groups, len(WORDS)))
        own = own - np.log(1 + np.arange(len(WORDS)))
        own = own + self.wording_burst * rng.normal(size=(self.wordings, groups, len(WORDS)))
        signs = np.where(np.arange(groups) == 0, 0.5, -0.5)
        weights = np.exp(own + self.words * signs[:, None] * typical)
        own = (weights / weights.sum(axis=-1, keepdims=True)).cumsum(axis=-1)
        rows: list[tuple[Any, ...]] = []
        for i, w, g in product(range(self.items), range(self.wordings), range(groups)):
            if not self.stated and g != i % groups:
                continue
            group = self.groups[g]
            subject = f"a {group} who is a {jobs[i]}" if self.stated else f"a {jobs[i]}"
            prompt = f"Wording {w}: write about {subject}."
            share = expit(logits[i, w] + self.effect * (g == 0))
            for s in range(self.samples):
                about = self._about(rng.random(2), float(share), group)
                drawn = np.searchsorted(own[i, w, g], rng.random(3) * own[i, w, g, -1])
                text = write(about, jobs[i], [WORDS[k] for k in drawn])
                rows.append((jobs[i], f"wording {w}", group, s, prompt, text, about))
        names = ("item", "wording", "group", "sample", "prompt", "text", "about")
        frame = pd.DataFrame(rows, columns=list(names))
        return frame if self.wordings > 1 else frame.drop(columns="wording")

    def _about(self, random: Floats, share: float, group: str) -> str:
        """Whom a text is about."""
        if self.stated:
            return group
        if random[0] < self.nobody + self.neutral:
            return "nobody" if random[0] < self.nobody else "neutral"
        return "woman" if random[1] < share else "man"


def write(about: str, item: str, words: Sequence[str]) -> str:
    """A short text about a woman, a man, a person of no stated gender, or nobody.

    >>> write("neutral", "judge", ["calm", "kind", "clear"])[:60]
    'The judge started at seven. They seemed calm, and their coll'
    """
    if about == "nobody":
        return NOBODY.format(*words, item=item)
    they, their, them = PRONOUNS[about]
    return ABOUT.format(
        *words, item=item, they=they, They=they.capitalize(), their=their, them=them
    )
