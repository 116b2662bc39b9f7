from . import (
    causal,
    classifier,
    errors,
    fewshot,
    gate,
    instruments,
    integrations,
    language,
    lexicon,
    masked,
    posterior,
    report,
    results,
    scores,
    simulate,
    text,
    vectors,
)
from .audit import audit
from .cache import Cache
from .instruments import compare, measure
from .language.asking import ask
from .results import load

__all__ = [
    "Cache",
    "__version__",
    "ask",
    "audit",
    "causal",
    "classifier",
    "compare",
    "errors",
    "fewshot",
    "gate",
    "instruments",
    "integrations",
    "language",
    "lexicon",
    "load",
    "masked",
    "measure",
    "posterior",
    "report",
    "results",
    "scores",
    "simulate",
    "text",
    "vectors",
]

__version__: str
