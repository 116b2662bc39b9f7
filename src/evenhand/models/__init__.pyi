from .asking import Answer, ask
from .causal import CausalLM, CausalModel
from .causal_scoring import (
    continuation_log_likelihoods,
    log_likelihoods,
    next_log_probs,
    sentence_log_likelihoods,
)
from .control import check_control, controls
from .debiasing import (
    fit_maps,
    gender_pairs,
    hidden_states,
    mitigate_encoder,
    mitigate_model,
    save_model,
)
from .encoder import SentenceEncoder, encode
from .endpoint import EndpointSettings
from .finetuning.training import finetune
from .generation.search import generate
from .likelihood import end_likelihoods, likelihoods, word_likelihoods
from .loading import describe, kind_of, load
from .masked import MaskedLM, MaskedModel
from .masked_scoring import (
    MaskedPosition,
    TokenScores,
    TopTokens,
    log_probs,
    query_tokens,
    target_log_probs,
    top_k,
)
from .metrics.bbq import Bbq, BbqQuestion, read_bbq
from .metrics.context import Context
from .metrics.coreference import Coreference, Schema, read_schemas
from .metrics.crows import Crows
from .metrics.disco import Disco
from .metrics.gest import Gest, GestSentence, read_gest
from .metrics.holisticbias import (
    Descriptor,
    HolisticBias,
    HolisticWords,
    read_holisticbias,
)
from .metrics.label_bias import LabelBias
from .metrics.perplexity import CausalPerplexity, Perplexity
from .metrics.phrases import Phrases
from .metrics.professions import Professions
from .metrics.pronouns import Pronouns
from .metrics.seat import Seat
from .metrics.sss import Sss
from .metrics.stereoset import StereoSet, Triple, read_triples
from .pairs import Pair, read_pairs
from .sentences import read_sentences
from .writing import WriteSettings

__all__ = [
    "Answer",
    "Bbq",
    "BbqQuestion",
    "CausalLM",
    "CausalModel",
    "CausalPerplexity",
    "Context",
    "Coreference",
    "Crows",
    "Descriptor",
    "Disco",
    "EndpointSettings",
    "Gest",
    "GestSentence",
    "HolisticBias",
    "HolisticWords",
    "LabelBias",
    "MaskedLM",
    "MaskedModel",
    "MaskedPosition",
    "Pair",
    "Perplexity",
    "Phrases",
    "Professions",
    "Pronouns",
    "Schema",
    "Seat",
    "SentenceEncoder",
    "Sss",
    "StereoSet",
    "TokenScores",
    "TopTokens",
    "Triple",
    "WriteSettings",
    "ask",
    "check_control",
    "continuation_log_likelihoods",
    "controls",
    "describe",
    "encode",
    "end_likelihoods",
    "finetune",
    "fit_maps",
    "gender_pairs",
    "generate",
    "hidden_states",
    "kind_of",
    "likelihoods",
    "load",
    "log_likelihoods",
    "log_probs",
    "mitigate_encoder",
    "mitigate_model",
    "next_log_probs",
    "query_tokens",
    "read_bbq",
    "read_gest",
    "read_holisticbias",
    "read_pairs",
    "read_schemas",
    "read_sentences",
    "read_triples",
    "save_model",
    "sentence_log_likelihoods",
    "target_log_probs",
    "top_k",
    "word_likelihoods",
]
