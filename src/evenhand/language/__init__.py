"""Language models of every kind: load one, compute likelihoods, measure it.

`bbq`, `coreference`, `crows`, `gest`, `holisticbias`, `professions` and `stereoset` measure masked
and causal models and return a `Measurement`. The names that users import are listed in
`__init__.pyi`, once, and loaded when first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
