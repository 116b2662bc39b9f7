"""Neutral rewriting: singular they with its verbs, neutral titles and neutral nouns."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Literal

from evenhand.arguments import checked
from evenhand.instruments import check_options, documented, option
from evenhand.lexicon import NeutralForm, fixed_phrases, neutral_forms
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.text.agreement import find_agreement
from evenhand.text.block import Block
from evenhand.text.edits import Edit, in_order
from evenhand.text.grammar import Judge, judge
from evenhand.text.rewrite import Rewritten, judge_option, rewrite_all
from evenhand.text.rewrite.readings import inside_name, is_kin_title, is_surname, is_verb
from evenhand.text.rewrite.swap import (
    Phrase,
    by_first_word,
    opens_sentence,
    phrase_after,
    phrase_at,
)
from evenhand.text.tokens import WordIndex, Words, match_case, protected, sentences
from evenhand.text.vocabulary import GRAMMAR

NOUNS = {"roles": ("role",), "all": ("role", "family", "person"), "none": ()}
"""The kinds of neutral forms by choice of nouns."""

TITLES = {"mr": "mx", "mrs": "mx", "ms": "mx", "miss": "mx", "mister": "mx"}
NAME = re.compile(r"\.?\s{1,2}(?:[A-Z]\w|[A-Z]\.)|\.?\s(?:and|&|or)\s(?:Mrs?|Ms|Miss)\b")
NOT_NAMES = re.compile(
    r"\s(?:You|Me|Him|Her|Them|Us|The|My|Your|This|That|It|Out|America|USA|Universe|World|Earth"
    r"|International|Teen|Grand|Saigon)\b"
)
ARTICLE = re.compile(r"\b(an?)([ \t]+[\"'“‘(]?)$", re.IGNORECASE)
CONSONANT = re.compile(r"eu|ew|on(?:e|c)|u(?:ni(?!n|m)|s[aeu]|t[eio]|r[aeio]|k|b)", re.IGNORECASE)
SILENT = re.compile(r"hour|heir|hono|hones", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NeutralNouns:
    """The neutral forms of single words, of phrases by their first word, and where to look."""

    single: dict[str, NeutralForm]
    phrases: dict[str, tuple[Phrase, ...]]
    behind: dict[str, str]
    index: WordIndex

    def change(self, text: str, start: int) -> tuple[str, str, str] | None:
        """The rule, the words at `start` that have a neutral form, and that form."""
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        word = text[start:end]
        if match := phrase_at(text, start, self.phrases.get(word.lower(), ())):
            written, phrase = match
            needed = self.behind.get(phrase.written)  # the word that must stand before
            if needed is None or _word_before(text, start) == needed:
                return phrase.rule, written, phrase_after(written, phrase)
        form = self.single.get(word.lower())
        if form is None or not (word.islower() or _capital_fits(text, start, end, form)):
            return None
        if is_verb(text, start, end):
            return None
        return form.kind, word, match_case(word, form.neutral)


def _word_before(text: str, start: int) -> str:
    return (
        text[max(0, start - 24) : start].rpartition("\n")[2].lower().rstrip(" ").rpartition(" ")[2]
    )


def _capital_fits(text: str, start: int, end: int, form: NeutralForm) -> bool:
    """Whether a word with a capital is the noun of the form and not part of a name.

    What has this meaning in lower case alone takes a capital at the head of a sentence, in the
    plural: "Huntsmen gathered".
    """
    if form.case == "lower":
        plural = form.gendered.endswith(("men", "s"))
        return plural and opens_sentence(text, start, end)
    return not (
        is_surname(text, start, end)
        or inside_name(text, start, end, form.kind)
        or (form.kind == "family" and is_kin_title(text, start, end))
    )


@cache
def nouns(choice: str) -> NeutralNouns:
    """The neutral forms that a choice of nouns applies: roles, all or none.

    >>> nouns("roles").change("a Stewardess", 2)
    ('role', 'Stewardess', 'Flight attendant')
    """
    single: dict[str, NeutralForm] = {}
    phrases: dict[str, Phrase] = {}
    behind: dict[str, str] = {}
    for form in neutral_forms():
        if form.kind not in NOUNS[choice] or not form.safe:
            continue
        if len(Words(form.gendered)) == 1:
            single[form.gendered] = form
            continue
        phrases[form.gendered] = Phrase(form.gendered, form.neutral, form.kind)
        if form.behind:
            behind[form.gendered] = form.behind
    for fixed in fixed_phrases() if choice == "all" else ():
        phrases.setdefault(fixed, Phrase(fixed, fixed, "unchanged"))
    by_first = by_first_word(phrases.values())
    return NeutralNouns(single, by_first, behind, WordIndex({*single, *by_first, *TITLES}))


def title(text: str, start: int, end: int) -> tuple[str, str, str] | None:
    """Mx for a title before a name; "Miss" or "ms" without one is something else.

    >>> title("Miss Bell", 0, 4), title("Miss you", 0, 4), title("40 ms", 3, 5)
    (('title', 'Miss', 'Mx'), None, None)
    """
    word = text[start:end]
    after = TITLES.get(word.lower())
    if after is None:
        return None
    named = NAME.match(text, end) and not NOT_NAMES.match(text, end)
    if word.lower() in ("ms", "miss", "mister") or word in ("MR", "MS"):
        if not named or (word.islower() and word != "ms"):
            return None
        if word in ("MR", "MS", "MISS") and not re.match(r"\.|\s[A-Z]{2}", text[end : end + 3]):
            return None
    return "title", word, match_case(word, after)


def article_edit(text: str, start: int, before: str, after: str) -> Edit | None:
    """The change of "a" or "an" right before a word that is replaced, where its sound requires it.

    >>> article_edit("an alderman", 3, "alderman", "councillor")
    Edit(offset=0, rule='article', before='an', after='a')
    """
    if _vowel(before) == _vowel(after):
        return None
    match = ARTICLE.search(text, max(0, start - 12), start)
    if match is None:
        return None
    article = match.group(1)
    vowel = _vowel(after)
    if (len(article) == 2) == vowel:
        return None
    new = (
        article + ("N" if before.isupper() and article.isupper() else "n") if vowel else article[:1]
    )
    return Edit(match.start(1), "article", article, new)


def _vowel(word: str) -> bool:
    """Whether a word begins with the sound of a vowel."""
    if SILENT.match(word):
        return True
    return word[:1].lower() in "aeiou" and not CONSONANT.match(word)


THEY: Mapping[str, str] = GRAMMAR["they"]
"""Singular they for a pronoun, and for two in alphabetical order, such as he/she."""
SUBJECTS = WordIndex(["he", "she", "hes", "shes"])
FORMS = WordIndex([*PRONOUNS, "hes", "shes"])
APOSTROPHES = frozenset("'’ʼ`´")
CLITIC = re.compile(r" ?['’ʼ`´] ?([sS])(?!\w)")
SECOND = re.compile(
    r"(?: ?/ ?| or | and/or )(hers?|herself|himself|him|his|she|he)\b"
    r"(?:(?:/| or )the(?:y|m|irs?|mself|mselves)\b)?",
    re.IGNORECASE,
)
STATED = re.compile(
    r"(?:she/hers?|he/(?:him|his)|s?he/they|they/s?he)(?:/(?:him|his|hers?|the(?:y|m|irs?)))*",
    re.IGNORECASE,
)
"""Pronouns that are named, not used: "Lee (she/her)"."""
LONGEST_STATED = 40
"""Characters on either side that may belong to pronouns that are named."""
SPANISH = re.compile(r"\s(?:\w{2,}[aií]do|visto|hecho|dicho|puesto|escrito|abierto|vuelto)\b")
"""Words after he where it is the Spanish for "I have"."""
SLASHED = re.compile(r"(?:\bs/|\(s\))$", re.I)


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Neutralize:
    """Pronouns to they, them, their, theirs, with the verbs that agree; titles to Mx; nouns.

    Names stay.

    Examples
    --------
    >>> from evenhand.text.edits import apply
    >>> text = "She says the chairman loves his job, doesn't he?"
    >>> apply(text, Neutralize()(Block.of_lines(text)))
    "They say the chair loves their job, don't they?"

    """

    nouns: Literal["roles", "all", "none"] = option(
        "roles",
        help="roles: chairman → chair; all: also mother → parent, man → person; none: pronouns and "
        "titles only.",
    )
    reflexive: Literal["themself", "themselves"] = option(
        "themself", help="What himself and herself become."
    )
    judge: str = judge_option()

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, block: Block) -> list[Edit]:
        """The edits of a block."""
        text = block.text
        block_words = Words(text)
        table = nouns(self.nouns)
        edits = list(_pronouns(text, block_words, judge(self.judge), self.reflexive))
        edits += _agreeing(block, block_words)
        edits += _noun_edits(text, block_words, table)
        return in_order(edits)


def _pronouns(text: str, block_words: Words, grammar: Judge, reflexive: str) -> Iterator[Edit]:
    """Pronouns and what hangs on them by an apostrophe."""
    starts, ends = FORMS.find(block_words)
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < done or _stays(text, start, end):
            continue
        lower = text[start:end].lower()
        pair = _pair(text, lower, end)
        stop = pair[1] if pair else end
        if protected(text, start, stop):
            continue
        after = pair[0] if pair else _single(text, start, end, lower, grammar)
        if after == "they" and text[start - 1 : start] in ("/", ")"):
            prefix = SLASHED.search(text, max(done, start - 3), start)
            start = prefix.start() if prefix else start
        if after == "themself":
            after = reflexive
        word = text[start:stop]
        if not word.islower():
            after = match_case(word.lstrip("(")[0] + word[-1], after)
        yield Edit(start, "pronoun", word, after)
        done = stop
        if after.lower() == "they":
            yield from _contraction(text, start, stop, grammar)


def _single(text: str, start: int, end: int, lower: str, grammar: Judge) -> str:
    """The replacement of the pronoun at text[start:end]."""
    if lower == "her":
        if text[end : end + 1] in APOSTROPHES:
            return "their"  # her's, for hers
        return "their" if grammar.her_is_possessive(text, start, end) else "them"
    if lower == "his":
        return "their" if grammar.his_is_determiner(text, start, end) else "theirs"
    if lower in ("hes", "shes"):
        return "theyre" if grammar.contraction(text, start, end - 2) == "is" else "theyve"
    return THEY[lower]


def _contraction(text: str, start: int, end: int, grammar: Judge) -> Iterator[Edit]:
    """The 's after a pronoun that ends at `end`; tokenisers write "he 's" and "he ' s"."""
    match = CLITIC.match(text, end)
    if match is not None:
        clitic = match[1]
        after = "re" if grammar.contraction(text, start, match.end() - 2) == "is" else "ve"
        yield Edit(match.start(1), "contraction", clitic, match_case(clitic * 2, after))


