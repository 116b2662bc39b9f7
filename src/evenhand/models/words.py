"""Text as rows of token ids: the pieces of words, masks, and the log probabilities of words.

A text is always tokenized as a whole, so that every piece is the one the model knows in that
context: a byte-BPE or SentencePiece word includes the space before it, a word after a bracket does
not. A mask is a word whose pieces are masked, never a literal `[MASK]` in the text: tokenizers
differ in how they treat the space before it and the text after it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Unpack
from weakref import WeakKeyDictionary

import numpy as np

from evenhand.errors import InputError
from evenhand.models.masked import MaskedLM
from evenhand.models.masked_scoring import (
    Ints,
    MaskedPosition,
    MaskedPositions,
    encode,
    encode_ids,
    target_log_probs,
)
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    from tokenizers import Encoding

    from evenhand.cache import Querying


Span = tuple[int, int]
"""Start and end, end excluded."""

MASKS = ("[MASK]", "<mask>")
"""Mask tokens accepted in a text for every model, besides the model's own."""

_STAND_INS = ("he", "it", "a", "the", "man", "one")
"""Words inserted at the mask to find how the text around it is tokenized."""


class WordError(InputError):
    """A word has no pieces of its own: they are unknown or also cover other text."""


@dataclass(frozen=True, slots=True)
class WordRow:
    """The token ids of a text, special ones included, and the pieces of selected words."""

    ids: tuple[int, ...]
    spans: tuple[Span, ...]

    def hide(self, mask_id: int, *words: int) -> tuple[int, ...]:
        """The ids with every piece of the given words masked.

        >>> WordRow((1, 5, 6, 7, 2), ((1, 2), (2, 4))).hide(9, 1)
        (1, 5, 9, 9, 2)
        """
        ids = list(self.ids)
        for word in words:
            start, stop = self.spans[word]
            ids[start:stop] = [mask_id] * (stop - start)
        return tuple(ids)

    def pieces(self, word: int) -> tuple[int, ...]:
        """The ids of the pieces of a word."""
        return self.ids[slice(*self.spans[word])]


@dataclass(frozen=True, slots=True)
class WordQuery:
    """A query for the probability of word `target` of a row, with the words `hidden` masked too."""

    row: WordRow
    target: int
    hidden: tuple[int, ...] = ()


def row(model: MaskedLM, text: str, spans: Sequence[Span]) -> WordRow:
    """Tokenize a text and find the pieces that cover each span of its characters.

    >>> from evenhand.models import load
    >>> model = load("mini")
    >>> encoded = row(model, "My aunt is a nurse.", [(3, 7), (13, 18)])
    >>> model.tokenizer.convert_ids_to_tokens(list(encoded.pieces(0)))
    ['aunt']
    """
    return rows(model, [(text, spans)])[0]


def rows(model: MaskedLM, texts: Sequence[tuple[str, Sequence[Span]]]) -> list[WordRow]:
    """Tokenize several texts, as `row` does, in one call."""
    unknown = model.tokenizer.unk_token_id
    encoded_rows = []
    for (text, spans), coded in zip(texts, encode(model, [t for t, _ in texts]), strict=True):
        ids = coded.ids
        if len(ids) > _longest(model):
            raise _too_long(model, text, len(ids))
        for begin, end in spans:
            if any(ids[i] == unknown for i in _over(coded.offsets, begin, end)):
                raise WordError(
                    f"model '{model.name}': its tokenizer cannot represent "
                    f"'{text[begin:end]}' in '{_beginning(text)}'"
                )
        pieces = tuple(_pieces(coded, text, begin, end) for begin, end in spans)
        encoded_rows.append(WordRow(tuple(ids), pieces))
    return encoded_rows


