"""Negating a sentence: its main verb is negated, or the negation that it has is removed.

The first finite verb of the main clause is found by the tagger. After an auxiliary "not" is
inserted; a full verb takes "do", "does" or "did". A sentence whose verb is not found, or has no
known base form, is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from evenhand.arguments import checked
from evenhand.text.edits import Edit, apply
from evenhand.text.rewrite import Rewritten
from evenhand.text.tagger import tag
from evenhand.text.tokens import match_case, tokenize
from evenhand.text.vocabulary import (
    LISTS,
    inflections,
    past_bases,
    plain_form,
    verb_forms,
    word_set,
)

AUXILIARIES = LISTS["auxiliaries"]
HAVE = {"have": "do", "has": "does", "had": "did"}
DO = word_set("do does did")
NOT_FINITE = word_set("be been being having")
CONTRACTED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is", "cannot": "can"}
"""Forms that remain without n't or not and are no words."""
NEGATIONS = word_set("n't not never")
ASKING = word_set("who which whose")
"""The first words of questions in which the verb follows its subject."""
ADVERBS = word_set("always often usually still also just really currently")
OPENING = LISTS["opening"]
"""Words that open a clause or a phrase before the main clause, which begins after a comma."""


@checked
def negate(sentence: str, *, simple: bool = False) -> Rewritten | None:
    """Negate a sentence, or remove its negation; None where its main verb is not found.

    Parameters
    ----------
    sentence : str
    simple : bool
        Only sentences with one finite verb, so that all that they say is negated; None for others.

    Returns
    -------
    Rewritten or None
        The new text and its edit.

    Examples
    --------
    >>> for text in ("The cook is kind.", "She always sang.", "He can't swim.", "Who eats fish?"):
    ...     print(negate(text))
    The cook is not kind.
    She did not always sing.
    He can swim.
    Who does not eat fish?

    """
    tokens, starts = tokenize(sentence)
    if not tokens:
        return None
    lower = [token.lower().replace("’", "'") for token in tokens]
    if lower[-1] == "?" and lower[0] not in ASKING:
        return None
    tags = tag(tokens)
    verb = _main_verb(lower, tags)
    if verb is None or (simple and finite_verbs(lower, tags) > 1):
        return None
    edit = _negation(sentence, tokens, starts, lower, verb)
    return None if edit is None else Rewritten(apply(sentence, [edit]), (edit,))


def _main_verb(lower: Sequence[str], tags: Sequence[str]) -> int | None:
    """The first finite verb of the main clause.

    A clause before it that opens the sentence ends with a comma; each relative or subordinating
    word within the subject takes one verb.
    """
    begin = lower.index(",") + 1 if lower[0] in OPENING and "," in lower else 0
    others = 0
    skip = False  # whether the next verb belongs to an auxiliary that was passed over
    for i in range(begin, len(lower)):
        if tags[i] in "RS" and i > begin:
            others += 1
        elif _is_finite(lower, tags, i):
            if skip and tags[i] == "V":
                skip = False
            elif others:
                others -= 1
                skip = tags[i] in "AM"
            else:
                return i
    return None


def _is_finite(lower: Sequence[str], tags: Sequence[str], i: int) -> bool:
    """Whether a word is a finite verb; the tagger takes "like" for a preposition."""
    if i and lower[i] == "like":
        return lower[i - 1] in ("i", "you", "we", "they")
    after_to = i > 0 and tags[i - 1] == "T"
    return tags[i] in "AMV" and lower[i] not in NOT_FINITE and not after_to


def finite_verbs(lower: Sequence[str], tags: Sequence[str]) -> int:
    """The number of finite verbs; an auxiliary and the verb after it are one."""
    count, helped = 0, False
    for i in range(len(lower)):
        if _is_finite(lower, tags, i):
            count += not (helped and tags[i] in "AV")
            helped = tags[i] in "AM"
        else:
            helped = helped and tags[i] == "B"
    return count


def _negation(
    text: str, tokens: Sequence[str], starts: Sequence[int], lower: Sequence[str], i: int
) -> Edit | None:
    """The edit that negates the verb, or removes its negation."""
    begin, end = starts[i], starts[i] + len(tokens[i])
    after = lower[i + 1] if i + 1 < len(lower) else ""
    if after in NEGATIONS:
        end = starts[i + 1] + len(tokens[i + 1])
        positive = CONTRACTED.get(lower[i], lower[i])
        return Edit(begin, "affirm", text[begin:end], match_case(tokens[i], positive))
    if lower[i] == "cannot":
        return Edit(begin, "affirm", tokens[i], match_case(tokens[i], "can"))
    if i and lower[i - 1] == "never":
        return Edit(starts[i - 1], "affirm", text[starts[i - 1] : begin], "")
    forms = verb_forms()
    following = next((word for word in lower[i + 1 :] if not word.endswith("ly")), "")
    helps = (
        lower[i] in AUXILIARIES
        or (lower[i] in HAVE and (forms.get(following) == "past" or following == "been"))
        or (lower[i] in DO and forms.get(following) == "base")
    )
    if helps:
        return Edit(begin, "negate", tokens[i], f"{tokens[i]} not")
    full = _full_verb(lower[i])
    if full is None:
        return None
    helper, base = full
    first = i  # adverbs between subject and verb follow the helper
    while first > 1 and lower[first - 1] in ADVERBS:
        first -= 1
    start = starts[first]
    between = text[start:begin]
    return Edit(start, "negate", text[start:end], f"{helper} not {between}{base}")


@cache
def _regular() -> dict[str, str]:
    """The base form of regular past tenses."""
    bases = [word for word, form in verb_forms().items() if form == "base"]
    return {form: base for base in bases for form, kind in inflections(base) if kind == "past"}


def _full_verb(verb: str) -> tuple[str, str] | None:
    """The form of "do" that a full verb takes, and its base form; None where it is not known."""
    if verb in HAVE:
        return HAVE[verb], "have"
    if verb in DO:
        return verb, "do"
    if verb in past_bases():
        return "did", past_bases()[verb]
    form = verb_forms().get(verb, "s" if verb.endswith("s") else "past")
    if form == "s":
        return "does", plain_form(verb)
    if form == "base":
        return "do", verb
    return ("did", _regular()[verb]) if verb in _regular() else None
