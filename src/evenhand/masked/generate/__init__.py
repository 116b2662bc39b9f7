"""Sentences with implicit gender bias, made by editing seeds with the model under test.

`generate` searches, holds what it found against random edits of the same seeds, and lets other
models judge both.
"""

from evenhand.masked.generate.main import generate
from evenhand.masked.generate.result import Generation
from evenhand.masked.generate.search import Settings
from evenhand.masked.generate.seeds import Seed, Seeds, read_seeds

__all__ = ["Generation", "Seed", "Seeds", "Settings", "generate", "read_seeds"]
