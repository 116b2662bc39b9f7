"""The probabilities of the gender words at the masks of many texts, from one pass of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import content_key
from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.masked.metrics.pronouns_words import (
    SLOTS,
    Pieces,
    Words,
    check_pieces,
    gendered,
    pieces,
    unfit,
    usual_ids,
)
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Place, Progress, ask
from evenhand.masked.words import cloze, find_mask

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = ["Probabilities", "Refused", "asked", "place_of", "probabilities"]

STEP = 512
"""Texts that the model is asked about, and whose answers are kept, at once."""

_KEPT = 8  # numbers kept of a text: those of Probabilities
_SLOTS = tuple(SLOTS)
_WORDS = tuple(sorted(gendered()))
_CODE = {word: code for code, word in enumerate(_WORDS)}
_LIST = blake2b(" ".join(_WORDS).encode(), digest_size=8).hexdigest()  # what the codes mean

Ints = NDArray[np.int64]
Codes = NDArray[np.int16]
Flags = NDArray[np.bool_]
Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Probabilities:
    """What a model says at the mask of each text (arrays of n).

    `p_male` and `p_female` are the probabilities of the likeliest male and female word of the
    whole vocabulary; `male_in_top`, `female_in_top` tell whether that word is among the k
    likeliest of all. Words and slots are held as numbers; `male_word`, `slots` … show them.
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
        return np.array(_WORDS)[self.male]

    @property
    def female_word(self) -> Texts:
        """The likeliest female word."""
        return np.array(_WORDS)[self.female]

    def slots(self, pronouns: Sequence[str] = ()) -> Texts:
        """The pronoun's place in each sentence, by the pronoun that stood there, if given.

        Where it did not say (no pronoun, or `her`), by the male pronoun that is likeliest there
        (he, him, his, himself; for `her` him or his); "" where none of them is a single piece.
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
    def joined(parts: Sequence[Probabilities]) -> Probabilities:
        """Several of them, one after the other."""
        whole = parts or [_read(np.empty((0, _KEPT)))]
        names = [field.name for field in fields(Probabilities)]
        return Probabilities(*(np.concatenate([getattr(p, name) for p in whole]) for name in names))


_SLOT_OF = {form: slot for slot, forms in SLOTS.items() for form in forms if form != "her"}
_SLOT_OF |= {"hers": "possessive"}


class Refused(InputError):  # noqa: N818
    """A text that this model cannot score, though it has one mask; the others can go on."""


def probabilities(
    model: MaskedLM,
    texts: Sequence[str],
    *,
    words: Words = "all",
    top_k: int = 10,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Probabilities:
    """The likeliest male and female word at the mask of each text, with their probabilities.

    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.435, "she": 0.195, "it": 0.37}})
    >>> told = probabilities(model, ["[MASK] nods"])
    >>> float(told.p_male[0].round(3)), str(told.female_word[0])
    (0.435, 'she')
    """
    check_pieces(model, words)
    places = [place_of(model, text, words) for text in texts]
    return asked(model, texts, places, words=words, top_k=top_k, cache=cache, progress=progress)


def place_of(model: MaskedLM, text: str, words: Words = "all") -> Place:
    """The mask's place in the text; `Refused` where the model cannot be asked for it."""
    find_mask(model, text)
    try:
        place = cloze(model, text)
    except InputError as error:
        raise Refused(str(error)) from None
    if unfit(pieces(model, text, words)):
        shown = text if len(text) <= 60 else f"{text[:60]}…"
        raise Refused(
            f"'{shown}': not both he and she, or his and her, are single pieces of model "
            f"'{model.name}' at this mask"
        )
    return place