def _pair(text: str, first: str, end: int) -> tuple[str, int] | None:
    """The replacement of "he or she", "him/her" and similar pairs, and their end."""
    if text[end : end + 1] not in (" ", "/"):
        return None
    second = SECOND.match(text, end)
    if second is None:
        return None
    after = THEY.get("/".join(sorted((first, second.group(1).lower()))))
    return None if after is None else (after, second.end())


def _stays(text: str, start: int, end: int) -> bool:
    """What is written like a pronoun and is none: she-wolf, "Lee (she/her)", (He), "he visto"."""
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if before == "/" or after == "/":
        return _stated(text, start, end)
    if before == "-" and text[max(start - 2, 0)].isalpha():
        return True
    if after == "-":
        return text[end + 1 : end + 2].isalpha()
    if end - start != 2:
        return False
    symbol = before == "(" and text[start : end + 1] == "He)"
    return symbol or (after == " " and SPANISH.match(text, end) is not None)


def _stated(text: str, start: int, end: int) -> bool:
    """Whether the pronoun is one of several that are named with strokes between."""
    first, last = max(0, start - LONGEST_STATED), min(len(text), end + LONGEST_STATED)
    while start > first and (text[start - 1].isalpha() or text[start - 1] == "/"):
        start -= 1
    while end < last and (text[end].isalpha() or text[end] == "/"):
        end += 1
    return STATED.fullmatch(text, start, end) is not None


