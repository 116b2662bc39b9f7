"""The tokenised text: whole documents of whole sentences, in a file small enough to carry.

A file holds one text as numpy arrays in one xz stream. Tokens are stored as ranks by frequency in
two bytes, with the stream's contexts aligned to them: 7.5 bits a token, a quarter less than the
packed text.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.files import replace_file

from .corpus import documents, held_out, sentences
from .tokenizer import load_tokenizer

_ALIGNED = [
    {
        "id": lzma.FILTER_LZMA2,
        "preset": 9 | lzma.PRESET_EXTREME,
        "lc": 0,
        "lp": 1,
        "pb": 1,
        "dict_size": 1 << 27,
    }
]
_CHUNK = 500


@dataclass(frozen=True)
class Text:
    """Token ids of sentences that lie one after the other, document by document."""

    tokens: NDArray[np.uint16]
    lengths: NDArray[np.int64]
    """Tokens of each sentence."""
    documents: NDArray[np.int64]
    """Sentences of each document."""

    def first(self) -> NDArray[np.bool_]:
        """Which sentences begin a document."""
        marks = np.zeros(len(self.lengths), dtype=bool)
        marks[np.cumsum(self.documents) - self.documents] = True
        return marks

    def take(self, chosen: NDArray[np.bool_]) -> Text:
        """The chosen documents."""
        by_sentence = np.repeat(chosen, self.documents)
        by_token = np.repeat(by_sentence, self.lengths)
        return Text(self.tokens[by_token], self.lengths[by_sentence], self.documents[chosen])

    def closed(self, token: int) -> Text:
        """The text with a token at the end of every document, as part of its last sentence."""
        last = np.cumsum(self.documents) - 1
        ends = np.cumsum(self.lengths)[last]
        lengths = self.lengths.copy()
        lengths[last] += 1
        return Text(np.insert(self.tokens, ends, token), lengths, self.documents)


@dataclass(frozen=True)
class Prepared:
    """A tokenised text and which of its documents are held out."""

    text: Text
    held_out: NDArray[np.bool_]

    def training(self) -> Text:
        return self.text.take(~self.held_out)

    def validation(self) -> Text:
        return self.text.take(self.held_out)


def prepare(path: Path, tokenizer: Path, *, workers: int = 1) -> Prepared:
    """Split a text into sentences and tokenise them, in the order of the text."""
    tokens, lengths, counts, marks = [], [], [], []
    with get_context("spawn").Pool(workers, _start, (tokenizer,)) as pool:
        for ids, sizes, sentences_of, held in pool.imap(_encode, _chunks(path)):
            tokens.append(ids)
            lengths += sizes
            counts += sentences_of
            marks += held
    if not counts:
        raise FileError(path, "expected running text, got none")
    text = Text(np.concatenate(tokens), np.array(lengths), np.array(counts))
    return Prepared(text, np.array(marks, dtype=bool))


def _chunks(path: Path) -> Iterator[list[list[str]]]:
    source = documents([path])
    while chunk := list(islice(source, _CHUNK)):
        yield chunk


_tokenizer: Any = None


def _start(folder: Path) -> None:
    global _tokenizer
    _tokenizer = load_tokenizer(folder)


def _encode(
    chunk: list[list[str]],
) -> tuple[NDArray[np.uint16], list[int], list[int], list[bool]]:
    """Tokenise some documents: ids, tokens by sentence, sentences by document, held out or not."""
    parts = [[part for paragraph in text for part in sentences(paragraph)] for text in chunk]
    flat = [part for document in parts for part in document]
    encoded = [item.ids for item in _tokenizer.encode_batch_fast(flat, add_special_tokens=False)]
    ids = np.fromiter((token for item in encoded for token in item), dtype=np.uint16)
    sizes = [len(item) for item in encoded]
    return ids, sizes, [len(document) for document in parts], [held_out(text) for text in chunk]


def save(prepared: Prepared, path: Path) -> None:
    """Write a prepared text to one packed file."""
    text = prepared.text
    order = np.argsort(-np.bincount(text.tokens), kind="stable").astype(np.uint16)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=np.uint16)
    arrays = [
        order,
        rank[text.tokens],
        text.lengths.astype(np.uint16),
        text.documents.astype(np.uint16),
        prepared.held_out.astype(np.uint16),
    ]
    for name, array, whole in (
        ("lengths", arrays[2], text.lengths),
        ("documents", arrays[3], text.documents),
    ):
        if not np.array_equal(array, whole):
            raise InputError(f"{name}: expected at most 65,535 parts, got {whole.max():,}")
    with replace_file(path) as raw, lzma.open(raw, "wb", filters=_ALIGNED) as file:
        for array in arrays:
            np.save(file, array, allow_pickle=False)


def load(paths: Iterable[Path]) -> Prepared:
    """Read prepared texts as one."""
    parts = [_load(path) for path in paths]
    if not parts:
        raise InputError("expected at least one prepared text, got none")
    text = Text(
        np.concatenate([part.text.tokens for part in parts]),
        np.concatenate([part.text.lengths for part in parts]),
        np.concatenate([part.text.documents for part in parts]),
    )
    return Prepared(text, np.concatenate([part.held_out for part in parts]))


def _load(path: Path) -> Prepared:
    try:
        with lzma.open(path, "rb") as file:
            order, ranks, lengths, counts, held = [
                np.load(file, allow_pickle=False) for _ in range(5)
            ]
    except (OSError, EOFError, ValueError, lzma.LZMAError) as problem:
        raise FileError(path, f"expected a prepared text, got: {problem}") from problem
    text = Text(order[ranks], lengths.astype(np.int64), counts.astype(np.int64))
    return Prepared(text, held.astype(bool))


def describe(prepared: Prepared) -> str:
    """One line on what a prepared text holds."""
    text, held = prepared.text, prepared.held_out
    return (
        f"{len(text.tokens):,} tokens, {len(text.lengths):,} sentences, {len(held):,} documents, "
        f"{held.sum():,} of them held out"
    )
