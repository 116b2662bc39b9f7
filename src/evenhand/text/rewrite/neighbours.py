"""The words of a block with their neighbours: capitalised or not, and what stands between."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.text.entities.capitalised import PREFIX, RANK, TITLE, kinds
from evenhand.text.tokens import Words

__all__ = ["Codes", "Neighbours", "character_codes"]

Codes = NDArray[np.uint32] | NDArray[np.uint8]
SPACE = 32
FARTHEST = 4  # capitalised words behind a name that are looked at
ENDERS = ".!?:;\n…—–\"“‘'("
NICKNAME_ENDS = ('" ', ") ", "” ", "' ", "’ ")
NICKNAME_BEGINS = "\"(“'‘"


def character_codes(text: str) -> Codes:
    """The characters of a text as numbers."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


class Neighbours:
    """A block's words with what the rules ask of them."""

    __slots__ = ("capital", "ends", "joined", "starts", "text")

    def __init__(self, found: Words, codes: Codes) -> None:
        first = codes[found.starts]
        self.text = found.text
        self.starts = found.starts
        self.ends = found.ends
        self.capital = np.append((first >= 65) & (first <= 90), False)
        gap = found.starts[1:] - found.ends[:-1]
        self.joined = np.zeros(len(found.starts) + 1, dtype=bool)  # a single space before the word
        self.joined[1:-1] = (gap == 1) & (codes[found.ends[:-1]] == SPACE)

    def word(self, k: int) -> str:
        return self.text[self.starts[k] : self.ends[k]]

    def capital_before(self, k: int) -> str:
        """The capitalised word directly before word k, "" where there is none."""
        if not k or not self.capital[k - 1]:
            return ""
        word = self.word(k - 1)
        if self.joined[k]:
            return word
        dotted = self.text[self.ends[k - 1] : self.starts[k]] == ". "
        return word if dotted and (len(word) == 1 or kinds(word) & (TITLE | RANK | PREFIX)) else ""

    def after_nickname(self, k: int) -> bool:
        """Whether word k stands behind a name in quotes or brackets: William "Bill" Thomas."""
        start = self.starts[k]
        return bool(
            k
            and self.capital[k - 1]
            and self.text[start - 2 : start] in NICKNAME_ENDS
            and self.text[self.starts[k - 1] - 1] in NICKNAME_BEGINS
        )

    def opening(self, k: int) -> bool:
        """Whether word k begins a sentence."""
        start = self.starts[k]
        before = self.text[max(0, start - 3) : start].rstrip(" ")
        return not before or before[-1] in ENDERS

    def in_capitals(self, k: int) -> bool:
        """Whether a word beside word k is in capitals too, so that k is not an abbreviation."""
        near = [self.word(n) for n in (k - 1, k + 1) if 0 <= n < len(self.starts)]
        return any(len(word) > 1 and word.isupper() for word in near)

    def capitals_behind(self, k: int) -> list[int]:
        """What the capitalised words directly behind word k may be."""
        found: list[int] = []
        while len(found) < FARTHEST and self.joined[k + 1] and self.capital[k + 1]:
            k += 1
            found.append(kinds(self.word(k)))
        return found

    def before(self, k: int) -> str:
        """The word before word k with a space between, in lower case."""
        return self.word(k - 1).lower() if self.joined[k] else ""

    def behind(self, k: int) -> str:
        """The word behind word k with a space between."""
        return self.word(k + 1) if self.joined[k + 1] else ""