def word_log_probs(
    model: MaskedLM,
    queries: Sequence[WordQuery],
    **how: Unpack[Querying],
) -> Floats:
    r"""Compute the log probability of the word of each query (n,), in one pass of the model.

    A word of several pieces is read from left to right, its later pieces masked:
    $\log P(w) = \sum_j \log P(w_j \mid w_{<j}, \text{rest})$, where $w_{\ge j}$ is masked.
    """
    mask = _mask_id(model)
    indices: dict[tuple[MaskedPosition, int], int] = {}
    columns: list[int] = []
    owners: list[int] = []
    for index, query in enumerate(queries):
        pieces = query.row.pieces(query.target)
        if not pieces or model.tokenizer.unk_token_id in pieces:
            raise InputError("target: expected a word the tokenizer can represent, got none")
        hidden = query.row.hide(mask, *query.hidden, query.target)
        start, stop = query.row.spans[query.target]
        for position in range(start, stop):
            ids = (*hidden[:start], *query.row.ids[start:position], *hidden[position:])
            key = (MaskedPosition(ids, position), query.row.ids[position])
            columns.append(indices.setdefault(key, len(indices)))
            owners.append(index)
    answers = target_log_probs(
        model,
        [position for position, _ in indices],
        [token for _, token in indices],
        **how,
    )
    return np.bincount(owners, answers[columns], minlength=len(queries)).astype(float)


def find_mask(model: MaskedLM, text: str) -> Span:
    """Find the span of the only mask of a text.

    >>> from evenhand.models import load
    >>> find_mask(load("mini"), "then [MASK] sings.")
    (5, 11)
    """
    [(left, right)] = MaskedTexts.of(model, [text]).sides
    return len(left), len(text) - len(right)


@dataclass(frozen=True, slots=True, eq=False)
class MaskedTexts:
    """Texts with one mask each, and what is beside the masks.

    `sides` are the texts before and after each mask, `contexts` the distinct texts from `beside`
    and `context_of` the number of that of each text.
    """

    texts: Sequence[str]
    sides: list[list[str]]
    contexts: list[tuple[str, str]]
    context_of: Ints

    @staticmethod
    def of(model: MaskedLM, texts: Sequence[str]) -> MaskedTexts:
        """Find the masks of texts; the first text without exactly one is an error."""
        mask, *others = dict.fromkeys((*MASKS, str(model.tokenizer.mask_token)))
        same = texts
        if any(other in text for other in others for text in texts):
            replace = re.compile("|".join(map(re.escape, (mask, *others)))).sub
            same = [replace(mask, text) for text in texts]
        sides = [text.split(mask) for text in same]
        for text, parts in zip(texts, sides, strict=True):
            if len(parts) != 2:
                count = str(len(parts) - 1 or "none")
                raise InputError(f"'{_beginning(text)}': expected one mask, as {mask}, got {count}")
        numbers: dict[tuple[str, str], int] = {}
        context_of = [numbers.setdefault(beside(*parts), len(numbers)) for parts in sides]
        return MaskedTexts(texts, sides, list(numbers), np.array(context_of, dtype=np.int64))


def cloze(model: MaskedLM, text: str) -> MaskedPosition:
    """Tokenize a text with one mask and find the position of the mask.

    The row is that of the same text with a single-piece word at the mask, which is then masked. The
    space before the mask therefore belongs to the masked word wherever it belongs to a word, and
    the text after it is tokenized as after a word.

    >>> from evenhand.models import load
    >>> model = load("mini")
    >>> query = cloze(model, "The nurse said that <mask> was late.")
    >>> model.tokenizer.convert_ids_to_tokens(list(query.ids))[4:7]
    ['that', '[MASK]', 'was']
    """
    queries, problems = clozes(model, MaskedTexts.of(model, [text]))
    for problem in problems.values():
        raise problem
    return queries[0]


