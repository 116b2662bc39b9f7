"""English verbs in -s: which words may be one, how sure that is, and the verb each comes from.

Whether "plays" is a verb or a noun is read off counts of running text: each form has log odds of
its own, and so have the words before and after it (naive Bayes; `tools/make_verbs.py` makes the
tables and says how).
"""

from __future__ import annotations

from functools import cache

from evenhand.lexicon.reading import data, read_csv
from evenhand.text.grammar.words import word_set

__all__ = ["ADVERBS_IN_S", "Forms", "forms", "plain_form", "shape", "stems"]

ADVERBS_IN_S = word_set(
    "always afterwards backwards besides downstairs downwards else's forwards indoors inwards "
    "nevertheless nonetheless nowadays onwards ours outdoors outwards overseas perhaps regardless "
    "sideways sometimes theirs themselves thus towards unawares unless upstairs upwards us "
    "whereas yourselves ourselves yes yours its his hers this as gas plus"
)
"""Words in -s that are neither a verb nor a plural."""


EXCEPTIONS = {
    "quizzes": "quiz", "gasses": "gas", "gases": "gas", "busses": "bus", "buses": "bus",
    "biases": "bias", "canvases": "canvas", "refocuses": "refocus", "choruses": "chorus",
    "axes": "axe", "caches": "cache", "psyches": "psych", "aches": "ache",
    "tiptoes": "tiptoe", "toes": "toe", "shoes": "shoe", "canoes": "canoe", "hoes": "hoe",
    "boogies": "boogie", "unties": "untie", "outlies": "outlie", "overlies": "overlie",
    "reties": "retie", "bellyaches": "bellyache", "zeroes": "zero",
}  # fmt: skip
"""Verbs in -s whose plain form the spelling does not tell."""

FUNCTION_VERBS = word_set(
    "better cause damn down further last like long near out please right second still up well okay"
)
"""Function words that are verbs, too: "she likes it", "he ups the ante"."""


SPOKEN = word_set(
    "babysits barfs barges bickers binges blurts brags cackles chomps chortles chugs cringes "
    "cuddles cusses dozes drools facetimes flexes flinches flosses freaks gaslights gawks gobbles "
    "googles guffaws guzzles haggles jots lugs microwaves moseys munches nods nudges overreacts "
    "overshares oversleeps overthinks plops plunks procrastinates pukes redoes reheats reinstalls "
    "reloads retweets rinses scampers scoffs scowls scurries shrugs simps slouches slurps smirks "
    "snuggles splurges squints staggers stinks stomps stutters swerves tiptoes twerks unbuttons "
    "unfollows uninstalls unmatches unpacks unplugs unwraps unzips upvotes waddles winces yanks "
    "yeets zooms"
)
"""Verbs of talk and of jokes, which the books behind the tables lack."""
SPOKEN_TOO = word_set(
    "belches blinks burps farts flops gags gapes gasps giggles glares grunts hiccups hisses "
    "hollers honks jabs jogs limps meows moans nags panics peeks peers pees poops purrs rants "
    "roasts scrolls sips snarls sneezes snoozes snores snorts sobs sprawls sprints squeals swipes "
    "texts tugs vacuums vapes whacks whines yawns zips"
)
"""The same of forms that are plural nouns, too."""
SPOKEN_ODDS = {SPOKEN: 2.0, SPOKEN_TOO: -0.5}


ENDINGS = ("ing", "ed", "ly", "ness", "ion", "s")


def shape(word: str) -> str:
    """The class of a word that is not in the tables, by its form.

    >>> shape("Paris"), shape("gloffing"), shape("7")
    ('~A', '~ing', '~0')
    """
    if not word[0].isalnum():
        return word
    if word[0].isupper():
        return "~A"
    if word[0].isdigit():
        return "~0"
    return next((f"~{ending}" for ending in ENDINGS if word.endswith(ending)), "~")


def stems(form: str) -> tuple[str, ...]:
    """The words an -s form may come from, the likeliest by spelling first.

    >>> stems("tries"), stems("dies"), stems("quizzes")
    (('try', 'trie'), ('die', 'dy'), ('quiz',))
    """
    if form in EXCEPTIONS:
        return (EXCEPTIONS[form],)
    if form.endswith("ies"):
        long, short = form[:-3] + "y", form[:-1]
        return (long, short) if len(form) > 4 else (short, long)
    if form.endswith(("sses", "zzes")):
        return form[:-2], form[:-3], form[:-1]
    if form.endswith(("shes", "ches", "xes", "oes")):
        return form[:-2], form[:-1]
    if form.endswith("ses"):
        return form[:-1], form[:-2]
    return (form[:-1],)


class Forms:
    """The tables of verb forms and of their contexts."""

    def __init__(self) -> None:
        rows = read_csv(data("verbs.csv"), ["form", "verb", "log_odds"])
        self.verbs = {row.cells["form"]: row.cells["verb"] for row in rows}
        self.odds = {row.cells["form"]: float(row.cells["log_odds"]) for row in rows}
        for spoken, odds in SPOKEN_ODDS.items():
            for form in spoken - self.odds.keys():
                self.verbs[form], self.odds[form] = stems(form)[0], odds
        self.plain = frozenset(self.verbs.values())
        contexts = read_csv(data("verb_contexts.csv"), ["word", "before", "after"])
        self.before = {row.cells["word"]: float(row.cells["before"]) for row in contexts}
        self.after = {row.cells["word"]: float(row.cells["after"]) for row in contexts}


@cache
def forms() -> Forms:
    """The tables, read once."""
    return Forms()


def plain_form(form: str) -> str:
    """The verb without its -s, in lower case.

    >>> [plain_form(form) for form in ("goes", "tries", "dies", "loses", "focuses", "yeets")]
    ['go', 'try', 'die', 'lose', 'focus', 'yeet']
    """
    return forms().verbs.get(form) or stems(form)[0]
