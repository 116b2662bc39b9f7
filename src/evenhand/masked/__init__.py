"""Masked language models: load one, measure it, generate sentences, fine-tune it.

`pronouns`, `professions`, `phrases`, `crows`, `sss`, `disco`, `context` and `perplexity` measure a
model; every one returns a `Measurement`. `evenhand.measure(model, material, metrics)` calls them by
name. The names that users import are listed in `__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
