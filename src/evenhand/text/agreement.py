"""Which words of a sentence agree with `he` or `she`, and what they are after `they`.

One pass from left to right, without a parser. After a subject `he` or `she`, the first verb in the
third person singular is its verb, whatever adverbs and parentheses stand between. Later verbs are
its verbs when they follow a conjunction or a comma and no other subject came between. Whether a
word in -s there is a verb or a plural noun is a matter of odds (`vocabulary.verb_table`). Where
this is undecided the word is left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from itertools import accumulate
from typing import Final

from evenhand.text.tagger import read_words
from evenhand.text.tokens import TOKEN, match_case
from evenhand.text.vocabulary import (
    ADVERBIALS,
    AGREEING,
    EXISTENTIAL,
    FRONTED,
    LISTS,
    TIMES,
    UNCLEAR_PASTS,
    plain_form,
    shape,
    verb_table,
    word_set,
)

BREAKS = frozenset({"", "c", ",", "“", "”", '"', "—", "–", "-", "--", ":", ";", "(", "?", "!", "."})
"""Tags after which a clause may begin."""
CLITICS = frozenset({"'", "’", "n't", "n’t", "N'T", "N’T"}) | {
    mark + letters for mark in "'’" for letters in ("s", "d", "ll", "S", "D", "LL")
}
"""Tokens by which a contraction is seen to be split."""
NEGATIONS = LISTS["negations"]
NEGATED = frozenset(word.removesuffix("n't") for word in NEGATIONS)
UNKNOWN_ODDS = -3.0
"""Log odds of a word in -s that is not in the table of verbs."""


class Tagged:
    """The tokens of text[start:end] with their roles in the clause (`tagger` lists them).

    >>> Tagged("He barks, she said.", 0, 19).roles
    ['h', 'z', ',', 'h', 'x', '.']
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.raw = TOKEN.findall(text, start, end)
        spoken = self.raw
        if not CLITICS.isdisjoint(self.raw):
            spoken = self._join_clitics()
        tagged = read_words(spoken)
        self.words = [word.lower for word in tagged]
        self.roles = [word.role for word in tagged]
        if not ADVERBIALS.keys().isdisjoint(self.words):
            self._find_adverbials()

    def _join_clitics(self) -> list[str]:
        """Join what a tokeniser split: "does n't", "doesn 't", "doesn ' t", "she 's", "she ' s".

        The words returned are complete; `raw` keeps the part that agrees ("does", "doesn", "she").
        """
        raw, offsets, spoken = self.raw, self.offsets, []
        kept: list[int] = []
        i = 0
        while i < len(raw):
            kept.append(i)
            low = raw[i].lower()
            rest = [token.lower().replace("’", "'") for token in raw[i + 1 : i + 3]]
            clitic, size = "", 0
            if rest[:1] == ["n't"] and low in NEGATED:
                clitic, size = "n't", 1
            elif rest == ["'", "t"] and low[-1:] == "n" and low + "'t" in NEGATIONS:
                clitic, size = "'t", 2
            elif low in ("he", "she"):
                if rest[:1] and rest[0][:1] == "'" and rest[0] in CLITICS and rest[0] != "'":
                    clitic, size = rest[0], 1
                elif rest[:1] == ["'"] and "'" + "".join(rest[1:]) in CLITICS - {"'"}:
                    clitic, size = "'" + rest[1], 2
            spoken.append(raw[i] + clitic)
            i += 1 + size
        self.raw = [raw[i] for i in kept]
        self.offsets = [offsets[i] for i in kept]
        return spoken

    def _find_adverbials(self) -> None:
        words = self.words
        for i in [i for i, word in enumerate(words) if word in ADVERBIALS]:
            for offset, phrase in ADVERBIALS[words[i]]:
                start = i - offset
                if start >= 0 and words[start : start + len(phrase)] == phrase:
                    self.roles[start : start + len(phrase)] = "a" * len(phrase)

    @cached_property
    def offsets(self) -> list[int]:
        """The offset of each token in the text."""
        return [match.start() for match in TOKEN.finditer(self.text, self.start, self.end)]

    def role(self, i: int) -> str:
        """The role at i, empty past the ends."""
        return self.roles[i] if 0 <= i < len(self.roles) else ""

    def word(self, i: int) -> str:
        """The word at i in lower case, empty past the ends."""
        return self.words[i] if 0 <= i < len(self.words) else ""

    def before(self, i: int) -> int:
        """The position of the last word before i that is not an adverb; -1 where there is none."""
        i -= 1
        while i >= 0 and self.roles[i] == "a":
            i -= 1
        return i

    def after(self, i: int) -> int:
        """The position of the first word after i that is not an adverb."""
        i += 1
        while i < len(self.roles) and self.roles[i] == "a":
            i += 1
        return i

    @cached_property
    def first_places(self) -> dict[str, int]:
        """The first position of each role in the sentence."""
        last = len(self.roles) - 1
        return {role: last - i for i, role in enumerate(reversed(self.roles))}

    @cached_property
    def first_verb(self) -> int:
        """The position of the first finite verb, he or she; the length where there is none."""
        for i, role in enumerate(self.roles):
            if role in ("l", "h", "y") or self.finite(i):
                return i
        return len(self.roles)

    @cached_property
    def last_listed(self) -> int:
        """The last comma or conjunction before a verb; -1 without one."""
        for i in range(len(self.roles) - 2, -1, -1):
            if self.roles[i] in ("c", ",") and self._verb_behind(i):
                return i
        return -1

    def _verb_behind(self, i: int) -> bool:
        k = self.after(i)
        if self.role(k) == "c":
            k = self.after(k)
        if self.role(k) in ("v", "m") or self.past(k):
            return True
        return self.role(k) == "z" and self.odds(k) > -4

    @cached_property
    def first_neither(self) -> int:
        """The position of the first "neither"; the length where there is none."""
        return self.words.index("neither") if "neither" in self.words else len(self.words)

    @cached_property
    def clause_heads(self) -> list[int]:
        """For each word the first word of its clause."""
        heads: list[int] = []
        head = 0
        for i in range(len(self.roles)):
            if i and self.roles[i - 1] in BREAKS:
                head = i
            heads.append(head)
        return heads

    @cached_property
    def commas(self) -> list[int]:
        """The number of commas before each word."""
        return [0, *accumulate(role == "," for role in self.roles)]

    def plural_before(self, i: int) -> bool:
        """Whether the subject before i is a pronoun that takes neither is nor was."""
        lead = self.before(i)
        return self.role(lead) == "p" and self.words[lead] != "i"

    def odds(self, i: int) -> float:
        """Log odds that the -s word at i is a verb, by the word and its two neighbours."""
        table = verb_table()
        score = table.odds.get(self.words[i], UNKNOWN_ODDS)
        for j, context in ((i - 1, table.before), (i + 1, table.after)):
            raw = self.raw[j] if 0 <= j < len(self.raw) else "."
            known = context.get(self.word(j) or ".")
            score += context.get(shape(raw), 0.0) if known is None else known
        return score

    def named(self, i: int) -> bool:
        """Whether the word at i is written like a name: a capital and small letters."""
        return self.raw[i][0].isupper() and not self.raw[i].isupper()

    def finite(self, i: int) -> bool:
        """Whether the word at i is surely a finite verb."""
        role = self.role(i)
        return role in ("v", "m", "e") or (role == "z" and self.odds(i) > 0)

    def past(self, i: int) -> bool:
        """Whether the word at i is a past tense, a participle or what looks the same."""
        return self.role(i) in ("e", "y") or self.word(i) in UNCLEAR_PASTS

    def opens_clause(self, i: int) -> bool:
        """Whether the words before i are a conjunction and a noun: "as his car hits the wall"."""
        j = i - 1
        while j > 0 and self.roles[j] in ("x", "d", "a"):
            j -= 1
        return i - j > 1 and self.roles[i - 1] == "x" and self.roles[j] == "u"

    def list_goes_on(self, i: int) -> bool:
        """Whether a verb follows later after a comma or a conjunction."""
        return self.last_listed > i

    def verb_ahead(self, i: int) -> bool:
        """Whether a clear verb in -s stands within a few words that hold no other clause."""
        for j in range(i + 1, min(i + 5, len(self.roles))):
            role = self.roles[j]
            if role == "v" or (role == "z" and self.odds(j) > 1 and not self.named(j)):
                return True
            if role not in ("d", "x", "i", "a", "z", "u"):
                return False
        return False


