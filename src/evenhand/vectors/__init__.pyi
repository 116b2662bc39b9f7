from . import debias, metrics
from .debias import Debiased, bias_subspace, hard, inlp, leace, soft
from .distances import DistanceTable, distance_table
from .hiding import cluster_purity, hiding_tests, neighbour_bias, recovery
from .metrics.analogies import Analogies, AnalogyAccuracy, analogy
from .metrics.association import Association
from .metrics.direct_bias import DirectBias
from .metrics.ect import Ect
from .metrics.mac import Mac, mac_of_table
from .metrics.projections import Projections
from .metrics.ripa import Ripa
from .metrics.rnd import Rnd
from .metrics.rnsb import Rnsb
from .metrics.same import Same
from .metrics.sembias import SemBias
from .metrics.weat import Weat
from .metrics.wefat import Wefat
from .mitigation import VectorMitigation, mitigate
from .nulls import dimension_spread
from .pairs import PairAnalogies, pair_analogies
from .robustness import leave_one_out, split_half
from .store import Vectors, load
from .training import TrainedVectors, TrainSettings, train
from .utility import cosine_rank_correlation, neighbour_overlap, neighbour_rank_correlation
from .vocabulary import Lookup

__all__ = [
    "Analogies",
    "AnalogyAccuracy",
    "Association",
    "Debiased",
    "DirectBias",
    "DistanceTable",
    "Ect",
    "Lookup",
    "Mac",
    "PairAnalogies",
    "Projections",
    "Ripa",
    "Rnd",
    "Rnsb",
    "Same",
    "SemBias",
    "TrainSettings",
    "TrainedVectors",
    "VectorMitigation",
    "Vectors",
    "Weat",
    "Wefat",
    "analogy",
    "bias_subspace",
    "cluster_purity",
    "cosine_rank_correlation",
    "debias",
    "dimension_spread",
    "distance_table",
    "hard",
    "hiding_tests",
    "inlp",
    "leace",
    "leave_one_out",
    "load",
    "mac_of_table",
    "metrics",
    "mitigate",
    "neighbour_bias",
    "neighbour_overlap",
    "neighbour_rank_correlation",
    "pair_analogies",
    "recovery",
    "soft",
    "split_half",
    "train",
]
