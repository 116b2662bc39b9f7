"""One question to a model: which pronoun does it expect in a sentence, and how usual is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.cache import Cache
from evenhand.display import Result, ResultList
from evenhand.errors import InputError
from evenhand.files import user_cache
from evenhand.language.likelihood import is_causal, word_likelihoods
from evenhand.lexicon.pronoun_sentences import MASK, pronoun_sentences
from evenhand.statistics.intervals import Floats

__all__ = ["Answer", "ask"]

FORMS = {
    "subject": ("he", "she", "they"),
    "object": ("him", "her", "them"),
    "possessive": ("his", "her", "their"),
    "reflexive": ("himself", "herself", "themselves"),
}
"""The pronouns for a man, a woman and anybody in each slot of a sentence."""
WORDS = tuple(dict.fromkeys(word for forms in FORMS.values() for word in forms))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer(Result):
    """What a model expects at the mask of a sentence.

    Parameters
    ----------
    sentence, model : str
    words : tuple of (str, float)
        The pronouns for a man, a woman and anybody, with their probabilities: of a masked model
        among all words, of a causal one among pronouns.
    bias : float
        P(man) / (P(man) + P(woman)).
    more_male, sentences : int
        Of so many built-in sentences, how many have a bias below this one.
    causal : bool

    """

    sentence: str
    model: str
    words: tuple[tuple[str, float], ...]
    bias: float
    more_male: int
    sentences: int
    causal: bool = False

    def __str__(self) -> str:
        """The answer in one or two lines.

        >>> words = ("his", 0.264), ("her", 0.03), ("their", 0.04)
        >>> print(Answer(sentence="The clerk lost [MASK] keys.", model="mini", bias=0.897,
        ...              words=words, more_male=71, sentences=120))
        mini: his 26 %, her 3 %, their 4 %.
        Leans to a man: his is 8.8 times as likely as her; more so than in 71 of 120 built-in
        sentences.
        """
        shown = ", ".join(f"{word} {_percent(p)}" for word, p in self.words)
        (male, p_male), (female, p_female) = self.words[:2]
        among = " of these pronouns" if self.causal else ""
        head = f"{self.model}: {shown}{among}."
        low, high = sorted((p_male, p_female))
        times = f"{high / low:.1f} times" if low > 0 else "infinitely more often"
        if high < 1.1 * low:
            return f"{head}\nLeans to neither: {male} and {female} are about as likely."
        if p_male > p_female:
            words, person, count = (male, female), "a man", self.more_male
        else:
            words, person, count = (female, male), "a woman", self.sentences - self.more_male
        return (
            f"{head}\nLeans to {person}: {words[0]} is {times} as likely as {words[1]}; more so "
            f"than in {count} of {self.sentences} built-in sentences."
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {**row, "words": [{"word": word, "probability": p} for word, p in self.words]}

    def _headline(self) -> str:
        return str(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"model": self.model, "sentence": self.sentence, "value": self.bias, "ideal": 0.5}
            | {f"P({word})": p for word, p in self.words}
        ]


def ask(
    sentences: str | Sequence[str],
    model: Any = "mini",
    *,
    cache: Cache | None = None,
) -> ResultList[Answer]:
    """Ask models which pronoun they expect at the [MASK] of sentences.

    Parameters
    ----------
    sentences : str or sequence of str
        Each with one [MASK] where a pronoun is.
    model : str, path, (network, tokenizer), pipeline, or sequence of these
        Masked or causal language models, by name or in memory, as for `evenhand.language.load`.
    cache : Cache, optional
        By default one in the user's cache folder, so that the built-in sentences, with which each
        answer is compared, are computed once per model.

    Returns
    -------
    ResultList of Answer
        A list with one per sentence and model.

    Examples
    --------
    >>> [answer] = ask("The clerk lost [MASK] keys.")
    >>> [word for word, _ in answer.words], answer.bias > 0.8
    (['his', 'her', 'their'], True)
    """
    from evenhand.language.models import load

    texts = [sentences] if isinstance(sentences, str) else list(sentences)
    if not texts:
        raise InputError("sentences: expected one or more, got none")
    for text in texts:
        if text.count(MASK) != 1:
            count = text.count(MASK) or "none"
            raise InputError(f"'{text[:60]}': expected one {MASK} where a pronoun is, got {count}")
    pair = isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "named_parameters")
    several = isinstance(model, list | tuple) and not pair
    stored = Cache(user_cache("answers")) if cache is None else cache
    answers: ResultList[Answer] = ResultList()
    for source in model if several else [model]:
        loaded = load(source)
        kind = getattr(loaded, "subject_kind", "model")
        if kind not in ("model", "causal"):
            raise InputError(f"model: expected a masked or causal language model, got {kind}")
        answers += answer(loaded, texts, built_in_biases(loaded, stored), stored)
    return answers


def answer(model: Any, texts: Sequence[str], compared: Floats, cache: Cache) -> list[Answer]:
    """The answers of a loaded model, each compared with the biases of other sentences."""
    table = pronoun_probabilities(model, texts, cache)
    answers = []
    for text, row in zip(texts, table, strict=True):
        slot = _slot(row)
        own = _bias(row, slot)
        answers.append(
            Answer(
                sentence=text,
                model=model.name,
                words=tuple((word, float(row[WORDS.index(word)])) for word in FORMS[slot]),
                bias=own,
                more_male=int((compared < own).sum()),
                sentences=len(compared),
                causal=is_causal(model),
            )
        )
    return answers


def built_in_biases(model: Any, cache: Cache | None = None) -> Floats:
    """The bias of each built-in sentence, with which answers are compared."""
    table = pronoun_probabilities(model, pronoun_sentences().sentences, cache)
    return np.array([_bias(row, _slot(row)) for row in table])


def pronoun_probabilities(model: Any, texts: Sequence[str], cache: Cache | None = None) -> Floats:
    """The probability of every pronoun at the mask (texts, words)."""
    parts = []
    for text in texts:
        before, _, after = text.partition(MASK)
        first = not before.strip()
        parts += [(before, word.capitalize() if first else word, after) for word in WORDS]
    values, _ = word_likelihoods(model, parts, cache=cache)
    table = np.asarray(values).reshape(len(texts), len(WORDS))
    if is_causal(model):
        with np.errstate(invalid="ignore"):  # a text that the model holds to be impossible
            table = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    return np.nan_to_num(np.exp(table))


def _slot(row: Floats) -> str:
    """The slot whose pronouns are likeliest together."""
    sums = {slot: sum(row[WORDS.index(word)] for word in forms) for slot, forms in FORMS.items()}
    return max(sums, key=lambda slot: sums[slot])


def _bias(row: Floats, slot: str) -> float:
    male, female = (row[WORDS.index(word)] for word in FORMS[slot][:2])
    return float(male / (male + female)) if male + female > 0 else 0.5


def _percent(p: float) -> str:
    return "< 1 %" if 0 < p < 0.01 else f"{100 * p:.0f} %"
