"""Pro- and anti-stereotypical versions of a labelled corpus (El Zein 2021, §4.1.3 and §5.3).

Where a class leans to a gender, the pro-stereotypical corpus has all its texts about persons of
that gender, and the anti-stereotypical corpus about persons of the other: texts that are not are
swapped. Texts of classes that lean nowhere, and of persons whose gender is unknown, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Unpack

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.statistics.odds import LeaningRule, class_leanings
from evenhand.text.rewrite import Rewritten, rewrite_all, takes_options
from evenhand.text.rewrite.swap import Swap, SwapWords

Version = Literal["pro", "anti"]
GENDERS = ("male", "female")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are rewritten: those whose gender is not the one that the version calls for.

    Parameters
    ----------
    version : {"pro", "anti"}
    leaning : Mapping of str to str
        The gender that each class leans to, male or female; classes that lean nowhere are absent.
    codes : Mapping of str to str
        The values of the gender column in lower case, and what they mean: male or female.

    Examples
    --------
    >>> chosen = Selection("pro", {"nurse": "female"}, {"m": "male", "f": "female"})
    >>> chosen.reason("nurse", "M"), chosen.reason("nurse", "F"), chosen.reason("cook", "M")
    ('', 'as it should be', 'class without a leaning')

    """

    version: Version
    leaning: Mapping[str, str]
    codes: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        if self.version not in ("pro", "anti"):
            raise InputError(f"direction: expected pro or anti, got '{self.version}'")

    def reason(self, label: str, gender: str) -> str:
        """Why a record stays as it is; empty where it is rewritten."""
        known = self.codes.get(gender.strip().casefold())
        if known is None:
            return "unknown gender"
        leaning = self.leaning.get(label.strip())
        if leaning is None:
            return "class without a leaning"
        return "" if (known == leaning) == (self.version == "anti") else "as it should be"


def leanings(
    men: Mapping[str, int], women: Mapping[str, int], by: LeaningRule = "odds"
) -> dict[str, str]:
    """The classes that lean, and the gender each leans to, from the counts of their texts.

    >>> leanings({"nurse": 10, "pilot": 90, "cook": 50}, {"nurse": 90, "pilot": 10, "cook": 50})
    {'nurse': 'female', 'pilot': 'male'}
    """
    names = sorted({*men, *women})
    sides = class_leanings(
        [men.get(name, 0) for name in names], [women.get(name, 0) for name in names], by
    )
    return {name: side for name, side in zip(names, sides, strict=True) if side in GENDERS}


@takes_options(Swap, without=("direction", "probability"), names="random")
@checked
def stereotype(
    texts: Sequence[str],
    labels: Sequence[str],
    genders: Iterable[object],
    version: Version,
    *,
    leaning: LeaningRule | Mapping[str, str] = "odds",
    **options: Unpack[SwapWords],
) -> list[Rewritten]:
    """The pro- or anti-stereotypical version of labelled texts.

    Parameters
    ----------
    texts, labels, genders : sequences
        The texts, the class of each, and the gender of the person it is about: M or F, male or
        female; others are unknown.
    version : {"pro", "anti"}
    leaning : {"odds", "point", "share"} or Mapping
        How the gender that a class leans to is determined from these texts; or it is given by
        class.
    names, seed, keep_named, kinds, unsafe, pairs, judge
        As for `Swap`; El Zein (2021) draws the new names at random.

    Returns
    -------
    list of Rewritten
        One per text; texts that stay have no edits.

    Examples
    --------
    >>> texts = ["He sings.", "She sings."]
    >>> made = stereotype(texts, ["nurse"] * 2, ["M", "F"], "pro", leaning={"nurse": "female"})
    >>> [str(text) for text in made]
    ['She sings.', 'She sings.']

    """
    codes = {"m": "male", "male": "male", "man": "male"}
    codes |= {"f": "female", "female": "female", "woman": "female"}
    persons = ["" if gender is None else str(gender) for gender in genders]
    if not len(texts) == len(labels) == len(persons):
        counts = f"{len(texts)}, {len(labels)} and {len(persons)}"
        raise InputError(f"expected as many texts, labels and genders, got {counts}")
    if isinstance(leaning, str):
        counted: dict[str, dict[str, int]] = {side: {} for side in GENDERS}
        for label, person in zip(labels, persons, strict=True):
            if side := codes.get(person.strip().casefold()):
                counted[side][label] = counted[side].get(label, 0) + 1
        leaning = leanings(counted["male"], counted["female"], leaning)
    chosen = Selection(version, leaning, codes)
    rewritten = rewrite_all(texts, Swap(**options))
    return [
        Rewritten(text, ()) if chosen.reason(label, person) else changed
        for text, label, person, changed in zip(texts, labels, persons, rewritten, strict=True)
    ]
