"""Which words of a sentence agree with `he` or `she`, and what they are after `they`.

One pass from left to right, without a parser. After a subject `he` or `she`, the first verb in the
third person singular is its verb, whatever adverbs and parentheses stand between. Later verbs are
its verbs when they stand right behind a conjunction or a comma and no other subject has taken over
since. Whether a word in -s there is a verb or a plural noun is a matter of odds
(`vocabulary.verb_table`). Where the reading stays open the word is left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from evenhand.text.tagger import BREAKS, Tagged
from evenhand.text.tokens import match_case
from evenhand.text.vocabulary import (
    AGREEING,
    EXISTENTIAL,
    FRONTED,
    TIMES,
    UNCLEAR_PASTS,
    plain_form,
    verb_table,
    word_set,
)

Change = tuple[int, str, str]
"""Where in the text, the word as written, and the word that takes its place."""

PAST: Final = "past"
PRESENT: Final = "present"
MODAL: Final = "modal"
LIGHT = frozenset({"A", "C", "“", '"', "(", "-", "--", "—", "–"})
"""Tags of what may stand at the head of a sentence without making it another clause."""
ENDS = frozenset({"", ".", ",", "!", "?", "C"})
CLAUSAL = frozenset("PVNTRSEMLO")
"""Tags of what makes a clause of the words before the pronoun."""


OBJECTS = word_set("me you him it us them")
SAYING = word_set("adds answers asks hands offers replies says suggests tells")
ACTIONS = word_set(
    "agrees answers apologizes asks begins calls cries decides gives goes grabs hands hangs "
    "laughs leaves nods offers opens orders peers picks promises pulls pushes puts refuses "
    "replies runs says shouts shrugs sighs sits slows smiles stares starts tells threatens throws "
    "tries turns walks yells"
)
"""What somebody does on hearing how things are, rather than what is said of the things."""
WILLING = ACTIONS | word_set(
    "believes decides enjoys forgets hates hopes ignores insists knows likes loves plans prefers "
    "pretends regrets thinks wants wishes wonders worries"
)
"""The same, and what a thing does not do."""
OBJECT_OF_MINE = word_set("what whatever everything anything something nothing")
"""Words before the pronoun that are the object of its verb, so that this takes no other."""
FRONTING = word_set("once every each")
"""Adverbs that begin a clause before the main one: "Once we are out she …"."""


class Clause(Tagged):
    """What is known at a place of a sentence that is read from left to right."""

    def __init__(self, text: str, start: int, end: int) -> None:
        super().__init__(text, start, end)
        self.changes: list[Change] = []
        self.mine: set[int] = set()
        self.place = ""  # subject, parenthesis, and, comma or nothing of the kind
        self.owner = ""  # whose clause this is: mine, other (third person singular), plural
        self.tense = ""  # of the last verb of mine
        self.other_tense = ""
        self.relative = False  # "he who …": the verb of the main clause is still to come
        self.resumes = False  # "he, who …,": the same behind a comma
        self.joint = 0  # the word before the last conjunction or comma
        self.listing = ""  # verbs of mine in a row: behind a comma, or behind "and"
        self.comma = False  # a comma stood before the conjunction
        self.first = False  # the sentence begins with my clause
        self.opening = False  # my clause opens the sentence and is subordinate: "When she …,"
        self.at = 0  # the place of the pronoun
        self.skip = 0  # up to here nothing counts: "and, in the end, wins"
        self.aside = False  # my clause interrupts another: "This, he says, works"
        self.met = ""  # tense of the last verb of another, third person singular
        self.outer = ""  # the same, of the clause that mine depends on
        self.adjunct = False  # my clause is an adverbial of another: "has waited since he …"
        self.human: frozenset[str] = frozenset()  # verbs that what was just spoken of cannot have
        self.inside = False  # my clause depends on a word of another: "says she …", "the man he …"
        self.saved: tuple[str, str, str] | None = None  # owner and tenses before a quotation
        self.bracketed: tuple[str, str, str] | None = None  # the same, before a bracket

    def own(self, i: int) -> None:
        """The verb at i is mine."""
        if i not in self.mine:
            self.mine.add(i)
            raw, word = self.raw[i], self.words[i]
            after = AGREEING.get(word) or plain_form(word)
            if "’" in raw:
                after = after.replace("'", "’")
            self.changes.append((self.offsets[i], raw, match_case(raw, after)))
        self.owner, self.place = "mine", ""
        self.tense = PAST if self.words[i].startswith("was") else PRESENT

    def other(self, tense: str, *, plural: bool = False) -> None:
        """A verb of another subject."""
        self.place, self.met, self.human = "", "" if plural else tense, frozenset()
        if self.owner:
            self.owner, self.other_tense = "plural" if plural else "other", tense

    def situate(self, i: int) -> None:
        """Where in its sentence the clause of the pronoun at i stands."""
        lead = self.before(i)
        heads = set(self.tags[: max(lead, 0)])
        opened = lead < 0 or self.tags[0] in LIGHT or self.tags[0] == "I"
        self.first = opened and not heads & CLAUSAL
        self.opening = self.tag(lead) in ("S", "R") and not heads - LIGHT
        self.at = i
        depends = self.owner != "mine" and self._depends(lead)
        fronted = self.tags[0] in ("S", "R") or self.words[0] in FRONTING
        self.inside = depends and not fronted and self.tag(lead) not in ("S", "R")
        self.outer = self.met if depends and self.tags[0] not in ("S", "R", "I") else ""
        self.adjunct = self.tag(lead) == "S" and self.words[lead] != "whether"
        started = opened or self.opening or self.tags[0] in ("S", "R", "e")
        started = started or self.words[0].endswith("ing")
        self.aside = self.tag(lead) == "," and not started and not self._verb_before(lead)

    def _depends(self, lead: int) -> bool:
        """Whether a clause that follows the word `lead` depends on another of a third person."""
        if self.tag(lead) in ("S", "R"):
            lead = self.before(lead)
        return self.tag(lead) not in BREAKS and self.tag(self.before(lead)) != "N"

    def _verb_before(self, i: int) -> bool:
        """Whether a finite verb stands before i."""
        return any(self.finite(j) or self.tags[j] in ("L", "P", "e") for j in range(i))

    def follows(self, i: int) -> bool:
        """Whether a verb right behind a conjunction goes with my last verb, not with another's."""
        word = self.words[i]
        ahead, head = self.tag(i + 1), self.word(i + 1)
        if word in ("is", "was", "isn't", "wasn't") and (
            ahead == "N" or head in ("it", "there", "anyone", "everyone")
        ):
            return False
        tense = PAST if word.startswith("was") else PRESENT
        if self.owner == "mine":
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
        """Whether a verb behind my clause is one of the clause that mine depends on."""
        if self.adjunct:
            return self.tense not in (tense, MODAL)  # "has waited since he called and is mad"
        if self.word(self.before(self.at)) in OBJECT_OF_MINE:
            return self.has_object(i) or self._about_object(i)  # "knows what he wants and gets it"
        said = self.words[max(self.at - 4, 0) : self.at]
        return self.words[i] in SAYING and not SAYING.isdisjoint(said)  # "says he is, and asks me"

    def joined(self, i: int, bonus: float) -> bool:
        """Whether the -s word behind a conjunction is a verb, and mine."""
        score = self.odds(i) + bonus
        if self._about_object(i):
            score += 2.0
        if self.joint in self.mine:
            score += 3.0
        elif self.listing == "comma":
            score += 1.0
        elif self._plural_noun(self.joint):
            score -= 1.0 if self.listing else 2.0
            if self.tag(i + 1) in ENDS and verb_table().odds.get(self.words[i], -9.0) < 2:
                score -= 1.5
        else:
            score += 2.0 if self.words[i] in verb_table().odds else 1.0
        ahead = self.word(i + 1) if self.tag(i + 1) == "x" else ""
        least = 2.0 if self.words[i] in verb_table().odds else -1.0
        if ahead not in OBJECTS and verb_table().odds.get(ahead + "s", -9.0) > least:
            score -= 4.0  # "but rocks fall"
        score += {PRESENT: 2.0, PAST: -1.0, MODAL: -2.0}.get(self.tense, 0.0)
        return score > 0 and self.follows(i)

    def has_object(self, i: int) -> bool:
        """Whether an object begins right behind the verb at i."""
        return self.tag(i + 1) == "D" or self.word(i + 1) in OBJECTS

    def _about_object(self, i: int) -> bool:
        """Whether a preposition and a pronoun follow the verb at i: "works on it"."""
        return self.tag(i + 1) == "I" and self.word(i + 2) in OBJECTS

    def _plural_noun(self, i: int) -> bool:
        """A noun in -s, beside which another one is likely; not a stretch of time."""
        word = self.word(i)
        return (self.tag(i) == "Z" and word[:-1] not in TIMES) or word in ("things", "people")

    def listed(self, i: int) -> bool:
        """A verb behind a bare comma: "she walks in, sits down and waits"."""
        if not self.owner or self.tense == MODAL or self.aside:
            return False
        if self.owner != "mine":
            near = i - max(self.mine, default=-9) < 9  # "He thinks I should go, says …"
            if not near or self.odds(i) < 2 or (self.owner, self.other_tense) == ("other", PRESENT):
                return False
        beside = self.joint in self.mine
        if not beside and (self.opening or self.inside):
            return False
        in_row = beside or bool(self.listing)
        if self.tag(i + 1) == "C" and self.finite(self.after(i + 1)):
            return self.joined(i, 1.0 if in_row else 2.0)
        goes_on = in_row or self._unjoined(i) or self.list_goes_on(i)
        return goes_on and self.joined(i, -1.0)

    def _unjoined(self, i: int) -> bool:
        """A second verb without any conjunction: "She gets up, takes her coat."."""
        between = self.tags[max(self.mine, default=0) : i - 1]
        subordinate = self.tag(self.before(self.at)) in ("S", "R")
        if not self.first or subordinate or self.tense != PRESENT or "," in between:
            return False
        led = self.has_object(i) or self.tag(i + 1) in ("I", "O")
        return self.tags[i - 1] == "," and self.odds(i) > (1 if led else 5)

    def listed_auxiliary(self, i: int) -> bool:
        """An auxiliary behind a bare comma: "She is, was and will be", "He won, was hailed …"."""
        if self.joint in self.mine and self.tag(i + 1) in ("C", ","):
            return True
        if self.owner != "mine" or not self.first or self.tag(i + 1) in ("N", "T", "R", "P"):
            return False
        if self.word(i - 1) in ("just", "simply") and self.tense == PRESENT:
            return True
        return self.list_goes_on(i)