def asked(
    model: MaskedLM,
    texts: Sequence[str],
    places: Sequence[Place],
    *,
    words: Words,
    top_k: int,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Probabilities:
    """`probabilities` for places that were made before.

    What is kept on disk is a few numbers a text, stored as they come.
    """
    if top_k < 1:
        raise InputError(f"top_k: expected 1 or more, got {top_k}")
    k = min(top_k, len(model.tokenizer))
    contexts = [pieces(model, text, words) for text in texts]
    found = np.full((len(texts), _KEPT), np.nan)
    missing = list(range(len(texts)))
    keys: list[bytes] = []
    fingerprint = None if cache is None else getattr(model, "fingerprint", None)
    if cache is not None and fingerprint is not None:
        salt = f"{fingerprint} {_LIST}"
        keys = [
            content_key(
                salt, place.place, k, len(place.ids), *place.ids, *c.male, -1, *c.female, -1
            )
            for place, c in zip(places, contexts, strict=True)
        ]
        answers = cache.get(keys)
        missing = [i for i, answer in enumerate(answers) if answer is None]
        for i, answer in enumerate(answers):
            if answer is not None:
                found[i] = answer
    done = len(texts) - len(missing)
    for columns, chosen in _steps(missing, contexts, places, usual_ids(model, words)):
        told = ask(model, [places[i] for i in chosen], tokens=columns, k=k)
        place = {token: column for column, token in enumerate(columns)}
        for context, rows in _by_context([contexts[i] for i in chosen]):
            where = np.asarray(chosen)[rows]
            found[where] = _reduced(context, place, told.log_probs[rows], told.top.ids[rows])
        if keys and cache is not None:
            cache.store([keys[i] for i in chosen], found[chosen])
        done += len(chosen)
        if progress is not None:
            progress(done, len(texts))
    if not missing and progress is not None:
        progress(done, len(texts))
    return _read(found)


def _steps(
    missing: Sequence[int],
    contexts: Sequence[Pieces],
    places: Sequence[Place],
    usual: frozenset[int],
) -> Iterator[tuple[list[int], list[int]]]:
    """The columns to ask for and the texts to ask of, those of like length together."""
    groups: dict[frozenset[int], list[int]] = {}
    distinct = {id(context): context for context in contexts}
    columns = {known: usual | context.ids for known, context in distinct.items()}
    for index in sorted(missing, key=lambda i: (len(places[i].ids), places[i].ids)):
        groups.setdefault(columns[id(contexts[index])], []).append(index)
    for ids, chosen in groups.items():
        for start in range(0, len(chosen), STEP):
            yield sorted(ids), chosen[start : start + STEP]


def _by_context(found: Sequence[Pieces]) -> list[tuple[Pieces, Ints]]:
    """The distinct contexts and the texts of each."""
    groups: dict[int, tuple[Pieces, list[int]]] = {}
    for index, context in enumerate(found):
        groups.setdefault(id(context), (context, []))[1].append(index)
    return [(context, np.array(rows)) for context, rows in groups.values()]


def _reduced(context: Pieces, place: dict[int, int], log_probs: Floats, top: Ints) -> Floats:
    """What the score needs of the answers to the texts of one context (n, numbers)."""
    n = len(log_probs)
    result = np.empty((n, _KEPT))
    for side, column in ((context.male, 0), (context.female, 1)):
        tokens = np.array(list(side), dtype=np.int64)
        of_side = log_probs[:, [place[token] for token in side]]
        best = of_side.argmax(axis=1)
        result[:, column] = np.exp(of_side[np.arange(n), best])
        result[:, 2 + column] = np.array([_CODE[word] for word in side.values()])[best]
        result[:, 4 + column] = (top == tokens[best][:, None]).any(axis=1)
    of_slot = np.full((n, len(_SLOTS)), -np.inf)
    for j, (male, _) in enumerate(SLOTS.values()):
        columns = [place[token] for token, word in context.male.items() if word == male]
        if columns:
            of_slot[:, j] = log_probs[:, columns].max(axis=1)
    result[:, 6] = _likeliest(of_slot)
    of_slot[:, [_SLOTS.index("subject"), _SLOTS.index("reflexive")]] = -np.inf
    result[:, 7] = _likeliest(of_slot)
    return result


def _likeliest(of_slot: Floats) -> Ints:
    none = ~np.isfinite(of_slot).any(axis=1)
    return np.where(none, len(_SLOTS), of_slot.argmax(axis=1))


def _read(found: Floats) -> Probabilities:
    codes = found[:, 2:].astype(np.int16)
    return Probabilities(
        found[:, 0].copy(), found[:, 1].copy(), codes[:, 0], codes[:, 1],
        codes[:, 2].astype(bool), codes[:, 3].astype(bool), codes[:, 4], codes[:, 5],
    )  # fmt: skip
