"""Soft debiasing: the linear map that trades similarities kept for bias removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.intervals import Floats
from evenhand.vectors.debias.projection import chunks, transform_rows, unit_rows
from evenhand.vectors.debias.result import Debiased
from evenhand.vectors.debias.soft_solver import solve
from evenhand.vectors.debias.subspace import bias_subspace, known_sets
from evenhand.vectors.store import Vectors

__all__ = ["soft"]


def soft(
    v: Vectors,
    sets: Sequence[Sequence[str]],
    *,
    lam: float = 0.2,
    k: int = 1,
    neutral: Literal["all"] | Sequence[str] = "all",
    keep: Sequence[str] = (),
    scale: Literal["sum", "mean"] = "sum",
) -> Debiased:
    r"""Minimise $|(TW)^T(TW) - W^TW|_F^2 + λ|(TN)^T(TB)|_F^2$ over T and set w ← Tw/|Tw|.

    Bolukbasi et al. (2016), Manzini et al. (2019): W all words' unit vectors, N the neutral
    ones' ("all": the vocabulary but the words of the sets and those to `keep`), B the bias
    subspace. The minimum is exact, see `soft_solver.solve`; the report says how near to zero the
    gradient is.

    The first term sums over all V² pairs of words, the second over |N|·k entries only. As
    printed (`scale="sum"`) the published λ = .2 therefore does next to nothing on a vocabulary
    of thousands: words spread evenly over d dimensions lose a share of about λd/2V of their
    bias. `scale="mean"` divides each term by its number of entries, so that λ weighs a mean
    squared change of similarity against a mean squared bias, whatever the vocabulary.
    `report["removed"]` is the share of the neutral words' root mean square |v_B| that is gone.
    """
    if not (np.isfinite(lam) and lam >= 0):
        raise InputError(f"lam: expected a number of 0 or more, got {lam}")
    if scale not in ("sum", "mean"):
        raise UnknownNameError("scale", scale, ["sum", "mean"])
    subspace = bias_subspace(v, sets, k)
    rows, missing = _neutral_rows(v, sets, neutral, keep)
    whole = _gram(v, np.arange(len(v)))
    others = np.setdiff1d(np.arange(len(v)), rows)
    common = whole - _gram(v, others) if others.size < rows.size else _gram(v, rows)
    weight = lam if scale == "sum" else lam * len(v) ** 2 / (rows.size * k)
    found = solve(whole, common, subspace.basis, weight)
    matrix = transform_rows(v.matrix, found.transform)
    before = float(np.sqrt((subspace.basis @ common * subspace.basis).sum() / rows.size))
    along = (matrix @ subspace.basis.T.astype(np.float32))[rows].astype(np.float64)
    after = float(np.sqrt((along**2).sum() / rows.size))
    return Debiased(
        vectors=v.with_matrix(matrix, name=f"{v.name}+soft"),
        method="soft",
        settings={
            "lam": lam, "k": k, "scale": scale, "keep": list(keep),
            "sets": [list(members) for members in sets],
            "neutral": neutral if isinstance(neutral, str) else list(neutral),
        },
        report={
            "explained": subspace.explained, "neutral": int(rows.size), "weight": weight,
            "objective_before": found.objective_before, "objective_after": found.objective_after,
            "gradient_norm": found.gradient_norm, "gradient_relative": found.gradient_relative,
            "smallest_eigenvalue": found.smallest_eigenvalue, "solver": found.solver,
            "steps": found.steps, "converged": found.converged,
            "bias_before": before, "bias_after": after,
            "removed": 1 - after / before if before > 0 else 0.0,
        },
        transform=found.transform,
        fitted_on=tuple(dict.fromkeys(word for members in subspace.sets for word in members)),
        left_out=tuple(dict.fromkeys([*subspace.left_out, *missing])),
        notes=() if found.converged else ("not converged: see gradient_relative",),
    )  # fmt: skip


def _neutral_rows(
    v: Vectors, sets: Sequence[Sequence[str]], neutral: str | Sequence[str], keep: Sequence[str]
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """The rows of the neutral words, and the asked-for words that have no vector."""
    kept = v.find(keep)
    if isinstance(neutral, str):
        if neutral != "all":
            raise InputError(f"neutral: expected 'all' or a list of words, got {neutral!r}")
        barred = np.union1d(known_sets(v, sets, "sets").defining, kept.rows)
        rows, missing = np.setdiff1d(np.arange(len(v)), barred), kept.missing
    else:
        found = v.find(neutral)
        clash = [v.words[row] for row in np.intersect1d(found.rows, kept.rows)]
        if clash:
            raise InputError(f"neutral: also in keep: {', '.join(clash)}")
        rows, missing = np.unique(found.rows), (*kept.missing, *found.missing)
    if not rows.size:
        raise VocabularyError(f"neutral: none of the words has a vector in {v.name}")
    return rows, missing


def _gram(v: Vectors, rows: NDArray[np.intp]) -> Floats:
    """The d × d sum of uuᵀ over the unit vectors u of the rows."""
    total = np.zeros((v.dim, v.dim))
    for part in chunks(rows.size, v.dim):
        unit = unit_rows(v.matrix[rows[part]]).astype(np.float64)
        total += unit.T @ unit
    return total
