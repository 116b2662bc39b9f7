from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .metrics.gest import GestSentence, gest, read_gest
from .metrics.stereoset import Triple, read_triples, stereoset
from .models import kind_of, load

__all__ = [
    "GestSentence",
    "Triple",
    "end_likelihoods",
    "gest",
    "kind_of",
    "likelihoods",
    "load",
    "read_gest",
    "read_triples",
    "stereoset",
    "word_likelihoods",
]
