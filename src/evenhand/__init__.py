"""Evenhand measures, explains and reduces social bias, and says how sure it is.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.measure(v, eh.lexicon.weat(6), "weat")
>>> m.value > 1 and m.low > 0.5
True
"""

import sys
import types

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"


class _Package(types.ModuleType):
    """`evenhand.audit` is the function, also once its package has been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "audit" and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