def _agreeing(block: Block, block_words: Words) -> Iterator[Edit]:
    """The verbs of he and she, sentence by sentence."""
    starts, ends = SUBJECTS.find(block_words)
    text = block.text
    owners = block.owner(starts).tolist()
    spans = zip(owners, starts.tolist(), ends.tolist(), strict=True)
    for index, group in groupby(spans, key=itemgetter(0)):
        begin, _ = block.span(index)
        inside = [
            start - begin
            for _, start, end in group
            if not _stays(text, start, end) and not protected(text, start, end)
        ]
        if inside:
            yield from _document(block.document(index), begin, inside)


def _document(document: str, begin: int, subjects: list[int]) -> Iterator[Edit]:
    """The verbs of the subjects at the given places of one document."""
    for start, end in sentences(document):
        if bisect_left(subjects, start) == bisect_left(subjects, end):
            continue
        for offset, before, after in find_agreement(document, start, end):
            if not protected(document, offset, offset + len(before)):
                yield Edit(begin + offset, "agreement", before, after)


def _noun_edits(text: str, block_words: Words, table: NeutralNouns) -> Iterator[Edit]:
    """Titles and nouns, with the article before a noun where its form changes."""
    starts, ends = table.index.find(block_words)
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < done or protected(text, start, end):
            continue
        change = title(text, start, end) or table.change(text, start)
        if change is None:
            continue
        rule, before, after = change
        done = start + len(before)
        if rule == "unchanged":
            continue
        if rule != "title" and (article := article_edit(text, start, before, after)):
            yield article
        yield Edit(start, rule, before, after)


@checked
def neutralize(
    document: str,
    *,
    nouns: Literal["roles", "all", "none"] = "roles",
    reflexive: Literal["themself", "themselves"] = "themself",
    judge: str = "embedded",
) -> Rewritten:
    """Rewrite a document with singular they and its verbs, neutral titles and neutral roles.

    Parameters
    ----------
    document : str
    nouns, reflexive, judge
        As for `Neutralize`.

    Returns
    -------
    Rewritten
        The neutral text and the edits.

    Examples
    --------
    >>> neutralize("She runs and sings.").text
    'They run and sing.'

    """
    chosen = Neutralize(nouns=nouns, reflexive=reflexive, judge=judge)
    return rewrite_all([document], chosen)[0]
