"""Verbs that stand before their subject: "Is she", "so does he", "what's he", "says she"."""

from __future__ import annotations

from collections.abc import Container

from evenhand.text.grammar.tagging import BREAKS, Tagged
from evenhand.text.grammar.verbs import forms
from evenhand.text.grammar.words import FRONTED, word_set

__all__ = ["ASKING", "asking", "inverted"]

ASKING = word_set("what's who's where's how's when's why's")
PARTICIPLES = word_set(
    "been gone got done had said told seen taken made become given come gotten brought"
)
PLAIN = word_set("want need think mean say know do have care see get expect")
"""Verbs before which the 's of a question is short for does."""
ENDS = frozenset({"", ".", ",", "!", "?", "I", "O", "”", '"', ";"})


def inverted(sentence: Tagged, i: int, last: int, taken: Container[int]) -> bool:
    """Whether the word before the pronoun at i … last is its verb and not another's (`taken`).

    >>> question = Tagged("Why is he here?", 0, 15)
    >>> statement = Tagged("The thing is he lies.", 0, 21)
    >>> inverted(question, 2, 2, ()), inverted(statement, 3, 3, ())
    (True, False)
    """
    j = i - 1
    tag = sentence.tag(j)
    if tag == "Z":
        return _reporting(sentence, j, last)
    if tag != "V" or j in taken:
        return False
    lead = sentence.tag(j - 1)
    which = sentence.word(j - 1) == "one" and sentence.tag(j - 2) == "R"
    if (lead in ("T", "N") and not which) or sentence.word(j - 1) == "that":
        return False  # "It was he", "this is she"
    following = sentence.after(last)
    if lead in BREAKS or lead == "S":
        return sentence.tag(following) != "V" or lead == ""
    if lead == "R":
        return True
    if sentence.finite(following):
        return False  # "The thing is she lies"
    if sentence.words[j].startswith(("does", "has")):
        return True
    if lead == "Z" and forms().odds.get(sentence.words[j - 1], -9.0) > -3:
        return False  # "What matters is she tried"
    head = sentence.clause_head(j - 1)
    if head == j - 1 or sentence.word(head) in FRONTED:
        return True
    return not sentence.past(following)


def _reporting(sentence: Tagged, j: int, last: int) -> bool:
    """A verb of saying between a quotation and its subject."""
    behind_quote = j == 0 or sentence.tag(j - 1) in (",", "“", "”", '"')
    quoted = sentence.tag(j - 1) in ("“", "”", '"')
    verb = forms().odds.get(sentence.words[j], -9.0) > (-3 if quoted else 2)
    return (
        behind_quote
        and verb
        and sentence.raw[j].islower()
        and sentence.tag(sentence.after(last)) in ENDS
    )


def asking(sentence: Tagged, i: int, last: int) -> str | None:
    """What the 's before the pronoun at i … last becomes; None where there is no such 's.

    >>> asking(Tagged("What's she doing?", 0, 17), 1, 1)
    "'re"
    >>> asking(Tagged("What's he want?", 0, 15), 1, 1)
    ' do'
    """
    if sentence.word(i - 1) not in ASKING:
        return None
    following = sentence.word(sentence.after(last))
    if following in PLAIN and sentence.word(i - 1) != "who's":
        return " do"
    return "'ve" if following in PARTICIPLES else "'re"