Change = tuple[int, str, str]
"""The offset in the text, the word as written, and its replacement."""

PAST: Final = "past"
PRESENT: Final = "present"
MODAL: Final = "modal"
LIGHT = frozenset({"a", "c", "“", '"', "(", "-", "--", "—", "–"})
"""Tags of what may stand at the head of a sentence without making it another clause."""
ENDS = frozenset({"", ".", ",", "!", "?", "c"})
CLAUSAL = frozenset("hvpsquemlt")
"""Tags of what makes a clause of the words before the pronoun."""


OBJECTS = word_set("me you him it us them")
SAYING = word_set("adds answers asks hands offers replies says suggests tells")
ACTIONS = LISTS["actions"]
"""Verbs of reacting to a statement, which are not said of its subject."""
WILLING = ACTIONS | LISTS["willing"]
"""The same, and what a thing does not do."""
FRONTED_OBJECTS = word_set("what whatever everything anything something nothing")
"""Words before the pronoun that are the object of its verb, which then takes no other."""
FRONTING = word_set("once every each")
"""Adverbs that begin a clause before the main one: "Once we are out she …"."""


ASKING = word_set("what's who's where's how's when's why's")
PARTICIPLES = word_set(
    "been gone got done had said told seen taken made become given come gotten brought"
)
DOES_VERBS = word_set("want need think mean say know do have care see get expect")
"""Verbs before which the 's of a question is short for does."""
QUESTION_ENDS = frozenset({"", ".", ",", "!", "?", "i", "t", "”", '"', ";"})


