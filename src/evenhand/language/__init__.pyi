from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .metrics.stereoset import Triple, read_triples, stereoset
from .models import kind_of, load

__all__ = [
    "Triple",
    "end_likelihoods",
    "kind_of",
    "likelihoods",
    "load",
    "read_triples",
    "stereoset",
    "word_likelihoods",
]
