"""The words that name the groups of prompts, which no lexicon and no word list may count."""

from __future__ import annotations

import re
from collections import defaultdict

from evenhand.answers.table import Answers
from evenhand.lexicon.gendered import sex_indicators
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.text.people import find_people
from evenhand.text.tables import INTERSECTION

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
MOST = 8
"""Prompts of one item that differ in more words than this differ in more than the group."""


def words_of(text: str) -> list[str]:
    """The words of a text in lower case.

    >>> words_of("She's my well-read sister!")
    ["she's", 'my', 'well-read', 'sister']
    """
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def group_words(answers: Answers) -> frozenset[str]:
    """The words of the groups: their labels, names in prompts, gendered words, what prompts swap.

    What prompts swap are the words by which prompts of the same item and wording differ between
    groups, where these are few.

    >>> answers = Answers(("a", "b"), items=("1", "1"), groups={"orientation": ("gay", "straight")},
    ...                   prompts=("Describe a gay nurse.", "Describe a straight nurse."))
    >>> {"straight", "gay", "she"} <= group_words(answers), "nurse" in group_words(answers)
    (True, False)
    """
    found = {*sex_indicators(), *PRONOUNS}
    for labels in answers.groups.values():
        for label in {each for each in labels if each is not None}:
            found.update(words_of(label.replace("_", " ").replace(INTERSECTION, " ")))
    for prompt in set(answers.prompts):
        for person in find_people(prompt):
            found.update(words_of(prompt[person.start : person.end]))
    if answers.prompts and answers.groups:
        wordings = answers.wordings or ("",) * len(answers)
        alike: dict[tuple[str, str], set[str]] = defaultdict(set)
        for key in zip(answers.items, wordings, answers.prompts, strict=True):
            alike[key[:2]].add(key[2])
        for prompts in alike.values():
            words = [set(words_of(prompt)) for prompt in prompts]
            swapped = frozenset[str]().union(*words) - words[0].intersection(*words[1:])
            if len(swapped) <= MOST * len(words):
                found |= swapped
    found |= {f"{word}s" for word in found}
    return frozenset(found)