def inverted(sentence: Tagged, i: int, last: int, taken: Container[int]) -> bool:
    """Whether the word before the pronoun at i … last is its verb; `taken` are other subjects'.

    >>> question = Tagged("Why is he here?", 0, 15)
    >>> statement = Tagged("The thing is he lies.", 0, 21)
    >>> inverted(question, 2, 2, ()), inverted(statement, 3, 3, ())
    (True, False)
    """
    j = i - 1
    role = sentence.role(j)
    if role == "z":
        return _reporting(sentence, j, last)
    if role != "v" or j in taken:
        return False
    lead = sentence.role(j - 1)
    which = sentence.word(j - 1) == "one" and sentence.role(j - 2) == "q"
    if (lead in ("s", "p") and not which) or sentence.word(j - 1) == "that":
        return False  # "It was he", "this is she"
    following = sentence.after(last)
    if lead in BREAKS or lead == "u":
        return sentence.role(following) != "v" or lead == ""
    if lead == "q":
        return True
    if sentence.finite(following):
        return False  # "The thing is she lies"
    if sentence.words[j].startswith(("does", "has")):
        return True
    if lead == "z" and verb_table().odds.get(sentence.words[j - 1], -9.0) > -3:
        return False  # "What matters is she tried"
    head = sentence.clause_heads[max(j - 1, 0)]
    if head == j - 1 or sentence.word(head) in FRONTED:
        return True
    return not sentence.past(following)


