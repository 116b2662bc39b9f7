"""The clause of a pronoun: whose verb was met last, and whether the next one goes with it."""

from __future__ import annotations

from typing import Final

from evenhand.text.grammar.tagging import BREAKS, Tagged
from evenhand.text.grammar.verbs import forms, plain_form
from evenhand.text.grammar.words import AGREEING, TIMES, word_set
from evenhand.text.tokens import match_case

__all__ = ["ACTIONS", "MODAL", "PAST", "PRESENT", "WILLING", "Change", "Clause"]

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
            if self.tag(i + 1) in ENDS and forms().odds.get(self.words[i], -9.0) < 2:
                score -= 1.5
        else:
            score += 2.0 if self.words[i] in forms().odds else 1.0
        ahead = self.word(i + 1) if self.tag(i + 1) == "x" else ""
        least = 2.0 if self.words[i] in forms().odds else -1.0
        if ahead not in OBJECTS and forms().odds.get(ahead + "s", -9.0) > least:
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
