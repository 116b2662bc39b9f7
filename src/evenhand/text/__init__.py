"""Text: exact rewriting, person names, the structural-bias filter, odds ratios, annotation.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
