"""Hard debiasing: neutralise the vocabulary, equalise the defining sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.subspace import (
    NO_SETS,
    Debiased,
    bias_subspace,
    known_sets,
    listed,
    project_out,
    unit_rows,
)
from evenhand.vectors.store import Vectors

BY_CONSTRUCTION = (
    "equalised words have the same similarity to every neutralised word, so contrasts between "
    "protected words are zero by construction: judge this result by the hiding tests and by "
    "words that it did not change"
)

_UNDEFINED = 1e-6
"""A member this close to its set's mean inside the subspace has no direction to move in."""


@checked
def hard(
    v: Vectors,
    sets: Sequence[Sequence[str]],
    *,
    k: int = 1,
    equalize: Sequence[Sequence[str]] | None = None,
    neutralize: Literal["all"] | Sequence[str] = "all",
    keep: Sequence[str] = (),
) -> Debiased:
    """Project the bias subspace out of neutral words and make the defining words symmetric.

    Parameters
    ----------
    v : Vectors
    sets : sequence of sequences of str
        The defining sets that span the bias subspace.
    k : int
        The dimension of the subspace.
    equalize : sequence of sequences of str, optional
        The sets to equalise; by default `sets`. An empty list equalises nothing. Sets that share
        a word are equalised as one, since the second would undo the first.
    neutralize : "all" or sequence of str
        The words to neutralise: all except those of `sets`, `equalize` and `keep`, or these.
    keep : sequence of str
        Words to leave as they are.

    Returns
    -------
    Debiased
        All vectors have unit length.

    Notes
    -----
    Neutralise: v ← (v - v_B)/|v - v_B|. Equalise: see `equalized`. Bolukbasi et al. (2016) for
    pairs and k = 1; Manzini et al. (2019) for larger sets and k.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, gender = eh.vectors.load("glove"), eh.lexicon.topic("gender")
    >>> result = eh.vectors.hard(v, gender.definitional)
    >>> result.report["largest_left"] < 1e-5
    True

    """
    subspace = bias_subspace(v, sets, k)
    wanted = sets if equalize is None else equalize
    equal = known_sets(v, wanted, "equalize") if len(wanted) else NO_SETS
    unchanged = v.find(keep)
    fixed = np.union1d(equal.defining, unchanged.rows)
    missing = [*subspace.left_out, *equal.left_out, *unchanged.missing]
    if isinstance(neutralize, str):
        if neutralize != "all":
            raise InputError(f"neutralize: expected 'all' or a list of words, got {neutralize!r}")
        fixed = np.union1d(fixed, known_sets(v, sets, "sets").defining)
        projection = project_out(v.matrix, subspace.basis)
        matrix, inside = projection.matrix, np.setdiff1d(projection.inside, fixed)
        matrix[fixed] = v.unit(fixed)
        neutral = len(v) - fixed.size
    else:
        named = v.find(neutralize)
        missing.extend(named.missing)
        rows = np.unique(named.rows)
        clash = [v.words[row] for row in np.intersect1d(rows, fixed)]
        if clash:
            raise InputError(f"neutralize: also in equalize or keep: {', '.join(clash)}")
        matrix = unit_rows(v.matrix)
        projection = project_out(v.matrix[rows], subspace.basis)
        matrix[rows], inside = projection.matrix, rows[projection.inside]
        neutral = rows.size
    components = _components(equal.rows)
    unmoved: list[int] = []
    for rows in components:
        positions, moved = equalized(v.unit(rows), subspace.basis)
        matrix[rows[moved]] = positions[moved]
        unmoved.extend(rows[~moved].tolist())
    notes = [BY_CONSTRUCTION] if components else []
    if len(components) < len(equal.rows):
        notes.append(f"{len(equal.rows)} sets share words and were equalised as {len(components)}")
    notes += _named(v, inside, "lie entirely in the bias subspace and were not neutralised")
    notes += _named(v, unmoved, "are at their set's mean in the subspace and were not equalised")
    return Debiased(
        vectors=v.with_matrix(matrix, name=f"{v.name}+hard"),
        method="hard",
        settings={
            "k": k,
            "sets": listed(sets),
            "equalize": None if equalize is None else listed(equalize),
            "neutralize": listed(neutralize),
            "keep": listed(keep),
        },
        report={
            "explained": subspace.explained,
            "neutralized": int(neutral - len(inside)),
            "equalized": int(sum(rows.size for rows in components) - len(unmoved)),
            "largest_left": projection.largest_left,
            "not_neutralized": [v.words[row] for row in inside],
            "not_equalized": [v.words[row] for row in unmoved],
        },
        removed=subspace.basis,
        fitted_on=tuple(dict.fromkeys(word for members in subspace.sets for word in members)),
        left_out=tuple(dict.fromkeys(missing)),
        notes=tuple(notes),
    )


def equalized(members: Floats, basis: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The members (unit vectors), equal except for their position in the subspace.

    With the mean μ and ν = μ - μ_B: w ← ν + √(1 - |ν|²) (w_B - μ_B)/|w_B - μ_B| (Bolukbasi et
    al., 2016). The second result is False for a member with w_B = μ_B: the formula gives it no
    direction, and it is returned unchanged.

    >>> pair = np.array([[0.6, 0.8], [-1.0, 0.0]])
    >>> equalized(pair, np.array([[1.0, 0.0]]))[0].round(3).tolist()
    [[0.917, 0.4], [-0.917, 0.4]]
    """
    mean = members.mean(axis=0)
    inside = (members @ basis.T) @ basis
    away = inside - inside.mean(axis=0)
    shared = mean - inside.mean(axis=0)
    lengths = np.linalg.norm(away, axis=1)
    moved = lengths > _UNDEFINED
    reach = np.sqrt(max(0.0, 1 - float(shared @ shared)))
    positions = members.copy()
    positions[moved] = shared + reach * away[moved] / lengths[moved, None]
    return positions, moved


def _components(sets: Iterable[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """The sets with those that share a row joined (connected components)."""
    joined: list[set[int]] = []
    for rows in sets:
        members = set(rows.tolist())
        touching = [other for other in joined if other & members]
        joined = [other for other in joined if not other & members]
        joined.append(members.union(*touching))
    return [np.array(sorted(members), dtype=np.intp) for members in joined]


def _named(v: Vectors, rows: Sequence[int] | NDArray[np.intp], what: str) -> list[str]:
    words = [v.words[row] for row in rows]
    listed = ", ".join(words[:8]) + (" …" if len(words) > 8 else "")
    return [f"{len(words)} words {what}: {listed}"] if words else []
