from .asking import Answer, ask
from .control import check_control, controls
from .debiasing import (
    fit_maps,
    gender_pairs,
    hidden_states,
    mitigate_encoder,
    mitigate_model,
    save_model,
)
from .encoders import SentenceEncoder, encode
from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .metrics.bbq import BbqQuestion, bbq, read_bbq
from .metrics.coreference import Schema, coreference, read_schemas
from .metrics.crows import crows
from .metrics.gest import GestSentence, gest, read_gest
from .metrics.holisticbias import Descriptor, HolisticWords, holisticbias, read_holisticbias
from .metrics.professions import professions
from .metrics.seat import seat
from .metrics.stereoset import Triple, read_triples, stereoset
from .models import describe, kind_of, load

__all__ = [
    "Answer",
    "BbqQuestion",
    "Descriptor",
    "GestSentence",
    "HolisticWords",
    "Schema",
    "SentenceEncoder",
    "Triple",
    "ask",
    "bbq",
    "check_control",
    "controls",
    "coreference",
    "crows",
    "describe",
    "encode",
    "end_likelihoods",
    "fit_maps",
    "gender_pairs",
    "gest",
    "hidden_states",
    "holisticbias",
    "kind_of",
    "likelihoods",
    "load",
    "mitigate_encoder",
    "mitigate_model",
    "professions",
    "read_bbq",
    "read_gest",
    "read_holisticbias",
    "read_schemas",
    "read_triples",
    "save_model",
    "seat",
    "stereoset",
    "word_likelihoods",
]
