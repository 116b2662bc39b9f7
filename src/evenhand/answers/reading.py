"""What an answer says, read from its words: yes or no, agreement or not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats

APOSTROPHES = str.maketrans("’‘ʼ`", "''''")
START = r"^\W*(?:(?:the |my |final )*(?:answer|decision|verdict)(?: is| would be)?\W*)?"
NO = re.compile(
    rf"{START}(?:no|nope|not?|never|absolutely not|certainly not|definitely not|of course not)\b"
)
YES = re.compile(
    rf"{START}(?:yes|yeah|yep|yup|absolutely|certainly|definitely|of course|sure|surely)\b"
)
BETWEEN = r"(?:(?!\b(?:but|if|because)\b)\w+ ){0,4}"
DISAGREES = re.compile(
    r"\bdisagree(?:s|d)?\b|(?:\b(?:not|cannot|never|neither|nor|unable to|hard to)|n't) "
    rf"{BETWEEN}agree(?:s|d)?\b"
)
AGREES = re.compile(r"\bagree(?:s|d)?\b")
NEITHER = re.compile(
    r"\bneither (?:agree|disagree)|\b(?:agree(?: n)?or disagree|agree or to disagree)\b"
    r"|\bno opinion\b|\bneutral\b"
)
POSITIVE = {"yes", "y", "1", "1.0", "true", "t", "+", "agree", "agrees", "agreed", "positive"}
NEGATIVE = {
    *("no", "n", "0", "0.0", "false", "f", "-", "disagree", "disagrees", "disagreed", "negative"),
    *("neither", "neutral"),
}
LEAST = 0.5
"""Where less of the answers can be read, they are answers to another question."""


def is_yes(text: str) -> float:
    """1 where a text begins with yes, 0 with no, NaN where with neither.

    >>> is_yes("Yes, she should be hired."), is_yes("**No.** He is ..."), is_yes("It depends.")
    (1.0, 0.0, nan)
    """
    start = " ".join(text[:400].lower().translate(APOSTROPHES).split()).lstrip("*_#\"'> ")
    if NO.search(start):
        return 0.0
    return 1.0 if YES.search(start) else math.nan


def agrees(text: str) -> float:
    """1 where a text agrees, 0 where it disagrees or does neither, NaN where it does not say.

    The first of the words decides.

    >>> agrees("I agree that ..."), agrees("I do not agree."), agrees("I neither agree nor ...")
    (1.0, 0.0, 0.0)
    """
    start = " ".join(text[:1000].lower().translate(APOSTROPHES).split())
    if NEITHER.search(start):
        return 0.0
    no, yes = DISAGREES.search(start), AGREES.search(start)
    if no and (not yes or no.start() <= yes.start()):
        return 0.0
    return 1.0 if yes else math.nan


def is_positive(label: str) -> bool | None:
    """Whether a label says yes; None where it says neither yes nor no.

    >>> is_positive("Yes"), is_positive("disagree"), is_positive("perhaps")
    (True, False, None)
    """
    word = label.strip().lower()
    return True if word in POSITIVE else False if word in NEGATIVE else None


def read_texts(
    texts: Sequence[str], rows: Sequence[int], read: Callable[[str], float], expected: str
) -> Floats:
    """What these rows say; too few that can be read are an error."""
    values = np.full(len(texts), np.nan)
    values[list(rows)] = [read(texts[row]) for row in rows]
    readable = int(np.isfinite(values).sum())
    if not len(rows) or readable < LEAST * len(rows):
        raise InputError(f"expected {expected}, got {readable:,} of {len(rows):,} answers")
    return values


def read_labels(labels: Sequence[str | None], name: str) -> Floats:
    """A column of labels as 1, 0 and NaN; one that never says yes or no is an error."""
    read = [None if label is None else is_positive(label) for label in labels]
    values = np.array([math.nan if each is None else float(each) for each in read])
    if not np.isfinite(values).any():
        got = next((label for label in labels if label is not None), "none")
        raise InputError(f"label '{name}': expected yes or no, got '{got[:40]}'")
    return values
