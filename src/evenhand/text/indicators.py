"""Words that tell the sex of a person: the listed ones, those in -man, first names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from evenhand.lexicon.gendered import sex_indicators
from evenhand.lexicon.names import names
from evenhand.text.coreference.vocabulary import PRONOUNS, word_set
from evenhand.text.tokens import WordIndex

__all__ = ["indicator_index", "stated_sex"]

MAN = re.compile(r"[a-z]{2,}-?(?:wo)?m[ae]n")
NOT_MAN = word_set(
    "human humans german roman norman ottoman caiman talisman shaman specimen regimen omen abdomen "
    "women acumen stamen semen dolmen hymen lumen yemen ramen bitumen foramen albumen cyclamen "
    "superhuman inhuman nonhuman subhuman mussulman brahman hetman oman pullman walkman pacman "
    "catechumen turkmen truman newman freeman coleman hoffman goodman bergman"
)
# Looks and dress that go with one sex, though no word for it.
TELLING = word_set(
    "beard beards bearded moustache moustaches moustached mustache mustaches mustached mustachioed "
    "goatee stubble stubbled unshaven pregnant pregnancy breastfeeding menopause bra bras bikini "
    "lactating menstruating ballerina ballerinas maid maids brunette blonde"
)


@cache
def indicator_index() -> WordIndex:
    """The listed words that state a sex, pronouns left out, each a single word."""
    return WordIndex(
        word
        for word in sex_indicators()
        if word.isascii() and word.isalnum() and word not in PRONOUNS
    )


def stated_sex(tokens: Sequence[str]) -> str:
    """The first word that tells a sex without being listed: "crewman", "bearded", "Martina"; or "".

    >>> stated_sex("The crewman lifts his hat .".split()), stated_sex("The human sits .".split())
    ('crewman', '')
    """
    known = names()
    listed = sex_indicators()
    for token in tokens:
        low = token.lower()
        if low in PRONOUNS:
            continue
        if low in TELLING or low in listed or (MAN.fullmatch(low) and low not in NOT_MAN):
            return token
        if token[:1].isupper() and token not in known.ambiguous and known.gender(token):
            return token
    return ""
