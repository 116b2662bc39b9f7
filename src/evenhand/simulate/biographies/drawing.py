"""Drawing biographies: who is recorded as what, what the text tells, and which label it gets."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np

from evenhand.errors import InputError, UnknownNameError
from evenhand.simulate.biographies.grammar import GENDERS, grammar
from evenhand.simulate.biographies.result import Biographies
from evenhand.simulate.biographies.writing import DRAWS, write

__all__ = ["biographies"]


def biographies(
    per_class: int = 200,
    *,
    leak: float = 0.5,
    shares: float = 1.0,
    wording: float = 0.0,
    label_noise: float = 0.0,
    seed: int = 0,
    occupations: Iterable[str] | None = None,
) -> Biographies:
    """Short biographies of `per_class` persons of each occupation, with a known gender bias.

    `shares` scales how far the occupations' shares of women lie from one half (0: all at one
    half, 1: Table 3 of D0). `leak`, `wording` and `label_noise` are those of the module's
    definition. A person's text, but for the gender it tells, depends on the seed, the occupation
    and the person's number alone: other dials, sizes or occupations leave it as it is.

    >>> made = biographies(3, leak=1, seed=4, occupations=["nurse", "composer"])
    >>> made.occupations
    ('nurse', 'nurse', 'nurse', 'composer', 'composer', 'composer')
    >>> print(made.texts[3][-72:])
    His training began in Belfast, where he studied music theory until 2002.
    >>> print(made.twins[3][-73:])
    Her training began in Belfast, where she studied music theory until 2002.
    """
    dials = {"leak": leak, "shares": shares, "wording": wording, "label_noise": label_noise}
    for name, value in dials.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
            raise InputError(f"{name}: expected a number from 0 to 1, got {value!r}")
    _check_count("per_class", per_class, 1)
    _check_count("seed", seed, 0)
    book = grammar()
    known = list(book.occupations)
    classes = known if occupations is None else _checked(occupations, known)
    if label_noise and len(classes) < 2:
        raise InputError("label_noise: expected at least two occupations to confuse, got one")
    women = {name: 0.5 + shares * (book.occupations[name].women - 0.5) for name in classes}
    columns: list[list[str]] = [[] for _ in range(6)]
    for place, name in enumerate(classes):
        numbers = np.random.default_rng([seed, known.index(name)]).random((per_class, 5 + DRAWS))
        recorded = np.where(numbers[:, 0] < women[name], 0, 1)
        told = np.where(numbers[:, 1] < leak, recorded, numbers[:, 2] >= 0.5)
        step = 1 + (numbers[:, 4] * (len(classes) - 1)).astype(int)
        labels = np.where(numbers[:, 3] < label_noise, (place + step) % len(classes), place)
        for gender, shown, label, row in zip(
            recorded.tolist(), told.tolist(), labels.tolist(), numbers[:, 5:].tolist(), strict=True
        ):
            both = write(book, book.occupations[name], wording=wording, draws=row)
            values = (both[shown], classes[label], GENDERS[gender], both[1 - shown], name,
                      GENDERS[shown])  # fmt: skip
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    texts, given, genders, twins, written_for, shown_genders = map(tuple, columns)
    return Biographies(
        texts=texts, occupations=given, genders=genders, twins=twins, written_for=written_for,
        told=shown_genders, share_of_women=women, leak=float(leak), shares=float(shares),
        wording=float(wording), label_noise=float(label_noise), seed=int(seed),
    )  # fmt: skip


def _check_count(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name}: expected a whole number from {least} up, got {value!r}")


def _checked(occupations: Iterable[str], known: list[str]) -> list[str]:
    if isinstance(occupations, str):
        raise InputError(f"occupations: expected a list of names, got the text {occupations!r}")
    classes = list(occupations)
    if not classes:
        raise InputError("occupations: expected at least one, got none")
    for name in classes:
        if name not in known:
            raise UnknownNameError("occupation", str(name), known)
        if classes.count(name) > 1:
            raise InputError(f"occupations: expected each once, got '{name}' twice")
    return classes
