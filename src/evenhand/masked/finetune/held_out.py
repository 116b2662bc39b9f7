"""What the model is measured on before and after: sentences and plain text it never learns from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.masked.finetune.documents import Documents, key, twin_key
from evenhand.masked.gender_words import UnscorableTextError, mask_query
from evenhand.masked.metrics.pronouns import Sentence
from evenhand.masked.model import Model
from evenhand.masked.words import MASKS
from evenhand.text.structural import Accepted, Filter
from evenhand.text.tokens import sentences

if TYPE_CHECKING:
    from evenhand.masked.pairs import Pair

__all__ = ["HeldOut", "held_out"]

WORK = 250_000
"""Plain sentences are taken until the squares of their lengths add up to this: every token is
hidden once, so that is how many tokens the model computes for the perplexity.
"""
FEWEST = 2
MOST = 2000
"""Masked sentences to measure on, at most."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Masked sentences, plain sentences, pairs, and how the sentences were found.

    Each masked sentence is there once and can be scored; `duplicates` and `refused` were not taken.
    """

    sentences: tuple[Sentence, ...]
    plain: tuple[str, ...]
    pairs: tuple[Pair, ...]
    origin: str
    duplicates: int = 0
    refused: int = 0

    def texts(self) -> Iterable[str]:
        """All that may not be learned from; the plain sentences were not chosen from it."""
        yield from (sentence.text for sentence in self.sentences)
        for pair in self.pairs:
            yield from (pair.more, pair.less)


def held_out(
    model: Model,
    documents: Documents,
    *,
    given: Iterable[Sentence] | None = None,
    pairs: Sequence[Pair] = (),
) -> HeldOut:
    """The given sentences, or those that the structural filter keeps of the held-out documents.

    Antecedents such as "someone" are kept, since there would be few sentences without them. Of
    every document one sentence is taken, so that those measured on are independent. Plain sentences
    that the training text holds as well are passed over: documents that share a common one would
    otherwise all be lost to training.
    """
    if given is not None:
        found, origin = list(given), "given"
        distinct = {one.text.encode(): one for one in reversed(found)}
    else:
        found = list(islice(_filtered(documents.held_out), MOST))
        distinct = {key(one.text): one for one in reversed(found)}
        origin = (
            f"structural filter, someone kept, one a document, on {len(documents.held_out):,} "
            "held-out documents"
        )
    taken, refusals = _scorable(model, list(reversed(distinct.values())))
    if len(taken) < FEWEST:
        why = f"; {len(refusals)} cannot be scored: {refusals[0]}" if refusals else ""
        raise InputError(
            f"held-out sentences: expected {FEWEST} or more to measure on, got {len(taken)} "
            f"({origin}{why}); give some with --sentences, or more text"
        )
    plain = tuple(_plain(model, documents.held_out, documents.learned()))
    if len(plain) < FEWEST:
        raise InputError(
            f"held-out text: expected {FEWEST} or more sentences for the perplexity, got "
            f"{len(plain)}; more text is needed"
        )
    return HeldOut(
        tuple(taken), plain, tuple(pairs), origin, duplicates=len(found) - len(distinct),
        refused=len(refusals),
    )  # fmt: skip


def _scorable(model: Model, found: Sequence[Sentence]) -> tuple[list[Sentence], list[str]]:
    """The sentences that the model can score, and why it cannot score the others."""
    taken: list[Sentence] = []
    refusals: list[str] = []
    for sentence in found:
        try:
            mask_query(model, sentence.text)
            taken.append(sentence)
        except UnscorableTextError as refused:
            refusals.append(str(refused))
    return taken, refusals


def _filtered(documents: Sequence[str]) -> Iterable[Sentence]:
    judge = Filter(someone=True)
    seen: set[bytes] = set()
    for document in documents:
        if (made := key(document)) in seen:
            continue
        seen.add(made)
        kept = [
            found
            for start, end in sentences(document)
            if isinstance(found := judge.sentence(document[start:end]), Accepted)
            and sum(map(found.masked.count, MASKS)) == 1
        ]
        if kept:
            found = kept[_draw(made, len(kept))]
            yield Sentence(found.masked, found.pronoun)


def _plain(model: Model, documents: Sequence[str], learned: set[bytes]) -> Iterable[str]:
    """One sentence of each document, drawn by its hash, that the model can take whole."""
    marks = (*MASKS, str(model.tokenizer.mask_token))
    work = 0
    for document in documents:
        spans = sentences(document)
        start, end = spans[_draw(key(document), len(spans))]
        text = document[start:end]
        if any(mark in text for mark in marks) or twin_key(text) in learned:
            continue
        coded: Any = model.tokenizer(text, verbose=False)["input_ids"]
        if not 4 <= len(coded) <= model.longest:
            continue
        work += len(coded) ** 2
        yield text
        if work >= WORK:
            return


def _draw(made: bytes, count: int) -> int:
    return int.from_bytes(made[4:12], "big") % count
