"""The pronoun that a model puts beside a phrase: the phrase in carrier sentences with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenhand.intervals import Floats
from evenhand.masked.gender_words import probabilities
from evenhand.masked.metrics.pronouns import bias
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Progress

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = ["PhrasePronouns", "pronouns"]


@dataclass(frozen=True, slots=True)
class PhrasePronouns:
    """What a model says of each phrase in each carrier (n, carriers)."""

    model: str
    phrases: tuple[str, ...]
    carriers: tuple[str, ...]
    log_odds: Floats = field(repr=False)
    """log P(male pronoun) - log P(female pronoun) at the mask."""
    bias: Floats = field(repr=False)
    """P(male) / (P(male) + P(female))."""


def pronouns(
    model: MaskedLM,
    phrases: Sequence[str],
    carriers: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> PhrasePronouns:
    """Ask for the pronoun of every phrase in every carrier, over the whole vocabulary.

    >>> from evenhand.simulate.masked import bigram_model
    >>> fake = bigram_model({"engines": {"he": 0.6, "she": 0.2, "his": 0.1, "her": 0.1}})
    >>> told = pronouns(fake, ["fixes engines"], ["someone {phrase} [MASK] says"])
    >>> told.bias.round(2), told.log_odds.round(3)
    (array([[0.75]]), array([[1.099]]))
    """
    texts = [carrier.replace("{phrase}", phrase) for phrase in phrases for carrier in carriers]
    told = probabilities(model, texts, words="pronouns", cache=cache, progress=progress)
    shape = (len(phrases), len(carriers))
    return PhrasePronouns(
        model=model.name,
        phrases=tuple(phrases),
        carriers=tuple(carriers),
        log_odds=(np.log(told.p_male) - np.log(told.p_female)).reshape(shape),
        bias=np.asarray(bias(told.p_male, told.p_female)).reshape(shape),
    )
