"""Word lists as data files with their provenance.

Topics, WEAT and WEFAT queries, analogies; gendered pairs, neutral forms, sex indicators, names;
professions and sentence templates.

The names that users import are listed in `__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
