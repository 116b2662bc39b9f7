"""Words, tokens and sentences of a text, and where they stand.

A word is a maximal run of letters, digits and underscores; apostrophes and hyphens separate, so
that "she's", "ex-wife" and "he/she" hold the words she, wife, he and she. `Words` finds the words
of a block at once: it works on one byte per character and 64-bit keys of the words, some hundred
megabytes a second, where a regular expression over the same words reads about fifteen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]
Codes = NDArray[np.uint8]
Keys = NDArray[np.uint64]

LONGEST = 16  # characters of a word that its key holds
OTHER_LETTER = 0xFF
INVISIBLE = "\N{SOFT HYPHEN}\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
PAD = np.zeros(LONGEST, dtype=np.uint8)
MASKS: Keys = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)
ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)
BITS = np.uint64(18)


def _fold(character: str) -> int:
    """One byte for a character: lower case where ASCII, one code for all other letters, else 0."""
    if character.isascii():
        return ord(character.lower()) if character.isalnum() or character == "_" else 0
    letter = character.isalnum() or unicodedata.category(character) in ("Mn", "Mc", "Cs")
    letter = letter or character in INVISIBLE
    return OTHER_LETTER if letter else 0


@cache
def _table(size: int) -> Codes:
    return np.array([_fold(chr(code)) for code in range(size)], dtype=np.uint8)


def _codes(text: str) -> Codes:
    """The folded characters of a text, one byte each, padded for reading ahead."""
    if text.isascii():
        ascii_codes = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
        return np.concatenate((_table(128)[ascii_codes], PAD))
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return np.concatenate((_table(0x10000)[np.minimum(points, 0xFFFF)], PAD))


def _keys(codes: Codes, starts: Offsets, lengths: Offsets) -> Keys:
    """A 64-bit key of each word: of its first sixteen characters and of its length."""
    eight = np.ndarray((len(codes) - 7,), dtype="<u8", buffer=codes, strides=(1,))
    key = (eight[starts] & MASKS[np.minimum(lengths, 8)]) * ODD[0]
    long = np.flatnonzero(lengths > 8)
    rest = lengths[long] - 8
    key[long] ^= (eight[starts[long] + 8] & MASKS[np.minimum(rest, 8)]) * ODD[1]
    key[long] ^= rest.astype(np.uint64) * ODD[2]
    return cast(Keys, key)


class Words:
    """The words of a text: where each begins and ends, and the key it is looked up by.

    >>> found = Words("She's Zoë's ex-wife.")
    >>> [found.text[s:e] for s, e in zip(found.starts, found.ends)]
    ['She', 's', 'Zoë', 's', 'ex', 'wife']
    """

    __slots__ = ("ends", "keys", "starts", "text")

    def __init__(self, text: str) -> None:
        codes = _codes(text)
        inside = codes != 0
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        if len(inside) and inside[0]:
            edges = np.concatenate((np.zeros(1, dtype=edges.dtype), edges))
        self.text = text
        self.starts: Offsets = edges[::2]
        self.ends: Offsets = edges[1::2]
        self.keys = _keys(codes, self.starts, self.ends - self.starts)

    def __len__(self) -> int:
        return len(self.starts)


class WordIndex:
    """A set of lower-case words, found in texts in any case.

    >>> index = WordIndex(["she", "he"])
    >>> starts, ends = index.find("He saw that SHE was there.")
    >>> starts.tolist(), ends.tolist()
    ([0, 12], [2, 15])
    """

    __slots__ = ("_keys", "_loose", "_sieve", "_words")

    def __init__(self, members: Iterable[str]) -> None:
        ordered = sorted(set(members))
        words = Words(" ".join(ordered))
        if len(words) != len(ordered):
            raise ValueError("an index takes single words of letters and digits")
        self._words = frozenset(ordered)
        self._keys: Keys = np.unique(words.keys)
        # Keys that other words may share: longer than a key holds, or with letters outside ASCII.
        loose = [not word.isascii() or len(word) > LONGEST for word in ordered]
        self._loose: Keys = np.unique(words.keys[np.array(loose, dtype=bool)])
        self._sieve = np.zeros(1 << int(BITS), dtype=bool)
        self._sieve[self._keys >> (np.uint64(64) - BITS)] = True

    def __contains__(self, word: str) -> bool:
        return word in self._words

    def select(self, words: Words) -> Offsets:
        """The words of a text that are in the index, as positions in `found`."""
        if not self._words:
            return np.empty(0, dtype=np.int64)
        likely = np.flatnonzero(self._sieve[words.keys >> (np.uint64(64) - BITS)])
        keys = words.keys[likely]
        nearest = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        chosen = likely[self._keys[nearest] == keys]
        if len(self._loose):
            doubtful = np.flatnonzero(np.isin(words.keys[chosen], self._loose))
            wrong = [
                k
                for k in doubtful
                if words.text[words.starts[chosen[k]] : words.ends[chosen[k]]].lower()
                not in self._words
            ]
            chosen = np.delete(chosen, wrong)
        return cast(Offsets, chosen)

    def find(self, text: str | Words) -> tuple[Offsets, Offsets]:
        """The positions of the words of the index in a text: their starts and their ends."""
        words = Words(text) if isinstance(text, str) else text
        chosen = self.select(words)
        return words.starts[chosen], words.ends[chosen]


BEFORE = frozenset(" \n\t\r\"“”'‘’([{—–*>")
AFTER = frozenset(" \n\t\r\"“”'‘’)]},;!?—–*<")
TAG = re.compile(r"[#@][\w.]*$")
ADDRESS = re.compile(
    r"(?i)[a-z0-9+.-]://|\bwww\.|(?<![\w.+-])[\w.+-]++@[\w-]+\.\w|(?<!\w)[~.]{0,2}/[\w.~-]+/"
    r"|\w\.(?:com|org|net|edu|gov|mil|int|info|biz|io|co|uk|us|ca|au|de|fr|eu|tv|ly|me|be|gl)\b"
    r"|\w\.(?:html?|php|aspx?|txt|pdf|docx?|csv|json|xml|jpe?g|png|gif|mp[34]|py|js|css|zip)\b"
)
FARTHEST = 1 << 10  # longer runs of characters without a space are not prose
SPACE = re.compile(r"\s")


def protected(text: str, start: int, end: int) -> bool:
    """Whether the word at text[start:end] is part of a hashtag, a mention or an address.

    >>> protected("see www.herstory.com/she", 21, 24), protected("he/she", 3, 6)
    (True, False)
    >>> protected("so #HeForShe", 4, 12), protected("for him.", 4, 7)
    (True, False)
    """
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before in BEFORE and (
        after in AFTER or (after == "." and not text[end + 1 : end + 2].strip())
    ):
        return False
    if before in "#@":
        return True
    gap = SPACE.search(text, end, end + FARTHEST)
    stop = gap.start() if gap else min(len(text), end + FARTHEST)
    first = max(0, start - FARTHEST)
    before_word = text[first:start]
    begin = start if before.isspace() else start - len((before_word.split() or [""])[-1])
    if begin == first > 0 or stop == end + FARTHEST:
        return True
    return bool(TAG.search(text, begin, start) or ADDRESS.search(text, begin, stop))


def match_case(model: str, word: str) -> str:
    """The word written in the case of the model.

    >>> match_case("HE", "she"), match_case("He", "she"), match_case("he", "she")
    ('SHE', 'She', 'she')
    """
    if len(model) > 1 and model.isupper():
        return word.upper()
    if model[:1].isupper():
        return word[:1].upper() + word[1:]
    return word


# A run of marks is tried once, at its first mark: at the others it would fail the same way.
END = re.compile(r"""(?<![.!?…])[.!?…]++["'”’)\]]*+(?=\s)|\n\s*\n""")
NEXT = re.compile(r"""\s*["'“‘(\[¿¡—–-]*\s*(\w?)""")
WORD = re.compile(r"[\w.&'’-]+$")
INITIALS = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]")
# Abbreviations a name or a number usually follows: a full stop behind them ends no sentence.
BEFORE_NAMES = re.compile(
    r"mrs?|ms|mx|dr|prof|rev|fr|hon|st|mt|ft|messrs|mme|mlle|gen|col|lt|capt|sgt|cpl|maj|cmdr|adm"
    r"|pvt|gov|sen|rep|pres|supt|det|insp|nos?|vols?|pp|figs?|eq|eds?|art|ch|sec|op|vs?|cf|al|e\.g"
    r"|i\.e|viz|approx|ca?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
# Those that end a sentence as often as not: a capital letter behind them decides.
EITHER = re.compile(r"inc|ltd|co|corp|jr|sr|bros|etc|a\.m|p\.m|u\.s|u\.k|u\.n|d\.c|ph\.d|b\.a|m\.a")


def _ends(text: str, mark: re.Match[str]) -> bool:
    """Whether the punctuation found closes a sentence, by its context."""
    if mark.group().isspace():
        return True
    behind = NEXT.match(text, mark.end())
    first = behind.group(1) if behind else ""
    if first.islower():
        return False
    if mark.group()[0] != "." or mark.group().startswith(".."):
        return True
    before = WORD.search(text, max(0, mark.start() - 30), mark.start())
    if before is None:
        return True
    word = before.group().lower()
    if EITHER.fullmatch(word) or word == "i":
        return True
    return not (BEFORE_NAMES.fullmatch(word) or INITIALS.fullmatch(word))


def sentences(text: str) -> list[tuple[int, int]]:
    """The spans of the sentences of a text, without the white space around them.

    >>> text = 'Mr. Smith came in. "Who is she?" he asked. She left at 5 p.m. sharp.'
    >>> [text[s:e] for s, e in sentences(text)]
    ['Mr. Smith came in.', '"Who is she?" he asked.', 'She left at 5 p.m. sharp.']
    """
    spans: list[tuple[int, int]] = []
    begin = 0
    for mark in END.finditer(text):
        if _ends(text, mark):
            _add(spans, text, begin, mark.end())
            begin = mark.end()
    _add(spans, text, begin, len(text))
    return spans


def _add(spans: list[tuple[int, int]], text: str, begin: int, end: int) -> None:
    piece = text[begin:end]
    stripped = piece.strip()
    if stripped:
        begin += len(piece) - len(piece.lstrip())
        spans.append((begin, begin + len(stripped)))


# A full stop belongs to a title, to an initial and to letters with stops between (U.S., Ph.D.).
# Letters are listed in both cases and words come first because that doubles the speed.
TITLE = (
    r"(?:[MmDdJjSs][Rr]|[Mm](?:[SsXx]|[Rr][Ss])|[SsLl][Tt]|[Pp][Rr][Oo][Ff]|[Rr][Ee][Vv]"
    r"|[Ss][Gg][Tt]|[Cc](?:[Aa][Pp][Tt]|[Oo][Ll])|[Gg][Ee][Nn])\."
)
TOKEN = re.compile(
    rf"[^\W\d]\w*+(?:['’‐-]\w+)*+(?!\.)|{TITLE}|[^\W\d_]{{1,3}}\.(?:[^\W\d_]\.)+|[^\W\d_]\."
    r"|\d+(?:[.,:]\d+)*\w*(?:[-‐]\w+)*|['’](?:s|re|ve|ll|d|m)\b|[@#]?\w+(?:['’‐-]\w+)*"
    r"|--+|[^\w\s]"
)
CLITIC = re.compile(r"n['’]t$|['’](?:s|re|ve|ll|d|m)$")


def tokenize(sentence: str) -> tuple[list[str], list[int]]:
    """The tokens of a sentence and where each begins, clitics split off.

    >>> tokenize("The guard's dog isn't his.")[0]
    ['The', 'guard', "'s", 'dog', 'is', "n't", 'his', '.']
    """
    tokens: list[str] = []
    starts: list[int] = []
    for match in TOKEN.finditer(sentence):
        token, start = match.group(), match.start()
        clitic = CLITIC.search(token)
        if clitic is not None and clitic.start():
            tokens += [token[: clitic.start()], clitic.group()]
            starts += [start, start + clitic.start()]
        else:
            tokens.append(token)
            starts.append(start)
    if tokens and len(tokens[-1]) == 2 and tokens[-1][0].islower() and tokens[-1][1] == ".":
        tokens[-1:] = [tokens[-1][0], "."]
        starts.append(starts[-1] + 1)
    return tokens, starts
