"""The interval of a change before/after covers the change, protected words drawn anew as well."""

import numpy as np
import pytest

from by_lists import association_contrast
from evenhand.instruments import compare
from evenhand.simulate import world
from evenhand.vectors import Vectors, distance_table


def contrast(bias, seed):
    made = world(bias=bias, seed=seed, dim=30, vocabulary=200, protected=5, stereotypes=12)
    v = Vectors.from_arrays(made.words, made.matrix)
    return association_contrast(distance_table(v, made.topic), permutations=0)


@pytest.mark.slow
def test_change_of_the_association_is_covered():
    """Held to its attributes alone, the interval would cover 80 %."""
    changes = [compare(contrast(0.8, seed), contrast(0.2, seed)).change for seed in range(250)]
    truth = np.mean([change.value for change in changes])
    assert 0.93 <= np.mean([c.low <= truth <= c.high for c in changes]) <= 0.995