def clozes(model: MaskedLM, masked: MaskedTexts) -> tuple[MaskedPositions, dict[int, InputError]]:
    """Tokenize texts with one mask each, as `cloze` does.

    Returns
    -------
    MaskedPositions
        Those of the texts without a problem, in order.
    dict of int to InputError
        What is wrong, by the number of the text.

    """
    mask, longest = _mask_id(model), _longest(model)
    texts, sides = masked.texts, masked.sides
    coded_rows, starts, waiting = _usual_rows(model, masked)
    for (before, after), word in product((("", ""), (" ", " ")), _STAND_INS):
        if not waiting:
            break
        filled = [f"{before}{word}{after}".join(sides[i]) for i in waiting]
        others = []
        for i, text, coded in zip(waiting, filled, encode(model, filled), strict=True):
            begin = len(sides[i][0]) + len(before)
            pieces = _word_pieces(coded, text, begin, begin + len(word))
            if pieces is None:
                others.append(i)
                continue
            ids = coded.ids
            ids[slice(*pieces)] = (mask,)
            coded_rows[i], starts[i] = ids, pieces[0]
        waiting = others
    problems: dict[int, InputError] = {
        i: InputError(
            f"model '{model.name}': no word has pieces of its own in '{_beginning(texts[i])}'"
        )
        for i in waiting
    }
    for i, ids in enumerate(coded_rows):
        if len(ids) > longest:
            problems[i] = _too_long(model, texts[i], len(ids))
    if problems:
        chosen = [i for i in range(len(texts)) if i not in problems]
        coded_rows, starts = [coded_rows[i] for i in chosen], [starts[i] for i in chosen]
    return MaskedPositions.of_rows(coded_rows, starts), problems


def _usual_rows(
    model: MaskedLM, masked: MaskedTexts
) -> tuple[list[list[int]], list[int], list[int]]:
    """The rows of texts whose masks are found from the token ids alone, and their positions.

    A tokenizer that splits a text at white space gives a word the pieces that it has between the
    texts from `beside`. If the first stand-in is a single token there, and this token occurs once
    in the row, it is at the mask. The numbers of all other texts come last.
    """
    coded_rows: list[list[int]] = [[] for _ in masked.texts]
    starts = [0] * len(coded_rows)
    if not _splits_at_spaces(model):
        return coded_rows, starts, list(range(len(coded_rows)))
    mask, word, waiting = _mask_id(model), _STAND_INS[0], []
    tokens = [
        next(iter(pieces_beside(model, left, right, (word,), cased=True)), -1)
        for left, right in masked.contexts
    ]
    rows = encode_ids(model, [word.join(parts) for parts in masked.sides])
    for i, (ids, context) in enumerate(zip(rows, masked.context_of.tolist(), strict=True)):
        token = tokens[context]
        # `beside` keeps one of several blanks, which some tokenizers join to the word
        if ids.count(token) == 1 and not masked.sides[i][0][-2:-1].isspace():
            starts[i] = ids.index(token)
            ids[starts[i]] = mask
            coded_rows[i] = ids
        else:
            waiting.append(i)
    return coded_rows, starts, waiting


def _splits_at_spaces(model: MaskedLM) -> bool:
    """Whether no piece reaches over white space, so that the pieces of words are independent."""
    splitter = model.tokenizer.backend_tokenizer.pre_tokenizer
    return splitter is not None and len(splitter.pre_tokenize_str("he he he")) == 3


def _word_pieces(coded: Encoding, text: str, begin: int, end: int) -> Span | None:
    """The pieces of the word at a span of the text, as `_pieces`; None if it has none."""
    try:
        return _pieces(coded, text, begin, end)
    except WordError:
        return None


_known: WeakKeyDictionary[MaskedLM, dict[tuple[str, str, tuple[str, ...], bool], dict[int, str]]]
_known = WeakKeyDictionary()


def single_pieces(model: MaskedLM, text: str, words: Sequence[str]) -> dict[int, str]:
    """Find the tokens that are a complete word of the list at the mask: token id -> word.

    The words are given in lower case; "he", "He" and "HE" all count as "he", so a cased model may
    have several tokens per word. The pieces depend only on the text next to the mask, which is the
    key of the cache.

    >>> from evenhand.models import load
    >>> model = load("mini")
    >>> sorted(single_pieces(model, "then [MASK] sings.", ["he", "she"]).values())
    ['he', 'she']
    """
    [context] = MaskedTexts.of(model, [text]).contexts
    return dict(pieces_beside(model, *context, tuple(words)))


