"""Worlds with a known bias, to check that every instrument reads what was planted."""

from evenhand.simulate.vectors import World, world

__all__ = ["World", "world"]
