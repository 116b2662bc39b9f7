"""What is measured of the data, in the reader's words."""

from __future__ import annotations

from evenhand.report.methods import Method

__all__ = ["METHODS"]

METHODS = {
    "odds_ratio": Method(
        "Odds ratio of a class",
        "Is a class more common among men or among women in these data?",
        "[m / (M - m)] / [f / (F - f)], with m of M men's texts and f of F women's texts in the "
        "class; one half added to all four counts where one is 0. Without bias 1. Interval: normal "
        "on the logarithm, each text taken as independent; p: Fisher's exact test, two-sided",
        "Sun & Peng 2021",
    ),
    "structural_filter": Method(
        "Structural filter",
        "In which sentences does a pronoun give a gender to a word that has none?",
        "exactly one gendered pronoun; no other word that states a sex; the pronoun stands for "
        "one gender-neutral expression of the sentence",
        "Ye et al. 2021",
    ),
}  # fmt: skip
