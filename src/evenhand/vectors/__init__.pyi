from . import debias, metrics
from .debias import Debiased, bias_subspace, hard, inlp, leace, soft
from .distances import DistanceTable, distance_table
from .hiding import cluster_purity, hiding_tests, neighbour_bias, recovery
from .metrics.analogies import analogies, analogy, analogy_accuracy
from .metrics.association import association_contrast
from .metrics.direct_bias import direct_bias
from .metrics.ect import ect
from .metrics.mac import mac, mac_of_table
from .metrics.projections import projections
from .metrics.ripa import ripa
from .metrics.rnd import rnd
from .metrics.rnsb import rnsb
from .metrics.same import same
from .metrics.weat import weat
from .metrics.wefat import wefat
from .mitigation import Mitigation, mitigate
from .nulls import dimension_spread
from .pairs import PairAnalogies, pair_analogies
from .robustness import leave_one_out, split_half
from .store import Vectors, load
from .utility import cosine_rank_correlation, neighbour_overlap, neighbour_rank_correlation
from .vocabulary import Lookup

__all__ = [
    "Debiased",
    "DistanceTable",
    "Lookup",
    "Mitigation",
    "PairAnalogies",
    "Vectors",
    "analogies",
    "analogy",
    "analogy_accuracy",
    "association_contrast",
    "bias_subspace",
    "cluster_purity",
    "cosine_rank_correlation",
    "debias",
    "dimension_spread",
    "direct_bias",
    "distance_table",
    "ect",
    "hard",
    "hiding_tests",
    "inlp",
    "leace",
    "leave_one_out",
    "load",
    "mac",
    "mac_of_table",
    "metrics",
    "mitigate",
    "neighbour_bias",
    "neighbour_overlap",
    "neighbour_rank_correlation",
    "pair_analogies",
    "projections",
    "recovery",
    "ripa",
    "rnd",
    "rnsb",
    "same",
    "soft",
    "split_half",
    "weat",
    "wefat",
]
