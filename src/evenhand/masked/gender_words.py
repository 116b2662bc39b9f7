"""The gender words at the mask of a text: their tokens and their probabilities.

The probabilities of many texts come from one pass of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache as memoize
from hashlib import blake2b
from types import MappingProxyType
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.cache import Cache, content_key
from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon import pairs
from evenhand.lexicon.gendered import PERSONS
from evenhand.lexicon.pronouns import PRONOUNS, SLOTS
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import MaskedPosition, Progress, query_tokens
from evenhand.masked.words import cloze, find_mask, single_pieces
from evenhand.statistics.intervals import Floats

STEP = 512
"""Texts that the model is queried for, and whose answers are cached, at once."""

Words = Literal["all", "pronouns"]
"""Which words count: pronouns and gendered nouns, or only pronouns."""

USUAL = ("[MASK] a", "a [MASK] a", "a [MASK].")
"""Usual positions of a mask: at the beginning, in the middle, at the end."""


def bias(p_male: ArrayLike, p_female: ArrayLike) -> Floats:
    r"""$\text{bias}(s) = P(s|m) / (P(s|m) + P(s|f))$; Ye et al. (2021), equation 1.

    A gender without a word (NaN) counts 0, so that the score is 1 or 0; without any word there is
    no score (NaN).

    >>> bias([0.435, 0.142, 0.542, 0.2], [0.195, 0.113, 0.0305, float("nan")]).round(2).tolist()
    [0.69, 0.56, 0.95, 1.0]
    """
    male, female = np.nan_to_num(np.asarray(p_male, float)), np.nan_to_num(np.asarray(p_female))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(male / (male + female))


@memoize
def gendered() -> Mapping[str, str]:
    """The words that count as male or female at the mask, in lower case, each with its gender.

    The pronouns, and the nouns of one word in `lexicon.pairs` that state a person's gender, on
    the sides that do: an `actress` is female, an `actor` may be either.

    >>> gendered()["her"], gendered()["uncle"], "actor" in gendered()
    ('female', 'male', False)
    """
    return MappingProxyType(dict(PRONOUNS) | {word: gender for word, gender, _ in _nouns()})


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The tokens that are gender words in one context: token id -> word, for each gender."""

    male: Mapping[int, str]
    female: Mapping[int, str]

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self.male) | frozenset(self.female)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.male.values()) | frozenset(self.female.values())


def gender_pieces(model: MaskedLM, text: str, words: Words = "all") -> Pieces:
    """Find the tokens that are a complete gender word at the mask of the text.

    A noun that with a capital is as often a name (king, baron) counts in lower case only.
    Contexts with the same tokens share one object.
    """
    single = tuple(single_pieces(model, text, _listed(words)).items())
    known = _known.setdefault(model, {})
    if single not in known:
        male: dict[int, str] = {}
        female: dict[int, str] = {}
        for token, word in single:
            if word not in _names() or not _capital(model, token):
                (male if gendered()[word] == "male" else female)[token] = word
        known[single] = Pieces(male, female)
    return known[single]


_known: WeakKeyDictionary[MaskedLM, dict[tuple[tuple[int, str], ...], Pieces]] = WeakKeyDictionary()


def lacking(pieces: Pieces) -> list[str]:
    """The pronouns that are not a single piece although their counterpart is.

    >>> lacking(Pieces({5: "he", 6: "his"}, {7: "her"}))
    ['she', 'him']
    """
    words = pieces.words
    lacks = [
        (male, female)[side]
        for male, female in SLOTS.values()
        for side in (0, 1)
        if (male, female)[side] not in words and (male, female)[1 - side] in words
    ]
    return list(dict.fromkeys(lacks))


def unfit(pieces: Pieces) -> bool:
    """Whether no fair score is possible: of he/she, or of his, him/her, one side has no piece."""
    words = pieces.words
    subject = ("he" in words, "she" in words)
    other = ("his" in words or "him" in words, "her" in words)
    return not any(subject + other) or subject[0] != subject[1] or other[0] != other[1]


def check_pieces(model: MaskedLM, words: Words = "all") -> tuple[str, ...]:
    """Refuse a model without the pronouns as single pieces; return other pronouns it lacks."""
    if words not in ("all", "pronouns"):
        raise UnknownNameError("words", words, ["all", "pronouns"])
    usual = gender_pieces(model, USUAL[1], words)
    if unfit(usual):
        available = [word for word in PRONOUNS if word in usual.words]
        raise InputError(
            f"model '{model.name}': expected he and she, his or him and her as single pieces of "
            f"its vocabulary, got {', '.join(available) or 'none of them'}: a word of several "
            "pieces cannot be predicted at one mask"
        )
    return tuple(lacking(usual))


def usual_ids(model: MaskedLM, words: Words) -> frozenset[int]:
    """The tokens of the gender words at the usual positions of a mask."""
    return frozenset().union(*(gender_pieces(model, text, words).ids for text in USUAL))


@memoize
def _listed(words: Words) -> tuple[str, ...]:
    return tuple(gendered() if words == "all" else PRONOUNS)


