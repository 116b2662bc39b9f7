"""Which documents are learned from, which give the evaluation loss, which are held out.

A document's own words decide, by a hash, so that the same text always lands on the same side
however the input is ordered or cut into files. Gendered pronouns and masks do not count, so that
a sentence and its masked form are the same document. What is measured on is then looked up in the
training text by a second key, for which the gendered words of safe pairs count as one too: it does
not come back as its swapped twin. First names do count; a twin with another name may be learned.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from evenhand.lexicon import pairs
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.text.corpus.compression import SURROGATE
from evenhand.text.tokens import sentences

__all__ = ["Documents", "collect", "key", "twin_key"]

WORD = re.compile(r"[^\W_]+")
SILENT = frozenset(PRONOUNS) | {"mask"}
CHARACTERS_A_TOKEN = 12
"""So much text is held for every token that is to be learned from, held-out text included."""
CHARACTERS = 4_000_000
"""So much is held in any case, so that there is enough to measure on."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a run in three parts that share no text, and how they came about."""

    training: tuple[str, ...]
    evaluation: tuple[str, ...]
    held_out: tuple[str, ...]
    read: int
    empty: int
    beyond: int
    """Documents beyond the cap, left out by their hash: what is kept is a sample of the whole."""
    held_out_elsewhere: int = 0
    """Documents left out of training because they hold a sentence that is measured on."""

    def without(self, measured: Iterable[str]) -> Documents:
        """The same with every training document gone that holds one of the measured sentences."""
        known = {twin_key(text) for text in measured}
        parts = [
            tuple(text for text in part if known.isdisjoint(_twin_keys(text)))
            for part in (self.training, self.evaluation)
        ]
        gone = len(self.training) + len(self.evaluation) - sum(map(len, parts))
        return replace(self, training=parts[0], evaluation=parts[1], held_out_elsewhere=gone)

    def learned(self) -> set[bytes]:
        """The keys of all documents that are learned from, and of their sentences."""
        return {made for text in (*self.training, *self.evaluation) for made in _twin_keys(text)}

    def fingerprint(self) -> str:
        """A hash of the text of all parts."""
        made = hashlib.sha256()
        for part in (self.training, self.evaluation, self.held_out):
            made.update(f"{len(part)}\n".encode())
            for text in part:
                made.update(text.encode() + b"\0")
        return made.hexdigest()


def key(text: str) -> bytes:
    """A hash of the words of a text, pronouns and masks left out.

    >>> key("She lost her keys.") == key("[MASK] lost  his keys")
    True
    """
    return _digest(_words(text))


def twin_key(text: str) -> bytes:
    """The same with both words of a safe pair as one: that of a text is that of its swapped twin.

    >>> twin_key("The waitress saw her son.") == twin_key("The waiter saw his daughter.")
    True
    """
    forms = _forms()
    return _digest(forms.get(word, word) for word in _words(text))


def collect(
    texts: Iterable[str], *, held_out: float, evaluation: float, max_tokens: int
) -> Documents:
    """Read the documents, sample where there are more than can be learned from, and split them.

    >>> made = collect(["One day.", "Two nights.", " "], held_out=.3, evaluation=.3, max_tokens=9)
    >>> made.read, made.empty, len(made.training + made.evaluation + made.held_out)
    (3, 1, 2)
    """
    most = max(CHARACTERS, CHARACTERS_A_TOKEN * max_tokens)
    held: list[tuple[bytes, int, str]] = []
    read = empty = size = 0
    limit: bytes | None = None
    for given in texts:
        read += 1
        text = SURROGATE.sub("\ufffd", given)
        if not text.strip():
            empty += 1
            continue
        made = key(text)
        order = made[8:]
        if limit is not None and order > limit:
            continue
        held.append((made, read, text))
        size += len(text)
        if size > 2 * most:
            held, size = _fitting(held, most)
            limit = held[-1][0][8:]
    held, _ = _fitting(held, most)
    parts: dict[str, list[str]] = {"training": [], "evaluation": [], "held_out": []}
    for made, _, text in held:
        place = int.from_bytes(made[:8], "big") / 2**64
        held_back = "evaluation" if place < held_out + evaluation else "training"
        parts["held_out" if place < held_out else held_back].append(text)
    return Documents(
        training=tuple(parts["training"]), evaluation=tuple(parts["evaluation"]),
        held_out=tuple(parts["held_out"]), read=read, empty=empty,
        beyond=read - empty - len(held),
    )  # fmt: skip


def _fitting(
    held: Sequence[tuple[bytes, int, str]], most: int
) -> tuple[list[tuple[bytes, int, str]], int]:
    """The documents in the order of their hashes, as many as fit, and their size."""
    ordered = sorted(held, key=lambda one: (one[0][8:], one[1]))
    size = 0
    for number, one in enumerate(ordered):
        if size and size + len(one[2]) > most:
            return ordered[:number], size
        size += len(one[2])
    return ordered, size


def _twin_keys(text: str) -> set[bytes]:
    """The keys of a document and of its sentences."""
    return {twin_key(text), *(twin_key(text[start:end]) for start, end in sentences(text))}


def _words(text: str) -> Iterable[str]:
    return (word for word in WORD.findall(text.lower()) if word not in SILENT)


def _digest(words: Iterable[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


@cache
def _forms() -> dict[str, str]:
    """One form for all words that safe pairs link, as mrs, ms, miss and mr are."""
    forms: dict[str, str] = {}
    for pair in pairs():
        if pair.safe:
            one, two = (forms.setdefault(word, word) for word in (pair.female, pair.male))
            forms.update({word: two for word, form in forms.items() if form == one})
    return forms
