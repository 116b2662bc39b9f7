from . import (
    answers,
    classifier,
    errors,
    fewshot,
    gate,
    instruments,
    integrations,
    lexicon,
    models,
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
from .models.asking import ask
from .results import load

__all__ = [
    "Cache",
    "__version__",
    "answers",
    "ask",
    "audit",
    "classifier",
    "compare",
    "errors",
    "fewshot",
    "gate",
    "instruments",
    "integrations",
    "lexicon",
    "load",
    "measure",
    "models",
    "posterior",
    "report",
    "results",
    "scores",
    "simulate",
    "text",
    "vectors",
]

__version__: str
