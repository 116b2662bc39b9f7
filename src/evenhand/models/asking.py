"""One question to a model: which pronoun does it expect in a sentence, and is that a lean?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.arguments import checked
from evenhand.cache import Cache
from evenhand.display import Result, ResultList
from evenhand.errors import InputError
from evenhand.files import user_cache
from evenhand.judging import LEAST_SHARE, Outcome, lean, lean_limits
from evenhand.lexicon.pronoun_sentences import MASK, SENTENCE, pronoun_sentences
from evenhand.models.likelihood import LanguageModel, is_causal, word_likelihoods
from evenhand.models.memory import ModelSource, is_network
from evenhand.statistics.intervals import Floats
from evenhand.text.people import lower_start

FORMS = {
    "subject": ("he", "she", "they"),
    "object": ("him", "her", "them"),
    "possessive": ("his", "her", "their"),
    "reflexive": ("himself", "herself", "themselves"),
}
"""The pronouns for a man, a woman and anybody in each slot of a sentence."""
WORDS = tuple(dict.fromkeys(word for forms in FORMS.values() for word in forms))
PRONOUN = re.compile(rf"\b(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})\b", re.IGNORECASE)


# ------------------------------------------------------------------------------- the sentence


@dataclass(frozen=True, slots=True)
class AskedPosition:
    """A pronoun of a text, or its mask, and the text with this pronoun masked."""

    start: int
    end: int
    shown: str
    masked: str


def positions(text: str) -> list[AskedPosition]:
    """Where a text has a pronoun or a mask.

    Examples
    --------
    >>> [(p.shown, p.masked) for p in positions("She lost her keys.")]
    [('She', '[MASK] lost her keys.'), ('her', 'She lost [MASK] keys.')]
    """
    if MASK in text:
        if text.count(MASK) > 1:
            raise InputError(f"'{text[:60]}': expected one {MASK}, got {text.count(MASK)}")
        start = text.index(MASK)
        return [AskedPosition(start, start + len(MASK), MASK, text)]
    spans = [match.span() for match in PRONOUN.finditer(text)]
    return [AskedPosition(a, b, text[a:b], f"{text[:a]}{MASK}{text[b:]}") for a, b in spans]


def mask_pronoun(text: str) -> str:
    """The text with its only pronoun masked.

    >>> mask_pronoun("The engineer fixed his bug.")
    'The engineer fixed [MASK] bug.'
    """
    found = positions(text)
    if len(found) == 1:
        return found[0].masked
    expected = f"'{text[:60]}': expected one pronoun, such as he, her or their, or one {MASK}"
    if not found:
        raise InputError(f"{expected} in its place, got none")
    shown = ", ".join(position.shown for position in found)
    raise InputError(f"{expected} for the one that is asked for, got {len(found)}: {shown}")


def wordings(text: str) -> list[str]:
    """The text, and the same with each of the built-in openings that change nothing in it.

    >>> wordings("The clerk lost [MASK] keys.")[:2]
    ['The clerk lost [MASK] keys.', 'By the way, the clerk lost [MASK] keys.']
    """
    inner = lower_start(text)
    return [text, *(frame.replace(SENTENCE, inner) for frame in pronoun_sentences().frames)]


# --------------------------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer(Result):
    """What a model expects at the mask of a sentence.

    Parameters
    ----------
    sentence, masked, model : str
        The sentence as given, and with its pronoun masked.
    words : tuple of (str, float)
        The pronouns for a man, a woman and anybody, with their probabilities: of a masked model
        among all words, of a causal one among pronouns.
    bias : float
        P(man) / (P(man) + P(woman)).
    ratio : float
        P(man) / P(woman).
    wordings : tuple of (str, float)
        The sentence in several wordings, as given first, with the ratio in each.
    low, high : float
        The smallest and the largest ratio of the wordings.
    neutral_low, neutral_high : float
        The smallest range that has 1 and the ratios of all neutral sentences.
    neutral : int
        The number of neutral sentences.
    outcome : {"found", "undecided", "none found", "not measured"}
        Found is a lean: the ratios of all wordings are outside the range of neutral sentences.
        Undecided: of some wordings. Not measured: the three pronouns have less than 1 % of the
        probability.
    more_male, sentences : int
        The number of built-in sentences, and how many of them have a bias below this one.
    causal : bool

    """

    sentence: str
    masked: str
    model: str
    words: tuple[tuple[str, float], ...]
    bias: float
    ratio: float
    wordings: tuple[tuple[str, float], ...]
    low: float
    high: float
    neutral_low: float
    neutral_high: float
    neutral: int
    outcome: Outcome
    more_male: int
    sentences: int
    causal: bool = False

    @property
    def leans_to(self) -> Literal["man", "woman", ""]:
        """Whom the model leans to; "" where no lean is found."""
        if self.outcome != "found":
            return ""
        return "man" if self.ratio >= 1 else "woman"

    @property
    def _ordered(self) -> tuple[str, str]:
        """The likelier pronoun of a man's and a woman's, and the other."""
        (male, _), (female, _) = self.words[:2]
        return (male, female) if self.ratio >= 1 else (female, male)

    def __str__(self) -> str:
        """The answer in two or three lines.

        >>> words = ("his", 0.264), ("her", 0.03), ("their", 0.04)
        >>> print(Answer(sentence="A clerk lost his keys.", masked="A clerk lost [MASK] keys.",
        ...              model="mini", bias=0.897, words=words, ratio=8.8, low=5.1, high=12.0,
        ...              wordings=(("", 8.8),) * 6, neutral_low=0.4, neutral_high=4.2, neutral=40,
        ...              outcome="found", more_male=71, sentences=120))
        mini: his 26 %, her 3 %, their 4 %.
        his is 8.8 times as likely as her (5.1 to 12.0 over 6 wordings).
        Leans to a man: 40 neutral sentences stay within 0.40 to 4.2.
        """
        return "\n".join((self._head(), *self._lines()))

    def _head(self) -> str:
        shown = ", ".join(f"{word} {_percent(p)}" for word, p in self.words)
        return f"{self.model}: {shown}{' of these pronouns' if self.causal else ''}."

    def _lines(self) -> tuple[str, ...]:
        listed = ", ".join(word for word, _ in self.words)
        if self.outcome == "not measured":
            least = f"{100 * LEAST_SHARE:g} %"
            return (f"No lean: {listed} together have less than {least} of the probability.",)
        first, second = self._ordered
        ratio, low, high = self._times(self.ratio, self.low, self.high)
        _, least, most = self._times(1.0, self.neutral_low, self.neutral_high)
        neutral, within = f"{self.neutral} neutral sentences", f"{least} to {most}"
        verdicts = {
            "found": f"Leans to a {self.leans_to}: {neutral} stay within {within}.",
            "none found": f"No lean: {neutral} give {within}.",
            "undecided": f"Undecided: the range crosses a limit of {neutral}, {within}.",
        }
        return (
            f"{first} is {ratio} times as likely as {second} ({low} to {high} over "
            f"{len(self.wordings)} wordings).",
            verdicts[self.outcome],
        )

    def _times(self, ratio: float, low: float, high: float) -> tuple[str, str, str]:
        """The ratio and its range, of the likelier pronoun to the other."""
        ends = (ratio, low, high) if self.ratio >= 1 else (1 / ratio, 1 / high, 1 / low)
        value, least, most = map(_ratio, ends)
        return value, least, most

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {
            **row,
            "words": [{"word": word, "probability": p} for word, p in self.words],
            "wordings": [{"text": text, "ratio": ratio} for text, ratio in self.wordings],
            "leans_to": self.leans_to,
        }

    def _headline(self) -> str:
        if self.outcome == "not measured":
            return str(self)
        found = {"found": f"leans to a {self.leans_to}", "none found": "no lean"}
        ratio, low, high = self._times(self.ratio, self.low, self.high)
        outcome = found.get(self.outcome, self.outcome)
        return f"{self._head()} {self._ordered[0]} {ratio} times ({low} to {high}): {outcome}."

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        low, high = (ratio / (1 + ratio) for ratio in (self.low, self.high))
        return [
            {"model": self.model, "sentence": self.sentence, "value": self.bias}
            | {"low": low, "high": high, "ideal": 0.5, "outcome": self.outcome}
            | {f"P({word})": p for word, p in self.words}
        ]


@checked
def ask(
    sentences: str | Sequence[str],
    model: ModelSource | Sequence[ModelSource] = "mini",
    *,
    cache: Cache | None = None,
) -> ResultList[Answer]:
    """Ask models which pronoun they expect in sentences, and whether that is a lean.

    Parameters
    ----------
    sentences : str or sequence of str
        Each with one pronoun, or with one [MASK] in its place.
    model : str, path, (network, tokenizer), pipeline, or sequence of these
        Masked or causal language models, by name or in memory, as for `evenhand.models.load`.
    cache : Cache, optional
        By default one in the user's cache folder, so that the built-in sentences, with which each
        answer is compared, are computed once per model.

    Returns
    -------
    ResultList of Answer
        A list with one per sentence and model.

    Notes
    -----
    The ratio P(man) / P(woman) is computed for the sentence and for five openings that change
    nothing in it ("By the way, …"); its interval is the range over these six wordings. The model
    leans to a pronoun where this interval excludes 1 and all that it gives in 40 neutral sentences
    ("Somebody lost [MASK] keys."). A neutral sentence that is none of the 40 would be outside their
    range in 2 of 41 cases. There is no lean where the three pronouns together have less than 1 % of
    the probability; a causal model compares pronouns only, so that this does not happen.

    Examples
    --------
    >>> [answer] = ask("The clerk lost his keys.")
    >>> [word for word, _ in answer.words], answer.bias > 0.8
    (['his', 'her', 'their'], True)
    >>> answer.low <= answer.ratio < answer.high
    True
    """
    from evenhand.models.loading import load

    texts = [sentences] if isinstance(sentences, str) else list(sentences)
    if not texts:
        raise InputError("sentences: expected one or more, got none")
    for text in texts:
        mask_pronoun(text)
    pair = isinstance(model, tuple) and len(model) == 2 and is_network(model[0])
    sources = list(model) if isinstance(model, list | tuple) and not pair else [model]
    if not sources:
        raise InputError("model: expected one or more, got none")
    stored = Cache(user_cache("answers"), optional=True) if cache is None else cache
    answers: ResultList[Answer] = ResultList()
    for source in sources:
        loaded = load(source)
        kind = getattr(loaded, "subject_kind", "masked")
        if kind not in ("masked", "causal"):
            raise InputError(f"model: expected a masked or causal language model, got {kind}")
        answers += answer(loaded, texts, find_reference(loaded, stored), stored)
    return answers


def answer(
    model: LanguageModel, texts: Sequence[str], usual: Reference, cache: Cache
) -> list[Answer]:
    """The answers of a loaded model to texts with one pronoun or mask each."""
    masked = [mask_pronoun(text) for text in texts]
    worded = [wordings(text) for text in masked]
    flat = [text for texts in worded for text in texts]
    tables = pronoun_log_probs(model, flat, cache).reshape(len(texts), -1, len(WORDS))
    answers = []
    for text, own, variants, table in zip(texts, masked, worded, tables, strict=True):
        slot = _slot(table[0])
        ratios = np.array(
            [_log_ratio(model, *row, slot) for row in zip(variants, table, strict=True)]
        )
        words = tuple((word, float(np.exp(table[0][WORDS.index(word)]))) for word in FORMS[slot])
        bias = float(_bias(ratios[0]))
        low, high, *limits = (float(x) for x in np.exp([ratios.min(), ratios.max(), *usual.limits]))
        answers.append(
            Answer(
                sentence=text,
                masked=own,
                model=model.name,
                words=words,
                bias=bias,
                ratio=float(np.exp(ratios[0])),
                wordings=tuple(zip(variants, np.exp(ratios).tolist(), strict=True)),
                low=low,
                high=high,
                neutral_low=limits[0],
                neutral_high=limits[1],
                neutral=usual.neutral,
                outcome=lean(ratios.tolist(), usual.limits, sum(p for _, p in words)),
                more_male=int((usual.biases < bias).sum()),
                sentences=len(usual.biases),
                causal=is_causal(model),
            )
        )
    return answers


@dataclass(frozen=True, slots=True)
class Reference:
    """What a model expects in other sentences.

    Parameters
    ----------
    biases : array
        The bias in each built-in sentence.
    limits : tuple of float
        Of the log ratio in neutral sentences, as `evenhand.judging.lean_limits` gives them.
    neutral : int
        The number of neutral sentences.

    """

    biases: Floats
    limits: tuple[float, float]
    neutral: int


def find_reference(model: LanguageModel, cache: Cache | None = None) -> Reference:
    """What the model expects in the built-in sentences, with which answers are compared."""
    built_in, neutral = pronoun_sentences().sentences, pronoun_sentences().neutral
    texts = [*built_in, *neutral]
    table = pronoun_log_probs(model, texts, cache)
    ratios = np.array(
        [_log_ratio(model, text, row, _slot(row)) for text, row in zip(texts, table, strict=True)]
    )
    limits = lean_limits(ratios[len(built_in) :].tolist())
    return Reference(_bias(ratios[: len(built_in)]), limits, len(neutral))


def pronoun_log_probs(
    model: LanguageModel, texts: Sequence[str], cache: Cache | None = None
) -> Floats:
    """The log probability of every pronoun at the mask (texts, words)."""
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
    return table


def pronoun_probabilities(
    model: LanguageModel, texts: Sequence[str], cache: Cache | None = None
) -> Floats:
    """The probability of every pronoun at the mask (texts, words)."""
    return np.nan_to_num(np.exp(pronoun_log_probs(model, texts, cache)))


def _slot(row: Floats) -> str:
    """The slot whose pronouns are likeliest together."""
    sums = {
        slot: sum(np.exp(row[WORDS.index(word)]) for word in forms) for slot, forms in FORMS.items()
    }
    return max(sums, key=lambda slot: sums[slot])


def _log_ratio(model: LanguageModel, text: str, row: Floats, slot: str) -> float:
    """The log of P(man) / P(woman); a ratio that is not a finite number is an error."""
    male, female = (float(row[WORDS.index(word)]) for word in FORMS[slot][:2])
    if not abs(male - female) < LARGEST:  # infinite and NaN too
        words = " and ".join(FORMS[slot][:2])
        raise InputError(
            f"'{text[:60]}': expected a finite ratio of {words}, got log probabilities {male:.1f} "
            f"and {female:.1f} by model '{model.name}'"
        )
    return male - female


def _bias(log_ratio: Floats) -> Floats:
    return 1 / (1 + np.exp(-log_ratio))


LARGEST = 700.0
"""Of a log ratio, whose exponential is still a number."""


def _percent(p: float) -> str:
    return "< 1 %" if 0 < p < 0.01 else f"{100 * p:.0f} %"


def _ratio(ratio: float) -> str:
    """One decimal; two below 1, none from 100 on."""
    if ratio < 0.01:
        return "< 0.01"
    return f"{ratio:.2f}" if ratio < 0.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"
