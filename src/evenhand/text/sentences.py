"""Where the sentences of a running text begin and end."""

from __future__ import annotations

import re

__all__ = ["sentences"]

END = re.compile(r"""[.!?…]+["'”’)\]]*(?=\s)|\n\s*\n""")
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
    """Whether the punctuation found closes a sentence, by what stands before and behind it."""
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
