"""Bayesian models of cosine distances, sampled exactly where possible.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.

>>> from evenhand import lexicon, posterior, vectors
>>> table = vectors.distance_table(vectors.load("glove"), lexicon.topic("gender"))
>>> result = posterior.fit(table, "crossed", draws=800)
>>> posterior.measure_contrasts(result)["associated-different"].high < 0
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
