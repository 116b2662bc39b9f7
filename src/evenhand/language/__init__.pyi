from .encoders import SentenceEncoder, encode
from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .metrics.bbq import BbqQuestion, bbq, read_bbq
from .metrics.gest import GestSentence, gest, read_gest
from .metrics.seat import seat
from .metrics.stereoset import Triple, read_triples, stereoset
from .models import kind_of, load

__all__ = [
    "BbqQuestion",
    "GestSentence",
    "SentenceEncoder",
    "Triple",
    "bbq",
    "encode",
    "end_likelihoods",
    "gest",
    "kind_of",
    "likelihoods",
    "load",
    "read_bbq",
    "read_gest",
    "read_triples",
    "seat",
    "stereoset",
    "word_likelihoods",
]
