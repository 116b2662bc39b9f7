"""The main job: measure, mitigate, measure again, and write one report.

An audit is a list of stages. Each is computed once and saved under `stages/` with a key of all
that it depends on, so that the same command resumes where it stopped; everything else in the
folder (`results.json`, `items.parquet`, tables, figures, the page) is written from the stages.
The names that users import are listed in `__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
