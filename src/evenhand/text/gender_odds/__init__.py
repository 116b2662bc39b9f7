"""Odds ratios of the classes of a data set between men and women, with intervals."""

from evenhand.text.gender_odds.counting import class_odds, odds
from evenhand.text.gender_odds.pronouns import pronoun_gender
from evenhand.text.gender_odds.ratio import odds_ratio
from evenhand.text.gender_odds.result import Odds, OddsRatio

__all__ = ["Odds", "OddsRatio", "class_odds", "odds", "odds_ratio", "pronoun_gender"]
