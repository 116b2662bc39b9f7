"""Debiasing of word vectors.

`hard` projects out the bias subspace and equalises the defining sets, `soft` finds the linear map
that weighs unchanged similarities against removed bias, `inlp` removes what a linear probe can
use, and `leace` does so by the smallest change. None removes all bias:
`evenhand.vectors.hiding` measures what is left, `evenhand.vectors.utility` the cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.arguments import checked
from evenhand.errors import UnknownNameError
from evenhand.vectors.debias.groups import most_biased, word_bias
from evenhand.vectors.debias.hard import hard
from evenhand.vectors.debias.inlp import inlp
from evenhand.vectors.debias.leace import leace
from evenhand.vectors.debias.soft import soft
from evenhand.vectors.debias.subspace import Debiased, Subspace, bias_subspace
from evenhand.vectors.store import Vectors

__all__ = [
    "METHODS",
    "Debiased",
    "Subspace",
    "bias_subspace",
    "debias",
    "hard",
    "inlp",
    "leace",
    "most_biased",
    "soft",
    "word_bias",
]

METHODS: Mapping[str, Callable[..., Debiased]] = {
    "hard": hard,
    "inlp": inlp,
    "leace": leace,
    "soft": soft,
}


@checked
def debias(
    v: Vectors,
    method: str,
    sets: Sequence[Sequence[str]] | Mapping[str, Sequence[str]],
    *,
    options: Mapping[str, Any] | None = None,
) -> Debiased:
    """Debias by a method given by name.

    Parameters
    ----------
    v : Vectors
    method : {"hard", "soft", "inlp", "leace"}
    sets : sequence of sequences of str, or Mapping
        Defining sets; `inlp` and `leace` also take a mapping from class to words.
    options : Mapping, optional
        Further parameters of the method's function by name.

    Returns
    -------
    Debiased

    Examples
    --------
    >>> v = Vectors.from_arrays(["he", "she", "nurse"], [[1, 1], [-1, 1], [-3, 4]])
    >>> result = debias(v, "hard", [["he", "she"]])
    >>> result.vectors.name, result.vectors["nurse"].tolist()
    ('memory+hard', [0.0, 1.0])

    """
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    known = {*inspect.signature(METHODS[method]).parameters} - {"v", "sets", "groups"}
    for name in options or {}:
        if name not in known:
            raise UnknownNameError(f"option of {method}", name, known)
    return METHODS[method](v, sets, **(options or {}))
