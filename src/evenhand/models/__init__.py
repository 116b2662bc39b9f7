"""Language models, masked and causal, and sentence encoders: load, score, measure, change them.

`load` takes a name, a path or a model in memory of any kind. `masked`, `causal` and `encoder` are
the kinds; `metrics/` has one file per measure; `finetuning/` trains models, `generation/` writes
sentences, `debiasing` changes a model's states. The names that users import are listed in
`__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
