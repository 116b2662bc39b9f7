"""Evenhand within other libraries: the Trainer of transformers, and scikit-learn.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used, with
the library that they belong to.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
