"""The tokens of a sentence and their parts of speech."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache

from evenhand.text.vocabulary import (
    ADVERBIALS,
    ADVERBS_IN_S,
    AGREEING,
    FUNCTION_WORDS,
    PRONOUNS,
    TAGS,
    UNCLEAR_PASTS,
    nouns,
    shape,
    verb_forms,
    verb_table,
    word_set,
)

TOKEN = re.compile(r"\d+(?:[.,:]\d+)*\w*|[@#]?\w+(?:['’-]\w+)*|--+|[^\w\s]")
SUBJECT_FORMS = frozenset({"he", "she", "hes", "shes"})
MARKS = frozenset(',;:()—–-“”"?!./')
BREAKS = frozenset({"", "C", ",", "“", "”", '"', "—", "–", "-", "--", ":", ";", "(", "?", "!", "."})
"""Tags of what a clause may begin behind."""
UNKNOWN_ODDS = -3.0
"""Log odds of a word in -s that is not in the table of verbs."""


@lru_cache(maxsize=1 << 16)
def _known(raw: str) -> tuple[str, str]:
    """A token in lower case and its tag."""
    word = raw.lower().replace("’", "'")
    tag = TAGS.get(word)
    if tag is not None:
        return word, tag
    if word in AGREEING:
        return word, "V"
    head, apostrophe, _ = word.partition("'")
    if head in SUBJECT_FORMS:
        return word, "P"
    if not word[0].isalpha():
        return word, word[:2] if word[0] in MARKS else "x"
    if word[-1] == "s" and len(word) > 2 and not apostrophe:
        plain = word in ADVERBS_IN_S or word.endswith(("ss", "ous"))
        return word, "x" if plain else "Z"
    if word.endswith("ly"):
        return word, "A"
    return word, "e" if word.endswith("ed") else "x"


class Tagged:
    """The tokens of text[start:end] with their tags: those of `words`, and

    P  he or she, perhaps with 's, 'll, 'd       V  auxiliary in the third person singular
    Z  any other word that may be a verb in -s   e  word in -ed
    x  any other word; a mark of punctuation is a tag of its own.

    >>> Tagged("He barks, she said.", 0, 19).tags
    ['P', 'Z', ',', 'P', 'x', '.']
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.raw = TOKEN.findall(text, start, end)
        known = [_known(raw) for raw in self.raw]
        self.words = [word for word, _ in known]
        self.tags = [tag for _, tag in known]
        if not ADVERBIALS.keys().isdisjoint(self.words):
            self._find_adverbials()

    def _find_adverbials(self) -> None:
        words = self.words
        for i in [i for i, word in enumerate(words) if word in ADVERBIALS]:
            for place, phrase in ADVERBIALS[words[i]]:
                start = i - place
                if start >= 0 and words[start : start + len(phrase)] == phrase:
                    self.tags[start : start + len(phrase)] = "A" * len(phrase)

    @cached_property
    def offsets(self) -> list[int]:
        """Where in the text each token begins."""
        return [match.start() for match in TOKEN.finditer(self.text, self.start, self.end)]

    def tag(self, i: int) -> str:
        """The tag at i; nothing beyond the ends."""
        return self.tags[i] if 0 <= i < len(self.tags) else ""

    def word(self, i: int) -> str:
        """The word at i in lower case; nothing beyond the ends."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def before(self, i: int) -> int:
        """The place of the last word before i that is not an adverb; -1 where there is none."""
        i -= 1
        while i >= 0 and self.tags[i] == "A":
            i -= 1
        return i

    def after(self, i: int) -> int:
        """The place of the first word after i that is not an adverb."""
        i += 1
        while i < len(self.tags) and self.tags[i] == "A":
            i += 1
        return i

    def plural_before(self, i: int) -> bool:
        """Whether the subject before i is a pronoun that takes neither is nor was."""
        lead = self.before(i)
        return self.tag(lead) == "N" and self.words[lead] != "i"

    def odds(self, i: int) -> float:
        """Log odds that the -s word at i is a verb, by the word and its two neighbours."""
        table = verb_table()
        score = table.odds.get(self.words[i], UNKNOWN_ODDS)
        for place, context in ((i - 1, table.before), (i + 1, table.after)):
            raw = self.raw[place] if 0 <= place < len(self.raw) else "."
            known = context.get(self.word(place) or ".")
            score += context.get(shape(raw), 0.0) if known is None else known
        return score

    def named(self, i: int) -> bool:
        """Whether the word at i is written like a name: a capital and small letters."""
        return self.raw[i][0].isupper() and not self.raw[i].isupper()

    def finite(self, i: int) -> bool:
        """Whether the word at i is surely a finite verb."""
        tag = self.tag(i)
        return tag in ("V", "M", "E") or (tag == "Z" and self.odds(i) > 0)

    def past(self, i: int) -> bool:
        """Whether the word at i is a past tense, a participle or what looks the same."""
        return self.tag(i) in ("E", "e") or self.word(i) in UNCLEAR_PASTS

    def clause_head(self, i: int) -> int:
        """The first word of the clause that holds i."""
        while i > 0 and self.tags[i - 1] not in BREAKS:
            i -= 1
        return max(i, 0)

    def opens_clause(self, i: int) -> bool:
        """Whether the words before i are a conjunction and a noun: "as his car hits the wall"."""
        j = i - 1
        while j > 0 and self.tags[j] in ("x", "D", "A"):
            j -= 1
        return i - j > 1 and self.tags[i - 1] == "x" and self.tags[j] == "S"

    def list_goes_on(self, i: int) -> bool:
        """Whether a verb stands later behind a comma or a conjunction."""
        for j in range(i + 1, len(self.tags) - 1):
            if self.tags[j] in ("C", ","):
                k = self.after(j)
                if self.tag(k) == "C":
                    k = self.after(k)
                if self.tag(k) in ("V", "M") or self.past(k):
                    return True
                if self.tag(k) == "Z" and self.odds(k) > -4:
                    return True
        return False

    def verb_ahead(self, i: int, reach: int = 5) -> bool:
        """Whether a clear verb in -s stands within a few words that hold no other clause."""
        for j in range(i + 1, min(i + reach, len(self.tags))):
            tag = self.tags[j]
            if tag == "V" or (tag == "Z" and self.odds(j) > 1 and not self.named(j)):
                return True
            if tag not in ("D", "x", "I", "A", "Z", "S"):
                return False
        return False


SPLIT_TOKEN = re.compile(
    r"[^\W_]+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|[^\W_]+(?:[-‐][^\W_]+)*\.?(?:[^\W_]\.)*"
    r"|[^\w\s]|_"
)
ABBREVIATIONS = word_set("mr mrs ms mx dr st prof rev sgt lt capt col gen jr sr")
SUBJECTS = word_set("he she they i we you who")
PARTICLES = word_set("up down out off over")
ADVERB = re.compile(r".{2,}ly$")
NOT_ADVERBS = word_set(
    "elderly friendly lonely lovely only early daily ugly silly family belly ally bully jelly fly "
    "reply supply apply rely ply lily rally"
)
ADJECTIVES = word_set(
    "small big large little long short tall high low young old new right left own good bad great "
    "white black red blue green brown gray grey dark bright pale thin thick fat wide narrow deep "
    "empty full open bare wet dry hot cold warm cool soft hard heavy light fast slow strong weak "
    "rich poor poor happy sad angry tired sick dead free clean dirty fresh sweet sharp smooth "
    "rough loud quiet early late first second last next other same different several many few "
    "military political personal private public national local main final whole entire"
)
UNCHANGED = word_set("set put cut hit shut spread hurt let split burst quit read")
SUFFIXED = re.compile(r"(?:ed|ing|[^suio]s)$")


def tokenize(sentence: str) -> tuple[list[str], list[int]]:
    """The tokens of a sentence and where each begins.

    >>> tokenize("The guard's dog isn't his.")[0]
    ['The', 'guard', "'s", 'dog', 'is', "n't", 'his', '.']
    """
    words: list[str] = []
    starts: list[int] = []
    for found in SPLIT_TOKEN.finditer(sentence):
        word = found.group()
        words.append(word)
        starts.append(found.start())
        if (
            len(word) > 1
            and word.endswith(".")
            and not (word.count(".") > 1 or word[:-1].lower() in ABBREVIATIONS or len(word) == 2)
        ):
            words[-1] = word[:-1]
            words.append(".")
            starts.append(found.end() - 1)
    if words and len(words[-1]) == 2 and words[-1].endswith(".") and words[-1][0].islower():
        words[-1:] = [words[-1][0], "."]
        starts.append(starts[-1] + 1)
    return words, starts


def tag(tokens: Sequence[str]) -> list[str]:
    """A tag for each token.

    >>> "".join(tag("The dancer waves and shakes her hips .".split()))
    'DWVCVHWX'
    """
    lower = [word.lower().replace("’", "'") for word in tokens]
    tags = [_first(word, low, k) for k, (word, low) in enumerate(zip(tokens, lower, strict=True))]
    for k, low in enumerate(lower):
        if low == "'s":
            tags[k] = _clitic(tags, k)
        elif (
            low == "that"
            and k + 1 < len(tags)
            and ((k == 0 or tags[k - 1] in "PC") and tags[k + 1] not in "DHO")
        ):
            tags[k] = "D"
        elif tags[k] in "?V":
            tags[k] = _verb(tokens, lower, tags, k)
    for k, low in enumerate(lower):
        if low in ("before", "after", "since", "until", "as") and not _has_verb(tags, k + 1):
            tags[k] = "P"
    return tags


def _first(word: str, low: str, place: int) -> str:
    """The tag of a word by itself; `?` where it may be a verb."""
    if low in PRONOUNS:
        return "H"
    if low in FUNCTION_WORDS:
        return FUNCTION_WORDS[low]
    if word == ",":
        return ","
    if not word[0].isalnum():
        return "X"
    if word[0].isdigit():
        return "N"
    if word[0].isupper() and place:
        return "Z"
    if ADVERB.search(low) and low not in NOT_ADVERBS:
        return "B"
    if low in verb_forms() or (len(low) > 4 and SUFFIXED.search(low)):
        return "?"
    return "W"


def _clitic(tags: list[str], k: int) -> str:
    """Whether 's is a genitive: after a noun, unless a word that only follows "is" comes next."""
    before = tags[k - 1] if k else "X"
    after = tags[k + 1] if k + 1 < len(tags) else "X"
    return "A" if before in "HORS" or after in "DTH" else "K"


