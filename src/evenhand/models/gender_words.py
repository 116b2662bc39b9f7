"""The gender words at the mask of a text: their tokens and their probabilities.

The probabilities of many texts come from one pass of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache as memoize
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.cache import Cache, Progress
from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon import pairs
from evenhand.lexicon.gendered import PERSONS
from evenhand.lexicon.pronouns import PRONOUNS, SLOTS
from evenhand.models.forward import to_device
from evenhand.models.masked import MaskedLM, MaskedModel
from evenhand.models.masked_scoring import (
    MaskedPosition,
    MaskedPositions,
    Read,
    compute,
    on_gpu,
    query_contents,
    read_cached,
)
from evenhand.models.words import MaskedTexts, clozes, pieces_beside
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    import torch

STEP, GPU_STEP = 512, 1 << 13
"""Texts that the model is queried for, and whose answers are cached, at once."""

Words = Literal["all", "pronouns"]
"""The words that count: pronouns and gendered nouns, or only pronouns."""

USUAL = "a [MASK] a"
"""A usual position of a mask."""


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
    def hash(self) -> int:
        """64 bits that identify the tokens and words."""
        content = repr((*self.male.items(), None, *self.female.items())).encode()
        return int.from_bytes(blake2b(content, digest_size=8).digest(), signed=True)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.male.values()) | frozenset(self.female.values())


def gender_pieces(model: MaskedLM, text: str, words: Words = "all") -> Pieces:
    """Find the tokens that are a complete gender word at the mask of the text.

    A noun that with a capital is as often a name (king, baron) counts in lower case only.
    Contexts with the same tokens share one object.
    """
    [context] = MaskedTexts.of(model, [text]).contexts
    return _pieces_beside(model, context, words)


def _pieces_beside(model: MaskedLM, context: tuple[str, str], words: Words) -> Pieces:
    """The tokens that are a complete gender word between texts from `beside`."""
    single = tuple(pieces_beside(model, *context, _listed(words)).items())
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
    usual = gender_pieces(model, USUAL, words)
    if unfit(usual):
        available = [word for word in PRONOUNS if word in usual.words]
        raise InputError(
            f"model '{model.name}': expected he and she, his or him and her as single pieces of "
            f"its vocabulary, got {', '.join(available) or 'none of them'}: a word of several "
            "pieces cannot be predicted at one mask"
        )
    return tuple(lacking(usual))


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
Texts = NDArray[np.object_]


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
        return np.array(list(_codes()), dtype=object)[self.male]

    @property
    def female_word(self) -> Texts:
        """The likeliest female word."""
        return np.array(list(_codes()), dtype=object)[self.female]

    def slots(self, pronouns: Sequence[str] = ()) -> Texts:
        """The role of the pronoun in each sentence, from the original pronoun if given.

        If that is not decisive (no pronoun, or `her`), from the likeliest male pronoun (he,
        him, his, himself; for `her` him or his); "" where none of them is a single piece.
        """
        codes = self.slot
        if any(pronouns):
            known = {pronoun: _SLOT_CODE.get(pronoun.lower(), -1) for pronoun in set(pronouns)}
            stated = np.array([known[pronoun] for pronoun in pronouns])
            codes = np.where(stated >= 0, stated, np.where(stated == -2, self.her_slot, codes))
        return np.array([*_SLOTS, ""], dtype=object)[codes]

    @staticmethod
    def concatenate(parts: Sequence[Probabilities]) -> Probabilities:
        """The probabilities of several lists of texts as one."""
        listed = parts or [_read(np.empty((0, _WIDTH)))]
        names = [field.name for field in fields(Probabilities)]
        return Probabilities(
            *(np.concatenate([getattr(p, name) for p in listed]) for name in names)
        )


# -2: the role of `her` is not decided by the word
_SLOT_CODE = {form: _SLOTS.index(slot) for slot, forms in SLOTS.items() for form in forms}
_SLOT_CODE |= {"hers": _SLOTS.index("possessive"), "her": -2}


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
    queries = mask_queries(model, texts, words)
    for problem in queries.problems.values():
        raise problem
    return start_queries(model, queries.positions, queries.contexts, top_k=top_k, cache=cache)(
        progress
    )


def mask_query(model: MaskedLM, text: str) -> MaskedPosition:
    """The query at the mask of a text; `UnscorableTextError` if the model cannot score it."""
    queries = mask_queries(model, [text])
    for problem in queries.problems.values():
        raise problem
    return queries.positions[0]


@dataclass(frozen=True, slots=True, eq=False)
class Contexts:
    """The gender words at the masks of texts: the distinct ones, and their number for each text."""

    pieces: list[Pieces]
    of_text: Ints

    @staticmethod
    def of(model: MaskedLM, masked: MaskedTexts, chosen: Ints, words: Words) -> Contexts:
        """The contexts of the chosen texts."""
        used, of_text = np.unique(masked.context_of[chosen], return_inverse=True)
        numbers: dict[Pieces, int] = {}
        number_of = [
            numbers.setdefault(_pieces_beside(model, masked.contexts[context], words), len(numbers))
            for context in used.tolist()
        ]
        return Contexts(list(numbers), np.array(number_of, dtype=np.int64)[of_text])


@dataclass(frozen=True, slots=True, eq=False)
class MaskQueries:
    """The queries at the masks of those texts that the model can score.

    `chosen` are the numbers of these texts and `contexts` the gender words at their masks;
    `problems` says why the others cannot be scored.
    """

    chosen: list[int]
    positions: MaskedPositions
    contexts: Contexts
    problems: dict[int, UnscorableTextError]


def mask_queries(model: MaskedLM, texts: Sequence[str], words: Words = "all") -> MaskQueries:
    """The queries at the masks of texts; a text without exactly one mask is an error."""
    masked = MaskedTexts.of(model, texts)
    positions, without = clozes(model, masked)
    problems = {i: UnscorableTextError(str(error)) for i, error in without.items()}
    chosen = np.array([i for i in range(len(texts)) if i not in problems], dtype=np.int64)
    contexts = Contexts.of(model, masked, chosen, words)
    refused = [number for number, pieces in enumerate(contexts.pieces) if unfit(pieces)]
    if refused:
        fit = ~np.isin(contexts.of_text, refused)
        for i in chosen[~fit].tolist():
            text = texts[i]
            shown = text if len(text) <= 60 else f"{text[:60]}…"
            problems[i] = UnscorableTextError(
                f"'{shown}': not both he and she, or his and her, are single pieces of model "
                f"'{model.name}' at this mask"
            )
        positions, chosen = positions.take(np.flatnonzero(fit)), chosen[fit]
        contexts = Contexts.of(model, masked, chosen, words)
    return MaskQueries(chosen.tolist(), positions, contexts, dict(sorted(problems.items())))


def query_masks(
    model: MaskedLM,
    texts: Sequence[str],
    queries: Sequence[MaskedPosition],
    *,
    top_k: int,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Probabilities:
    """Compute `probabilities` for prepared queries; the cache stores a few numbers per text."""
    contexts = Contexts.of(model, MaskedTexts.of(model, texts), np.arange(len(texts)), "all")
    positions = MaskedPositions.of(queries)
    return start_queries(model, positions, contexts, top_k=top_k, cache=cache)(progress)


def start_queries(
    model: MaskedLM,
    positions: MaskedPositions,
    contexts: Contexts,
    *,
    top_k: int,
    cache: Cache | None = None,
) -> Callable[[Progress | None], Probabilities]:
    """Start to compute `probabilities`; the function that is returned waits for them.

    A GPU computes in the meantime. On a CPU everything is computed when the result is asked for.
    """
    if top_k < 1:
        raise InputError(f"top_k: expected 1 or more, got {top_k}")
    k = min(top_k, len(model.tokenizer))
    positions.check()
    numbers = np.empty((len(positions), _WIDTH))
    context_of = contexts.of_text
    hashes = np.array([context.hash for context in contexts.pieces], dtype=np.int64)
    contents = query_contents(positions, hashes.view(np.int32).reshape(-1, 2)[context_of])
    keys, missing = read_cached(model, cache, f"{_word_list()} {k}", contents, numbers)
    tables = _Tables(contexts.pieces)

    def read(logits: torch.Tensor, rows: torch.Tensor, queries: Ints) -> torch.Tensor:
        return tables.best_words(logits, rows, context_of[queries], k)

    steps = _computed(model, positions, _by_row(positions, missing), read)
    started: Iterable[Step] = list(steps) if on_gpu(model) else steps

    def finish(progress: Progress | None) -> Probabilities:
        done = len(positions) - len(missing)
        for batches in started:
            chosen = np.concatenate([indices for indices, _ in batches])
            numbers[chosen] = np.concatenate([get() for _, get in batches])
            if keys and cache is not None:
                cache.store([keys[i] for i in chosen], numbers[chosen])
            done += len(chosen)
            if progress is not None:
                progress(done, len(positions))
        if not len(missing) and progress is not None:
            progress(done, len(positions))
        return _read(numbers)

    return finish


Step = list[tuple[Ints, Callable[[], Floats]]]


def _by_row(positions: MaskedPositions, missing: Ints) -> Ints:
    """The missing queries, those of similar rows together: by length, then by the row's bytes."""
    lengths = positions.lengths[missing]
    order = missing[np.argsort(lengths, kind="stable")]
    ordered = positions.take(order)
    for group in np.split(np.arange(len(order)), np.flatnonzero(np.diff(ordered.lengths)) + 1):
        if len(group) > 1:
            length = int(ordered.lengths[group[0]])
            rows = ordered.ids[ordered.ends[group[0]] : ordered.ends[group[-1] + 1]]
            keys = rows.view(f"S{rows.itemsize * length}")
            order[group] = order[group][np.argsort(keys, kind="stable")]
    return order


