from .debiasing import fit_maps, gender_pairs, hidden_states, mitigate_model, save_model
from .encoders import SentenceEncoder
from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .metrics.bbq import BbqQuestion, bbq, read_bbq
from .metrics.gest import GestSentence, gest, read_gest
from .metrics.stereoset import Triple, read_triples, stereoset
from .models import kind_of, load

__all__ = [
    "BbqQuestion",
    "GestSentence",
    "SentenceEncoder",
    "Triple",
    "bbq",
    "end_likelihoods",
    "fit_maps",
    "gender_pairs",
    "gest",
    "hidden_states",
    "kind_of",
    "likelihoods",
    "load",
    "mitigate_model",
    "read_bbq",
    "read_gest",
    "read_triples",
    "save_model",
    "stereoset",
    "word_likelihoods",
]
