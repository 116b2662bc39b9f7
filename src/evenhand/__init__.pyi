from . import (
    errors,
    fewshot,
    instruments,
    lexicon,
    masked,
    posterior,
    report,
    results,
    simulate,
    text,
    vectors,
)
from .audit import audit
from .cache import Cache
from .instruments import compare, measure
from .results import load

__all__ = [
    "Cache",
    "__version__",
    "audit",
    "compare",
    "errors",
    "fewshot",
    "instruments",
    "lexicon",
    "load",
    "masked",
    "measure",
    "posterior",
    "report",
    "results",
    "simulate",
    "text",
    "vectors",
]

__version__: str