def _verb(tokens: Sequence[str], lower: list[str], tags: list[str], k: int) -> str:
    """The tag of what may be a verb, by its form and by the words before and after it."""
    before = tags[k - 1] if k else "^"
    after = tags[k + 1] if k + 1 < len(tags) else "X"
    previous = lower[k - 1] if k else ""
    following = lower[k + 1] if k + 1 < len(lower) else ""
    form = _form(lower[k])
    if before == "X" and tokens[k - 1] in "-–":
        return "W"
    possessive = before == "H" and previous in ("his", "her")
    helped = before in "MAT" or (before == "B" and k > 1 and tags[k - 2] in "MAT")
    if form == "ing":
        return "W" if before in "DK" or (possessive and after in "W?AM") else "G"
    if before in "DK":
        return "W" if form != "past" or after in "W?Z" else "E"
    if form == "past":
        if lower[k] in UNCHANGED and before == "W" and after in "X,PC":
            return "V" if nouns().is_person(previous) else "W"
        adjective = before == "W" and after in "W?" and lower[k] not in verb_forms()
        return "E" if helped or before in "PN^" or possessive or adjective else "V"
    if previous in SUBJECTS:
        return "V"
    if form == "base":
        return _base(lower[k], previous, before, after, helped=helped)
    if possessive or before in "^N" or (before == "P" and previous not in PARTICLES):
        return "W"
    subject = nouns().is_person(previous) or before in "ZR"
    if after in "AM" or (previous in ADJECTIVES and after not in "DHP"):
        return "W"
    if not subject and after == "?" and _form(following) in ("s", "past"):
        return "W"
    if lower[k] not in verb_forms():
        return "V" if subject or (before == "W" and after in "DH") else "W"
    return "W" if before == "G" and after in "X,PC" else "V"


def _form(low: str) -> str:
    """What form of a verb a word would be."""
    by_ending = "ing" if low.endswith("ing") else "past" if low.endswith("ed") else "s"
    return verb_forms().get(low, by_ending)


def _base(low: str, previous: str, before: str, after: str, *, helped: bool) -> str:
    """Whether a base form is a verb: after an auxiliary or a plural, or before an object."""
    if helped:
        return "V"
    known = nouns()
    if known.is_person(low):
        return "W"
    if known.singular(previous) is not None and after in "DHPOBC":
        return "V"
    if before == "W" and known.is_person(previous):
        return "V" if after in "DH" else "W"
    return "V" if before == "C" and after in "DH" else "W"


def _has_verb(tags: list[str], begin: int) -> bool:
    """Whether a clause with a subject and a finite verb begins here."""
    for k in range(begin, len(tags)):
        if tags[k] in "VAM":
            return k > begin
        if tags[k] in ",XSR" or tags[k] == "G":
            return False
    return False
