"""Simulated worlds with a known bias, on which every instrument is calibrated."""

from evenhand.simulate.vectors import World, world

__all__ = ["World", "world"]
