"""Word lists as data files with their provenance.

Topics, WEAT and WEFAT queries, analogies; gendered pairs, neutral forms, sex indicators, names.
"""

from evenhand.lexicon.gendered import (
    NeutralForm,
    Pair,
    kept_phrases,
    neutral_forms,
    pairs,
    read_pairs,
    sex_indicators,
)
from evenhand.lexicon.names import Names, names
from evenhand.lexicon.queries import (
    Query,
    WefatQuery,
    read_query,
    weat,
    weat_queries,
    wefat,
    wefat_queries,
)
from evenhand.lexicon.questions import Analogies, analogies
from evenhand.lexicon.topics import Topic, topic, topic_names

__all__ = [
    "Analogies",
    "Names",
    "NeutralForm",
    "Pair",
    "Query",
    "Topic",
    "WefatQuery",
    "analogies",
    "kept_phrases",
    "names",
    "neutral_forms",
    "pairs",
    "read_pairs",
    "read_query",
    "sex_indicators",
    "topic",
    "topic_names",
    "weat",
    "weat_queries",
    "wefat",
    "wefat_queries",
]
