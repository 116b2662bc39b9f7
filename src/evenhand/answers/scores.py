"""What an instrument measures of each answer."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.statistics.intervals import Floats

BUILT_IN = ("sentiment", "length")
"""The scores that need no other tool."""


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """What is measured of each answer.

    Parameters
    ----------
    values : array (answers)
        NaN where an answer has none.
    name : str
        What a value is called: "the score 'length'".
    share : bool
        Whether values are 0 or 1, so that their mean is a share.
    query : str
        What stands before the groups in the query of a result; nothing where there is one score.
    left_out : tuple of str
        What has no value, and why.
    notes : tuple of str
    truth : array (answers), optional
        What is true of labelled answers, 0 or 1; NaN for all others.

    """

    values: Floats
    name: str
    share: bool = False
    query: str = ""
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    truth: Floats | None = None
