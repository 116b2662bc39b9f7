"""What the odds ratios of a corpus are returned as."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.results import document, replace_file, save_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Agreement", "Odds", "OddsRatio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsRatio:
    """One class: above 1 it leans male, below 1 female.

    `low` and `high` are normal on the log scale, `exact_low` and `exact_high` hold given the
    margins, `p_value` is Fisher's (two-sided), `p_holm` corrected for the number of classes, `male`
    and `female` count the class's rows. Where `corrected`, a cell was 0 and one half was added to
    every cell for `odds_ratio`, `low` and `high`.
    """

    label: str
    odds_ratio: float
    low: float
    high: float
    exact_low: float
    exact_high: float
    p_value: float
    p_holm: float
    male: int
    female: int
    corrected: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How often the majority of a row's pronouns says what its gender column says."""

    compared: int
    agree: int
    undecided: int
    share: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """The odds ratios of all classes, from most male to most female, and what they rest on.

    `counts` has the rows read, male, female and left out; `left_out` counts the last by reason.
    """

    rows: tuple[OddsRatio, ...]
    source: str
    label: str
    gender_from: str
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    prob: float = 0.95
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()

    def top(self, k: int = 10) -> tuple[tuple[OddsRatio, ...], tuple[OddsRatio, ...]]:
        """The k classes that lean most to men and the k that lean most to women, most first."""
        male = [row for row in self.rows if row.odds_ratio > 1]
        female = [row for row in reversed(self.rows) if row.odds_ratio < 1]
        return tuple(male[:k]), tuple(female[:k])

    def as_dict(self) -> dict[str, Any]:
        """The JSON view; an interval without an end has null there."""
        names = ("source", "label", "gender_from", "counts", "left_out", "prob", "notes")
        return document(
            **{name: getattr(self, name) for name in names},
            agreement=None if self.agreement is None else self.agreement.as_dict(),
            interval="normal on the log odds ratio (low, high); exact given the margins "
            "(exact_low, exact_high); rows taken as independent",
            test="Fisher's exact test, two-sided; p_holm corrected over the classes",
            rows=[row.as_dict() for row in self.rows],
        )

    def to_frame(self) -> pd.DataFrame:
        """A row a class."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.rows])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classes as .csv or everything as .json, whole or not at all."""
        match Path(path).suffix.lower():
            case ".json":
                save_json(path, self.as_dict())
            case ".csv":
                with replace_file(path) as file:
                    self.to_frame().to_csv(file, index=False)
            case ending:
                raise InputError(f"{os.fspath(path)}: expected .csv or .json, got '{ending}'")

    def __str__(self) -> str:
        male, female = self.top(5)
        lines = [
            f"odds ratios of {len(self.rows)} classes in '{self.label}' of {self.source}: "
            f"{self.counts['male']:,} male, {self.counts['female']:,} female rows "
            f"(gender by {self.gender_from})"
        ]
        for title, rows in (("leaning male", male), ("leaning female", female)):
            lines += [f"{title}:"] if rows else []
            lines += [
                f"  {row.label}: {row.odds_ratio:.3g} [{row.low:.3g}, {row.high:.3g}] "
                f"({self.prob:.0%}){' corrected for an empty cell' if row.corrected else ''}"
                for row in rows
            ]
        out = ", ".join(f"{reason} {n:,}" for reason, n in self.left_out.items())
        return "\n".join([*lines, *([f"left out: {out}"] if out else []), *self.notes])
