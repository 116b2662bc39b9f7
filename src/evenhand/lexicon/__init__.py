"""Word lists as data files with their provenance: topics, WEAT and WEFAT queries, analogies."""

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
    "Query",
    "Topic",
    "WefatQuery",
    "analogies",
    "read_query",
    "topic",
    "topic_names",
    "weat",
    "weat_queries",
    "wefat",
    "wefat_queries",
]
