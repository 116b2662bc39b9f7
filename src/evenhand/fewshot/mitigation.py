"""Mitigations of gender bias in few-shot classification (El Zein 2021, §4.2).

- *augment*: each text gets a counterfactual, the same text of the other gender, and models learn
  from both (§4.2.1: a model is trained on the original and on the swapped corpus). In the support
  of an episode each text comes with its counterfactual, so that K texts give 2K vectors. Training
  queries are the text or its counterfactual with equal probability; validation and test queries
  stay as they are. A text and its counterfactual are one text to the sampler: they are never in the
  support and the query of one episode.
- *neutralize*: gendered words become neutral ones and person names E1, E2 … (§4.2.2).
- *rename*: the same with gender-free first names in place of E1, E2 … (§4.2.2).
- *calibrate*: K/2 supports of each gender per class (§4.2.3). It changes no text:
  `episodes.sample` does it.

A fourth, *parity*, constrains the answers (`evenhand.fewshot.parity`) and changes no text either.

Two others mitigate nothing. *pro* and *anti* give the classifier the pro- or anti-stereotypical
version of every text to learn from: in a class that leans male a man's or a woman's, in one that
leans female the other. Texts in classes without a leaning and of unknown gender stay. Queries to
train and validate with are of that version too, test queries as they are: each is answered in both
versions, so that a network trained on the one is tested on the other (§4.1.3).

They are applied to training and validation episodes, and the test episodes are as without a
mitigation (`train`: the source fixes the test set), or to the test episodes too (`all`): its
supports come with their counterfactuals, its texts are neutralised, its supports are balanced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.answers import leaning_codes
from evenhand.fewshot.data import FEMALE, MALE, Dataset
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.settings import TextMitigation
from evenhand.statistics.jackknife import Ints
from evenhand.text.corpus.pool import ordered
from evenhand.text.rewrite import Rewriter, rewrite_all

BATCH = 1000  # texts rewritten at once
PURPOSE = 0x7715  # separates these draws from others of the same seed


@dataclass(frozen=True, eq=False)
class Mitigated:
    """The texts a mitigated classifier works with, and the rows of an episode among them.

    `pool` has the texts of the data set, rewritten if needed, and then, where counterfactuals are
    needed, these in the same order; `texts` is the number of texts before them. `leaning` is the
    gender that each class of the data set leans to.
    """

    mitigation: TextMitigation
    pool: Dataset
    texts: int
    leaning: Ints = field(repr=False)

    @cached_property
    def shift(self) -> Ints:
        """What is added to the row of each text to get the version that is learned from."""
        gender = self.pool.genders[: self.texts]
        side = self.leaning[self.pool.labels[: self.texts]]
        wanted = side == gender if self.mitigation.pro else side != gender
        shift: Ints = self.texts * ((side >= 0) & (gender >= 0) & ~wanted)
        return shift

    def rows(
        self,
        episodes: Episodes,
        *,
        training: bool = False,
        validation: bool = False,
        seed: int = 0,
    ) -> Episodes:
        """The episodes as rows of the pool; in `training` queries may be counterfactuals."""
        support, query, unlabelled = episodes.support, episodes.query, episodes.unlabelled
        if self.mitigation.pro or self.mitigation.anti:
            support = support + self.shift[support]
            if training or validation:
                query = query + self.shift[query]
            if unlabelled is not None:
                unlabelled = unlabelled + self.shift[unlabelled]
        if self.mitigation.augment:
            support = np.concatenate([support, support + self.texts], axis=2)
        if self.mitigation.augment and training:
            rng = np.random.Generator(np.random.PCG64([seed, PURPOSE]))
            query = query + self.texts * rng.integers(0, 2, query.shape)
            if unlabelled is not None:
                unlabelled = unlabelled + self.texts * rng.integers(0, 2, unlabelled.shape)
        return replace(
            episodes,
            support=support,
            query=query,
            unlabelled=unlabelled,
            dataset=self.pool.digest,
        )


def apply(
    dataset: Dataset,
    mitigation: str | TextMitigation,
    *,
    seed: int = 0,
    names: str = "random",
    workers: int = 1,
) -> Mitigated:
    """Apply a mitigation to the texts of a data set.

    Parameters
    ----------
    dataset : Dataset
    mitigation : str or TextMitigation
        Such as "augment+neutralize".
    seed, names
        As for `swap_gender`.
    workers : int
        Processes that rewrite texts.

    Returns
    -------
    Mitigated

    Examples
    --------
    >>> data = Dataset.of(["She sings.", "He cooks."], ["x", "y"], "FM", name="tiny")
    >>> apply(data, "augment").pool.texts
    ('She sings.', 'He cooks.', 'He sings.', 'She cooks.')
    >>> apply(data, "neutralize").pool.texts
    ('They sing.', 'They cook.')

    """
    chosen = TextMitigation.parse(mitigation) if isinstance(mitigation, str) else mitigation
    swapped: tuple[str, ...] = ()
    if chosen.swaps:
        swapped = swap_gender(dataset.texts, names=names, seed=seed, workers=workers)
    versions = read_as(chosen, (*dataset.texts, *swapped), workers=workers)
    return pool_texts(dataset, chosen, versions)


def read_as(
    mitigation: TextMitigation, texts: Sequence[str], *, workers: int = 1
) -> tuple[str, ...]:
    """Texts as a classifier with this mitigation reads them: neutralised, or as they are."""
    if not mitigation.rewritten:
        return tuple(texts)
    return neutralize(texts, become="names" if mitigation.rename else "numbers", workers=workers)


def pool_texts(dataset: Dataset, mitigation: TextMitigation, texts: Sequence[str]) -> Mitigated:
    """What `apply` gives, from texts already rewritten, and then any counterfactuals."""
    labels, genders, rows = dataset.labels, dataset.genders, dataset.rows
    if mitigation.swaps:
        labels, rows = np.tile(labels, 2), np.tile(rows, 2)
        other = np.select([genders == MALE, genders == FEMALE], [FEMALE, MALE], genders)
        genders = np.concatenate([genders, other])
    pool = replace(dataset, texts=tuple(texts), labels=labels, genders=genders, rows=rows)
    return Mitigated(mitigation, pool, len(dataset), leaning_codes(dataset.leaning))


def swap_gender(
    texts: Sequence[str], *, names: str = "random", seed: int = 0, workers: int = 1
) -> tuple[str, ...]:
    """Every text with gendered words and first names of the other gender.

    Names are drawn at random, as in El Zein (2021, §4.2.1), or swapped by "fixed" pairs, which
    undo themselves.

    >>> swap_gender(["Her brother James met Mary."], names="fixed")
    ('His sister Mary met James.',)
    """
    from evenhand.text.rewrite.swap import Swap

    return _rewrite(texts, (Swap(names=names, seed=seed),), workers)  # type: ignore[arg-type]


def neutralize(
    texts: Sequence[str], *, become: Literal["numbers", "names"] = "numbers", workers: int = 1
) -> tuple[str, ...]:
    """Every text with neutral words and without the names of persons, or with gender-free ones.

    >>> neutralize(["Mr. James Reed is a spokesman. He loves his job."])
    ('Mx. E1 E2 is a spokesperson. They love their job.',)
    """
    from evenhand.text.rewrite.names import Anonymize
    from evenhand.text.rewrite.neutralize import Neutralize

    # names first: titles and pronouns help to recognise them
    return _rewrite(texts, (Anonymize(become=become), Neutralize(nouns="all")), workers)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Rewriters in sequence on a batch of texts; can be sent to a process."""

    rewriters: tuple[Rewriter, ...]

    def __call__(self, batch: tuple[int, Sequence[str]]) -> list[str]:
        first, texts = batch
        for rewriter in self.rewriters:
            texts = [result.text for result in rewrite_all(texts, rewriter, first=first)]
        return list(texts)


def _rewrite(
    texts: Sequence[str], rewriters: tuple[Rewriter, ...], workers: int
) -> tuple[str, ...]:
    if workers < 1:
        raise InputError(f"workers: expected 1 or more, got {workers}")
    batches = ((first, texts[first : first + BATCH]) for first in range(0, len(texts), BATCH))
    done = ordered(_Rewriting(rewriters), batches, workers)
    return tuple(text for _, batch in done for text in batch)
