"""A sentence as tagged words, and what the words around a place say about it."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from evenhand.text.grammar.verbs import ADVERBS_IN_S, forms, shape
from evenhand.text.grammar.words import ADVERBIALS, AGREEING, TAGS, UNCLEAR_PASTS

__all__ = ["BREAKS", "PRONOUNS", "Tagged"]

TOKEN = re.compile(r"\d+(?:[.,:]\d+)*\w*|[@#]?\w+(?:['’-]\w+)*|--+|[^\w\s]")
PRONOUNS = frozenset({"he", "she", "hes", "shes"})
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
    if head in PRONOUNS:
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
        table = forms()
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
