"""Moved to `evenhand.statistics.tests`; removed when every room imports from there."""

from evenhand.statistics.tests import Alternative, PermutationTest, two_sample

__all__ = ["Alternative", "PermutationTest", "two_sample"]
