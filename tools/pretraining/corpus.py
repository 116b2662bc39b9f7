"""Reading running text: documents, the held-out ones among them, and sentences.

A text file has one paragraph a line and a blank line between documents; it may be packed with
bzip2, gzip or xz, as its name says.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from evenhand.errors import FileError

HELD_OUT = 200
"""One document in so many is held out for validation."""

_OPENERS: dict[str, Callable[..., IO[str]]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}

_END = re.compile(r"""(?<=[.!?])["')\]]*\s+(?=["'(\[]*[A-Z0-9])""")
_LAST_WORD = re.compile(r"(?<![A-Za-z0-9.])([A-Za-z][A-Za-z.]*)\.$")
_NEXT_WORD = re.compile(r"""["'(\[]*([A-Za-z]+)""")

TITLES = """
    mr mrs ms messrs dr prof rev hon st ste fr capt col gen lt maj sgt cpl cmdr adm gov sen rep
    pres supt mme mlle esq mt ft no nos vol vols fig figs pp pt ch cf ca op ed eds vs viz al rs
    jan feb mar apr jun jul aug sep sept oct nov dec
"""
"""Abbreviations that another word follows: no sentence ends at their full stop."""

ENDERS = "jr sr inc ltd co corp bros dept univ assn ave blvd etc approx"
"""Abbreviations that may end a sentence: one does where a usual first word follows."""

STARTERS = """
    the a an this that these those it its he she they we i you his her their our my there here
    in on at by for from with as when while after before since during although though however
    but and then some many most all both one two each no not if what who why how where
"""
"""Words that begin many sentences and follow few abbreviations."""

_TITLES, _ENDERS, _STARTERS = (frozenset(words.split()) for words in (TITLES, ENDERS, STARTERS))


def documents(paths: Iterable[Path]) -> Iterator[list[str]]:
    """The documents of the files in order, each a list of its paragraphs."""
    for path in paths:
        paragraphs: list[str] = []
        opener: Callable[..., IO[str]] = _OPENERS.get(path.suffix, open)
        try:
            with opener(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    text = line.strip()
                    if text:
                        paragraphs.append(text)
                    elif paragraphs:
                        yield paragraphs
                        paragraphs = []
        except (OSError, UnicodeDecodeError, EOFError, lzma.LZMAError) as problem:
            raise FileError(path, f"expected running text, got: {problem}") from problem
        if paragraphs:
            yield paragraphs


def held_out(document: list[str], one_in: int = HELD_OUT) -> bool:
    """Whether a document is for validation; its text alone decides, so two copies go together.

    >>> held_out(["A text."]) == held_out(["A text."])
    True
    """
    digest = hashlib.blake2b("\n".join(document).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % one_in == 0


def sentences(paragraph: str) -> list[str]:
    r"""The sentences of a paragraph.

    A sentence ends at `.`, `!` or `?`, with the closing quotes and brackets after it, where a
    capital or a digit follows; not after a title, an initial or another abbreviation.

    >>> text = 'Dr. J. B. Low left the U.S. at 5 p.m. It rained. "Why?" he asked.'
    >>> print("\n".join(sentences(text)))
    Dr. J. B. Low left the U.S. at 5 p.m.
    It rained.
    "Why?" he asked.
    """
    found = []
    start = 0
    for match in _END.finditer(paragraph):
        if paragraph[match.start() - 1] == "." and not _ends(paragraph, match):
            continue
        found.append(paragraph[start : match.end()].rstrip())
        start = match.end()
    found.append(paragraph[start:])
    return found


def _ends(paragraph: str, match: re.Match[str]) -> bool:
    """Whether the full stop before a gap ends a sentence rather than an abbreviation."""
    word = _LAST_WORD.search(paragraph, max(0, match.start() - 24), match.start())
    if word is None:
        return True
    name = word[1].lower()
    if name in _TITLES:
        return False
    if len(name) > 1 and "." not in name and name not in _ENDERS:
        return True
    if len(name) == 1 and name != "i" and not match[0].strip():
        return False
    following = _NEXT_WORD.match(paragraph, match.end())
    return following is not None and following[1].lower() in _STARTERS
