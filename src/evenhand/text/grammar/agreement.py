"""Which words of a sentence agree with `he` or `she`, and what they are after `they`.

One pass from left to right, without a parser. After a subject `he` or `she`, the first verb in the
third person singular is its verb, whatever adverbs and parentheses stand between. Later verbs are
its verbs when they stand right behind a conjunction or a comma and no other subject has taken over
since. Whether a word in -s there is a verb or a plural noun is a matter of odds (`verbs`). Where
the reading stays open the word is left alone.
"""

from __future__ import annotations

from collections.abc import Callable

from evenhand.text.grammar.clause import ACTIONS, MODAL, PAST, PRESENT, WILLING, Change, Clause
from evenhand.text.grammar.inversion import ASKING, asking, inverted
from evenhand.text.grammar.tagging import BREAKS
from evenhand.text.grammar.verbs import forms
from evenhand.text.grammar.words import EXISTENTIAL, TIMES, UNCLEAR_PASTS
from evenhand.text.tokens import match_case

__all__ = ["Change", "agreement"]

QUIET = frozenset("xDIO")
"""Tags of what matters only between a pronoun or a conjunction and its verb."""
THINGS = frozenset({"it", "this", "that", "everything", "nothing", "something", "anything"})
REPEATING = frozenset({",", ".", "…", "—", "–", "-", "--"})
CLOSING = frozenset({"P", "R", ",", ")", "—", "–", "-", "--", '"', "“", "”"})
"""Tags of what may end a parenthesis between a pronoun and its verb."""


def agreement(text: str, start: int, end: int) -> list[Change]:
    """The words of the sentence text[start:end] to change so that they agree with `they`.

    >>> agreement("She sings and her cat purrs.", 0, 28)
    [(4, 'sings', 'sing')]
    >>> [after for _, _, after in agreement("Is he who laughs the one she has?", 0, 33)]
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
        known = word in UNCLEAR_PASTS or word in forms().plain
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
