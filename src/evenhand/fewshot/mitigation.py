"""Three ways to lower gender bias in few-shot classification (D0 §4.2), and their combinations.

- *augment*: each text gets a twin of the other gender, and models learn from both (D0 §4.2.1: a
  model is trained on the original and on the swapped corpus). What is learnt from is the support
  of every episode, at test too, where it is all the model knows of a new class: there each text
  stands with its twin, so that 2K vectors of K texts are given. Training queries are the text or
  its twin by a fair coin; validation and test queries are left as they are. A text and its twin
  are one text to the sampler: they are never in the support and the query of one episode.
- *neutralize*: gendered words to neutral ones and person names to E1, E2 … (D0 §4.2.2), in every
  text there is, those of the test too: it belongs to how the classifier reads.
- *calibrate*: K/2 supports of each gender a class (D0 §4.2.3), in training and test. It changes
  no text: `episodes.sample` does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.data_set import FEMALE, MALE, UNKNOWN, Dataset
from evenhand.fewshot.episodes import Episodes
from evenhand.text.corpus.pool import ordered
from evenhand.text.rewrite import Rewriter, rewrite_all

__all__ = ["Mitigated", "Mitigation", "apply", "neutralized", "parse", "pooled", "swapped"]

PIECE = 1000  # texts rewritten at once
TWINS = 0x7715  # keeps the coins apart from other draws of the same seed


@dataclass(frozen=True, slots=True)
class Mitigation:
    """Which of the three are on; none of them is the name `none`."""

    augment: bool = False
    neutralize: bool = False
    calibrate: bool = False

    @property
    def name(self) -> str:
        """The names joined by +, always in the same order."""
        on = [each.name for each in fields(self) if getattr(self, each.name)]
        return "+".join(on) or "none"

    def __str__(self) -> str:
        return self.name

    def reads(self, texts: Sequence[str], *, jobs: int = 1) -> tuple[str, ...]:
        """Any texts as a classifier with this mitigation reads them: neutralised, or as they are.

        Twins of queries for an association test go through here like every other text.
        """
        return neutralized(texts, jobs=jobs) if self.neutralize else tuple(texts)


def parse(name: str) -> Mitigation:
    """A mitigation by its names joined by +, in any order.

    >>> str(parse("calibrate+augment"))
    'augment+calibrate'
    """
    known = [each.name for each in fields(Mitigation)]
    words = [word.strip() for word in name.split("+")]
    if words == ["none"]:
        return Mitigation()
    for word in words:
        if word == "none":
            raise InputError(f"mitigation: expected 'none' by itself, got '{name}'")
        if word not in known:
            raise UnknownNameError("mitigation", word, ["none", *known])
        if words.count(word) > 1:
            raise InputError(f"mitigation: expected each once, got '{word}' twice in '{name}'")
    return Mitigation(**dict.fromkeys(words, True))


@dataclass(frozen=True, eq=False)
class Mitigated:
    """The texts a mitigated classifier works with, and where an episode's texts lie among them.

    `pool` has the texts of the data set, rewritten where asked for, and with `augment` then their
    twins in the same order, each of the other gender; `texts` is how many come before the twins.
    `unchanged` counts the texts without a gendered word or name, whose twins are the same text.
    """

    mitigation: Mitigation
    pool: Dataset
    texts: int
    unchanged: int = 0

    def rows(self, episodes: Episodes, *, training: bool = False, seed: int = 0) -> Episodes:
        """The episodes as rows of the pool; `training` lets queries be twins too, by coin."""
        support, query, unlabelled = episodes.support, episodes.query, episodes.unlabelled
        if self.mitigation.augment:
            support = np.concatenate([support, support + self.texts], axis=2)
        if self.mitigation.augment and training:
            coins = np.random.Generator(np.random.PCG64([seed, TWINS]))
            query = query + self.texts * coins.integers(0, 2, query.shape)
            if unlabelled is not None:
                unlabelled = unlabelled + self.texts * coins.integers(0, 2, unlabelled.shape)
        return replace(
            episodes,
            support=support,
            query=query,
            unlabelled=unlabelled,
            dataset=self.pool.digest,
        )


def apply(
    dataset: Dataset,
    mitigation: str | Mitigation,
    *,
    seed: int = 0,
    names: str = "random",
    jobs: int = 1,
) -> Mitigated:
    """The texts of a data set as a mitigation has them; `names` is that of `swapped`.

    >>> made = Dataset.of(["She sings.", "He cooks."], ["x", "y"], "FM", name="tiny")
    >>> apply(made, "augment").pool.texts
    ('She sings.', 'He cooks.', 'He sings.', 'She cooks.')
    >>> apply(made, "neutralize").pool.texts
    ('They sing.', 'They cook.')
    """
    chosen = parse(mitigation) if isinstance(mitigation, str) else mitigation
    texts = dataset.texts
    twins: tuple[str, ...] = ()
    if chosen.augment:
        twins = swapped(texts, names=names, seed=seed, jobs=jobs)
    unchanged = sum(text == twin for text, twin in zip(texts, twins, strict=False))
    return pooled(dataset, chosen, chosen.reads((*texts, *twins), jobs=jobs), unchanged)


def pooled(
    dataset: Dataset, mitigation: Mitigation, texts: Sequence[str], unchanged: int = 0
) -> Mitigated:
    """What `apply` gives, of texts that are rewritten already; with `augment` the twins follow."""
    labels, genders, rows = dataset.labels, dataset.genders, dataset.rows
    if mitigation.augment:
        labels, rows = np.tile(labels, 2), np.tile(rows, 2)
        genders = np.concatenate([genders, _other(genders)])
    pool = Dataset(
        tuple(texts), labels, genders, dataset.classes, dataset.name, dataset.left_out, rows=rows
    )
    return Mitigated(mitigation, pool, len(dataset), unchanged)


def swapped(
    texts: Sequence[str], *, names: str = "random", seed: int = 0, jobs: int = 1
) -> tuple[str, ...]:
    """Every text with its gendered words and first names those of the other gender.

    Names are drawn at random, as in D0 §4.2.1, or swapped by "fixed" pairs, which undo themselves.

    >>> swapped(["Her brother James met Mary."], names="fixed")
    ('His sister Mary met James.',)
    """
    from evenhand.text.rewrite.swap import Swap

    return _rewritten(texts, (Swap(names=names, seed=seed),), jobs)


def neutralized(texts: Sequence[str], *, jobs: int = 1) -> tuple[str, ...]:
    """Every text with neutral words and without the names of persons.

    >>> neutralized(["Mr. James Reed is a spokesman. He loves his job."])
    ('Mx. E1 E2 is a spokesperson. They love their job.',)
    """
    from evenhand.text.rewrite.names import Anonymize
    from evenhand.text.rewrite.neutralize import Neutralize

    # names first: titles and pronouns help to find them
    return _rewritten(texts, (Anonymize(), Neutralize(nouns="all")), jobs)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    """Rewriters one after the other on a piece of the texts; it can be sent to a process."""

    rewriters: tuple[Rewriter, ...]

    def __call__(self, piece: tuple[int, Sequence[str]]) -> list[str]:
        first, texts = piece
        for rewriter in self.rewriters:
            texts = [made.text for made in rewrite_all(texts, rewriter, first=first)]
        return list(texts)


def _rewritten(texts: Sequence[str], rewriters: tuple[Rewriter, ...], jobs: int) -> tuple[str, ...]:
    if jobs < 1:
        raise InputError(f"jobs: expected 1 or more, got {jobs}")
    done: list[str] = []
    for _, piece in ordered(_Rewriting(rewriters), _pieces(texts), jobs):
        done.extend(piece)
    return tuple(done)


def _pieces(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    return ((first, texts[first : first + PIECE]) for first in range(0, len(texts), PIECE))


def _other(genders: np.ndarray) -> np.ndarray:
    return np.select([genders == MALE, genders == FEMALE], [FEMALE, MALE], UNKNOWN)
