"""Static word vectors: load them, measure their bias, reduce it, and look where it hides.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.vectors.Weat()(v, eh.lexicon.weat(6))
>>> m.value > 0
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