def _reporting(sentence: Tagged, j: int, last: int) -> bool:
    """A verb of saying between a quotation and its subject."""
    behind_quote = j == 0 or sentence.role(j - 1) in (",", "“", "”", '"')
    quoted = sentence.role(j - 1) in ("“", "”", '"')
    verb = verb_table().odds.get(sentence.words[j], -9.0) > (-3 if quoted else 2)
    return (
        behind_quote
        and verb
        and sentence.raw[j].islower()
        and sentence.role(sentence.after(last)) in QUESTION_ENDS
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
    if following in DOES_VERBS and sentence.word(i - 1) != "who's":
        return " do"
    return "'ve" if following in PARTICIPLES else "'re"


QUIET = frozenset("xdit")
"""Tags of what matters only between a pronoun or a conjunction and its verb."""
THINGS = frozenset({"it", "this", "that", "everything", "nothing", "something", "anything"})
REPEATING = frozenset({",", ".", "…", "—", "–", "-", "--"})
CLOSING = frozenset({"h", "q", ",", ")", "—", "–", "-", "--", '"', "“", "”"})
"""Tags of what may end a parenthesis between a pronoun and its verb."""


def find_agreement(text: str, start: int, end: int) -> list[Change]:
    """The words of the sentence text[start:end] to change so that they agree with `they`.

    >>> find_agreement("She sings and her cat purrs.", 0, 28)
    [(4, 'sings', 'sing')]
    >>> [after for _, _, after in find_agreement("Is he who laughs the one she has?", 0, 33)]
    ['Are', 'laugh', 'have']
    """
    return sorted(_Reader(text, start, end).read())


class _Reader(Tagged):
    """A pass over one sentence; `context` says what stands right before, adverbs left out."""

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(text, start, end)
        self.changes: list[Change] = []
        self.own_verbs: set[int] = set()
        self.last_own = -9  # the last of them
        self.own_words: set[str] = set()
        self.context = ""  # subject, parenthesis, and, comma or nothing of the kind
        self.owner = ""  # whose clause this is: own, other (third person singular), plural
        self.tense = ""  # of the last own verb
        self.other_tense = ""
        self.relative = False  # "he who …": the verb of the main clause is still to come
        self.resumes = False  # "he, who …,": the same after a comma
        self.joint = 0  # the word before the last conjunction or comma
        self.listing = ""  # own verbs in a row: after a comma, or after "and"
        self.comma = False  # a comma stood before the conjunction
        self.first = False  # the sentence begins with this clause
        self.opening = False  # this clause opens the sentence and is subordinate: "When she …,"
        self.at = 0  # the place of the pronoun
        self.skip = 0  # up to here nothing counts: "and, in the end, wins"
        self.aside = False  # this clause interrupts another: "This, he says, works"
        self.met = ""  # tense of the last verb of another, third person singular
        self.outer = ""  # the same, of the clause that this one depends on
        self.adjunct = False  # this clause is an adverbial of another: "has waited since he …"
        self.human: frozenset[str] = frozenset()  # verbs that what was just spoken of cannot have
        self.inside = False  # this clause depends on another: "says she …", "the man he …"
        self.saved: tuple[str, str, str] | None = None  # owner and tenses before a quotation
        self.bracketed: tuple[str, str, str] | None = None  # the same, before a bracket

    def own(self, i: int) -> None:
        """Add the verb at i to the own verbs."""
        if i not in self.own_verbs:
            self.own_verbs.add(i)
            self.last_own = max(self.last_own, i)
            self.own_words.add(self.words[i])
            raw = self.raw[i]
            word = raw.lower().replace("’", "'")
            after = AGREEING.get(word) or plain_form(word)
            if "’" in raw:
                after = after.replace("'", "’")
            self.changes.append((self.offsets[i], raw, match_case(raw, after)))
        self.owner, self.context = "own", ""
        self.tense = PAST if self.words[i].startswith("was") else PRESENT

    def other(self, tense: str, *, plural: bool = False) -> None:
        """A verb of another subject."""
        self.context, self.met, self.human = "", "" if plural else tense, frozenset()
        if self.owner:
            self.owner, self.other_tense = "plural" if plural else "other", tense

    def situate(self, i: int) -> None:
        """The position, in its sentence, of the clause of the pronoun at i."""
        lead = self.before(i)
        heads = {role for role, at in self.first_places.items() if at < lead}
        opened = lead < 0 or self.roles[0] in LIGHT or self.roles[0] == "i"
        self.first = opened and not heads & CLAUSAL
        self.opening = self.role(lead) in ("u", "q") and not heads - LIGHT
        self.at = i
        depends = self.owner != "own" and self._depends(lead)
        fronted = self.roles[0] in ("u", "q") or self.words[0] in FRONTING
        self.inside = depends and not fronted and self.role(lead) not in ("u", "q")
        self.outer = self.met if depends and self.roles[0] not in ("u", "q", "i") else ""
        self.adjunct = self.role(lead) == "u" and self.words[lead] != "whether"
        started = opened or self.opening or self.roles[0] in ("u", "q", "y")
        started = started or self.words[0].endswith("ing")
        self.aside = self.role(lead) == "," and not started and self.first_verb >= lead

    def _depends(self, lead: int) -> bool:
        """Whether a clause that follows the word `lead` depends on another of a third person."""
        if self.role(lead) in ("u", "q"):
            lead = self.before(lead)
        return self.role(lead) not in BREAKS and self.role(self.before(lead)) != "p"

    def follows(self, i: int) -> bool:
        """Whether a verb after a conjunction is coordinated with this clause's last verb."""
        word = self.words[i]
        ahead, head = self.role(i + 1), self.word(i + 1)
        if word in ("is", "was", "isn't", "wasn't") and (
            ahead == "p" or head in ("it", "there", "anyone", "everyone")
        ):
            return False
        tense = PAST if word.startswith("was") else PRESENT
        if self.owner == "own":
            return self.outer != tense or not (self.comma or self._goes_back(i, tense))
        if self.owner == "plural":
            return True
        if self.owner == "other":
            if word in self.human and not self.outer and self.tense == tense:
                return True  # "asks if it is free and sits down"
            if self.other_tense != tense:
                return self.tense == tense or (self.tense == PAST and self.comma)
            return self.comma and self.tense == tense
        return False

    def _goes_back(self, i: int, tense: str) -> bool:
        """Whether a verb after this clause belongs to the clause that it depends on."""
        if self.adjunct:
            return self.tense not in (tense, MODAL)  # "has waited since he called and is mad"
        if self.word(self.before(self.at)) in FRONTED_OBJECTS:
            return self.has_object(i) or self._about_object(i)  # "knows what he wants and gets it"
        said = self.words[max(self.at - 4, 0) : self.at]
        return self.words[i] in SAYING and not SAYING.isdisjoint(said)  # "says he is, and asks me"

    def joined(self, i: int, bonus: float) -> bool:
        """Whether the -s word after a conjunction is a verb of this clause."""
        score = self.odds(i) + bonus
        if self._about_object(i):
            score += 2.0
        if self.joint in self.own_verbs:
            score += 3.0
        elif self.listing == "comma":
            score += 1.0
        elif self._plural_noun(self.joint):
            score -= 1.0 if self.listing else 2.0
            if self.role(i + 1) in ENDS and verb_table().odds.get(self.words[i], -9.0) < 2:
                score -= 1.5
        else:
            score += 2.0 if self.words[i] in verb_table().odds else 1.0
        ahead = self.word(i + 1) if self.role(i + 1) == "x" else ""
        threshold = 2.0 if self.words[i] in verb_table().odds else -1.0
        if ahead not in OBJECTS and verb_table().odds.get(ahead + "s", -9.0) > threshold:
            score -= 4.0  # "but rocks fall"
        score += {PRESENT: 2.0, PAST: -1.0, MODAL: -2.0}.get(self.tense, 0.0)
        return score > 0 and self.follows(i)

    def has_object(self, i: int) -> bool:
        """Whether an object begins right after the verb at i."""
        return self.role(i + 1) == "d" or self.word(i + 1) in OBJECTS

    def _about_object(self, i: int) -> bool:
        """Whether a preposition and a pronoun follow the verb at i: "works on it"."""
        return self.role(i + 1) == "i" and self.word(i + 2) in OBJECTS

    def _plural_noun(self, i: int) -> bool:
        """A noun in -s, beside which another one is likely; not a stretch of time."""
        word = self.word(i)
        return (self.role(i) == "z" and word[:-1] not in TIMES) or word in ("things", "people")

    def listed(self, i: int) -> bool:
        """A verb after a bare comma: "she walks in, sits down and waits"."""
        if not self.owner or self.tense == MODAL or self.aside:
            return False
        if self.owner != "own":
            near = i - self.last_own < 9  # "He thinks I should go, says …"
            if not near or self.odds(i) < 2 or (self.owner, self.other_tense) == ("other", PRESENT):
                return False
        beside = self.joint in self.own_verbs
        if not beside and (self.opening or self.inside):
            return False
        in_row = beside or bool(self.listing)
        if self.role(i + 1) == "c" and self.finite(self.after(i + 1)):
            return self.joined(i, 1.0 if in_row else 2.0)
        goes_on = in_row or self._unjoined(i) or self.list_goes_on(i)
        return goes_on and self.joined(i, -1.0)

    def _unjoined(self, i: int) -> bool:
        """A second verb without any conjunction: "She gets up, takes her coat."."""
        begin = max(self.last_own, 0)
        between = self.commas[max(i - 1, begin)] - self.commas[begin]
        subordinate = self.role(self.before(self.at)) in ("u", "q")
        if not self.first or subordinate or self.tense != PRESENT or between:
            return False
        led = self.has_object(i) or self.role(i + 1) in ("i", "t")
        return self.roles[i - 1] == "," and self.odds(i) > (1 if led else 5)

    def listed_auxiliary(self, i: int) -> bool:
        """An auxiliary after a bare comma: "She is, was and will be", "He won, was hailed …"."""
        if self.joint in self.own_verbs and self.role(i + 1) in ("c", ","):
            return True
        if self.owner != "own" or not self.first:
            return False
        done = self.words[i][:2] in ("do", "ha") and self.word(i + 1) in THINGS
        if self.role(i + 1) in ("p", "s", "q", "h") and not done:
            return False
        if self.word(i - 1) in ("just", "simply") and self.tense == PRESENT:
            return True
        return self.list_goes_on(i)

    def read(self) -> list[Change]:
        """Go through the sentence and give the changes."""
        steps, plain, words = _STEPS, _Reader._plain, self.words
        if "v" not in self.roles and "z" not in self.roles and ASKING.isdisjoint(words):
            return []
        for i, role in enumerate(self.roles):
            if i < self.skip:
                continue
            if not self.context and role in QUIET and words[i] not in UNCLEAR_PASTS:
                continue
            if self.context != "parenthesis" or role in CLOSING:
                steps.get(role, plain)(self, i)
        return self.changes

    def _pronoun(self, i: int) -> None:
        first, last = self._extent(i)
        if last > i:
            return  # handled at the second of the two
        ahead, behind = self.role(last + 1), self.role(first - 1)
        if behind == "u" and ahead in ("c", ",", "") and self.owner:
            self.context = ""
            return
        self.comma = self.relative = self.resumes = False
        self.listing = ""
        if inverted(self, first, last, self.own_verbs):
            self.own(first - 1)
            return
        if clitic := asking(self, first, last):
            end = self.offsets[first - 1] + len(self.raw[first - 1])
            written = self.text[end - 2 : end]
            after = clitic.replace("'", written[0])
            self.changes.append((end - 2, written, match_case(written, after)))
            self.owner, self.context, self.tense = "own", "", PRESENT
            return
        self.situate(first)
        _, apostrophe, clitic = self.words[i].partition("'")
        self.owner = "own"
        if ahead == "c" and self.word(last + 1) != "then":
            self.owner, self.context, self.other_tense = "plural", "", PRESENT
        elif apostrophe or self.words[i] in ("hes", "shes"):
            self.context, self.tense = "", PRESENT if clitic in ("s", "") else MODAL
        elif behind in ("m", "l") and not self.finite(self.after(last)):
            self.context, self.tense = "", MODAL
        else:
            self.context = "subject"

    def _extent(self, i: int) -> tuple[int, int]:
        """The tokens of "he or she", "he/she", "s/he" or "(s)he" around the pronoun at i."""
        if self.word(i + 1) in ("or", "/") and self.role(i + 2) == "h":
            return i, i + 2
        if self.word(i - 1) in ("or", "/") and self.role(i - 2) == "h":
            return i - 2, i
        if self.words[max(i - 2, 0) : i] == ["s", "/"]:
            return i - 2, i
        if self.words[max(i - 3, 0) : i] == ["(", "s", ")"]:
            return i - 3, i
        return i, i

    def _auxiliary(self, i: int) -> None:
        if i in self.own_verbs:
            return
        if self._before_pronoun(i):
            return  # handled at the pronoun
        if self.context == "subject" or (self.relative and self.context == ""):
            self.relative = self.relative and self.context == "subject"
            self.own(i)
        elif (self.context == "and" and self.follows(i)) or (
            self.context == "comma" and self.listed_auxiliary(i)
        ):
            self.listing = self.listing or self.context
            self.own(i)
        elif self.word(self.before(i)) not in EXISTENTIAL:
            self.other(PAST if self.words[i].startswith("was") else PRESENT)
            subject = self.word(self.before(i))
            if subject in THINGS:
                self.human = WILLING
            elif self.words[i][:2] in ("is", "wa") and subject != "who":
                self.human = ACTIONS
        else:
            self.context = ""

    def _before_pronoun(self, i: int) -> bool:
        """Whether the auxiliary at i is the verb of the pronoun right after it."""
        j = i + 1
        if self.words[j : j + 3] == ["s", "/", "he"]:
            return True
        if self.role(j) != "h":
            return False
        return inverted(self, *self._extent(j), self.own_verbs)

    def _verb_or_noun(self, i: int) -> None:
        if i in self.own_verbs:
            return
        named = self.named(i)
        awaited = self.relative and self.context == ""  # "He who waits wins"
        opens = not (self.owner or self.met) or awaited or self.opens_clause(i)
        threshold = -3.0 if opens else 0.5  # a clause has a verb
        lead = self.before(i)
        if self.context == "subject" or self._repeats(i):
            self.own(i)
        elif not named and (
            (self.context == "and" and self.owner and self.joined(i, 0.0))
            or (self.context == "comma" and self.listed(i))
        ):
            self.listing = "comma" if self.context == "comma" else self.listing or "and"
            self.own(i)
        elif not named and (
            (self.role(lead) in ("s", "q") and "'" not in self.words[lead])
            or self.odds(i) > threshold
        ):
            if self.relative and self.context == "":
                self.relative = False
                self.own(i)
            else:
                self.other(PRESENT)
                if self.word(lead) in THINGS:
                    self.human = WILLING
        else:
            self.context = ""

    def _repeats(self, i: int) -> bool:
        """An own verb repeated: "She waits - waits for you."."""
        marked = self.role(i - 1) in REPEATING and self.owner == "own"
        return marked and self.words[i] in self.own_words

    def _conjunction(self, i: int) -> None:
        if self.context == "subject":
            return
        word = self.words[i]
        if word == "nor" and i < self.first_neither:
            self.context = ""
            return
        if self.context != "comma":
            self.joint = i - 1
        self.comma = self.context == "comma"
        self.context = "and"

    def _comma(self, i: int) -> None:
        follow = self.after(i)
        if self.context == "subject":
            behind_adverb = self.roles[i] == "," and self.roles[i - 1] == "a"
            if not (behind_adverb and self.role(follow) in ("v", "z")):
                self.context = "parenthesis"
        elif self.context == "parenthesis" or self.resumes:
            if self.role(follow) in ("v", "z", "m") or self.past(follow):
                self.context, self.resumes = "subject", False
        elif self.context != "and":
            self.joint, self.context = i - 1, "comma"
            listed = self.joint in self.own_verbs and self.role(follow) == "z"
            aside = self.aside and i - self.at <= 3
            if aside or (self.opening and not listed and self.role(follow) not in ("c", "h")):
                self.owner = ""
            self.aside = False
        else:
            self._pass_over(i)

    def _pass_over(self, i: int) -> None:
        """A parenthesis right after the conjunction, from the comma at i to the next."""
        for j in range(i + 1, min(i + 12, len(self.roles))):
            if self.roles[j] in ("h", "c", ";", ":"):
                return
            if self.roles[j] == ",":
                verb = self.after(j)
                if self.role(verb) == "v" or (self.role(verb) == "z" and self.odds(verb) > -5):
                    self.skip = j + 1
                return

    def _dash(self, i: int) -> None:
        if self.context == "subject":
            self.context = "parenthesis"
        elif self.context == "parenthesis":
            self._comma(i)
        else:
            self.joint, self.context = i - 1, ""

    def _bracket(self, _i: int) -> None:
        if self.context == "subject":
            self.context = "parenthesis"
        elif self.context != "parenthesis":
            self.context = ""
            self.bracketed = (self.owner, self.tense, self.other_tense)

    def _bracket_end(self, i: int) -> None:
        if self.context == "parenthesis":
            self._comma(i)
        else:
            if self.bracketed is not None:
                self.owner, self.tense, self.other_tense = self.bracketed
                self.bracketed = None
            self.joint, self.context = i - 1, ""

    def _quote(self, i: int) -> None:
        at = self.offsets[i]
        opens = self.raw[i] == "“" or (
            self.raw[i] == '"'
            and (at == 0 or self.text[at - 1].isspace() or self.text[at - 1] == "(")
        )
        if self.context == "parenthesis":
            self.context = ""
        if opens:
            self.saved = (self.owner, self.tense, self.other_tense)
            if self.context != "subject" and self.role(i + 1) != "c":
                self.owner = ""
        elif self.saved is not None:
            if self.owner != "own":
                self.owner, self.tense, self.other_tense = self.saved
            self.saved = None

    def _modal(self, i: int) -> None:
        if self._noun_or_name(i):
            self._plain(i)
            return
        tense = PAST if self.words[i][:3] in ("did", "had", "use") else MODAL
        if self.context == "subject":
            self.owner, self.context, self.tense = "own", "", tense
        elif self.context == "and" or self.role(i + 1) == "h" or not self.owner:
            self.context = ""
        else:
            self.other(tense, plural=self.plural_before(i))

    def _noun_or_name(self, i: int) -> bool:
        """Whether what looks like a modal verb is none: "a beer can", "in May"."""
        lead = self.role(i - 1)
        if self.words[i] not in ("can", "will", "may", "might") or lead in BREAKS:
            return False
        return self.named(i) or lead == "d" or (lead == "x" and self.role(i + 1) in BREAKS)

    def _plural(self, i: int) -> None:
        if self.context == "subject":
            self.owner, self.context, self.tense = "own", "", MODAL
            return
        self.context = ""
        lead = self.role(self.before(i))
        if self.words[i] in ("am", "are", "were", "aren't", "weren't") or lead == "p":
            past = self.words[i].startswith("were")
            self.other(PAST if past else PRESENT, plural=True)

    def _past(self, i: int) -> None:
        if self.context == "subject":
            self.owner, self.context, self.tense = "own", "", PAST
        elif self.context in ("and", "comma"):
            self.context = ""
            if self.owner == "own" and self.roles[i] == "e":
                self.tense = PAST
        elif self.context != "parenthesis" and self.role(i - 1) != "d":
            lead = self.role(self.before(i))
            if self.roles[i] == "e" or lead in ("p", "s", "q"):
                self.other(PAST, plural=self.plural_before(i))
            self.context = ""

    def _subject(self, i: int) -> None:
        if self.context == "parenthesis":
            return
        word, apostrophe, _ = self.words[i].partition("'")
        if self.context == "subject" and self.roles[i] == "s" and self.word(i + 1) in TIMES:
            return
        self.context = ""
        owner = word.endswith(("one", "body")) and self.role(i - 1) not in BREAKS | {"u", "q"}
        if apostrophe and word not in EXISTENTIAL and not owner:
            self.other(PRESENT, plural=self.roles[i] == "p")
            if word in THINGS:
                self.human = WILLING

    def _relative(self, i: int) -> None:
        word = self.words[i]
        if word in ("who", "that") and (
            self.role(i - 1) == "h"
            or (
                self.context == "parenthesis"
                and self.role(i - 1) == ","
                and self.role(i - 2) == "h"
            )
        ):
            self.relative = self.role(i - 1) == "h" and self.role(i - 2) != "v"
            self.resumes = self.role(i - 1) == ","
            self.context = "subject"
        elif self.context != "parenthesis":
            self.context = ""
            if "'" in word:
                self.other(PRESENT)

    def _adverb(self, i: int) -> None:
        if self.context == "subject":
            return
        if self.words[i] in ("so", "neither", "either", "both") and self.role(i + 1) in ("v", "z"):
            self.context = ""

    def _plain(self, i: int) -> None:
        if self.context == "parenthesis":
            return
        if self.context == "subject":
            self._between(i)
        elif self.context in ("and", "comma"):
            self._led_in(i)
        elif self.words[i] in UNCLEAR_PASTS and self.role(self.before(i)) in ("p", "s", "q"):
            self.other(PAST, plural=self.plural_before(i))

    def _between(self, i: int) -> None:
        """A word between the pronoun and its verb, or a verb that stays as it is."""
        word, role = self.words[i], self.roles[i]
        if role in (".", "…", "*", "x") and not word[0].isalnum():
            return
        if self.word(i + 1) == "%":
            return
        if role in ("?", "!", ":", ";"):
            self.context = ""
            return
        ahead = self.after(i)
        if role in ("d", "i", "t", "u"):
            verb = self.verb_ahead(i)
            if verb:
                return
            self.context = ""
            return
        known = word in UNCLEAR_PASTS or word in verb_table().plain
        sure = self.role(ahead) == "v" or (self.role(ahead) == "z" and self.odds(ahead) > 1)
        if not known and sure and ahead == i + 1:
            return
        self.context, self.tense = "", PAST

    def _led_in(self, i: int) -> None:
        """A phrase between the conjunction and its verb: "and in the end wins"."""
        role = self.roles[i]
        if role not in ("i", "x", "d", "t") or not self._phrase(i):
            self.context = ""

    def _phrase(self, i: int) -> bool:
        """Whether the word at i belongs to an adverbial that a verb follows."""
        if self.roles[i] == "d":
            return self.words[i] in ("every", "each") and self.word(i + 1) in TIMES
        if self.word(i) in TIMES and self.role(i - 1) in ("d", "s"):
            return True
        return self.roles[i] == "i" and self.verb_ahead(i)


_STEPS: dict[str, Callable[[_Reader, int], None]] = {
    role: step
    for step, roles in (
        (_Reader._pronoun, "h"),
        (_Reader._auxiliary, "v"),
        (_Reader._verb_or_noun, "z"),
        (_Reader._conjunction, "c"),
        (_Reader._comma, ","),
        (_Reader._modal, "m"),
        (_Reader._plural, "l"),
        (_Reader._past, "ey"),
        (_Reader._subject, "ps"),
        (_Reader._relative, "q"),
        (_Reader._adverb, "a"),
        (_Reader._quote, '"“”'),
        (_Reader._bracket, "("),
        (_Reader._bracket_end, ")"),
        (_Reader._dash, ("—", "–", "-", "--")),
    )
    for role in roles
}
