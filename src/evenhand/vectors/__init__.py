"""Static word vectors: load them, measure their bias, reduce it, and look where it hides.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.vectors.weat(
...     v, X=["math", "physics"], Y=["poetry", "dance"], A=["he", "man"], B=["she", "woman"]
... )
>>> m.value > 0
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