def _computed(
    model: MaskedLM, positions: MaskedPositions, order: Ints, read: Read
) -> Iterator[Step]:
    """Compute the queries in this order, some at once."""
    stages = model.stages() if isinstance(model, MaskedModel) and len(order) else None
    step = GPU_STEP if on_gpu(model) else STEP
    for start in range(0, len(order), step):
        yield list(compute(model, positions, order[start : start + step], read, stages=stages))


class _Tables:
    """The tokens of the gender words in each context, and the codes of the words.

    A context with fewer tokens than another repeats its first one; a slot without a token has
    those of -1. The tables are on the device of the logits.
    """

    def __init__(self, contexts: Sequence[Pieces]) -> None:
        codes = _codes()
        sides = [[context.male for context in contexts], [context.female for context in contexts]]
        slots = _filled(
            [
                [token for token, word in context.male.items() if word == male] or [-1]
                for context in contexts
                for male, _ in SLOTS.values()
            ]
        )
        self._arrays = [
            *(_filled([list(side) for side in listed]) for listed in sides),
            *(
                _filled([[codes[word] for word in side.values()] for side in listed])
                for listed in sides
            ),
            slots.reshape(len(contexts), len(_SLOTS), slots.shape[1]),
        ]
        self._tensors: list[torch.Tensor] = []

    def best_words(
        self, logits: torch.Tensor, rows: torch.Tensor, contexts: Ints, k: int
    ) -> torch.Tensor:
        """Reduce logits (positions, vocabulary) to the fields of `Probabilities`."""
        import torch

        if not self._tensors:
            self._tensors = [to_device(a, logits.device, torch.long) for a in self._arrays]
        context = to_device(contexts, logits.device, torch.long)
        male, female, male_codes, female_codes, slots = (each[context] for each in self._tensors)
        total = logits.logsumexp(dim=1)[rows, None]
        top = logits.topk(k, dim=1).indices[rows]
        best, codes, in_top = [], [], []
        for tokens, known in ((male, male_codes), (female, female_codes)):
            value, index = logits[rows[:, None], tokens].max(dim=1, keepdim=True)
            best.append((value.double() - total).exp())
            codes.append(known.gather(1, index))
            in_top.append((top == tokens.gather(1, index)).any(dim=1, keepdim=True))
        of_slot = logits[rows[:, None, None], slots.clamp_min(0)]
        of_slot = of_slot.masked_fill(slots < 0, -torch.inf).amax(dim=2)
        of_her = of_slot.clone()
        of_her[:, [_SLOTS.index("subject"), _SLOTS.index("reflexive")]] = -torch.inf
        numbers = [*best, *codes, *in_top, _likeliest(of_slot), _likeliest(of_her)]
        return torch.cat([column.double() for column in numbers], dim=1)


def _filled(lists: Sequence[Sequence[int]]) -> Ints:
    """Lists as an array; shorter ones repeat their first number."""
    width = max(map(len, lists), default=0)
    return np.array(
        [[*numbers, *[numbers[0]] * (width - len(numbers))] for numbers in lists], dtype=np.int64
    ).reshape(len(lists), width)


def _likeliest(of_slot: torch.Tensor) -> torch.Tensor:
    """The number of the likeliest slot (n, 1); the number of slots where none has a token."""
    best, slot = of_slot.max(dim=1, keepdim=True)
    return slot.masked_fill(~best.isfinite(), len(_SLOTS))


def _read(numbers: Floats) -> Probabilities:
    p_male, p_female = numbers[:, :2].T.copy()
    male, female, *in_top, slot, her_slot = numbers[:, 2:].T.astype(np.int16)
    male_in_top, female_in_top = (each.astype(bool) for each in in_top)
    return Probabilities(p_male, p_female, male, female, male_in_top, female_in_top, slot, her_slot)
