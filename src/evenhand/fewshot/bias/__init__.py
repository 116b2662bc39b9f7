"""Gender bias of a few-shot classifier (D0 §4.1): texts against their gender-swapped twins.

`Twins` holds the answers to the test queries and to their twins, `measure` gives the association,
the accuracies of pro- and anti-stereotypical versions, ε, skew and stereotype with intervals and
with what chance gives; `change` compares a classifier before and after a mitigation.
"""

from evenhand.fewshot.bias.change import Change, change
from evenhand.fewshot.bias.measures import Bias, Measure, measure
from evenhand.fewshot.bias.tables import AssociationRow, associations
from evenhand.fewshot.bias.twins import Twins, leanings

__all__ = [
    "AssociationRow",
    "Bias",
    "Change",
    "Measure",
    "Twins",
    "associations",
    "change",
    "leanings",
    "measure",
]
