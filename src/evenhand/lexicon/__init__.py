"""Word lists as data files with their provenance.

Topics, WEAT and WEFAT queries, analogies; gendered pairs, neutral forms, sex indicators, names;
professions and sentence templates.
"""

from evenhand.lexicon.gendered import (
    NeutralForm,
    Pair,
    fixed_phrases,
    neutral_forms,
    pairs,
    read_pairs,
    sex_indicators,
)
from evenhand.lexicon.names import Names, names
from evenhand.lexicon.professions import (
    PersonPair,
    Profession,
    Template,
    TemplateSet,
    professions,
    read_professions,
    read_templates,
    template_set,
)
from evenhand.lexicon.queries import (
    Analogies,
    Query,
    WefatQuery,
    analogies,
    read_query,
    sentence_templates,
    weat,
    weat_queries,
    wefat,
    wefat_queries,
)
from evenhand.lexicon.topics import Topic, topic, topic_names

__all__ = [
    "Analogies",
    "Names",
    "NeutralForm",
    "Pair",
    "PersonPair",
    "Profession",
    "Query",
    "Template",
    "TemplateSet",
    "Topic",
    "WefatQuery",
    "analogies",
    "fixed_phrases",
    "names",
    "neutral_forms",
    "pairs",
    "professions",
    "read_pairs",
    "read_professions",
    "read_query",
    "read_templates",
    "sentence_templates",
    "sex_indicators",
    "template_set",
    "topic",
    "topic_names",
    "weat",
    "weat_queries",
    "wefat",
    "wefat_queries",
]
