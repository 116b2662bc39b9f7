"""Which noun phrase a pronoun stands for: links with a confidence, by rules or by an outside model.

A resolver is called with the tokens of one sentence and the place of a pronoun, and answers with a
`Link` or, where it is not sure, with None. `resolver(name)` makes one: `rules` is built in;
`fastcoref`, `coreferee:MODEL` and `spacy:MODEL` use those packages where they are installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evenhand.errors import InputError
from evenhand.registry import Registry

__all__ = ["LEAST", "Link", "Resolver", "resolver", "resolver_names"]

PLACES = {
    "coreferee": "evenhand.text.coreference.adapters:Coreferee",
    "fastcoref": "evenhand.text.coreference.adapters:FastCoref",
    "rules": "evenhand.text.coreference.rules:Rules",
    "spacy": "evenhand.text.coreference.adapters:Spacy",
}
LEAST = 0.7
"""Below this confidence the built-in resolver abstains unless told otherwise."""

RESOLVERS = Registry("resolver", PLACES, group="evenhand.resolvers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A pronoun's antecedent: tokens[start:end], and how sure that is, from 0 to 1.

    `size` counts the expressions of the group, the pronoun among them: 2 where the antecedent is
    the only other one. `rule` says how it was found. A model that gives no confidence has None.
    """

    start: int
    end: int
    text: str
    confidence: float | None
    size: int = 2
    rule: str = ""


class Resolver(Protocol):
    """Finds the antecedent of a pronoun within its sentence, or abstains."""

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of the pronoun tokens[i], None where it is not sure of one."""
        ...


def resolver(name: str = "rules", *, least: float | None = None) -> Resolver:
    """A resolver by name; what follows a colon is the name or the folder of its model.

    `least` is the confidence below which `rules` abstains; the others have no such threshold.

    >>> resolver("rules")("The nurse is looking after her patients .".split(), 5).text
    'The nurse'
    """
    kind, colon, model = name.partition(":")
    if kind == "rules":
        if colon:
            raise InputError(f"resolver {name}: expected rules, which has no model to name")
        keywords = {} if least is None else {"least": least}
        rules: Resolver = RESOLVERS[kind](**keywords)
        return rules
    made: Resolver = RESOLVERS[kind](model)
    return made


def resolver_names() -> list[str]:
    """The names a resolver may be asked for by."""
    return sorted(RESOLVERS)