@memoize
def _nouns() -> tuple[tuple[str, str, str], ...]:
    """The gendered nouns of one word: the word, its gender, and how it must be written."""
    nouns = []
    for pair in pairs():
        if pair.pos != "noun" or not pair.safe or pair.kind not in PERSONS:
            continue
        if pair.direction != "male-to-female":
            nouns.append((pair.female, "female", pair.case))
        if pair.direction != "female-to-male":
            nouns.append((pair.male, "male", pair.case))
    return tuple(entry for entry in nouns if entry[0].isalpha())


@memoize
def _names() -> frozenset[str]:
    return frozenset(word for word, _, case in _nouns() if case == "lower") - frozenset(PRONOUNS)


def _capital(model: MaskedLM, token: int) -> bool:
    shown: str | Iterable[str] = model.tokenizer.convert_ids_to_tokens(token)
    return any(letter.isupper() for letter in shown)


_WIDTH = 8  # numbers per text in the cache: the fields of Probabilities
_SLOTS = tuple(SLOTS)


@memoize
def _codes() -> Mapping[str, int]:
    """The code of each gender word."""
    return {word: code for code, word in enumerate(sorted(gendered()))}


@memoize
def _word_list() -> str:
    """A hash of the list of gender words."""
    return blake2b(" ".join(_codes()).encode(), digest_size=8).hexdigest()


Ints = NDArray[np.int64]
Codes = NDArray[np.int16]
Flags = NDArray[np.bool_]
Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """The probabilities of gender words at the mask of each text (arrays of n).

    `p_male` and `p_female` are the probabilities of the likeliest male and female word of the
    full vocabulary; `male_in_top`, `female_in_top` say whether that word is among the k likeliest
    of all words. Words and slots are stored as codes; `male_word`, `slots` … decode them.
    """

    p_male: Floats
    p_female: Floats
    male: Codes
    female: Codes
    male_in_top: Flags
    female_in_top: Flags
    slot: Codes
    her_slot: Codes

    def __len__(self) -> int:
        return len(self.p_male)

    @property
    def p_male_top(self) -> Floats:
        """The best male word's probability, nan where none is in the top k."""
        return np.where(self.male_in_top, self.p_male, np.nan)

    @property
    def p_female_top(self) -> Floats:
        """The best female word's probability, nan where none is in the top k."""
        return np.where(self.female_in_top, self.p_female, np.nan)

    @property
    def male_word(self) -> Texts:
        """The likeliest male word."""
        return np.array(list(_codes()))[self.male]

    @property
    def female_word(self) -> Texts:
        """The likeliest female word."""
        return np.array(list(_codes()))[self.female]

    def slots(self, pronouns: Sequence[str] = ()) -> Texts:
        """The role of the pronoun in each sentence, from the original pronoun if given.

        If that is not decisive (no pronoun, or `her`), from the likeliest male pronoun (he,
        him, his, himself; for `her` him or his); "" where none of them is a single piece.
        """
        names = np.array([*_SLOTS, ""])
        known = _SLOT_OF
        guessed, of_her = names[self.slot], names[self.her_slot]
        if not pronouns:
            return guessed
        return np.array(
            [
                of_her[i] if pronoun.lower() == "her" else known.get(pronoun.lower(), guessed[i])
                for i, pronoun in enumerate(pronouns)
            ],
            dtype=names.dtype,
        )

    @staticmethod
    def concatenate(parts: Sequence[Probabilities]) -> Probabilities:
        """The probabilities of several lists of texts as one."""
        listed = parts or [_read(np.empty((0, _WIDTH)))]
        names = [field.name for field in fields(Probabilities)]
        return Probabilities(
            *(np.concatenate([getattr(p, name) for p in listed]) for name in names)
        )


_SLOT_OF = {form: slot for slot, forms in SLOTS.items() for form in forms if form != "her"}
_SLOT_OF |= {"hers": "possessive"}


class UnscorableTextError(InputError):
    """A text with one mask that this model cannot score."""


