"""Evenhand measures, explains and reduces social bias, and says how sure it is.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.measure(v, eh.lexicon.weat(6), "weat")[0]
>>> m.value > 1 and m.low > 0.5
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