ASKING = word_set("what's who's where's how's when's why's")
PARTICIPLES = word_set(
    "been gone got done had said told seen taken made become given come gotten brought"
)
DOES_VERBS = word_set("want need think mean say know do have care see get expect")
"""Verbs before which the 's of a question is short for does."""
QUESTION_ENDS = frozenset({"", ".", ",", "!", "?", "I", "O", "”", '"', ";"})


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
    if lead == "Z" and verb_table().odds.get(sentence.words[j - 1], -9.0) > -3:
        return False  # "What matters is she tried"
    head = sentence.clause_head(j - 1)
    if head == j - 1 or sentence.word(head) in FRONTED:
        return True
    return not sentence.past(following)


def _reporting(sentence: Tagged, j: int, last: int) -> bool:
    """A verb of saying between a quotation and its subject."""
    behind_quote = j == 0 or sentence.tag(j - 1) in (",", "“", "”", '"')
    quoted = sentence.tag(j - 1) in ("“", "”", '"')
    verb = verb_table().odds.get(sentence.words[j], -9.0) > (-3 if quoted else 2)
    return (
        behind_quote
        and verb
        and sentence.raw[j].islower()
        and sentence.tag(sentence.after(last)) in QUESTION_ENDS
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


QUIET = frozenset("xDIO")
"""Tags of what matters only between a pronoun or a conjunction and its verb."""
THINGS = frozenset({"it", "this", "that", "everything", "nothing", "something", "anything"})
REPEATING = frozenset({",", ".", "…", "—", "–", "-", "--"})
CLOSING = frozenset({"P", "R", ",", ")", "—", "–", "-", "--", '"', "“", "”"})
"""Tags of what may end a parenthesis between a pronoun and its verb."""


def find_agreement(text: str, start: int, end: int) -> list[Change]:
    """The words of the sentence text[start:end] to change so that they agree with `they`.

    >>> find_agreement("She sings and her cat purrs.", 0, 28)
    [(4, 'sings', 'sing')]
    >>> [after for _, _, after in find_agreement("Is he who laughs the one she has?", 0, 33)]
    ['Are', 'laugh', 'have']
    """
    return sorted(_Reader(text, start, end).read())


class _Reader(Clause):
    """A pass over one sentence; `place` says what stands right before, adverbs left out."""

    def read(self) -> list[Change]:
        """Go through the sentence and give the changes."""
        steps, plain, words = _STEPS, _Reader._plain, self.words
        if "V" not in self.tags and "Z" not in self.tags and ASKING.isdisjoint(words):
            return []
        for i, tag in enumerate(self.tags):
            if i < self.skip:
                continue
            if not self.place and tag in QUIET and words[i] not in UNCLEAR_PASTS:
                continue
            if self.place != "parenthesis" or tag in CLOSING:
                steps.get(tag, plain)(self, i)
        return self.changes

    def _pronoun(self, i: int) -> None:
        first, last = self._extent(i)
        if last > i:
            return  # told at the second of the two
        ahead, behind = self.tag(last + 1), self.tag(first - 1)
        if behind == "S" and ahead in ("C", ",", "") and self.owner:
            self.place = ""
            return
        self.comma = self.relative = self.resumes = False
        self.listing = ""
        if inverted(self, first, last, self.mine):
            self.own(first - 1)
            return
        if clitic := asking(self, first, last):
            end = self.offsets[first - 1] + len(self.raw[first - 1])
            written = self.text[end - 2 : end]
            after = clitic.replace("'", written[0])
            self.changes.append((end - 2, written, match_case(written, after)))
            self.owner, self.place, self.tense = "mine", "", PRESENT
            return
        self.situate(first)
        _, apostrophe, clitic = self.words[i].partition("'")
        self.owner = "mine"
        if ahead == "C" and self.word(last + 1) != "then":
            self.owner, self.place, self.other_tense = "plural", "", PRESENT
        elif apostrophe or self.words[i] in ("hes", "shes"):
            self.place, self.tense = "", PRESENT if clitic in ("s", "") else MODAL
        elif behind in ("M", "L") and not self.finite(self.after(last)):
            self.place, self.tense = "", MODAL
        else:
            self.place = "subject"

    def _extent(self, i: int) -> tuple[int, int]:
        """The tokens of "he or she", "he/she", "s/he" or "(s)he" around the pronoun at i."""
        if self.word(i + 1) in ("or", "/") and self.tag(i + 2) == "P":
            return i, i + 2
        if self.word(i - 1) in ("or", "/") and self.tag(i - 2) == "P":
            return i - 2, i
        if self.words[max(i - 2, 0) : i] == ["s", "/"]:
            return i - 2, i
        if self.words[max(i - 3, 0) : i] == ["(", "s", ")"]:
            return i - 3, i
        return i, i

    def _auxiliary(self, i: int) -> None:
        if i in self.mine:
            return
        if self._before_pronoun(i):
            return  # told at the pronoun
        if self.place == "subject" or (self.relative and self.place == ""):
            self.relative = self.relative and self.place == "subject"
            self.own(i)
        elif (self.place == "and" and self.follows(i)) or (
            self.place == "comma" and self.listed_auxiliary(i)
        ):
            self.listing = self.listing or self.place
            self.own(i)
        elif self.word(self.before(i)) not in EXISTENTIAL:
            self.other(PAST if self.words[i].startswith("was") else PRESENT)
            subject = self.word(self.before(i))
            if subject in THINGS:
                self.human = WILLING
            elif self.words[i][:2] in ("is", "wa") and subject != "who":
                self.human = ACTIONS
        else:
            self.place = ""

    def _before_pronoun(self, i: int) -> bool:
        """Whether the auxiliary at i is the verb of a pronoun right behind it."""
        j = i + 1
        if self.words[j : j + 3] == ["s", "/", "he"]:
            return True
        if self.tag(j) != "P":
            return False
        return inverted(self, *self._extent(j), self.mine)

    def _verb_or_noun(self, i: int) -> None:
        if i in self.mine:
            return
        named = self.named(i)
        opens = not (self.owner or self.met) or self.opens_clause(i)
        least = -3.0 if opens else 0.5  # a clause has a verb
        lead = self.before(i)
        if self.place == "subject" or self._repeats(i):
            self.own(i)
        elif not named and (
            (self.place == "and" and self.owner and self.joined(i, 0.0))
            or (self.place == "comma" and self.listed(i))
        ):
            self.listing = "comma" if self.place == "comma" else self.listing or "and"
            self.own(i)
        elif not named and (
            (self.tag(lead) in ("T", "R") and "'" not in self.words[lead]) or self.odds(i) > least
        ):
            if self.relative and self.place == "":
                self.relative = False
                self.own(i)
            else:
                self.other(PRESENT)
                if self.word(lead) in THINGS:
                    self.human = WILLING
        else:
            self.place = ""

    def _repeats(self, i: int) -> bool:
        """A verb of mine said again: "She waits - waits for you."."""
        marked = self.tag(i - 1) in REPEATING and self.owner == "mine"
        return marked and any(self.words[j] == self.words[i] for j in self.mine)

    def _conjunction(self, i: int) -> None:
        if self.place == "subject":
            return
        word = self.words[i]
        if word == "nor" and "neither" not in self.words[:i]:
            self.place = ""
            return
        if self.place != "comma":
            self.joint = i - 1
        self.comma = self.place == "comma"
        self.place = "and"

    def _comma(self, i: int) -> None:
        follow = self.after(i)
        if self.place == "subject":
            if not (
                self.tags[i] == "," and self.tags[i - 1] == "A" and self.tag(follow) in ("V", "Z")
            ):
                self.place = "parenthesis"
        elif self.place == "parenthesis" or self.resumes:
            if self.tag(follow) in ("V", "Z", "M") or self.past(follow):
                self.place, self.resumes = "subject", False
        elif self.place != "and":
            self.joint, self.place = i - 1, "comma"
            listed = self.joint in self.mine and self.tag(follow) == "Z"
            aside = self.aside and i - self.at <= 3
            if aside or (self.opening and not listed and self.tag(follow) not in ("C", "P")):
                self.owner = ""
            self.aside = False
        else:
            self._pass_over(i)

    def _pass_over(self, i: int) -> None:
        """A parenthesis right behind the conjunction, from the comma at i to the next."""
        for j in range(i + 1, min(i + 12, len(self.tags))):
            if self.tags[j] in ("P", "C", ";", ":"):
                return
            if self.tags[j] == ",":
                verb = self.after(j)
                if self.tag(verb) == "V" or (self.tag(verb) == "Z" and self.odds(verb) > -5):
                    self.skip = j + 1
                return

    def _dash(self, i: int) -> None:
        if self.place == "subject":
            self.place = "parenthesis"
        elif self.place == "parenthesis":
            self._comma(i)
        else:
            self.joint, self.place = i - 1, ""

    def _bracket(self, _i: int) -> None:
        if self.place == "subject":
            self.place = "parenthesis"
        elif self.place != "parenthesis":
            self.place = ""
            self.bracketed = (self.owner, self.tense, self.other_tense)

    def _bracket_end(self, i: int) -> None:
        if self.place == "parenthesis":
            self._comma(i)
        else:
            if self.bracketed is not None:
                self.owner, self.tense, self.other_tense = self.bracketed
                self.bracketed = None
            self.joint, self.place = i - 1, ""

    def _quote(self, i: int) -> None:
        at = self.offsets[i]
        opens = self.raw[i] == "“" or (
            self.raw[i] == '"'
            and (at == 0 or self.text[at - 1].isspace() or self.text[at - 1] == "(")
        )
        if self.place == "parenthesis":
            self.place = ""
        if opens:
            self.saved = (self.owner, self.tense, self.other_tense)
            if self.place != "subject" and self.tag(i + 1) != "C":
                self.owner = ""
        elif self.saved is not None:
            if self.owner != "mine":
                self.owner, self.tense, self.other_tense = self.saved
            self.saved = None

    def _modal(self, i: int) -> None:
        if self._noun_or_name(i):
            self._plain(i)
            return
        tense = PAST if self.words[i][:3] in ("did", "had", "use") else MODAL
        if self.place == "subject":
            self.owner, self.place, self.tense = "mine", "", tense
        elif self.place == "and" or self.tag(i + 1) == "P" or not self.owner:
            self.place = ""
        else:
            self.other(tense, plural=self.plural_before(i))

    def _noun_or_name(self, i: int) -> bool:
        """Whether what looks like a modal verb is none: "a beer can", "in May"."""
        lead = self.tag(i - 1)
        if self.words[i] not in ("can", "will", "may", "might") or lead in BREAKS:
            return False
        return self.named(i) or lead == "D" or (lead == "x" and self.tag(i + 1) in BREAKS)

    def _plural(self, i: int) -> None:
        if self.place == "subject":
            self.owner, self.place, self.tense = "mine", "", MODAL
            return
        self.place = ""
        lead = self.tag(self.before(i))
        if self.words[i] in ("am", "are", "were", "aren't", "weren't") or lead == "N":
            past = self.words[i].startswith("were")
            self.other(PAST if past else PRESENT, plural=True)

    def _past(self, i: int) -> None:
        if self.place == "subject":
            self.owner, self.place, self.tense = "mine", "", PAST
        elif self.place in ("and", "comma"):
            self.place = ""
            if self.owner == "mine" and self.tags[i] == "E":
                self.tense = PAST
        elif self.place != "parenthesis" and self.tag(i - 1) != "D":
            lead = self.tag(self.before(i))
            if self.tags[i] == "E" or lead in ("N", "T", "R"):
                self.other(PAST, plural=self.plural_before(i))
            self.place = ""

    def _subject(self, i: int) -> None:
        if self.place == "parenthesis":
            return
        word, apostrophe, _ = self.words[i].partition("'")
        if self.place == "subject" and self.tags[i] == "T" and self.word(i + 1) in TIMES:
            return
        self.place = ""
        owner = word.endswith(("one", "body")) and self.tag(i - 1) not in BREAKS | {"S", "R"}
        if apostrophe and word not in EXISTENTIAL and not owner:
            self.other(PRESENT, plural=self.tags[i] == "N")
            if word in THINGS:
                self.human = WILLING

    def _relative(self, i: int) -> None:
        word = self.words[i]
        if word in ("who", "that") and (
            self.tag(i - 1) == "P"
            or (self.place == "parenthesis" and self.tag(i - 1) == "," and self.tag(i - 2) == "P")
        ):
            self.relative = self.tag(i - 1) == "P" and self.tag(i - 2) != "V"
            self.resumes = self.tag(i - 1) == ","
            self.place = "subject"
        elif self.place != "parenthesis":
            self.place = ""
            if "'" in word:
                self.other(PRESENT)

    def _adverb(self, i: int) -> None:
        if self.place == "subject":
            return
        if self.words[i] in ("so", "neither", "either", "both") and self.tag(i + 1) in ("V", "Z"):
            self.place = ""

    def _plain(self, i: int) -> None:
        if self.place == "parenthesis":
            return
        if self.place == "subject":
            self._between(i)
        elif self.place in ("and", "comma"):
            self._led_in(i)
        elif self.words[i] in UNCLEAR_PASTS and self.tag(self.before(i)) in ("N", "T", "R"):
            self.other(PAST, plural=self.plural_before(i))

    def _between(self, i: int) -> None:
        """A word between the pronoun and its verb, or a verb that stays as it is."""
        word, tag = self.words[i], self.tags[i]
        if tag in (".", "…", "*", "x") and not word[0].isalnum():
            return
        if self.word(i + 1) == "%":
            return
        if tag in ("?", "!", ":", ";"):
            self.place = ""
            return
        ahead = self.after(i)
        if tag in ("D", "I", "O", "S"):
            verb = self.verb_ahead(i)
            if verb:
                return
            self.place = ""
            return
        known = word in UNCLEAR_PASTS or word in verb_table().plain
        sure = self.tag(ahead) == "V" or (self.tag(ahead) == "Z" and self.odds(ahead) > 1)
        if not known and sure and ahead == i + 1:
            return
        self.place, self.tense = "", PAST

    def _led_in(self, i: int) -> None:
        """A phrase between the conjunction and its verb: "and in the end wins"."""
        tag = self.tags[i]
        if tag not in ("I", "x", "D", "O") or not self._phrase(i):
            self.place = ""

    def _phrase(self, i: int) -> bool:
        """Whether the word at i belongs to an adverbial that a verb follows."""
        if self.tags[i] == "D":
            return self.words[i] in ("every", "each") and self.word(i + 1) in TIMES
        if self.word(i) in TIMES and self.tag(i - 1) in ("D", "T"):
            return True
        return self.tags[i] == "I" and self.verb_ahead(i)


_STEPS: dict[str, Callable[[_Reader, int], None]] = {
    "P": _Reader._pronoun,
    "V": _Reader._auxiliary,
    "Z": _Reader._verb_or_noun,
    "C": _Reader._conjunction,
    ",": _Reader._comma,
    "M": _Reader._modal,
    "L": _Reader._plural,
    "E": _Reader._past,
    "e": _Reader._past,
    "N": _Reader._subject,
    "T": _Reader._subject,
    "R": _Reader._relative,
    "A": _Reader._adverb,
    '"': _Reader._quote,
    "“": _Reader._quote,
    "”": _Reader._quote,
    "(": _Reader._bracket,
    ")": _Reader._bracket_end,
    "—": _Reader._dash,
    "–": _Reader._dash,
    "-": _Reader._dash,
    "--": _Reader._dash,
}