def probabilities(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    words: Words = "all",
    top_k: int = 10,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Probabilities:
    """Find the likeliest male and female word at the mask of each text.

    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.435, "she": 0.195, "it": 0.37}})
    >>> p = probabilities(model, ["[MASK] nods"])
    >>> float(p.p_male[0].round(3)), str(p.female_word[0])
    (0.435, 'she')
    """
    check_pieces(model, words)
    queries = [mask_query(model, text, words) for text in texts]
    return query_masks(
        model, texts, queries, words=words, top_k=top_k, cache=cache, progress=progress
    )


def mask_query(model: MaskedLM, text: str, words: Words = "all") -> MaskedPosition:
    """The query at the mask of a text; `UnscorableTextError` if the model cannot score it."""
    find_mask(model, text)
    try:
        query = cloze(model, text)
    except InputError as error:
        raise UnscorableTextError(str(error)) from None
    if unfit(gender_pieces(model, text, words)):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise UnscorableTextError(
            f"'{shown}': not both he and she, or his and her, are single pieces of model "
            f"'{model.name}' at this mask"
        )
    return query


def query_masks(
    model: MaskedLM,
    texts: Sequence[str],
    queries: Sequence[MaskedPosition],
    *,
    words: Words,
    top_k: int,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Probabilities:
    """Compute `probabilities` for prepared queries; the cache stores a few numbers per text."""
    if top_k < 1:
        raise InputError(f"top_k: expected 1 or more, got {top_k}")
    k = min(top_k, len(model.tokenizer))
    contexts = [gender_pieces(model, text, words) for text in texts]
    numbers = np.full((len(texts), _WIDTH), np.nan)
    missing = list(range(len(texts)))
    keys: list[bytes] = []
    fingerprint = None if cache is None else getattr(model, "fingerprint", None)
    if cache is not None and fingerprint is not None:
        salt = f"{fingerprint} {_word_list()}"
        keys = [
            content_key(
                salt, query.position, k, len(query.ids), *query.ids, *c.male, -1, *c.female, -1
            )
            for query, c in zip(queries, contexts, strict=True)
        ]
        answers = cache.get(keys)
        missing = [i for i, answer in enumerate(answers) if answer is None]
        for i, answer in enumerate(answers):
            if answer is not None:
                numbers[i] = answer
    done = len(texts) - len(missing)
    for columns, chosen in _steps(missing, contexts, queries, usual_ids(model, words)):
        answer_batch = query_tokens(model, [queries[i] for i in chosen], tokens=columns, k=k)
        column_of = {token: column for column, token in enumerate(columns)}
        for context, rows in _by_context([contexts[i] for i in chosen]):
            where = np.asarray(chosen)[rows]
            numbers[where] = _reduced(
                context, column_of, answer_batch.log_probs[rows], answer_batch.top.ids[rows]
            )
        if keys and cache is not None:
            cache.store([keys[i] for i in chosen], numbers[chosen])
        done += len(chosen)
        if progress is not None:
            progress(done, len(texts))
    if not missing and progress is not None:
        progress(done, len(texts))
    return _read(numbers)


def _steps(
    missing: Sequence[int],
    contexts: Sequence[Pieces],
    queries: Sequence[MaskedPosition],
    usual: frozenset[int],
) -> Iterator[tuple[list[int], list[int]]]:
    """The tokens to query and the texts to query them for, texts of similar length together."""
    groups: dict[frozenset[int], list[int]] = {}
    distinct = {id(context): context for context in contexts}
    columns = {known: usual | context.ids for known, context in distinct.items()}
    for index in sorted(missing, key=lambda i: (len(queries[i].ids), queries[i].ids)):
        groups.setdefault(columns[id(contexts[index])], []).append(index)
    for ids, chosen in groups.items():
        for start in range(0, len(chosen), STEP):
            yield sorted(ids), chosen[start : start + STEP]


def _by_context(contexts: Sequence[Pieces]) -> list[tuple[Pieces, Ints]]:
    """The distinct contexts and the texts of each."""
    groups: dict[int, tuple[Pieces, list[int]]] = {}
    for index, context in enumerate(contexts):
        groups.setdefault(id(context), (context, []))[1].append(index)
    return [(context, np.array(rows)) for context, rows in groups.values()]


def _reduced(context: Pieces, column_of: dict[int, int], log_probs: Floats, top: Ints) -> Floats:
    """Reduce the log probabilities of the texts of one context to the cached numbers."""
    n = len(log_probs)
    result, codes = np.empty((n, _WIDTH)), _codes()
    for side, column in ((context.male, 0), (context.female, 1)):
        tokens = np.array(list(side), dtype=np.int64)
        of_side = log_probs[:, [column_of[token] for token in side]]
        best = of_side.argmax(axis=1)
        result[:, column] = np.exp(of_side[np.arange(n), best])
        result[:, 2 + column] = np.array([codes[word] for word in side.values()])[best]
        result[:, 4 + column] = (top == tokens[best][:, None]).any(axis=1)
    of_slot = np.full((n, len(_SLOTS)), -np.inf)
    for j, (male, _) in enumerate(SLOTS.values()):
        columns = [column_of[token] for token, word in context.male.items() if word == male]
        if columns:
            of_slot[:, j] = log_probs[:, columns].max(axis=1)
    result[:, 6] = _likeliest(of_slot)
    of_slot[:, [_SLOTS.index("subject"), _SLOTS.index("reflexive")]] = -np.inf
    result[:, 7] = _likeliest(of_slot)
    return result


def _likeliest(of_slot: Floats) -> Ints:
    none = ~np.isfinite(of_slot).any(axis=1)
    return np.where(none, len(_SLOTS), of_slot.argmax(axis=1))


def _read(numbers: Floats) -> Probabilities:
    codes = numbers[:, 2:].astype(np.int16)
    return Probabilities(
        numbers[:, 0].copy(),
        numbers[:, 1].copy(),
        codes[:, 0],
        codes[:, 1],
        codes[:, 2].astype(bool),
        codes[:, 3].astype(bool),
        codes[:, 4],
        codes[:, 5],
    )