def pieces_beside(
    model: MaskedLM, left: str, right: str, words: tuple[str, ...], *, cased: bool = False
) -> dict[int, str]:
    """The tokens that are a complete word of the list between texts from `beside`.

    Unless `cased`, a word may also be capitalised or in capitals.
    """
    known = _known.setdefault(model, {})
    tokens: dict[int, str]
    key = (left, right, words, cased)
    if key not in known:
        forms = {
            form: word
            for word in words
            for form in ((word,) if cased else (word, word.capitalize(), word.upper()))
        }
        tokens = known[key] = {}
        texts = [f"{left}{form}{right}" for form in forms]
        for form, text, coded in zip(forms, texts, encode(model, texts), strict=True):
            pieces = _word_pieces(coded, text, len(left), len(left) + len(form))
            ids = [] if pieces is None else coded.ids[slice(*pieces)]
            if len(ids) == 1 and ids[0] != model.tokenizer.unk_token_id:
                tokens.setdefault(ids[0], forms[form])
    return known[key]


def beside(left: str, right: str) -> tuple[str, str]:
    """The part of the text next to a word that can change its pieces.

    >>> beside("She said (", ") sings.")
    ('a (', ')')
    """
    glued = "" if not left or left[-1].isspace() else left.rsplit(maxsplit=1)[-1]
    space = left[: len(left) - len(glued)][-1:]
    if right and right[0].isspace():
        after = f"{right[0]}a"
    else:
        after = right.split(maxsplit=1)[0] if right else ""
    return (f"a{space}{glued}" if space else glued), after


def _pieces(coded: Encoding, text: str, begin: int, end: int) -> Span:
    """The pieces that cover a span of the text and nothing else except white space before it."""
    offsets, word = coded.offsets, text[begin:end]
    if not 0 <= begin < end <= len(text) or word != word.strip():
        span = (begin, end)
        raise InputError(f"span {span}: expected a word of '{_beginning(text)}', got '{word}'")
    over = _over(offsets, begin, end)
    reached, missing, outside = begin, False, False
    for low, high in sorted(offsets[i] for i in over):
        missing |= any(map(str.isalnum, text[reached:low]))
        outside |= high > end or bool(text[low:begin].strip())
        reached = max(reached, high)
    missing |= any(map(str.isalnum, text[reached:end]))
    if not over or missing or outside:
        raise WordError(f"'{word}' is no word of its own in '{_beginning(text)}'")
    start = over[0]
    if start and offsets[start][0] >= begin and _is_space(coded, text, start - 1, begin):
        start -= 1
    return start, over[-1] + 1


def _over(offsets: Sequence[Span], begin: int, end: int) -> list[int]:
    """The pieces that share a character with a span of the text."""
    return [i for i, (low, high) in enumerate(offsets) if low < end and high > begin]


def _is_space(coded: Encoding, text: str, piece: int, begin: int) -> bool:
    """Whether a piece is only the white space before the word that begins there."""
    low, high = coded.offsets[piece]
    together = coded.word_ids[piece] is not None and (
        coded.word_ids[piece] == coded.word_ids[piece + 1]
    )
    return together and high == begin and not text[low:high].strip()


def _longest(model: MaskedLM) -> int:
    return int(getattr(model, "longest", model.tokenizer.model_max_length))


def _too_long(model: MaskedLM, text: str, length: int) -> InputError:
    return InputError(
        f"'{_beginning(text)}': expected at most {_longest(model)} tokens, which is what model "
        f"'{model.name}' takes, got {length}"
    )


def _mask_id(model: MaskedLM) -> int:
    return int(model.tokenizer.mask_token_id)


def _beginning(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
